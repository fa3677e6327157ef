"""Closure conversion of functions that become functions of the graph with custom derivatives.

A function of the graph sees its arguments alone. `Captures` takes the numbers out of the values that a function
captures, to be passed as further arguments, and puts others in. A function is traced once for equal captures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ...errors import Error
from ...ir import Node
from ...ir.node import fresh, order
from ...ir.types import Type
from ..evaluate.joins import AbstractValue, Static, Structured, abstract, build, equal, flatten, leaf_types
from ..evaluate.specialiser import Specialiser
from ..evaluate.values import Array

OWNED = "it is captured by the function that changes it here; change a copy of it and return that"
T = TypeVar("T")


class Captures:
    """Captured values, as abstract values and the numbers in them."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.form = abstract(values, deep=True)
        self.numbers: list[Node] = list(flatten(values, self.form))
        self.types: list[Type] = leaf_types(self.form)
        self._known = [x.read() for x in _arrays(self.form)]  # contents now, as the arrays may change later

    def values(self, numbers: Iterator[Node]) -> tuple[Any, ...]:
        """The captured values with other numbers in them."""
        found: tuple[Any, ...] = build(self.form, numbers, OWNED)
        return found

    def same(self, other: Captures) -> bool:
        """Whether both are equal apart from their numbers."""
        if not equal(self.form, other.form) or len(self._known) != len(other._known):
            return False
        return all(a is b for a, b in zip(self._known, other._known, strict=True))


def _arrays(p: AbstractValue) -> Iterator[Array]:
    if isinstance(p, Static):
        if isinstance(p.value, Array):
            yield p.value
    elif isinstance(p, Structured):
        for part in p.parts:
            yield from _arrays(part)


def memoised(s: Specialiser, key: Any, captures: Captures, make: Callable[[], T], lasting: Callable[[T], bool]) -> T:
    """What `make` returns for these captures: memoised where `lasting` says so."""
    for other, found in s.captured.setdefault(key, []):
        if captures.same(other):
            made: T = found
            return made
    made = make()
    if lasting(made):
        s.captured[key].append((captures, made))
    return made


def isolated(s: Specialiser, what: str, run: Callable[[], T]) -> T:
    """What `run` returns. Raises Error where it changes a reference from outside, or may raise an exception."""
    with s.journal() as changed, s.closed():
        s.level += 1
        found = run()
    if s.token in changed:
        raise Error(
            f"{what} may raise an exception as it runs, which cannot be compiled; check its arguments before the call"
        )
    if changed:
        raise Error(
            f"{what} changes a value from outside, which cannot be compiled in a function of its own; return it instead"
        )
    return found


def variables(types: Iterable[Type]) -> list[Node]:
    """Fresh variables of these types."""
    return [fresh(t) for t in types]


def free_variables(outputs: Sequence[Node], own: Sequence[Node]) -> list[Node]:
    """The free variables of a graph: placeholders for results of a function that is still being inferred."""
    known = set(own)
    return [n for n in order(outputs) if n.is_variable and n not in known]
