"""Files beside rows of the same predicate: columns that rules join share one type, integers if all entries are."""

import itertools
import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

PATHS = dg.Program("path(X,Y) += arc(X,Y). path(X,Z) += path(X,Y)*arc(Y,Z).")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def file(folder: Path, text: str, key: str = "arc/2", suffix: str = "csv", **options: Any) -> Any:
    path = folder / f"{abs(hash((text, key)))}.{suffix}"
    path.write_text(text)
    return dg.read_file(path, key, **options)


def given(ways: tuple[str, ...], forms: list[Any]) -> dg.Chart:
    """A chart of facts that are bound, of the run, or added, in the order of `forms`."""
    bound, run, added = (
        [form for way, form in zip(ways, forms, strict=True) if way == name] for name in ("bind", "run", "add")
    )
    chart = PATHS.bind({"arc/2": bound[0]} if bound else {}).run({"arc/2": run[0] if run else []})
    for rows in added:
        chart.add("arc/2", rows)
    return chart.run()


WAYS = [
    ways for ways in itertools.product(["bind", "run", "add"], repeat=3) if ways.count("bind") < 2 > ways.count("run")
]


@pytest.mark.parametrize("ways", WAYS, ids="-".join)
def test_a_file_beside_rows_has_integers_in_any_order(folder: Path, ways: tuple[str, ...]) -> None:
    """One part is a file, one another, one has rows; weights 2, 3, 5, 7 along one path."""
    parts = [file(folder, "1,2,2\n2,3,3\n"), file(folder, "3,4,5\n"), [(4, 5, 7.0)]]
    for forms in itertools.permutations(parts):
        chart = given(ways, list(forms))
        assert chart["path(1,5)"] == chart["path", 1, 5] == 2 * 3 * 5 * 7
        assert sorted(chart.table("arc/2")) == [(1, 2, 2.0), (2, 3, 3.0), (3, 4, 5.0), (4, 5, 7.0)]
        assert {row[:2]: row[2] for row in chart.gradient("path(1,5)")["arc/2"]} == {
            (n, n + 1): 210 / w for n, w in enumerate((2, 3, 5, 7), 1)
        }
        assert pickle.loads(pickle.dumps(chart))["path(1,5)"] == 210
        chart.set("arc/2", [(2, 3, 30.0)])
        assert chart.run()["path(1,5)"] == 2100
        chart.set("arc/2", file(folder, "1,2,20\n"))
        assert chart.run()["path(1,5)"] == 21000 and chart.gradient("path(1,5)")["arc/2"][1, 2] == 1050
        chart.retract("arc/2", file(folder, "3,4\n"))
        assert "path(1,5)" not in chart.run() and chart["path(1,3)"] == 600


@pytest.mark.parametrize("ways", WAYS, ids="-".join)
def test_one_symbol_makes_symbols_of_all_texts(folder: Path, ways: tuple[str, ...]) -> None:
    parts = [file(folder, "1,2\n"), file(folder, "2,3\n"), [("3", "x")]]
    for forms in itertools.permutations(parts):
        chart = given(ways, list(forms))
        assert chart["path('1',x)"] == 1.0 and sorted(r[:2] for r in chart.table("arc/2")) == [
            ("1", "2"),
            ("2", "3"),
            ("3", "x"),
        ]


def test_a_term_makes_terms_of_all_texts(folder: Path) -> None:
    forms = [file(folder, "f(1)\t[2]\n", suffix="tsv"), [([2], dg.Term("g", "x"))], [(dg.Term("g", "x"), 3)]]
    for ways in (("bind", "run", "add"), ("run", "add", "add"), ("add", "bind", "run")):
        for ordered in itertools.permutations(forms):
            assert given(ways, list(ordered))["path(f(1),3)"] == 1.0


def test_an_empty_table_has_no_type(folder: Path) -> None:
    both = dg.Program("path(X,Y) += arc(X,Y). path(X,Y) += more(X,Y).")
    chart = both.run({"arc/2": file(folder, "1,2\n"), "more/2": []})
    assert list(chart.table("path/2")) == [(1, 2, 1.0)]


