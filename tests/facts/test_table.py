"""Tables out: lookup, columns, printing, frames, Arrow, pickling. Costs a few seconds."""

import pickle
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynagrad.errors import Error, QueryError
from dynagrad.facts.readers import read
from dynagrad.facts.table import SCANS, Table, make_table
from dynagrad.facts.terms import Term

ROWS = [("s", "np", 1, 0.5), ("s", "vp", 2, 0.25), ("np", "np", 1, 0.125)]


def table(key: str = "p/3", rows: Any = ROWS, **options: Any) -> Table:
    return make_table(read(key, rows, **options))


def test_rows_come_back_as_they_came_with_the_value_last() -> None:
    assert list(table()) == ROWS
    assert len(table()) == 3


def test_lookup() -> None:
    assert table()["s", "vp", 2] == 0.25
    assert table("q/1", {"x": 2.0})["x"] == 2.0
    assert table("q/1", {"x": 2.0})["x",] == 2.0
    assert table("goal/0", 3.0)[()] == 3.0
    assert table("q/1", [(["a", "b"], 1.5)])[["a", "b"]] == 1.5
    assert table("q/1", [(Term("f", 1), 1.5), (["a"], 2.5)])[Term("cons", "a", "nil")] == 2.5


def test_many_lookups_use_an_index_and_find_the_same() -> None:
    rows = [(i % 50, f"x{i}", float(i)) for i in range(200)] + [(0, "x0", -1.0)]
    large = table("p/2", rows)
    for _ in range(SCANS):
        assert large[0, "x0"] == 0.0
    assert [large[i % 50, f"x{i}"] for i in range(200)] == list(range(200))


def test_a_float_does_not_find_an_integer() -> None:
    with pytest.raises(QueryError, match=r"there is no p\(s,np,1\.0\); the nearest is p\(s,np,1\)"):
        table()["s", "np", 1.0]
    assert table("q/1", [(1.0, 2.0), (1, 3.0)])[1] == 3.0


def test_a_lookup_that_fails_names_the_nearest_row() -> None:
    with pytest.raises(QueryError, match=r"there is no p\(s,nq,1\); the nearest is p\(s,np,1\)"):
        table()["s", "nq", 1]
    with pytest.raises(QueryError, match=r"nearest is word\(banana\)"):
        table("word/1", {"banana": 1.0, "apple": 2.0})["bananas"]
    with pytest.raises(QueryError, match="the table is empty"):
        table("word/1", [])["a"]
    with pytest.raises(QueryError, match="there is no goal: the table is empty"):
        table("goal/0", [])[()]


def test_a_lookup_with_the_wrong_arguments() -> None:
    with pytest.raises(QueryError, match="by 3 arguments, not by 2"):
        table()["s", "np"]
    with pytest.raises(QueryError, match="argument 1 of a lookup: None is not a term"):
        table()[None, "np", 1]
    with pytest.raises(QueryError, match="a list alone is written"):
        table("q/1", [(["a", "b"], 1.5)])["a", "b"]


def test_the_symbol_nil_is_the_empty_list() -> None:
    assert table("word/1", {"nil": 1.0})[[]] == 1.0
    assert table("word/1", [(["a"], 1.0), ([], 2.0)])["nil"] == 2.0


def test_values_of_a_dense_table_have_its_shape() -> None:
    dense = np.arange(6.0).reshape(2, 3)
    assert (table("cost/2", dense).values == dense).all()
    assert table("cost/2", dense)[1, 2] == 5.0
    assert table("cost/2", dense.reshape(2, 3, 1), value_shape=("vector", 1)).values.shape == (2, 3, 1)


def test_columns() -> None:
    first, second, third = table().arguments
    assert first == ["s", "s", "np"] and second == ["np", "vp", "np"]
    assert third.tolist() == [1, 2, 1]
    with pytest.raises(ValueError, match="read-only"):
        table().values[0] = 1.0


def test_values_of_every_shape() -> None:
    assert table("n/0", 10**30, value_shape="count")[()] == 10**30
    assert table("b/1", [("x", True), ("y", False)], value_shape="boolean")["y"] is False
    assert table("e/0", [((0.5, 2.0),)], value_shape="expectation")[()] == (0.5, 2.0)
    assert table("e/0", [((0.5, (1.0, 2.0)),)], value_shape="expectation")[()] == (0.5, (1.0, 2.0))
    assert list(table("v/1", [("x", (1, 2, 3))], value_shape=("vector", 3))) == [("x", (1.0, 2.0, 3.0))]


