"""How an operation is spelt in C++: as an operator, as a call, or by a template.

A spelling is filled in with the texts of the arguments by `format`. Nothing here knows what these texts mean.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Infix:
    """An operator between two arguments.

    >>> Infix("+").format("x", "y")
    'x + y'
    """

    symbol: str

    def format(self, left: str, right: str) -> str:
        return f"{left} {self.symbol} {right}"


@dataclass(frozen=True, slots=True)
class Prefix:
    """An operator before its argument."""

    symbol: str

    def format(self, argument: str) -> str:
        return self.symbol + argument


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function, whose arguments need no parentheses.

    >>> FunctionCall("atan2").format("y", "x + 1.0")
    'atan2(y, x + 1.0)'
    """

    name: str

    def format(self, *arguments: str) -> str:
        return f"{self.name}({', '.join(arguments)})"


Spelling = Infix | Prefix | FunctionCall | str
"""The last is a template with `{0}`, `{1}` for the arguments; an empty one says that there is no C++."""


class _Place:
    """An argument that counts how often it is written."""

    def __init__(self) -> None:
        self.times = 0

    def __format__(self, _: str) -> str:
        self.times += 1
        return ""


def occurrences(spelling: Spelling, arguments: int) -> tuple[int, ...]:
    """How often each argument is written.

    >>> occurrences(Infix("*"), 2), occurrences("{1} < 0 ? {0} : {1}", 2)
    ((1, 1), (1, 2))
    """
    if not isinstance(spelling, str):
        return (1,) * arguments
    places = [_Place() for _ in range(arguments)]
    spelling.format(*places)
    return tuple(place.times for place in places)
