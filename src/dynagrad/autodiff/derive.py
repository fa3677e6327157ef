"""Forward and reverse mode on graphs: tangents, and adjoints by a reverse sweep; both are graphs again.

Here are single operations and straight-line graphs. The rules of control flow are in `control_flow.py`, which enters
them in `FLOW` and differentiates the bodies of loops with the functions of this file.

Three cases are distinguished. A value that does not depend on the inputs in question, or is piecewise constant in them,
is not connected: its derivative is None. A derivative that is zero by value is a node like any other. An operation that
has no derivative raises `NotDifferentiable` where a derivative would go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ..errors import Error, NotDifferentiable
from ..ir.builders import merge
from ..ir.code import family_of
from ..ir.control import LOOPS, PART, POP, PUSH, part_types, pop, push, zero
from ..ir.control import empty as empty_stack
from ..ir.names import set_line, set_line_of
from ..ir.node import Node, as_node, constant, intern, order
from ..ir.operation import LinearMap, Operation, Trait
from ..ir.ops.arrays import broadcast_to, sum_to
from ..ir.ops.cells import cell_sum
from ..ir.ops.scalars import add, logical_and, logical_not, logical_or, where
from ..ir.types import DIFFERENTIABLE, heap
from .accumulation import Adjoints, choose
from .structural_zeros import ActiveElements

FLOW: dict[str, Callable[..., Any]] = {}
"""The rules of control flow: `tangent`, `increments`, `connected_parts`."""

_ZERO = constant(0.0)


# -- one operation -----------------------------------------------------------------------------------------------------


def tangent(operation: Operation, result: Any, arguments: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangent of a result from those of the arguments; None stands for not connected, in both.

    >>> from dynagrad.ir.ops.scalars import multiply
    >>> tangent(multiply, 6.0, (2.0, 3.0), (1.0, None))
    3.0
    """
    total = None
    for index, d in enumerate(tangents):
        rule = _rule(operation, index) if d is not None else None
        if rule is not None:
            part = rule(d, result, *arguments)
            total = part if total is None else _plain_sum(total, part)
    return total


def _plain_sum(a: Any, b: Any) -> Any:
    """The sum of two derivatives, of numbers or of cells."""
    return cell_sum(a, b) if isinstance(a, Node) and a.type is heap else add(a, b)


def increments(
    operation: Operation,
    result: Any,
    arguments: Sequence[Any],
    delta: Any,
    wanted: Iterable[int],
    active: ActiveElements | None = None,
) -> list[tuple[int, Any]]:
    """The increments to the adjoints of the `wanted` arguments of an operation whose adjoint is `delta`.

    In a sweep over a graph, `active` tells the structural zeros of adjoints.

    >>> from dynagrad.ir.ops.scalars import multiply
    >>> increments(multiply, 6.0, (2.0, 3.0), 10.0, [0, 1])
    [(0, 30.0), (1, 20.0)]
    """
    wanted = list(wanted)
    if operation.partial is not None:
        found = operation.partial(wanted, None, delta, result, *arguments)
        return [(index, part) for index, part in zip(wanted, found, strict=True) if part is not None]
    if operation.adjoint is not None:
        parts = operation.adjoint(delta, result, *arguments)
        return [(index, parts[index]) for index in wanted if parts[index] is not None]
    rules = [(index, _rule(operation, index)) for index in wanted]
    if not operation.elementwise or Trait.SAFE in operation.traits or not isinstance(delta, Node):
        active = None
    return [
        (index, _through_choice(rule, delta, result, arguments, active)) for index, rule in rules if rule is not None
    ]


def _through_choice(
    rule: LinearMap, delta: Any, result: Any, arguments: Sequence[Any], active: ActiveElements | None
) -> Any:
    """A linear map applied inside the selection around an adjoint: `where(c, d, 0)` becomes `where(c, rule(d), 0)`.

    So a branch that is not taken contributes zero, even where the partial derivative there is infinite. A mask of
    active elements is such a selection, too. Selections are merged into one, so the derivative stays a constant factor
    larger than the function.
    """
    choice = _choice(delta)
    chosen = delta if choice is None else choice[1]
    counts = None if active is None else active(chosen)
    if choice is None and counts is None:
        return rule(delta, result, *arguments)
    condition = counts if choice is None else choice[0] if counts is None else logical_and(choice[0], counts)
    part = rule(chosen, result, *arguments)
    inner = _choice(part)
    return where(condition, part, 0.0) if inner is None else where(logical_and(condition, inner[0]), inner[1], 0.0)


def _choice(x: Any) -> tuple[Node, Node] | None:
    """The condition and the value of a selection between a value and zero; None for other values."""
    if not isinstance(x, Node) or x.operation is not where:
        return None
    condition, a, b = x.arguments
    if b is _ZERO:
        return condition, a
    return (logical_not(condition), b) if a is _ZERO else None


def _sum_of_choices(a: Any, b: Any) -> Any:
    """The sum of two selections between a value and zero, as such a selection; None where one of them is none."""
    one, other = _choice(a), _choice(b)
    if one is None or other is None:
        return None
    (c, x), (d, y) = one, other
    if c is d:
        return where(c, plus(x, y), 0.0)
    if logical_not(c) is d:
        return where(c, x, y)
    if logical_not(d) is c:
        return where(d, y, x)
    return where(logical_or(c, d), add(a, b), 0.0)


