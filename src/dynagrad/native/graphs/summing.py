"""Sums of arrays that are zero but at some places: what stands there is added to the other array, in place.

The adjoint of reading `x[i]` is an array of zeros with one number in it, and the adjoints of many of these are summed.
`y + add_at(b, z, i)` becomes `add_at(y + b, z, i)`, and where `b` is zeros, `add_at(y, z, i)`, which touches one
element. Sums of arrays that were moved about in the same way are moved once.
A sum that is zero may get the other sign by that.
"""

from __future__ import annotations

import numpy as np

from ...graph import operations as ops
from ...graph.control import Graph
from ...graph.node import Node, intern, order
from ...graph.places import Pattern, adding
from .views import code_of, places_of

DEEP = 100
"""So many sums within each other are made, and no more."""


def is_zeros(node: Node) -> bool:
    while code_of(node)[:1] in (("broadcast",), ("reshape",)):
        node = node.arguments[0]
    return node.is_constant and node.type.kind == "real" and not np.any(node.attribute)


def sum_in_place(graph: Graph) -> Graph:
    """The graph with sums of mostly zeros made where they are."""
    series = order(graph.outputs)
    if not any(n.shape and n.operation is ops.add for n in series):
        return graph
    uses: dict[Node, int] = dict.fromkeys(series, 0)
    for node in series:
        for a in node.arguments:
            uses[a] += 1
    for o in graph.outputs:
        uses[o] += 1
    sums = _Sums()
    new: dict[Node, Node] = {}
    for node in series:
        arguments = tuple(new[a] for a in node.arguments)
        if node.shape and node.operation is ops.add and all(a.shape == node.shape for a in arguments):
            made = sums.add(arguments[0], arguments[1])
        elif all(a is b for a, b in zip(arguments, node.arguments, strict=True)):
            made = node
        else:
            made = intern(node.operation, arguments, node.attribute, node.type)
        new[node] = made
        sums.uses[made] = sums.uses.get(made, 0) + uses[node]
    return Graph(graph.inputs, tuple(new[o] for o in graph.outputs))


class _Sums:
    def __init__(self) -> None:
        self.uses: dict[Node, int] = {}  # of what stays; what a sum is made of on the way is used once
        self.depth = 0

    def once(self, node: Node) -> bool:
        return self.uses.get(node, 1) == 1

    def add(self, a: Node, b: Node) -> Node:
        if self.depth > DEEP:
            return intern(ops.add, (a, b), None, a.type)
        self.depth += 1
        try:
            return self._add(a, b)
        finally:
            self.depth -= 1

    def _add(self, a: Node, b: Node) -> Node:
        if is_zeros(a):
            return b
        if is_zeros(b):
            return a
        if a.operation is b.operation and code_of(a)[:1] in _MOVES and self.once(a) and self.once(b):
            inner = (a.arguments[0], b.arguments[0])
            if inner[0].shape == inner[1].shape:
                return intern(a.operation, (self.add(*inner),), a.attribute, a.type)
        for x, y in ((a, b), (b, a)):
            taken = _apart(y) if self.once(y) else None
            if taken is None:
                continue
            base, value, pattern, holes = taken
            rest = x if base is None else self.add(x, base)
            return intern(adding(pattern, len(holes)), (rest, value, *holes), None, x.type)
        return intern(ops.add, (a, b), None, a.type)


_MOVES = (("transpose",), ("reshape",), ("flip",), ("roll",), ("place",))
"""Operations that only move elements (and add zeros): the sum of two is one of the sum."""


def _apart(node: Node) -> tuple[Node | None, Node, Pattern, tuple[Node, ...]] | None:
    """Of an array with something at places: what it is over (None for zeros), that, and the places."""
    code = code_of(node)
    read = places_of(node)
    if not code or read is None:
        return None
    pattern, holes = read
    if code[0] == "place":
        return None, node.arguments[0], pattern, holes
    if code[0] == "add_at":
        base = node.arguments[0]
        return (None if is_zeros(base) else base), node.arguments[1], pattern, holes
    if code[0] == "set_at" and is_zeros(node.arguments[0]) and not any(h.shape for h in holes):
        return None, node.arguments[1], pattern, holes
    return None
