"""Derivatives of control flow: tangents and adjoints of branches, loops and calls.

In forward mode, a node of control flow is *extended*: it computes tangents together with its values.

In reverse mode, it becomes two nodes. The first is *augmented*: it computes the same values and pushes the residuals
onto a stack. The second runs backward and pops them. `residuals.py` chooses the residuals. Adjoints of values that a
loop captures are accumulated in states of the backward loop. The results are graphs, so they can be differentiated
again; the derivative of a stack is a stack. Single operations and straight-line graphs are not here, but in
`derive.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import Error
from ..ir.builders import cond, define, merge, now, repeat, while_
from ..ir.control import (
    CALL,
    COND,
    EMPTY,
    REPEAT,
    Branches,
    Called,
    Graph,
    GraphFunction,
    Loop,
    empty,
    make_call,
    part_types,
    parts,
    zero,
)
from ..ir.node import Node, fresh, order, substitute, whole
from ..ir.types import DIFFERENTIABLE, Type, stack
from ..ir.value_numbering.reciprocal_roots import share_roots
from ..passes.loops.invariant_reads import hoist_reads
from . import custom_rules
from .derive import FLOW, connected, generate_adjoints, plus, tangents
from .derive import increments as increments_of
from .residuals import Residuals, augmented, choose_residuals, restored, stacks_of

Several = list[Any]

# -- which results depend on which arguments ---------------------------------------------------------------------------


def _differentiable(type: Type) -> bool:
    """Whether values of this type have derivatives."""
    return type.kind in DIFFERENTIABLE or type.kind == "stack"


def _connected_outputs(graph: Graph, marked: Sequence[bool]) -> list[bool]:
    """Which outputs depend on the marked inputs."""
    roots = {v for v, g in zip(graph.inputs, marked, strict=True) if g and _differentiable(v.type)}
    known = connected(order(graph.outputs), roots)
    return [o in known and _differentiable(o.type) for o in graph.outputs]


def connected_parts(node: Node, marked: Sequence[bool]) -> list[bool]:
    """Which results of a node of control flow depend on the marked arguments."""
    attribute = node.attribute
    if isinstance(attribute, Branches):
        both = (_connected_outputs(g, marked[1:]) for g in (attribute.then, attribute.otherwise))
        return [a or b for a, b in zip(*both, strict=True)]
    if isinstance(attribute, Called):
        return [_differentiable(t) for t in part_types(node)]
    start = 1 if node.operation is REPEAT else 0
    return _connected_states(node, list(marked[start:]))


def _connected_states(node: Node, marked: list[bool]) -> list[bool]:
    """Which states of a loop depend in some round on the marked states and captured values: a least fixed point."""
    loop: Loop = node.attribute
    counter = [False] * (len(loop.body.inputs) - len(marked))
    marks = list(marked)
    while True:
        after = _connected_outputs(loop.body, [*counter, *marks])
        grown = [a or b for a, b in zip(marks[: loop.states], after, strict=True)]
        if grown == marks[: loop.states]:
            return grown
        marks[: loop.states] = grown


# -- forward -----------------------------------------------------------------------------------------------------------


def tangent(node: Node, dots: Sequence[Any]) -> Several | None:
    """The tangents of the results of a node of control flow from those of its arguments, `dots`."""
    if node.operation is COND:
        return _cond_tangent(node, dots)
    if node.operation is CALL:
        return custom_rules.tangent(node, dots) if custom_rules.has_tangent(node) else _call_tangent(node, dots)
    return _loop_tangent(node, dots)


def _graph_tangents(graph: Graph, arguments: Sequence[Node], dots: Sequence[Any]) -> tuple[list[Node], Several]:
    """The results of a graph applied to arguments, and their tangents."""
    by_input = {v: d for v, d in zip(graph.inputs, dots, strict=True) if d is not None}
    # Variables stand in for captured tangents: merging would rebuild these, and new nodes are taken for those inside.
    seeds = {v: d if d.is_constant else fresh(d.type) for v, d in by_input.items()}
    found = tangents(graph.outputs, seeds)
    wanted = merge([*graph.outputs, *(f for f in found if f is not None)])
    by = dict(zip(graph.inputs, arguments, strict=True)) | {s: by_input[v] for v, s in seeds.items() if s.is_variable}
    done = substitute(wanted, by)
    left = iter(done[len(graph.outputs) :])
    return list(done[: len(graph.outputs)]), [None if f is None else next(left) for f in found]


def _cond_tangent(node: Node, all_dots: Sequence[Any]) -> Several | None:
    branches: Branches = node.attribute
    condition, *outside = node.arguments
    graphs = (branches.then, branches.otherwise)
    dots = [d if _differentiable(a.type) else None for a, d in zip(outside, all_dots[1:], strict=True)]
    connected_outputs = connected_parts(node, [False, *(d is not None for d in dots)])
    places = [i for i, c in enumerate(connected_outputs) if c]
    if not places:
        return None

    def run(graph: Graph) -> Callable[[list[Node]], list[Node]]:
        def branch(outside: list[Node]) -> list[Node]:
            values, found = _graph_tangents(graph, outside, dots)
            return [*values, *(zero(values[i].type) if found[i] is None else found[i] for i in places)]

        return branch

    results = _branch(condition, outside, run(graphs[0]), run(graphs[1]), node)
    out: Several = [None] * len(connected_outputs)
    for place, result in zip(places, results[len(out) :], strict=True):
        out[place] = result
    return out


def _branch(
    condition: Node,
    outside: Sequence[Node],
    then: Callable[[list[Node]], list[Node]],
    otherwise: Callable[[list[Node]], list[Node]],
    extends: Node | None = None,
) -> list[Node]:
    """A `cond` whose branches are applied to captured values; an empty stack among them stays an argument."""
    since = now()
    stands = [fresh(stack) if a.operation is EMPTY else a for a in outside]
    ran = cond(condition, lambda: then(stands), lambda: otherwise(stands), extends)
    back = {s: a for s, a in zip(stands, outside, strict=True) if s is not a}
    return list(substitute(ran, back, since))


def _operands(node: Node) -> tuple[Node | None, list[Node], list[Node]]:
    """The arguments of a loop: its count, the initial states, and the captured values."""
    loop: Loop = node.attribute
    count = node.arguments[0] if node.operation is REPEAT else None
    rest = list(node.arguments[1 if count is not None else 0 :])
    return count, rest[: loop.states], rest[loop.states :]


def _loop_tangent(node: Node, all_dots: Sequence[Any]) -> Several | None:
    loop: Loop = node.attribute
    count, init, outside = _operands(node)
    dots = list(all_dots[1 if count is not None else 0 :])
    dots = [d if _differentiable(a.type) else None for a, d in zip([*init, *outside], dots, strict=True)]
    moving = _connected_states(node, [d is not None for d in dots])
    places = [i for i, m in enumerate(moving) if m]
    if not places:
        return None
    first = [zero(init[i].type) if dots[i] is None else dots[i] for i in places]
    n = loop.states

    def step(*state: Any) -> list[Node]:
        movement = state[len(state) - len(places) :]
        values = state[len(state) - len(places) - n : len(state) - len(places)]
        counter = state[: len(state) - len(places) - n]
        dot: Several = [None] * n
        for place, d in zip(places, movement, strict=True):
            dot[place] = d
        after, found = _graph_tangents(
            loop.body, [*counter, *values, *outside], [*[None] * len(counter), *dot, *dots[n:]]
        )
        return [*after, *(zero(init[i].type) if found[i] is None else found[i] for i in places)]

    results = _loop_like(node, count, step, [*init, *first], outside, extends=node)
    out: Several = [None] * n
    for place, result in zip(places, results[n:], strict=True):
        out[place] = result
    return out


def _loop_like(
    node: Node, count: Node | None, step: Callable[..., list[Node]], init: list[Node], outside: list[Node], extends: Any
) -> list[Node]:
    """A loop of the same kind, as long as the same condition holds, with another body and more states."""
    if count is not None:
        return repeat(count, step, init, extends=extends)
    loop: Loop = node.attribute
    assert loop.condition is not None
    condition = loop.condition
    return while_(lambda *s: condition(*s[: loop.states], *outside)[0], step, init, extends=extends)


def _call_tangent(node: Node, all_dots: Sequence[Any]) -> Several:
    made: GraphFunction = node.attribute.function
    smooth = [i for i, t in enumerate(made.arguments) if _differentiable(t)]
    results = [i for i, t in enumerate(made.results) if _differentiable(t)]
    derived = made.derived.get("tangent")
    if derived is None:
        derived = GraphFunction(
            f"{made.name}'",
            (*made.arguments, *(made.arguments[i] for i in smooth)),
            (*made.results, *(made.results[i] for i in results)),
        )
        made.derived["tangent"] = derived  # before its body, which may call it
        if made.rule is not None and made.rule.inherit is not None:
            made.rule.inherit(derived)
        graph = _graph(made)

        def body(*inputs: Node) -> list[Node]:
            n = len(made.arguments)
            dots: Several = [None] * n
            for place, d in zip(smooth, inputs[n:], strict=True):
                dots[place] = d
            values, found = _graph_tangents(graph, inputs[:n], dots)
            return [*values, *(zero(made.results[i]) if found[i] is None else found[i] for i in results)]

        define(derived, body, graph.inputs)
    dots = [zero(made.arguments[i]) if all_dots[i] is None else all_dots[i] for i in smooth]
    called = parts(make_call(Called(derived, node), (*node.arguments, *dots)))
    out: Several = [None] * len(made.results)
    for place, result in zip(results, called[len(made.results) :], strict=True):
        out[place] = result
    return out


class NoBody(Error):
    """A function is differentiated in its own body, so it would need the derivative of its derivative, and so on."""

    def __init__(self, function: GraphFunction) -> None:
        super().__init__(f"the function {function.name} is differentiated before it has a body")
        self.function = function


def _graph(made: GraphFunction) -> Graph:
    if made.graph is None:
        raise NoBody(made)
    return made.graph


# -- backward: nodes ---------------------------------------------------------------------------------------------------


def increments(node: Node, deltas: Several, wanted: Sequence[int]) -> list[tuple[int, Node]]:
    """The increments to the adjoints of the wanted arguments of a node of control flow, whose results have `deltas`."""
    if node.operation is COND:
        return _cond_increments(node, deltas, wanted)
    if node.operation is CALL:
        by_rule = node.attribute.function.rule is not None
        return (custom_rules.increments if by_rule else _call_increments)(node, deltas, wanted)
    return _loop_increments(node, deltas, wanted)


def _merged(outputs: Sequence[Node], results: Sequence[Node]) -> tuple[tuple[Node, ...], list[Node]]:
    """The forward outputs and the backward results, with nodes replaced that augmented nodes extend.

    This comes before any substitution, since the extended node is known by its identity.
    """
    merged = share_roots(merge([*outputs, *results]))  # so that a reciprocal root is the residual, and not the root
    return merged[: len(outputs)], list(merged[len(outputs) :])


def _filled(found: Sequence[Any], types: Sequence[Type]) -> list[Node]:
    return [zero(t) if f is None else f for f, t in zip(found, types, strict=True)]


def _cond_increments(node: Node, deltas: Several, wanted: Sequence[int]) -> list[tuple[int, Node]]:
    branches: Branches = node.attribute
    condition, *outside = node.arguments
    graphs = (branches.then, branches.otherwise)
    wanted = [i for i in wanted if i and _differentiable(node.arguments[i].type)]
    active = [i for i, d in enumerate(deltas) if d is not None and _differentiable(d.type)]
    arriving = [fresh(deltas[i].type) for i in active]
    found = []
    for graph in graphs:
        wrt = [graph.inputs[i - 1] for i in wanted]
        adjoints = generate_adjoints([graph.outputs[i] for i in active], arriving, wrt)
        found.append([adjoints[v] for v in wrt])
    keep = [i for i, (a, b) in enumerate(zip(*found, strict=True)) if a is not None or b is not None]
    if not keep:
        return []
    types = [node.arguments[wanted[i]].type for i in keep]
    both = [_merged(g.outputs, _filled([f[i] for i in keep], types)) for g, f in zip(graphs, found, strict=True)]
    graphs = (Graph(graphs[0].inputs, both[0][0]), Graph(graphs[1].inputs, both[1][0]))
    results = [r for _, r in both]
    branch_residuals = [
        choose_residuals(r, stacks_of(g), arriving, everything=False) for g, r in zip(graphs, results, strict=True)
    ]
    residual_stack: Node | None = None
    if not all(s.empty for s in branch_residuals):

        def forward(graph: Graph, residuals: Residuals) -> Callable[[list[Node]], list[Node]]:
            def branch(captured: list[Node]) -> list[Node]:
                outputs, on = augmented(graph.outputs, residuals, captured[-1])
                by = dict(zip(graph.inputs, captured[:-1], strict=True))
                return list(substitute([*outputs, on], by))

            return branch

        around = [*outside, empty()]
        residual_stack = _branch(
            condition, around, forward(graphs[0], branch_residuals[0]), forward(graphs[1], branch_residuals[1]), node
        )[-1]

    def backward(graph: Graph, result: list[Node], residuals: Residuals) -> Callable[[list[Node]], list[Node]]:
        def branch(outside: list[Node]) -> list[Node]:
            known = {
                **dict(zip(graph.inputs, outside, strict=True)),
                **dict(zip(arriving, (deltas[i] for i in active), strict=True)),
            }
            if residual_stack is None:
                return list(substitute(result, known))
            found, rest = restored(result, residuals, residual_stack, known)
            return [*found, rest]

        return branch

    thens, otherwises = (backward(*of) for of in zip(graphs, results, branch_residuals, strict=True))
    ran = _branch(condition, outside, thens, otherwises)
    return [(wanted[i], r) for i, r in zip(keep, ran, strict=False)]


def _loop_increments(original: Node, deltas: Several, wanted: Sequence[int]) -> list[tuple[int, Node]]:
    node = hoist_reads(original)  # for smaller residuals
    count = len(original.arguments)
    place = {a: i for i, a in enumerate(original.arguments)}
    rows = {i: row for i, row in enumerate(node.arguments) if i >= count}
    asked = [*wanted, *(i for i, row in rows.items() if place[row.arguments[0]] in wanted)]
    out: list[tuple[int, Node]] = []
    for i, delta in _increments_of_loop(node, deltas, asked, original):
        row = rows.get(i)
        if row is None:
            out.append((i, delta))
        else:  # a hoisted row: its adjoint goes on to the array it is part of
            [(_, increment)] = increments_of(row.operation, row, row.arguments, delta, [0])
            out.append((place[row.arguments[0]], increment))
    return out


def _increments_of_loop(node: Node, deltas: Several, wanted: Sequence[int], original: Node) -> list[tuple[int, Node]]:
    """The same for an equal loop that replaces the original one; its extra arguments are hoisted rows."""
    loop: Loop = node.attribute
    count, init, outside = _operands(node)
    n, shift = loop.states, 0 if count is None else 1
    inputs = loop.body.inputs
    counter, states, captured = inputs[:shift], inputs[shift : shift + n], inputs[shift + n :]
    marks = [i + shift in wanted and _differentiable(a.type) for i, a in enumerate([*init, *outside])]
    active = _states_between(loop, states, _connected_states(node, marks), deltas)
    arriving = [fresh(states[i].type) for i in active]
    from_outside = [i for i in range(len(outside)) if marks[n + i]]
    wrt = [*(states[i] for i in active), *(captured[i] for i in from_outside)]
    adjoints = generate_adjoints([loop.body.outputs[i] for i in active], arriving, wrt)
    from_outside = [i for i in from_outside if adjoints[captured[i]] is not None]
    results = _filled(
        [*(adjoints[states[i]] for i in active), *(adjoints[captured[i]] for i in from_outside)],
        [*(states[i].type for i in active), *(captured[i].type for i in from_outside)],
    )
    outputs, results = _merged(loop.body.outputs, results)
    # the counter is no residual: the backward loop knows it
    residuals = choose_residuals(results, set(states), set(arriving), everything=True)
    rounds, residual_stack = count, None
    if count is None or not residuals.empty:
        rounds, residual_stack = _augmented_loop(node, outputs, count, init, outside, residuals, original)
    assert rounds is not None
    sums = [zero(captured[i].type) for i in from_outside]
    first = [zero(states[i].type) if deltas[i] is None else deltas[i] for i in active]
    number = rounds

    def backward(round: Node, *state: Node) -> list[Node]:
        moved, so_far = state[: len(active)], state[len(active) : len(active) + len(sums)]
        known = {**dict(zip(captured, outside, strict=True)), **dict(zip(arriving, moved, strict=True))}
        if counter:
            known[counter[0]] = number - 1 - round
        if residual_stack is None:
            found, rest = list(substitute(results, known)), []
        else:
            found, off = restored(results, residuals, state[-1], known)
            rest = [off]
        added = [plus(s, r) for s, r in zip(so_far, found[len(active) :], strict=True)]
        return [*found[: len(active)], *added, *rest]

    ran = repeat(number, backward, [*first, *sums, *([] if residual_stack is None else [residual_stack])])
    out = [(i + shift, r) for i, r in zip(active, ran, strict=False) if i + shift in wanted]
    return [*out, *((i + n + shift, r) for i, r in zip(from_outside, ran[len(active) :], strict=False))]


def _states_between(loop: Loop, states: Sequence[Node], moving: list[bool], deltas: Several) -> list[int]:
    """Activity analysis: the states that depend on wanted arguments, and that results with adjoints depend on.

    It asks which states can have an adjoint at all, by the edges of the graph. `structural_zeros.py` asks, once there
    is an adjoint, which of its elements can be other than zero, by its operations.
    """
    needed = {i for i, d in enumerate(deltas) if d is not None and moving[i]}
    while True:
        series = order([loop.body.outputs[i] for i in sorted(needed)])
        more = set(needed)
        for i, s in enumerate(states):
            if i not in needed and moving[i]:
                known = connected(series, {s})
                if any(loop.body.outputs[j] in known for j in needed):
                    more.add(i)
        if more == needed:
            return sorted(i for i in needed if _differentiable(states[i].type))
        needed = more


def _augmented_loop(
    node: Node,
    results: Sequence[Node],
    count: Node | None,
    init: list[Node],
    outside: list[Node],
    residuals: Residuals,
    original: Node,
) -> tuple[Node, Node | None]:
    """The augmented loop, which extends the original one: its number of rounds, and the stack of residuals."""
    loop: Loop = node.attribute
    n = loop.states
    saves = not residuals.empty

    def step(*state: Node) -> list[Node]:
        more = state[n:] if count is None else state[n + 1 :]
        values = state[: len(state) - len(more)]
        on = more[0] if saves else empty()
        outputs, on = augmented(results, residuals, on)
        by = dict(zip(loop.body.inputs, (*values, *outside), strict=True))
        done = list(substitute([*outputs, on], by))
        counted = [more[-1] + 1] if count is None else []
        return [*done[:n], *(done[n:] if saves else []), *counted]

    more = [*([empty()] if saves else []), *([whole(0)] if count is None else [])]
    ran = _loop_like(node, count, step, [*init, *more], outside, extends=original)
    return (ran[-1] if count is None else count), (ran[n] if saves else None)


def _call_increments(node: Node, deltas: Several, wanted: Sequence[int]) -> list[tuple[int, Node]]:
    made: GraphFunction = node.attribute.function
    smooth = [i for i, t in enumerate(made.arguments) if _differentiable(t)]
    results = [i for i, t in enumerate(made.results) if _differentiable(t)]
    if "adjoint" not in made.derived:
        _derive_call(made, smooth, results)
    forth, back = made.derived["adjoint"]
    ran = parts(make_call(Called(forth, node), (*node.arguments, empty())))
    given = [zero(made.results[i]) if deltas[i] is None else deltas[i] for i in results]
    kept = [a for a in node.arguments if a.type is not stack]
    found = parts(make_call(Called(back), (*kept, *given, ran[-1])))
    return [(i, f) for i, f in zip(smooth, found, strict=False) if i in wanted]


def _derive_call(made: GraphFunction, smooth: list[int], results: list[int]) -> None:
    """Derives the augmented function and the backward function, whose only stack is that of the residuals."""
    kept = [i for i, t in enumerate(made.arguments) if t is not stack]
    forth = GraphFunction(f"{made.name} forth", (*made.arguments, stack), (*made.results, stack))
    back = GraphFunction(
        f"{made.name} back",
        (*(made.arguments[i] for i in kept), *(made.results[i] for i in results), stack),
        (*(made.arguments[i] for i in smooth), stack),
    )
    made.derived["adjoint"] = (forth, back)  # before their bodies, which may call them
    graph = _graph(made)
    arriving = [fresh(made.results[i]) for i in results]
    wrt = [graph.inputs[i] for i in smooth]
    adjoints = generate_adjoints([graph.outputs[i] for i in results], arriving, wrt)
    found = _filled([adjoints[v] for v in wrt], [v.type for v in wrt])
    forward, found = _merged(graph.outputs, found)
    residuals = choose_residuals(found, stacks_of(graph), arriving, everything=False)

    def run(*inputs: Node) -> list[Node]:
        outputs, on = augmented(forward, residuals, inputs[-1])
        return list(substitute([*outputs, on], dict(zip(graph.inputs, inputs[:-1], strict=True))))

    def undo(*inputs: Node) -> list[Node]:
        n = len(kept)
        known = {
            **dict(zip((graph.inputs[i] for i in kept), inputs[:n], strict=True)),
            **dict(zip(arriving, inputs[n:-1], strict=True)),
        }
        undone, rest = restored(found, residuals, inputs[-1], known)
        return [*undone, rest]

    define(forth, run, graph.inputs)
    define(back, undo, [graph.inputs[i] for i in kept])


FLOW.update(tangent=tangent, increments=increments, connected_parts=connected_parts)
