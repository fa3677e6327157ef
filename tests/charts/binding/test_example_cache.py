"""Facts of examples that stay loaded from batch to batch give the bits of facts that are prepared anew."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.binding import example_cache
from dynagrad.charts.binding.example_cache import EXAMPLE_BYTES, ROW_BYTES, CachedBatch, ExampleCache
from dynagrad.charts.program import run_cached
from dynagrad.runtime.engine import NativeChart

PATHS = """
:- semiring log.
at(S,0) += init(S) * seen(0,S).
at(T,J) += at(S,I) * move(S,T) * seen(J,T) for J = I+1.
goal += at(_,N) * last(N).
"""
TERMS = """
:- semiring log.
done(end(I)) += seen(I,S) * init(S).
goal += done(end(I)) * last(I) * move(_,_).
"""
BOTH = PATHS + "seen(0,a) = -0.1."
STATES = "abc"


def example(length: int, **more: Any) -> dict[str, Any]:
    return {"seen/2": [(i, s) for i in range(length) for s in STATES], "last/1": [(length - 1,)], **more}


def bound(text: str) -> dg.Bound:
    random = np.random.default_rng(0)
    rows = {
        "init/1": [(s, random.random() - 2) for s in STATES],
        "move/2": [(s, t, random.random() - 2) for s in STATES for t in STATES],
    }
    return dg.Program(text).bind(rows)


def passes(
    text: str,
    examples: list[dict[str, Any]],
    cache: ExampleCache | None,
    threads: int,
    keys: tuple[str, ...] = ("init/1", "move/2"),
) -> list[bytes]:
    """Values and gradients of four batches, each with other values of the shared facts."""
    now, found = bound(text), []
    asked: dict[str, Any] = {"query": "goal", "gradient": keys, "threads": threads}
    for n in range(4):
        random = np.random.default_rng(n)
        now = now.with_values({"init/1": random.random(3) - 2, "move/2": random.random(9) - 2})
        if cache is None:
            batch = now.run_batch(examples, **asked)
        else:
            batch = run_cached(now, examples, CachedBatch(cache, [(e,) for e in examples]), **asked)
        assert not batch.errors
        found.append(batch.values.tobytes() + b"".join(batch.gradient[k].values.tobytes() for k in asked["gradient"]))
    return found


@pytest.mark.parametrize("brief", [0.0, 1.0])
@pytest.mark.parametrize("text", [PATHS, TERMS, BOTH])
def test_bits_are_those_of_facts_prepared_anew(text: str, brief: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_cache, "BRIEF", brief)
    examples = [example(1 + n % 5) for n in range(12)]
    examples += [examples[3], examples[3]]  # one object several times, which two threads may run at once
    expected = passes(text, examples, None, 1)
    for threads in (1, 3):
        cache = ExampleCache()
        assert passes(text, examples, cache, threads) == expected
        assert len(cache) == (0 if text is TERMS else 12)  # terms that a run interns are not to be there in the next


def test_an_example_that_adds_to_shared_facts_is_prepared_anew() -> None:
    """Its rows of `move/2` stand beside shared ones, whose values change."""
    examples = [example(3, **{"move/2": [("a", "c", -0.5)]}), example(2)]
    for keys, kept in ((("init/1",), 1), (("init/1", "move/2"), 0)):  # a table of rows of examples is made one by one
        cache = ExampleCache()
        assert passes(PATHS, examples, cache, 1, keys) == passes(PATHS, examples, None, 1, keys)
        assert len(cache) == kept


def test_what_is_kept_has_a_limit() -> None:
    examples = [example(3) for _ in range(6)]
    cache = ExampleCache(2 * (EXAMPLE_BYTES + 10 * ROW_BYTES))
    assert passes(PATHS, examples, cache, 2) == passes(PATHS, examples, None, 1)
    assert len(cache) == 2


def test_threads_are_started_where_there_is_work_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four batches: of the first it is not known how long it takes."""
    started: list[str] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(thread.name), start(thread))[1])
    for brief, count in ((0.0, 8), (1.0, 2)):
        monkeypatch.setattr(example_cache, "BRIEF", brief)
        started.clear()
        passes(PATHS, [example(n) for n in range(1, 5)], ExampleCache(), 2)
        assert len([name for name in started if name.startswith("dynagrad-batch")]) == count


def test_another_class_of_runs_has_facts_of_its_own() -> None:
    """With and without gradients in turn, as a search along a line may ask."""
    examples, cache, now = [example(n) for n in (2, 3)], ExampleCache(), bound(PATHS)
    for n in range(4):
        now = now.with_values({"init/1": np.full(3, -0.1 * n - 1)})
        asked: dict[str, Any] = {"query": "goal"} | ({"gradient": ["init/1"]} if n % 2 else {})
        mine = run_cached(now, examples, CachedBatch(cache, [(e,) for e in examples]), **asked)
        assert mine.values.tobytes() == now.run_batch(examples, **asked).values.tobytes()


def test_derivations_and_errors_are_those_of_other_batches() -> None:
    examples = [example(2), {"seen/2": [(0, "nobody")], "last/1": [(0,)]}, {"last/1": [("x", "y")]}]
    cache = ExampleCache()
    for _ in range(2):
        mine = run_cached(bound(PATHS), examples, CachedBatch(cache, [(e,) for e in examples]), query="goal")
        theirs = bound(PATHS).run_batch(examples, query="goal")
        assert mine.values.tobytes() == theirs.values.tobytes()
        assert {n: str(e) for n, e in mine.errors.items()} == {n: str(e) for n, e in theirs.errors.items()}


def test_the_charts_of_a_batch_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a search for garbage: a chart with its tape may be large."""
    live: weakref.WeakSet[NativeChart] = weakref.WeakSet()
    begin = NativeChart.__init__

    def noted(chart: NativeChart, *arguments: Any) -> None:
        begin(chart, *arguments)
        live.add(chart)

    monkeypatch.setattr(NativeChart, "__init__", noted)
    gc.collect()
    gc.disable()
    try:
        for cache in (None, ExampleCache()):
            passes(PATHS, [example(n) for n in range(1, 5)], cache, 1)
            assert not live
    finally:
        gc.enable()
