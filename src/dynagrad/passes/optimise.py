"""Optimises whole graphs with their subgraphs: dead states and results, invariant and constant inputs, inlining.

In order: a node that another one extends is replaced by that one (`builders.merge`); `simplify.py` folds constants and
rewrites single operations; states of loops and results of branches and calls that are not used are removed; inputs of a
subgraph that are constant, equal or unused are removed; and divisions by the same square root share its reciprocal
(`ir/value_numbering/reciprocal_roots.py`). Values agree to rounding, with the same infinities and NaN. Loops are not
unrolled here, and nothing is sunk into branches (`code_sinking.py` does that for native code).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..ir.builders import merge
from ..ir.control import (
    CALL,
    COND,
    LOOPS,
    PART,
    REPEAT,
    Branches,
    Called,
    Graph,
    GraphFunction,
    Loop,
    make_call,
    make_cond,
    make_loop,
    part,
)
from ..ir.node import Node, order, substitute, with_arguments
from ..ir.ops.cells import FRESH_TAG
from ..ir.value_numbering.reciprocal_roots import share_roots
from .simplify import simplify

LITTLE = 200  # the most operations of a function with a derivative rule that is inlined
ROUNDS = 4  # iterations of the passes: what one leaves unused, the next removes


def optimise(graph: Graph) -> Graph:
    """The graph with fewer operations.

    >>> from dynagrad.ir import variable
    >>> from dynagrad.ir.control import part_types
    >>> from dynagrad.ir.builders import repeat
    >>> x = variable("x")
    >>> [_, y] = repeat(3, lambda i, a, b: [a * 3.0, b * 2.0], [x, x])
    >>> [loop] = [n for n in order(optimise(Graph((x,), (y,))).outputs) if n.operation is REPEAT]
    >>> len(part_types(loop))
    1
    """
    return _graph(graph, {})


Known = dict[Any, Any]
"""Optimised graphs and functions by the original ones; a result maps to itself, so that nests are walked once."""


def _graph(graph: Graph, functions: Known) -> Graph:
    if graph in functions:
        small: Graph = functions[graph]
        return small
    outputs = simplify(merge(graph.outputs))
    for _ in range(ROUNDS):
        before = outputs
        outputs = simplify(_parts(outputs, functions))
        if all(a is b for a, b in zip(before, outputs, strict=True)):
            break
    made = Graph(graph.inputs, share_roots(outputs))
    functions[graph] = functions[made] = made
    return made


def _remember_unchanged(made: Sequence[Graph], before: Sequence[Graph], functions: Known) -> None:
    """Records graphs that lost nothing but inputs as optimised already."""
    for graph, old in zip(made, before, strict=True):
        if len(graph.outputs) == len(old.outputs) and all(map(operator.is_, graph.outputs, old.outputs)):
            functions[graph] = graph


def _parts(outputs: Sequence[Node], functions: Known) -> tuple[Node, ...]:
    """The outputs with every node of control flow optimised."""
    series = order(outputs)
    used: dict[Node, set[int]] = {}
    for node in series:
        if node.operation is PART:
            used.setdefault(node.arguments[0], set()).add(node.attribute)
    new: dict[Node, Node] = {}
    for node in series:
        if node in new:  # a part
            continue
        new[node] = with_arguments(node, [new[a] for a in node.arguments])
        if node in used and node.operation in LOOPS:
            for index, result in _smaller(new[node], sorted(used[node]), functions).items():
                new[part(node, index)] = result
    return tuple(new[o] for o in outputs)


def _smaller(node: Node, used: list[int], functions: Known) -> dict[int, Node]:
    """The used results of a node of control flow, taken from a new node that computes no others."""
    if node.operation is CALL:
        return _call(node, used, functions)
    if node.operation is COND:
        return _cond(node, used, functions)
    return _loop(node, used, functions)


def _call(node: Node, used: list[int], functions: Known) -> dict[int, Node]:
    made: GraphFunction = node.attribute.function
    small = functions.get(made)
    if small is None:
        small = GraphFunction(made.name, made.arguments, made.results)
        functions[made] = functions[small] = small
        assert made.graph is not None
        small.graph = _graph(made.graph, functions)
    if made.rule is not None and small.graph is not None and _inlines(small.graph):  # it is differentiated already
        results = small.graph(*node.arguments)
        return {i: results[i] for i in used}
    if small is not made:
        node = make_call(Called(small), node.arguments)
    return {i: part(node, i) for i in used}


def _inlines(graph: Graph) -> bool:
    """Whether a function is small enough to be inlined."""
    series = order(graph.outputs)
    return len(series) <= LITTLE and not any(n.operation in LOOPS or n.operation is FRESH_TAG for n in series)


def _inputs(graphs: Sequence[Graph], first: int, outside: Sequence[Node]) -> tuple[list[Graph], list[Node]]:
    """Graphs, and their captured values, without those that are constant, equal to others, or not used."""
    needed = {n for g in graphs for n in order(g.outputs)}
    by: list[dict[Node, Node]] = [{} for _ in graphs]
    keep: list[int] = []
    place: dict[Node, int] = {}
    for i, node in enumerate(outside):
        at = first + i
        if _is_splat(node):
            for g, b in zip(graphs, by, strict=True):
                b[g.inputs[at]] = node
        elif node in place:
            for g, b in zip(graphs, by, strict=True):
                b[g.inputs[at]] = g.inputs[place[node]]
        elif any(g.inputs[at] in needed for g in graphs):
            place[node] = at
            keep.append(i)
    if len(keep) == len(outside):
        return list(graphs), list(outside)
    new = [
        Graph((*g.inputs[:first], *(g.inputs[first + i] for i in keep)), substitute(g.outputs, b))
        for g, b in zip(graphs, by, strict=True)
    ]
    return new, [outside[i] for i in keep]


def _is_splat(node: Node) -> bool:
    """Whether a value is a constant number, or a broadcast one."""
    while node.operation.code == ("broadcast",):
        node = node.arguments[0]
    return node.is_constant and not node.type.shape


def _cond(node: Node, used: list[int], functions: Known) -> dict[int, Node]:
    condition, *outside = node.arguments
    branches: Branches = node.attribute
    graphs = [
        Graph(g.inputs, tuple(g.outputs[i] for i in used)) if len(used) < len(g.outputs) else g
        for g in (branches.then, branches.otherwise)
    ]
    if condition.is_constant:
        taken = graphs[0] if condition.attribute else graphs[1]
        return dict(zip(used, taken(*outside), strict=True))
    small = [_graph(g, functions) for g in graphs]
    results = _passed_on(small, outside)
    if len(results) == len(used):
        return {i: results[n] for n, i in enumerate(used)}
    if results:
        small = [Graph(g.inputs, tuple(o for n, o in enumerate(g.outputs) if n not in results)) for g in small]
    graphs, outside = _inputs(small, 0, outside)
    _remember_unchanged(graphs, small, functions)
    new = make_cond(condition, Branches(graphs[0], graphs[1]), outside)
    computed = iter(range(len(used)))
    return {i: results[n] if n in results else part(new, next(computed)) for n, i in enumerate(used)}


def _passed_on(branches: Sequence[Graph], outside: Sequence[Node]) -> dict[int, Node]:
    """The results that are the same captured value in both branches, by position."""
    places = [{v: k for k, v in enumerate(graph.inputs)} for graph in branches]
    found = {}
    for n, (a, b) in enumerate(zip(*(graph.outputs for graph in branches), strict=True)):
        if a in places[0] and b in places[1] and places[0][a] == places[1][b]:
            found[n] = outside[places[0][a]]
    return found


def _loop(node: Node, used: list[int], functions: Known) -> dict[int, Node]:
    loop: Loop = node.attribute
    count = node.arguments[0] if node.operation is REPEAT else None
    shift = 0 if count is None else 1
    if count is not None and count.is_constant and count.attribute <= 0:
        return {i: node.arguments[shift + i] for i in used}
    body = _graph(loop.body, functions)
    condition = None if loop.condition is None else _graph(loop.condition, functions)
    n = loop.states
    init, outside = node.arguments[shift : shift + n], node.arguments[shift + n :]
    states = body.inputs[shift : shift + n]
    known = {v for v, o in zip(states, body.outputs, strict=True) if v is o}  # loop-invariant: no round changes them
    live = _live(body, states, condition, set(used), known)
    kept = [i for i in range(n) if i in live and states[i] not in known]
    still = [i for i in range(n) if i in live and states[i] in known]

    def inputs(graph: Graph, before: int) -> tuple[Node, ...]:
        at = graph.inputs[before : before + n]
        return (*graph.inputs[:before], *(at[i] for i in kept), *(at[i] for i in still), *graph.inputs[before + n :])

    graphs = [Graph(inputs(body, shift), tuple(body.outputs[i] for i in kept))]
    if condition is not None:
        graphs.append(Graph(inputs(condition, 0), condition.outputs))
    around = [*(init[i] for i in still), *outside]
    if count is None:
        found, around = _inputs(graphs, len(kept), around)
    else:
        found, around = _inputs(graphs[:1], 1 + len(kept), around)
    _remember_unchanged(found, [body] if condition is None else [body, condition], functions)
    new_loop = Loop(found[0], len(kept), found[1] if condition is not None else None)
    new = make_loop(count, new_loop, [init[i] for i in kept], around)
    place = {i: k for k, i in enumerate(kept)}
    return {i: part(new, place[i]) if i in place else init[i] for i in used}


def _live(body: Graph, states: Sequence[Node], condition: Graph | None, used: set[int], known: set[Node]) -> set[int]:
    """Liveness of loop states: those used after the loop, by its condition, or by the update of a live state."""
    live = set(used)
    if condition is not None:
        needed = set(order(condition.outputs))
        live |= {i for i, v in enumerate(condition.inputs[: len(states)]) if v in needed}
    while True:
        needed = set(order([body.outputs[i] for i in sorted(live) if states[i] not in known]))
        more = live | {i for i, v in enumerate(states) if v in needed}
        if more == live:
            return live
        live = more
