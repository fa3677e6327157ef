"""Relations: rows keep their order, and are selected, joined and compared as lists of tuples are.

Costs a few seconds.
"""

import pickle
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dynagrad.facts import relation
from dynagrad.facts.readers import read
from dynagrad.facts.relation import AtomColumn, Relation, concatenate, encode, matching, row_numbers, take

ATOMS = st.text("ab", max_size=1) | st.integers(0, 2) | st.sampled_from([0.0, 1.0, 2.5])
ROWS = st.lists(st.tuples(ATOMS | st.lists(ATOMS, max_size=2), st.integers(0, 1), st.floats(0, 1)), max_size=8)
"""Facts of `p/2`: sometimes a column of integers, of atoms, or of terms, so that columns of two kinds meet."""


def typed(value: Any) -> Any:
    """A value under which it equals itself and no number of another type; the empty list is the symbol nil."""
    if isinstance(value, list | tuple):
        return tuple(map(typed, value)) or (str, "nil")
    return (type(value), value)


def arguments(relation: Relation) -> list[Any]:
    return [tuple(map(typed, row)) for row in zip(*(c.to_list() for c in relation.columns), strict=True)]


def weights(relation: Relation) -> list[float]:
    return [1.0] * relation.count if relation.values is None else relation.values.tolist()


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(max_size=2) | st.integers(-5, 5) | st.floats(-5, 5), st.lists(st.text(max_size=1)))))
def test_arguments_come_back_and_pickle(rows: list[tuple[Any, list[str]]]) -> None:
    relation = read("p/2", rows)
    for again in (relation, pickle.loads(pickle.dumps(relation))):
        first, second = (column.to_list() for column in again.columns)
        assert [(type(value), value) for value in first] == [(type(row[0]), row[0]) for row in rows]
        assert [[x or "nil" for x in value] for value in second] == [[x or "nil" for x in row[1]] for row in rows]


@given(st.lists(st.tuples(st.text("abc", max_size=2), st.integers(0, 3)), max_size=20), st.randoms())
def test_rows_can_be_taken(rows: list[tuple[str, int]], random: Any) -> None:
    relation = read("p/2", rows)
    chosen = np.array([random.randrange(len(rows)) for _ in range(5)] if rows else [], np.int64)
    for index, column in enumerate(relation.columns):
        taken = column.take(chosen)
        assert taken.to_list() == [rows[row][index] for row in chosen]
        if isinstance(taken, AtomColumn):
            assert taken.atoms == list(dict.fromkeys(taken.to_list()))


@given(ROWS, st.randoms())
def test_rows_of_a_relation_can_be_taken(rows: list[Any], random: Any) -> None:
    relation = read("p/2", rows)
    chosen = np.array([random.randrange(len(rows)) for _ in range(5)] if rows else [], np.int64)
    taken = take(relation, chosen)
    assert arguments(taken) == [arguments(relation)[row] for row in chosen]
    assert weights(taken) == [weights(relation)[row] for row in chosen]


@given(ROWS, ROWS, st.booleans(), st.booleans())
def test_relations_are_joined_row_for_row(first: list[Any], second: list[Any], a: bool, b: bool) -> None:
    """Where one of them has no values, its rows are one."""
    left = read("p/2", first if a else [row[:2] for row in first])
    right = read("p/2", second if b else [row[:2] for row in second])
    both = concatenate(left, right, 1.0)
    assert both.count == len(first) + len(second)
    assert arguments(both) == arguments(left) + arguments(right)
    assert weights(both) == weights(left) + weights(right)
    for column in both.columns:
        if isinstance(column, AtomColumn):
            assert len(set(map(typed, column.atoms))) == len(column.atoms)


@given(ROWS)
def test_rows_with_equal_arguments_have_equal_numbers(rows: list[Any]) -> None:
    relation = read("p/2", rows)
    numbers = row_numbers(relation).tolist()
    pairs = set(zip(arguments(relation), numbers, strict=True))
    assert len(pairs) == len(set(arguments(relation))) == len(set(numbers))


@given(ROWS, ROWS, st.booleans(), st.sampled_from([1, 20]))
def test_rows_of_one_relation_are_found_in_another(
    first: list[Any], second: list[Any], valued: bool, copies: int
) -> None:
    here = read("p/2", first * copies)
    gone = read("p/2", [*first[::2], *second] if valued else [row[:2] for row in (*first[::2], *second)])
    mine, theirs = arguments(here), arguments(gone)
    if gone.values is not None:
        mine = list(zip(mine, weights(here), strict=True))
        theirs = list(zip(theirs, weights(gone), strict=True))
    among, found = matching(here, gone, 1.0)
    assert among.tolist() == [row in theirs for row in mine]
    assert found.tolist() == [row in mine for row in theirs]


def test_codes_are_the_same_in_blocks_of_any_size(monkeypatch):
    rows = list("abacadaab")
    whole = encode(rows)
    for size in (1, 2, 4, 9, 10):
        monkeypatch.setattr(relation, "BLOCK", size)
        codes, distinct = encode(rows)
        assert (
            (codes.tolist(), distinct) == ([0, 1, 0, 2, 0, 3, 0, 0, 1], list("abcd")) == (whole[0].tolist(), whole[1])
        )
    assert encode([])[0].tolist() == []
