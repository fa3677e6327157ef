"""Elementwise operations with a parameter, such as an order or exponent; each is constructed on demand.

`sinc(n)` is the n-th derivative of `np.sinc`. The derivatives of S(t) = sin(t) / t follow from the recurrence t S_n + n
S_(n-1) = sin(t + n pi / 2), which is stable upwards for n < |t| and downwards (as Miller's algorithm) for larger n;
each is used where it is stable. `scaled_root(p)` is the last step of a norm.

Operations without one are in `scalars.py`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ..operation import Operation, Trait
from ..types import real
from . import ieee
from . import scalars as ops

# -- sin(pi x) / (pi x) ------------------------------------------------------------------------------------------------


@functools.cache
def sinc(n: int = 0) -> Operation:
    """The n-th derivative of `np.sinc`.

    >>> sinc(0)(0.0), round(sinc(2)(0.0), 12) == round(-(math.pi**2) / 3, 12)
    (1.0, True)
    """

    def on_arrays(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.sinc(x) if n == 0 else math.pi**n * _derivative(n, math.pi * np.asarray(x, float))

    def tangent(d: Any, y: Any, x: Any) -> Any:
        return ops.multiply(d, sinc(n + 1)(x))

    name = f"sinc{n or ''}"
    return Operation(
        name,
        (real,),
        real,
        lambda x: float(on_arrays(x)),
        (tangent,),
        _sinc_text(n),
        array=on_arrays,
        traits=Trait.DIVIDES,
    )


def _derivative(n: int, t: Any) -> Any:
    """The n-th derivative of sin(t) / t."""
    found = np.empty(t.shape)
    near = abs(t) <= n
    found[near], found[~near] = _downward(n, t[near]), _upward(n, t[~near])
    return found


def _upward(n: int, t: Any) -> Any:
    waves = _waves(t)
    found = waves[0] / t
    for k in range(1, n + 1):
        found = (waves[k % 4] - k * found) / t
    return found


def _downward(n: int, t: Any) -> Any:
    waves = _waves(t)
    found = np.zeros(t.shape)
    for k in range(_start(n), n, -1):
        found = (waves[k % 4] - t * found) / k
    return found


def _start(n: int) -> int:
    """The order to start the downward recurrence at, so that the error of the start is negligible at n."""
    return n + 40 + math.isqrt(81 * n)


def _waves(t: Any) -> list[Any]:
    """sin(t + k pi / 2) for k from 0 to 3."""
    sine, cosine = np.sin(t), np.cos(t)
    return [sine, cosine, -sine, -cosine]


def _sinc_text(n: int) -> str:
    """The C++ of `sinc(n)`."""
    if n == 0:
        return f"{{0}} == 0.0 ? 1.0 : sin({math.pi!r} * {{0}}) / ({math.pi!r} * {{0}})"
    return (
        "[](double t) {{ const double w[4] = {{sin(t), cos(t), -sin(t), -cos(t)}}; double f = 0.0; "
        f"if (fabs(t) <= {n}.0) for (int k = {_start(n)}; k > {n}; k--) f = (w[k % 4] - t * f) / k; "
        f"else {{{{ f = w[0] / t; for (int k = 1; k <= {n}; k++) f = (w[k % 4] - k * f) / t; }}}} "
        f"return {math.pi**n!r} * f; }}}}({math.pi!r} * {{0}})"
    )


# -- norms -------------------------------------------------------------------------------------------------------------


@functools.cache
def scaled_root(p: float) -> Operation:
    """(t s**p)**(1/p), which overflows and underflows where the norm without the scale s does, as in numpy.

    In a norm, t is the sum of the powers of x / s, and near 1 whatever the size of x. So derivatives keep full
    precision where the value itself overflows or underflows.

    >>> scaled_root(2.0)(4.0, 3.0), scaled_root(2.0)(1.0, 1e-200)
    (6.0, 0.0)
    """

    def tangent(d: Any, y: Any, t: Any, s: Any) -> Any:
        root = ops.sqrt(t) if p == 2.0 else ops.power(t, 1.0 - 1.0 / p)
        return ops.multiply(s, ops.divide(ops.multiply(1.0 / p, d), root))

    def tangent_of_scale(d: Any, y: Any, t: Any, s: Any) -> Any:
        return ops.multiply(d, ops.power(t, 1.0 / p))

    if p == 2.0:
        return Operation(
            "scaled_root",
            (real, real),
            real,
            lambda t, s: ieee.sqrt(t * s * s),
            (tangent, tangent_of_scale),
            "sqrt({0} * {1} * {1})",
            array=lambda t, s: np.sqrt(t * s * s),
            traits=Trait.DIVIDES,
        )
    return Operation(
        f"scaled_root{p:g}",
        (real, real),
        real,
        lambda t, s: ieee.power(t * ieee.power(s, p), 1.0 / p),
        (tangent, tangent_of_scale),
        f"pow({{0}} * pow({{1}}, {p!r}), {1.0 / p!r})",
        array=lambda t, s: (t * s**p) ** (1.0 / p),
    )
