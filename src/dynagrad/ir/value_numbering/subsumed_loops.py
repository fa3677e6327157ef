"""Removes loops that another loop subsumes: one that runs as often and computes all of their states, and more.

Derivatives make loops that compute the primal values again, together with tangents or with residuals. Two loops of a
graph are compared: they must run equally often, and each state of the first must correspond to a state of the second
with the same initial value and the same update under this correspondence. Then the second loop serves for both.

States that are equal to each other within one loop are found in `congruent_states.py`.
"""

from __future__ import annotations

from ..control import PART, REPEAT, WHILE, Graph, Loop, part
from ..node import Node, order, substitute
from ..operation import Trait

Pairs = dict[Node, Node]


def subsumed(graph: Graph) -> Graph:
    """The graph without subsumed loops."""
    loops = [n for n in order(graph.outputs) if n.operation in (REPEAT, WHILE)]
    if len(loops) < 2:
        return graph
    outputs = graph.outputs
    gone: set[Node] = set()
    for small in loops:
        for large in loops:
            if large is small or large in gone or small in gone or small.operation is not large.operation:
                continue
            places = _matching(small, large)
            if places is None or _needs(large, small):
                continue
            gone.add(small)
            by = {part(small, i): part(large, j) for i, j in places.items()}
            new = substitute(outputs, by)
            return subsumed(Graph(graph.inputs, new))
    return graph


def _needs(node: Node, other: Node) -> bool:
    return other in set(order([node]))


def _matching(small: Node, large: Node) -> dict[int, int] | None:
    """For each state of one loop a state of the other that is equal in every round; None if a state has none."""
    a, b = small.attribute, large.attribute
    if a is b or a.states > b.states or any(v.type.kind == "stack" for v in a.body.inputs):
        return None
    if small.operation is REPEAT and small.arguments[0] is not large.arguments[0]:
        return None
    try:
        return _Match(small, large, a, b).run()
    except RecursionError:  # an expression too deep to be compared
        return None


class _Match:
    """Builds a correspondence between the inputs of two bodies under which states have equal updates."""

    def __init__(self, small: Node, large: Node, a: Loop, b: Loop) -> None:
        self.a, self.b = a, b
        first = 1 if small.operation is REPEAT else 0
        self.begin_a, self.begin_b = small.arguments[first:], large.arguments[first:]
        self.own_a = {v: i for i, v in enumerate(a.body.inputs[first:])}
        self.own_b = {v: i for i, v in enumerate(b.body.inputs[first:])}
        self.pairs: Pairs = dict(zip(a.body.inputs[:first], b.body.inputs[:first], strict=True))
        self.first = first
        self.differ: set[tuple[Node, Node]] = set()  # pairs that were found to differ

    def run(self) -> dict[int, int] | None:
        if self.a.condition is not None:
            assert self.b.condition is not None
            found: Pairs = {}
            own_a = {v: i for i, v in enumerate(self.a.condition.inputs)}
            own_b = {v: i for i, v in enumerate(self.b.condition.inputs)}
            if not self.same(self.a.condition.outputs[0], self.b.condition.outputs[0], found, own_a, own_b):
                return None
            for x, y in found.items():
                if x in own_a:
                    self.pairs[self.a.body.inputs[own_a[x]]] = self.b.body.inputs[own_b[y]]
        if not self.close():
            return None
        for i in range(self.a.states):
            v = self.a.body.inputs[self.first + i]
            if v in self.pairs:
                continue
            for j in range(self.b.states):
                if self.begin_b[j] is self.begin_a[i] and self.b.body.outputs[j].type is v.type:
                    before = dict(self.pairs)
                    self.pairs[v] = self.b.body.inputs[self.first + j]
                    if self.close():
                        break
                    self.pairs = before
            else:
                return None
        return {i: self.own_b[self.pairs[self.a.body.inputs[self.first + i]]] for i in range(self.a.states)}

    def close(self) -> bool:
        """Extends the correspondence to all states that corresponding ones depend on; False where that fails."""
        done: set[Node] = set()
        while True:
            new = [v for v in self.pairs if v in self.own_a and v not in done and self.own_a[v] < self.a.states]
            if not new:
                return True
            for v in new:
                done.add(v)
                i, j = self.own_a[v], self.own_b[self.pairs[v]]
                if j >= self.b.states or self.begin_a[i] is not self.begin_b[j]:
                    return False
                found = dict(self.pairs)
                self.differ.clear()
                if not self.same(self.a.body.outputs[i], self.b.body.outputs[j], found, self.own_a, self.own_b):
                    return False
                self.pairs.update({x: y for x, y in found.items() if x in self.own_a})

    def same(self, x: Node, y: Node, pairs: Pairs, own_a: dict[Node, int], own_b: dict[Node, int]) -> bool:
        """Whether two values are equal under the correspondence `pairs`, which is extended on the way."""
        if x in pairs:
            return pairs[x] is y
        if x.is_variable or y.is_variable:
            if x not in own_a or y not in own_b or x.type is not y.type:
                return False
            i, j = own_a[x], own_b[y]
            if (i < self.a.states) != (j < self.b.states) or self.begin_a[i] is not self.begin_b[j]:
                return False
            pairs[x] = y
            return True
        if x is y and not x.arguments:
            return True
        if x.operation is not y.operation or x.type is not y.type or not _same_attribute(x, y):
            return False
        if len(x.arguments) != len(y.arguments):
            return False
        if (x, y) in self.differ:
            return False
        if self._same_arguments(x, y, pairs, own_a, own_b):
            pairs[x] = y
            return True
        self.differ.add((x, y))
        return False

    def _same_arguments(self, x: Node, y: Node, pairs: Pairs, own_a: dict[Node, int], own_b: dict[Node, int]) -> bool:
        before = dict(pairs) if Trait.COMMUTES in x.operation.traits else None
        if all(self.same(p, q, pairs, own_a, own_b) for p, q in zip(x.arguments, y.arguments, strict=True)):
            return True
        if before is None:
            return False
        pairs.clear()
        pairs.update(before)
        p, q = y.arguments
        return self.same(x.arguments[0], q, pairs, own_a, own_b) and self.same(x.arguments[1], p, pairs, own_a, own_b)


def _same_attribute(x: Node, y: Node) -> bool:
    if x.is_constant:
        return x is y
    return x.attribute is y.attribute or (x.operation is PART and x.attribute == y.attribute)
