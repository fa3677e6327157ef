"""numpy in 50 digits: arrays of mpmath's numbers that numpy's functions work on, and derivatives as differences.

`Exact` is an array of objects. Through numpy's protocols the same lambda that is differentiated runs on it, so a row of
a test table says once what is computed. Elementary functions and decompositions are mpmath's; the rest is what numpy
itself does with objects. It shares no derivative rule with the package: `Differences` takes central ones, with a step
so small that their error is far below that of a double.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

mp = mpmath.mp.clone()
mp.dps = 80  # of which thirty guard the others where differences cancel

STEP = mp.mpf(10) ** -12


class Exact(np.ndarray):
    """An array of numbers of 50 digits; one of no dimension stands for a single real."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        options = {k: v for k, v in options.items() if v is not None or k == "axis"}
        if method == "__call__" and ufunc.__name__ in UFUNCS:
            return _wrapped(np.frompyfunc(UFUNCS[ufunc.__name__], ufunc.nin, ufunc.nout)(*map(_numbers, inputs)))
        return _wrapped(getattr(ufunc, method)(*map(_bare, inputs), **options))

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function in FUNCTIONS:
            return _wrapped(FUNCTIONS[function](*arguments, **options))
        return _wrapped(function(*_bare(arguments), **_bare(options)))

    def __getitem__(self, index: Any) -> Any:
        return _wrapped(_bare(self)[_bare(index)])

    def var(self, *arguments: Any, **options: Any) -> Any:
        return _var(self, *arguments, **options)

    def std(self, *arguments: Any, **options: Any) -> Any:
        return np.sqrt(_var(self, *arguments, **options))


def exact(x: Any) -> Any:
    """Doubles as they are, with 50 digits."""
    return _numbers(x).view(Exact)


def _numbers(x: Any) -> Any:
    """A bare array of mpmath's numbers; truth values and whole numbers stay what they are."""
    x = x.view(np.ndarray) if isinstance(x, Exact) else np.asarray(x)
    if x.dtype.kind != "f":
        return x
    with np.errstate(invalid="ignore"):  # of what is not a number
        return np.asarray(np.frompyfunc(mp.mpf, 1, 1)(x), dtype=object)


def _bare(x: Any) -> Any:
    if isinstance(x, Exact):
        return x.view(np.ndarray)
    if isinstance(x, dict):
        return {k: _bare(v) for k, v in x.items()}
    if type(x) in (list, tuple):
        return type(x)(map(_bare, x))
    if isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
        return _numbers(x)
    return x


def _wrapped(x: Any) -> Any:
    if isinstance(x, Exact):
        return x
    if isinstance(x, tuple | list):
        return type(x)(*map(_wrapped, x)) if hasattr(x, "_fields") else type(x)(map(_wrapped, x))
    if isinstance(x, np.ndarray) and x.dtype != object:
        return x
    return np.asarray(x, dtype=object).view(Exact) if isinstance(x, np.ndarray | mp.mpf) else x


# -- elementary functions ----------------------------------------------------------------------------------------------


