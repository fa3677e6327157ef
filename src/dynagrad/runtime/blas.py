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

FAILURES: dict[int, type[Exception]] = {64: np.linalg.LinAlgError, 65: np.linalg.LinAlgError, 66: NotDifferentiable}
"""The exceptions for the statuses that blas.hpp adds to those of body.hpp."""

# In the order of `Blas` in blas.hpp: the module, the function, and how many arguments it has.
_FUNCTIONS = (
    ("cython_blas", "dgemm", 13),
    ("cython_blas", "dgemv", 11),
    ("cython_lapack", "dgetrf", 6),
    ("cython_lapack", "dgetrs", 9),
    ("cython_lapack", "dgetri", 7),
    ("cython_lapack", "dpotrf", 5),
)


@functools.cache
def table() -> Any:
    """The pointers as an array for `dg_blas`, or None where there is no BLAS; the first call imports scipy.

    >>> table() is table()
    True
    """
    try:
        found = [_pointer(importlib.import_module(f"scipy.linalg.{m}"), name, count) for m, name, count in _FUNCTIONS]
    except (ImportError, AttributeError, KeyError, ValueError):
        return None
    return None if None in found else (ctypes.c_void_p * len(found))(*found)


def _pointer(module: Any, name: str, count: int) -> int | None:
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
    take = library.function("dg_blas", ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64)
    return bool(take(ctypes.addressof(pointers), ctypes.sizeof(pointers)))
