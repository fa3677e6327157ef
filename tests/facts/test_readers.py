"""Facts in: every form of table gives the same relation, and errors name the place. Costs a few seconds."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.errors import FactError
from dynagrad.facts.readers import read, with_values
from dynagrad.facts.relation import AtomColumn, IntColumn, Relation, TermColumn

ROWS = [("s", "np", 1, 0.5), ("s", "vp", 2, 0.25), ("np", "np", 1, 0.125)]
COLUMNS = {"left": ["s", "s", "np"], "right": ["np", "vp", "np"], "n": [1, 2, 1], "value": [0.5, 0.25, 0.125]}


def rows_of(relation: Relation) -> list[tuple[Any, ...]]:
    columns = [column.to_list() for column in relation.columns]
    if relation.values is not None:
        columns.append(relation.values.tolist())
    return list(zip(*columns, strict=True)) if columns else [()] * relation.count


def pandas_frame() -> Any:
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def pandas_categories() -> Any:
    return pandas_frame().astype({"left": "category", "n": "Int64", "value": "Float64"})


def polars_frame() -> Any:
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def arrow_table() -> Any:
    return pytest.importorskip("pyarrow").table(COLUMNS)


def arrow_batch() -> Any:
    return pytest.importorskip("pyarrow").RecordBatch.from_pydict(COLUMNS)


def arrow_chunks() -> Any:
    pa = pytest.importorskip("pyarrow")
    table = arrow_table()
    codes = pa.chunked_array(
        [table["left"].slice(0, 2).combine_chunks().dictionary_encode()] * 1
        + [table["left"].slice(2).combine_chunks().dictionary_encode()]
    )
    return table.set_column(0, "left", codes)


def arrow_views() -> Any:
    pa = pytest.importorskip("pyarrow")
    table = arrow_table()
    return table.set_column(1, "right", table["right"].cast(pa.large_string()))


class StreamOnly:
    """An object of some other library that only knows the Arrow protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return arrow_table().__arrow_c_stream__(requested_schema)


class Row(NamedTuple):
    left: str
    right: str
    n: int
    value: float


# -- forms


@pytest.mark.parametrize(
    "make",
    [
        lambda: ROWS,
        lambda: [list(row) for row in ROWS],
        lambda: tuple(ROWS),
        lambda: iter(ROWS),
        lambda: [Row(*row) for row in ROWS],
        lambda: {row[:3]: row[3] for row in ROWS},
        lambda: [(np.str_(a), b, np.int16(n), np.float32(v)) for a, b, n, v in ROWS],
        lambda: np.array(ROWS, dtype="U2,U2,i4,f8"),
        pandas_frame,
        pandas_categories,
        polars_frame,
        arrow_table,
        arrow_batch,
        arrow_chunks,
        arrow_views,
        StreamOnly,
    ],
)
def test_every_form_gives_the_same_columns(make: Any) -> None:
    relation = read("rewrite/3", make())
    assert rows_of(relation) == ROWS
    left, right, number = relation.columns
    assert isinstance(left, AtomColumn) and left.atoms == ["s", "np"] and left.codes.tolist() == [0, 0, 1]
    assert isinstance(right, AtomColumn) and right.atoms == ["np", "vp"] and right.codes.dtype == np.int32
    assert isinstance(number, IntColumn) and number.numbers.dtype == np.int64
    assert relation.values is not None and relation.values.dtype == np.float64
    assert (relation.key, relation.arity, relation.count) == ("rewrite/3", 3, 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: [row[:3] for row in ROWS],
        lambda: {row[:3]: True for row in ROWS},
        lambda: pandas_frame().drop(columns="value"),
        lambda: polars_frame().drop("value"),
        lambda: arrow_table().drop_columns(["value"]),
    ],
)
def test_a_table_without_a_value_column(make: Any) -> None:
    relation = read("rewrite/3", make())
    assert relation.values is None
    assert rows_of(relation) == [row[:3] for row in ROWS]


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint64, object])
def test_a_pair_of_arrays(dtype: Any) -> None:
    arguments = np.array([[0, 1], [2, 3], [0, 1]], dtype)
    for values in (np.array([1, 2, 3]), [1.0, 2.0, 3.0]):
        assert rows_of(read("p/2", (arguments, values))) == [(0, 1, 1.0), (2, 3, 2.0), (0, 1, 3.0)]
    assert read("p/2", (arguments, None)).values is None
    assert rows_of(read("p/1", (np.array([4, 5]), [1.0, 2.0]))) == [(4, 1.0), (5, 2.0)]


