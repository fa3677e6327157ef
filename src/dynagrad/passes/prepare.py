"""The passes that a graph goes through before native code is written for it, in order, and with all that it runs.

The graphs of its loops and branches, and of the functions that it calls, go through the same passes, each after the
graph around it, which may move operations into it. What writes code prepares nothing. No pass is written here.
"""

from __future__ import annotations

from typing import Any

from ..errors import Error
from ..ir.control import LOOPS, Branches, Called, Graph, GraphFunction, Loop
from ..ir.node import Node, order, with_arguments
from ..ir.value_numbering.subsumed_loops import subsumed
from .code_sinking import sink
from .decompose import decompose
from .in_place_sums import sum_in_place
from .loops.unroll_and_jam import unroll_and_jam

PASSES = (decompose, subsumed, sum_in_place, unroll_and_jam, sink)

Known = dict[Any, Any]
"""Prepared graphs and functions, and the attributes of control flow with these, by the original ones."""


def prepare(graph: Graph) -> Graph:
    """The graph after all passes for native code, its subgraphs and the functions it calls included.

    >>> from ..ir import variable
    >>> x = variable("x")
    >>> prepare(Graph((x,), (x * x,))).outputs
    (x * x,)
    """
    return _graph(graph, {})


def prepare_function(function: GraphFunction) -> GraphFunction:
    """A function with a prepared graph."""
    return _function(function, {})


def _graph(graph: Graph, known: Known) -> Graph:
    if graph not in known:
        made = graph
        for each in PASSES:
            made = each(made)
        known[graph] = _with_prepared_subgraphs(made, known)
    found: Graph = known[graph]
    return found


def _with_prepared_subgraphs(graph: Graph, known: Known) -> Graph:
    series = order(graph.outputs)
    if not any(node.operation in LOOPS for node in series):
        return graph
    new: dict[Node, Node] = {}
    for node in series:
        attribute = _attribute(node.attribute, known) if node.operation in LOOPS else None
        new[node] = with_arguments(node, [new[a] for a in node.arguments], attribute)
    return Graph(graph.inputs, tuple(new[o] for o in graph.outputs))


def _attribute(what: Loop | Branches | Called, known: Known) -> Loop | Branches | Called:
    """What a node of control flow runs, prepared. It extends nothing any more: such nodes have been merged."""
    if what not in known:
        made: Loop | Branches | Called
        match what:
            case Loop():
                condition = None if what.condition is None else _graph(what.condition, known)
                made = Loop(_graph(what.body, known), what.states, condition)
            case Branches():
                made = Branches(_graph(what.then, known), _graph(what.otherwise, known))
            case Called():
                made = Called(_function(what.function, known))
        known[what] = made
    found: Loop | Branches | Called = known[what]
    return found


def _function(function: GraphFunction, known: Known) -> GraphFunction:
    if function not in known:
        if function.graph is None:
            raise Error(f"the function {function.name} has no body")
        made = known[function] = GraphFunction(function.name, function.arguments, function.results)
        made.graph = _graph(function.graph, known)
    found: GraphFunction = known[function]
    return found