def _rule(operation: Operation, index: int) -> LinearMap | None:
    if operation.tangent is None:
        raise NotDifferentiable(
            f"the operation {operation.name} has no derivative, and one is asked for through its argument {index + 1}; "
            "declare a tangent for it, or leave it out of what is differentiated"
        )
    return operation.tangent[index]


# -- graphs ------------------------------------------------------------------------------------------------------------

Several = list[Any]  # the derivative of a node whose value is a tuple: one, or None, for each component


def plus(a: Any, b: Any) -> Any:
    """The sum of two derivatives. What adds to a few elements of zeros adds to the other array instead.

    >>> from dynagrad.ir.ops.places import at_add
    >>> from dynagrad.ir.types import arrays, real
    >>> from dynagrad.ir.node import fresh
    >>> x, total = fresh(arrays(real, (3,))), fresh(arrays(real, (3,)))
    >>> plus(total, at_add(zero(x.type), 1, 5.0)) is at_add(total, 1, 5.0)
    True
    """
    if isinstance(a, list):
        return [x if y is None else y if x is None else plus(x, y) for x, y in zip(a, b, strict=True)]
    for this, other in ((a, b), (b, a)):
        if _adds_to_zeros(this):
            return intern(this.operation, (other, *this.arguments[1:]))
        if _is_zero(this):
            return other
    both = _sum_of_choices(a, b)
    return _plain_sum(a, b) if both is None else both


def _is_zero(x: Any) -> bool:
    """Whether a derivative is an array of structural zeros."""
    return isinstance(x, Node) and x.operation.code == ("broadcast",) and x.arguments[0] is _ZERO


def _adds_to_zeros(x: Any) -> bool:
    code = x.operation.code if isinstance(x, Node) else None
    return isinstance(code, tuple) and code[0] == "add_at" and _is_zero(x.arguments[0])


def _broadcast_to(d: Any, node: Node) -> Any:
    """A derivative broadcast to the shape of a node, since rules of elementwise operations may give a smaller one."""
    if d is None or not node.type.shape or getattr(d, "shape", ()) == node.type.shape:
        return d
    return broadcast_to(node.type.shape)(d)


def tangents(outputs: Sequence[Node], seeds: Mapping[Node, Node | float | None]) -> tuple[Node | None, ...]:
    """Forward mode: the tangents of the outputs from those of some nodes; None where an output is not connected.

    >>> from dynagrad.ir import variable
    >>> x, dx = variable("x"), variable("dx")
    >>> tangents([x * x, x > 0], {x: dx})
    ((dx * x) + (dx * x), None)
    """
    known: dict[Node, Any] = {}
    merged = merge([*outputs, *seeds])  # so that each stack has one reader: the derivative of two would be a sum
    outputs, seeds = merged[: len(outputs)], dict(zip(merged[len(outputs) :], seeds.values(), strict=True))
    for node in order(outputs):
        d = _lift(seeds.get(node))
        dots = [known[argument] for argument in node.arguments]
        if node.operation is PART:
            arriving = None if dots[0] is None else dots[0][node.attribute]
        elif all(g is None for g in dots):
            arriving = None
        elif node.operation in LOOPS:
            arriving = FLOW["tangent"](node, dots)
        elif node.operation is PUSH:
            items = [(a, g) for a, g in zip(node.arguments[1:], dots[1:], strict=True) if a.type.kind in DIFFERENTIABLE]
            arriving = push(
                empty_stack() if dots[0] is None else dots[0], [zero(a.type) if g is None else g for a, g in items]
            )
        elif node.operation is POP:
            arriving = _popped(node, dots[0])
        else:
            arriving = tangent(node.operation, node, node.arguments, dots)
            if node.operation.elementwise:
                arriving = _broadcast_to(arriving, node)
        known[node] = arriving if d is None else d if arriving is None else plus(arriving, d)
    return tuple(known[output] for output in outputs)


def _popped(node: Node, derivatives: Node) -> Several:
    """The derivative of a `pop`: a stack of derivatives has entries for reals only."""
    kinds = [t.kind for t in node.attribute]
    rest, items = pop(derivatives, [t for t in node.attribute if t.kind in DIFFERENTIABLE])
    left = iter(items)
    return [rest, *(next(left) if kind in DIFFERENTIABLE else None for kind in kinds)]


