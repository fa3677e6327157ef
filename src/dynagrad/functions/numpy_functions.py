"""What numpy's functions do with numbers: a handler for each, made of operations.

Handlers take the arguments of the numpy function of their name, of which some are numbers, others arrays, floats or
lists. Those of products and linear algebra are in `numpy_linalg.py`. How numpy gets here is in `numpy_protocol.py`,
which also turns away options that a handler does not take.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import Error
from ..graph import arrays, reductions
from ..graph import operations as ops
from ..graph.arrays import shape_of
from ..graph.families import sinc
from ..graph.operation import Operation
from .applying import lift
from .numbers import Number, as_element, plain, real_part
from .passes import place

Handler = Callable[..., Any]

FUNCTIONS: dict[Any, Handler] = {}
"""The handler of a numpy function."""
TAKES: dict[Any, frozenset[str]] = {}
"""The names of the arguments of each handler."""
POSITIONAL: dict[Any, int | None] = {}
"""How many of its arguments it takes by their places; None for any number."""


_PLACED, _REST = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL


def implements(*names: str) -> Callable[[Handler], Handler]:
    """Enter a handler for numpy's functions of these names, as far as this numpy has them."""

    def enter(handler: Handler) -> Handler:
        for name in names:
            try:
                function = operator.attrgetter(name)(np)
            except AttributeError:
                continue
            FUNCTIONS[function] = handler
            parameters = inspect.signature(handler).parameters
            kinds = [p.kind for p in parameters.values()]
            TAKES[function] = frozenset(parameters)
            POSITIONAL[function] = None if _REST in kinds else sum(kind is _PLACED for kind in kinds)
        return handler

    return enter


# -- arguments ---------------------------------------------------------------------------------------------------------


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as numbers from 0; None is all of them."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple | list):
        return (_axis(axis, ndim),)
    found = tuple(_axis(a, ndim) for a in axis)
    if len(set(found)) < len(found):
        raise ValueError("an axis is named twice")
    return found


def _axis(axis: Any, ndim: int) -> int:
    i = operator.index(axis)
    if not -ndim <= i < ndim:
        raise np.exceptions.AxisError(i, ndim)
    return i % ndim


def whole(name: str, what: str, x: Any) -> int:
    """An argument that says how many there are, or where, as a whole number that is known.

    >>> whole("np.linspace", "num", np.int64(3))
    3
    """
    if isinstance(x, Number) or hasattr(type(x), "__apply_operation__"):
        known = "no number with derivatives" if isinstance(x, Number) else "known when the function is compiled"
        raise Error(f"{name}: {what} is a whole number, and should be {known}{place()}")
    return operator.index(x)


def rank(x: Any) -> int:
    """The number of axes."""
    return len(shape_of(x))


