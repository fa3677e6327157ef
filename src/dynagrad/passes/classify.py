"""How operations are lowered to native code, from the families of `ir/code.py`.

A node is elementwise (`each`), a view of an array (`view`), a reduction over axes (`fold`), an array with some elements
overwritten or added to (`update`), control flow (`control`, `part`, `stack`), or one call of the runtime library or,
where that has no such function, of Python (`whole`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..ir.code import FAMILIES, code_of
from ..ir.control import COND, EMPTY, LOOPS, PART, POP, PUSH, REPEAT, Graph, Loop
from ..ir.node import Node
from ..ir.ops.places import Pattern, Slice, on_axes
from ..ir.types import Shape
from .index_forms import Form, Index, flat, name, number, strides
from .views import is_view, places_of, through

LARGEST_LOOPED = 1 << 15
"""Matrix products with more multiplications than this call the runtime library; smaller ones are loops."""


def lowering_of(node: Node) -> str:
    """How native code computes a node: one of the words of the module's docstring, or `leaf`."""
    operation = node.operation
    if node.is_variable or node.is_constant:
        return "leaf"
    if operation is PART:
        return "part"
    if operation in LOOPS:
        return "control"
    if operation in (PUSH, POP, EMPTY):
        return "stack"
    if operation.cxx and (operation.array is not None or (not node.shape and not any(a.shape for a in node.arguments))):
        return "each"
    code = code_of(node)
    if not code:
        return "whole"
    family = FAMILIES.get(code[0])
    if family is None:
        return "whole"
    if family.lowering == "fold":
        return "fold" if fold_of(node) is not None else "whole"
    return family.lowering


# -- reductions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fold:
    """A reduction (sum, product, maximum, minimum) over axes of a domain, of the product of the arguments' elements."""

    by: str  # the function of elements.hpp that combines two values
    domain: Shape  # the iteration space: one axis a loop
    kept: tuple[int, ...]  # for each axis of the result, the axis of the domain; -1 for one of length 1
    reads: tuple[tuple[int, ...], ...]  # the same for the axes of each argument

    @property
    def reduced(self) -> tuple[bool, ...]:
        return tuple(axis not in self.kept for axis in range(len(self.domain)))

    @property
    def plain(self) -> bool:
        """Whether there is one argument, and its index is that of the loop."""
        return self.reads == (tuple(range(len(self.domain))),)


def _pick(axes: Sequence[int], index: Index) -> Index:
    return tuple(number(0) if a < 0 else index[a] for a in axes)


def fold_of(node: Node) -> Fold | None:
    """A node as a reduction that is written as loops; None for others."""
    code = code_of(node)
    if not code:
        return None
    if code[0] in FAMILIES and FAMILIES[code[0]].fold:
        return _reduction(node, code)
    if code[0] == "matmul":
        return _matmul(node)
    return _einsum(node, code[1], code[2]) if code[0] == "einsum" else None


def _reduction(node: Node, code: tuple[object, ...]) -> Fold:
    shape = node.arguments[0].shape
    if code[0] == "sum_to":
        skip = len(shape) - node.ndim
        kept = tuple(-1 if n == 1 and shape[k + skip] != 1 else k + skip for k, n in enumerate(node.shape))
    else:
        axes: tuple[int, ...] = code[1]  # type: ignore[assignment]  # what is known of it above is more than its type says
        rest = [k for k in range(len(shape)) if k not in axes]
        kept = tuple(rest) if len(rest) == node.ndim else tuple(-1 if k in axes else k for k in range(len(shape)))
    return Fold(FAMILIES[str(code[0])].fold, shape, kept, (tuple(range(len(shape))),))


def _matmul(node: Node) -> Fold | None:
    a, b = node.arguments
    if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2):
        batch = "".join(chr(ord("A") + k) for k in range(max(a.ndim, b.ndim) - 2))
        left = batch[len(batch) - max(a.ndim - 2, 0) :] + ("ik" if a.ndim > 1 else "k")
        right = batch[len(batch) - max(b.ndim - 2, 0) :] + ("kj" if b.ndim > 1 else "k")
        return _einsum(node, (left, right), batch + "i" * (a.ndim > 1) + "j" * (b.ndim > 1))
    left, right = ("ik" if a.ndim == 2 else "k"), ("kj" if b.ndim == 2 else "k")
    return _einsum(node, (left, right), left[:-1] + right[1:])


