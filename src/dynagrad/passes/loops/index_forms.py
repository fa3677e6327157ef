"""Indices as linear forms of the counters of loops: where an element stands in memory. No loops are written here."""

from __future__ import annotations

from ...ir.types import Shape
from .linear_forms import ZERO, Form, name, number

Index = tuple[Form, ...]


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


__all__ = ["ZERO", "Form", "Index", "apart", "flat", "name", "number", "strides"]
