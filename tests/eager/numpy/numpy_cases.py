"""Functions of numpy on grids, samples, statistics, fits, and methods of ufuncs: expressions at points.

Each case is a name of numpy's, a function, and points without ties, kinks or steps. `test_numpy.py` compares their
values with numpy, and derivatives with differences where `test_fifty_digits.py` cannot;
`compiler/test_compiled_numpy.py` compiles them.
"""

from __future__ import annotations

import math
import operator

import numpy as np

NUMPY_2 = int(np.__version__.split(".")[0]) >= 2
chance = np.random.default_rng(11)
A, B, C = chance.normal(size=(3, 4)), chance.normal(size=(4, 3)), chance.normal(size=(3, 3))
T = chance.normal(size=(2, 3, 4))
u, v, w = chance.normal(size=4), chance.normal(size=3), chance.normal(size=2)
row = chance.normal(size=9)
knots = np.array([0.0, 1.0, 2.5, 4.0, 4.5])
heights = np.array([1.0, -1.0, 2.0, 0.5, 3.0])
P = abs(A) + 0.5
HOLES = A.copy()
HOLES[0, 1] = HOLES[2, 2] = HOLES[2, 3] = math.nan
LOW = np.outer([1.0, 2.0, -1.0, 0.5], [1.0, 0.5, 2.0])  # of rank 1
METHODS = [
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
]
windows = np.lib.stride_tricks.sliding_window_view


def low(x):
    """Matrices of rank 1, whatever x is."""
    return np.outer(x, np.array([1.0, 0.5, 2.0]) * x[0] + 1.0)


def convolved(x, k):
    """A convolution of images as people write it: shifted slices, times weights."""
    rows, columns = x.shape[-2] - k.shape[0] + 1, x.shape[-1] - k.shape[1] + 1
    found = 0.0
    for i in range(k.shape[0]):
        for j in range(k.shape[1]):
            found = found + x[..., i : i + rows, j : j + columns] * k[i, j]
    return found


GRIDS = [
    ("linspace", lambda x: np.linspace(x[0], x[1], 5) ** 2, u),
    ("linspace", lambda x: np.linspace(x, 2.0, 4, endpoint=False) ** 2, A),
    ("linspace", lambda x, y: np.linspace(x, y, 3, axis=1) ** 2, A, u),
    ("linspace", lambda x: np.linspace(x[0], x[1], 4, retstep=True)[1] ** 3, u),
    ("linspace", lambda x: np.linspace(x[0], x[1], 1) ** 2, u),
    ("linspace", lambda x: np.linspace(0, x, 3, axis=-1) ** 2, A),
    ("logspace", lambda x: np.logspace(x[0], x[1], 4), u),
    ("logspace", lambda x, b: np.logspace(x[0], x[1], 4, base=b), u, 2.5),
    ("logspace", lambda x, b: np.logspace(x, 1.0, 4, False, b, axis=1), v, abs(v) + 1.5),
    ("geomspace", lambda x: np.geomspace(x[0], x[1], 4) ** 2, abs(u) + 0.5),
    ("geomspace", lambda x: np.geomspace(-x[0], -x[1], 4, endpoint=False) ** 2, abs(u) + 0.5),
    ("geomspace", lambda x: np.geomspace(x, 9.0, 3, axis=1), abs(A) + 0.5),
    ("meshgrid", lambda x, y: [p * p for p in np.meshgrid(x, y)], u, v),
    ("meshgrid", lambda x, y: np.multiply(*np.meshgrid(x, y, indexing="ij")), u, v),
    ("meshgrid", lambda x, y: np.multiply(*np.meshgrid(x, y, sparse=True, copy=False)), u, v),
    ("meshgrid", lambda x, y, z: [p * p for p in np.meshgrid(x, y, z)], u, v, w),
    ("vander", lambda x: np.vander(x) ** 2, u),
    ("vander", lambda x: np.vander(x, 3, increasing=True) ** 2, u),
    ("vander", lambda x: np.vander(x, 1) * x[0], u),
]

