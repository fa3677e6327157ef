"""Numbers of semirings in Python: conversion to and from native words (`Scale`), and users' semirings (`Semiring`).

Native code takes and returns values as 8-byte words. A `Scale` has the number of words, the numbers that are allowed,
and the conversions. The arithmetic of built-in semirings is C++ (`semirings.hpp`); what planner and generator know of
them is the table of `rules/semirings.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .calls import strict_options_class
from .errors import Error, counted, shown
from .facts.relation import ValueShape
from .rules.semirings import SEMIRINGS

Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]


@strict_options_class
@dataclass(frozen=True)
class Semiring:
    """A user's semiring: `plus` and `times` are Python functions of two values, which are traced and compiled.

    A value is a float or a tuple of floats, as `zero` and `one` are (Goodman 1999, "Semiring parsing", section 2).
    Where plus selects one of its arguments, `less(a, b)` says that b is the better one, and the agenda is best-first.
    Whether plus and less agree is checked whenever two values meet: a run in which they do not raises `Error`.

    `star(a)` is the closure one + a + a*a + ..., if there is one: the sum over a cycle of weight a (Lehmann 1977,
    "Algebraic structures for transitive closure"). With it, cycles are solved where each rule has one item of the
    cycle, at one end of its product. Other cycles are iterated, and so are components of more than 3,000 items.

    The functions are called once, with symbols: they may use arithmetic, comparisons and numpy's functions, and
    `np.where` in place of `if`. It is up to you that plus and times make a semiring. Raises `Error` where they cannot
    be compiled, in `dg.Program`.

    >>> import dynagrad as dg
    >>> reliable = dg.Semiring(zero=0.0, one=1.0, plus=np.maximum, times=lambda a, b: a * b, less=lambda a, b: a < b)
    >>> chart = dg.Program("up(b) += up(a) * link(a,b).", reliable).run({"up/1": [("a",)], "link/2": [("a", "b", 0.5)]})
    >>> chart["up(b)"]
    0.5
    """

    zero: Any
    one: Any
    plus: Callable[[Any, Any], Any]
    times: Callable[[Any, Any], Any]
    less: Callable[[Any, Any], Any] | None = None
    star: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        for name in ("zero", "one"):
            value = getattr(self, name)
            parts = value if isinstance(value, tuple | list) else (value,)
            if not parts or not all(isinstance(part, int | float | np.integer | np.floating) for part in parts):
                raise Error(f"a semiring's {name} must be a number or a tuple of numbers, not {shown(value)}")
        for name in ("plus", "times", "less"):
            function = getattr(self, name)
            if not callable(function) and (function is not None or name != "less"):
                raise Error(f"a semiring's {name} must be a function of two values, not {shown(function)}")
        if self.star is not None and not callable(self.star):
            raise Error(f"a semiring's star must be a function of one value, not {shown(self.star)}")


@dataclass(frozen=True)
class Scale:
    """The numbers of a semiring, and their conversions between Python and native words."""

    name: str
    shape: ValueShape
    finite: str
    width: int  # words a number
    zero: Any
    one: Any

    def to_words(self, values: Array | None, count: int) -> Words | None:
        """The words of `count` values, a row for each; None if all are one."""
        if values is None:
            return None
        if self.shape == "count":
            return _count_words(values)
        numbers = np.ascontiguousarray(values, np.float64).reshape(count, self.width)
        return np.asarray(numbers.view(np.uint64))

    def word_of(self, value: Any) -> Words:
        """The words of one Python value."""
        if self.shape == "count":
            if not isinstance(value, int | np.integer):
                raise Error(f"the value {shown(value)} is not a whole number, as those of the count semiring are")
            return np.asarray(_count_words(np.array([int(value)], object))[0])
        try:
            flat = np.array(_flatten(value), np.float64)
        except (TypeError, ValueError, OverflowError):
            raise Error(f"the value {shown(value)} is not a number of the {self.name} semiring") from None
        if len(flat) != self.width:
            raise Error(
                f"the value {value!r} has {counted(len(flat), 'number')}; "
                f"those of the {self.name} semiring have {self.width}"
            )
        return np.asarray(flat.view(np.uint64))

    def from_words(self, words: Words) -> Array:
        """The values of rows of words."""
        if self.shape == "count":
            low, high = words[:, 0], words[:, 1]
            if not high.any() and not (low >> np.uint64(63)).any():
                return low.astype(np.int64)
            big = [(int(h) << 64) + int(lo) for lo, h in zip(low, high, strict=True)]
            out = np.empty(len(big), object)
            out[:] = big
            return out
        numbers = np.ascontiguousarray(words).view(np.float64).reshape(len(words), self.width)
        if self.shape == "boolean":
            return np.asarray(numbers[:, 0] != 0)
        return numbers[:, 0].copy() if self.shape == "float" else numbers.copy()

    def value(self, words: Words) -> Any:
        """The Python value of some words."""
        array = self.from_words(words.reshape(1, -1))
        if self.shape == "expectation":
            rest = array[0, 1:]
            return (float(array[0, 0]), float(rest[0]) if len(rest) == 1 else rest.copy())
        if self.shape == "float":
            return float(array[0])
        if self.shape == "count":
            return int(array[0])
        if self.shape == "boolean":
            return bool(array[0])
        return tuple(array[0].tolist())

    def value_form(self, probabilities: bool) -> tuple[ValueShape, str, Any]:
        """The form of facts' values, the name of those forbidden, and one: in this scale, or for probabilities."""
        if probabilities and self.shape != "expectation":
            return "float", "finite", 1.0
        return self.shape, self.finite, self.one

    def check_probabilities(self) -> None:
        """Raises where probabilities have no meaning."""
        if SEMIRINGS[self.name].from_probabilities is None:
            raise Error(f'values="probabilities" has no meaning in the {self.name} semiring; give its own numbers')

    def from_probabilities(self, values: Array | None) -> Array | None:
        """Probabilities converted to this scale. Those that are none are not looked for here: see `not_probable`."""
        self.check_probabilities()
        convert = SEMIRINGS[self.name].from_probabilities
        assert convert is not None
        if values is None or self.shape == "expectation":
            return values
        with np.errstate(divide="ignore"):
            return np.asarray(convert(np.asarray(values, np.float64)))

    def not_probable(self, values: Array | None) -> NotProbable | None:
        """The first of some values that is no probability; None where all are."""
        if values is None:
            return None
        numbers = np.asarray(values, np.float64)
        return not_probable(numbers[:, 0] if self.shape == "expectation" else numbers)


