"""The names of `math` for functions that are differentiated: they take numbers with derivatives.

All of `math` is here; write `import dynagrad.math as math`. On floats and integers the functions are Python's own, with
their errors. Compiled functions treat these names as those of `math`. The functions are in `eager/names/math_names.py`.

>>> import dynagrad as dg
>>> import dynagrad.math as math
>>> dg.grad(lambda x: math.exp(x) * math.hypot(x, 4.0))(0.0)
4.0
"""

from __future__ import annotations

import math as _math
from typing import TYPE_CHECKING, Any

from .eager.names.math_names import of_math as _of_math

if TYPE_CHECKING:
    from math import *  # noqa: F403  # all of its names are offered here, too

__all__ = [name for name in dir(_math) if not name.startswith("_")]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _of_math(getattr(_math, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