ARRANGING = [
    ("cumulative_sum", lambda x: np.cumulative_sum(x, axis=1, include_initial=True) ** 2, A),
    ("cumulative_prod", lambda x: np.cumulative_prod(x), u),
    ("astype", lambda x: np.astype(x, float) ** 2, u),
    ("ediff1d", lambda x, y: np.ediff1d(x, y, 2.0) ** 2, A, w),
    ("atleast_3d", lambda x: np.atleast_3d(x) ** 2, A),
    ("atleast_3d", lambda x, y, z: [p * p for p in np.atleast_3d(x, y, z)], 1.5, u, T),
    ("rollaxis", lambda x: np.rollaxis(x, 2) ** 2, T),
    ("rollaxis", lambda x: np.rollaxis(x, 0, 3) ** 2, T),
    ("rollaxis", lambda x: np.rollaxis(x, -2, -1) ** 2, T),
    ("hsplit", lambda x: [k * p**2 for k, p in enumerate(np.hsplit(x, 2))], A),
    ("hsplit", lambda x: [k * p**2 for k, p in enumerate(np.hsplit(x, [1, 3]))], u),
    ("vsplit", lambda x: [k * p**2 for k, p in enumerate(np.vsplit(x, [1, 1]))], A),
    ("dsplit", lambda x: [k * p**2 for k, p in enumerate(np.dsplit(x, 2))], T),
    ("unstack", lambda x: [k * p**2 for k, p in enumerate(np.unstack(x, axis=1))], T),
    ("block", lambda x, y: np.block([[x, y], [np.zeros((1, 4)), np.ones((1, 3))]]) ** 2, A, C),
    ("block", lambda x: np.block([x, 2.0, x * x]), u),
    ("block", lambda x: np.block(x) ** 2, A),
    ("insert", lambda x: np.insert(x, 1, 3.0) ** 2, A),
    ("insert", lambda x, y: np.insert(x, 2, y, axis=1) ** 2, A, v),
    ("insert", lambda x, y: np.insert(x, [2, 0, -1], y, axis=1) ** 2, A, v),
    ("insert", lambda x, y: np.insert(x, [1], y, axis=0) ** 2, A, B.T),
    ("insert", lambda x, y: np.insert(x, slice(0, 4, 2), y) ** 2, u, w),
    ("insert", lambda x: np.insert(x, [], 1.0) ** 2, u),
    ("choose", lambda x, y: np.choose(np.array([0, 1, 1, 0]), [x, y]) ** 2, u, u + 1),
    ("choose", lambda x, y: np.choose(np.array([[0], [3]]), [x, y], mode="wrap") ** 2, u, 2.0),
    ("choose", lambda x: np.choose(np.array([2, 9, -3, 0]), x, mode="clip") ** 2, A),
    ("bincount", lambda x: np.bincount(np.array([0, 3, 0, 1]), x, minlength=6) ** 2, u),
    ("lib.stride_tricks.sliding_window_view", lambda x: windows(x, 3) ** 2, row),
    ("lib.stride_tricks.sliding_window_view", lambda x: windows(x, (2, 3), (0, 2)) ** 2, T),
    ("lib.stride_tricks.sliding_window_view", lambda x: windows(x, (2, 3), (1, 1)) ** 2, A),
    ("lib.stride_tricks.sliding_window_view", lambda x: windows(x, 8) ** 2, row),
]

SAMPLES = [
    ("convolve", np.convolve, u, v),
    ("convolve", lambda x, y: np.convolve(x, y, "same"), w, row),
    ("convolve", lambda x, y: np.convolve(x, y, "same"), row, u),
    ("convolve", lambda x, y: np.convolve(x, y, "valid"), row, u),
    ("convolve", lambda x: np.convolve(x, [1.0, 2.0]) ** 2, u),
    ("convolve", lambda x: np.convolve(x, x, "same") ** 2, u),
    ("convolve", lambda x: np.convolve(x, 2.0), 3.0),
    ("correlate", np.correlate, row, v),
    ("correlate", np.correlate, v, row),
    ("correlate", lambda x, y: np.correlate(x, y, "same"), u, row),
    ("correlate", lambda x, y: np.correlate(x, y, "full"), v, u),
    ("correlate", lambda x, y: np.correlate(x, y, "same"), row, w),
    ("interp", lambda x: np.interp(x, knots, heights) * x, np.array([[0.3, 2.0], [4.2, 3.9]])),
    ("interp", lambda x, p, f: np.interp(x, p, f), np.array([0.3, -0.2, 2.0, 4.2, 7.0]), knots, heights),
    ("interp", lambda x, f: np.interp(x, knots, f, left=-1.0, right=x * x) ** 2, 7.0, heights),
    ("interp", lambda x, p, f: np.interp(x, p, f, period=5.2), np.array([0.3, -0.2, 4.8, 9.9]), knots, heights),
    ("interp", lambda x, p, f: np.interp(x, p, f), 0.4, knots[:1] + 1, heights[:1]),
    ("gradient", lambda x: np.gradient(x) ** 2, row),
    ("gradient", lambda x, h: np.gradient(x, h, edge_order=2) ** 2, row, 0.4),
    ("gradient", lambda x, p: np.gradient(x, p) ** 2, heights, knots),
    ("gradient", lambda x, p: np.gradient(x, p, edge_order=2) ** 2, heights, knots),
    ("gradient", lambda x, p: [g**2 for g in np.gradient(x, p, 0.3)], A, np.array([0.0, 0.4, 1.0])),
    ("gradient", lambda x, p: np.gradient(x, 0.7, p, axis=(2, 0))[0] ** 2 * p[0], T, w),
    ("gradient", lambda x: np.gradient(x, axis=1, edge_order=2) ** 2, T),
    ("cross", lambda x, y: np.cross(x, y, axisa=0, axisb=1, axisc=0), B[:3], A[:, :3].copy().T),
    ("cross", lambda x, y: np.cross(x, y, axis=0), C, C.T + 1),
]

