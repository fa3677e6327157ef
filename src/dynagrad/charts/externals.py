"""External predicates: callbacks from native code to the Python functions that compute their items' values.

A function is called once for each item of a chart. An exception cannot pass through native code: it is kept, the run
ends, and whoever started it raises the exception.

Functions of values (`:- function`) are none of this: they are compiled into the rules.
"""

from __future__ import annotations

import ctypes
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import Error, ValueRangeError, counted, shown
from ..facts.values import FORBIDDEN
from ..semirings import Scale
from .binding.context import ProgramContext
from .binding.decoding import arguments
from .binding.loading import Prepared

NATIVE_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__


def connect(context: ProgramContext, prepared: Prepared, raised: list[BaseException]) -> None:
    """Connects a native chart with the functions of its program; what they raise is appended to `raised`."""
    for key, function in context.externals.items():
        table = prepared.compiled.plan.tables.get(key)
        if table is None:
            continue
        if isinstance(function, NATIVE_FUNCTION):
            if any(prepared.encoding.domains[d].kind != "int" for d in table.domains):
                raise Error(f"the function behind {key} is native, so all arguments of {key} have to be integers")
            # the context, which the chart holds, keeps the function alive
            address = ctypes.cast(function, ctypes.c_void_p)
            prepared.chart.engine.chart_external(prepared.chart.pointer, table.number, address)
        else:
            _check_arguments(key, function, context.rules.predicates[key].arity)
            prepared.chart.set_external(table.number, _callback(context, prepared, key, function, raised))


def _check_arguments(key: str, function: Callable[..., Any], arity: int) -> None:
    """Raises Error for a function that does not take as many arguments as its predicate has."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some that are not written in Python do not say what they take
        return
    try:
        signature.bind(*[None] * arity)
    except TypeError as problem:
        called = f"the function behind {key} is called with {counted(arity, 'argument')}"
        raise Error(f"{called}, those of the item, and takes {signature}: {problem}") from None


def _check_number(scale: Scale, value: Any) -> None:
    """Raises ValueRangeError for what no fact of the semiring may have: NaN, and mostly infinities."""
    if value is None or scale.shape == "count" or (type(value) is float and math.isfinite(value)):
        return
    bad, allowed = FORBIDDEN[scale.finite]
    parts = value if isinstance(value, tuple) else (value,)
    numbers = np.concatenate([np.ravel(part) for part in parts]).astype(np.float64)
    if bad(numbers).any():
        nan = np.isnan(numbers).any()
        raise ValueRangeError("NaN is no value of an item" if nan else f"{shown(value)} is not possible; {allowed}")


def _callback(
    context: ProgramContext, prepared: Prepared, key: str, function: Callable[..., Any], raised: list[BaseException]
) -> Callable[[Any, Any], int]:
    """A function as native code calls it: 1 with the words of a value, 0 for an item not derived, -1 to end the run."""
    scale, known = context.scale, dict[tuple[int, ...], Any]()
    arity = context.rules.predicates[key].arity

    def answer(given: Any, words: Any) -> int:
        try:
            codes = tuple(given[i] for i in range(arity))
            if codes not in known:
                asked = arguments(prepared, key, codes)
                value = function(*asked)
                if isinstance(value, bool | np.bool_):
                    value = scale.one if value else scale.zero
                try:
                    known[codes] = None if value is None else scale.word_of(value)
                    _check_number(scale, value)
                except Error as problem:
                    item = f"{key.rsplit('/', 1)[0]}({', '.join(map(shown, asked))})"
                    raise type(problem)(f"{item}, of the function behind {key}: {problem}") from None
            found = known[codes]
            if found is None:
                return 0
            for i in range(scale.width):
                words[i] = int(found[i])
            return 1
        except BaseException as error:
            raised.append(error)
            return -1

    return answer
