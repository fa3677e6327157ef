"""Trees of pairs, as Python's tuples of two: patterns, coefficients and values. Nothing is known of their leaves here.

They may be deep, so nothing here recurses on them. Python's other structures are taken apart in `eager/pytree.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ...errors import Error, NotConverged, shown

Part = TypeVar("Part")
Made = TypeVar("Made")
MOST_PARTS = 2_000_000
"""How many parts a term or a value may have, where it is gone through as a tree: what is shared counts each time."""


_JOIN = object()
"""Stands for a pair whose parts are done."""


def counted(count: int) -> int:
    """One more part; an error where there are too many.

    >>> counted(MOST_PARTS)
    Traceback (most recent call last):
        ...
    dynagrad.errors.NotConverged: a term or a value has more than 2,000,000 parts
    """
    if count >= MOST_PARTS:
        raise NotConverged(f"a term or a value has more than {MOST_PARTS:,} parts")
    return count + 1


def checked_steps(most: object) -> int:
    """A bound of steps; an error if it is none."""
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise Error(f"max_steps= should be a whole number, 1 or larger, and is {shown(most)}")
    return most


def folded(tree: Any, leaf: Callable[[Any], Made], join: Callable[[Made, Made], Made]) -> Made:
    """What a tree comes to by `leaf` of each leaf, from left to right, and `join` of what the parts of a pair come to.

    Longer tuples are pairs that are nested to the right.

    >>> folded((1, (2, 3)), str, lambda a, b: f"<{a} {b}>"), folded((1, 2, 3), str, lambda a, b: f"<{a} {b}>")
    ('<1 <2 3>>', '<1 <2 3>>')
    """
    done: list[Made] = []
    todo = [tree]
    while todo:
        part = todo.pop()
        if part is _JOIN:
            second, first = done.pop(), done.pop()
            done.append(join(first, second))
        elif isinstance(part, tuple) and part:
            todo += [_JOIN] * (len(part) - 1)
            todo += reversed(part)
        else:
            done.append(leaf(part))
    return done[0]


def relabelled(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """The tree with other leaves.

    >>> relabelled((1, (2, 3)), str)
    ('1', ('2', '3'))
    """
    return folded(tree, leaf, _pair)


def _pair(first: Any, second: Any) -> Any:
    return first, second


def leaves(tree: Any) -> list[Any]:
    """The leaves, from left to right.

    >>> leaves((1, (2, 3)))
    [1, 2, 3]
    """
    found: list[Any] = []
    todo = [tree]
    while todo:
        counted(len(found))
        part = todo.pop()
        if isinstance(part, tuple):
            todo += (part[1], part[0])
        else:
            found.append(part)
    return found


def nested_right(parts: Iterable[Part], join: Callable[[Part, Part], Part]) -> Part:
    """Parts joined from the right; one as it is.

    >>> nested_right([1, 2, 3], lambda a, b: (a, b))
    (1, (2, 3))
    """
    *before, made = parts
    for part in reversed(before):
        made = join(part, made)
    return made