def test_later_changes_of_an_array_do_not_reach_the_facts() -> None:
    arguments, values = np.array([[1]]), np.array([0.5])
    relation = read("p/1", (arguments, values))
    arguments[:], values[:] = 2, 3.0
    assert rows_of(relation) == [(1, 0.5)]


def test_a_dense_array_has_a_row_per_cell() -> None:
    relation = read("cost/2", np.arange(6).reshape(2, 3))
    assert rows_of(relation) == [(i, j, 3.0 * i + j) for i in range(2) for j in range(3)]
    assert relation.dense_shape == (2, 3)
    assert read("cost/2", np.zeros((2, 0))).count == 0
    assert rows_of(read("cost/3", np.zeros((2, 2, 2)))) == [(*at, 0.0) for at in np.ndindex(2, 2, 2)]


class Foreign:
    """An array of some other library."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Elsewhere:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("it lives on another device")


def test_arrays_of_other_libraries() -> None:
    assert rows_of(read("p/1", Foreign(np.array([1.0, 2.0])))) == [(0, 1.0), (1, 2.0)]
    assert rows_of(read("p/1", (Foreign(np.array([[7]])), Foreign(np.array([2.0]))))) == [(7, 2.0)]
    with pytest.raises(FactError, match="p/1: the Elsewhere could not be read as an array: RuntimeError: it lives on"):
        read("p/1", Elsewhere())


@pytest.mark.parametrize("rows", [2.0, 2, np.float64(2), np.array(2.0), {(): 2.0}, [(2.0,)], [[2]]])
def test_facts_without_arguments(rows: Any) -> None:
    assert rows_of(read("goal/0", rows)) == [(2.0,)]


@pytest.mark.parametrize("rows", [True, {(): True}, [()], np.array(True)])
def test_facts_without_arguments_or_value(rows: Any) -> None:
    relation = read("goal/0", rows)
    assert relation.count == 1 and relation.values is None


def test_a_dict_may_have_bare_arguments() -> None:
    assert rows_of(read("word/1", {"a": 1.0, ("b",): 2.0, 3: 4.0})) == [("a", 1.0), ("b", 2.0), (3, 4.0)]
    assert rows_of(read("word/1", {(("a", "b"),): 1.0})) == [(("a", "b"), 1.0)]


@pytest.mark.parametrize("rows", [[], {}, (), iter([]), np.zeros((0, 0)), (np.zeros((0, 2), int), [])])
def test_empty_tables_are_fine(rows: Any) -> None:
    relation = read("p/2", rows)
    assert relation.count == 0 and relation.arity == 2 and rows_of(relation) == []


@pytest.mark.parametrize("make", [pandas_frame, polars_frame, arrow_table])
def test_empty_frames_are_fine(make: Any) -> None:
    assert read("rewrite/3", make()[:0]).count == 0


# -- new values


def test_new_values_for_the_same_rows() -> None:
    relation = read("cost/2", np.zeros((2, 3)))
    assert with_values(relation, np.ones((2, 3)), value_shape="float").values.tolist() == [1.0] * 6  # type: ignore[union-attr]
    assert with_values(relation, range(6), value_shape="float").values.tolist() == list(range(6))  # type: ignore[union-attr]
    assert with_values(relation, [1.0] * 6, value_shape="float").columns is relation.columns
    with pytest.raises(FactError, match="5 values were given for 6 rows"):
        with_values(relation, [1.0] * 5, value_shape="float")
    with pytest.raises(FactError, match="one number per row"):
        with_values(read("p/1", [(1, 2.0)]), np.ones((1, 1)), value_shape="float")
    with pytest.raises(FactError, match="not an array of values"):
        with_values(relation, {"a": 1.0}, value_shape="float")


# -- bad input


def failing() -> Iterator[tuple[str, float]]:
    yield "a", 1.0
    yield "b", 2.0
    raise RuntimeError("the disk is gone")


@pytest.mark.parametrize(
    ("key", "rows", "message"),
    [
        ("p", [], "'p' names no predicate; write name/arity"),
        (3, [], "3 names no predicate"),
        ("p/2", [("a", "b"), ("a",)], "p/2, row 2: 1 column, but a row is 2 arguments, or 2 arguments and a value"),
        ("p/2", [("a", "b", 1.0, 2.0)], "p/2, row 1: 4 columns"),
        ("p/2", [("a", "b", 1.0), ("a", "b")], "row 2: the row has no value, but row 1 has one"),
        ("p/2", [("a", "b"), ("a", "b", 1.0)], "row 2: the row has a value, but row 1 has none"),
        ("p/1", [("a",), "b"], r"row 2: 'b' is not a row; rows are tuples, such as \('b',\)"),
        ("p/1", ["a" * 10**6], "is not a row"),
        ("p/1", failing(), "p/1, row 3: the rows could not be read: RuntimeError: the disk is gone"),
        ("p/1", "grammar.tsv", "'grammar.tsv' is not a table of facts; read a file"),
        ("p/1", None, "None is not a table"),
        ("p/1", 5, "5 is not a table"),
        ("p/1", object(), "is not a table of facts; give a list of tuples"),
        ("p/1", [(None, 1.0)], "p/1, row 1, column 1: None is not a term; leave rows with missing"),
        ("p/2", [("a", 1), ("b", True)], "p/2, row 2, column 2: True is not a term"),
        ("p/1", [("a",), (b"b",)], "row 2, column 1: b'b' is not a term; decode it"),
        ("p/1", [("a",), (float("nan"),)], "row 2, column 1: nan is not a term"),
        ("p/1", [(1,), (2**31,)], "row 2, column 1: the integer 2147483648 is beyond the range"),
        ("p/1", [(1,), (2**70,)], "row 2, column 1: the integer 1180591620717411303424 is beyond"),
        ("p/1", [("a",), (2**31,)], "row 2, column 1: the integer 2147483648 is beyond"),
        ("p/1", [("a",), ("\udc80",)], "row 2, column 1: .* surrogate"),
        ("p/1", [([["a"], [None]],)], "row 1, column 1: None is not a term"),
        ("p/1", (np.array([[1], [2**40]]), [1, 2]), "row 2, column 1: the integer 1099511627776 is beyond"),
        ("p/1", (np.array([[1.0]]), [1]), r"1.0 is not 1; convert it with .astype\(int\)"),
        ("p/1", (np.array([[True]]), [1]), "holds bool, not integers"),
        ("p/2", (np.array([[1]]), [1]), r"has shape \(1, 1\), and should have 2 columns"),
        ("p/1", (np.array([[1]]), [1, 2]), "2 values were given for 1 row"),
        ("p/1", (np.array([[1]]), 3.0), "3.0 is not an array of values"),
        ("p/1", (np.array([[1], [2]]), np.array(3.0)), "one value was given for 2 rows"),
        ("p/3", np.zeros((2, 2)), r"shape \(2, 2\) .* one dimension per argument, 3 here"),
        ("p/1", np.ma.masked_array([1.0, 2.0], [True, False]), "masked"),
        ("p/1", {("a", "b"): 1.0}, r"row 1: the key \('a', 'b'\) has 2 columns, not 1; a list term alone"),
        ("p/2", {"a": 1.0}, "row 1: the key 'a' is not a tuple of 2 arguments"),
        ("p/1", {"a": "0.5"}, "p/1, row 1, value: the value '0.5' is not a number"),
        ("p/1", {"a": 1.0, "b": None}, "row 2, value: nothing is there"),
        ("p/1", {"a": False}, "row 1, value: False is not a number; leave out facts that do not hold"),
        ("p/1", {"a": 10**400}, "row 1, value: the value of 1329 bits is beyond the range of floats"),
        ("p/1", {"a": 1j}, "is not a number"),
        ("p/1", np.array(["x"]), "an array of texts was given"),
        ("goal/0", False, "leave out facts that do not hold"),
        ("goal/0", float("nan"), "goal/0, row 1, value: nan is not possible"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(key: Any, rows: Any, message: str) -> None:
    with pytest.raises(FactError, match=message):
        read(key, rows)


def test_frames_with_missing_entries() -> None:
    pandas, polars, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    for missing in (pandas.DataFrame, polars.DataFrame, pa.table):
        with pytest.raises(FactError, match="p/2, row 2, column 2: nothing is there"):
            read("p/2", missing({"a": [1, 2], "b": ["x", None]}))
    with pytest.raises(FactError, match="row 2, value: nan is not possible"):
        read("p/1", pandas.DataFrame({"a": ["x", "y"], "value": [1.0, None]}))
    holes = pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None]))})
    with pytest.raises(FactError, match="row 2, column 1: nothing is there"):
        read("p/1", holes)


def test_frames_of_the_wrong_shape_or_kind() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(FactError, match="the table has 4 columns, but a row is 2 arguments"):
        read("p/2", polars_frame())
    with pytest.raises(FactError, match="collect"):
        read("p/3", polars_frame().lazy())
    with pytest.raises(FactError, match="a Series has one column"):
        read("p/2", polars.Series([1, 2]))
    for make in (pandas_frame, polars_frame):
        with pytest.raises(FactError, match="row 1, column 1: True is not a term"):
            read("p/1", make().assign(a=True)[["a"]] if make is pandas_frame else polars.DataFrame({"a": [True]}))
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(FactError, match="column 1: b'x' is not a term"):
        read("p/1", pa.table({"a": [b"x"]}))


def test_arrow_columns_that_are_lists_or_coded_integers() -> None:
    pa = pytest.importorskip("pyarrow")
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array([10, 20]))
    relation = read("p/2", pa.table({"a": [["n", "pp"], [], ["x"]], "b": codes}))
    assert rows_of(relation) == [(("n", "pp"), 20), ((), 10), (("x",), 20)]
    unused = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["a", "b", "a"]))
    column = read("p/1", pa.table({"a": unused})).columns[0]
    assert isinstance(column, AtomColumn) and column.atoms == ["a"] and column.codes.tolist() == [0, 0]


def test_a_table_with_a_deep_term_and_a_long_symbol() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    relation = read("p/2", [(deep, "y" * 10**6, 1.0)])
    assert relation.columns[1].to_list() == ["y" * 10**6]
    assert isinstance(relation.columns[0], TermColumn)


def test_many_rows_load_quickly() -> None:
    count = 200_000
    arguments = np.arange(2 * count).reshape(count, 2) % 1000
    rows = [(f"w{a}", b, 0.5) for a, b in arguments.tolist()]
    start = time.process_time()
    read("p/2", (arguments, np.ones(count)))
    middle = time.process_time()
    read("p/2", rows)
    end = time.process_time()
    assert middle - start < 0.5 and end - middle < 2  # some ten times what is needed


# -- tables that other people's code makes -----------------------------------------------------------------------------


class Raising:
    """Raises what it is told to, whatever it is asked."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __float__(self) -> float:
        raise self.error

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self.error

    def __iter__(self) -> Any:
        raise self.error

    def __hash__(self) -> int:
        raise self.error


