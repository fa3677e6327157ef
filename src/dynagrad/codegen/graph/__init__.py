"""Code generation for graphs: values, arrays and control flow as one C++ function.

A graph has been prepared by `passes/prepare.py`, with all that it runs. The files, each of which uses those before it:

- `memory.py`: local variables, and memory planning: arrays share one frame by liveness;
- `body.py`: the text of a function that is being written: its lines, fresh names;
- `nests/`: loop nests over arrays: built, collapsed, split among threads, and then written;
- `unit.py`: what the functions of one source share: names, constants, headers, operations left to Python;
- `blocks.py`: the statements of one graph, in schedule order;
- `ranges.py`: bounds checks hoisted out of loops; `double_buffers.py`: states of loops that are two arrays in turns;
- `control.py`: branches, loops, calls and stacks;
- `calls/`: calls of the runtime library, by family of operation; `runtime_calls.py`: the steps that are such calls;
- `emit.py`: the source of a whole graph;
- `running.py`: compiles, loads and runs a graph; `native.py`: a graph compiled on its first call.
"""

from .emit import Text, emit
from .running import Runner, load, run

__all__ = ["Runner", "Text", "emit", "load", "run"]
