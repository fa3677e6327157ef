"""What the values of a graph are called in the text that it was made from, and in which line: for those who read what
is made of it. Nothing is computed otherwise for it.

Names are kept beside a graph, by the numbers of its nodes (`Node.birth`). Passes hand them on where they put one node
in the place of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Said:
    """A variable of a user's function, and a line of it."""

    name: str
    line: int


Names = dict[int, Said]
"""By the number of a node."""

_names: ContextVar[Names | None] = ContextVar("names", default=None)


@contextmanager
def naming(names: Names) -> Iterator[Names]:
    """Inside, `note` and `carry` write to these names, and `said_of` reads them."""
    token = _names.set(names)
    try:
        yield names
    finally:
        _names.reset(token)


def note(node: int, name: str, line: int) -> None:
    """A value has a name, unless it had one before, or the name is none of the user's."""
    names = _names.get()
    if names is not None and name.isascii() and name.isidentifier():
        names.setdefault(node, Said(name, line))


def carry(old: int, new: int) -> None:
    """What one node is called, another one is that stands in its place."""
    names = _names.get()
    if names is not None and old in names:
        names.setdefault(new, names[old])


def said_of(node: int) -> Said | None:
    """What a node is called.

    >>> with naming({}):
    ...     note(7, "height", 3)
    ...     carry(7, 8)
    ...     said_of(8), said_of(9)
    (Said(name='height', line=3), None)
    """
    names = _names.get()
    return None if names is None else names.get(node)