ROUNDING = 1e-9
"""How far above 1 a probability may be, for sums that are rounded."""


@dataclass(frozen=True)
class NotProbable:
    """A number that is no probability, and its place in an array."""

    place: tuple[int, ...]
    number: float

    def __str__(self) -> str:
        return f"{self.number} is not a probability, which is a number from 0 to 1"


def not_probable(numbers: Array) -> NotProbable | None:
    """The first number that is no probability; None where all are."""
    wrong = np.argwhere((numbers < 0) | (numbers > 1 + ROUNDING))
    if not len(wrong):
        return None
    place = tuple(wrong[0].tolist())
    return NotProbable(place, float(numbers[place]))


def _flatten(value: Any) -> list[float]:
    if isinstance(value, tuple | list | np.ndarray):
        return [x for part in value for x in _flatten(part)]
    return [float(value)]


def _count_words(values: Array) -> Words:
    words = np.zeros((len(values), 2), np.uint64)
    if values.dtype == object:
        for row, value in enumerate(values.tolist()):
            if not 0 <= value < 2**128 - 1:
                allowed = "a whole number from 0 to 2**128 - 2, as the count semiring has"
                raise Error(f"row {row + 1}: {shown(value)} is not {allowed}")
            words[row] = (value & (2**64 - 1), value >> 64)
        return words
    if (values < 0).any():
        row = int((values < 0).argmax())
        raise Error(f"row {row + 1}: {values[row]} is negative; a count is a whole number from 0")
    words[:, 0] = values.astype(np.uint64)
    return words


_OWN = {
    (False, False): "finite",
    (True, False): "no_nan_no_neginf",
    (False, True): "no_nan_no_posinf",
    (True, True): "no_nan",
}
"""What is forbidden in a semiring of one's own, by the infinities that its zero and its one have: `inf` and `-inf`."""


def _has(infinity: float, *values: Any) -> bool:
    return any(infinity in (value if isinstance(value, tuple | list) else (value,)) for value in values)


def scale(name: str, vector: int = 1, width: int = 1, zero: Any = 0.0, one: Any = 1.0) -> Scale:
    """The scale of a semiring; `vector` is the length of r in `expectation`, the other arguments are for users' ones.

    >>> scale("viterbi").zero
    -inf
    """
    if name == "expectation":
        none: Any = 0.0 if vector == 1 else np.zeros(vector)
        return Scale(name, "expectation", "finite", 1 + vector, (0.0, none), (1.0, none))
    if name == "user":
        shape: ValueShape = "float" if not isinstance(zero, tuple | list) else ("vector", width)
        return Scale(name, shape, _OWN[_has(math.inf, zero, one), _has(-math.inf, zero, one)], width, zero, one)
    row = SEMIRINGS[name]
    return Scale(name, cast("ValueShape", row.shape), row.valid, row.words, row.zero, row.one)
