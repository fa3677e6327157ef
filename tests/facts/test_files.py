"""Files of facts: rows are data, texts stay untyped until the program's types decide, errors name the line."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynagrad.errors import FactError, Place
from dynagrad.facts.files import (
    all_integers,
    as_floats,
    as_integers,
    as_symbols,
    as_terms,
    integers_if_all,
    read_file,
)
from dynagrad.facts.relation import AtomColumn, IntColumn, TextColumn
from dynagrad.facts.terms import Term


def rows_of(path: Path, key: str, **options: Any) -> list[tuple[Any, ...]]:
    relation = read_file(path, key, **options)
    values = [] if relation.values is None else [relation.values.tolist()]
    return list(zip(*(column.to_list() for column in relation.columns), *values, strict=True))


def write(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def text(entries: list[str], folder: Path) -> TextColumn:
    column = read_file(write(folder, "column.tsv", "".join(f"{entry}\n" for entry in entries)), "p/1").columns[0]
    assert isinstance(column, TextColumn)
    return column


# -- text files


def test_tsv_has_no_header_comment_or_quotes(tmp_path: Path) -> None:
    path = write(tmp_path, "lexical.tsv", "#\t#\t1.0\n''\t\"\t0.5\n$\tC$\t1e-3\n")
    assert rows_of(path, "word/2") == [("#", "#", 1.0), ("''", '"', 0.5), ("$", "C$", 0.001)]


def test_a_table_without_values(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path, "a.tsv", "a\t1\nb\t2"), "p/2") == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize("data", ["a\tb\r\nc\td\r\n", "a\tb\n\nc\td\n\n", "\ufeffa\tb\nc\td"])
def test_line_ends_blank_lines_and_byte_order_marks(tmp_path: Path, data: str) -> None:
    assert rows_of(write(tmp_path, "a.tsv", data), "p/2") == [("a", "b"), ("c", "d")]


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path, "a.tsv", "a\u2028b\tc\x0b\n"), "p/2") == [("a\u2028b", "c\x0b")]


def test_csv_with_and_without_quotes(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path, "a.csv", "a,b,1\r\nc,,2\r\n"), "p/2") == [("a", "b", 1.0), ("c", "", 2.0)]
    quoted = write(tmp_path, "b.csv", '"a ""b"",\n c",d,1\r\n\r\ne,"f",2\r\n')
    assert rows_of(quoted, "p/2") == [('a "b",\n c', "d", 1.0), ("e", "f", 2.0)]


@given(st.lists(st.tuples(st.text('ab",\n ', max_size=4), st.text("xyé'", min_size=1, max_size=4))))
def test_csv_gives_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    quoted = "".join(f'"{a.replace(chr(34), chr(34) * 2)}",{b}\r\n' for a, b in rows)
    assert rows_of(write(tmp_path_factory.mktemp("csv"), "a.csv", quoted), "p/2") == rows


def test_empty_files(tmp_path: Path) -> None:
    for name in ("a.tsv", "a.csv"):
        relation = read_file(write(tmp_path, name, ""), "p/2")
        assert relation.count == 0 and relation.arity == 2


def test_facts_without_arguments(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path, "a.tsv", "0.5\n"), "goal/0") == [(0.5,)]


def test_long_symbols(tmp_path: Path) -> None:
    long = "x" * 10**6
    assert rows_of(write(tmp_path, "a.tsv", long), "p/1") == [(long,)]
    assert rows_of(write(tmp_path, "a.csv", f'"{long}"'), "p/1") == [(long,)]


def test_values_of_every_shape(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path, "a.tsv", f"a\t{10**30}\n"), "p/1", value_shape="count") == [("a", 10**30)]
    truths = write(tmp_path, "b.tsv", "a\ttrue\nb\t0\n")
    assert rows_of(truths, "p/1", value_shape="boolean") == [("a", True), ("b", False)]
    pairs = write(tmp_path, "c.tsv", "a\t0.5 2\nb\t(1, 3)\n")
    assert rows_of(pairs, "p/1", value_shape="expectation") == [("a", [0.5, 2.0]), ("b", [1.0, 3.0])]
    costs = write(tmp_path, "d.tsv", "a\tinf\nb\t-2.5E+1\nc\t.5\n")
    assert rows_of(costs, "p/1", finite="no_nan") == [("a", float("inf")), ("b", -25.0), ("c", 0.5)]


# -- Arrow files


def test_parquet_arrow_and_feather(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": ["x", "y"], "n": [1, 2], "value": [0.5, 1.0]})
    expected = [("x", 1, 0.5), ("y", 2, 1.0)]
    parquet.write_table(table, tmp_path / "a.parquet")
    assert rows_of(tmp_path / "a.parquet", "p/2") == expected
    for name, writer in (("a.arrow", pa.ipc.new_file), ("b.arrow", pa.ipc.new_stream), ("c.feather", pa.ipc.new_file)):
        with writer(str(tmp_path / name), table.schema) as out:
            out.write_table(table)
        assert rows_of(tmp_path / name, "p/2") == expected
    assert isinstance(read_file(tmp_path / "a.parquet", "p/2").columns[1], IntColumn)
    with pytest.raises(FactError, match=r"p/4, a\.parquet: the table has 3 columns"):
        read_file(tmp_path / "a.parquet", "p/4")
    for name in ("bad.parquet", "bad.arrow"):
        with pytest.raises(FactError, match=f"p/1, {name}: this is no {Path(name).suffix} file"):
            read_file(write(tmp_path, name, "not that"), "p/1")


# -- what texts mean


def test_texts_become_integers_only_if_all_of_all_files_are(tmp_path: Path) -> None:
    numbers, more, words = text(["1", "-2", "1"], tmp_path), text(["0"], tmp_path), text(["1", "x"], tmp_path)
    first, second = integers_if_all([numbers, more])
    assert isinstance(first, IntColumn) and first.to_list() == [1, -2, 1] and second.to_list() == [0]
    first, second = integers_if_all([numbers, words])
    assert type(first) is AtomColumn and first.to_list() == ["1", "-2", "1"] and second.to_list() == ["1", "x"]
    first, second = integers_if_all([numbers, AtomColumn(more.codes, ["y"])])
    assert type(first) is AtomColumn


@pytest.mark.parametrize("name", ["007", "+1", "-0", " 1", "1.0", "", "x", "1_0", "٣"])
def test_what_is_not_printed_so_is_no_integer(tmp_path: Path, name: str) -> None:
    column = read_file(write(tmp_path, "a.tsv", f"1\t2\n{name}\t2\n"), "p/2").columns[0]
    assert isinstance(column, TextColumn) and not all_integers(column)


def test_integers_beyond_the_range(tmp_path: Path) -> None:
    with pytest.raises(FactError, match=r"the integer 99999999999 is beyond the range .* as symbol"):
        integers_if_all([text(["1", "99999999999"], tmp_path)])
    with pytest.raises(FactError, match="beyond the range"):
        integers_if_all([text(["9" * 100_000], tmp_path)])


def test_declared_kinds(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "1\t1\t1\t1\n02\t02\t02\t02\n")
    relation = read_file(path, "p/4", ["int", "symbol", "float", None])
    assert [column.to_list() for column in relation.columns] == [[1, 2], ["1", "02"], [1.0, 2.0], ["1", "02"]]
    assert [type(column) for column in relation.columns] == [IntColumn, AtomColumn, AtomColumn, TextColumn]
    path = write(tmp_path, "b.tsv", "1\t1\nx\t1\n")
    for kind, message in (("int", "'x' is not an integer"), ("float", "'x' is not a finite float")):
        with pytest.raises(FactError, match=f"p/2, b.tsv, line 2, column 1: {message}"):
            read_file(path, "p/2", [kind, None])
    with pytest.raises(FactError, match="1 type given for 2 arguments"):
        read_file(path, "p/2", ["int"])


def test_conversions(tmp_path: Path) -> None:
    assert as_integers(text(["3", "3"], tmp_path)).to_list() == [3, 3]
    assert as_symbols(text(["3"], tmp_path)).to_list() == ["3"]
    floats = as_floats(text(["1", "1.0", "2"], tmp_path))
    assert floats.atoms == [1.0, 2.0] and floats.codes.tolist() == [0, 0, 1]
    terms = as_terms(text(["ab", "c", "ab"], tmp_path), lambda t: Term("f", *t))
    assert terms.to_list() == [Term("f", "a", "b"), Term("f", "c"), Term("f", "a", "b")]
    with pytest.raises(FactError, match=r"p/1, a\.tsv, line 2, column 1: a term has arguments"):
        as_terms(text(["ab", " "], tmp_path), lambda t: Term("f", *t.strip()), Place("p/1", 1, "a.tsv"))


# -- bad input


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tsv", "a\tb\n\na\n", "p/2, a.tsv, line 3: 1 column between tabs, but a row is 2 arguments"),
        ("a.tsv", "a,b,1\n", "line 1: 1 column between tabs"),
        ("a.tsv", "a\tb\t1\na\tb\n", "line 2: the row has no value, but the first has one"),
        ("a.csv", "a,b\na,b,1\n", "line 2: the row has a value, but the first has none"),
        ("a.csv", '"a\nb",c\n"d"\n', "p/2, a.csv, line 3: 1 column between commas"),
        ("a.csv", 'a,b\n"c,d', "line 2: this is no CSV: unexpected end of data"),
        ("a.csv", '"a"x,b\n', "line 1: this is no CSV"),
        ("a.tsv", "a\tb\t1\n\na\tb\tx\n", "line 3, value: the value 'x' is not a number"),
        ("a.tsv", "a\tb\t\n", "line 1, value: the value is empty"),
        ("a.tsv", "a\tb\t1_000\n", "line 1, value: the value '1_000' is not a number"),
        ("a.tsv", "a\tb\t1\na\tb\tnan\n", "line 2, value: nan is not possible"),
        ("a.tsv", b"a\tb\nc\t\xe9\n", "p/2, a.tsv, line 2: the byte 0xe9 is not UTF-8"),
        ("a.txt", "a\tb\n", r"no format has the suffix '.txt'; files of facts end in .tsv, .csv, .parquet"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, name: str, data: str | bytes, message: str) -> None:
    with pytest.raises(FactError, match=message):
        read_file(write(tmp_path, name, data), "p/2")


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".parquet", ".arrow"])
def test_files_that_are_not_there(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(FactError, match="cannot be read: No such file"):
        read_file(tmp_path / f"none{suffix}", "p/1")
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(FactError, match="cannot be read: Is a directory"):
        read_file(tmp_path / f"folder{suffix}", "p/1")