class RaisingRows(list[Any]):
    def __iter__(self) -> Any:
        raise LookupError("the rows are gone")


@pytest.mark.parametrize(
    "error", [RuntimeError("x"), MemoryError(), StopIteration(), KeyError("k"), OverflowError("x")]
)
def test_whatever_an_object_raises_is_a_fact_error(error: Exception) -> None:
    for rows in (Raising(error), [("a", Raising(error))], [(Raising(error), 1.0)], {"a": Raising(error)}):
        with pytest.raises(FactError, match="p/1"):
            read("p/1", rows)


def test_tables_that_numpy_has_no_place_for() -> None:
    pl = pytest.importorskip("polars")
    whole = pl.DataFrame({"a": ["x"], "v": pl.Series([2**100], dtype=pl.Int128)})
    assert read("p/1", whole).values.tolist() == [2.0**100]
    assert read("p/1", pl.DataFrame({"a": pl.Series([7], dtype=pl.Int128)})).columns[0].to_list() == [7]
    wide = np.ones((1,) * getattr(np, "MAXDIMS", 64))  # numpy 2 has no name for it
    with pytest.raises(FactError, match="one dimension per argument"):
        read("p/1", wide)
    for rows in (memoryview(b"ab"), memoryview(bytearray(b"ab")), bytearray(b"ab"), RaisingRows([("a", 1.0)])):
        with pytest.raises(FactError, match="p/1"):
            read("p/1", rows)


