"""What is checked of a result before it is returned to a user: no number that escaped its derivative, and no NaN that
the chain rule made.

Nothing is differentiated here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import Error, NotDifferentiable
from ..ir.buffers import SMALLEST
from ..ir.ops.arrays import surely_finite
from .kinds import plain, real_part
from .numbers import Number
from .perturbations import is_open, place
from .pytree import is_real, leaves, parts, transform

_ndarray = np.ndarray


def unescaped(verb: str, x: Any) -> Any:
    """A result that is returned to a user; raises Error where it holds numbers of closed passes."""
    transform(x, lambda r: check_open(verb, r), lambda f: f)
    return x


def check_open(verb: str, r: Any) -> Any:
    """A real or array; raises Error where it is a number of a closed pass."""
    number = r
    while isinstance(number, Number):
        if not is_open(number.tag):
            raise Error(
                f"{verb}: the result holds a number that escaped its derivative: one that a function kept from a "
                f"call inside another derivative, which is over{place()}. Return it from that derivative instead"
            )
        number = number.primal
    return r


def finite_choice(verb: str, derivative: Any, value: Any) -> Any:
    """Raises where the chain rule has no answer: the derivative of a result is NaN where the result is not.

    Both have the same structure.
    """
    if not (type(derivative) is float and derivative == derivative):
        _check_choice(verb, derivative, value)
    return derivative


def _check_choice(verb: str, derivative: Any, value: Any) -> None:
    if is_real(value):
        if _is_nan(derivative) and bool(np.any(np.isnan(real_part(derivative)) & ~np.isnan(real_part(value)))):
            raise _no_answer(verb)
        return
    inside, beside = parts(value), parts(derivative)
    if inside is not None and beside is not None:
        for y, d in zip(inside[0], beside[0], strict=True):
            _check_choice(verb, d, y)


def finite_pullback(verb: str, gradient: Any, value: Any, cotangent: Any = 1.0) -> Any:
    """The same for a pullback: raises where the gradient has NaN, unless a NaN of the result has a cotangent not 0."""
    if has_nan(gradient) and not _nan_has_weight(value, cotangent):
        raise _no_answer(verb)
    return gradient


def has_nan(x: Any) -> bool:
    """Whether a structure contains NaN."""
    return any(map(_is_nan, leaves(x)))


def _nan_has_weight(value: Any, cotangent: Any) -> bool:
    if is_real(value):
        if not is_real(plain(cotangent)):
            return False
        return bool(np.any(np.isnan(real_part(value)) & (np.asarray(real_part(plain(cotangent))) != 0.0)))
    inside, beside = parts(value), parts(cotangent)
    if isinstance(value, dict):
        return any(_nan_has_weight(y, cotangent[key]) for key, y in value.items())
    if inside is None or beside is None:
        return False
    return any(_nan_has_weight(y, c) for y, c in zip(inside[0], beside[0], strict=True))


def _no_answer(verb: str) -> NotDifferentiable:
    return NotDifferentiable(
        f"{verb}: the chain rule has no answer here: a derivative is 0 times infinity, or infinity less infinity, such "
        f"as that of sqrt(x)**2 at 0; write the function so that it is smooth there, or choose with np.where{place()}"
    )


def _is_nan(leaf: Any) -> bool:
    """Whether a leaf is or contains NaN."""
    x = leaf if type(leaf) is _ndarray else real_part(leaf)
    if type(x) is float:
        return x != x
    if not is_real(x) or not x.size or (x.size < SMALLEST and surely_finite(x)):
        return False
    least = np.minimum.reduce(x, axis=None)  # propagates NaN
    return bool(least != least)
