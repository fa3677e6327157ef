"""Derivations that were observed: how often each uses a parameter, and its weight. Nothing is run for them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...charts.program import Program
from ...errors import Error
from ...facts.relation import Relation
from ...facts.terms import item_text
from ...forests.checking import weigh
from ...forks import renewed
from ..examples import Example
from ..parameters.rows import Doubles


class Places:
    """Where the row of each parameter is, found once."""

    def __init__(self, relations: Mapping[str, Relation]) -> None:
        self.relations = relations
        self._places: dict[str, dict[tuple[Any, ...], int]] | None = None

    def __getstate__(self) -> Mapping[str, Relation]:
        return self.relations

    def __setstate__(self, state: Mapping[str, Relation]) -> None:
        self.relations, self._places = state, None

    def __contains__(self, key: object) -> bool:
        return key in self.relations

    def row(self, key: str, arguments: tuple[Any, ...]) -> int:
        """The row of a parameter. Raises Error where there is none."""
        if self._places is None:
            columns = {k: [c.to_list() for c in r.columns] for k, r in self.relations.items()}
            self._places = {
                k: {row: n for n, row in enumerate(zip(*c, strict=True) if c else [()])} for k, c in columns.items()
            }
        found = self._places[key].get(arguments)
        if found is None:
            raise Error(f"an observed derivation uses {item_text(key, list(arguments))}, which is no parameter here")
        return found


def counts_of(example: Example, places: Places) -> dict[str, dict[int, int]]:
    """How often the example's derivation uses each parameter: by predicate and row."""
    assert example.derivation is not None
    found: dict[str, dict[int, int]] = {}
    for step in example.derivation.steps:
        if step.rule is None and not step.side and step.name[0] in places:
            row = places.row(step.name[0], tuple(step.name[1]))
            counts = found.setdefault(step.name[0], {})
            counts[row] = counts.get(row, 0) + 1
    return found


def fixed_weight(
    example: Example, program: Program, places: Places, shared: Mapping[str, Any], facts: Mapping[str, Any], side: str
) -> float:
    """The log of the product of all factors of the derivation that are no parameters.

    `shared` are the facts of all examples, `facts` those of this one in the run that the derivation stands for, which
    `side` names: in that of a conditional model with costs these are ones.

    Every step is checked on the way, so that a derivation of another program, or of other facts, is an error.
    """
    assert example.derivation is not None
    by: tuple[Any, ...] = (example.derivation, example.facts, example.observed, program, places)
    key = (*map(id, by), side)
    kept = _WEIGHTS.get(key)
    if kept is not None:
        return kept[1]
    ones = {key: replace(relation, values=None) for key, relation in places.relations.items()}
    steps = [
        replace(s, row=places.row(s.name[0], tuple(s.name[1]))) if s.row is not None and s.name[0] in places else s
        for s in example.derivation.steps
    ]
    found = weigh(steps, program, {**shared, **facts, **ones}, "weights")
    if found is None:
        raise Error(
            "the weight of an observed derivation cannot be worked out: it is no product of facts and constants"
        )
    if program.semiring == "real":
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(found)
    _keep(key, by, float(found))
    return float(found)


MOST = 10_000
_WEIGHTS: dict[tuple[Any, ...], tuple[tuple[Any, ...], float]] = {}
"""Weights that were worked out, by what they are of, which is alive by being here; for data that fit in memory."""
_lock = renewed(threading.RLock())


def _keep(key: tuple[Any, ...], by: tuple[Any, ...], weight: float) -> None:
    """Keeps a weight, and lets the oldest go where there are many."""
    with _lock:
        while len(_WEIGHTS) >= MOST:
            del _WEIGHTS[next(iter(_WEIGHTS))]
        _WEIGHTS[key] = (by, weight)


def log_weight(counts: Mapping[str, Mapping[int, int]], logs: Mapping[str, Doubles]) -> float:
    """The log of the product of the parameters that a derivation uses."""
    return float(sum(n * logs[key][row] for key, rows in counts.items() for row, n in rows.items()))
