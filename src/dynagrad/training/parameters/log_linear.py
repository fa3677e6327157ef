"""Weights that are log-linear in features: free ones, or normalised in groups (maximum entropy).

Which rows are normalised together is for `groups.py`; iterative scaling of the weights is in
`training/methods/scaling.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from ...arguments import function_of, real_number, truth, whole_number, yes_or_no
from ...calls import strict_options
from ...errors import Error, counted, shown, warn
from ...facts.readers import read
from ...facts.relation import parse_key
from ...facts.table import Table, relation_of
from ...forks import cached
from .groups import By, Declared, all_declared, groups_of, in_declared, numbered, part_of
from .parametrisation import Parametrisation
from .rows import Doubles, Flags, Indices, Rows, sums

Features = Callable[..., Any] | Mapping[str, Any]


class LogLinear(Parametrisation):
    """Rows whose log weight is the sum of the weights of their features.

    `features` is a function of a row's arguments that gives the names of its features, or a dict from names to numbers;
    or a dict that has for each predicate a table with one column more, the feature, and perhaps a value: facts, or what
    a chart's query gave. Without, each row is a feature of its own. With `given`, weights are normalised over rows that
    are given the same, so that they are probabilities; so they are over the groups that the program of the model
    declares (`:- distribution`), if it does. A feature is of one predicate: where rows of several have features of one
    name, each predicate has its own ("f of p/1"), of which there is a warning unless `shared` is False; with
    `shared=True` they are one. `hashed` is how many numbers features are hashed to; features that meet there share a
    weight. `frozen` says whose weight stays as it was: a list of features, or a function of one.

    Where each predicate has its own, the name that `features` gave stands for all of these, in `initial`, `frozen` and
    the mean of a prior, and a feature's own name ("f of p/1") for it alone, which wins. A function `frozen` is asked of
    both, and it is an error if it says of all own names what it denies of the one that `features` gave.

    `initial` is a number for all weights, or a dict from features to numbers; without, it is 0, but where each row is a
    feature of its own, and rows have values, training begins at these: weights, and not their logs.
    `noise` is the standard deviation of what is added, drawn with the seed of `fit`.

    >>> from dynagrad import training
    >>> tagger = training.LogLinear({"emit/2": [("n", "dogs"), ("n", "runs")]}, lambda tag, word: [tag, word[-1]])
    >>> tagger.names()
    ['n', 's']
    """

    frozen: Flags
    begun: Doubles | None = None
    """The logs of the values of rows, where each has a weight of its own, which begins there."""

    @strict_options
    def __init__(
        self,
        rows: Mapping[str, Any],
        features: Features | None = None,
        given: By | None = None,
        *,
        shared: bool | None = None,
        hashed: int | None = None,
        initial: float | Mapping[Any, float] | None = None,
        noise: float = 0.0,
        frozen: Callable[[Any], bool] | Collection[Any] | None = None,
    ) -> None:
        self.rows = Rows(rows)
        if callable(frozen):
            function_of("frozen", frozen, 1, "a feature")
        elif frozen is not None and (isinstance(frozen, str | bytes) or not isinstance(frozen, Collection)):
            raise Error(f"frozen must be a function of a feature, or a list of features, not {shown(frozen)}")
        for number in initial.values() if isinstance(initial, Mapping) else () if initial is None else (initial,):
            if not np.isfinite(real_number("initial", number)):
                raise Error(f"initial must be a finite number, or a dict of these, not {number}")
        if not np.isfinite(real_number("noise", noise, 0.0)):
            raise Error(f"noise must be a finite number, not {noise}")
        at, names, values = _features(self.rows, features)
        plain: dict[Any, Any] = {}
        if shared is None or not yes_or_no("shared", shared):
            names, plain = _apart(self.rows, at, names, warns=shared is None)
        if hashed is not None:
            hashed = whole_number("hashed", hashed, 1, 1 << 30)
            names = [zlib.crc32(repr(name).encode()) % hashed for name in names]
        self._at: Indices = np.array(at, np.int64)
        self._values: Doubles = np.array(values, np.float64)
        self._feature, self.features = numbered(names)
        if hashed is not None:
            self._feature, self.features = np.array(names, np.int64), list(range(hashed))
        self.size = len(self.features)
        self.groups = None if given is None else groups_of(part_of(self.rows, given, "given"))
        self._places = given is not None and not callable(given)
        if hashed is None and isinstance(initial, Mapping):
            initial = _of_each(initial, plain)
        self._initial, self._noise = initial, noise
        given_values = self.rows.values
        if features is None and hashed is None and initial is None:
            if given_values is not None and (np.isfinite(given_values) & (given_values > 0)).all():
                self.begun = np.log(given_values)
        if not self.size:
            raise Error("features gives none for any row, so there is nothing to learn")
        self._known(initial)
        self.frozen = _frozen(self.features, plain, frozen)
        self.common_names = {_text_of(own): _text_of(name) for own, name in plain.items()} if hashed is None else {}

    def _known(self, initial: Any) -> None:
        """Warns of initial weights of features that no row has."""
        _warn_of_unknown(
            initial if isinstance(initial, Mapping) else (), self.features, "initial", "its initial weight"
        )

    def in_groups(self, declared: Sequence[Declared | None] | None) -> Parametrisation:
        if declared is None:
            return self
        found = copy(self)
        if self.groups is None:
            found.groups = groups_of(all_declared(self.rows, declared))
        else:
            found.groups = in_declared(self.rows, self.groups, declared, self._places)
        return found

    def doubts(self) -> list[str]:
        return [] if self.begun is not None else super().doubts()

    def start(self, random: np.random.Generator) -> Doubles:
        given = self._initial
        if self.begun is not None:
            begin = self.begun.copy()
        elif isinstance(given, Mapping):
            begin = np.array([float(given.get(f, 0.0)) for f in self.features])
        else:
            begin = np.full(self.size, 0.0 if given is None else float(given))
        if not self._noise:
            return begin
        return np.where(self.frozen, begin, begin + self._noise * random.standard_normal(self.size))

    def draw(self, random: np.random.Generator) -> Doubles:
        """Normal ones around those of the start, with a deviation of `noise`, or of one where that is zero."""
        begin = self.start(random)
        return begin if self._noise else np.where(self.frozen, begin, begin + random.standard_normal(self.size))

    @cached
    def _columns(self) -> list[Indices] | None:
        """The first feature of each row, the second and so on, where all have as many, and each has the value one."""
        rows = len(self.rows)
        count = len(self._at) // max(1, rows)
        if not 1 <= count <= MOST_COLUMNS or (self._values != 1).any():
            return None
        if not np.array_equal(self._at, np.repeat(np.arange(rows), count)):
            return None
        return [np.ascontiguousarray(column) for column in self._feature.reshape(rows, count).T]

    def scores(self, theta: Doubles) -> Doubles:
        """The sum of the weights of each row's features."""
        if self._columns is None:
            return sums(self._at, self._values * theta[self._feature], len(self.rows))
        scores = theta.take(self._columns[0])
        for column in self._columns[1:]:
            scores += theta.take(column)
        return scores

    def weights(self, theta: Doubles) -> Doubles:
        scores = self.scores(theta)
        return scores if self.groups is None else self.groups.normalised(scores)

    def pull(self, theta: Doubles, cotangent: Doubles) -> Doubles:
        if self.groups is not None:
            cotangent = self.groups.pulled(self.weights(theta), cotangent)
        return self.free(self.totals(cotangent))

    def push(self, theta: Doubles, tangent: Doubles) -> Doubles:
        moved = self.scores(np.where(self.frozen, 0.0, tangent))
        return moved if self.groups is None else self.groups.pushed(self.weights(theta), moved)

    def bend(self, theta: Doubles, cotangent: Doubles, tangent: Doubles) -> Doubles:
        if self.groups is None:
            return np.zeros(self.size)
        moved = self.scores(np.where(self.frozen, 0.0, tangent))
        return np.where(self.frozen, 0.0, self.totals(self.groups.bent(self.weights(theta), cotangent, moved)))

    def totals(self, numbers: Doubles) -> Doubles:
        """The total of each feature over rows that count so many times."""
        if self._columns is not None:
            return sums(self._feature, np.repeat(numbers, len(self._columns)), self.size)
        return sums(self._feature, self._values * numbers[self._at], self.size)

    def row_totals(self) -> Doubles:
        """The total of features of each row, as iterative scaling needs it."""
        return sums(self._at, self._values, len(self.rows))

    def entries(self) -> tuple[Indices, Indices, Doubles]:
        """Rows, features and values of all features of rows."""
        return self._at, self._feature, self._values

    def names(self) -> list[str]:
        return [_text_of(f) for f in self.features]


