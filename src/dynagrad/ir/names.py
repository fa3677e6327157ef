"""Source names: the variable and line of a user's function that a value comes from. They change no computation.

Names are kept beside a graph, by serial number of the node (`Node.birth`). Passes carry them over where they replace
one node by another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceName:
    """A variable of a user's function, and a line of it; the name is empty where a value has none."""

    name: str
    line: int


Names = dict[int, SourceName]
"""By the number of a node."""

_names: ContextVar[Names | None] = ContextVar("names", default=None)


@contextmanager
def naming(names: Names) -> Iterator[Names]:
    """A context in which `name_value` and `carry` write to these names, and `source_name` reads them."""
    token = _names.set(names)
    try:
        yield names
    finally:
        _names.reset(token)


_line: ContextVar[int] = ContextVar("line", default=0)


def without_lines(names: Names) -> Names:
    """The names alone, so that what is made from them does not depend on where a function stands in its file."""
    return {node: SourceName(said.name, 0) for node, said in names.items() if said.name}


def set_line(line: int) -> int:
    """Says which line of the user's function is read from here on, 0 for none; the line before."""
    before = _line.get()
    _line.set(line)
    return before


def set_line_of(node: int) -> None:
    """Goes on with the line that a node comes from, if it is known, for what is computed from the node."""
    names = _names.get()
    if names is not None and node in names:
        _line.set(names[node].line)


@contextmanager
def line_of(nodes: Iterable[int]) -> Iterator[None]:
    """A context in which what is made comes from the line of these nodes, the first that is known."""
    before = set_line(next((said.line for node in nodes if (said := source_name(node)) and said.line), 0))
    try:
        yield
    finally:
        set_line(before)


def note_line(node: int) -> None:
    """Notes the line that is read, for a node that is made by it."""
    line = _line.get()
    if line:
        names = _names.get()
        if names is not None:
            names.setdefault(node, SourceName("", line))


def name_value(node: int, name: str, line: int) -> None:
    """Names a value, unless it has a name, or the name is not an identifier that a user wrote."""
    names = _names.get()
    if names is not None and name.isascii() and name.isidentifier() and not (node in names and names[node].name):
        names[node] = SourceName(name, line)


def carry(old: int, new: int) -> None:
    """Gives the name of a node to the one that replaces it."""
    names = _names.get()
    if names is not None and old in names and not (new in names and names[new].name):
        names[new] = names[old] if names[old].name or new not in names else names[new]


def source_name(node: int) -> SourceName | None:
    """The name of a node; None where it has none.

    >>> with naming({}):
    ...     name_value(7, "height", 3)
    ...     carry(7, 8)
    ...     source_name(8), source_name(9)
    (SourceName(name='height', line=3), None)
    """
    names = _names.get()
    return None if names is None else names.get(node)
