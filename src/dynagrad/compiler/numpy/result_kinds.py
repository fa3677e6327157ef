"""Type inference for results of numpy (reals, whole numbers or truth values), and integer kernels.

The handlers that `calls.py` runs compute with reals, in which whole numbers below 2**53 are exact. Here is the kind
that a result must have, and what has to be computed with whole numbers themselves. Where kinds depend on the version of
numpy, numpy is asked.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...eager.numpy.functions import dtype_given, name_of
from ...errors import Error
from ...ir import Node
from ...ir.operation import apply
from ...ir.ops import integers
from ...ir.ops import scalars as ops
from ...ir.types import Type
from ..evaluate.values import type_of


def _named(names: str) -> frozenset[Any]:
    """The functions of numpy with these names, without those that this version lacks."""
    found = []
    for name in names.split():
        with contextlib.suppress(AttributeError):
            found.append(operator.attrgetter(name)(np))
    return frozenset(found)


_MOVES = _named(
    "reshape transpose permute_dims matrix_transpose linalg.matrix_transpose ravel concatenate concat stack hstack "
    "vstack row_stack dstack column_stack flip flipud fliplr rot90 roll tile repeat sort broadcast_to tril triu "
    "moveaxis rollaxis squeeze expand_dims swapaxes split array_split hsplit vsplit dsplit diag diagflat diagonal "
    "linalg.diagonal pad max min amax amin delete nan_to_num round around take take_along_axis partition block unstack "
    "nanmax nanmin lib.stride_tricks.sliding_window_view"
)
EACH = _named("atleast_1d atleast_2d atleast_3d meshgrid")
"""Functions that return one array for each argument."""
_COUNTS = _named(
    "vander nansum nanprod nancumsum nancumprod sum prod cumsum cumprod cumulative_sum cumulative_prod trace "
    "linalg.trace"
)
_PRODUCTS = _named(
    "matmul linalg.matmul dot inner outer linalg.outer vdot vecdot linalg.vecdot tensordot linalg.tensordot kron "
    "append polyval convolve correlate"
)
_ON_WHOLE = _named("clip ptp diff ediff1d cross linalg.cross insert choose")
_SUBTRACTS = _named("diff ediff1d ptp cross linalg.cross")
_AREAS = _named("trapezoid trapz")
_ORDER = ("boolean", "integer", "real")
_DTYPES: dict[str, Any] = {"integer": np.int64, "boolean": np.bool_, "real": np.float64}


def kind_of_result(function: Any, args: Sequence[Any], options: dict[str, Any]) -> str | None:
    """The kind of a result that was computed in reals and is to be converted; None if it stays real."""
    if dtype_given(function, args, options) is not None:
        return None
    operands: Sequence[Any]
    if function in _MOVES | _COUNTS | EACH or (function is np.linalg.matrix_power and args[1] >= 0):
        operands = args[:1]
    elif function in (np.compress, np.extract):
        operands = args[1:2]
    elif function is np.linalg.multi_dot:
        operands = args[0]
    elif function in _PRODUCTS:
        operands = args[:2]
        if any(isinstance(x, list | tuple) and not x for x in operands):  # an empty list is an array of reals
            return None
    elif function is np.einsum:
        operands = args[1:] if isinstance(args[0], str) else args[: len(args) // 2 * 2 : 2]
    elif function in _AREAS and any(t.kind == "boolean" for x in [*args, *options.values()] for t in _types(x)):
        raise Error(f"{name_of(function)} does not take truth values; multiply them by 1.0")
    elif function in _ON_WHOLE:
        operands = [*args, *options.values()]
    elif isinstance(function, np.ufunc):
        highest = [max((t.kind for t in _types(x)), key=_ORDER.index, default="real") for x in args]
        return None if "real" in highest else _kind_by_numpy(function, tuple(highest))
    else:
        return None
    kinds = {t.kind for x in operands for t in _types(x)}
    if not kinds or "real" in kinds:
        return None
    if "integer" in kinds or function in _COUNTS:
        return "integer"
    if function in (np.round, np.around):  # of truth values it is real
        return None
    if function in _SUBTRACTS:
        raise Error(f"{name_of(function)} does not take truth values; use np.logical_xor")
    return None if function in _ON_WHOLE else "boolean"


@functools.cache
def _kind_by_numpy(function: Any, kinds: tuple[str, ...]) -> str | None:
    """The kind that numpy computes from numbers of these kinds."""
    try:
        with np.errstate(all="ignore"):
            found = function(*(np.ones((), _DTYPES[kind]) for kind in kinds))
    except TypeError:
        of = "truth values" if "boolean" in kinds else "whole numbers"
        advice = "; use np.logical_xor and np.logical_not" if function in (np.subtract, np.negative) else ""
        raise Error(f"{name_of(function)} does not take {of}{advice}") from None
    kind = np.asarray(found[0] if isinstance(found, tuple) else found).dtype.kind
    return {"b": "boolean", "i": "integer", "u": "integer"}.get(kind)


def _types(x: Any) -> Iterator[Type]:
    t = type_of(x)
    if t is not None:
        yield t
    elif isinstance(x, tuple | list):
        for part in x:
            yield from _types(part)


# -- integer and boolean kernels ---------------------------------------------------------------------------------------


def _fmod(a: Node, b: Node) -> Any:
    """The remainder with the sign of the dividend; 0 for a division by 0, as in numpy."""
    rest = integers.remainder(integers.absolute(a), integers.absolute(b))
    return integers.where(a < 0, -rest, rest)


def _power(a: Node, b: Node) -> Any:
    """A power; repeated products where the exponent is static."""
    n = b.attribute if b.is_constant and not b.shape else None
    if not isinstance(n, int) or not 0 <= n <= _MOST:
        return apply(integers.power, a, b)
    found: Any = a if n else a * 0 + 1
    for _ in range(n - 1):
        found = found * a
    return found


_MOST = 62
_INTEGER_KERNELS: dict[Any, Callable[..., Any]] = {
    np.absolute: integers.absolute,
    np.negative: integers.negative,
    np.square: lambda a: a * a,
    np.power: _power,
    np.fmod: _fmod,
    np.divmod: lambda a, b: (a // b, a % b),
    np.maximum: integers.maximum,
    np.minimum: integers.minimum,
    np.fmax: integers.maximum,
    np.fmin: integers.minimum,
} | dict.fromkeys((np.floor, np.ceil, np.trunc, np.positive, np.conjugate), lambda a: a)
_BOOLEAN_KERNELS: dict[Any, Callable[..., Any]] = {
    np.maximum: ops.logical_or,
    np.minimum: ops.logical_and,
    np.fmax: ops.logical_or,
    np.fmin: ops.logical_and,
}


def on_integers(function: Any, nodes: Sequence[Node]) -> Any:
    """A ufunc computed in whole numbers or truth values; None where there is no kernel for these kinds."""
    kinds = tuple(n.type.kind for n in nodes)
    table = _BOOLEAN_KERNELS if "integer" not in kinds and function in _BOOLEAN_KERNELS else _INTEGER_KERNELS
    if "real" in kinds or function not in table or _kind_by_numpy(function, kinds) is None:
        return None
    return table[function](*(nodes if table is _BOOLEAN_KERNELS else (_as_integer(n) for n in nodes)))


def _as_integer(n: Node) -> Any:
    return integers.count_true(n) if n.type.kind == "boolean" else n
