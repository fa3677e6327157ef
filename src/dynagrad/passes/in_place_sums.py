"""Accumulation in place: sums of arrays that are zero but at some places become updates of the other array.

The adjoint of reading `x[i]` is an array of zeros with one number in it (a one-hot array), and many such adjoints are
summed. `y + add_at(b, z, i)` becomes `add_at(y + b, z, i)`, and where `b` is zeros, `add_at(y, z, i)`, which touches
one element. Two summands under the same transpose (or another operation that only moves elements) are summed first and
moved once. Where a loop accumulates from zeros and its result is added to an array, the loop starts from that array.
A sum that is zero may change its sign by this.
"""

from __future__ import annotations

import numpy as np

from ..ir.code import code_of, family_of
from ..ir.control import PART, REPEAT, WHILE, Graph
from ..ir.node import Node, intern, order, use_counts, with_arguments
from ..ir.ops import scalars as ops
from ..ir.ops.places import Pattern, adding
from .views import places_of

DEEP = 100
"""The deepest nesting of sums that are rewritten; it bounds the recursion."""


def is_zeros(node: Node) -> bool:
    """Whether a node is zero, or an array that is zero everywhere."""
    while code_of(node)[:1] in (("broadcast",), ("reshape",)):
        node = node.arguments[0]
    return node.is_constant and node.type.kind == "real" and not np.any(node.attribute)


def sum_in_place(graph: Graph) -> Graph:
    """The graph with sums of mostly zero arrays accumulated in place."""
    series = order(graph.outputs)
    if not any(n.shape and n.operation is ops.add for n in series):
        return graph
    graph = _fold_into_start(graph)
    uses = use_counts(graph.outputs)
    sums = _Sums()
    new: dict[Node, Node] = {}
    for node in order(graph.outputs):
        arguments = [new[a] for a in node.arguments]
        if node.shape and node.operation is ops.add and all(a.shape == node.shape for a in arguments):
            made = sums.add(arguments[0], arguments[1])
        else:
            made = with_arguments(node, arguments)
        new[node] = made
        sums.uses[made] = sums.uses.get(made, 0) + uses[node]
    return Graph(graph.inputs, tuple(new[o] for o in graph.outputs))


class _Sums:
    """Builds sums of two arrays; looks through operands that nothing else uses."""

    def __init__(self) -> None:
        self.uses: dict[Node, int] = {}  # of nodes of the new graph; intermediate sums are not in it: used once
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
        if a.operation is b.operation and _moves(a) and self.once(a) and self.once(b):
            inner = (a.arguments[0], b.arguments[0])
            if inner[0].shape == inner[1].shape:
                return intern(a.operation, (self.add(*inner),), a.attribute, a.type)
        for x, y in ((a, b), (b, a)):
            scattered = _scattered(y) if self.once(y) else None
            if scattered is None:
                continue
            base, value, pattern, holes = scattered
            rest = x if base is None else self.add(x, base)
            return intern(adding(pattern, len(holes)), (rest, value, *holes), None, x.type)
        return intern(ops.add, (a, b), None, a.type)


def _moves(node: Node) -> bool:
    family = family_of(node.operation)
    return family is not None and family.moves


def _scattered(node: Node) -> tuple[Node | None, Node, Pattern, tuple[Node, ...]] | None:
    """An array as an update: the array under it (None for zeros), the value that is added, and where."""
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


# -- loops that accumulate ---------------------------------------------------------------------------------------------


def _fold_into_start(graph: Graph) -> Graph:
    """The graph in which `y + loop(zeros)` is `loop(y)`, for loops that only add to their state."""
    uses = use_counts(graph.outputs)
    replaced: dict[Node, Node] = {}  # from a sum to the result of the loop that takes its place
    begin: dict[Node, dict[int, Node]] = {}  # for each loop, its new arguments by position
    for node in order(graph.outputs):
        if not node.shape or node.operation is not ops.add or node.arguments[0].shape != node.arguments[1].shape:
            continue
        for other, result in (node.arguments, node.arguments[::-1]):
            loop = result.arguments[0] if result.operation is PART else None
            if loop is None or loop.operation not in (REPEAT, WHILE) or uses[result] != 1:
                continue
            place = result.attribute + (loop.operation is REPEAT)
            if (
                is_zeros(loop.arguments[place])
                and adds_to(loop, result.attribute)
                and not _depends_on(other, loop, begin)
            ):
                replaced[node] = result
                begin.setdefault(loop, {})[place] = other
                break
    if not replaced:
        return graph
    new: dict[Node, Node] = {}
    todo = [*reversed(graph.outputs)]
    while todo:
        node = todo[-1]
        needs = [replaced[node]] if node in replaced else _arguments(node, begin)
        missing = [a for a in needs if a not in new]
        if node not in new and missing:
            todo += missing
            continue
        todo.pop()
        if node in new:
            continue
        arguments = [new[a] for a in needs]
        new[node] = arguments[0] if node in replaced else with_arguments(node, arguments)
    return Graph(graph.inputs, tuple(new[o] for o in graph.outputs))


def _arguments(node: Node, begin: dict[Node, dict[int, Node]]) -> list[Node]:
    changed = begin.get(node, {})
    return [changed.get(i, a) for i, a in enumerate(node.arguments)]


def _depends_on(node: Node, loop: Node, begin: dict[Node, dict[int, Node]]) -> bool:
    """Whether a node is computed from a loop, once loops have the arguments in `begin`."""
    todo, seen = [node], {node}
    while todo:
        at = todo.pop()
        if at is loop:
            return True
        new = [a for a in _arguments(at, begin) if a not in seen]
        seen.update(new)
        todo += new
    return False


def adds_to(loop: Node, index: int) -> bool:
    """Whether a loop uses a state only to add to it, so that the state may start from any array."""
    body: Graph = loop.attribute.body
    condition: Graph | None = loop.attribute.condition
    if condition is not None and condition.inputs[index] in set(order(condition.outputs)):
        return False
    state = body.inputs[index + (loop.operation is REPEAT)]
    uses = use_counts(body.outputs)
    made = {state}  # what is computed from the state
    for node in order(body.outputs):
        if any(a in made for a in node.arguments):
            made.add(node)
    at = body.outputs[index]
    while at is not state:
        near = [a for a in at.arguments if a in made]
        if uses[at] != 1 or len(near) != 1:
            return False
        code = at.operation.code
        first = at.arguments[0]
        if at.operation is PART and first.operation in (REPEAT, WHILE):
            place = at.attribute + (first.operation is REPEAT)
            begun = [i for i, a in enumerate(first.arguments) if a in made]
            if begun != [place] or not adds_to(first, at.attribute):
                return False
            at = first.arguments[place]
        elif at.operation is ops.add and near[0].shape == at.shape:
            [at] = near
        elif (at.operation is ops.subtract or (isinstance(code, tuple) and code[0] == "add_at")) and near[0] is first:
            if first.shape != at.shape:
                return False
            at = first
        else:
            return False
    return uses[state] == 1
