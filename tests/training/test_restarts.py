"""Several starts, of which the best is kept. Costs three seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.charts.binding import example_cache

PAIRS = dg.Program(""":- semiring log. :- distribution z(K). :- distribution e(K,O) given K.
    goal += z(K) * e(K,O) * x(O) * e(K,P) * y(P).""")
ROWS: dict[str, Any] = {"z/1": [(k,) for k in range(3)], "e/2": [(k, o) for k in range(3) for o in "abcd"]}
DATA = [{"x/1": [(a,)], "y/1": [(b,)]} for a, b in ("aa", "ab", "bb", "cd", "cc", "dd", "dc", "ab", "aa", "cd")]
RANDOM = {key: training.Distribution({key: rows}, initial="random") for key, rows in ROWS.items()}
OPTIONS: dict[str, Any] = {"restarts": 4, "iterations": 12, "tolerance": 0.0, "seed": 3}


def bits(model: dg.Model) -> bytes:
    return b"".join(x.tobytes() for x in model.parameters.values())


def test_the_best_of_all_starts_is_kept() -> None:
    model = dg.Model(PAIRS, RANDOM)
    seen: list[training.reports.records.Record] = []
    fit = model.fit(DATA, callback=seen.append, **OPTIONS)
    ends = [r.objective for r in seen if r.iteration == 12]
    assert list(fit.starts) == ends and len(set(ends)) == 4
    assert fit.objective == max(ends) and [r.objective for r in fit.history][-1] == max(ends)
    assert model.score(DATA) >= fit.objective
    assert repr(fit).endswith("iterations, the best of 4 starts>")
    # the first is that of a run without
    alone = dg.Model(PAIRS, RANDOM).fit(DATA, **{**OPTIONS, "restarts": 1})
    assert alone.objective == ends[0] and alone.starts == ()


def test_it_is_the_best_on_held_out_data_where_there_are_some() -> None:
    held_out = [{"x/1": [(a,)], "y/1": [(b,)]} for a, b in ("ac", "bd")]
    model = dg.Model(PAIRS, RANDOM, prior=training.add_lambda(0.1))
    seen: list[Any] = []
    fit = model.fit(DATA, held_out, callback=seen.append, **OPTIONS)
    assert fit.best is not None and fit.best.dev == max(r.dev for r in seen) == model.score(held_out)
    assert fit.best in fit.history


def test_the_number_of_threads_and_a_second_run_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_cache, "BRIEF", 0.0)  # threads however little there is to do
    found = set()
    for threads in (1, 2, 1):
        model = dg.Model(PAIRS, RANDOM)
        model.fit(DATA, threads=threads, method="incremental-em", size=3, **OPTIONS)
        found.add(bits(model))
    assert len(found) == 1


@pytest.mark.parametrize("method", ["em", "l-bfgs", "online-em", "sgd"])
def test_a_checkpoint_goes_on_in_the_midst_of_it(method: str, tmp_path: Path) -> None:
    whole = dg.Model(PAIRS, RANDOM)
    first = whole.fit(DATA, method=method, log=tmp_path / "whole.csv", **OPTIONS)
    steps = 0

    def interrupt(record: Any) -> None:
        nonlocal steps
        steps += 1
        if steps % 9 == 0:
            raise KeyError("here")

    again = dg.Model(PAIRS, RANDOM)
    more: dict[str, Any] = {"checkpoint": tmp_path / "c", "log": tmp_path / "log.csv", "callback": interrupt}
    for turn in range(50):
        try:
            second = again.fit(DATA, method=method, **OPTIONS, **more)
            break
        except KeyError:
            assert turn < 49
    assert bits(again) == bits(whole) and second.starts == first.starts
    assert [r.objective for r in second.history] == [r.objective for r in first.history]
    rows = [
        [line.split(",")[:3] for line in (tmp_path / name).read_text().split()] for name in ("whole.csv", "log.csv")
    ]
    assert rows[0] == rows[1] and len(rows[0]) > 13
    # all is done, and is not done again
    assert dg.Model(PAIRS, RANDOM).fit(DATA, method=method, **OPTIONS, checkpoint=tmp_path / "c").starts == first.starts
    with pytest.raises(dg.Error, match="is of another run"):
        again.fit(DATA, method=method, **{**OPTIONS, "restarts": 5}, checkpoint=tmp_path / "c")


def test_what_is_drawn() -> None:
    rows = {"e/2": [(k, o, 0.0 if (k, o) == (0, "a") else 1.0) for k in range(3) for o in "abcd"]}
    weights = training.Distribution(rows, 0, frozen=lambda k, o: k == 2)
    draw = np.random.default_rng(0)
    found = np.exp(weights.draw(draw)).reshape(3, 4)
    assert found.sum(axis=1) == pytest.approx(1.0) and found[0, 0] == 0.0
    assert found[2].tolist() == pytest.approx([0.25] * 4) and found[1, 0] != pytest.approx(found[1, 1])
    linear = training.LogLinear({"w/1": [("a",), ("b",)]}, initial=5.0, frozen=lambda f: f == "w(a)")
    assert linear.draw(draw)[0] == 5.0 != linear.draw(draw)[1]


def test_what_cannot_begin_anew_is_an_error() -> None:
    function = training.Differentiable({"z/1": [(0,), (1,)]}, lambda w: w, np.zeros(2))
    text = ":- semiring log. goal += z(K) * x(K)."
    with pytest.raises(dg.Error, match="restarts begins anew with parameters that are drawn, and of these none can be"):
        dg.Model(text, {"z": function}).fit([{"x/1": [(0,)]}], method="l-bfgs", restarts=2)
    model = dg.Model(PAIRS, ROWS)
    with pytest.raises(dg.Error, match="give one of both"):
        model.fit(DATA, restarts=2, warm=True)
    with pytest.raises(dg.Error, match="restarts must be a whole number, at least 1"):
        model.fit(DATA, restarts=0)


def test_a_callback_ends_all_of_it() -> None:
    fit = dg.Model(PAIRS, RANDOM).fit(DATA, callback=lambda r: r.iteration < 3, **OPTIONS)
    assert fit.stopped == "callback" and len(fit.starts) == 1


@pytest.mark.parametrize("method", ["em", "l-bfgs"])
def test_wider_limits_go_on_with_all_starts(method: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": method, "restarts": 2, "tolerance": 0.0, "seed": 3}
    narrow, wide = (dg.Model(PAIRS, RANDOM).fit(DATA, iterations=n, **options) for n in (3, 8))
    for n, first in ((3, narrow), (8, wide), (3, wide)):  # the last has gone further, and is not run again
        model = dg.Model(PAIRS, RANDOM)
        fit = model.fit(DATA, iterations=n, checkpoint=tmp_path / "c", log=tmp_path / "log.csv", **options)
        assert fit.starts == first.starts and fit.objective == first.objective
    fresh = dg.Model(PAIRS, RANDOM)
    fresh.fit(DATA, iterations=8, **options)
    assert bits(model) == bits(fresh)
    assert len((tmp_path / "log.csv").read_text().split()) == 1 + 2 * 8


def test_noise_leaves_what_is_frozen() -> None:
    linear = training.LogLinear({"w/1": [("a",), ("b",)]}, noise=1.0, frozen=lambda f: f == "w(a)")
    for draw in (linear.start, linear.draw):
        assert draw(np.random.default_rng(0))[0] == 0.0 != draw(np.random.default_rng(0))[1]
