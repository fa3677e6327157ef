"""The passes that a graph goes through before native code is written for it, in order.

Graphs inside its branches and loops are prepared when code is written for them. No pass is written here.
"""

from __future__ import annotations

from ..ir.control import Graph
from ..ir.value_numbering.subsumed_loops import subsumed
from .decompose import decompose
from .in_place_sums import sum_in_place
from .loops.unroll_and_jam import unroll_and_jam
from .sink import sink

PASSES = (decompose, subsumed, sum_in_place, unroll_and_jam, sink)


def prepare(graph: Graph) -> Graph:
    """The graph after all passes for native code.

    >>> from ..ir import variable
    >>> x = variable("x")
    >>> prepare(Graph((x,), (x * x,))).outputs
    (x * x,)
    """
    for each in PASSES:
        graph = each(graph)
    return graph
