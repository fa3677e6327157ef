"""What numpy's statistics do with numbers: order statistics, covariances, histograms, and what leaves NaN out.

Handlers as in `numpy_functions.py`. An order statistic follows the elements that it is made of; at ties, those that a
stable sort puts there. The counts of a histogram are steps, and linear in weights; its edges follow the extremes of
the data where numpy takes them from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import Error
from ..graph import arrays, integers, places
from ..graph import operations as ops
from ..graph.arrays import shape_of
from .applying import lift
from .numbers import plain, real_part
from .numpy_functions import axes_of, elements, implements, item_of, rank

# -- places ------------------------------------------------------------------------------------------------------------


def _is_known(x: Any) -> bool:
    """Whether a number without derivatives is there already, and not only as a graph runs."""
    return isinstance(x, float | int | np.ndarray | np.generic)


def _places(x: Any) -> Any:
    """Whole numbers of reals that are whole."""
    return np.asarray(x).astype(np.intp) if _is_known(x) else integers.to_integer(x)


def _in_front(a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The axes made one, which comes first; and which they were."""
    shape = shape_of(a)
    axes = axes_of(axis, len(shape))
    rest = tuple(k for k in range(len(shape)) if k not in axes)
    moved = np.transpose(a, axes + rest) if len(shape) > 1 else a
    return np.reshape(moved, (elements(shape, axes), *(shape[k] for k in rest))), axes


def _kept(found: Any, axes: tuple[int, ...], skip: int, keepdims: bool) -> Any:
    return np.expand_dims(found, tuple(k + skip for k in sorted(axes))) if keepdims and axes else found


# -- order statistics --------------------------------------------------------------------------------------------------

Virtual = Callable[[Any, Any], Any]
"""From how many there are, and the share that lies below, to a place between two of them in order."""


def _between(alpha: float, beta: float) -> Virtual:
    return lambda n, q: n * q + (q * (1.0 - alpha - beta) + alpha) - 1.0


def _lower_or_upper(place: Any, low: Callable[[Any, Any], Any]) -> Any:
    """The place below, where a test of it holds, and else the next one."""
    below = np.floor(place)
    return np.maximum(np.where(low(place - below, below), below, below + 1.0), 0.0)


CONTINUOUS: dict[str, Virtual] = {
    "linear": lambda n, q: (n - 1) * q,
    "interpolated_inverted_cdf": _between(0.0, 1.0),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0.0, 0.0),
    "median_unbiased": _between(1.0 / 3.0, 1.0 / 3.0),
    "normal_unbiased": _between(3.0 / 8.0, 3.0 / 8.0),
}
"""Methods whose results are on lines between two neighbours, so that they follow the share too."""
DISCRETE: dict[str, Virtual] = {
    "inverted_cdf": lambda n, q: _lower_or_upper(n * q - 1.0, lambda rest, below: rest == 0.0),
    "closest_observation": lambda n, q: _lower_or_upper(
        n * q - 1.5, lambda rest, below: (rest == 0.0) & (np.remainder(below, 2.0) == 1.0)
    ),
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.rint((n - 1) * q),
}
"""Methods that take one of the elements."""
HALFWAY: dict[str, tuple[Virtual, float, float]] = {
    "averaged_inverted_cdf": (lambda n, q: n * q - 1.0, 0.5, 1.0),
    "midpoint": (lambda n, q: (np.floor((n - 1) * q) + np.ceil((n - 1) * q)) * 0.5, 0.0, 0.5),
}
"""Methods that take one, or the mean of two: how far between them, at a whole place and at any other."""


def _neighbours(method: str, n: Any, q: Any) -> tuple[Any, Any, Any]:
    """The places of two elements in order, and how far from the one to the other the result is."""
    if method in CONTINUOUS:
        virtual = CONTINUOUS[method](n, q)
    elif method in DISCRETE:
        virtual = DISCRETE[method](n, real_part(q))
    elif method in HALFWAY:
        virtual = HALFWAY[method][0](n, real_part(q))
    else:
        names = ", ".join(sorted((*CONTINUOUS, *DISCRETE, *HALFWAY)))
        raise ValueError(f"{method!r:.40} is no method of a quantile; there are {names}")
    value = real_part(virtual)
    last = np.maximum(n - 1, 0)
    below = np.minimum(np.maximum(np.floor(value), 0.0), last)
    above = np.where(value < 0.0, 0.0, np.minimum(below + 1.0, last))
    way: Any = virtual - np.floor(value)
    if method in HALFWAY:
        _, at_whole, elsewhere = HALFWAY[method]
        way = np.where(real_part(way) == 0.0, at_whole, elsewhere)
    return below, above, 0.0 if method in DISCRETE else way