def test_another_predicate_of_a_later_run_decides_too(folder: Path) -> None:
    both = dg.Program("path(X,Y) += arc(X,Y). path(X,Y) += more(X,Y).").bind({"arc/2": file(folder, "1,2\n")})
    for rows, item in (
        ([(3, 4)], "path(1,2)"),
        ([("a", "b")], "path('1','2')"),
        ([(3, 4)], "path(1,2)"),
        ([], "path(1,2)"),
    ):
        chart = both.run({"more/2": rows})
        assert chart[item] == 1.0 and len(chart.table("path/2")) == 1 + len(rows)


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
def test_a_batch_and_a_function_have_the_integers(folder: Path) -> None:
    bound = PATHS.bind({"arc/2": file(folder, "1,2,2\n2,3,3\n")})
    examples = [{"arc/2": file(folder, "3,4,5\n")}, {"arc/2": [(3, 4, 7.0)]}, {"arc/2": [("a", "b", 1.0)]}]
    batch = bound.run_batch(examples, query="path(1,4)", gradient=["arc/2"])
    assert batch.values.tolist() == [30.0, 42.0, 0.0] and not batch.errors
    rows = list(batch.gradient["arc/2"])
    assert rows == [(1, 2, 36.0), (2, 3, 24.0), (3, 4, 6.0), (3, 4, 6.0), ("a", "b", 0.0)]
    f = bound.function("path(1,3)", ["arc/2"])
    assert f([5.0, 7.0]) == 35.0
    assert np.array_equal(f.value_and_grad([5.0, 7.0])[1][0], [7.0, 5.0])


@pytest.mark.parametrize("number", ["2147483648", "-2147483649", "99999999999", "9" * 30, "9" * 5000])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_integers_out_of_range_in_files_are_errors_with_their_line(folder: Path, number: str, suffix: str) -> None:
    separator = "," if suffix == "csv" else "\t"
    lines = ["1" + separator + "2", "", "3" + separator + number]
    rows = file(folder, "\n".join(lines) + "\n", suffix=suffix)
    for chart in (
        lambda: PATHS.run({"arc/2": rows}),
        lambda: PATHS.bind({"arc/2": rows}).run({"arc/2": []}),
        lambda: PATHS.run({"arc/2": [(1, 2)]}).add("arc/2", rows),
        lambda: dg.Program("p(f(X),Y) += arc(X,Y).").run({"arc/2": rows}),
    ):
        with pytest.raises(dg.FactError, match=r"arc/2, .*, line 3, column 2: the integer .* is beyond the range"):
            chart()
    assert len(PATHS.run({"arc/2": file(folder, "a" + separator + number + "\n", suffix=suffix)}).table("arc/2")) == 1


@pytest.mark.parametrize(
    ("semiring", "masked", "value"),
    [("log", "-inf", 0.5), ("viterbi", "-inf", 0.5), ("tropical", "inf", 0.5), ("tropical", "Infinity", 0.5)],
)
def test_infinite_values_of_files_are_taken_where_those_of_rows_are(
    tmp_path: Path, semiring: str, masked: str, value: float
) -> None:
    (tmp_path / "f.tsv").write_text(f"a\t{masked}\nb\t0.5\n")
    assert dg.Program("goal += f(_).", semiring).run({"f/1": dg.read_file(tmp_path / "f.tsv", "f/1")})["goal"] == value


@pytest.mark.parametrize(("semiring", "wrong"), [("real", "inf"), ("log", "inf"), ("tropical", "-inf"), (None, "-inf")])
def test_infinite_values_of_files_are_errors_where_those_of_rows_are(
    tmp_path: Path, semiring: str | None, wrong: str
) -> None:
    (tmp_path / "f.tsv").write_text(f"b\t0.5\na\t{wrong}\n")
    with pytest.raises(dg.FactError, match=rf"f/1, f\.tsv, line 2, value: {wrong} is not possible"):
        dg.Program("goal += f(_).", semiring).run({"f/1": dg.read_file(tmp_path / "f.tsv", "f/1")})
