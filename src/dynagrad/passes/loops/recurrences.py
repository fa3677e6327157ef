"""Linear recurrences: strip-mines a loop and splits it into a vectorisable loop of coefficients and a serial chain.

The backward loop of a loop carries adjoints, and each round is linear in them: the new adjoints are sums of
coefficients times the old ones. A round waits for the one before it with all that it computes, but the coefficients do
not depend on the carried values. So rounds are taken in strips of `CHUNK` (strip-mining), and each strip is distributed
over two loops (loop distribution; Allen and Kennedy 2002, chapter 5): one computes the coefficients of all its rounds,
which the C++ compiler vectorises since they are independent; the other runs the chain, with a few products a round. The
remaining rounds run as before. Recurrences that a user writes (`x = a * x + b`) are split in the same way.

Results agree to rounding: products are multiplied out in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...ir.builders import repeat
from ...ir.control import CALL, COND, EMPTY, LOOPS, PART, PUSH, REPEAT, Branches, Called, Graph, GraphFunction, Loop
from ...ir.names import line_of
from ...ir.node import Node, constant, intern, order, substitute, use_counts, whole, with_arguments
from ...ir.ops import integers
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import broadcast_to
from ...ir.ops.places import at_set, item
from . import rounds
from .rounds import words

CHUNK = 32
"""Rounds of a strip: few enough that their coefficients stay in the first-level cache."""
MOST_CARRIED = 3
"""k carried values need k*k coefficients; beyond three the serial chain is cheaper."""
MOST_COEFFICIENTS = 32
LANES = 4
"""The speed-up that vectorisation is taken to give, which is less than the width of vectors."""
KEPT = 3  # the cost of storing and loading a coefficient, in additions
LARGEST = 1000  # nodes of a body, since it is written twice

_ZERO, _ONE = constant(0.0), constant(1.0)

Linear = dict[int, Node]
"""An affine form of the carried values: a coefficient by the position of each state, and the constant term at -1."""
NUMBER = -1


def cut_recurrences(graph: Graph) -> Graph:
    """The graph with the coefficients of linear loops computed in loops of their own.

    >>> from dynagrad.ir import exp, variable
    >>> from dynagrad.ir.builders import repeat
    >>> x = variable("x")
    >>> [y] = repeat(1000, lambda i, y: [exp(0.1 * i) * exp(0.2 * i) * y + 1.0], [x])
    >>> [n.operation.name for n in order(cut_recurrences(Graph((x,), (y,))).outputs)].count("repeat")
    2
    """
    return _graph(graph, {})


Known = dict[GraphFunction, GraphFunction]


def _graph(graph: Graph, functions: Known) -> Graph:
    outputs = _outputs(graph.outputs, functions)
    if all(a is b for a, b in zip(outputs, graph.outputs, strict=True)):
        return graph
    return Graph(graph.inputs, outputs)


def _outputs(outputs: Sequence[Node], functions: Known) -> tuple[Node, ...]:
    series = order(outputs)
    if not any(n.operation in LOOPS for n in series):
        return tuple(outputs)
    new: dict[Node, Node] = {}
    made: dict[Node, list[Node]] = {}  # the results of loops that were split
    for node in series:
        if node.operation is PART and node.arguments[0] in made:
            new[node] = made[node.arguments[0]][node.attribute]
            continue
        attribute = _inside(node.attribute, functions) if node.operation in LOOPS else None
        new[node] = with_arguments(node, [new[a] for a in node.arguments], attribute)
        if node.operation is REPEAT:
            plan = _plan(new[node])
            if plan is not None:
                with line_of(v.birth for v in node.attribute.body.inputs):
                    made[node] = _written(new[node], plan)
    return tuple(new[o] for o in outputs)


def _inside(attribute: Loop | Branches | Called, functions: Known) -> Loop | Branches | Called:
    """The attribute of a node of control flow, with the loops of its subgraphs split."""
    if isinstance(attribute, Called):
        made = _function(attribute.function, functions)
        return attribute if made is attribute.function else Called(made)
    if isinstance(attribute, Branches):
        then, otherwise = (_graph(g, functions) for g in (attribute.then, attribute.otherwise))
        same = then is attribute.then and otherwise is attribute.otherwise
        return attribute if same else Branches(then, otherwise)
    body = _graph(attribute.body, functions)
    return attribute if body is attribute.body else replace(attribute, body=body)


def _function(made: GraphFunction, functions: Known) -> GraphFunction:
    found = functions.get(made)
    if found is None:
        assert made.graph is not None
        if not _loops(made.graph, set()):
            functions[made] = made
            return made
        found = GraphFunction(made.name, made.arguments, made.results)
        functions[made] = functions[found] = found  # before its body, which may call it
        found.graph = _graph(made.graph, functions)
    return found


def _loops(graph: Graph, seen: set[GraphFunction]) -> bool:
    """Whether there is a loop in a graph, or in a function that it calls."""
    for node in order(graph.outputs):
        attribute = node.attribute
        if node.operation is CALL:
            inner = attribute.function
            if inner not in seen:
                seen.add(inner)
                if _loops(inner.graph, seen):
                    return True
        elif node.operation is COND:
            if _loops(attribute.then, seen) or _loops(attribute.otherwise, seen):
                return True
        elif node.operation in LOOPS:
            return True
    return False


# -- what is linear ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearStates:
    """The states of a loop that is linear in what it carries, by position."""

    carried: tuple[int, ...]
    sums: tuple[int, ...]  # accumulators, to which each round adds a value
    stacks: tuple[int, ...]
    results: dict[int, Linear]  # the new value of a carried state, and the increment of a sum
    kept: tuple[Node, ...]  # coefficients that vary from round to round


def _plan(node: Node) -> LinearStates | None:
    """How to split a loop; None where it is not linear, or where that would not pay."""
    loop: Loop = node.attribute
    count = node.arguments[0]
    if count.is_constant and count.attribute < 2 * CHUNK:
        return None
    body = loop.body
    counter, *others = body.inputs
    states = others[: loop.states]
    series = order(body.outputs)
    if len(series) > LARGEST or any(v.shape or v.type.kind not in ("real", "stack") for v in states):
        return None
    if any(n.operation in LOOPS or n.operation in (PUSH, EMPTY) or (n.shape and n.arguments) for n in series):
        return None
    stacks = [i for i, v in enumerate(states) if v.type.kind == "stack"]
    steady = rounds.pops(loop, words)
    if any(i not in steady for i in stacks):
        return None
    numbers = [i for i in range(loop.states) if i not in stacks]
    uses = use_counts(body.outputs)
    added = {i: e for i in numbers if (e := _added(states[i], body.outputs[i], uses)) is not None}
    carried = [i for i in numbers if i not in added]
    if not 1 <= len(carried) <= MOST_CARRIED:
        return None
    moving = {counter, *(states[i] for i in stacks)}
    forms = _linear(series, {states[i]: i for i in carried}, {states[i] for i in added})
    if forms is None:
        return None
    results = {i: forms.get(body.outputs[i], {NUMBER: body.outputs[i]}) for i in carried}
    results |= {i: forms.get(e, {NUMBER: e}) for i, e in added.items()}
    coefficients = dict.fromkeys(c for i in sorted(results) for c in results[i].values())
    depends = _depends(coefficients, moving)
    kept = tuple(c for c in coefficients if c in depends)
    if not kept or len(kept) > MOST_COEFFICIENTS:
        return None
    before = sum(n.operation.cost for n in series if n.arguments and n.type.kind == "real")
    vectorised = sum(n.operation.cost for n in order(kept) if n in depends and n.type.kind == "real")
    products = sum(len(r) for r in results.values())
    if vectorised / LANES + KEPT * len(kept) + 2 * products > before:
        return None
    return LinearStates(tuple(carried), tuple(added), tuple(stacks), results, kept)


def _added(state: Node, after: Node, uses: Counter[Node]) -> Node | None:
    """The increment of a state that is an accumulator: nothing else uses it, before or after the addition."""
    if after.operation is not ops.add or uses[state] != 1 or uses[after] != 1:
        return None
    if not any(a is state for a in after.arguments):
        return None
    a, b = after.arguments
    return b if a is state else a


def _depends(nodes: Sequence[Node] | dict[Node, None], on: set[Node]) -> set[Node]:
    """The nodes that depend on some, through integers and conditions too; `autodiff.derive.connected` ignores these."""
    found = set(on)
    for node in order(nodes):
        if any(a in found for a in node.arguments):
            found.add(node)
    return found


def _linear(series: Sequence[Node], carried: dict[Node, int], sums: set[Node]) -> dict[Node, Linear] | None:
    """The values that depend on carried ones, as affine forms of these; None where one is not affine."""
    forms: dict[Node, Linear] = {v: {i: _ONE} for v, i in carried.items()}
    for node in series:
        if any(a in sums for a in node.arguments):  # the addition to an accumulator
            continue
        if not any(a in forms for a in node.arguments):
            continue
        rule = RULES.get(node.operation)
        found = None if rule is None else rule(node.arguments, forms)
        if found is None:
            return None
        forms[node] = found
    return forms


Rule = Callable[[Sequence[Node], dict[Node, Linear]], Linear | None]


def _of(node: Node, forms: dict[Node, Linear]) -> Linear:
    return forms.get(node, {NUMBER: node})


def _plus(operands: Sequence[Node], forms: dict[Node, Linear]) -> Linear:
    a, b = (_of(x, forms) for x in operands)
    return {k: a[k] if k not in b else b[k] if k not in a else a[k] + b[k] for k in {**a, **b}}


def _minus(operands: Sequence[Node], forms: dict[Node, Linear]) -> Linear:
    a, b = (_of(x, forms) for x in operands)
    return {k: a[k] if k not in b else -b[k] if k not in a else a[k] - b[k] for k in {**a, **b}}


def _times(operands: Sequence[Node], forms: dict[Node, Linear]) -> Linear | None:
    a, b = operands
    if a in forms and b in forms:
        return None
    form, factor = (forms[a], b) if a in forms else (forms[b], a)
    return {k: factor if c is _ONE else c * factor for k, c in form.items()}


def _over(operands: Sequence[Node], forms: dict[Node, Linear]) -> Linear | None:
    a, b = operands
    return None if b in forms else {k: c / b for k, c in forms[a].items()}


def _chosen(operands: Sequence[Node], forms: dict[Node, Linear]) -> Linear | None:
    test, *both = operands
    if test in forms:
        return None
    a, b = (_of(x, forms) for x in both)
    return {k: intern(ops.where, (test, a.get(k, _ZERO), b.get(k, _ZERO))) for k in {**a, **b}}


RULES: dict[object, Rule] = {
    ops.add: _plus,
    ops.subtract: _minus,
    ops.negative: lambda operands, forms: {k: -c for k, c in forms[operands[0]].items()},
    ops.multiply: _times,
    ops.divide: _over,
    ops.where: _chosen,
}
"""Operations that are linear, or are where one argument does not depend on carried values."""


# -- the loops ---------------------------------------------------------------------------------------------------------


def _written(node: Node, plan: LinearStates) -> list[Node]:
    """The final states of a loop, computed strip by strip."""
    loop: Loop = node.attribute
    body = loop.body
    count, *rest = node.arguments
    init, outside = rest[: loop.states], rest[loop.states :]
    counter, *others = body.inputs
    states = others[: loop.states]
    captured = dict(zip(others[loop.states :], outside, strict=True))
    full = intern(integers.maximum, (intern(integers.floor_divide, (count, whole(CHUNK))), whole(0)))
    done = intern(integers.multiply, (full, whole(CHUNK)))
    numbers = [*plan.carried, *plan.sums]

    def chunk(number: Node, *state: Node) -> list[Node]:
        start = intern(integers.multiply, (number, whole(CHUNK)))
        stacks = [state[i] for i in plan.stacks]

        def coefficients(round: Node, *state: Node) -> list[Node]:
            popped = dict(zip((states[i] for i in plan.stacks), state, strict=False))
            known = {**captured, **popped, counter: intern(integers.add, (start, round))}
            found = substitute([*(body.outputs[i] for i in plan.stacks), *plan.kept], known)
            rows = state[len(stacks) :]
            left = found[len(stacks) :]
            return [*found[: len(stacks)], *(at_set(row, round, c) for row, c in zip(rows, left, strict=True))]

        first = repeat(CHUNK, coefficients, [*stacks, *state[loop.states :]])
        rows = first[len(stacks) :]

        def chain(round: Node, *now: Node) -> list[Node]:
            value = dict(zip(numbers, now, strict=True))
            known = captured | {c: item(row, round) for c, row in zip(plan.kept, rows, strict=True)}
            return [_sum(plan.results[i], value, known, value[i] if i in plan.sums else None) for i in numbers]

        second = dict(zip(numbers, repeat(CHUNK, chain, [state[i] for i in numbers]), strict=True))
        second |= dict(zip(plan.stacks, first, strict=False))
        return [*(second[i] for i in range(loop.states)), *rows]

    rows = [broadcast_to((CHUNK,))(_ZERO) for _ in plan.kept]
    ran = repeat(full, chunk, [*init, *rows])[: loop.states]

    def remaining(round: Node, *state: Node) -> list[Node]:
        known = {**captured, **dict(zip(states, state, strict=True)), counter: intern(integers.add, (done, round))}
        return list(substitute(body.outputs, known))

    return repeat(intern(integers.subtract, (count, done)), remaining, ran)


def _sum(form: Linear, value: dict[int, Node], known: dict[Node, Node], start: Node | None) -> Node:
    """The value of an affine form, added to `start`, with coefficients replaced by what `known` has for them."""
    terms = []
    for k, c in form.items():
        [coefficient] = substitute([c], known)
        terms.append(coefficient if k == NUMBER else value[k] if coefficient is _ONE else coefficient * value[k])
    total = terms[0] if start is None else start + terms[0]
    for term in terms[1:]:
        total = total + term
    return total
