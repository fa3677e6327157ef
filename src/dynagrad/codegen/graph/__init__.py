"""Graphs as C++: values, arrays and control flow as one function of machine code.

`passes/roles.py` says what native code makes of each operation. A whole graph is prepared by
`passes/loops/recurrences.py`, each subgraph by `passes/decompose.py`, `passes/in_place_sums.py`,
`passes/loops/unroll_and_jam.py` and `passes/sink.py`. Then `passes/schedule.py` says in which order values are computed
and which of them share a loop, and `memory.py` where arrays are kept. `blocks.py` writes the statements of one graph,
`loops.py` loops over arrays (`passes/views.py` and `passes/loops/index_forms.py` are arithmetic with indices;
`outline.py` makes functions of many loops), `control.py` branches, loops and calls (`ranges.py` is what is known of
loops before they begin), `whole.py` operations of the runtime, `emit.py` the whole. `running.py` compiles and calls it.
"""

from .emit import Text, emit
from .running import Runner, load, run

__all__ = ["Runner", "Text", "emit", "load", "run"]
