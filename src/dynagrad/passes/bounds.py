"""Bounds of a graph where it stands: of its whole numbers, and of how many operations it runs.

Whole numbers are affine forms of the counters of the loops around them, whose bounds are known. From these follow which
indices need no check, and which loops are so short that they need not look whether to stop. A graph that stands in two
places has bounds in each. Nothing is changed here, and no C++ is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ..ir.control import CALL, COND, LOOPS, POP, PUSH, REPEAT, WHILE, Graph, Loop
from ..ir.node import Node, order
from ..ir.ops import integers
from ..ir.types import Type, integer
from .classify import fold_of, lowering_of, update_of
from .linear_forms import RULES, Bounds, Form, name, number


class GraphBounds:
    """Bounds of a graph; `forms` has its inputs that are known, in the counters of `bounds`."""

    def __init__(self, graph: Graph, bounds: Bounds | None = None, forms: Mapping[Node, Form] | None = None) -> None:
        self.graph = graph
        self._bounds = Bounds() if bounds is None else bounds
        self._forms: dict[Node, Form | None] = dict(forms or {})
        self._inside: dict[Node, tuple[GraphBounds, ...]] = {}
        self._work: tuple[int, bool] | None = None

    # -- whole numbers -----------------------------------------------------------------------------------------------

    def form(self, node: Node) -> Form | None:
        """A whole number as an affine form; None where it is none."""
        todo = [node]
        while todo:
            at = todo[-1]
            missing = [a for a in at.arguments if a not in self._forms] if _is_affine(at) else []
            if at not in self._forms and missing:
                todo += missing
                continue
            todo.pop()
            if at not in self._forms:
                self._forms[at] = self._made(at)
        return self._forms[node]

    def _made(self, node: Node) -> Form | None:
        if node.is_constant:
            return number(node.attribute) if node.type is integer else None
        if not _is_affine(node):
            return None
        parts = [self._forms[a] for a in node.arguments]
        found = self._bounds.made(node.operation, parts)
        if found is None and node.operation is integers.floor_divide:  # no affine form, but it has bounds
            whole, by = parts
            most = None if whole is None else self._bounds.range(whole)
            if most is not None and most[0] >= 0 and by is not None and by.constant and by.offset > 0:
                return name(self._bounds.fresh(number(most[1] // by.offset + 1)))
        return found

    def within(self, node: Node, length: int) -> bool:
        """Whether a whole number is proved to be an index of an axis of this length, without counting from the end."""
        form = self.form(node)
        return form is not None and self._bounds.within(form, length)

    def most_rounds(self, loop: Node) -> int | None:
        """How often a counted loop runs at most; None where nothing is known."""
        form = self.form(loop.arguments[0])
        most = None if form is None else self._bounds.range(form)
        return None if most is None else max(most[1], 0)

    def inside(self, node: Node) -> tuple[GraphBounds, ...]:
        """The bounds of the graphs that a node of control flow runs: the branches, or the body and the condition."""
        if node not in self._inside:
            self._inside[node] = self._of_subgraphs(node)
        return self._inside[node]

    def _of_subgraphs(self, node: Node) -> tuple[GraphBounds, ...]:
        if node.operation is COND:
            return tuple(
                GraphBounds(g, self._bounds, self._captured(zip(g.inputs, node.arguments[1:], strict=True)))
                for g in (node.attribute.then, node.attribute.otherwise)
            )
        loop: Loop = node.attribute
        counted = node.operation is REPEAT
        outside = node.arguments[counted + loop.states :]
        forms = self._captured(zip(loop.body.inputs[counted + loop.states :], outside, strict=True))
        if counted:
            forms[loop.body.inputs[0]] = name(self._bounds.fresh(self.form(node.arguments[0])))
        body = GraphBounds(loop.body, self._bounds, forms)
        if loop.condition is None:
            return (body,)
        test = self._captured(zip(loop.condition.inputs[loop.states :], outside, strict=True))
        return body, GraphBounds(loop.condition, self._bounds, test)

    def _captured(self, pairs: Iterable[tuple[Node, Node]]) -> dict[Node, Form]:
        return {v: form for v, a in pairs if a.type is integer and (form := self.form(a)) is not None}

    # -- work --------------------------------------------------------------------------------------------------------

    @property
    def work(self) -> int:
        """About how many operations on numbers it runs; a loop without bounds counts for one round, a call for none."""
        return self._estimate()[0]

    @property
    def most_work(self) -> int | None:
        """About how many operations on numbers it runs at most; None where that is not known."""
        work, bounded = self._estimate()
        return work if bounded else None

    def _estimate(self) -> tuple[int, bool]:
        if self._work is None:
            found = [self._work_of(node) for node in order(self.graph.outputs)]
            self._work = sum(work for work, _ in found), all(bounded for _, bounded in found)
        return self._work

    def _work_of(self, node: Node) -> tuple[int, bool]:
        """The work of a node, and whether it is bounded."""
        if node.operation not in LOOPS:
            return _operations(node), True
        if node.operation is CALL:
            return 0, False
        found = [inside._estimate() for inside in self.inside(node)]
        rounds = 1 if node.operation is COND else None if node.operation is WHILE else self.most_rounds(node)
        most = max(work for work, _ in found)
        return most if rounds is None else rounds * most, rounds is not None and all(bounded for _, bounded in found)


def _is_affine(node: Node) -> bool:
    return node.operation in RULES or node.operation is integers.floor_divide


def _operations(node: Node) -> int:
    """About how many operations on numbers a node is."""
    lowering = lowering_of(node)
    if lowering in ("each", "view"):
        return node.type.size
    if lowering == "fold":
        fold = fold_of(node)
        assert fold is not None
        return math.prod(fold.domain)
    if lowering == "update":
        update = update_of(node)
        return sum(p.value.type.size for p in update.pieces) + (node.type.size if update.zeros else 0)
    if lowering == "stack":
        items: list[Type] = [a.type for a in node.arguments[1:]] if node.operation is PUSH else []
        items += node.attribute if node.operation is POP else []
        return sum(t.size for t in items)
    if lowering == "whole":  # as products of matrices: each element meets all others on one axis
        shapes = [a.shape for a in node.arguments]
        longest = max((n for shape in shapes for n in shape), default=1)
        return node.type.size + longest * sum(map(math.prod, shapes))
    return 0
