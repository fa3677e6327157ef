"""Indices as linear forms of the counters of loops: where an element stands in memory. No loops are written here.

A form is a sum of multiples of named whole numbers (counters, and numbers that C++ keeps in locals) and a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...graph.types import Shape


@dataclass(frozen=True, slots=True)
class Form:
    """
    >>> i, j = name("i"), name("j")
    >>> str(i * 10 + j + 3), str(i - i)
    ('10 * i + j + 3', '0')
    """

    terms: tuple[tuple[str, int], ...] = ()  # by name
    offset: int = 0

    def __add__(self, other: Form | int) -> Form:
        if isinstance(other, int):
            return Form(self.terms, self.offset + other)
        merged = dict(self.terms)
        for what, times in other.terms:
            merged[what] = merged.get(what, 0) + times
        return Form(tuple(sorted((w, t) for w, t in merged.items() if t)), self.offset + other.offset)

    def __mul__(self, factor: int) -> Form:
        if factor == 0:
            return ZERO
        return Form(tuple((w, t * factor) for w, t in self.terms), self.offset * factor)

    def __sub__(self, other: Form | int) -> Form:
        return self + other * -1

    def __str__(self) -> str:
        out = ""
        for what, times in self.terms:
            size = what if abs(times) == 1 else f"{abs(times)} * {what}"
            out += (f" {'-' if times < 0 else '+'} " if out else "-" if times < 0 else "") + size
        if self.offset or not out:
            out += f" {'-' if self.offset < 0 else '+'} {abs(self.offset)}" if out else str(self.offset)
        return out

    def times(self, what: str) -> int:
        """How often the form has a name in it."""
        return next((t for w, t in self.terms if w == what), 0)

    @property
    def constant(self) -> bool:
        return not self.terms


ZERO = Form()
Index = tuple[Form, ...]


def name(what: str) -> Form:
    return Form(((what, 1),))


def number(value: int) -> Form:
    return Form((), int(value))


def strides(shape: Shape) -> tuple[int, ...]:
    """How far apart the elements of each axis are, in the order of C.

    >>> strides((2, 3, 4))
    (12, 4, 1)
    """
    out: list[int] = []
    step = 1
    for length in reversed(shape):
        out.append(step)
        step *= length
    return tuple(reversed(out))


def flat(index: Index, shape: Shape) -> Form:
    """The place of an element in memory."""
    total = ZERO
    for form, step in zip(index, strides(shape), strict=True):
        total = total + form * step
    return total


def apart(place: Form, shape: Shape, lengths: dict[str, int]) -> Index | None:
    """The index of the element at a place, where the form shows it; `lengths` are those of the counters.

    >>> i, j = name("i"), name("j")
    >>> [str(f) for f in apart(i * 6 + j * 2 + 1, (5, 3, 2), {"i": 5, "j": 3})]
    ['i', 'j', '1']
    """
    out: list[Form] = []
    rest = place
    for step in strides(shape):
        here = Form(tuple((w, t // step) for w, t in rest.terms if t % step == 0), rest.offset // step)
        rest = Form(tuple((w, t) for w, t in rest.terms if t % step), rest.offset % step)
        if any(w not in lengths or t < 0 for w, t in rest.terms):
            return None
        if sum(t * (lengths[w] - 1) for w, t in rest.terms) + rest.offset >= step:
            return None
        out.append(here)
    return tuple(out) if rest == ZERO else None