def test_rows_without_values_hold() -> None:
    assert list(table("q/1", [("x",), ("y",)])) == [("x", True), ("y", True)]


def test_a_table_is_taken_back_as_facts() -> None:
    again = read("q/3", table())
    assert list(make_table(again)) == ROWS
    assert again.key == "q/3"


def test_printing_aligns_and_stops() -> None:
    assert repr(table()) == "p/3: 3 rows\n  s   np  1  0.5\n  s   vp  2  0.25\n  np  np  1  0.125"
    text = repr(table("q/1", [(i, 0.5) for i in range(1000)]))
    assert text.startswith("q/1: 1,000 rows\n   0  0.5\n") and text.endswith("  ... 980 more")
    assert len(repr(table("q/1", [("x" * 10**6, 1.0)]))) < 200
    assert repr(table("q/1", [])) == "q/1: 0 rows"
    large = replace(read("q/0", 1, value_shape="count"), values=np.array([10**5000], object))  # what no fact may be
    assert "bits" in repr(make_table(large))


@given(st.lists(st.tuples(st.text("ab'", max_size=2) | st.integers(-3, 3) | st.floats(-2, 2), st.integers(0, 5))))
def test_every_row_is_found_and_tables_pickle(pairs: list[tuple[Any, int]]) -> None:
    rows = [(a, b, float(i)) for i, (a, b) in enumerate(pairs)]
    made = table("p/2", rows)
    first: dict[Any, float] = {}
    for a, b, value in rows:
        first.setdefault((type(a), a, b), value)
    for (_, a, b), value in first.items():
        assert made[a, b] == value
    again = pickle.loads(pickle.dumps(made))
    assert again == made and list(again) == list(made)


def test_tables_of_deep_terms_print_pickle_and_look_up() -> None:
    deep: Any = []
    for _ in range(20_000):
        deep = [deep]
    made = table("q/1", [(deep, 1.0), ("x", 2.0)])
    assert made[deep] == 1.0
    assert len(repr(made)) < 300
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(QueryError):
        made[[deep]]


def test_tables_are_equal_when_their_rows_are() -> None:
    assert table() == table()
    assert table() != table(rows=ROWS[::-1])
    assert table() != table(rows=ROWS[:2])
    assert table("q/1", [(1, 2.0)]) != table("q/1", [(1.0, 2.0)])


def test_column_names_are_checked() -> None:
    with pytest.raises(QueryError, match="needs 4 different names"):
        make_table(read("p/3", ROWS), ["a", "b", "c", "c"])


# -- ways out


def test_pandas() -> None:
    pytest.importorskip("pandas")
    frame = make_table(read("p/3", ROWS), ["left", "right", "n", "weight"]).to_pandas()
    assert list(frame.columns) == ["left", "right", "n", "weight"]
    assert list(frame.itertuples(index=False, name=None)) == ROWS
    assert list(make_table(read("p/3", frame))) == ROWS
    lists = table("q/1", [(["a"], 1.0), (["a", "b"], 2.0)])
    assert list(make_table(read("q/1", lists.to_pandas()))) == list(lists)


def test_polars_reads_the_stream() -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    assert polars.DataFrame(table()).rows() == ROWS


def test_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    arrow = pa.table(table())
    assert arrow.column_names == ["arg1", "arg2", "arg3", "value"]
    assert list(make_table(read("p/3", arrow))) == ROWS
    lists = table("q/1", [(["a"], 1.0), ([], 2.0)])
    assert list(make_table(read("q/1", lists.to_arrow()))) == list(lists)
    assert table("q/1", [(Term("f", "a"), 1.0), (1, 2.0)]).to_arrow()["arg1"].to_pylist() == ["f(a)", "1"]
    assert table("q/1", [(1.5, 1.0), ("a", 2.0)]).to_arrow()["arg1"].to_pylist() == ["1.5", "a"]
    assert table("n/0", 10**30, value_shape="count").to_arrow()["value"].to_pylist() == [str(10**30)]
    pairs = table("e/1", [("x", (0.5, 2.0))], value_shape="expectation")
    assert list(make_table(read("e/1", pairs.to_arrow(), value_shape="expectation"))) == list(pairs)
    assert table("q/1", []).to_arrow().num_rows == 0


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(Error, match=r"a data frame needs pandas, which is not installed: pip install pandas$"):
        table().to_pandas()
    with pytest.raises(Error, match="needs pyarrow"):
        table().__arrow_c_stream__()
