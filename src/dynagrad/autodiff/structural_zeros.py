"""Active elements of an adjoint: all but its structural zeros, which must stay zero under infinite partial derivatives.

The adjoint of the logarithms in `np.log(x)[1]` is a number among zeros, and in `np.where(x > 0, np.log(x), 0)` it is
zero where log was not selected. These structural zeros times an infinite partial derivative would be NaN. So a rule
whose partial derivatives may be infinite asks here which elements are active, and gives zero for the others.

Which values have an adjoint at all is another question, which edges of the graph answer: `derive.connected` says what
depends on what is asked for, and `control_flow.py` which states of a loop pass derivatives on.

An adjoint is a graph, whose operations tell: those that move elements, that add to elements of zeros, that select. From
them weights are computed, zero for structural zeros and positive for active elements: an array where that is known now,
and a graph otherwise. All elements of results of loops and calls are active.

On a tape an adjoint is an array of numbers, which does not tell how it was made; there `eager/masks.py` propagates
masks from cell to cell in the sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.code import family_of
from ..ir.control import COND, PART, Branches
from ..ir.node import Node, constant, intern, substitute
from ..ir.operation import Operation
from ..ir.ops import scalars as ops
from ..ir.ops.arrays import broadcast_to
from ..ir.types import Shape

Weight = Any
"""An array or a number; a node; None where all elements are active."""

_ZERO = constant(0.0)


class ActiveElements:
    """The active elements of the adjoints of one sweep, memoised, since sums of increments share their summands."""

    __slots__ = ("_weights",)

    def __init__(self) -> None:
        self._weights: dict[Node, Weight] = {}

    def __call__(self, delta: Node) -> Node | None:
        """A mask of the active elements of an adjoint; None where all are.

        >>> from dynagrad.ir.node import fresh
        >>> from dynagrad.ir.ops.places import at_add
        >>> from dynagrad.ir.types import arrays, real
        >>> zeros = broadcast_to((3,))(_ZERO)
        >>> ActiveElements()(at_add(zeros, 1, fresh(real))).attribute.tolist()
        [False, True, False]
        >>> ActiveElements()(fresh(arrays(real, (3,)))) is None
        True
        """
        weight = self.weight(delta)
        if weight is None:
            return None
        if isinstance(weight, Node):
            return ops.greater(weight, 0.0)  # type: ignore[no-any-return]  # operations and visitors return anything
        known = np.asarray(weight) > 0
        return None if known.all() else constant(known if known.shape else bool(known))

    def none(self, delta: Node) -> bool:
        """Whether it is known that no element is active."""
        weight = self.weight(delta)
        return weight is not None and not isinstance(weight, Node) and not np.any(weight)

    def weight(self, delta: Node) -> Weight:
        """The weights of a node, computed after those of its arguments, without recursion."""
        weights = self._weights
        todo = [delta]
        while todo:
            node = todo[-1]
            if node in weights:
                todo.pop()
                continue
            if node.operation is PART and node.arguments[0].operation is COND:
                weights[node] = self._of_branches(node)
                continue
            rule, looks = _rule(node)
            missing = [node.arguments[i] for i in looks if node.arguments[i] not in weights]
            if missing:
                todo.extend(missing)
                continue
            weights[node] = None if rule is None else rule(node, [weights[node.arguments[i]] for i in looks])
            todo.pop()
        return weights[delta]

    def _of_branches(self, node: Node) -> Weight:
        """The weight of a result of a `cond` node: of the results of both branches, in terms of captured values."""
        branches: Branches = node.arguments[0].attribute
        condition, *outside = node.arguments[0].arguments
        found = []
        for graph in (branches.then, branches.otherwise):
            inner = ActiveElements()
            inner._weights = {v: self.weight(a) for v, a in zip(graph.inputs, outside, strict=True)}
            weight = inner.weight(graph.outputs[node.attribute])
            if isinstance(weight, Node):
                [weight] = substitute([weight], dict(zip(graph.inputs, outside, strict=True)))
            found.append(weight)
        if all(w is None for w in found):
            return None
        return ops.where(condition, *(_full(w, node.shape) for w in found))


Rule = Callable[[Node, list[Weight]], Weight]


def _rule(node: Node) -> tuple[Rule | None, Sequence[int]]:
    """The rule for a node, and which of its arguments it needs the weights of."""
    if node.is_constant and node.type.kind == "real" and not np.any(node.attribute):
        return (lambda node, weights: node.attribute), ()
    code = node.operation.code
    if isinstance(code, tuple) and code:
        found = _CODES.get(code[0])
        if found is None:
            return None, ()
        family = family_of(node.operation)
        if family is not None and family.joins:
            return found, range(len(node.arguments))
        return found, range(2 if code[0] in ("add_at", "set_at") else 1)
    return _ELEMENTS.get(node.operation, (None, ()))


def _full(weight: Weight, shape: Shape) -> Weight:
    return (np.ones(shape) if shape else 1.0) if weight is None else weight


def _applied(node: Node, weights: Sequence[Weight]) -> Weight:
    """An operation that moves elements, applied to weights; its other arguments are indices."""
    others = node.arguments[len(weights) :]
    if any(isinstance(w, Node) for w in weights) or not all(a.is_constant for a in others):
        nodes = [w if isinstance(w, Node) else constant(np.array(w) if np.ndim(w) else float(w)) for w in weights]
        return intern(node.operation, (*nodes, *others), node.attribute, node.type)
    return node.operation.value(*weights, *(a.attribute for a in others))


def _moved(node: Node, weights: list[Weight]) -> Weight:
    """The rule of operations all of whose elements come from the argument."""
    return None if weights[0] is None else _applied(node, weights)


def _placed(node: Node, weights: list[Weight]) -> Weight:
    """The rule of operations that add zeros."""
    return _applied(node, [_full(weights[0], node.arguments[0].shape)])


def _added(node: Node, weights: list[Weight]) -> Weight:
    """The rule of `add_at`."""
    base, piece = weights
    return None if base is None else _applied(node, [base, _full(piece, node.arguments[1].shape)])


def _written(node: Node, weights: list[Weight]) -> Weight:
    """The rule of `set_at`."""
    if all(w is None for w in weights):
        return None
    return _applied(node, [_full(w, a.shape) for w, a in zip(weights, node.arguments, strict=False)])


def _joined(node: Node, weights: list[Weight]) -> Weight:
    if all(w is None for w in weights):
        return None
    return _applied(node, [_full(w, a.shape) for w, a in zip(weights, node.arguments, strict=True)])


def _sum(node: Node, weights: list[Weight]) -> Weight:
    a, b = weights
    return None if a is None or b is None else _joint(ops.add, a, b, node.shape)


def _product(node: Node, weights: list[Weight]) -> Weight:
    a, b = weights
    if a is None or b is None:
        left = a if b is None else b
        return None if left is None else _joint(ops.add, left, 0.0, node.shape)
    return _joint(ops.multiply, a, b, node.shape)


def _chosen(node: Node, weights: list[Weight]) -> Weight:
    if all(w is None for w in weights):
        return None
    found = ops.where(node.arguments[0], *(1.0 if w is None else w for w in weights))
    return found if found.shape == node.shape else broadcast_to(node.shape)(found)


def _joint(operation: Operation, a: Weight, b: Weight, shape: Shape) -> Weight:
    """An elementwise operation on weights, broadcast to the shape of the result."""
    if isinstance(a, Node) or isinstance(b, Node):
        found = operation(a, b)
        return found if found.shape == shape else broadcast_to(shape)(found)
    made = operation.value(np.asarray(a, float), np.asarray(b, float))
    return np.broadcast_to(made, shape) if shape else float(made)


_ELEMENTS: dict[Operation, tuple[Rule, Sequence[int]]] = {
    ops.add: (_sum, (0, 1)),
    ops.subtract: (_sum, (0, 1)),
    ops.negative: (lambda node, weights: weights[0], (0,)),
    ops.multiply: (_product, (0, 1)),
    ops.divide: (lambda node, weights: None if weights[0] is None else _product(node, [weights[0], None]), (0,)),
    ops.where: (_chosen, (1, 2)),
}
_CODES: dict[str, Rule] = {
    **dict.fromkeys(
        ["broadcast", "sum_to", "sum", "reshape", "transpose", "flip", "roll", "item", "getitem", "diagonal", "cumsum"]
        + ["windows", "overlaps"],
        _moved,
    ),
    **dict.fromkeys(["place", "on_diagonal", "triangle", "put_along"], _placed),
    "take_along": _moved,
    "add_at": _added,
    "set_at": _written,
    "concatenate": _joined,
    "stack": _joined,
}
