"""First lines of text files that seem to be headers: errors, warnings, and what `header=` says."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from dynagrad.errors import Error, FactError, ProgramWarning
from dynagrad.facts.files import read_file


def read(folder: Path, rows: list[list[str]], key: str, suffix: str, **options: Any) -> Any:
    path = folder / f"facts.{suffix}"
    cells = [[f'"{cell}"' for cell in row] if suffix == "csv" and len(rows) % 2 else row for row in rows]
    path.write_text("\n".join(("," if suffix == "csv" else "\t").join(row) for row in cells) + "\n")
    return read_file(path, key, **options)


SUFFIXES = pytest.mark.parametrize("suffix", ["csv", "tsv"])


@SUFFIXES
@pytest.mark.parametrize(
    ("key", "first", "rest"),
    [
        ("road/2", ["from", "to", "length"], [["a", "b", "1.5"]]),
        ("road/2", ["a", "b", "cost"], [["a", "b", "1e-3"], ["b", "c", "-2"]]),
        ("road/2", ["u", "v"], [["1", "2"], ["2", "3"]]),
        ("road/2", ["anything", "tag"], [["1", "x"], ["2", "y"]]),
        ("id/1", ["n"], [["1"], ["2"]]),
        ("flag/1", ["who", "holds"], [["a", "true"], ["b", "False"]]),
        ("pair/1", ["who", "pair"], [["a", "0.5 1.0"], ["b", "(1, 2)"]]),
    ],
)
def test_a_header_that_keeps_a_column_from_being_numbers_is_an_error(
    tmp_path: Path, suffix: str, key: str, first: list[str], rest: list[list[str]]
) -> None:
    with pytest.raises(FactError, match=rf"{key}, facts\.{suffix}, line 1, .* seems to be a header: header=True"):
        read(tmp_path, [first, *rest], key, suffix)


@SUFFIXES
@pytest.mark.parametrize("first", [["from", "to"], ["Source", "Target"], ["node_id", "nodeName"], ["word", "tag2"]])
def test_a_header_of_usual_names_is_told_of_and_is_a_fact(tmp_path: Path, suffix: str, first: list[str]) -> None:
    rows = [["a", "b"], ["b", "c"]]
    with pytest.warns(ProgramWarning, match="line 1: .* seems to be a header, and is taken as a fact: header=True"):
        assert len(read(tmp_path, [first, *rows], "road/2", suffix)) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        relation = read(tmp_path, [first, *rows], "road/2", suffix, header=True)
        assert [c.to_list() for c in relation.columns] == [["a", "b"], ["b", "c"]] and relation.names == tuple(first)
        assert len(read(tmp_path, [first, *rows], "road/2", suffix, header=False)) == 3


@SUFFIXES
@pytest.mark.parametrize(
    "rows",
    [
        [["a", "b"], ["b", "c"]],
        [["the", "det"], ["dog", "noun"]],
        [["from", "to"], ["from", "c"]],  # `from` is an entry elsewhere
        [["from", "from"], ["b", "c"]],
        [["from", "to"]],
        [["start", "1"], ["1", "2"], ["2", "end"]],  # the first line has a number
        [["", ""], ["a", "b"]],
    ],
)
def test_what_seems_to_be_data_is_data(tmp_path: Path, suffix: str, rows: list[list[str]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(tmp_path, rows, "road/2", suffix)) == len(rows)


@SUFFIXES
def test_columns_that_are_declared_symbols_may_have_one_that_is_no_number(tmp_path: Path, suffix: str) -> None:
    assert len(read(tmp_path, [["n"], ["1"]], "id/1", suffix, kinds=["symbol"])) == 2


@SUFFIXES
def test_lines_are_counted_with_the_header(tmp_path: Path, suffix: str) -> None:
    separator = "," if suffix == "csv" else "\t"
    path = tmp_path / f"facts.{suffix}"
    path.write_text(separator.join(["n", "value"]) + "\n\n" + separator.join(["1", "x"]) + "\n")
    with pytest.raises(FactError, match="line 3, value: the value 'x' is not a number"):
        read_file(path, "id/1", header=True)
    path.write_text("")
    assert len(read_file(path, "id/1", header=True)) == 0


def test_wrong_options(tmp_path: Path) -> None:
    with pytest.raises(Error, match="header must be True or False, not 1"):
        read(tmp_path, [["a"]], "id/1", "csv", header=1)
    pytest.importorskip("pyarrow")
    (tmp_path / "facts.parquet").write_bytes(b"")
    with pytest.raises(FactError, match="names of columns apart from its rows"):
        read_file(tmp_path / "facts.parquet", "id/1", header=True)


def test_a_first_line_with_an_empty_cell_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("a,b,\nc,d,1.0\n")
    with pytest.raises(FactError, match=r"line 1.*the value is empty"):
        read_file(path, "e/2")
