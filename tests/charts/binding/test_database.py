"""The database of a chart: facts after changes, against lists of rows. Charts after changes are tested in
`charts/test_changes.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynagrad as dg
from dynagrad.charts.binding.binding import Binding
from dynagrad.charts.binding.context import read_facts
from dynagrad.charts.binding.database import Database
from dynagrad.charts.program import context_of
from dynagrad.facts.relation import Relation

PROGRAM = dg.Program("goal += a(X) * b(X).  a(axiom) = 9.  b(axiom) = 9.")
ROWS = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from([0.5, 1.0, 2.0])), max_size=5)
Rows = list[tuple[str, float]]


def relation(key: str, rows: Any) -> Relation:
    return read_facts(context_of(PROGRAM), {key: rows}, False)[key]


def database(bound: Rows, run: Rows) -> Database:
    """Facts of `a/1` that are bound, and facts of both predicates that are the run's own."""
    binding = Binding(context_of(PROGRAM), {"a/1": relation("a/1", bound)})
    return Database(binding, {"a/1": relation("a/1", run), "b/1": relation("b/1", run)})


def rows_of(found: Relation | None) -> Rows:
    if found is None:
        return []
    values = [1.0] * found.count if found.values is None else found.values.tolist()
    return list(zip(*(c.to_list() for c in found.columns), values, strict=True))


@given(ROWS, ROWS)
def test_what_is_bound_comes_first_and_then_what_is_the_runs_own(bound: Rows, run: Rows) -> None:
    facts = database(bound, run)
    assert rows_of(facts.own("a/1")) == bound + run
    assert rows_of(facts.own("b/1")) == run
    assert facts.own("goal/0") is None
    assert rows_of(facts.gathered()["a/1"]) == [*bound, ("axiom", 9.0), *run]
    assert facts.places("a/1") == (len(bound), 1, len(run))


def after_set(before: Rows, new: Rows) -> Rows:
    """Each row of `new` where the fact stood, the n-th one where its n-th copy did; others last."""
    waiting, found = list(new), []
    for row in before:
        mine = next((n for n in waiting if n[0] == row[0]), None)
        if mine is not None:
            waiting.remove(mine)
            found.append(mine)
        elif not any(n[0] == row[0] for n in new):
            found.append(row)
    return found + waiting


@given(ROWS, ROWS, ROWS, st.sampled_from(["a/1", "b/1"]))
def test_facts_are_added_and_set(bound: Rows, run: Rows, new: Rows, key: str) -> None:
    facts = database(bound, run)
    before = rows_of(facts.own(key))
    assert rows_of(facts.added(relation(key, new)).own(key)) == before + new
    assert rows_of(facts.updated(relation(key, new)).own(key)) == after_set(before, new)
    assert rows_of(facts.own(key)) == before  # a database never changes


@given(ROWS, ROWS, st.sampled_from(["a/1", "b/1"]), st.booleans(), st.data())
def test_facts_are_retracted_with_all_their_copies(bound: Rows, run: Rows, key: str, valued: bool, data: Any) -> None:
    facts = database(bound, run)
    before = rows_of(facts.own(key))
    gone = data.draw(st.lists(st.sampled_from(before), min_size=1)) if before else []
    if not gone:
        return
    found = facts.retracted(relation(key, gone if valued else [row[:1] for row in gone]))
    left = [row for row in before if (row not in gone if valued else row[0] not in {name for name, _ in gone})]
    assert rows_of(found.own(key)) == left


def test_what_is_no_fact_cannot_be_retracted() -> None:
    facts = database([("x", 1.0)], [])
    with pytest.raises(dg.QueryError, match=r"a\(z\) is not a fact of this chart"):
        facts.retracted(relation("a/1", [("x",), ("z",)]))
    with pytest.raises(dg.QueryError, match=r"no row of a\(x\) has that value"):
        facts.retracted(relation("a/1", [("x", 7.0)]))
    with pytest.raises(dg.QueryError, match="no facts of b/1"):
        facts.retracted(relation("b/1", [("x",)]))


@given(ROWS, ROWS)
def test_numbers_of_axioms_are_zero(bound: Rows, run: Rows) -> None:
    numbers = np.arange(1.0, 1.0 + len(bound) + len(run))[:, None]
    found = database(bound, run).for_all("a/1", numbers)[:, 0].tolist()
    assert found == [*numbers[: len(bound), 0], 0.0, *numbers[len(bound) :, 0]]


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 7]), st.sampled_from([0.5, 2.0])), max_size=4), st.booleans())
def test_a_dense_table_keeps_its_shape_while_its_indices_are_the_same(new: list[Any], bound: bool) -> None:
    dense = {"a/1": relation("a/1", np.array([1.0, 2.0, 3.0]))}
    facts = Database(Binding(context_of(PROGRAM), dense if bound else {}), {} if bound else dense)
    after = facts.updated(relation("a/1", new)).own("a/1")
    assert after is not None
    same = {n for n, _ in new} <= {0, 1, 2} and len({n for n, _ in new}) == len(new)
    assert after.dense_shape == ((3,) if same else None)
    for unchanged in (facts.added(relation("a/1", [])), facts.retracted(relation("a/1", []))):
        assert unchanged.own("a/1").dense_shape == (3,)  # type: ignore[union-attr]
    assert facts.added(relation("a/1", [(1, 2.0)])).own("a/1").dense_shape is None  # type: ignore[union-attr]
