"""Whole numbers as affine forms of loop counters, and symbolic bounds on them.

A form is a constant plus multiples of named whole numbers (counters, and other unknown numbers). Its range follows by
eliminating counters from the innermost outwards, as in the range test of Blume and Eigenmann 1994. Nothing here knows
graphs, arrays or memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..ir.operation import Operation
from ..ir.ops import integers

MOST_STEP = 1 << 20  # the largest coefficient of a form
LIMIT = 1 << 62  # the largest bound that is believed: below it whole numbers do not wrap around


@dataclass(frozen=True, slots=True)
class Form:
    """A sum of multiples of names, and a constant.

    >>> i, j = name("i"), name("j")
    >>> str(i * 10 + j + 3), str(i - i)
    ('10 * i + j + 3', '0')
    """

    terms: tuple[tuple[str, int], ...] = ()  # name and coefficient, sorted by name
    offset: int = 0

    def __add__(self, other: Form | int) -> Form:
        if isinstance(other, int):
            return Form(self.terms, self.offset + other)
        merged = dict(self.terms)
        for what, times in other.terms:
            merged[what] = merged.get(what, 0) + times
        return Form(tuple(sorted((w, t) for w, t in merged.items() if t)), self.offset + other.offset)

    def __mul__(self, factor: int) -> Form:
        if factor == 0:
            return ZERO
        return Form(tuple((w, t * factor) for w, t in self.terms), self.offset * factor)

    def __sub__(self, other: Form | int) -> Form:
        return self + other * -1

    def __str__(self) -> str:
        out = ""
        for what, times in self.terms:
            size = what if abs(times) == 1 else f"{abs(times)} * {what}"
            out += (f" {'-' if times < 0 else '+'} " if out else "-" if times < 0 else "") + size
        if self.offset or not out:
            out += f" {'-' if self.offset < 0 else '+'} {abs(self.offset)}" if out else str(self.offset)
        return out

    def times(self, what: str) -> int:
        """The coefficient of a name."""
        return next((t for w, t in self.terms if w == what), 0)

    @property
    def constant(self) -> bool:
        return not self.terms


ZERO = Form()


def name(what: str) -> Form:
    """The form of a counter or an unknown number."""
    return Form(((what, 1),))


def number(value: int) -> Form:
    """The form of a constant."""
    return Form((), int(value))


class Bounds:
    """The ranges of the loop counters of a function, and of forms of them.

    >>> bounds = Bounds()
    >>> bounds.counter("i", number(40))
    >>> bounds.counter("j", number(39) - name("i"))
    >>> bounds.range(name("i") + name("j") + 1)
    (1, 39)
    """

    def __init__(self) -> None:
        self.last: dict[str, Form] = {}  # the largest value of each counter; inner ones after outer ones
        self.place: dict[str, int] = {}  # nesting order of the counters

    def counter(self, what: str, rounds: Form | None) -> None:
        """Enters a loop whose counter runs from 0 and below `rounds`."""
        self.place[what] = len(self.place)
        if rounds is not None and self.range(rounds) is not None:
            self.last[what] = rounds - 1

    def fresh(self, rounds: Form | None) -> str:
        """The name of a new counter."""
        what = f"#{len(self.place)}"
        self.counter(what, rounds)
        return what

    def made(self, operation: Operation, parts: Sequence[Form | None]) -> Form | None:
        """The form of an operation's result from those of its arguments; None where it is not affine."""
        rule = RULES.get(operation)
        known = [p for p in parts if p is not None]
        if rule is None or len(known) < len(parts):
            return None
        found = rule(*known)
        if found is None and operation in _CHOICES:  # bounds may tell which argument is the larger
            a, b = known
            gap = a - b
            if (low := self.low(gap)) is not None and low >= 0:
                found = a if operation is integers.maximum else b
            elif (high := self.high(gap)) is not None and high <= 0:
                found = b if operation is integers.maximum else a
        return None if found is None or any(abs(t) > MOST_STEP for _, t in found.terms) else found

    def range(self, form: Form) -> tuple[int, int] | None:
        """The least and the greatest value of a form; None where either is not known."""
        low, high = self.low(form), self.high(form)
        return None if low is None or high is None else (low, high)

    def low(self, form: Form) -> int | None:
        """A lower bound of a form; None where none is known."""
        return self._end(form, -1)

    def high(self, form: Form) -> int | None:
        """An upper bound of a form; None where none is known."""
        return self._end(form, 1)

    def _end(self, form: Form, side: int) -> int | None:
        """A bound: each counter, from the innermost outwards, is replaced by its first or last value."""
        while form.terms:
            if any(w not in self.place for w, _ in form.terms):
                return None
            inner, times = max(form.terms, key=lambda term: self.place[term[0]])
            form = form - name(inner) * times
            if times * side > 0:
                if inner not in self.last:
                    return None
                form = form + self.last[inner] * times
        return form.offset if abs(form.offset) <= LIMIT else None

    def within(self, form: Form, length: int) -> bool:
        """Whether a form is proved to be an index of an axis of this length, without counting from the end."""
        found = self.range(form)
        return found is not None and found[0] >= 0 and found[1] < length


def _times(a: Form, b: Form) -> Form | None:
    return b * a.offset if a.constant else a * b.offset if b.constant else None


RULES: dict[object, Callable[..., Form | None]] = {
    integers.add: lambda a, b: a + b,
    integers.subtract: lambda a, b: a - b,
    integers.multiply: _times,
    integers.negative: lambda a: a * -1,
    integers.maximum: lambda a, b: None,
    integers.minimum: lambda a, b: None,
}
_CHOICES = (integers.maximum, integers.minimum)