def _mixed(a: Any, b: Any, way: Any) -> Any:
    """On the line from a to b; from the nearer end, as numpy does it."""
    gap = b - a
    return np.where(real_part(way) >= 0.5, b - gap * (1.0 - way), a + gap * way)


def _quantiles(name: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any, nan: bool) -> Any:
    a, q = plain(a), plain(q)
    front, axes = _in_front(a, axis)
    n, rest = shape_of(front)[0], shape_of(front)[1:]
    if _is_known(real_part(q)) and not np.all((real_part(q) >= 0) & (real_part(q) <= 1)):
        raise ValueError(f"{name}: Quantiles must be in the range [0, 1]" + " or [0, 100]" * ("percentile" in name))
    if not n:
        if not nan:
            raise IndexError(f"{name}: there is nothing along the axis, so no element to take")
        return _kept(np.full(shape_of(q) + rest, np.nan), axes, rank(q), keepdims)
    if weights is not None:
        found = _weighted(name, a, front, real_part(q), axis, axes, method, real_part(weights), nan)
        return _kept(found, axes, rank(q), keepdims)
    ordered = np.sort(front, axis=0)
    last = item_of(ordered, n - 1)
    shape = shape_of(q)
    if nan:
        count = np.sum(real_part(front) == real_part(front), axis=0)  # NaN stands last
        wide = np.reshape(q, shape + (1,) * len(rest))
        below, above, way = _neighbours(method, count, wide)
        full = shape + rest
        a_, b_ = (_taken(ordered, np.broadcast_to(p, full), rest) for p in (below, above))
        found = _mixed(a_, b_, np.broadcast_to(way, full))
    else:
        below, above, way = _neighbours(method, n, q)
        if _is_known(below) and np.isnan(below).any():
            raise ValueError(f"{name}: a share is NaN")
        a_, b_ = (np.take(ordered, _places(p), axis=0) for p in (below, above))
        way = np.reshape(way, shape + (1,) * len(rest)) if shape_of(way) else way
        found = np.where(np.isnan(real_part(last)), math.nan, a_ if method in DISCRETE else _mixed(a_, b_, way))
        found = np.broadcast_to(found, shape + rest) if shape_of(found) != shape + rest else found
    return _kept(found, axes, rank(q), keepdims)


def _taken(ordered: Any, places: Any, rest: tuple[int, ...]) -> Any:
    """Elements along the first axis, at places that are others for each of the rest."""
    shape = shape_of(places)
    flat = np.reshape(places, (-1, *rest))
    return np.reshape(np.take_along_axis(ordered, _places(flat), 0), shape)


def _weighted(
    name: str, a: Any, front: Any, q: Any, axis: Any, axes: tuple[int, ...], method: str, weights: Any, nan: bool
) -> Any:
    """The first element in order at which a share of all weights is reached."""
    if method != "inverted_cdf":
        raise ValueError(f"{name}: of the methods only 'inverted_cdf' takes weights, and not {method!r:.40}")
    shape, weights = shape_of(a), plain(weights)
    if shape_of(weights) != shape:
        if axis is None or shape_of(weights) != tuple(shape[k] for k in axes):
            raise ValueError(f"{name}: weights= should have the shape of the array, or of its axes")
        weights = np.transpose(weights, tuple(int(k) for k in np.argsort(axes)))
        weights = np.reshape(weights, tuple(m if k in axes else 1 for k, m in enumerate(shape)))
    weights = _in_front(np.broadcast_to(weights, shape), axes)[0]
    value = real_part(front)
    lost = np.isnan(value)
    order, rest = np.argsort(value, axis=0), shape_of(front)[1:]
    weights = np.take_along_axis(np.where(lost, 0.0, weights) if nan else weights, order, 0)
    total = np.cumsum(weights, 0)
    if _is_known(total) and not np.all(np.isfinite(total[-1]) & (total[-1] > 0.0)):
        raise ValueError(f"{name}: weights are NaN, infinite, or all zero")
    below = total / item_of(total, slice(-1, None))
    below = np.where(below == 0.0, -1.0, below)  # what has no weight at all is not an element
    wide = np.reshape(below, (shape_of(front)[0], *(1,) * rank(q), *rest))
    place = np.sum(wide < np.reshape(q, shape_of(q) + (1,) * len(rest)), axis=0)
    most = np.sum(~lost, axis=0) if nan else shape_of(front)[0]
    found = _taken(np.take_along_axis(front, order, 0), np.maximum(np.minimum(place, most - 1), 0), rest)
    return np.where(np.all(lost, axis=0) if nan else np.any(lost, axis=0), math.nan, found)


