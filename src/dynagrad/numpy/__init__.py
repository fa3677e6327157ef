"""numpy's names for functions that are differentiated: arrays that are created here can hold numbers with derivatives.

All of numpy's public names are here; write `import dynagrad.numpy as np`. Outside of a derivative they are numpy's own
functions and give numpy's own arrays. While a verb such as `dg.grad` calls a function, an array of reals that is made
here is mutable: numbers with derivatives can be written to it, through views and in place. Lists of such numbers are
accepted wherever numpy takes lists. numpy's functions under numpy's own name take these arrays too. Reals are float64;
other widths are converted to it. Compiled functions treat these names as numpy's.

The functions are in `eager/names/numpy_names.py` and `eager/mutation/arrays.py`.

>>> import dynagrad as dg
>>> import dynagrad.numpy as np
>>> def f(x):
...     a = np.zeros((2, 2))
...     a[0] = np.array([x, x * x])
...     a[:, 1] += 1.0
...     return np.sum(a * a)
>>> float(f(2.0)), dg.grad(f)(2.0)
(30.0, 44.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as _numpy

from ..eager.names.numpy_names import of_numpy as _of_numpy

if TYPE_CHECKING:
    from numpy import *  # noqa: F403  # all of its names are offered here, too
else:
    from . import linalg as linalg

__all__ = list(_numpy.__all__)


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _of_numpy(getattr(_numpy, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in dir(_numpy) if not name.startswith("_"))})
