"""Handlers of numpy's covariances and histograms.

The counts of a histogram are piecewise constant in the data and linear in the weights; its edges depend on the extrema
of the data where numpy takes them from there.

Means and variances are in `reductions.py`, quantiles in `quantiles.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import Error
from ...ir.ops import arrays, integers, places
from ...ir.ops.arrays import shape_of
from ..kinds import plain, real_part
from ..numbers import lift
from .functions import implements, is_known, item_of, rank

# -- covariances -------------------------------------------------------------------------------------------------------


class BadWeights(RuntimeError, ValueError):
    """The error for weights of a wrong shape: numpy raises either of its bases."""


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
                raise BadWeights(f"np.cov: {name} should be a vector with a weight for each observation")
            if is_known(real_part(given)):
                if np.any(real_part(given) < 0):
                    raise ValueError(f"np.cov: {name} should not be negative")
                if name == "fweights" and np.any(real_part(given) != np.rint(real_part(given))):
                    raise TypeError("fweights must be integer")
            weights = given if weights is None else weights * given
    if weights is None:
        mean, size = np.mean(x, 1, keepdims=True), shape_of(x)[1] - ddof
    else:
        total = np.sum(weights)
        mean = np.expand_dims(np.sum(x * weights, 1), 1) / total
        size = total - ddof if aweights is None else total - ddof * np.sum(weights * plain(aweights)) / total
    size = np.maximum(size, 0.0) if is_known(real_part(size)) and real_part(size) <= 0 else size
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
    """The edges of the bins; they carry the derivatives of the extrema where these are the ends."""
    value = real_part(a)
    if isinstance(bins, str) and not is_known(value):
        raise Error(
            f"np.histogram: the number of bins of bins={bins!r} is known only when the function runs; give a number"
        )
    if not isinstance(bins, str | int | np.integer):
        edges = plain(bins)
        if rank(edges) == 1:
            if is_known(real_part(edges)) and np.any(np.diff(real_part(edges)) < 0):
                raise ValueError("np.histogram: the edges of bins should not descend")
            return edges
        raise ValueError("np.histogram: bins should be a number, a name, or a vector of edges")
    if is_known(value):
        count = len(np.histogram_bin_edges(value, bins, range_))  # which also checks the arguments
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
    """Sums of the weights in each of `count` bins; `inside` is False for those that are in none."""
    weights = np.where(inside, weights, 0.0)
    place = np.where(inside, place, 0)
    if isinstance(place, np.ndarray):
        return lift(arrays.place((place.astype(np.intp),), (count,)), (weights,))

    return places.at_add(arrays.broadcast_to((count,))(0.0), (place,), weights)