def _chosen(better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    """Of two numbers the better one, the first of equals, and the one that is a number."""
    return lambda a, b: a if b != b or better(a, b) or a == b else b


def _truncated(x: Any) -> Any:
    return mp.floor(x) if x >= 0 else mp.ceil(x)


def _log_of_sum(a: Any, b: Any) -> Any:
    top = max(a, b)
    return top if abs(top) == mp.inf else top + mp.log(mp.exp(a - top) + mp.exp(b - top))


UFUNCS: dict[str, Callable[..., Any]] = {
    "exp": mp.exp,
    "exp2": lambda x: mp.mpf(2) ** x,
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": mp.log10,
    "log1p": mp.log1p,
    "sqrt": mp.sqrt,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "arctan2": mp.atan2,
    "hypot": mp.hypot,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "logaddexp": _log_of_sum,
    "logaddexp2": lambda a, b: _log_of_sum(a * mp.log(2), b * mp.log(2)) / mp.log(2),
    "fabs": abs,
    "sign": mp.sign,
    "reciprocal": lambda x: 1 / x,
    "conjugate": lambda x: x,
    "float_power": lambda a, b: a**b,
    "deg2rad": mp.radians,
    "radians": mp.radians,
    "rad2deg": mp.degrees,
    "degrees": mp.degrees,
    "floor": mp.floor,
    "ceil": mp.ceil,
    "trunc": _truncated,
    "rint": mp.nint,
    "remainder": lambda a, b: a - b * mp.floor(a / b),
    "fmod": lambda a, b: a - b * _truncated(a / b),
    "divmod": lambda a, b: (mp.floor(a / b), a - b * mp.floor(a / b)),
    "modf": lambda x: (x - _truncated(x), _truncated(x)),
    "ldexp": lambda x, n: x * mp.mpf(2) ** int(n),
    "fmax": _chosen(lambda a, b: a > b),
    "fmin": _chosen(lambda a, b: a < b),
    "copysign": lambda a, b: abs(a) * (1 if b >= 0 else -1),
    "isnan": lambda x: bool(mp.isnan(x)),
}
"""What an elementary function of numpy is of one number, where Python's operators do not say it."""


# -- linear algebra ----------------------------------------------------------------------------------------------------


def _matrix(x: Any) -> Any:
    return mp.matrix(x.tolist())


def _array(x: Any) -> Any:
    return np.array(x.tolist(), dtype=object).reshape(x.rows, x.cols)


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a matrix for stacks of matrices; of several results it makes several stacks."""

    def stacked(x: Any, *options: Any) -> Any:
        x = _numbers(x)
        found = [function(x[i], *options) for i in np.ndindex(x.shape[:-2])]
        if not isinstance(found[0], tuple):
            return _stack(found, x.shape[:-2])
        return tuple(_stack(part, x.shape[:-2]) for part in zip(*found, strict=True))

    return stacked


def _stack(parts: Sequence[Any], shape: tuple[int, ...]) -> Any:
    parts = [np.asarray(part, dtype=object) for part in parts]
    return np.stack(parts).reshape(shape + parts[0].shape).view(Exact)


def _permutations(n: int) -> Any:
    """All orders of n things, with their signs."""
    for order in itertools.permutations(range(n)):
        inversions = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
        yield order, (-1) ** inversions


@_each
def determinant(x: Any) -> Any:
    """The sum over all permutations: right for singular matrices too."""
    return mp.fsum(sign * mp.fprod(x[i, j] for i, j in enumerate(order)) for order, sign in _permutations(len(x)))


@_each
def inverse(x: Any) -> Any:
    return _array(mp.inverse(_matrix(x)))


def solve(a: Any, b: Any) -> Any:
    return np.squeeze(inverse(a) @ b[..., None], -1) if np.ndim(b) == 1 else inverse(a) @ b


def _slogdet(x: Any) -> Any:
    found = determinant(x)
    return type(np.linalg.slogdet(np.eye(1)))(np.sign(found), np.log(abs(found)))


def _symmetric(x: Any, uplo: str) -> Any:
    """The symmetric matrix with this triangle."""
    lower = np.tril(x) if uplo == "L" else np.triu(x).T
    return lower + np.tril(lower, -1).T


@_each
def _cholesky(x: Any, uplo: str) -> Any:
    factor = _array(mp.cholesky(_matrix(_symmetric(x, uplo))))
    return factor if uplo == "L" else factor.T


def _doubles(x: Any) -> Any:
    """What numpy's decompositions see: the point itself, not the small step away from it, which may flip a sign."""
    return np.round(x.astype(float), 9)


def _as_in_doubles(vectors: Any, doubles: Any) -> Any:
    """Columns with the signs that numpy's have, since nothing else says which of the two."""
    return vectors * np.sign(np.sum(vectors.astype(float) * doubles, axis=-2, keepdims=True)).astype(int)


@_each
def _eigh(x: Any, uplo: str) -> Any:
    values, vectors = mp.eigsy(_matrix(_symmetric(x, uplo)))
    doubles = np.linalg.eigh(_doubles(x), uplo)[1]
    return np.array(list(values), dtype=object), _as_in_doubles(_array(vectors), doubles)


@_each
def orthogonal_and_upper(x: Any) -> Any:
    """The columns that a wide matrix has beyond its height are in the basis of the others."""
    q, _ = mp.qr(_matrix(x[:, : x.shape[0]]), mode="skinny")
    q = _as_in_doubles(_array(q), np.linalg.qr(_doubles(x))[0])
    return q, q.T @ x


def _qr(a: Any, mode: str = "reduced") -> Any:
    q, r = orthogonal_and_upper(a)
    return r if mode == "r" else type(np.linalg.qr(np.eye(1)))(q, r)


@_each
def singular(x: Any) -> Any:
    """Left vectors, values and right vectors, in columns."""
    u, s, vt = mp.svd_r(_matrix(x), full_matrices=False)
    doubles = np.linalg.svd(_doubles(x), full_matrices=False)
    u, v = _as_in_doubles(_array(u), doubles[0]), _array(vt).T
    return u, np.array(list(s), dtype=object), _as_in_doubles(v, doubles[2].T)


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    u, s, v = singular(a)
    return type(np.linalg.svd(np.eye(1)))(u, s, np.swapaxes(v, -1, -2)) if compute_uv else s


def _power(x: Any, n: int) -> Any:
    base = x if n >= 0 else inverse(x)
    found = exact(np.broadcast_to(np.eye(x.shape[-1]), x.shape))
    for _ in range(abs(n)):
        found = found @ base
    return found


# -- functions that numpy has for doubles alone ------------------------------------------------------------------------


def _var(x: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
    count = x.size // np.mean(np.ones(x.shape), axis=axis).size
    apart = x - np.sum(x, axis=axis, keepdims=True) / count
    return np.sum(apart * apart, axis=axis, keepdims=keepdims) / (count - ddof)


def _vector_norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False) -> Any:
    size = abs(x)
    if abs(ord) == math.inf:
        return (np.max if ord > 0 else np.min)(size, axis=axis, keepdims=keepdims)
    return np.sum(size**ord, axis=axis, keepdims=keepdims) ** (mp.mpf(1) / ord)


def _matrix_norm(x: Any, ord: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False) -> Any:
    if ord in ("fro", None):
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    x = np.moveaxis(x, axis, (-2, -1))
    choose = np.max if ord == "nuc" or ord > 0 else np.min
    if ord in (2, -2, "nuc"):
        s = singular(x)[1]
        found = np.sum(s, -1) if ord == "nuc" else choose(s, -1)
    else:
        found = choose(np.sum(abs(x), -2 if abs(ord) == 1 else -1), -1)
    return np.expand_dims(found, axis) if keepdims else found


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if ord is None or len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    return _matrix_norm(x, ord, axes, keepdims)


def _average(x: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return np.mean(x, axis)
    if np.ndim(weights) < x.ndim:
        weights = np.moveaxis(np.broadcast_to(weights, np.moveaxis(x, axis, -1).shape), -1, axis)
    return np.sum(x * weights, axis) / np.sum(weights, axis)


def _sinc(x: Any) -> Any:
    return np.frompyfunc(lambda t: mp.sinc(mp.pi * t), 1, 1)(_bare(x))


def _select(conditions: Any, choices: Any, default: Any = 0.0) -> Any:
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        default = np.where(condition, choice, default)
    return default


def _clip(x: Any, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.var: _var,
    np.std: lambda x, *arguments, **options: np.sqrt(_var(x, *arguments, **options)),
    np.average: _average,
    np.sinc: _sinc,
    np.select: _select,
    np.clip: _clip,
    np.real: lambda x: x,
    np.imag: lambda x: exact(np.zeros(x.shape)),
    np.real_if_close: lambda x: x,
    np.nan_to_num: lambda x: np.where(np.isnan(x), 0.0, x),
    np.linalg.solve: solve,
    np.linalg.inv: inverse,
    np.linalg.det: determinant,
    np.linalg.slogdet: _slogdet,
    np.linalg.cholesky: lambda x, upper=False: _cholesky(x, "U" if upper else "L"),
    np.linalg.eigh: lambda x, UPLO="L": type(np.linalg.eigh(np.eye(1)))(*_eigh(x, UPLO)),
    np.linalg.eigvalsh: lambda x, UPLO="L": _eigh(x, UPLO)[0],
    np.linalg.qr: _qr,
    np.linalg.svd: _svd,
    np.linalg.matrix_power: _power,
    np.linalg.norm: _norm,
} | {
    getattr(np.linalg, name): function
    for name, function in (
        ("svdvals", lambda x: singular(x)[1]),
        ("vector_norm", _vector_norm),
        ("matrix_norm", _matrix_norm),
    )
    if hasattr(np.linalg, name)  # new in numpy 2
}


# -- differences -------------------------------------------------------------------------------------------------------


def numbers(result: Any) -> Any:
    """All numbers of a result, a tuple or list of arrays and reals, in one bare row."""
    parts = result if isinstance(result, tuple | list) else [result]
    return np.concatenate([np.ravel(_numbers(part)) for part in parts])


class Differences:
    """Derivatives of a function of `Exact` arrays at a point, as doubles, along u and, where it is mixed, along v."""

    def __init__(self, f: Callable[..., Any], point: Sequence[Any], u: Sequence[Any], v: Sequence[Any]) -> None:
        self.f, self.point, self.u, self.v = f, *([exact(x) for x in xs] for xs in (point, u, v))
        self.value = self._at(0, 0)
        self._ends: dict[int, Any] = {}

    def _at(self, i: int, j: int) -> Any:
        """What f has after so many steps along each direction."""
        # The array comes first: a number of mpmath would turn the array into a text, to see whether it is a number.
        moved = [x + u * (i * STEP) + v * (j * STEP) for x, u, v in zip(self.point, self.u, self.v, strict=True)]
        return numbers(self.f(*moved))

    def _end(self, i: int) -> Any:
        """The same after steps along u alone, which several derivatives look at."""
        if i not in self._ends:
            self._ends[i] = self._at(i, 0)
        return self._ends[i]

    def first(self) -> Any:
        return (self._end(1) - self._end(-1)) / (2 * STEP)

    def second(self) -> Any:
        return (self._end(1) - 2 * self.value + self._end(-1)) / STEP**2

    def third(self) -> Any:
        e = self._end
        return (e(2) - 2 * e(1) + 2 * e(-1) - e(-2)) / (2 * STEP**3)

    def mixed(self) -> Any:
        return (self._at(1, 1) - self._at(1, -1) - self._at(-1, 1) + self._at(-1, -1)) / (4 * STEP**2)