def test_an_arrow_table_is_looked_through_before_it_is_read() -> None:
    pa = pytest.importorskip("pyarrow")
    text = pa.py_buffer(b"\xff\xfe")
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    with pytest.raises(FactError, match="UTF8"):
        read("p/1", pa.table({"a": pa.StringArray.from_buffers(2, offsets, text)}))
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 9]), pa.array(["x"]), safe=False)
    with pytest.raises(FactError, match="not an Arrow table of facts"):
        read("p/1", pa.table({"a": codes}))
    with pytest.raises(FactError, match="the value 'x' is not a number"):
        read("p/0", pa.table({"v": ["x"]}))


EMPTY: dict[str, Any] = {
    "dict": {},
    "list": [],
    "set": set(),
    "pair": (np.zeros((0, 1), int), np.zeros(0)),
    "pair without values": (np.zeros((0, 1), int), None),
    "array of numbers": np.zeros((0, 3)),
    "record array": np.zeros(0, [("a", "i8"), ("v", "f8")]),
    "frame": lambda: pytest.importorskip("pandas").DataFrame({"a": [], "v": []}),
    "frame of nothing": lambda: pytest.importorskip("pandas").DataFrame([]),
    "polars frame of nothing": lambda: pytest.importorskip("polars").DataFrame([]),
    "Arrow table": lambda: pytest.importorskip("pyarrow").table({"a": np.zeros(0, "i8"), "v": np.zeros(0)}),
}