def _text_of(feature: Any) -> str:
    return feature if isinstance(feature, str) else str(feature)


def _warn_of_unknown(given: Collection[Any], features: Collection[Any], what: str, so: str) -> None:
    """Warns of names, in an argument, of features that no row has."""
    known = set(features)
    unknown = [name for name in given if name not in known]
    if unknown:
        more = "" if len(unknown) == 1 else f", nor {counted(len(unknown) - 1, 'other')} that {what} has"
        warn(f"no row has the feature {shown(min(unknown, key=str))}{more}: {so} counts for nothing")


def _frozen(features: Sequence[Any], plain: Mapping[Any, Any], frozen: Any) -> Flags:
    """Which features stay as they are; `plain` has the name that all have of those whose predicates have their own."""
    if frozen is None:
        return np.zeros(len(features), bool)
    if not callable(frozen):
        for name in frozen:
            if not isinstance(name, Hashable):
                raise Error(f"frozen has {shown(name)}, which cannot name a feature")
        _warn_of_unknown(frozen, [*features, *plain.values()], "frozen", "that it is to stay as it is")
        names = set(frozen)
        return np.array([f in names or plain.get(f) in names for f in features], bool)
    said = {f: truth("frozen", frozen(f)) for f in features}
    of_all: dict[Any, list[Any]] = {}
    for own, name in plain.items():
        of_all.setdefault(name, []).append(own)
    for name, owns in of_all.items():
        if len({said[own] for own in owns if own in said}) > 1:
            continue  # it tells predicates apart
        for_all = truth("frozen", frozen(name))
        if said.get(owns[0]) and not for_all:
            raise Error(
                f"frozen says yes of the features {' and '.join(map(shown, owns))}, and no of {shown(name)}, which is "
                "what features called them: give a list of features in place of the function"
            )
        said.update(dict.fromkeys(owns, for_all))
    return np.array([said[f] for f in features], bool)


