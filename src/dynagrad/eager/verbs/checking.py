"""Checks derivatives: forward and reverse mode against extrapolated finite differences (Ridders 1982).

The verbs are called as users call them; nothing here knows how they compute.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...arguments import whole_number
from ...calls import strict_options
from ...errors import Error, shown
from ...ir.ops.ravelling import ravel, size
from ..kinds import plain, real_part
from ..pytree import float_of, is_function, leaves, of_result, unravelled
from .gradients import argument, jvp, own, vjp

Function = Callable[..., Any]
_MODES = ("forward", "reverse")
_COLUMNS = 6  # columns of the table of extrapolations
_DIRECTIONS = 12  # the most coordinates that are checked one by one; with more, along as many random directions


@strict_options
def check_derivatives(
    f: Function, *args: Any, order: int = 2, modes: Sequence[str] = _MODES, tolerance: float = 1e-6
) -> None:
    """Raises Error where a derivative of `f` at `args` is not that of its differences; returns None where all is well.

    Up to the order, each derivative is taken in each mode, of each derivative of the order below, so that order 2
    checks forward over reverse and all other mixes. It is compared with central differences, extrapolated to a step of
    zero (Ridders 1982), to the tolerance relative to max(1, |derivative|). Arguments and results are reals, arrays and
    structures of these. Up to 12 elements are checked one by one, more of them along random directions. The message
    names the mode, the elements and both numbers. A point where the differences do not converge, such as one where `f`
    jumps, is an Error too.

    >>> check_derivatives(lambda x, y: x * y * y, 2.0, 3.0)
    >>> from dynagrad.eager.verbs.custom_rule import custom_rule
    >>> wrong = custom_rule(lambda x: x * x, jvp=lambda primals, tangents: primals[0] * tangents[0])
    >>> try:
    ...     check_derivatives(wrong, 3.0)
    ... except Error as error:
    ...     print(error)
    check_derivatives: forward: the derivative of the result by argument 1 should be 6 by differences, and is 3
    """

    if not callable(f):
        raise Error(f"check_derivatives: the first argument should be a function, and is {shown(f)}")
    order = whole_number("check_derivatives: the order", order, 1)
    if not _is_tolerance(tolerance):
        raise Error(f"check_derivatives: the tolerance is a number from 0, and {shown(tolerance)} is not")
    if not isinstance(modes, str | tuple | list):
        raise Error(f"check_derivatives: modes should be a list of modes, and is {shown(modes)}")
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in modes:
        if mode not in _MODES:
            raise Error(f'check_derivatives: the modes are "forward" and "reverse", and {shown(mode)} is neither')
    if not args:
        raise Error("check_derivatives: give the arguments at which to check, after the function")
    inputs = tuple(argument("check_derivatives", i, x) for i, x in enumerate(args))
    if any(is_function(leaf) for leaf in leaves(inputs)):
        raise Error(
            "check_derivatives: an argument is a function, and has no differences; let the other function close over it"
        )
    _check(f, inputs, order, modes, tolerance, "", np.random.default_rng(0))


def _is_tolerance(x: object) -> bool:
    return type(x) is not bool and isinstance(x, numbers.Real) and float(x) >= 0


def _check(
    f: Function,
    inputs: tuple[Any, ...],
    order: int,
    modes: Sequence[str],
    tolerance: float,
    over: str,
    random: np.random.Generator,
) -> None:
    """Checks the first derivative of `f`, and recursively higher ones. `over` names the modes that `f` was made in."""
    value = _value(f, inputs)
    if any(is_function(leaf) for leaf in leaves(value)):
        raise Error("check_derivatives: the result is or contains a function; check what that function returns")
    sizes = np.abs(_vector(value))
    directions = list(_directions(list(leaves(inputs)), _argument_names(inputs), random))
    covectors = list(_directions(list(leaves(value)), _result_names(value), random))
    differences = [_differences(f, inputs, u, value) for _, u in directions]
    with np.errstate(invalid="ignore"):  # what is no number is compared below
        slopes = np.array([[c @ slope for _, c in covectors] for slope, _ in differences])
        errors = np.array([[np.abs(c) @ error for _, c in covectors] for _, error in differences])
    for mode in modes:
        found = _TABLES[mode](f, inputs, value, [u for _, u in directions], [c for _, c in covectors])
        for i, (by, _) in enumerate(directions):
            for j, (of, c) in enumerate(covectors):
                place = f"check_derivatives: {mode}{over}: the derivative of {of} {by}"
                _compare(
                    place, found[i][j], float(slopes[i, j]), float(errors[i, j]), tolerance, float(np.abs(c) @ sizes)
                )
    if order > 1:
        along = unravelled(inputs, random.standard_normal(sum(map(size, leaves(inputs)))))
        by = unravelled(value, random.standard_normal(sum(map(size, leaves(value)))))
        for mode in modes:
            derivative = _DERIVATIVES[mode](f, along, by)
            _check(derivative, inputs, order - 1, modes, tolerance, f" over {mode}{over}", random)


def _value(f: Function, inputs: tuple[Any, ...]) -> Any:
    """The result at a point, with integers as reals; `f` gets containers of its own, which it may change."""
    return of_result(f(*map(own, inputs)), lambda x: x, lambda g: g, float_of)


def _compare(place: str, found: float, slope: float, error: float, tolerance: float, size: float) -> None:
    # Relative to 1, but to the values where these are small: the derivative of 1e-7 * sin(x) is checked, too.
    scale = max(abs(slope), min(1.0, max(size, 1e-6)))
    if not math.isfinite(slope) or error > 100.0 * math.sqrt(tolerance) * scale:
        raise Error(
            f"{place} cannot be checked: differences do not converge ({slope:.10g}, give or take {error:.2g}), as "
            "where a function jumps, has a kink or is not defined nearby"
        )
    if not abs(found - slope) <= tolerance * scale + 2.0 * error:
        raise Error(f"{place} should be {slope:.10g} by differences, and is {found:.10g}")


# -- directions --------------------------------------------------------------------------------------------------------

Direction = tuple[str, np.ndarray]


def _directions(reals: Sequence[Any], names: Sequence[str], random: np.random.Generator) -> Iterator[Direction]:
    """Vectors to check along, with their descriptions for messages."""
    total = sum(map(size, reals))
    if total > _DIRECTIONS:
        for i in range(_DIRECTIONS):
            vector = random.standard_normal(total)
            yield _random_direction(names, i), vector / np.linalg.norm(vector)
        return
    at = itertools.count()
    for x, name in zip(reals, names, strict=True):
        for index in np.ndindex(np.shape(x)):
            unit = np.zeros(total)
            unit[next(at)] = 1.0
            yield name + (f" at [{', '.join(map(str, index))}]" if index else ""), unit


def _random_direction(names: Sequence[str], i: int) -> str:
    return f"{'by the arguments' if names[0].startswith('by') else 'the result'} along random direction {i + 1}"


def _argument_names(inputs: tuple[Any, ...]) -> list[str]:
    found = []
    for i, x in enumerate(inputs):
        parts = len(list(leaves(x)))
        found += [f"by argument {i + 1}" + (f", part {k + 1}," if parts > 1 else "") for k in range(parts)]
    return found


def _result_names(value: Any) -> list[str]:
    count = len(list(leaves(value)))
    return ["the result" + (f", part {k + 1}," if count > 1 else "") for k in range(count)]


# -- derivatives in both modes -----------------------------------------------------------------------------------------


def _vector(x: Any) -> Any:
    return ravel([real_part(plain(leaf)) for leaf in leaves(x)])


def _forward_table(f: Function, inputs: Any, value: Any, directions: Any, covectors: Any) -> list[list[float]]:

    pushed = [_vector(jvp(f, inputs, unravelled(inputs, u))[1]) for u in directions]
    return [[float(c @ d) for c in covectors] for d in pushed]


def _reverse_table(f: Function, inputs: Any, value: Any, directions: Any, covectors: Any) -> list[list[float]]:

    back = vjp(f, *inputs)[1]
    pulled = [_vector(back(unravelled(value, c))) for c in covectors]
    return [[float(u @ d) for d in pulled] for u in directions]


_TABLES: dict[str, Function] = {"forward": _forward_table, "reverse": _reverse_table}


def _forward(f: Function, tangents: Any, cotangents: Any) -> Function:

    return lambda *xs: jvp(f, xs, tangents)[1]


def _reverse(f: Function, tangents: Any, cotangents: Any) -> Function:

    return lambda *xs: vjp(f, *xs)[1](cotangents)


_DERIVATIVES: dict[str, Function] = {"forward": _forward, "reverse": _reverse}


# -- differences -------------------------------------------------------------------------------------------------------


def _differences(f: Function, inputs: Any, u: Any, value: Any) -> tuple[Any, Any]:
    """The derivative along a vector, with an error estimate, for each element of the result.

    For a function that oscillates within the first steps, differences may converge to a wrong value by chance. So they
    are compared with much shorter steps of another length; where these disagree, the extrapolation starts from such.
    """
    x = _vector(inputs)
    width = sum(map(size, leaves(value)))
    step = 0.1 * max(1.0, float(np.max(np.abs(x)[u != 0.0], initial=0.0)))

    def central(h: float) -> Any:
        """The central difference with step h; None where the function is not defined, or its result changes shape."""
        try:
            with np.errstate(all="ignore"):
                ahead, behind = (_vector(_value(f, unravelled(inputs, x + s * u))) for s in (h, -h))
                fits = ahead.shape == behind.shape == (width,)
                change = ahead - behind if fits else math.nan
        except (Error, ArithmeticError, ValueError, IndexError):
            return None
        return change / (2.0 * h) if np.isfinite(change).all() else None

    noise = 1e-13 * max(1.0, float(np.max(np.abs(_vector(value)), initial=0.0)))
    for _ in range(4):
        best, error = _extrapolated(central, step, width)
        short = step / 1234.5
        one, other = central(short), central(short / 1.7)
        if one is None or other is None:
            break
        near = 10.0 * (np.abs(one - other) + noise / short) + error + 1e-6 * np.abs(best)
        if (np.abs(one - best) <= near).all():
            break
        step /= 97.3
    else:
        error = np.full(width, math.inf)
    return best, error


def _extrapolated(central: Callable[[float], Any], step: float, width: int, levels: int = 24) -> tuple[Any, Any]:
    """Richardson extrapolation of central differences with steps h, h/2, ...: for each element the best entry."""
    best: Any = np.full(width, math.nan)
    error: Any = np.full(width, math.inf)
    row: list[Any] = []
    for level in range(levels):
        difference = central(step / 2.0**level)
        if difference is None:
            row = []
            continue
        new = [difference]
        for k, old in enumerate(row[:_COLUMNS]):
            new.append(new[k] + (new[k] - old) / (4.0 ** (k + 1) - 1.0))
            guess = np.maximum(np.abs(new[k + 1] - new[k]), np.abs(new[k + 1] - old))
            better = guess <= error
            best, error = np.where(better, new[k + 1], best), np.where(better, guess, error)
        row = new
        if (error <= 1e-11 * np.maximum(np.abs(best), 1e-6)).all():
            break
    return best, error
