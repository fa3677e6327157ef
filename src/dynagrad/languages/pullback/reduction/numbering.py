"""The numbers and names of rules: a function that carries a rule out is entered here under both. No rule is here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

NAMES: dict[str, str] = {}
"""The names of rules by their numbers. A, `dual` and `sum` have none in the paper."""


def rule(number: str, name: str) -> Callable[[Function], Function]:
    """Enters a rule.

    >>> @rule("0", "nothing")
    ... def nothing(): ...
    >>> NAMES.pop("0")
    'nothing'
    """

    def enter(function: Function) -> Function:
        NAMES[number] = name
        return function

    return enter
