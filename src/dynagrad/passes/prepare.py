"""What machine code wants of a graph, of a subgraph or of a body, before it is written: the passes in order.

The graphs inside of its branches and loops are prepared when their turn comes.
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
    """The graph as it is written.

    >>> from ..ir import variable
    >>> x = variable("x")
    >>> prepare(Graph((x,), (x * x,))).outputs
    (x * x,)
    """
    for each in PASSES:
        graph = each(graph)
    return graph
