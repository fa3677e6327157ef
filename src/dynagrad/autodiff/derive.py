"""Derivatives: tangents forward, and adjoints by one sweep backward. The results of both are graphs again.

Here are single operations, the sweep, and graphs in a line. What becomes of control flow is in `control_flow.py`, which
enters its rules in `FLOW`: the bodies of loops are derived with what is here.

Three answers are kept apart. A value that does not depend on what was asked about, or only in steps, is not connected:
its derivative is None. A derivative that happens to vanish is a node like any other. An operation that has no
derivative raises `NotDifferentiable` where one would have to go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ..errors import Error, NotDifferentiable
from ..ir.builders import merge
from ..ir.code import family_of
from ..ir.control import LOOPS, PART, POP, PUSH, part_types, pop, push, zero
from ..ir.control import empty as empty_stack
from ..ir.node import Node, as_node, constant, intern, order
from ..ir.operation import LinearMap, Operation, Trait
from ..ir.ops.arrays import broadcast_to, sum_to
from ..ir.ops.scalars import add, logical_and, logical_not, logical_or, where
from .accumulation import Adjoints, choose
from .activity import Counting

FLOW: dict[str, Callable[..., Any]] = {}
"""The rules of control flow: `tangent`, `increments`, `connected_parts`."""

_ZERO = constant(0.0)
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


# -- one operation -----------------------------------------------------------------------------------------------------


def tangent(operation: Operation, result: Any, arguments: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangent of the result, given those of the arguments; None stands for not connected on both sides.

    >>> from dynagrad.ir.ops.scalars import multiply
    >>> tangent(multiply, 6.0, (2.0, 3.0), (1.0, None))
    3.0
    """
    total = None
    for index, d in enumerate(tangents):
        rule = _rule(operation, index) if d is not None else None
        if rule is not None:
            part = rule(d, result, *arguments)
            total = part if total is None else add(total, part)
    return total


def increments(
    operation: Operation,
    result: Any,
    arguments: Sequence[Any],
    delta: Any,
    wanted: Iterable[int],
    counting: Counting | None = None,
) -> list[tuple[int, Any]]:
    """What an operation whose complete adjoint is `delta` adds to the adjoints of its `wanted` arguments.

    In a sweep over a graph, `counting` knows which elements of an adjoint count.

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
        counting = None
    return [(index, _inside(rule, delta, result, arguments, counting)) for index, rule in rules if rule is not None]


def _inside(rule: LinearMap, delta: Any, result: Any, arguments: Sequence[Any], counting: Counting | None) -> Any:
    """A linear map of an adjoint; of one that is chosen or zero, the choice of what the map makes of it, or zero.

    So a branch that is not taken adds zero, also where a partial derivative there is infinite. There is never more than
    one choice around what the map makes, so a derivative costs a constant times what it is of. Where only a part of the
    adjoint counts, that is a choice, too.
    """
    choice = _choice(delta)
    chosen = delta if choice is None else choice[1]
    counts = None if counting is None else counting(chosen)
    if choice is None and counts is None:
        return rule(delta, result, *arguments)
    condition = counts if choice is None else choice[0] if counts is None else logical_and(choice[0], counts)
    part = rule(chosen, result, *arguments)
    inner = _choice(part)
    return where(condition, part, 0.0) if inner is None else where(logical_and(condition, inner[0]), inner[1], 0.0)


def _choice(x: Any) -> tuple[Node, Node] | None:
    """Of what is chosen or zero, when it is and what it is then."""
    if not isinstance(x, Node) or x.operation is not where:
        return None
    condition, a, b = x.arguments
    if b is _ZERO:
        return condition, a
    return (logical_not(condition), b) if a is _ZERO else None


def _both(a: Any, b: Any) -> Any:
    """The sum of what is chosen or zero, twice; None where one is not. It is chosen where one of them is."""
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

Several = list[Any]  # the derivative of a node of several values: one, or None, for each


def plus(a: Any, b: Any) -> Any:
    """The sum of two derivatives. What adds to a few places of an array of zeros adds to the other array instead.

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
        if _at_places(this):
            return intern(this.operation, (other, *this.arguments[1:]))
        if _is_zero(this):
            return other
    both = _both(a, b)
    return add(a, b) if both is None else both


def _is_zero(x: Any) -> bool:
    """Whether it is an array of zeros that was made as one."""
    return isinstance(x, Node) and x.operation.code == ("broadcast",) and x.arguments[0] is _ZERO


def _at_places(x: Any) -> bool:
    code = x.operation.code if isinstance(x, Node) else None
    return isinstance(code, tuple) and code[0] == "add_at" and _is_zero(x.arguments[0])


def _grown(d: Any, node: Node) -> Any:
    """A tangent in the shape of the result: elementwise operations broadcast, their rules need not."""
    if d is None or not node.type.shape or getattr(d, "shape", ()) == node.type.shape:
        return d
    return broadcast_to(node.type.shape)(d)


