"""Graphs as C++: values, arrays and control flow as one function of machine code.

`roles.py` says what native code makes of each operation, `schedule.py` in which order values are computed and which of
them share a loop, `memory.py` where arrays are kept, `forms.py` is arithmetic with indices, `loops.py` writes loops over
arrays, `control.py` branches, loops and calls, `emit.py` the whole. `running.py` compiles and calls it.
"""

from .emit import Text, emit
from .running import Runner, load, run

__all__ = ["Runner", "Text", "emit", "load", "run"]