@implements("quantile")
def _quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    *,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    return _quantiles("np.quantile", a, q, axis, method, keepdims, weights, False)


@implements("percentile")
def _percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    *,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    return _quantiles("np.percentile", a, plain(q) / 100.0, axis, method, keepdims, weights, False)


@implements("nanquantile")
def _nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    *,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    return _quantiles("np.nanquantile", a, q, axis, method, keepdims, weights, True)


@implements("nanpercentile")
def _nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    *,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Any:
    return _quantiles("np.nanpercentile", a, plain(q) / 100.0, axis, method, keepdims, weights, True)


@implements("median")
def _median(a: Any, axis: Any = None, *, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    front, axes = _in_front(plain(a), axis)
    n = shape_of(front)[0]
    if not n:
        return _kept(np.full(shape_of(front)[1:], math.nan), axes, 0, keepdims)
    ordered = np.sort(front, axis=0)
    found = item_of(ordered, n // 2)
    if n % 2 == 0:
        found = (item_of(ordered, n // 2 - 1) + found) * 0.5
    found = np.where(np.isnan(real_part(item_of(ordered, n - 1))), math.nan, found)
    return _kept(found, axes, 0, keepdims)


@implements("nanmedian")
def _nanmedian(a: Any, axis: Any = None, *, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    front, axes = _in_front(plain(a), axis)
    n, rest = shape_of(front)[0], shape_of(front)[1:]
    if not n:
        return _kept(np.full(rest, math.nan), axes, 0, keepdims)
    ordered = np.sort(front, axis=0)
    count = np.sum(real_part(front) == real_part(front), axis=0)
    low, high = (np.maximum(p, 0) for p in ((count - 1) // 2, np.minimum(count // 2, n - 1)))
    a_, b_ = _taken(ordered, low, rest), _taken(ordered, high, rest)
    found = np.where(low == high, a_, (a_ + b_) * 0.5)
    return _kept(found, axes, 0, keepdims)


# -- without NaN -------------------------------------------------------------------------------------------------------


def _without(name: str, function: Any, neutral: float) -> None:
    @implements(name)
    def handler(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        a = plain(a)
        return function(np.where(np.isnan(real_part(a)), neutral, a), axis, keepdims=keepdims)


_without("nansum", np.sum, 0.0)
_without("nanprod", np.prod, 1.0)


def _running(name: str, function: Any, neutral: float) -> None:
    @implements(name)
    def handler(a: Any, axis: Any = None) -> Any:
        a = plain(a)
        return function(np.where(np.isnan(real_part(a)), neutral, a), axis)


_running("nancumsum", np.cumsum, 0.0)
_running("nancumprod", np.cumprod, 1.0)


def _chosen(name: str, function: Any, neutral: float) -> None:
    @implements(name)
    def handler(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        a = plain(a)
        lost = np.isnan(real_part(a))
        found = function(np.where(lost, neutral, a), axis, keepdims=keepdims)
        return np.where(np.all(lost, axis, keepdims=keepdims), math.nan, found)


_chosen("nanmax", np.max, -math.inf)
_chosen("nanmin", np.min, math.inf)


def _there(a: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """Where there are numbers, and how many along axes."""
    there = ~np.isnan(real_part(a))
    return there, np.sum(there, axis, keepdims=keepdims)


def _share(total: Any, count: Any) -> Any:
    """A sum over a count, which is NaN where nothing was counted."""
    return np.where(count > 0, total / np.where(count > 0, count, 1), math.nan)


@implements("nanmean")
def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    there, count = _there(a, axis, keepdims)
    return _share(np.sum(np.where(there, a, 0.0), axis, keepdims=keepdims), count)


@implements("nanvar")
def _nanvar(
    a: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False
) -> Any:
    a = plain(a)
    there, count = _there(a, axis, keepdims)
    apart = np.where(there, a - _nanmean(a, axis, keepdims=True), 0.0)
    return _share(np.sum(apart * apart, axis, keepdims=keepdims), count - (ddof if correction is None else correction))


@implements("nanstd")
def _nanstd(
    a: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False
) -> Any:
    a = plain(a)
    found = _nanvar(a, axis, ddof=ddof, correction=correction, keepdims=keepdims)
    alone = elements(shape_of(a), axes_of(axis, rank(a))) == 1
    return found if alone else lift(ops.sqrt, (found,))  # as in `np.std`


# -- covariances -------------------------------------------------------------------------------------------------------


class BadWeights(RuntimeError, ValueError):
    """What numpy raises of weights that do not fit."""


def _variables(m: Any, rowvar: bool, always: bool) -> Any:
    m = plain(m)
    if rank(m) > 2:
        raise ValueError("np.cov: m and y have at most two axes")
    rows = np.atleast_2d(m)
    if always:
        return rows if rowvar or shape_of(rows)[0] == 1 else np.transpose(rows)
    return rows if rowvar or rank(m) == 1 else np.transpose(rows)


@implements("cov")
def _cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    x = _variables(m, rowvar, False)
    if not shape_of(x)[0]:
        return np.zeros((0, 0))
    if y is not None:
        x = np.concatenate([x, _variables(y, rowvar, True)], 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            given = plain(given)
            if rank(given) != 1 or shape_of(given)[0] != shape_of(x)[1]:
                raise BadWeights(f"np.cov: {name} should be a row with a weight for each observation")
            if _is_known(real_part(given)):
                if np.any(real_part(given) < 0):
                    raise ValueError(f"np.cov: {name} are not negative")
                if name == "fweights" and np.any(real_part(given) != np.rint(real_part(given))):
                    raise TypeError("fweights must be integer")
            weights = given if weights is None else weights * given
    if weights is None:
        mean, size = np.mean(x, 1, keepdims=True), shape_of(x)[1] - ddof
    else:
        total = np.sum(weights)
        mean = np.expand_dims(np.sum(x * weights, 1), 1) / total
        size = total - ddof if aweights is None else total - ddof * np.sum(weights * plain(aweights)) / total
    size = np.maximum(size, 0.0) if _is_known(real_part(size)) and real_part(size) <= 0 else size
    apart = x - mean
    other = apart if weights is None else apart * weights
    return np.squeeze(lift(arrays.matmul, (apart, np.transpose(other))) / size)


@implements("corrcoef")
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    c = _cov(x, y, rowvar)
    if not rank(c):
        return c / c
    size = np.sqrt(np.diag(c))
    return np.clip(c / np.expand_dims(size, 1) / np.expand_dims(size, 0), -1.0, 1.0)


# -- histograms --------------------------------------------------------------------------------------------------------


def _edges(a: Any, bins: Any, range_: Any) -> Any:
    """The edges of the bins, with the derivatives of the smallest and largest number where these are the ends."""
    value = real_part(a)
    if isinstance(bins, str) and not _is_known(value):
        raise Error(
            f"np.histogram: how many bins bins={bins!r} makes is known only as the function runs; give a number"
        )
    if not isinstance(bins, str | int | np.integer):
        edges = plain(bins)
        if rank(edges) == 1:
            if _is_known(real_part(edges)) and np.any(np.diff(real_part(edges)) < 0):
                raise ValueError("np.histogram: the edges of bins should not descend")
            return edges
        raise ValueError("np.histogram: bins is a number, a name, or a row of edges")
    if _is_known(value):
        count = len(np.histogram_bin_edges(value, bins, range_))  # which checks its arguments
    else:
        count = int(bins) + 1
        if count < 2:
            raise ValueError("np.histogram: bins should be positive")
    if range_ is not None:
        low, high = map(plain, range_)
    elif not math.prod(shape_of(value)):
        low, high = 0.0, 1.0
    else:
        low, high = np.min(a), np.max(a)
    equal = real_part(low) == real_part(high)
    return np.linspace(np.where(equal, low - 0.5, low), np.where(equal, high + 0.5, high), count)


@implements("histogram_bin_edges")
def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    return _edges(np.ravel(plain(a)), bins, range)


@implements("histogram")
def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    a = np.ravel(plain(a))
    edges = _edges(a, bins, range)
    count = shape_of(edges)[0] - 1
    value, ends = real_part(a), real_part(edges)
    place = np.searchsorted(ends, value, side="right") - 1
    place = np.where(value == item_of(ends, count), count - 1, place)
    inside = (place >= 0) & (place < count)
    if weights is None:
        counted = _added(place, inside, 1.0, count)
        heights = counted.astype(np.intp) if isinstance(counted, np.ndarray) else integers.to_integer(counted)
    else:
        weights = plain(weights)
        if math.prod(shape_of(weights)) != shape_of(a)[0]:
            raise ValueError("weights should have the same shape as a.")
        heights = _added(place, inside, np.ravel(weights), count)
    if density:
        return heights / np.diff(edges) / np.sum(heights), edges
    return heights, edges


def _added(place: Any, inside: Any, weights: Any, count: int) -> Any:
    """A row of as many sums, to each of which goes what has its place, where it has one."""
    weights = np.where(inside, weights, 0.0)
    place = np.where(inside, place, 0)
    if isinstance(place, np.ndarray):
        return lift(arrays.place((place.astype(np.intp),), (count,)), (weights,))

    return places.at_add(arrays.broadcast_to((count,))(0.0), (place,), weights)
