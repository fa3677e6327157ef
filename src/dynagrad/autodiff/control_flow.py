"""Derivatives through control flow: what branches, loops and calls become, forward and backward.

Forward, a node of control flow is *extended*: it computes its tangents beside its values.

Backward, it is replaced by two. The first runs forward and is *augmented*: it computes the same, and saves on a stack
what the way back will look at, and only that. The second runs backward and takes it off again. What is saved is chosen
value by value in `residuals.py`. Adjoints of what comes from outside of a loop are summed in a state of the loop that
runs backward. All of this is graphs again, so it differentiates again; a stack's derivative is a stack.
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
from ..ir.types import Type, stack
from ..ir.value_numbering.reciprocal_roots import share_roots
from ..passes.loops.invariant_reads import hoist_reads
from . import custom_rules
from .derive import FLOW, connected, generate_adjoints, plus, tangents
from .derive import increments as increments_of
from .residuals import Split, augmented, restored, split_up, stacks_of

Several = list[Any]

# -- which parts depend on which arguments -----------------------------------------------------------------------------


def _smooth(type: Type) -> bool:
    """Whether values of the type have derivatives."""
    return type.kind in ("real", "stack")


def _depend(graph: Graph, given: Sequence[bool]) -> list[bool]:
    """Which outputs depend on the inputs that are marked."""
    roots = {v for v, g in zip(graph.inputs, given, strict=True) if g and _smooth(v.type)}
    known = connected(order(graph.outputs), roots)
    return [o in known and _smooth(o.type) for o in graph.outputs]


def connected_parts(node: Node, given: Sequence[bool]) -> list[bool]:
    """Which parts of a node of control flow depend on the arguments that are marked."""
    attribute = node.attribute
    if isinstance(attribute, Branches):
        both = (_depend(g, given[1:]) for g in (attribute.then, attribute.otherwise))
        return [a or b for a, b in zip(*both, strict=True)]
    if isinstance(attribute, Called):
        return [_smooth(t) for t in part_types(node)]
    start = 1 if node.operation is REPEAT else 0
    return _states(node, list(given[start:]))


def _states(node: Node, given: list[bool]) -> list[bool]:
    """Which states of a loop depend on the states and the outside that are marked; once they do, they do in the end."""
    loop: Loop = node.attribute
    counter = [False] * (len(loop.body.inputs) - len(given))
    marks = list(given)
    while True:
        after = _depend(loop.body, [*counter, *marks])
        grown = [a or b for a, b in zip(marks[: loop.states], after, strict=True)]
        if grown == marks[: loop.states]:
            return grown
        marks[: loop.states] = grown


# -- forward -----------------------------------------------------------------------------------------------------------


def tangent(node: Node, given: Sequence[Any]) -> Several | None:
    """The tangents of the parts; `given` has those of the arguments."""
    if node.operation is COND:
        return _cond_tangent(node, given)
    if node.operation is CALL:
        return custom_rules.tangent(node, given) if custom_rules.has_tangent(node) else _call_tangent(node, given)
    return _loop_tangent(node, given)


def _within(graph: Graph, arguments: Sequence[Node], dots: Sequence[Any]) -> tuple[list[Node], Several]:
    """What a graph computes from arguments, and the tangents of that."""
    given = {v: d for v, d in zip(graph.inputs, dots, strict=True) if d is not None}
    # What comes from outside is not to be merged in here: it would be made again, and so be taken for the inside's own.
    seeds = {v: d if d.is_constant else fresh(d.type) for v, d in given.items()}
    found = tangents(graph.outputs, seeds)
    wanted = merge([*graph.outputs, *(f for f in found if f is not None)])
    by = dict(zip(graph.inputs, arguments, strict=True)) | {s: given[v] for v, s in seeds.items() if s.is_variable}
    done = substitute(wanted, by)
    left = iter(done[len(graph.outputs) :])
    return list(done[: len(graph.outputs)]), [None if f is None else next(left) for f in found]


def _cond_tangent(node: Node, given: Sequence[Any]) -> Several | None:
    branches: Branches = node.attribute
    condition, *outside = node.arguments
    graphs = (branches.then, branches.otherwise)
    dots = [d if _smooth(a.type) else None for a, d in zip(outside, given[1:], strict=True)]
    connected_outputs = connected_parts(node, [False, *(d is not None for d in dots)])
    places = [i for i, c in enumerate(connected_outputs) if c]
    if not places:
        return None

    def run(graph: Graph) -> Callable[[list[Node]], list[Node]]:
        def branch(outside: list[Node]) -> list[Node]:
            values, found = _within(graph, outside, dots)
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
    """A `cond` whose branches get what comes from outside. An empty stack among it stays an argument of the node."""
    since = now()
    stands = [fresh(stack) if a.operation is EMPTY else a for a in outside]
    ran = cond(condition, lambda: then(stands), lambda: otherwise(stands), extends)
    back = {s: a for s, a in zip(stands, outside, strict=True) if s is not a}
    return list(substitute(ran, back, since))


def _taken_apart(node: Node) -> tuple[Node | None, list[Node], list[Node]]:
    """Of a loop: how often, the first states, and what comes from outside."""
    loop: Loop = node.attribute
    count = node.arguments[0] if node.operation is REPEAT else None
    rest = list(node.arguments[1 if count is not None else 0 :])
    return count, rest[: loop.states], rest[loop.states :]


def _loop_tangent(node: Node, given: Sequence[Any]) -> Several | None:
    loop: Loop = node.attribute
    count, init, outside = _taken_apart(node)
    dots = list(given[1 if count is not None else 0 :])
    dots = [d if _smooth(a.type) else None for a, d in zip([*init, *outside], dots, strict=True)]
    moving = _states(node, [d is not None for d in dots])
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
        after, found = _within(loop.body, [*counter, *values, *outside], [*[None] * len(counter), *dot, *dots[n:]])
        return [*after, *(zero(init[i].type) if found[i] is None else found[i] for i in places)]

    results = _run(node, count, step, [*init, *first], outside, extends=node)
    out: Several = [None] * n
    for place, result in zip(places, results[n:], strict=True):
        out[place] = result
    return out


def _run(
    node: Node, count: Node | None, step: Callable[..., list[Node]], init: list[Node], outside: list[Node], extends: Any
) -> list[Node]:
    """A loop like another one, with another body and more states."""
    if count is not None:
        return repeat(count, step, init, extends=extends)
    loop: Loop = node.attribute
    assert loop.condition is not None
    condition = loop.condition
    return while_(lambda *s: condition(*s[: loop.states], *outside)[0], step, init, extends=extends)


def _call_tangent(node: Node, given: Sequence[Any]) -> Several:
    made: GraphFunction = node.attribute.function
    smooth = [i for i, t in enumerate(made.arguments) if _smooth(t)]
    results = [i for i, t in enumerate(made.results) if _smooth(t)]
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
            values, found = _within(graph, inputs[:n], dots)
            return [*values, *(zero(made.results[i]) if found[i] is None else found[i] for i in results)]

        define(derived, body)
    dots = [zero(made.arguments[i]) if given[i] is None else given[i] for i in smooth]
    called = parts(make_call(Called(derived, node), (*node.arguments, *dots)))
    out: Several = [None] * len(made.results)
    for place, result in zip(results, called[len(made.results) :], strict=True):
        out[place] = result
    return out


def _graph(made: GraphFunction) -> Graph:
    if made.graph is None:
        raise Error(f"the function {made.name} is differentiated before it has a body")
    return made.graph


# -- backward: nodes ---------------------------------------------------------------------------------------------------


def increments(node: Node, deltas: Several, wanted: Sequence[int]) -> list[tuple[int, Node]]:
    """What a node of control flow whose parts have these adjoints adds to the adjoints of the wanted arguments."""
    if node.operation is COND:
        return _cond_increments(node, deltas, wanted)
    if node.operation is CALL:
        by_rule = node.attribute.function.rule is not None
        return (custom_rules.increments if by_rule else _call_increments)(node, deltas, wanted)
    return _loop_increments(node, deltas, wanted)


def _together(outputs: Sequence[Node], results: Sequence[Node]) -> tuple[tuple[Node, ...], list[Node]]:
    """What runs forward and what runs backward, with what is augmented for the one in the other, too.

    Before anything is replaced in them: what a node extends is known by its identity.
    """
    merged = share_roots(merge([*outputs, *results]))  # a root by which much is divided is not saved, its reciprocal is
    return merged[: len(outputs)], list(merged[len(outputs) :])


def _filled(found: Sequence[Any], types: Sequence[Type]) -> list[Node]:
    return [zero(t) if f is None else f for f, t in zip(found, types, strict=True)]


def _cond_increments(node: Node, deltas: Several, wanted: Sequence[int]) -> list[tuple[int, Node]]:
    branches: Branches = node.attribute
    condition, *outside = node.arguments
    graphs = (branches.then, branches.otherwise)
    wanted = [i for i in wanted if i and _smooth(node.arguments[i].type)]
    active = [i for i, d in enumerate(deltas) if d is not None and _smooth(d.type)]
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
    both = [_together(g.outputs, _filled([f[i] for i in keep], types)) for g, f in zip(graphs, found, strict=True)]
    graphs = (Graph(graphs[0].inputs, both[0][0]), Graph(graphs[1].inputs, both[1][0]))
    results = [r for _, r in both]
    splits = [split_up(r, stacks_of(g), arriving, everything=False) for g, r in zip(graphs, results, strict=True)]
    nothing = all(s.nothing for s in splits)
    saved: Node | None = None
    if not nothing:

        def forth(graph: Graph, split: Split) -> Callable[[list[Node]], list[Node]]:
            def branch(given: list[Node]) -> list[Node]:
                outputs, on = augmented(graph.outputs, split, given[-1])
                by = dict(zip(graph.inputs, given[:-1], strict=True))
                return list(substitute([*outputs, on], by))

            return branch

        around = [*outside, empty()]
        saved = _branch(condition, around, forth(graphs[0], splits[0]), forth(graphs[1], splits[1]), node)[-1]

    def back(graph: Graph, result: list[Node], split: Split) -> Callable[[list[Node]], list[Node]]:
        def branch(outside: list[Node]) -> list[Node]:
            known = {
                **dict(zip(graph.inputs, outside, strict=True)),
                **dict(zip(arriving, (deltas[i] for i in active), strict=True)),
            }
            if saved is None:
                return list(substitute(result, known))
            found, rest = restored(result, split, saved, known)
            return [*found, rest]

        return branch

    ran = _branch(condition, outside, back(graphs[0], results[0], splits[0]), back(graphs[1], results[1], splits[1]))
    return [(wanted[i], r) for i, r in zip(keep, ran, strict=False)]


def _loop_increments(original: Node, deltas: Several, wanted: Sequence[int]) -> list[tuple[int, Node]]:
    node = hoist_reads(original)  # so that less is saved
    count = len(original.arguments)
    place = {a: i for i, a in enumerate(original.arguments)}
    rows = {i: row for i, row in enumerate(node.arguments) if i >= count}
    asked = [*wanted, *(i for i, row in rows.items() if place[row.arguments[0]] in wanted)]
    out: list[tuple[int, Node]] = []
    for i, delta in _increments_of_loop(node, deltas, asked, original):
        row = rows.get(i)
        if row is None:
            out.append((i, delta))
        else:  # it is part of what comes into the loop
            [(_, increment)] = increments_of(row.operation, row, row.arguments, delta, [0])
            out.append((place[row.arguments[0]], increment))
    return out


def _increments_of_loop(node: Node, deltas: Several, wanted: Sequence[int], original: Node) -> list[tuple[int, Node]]:
    """The same for a loop that is run instead of the original one."""
    loop: Loop = node.attribute
    count, init, outside = _taken_apart(node)
    n, shift = loop.states, 0 if count is None else 1
    inputs = loop.body.inputs
    counter, states, captured = inputs[:shift], inputs[shift : shift + n], inputs[shift + n :]
    marks = [i + shift in wanted and _smooth(a.type) for i, a in enumerate([*init, *outside])]
    active = _active(loop, states, _states(node, marks), deltas)
    arriving = [fresh(states[i].type) for i in active]
    from_outside = [i for i in range(len(outside)) if marks[n + i]]
    wrt = [*(states[i] for i in active), *(captured[i] for i in from_outside)]
    adjoints = generate_adjoints([loop.body.outputs[i] for i in active], arriving, wrt)
    from_outside = [i for i in from_outside if adjoints[captured[i]] is not None]
    results = _filled(
        [*(adjoints[states[i]] for i in active), *(adjoints[captured[i]] for i in from_outside)],
        [*(states[i].type for i in active), *(captured[i].type for i in from_outside)],
    )
    outputs, results = _together(loop.body.outputs, results)
    split = split_up(results, set(states), set(arriving), everything=True)  # the counter is known on the way back
    rounds, saved = count, None
    if count is None or not split.nothing:
        rounds, saved = _forth(node, outputs, count, init, outside, split, original)
    assert rounds is not None
    sums = [zero(captured[i].type) for i in from_outside]
    first = [zero(states[i].type) if deltas[i] is None else deltas[i] for i in active]
    number = rounds

    def back(round: Node, *state: Node) -> list[Node]:
        moved, so_far = state[: len(active)], state[len(active) : len(active) + len(sums)]
        known = {**dict(zip(captured, outside, strict=True)), **dict(zip(arriving, moved, strict=True))}
        if counter:
            known[counter[0]] = number - 1 - round
        if saved is None:
            found, rest = list(substitute(results, known)), []
        else:
            found, off = restored(results, split, state[-1], known)
            rest = [off]
        added = [plus(s, r) for s, r in zip(so_far, found[len(active) :], strict=True)]
        return [*found[: len(active)], *added, *rest]

    ran = repeat(number, back, [*first, *sums, *([] if saved is None else [saved])])
    out = [(i + shift, r) for i, r in zip(active, ran, strict=False) if i + shift in wanted]
    return [*out, *((i + n + shift, r) for i, r in zip(from_outside, ran[len(active) :], strict=False))]


def _active(loop: Loop, states: Sequence[Node], moving: list[bool], deltas: Several) -> list[int]:
    """The states that have adjoints: they depend on what is wanted, and what has an adjoint depends on them."""
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
            return sorted(i for i in needed if _smooth(states[i].type))
        needed = more


def _forth(
    node: Node,
    results: Sequence[Node],
    count: Node | None,
    init: list[Node],
    outside: list[Node],
    split: Split,
    original: Node,
) -> tuple[Node, Node | None]:
    """The augmented loop, which extends the original one: how many rounds it took, and what it saved."""
    loop: Loop = node.attribute
    n = loop.states
    saves = not split.nothing

    def step(*state: Node) -> list[Node]:
        more = state[n:] if count is None else state[n + 1 :]
        values = state[: len(state) - len(more)]
        on = more[0] if saves else empty()
        outputs, on = augmented(results, split, on)
        by = dict(zip(loop.body.inputs, (*values, *outside), strict=True))
        done = list(substitute([*outputs, on], by))
        counted = [more[-1] + 1] if count is None else []
        return [*done[:n], *(done[n:] if saves else []), *counted]

    more = [*([empty()] if saves else []), *([whole(0)] if count is None else [])]
    ran = _run(node, count, step, [*init, *more], outside, extends=original)
    return (ran[-1] if count is None else count), (ran[n] if saves else None)


def _call_increments(node: Node, deltas: Several, wanted: Sequence[int]) -> list[tuple[int, Node]]:
    made: GraphFunction = node.attribute.function
    smooth = [i for i, t in enumerate(made.arguments) if _smooth(t)]
    results = [i for i, t in enumerate(made.results) if _smooth(t)]
    if "adjoint" not in made.derived:
        _derive_call(made, smooth, results)
    forth, back = made.derived["adjoint"]
    ran = parts(make_call(Called(forth, node), (*node.arguments, empty())))
    given = [zero(made.results[i]) if deltas[i] is None else deltas[i] for i in results]
    kept = [a for a in node.arguments if a.type is not stack]
    found = parts(make_call(Called(back), (*kept, *given, ran[-1])))
    return [(i, f) for i, f in zip(smooth, found, strict=False) if i in wanted]


def _derive_call(made: GraphFunction, smooth: list[int], results: list[int]) -> None:
    """The function that runs forward and saves, and the one that runs backward, which looks at no other stack."""
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
    forward, found = _together(graph.outputs, found)
    split = split_up(found, stacks_of(graph), arriving, everything=False)

    def run(*inputs: Node) -> list[Node]:
        outputs, on = augmented(forward, split, inputs[-1])
        return list(substitute([*outputs, on], dict(zip(graph.inputs, inputs[:-1], strict=True))))

    def undo(*inputs: Node) -> list[Node]:
        n = len(kept)
        known = {
            **dict(zip((graph.inputs[i] for i in kept), inputs[:n], strict=True)),
            **dict(zip(arriving, inputs[n:-1], strict=True)),
        }
        undone, rest = restored(found, split, inputs[-1], known)
        return [*undone, rest]

    define(forth, run)
    define(back, undo)


FLOW.update(tangent=tangent, increments=increments, connected_parts=connected_parts)