def _einsum(node: Node, inputs: tuple[str, ...], output: str) -> Fold | None:
    length: dict[str, int] = {}
    for letters, x in zip(inputs, node.arguments, strict=True):
        if len(set(letters)) < len(letters):
            return None
        for letter, n in zip(letters, x.shape, strict=True):
            length[letter] = n if length.get(letter, 1) == 1 else length[letter]
    if any(letter not in length for letter in output):
        return None
    if len(length) > 2 and math.prod(length.values()) > LARGEST_LOOPED and code_of(node)[0] == "matmul":
        return None
    order = _best_order(node, inputs, output, length)
    at = {letter: k for k, letter in enumerate(order)}
    reads = tuple(
        tuple(-1 if n == 1 and length[c] != 1 else at[c] for c, n in zip(letters, x.shape, strict=True))
        for letters, x in zip(inputs, node.arguments, strict=True)
    )
    return Fold("plus", tuple(length[c] for c in order), tuple(at[c] for c in output), reads)


def _best_order(node: Node, inputs: tuple[str, ...], output: str, length: dict[str, int]) -> str:
    """The order of the loops, one letter each: innermost the one along which most arrays are contiguous."""
    places: list[tuple[str, Form]] = []
    lengths = {c: n for c, n in length.items()}
    for letters, x in zip(inputs, node.arguments, strict=True):
        places.append((letters, _place(x, tuple(name(c) for c in letters), lengths)))
    out = number(0)
    for c, step in zip(output, strides(node.shape), strict=True):
        out = out + name(c) * step
    places.append((output, out))

    def price(letter: str) -> tuple[int, int, int]:
        apart = sum(letter in letters and abs(form.times(letter)) != 1 for letters, form in places)
        return (apart, -min(length[letter], 8), letter not in output)

    inner = min(length, key=price) if length else ""
    rest = [c for c in output if c != inner] + [c for c in length if c not in output and c != inner]
    return "".join(rest) + inner


def _place(x: Node, index: Index, lengths: dict[str, int]) -> Form:
    """The offset of an element in the array that views look at, as far as it is known before memory is planned."""
    while is_view(x):
        index = through(x, index, lambda *_: number(0), lengths, lambda place, shape: tuple(number(0) for _ in shape))
        x = x.arguments[0]
    return flat(index, x.shape)


# -- updates -----------------------------------------------------------------------------------------------------------


def whole_pattern(shape: Shape) -> Pattern:
    """The pattern that selects a whole array."""
    return tuple(Slice(0, n, 1) for n in shape)


@dataclass(frozen=True)
class Piece:
    """A value written to an array at a pattern, with these indices in its holes; `add`: added to what is there."""

    pattern: Pattern
    holes: tuple[Node, ...]
    value: Node
    add: bool


@dataclass(frozen=True)
class Update:
    """An array made by writing: over a copy of `base`, over zeros, or, with neither, over all of its elements."""

    base: Node | None
    zeros: bool
    pieces: tuple[Piece, ...]


def update_of(node: Node) -> Update:
    """A node whose lowering is `update`, as what it writes and where."""
    code = code_of(node)
    kind = code[0]
    read = places_of(node)
    if read is not None:
        pattern, holes = read
        if kind == "place":
            return Update(None, True, (Piece(pattern, holes, node.arguments[0], any(h.ndim for h in holes)),))
        base, value = node.arguments[:2]
        return Update(base, False, (Piece(pattern, holes, value, kind == "add_at"),))
    if kind == "on_diagonal":
        return Update(None, True, ())
    axis: int = code[1]
    pieces: list[Piece] = []
    start = 0
    for x in node.arguments:
        at = list(whole_pattern(node.shape))
        if kind == "stack":
            at[axis] = len(pieces)
        else:
            at[axis] = Slice(start, start + x.shape[axis], 1)
            start += x.shape[axis]
        pieces.append(Piece(tuple(at), (), x, False))
    return Update(None, False, tuple(pieces))


def holes_of(node: Node) -> list[tuple[Node, int]]:
    """The nodes that a node indexes an array with, and the lengths of the axes they index."""
    read = places_of(node)
    if read is None:
        return []
    pattern, indices = read
    shape = node.shape if code_of(node)[0] == "place" else node.arguments[0].shape
    axes = zip(on_axes(pattern, indices), shape, strict=True)
    return [(hole, length) for (_, hole), length in axes if hole is not None]


def overwritten(node: Node) -> Node | None:
    """The array that this one overwrites where it is computed in place: of an update, a loop's state, a branch."""
    lowering = lowering_of(node)
    if lowering == "update":
        return update_of(node).base
    if lowering != "part":
        return None
    made, index = node.arguments[0], node.attribute
    if isinstance(made.attribute, Loop):
        state: Node = made.arguments[index + (made.operation is REPEAT)]
        return state
    if made.operation is COND:
        then: Graph = made.attribute.then
        start = root(then.outputs[index])
        outside = [a for v, a in zip(then.inputs, made.arguments[1:], strict=True) if v is start]
        return outside[0] if outside and start.type is node.type else None
    return None


def root(node: Node) -> Node:
    """The array that a chain of arrays computed in place starts from."""
    while (base := overwritten(node)) is not None:
        node = base
    return node
