"""Compiles, loads and runs graphs; computes in Python the operations that native code calls back for.

The source is written by `emit.py`; `native.py` puts all of this off until a graph is called.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import Error, RunError
from ...ir.control import Graph
from ...ir.types import DTYPES, Type
from ...runtime import blas, library, threads
from ...runtime.calling import Given, LeafType, callable_of, failure, glue
from ...runtime.compiling import cache
from ...runtime.shared import SHARED
from ..effort import at_most
from .calls import linear
from .calls.failing import ERRORS
from .emit import NAME, OBJECTS, PRELUDE, Text, emit
from .unit import Hosted

_COMPUTE = ctypes.CFUNCTYPE(*SHARED.callback("HostOperations"))
_FAILED = threading.local()
_LONGEST = 9e9  # seconds, of which the nanoseconds fit 64 bits
_SAVED = float(SHARED.constant("kSavedGigabytes"))


def most_saved() -> int:
    """The most bytes of residuals that a loop may save, and of what a call may have on its heap: `DYNAGRAD_SAVED_GB`,
    read as functions are compiled, or 2 GB.

    >>> most_saved() > 0
    True
    """
    named = os.environ.get("DYNAGRAD_SAVED_GB", "").strip()
    try:
        wished = float(named) if named else _SAVED
    except ValueError:
        wished = 0.0
    if not 0.001 <= wished <= 65536.0:
        raise Error(f"DYNAGRAD_SAVED_GB should be a number of gigabytes, such as 8 or 0.5, and is {named!r}")
    return int(wished * 2**30)


def array_at(address: int, type: Type) -> Any:
    """A view of the array at an address; of a single number, an array of no dimension."""
    dtype = np.dtype(DTYPES[type.kind])
    if not type.size:
        return np.empty(type.shape, dtype)
    memory = (ctypes.c_char * (type.size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(type.shape)  # type: ignore[call-overload]  # what is known of it above is more than its type says


def _compute(hosted: Hosted, arguments: Any, result: int) -> None:
    given = []
    for k, type in enumerate(hosted.arguments):
        x = array_at(arguments[k], type)
        given.append(x.copy() if type.shape else x.item())
    operation = hosted.operation
    found = (operation.array if operation.array and hosted.result.shape else operation.value)(*given)
    if hosted.result.size:
        array_at(result, hosted.result)[...] = found


def attach(loaded: library.Library, text: Text, timeout: float | None = None) -> Given | None:
    """Connects a library with BLAS, threads and limits; the addresses that each call of the graph takes. `timeout` is
    the seconds that a call may take, where the text is of calls that are limited."""
    if text.uses & linear.RULES.keys():
        blas.attach(loaded)
    if "parallel" in text.uses:
        threads.attach(loaded)
    if text.saves or "heap" in text.uses:
        loaded.shared("dg_most_saved")(most_saved())
    if not text.addresses:
        return None
    arrays = [np.ascontiguousarray(node.attribute) for node in text.arrays]
    limit = [] if timeout is None else [np.array(int(min(timeout, _LONGEST) * 1e9))]
    return Given([_COMPUTE(_computing(text.hosted)) if text.hosted else None, *limit, *arrays])


def _computing(hosted: Sequence[Hosted]) -> Callable[[int, Any, int], bool]:
    """The callback that computes the operations left to Python."""

    def compute(which: int, arguments: Any, result: int) -> bool:
        try:
            _compute(hosted[which], arguments, result)
            return True
        except BaseException as error:
            _FAILED.error = error
            return False

    return compute


def failed(status: int, message: str, name: str = "") -> Any:
    """Raises the exception of an operation that Python computed, or the one for a status; `name`: the function."""
    error = getattr(_FAILED, "error", None)
    if error is not None:
        _FAILED.error = None
        raise error
    if status in blas.FAILURES:
        raise blas.FAILURES[status](message)
    if status in ERRORS:
        raise ERRORS[status](f"{name}: {message}" if name and ERRORS[status] is RunError else message)
    failure(status, message, name)


@dataclass(frozen=True)
class Runner:
    """A compiled graph, as a function from its inputs to a tuple of its outputs."""

    text: Text
    call: Callable[..., Any]

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self.call(*arguments)
        return found


def load(graph: Graph, *, optimise: int = 3) -> Runner:
    """Compiles a graph, with this level of optimisation or the lower one that DYNAGRAD_OPTIMISE names.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> load(Graph((x,), (x * x,)))(3.0)
    (9.0,)
    """
    text = emit(graph)
    level = at_most(optimise)
    inputs = [LeafType(n.type.kind, n.shape) for n in graph.inputs]  # type: ignore[arg-type]  # the graph takes and returns these kinds alone
    outputs = [LeafType(n.type.kind, n.shape) for n in graph.outputs]  # type: ignore[arg-type]  # the graph takes and returns these kinds alone
    whole = text.source + glue(NAME, inputs, outputs, text.addresses)
    built = cache.build(whole, optimise=level, flags=text.flags, long=text.long, objects=OBJECTS, prelude=PRELUDE)
    made = library.lent(built)
    return Runner(text, callable_of(made, NAME, inputs, outputs, failed=failed, given=attach(made, text)))


def run(graph: Graph, arrays: Sequence[Any], *, optimise: int = 3) -> tuple[Any, ...]:
    """The outputs of a graph for these inputs, computed by native code.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> run(Graph((x,), (x + 1.0,)), [3.0])
    (4.0,)
    """
    return load(graph, optimise=optimise)(*arrays)
