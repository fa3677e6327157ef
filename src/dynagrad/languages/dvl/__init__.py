"""DVL, a Scheme whose derivatives are procedures (Radul 2011): run by a machine of its own, or compiled.

`reader.py` makes data of text, `expand.py` writes derived forms with fewer, and `lower.py` makes of these the core
language of the compiler. `machine.py` runs that on numbers with derivatives: `procedures.py` has its trampoline and the
derivatives, `builtins.py` the procedures that every program has, `vectors.py` their arithmetic, `prelude.py` those that
are written in DVL. `compiling/` hands it to the compiler that Python functions have. `program.py` is what users hold,
`checks.py` compares values with what a program says of them. `data.py` is what all of these compute with.
"""

from .program import Program, Session

__all__ = ["Program", "Session"]
