"""Automatic differentiation of running Python functions, by operator overloading.

- `perturbations.py`: which differentiation passes are open; `floats.py`: derivatives of operations on single floats;
- `numbers.py`: the numbers that carry derivatives: dual numbers and tape cells, with their tags and operators;
- `tape.py`: entries of a tape; `splitting.py`: the tangent of a number along a tag; `copies.py`: defensive copies;
- `dispatch.py`: operations on such numbers, by the outermost tag;
- `masks.py`: structural zeros of adjoints; `sweep.py`: the reverse sweep over a tape;
- `combinations.py`: linear combinations of functions; `pytree.py`: structures of numbers (pytrees);
- `closures.py`: functions as inputs and outputs, with duals as their cotangents; `taylor.py`: truncated power series;
- `special.py`: special functions;
- `numpy/`: numpy's functions on these numbers; `mutation/`: arrays that can be written to;
- `names/`: what stands behind `dynagrad.numpy` and `dynagrad.math`; `verbs/`: what users call.

Nothing here knows rules or programs.
"""

from . import taylor
from .numpy import protocol

__all__ = ["protocol", "taylor"]
