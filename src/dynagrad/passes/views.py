"""Index maps of views: which element of the argument an element of a `reshape`, `transpose`, `item`, ... is.

`through` maps an index in a view to the index in its argument, both as affine forms of loop counters. Where that
depends on a number that is known only at run time, `ask(node, index, length)` gives it as a form that counts from 0;
`node` is a whole number, or an array of them that is read at `index`. No C++ is written here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ..ir.code import FAMILIES, code_of, pattern_at
from ..ir.node import Node, constant
from ..ir.operation import Operation
from ..ir.ops.places import NEW, Pattern, Slice, entries
from ..ir.types import Shape
from .index_forms import ZERO, Form, Index, delinearise, flat, number

Ask = Callable[[Node, Index, int], Form]
Lengths = dict[str, int]


@functools.lru_cache(maxsize=4096)
def _index(operation: Operation, shape: Shape) -> tuple[Pattern, tuple[Node, ...]] | None:
    """The pattern of a constant Python index, and the constants that fill its holes; None where it has none."""
    found = pattern_at(operation, shape)
    return None if found is None else (found[0], tuple(map(constant, found[1])))


def places_of(node: Node) -> tuple[Pattern, tuple[Node, ...]] | None:
    """The pattern that a node reads or writes an array at, and the indices in its holes; None for other nodes."""
    code = node.operation.code
    if not isinstance(code, tuple) or code[0] not in ("item", "getitem", "place", "set_at", "add_at"):
        return None
    if code[0] in ("getitem", "place"):
        return _index(node.operation, node.arguments[0].shape)
    return code[1], node.arguments[1 if code[0] == "item" else 2 :]


def is_view(node: Node) -> bool:
    """Whether the elements of a node are those of its argument, elsewhere."""
    code = code_of(node)
    return bool(code) and code[0] in FAMILIES and FAMILIES[code[0]].lowering == "view"


def broadcast(index: Index, shape: Shape) -> Index:
    """The index in an array of a shape, from an index in what it was broadcast to."""
    skip = len(index) - len(shape)
    return tuple(ZERO if n == 1 else form for form, n in zip(index[skip:], shape, strict=True))


def at_pattern(pattern: Pattern, holes: Sequence[Node], shape: Shape, index: Index, ask: Ask) -> Index:
    """The index in an array of a shape, from an index in what a pattern selects of it."""
    arrays = [h for h in holes if h.ndim]
    if arrays:
        common = np.broadcast_shapes(*(h.shape for h in arrays))
        advanced = [k for k, e in enumerate(pattern) if not isinstance(e, Slice) and e != NEW]
        together = advanced[-1] - advanced[0] + 1 == len(advanced)
        start = advanced[0] if together else 0  # before the first of them each entry makes one axis
        inner = index[start : start + len(common)]
        index = index[:start] + index[start + len(common) :]
    left = iter(index)
    axes = iter(shape)
    out: list[Form] = []
    for entry, hole in entries(pattern, holes):
        if isinstance(entry, Slice):
            next(axes)
            out.append(next(left) * entry.step + entry.start)
        elif entry == NEW:
            next(left)
        elif hole is None:
            next(axes)
            out.append(number(entry))
        else:
            length = next(axes)
            out.append(ask(hole, broadcast(inner, hole.shape) if hole.ndim else (), length))
    return tuple(out)


def through(node: Node, index: Index, ask: Ask, lengths: Lengths, split: Callable[[Form, Shape], Index]) -> Index:
    """The index in a view's argument; `split` delinearises an offset at run time, where its form does not show how."""
    code = code_of(node)
    base = node.arguments[0].shape
    kind = code[0]
    if kind == "broadcast":
        return broadcast(index, base)
    if kind == "transpose":
        out = [ZERO] * len(base)
        for form, axis in zip(index, code[1], strict=True):
            out[axis] = form
        return tuple(out)
    if kind == "flip":
        axis = code[1]
        return tuple(number(base[k] - 1) - f if k == axis else f for k, f in enumerate(index))
    if kind == "windows":
        out = list(index[: len(base)])
        for axis, form in zip(code[1], index[len(base) :], strict=True):
            out[axis] = out[axis] + form
        return tuple(out)
    if kind == "diagonal":
        offset = code[1]
        return (*index[:-1], index[-1] + max(-offset, 0), index[-1] + max(offset, 0))
    if kind == "reshape":
        mine = [k for k, n in enumerate(node.shape) if n != 1]
        theirs = [k for k, n in enumerate(base) if n != 1]
        if [node.shape[k] for k in mine] == [base[k] for k in theirs]:  # axes of length one came or went
            out = [ZERO] * len(base)
            for a, b in zip(mine, theirs, strict=True):
                out[b] = index[a]
            return tuple(out)
        place = flat(index, node.shape)
        return delinearise(place, base, lengths) or split(place, base)
    read = places_of(node)
    assert read is not None, f"{node.operation.name} has no pattern"
    return at_pattern(*read, base, index, ask)
