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
class SourceName:
    """A variable of a user's function, and a line of it."""

    name: str
    line: int


Names = dict[int, SourceName]
"""By the number of a node."""

_names: ContextVar[Names | None] = ContextVar("names", default=None)


@contextmanager
def naming(names: Names) -> Iterator[Names]:
    """Inside, `name_value` and `carry` write to these names, and `source_name` reads them."""
    token = _names.set(names)
    try:
        yield names
    finally:
        _names.reset(token)


def name_value(node: int, name: str, line: int) -> None:
    """A value has a name, unless it had one before, or the name is none of the user's."""
    names = _names.get()
    if names is not None and name.isascii() and name.isidentifier():
        names.setdefault(node, SourceName(name, line))


def carry(old: int, new: int) -> None:
    """What one node is called, another one is that stands in its place."""
    names = _names.get()
    if names is not None and old in names:
        names.setdefault(new, names[old])


def source_name(node: int) -> SourceName | None:
    """What a node is called.

    >>> with naming({}):
    ...     name_value(7, "height", 3)
    ...     carry(7, 8)
    ...     source_name(8), source_name(9)
    (SourceName(name='height', line=3), None)
    """
    names = _names.get()
    return None if names is None else names.get(node)
