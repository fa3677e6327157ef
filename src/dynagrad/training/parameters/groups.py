"""Which parameters sum to one together, and which rows share one: groups and ties of rows.

A group is made of parameters, and a parameter has one row, or several that are tied. Each parameter is in one group; so
ties have to map whole groups onto one another. No weights are computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import Error, shown
from .rows import Doubles, Indices, Rows, sums

By = Callable[..., Hashable] | int | Sequence[int]
"""A function of a row's arguments, or the places of some of them, from 0."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The parameters of rows, and the groups of parameters."""

    parameter: Indices
    """The parameter of each row."""
    group: Indices
    """The group of each parameter."""
    names: tuple[str, ...]
    """What the parameters of each group are given."""

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return len(self.group)

    @property
    def of_rows(self) -> Indices:
        """The group of each row."""
        return self.group[self.parameter]

    def totals(self, numbers: Doubles) -> Doubles:
        """The sum over each group of a number for each parameter."""
        return sums(self.group, numbers, len(self.names))

    def of_parameters(self, numbers: Doubles) -> Doubles:
        """The sum over the rows of each parameter of a number for each row."""
        return sums(self.parameter, numbers, self.size)

    def pulled(self, logs: Doubles, numbers: Doubles) -> Doubles:
        """The gradient by log weights, from that by normalised ones."""
        return numbers - np.exp(logs) * self.totals(numbers)[self.group]

    def pushed(self, logs: Doubles, tangent: Doubles) -> Doubles:
        """How normalised log weights, which are given, change along a direction of the free ones."""
        return tangent - self.totals(np.exp(logs) * tangent)[self.group]

    def bent(self, logs: Doubles, numbers: Doubles, tangent: Doubles) -> Doubles:
        """How `pulled` changes along a direction of the free ones."""
        return -np.exp(logs) * self.pushed(logs, tangent) * self.totals(numbers)[self.group]

    def normalised(self, logs: Doubles) -> Doubles:
        """Log weights that sum to one in each group; a group whose weights are all zero stays as it is."""
        top = np.full(len(self.names), -np.inf)
        np.maximum.at(top, self.group, logs)
        finite = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            sums = np.log(self.totals(np.exp(logs - finite[self.group])))
        total = finite + sums
        return logs - np.where(np.isfinite(total), total, 0.0)[self.group]


def part_of(rows: Rows, by: By | None, what: str) -> list[Hashable]:
    """What a function, or a choice of arguments, gives for each row."""
    if by is None:
        return [()] * len(rows)
    if callable(by):
        found = rows.results(what, by)
    else:
        if not isinstance(by, int | list | tuple):
            raise Error(f"{what} is a function of a row's arguments, or the places of some of them, not {shown(by)}")
        places = (by,) if isinstance(by, int) else tuple(by)
        for key, relation in rows.relations.items():
            if any(isinstance(p, bool) or not isinstance(p, int) or not 0 <= p < relation.arity for p in places):
                raise Error(f"{what}={shown(by)}: {key} has the arguments 0 to {relation.arity - 1}")
        found = [tuple(arguments[p] for p in places) for arguments in rows.arguments]
    return names_of_groups(rows, found, what)


def names_of_groups(rows: Rows, found: Sequence[Any], what: str) -> list[Hashable]:
    """What each row is given, if that can name a group: it has to be hashable, and equal to itself."""
    for n, part in enumerate(found):
        if not isinstance(part, Hashable) or part != part:
            raise Error(f"{what} gives {shown(part)} for {rows.text(n)}, which cannot name a group")
    return list(found)


def numbered(parts: Iterable[Hashable]) -> tuple[Indices, list[Hashable]]:
    """Equal things as equal numbers, from 0 in the order of the first of each."""
    known: dict[Hashable, int] = {}
    numbers = [known.setdefault(part, len(known)) for part in parts]
    return np.array(numbers, np.int64), list(known)