def tangents(outputs: Sequence[Node], seeds: Mapping[Node, Node | float | None]) -> tuple[Node | None, ...]:
    """The tangents of the outputs, given tangents of some nodes; None where an output is not connected to these.

    >>> from dynagrad.ir import variable
    >>> x, dx = variable("x"), variable("dx")
    >>> tangents([x * x, x > 0], {x: dx})
    ((dx * x) + (dx * x), None)
    """
    known: dict[Node, Any] = {}
    merged = merge([*outputs, *seeds])  # a stack has one reader, or its derivative would have to be a sum
    outputs, seeds = merged[: len(outputs)], dict(zip(merged[len(outputs) :], seeds.values(), strict=True))
    for node in order(outputs):
        d = _lift(seeds.get(node))
        given = [known[argument] for argument in node.arguments]
        if node.operation is PART:
            arriving = None if given[0] is None else given[0][node.attribute]
        elif all(g is None for g in given):
            arriving = None
        elif node.operation in LOOPS:
            arriving = FLOW["tangent"](node, given)
        elif node.operation is PUSH:
            items = [(a, g) for a, g in zip(node.arguments[1:], given[1:], strict=True) if a.type.kind == "real"]
            arriving = push(
                empty_stack() if given[0] is None else given[0], [zero(a.type) if g is None else g for a, g in items]
            )
        elif node.operation is POP:
            arriving = _popped(node, given[0])
        else:
            arriving = tangent(node.operation, node, node.arguments, given)
            if node.operation.elementwise:
                arriving = _grown(arriving, node)
        known[node] = arriving if d is None else d if arriving is None else plus(arriving, d)
    return tuple(known[output] for output in outputs)


def _popped(node: Node, derivatives: Node) -> Several:
    """What comes off a stack of derivatives, which has those of reals only."""
    kinds = [t.kind for t in node.attribute]
    rest, items = pop(derivatives, [t for t in node.attribute if t.kind == "real"])
    left = iter(items)
    return [rest, *(next(left) if kind == "real" else None for kind in kinds)]


def generate_adjoints(
    outputs: Sequence[Node],
    cotangents: Sequence[Node | float | None],
    wrt: Sequence[Node],
    inner: dict[Node, Node] | None = None,
) -> dict[Node, Node | None]:
    """The adjoint of each node of `wrt`: what it adds to the sum of the outputs weighted with the cotangents.

    An adjoint is that of a change added to the node, so a node of `wrt` may lie on the way to another. A cotangent None
    leaves its output out; an adjoint None says that no output is connected to the node. Each adjoint is added up or
    passed on as `accumulation.choose` says. With `inner`, all are added up, and it collects them, for each value that
    has one.

    >>> from dynagrad.ir import variable
    >>> x, y, z = map(variable, "xyz")
    >>> generate_adjoints([x * y], [1.0], [x, z])
    {x: 1.0 * y, z: None}
    """
    if len(outputs) != len(cotangents):
        raise Error(f"{len(outputs)} outputs need as many cotangents, and {len(cotangents)} were given")
    seed: dict[Node, Any] = {}
    # a node of control flow is not among them: kept as it is, it would be there beside the one that extends it
    values = [v for v in order(outputs) if v.type.kind != "values"] if inner is not None else []
    merged = merge([*outputs, *wrt, *values])
    count = len(outputs)
    outputs, asked, values_now = merged[:count], merged[count : count + len(wrt)], merged[count + len(wrt) :]
    for output, cotangent in zip(outputs, map(_lift, cotangents), strict=True):
        if cotangent is not None:
            cotangent = _grown(cotangent, output)
            seed[output] = plus(seed[output], cotangent) if output in seed else cotangent
    series = order(outputs)
    known = connected(series, set(asked))
    keep = {*asked, *values_now}
    passing = choose(series, seed, keep, known)
    counting = Counting()
    adjoints = Adjoints(plus, lambda node, delta: _generate(node, delta, known, counting), passing)
    found = adjoints.sweep(series, seed.items(), keep)
    if inner is not None:
        inner.update((v, found[n]) for v, n in zip(values, values_now, strict=True) if isinstance(found.get(n), Node))
    return {node: found.get(new) for node, new in zip(wrt, asked, strict=True)}


def _generate(node: Node, delta: Any, known: Mapping[Node, Any], counting: Counting) -> Iterable[tuple[Node, Any]]:
    """What a node whose adjoint is complete adds to those of its arguments that are connected."""
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
        real_items = [i for i, a in enumerate(arguments) if i and a.type.kind == "real"]
        rest, items = pop(delta, [arguments[i].type for i in real_items])
        parts = [(0, rest), *((i, d) for i, d in zip(real_items, items, strict=True) if i in wanted)]
    elif node.operation is POP:
        items = [
            zero(t) if d is None else d for t, d in zip(node.attribute, delta[1:], strict=True) if t.kind == "real"
        ]
        parts = [(0, push(delta[0] if delta[0] is not None else empty_stack(), items))]
    else:
        parts = increments(node.operation, node, arguments, delta, wanted, counting)
        if node.operation.elementwise:
            parts = [(i, _shrunk(d, arguments[i])) for i, d in parts]
        else:
            parts = [(i, _grown(d, arguments[i])) for i, d in parts]
        family = family_of(node.operation)
        if family is not None and family.joins:
            parts = [(i, d) for i, d in parts if not counting.nothing(d)]
    return [(arguments[index], part) for index, part in parts]


def _shrunk(d: Any, argument: Node) -> Any:
    """An adjoint in the shape of the argument, which was broadcast."""
    if getattr(d, "shape", ()) == argument.type.shape:
        return d
    if not getattr(d, "shape", ()):
        return _grown(d, argument)
    return sum_to(argument.type.shape)(d)


def connected(series: Sequence[Node], roots: Collection[Node]) -> dict[Node, Any]:
    """The nodes that depend on the roots other than in steps; for one of several values, which of them do."""
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
            known[node] = [True, *(t.kind == "real" for t in node.attribute)]
        elif operation is PUSH:
            if any(a in known and a.type.kind in ("real", "stack") for a in node.arguments):
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
    if node is None or node.type.kind not in ("real", "stack"):
        raise Error(f"a tangent or an adjoint is a real, and {value!r} is none")
    return node
