"""The programs of the benchmarks of compiled functions, one in each file.

Each file has the function in plain Python, fresh arguments for it, the same in jax as a jax user would write it, and
for programs of single numbers a file of C++ with the function and its derivative by hand. `check.py` holds all of these
against each other (`python -m benchmarks.programs.check`); the timing is in `benchmarks/compiled.py`.
"""

from __future__ import annotations

from . import bundle, elimination, lstm, mixture, ode, particle, saddle
from .program import Program

PROGRAMS: dict[str, Program] = {
    module.PROGRAM.name: module.PROGRAM for module in (mixture, bundle, lstm, particle, saddle, elimination, ode)
}
