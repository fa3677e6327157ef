"""The facts whose weights are parameters: rows of several predicates, one after another.

How their weights depend on parameters is for the parametrisations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arguments import function_of
from ...errors import FactError, shown
from ...facts.readers import read
from ...facts.relation import Relation
from ...facts.terms import item_text
from ...forks import cached

Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Arguments = tuple[Any, ...]


def sums(at: Indices, numbers: Doubles, size: int) -> Doubles:
    """The sum of the numbers that are `at` each place."""
    return np.asarray(np.bincount(at, numbers, size), np.float64)


class Rows:
    """The rows of some predicates, in the order of the predicates and then in that of their facts.

    >>> rows = Rows({"rewrite/3": [("s", "np", "vp", 0.5)], "rewrite/2": [("np", "she")]})
    >>> len(rows), rows.text(1), rows.split(np.array([1.0, 2.0]))
    (2, 'rewrite(np,she)', {'rewrite/3': array([1.]), 'rewrite/2': array([2.])})
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        if not isinstance(facts, Mapping) or not facts:
            raise FactError(f"parameters are a dict from predicates such as 'rewrite/3' to rows, not {shown(facts)}")
        self.relations: dict[str, Relation] = {key: read(key, given, finite="no_nan") for key, given in facts.items()}
        seen: dict[tuple[str, Arguments], None] = {}
        for key, arguments in zip(self.keys_of_rows, self.arguments, strict=True):
            if (key, arguments) in seen:
                raise FactError(f"{item_text(key, list(arguments))} is there twice, and a parameter has one row")
            seen[key, arguments] = None

    def __len__(self) -> int:
        return sum(r.count for r in self.relations.values())

    @property
    def keys(self) -> tuple[str, ...]:
        """The predicates."""
        return tuple(self.relations)

    @cached
    def arguments(self) -> list[Arguments]:
        """The arguments of each row."""
        found: list[Arguments] = []
        for relation in self.relations.values():
            columns = [column.to_list() for column in relation.columns]
            found += zip(*columns, strict=True) if columns else [()] * relation.count
        return found

    @cached
    def keys_of_rows(self) -> list[str]:
        """The predicate of each row."""
        return [key for key, relation in self.relations.items() for _ in range(relation.count)]

    @cached
    def values(self) -> Doubles | None:
        """The values that the facts came with; None where none had any."""
        if all(r.values is None for r in self.relations.values()):
            return None
        parts = [np.ones(r.count) if r.values is None else r.values for r in self.relations.values()]
        return np.concatenate([np.zeros(0), *parts])

    def results(self, what: str, function: Callable[..., Any]) -> list[Any]:
        """What a function of a row's arguments gives for each. Raises Error where it takes other arguments."""
        for key, relation in self.relations.items():
            function_of(what, function, relation.arity, f"the arguments of a row of {key}")
        return [function(*arguments) for arguments in self.arguments]

    def text(self, n: int) -> str:
        """A row as an item."""
        return item_text(self.keys_of_rows[n], list(self.arguments[n]))

    def split(self, values: Doubles) -> dict[str, Doubles]:
        """Numbers of all rows by predicate."""
        found, begin = {}, 0
        for key, relation in self.relations.items():
            found[key] = values[begin : begin + relation.count]
            begin += relation.count
        return found

    def joined(self, by_predicate: Mapping[str, Doubles]) -> Doubles:
        """Numbers by predicate as those of all rows."""
        return np.concatenate([np.zeros(0), *(np.ravel(by_predicate[key]) for key in self.relations)])
