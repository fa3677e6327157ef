"""The methods of ufuncs on numbers with derivatives: `reduce`, `accumulate`, `reduceat`, `outer` and `at`.

Where a function of numpy does the same (`np.sum`), it is called. Other associative ufuncs are reduced by halves, so
that a tape holds few operations, and all others from the first element to the last, as in numpy. `at` writes to an
array, and plain arrays cannot hold derivatives; `eager/mutation/writing.py` has it for arrays that can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error, counted
from ...ir.ops.arrays import shape_of
from ..kinds import plain, real_part
from ..numbers import Number
from ..perturbations import place
from .exponentials import logsumexp
from .functions import METHODS, axes_of, elements, item_of, rank, whole

Handler = Callable[..., Any]

REDUCTIONS: dict[Any, Handler] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
    np.logical_and: np.all,
    np.logical_or: np.any,
}
"""The function that is a ufunc's `reduce`; it takes axes and `keepdims`."""
ACCUMULATIONS: dict[Any, Handler] = {np.add: np.cumsum, np.multiply: np.cumprod}
GROUPED: frozenset[Any] = frozenset(
    {np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logaddexp2, np.hypot}
    | {np.logical_and, np.logical_or, np.logical_xor, np.bitwise_and, np.bitwise_or, np.bitwise_xor}
    | {np.gcd, np.lcm}
)
"""Associative ufuncs besides addition and multiplication."""
MOST = 2000  # the most steps of a sequential method in a compiled function, where each is an operation


def _check(ufunc: Any, method: str) -> None:
    if ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
        raise ValueError(f"{method} only supported for binary functions")


def _refused(ufunc: Any, n: int, x: Any, method: str) -> None:
    if n > MOST and hasattr(type(real_part(x)), "__apply_operation__"):
        raise Error(
            f"np.{ufunc.__name__}.{method} of {counted(n, 'element')}, one after the other, would be compiled to "
            "as many "
            "operations; write a for loop"
        )


def _truths(ufunc: Any, a: Any) -> Any:
    """What a method of a ufunc combines: of the logical ones, truth values, also where there is one element alone."""
    return np.not_equal(a, 0) if ufunc in _LOGICAL else a


_LOGICAL = frozenset({np.logical_and, np.logical_or, np.logical_xor})


def _part(x: Any, index: Any) -> Any:
    """`x[index]`, where integers of a graph stay integers."""
    return x[index] if hasattr(type(x), "__apply_operation__") and not isinstance(x, Number) else item_of(x, index)


# -- reduce ------------------------------------------------------------------------------------------------------------


def reduce(
    ufunc: Any, a: Any, axis: Any = 0, *, keepdims: Any = False, initial: Any = np._NoValue, where: Any = True
) -> Any:
    """`ufunc.reduce(a, axis)`.

    >>> import dynagrad as dg
    >>> dg.grad(lambda x: np.divide.reduce(x))(np.array([6.0, 2.0, 3.0]))
    array([ 0.16666667, -0.5       , -0.33333333])
    """
    _check(ufunc, "reduce")
    a, keepdims = _truths(ufunc, plain(a)), bool(keepdims)
    axes = axes_of(axis, rank(a))
    started = initial is not np._NoValue and initial is not None
    if where is not True and where is not np._NoValue:
        if ufunc.identity is None and not (started and ufunc in GROUPED):
            raise ValueError(
                f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where mask one has to "
                "specify 'initial'"
            )
        a = np.where(np.broadcast_to(where, shape_of(a)), a, initial if ufunc.identity is None else ufunc.identity)
    if not elements(shape_of(a), axes) and ufunc.identity is None:
        if not started:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        rest = [1 if k in axes else n for k, n in enumerate(shape_of(a)) if keepdims or k not in axes]
        return np.broadcast_to(initial, rest)
    if started and ufunc not in GROUPED and ufunc not in REDUCTIONS:  # the first of all, which is not the same as last
        if len(axes) != 1:
            raise ValueError(f"reduction operation '{ufunc.__name__}' with an initial value is over one axis")
        start = np.broadcast_to(initial, [1 if k in axes else n for k, n in enumerate(shape_of(a))])
        a, started = np.concatenate([start, a], axes[0]), False
    if ufunc in REDUCTIONS:
        found = REDUCTIONS[ufunc](a, axes, keepdims=keepdims)
    else:
        found = _reduced(ufunc, a, axes)
        found = np.expand_dims(found, axes) if keepdims and axes else found
    return ufunc(initial, found) if started else found