def elements(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many elements there are along axes."""
    return math.prod(shape[i] for i in axes)


# -- reductions --------------------------------------------------------------------------------------------------------


@implements("sum")
def _sum(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    return lift(reductions.total(axes_of(axis, rank(a)), bool(keepdims)), (a,))


@implements("prod")
def _prod(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    return lift(reductions.product(axes_of(axis, rank(a)), bool(keepdims)), (a,))


@implements("max", "amax")
def _max(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    return lift(reductions.extreme(True, axes_of(axis, rank(a)), bool(keepdims)), (a,))


@implements("min", "amin")
def _min(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    return lift(reductions.extreme(False, axes_of(axis, rank(a)), bool(keepdims)), (a,))


@implements("ptp")
def _ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _max(a, axis, keepdims=keepdims) - _min(a, axis, keepdims=keepdims)


@implements("mean")
def _mean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    shape = shape_of(a)
    axes = axes_of(axis, len(shape))
    total = lift(reductions.total(axes, bool(keepdims)), (a,))
    return lift(ops.divide, (total, float(elements(shape, axes))))


@implements("average")
def _average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    if weights is None:
        return _mean(a, axis, keepdims=keepdims)
    a, weights = plain(a), plain(weights)
    if shape_of(weights) != shape_of(a):
        weights = _weights_along(axis, shape_of(a), weights)
    both = lift(ops.multiply, (a, weights))
    whole = lift(arrays.broadcast_to(shape_of(both)), (weights,))
    return _sum(both, axis, keepdims=keepdims) / _sum(whole, axis, keepdims=keepdims)


def _weights_along(axis: Any, shape: tuple[int, ...], weights: Any) -> Any:
    """Weights of some axes, in the order in which these are named, as they stand among all axes."""
    if axis is None:
        raise TypeError("np.average: the axis must be given where weights have another shape")
    axes = axes_of(axis, len(shape))
    if shape_of(weights) != tuple(shape[i] for i in axes):
        raise ValueError("np.average: the weights have another shape than the axes that they are for")
    inside = _transpose(weights, [int(i) for i in np.argsort(axes)])
    return _reshape(inside, tuple(n if i in axes else 1 for i, n in enumerate(shape)))


@implements("var")
def _var(a: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False) -> Any:
    a = plain(a)
    count = elements(shape_of(a), axes_of(axis, rank(a))) - (ddof if correction is None else correction)
    apart = lift(ops.subtract, (a, _mean(a, axis, keepdims=True)))
    return lift(ops.divide, (_sum(lift(ops.multiply, (apart, apart)), axis, keepdims=keepdims), float(max(count, 0))))


@implements("std")
def _std(a: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False) -> Any:
    a = plain(a)
    found = _var(a, axis, ddof=ddof, correction=correction, keepdims=keepdims)
    if elements(shape_of(a), axes_of(axis, rank(a))) == 1:
        return found  # 0 whatever the number is, so the root has no kink
    return lift(ops.sqrt, (found,))


@implements("cumsum")
def _cumsum(a: Any, axis: Any = None) -> Any:
    a = _ravel(a) if axis is None else plain(a)
    return lift(reductions.cumsum(_axis(axis or 0, rank(a))), (a,))


@implements("cumprod")
def _cumprod(a: Any, axis: Any = None) -> Any:
    a = _ravel(a) if axis is None else plain(a)
    return lift(reductions.cumprod(_axis(axis or 0, rank(a))), (a,))


def _cumulative(name: str, function: Handler, neutral: float) -> None:
    @implements(name)
    def handler(x: Any, *, axis: int | None = None, include_initial: bool = False) -> Any:
        x = plain(x)
        if axis is None and rank(x) != 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        along = _axis(0 if axis is None else axis, rank(x))
        found = function(x, along)
        if not include_initial:
            return found
        shape = shape_of(x)
        return _concatenate([np.full((*shape[:along], 1, *shape[along + 1 :]), neutral), found], along)


_cumulative("cumulative_sum", _cumsum, 0.0)
_cumulative("cumulative_prod", _cumprod, 1.0)


@implements("diff")
def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    a = plain(a)
    axis = _axis(axis, rank(a))
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    for _ in range(min(n, shape_of(a)[axis])):
        a = lift(ops.subtract, (lift(arrays.cut(axis, 1, None), (a,)), lift(arrays.cut(axis, 0, -1), (a,))))
    return a


@implements("ediff1d")
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    ends = ([] if x is None else [_ravel(x)] for x in (to_begin, to_end))
    before, after = ends
    return _concatenate([*before, _diff(_ravel(ary)), *after])


# -- shapes ------------------------------------------------------------------------------------------------------------


@implements("reshape")
def _reshape(a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None) -> Any:
    a = plain(a)
    wanted = newshape if shape is None else shape
    wanted = tuple(map(operator.index, wanted)) if isinstance(wanted, tuple | list) else (operator.index(wanted),)
    if order == "F":
        return _transpose(_reshape(_transpose(a), wanted[::-1]))
    if order not in ("C", "A", "K") or (order != "C" and rank(a) > 1):
        raise Error(
            f"np.reshape: order={order!r} goes by how an array lies in memory, which numbers with derivatives do not "
            f"keep; there are 'C' and 'F'{place()}"
        )
    if -1 in wanted:
        known = math.prod(n for n in wanted if n != -1)
        size = math.prod(shape_of(a))
        if wanted.count(-1) > 1 or not known or size % known:
            raise ValueError(f"cannot reshape array of size {size} into shape {wanted}")
        wanted = tuple(size // known if n == -1 else n for n in wanted)
    return a if wanted == shape_of(a) else lift(arrays.reshape(wanted), (a,))


@implements("ravel")
def _ravel(a: Any, order: str = "C") -> Any:
    return _reshape(a, -1, order)


@implements("transpose", "permute_dims")
def _transpose(a: Any, axes: Any = None) -> Any:
    a = plain(a)
    n = rank(a)
    order = tuple(range(n))[::-1] if axes is None else axes_of(tuple(axes), n)
    if len(order) != n:
        raise ValueError("axes don't match array")
    return a if n < 2 and axes is None else lift(arrays.transpose(order), (a,))


@implements("swapaxes")
def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(rank(a)))
    i, j = _axis(axis1, len(order)), _axis(axis2, len(order))
    order[i], order[j] = order[j], order[i]
    return _transpose(a, order)


@implements("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(x: Any) -> Any:
    return _swapaxes(x, -1, -2)


@implements("moveaxis")
def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    n = rank(a)
    start, end = axes_of(source, n), axes_of(destination, n)
    order = [i for i in range(n) if i not in start]
    for at, axis in sorted(zip(end, start, strict=True)):
        order.insert(at, axis)
    return _transpose(a, order)


@implements("expand_dims")
def _expand_dims(a: Any, axis: Any) -> Any:
    a = plain(a)
    new = axes_of(axis, rank(a) + (len(axis) if isinstance(axis, tuple | list) else 1))
    return arrays.insert_axes(a, *new) if new else a


@implements("squeeze")
def _squeeze(a: Any, axis: Any = None) -> Any:
    shape = shape_of(a)
    gone = tuple(i for i, n in enumerate(shape) if n == 1) if axis is None else axes_of(axis, len(shape))
    if any(shape[i] != 1 for i in gone):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return _reshape(a, tuple(n for i, n in enumerate(shape) if i not in gone))


@implements("broadcast_to")
def _broadcast_to(array: Any, shape: Any) -> Any:
    wanted = tuple(map(operator.index, shape)) if isinstance(shape, tuple | list) else (operator.index(shape),)
    return lift(arrays.broadcast_to(wanted), (array,))


@implements("broadcast_arrays")
def _broadcast_arrays(*args: Any) -> Any:
    args = tuple(map(plain, args))
    shape = np.broadcast_shapes(*map(shape_of, args))
    return tuple(_broadcast_to(x, shape) for x in args)


@implements("atleast_1d")
def _atleast_1d(*arys: Any) -> Any:
    found = tuple(plain(x) if rank(plain(x)) else _reshape(x, (1,)) for x in arys)
    return found[0] if len(found) == 1 else found


@implements("ascontiguousarray")
def _ascontiguousarray(a: Any) -> Any:
    return _atleast_1d(a)


@implements("atleast_2d")
def _atleast_2d(*arys: Any) -> Any:
    found = tuple(plain(x) if rank(plain(x)) > 1 else _reshape(x, (1, -1)) for x in arys)
    return found[0] if len(found) == 1 else found


@implements("copy", "real", "asarray", "asanyarray", "real_if_close")
def _copy(a: Any) -> Any:
    return a


@implements("imag")
def _imag(val: Any) -> Any:
    return np.zeros(shape_of(val)) if shape_of(val) else 0.0


@implements("angle")
def _angle(z: Any, deg: bool = False) -> Any:
    """0 or half a turn, by the sign: that of -0.0 too, as in numpy."""
    x = plain(z)
    turned = lift(ops.copysign, (1.0, x)) < 0.0
    return lift(ops.where, (x == x, lift(ops.where, (turned, 180.0 if deg else math.pi, 0.0)), x))


def of_dtype(what: str, x: Any, dtype: Any) -> Any:
    """A number as one of another kind: whole numbers and truth values are steps of it, and have no derivatives."""
    wanted = np.dtype(dtype)
    if wanted == np.float64:
        return x
    if wanted.kind not in "biu":
        advice = "; leave the conversion out, or convert the result" if wanted.kind == "f" else ""
        raise Error(f"{what} is of float64, and cannot become {wanted}{advice}{place()}")
    return np.asarray(real_part(x)).astype(wanted)[()]


@implements("astype")
def _astype(x: Any, dtype: Any, *, copy: bool = True) -> Any:
    return of_dtype("a number with derivatives", x, dtype)


@implements("full_like")
def _full_like(a: Any, fill_value: Any) -> Any:
    shape = shape_of(plain(a))
    return _broadcast_to(fill_value, shape) if isinstance(fill_value, Number) else np.full(shape, float(fill_value))


# -- moving elements ---------------------------------------------------------------------------------------------------


@implements("flip")
def _flip(m: Any, axis: Any = None) -> Any:
    m = plain(m)
    axes = axes_of(axis, rank(m))
    return item_of(m, tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(rank(m))))


@implements("fliplr")
def _fliplr(m: Any) -> Any:
    return _flip(m, 1)


@implements("flipud")
def _flipud(m: Any) -> Any:
    return _flip(m, 0)


@implements("rot90")
def _rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    for _ in range(k % 4):
        m = _flip(_swapaxes(m, *axes), axes[0])
    return m


@implements("roll")
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    a = plain(a)
    if axis is None:
        return _reshape(_roll(_ravel(a), shift, 0), shape_of(a))
    for by, along in np.broadcast(shift, axis):  # an axis that is named twice is moved twice
        a = lift(arrays.roll(operator.index(by), _axis(along, rank(a))), (a,))
    return a


@implements("repeat")
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    a = _ravel(a) if axis is None else plain(a)
    along = _axis(axis or 0, rank(a))
    return _along(a, np.repeat(np.arange(shape_of(a)[along]), repeats), along)


def _along(a: Any, index: Any, axis: int) -> Any:
    return item_of(a, (*(slice(None),) * axis, index))


@implements("tile")
def _tile(A: Any, reps: Any) -> Any:
    a = plain(A)
    times = tuple(map(operator.index, reps)) if np.ndim(reps) else (operator.index(reps),)
    times = (1,) * (rank(a) - len(times)) + times
    shape = (1,) * (len(times) - rank(a)) + shape_of(a)
    spread = _reshape(a, tuple(n for m in shape for n in (1, m)))
    spread = _broadcast_to(spread, tuple(n for pair in zip(times, shape, strict=True) for n in pair))
    return _reshape(spread, tuple(k * m for k, m in zip(times, shape, strict=True)))


@implements("pad")
def _pad(array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0) -> Any:
    a = plain(array)
    widths = np.broadcast_to(np.asarray(pad_width), (rank(a), 2))
    if mode == "constant":
        edge = np.pad(np.zeros(shape_of(a)), widths, constant_values=constant_values)
        inside = tuple(slice(w, w + n) for (w, _), n in zip(widths.tolist(), shape_of(a), strict=True))
        return lift(ops.add, (lift(arrays.place(inside, edge.shape), (a,)), edge))
    if mode not in ("edge", "wrap", "reflect", "symmetric"):
        raise Error(f"np.pad: mode={mode!r} has no derivative here; there are constant, edge, wrap, reflect, symmetric")
    for axis, width in enumerate(widths.tolist()):
        a = _along(a, np.pad(np.arange(shape_of(a)[axis]), width, mode=mode), axis)
    return a


@implements("take")
def _take(a: Any, indices: Any, axis: Any = None) -> Any:
    a = _ravel(a) if axis is None else plain(a)
    return _along(a, np.asarray(real_part(indices), dtype=np.intp), _axis(axis or 0, rank(a)))


@implements("compress")
def _compress(condition: Any, a: Any, axis: Any = None) -> Any:
    return _take(a, np.flatnonzero(real_part(condition)), axis)


@implements("extract")
def _extract(condition: Any, arr: Any) -> Any:
    return _compress(np.ravel(real_part(condition)), arr)


@implements("delete")
def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    a = _ravel(arr) if axis is None else plain(arr)
    along = _axis(axis or 0, rank(a))
    return _along(a, np.delete(np.arange(shape_of(a)[along]), obj), along)


@implements("take_along_axis")
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    a = _ravel(arr) if axis is None else plain(arr)
    places, along = plain(real_part(indices)), _axis(0 if axis is None else axis, rank(a))
    if rank(a) != rank(places):
        raise ValueError("np.take_along_axis: the indices should have as many axes as the array")
    one = np.broadcast_shapes(*((*shape[:along], 1, *shape[along + 1 :]) for shape in map(shape_of, (a, places))))
    wide = [(*one[:along], shape_of(x)[along], *one[along + 1 :]) for x in (a, places)]
    a, places = (
        x if shape_of(x) == shape else _broadcast_to(x, shape) for x, shape in zip((a, places), wide, strict=True)
    )
    return lift(arrays.take_along(along), (a, places))


@implements("sort")
def _sort(a: Any, axis: Any = -1, *, kind: Any = None, stable: Any = None) -> Any:
    a = _ravel(a) if axis is None else plain(a)
    return lift(arrays.sort(_axis(0 if axis is None else axis, rank(a))), (a,))


@implements("diagonal")
def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return lift(arrays.diagonal(int(offset)), (_moveaxis(plain(a), (axis1, axis2), (-2, -1)),))


@implements("linalg.diagonal")
def _linalg_diagonal(x: Any, *, offset: int = 0) -> Any:
    return _diagonal(x, offset, -2, -1)


@implements("trace")
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return _sum(_diagonal(a, offset, axis1, axis2), -1)


@implements("linalg.trace")
def _linalg_trace(x: Any, *, offset: int = 0) -> Any:
    return _trace(x, offset, -2, -1)


@implements("diag")
def _diag(v: Any, k: int = 0) -> Any:
    if rank(v) == 1:
        n = shape_of(v)[0] + abs(k)
        return lift(arrays.on_diagonal(int(k), (n, n)), (v,))
    if rank(v) != 2:
        raise ValueError("Input must be 1- or 2-d.")
    return _diagonal(v, k)


@implements("diagflat")
def _diagflat(v: Any, k: int = 0) -> Any:
    return _diag(_ravel(v), k)


@implements("tril")
def _tril(m: Any, k: int = 0) -> Any:
    return lift(arrays.triangle(True, int(k)), (_rows_of(m),))


@implements("triu")
def _triu(m: Any, k: int = 0) -> Any:
    return lift(arrays.triangle(False, int(k)), (_rows_of(m),))


def _rows_of(m: Any) -> Any:
    """A matrix; of a vector, one with the vector in every row."""
    shape = shape_of(plain(m))
    return _broadcast_to(m, shape * 2) if len(shape) == 1 else m


# -- joining and splitting ---------------------------------------------------------------------------------------------

TOGETHER = 32  # more arrays than these are joined in groups, so that a tangent of one fills its group alone


def _joined(make: Callable[[int], Operation], join: Callable[[int], Operation], xs: list[Any]) -> Any:
    if len(xs) <= 2 * TOGETHER:
        return lift(make(len(xs)), xs)
    groups = [xs[i : i + TOGETHER] for i in range(0, len(xs), TOGETHER)]
    return _joined(join, join, [lift(make(len(group)), group) for group in groups])


@implements("concatenate", "concat")
def _concatenate(arrays_: Any, axis: Any = 0) -> Any:
    xs = [_ravel(x) if axis is None else plain(x) for x in arrays_]
    if not xs or not all(map(rank, xs)):
        raise ValueError("zero-dimensional arrays cannot be concatenated; use np.stack")
    along = _axis(axis or 0, rank(xs[0]))
    _check_same([_without(shape_of(x), along) for x in xs], "np.concatenate")
    return _joined(lambda n: arrays.concatenate(along, n), lambda n: arrays.concatenate(along, n), xs)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (len(shape), *shape[:axis], *shape[axis + 1 :])


def _check_same(shapes: list[tuple[int, ...]], what: str) -> None:
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"{what}: all arrays must have the same shape, but along the axis that joins them")


@implements("stack")
def _stack(arrays_: Any, axis: int = 0) -> Any:
    xs = [_stack(x) if isinstance(x, list | tuple) else plain(x) for x in arrays_]
    if not xs:
        raise ValueError("need at least one array to stack")
    _check_same([shape_of(x) for x in xs], "np.stack")
    along = _axis(axis, rank(xs[0]) + 1)
    return _joined(lambda n: arrays.stack(along, n), lambda n: arrays.concatenate(along, n), xs)


@implements("vstack", "row_stack")
def _vstack(tup: Any) -> Any:
    return _concatenate([_atleast_2d(x) for x in tup], 0)


@implements("hstack")
def _hstack(tup: Any) -> Any:
    xs = [_atleast_1d(x) for x in tup]
    return _concatenate(xs, 0 if rank(xs[0]) == 1 else 1)


@implements("column_stack")
def _column_stack(tup: Any) -> Any:
    return _concatenate([plain(x) if rank(plain(x)) > 1 else _reshape(x, (-1, 1)) for x in tup], 1)


@implements("dstack")
def _dstack(tup: Any) -> Any:
    flat = [_atleast_2d(x) for x in tup]
    return _concatenate([x if rank(x) > 2 else _reshape(x, (*shape_of(x), 1)) for x in flat], 2)


@implements("append")
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return _concatenate([arr, values], axis)


@implements("array_split")
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    a = plain(ary)
    along = _axis(axis, rank(a))
    places = np.array_split(np.arange(shape_of(a)[along]), indices_or_sections)
    ends = np.cumsum([len(p) for p in places]).tolist()
    starts = [int(p[0]) if len(p) else end for p, end in zip(places, ends, strict=True)]
    return [lift(arrays.cut(along, s, s + len(p)), (a,)) for s, p in zip(starts, places, strict=True)]


@implements("split")
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    length = shape_of(plain(ary))[_axis(axis, rank(plain(ary)))]
    if np.ndim(indices_or_sections) == 0 and length % indices_or_sections:
        raise ValueError("array split does not result in an equal division; np.array_split divides as it can")
    return _array_split(ary, indices_or_sections, axis)


# -- choosing ----------------------------------------------------------------------------------------------------------


@implements("where")
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    chosen = np.asarray(real_part(condition)) != 0
    if x is None and y is None:
        return np.nonzero(chosen)
    return lift(ops.where, (chosen if chosen.ndim else bool(chosen), x, y))


@implements("clip")
def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = a_min if min is None else min, a_max if max is None else max
    if low is not None:
        a = lift(ops.maximum, (a, low))
    return a if high is None else lift(ops.minimum, (a, high))


@implements("select")
def _select(condlist: Any, choicelist: Any, default: Any = 0.0) -> Any:
    for condition, choice in list(zip(condlist, choicelist, strict=True))[::-1]:
        default = _where(condition, choice, default)
    return default


@implements("nan_to_num")
def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    value = real_part(x)
    x = _where(np.isnan(value), nan, x)
    most = np.finfo(np.float64).max
    x = _where(np.isposinf(value), most if posinf is None else posinf, x)
    return _where(np.isneginf(value), -most if neginf is None else neginf, x)


@implements("sinc")
def _sinc(x: Any) -> Any:
    return lift(sinc(), (x,))


# -- curves ------------------------------------------------------------------------------------------------------------


@implements("polyval")
def _polyval(p: Any, x: Any) -> Any:
    y: Any = 0.0 if len(plain(p)) else np.zeros(shape_of(plain(x)))
    for coefficient in plain(p):
        y = coefficient + y * plain(x)
    return y


@implements("trapezoid", "trapz")
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = _moveaxis(plain(y), axis, -1)
    width = dx if x is None else _diff(x) if rank(plain(x)) == 1 else _diff(_moveaxis(x, axis, -1))
    return _sum(width * (item_of(y, (..., slice(1, None))) + item_of(y, (..., slice(None, -1)))), -1) * 0.5


# -- indexing ----------------------------------------------------------------------------------------------------------


def item_of(x: Any, index: Any) -> Any:
    """`x[index]`."""
    if isinstance(index, Number) or (type(index) is tuple and any(isinstance(i, Number) for i in index)):
        raise Error(
            "an index is a whole number, and this one carries derivatives; use np.argmax and the like to make one"
        )
    return as_element(lift(arrays.getitem(index), (x,)))
