"""The facts of one chart: those that its binding shares, overrides of these, and those of its run.

A database is immutable: adding, retracting and setting facts makes another one. Copies of a fact are rows of their own,
which native code joins. Axioms of the program's text are facts too, but cannot be changed. Bringing a chart up to date
with its facts is for `charts/changes.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import QueryError, cut
from ...facts.relation import Array, Relation, concatenate, matching, replaced, take
from ...facts.terms import item_text
from .binding import Binding
from .context import ProgramContext
from .encoding import has_texts, kinds, settle_texts, typed_beside

NONE = np.zeros(0, np.int64)
"""No rows."""


@dataclass(frozen=True)
class Database:
    """The shared facts (`binding`), the facts of the run, and by predicate the facts that override shared ones."""

    binding: Binding
    run: Mapping[str, Relation] = field(default_factory=dict)
    overrides: Mapping[str, Relation] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {"binding": self.binding, "run": self.run, "instead": self.overrides}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(binding=state["binding"], run=state["run"], overrides=state["instead"])

    @property
    def context(self) -> ProgramContext:
        return self.binding.context

    # -- what there is

    def own(self, key: str) -> Relation | None:
        """The facts of a predicate that were given, without the axioms of the text."""
        own = self._as_given(key)
        if own is None or not has_texts(own):
            return own
        typed = typed_beside(self.context.domains, self.gathered(), own, self.binding.axioms.get(key, take(own, NONE)))
        return replace(own, columns=take(typed, np.arange(own.count)).columns)

    def brought(self, key: str) -> Relation | None:
        """The facts of the run, as `own` has them."""
        run, own = self.run.get(key), self.own(key)
        if run is None or own is None or not has_texts(run):
            return run
        return replace(run, columns=take(own, np.arange(own.count - run.count, own.count)).columns)

    def _as_given(self, key: str) -> Relation | None:
        """The same; the types of texts in files are still open."""
        shared, run = self.overrides.get(key, self.binding.given.get(key)), self.run.get(key)
        if shared is None or run is None:
            return run if shared is None else shared
        return concatenate(shared, run, self.context.scale.one)

    def gathered(self) -> dict[str, Relation]:
        """All facts, the axioms of the text among them."""
        return self.binding.gathered(self.run, self.overrides)

    def places(self, key: str) -> tuple[int, int, int]:
        """The numbers of shared rows, axioms, and rows of the run among the gathered facts, in this order."""
        return self.binding.places(key, self.run, self.overrides)

    def for_all(self, key: str, rows: Array) -> Array:
        """Numbers for the rows that were given, extended to all gathered rows with zeros for axioms."""
        shared, axioms, run = self.places(key)
        if not axioms:
            return rows
        out = np.zeros((shared + axioms + run, rows.shape[1]))
        out[:shared] = rows[:shared]
        out[shared + axioms :] = rows[shared:]
        return out

    # -- other databases

    def added(self, relation: Relation) -> Database:
        """This database with more facts. Raises `FactError` where they do not fit."""
        here = self._as_given(relation.key)
        return self._fitting(relation if here is None else concatenate(here, relation, self.context.scale.one))

    def retracted(self, gone: Relation) -> Database:
        """This database without any copy of some facts. Raises `QueryError` where one of them is not there."""
        if not gone.count:
            return self
        here = self._as_given(gone.key)
        if here is None or not here.count:
            raise QueryError(f"there are no facts of {gone.key} to retract")
        mine, theirs = self._typed(here, gone)
        among, found = matching(mine, theirs, self.context.scale.one)
        if not found.all():
            first = np.flatnonzero(~found)[:1]
            row = cut(item_text(gone.key, [c.take(first).to_list()[0] for c in gone.columns]))
            if matching(mine, replace(take(theirs, first), values=None), self.context.scale.one)[1].all():
                raise QueryError(f"no row of {row} has that value; without a value all rows of a fact are retracted")
            raise QueryError(f"{row} is not a fact of this chart, so it cannot be retracted")
        return self._with(take(here, np.flatnonzero(~among)))

    def updated(self, relation: Relation) -> Database:
        """This database with facts in place of all their copies, where these were; new ones come last.

        Raises `FactError` where they do not fit.
        """
        here = self._as_given(relation.key)
        if here is None:
            return self._fitting(relation)
        return self._fitting(replaced(here, relation, self.context.scale.one, self._typed(here, relation)))

    def _typed(self, here: Relation, other: Relation) -> tuple[Relation, Relation]:
        """Facts of a predicate and others, with the types that texts of files have beside all facts: `1` or `'1'`."""
        if not (has_texts(here) or has_texts(other)):
            return here, other
        both = typed_beside(self.context.domains, self.gathered(), here, other)
        parts = take(both, np.arange(here.count)), take(both, np.arange(here.count, both.count))
        return replace(here, columns=parts[0].columns), replace(other, columns=parts[1].columns)

    def _fitting(self, relation: Relation) -> Database:
        known = {**self.binding.relations, **self.overrides, **self.run, relation.key: relation}
        kinds(self.context.rules, self.context.domains, settle_texts(self.context.domains, known))
        return self._with(relation)

    def _with(self, relation: Relation) -> Database:
        key = relation.key
        if key not in self.binding.given:
            return replace(self, run={**self.run, key: relation})
        run = {k: r for k, r in self.run.items() if k != key}
        return replace(self, run=run, overrides={**self.overrides, key: relation})
