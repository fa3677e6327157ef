"""Facts in forms that are nearly right: the message says what to give instead."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

ONE = dg.Program("a(X) += b(X).")
TWO = dg.Program("a(X) += b(X,_).")
NONE = dg.Program("a += b.")


class Sparse:
    """What looks like a matrix of scipy."""

    def tocoo(self) -> Any:
        raise AssertionError("it is not read")


@pytest.mark.parametrize(
    ("program", "rows", "message"),
    [
        (ONE, np.array([["x"], ["y"]]), r"an array of texts .* list\(map\(tuple, array\.tolist\(\)\)\)"),
        (ONE, np.array(["x", "y"]), r"an array of texts .* list\(zip\(array\)\)"),
        (TWO, np.array([["x", "y"]], object), "an array of texts"),
        (TWO, np.array([[b"x", b"y"]]), "an array of texts"),
        (ONE, [1.0, 2.0], r"1\.0 is not a row; rows are tuples, such as \(1\.0,\); numbers .* np\.array"),
        (ONE, ["x", "y"], r"'x' is not a row; rows are tuples, such as \('x',\)"),
        (ONE, {"x", "y"}, r"is not a row; rows are tuples, such as \('[xy]',\)"),
        (ONE, (x for x in "xy"), r"'x' is not a row"),
        (NONE, (0.5, 0.25), r"0\.5 is not a row; the only fact .* is given as its value, 0\.5"),
        (ONE, [("x", "y", 1.0)], r"3 columns, .*; these rows are for b/2 with values, or for b/3"),
        (TWO, [("x",)], "1 column, .*; these rows are for b/0 with values, or for b/1"),
        (ONE, [("x", "y")], "the value 'y' is not a number; the last column of a table is its value, unless the key"),
        (ONE, [(datetime.date(2026, 1, 31),)], r"date\(2026, 1, 31\) is not a term; give dates as texts"),
        (ONE, [(np.datetime64("2026-01-31"),)], "give dates as texts"),
        (ONE, [(decimal.Decimal(1),)], r"is not a term; .* str\(\.\.\.\) makes a string"),
        (ONE, [(Path("x"),)], r"str\(\.\.\.\) makes a string"),
        (TWO, Sparse(), "m = x.tocoo"),
        (ONE, "x", "read a file with dg.read_file"),
        (ONE, 5, "not a table of facts; give rows such as"),
        (TWO, [[("x", "y")]], "1 column"),
        (TWO, {"x": 1.0}, "the key 'x' is not a tuple of 2 arguments"),
        (ONE, [(2**31,)], "row 1, column 1: the integer 2147483648 is beyond the range"),
        (ONE, np.zeros((2, 2)), r"an array of shape \(2, 2\) was given"),
        (TWO, (np.array([[1, 2**40]]), np.ones(1)), "row 1, column 2: the integer 1099511627776 is beyond the range"),
    ],
)
def test_the_message_says_what_to_give(program: dg.Program, rows: Any, message: str) -> None:
    key = next(key for key in program.predicates if key.startswith("b/"))
    with pytest.raises(dg.FactError, match=rf"{key}.*{message}"):
        program.run({key: rows})


def test_frames_with_too_many_columns() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(dg.FactError, match=r"3 columns, .* for b/2 with values, or for b/3; or choose columns"):
        ONE.run({"b/1": pd.DataFrame({"x": ["a"], "y": ["b"], "z": [1.0]})})


def test_texts_of_numpy_are_symbols() -> None:
    chart = ONE.run({"b/1": [(np.str_("x"), np.float64(2.0)), (np.array(["y"])[0], 3.0)]})
    assert sorted(chart.table("a/1")) == [("x", 2.0), ("y", 3.0)]
    chart = ONE.run({"b/1": (np.array(["x", "y"]), np.array([2.0, 3.0]))})
    assert sorted(chart.table("a/1")) == [("x", 2.0), ("y", 3.0)]


@pytest.mark.parametrize("value", [(0.5, 2.0), [0.5, 2.0], (0.5, (2.0, 3.0)), [(0.5, (2.0, 3.0))], [((0.5, 2.0),)]])
def test_a_pair_is_the_fact_of_a_predicate_without_arguments(value: Any) -> None:
    if value == [(0.5, (2.0, 3.0))]:
        with pytest.raises(dg.FactError):  # a row of two columns
            dg.Program("p += one.", "expectation").run({"one/0": value})
        return
    found = dg.Program("p += one.", "expectation").run({"one/0": value})["p"]
    pair = value[0][0] if value == [((0.5, 2.0),)] else value
    assert found[0] == pair[0] and np.array_equal(found[1], pair[1])


def test_a_tuple_is_the_fact_of_a_semiring_of_ones_own() -> None:
    def first(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] * b[1]

    both = dg.Semiring((0.0, 0.0), (1.0, 1.0), lambda a, b: (a[0] + b[0], a[1] + b[1]), first)
    assert dg.Program("p += one.", both).run({"one/0": (0.5, 2.0)})["p"] == (0.5, 2.0)


def test_a_misspelt_predicate_is_blamed_on_the_rule_or_on_the_table() -> None:
    rules = dg.Program("a(X) += c(X).\na(X) += wrod(X)*c(X).")
    with pytest.raises(dg.FactError, match=r"`word/1`.*`wrod/1`.*misspelt\.\s+at line 2, column 9"):
        rules.run({"word/1": [("x",)], "c/1": [("x",)]})
    with pytest.raises(dg.FactError, match=r"no predicate `wrd/1`. Did you mean `wrod/1`"):  # the rule has its facts
        rules.run({"wrod/1": [("x",)], "wrd/1": [], "c/1": [("x",)]})
    with pytest.raises(dg.ProgramError, match=r"No rule defines `wrod/1` and no facts are given for it"):
        rules.run({"c/1": [("x",)]})
    with pytest.raises(dg.FactError, match=r"no predicate `wrod/1`. Did you mean `word/1`"):  # rules define that one
        dg.Program("word(X) += c(X).").run({"wrod/1": [("x",)], "c/1": []})
