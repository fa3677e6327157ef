"""DVL, a Scheme whose derivatives are procedures (Radul 2011): run by a machine of its own, or compiled.

`program.py` is what users hold. A program goes through `reader.py`, which makes data of text, `expand.py`, which writes
derived forms with fewer, and `lower.py`, which makes of these the core language of the compiler (`variables.py`: what
is free in that). From there it goes one of two ways. `machine.py` runs it on numbers with derivatives: `procedures.py`
has its trampoline and the derivatives, `builtins.py` the procedures that every program has, `vectors.py` their
arithmetic, `prelude.py` those that are written in DVL. `compiling/` hands it to the compiler that Python functions
have. `checks.py` compares values with what a program says of them. `data.py` is what all of these compute with.
"""

from ...moved import renamed
from .program import DVLProgram, Session

__all__ = ["DVLProgram", "Session"]

__getattr__ = renamed(__name__)
