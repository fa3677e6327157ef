"""The names of `numpy.linalg`, as `dynagrad.numpy` has them.

The functions behind them are in `eager/names/numpy_names.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy import linalg as _linalg

from ..eager.names.numpy_names import of_numpy as _of_numpy

if TYPE_CHECKING:
    from numpy.linalg import *  # noqa: F403  # all of its names are offered here, too

__all__ = list(_linalg.__all__)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _of_numpy(getattr(_linalg, name), __name__)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