def generate_adjoints(
    outputs: Sequence[Node],
    cotangents: Sequence[Node | float | None],
    wrt: Sequence[Node],
    inner: dict[Node, Node] | None = None,
) -> dict[Node, Node | None]:
    """Reverse mode: the adjoint of each node of `wrt`, for the sum of the outputs weighted with the cotangents.

    It is the derivative by a perturbation added to the node, so one node of `wrt` may depend on another. A cotangent
    None leaves its output out; an adjoint None says that no output is connected to the node. `accumulation.choose`
    decides which adjoints accumulate. With `inner` all do, and it collects the adjoint of each value that has one.

    >>> from dynagrad.ir import variable
    >>> x, y, z = map(variable, "xyz")
    >>> generate_adjoints([x * y], [1.0], [x, z])
    {x: 1.0 * y, z: None}
    """
    if len(outputs) != len(cotangents):
        raise Error(f"each output needs a cotangent: {len(outputs)} and {len(cotangents)} were given")
    seed: dict[Node, Any] = {}
    # without nodes of control flow, which would be kept beside the nodes that extend them
    values = [v for v in order(outputs) if v.type.kind != "values"] if inner is not None else []
    merged = merge([*outputs, *wrt, *values])
    count = len(outputs)
    outputs, asked, values_now = merged[:count], merged[count : count + len(wrt)], merged[count + len(wrt) :]
    for output, cotangent in zip(outputs, map(_lift, cotangents), strict=True):
        if cotangent is not None:
            cotangent = _broadcast_to(cotangent, output)
            seed[output] = plus(seed[output], cotangent) if output in seed else cotangent
    series = order(outputs)
    known = connected(series, set(asked))
    keep = {*asked, *values_now}
    passing = choose(series, seed, keep, known)
    active = ActiveElements()
    line = set_line(0)
    adjoints = Adjoints(plus, lambda node, delta: _generate(node, delta, known, active), passing)
    found = adjoints.sweep(series, seed.items(), keep)
    set_line(line)
    if inner is not None:
        inner.update((v, found[n]) for v, n in zip(values, values_now, strict=True) if isinstance(found.get(n), Node))
    return {node: found.get(new) for node, new in zip(wrt, asked, strict=True)}


def _generate(node: Node, delta: Any, known: Mapping[Node, Any], active: ActiveElements) -> Iterable[tuple[Node, Any]]:
    """Propagates the adjoint of a node: the increments to those of its connected arguments."""
    set_line_of(node.birth)
    arguments = node.arguments
    wanted = [index for index, argument in enumerate(arguments) if argument in known]
    if not wanted:
        return []
    if node.operation is PART:
        several: Several = [None] * len(part_types(arguments[0]))
        several[node.attribute] = delta
        return [(arguments[0], several)]
    if node.operation in LOOPS:
        parts = FLOW["increments"](node, delta, wanted)
    elif node.operation is PUSH:
        real_items = [i for i, a in enumerate(arguments) if i and a.type.kind in DIFFERENTIABLE]
        rest, items = pop(delta, [arguments[i].type for i in real_items])
        parts = [(0, rest), *((i, d) for i, d in zip(real_items, items, strict=True) if i in wanted)]
    elif node.operation is POP:
        items = [
            zero(t) if d is None else d
            for t, d in zip(node.attribute, delta[1:], strict=True)
            if t.kind in DIFFERENTIABLE
        ]
        parts = [(0, push(delta[0] if delta[0] is not None else empty_stack(), items))]
    else:
        parts = increments(node.operation, node, arguments, delta, wanted, active)
        if node.operation.elementwise:
            parts = [(i, _summed_to(d, arguments[i])) for i, d in parts]
        else:
            parts = [(i, _broadcast_to(d, arguments[i])) for i, d in parts]
        family = family_of(node.operation)
        if family is not None and family.joins:
            parts = [(i, d) for i, d in parts if not active.none(d)]
    return [(arguments[index], part) for index, part in parts]


def _summed_to(d: Any, argument: Node) -> Any:
    """An adjoint summed to the shape of an argument that was broadcast."""
    if getattr(d, "shape", ()) == argument.type.shape:
        return d
    if not getattr(d, "shape", ()):
        return _broadcast_to(d, argument)
    return sum_to(argument.type.shape)(d)


def connected(series: Sequence[Node], roots: Collection[Node]) -> dict[Node, Any]:
    """The nodes that depend differentiably on the roots; for control flow, which components of the result do.

    This is the activity analysis of nodes, by the edges of the graph. Which elements of an adjoint are active is for
    `structural_zeros.py`.
    """
    known: dict[Node, Any] = {}
    for node in series:
        operation = node.operation
        if node in roots:
            known[node] = True
        elif not any(argument in known for argument in node.arguments):
            continue
        elif operation in LOOPS:
            several = FLOW["connected_parts"](node, [a in known for a in node.arguments])
            if any(several):
                known[node] = several
        elif operation is PART:
            if known[node.arguments[0]][node.attribute]:
                known[node] = True
        elif operation is POP:
            known[node] = [True, *(t.kind in DIFFERENTIABLE for t in node.attribute)]
        elif operation is PUSH:
            if any(a in known and a.type.kind in (*DIFFERENTIABLE, "stack") for a in node.arguments):
                known[node] = True
        else:
            rules = operation.tangent
            if any(a in known and (rules is None or rules[i] is not None) for i, a in enumerate(node.arguments)):
                known[node] = True
    return known


def _lift(value: Node | float | None) -> Node | None:
    if value is None:
        return None
    node = as_node(value)
    if node is None or node.type.kind not in (*DIFFERENTIABLE, "stack"):
        raise Error(f"a tangent or an adjoint should be real, and is {value!r}")
    return node
