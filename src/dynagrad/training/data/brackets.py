"""Facts from trees that are known in part: which spans, and which labels of them, a parse may have.

Pereira and Schabes 1992 ("Inside-outside reestimation from partially bracketed corpora") leave out of EM's derivations
those with a span that crosses a bracket. Here such a constraint is a table, which a rule has as a factor:
`phrase(X,I,K) += ... * permitted(I,K)`. Hard constraints have only the rows that are permitted; soft ones have all, and
those that cross a fixed factor below one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...arguments import real_number, whole_number, yes_or_no
from ...calls import public
from ...errors import FactError, shown

Span = tuple[Any, int, int]
"""A label, None where there is none, and where a phrase begins and ends."""


@public
def spans_of(tree: Any, labelled: bool = True) -> tuple[list[str], list[Span]]:
    """The words of a tree and the spans of its phrases, each before those in it.

    The tree is text in brackets, where the first word of each is its label unless `labelled` is false; or nested tuples
    or lists, whose first member is a label or None; or an `nltk.Tree`.

    >>> spans_of("(S (NP the dog) barks)")
    (['the', 'dog', 'barks'], [('S', 0, 3), ('NP', 0, 2)])
    >>> spans_of("((the dog) barks)", labelled=False)[1]
    [(None, 0, 3), (None, 0, 2)]
    """
    labelled = yes_or_no("labelled", labelled)
    nested = _parsed(tree, labelled) if isinstance(tree, str) else _nested(tree)
    words: list[str] = []
    spans: list[Span | None] = []
    stack: list[Any] = [nested]
    while stack:
        at = stack.pop()
        if isinstance(at, _Close):
            spans[at.number] = (at.label, at.begin, len(words))
        elif isinstance(at, str):
            words.append(at)
        else:
            label, parts = at
            stack.append(_Close(len(spans), label, len(words)))
            spans.append(None)
            stack.extend(reversed(parts))
    return words, [s for s in spans if s is not None]


class _Close:
    """The end of a phrase on the stack."""

    def __init__(self, number: int, label: Any, begin: int) -> None:
        self.number, self.label, self.begin = number, label, begin


_TOKEN = re.compile(r"[()]|[^\s()]+")


def _parsed(text: str, labelled: bool) -> Any:
    """A tree from text: (label, parts)."""
    stack: list[tuple[Any, list[Any]]] = []
    fresh = False
    found: Any = None
    for token in _TOKEN.findall(text):
        if found is not None:
            raise FactError(f"more than one tree in {shown(text)}: give them one by one")
        if token == "(":
            stack.append((None, []))
            fresh = True
            continue
        if not stack:
            raise FactError(f"{shown(text)} is no tree: {shown(token)} stands outside of brackets")
        if token == ")":
            label, parts = stack.pop()
            if not stack:
                found = (label, parts)
            else:
                stack[-1][1].append((label, parts))
        elif fresh and labelled:
            stack[-1] = (token, [])
        else:
            stack[-1][1].append(token)
        fresh = False
    if found is None:
        raise FactError(f"{shown(text)} is no tree: {'a bracket is not closed' if stack else 'it has no brackets'}")
    return found


def _nested(tree: Any) -> Any:
    """A tree from nested tuples or lists, or of nltk: (label, parts)."""
    root: list[Any] = [None]
    stack: list[tuple[Any, list[Any], int]] = [(tree, root, 0)]
    while stack:
        given, place, at = stack.pop()
        if isinstance(given, str):
            place[at] = given
            continue
        if callable(getattr(given, "label", None)):
            label, parts = given.label(), list(given)
        elif isinstance(given, tuple | list) and len(given) >= 2 and isinstance(given[0], str | None):
            label, parts = given[0], list(given[1:])
        else:
            raise FactError(
                f"{shown(given)} is no tree: a phrase is a tuple of its label and its parts, a word is text"
            )
        place[at] = (label, parts)
        stack.extend((part, parts, n) for n, part in enumerate(parts))
    if isinstance(root[0], str):
        raise FactError(f"{shown(root[0])} is a word, and no tree; text in brackets has them")
    return root[0]


@public
def permitted(
    length: int, spans: Iterable[Sequence[Any]], crossing: float | None = None, *, logs: bool = False
) -> list[tuple[Any, ...]]:
    """Rows (I, K) of all spans of a sentence that cross none of these; with `crossing` all, with 1 or that as value.

    A value is a fixed factor of derivations, not a probability. `logs` gives its log, for `log` and `viterbi`.

    >>> permitted(3, [(0, 2)])
    [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)]
    >>> permitted(3, [(0, 2)], crossing=0.1)[4]
    (1, 3, 0.1)
    """
    length, logs = whole_number("length", length, 0), yes_or_no("logs", logs)
    known: list[tuple[int, int]] = []
    if isinstance(spans, str) or not isinstance(spans, Iterable):
        raise FactError(f"spans is a list of spans, such as [(0, 2)], not {shown(spans)}")
    for span in spans:
        if isinstance(span, str) or not isinstance(span, Sequence | np.ndarray) or np.ndim(span) == 0 or len(span) < 2:
            raise FactError(
                f"a span is a tuple that ends with where it begins and ends, such as (0, 2), not {shown(span)}"
            )
        begin, end = (whole_number("an end of a span", x, 0) for x in span[-2:])
        if not begin <= end <= length:
            raise FactError(f"the span {shown(tuple(span))} is not within a sentence of {length} words")
        known.append((begin, end))
    one, factor = 1.0, crossing
    if crossing is not None:
        factor = real_number("crossing", crossing)
        if not 0 <= factor < math.inf:
            raise FactError(f"crossing is a factor from 0 on, not {shown(crossing)}")
        if logs:
            one, factor = 0.0, math.log(factor) if factor else -math.inf
    found: list[tuple[Any, ...]] = []
    for i in range(length):
        for k in range(i + 1, length + 1):
            crosses = any(i < begin < k < end or begin < i < end < k for begin, end in known)
            if crossing is not None:
                found.append((i, k, factor if crosses else one))
            elif not crosses:
                found.append((i, k))
    return found


@public
def permitted_by_tree(
    tree: Any, crossing: float | None = None, *, labelled: bool = True, logs: bool = False
) -> list[tuple[Any, ...]]:
    """Rows (I, K) of all spans that cross no bracket of a tree, which may have few: see `spans_of` and `permitted`.

    >>> permitted_by_tree("((the dog) barks)", labelled=False)
    [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3)]
    """
    words, spans = spans_of(tree, labelled)
    return permitted(len(words), spans, crossing, logs=logs)


@public
def phrases_of(tree: Any) -> list[tuple[Any, int, int]]:
    """Rows (X, I, K) of the phrases of a tree, as facts: a label from where to where.

    >>> phrases_of("(S (NP the dog) (VP barks))")
    [('S', 0, 3), ('NP', 0, 2), ('VP', 2, 3)]
    """
    words, spans = spans_of(tree)
    if spans[0] == (None, 0, len(words)):
        spans = spans[1:]  # treebanks have such a bracket around each tree
    found = list(dict.fromkeys(spans))
    if any(label is None for label, _, _ in found):
        raise FactError("a bracket of the tree has no label; permitted_by_tree takes such trees")
    return found
