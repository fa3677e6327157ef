"""Automatic differentiation of running Python functions, by operator overloading.

- `perturbations.py`: which differentiation passes are open; `floats.py`: derivatives of operations on single floats;
- `kinds.py`: the table of kinds of numbers, and what is read off a number of any kind;
- `tape.py`: entries of a tape; `tangents.py`: tangents of results; `copies.py`: defensive copies;
- `numbers.py`: the numbers that carry derivatives, dual numbers and tape cells: tags, operators, dispatch;
- `splitting.py`: the tangent of a number along a tag;
- `masks.py`: structural zeros of adjoints; `sweep.py`: the reverse sweep over a tape;
- `combinations.py`: linear combinations of functions; `pytree.py`: structures of numbers (pytrees);
- `closures.py`: functions as inputs and outputs, with duals as their cotangents; `taylor.py`: truncated power series;
- `result_checks.py`: what is checked of results before users get them;
- `numpy/`: numpy's functions on these numbers; `mutation/`: arrays that can be written to;
- `names/`: what stands behind `dynagrad.numpy`, `dynagrad.math` and `dynagrad.special`; `verbs/`: what users call.

Operations on numbers are found in tables: rules by kind of number in `kinds.LIFTS`, handlers by function of numpy in
`numpy/functions.py`. The files imported here enter theirs. Nothing here knows rules or programs.
"""

from . import taylor
from .mutation import arrays
from .names import special
from .numpy import (
    arranging,
    callables,
    fitting,
    grids,
    linalg,
    quantiles,
    reductions,
    shapes,
    signals,
    statistics,
    ufuncs,
)

__all__ = [
    "arranging",
    "arrays",
    "callables",
    "fitting",
    "grids",
    "linalg",
    "quantiles",
    "reductions",
    "shapes",
    "signals",
    "special",
    "statistics",
    "taylor",
    "ufuncs",
]
