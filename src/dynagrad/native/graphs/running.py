"""Graphs compiled, loaded and called, the plain way: by `ctypes`. What operations leave to Python is computed here."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...graph.control import Graph
from ...graph.types import DTYPES, Type
from .. import blas, cache, library, parallel
from ..calling import Leaf, callable_of, glue
from .emit import NAME, Hosted, Text, emit, flags_of

_COMPUTE = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)
_FAILED = threading.local()


def array_at(address: int, type: Type) -> Any:
    """The array, or single number as an array without dimensions, at an address."""
    dtype = np.dtype(DTYPES[type.kind])
    if not type.size:
        return np.empty(type.shape, dtype)
    memory = (ctypes.c_char * (type.size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(type.shape)  # type: ignore[call-overload]


def _compute(hosted: Hosted, arguments: Any, result: int) -> None:
    given = []
    for k, type in enumerate(hosted.arguments):
        x = array_at(arguments[k], type)
        given.append(x.copy() if type.shape else x.item())
    found = hosted.operation.value(*given)
    if hosted.result.size:
        array_at(result, hosted.result)[...] = found


def attach(loaded: library.Library, text: Text) -> Any:
    """Gives a library what it needs of Python; the result is to be kept as long as the library is called."""
    if "blas" in text.uses:
        blas.attach(loaded)
    if "parallel" in text.uses:
        parallel.attach(loaded)
    if not text.hosted:
        return None

    def compute(which: int, arguments: Any, result: int) -> bool:
        try:
            _compute(text.hosted[which], arguments, result)
            return True
        except BaseException as error:
            _FAILED.error = error
            return False

    kept = _COMPUTE(compute)
    loaded.function("dg_host_operations", None, _COMPUTE)(kept)
    return kept


def failed(status: int, message: str) -> Any:
    """Raises what an operation raised, or what stands for the status."""
    from ..calling import failure

    error = getattr(_FAILED, "error", None)
    if error is not None:
        _FAILED.error = None
        raise error
    if status in blas.FAILURES:
        raise blas.FAILURES[status](message)
    failure(status, message)


@dataclass(frozen=True)
class Runner:
    """A compiled graph as a function of its inputs, to a tuple of its outputs."""

    text: Text
    call: Callable[..., Any]
    kept: Any = field(repr=False)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self.call(*arguments)
        return found


def load(graph: Graph, *, optimise: int = 3) -> Runner:
    """Compiles a graph.

    >>> from dynagrad.graph import variable
    >>> x = variable("x")
    >>> load(Graph((x,), (x * x,)))(3.0)
    (9.0,)
    """
    text = emit(graph)
    inputs = [Leaf(n.type.kind, n.shape) for n in graph.inputs]  # type: ignore[arg-type]
    outputs = [Leaf(n.type.kind, n.shape) for n in graph.outputs]  # type: ignore[arg-type]
    made = library.load(
        cache.build(text.source + glue(NAME, inputs, outputs), optimise=optimise, flags=flags_of(text.source))
    )
    kept = attach(made, text)
    return Runner(text, callable_of(made, NAME, inputs, outputs, failed=failed), kept)


def run(graph: Graph, arrays: Sequence[Any], *, optimise: int = 3) -> tuple[Any, ...]:
    """The outputs of a graph for these inputs, by native code.

    >>> from dynagrad.graph import variable
    >>> x = variable("x")
    >>> run(Graph((x,), (x + 1.0,)), [3.0])
    (4.0,)
    """
    return load(graph, optimise=optimise)(*arrays)
