"""Which functions of numpy give whole numbers, or truth values, for such, and how they are computed.

What `numpy_calls.py` makes of numpy's functions is of reals, in which whole numbers below 2**53 are exact; here is what
kind the result is to have, and what is computed with whole numbers themselves. How numbers are told apart by kind is
numpy's affair, and it is asked where it differs from version to version.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ...graph import Node, integers
from ...graph import operations as ops
from ...graph.types import Type
from ..numpy_protocol import name_of
from .arrays import converted
from .values import type_of

_MOVES = frozenset(
    {np.reshape, np.transpose, np.ravel, np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack}
    | {np.flip, np.flipud, np.fliplr, np.rot90, np.roll, np.tile, np.repeat, np.sort, np.broadcast_to, np.tril, np.triu}
    | {np.moveaxis, np.squeeze, np.expand_dims, np.swapaxes, np.split, np.array_split, np.diag, np.diagonal, np.pad}
    | {np.atleast_1d, np.atleast_2d, np.atleast_3d, np.max, np.min, np.amax, np.amin}
    | {np.delete, np.nan_to_num, np.round, np.around, np.hsplit, np.vsplit, np.dsplit, np.rollaxis, np.partition}
    | {np.lib.stride_tricks.sliding_window_view, np.block}
)
_COUNTS = frozenset({np.sum, np.prod, np.cumsum, np.cumprod, np.trace})
_PRODUCTS = frozenset(
    {
        np.convolve,
        np.correlate,
        np.matmul,
        np.dot,
        np.inner,
        np.outer,
        np.vdot,
        np.tensordot,
        np.kron,
        np.append,
        np.polyval,
    }
    | ({np.vecdot} if hasattr(np, "vecdot") else set())
)
_ON_WHOLE: frozenset[Any] = frozenset(
    {np.clip, np.ptp, np.diff, np.cross, np.insert, np.choose, np.meshgrid, np.vander}
)
_SUBTRACTS: frozenset[Any] = frozenset({np.diff, np.ptp, np.cross})
_ORDER = ("boolean", "integer", "real")
_DTYPES: dict[str, Any] = {"integer": np.int64, "boolean": np.bool_, "real": np.float64}


def kind_of_result(function: Any, given: Sequence[Any], options: dict[str, Any]) -> str | None:
    """The kind of a result that is not real though it is computed so; None for reals."""
    if "dtype" in options:
        return None
    looked: Sequence[Any]
    if function in _MOVES | _COUNTS or (function is np.linalg.matrix_power and given[1] >= 0):
        looked = given[:1]
    elif function in _PRODUCTS:
        looked = given[:2]
    elif function is np.einsum:
        looked = given[1:]
    elif function in _ON_WHOLE:
        looked = [*given, *options.values()]
    elif isinstance(function, np.ufunc) or function is np.fix:
        highest = [max((t.kind for t in _types(x)), key=_ORDER.index, default="real") for x in given]
        return None if "real" in highest else _asked(function, tuple(highest))
    else:
        return None
    kinds = {t.kind for x in looked for t in _types(x)}
    if not kinds or "real" in kinds:
        return None
    if "integer" in kinds or function in _COUNTS:
        return "integer"
    if function in (np.round, np.around):  # of truth values it is real
        return None
    if function in _SUBTRACTS:
        raise Error(f"{name_of(function)} is not of truth values; np.logical_xor is")
    return None if function in _ON_WHOLE else "boolean"


@functools.cache
def _asked(function: Any, kinds: tuple[str, ...]) -> str | None:
    """What numpy makes of numbers of these kinds."""
    try:
        with np.errstate(all="ignore"):
            found = function(*(np.ones((), _DTYPES[kind]) for kind in kinds))
    except TypeError:
        of = "truth values" if "boolean" in kinds else "whole numbers"
        instead = "; np.logical_xor and np.logical_not are" if function in (np.subtract, np.negative) else ""
        raise Error(f"{name_of(function)} is not of {of}{instead}") from None
    kind = np.asarray(found[0] if isinstance(found, tuple) else found).dtype.kind
    return {"b": "boolean", "i": "integer", "u": "integer"}.get(kind)


def _types(x: Any) -> Iterator[Type]:
    t = type_of(x)
    if t is not None:
        yield t
    elif isinstance(x, tuple | list):
        for part in x:
            yield from _types(part)


def of_kind(x: Any, kind: str) -> Any:
    """A result, or several, as whole numbers or truth values."""
    if isinstance(x, tuple | list):
        return type(x)(of_kind(part, kind) for part in x)
    if not isinstance(x, Node) or x.type.kind == kind:
        return x
    if kind == "boolean":
        return x != (0 if x.type.kind == "integer" else 0.0)
    return converted(x, np.int64)


# -- with whole numbers themselves -------------------------------------------------------------------------------------


def _fmod(a: Node, b: Node) -> Any:
    """The remainder with the sign of the first number; 0 for a division by 0, as numpy has it."""
    rest = integers.remainder(integers.absolute(a), integers.absolute(b))
    return integers.where(a < 0, -rest, rest)


def _power(a: Node, b: Node) -> Any:
    """By products, for an exponent that is known."""
    n = b.attribute if b.is_constant and not b.shape else None
    if not isinstance(n, int) or not 0 <= n <= _MOST:
        return None
    found: Any = a if n else a * 0 + 1
    for _ in range(n - 1):
        found = found * a
    return found


_MOST = 62
_OF_WHOLE: dict[Any, Callable[..., Any]] = {
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
_OF_TRUTHS: dict[Any, Callable[..., Any]] = {
    np.maximum: ops.logical_or,
    np.minimum: ops.logical_and,
    np.fmax: ops.logical_or,
    np.fmin: ops.logical_and,
}


def of_whole(function: Any, nodes: Sequence[Node]) -> Any:
    """A function of numpy on whole numbers and truth values, computed with these; None where it is with reals."""
    kinds = tuple(n.type.kind for n in nodes)
    table = _OF_TRUTHS if "integer" not in kinds and function in _OF_TRUTHS else _OF_WHOLE
    if "real" in kinds or function not in table or _asked(function, kinds) is None:
        return None
    return table[function](*(nodes if table is _OF_TRUTHS else (_whole(n) for n in nodes)))


def _whole(n: Node) -> Any:
    return integers.count_true(n) if n.type.kind == "boolean" else n