def groups_of(given: Sequence[Hashable], parameter: Indices | None = None) -> Groups:
    """Groups of rows that are `given` the same; rows with the same `parameter` share it, unless each has its own."""
    group_of_row, names = numbered(given)
    if parameter is None:
        return Groups(np.arange(len(given)), group_of_row, tuple(map(_name, names)))
    size = int(parameter.max(initial=-1)) + 1
    members: dict[int, list[int]] = {}
    for row, group in enumerate(group_of_row.tolist()):
        members.setdefault(group, []).append(int(parameter[row]))
    merged: dict[frozenset[int], int] = {}
    group = np.full(size, -1, np.int64)
    kept: list[str] = []
    for number, parameters in members.items():
        shared = frozenset(parameters)
        if len(shared) < len(parameters):
            raise Error(
                f"tied: two rows given {_name(names[number])} share a parameter, and both would count in its sum"
            )
        if shared in merged:
            continue
        taken = [p for p in parameters if group[p] >= 0]
        if taken:
            other = kept[group[taken[0]]]
            raise Error(
                f"tied: the rows given {_name(names[number])} and those given {other} share some parameters, but not "
                "all; ties have to cover whole groups"
            )
        merged[shared] = len(kept)
        group[parameters] = len(kept)
        kept.append(_name(names[number]))
    return Groups(parameter, group, tuple(kept))


@dataclass(frozen=True)
class Declared:
    """What a row is given by a declaration of the program, whose text it has."""

    text: str
    given: tuple[Hashable, ...]


def all_declared(rows: Rows, declared: Sequence[Declared | None]) -> list[Hashable]:
    """What each row is given. Raises Error where some are declared and some are not."""
    for n, part in enumerate(declared):
        if part is None:
            some = next(d for d in declared if d is not None)
            raise Error(
                f"nothing says which rows {rows.text(n)} sums to one with: the program declares {some.text} for others "
                "of this parametrisation; declare a distribution for these too, or give them a parametrisation of "
                "their own"
            )
    return list(declared)


def in_declared(rows: Rows, groups: Groups, declared: Sequence[Declared | None], places: bool) -> Groups:
    """Groups of rows, where a program declares those of some. Raises Error where they are in others.

    `places` says that they are by places of arguments, which are meant of each declaration by itself.
    """
    of_row = groups.of_rows
    if places:
        apart = [(n, None if d is None else d.text) for n, d in zip(of_row.tolist(), declared, strict=True)]
        of_row = groups_of(apart, groups.parameter).of_rows
    parts: list[Hashable] = [d or n for d, n in zip(declared, of_row.tolist(), strict=True)]
    found = groups_of(parts, groups.parameter)
    wanted = found.of_rows
    for mine, others, what in ((of_row, wanted, "sum"), (wanted, of_row, "do not sum")):
        first: dict[int, int] = {}
        for n, group in enumerate(mine.tolist()):
            m = first.setdefault(group, n)
            if others[m] != others[n]:
                text = next(d.text for d in (declared[n], declared[m]) if d is not None)
                raise Error(
                    f"{rows.text(m)} and {rows.text(n)} {what} to one together by `given`, and the program says "
                    f"otherwise by {text}: leave `given` out, or take the declaration out of the program"
                )
    return found


def _name(part: Hashable) -> str:
    if isinstance(part, Declared):
        return _name(part.given)
    if isinstance(part, tuple):
        return ", ".join(map(str, part)) or "nothing"
    return str(part)


def values_of(groups: Groups, rows: Rows, values: Any) -> Doubles:
    """Values of rows as those of parameters. Raises Error where tied rows differ."""
    numbers = np.full(groups.size, np.nan)
    for row, value in enumerate(np.asarray(values, np.float64).tolist()):
        p = groups.parameter[row]
        if not np.isnan(numbers[p]) and numbers[p] != value:
            raise Error(f"{rows.text(row)} has the value {value}, and a row that is tied to it has {numbers[p]}")
        numbers[p] = value
    return numbers
