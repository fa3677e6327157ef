"""Functions that become functions of the graph with derivatives of their own: traced with all that they hold.

Such a function sees its arguments alone, so the numbers that are in what it holds are passed to it as well: `Held`
takes them out, and puts others in. A function that is made once is used wherever the same is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ...errors import Error
from ...ir import Node
from ...ir.node import fresh, order
from ...ir.types import Type
from ..evaluate.joins import AbstractValue, Dynamic, Static, abstract, build, equal, flatten, leaf_types
from ..evaluate.specialiser import Specialiser
from ..evaluate.values import Array

OWNED = "it came from outside of the function that changes it here; change a copy of it and return that"
T = TypeVar("T")


class Captures:
    """Values with the numbers in them taken out."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.form = abstract(values, deep=True)
        self.numbers: list[Node] = list(flatten(values, self.form))
        self.types: list[Type] = leaf_types(self.form)
        self._known = [x.read() for x in _arrays(self.form)]  # which may be changed in place later

    def values(self, numbers: Iterator[Node]) -> tuple[Any, ...]:
        """The values with other numbers."""
        found: tuple[Any, ...] = build(self.form, numbers, OWNED)
        return found

    def same(self, other: Captures) -> bool:
        """Whether both are the same but for their numbers."""
        if not equal(self.form, other.form) or len(self._known) != len(other._known):
            return False
        return all(a is b for a, b in zip(self._known, other._known, strict=True))


def _arrays(p: AbstractValue) -> Iterator[Array]:
    if isinstance(p, Static):
        if isinstance(p.value, Array):
            yield p.value
    elif not isinstance(p, Dynamic):
        for part in p.parts:
            yield from _arrays(part)


def memoised(s: Specialiser, key: Any, held: Captures, make: Callable[[], T], lasting: Callable[[T], bool]) -> T:
    """What is made for values that are held, if it was not made before and is worth keeping."""
    for other, found in s.captured.setdefault(key, []):
        if held.same(other):
            made: T = found
            return made
    made = make()
    if lasting(made):
        s.captured[key].append((held, made))
    return made


def isolated(s: Specialiser, what: str, run: Callable[[], T]) -> T:
    """What is computed in a function of the graph. Raises Error where it changes something from outside."""
    with s.journal() as changed:
        s.level += 1
        found = run()
    if s.token in changed:
        raise Error(f"{what} raises something as it runs, and that cannot be compiled; check arguments before the call")
    if changed:
        raise Error(
            f"{what} changes something from outside, and is a function by itself when it is compiled; return it"
        )
    return found


def variables(types: Iterable[Type]) -> list[Node]:
    return [fresh(t) for t in types]


def free_variables(outputs: Sequence[Node], own: Sequence[Node]) -> list[Node]:
    """Variables that are not passed: the results of a function that is still being made."""
    known = set(own)
    return [n for n in order(outputs) if n.is_variable and n not in known]