def _of_each(initial: Mapping[Any, float], plain: Mapping[Any, Any]) -> dict[Any, float]:
    """Initial weights, where a name of several features is that of each which has none for itself."""
    names = set(plain.values())
    found = {name: x for name, x in initial.items() if name not in names}
    return found | {f: initial[name] for f, name in plain.items() if name in initial and f not in initial}


def _apart(rows: Rows, at: Sequence[int], names: Sequence[Any], warns: bool) -> tuple[list[Any], dict[Any, Any]]:
    """The features of rows, with the predicate in those that rows of several have; and the names that these had."""
    if len(rows.keys) < 2:
        return list(names), {}
    keys = [rows.keys_of_rows[n] for n in at]
    owners: dict[Any, dict[str, None]] = {}
    for name, key in zip(names, keys, strict=True):
        owners.setdefault(name, {})[key] = None
    several = {name: list(found) for name, found in owners.items() if len(found) > 1}
    plain: dict[Any, Any] = {}
    found: list[Any] = []
    for name, key in zip(names, keys, strict=True):
        if name not in several:
            found.append(name)
            continue
        own = f"{name} of {key}" if isinstance(name, str) else (name, key)
        if own in owners:
            raise Error(f"features gives {shown(own)} and, for rows of {key}, {shown(name)}: give one another name")
        plain[own] = name
        found.append(own)
    if several and warns:
        name, of = next(iter(several.items()))
        more = "" if len(several) == 1 else f", and {len(several) - 1:,} more are likewise"
        warn(
            f"rows of {' and of '.join(of)} have the feature {shown(name)}{more}: each predicate has its own, with a "
            "weight of its own. shared=True makes one of them, and shared=False says that they are apart"
        )
    return found, plain


MOST_COLUMNS = 16
"""The most features of a row whose weights are added column by column."""


def _features(rows: Rows, features: Features | None) -> tuple[list[int], list[Any], list[float]]:
    """The features of rows: for each its row, its name, its value."""
    if features is None:
        return list(range(len(rows))), [rows.text(n) for n in range(len(rows))], [1.0] * len(rows)
    if isinstance(features, Mapping):
        return _of_tables(rows, features)
    if not callable(features):
        raise Error(f"features is a function of a row, or tables by predicate, not {shown(features)}")
    at: list[int] = []
    names: list[Any] = []
    values: list[float] = []
    for n, found in enumerate(rows.results("features", features)):
        if isinstance(found, str | bytes) or not isinstance(found, Iterable):
            raise Error(f"features gives {shown(found)} for {rows.text(n)}: a list of names, or a dict, is wanted")
        pairs = found.items() if isinstance(found, Mapping) else ((name, 1.0) for name in found)
        for name, value in pairs:
            if name is None or not isinstance(name, Hashable):
                raise Error(f"features gives {shown(name)} for {rows.text(n)}, which cannot name a feature")
            number = real_number(f"the feature {name} of {rows.text(n)}", value)
            if not np.isfinite(number):
                raise Error(f"the feature {name} of {rows.text(n)} is {number}, and has to be finite")
            at.append(n)
            names.append(name)
            values.append(number)
    return at, names, values


def _of_tables(rows: Rows, tables: Mapping[str, Any]) -> tuple[list[int], list[Any], list[float]]:
    place = {pair: n for n, pair in enumerate(zip(rows.keys_of_rows, rows.arguments, strict=True))}
    at: list[int] = []
    names: list[Any] = []
    values: list[float] = []
    for key, table in tables.items():
        if key not in rows.relations:
            raise Error(f"features has a table for {shown(key)}, whose rows are no parameters here")
        name, arity = parse_key(key)
        wide = f"{name}/{arity + 1}"
        relation = relation_of(table) if isinstance(table, Table) else read(wide, table)
        if relation.arity != arity + 1:
            raise Error(
                f"features: the table for {key} needs {counted(arity + 1, 'column')}, the last of which is the feature"
            )
        columns = [c.to_list() for c in relation.columns]
        numbers = [1.0] * relation.count if relation.values is None else relation.values.tolist()
        for row, value in zip(zip(*columns, strict=True), numbers, strict=True):
            n = place.get((key, row[:-1]))
            if n is not None:  # a feature of a row that is no parameter is not needed
                at.append(n)
                names.append(row[-1])
                values.append(float(value))
    return at, names, values