@pytest.mark.parametrize("form", EMPTY)
@pytest.mark.parametrize("name", ["real", "expectation"])
def test_an_empty_table_of_any_form_adds_and_takes_nothing(form: str, name: str) -> None:
    """One program for each semiring."""
    one, zero = (2.0, 0.0) if name == "real" else ((2.0, 1.0), (0.0, 0.0))
    empty = np.zeros(0) if name == "real" and form == "array of numbers" else EMPTY[form]
    empty = empty() if callable(empty) else empty
    program = dg.Program("goal += f(X) * g(X).", name)
    chart = program.run({"f/1": empty, "g/1": [("x", one)]})
    assert chart["goal"] == zero
    for change in (chart.add, chart.set, chart.retract):
        change("f/1", empty)
        assert chart.run()["goal"] == zero
    chart.add("f/1", [("x", one)])
    there = chart.run()["goal"]
    assert there != zero
    for change in (chart.add, chart.set, chart.retract):
        change("f/1", empty)
        assert chart.run()["goal"] == there


MATRIX = np.matrix([[1.0, 2.0], [3.0, 4.0]])


class Own(np.ndarray):
    """A subclass that answers as it likes."""

    def reshape(self, *shape: Any, **options: Any) -> Any:
        raise RuntimeError("no")

    __getitem__ = __array_function__ = __array_ufunc__ = reshape  # type: ignore[assignment]


RECORDS = [("a", "i8"), ("v", "f8")]


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("p/2", MATRIX),
        ("p/2", np.asarray(MATRIX).view(Own)),
        ("p/1", np.array([1.0, 2.0]).view(Own)),
        ("p/1", np.rec.array([(1, 2.0), (2, 3.0)], dtype=RECORDS)),
        ("p/1", np.ma.array([(1, 2.0), (2, 3.0)], dtype=RECORDS)),
        ("p/1", np.ma.array([1.0, 2.0])),
        ("p/0", np.ma.array(2.0)),
    ],
)
def test_subclasses_of_arrays_are_taken_for_what_they_hold(key: str, rows: Any) -> None:
    base = np.array(np.ma.getdata(rows).view(np.ndarray))
    assert rows_of(read(key, rows)) == rows_of(read(key, base))


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("p/1", MATRIX),
        ("p/0", MATRIX),
        ("p/1", np.matrix([1.0, 2.0])),
        ("p/1", (np.array([[1], [2]]), np.matrix([1.0, 2.0]))),
        ("p/1", (np.array([[1], [2]]), np.matrix([[1.0], [2.0]]))),
    ],
)
def test_a_matrix_in_the_place_of_an_array_is_named(key: str, rows: Any) -> None:
    with pytest.raises(FactError, match=r"a np.matrix has two dimensions.*write np.asarray\(x\)"):
        read(key, rows)


@pytest.mark.parametrize(
    "rows",
    [
        np.ma.masked,
        np.ma.array([1.0, 2.0], mask=[0, 1]),
        np.ma.array([(1, 2.0), (2, 3.0)], mask=[(0, 0), (0, 1)], dtype=RECORDS),
        (np.array([[1], [2]]), np.ma.array([1.0, 2.0], mask=[0, 1])),
        (np.ma.array([[1], [2]], mask=[[0], [1]]), [1.0, 2.0]),
        [(1, np.ma.masked)],
        {1: np.ma.masked},
    ],
)
def test_masked_entries_are_missing(rows: Any) -> None:
    with pytest.raises(FactError, match=r"masked entries|nothing is there"):
        read("p/1", rows)
    with pytest.raises(FactError, match=r"masked entries|nothing is there"):
        read("p/1", [(1, (1.0, np.ma.array([1.0, 2.0], mask=[0, 1])))], value_shape="expectation")