def _reduced(ufunc: Any, a: Any, axes: tuple[int, ...]) -> Any:
    shape = shape_of(a)
    rest = tuple(k for k in range(len(shape)) if k not in axes)
    grouped = ufunc in GROUPED
    if len(axes) > 1 and not grouped:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
        )
    n = elements(shape, axes)
    front = np.reshape(np.transpose(a, axes + rest), (n, *(shape[k] for k in rest))) if shape else np.reshape(a, (1,))
    if not n:
        return np.full([shape[k] for k in rest], ufunc.identity)
    if ufunc is np.logaddexp:
        return logsumexp(front, axis=0)
    if ufunc is np.subtract:
        return np.sum(np.concatenate([_part(front, slice(1)), -_part(front, slice(1, None))]), 0)
    if grouped:
        while n > 1:
            half = n // 2
            pairs = ufunc(_part(front, slice(0, 2 * half, 2)), _part(front, slice(1, 2 * half, 2)))
            front = np.concatenate([pairs, _part(front, slice(2 * half, n))]) if n % 2 else pairs
            n -= half
        return _part(front, 0)
    _refused(ufunc, n, front, "reduce")
    found = _part(front, 0)
    for k in range(1, n):
        found = ufunc(found, _part(front, k))
    return found


# -- accumulate --------------------------------------------------------------------------------------------------------


def accumulate(ufunc: Any, a: Any, axis: int = 0) -> Any:
    """`ufunc.accumulate(a, axis)`.

    >>> import dynagrad as dg
    >>> dg.grad(lambda x: np.sum(np.maximum.accumulate(x)))(np.array([2.0, 1.0, 3.0]))
    array([2., 0., 1.])
    """
    _check(ufunc, "accumulate")
    a = plain(a)
    if not rank(a):
        raise TypeError("cannot accumulate on a scalar")
    (along,) = axes_of(axis, rank(a))
    if ufunc in ACCUMULATIONS:
        return ACCUMULATIONS[ufunc](a, along)
    front = np.moveaxis(_truths(ufunc, a), along, 0)
    n = shape_of(front)[0]
    if ufunc is np.subtract and n:
        front = np.cumsum(np.concatenate([_part(front, slice(1)), -_part(front, slice(1, None))]), 0)
    elif ufunc in GROUPED:
        reach = 1
        while reach < n:  # recursive doubling: each element combines the last `reach` elements
            later = ufunc(_part(front, slice(0, n - reach)), _part(front, slice(reach, n)))
            front = np.concatenate([_part(front, slice(0, reach)), later])
            reach *= 2
    elif n:
        _refused(ufunc, n, front, "accumulate")
        parts = [_part(front, 0)]
        for k in range(1, n):
            parts.append(ufunc(parts[-1], _part(front, k)))
        front = np.stack(parts)
    return np.moveaxis(front, 0, along)


# -- the others --------------------------------------------------------------------------------------------------------


def outer(ufunc: Any, a: Any, b: Any) -> Any:
    """`ufunc.outer(a, b)`: every pair of elements."""
    if ufunc.nin != 2 or ufunc.signature is not None:
        raise ValueError("outer only supported for binary functions")
    a, b = plain(a), plain(b)
    return ufunc(np.reshape(a, shape_of(a) + (1,) * rank(b)) if rank(b) else a, b)


def reduceat(ufunc: Any, a: Any, indices: Any, axis: int = 0) -> Any:
    """`ufunc.reduceat(a, indices, axis)`: a reduction from each index to the next."""
    _check(ufunc, "reduceat")
    a = plain(a)
    (along,) = axes_of(axis, rank(a))
    front = np.moveaxis(_truths(ufunc, a), along, 0)
    starts = [whole(f"np.{ufunc.__name__}.reduceat", "an index", i) for i in np.ravel(indices)]
    n = shape_of(front)[0]
    for i in starts:
        if not 0 <= i < n:
            raise IndexError(f"index {i} out-of-bounds in {ufunc.__name__}.reduceat [0, {n})")
    ends = [*starts[1:], n]
    parts = [
        reduce(ufunc, _part(front, slice(i, end))) if i < end else _part(front, i)
        for i, end in zip(starts, ends, strict=True)
    ]
    return np.moveaxis(np.stack(parts), 0, along) if parts else np.moveaxis(_part(front, slice(0)), 0, along)


def at(ufunc: Any, a: Any, indices: Any, *values: Any) -> Any:
    """`ufunc.at(a, indices, values)` on a plain array, which raises; arrays of `dynagrad.numpy` do it themselves."""
    sign = {np.add: "+", np.subtract: "-"}.get(ufunc)
    advice = f", or write a {sign} np.bincount(indices, weights=b, minlength=len(a))" if sign else ""
    raise Error(
        f"np.{ufunc.__name__}.at writes to a plain array, which cannot hold derivatives; make the array with "
        f"dynagrad.numpy{advice}{place()}"
    )


METHODS.update(reduce=reduce, accumulate=accumulate, outer=outer, reduceat=reduceat, at=at)
