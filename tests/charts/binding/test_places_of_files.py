"""What is wrong with facts of files is told with the file and the line, wherever it is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

PATHS = "far(V) += start(V). far(V) += far(U) * road(U,V)."
START = {"start/1": [("a",)]}
GOOD = [("a", "b", 0.5)]

# By format: the text of two rows, of which the second has this value, and where that is.
FORMS = {
    "tsv": ("a\tb\t1\n\nb\tc\t{}\n", "road/2, roads.tsv, line 3"),
    "csv": ("a,b,1\n\nb,c,{}\n", "road/2, roads.csv, line 3"),
    "quoted csv": ('"a\n",b,1\nb,c,{}\n', "road/2, roads.csv, line 3"),
    "headed csv": ("from,to,km\na,b,1\nb,c,{}\n", "road/2, roads.csv, line 3"),
    "parquet": ("", "road/2, roads.parquet, row 2"),
    "arrow": ("", "road/2, roads.arrow, row 2"),
    "feather": ("", "road/2, roads.feather, row 2"),
}


def roads(folder: Path, form: str, value: float) -> Any:
    path = folder / f"roads.{form.split()[-1]}"
    if FORMS[form][0]:
        path.write_text(FORMS[form][0].format(value))
    else:
        pa = pytest.importorskip("pyarrow")
        table = pa.table({"from": ["a", "b"], "to": ["b", "c"], "km": [1.0, value]})
        if form == "parquet":
            pytest.importorskip("pyarrow.parquet").write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
    return dg.read_file(path, "road/2", header=True if "headed" in form else None)


def changed(program: dg.Program, change: str, rows: Any) -> None:
    chart = program.run({**START, "road/2": GOOD})
    getattr(chart, change)("road/2", rows)
    chart.run()


def first_error(program: dg.Program, rows: Any) -> None:
    raise program.run_batch([{**START, "road/2": rows}], query="far(c)").errors[0]


WAYS: dict[str, Callable[[dg.Program, Any], Any]] = {
    "run": lambda program, rows: program.run({**START, "road/2": rows}),
    "bind": lambda program, rows: program.bind({"road/2": rows}),
    "run beside bound rows": lambda program, rows: program.bind({"road/2": GOOD}).run({**START, "road/2": rows}),
    "add": lambda program, rows: changed(program, "add", rows),
    "set": lambda program, rows: changed(program, "set", rows),
    "a batch": lambda program, rows: first_error(program, rows),
    "a function": lambda program, rows: program.function("far(c)", ["road/2"], {**START, "road/2": rows}),
}


@pytest.fixture(scope="module")
def programs() -> dict[str, dg.Program]:
    return {name: dg.Program(PATHS, name) for name in ("real", "log", "viterbi", "boolean", "count")}


@pytest.mark.parametrize("form", FORMS)
def test_values_that_a_semiring_does_not_have(tmp_path: Path, form: str, programs: dict[str, dg.Program]) -> None:
    wrong = {"real": np.inf, "log": np.inf, "viterbi": np.inf, "boolean": 0.5, "count": 0.5}
    for semiring, value in wrong.items():
        with pytest.raises(dg.FactError, match=f"^{FORMS[form][1]}, value: .*{value}"):
            WAYS["run"](programs[semiring], roads(tmp_path, form, value))


@pytest.mark.parametrize("way", WAYS)
def test_the_place_is_told_wherever_facts_are_given(tmp_path: Path, way: str, programs: dict[str, dg.Program]) -> None:
    with pytest.raises(dg.FactError, match=r"road/2, roads\.tsv, line 3, value: inf is not possible"):
        WAYS[way](programs["real"], roads(tmp_path, "tsv", np.inf))


@pytest.mark.parametrize("form", FORMS)
def test_numbers_that_are_no_probabilities(tmp_path: Path, form: str, programs: dict[str, dg.Program]) -> None:
    """Negative ones are probably the logs of a chart, which are not said to be probabilities."""
    for value, hint in {-1.5: "; the logs that `log` has are given without values=", 1.5: ""}.items():
        with pytest.raises(dg.FactError, match=f"^{FORMS[form][1]}: {value} is not a probability.*{hint}"):
            programs["log"].run({**START, "road/2": roads(tmp_path, form, value)}, values="probabilities")
    logs = programs["log"].run({**START, "road/2": GOOD}, values="probabilities").table("far/1")
    with pytest.raises(dg.FactError, match=r"start/1, row 2: -0\.69\d* is not a probability.* given without values="):
        programs["log"].run({"start/1": logs, "road/2": GOOD}, values="probabilities")


def test_facts_that_are_given_twice(tmp_path: Path) -> None:
    program = dg.Program("s += a(_). t max= a(_).")
    (tmp_path / "a.tsv").write_text("x\t1\n\nx\t2\n")
    (tmp_path / "b.csv").write_text("y,7\n")
    a, b = dg.read_file(tmp_path / "a.tsv", "a/1"), dg.read_file(tmp_path / "b.csv", "a/1")
    for run, place in {
        lambda: program.run({"a/1": a}): "in lines 1 and 3 of a.tsv, with the values 1.0 and 2.0",
        lambda: program.bind({"a/1": [("z", 1.0)]}).run({"a/1": a}): "in lines 1 and 3 of a.tsv",
        lambda: program.bind({"a/1": [("y", 1.0)]}).run({"a/1": b}): "in row 1 of the bound facts and line 1 of b.csv",
        lambda: program.bind({"a/1": b}).run({"a/1": [("y", 1.0)]}): "in line 1 of b.csv and row 1 of the facts of the",
        lambda: program.bind({"a/1": b}).run({"a/1": b}): "in lines 1 and 1 of b.csv",
        lambda: dg.Program("s += a(_). t max= a(_). a(y) = 2.").run({"a/1": b}): "in the text and line 1 of b.csv",
    }.items():
        with pytest.raises(dg.FactError, match=place):
            run()


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    program = dg.Program("p(I+1) += a(I).")
    (tmp_path / "a.tsv").write_text("1\n\nx\n")
    for kinds, place in {None: r"line 3, column 1: 'x'", ("symbol",): r"line 1, column 1: '1'"}.items():
        with pytest.raises(dg.FactError, match=rf"a/1, a\.tsv, {place} is not an integer"):
            program.run({"a/1": dg.read_file(tmp_path / "a.tsv", "a/1", kinds=kinds)})


def test_values_that_a_chart_made_are_of_no_file(tmp_path: Path, programs: dict[str, dg.Program]) -> None:
    chart = programs["real"].run({**START, "road/2": roads(tmp_path, "tsv", 3.0)})
    table = chart.gradient("far(c)")["road/2"]
    with pytest.raises(dg.FactError, match=r"road/2, row 1: 3\.0 is not a probability"):
        programs["real"].run({**START, "road/2": table}, values="probabilities")
