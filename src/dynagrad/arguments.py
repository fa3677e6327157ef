"""Checks of what users pass: whole numbers, numbers, yes or no, functions of so many arguments.

Each takes the name of an argument and what was given for it, gives it back as it is wanted, and raises Error with the
name and with what would do. Environment variables that are numbers are read here, too.
"""

from __future__ import annotations

import inspect
import math
import operator
import os
from collections.abc import Callable
from numbers import Real
from typing import Any

from .errors import Error, shown


def whole_number(what: str, given: Any, least: int | None = None, most: int | None = None) -> int:
    """An argument that has to be a whole number, numpy's too. Raises Error, with its name and its bounds.

    >>> whole_number("k", 3, 1)
    3
    >>> whole_number("k", 0, 1)
    Traceback (most recent call last):
        ...
    dynagrad.errors.Error: k must be a whole number, at least 1, not 0
    """
    try:
        found = None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        found = None
    if found is None or (least is not None and found < least) or (most is not None and found > most):
        bounds = "" if least is None else f", at least {least}" if most is None else f" from {least} to {most}"
        raise Error(f"{what} must be a whole number{bounds}, not {shown(given)}")
    return found


def from_environment(name: str, otherwise: int, most: int, of: str = "") -> int:
    """A whole number from 1 to `most` that an environment variable sets. Raises Error for any other text.

    >>> from_environment("DYNAGRAD_NOTHING_OF_THE_KIND", 3, 10)
    3
    """
    given = os.environ.get(name, "").strip()
    if not given:
        return otherwise
    if not given.isascii() or not given.isdigit() or not 1 <= int(given[:12]) <= most:
        kind = f"a whole number of {of}," if of else "a whole number"
        raise Error(f"the environment variable {name} must be {kind} from 1 to {most}, not {shown(given)}")
    return int(given)


def real_number(what: str, given: Any, least: float | None = None) -> float:
    """An argument that has to be a number, not NaN, and perhaps at least so much. Raises Error, with its name."""
    try:
        number = math.nan if isinstance(given, bool) or not isinstance(given, Real) else float(given)
    except OverflowError:
        number = math.nan
    if math.isnan(number) or (least is not None and number < least):
        bound = "" if least is None else f" from {least:g} on"
        raise Error(f"{what} must be a number{bound}, not {shown(given)}")
    return number


def bounded_number(what: str, given: Any, least: float, below: float = math.inf, *, above: bool = False) -> float:
    """An argument that has to be a number from `least` on, or `above` it, and below another. Raises Error, with these.

    >>> bounded_number("momentum", 0.9, 0.0, 1.0)
    0.9
    >>> bounded_number("rate", 0.0, 0.0, above=True)
    Traceback (most recent call last):
        ...
    dynagrad.errors.Error: rate must be a finite number above 0, not 0.0
    """
    number = real_number(what, given)
    if number < least or (above and number == least) or not number < below:
        kind = "a finite number" if below == math.inf else "a number"
        start = f"above {least:g}" if above else f"from {least:g} on"
        raise Error(
            f"{what} must be {kind} {start}{'' if below == math.inf else f' and below {below:g}'}, not {shown(given)}"
        )
    return number


def yes_or_no(what: str, given: Any) -> bool:
    """An argument that has to be True or False. Raises Error, with its name."""
    if type(given) is not bool:
        raise Error(f"{what} must be True or False, not {shown(given)}")
    return given


def truth(what: str, found: Any) -> bool:
    """Whether a result of a user's function is true. Raises Error, with the function's name, where that has no answer.

    >>> truth("frozen", [])
    False
    """
    try:
        return bool(found)
    except Exception:  # objects of users may raise anything
        raise Error(f"a result of {what} must be true or false, not {shown(found)}") from None


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments, as far as its signature tells.

    >>> takes(lambda x: x, 1), takes(lambda: 0, 1), takes(max, 2)
    (True, False, True)
    """
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # of a function that has no signature to look at
        return True
    return True


def function_of(what: str, given: Any, count: int, of: str) -> Callable[..., Any]:
    """An argument that has to be a function of so many arguments. Raises Error, with its name and what they are.

    >>> function_of("rate", lambda: 0.1, 1, "the step")
    Traceback (most recent call last):
        ...
    dynagrad.errors.Error: rate is called with the step, and the function that was given does not take that
    """
    if not callable(given):
        raise Error(f"{what} must be a function of {of}, not {shown(given)}")
    if not takes(given, count):
        raise Error(f"{what} is called with {of}, and the function that was given does not take that")
    return given  # type: ignore[no-any-return]  # it is callable


def numeric_function(what: str, given: Any) -> Callable[[Any], float]:
    """An argument that has to be a function whose results are numbers; a call of it checks that they are.

    >>> numeric_function("gain", len)("abc")
    3.0
    >>> numeric_function("gain", str)("abc")
    Traceback (most recent call last):
        ...
    dynagrad.errors.Error: a result of gain must be a number, not 'abc'
    """
    if not callable(given):
        raise Error(f"{what} must be a function, not {shown(given)}")

    def checked(x: Any) -> float:
        found = given(x)
        try:
            number = math.nan if isinstance(found, str | bytes) else float(found)  # True and False count as 1 and 0
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isnan(number):
            raise Error(f"a result of {what} must be a number, not {shown(found)}")
        return number

    return checked
