"""What a run tells: records, logs, the progress bar, pictures. Costs five seconds."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.training.reports.progress import Bar, line_of
from dynagrad.training.reports.records import Record, curve

TEXT = """
:- semiring real. :- distribution toss(S). :- distribution side(S,T) given S.
goal += toss(S) * side(S,T) * side(S,U) * first(T) * second(U).
"""
DATA = [{"first/1": [(s,)], "second/1": [(t,)]} for s, t in ("hh", "hh", "ht", "tt", "th", "tt")]


def model() -> dg.Model:
    sides = [("a", "h", 0.4), ("a", "t", 0.6), ("b", "h", 0.7), ("b", "t", 0.3)]
    return dg.Model(TEXT, {"toss/1": [("a", 0.4), ("b", 0.6)], "side/2": sides})


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_log_as_csv_is_written_at_each_step(tmp_path: Path) -> None:
    log, seen = tmp_path / "log.csv", []

    def look(record: Record) -> None:
        seen.append(len(rows(log)))

    fit = model().fit(DATA, DATA[:2], method="l-bfgs", iterations=4, tolerance=0.0, log=log, callback=look)
    assert seen == list(range(1, len(fit.history) + 1))
    found = rows(log)
    assert [float(r["objective"]) for r in found] == [r.objective for r in fit.history]
    assert [float(r["dev"]) for r in found] == [r.dev for r in fit.history]
    model().fit(DATA, iterations=2, log=log)  # another run has another log
    assert len(rows(log)) == 2 and rows(log)[0]["dev"] == "" and rows(log)[0]["change"] == ""
    fit.to_csv(tmp_path / "history.csv")
    assert rows(tmp_path / "history.csv") == found


@pytest.mark.parametrize("suffix", [".arrow", ".feather"])
def test_a_log_as_arrow(tmp_path: Path, suffix: str) -> None:
    import pyarrow as pa

    log = tmp_path / f"log{suffix}"
    fit = model().fit(DATA, iterations=5, tolerance=0.0, log=str(log))
    with pa.ipc.open_file(str(log)) as file:
        assert file.read_all().equals(fit.to_arrow())
    table = fit.to_arrow()
    assert table.column("objective").to_pylist() == [r.objective for r in fit.history]
    assert table.schema.field("dev").type == pa.float64()


def test_the_log_of_a_run_that_goes_on_is_continued(tmp_path: Path) -> None:
    log, checkpoint = tmp_path / "log.csv", tmp_path / "c"
    given: dict[str, Any] = {"tolerance": 0.0, "log": log, "checkpoint": checkpoint, "every": 2}

    def stop(record: Record) -> None:
        if record.iteration == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model().fit(DATA, iterations=8, callback=stop, **given)
    assert len(rows(log)) == 5  # the checkpoint has four steps: the fifth is made again
    fit = model().fit(DATA, iterations=8, **given)
    assert [int(r["iteration"]) for r in rows(log)] == list(range(1, 9))
    assert [float(r["objective"]) for r in rows(log)] == [r.objective for r in fit.history]
    seconds = [r.seconds for r in fit.history]
    assert seconds == sorted(seconds)


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    for log, message in (
        (tmp_path / "log.txt", "a log ends in .csv, .arrow, .feather"),
        (tmp_path / "no" / "log.csv", "No such file"),
        (tmp_path / "no" / "log.arrow", "No such file"),
        (7, "log must be the path of a file"),
        ("", "log must be the path of a file"),
    ):
        with pytest.raises(dg.Error, match=message.replace(".", r"\.")):
            model().fit(DATA, log=log)  # type: ignore[arg-type]


def test_the_progress_bar(capfd: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    model().fit(DATA, DATA, method="l-bfgs", iterations=3, tolerance=0.0, progress=True)
    shown = capfd.readouterr()
    assert "3/3" in shown.err and "objective -7." in shown.err and "gradient" in shown.err
    assert "held out" in shown.err and "examples/s" in shown.err and "left" in shown.err and not shown.out
    model().fit(DATA, iterations=3)
    assert capfd.readouterr().err == ""
    assert line_of(Record(1, -1.0, -1.0, None, None, 100.0, 2000.0), 101).endswith(
        "2,000 examples/s · at most 2:46:40 left"
    )
    with Bar(False, 3) as bar:
        bar.show(Record(1, -1.0, -1.0, None, None, 1.0, 1.0))


def test_pictures() -> None:
    fit = model().fit(DATA, DATA[:2], iterations=6, tolerance=0.0)
    lines = fit.curve(30, 5).splitlines()
    assert len(lines) == 5 and sum(line.count("*") for line in lines) == 6
    assert lines[0].split()[0] == f"{max(r.objective for r in fit.history):.5g}"
    assert curve([1.0], 10, 2).count("*") == 1 and curve([], 10, 2) == ""
    assert curve([0.0, 1.0, 2.0], 3, 3) == "           2   *\n              *\n           0 *"
    for width, height in ((1, 5), (30, 1), ("x", 5), (30, None)):
        with pytest.raises(dg.Error, match="must be a whole number"):
            fit.curve(width, height)  # type: ignore[arg-type]
    pytest.importorskip("matplotlib")
    (axes,) = fit.plot().axes
    assert [list(line.get_ydata()) for line in axes.lines] == [
        [r.objective for r in fit.history],
        [r.dev for r in fit.history],
    ]
    assert axes.get_xlabel() == "iteration"


def test_dev_decides_what_is_kept_and_when_to_stop() -> None:
    m = model()
    fit = m.fit(DATA, DATA[2:3], iterations=30, tolerance=0.0, patience=3)
    scores = [r.dev for r in fit.history]
    best = max(s for s in scores if s is not None)
    assert fit.stopped == "dev" and len(scores) == scores.index(best) + 4
    assert fit.best is not None and m.score(DATA[2:3]) == fit.best.dev == best
    assert m.fit(DATA, iterations=2).best is None


def test_held_out_examples_that_no_longer_count_are_no_gain() -> None:
    coin = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
    m = dg.Model(coin, {"toss/1": [("h",), ("t",)]})
    heads, tails = {"seen/1": [("h",)]}, {"seen/1": [("t",)]}
    fit = m.fit([heads], [heads, tails], method="sgd", iterations=4, missing="skip", rate=lambda k: 1e5 if k else 0.1)
    assert [r.dev for r in fit.history][1:] == [0.0, 0.0, 0.0]  # of heads alone
    assert fit.best == fit.history[0] and m.score([heads, tails]) == fit.best.dev
