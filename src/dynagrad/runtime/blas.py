"""scipy's BLAS and LAPACK for compiled code: pointers to functions, taken from the capsules of its Cython interface.

scipy is optional. Without it, or where its functions do not take 32-bit integers as `dynagrad/graphs/linalg/blas.hpp`
expects, compiled code uses its own loops.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import numpy as np

from ..errors import NotDifferentiable
from .library import Library
from .shared import SHARED, numbers

_OUTCOMES = numbers("GraphOutcome")

FAILURES: dict[int, type[Exception]] = {
    _OUTCOMES.SINGULAR: np.linalg.LinAlgError,
    _OUTCOMES.NOT_POSITIVE: np.linalg.LinAlgError,
    _OUTCOMES.NOT_DIFFERENTIABLE: NotDifferentiable,
}
"""The exceptions for the statuses that linear algebra adds to those of `calling.py`."""

_BLAS = ("dgemm", "dgemv")  # the others are of LAPACK


Blas = SHARED.structure("Blas")
"""Pointers to functions of BLAS and LAPACK."""


@functools.cache
def table() -> Any:
    """The pointers for `dg_blas`, or None where there is no BLAS; the first call imports scipy.

    >>> table() is table()
    True
    """
    try:
        blas, lapack = (importlib.import_module(f"scipy.linalg.cython_{name}") for name in ("blas", "lapack"))
        found = {
            name: _pointer(blas if name in _BLAS else lapack, name, member.parameters)
            for name, member in SHARED.members("Blas").items()
        }
    except (ImportError, AttributeError, KeyError, ValueError):
        return None
    return None if None in found.values() else Blas(**found)


def _pointer(module: Any, name: str, count: int | None) -> int | None:
    """The address of a function; None if its signature is not the expected one."""
    capsule = module.__pyx_capi__[name]
    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    signature = name_of(capsule)
    arguments = signature.decode().partition("(")[2].rstrip(")").split(", ")
    allowed = all(a in ("char *", "int *") or a.endswith("_d *") for a in arguments)
    return pointer_of(capsule, signature) if allowed and len(arguments) == count else None


def attach(library: Library) -> bool:
    """Passes BLAS to a library whose source includes blas.hpp; returns whether there is one.

    >>> from dynagrad.runtime.compiling import cache
    >>> from dynagrad.runtime import library
    >>> attach(library.load(cache.build("#include <dynagrad/graphs/linalg/blas.hpp>"))) == (table() is not None)
    True
    """
    pointers = table()
    if pointers is None:
        return False
    library.shared("dg_blas")(ctypes.addressof(pointers))
    return True
