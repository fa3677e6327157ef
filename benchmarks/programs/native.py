"""Hand-written C++ versions of the programs: built with the package's compiler and flags, called through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynagrad.runtime.compiling import cache

Array = npt.NDArray[np.float64]


class Native:
    """A function and its gradient. Arguments are numbers or one array, laid out one after the other as doubles."""

    def __init__(self, source: str) -> None:
        library = ctypes.CDLL(str(cache.build((Path(__file__).parent / source).read_text())))
        self._function, self._gradient = library.function, library.gradient
        self._function.restype = self._gradient.restype = ctypes.c_double

    @staticmethod
    def flat(arguments: Sequence[Any]) -> Array:
        return np.concatenate([np.ravel(a) for a in arguments]).astype(float)

    def function(self, arguments: Array) -> Callable[[], float]:
        """A call of the function that does nothing else."""
        return _call(self._function, arguments)

    def gradient(self, arguments: Array) -> tuple[Callable[[], float], Array]:
        """A call of the gradient that does nothing else, and the array that it writes to."""
        out = np.empty_like(arguments)
        return _call(self._gradient, arguments, out), out


def _call(function: Any, *arrays: Array) -> Callable[[], float]:
    """A call with the places of arrays, which live as long as the call does."""
    places = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

    def call(keep: tuple[Array, ...] = arrays) -> float:
        return float(function(*places))

    return call