STATISTICS = [
    ("median", np.median, row),
    ("median", lambda x: np.median(x, 1), A),
    ("median", lambda x: np.median(x, (0, 2), keepdims=True), T),
    ("percentile", lambda x: np.percentile(x, [10.0, 50.0, 99.0], axis=0), A),
    ("percentile", lambda x, q: np.percentile(x, q) * x, A, 33.0),
    *(
        ("quantile", lambda x, m=m: np.quantile(x, [0.0, 0.23, 0.5, 0.9, 1.0], 0, method=m) ** 2, row.reshape(3, 3))
        for m in METHODS
    ),
    *(("quantile", lambda x, q, m=m: np.quantile(x, q, method=m) ** 2, row, 0.61) for m in METHODS),
    ("quantile", lambda x, q: np.quantile(x, q, axis=1, keepdims=True), A, np.array([[0.2, 0.8], [0.4, 0.31]])),
    ("nanmedian", lambda x: np.nanmedian(x + np.where(np.isnan(HOLES), math.nan, 0.0), 0) ** 2, A),
    ("nanmedian", lambda x: np.nanmedian(x + HOLES), A),
    ("nanquantile", lambda x, q: np.nanquantile(x + HOLES, q, axis=1), A, 0.3),
    ("nanquantile", lambda x: np.nanquantile(x + HOLES, [0.3, 0.8], axis=1, method="hazen"), A),
    ("nanquantile", lambda x: np.nanquantile(x + HOLES, 0.3, axis=0, method="midpoint", keepdims=True), A),
    ("nanpercentile", lambda x: np.nanpercentile(x + HOLES, [30, 80], axis=0) ** 2, A),
    ("nansum", lambda x: np.nansum((x + HOLES) ** 2, 0), A),
    ("nanprod", lambda x: np.nanprod(x + HOLES, 1, keepdims=True), A),
    ("nancumsum", lambda x: np.nancumsum((x + HOLES) ** 2, 0), A),
    ("nancumprod", lambda x: np.nancumprod(x + HOLES), A),
    ("nanmax", lambda x: np.nanmax(x + HOLES, 0) ** 2, A),
    ("nanmin", lambda x: np.nanmin(x + HOLES) ** 2, A),
    ("nanmean", lambda x: np.nanmean((x + HOLES) ** 2, 1), A),
    ("nanvar", lambda x: np.nanvar(x + HOLES, 0, ddof=0.5), A),
    ("nanstd", lambda x: np.nanstd(x + HOLES, 1, keepdims=True), A),
    ("cov", np.cov, A),
    ("cov", lambda x, y: np.cov(x, y, bias=True), A, u),
    ("cov", lambda x, y: np.cov(x, y, rowvar=False, ddof=0), A, C),
    ("cov", lambda x, a: np.cov(x, fweights=[1, 2, 0, 3], aweights=a), A, abs(u)),
    ("cov", lambda x: np.cov(x, aweights=[1.0, 2.0, 0.5, 3.0], ddof=0), A),
    ("cov", lambda x: np.cov(x), row),
    ("corrcoef", np.corrcoef, A),
    ("corrcoef", lambda x, y: np.corrcoef(x, y), u, u[::-1] + u**2),
    ("corrcoef", lambda x: np.corrcoef(x, rowvar=False), A),
    ("histogram", lambda x: np.histogram(np.array([0.1, 2.2, 2.6, 3.9]), [0, 1, 2.5, 4], weights=x)[0] ** 2, u),
    ("histogram", lambda x: np.histogram(x, 3)[1] ** 2, row),
    ("histogram", lambda x: np.histogram(x, [-9.0, 0.0, 0.4, 9.0])[0] * x[:3], row),
    ("histogram", lambda x: np.histogram(x, 4, density=True)[0], row),
    ("histogram", lambda x, y: np.histogram(x, 3, (-1.0, 1.0), weights=y**2, density=True)[0], row, row + 3),
    ("histogram_bin_edges", lambda x: np.histogram_bin_edges(x, 3) ** 2, row),
]

