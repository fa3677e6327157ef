"""280 numpy expressions that mix whole numbers, truth values and reals: numpy, eager derivatives and compiled code
agree in values, kinds and shapes, and in gradients.

Costs two compiled programs, one of all values and one of all gradients: 20 s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import through_graph

X, Y = np.array([0.75, -1.5, 2.25]), 1.25  # reals, with a gradient
A, N = np.array([3, -2, 5]), 3  # whole numbers; the array is known only as the function runs
M, T = np.array([True, False, True]), True  # truth values

PAIRS = {
    "x, a": (lambda x, y, a, m: (x, a)),
    "a, x": (lambda x, y, a, m: (a, x)),
    "x, m": (lambda x, y, a, m: (x, m)),
    "m, y": (lambda x, y, a, m: (m, y)),
    "y, a": (lambda x, y, a, m: (y, a)),
    "x, 3": (lambda x, y, a, m: (x, N)),
    "True, x": (lambda x, y, a, m: (T, x)),
    "a, m": (lambda x, y, a, m: (a, m)),
    "a, 3": (lambda x, y, a, m: (a, N)),
    "a, 2.5": (lambda x, y, a, m: (a, 2.5)),
    "m, m": (lambda x, y, a, m: (m, m[::-1])),
    "a[0], m[0]": (lambda x, y, a, m: (a[0], m[0])),
}  # fmt: skip
"""What a function of two arguments is given."""

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda p, q: p + q,
    "*": lambda p, q: p * q,
    "/": lambda p, q: p / (q + 0.5),
    "//": lambda p, q: p // (q * 1.0 + 0.37),
    "%": lambda p, q: p % (q * 1.0 + 7.5),
    "<": lambda p, q: p < q,
    "!=": lambda p, q: p != q,
    "np.maximum": lambda p, q: np.maximum(p, q),
    "np.hypot": lambda p, q: np.hypot(p, q),
    "np.arctan2": lambda p, q: np.arctan2(p, q + 8.0),
    "np.copysign": lambda p, q: np.copysign(p, q),
    "np.logaddexp": lambda p, q: np.logaddexp(p, q),
    "np.where": lambda p, q: np.where(np.greater(p, 0), p, q),
    "np.fmod": lambda p, q: np.fmod(p, q * 1.0 + 7.5),
    "np.logical_and": lambda p, q: np.logical_and(p, q),
    "np.outer": lambda p, q: np.outer(p, q),
    "np.stack": lambda p, q: np.stack(np.broadcast_arrays(p, q)),
}  # 17 of them for 12 pairs

OTHERS: dict[str, Callable[..., Any]] = {
    "x ** 2 + a ** 2": lambda x, y, a, m: x**2 + a**2,
    "x ** a": lambda x, y, a, m: (x * x) ** a,
    "2 ** x": lambda x, y, a, m: 2**x,
    "2.0 ** a": lambda x, y, a, m: 2.0**a,
    "a ** 2.5": lambda x, y, a, m: abs(a) ** 2.5 * y,
    "-m": lambda x, y, a, m: ~m * x,
    "x - m": lambda x, y, a, m: x - m,
    "a - x": lambda x, y, a, m: a - x,
    "m * a * x": lambda x, y, a, m: m * a * x,
    "m + m + x": lambda x, y, a, m: m + m + x,
    "m.sum() * y": lambda x, y, a, m: m.sum() * y,
    "m.mean() * y": lambda x, y, a, m: m.mean() * y,
    "a.mean() * y": lambda x, y, a, m: a.mean() * y,
    "a.sum() / 2": lambda x, y, a, m: a.sum() / 2 + y,
    "a.prod() * x": lambda x, y, a, m: a.prod() * x,
    "a.max() + x": lambda x, y, a, m: a.max() + x,
    "a.argmax() * x": lambda x, y, a, m: a.argmax() * x,
    "np.var(a) * y": lambda x, y, a, m: np.var(a) * y,
    "np.std(m) * y": lambda x, y, a, m: np.std(m) * y,
    "np.cumsum(a) * x": lambda x, y, a, m: np.cumsum(a) * x,
    "np.cumsum(m) * x": lambda x, y, a, m: np.cumsum(m) * x,
    "np.dot(x, a)": lambda x, y, a, m: np.dot(x, a),
    "np.dot(m, x)": lambda x, y, a, m: np.dot(m, x),
    "a @ a": lambda x, y, a, m: (a @ a) * y,
    "m @ a": lambda x, y, a, m: (m @ a) * y,
    "np.einsum": lambda x, y, a, m: np.einsum("i,i->", a, m) * y,
    "np.einsum by numbers": lambda x, y, a, m: np.einsum(x, [0], a, [1], [1, 0]),
    "np.tensordot": lambda x, y, a, m: np.tensordot(a, x, 0),
    "np.kron": lambda x, y, a, m: np.kron(a, m) * y,
    "np.concatenate": lambda x, y, a, m: np.concatenate([x, a, m]),
    "np.append": lambda x, y, a, m: np.append(a, x),
    "np.hstack": lambda x, y, a, m: np.hstack([m, a]) * y,
    "np.vstack": lambda x, y, a, m: np.vstack([x, m]),
    "x[a % 3]": lambda x, y, a, m: x[a % 3] * a,
    "x[m]": lambda x, y, a, m: x[m].sum(),
    "a[m]": lambda x, y, a, m: a[m].sum() * y,
    "np.take": lambda x, y, a, m: np.take(x, a % 3) + a,
    "np.sort(a)": lambda x, y, a, m: np.sort(a) * x,
    "np.sort(m)": lambda x, y, a, m: np.sort(m) * x,
    "x[np.argsort(a)]": lambda x, y, a, m: x[np.argsort(a)] * a,
    "np.clip(a, y)": lambda x, y, a, m: np.clip(a, y, 4),
    "np.clip(x, a)": lambda x, y, a, m: np.clip(x, a - 2, a + 2),
    "np.round": lambda x, y, a, m: np.round(x * 1.1) * a + x,
    "np.floor(a)": lambda x, y, a, m: np.floor(a) * x,
    "np.sign": lambda x, y, a, m: np.sign(a) * x + np.sign(x),
    "np.abs": lambda x, y, a, m: np.abs(a) * x + np.abs(m),
    "np.square": lambda x, y, a, m: np.square(a) * x + np.square(x),
    "np.sqrt(a * a)": lambda x, y, a, m: np.sqrt(a * a) * x,
    "np.exp(m)": lambda x, y, a, m: np.exp(m * 1.0) * x,
    "np.sin(a)": lambda x, y, a, m: np.sin(a) * x,
    "np.any": lambda x, y, a, m: np.any(a > 4) * x,
    "np.all": lambda x, y, a, m: np.all(m) + x,
    "np.count_nonzero": lambda x, y, a, m: np.count_nonzero(x > 0) * y,
    "np.isnan": lambda x, y, a, m: np.isnan(x) + x,
    "np.diff(a)": lambda x, y, a, m: np.diff(a) * y,
    "np.diff(x * a)": lambda x, y, a, m: np.diff(x * a),
    "np.trapezoid": lambda x, y, a, m: (np.trapezoid if hasattr(np, "trapezoid") else np.trapz)(a, x),
    "np.polyval": lambda x, y, a, m: np.polyval(a, x),
    "np.average": lambda x, y, a, m: np.average(x, weights=a + 3),
    "np.select": lambda x, y, a, m: np.select([m, a > 4], [x, a], 1),
    "np.tile": lambda x, y, a, m: np.tile(a, 2) * y,
    "np.repeat": lambda x, y, a, m: np.repeat(m, 2) * y,
    "np.roll": lambda x, y, a, m: np.roll(a, 1) * x,
    "np.flip": lambda x, y, a, m: np.flip(m) * x,
    "np.pad": lambda x, y, a, m: np.pad(a, 1) * y,
    "np.diag": lambda x, y, a, m: np.diag(a) * y + np.diag(x),
    "np.trace": lambda x, y, a, m: np.trace(np.outer(a, m)) * y,
    "np.tril": lambda x, y, a, m: np.tril(np.outer(a, a)) * y,
    "np.ptp": lambda x, y, a, m: np.ptp(a) * x,
    "np.full_like": lambda x, y, a, m: np.full_like(a, 2) * x,
    "np.ones_like": lambda x, y, a, m: np.ones_like(m) * x + np.zeros_like(a),
    "int(a[0])": lambda x, y, a, m: int(a[0]) * x + bool(a[1]),
    "float(m[0])": lambda x, y, a, m: float(m[0]) * y + float(a[2]),
    "a[0] / a[1]": lambda x, y, a, m: a[0] / a[1] * y,
    "a[0] // a[1]": lambda x, y, a, m: a[0] // a[1] * y + a[0] % a[1],
    "divmod": lambda x, y, a, m: divmod(a, 3)[0] * x + divmod(a, 3)[1],
    "a << 1": lambda x, y, a, m: (a << 1) * x + (a & 6) + (a ^ 1) + (~a),
    "m & (a > 0)": lambda x, y, a, m: (m & (a > 0)) * x + (m | (x > 0)),
    "np.linalg.norm(a)": lambda x, y, a, m: np.linalg.norm(a) * y,
    "np.linalg.solve": lambda x, y, a, m: np.linalg.solve(np.diag(a), x),
    "np.linalg.det": lambda x, y, a, m: np.linalg.det(np.diag(a)) * y,
    "np.linalg.matrix_power": lambda x, y, a, m: np.linalg.matrix_power(np.outer(a, a), 2) * y,
    "np.cross": lambda x, y, a, m: np.cross(a, x) + np.cross(a, m),
}


def _of(pair: Any, f: Any) -> Callable[..., Any]:
    return lambda x, y, a, m: f(*pair(x, y, a, m))


EXPRESSIONS = {f"{sign} of {name}": _of(pair, f) for sign, f in BINARY.items() for name, pair in PAIRS.items()} | OTHERS


def _refused() -> set[str]:
    """Where numpy itself raises."""
    found = set()
    for name, f in EXPRESSIONS.items():
        try:
            f(X, Y, A, M)
        except TypeError:
            found.add(name)
    return found


REFUSED = _refused()
GIVEN = {name: f for name, f in EXPRESSIONS.items() if name not in REFUSED}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def _kind(x: Any) -> str:
    return np.asarray(x).dtype.kind


def _same(a: Any, b: Any) -> bool:
    digits = 1e-3 if np.asarray(b).dtype == np.float16 else 1e-12  # numpy has 16 bits for functions of truth values
    return np.shape(a) == np.shape(b) and _kind(a) == _kind(b) and np.allclose(a, b, rtol=digits, atol=1e-13)


def _total(f: Any, x: Any, y: Any, a: Any, m: Any) -> Any:
    """A real of all elements of what an expression gives."""
    found = f(x, y, a, m)
    return np.sum(found * np.cos(np.arange(np.size(found))).reshape(np.shape(found))) * 1.0


def _is_real(f: Any) -> bool:
    return _kind(f(X, Y, A, M)) == "f"


def test_there_are_280() -> None:
    assert len(GIVEN) >= 280 and not REFUSED


@pytest.mark.parametrize("name", GIVEN)
def test_values_by_the_graph(name: str) -> None:
    f = GIVEN[name]
    assert _same(through_graph(f, X, Y, A, M), f(X, Y, A, M)), (through_graph(f, X, Y, A, M), f(X, Y, A, M))


def test_values_in_native_code() -> None:
    found = dg.compile(lambda fs, x, y, a, m: [f(x, y, a, m) for f in fs])(tuple(GIVEN.values()), X, Y, A, M)
    for (name, f), value in zip(GIVEN.items(), found, strict=True):
        assert _same(value, f(X, Y, A, M)), f"{name}: {value!r} is not {f(X, Y, A, M)!r}"


def test_gradients() -> None:
    real = {name: f for name, f in GIVEN.items() if _is_real(f)}
    compiled = dg.compile(lambda fs, x, y, a, m: [dg.grad(_total, (1, 2))(f, x, y, a, m) for f in fs])
    found = compiled(tuple(real.values()), X, Y, A, M)
    for (name, f), (dx, dy) in zip(real.items(), found, strict=True):
        wanted = _slopes(lambda x, y, f=f: _total(f, x, y, A, M))
        assert np.allclose(dx, wanted[:3], rtol=1e-6, atol=1e-6), f"{name}: {dx} is not {wanted[:3]}"
        assert np.allclose(dy, wanted[3], rtol=1e-6, atol=1e-6), f"{name}: {dy} is not {wanted[3]}"
        plain = dg.grad(_total, (1, 2))(f, X, Y, A, M)
        assert np.allclose(dx, plain[0], rtol=1e-12, atol=1e-12) and np.allclose(dy, plain[1], atol=1e-12), name
        value, along = dg.jvp(lambda x, y, f=f: _total(f, x, y, A, M), (X, Y), (X, 1.0))
        assert np.isclose(value, _total(f, X, Y, A, M)) and np.isclose(along, dx @ X + dy), name


def _slopes(f: Any, h: float = 1e-6) -> list[float]:
    """Central differences by each element of x, and by y."""
    found = []
    for i in range(3):
        step = h * (np.arange(3) == i)
        found.append((f(X + step, Y) - f(X - step, Y)) / (2 * h))
    return [*found, (f(X, Y + h) - f(X, Y - h)) / (2 * h)]
