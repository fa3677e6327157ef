"""Functions of joins: which parameters each has, and how it is called.

A join is written first; its function has those parameters alone that the body reads. No body is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...plan.model import TableLayout

PARAMETERS = {
    "cell": "int64_t cell",
    "update": "const value_t& update",
    "old": "const value_t& old",
    "now": "const value_t& now",
    "first": "bool first",
    "from": "uint32_t from",
    "gupdate": "adjoint_t& gupdate",
    "gold": "adjoint_t& gold",
}
"""What a join may be told beside the arguments of its driver: the driver's cell, its update, its value before and after
it, whether this is its first pop; its node in the ground program; and backward the adjoints of the update and of the
value before it."""


def arguments_of(table: TableLayout, text: str = "a{}") -> list[str]:
    """The arguments of an item of a table, by their places: `a0`, `a1`, ... unless they are written in another way."""
    return [text.format(i) for i in range(table.arity)]


@dataclass(frozen=True)
class JoinFunction:
    """The function of a join: its name, and what it takes, arguments of the driver or head by their places."""

    name: str
    takes: tuple[int | str, ...]
    fixed: tuple[str, ...] = ()  # what a function that joins share is given for this one

    def call(self, arguments: Sequence[str], **given: str) -> str:
        """A call; where nothing is `given` for a parameter, a local has its name."""
        own = [arguments[key] if isinstance(key, int) else given.get(key, key) for key in self.takes]
        return f"{self.name}({', '.join([*self.fixed, *own])})"


def takes(functions: Iterable[JoinFunction], parameter: str) -> bool:
    """Whether one of some functions has a parameter."""
    return any(parameter in function.takes for function in functions)


def takes_arguments(functions: Iterable[JoinFunction]) -> bool:
    """Whether one of some functions takes arguments of its driver."""
    return any(isinstance(key, int) for function in functions for key in function.takes)