FITTING = [
    ("linalg.pinv", np.linalg.pinv, A),
    ("linalg.pinv", np.linalg.pinv, B),
    ("linalg.pinv", lambda x: np.linalg.pinv(x, rcond=1e-10), T),
    ("linalg.pinv", lambda x: np.linalg.pinv(low(x), 1e-10), u),
    ("linalg.pinv", lambda x: np.linalg.pinv(x @ x.T, hermitian=True), A),
    ("linalg.lstsq", lambda x, y: np.linalg.lstsq(x, y, rcond=None)[0], B, u),
    ("linalg.lstsq", lambda x, y: np.linalg.lstsq(x, y, rcond=None)[0], A, C),
    ("linalg.lstsq", lambda x, y: np.linalg.lstsq(low(x), y, rcond=1e-10)[0], u, B),
    ("linalg.lstsq", lambda x, y: np.linalg.lstsq(x, y, rcond=None)[1], B, A.T),
    ("linalg.lstsq", lambda x, y: np.linalg.lstsq(x, y, rcond=None)[3] ** 2, B, u),
    ("polyfit", lambda x, y: np.polyfit(x, y, 2), knots, heights),
    ("polyfit", lambda x, y, s: np.polyfit(x, y, 1, w=s), knots, heights, abs(heights)),
    ("polyfit", lambda x, y: np.polyfit(x, y, 1), knots, np.stack([heights, knots**2], 1)),
    ("polyfit", lambda x, y: np.polyfit(x, y, 1, cov=True)[1], knots, heights),
    ("polyfit", lambda x, y: np.polyfit(x, y, 1, full=True)[1], knots, heights),
    ("polyfit", lambda x, y: np.polyfit(x, y, 1, cov="unscaled")[1] * y[0], knots, heights),
]

UFUNCS = [
    ("subtract", lambda x: np.subtract.reduce(x) ** 2, A),
    ("divide", lambda x: np.divide.reduce(x, axis=1), P),
    ("power", lambda x: np.power.reduce(x, 0), P[:, :2]),
    ("arctan2", lambda x: np.arctan2.reduce(x, 0), A),
    ("maximum", lambda x: np.maximum.reduce(x, axis=(0, 2), keepdims=True) ** 2, T),
    ("fmin", lambda x: np.fmin.reduce(x, axis=None) ** 2, T),
    ("fmax", lambda x: np.fmax.reduce(x + HOLES, axis=1) ** 2, A),
    ("logaddexp", lambda x: np.logaddexp.reduce(x, axis=1), A),
    ("logaddexp", lambda x: np.logaddexp.reduce(x, axis=None), T),
    ("logaddexp2", lambda x: np.logaddexp2.reduce(x, axis=0), A),
    ("hypot", lambda x: np.hypot.reduce(x, axis=(0, 1)), A),
    ("remainder", lambda x: np.remainder.reduce(x, axis=0), P * [[7], [2], [1]]),
    ("fmod", lambda x: np.fmod.reduce(x), P * [[7], [2], [1]]),
    ("copysign", lambda x: np.copysign.reduce(x) ** 2, A),
    ("add", lambda x: np.add.reduce(x, where=A > 0, initial=2.0) ** 2, A),
    ("add", lambda x: np.sum(x * x, axis=0, where=A > 0), A),
    ("multiply", lambda x: np.prod(x, where=A > 0, initial=2.0) ** 2, A),
    ("maximum", lambda x, y: np.max(x, axis=0, where=A > 0, initial=y) ** 2, A, 0.2),
    ("minimum", lambda x: np.minimum.reduce(x, initial=-0.1, axis=1) ** 2, A),
    ("maximum", lambda x: np.maximum.accumulate(x) ** 2, row),
    ("minimum", lambda x: np.minimum.accumulate(x, axis=1) ** 2, A),
    ("fmax", lambda x: np.fmax.accumulate(x, axis=1) ** 2, A),
    ("subtract", lambda x: np.subtract.accumulate(x, 1) ** 2, A),
    ("divide", lambda x: np.divide.accumulate(x), P),
    ("power", lambda x: np.power.accumulate(x, 1), P[:, :3]),
    ("logaddexp", lambda x: np.logaddexp.accumulate(x), row),
    ("hypot", lambda x: np.hypot.accumulate(x, axis=1), A),
    ("multiply", lambda x, y: np.multiply.outer(x, y) ** 2, A, v),
    ("logaddexp", lambda x: np.logaddexp.outer(x, [1.0, 2.0]), v),
    ("arctan2", lambda x: np.arctan2.outer(2.0, x), v),
    ("add", lambda x: np.add.reduceat(x, [0, 3, 1, 5]) ** 2, row),
    ("maximum", lambda x: np.maximum.reduceat(x, [0, 2], axis=1) ** 2, A),
    ("divmod", lambda x: divmod(x, 0.7)[1] ** 2, A),
    ("divmod", lambda x: divmod(7.3, x)[1] ** 2, P),
]

