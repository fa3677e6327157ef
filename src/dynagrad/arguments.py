"""Checks of what users pass: whole numbers, numbers, yes or no, functions that give numbers.

Each takes the name of an argument and what was given for it, gives it back as it is wanted, and raises Error with the
name and with what would do. Environment variables that are numbers are read here, too.
"""

from __future__ import annotations

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


def yes_or_no(what: str, given: Any) -> bool:
    """An argument that has to be True or False. Raises Error, with its name."""
    if type(given) is not bool:
        raise Error(f"{what} must be True or False, not {shown(given)}")
    return given


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
