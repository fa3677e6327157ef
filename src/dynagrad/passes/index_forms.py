"""Array indices as affine forms of loop counters: linearised to offsets in memory, and delinearised. No loops here."""

from __future__ import annotations

from ..ir.types import Shape
from .linear_forms import ZERO, Form, name, number

Index = tuple[Form, ...]


def strides(shape: Shape) -> tuple[int, ...]:
    """The stride of each axis, counted in elements, in row-major order.

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
    """The offset of an element, counted in elements, in row-major order."""
    total = ZERO
    for form, step in zip(index, strides(shape), strict=True):
        total = total + form * step
    return total


def delinearise(place: Form, shape: Shape, lengths: dict[str, int]) -> Index | None:
    """The index of the element at an offset, where the form shows it; counters run below their `lengths`.

    Delinearisation, as in Grosser, Ramanujam, Pouchet, Sadayappan and Pop 2015, for constant shapes.

    >>> i, j = name("i"), name("j")
    >>> [str(f) for f in delinearise(i * 6 + j * 2 + 1, (5, 3, 2), {"i": 5, "j": 3})]
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


__all__ = ["ZERO", "Form", "Index", "delinearise", "flat", "name", "number", "strides"]