CALLABLES = [
    ("apply_along_axis", lambda x: np.apply_along_axis(np.cumsum, 1, x) ** 2, T),
    ("apply_along_axis", lambda x: np.apply_along_axis(lambda r: r[0] * np.sum(r), 0, x), T),
    ("apply_along_axis", lambda x: np.apply_along_axis(lambda r, k: np.outer(r, r) * k, 1, x, 2.0), A),
    ("apply_along_axis", lambda x: np.apply_along_axis(np.sum, 0, x) ** 2, u),
    ("apply_over_axes", lambda x: np.apply_over_axes(np.sum, x, (0, 2)) ** 2, T),
    ("piecewise", lambda x: np.piecewise(x, [x < 0, x > 1], [lambda t: t * t, 3.0, np.sin]), A),
    ("piecewise", lambda x: np.piecewise(x, [x < 0, x > -1], [lambda t, k: t * k, lambda t, k: t**3], 2.0), A),
    ("piecewise", lambda x: np.piecewise(x, [x < 0], [np.exp]), row),
    ("piecewise", lambda x: np.piecewise(x, x > 0, [np.exp, np.cos]), row),
    ("piecewise", lambda x: np.piecewise(x, [x < 0, x >= 0], [np.exp, np.cos]), 0.4),
]

SORTED = [("partition", lambda x: np.sort(np.partition(x, 4)[:4]) ** 2 * np.arange(4.0), row)]

OF_NUMPY_2 = [  # arguments that numpy 1 does not take, or takes for something else
    ("insert", lambda x, y: np.insert(x, np.array([True, False, True, False]), y) ** 2, u, w),
    ("quantile", lambda x: np.quantile(x, 0.4, axis=1, method="inverted_cdf", weights=np.array([1.0, 2, 0, 3])), A),
    ("quantile", lambda x: np.quantile(x, [0.1, 0.7], method="inverted_cdf", weights=abs(A)), A),
    ("nanquantile", lambda x: np.nanquantile(x + HOLES, [0.1, 1], 0, method="inverted_cdf", weights=P), A),
]
MORE = GRIDS + ARRANGING + SAMPLES + STATISTICS + FITTING + UFUNCS + CALLABLES + SORTED
if NUMPY_2:
    MORE += OF_NUMPY_2


def exists(name):
    """Whether this numpy has a function."""
    try:
        return operator.attrgetter(name)(np)
    except AttributeError:
        return False


MORE = [case for case in MORE if exists(case[0])]

BY_DIFFERENCES = frozenset(
    ("add", "arctan2", "astype", "bincount", "copysign", "corrcoef", "cov", "fmax", "fmod", "geomspace", "gradient")
    + ("histogram", "histogram_bin_edges", "hypot", "interp", "linalg.lstsq", "linalg.pinv", "logaddexp", "logaddexp2")
    + ("nanmedian", "piecewise", "polyfit", "quantile")
)
"""Of `MORE`, what numpy computes in float64 alone; those rows are held to differences in `test_numpy.py`, and their
functions to 50 digits in `compiler/test_fifty_digits_compiled.py`."""
