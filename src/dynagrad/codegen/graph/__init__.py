"""Graphs as C++: values, arrays and control flow as one function of machine code.

A graph is prepared by `passes/prepare.py`. `blocks.py` writes the statements of one graph, `loops.py` loops over arrays
(`outline.py` makes functions of many), `control.py` branches, loops and calls (`ranges.py` is what is known of indices
before they begin), `whole.py` and `calls/` operations of the runtime; `body.py` is the body that they write to and
`memory.py` says where arrays are kept. `unit.py` is what the functions of a source share, `emit.py` the whole;
`native.py` compiles and calls it, `running.py` the plain way.
"""

from .emit import Text, emit
from .running import Runner, load, run

__all__ = ["Runner", "Text", "emit", "load", "run"]
