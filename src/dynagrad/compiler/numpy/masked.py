"""Elements of an array under a dynamic mask: their reductions, and calls with them.

A reduction runs over the whole array with its neutral element where the mask is false. Elements can be assigned to
where the same mask chooses. All else would need their number, which is dynamic, and is refused.

Elementwise operations on them, and the elements themselves, are in `compiler/evaluate/masks.py`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...eager.numpy.functions import SUCCESSORS
from ...ir import Node
from ...ir.ops import scalars as ops
from ...ir.types import KINDS
from ..evaluate.masks import broadcast_mask, elementwise, mask_error, where
from ..evaluate.specialiser import Specialiser, primitive
from ..evaluate.values import HostFunction, Masked, as_type, unwrapped
from ..frontend.core import Primitive
from ..frontend.operators import PYTHON, UNARY

_ACCEPTING = frozenset(
    {*PYTHON, *UNARY, "setitem", "update_item", "setattr", "dict", "is", "is_not", "write_cell", "cell"}
)
"""Primitives that take masked elements."""


_NOT_OF_LISTS = frozenset({*PYTHON, *UNARY, "attribute", "getitem", "setitem", "update_item"}) - {"is", "is_not"}
"""Primitives that mean something else for lists."""


# -- reductions --------------------------------------------------------------------------------------------------------


def _filled(x: Masked, neutral: Any) -> Node:
    """The whole array, with a neutral element where the mask is false."""
    kind = x.values.type.kind
    other = {"integer": int, "boolean": bool, "real": float}[kind](neutral)
    return where(broadcast_mask(x.mask, x.values.shape), x.values, as_type(other, KINDS[kind]))


def _reduced_axes(x: Masked, axis: Any) -> Any:
    """The axes of the whole array that a reduction runs over."""
    rows = x.values.ndim - x.mask.ndim
    if axis is None:
        return None
    if axis == 0 or (axis == -1 and not rows):
        return tuple(range(x.mask.ndim))
    raise mask_error(x)


def _count(s: Specialiser, x: Masked, axis: Any = None) -> Any:
    """The number of masked numbers: all of them, or along the first axis."""
    rows = 1 if axis is not None else math.prod(x.values.shape[x.mask.ndim :])
    return s.call(PRIMITIVE["multiply"], [s.call(np.sum, [x.mask]), rows])


def _sum(s: Specialiser, x: Masked, axis: Any = None) -> Any:
    return s.call(np.sum, [_filled(x, 0), _reduced_axes(x, axis)])


def _prod(s: Specialiser, x: Masked, axis: Any = None) -> Any:
    return s.call(np.prod, [_filled(x, 1), _reduced_axes(x, axis)])


def _mean(s: Specialiser, x: Masked, axis: Any = None) -> Any:
    return s.call(PRIMITIVE["divide"], [_sum(s, x, axis), _count(s, x, axis)])


def _var(s: Specialiser, x: Masked, axis: Any = None, ddof: Any = 0) -> Any:
    apart = elementwise(lambda v, m: (v - m) ** 2, [x, _mean(s, x, axis)])
    return s.call(
        PRIMITIVE["divide"], [_sum(s, apart, axis), s.call(PRIMITIVE["subtract"], [_count(s, x, axis), ddof])]
    )


def _std(s: Specialiser, x: Masked, axis: Any = None, ddof: Any = 0) -> Any:
    return s.call(np.sqrt, [_var(s, x, axis, ddof)])


def _extreme(function: Any, least: float) -> Callable[..., Any]:
    def handler(s: Specialiser, x: Masked, axis: Any = None) -> Any:
        """NaN where the mask is false everywhere; numpy raises ValueError."""
        if x.values.type.kind != "real":
            raise mask_error(x)
        found = s.call(function, [_filled(x, least), _reduced_axes(x, axis)])
        return s.call(np.where, [s.call(np.any, [x.mask]), found, math.nan])

    return handler


def _any(s: Specialiser, x: Masked, axis: Any = None) -> Any:
    return s.call(np.any, [_filled(_as_truth(x), False), _reduced_axes(x, axis)])


def _all(s: Specialiser, x: Masked, axis: Any = None) -> Any:
    return s.call(np.all, [_filled(_as_truth(x), True), _reduced_axes(x, axis)])


def _as_truth(x: Masked) -> Masked:
    return x if x.values.type.kind == "boolean" else elementwise(lambda v: v != 0, [x])


def _dot(s: Specialiser, a: Any, b: Any) -> Any:
    for x in (a, b):
        if not isinstance(x, Masked) or x.values.ndim != x.mask.ndim:
            raise mask_error(a if isinstance(a, Masked) else b)
    return _sum(s, elementwise(PYTHON["multiply"][0], [a, b]))


def _norm(s: Specialiser, x: Masked) -> Any:
    return s.call(np.linalg.norm, [s.call(np.ravel, [_filled(x, 0)])])


def _length(s: Specialiser, x: Masked) -> Any:
    return _count(s, x, 0)


REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _sum,
    np.prod: _prod,
    np.mean: _mean,
    np.var: _var,
    np.std: _std,
    np.max: _extreme(np.max, -math.inf),
    np.min: _extreme(np.min, math.inf),
    np.any: _any,
    np.all: _all,
    np.dot: _dot,
    np.vdot: _dot,
    np.inner: _dot,
    np.linalg.norm: _norm,
    np.size: _count,
    np.count_nonzero: lambda s, x, axis=None: _sum(s, _as_truth(x), axis),
    len: _length,
}
_AS_NUMPY: dict[Any, Any] = {sum: np.sum, max: np.max, min: np.min, any: np.any, all: np.all, abs: np.absolute}
_ELEMENTWISE = frozenset({np.where, np.clip, np.round, np.isclose, np.nan_to_num, *SUCCESSORS})
_METHODS: dict[str, Any] = {
    name: getattr(np, name)
    for name in ("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "dot", "clip", "round")
}
PRIMITIVE = {name: Primitive(name) for name in PYTHON}


# -- calls -------------------------------------------------------------------------------------------------------------


@primitive("masked call")
def masked_call(s: Specialiser, function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """A call of a primitive or library function with masked elements among its arguments."""
    first = next(x for x in args if isinstance(x, Masked))
    if isinstance(function, Primitive):
        return _primitive(s, function, args, first)
    if function in (list, tuple) and len(args) == 1:
        return dataclasses.replace(first, listed=True)
    if function in (np.array, np.asarray) and len(args) == 1 and not named:
        return dataclasses.replace(first, listed=False)
    function = _AS_NUMPY.get(function, function) if len(args) == 1 else function
    reduction = REDUCTIONS.get(function)
    if reduction is not None:
        if function in (np.max, np.min, np.amax, np.amin):  # of no elements
            s.may_raise(ValueError)
        try:
            return reduction(s, *args, **named)
        except TypeError:
            raise mask_error(first) from None
    if isinstance(function, np.ufunc) or function in _ELEMENTWISE:
        return elementwise(lambda *xs: unwrapped(s.call(function, xs, named)), args)
    raise mask_error(first)


def _primitive(s: Specialiser, function: Primitive, args: Sequence[Any], first: Masked) -> Any:
    name = function.name
    if name in _NOT_OF_LISTS and any(isinstance(x, Masked) and x.listed for x in args):
        raise mask_error(first)
    if name == "attribute":
        return _attribute(s, first, args[1])
    if name == "matmul":
        return _dot(s, *args)
    if name == "getitem" and isinstance(args[0], Masked) and isinstance(args[1], Masked):
        x, test = args
        if test.mask is x.mask and test.values.type.kind == "boolean" and test.values.ndim == test.mask.ndim:
            return Masked(x.values, ops.logical_and(x.mask, test.values), x.at)
    if name == "update" and isinstance(args[1], Masked):
        raise s.error(
            "x[mask] is a copy, which is not changed in place in compiled functions; write y = y * 2 instead of y *= 2"
        )
    if name not in _ACCEPTING:
        raise mask_error(first)
    return s.apply(name, *args)


def _attribute(s: Specialiser, x: Masked, name: str) -> Any:
    if name == "dtype":
        return np.dtype({"real": "float64", "integer": "int64", "boolean": "bool"}[x.values.type.kind])
    if name == "size":
        return _count(s, x)
    if name == "copy":
        return HostFunction(("method", name), lambda s, captured, args, named: captured[0], (x,))
    if name not in _METHODS:
        raise mask_error(x)
    function = _METHODS[name]
    return HostFunction(
        ("method", name), lambda s, captured, args, named: masked_call(s, function, [captured[0], *args], named), (x,)
    )
