"""Batches whose examples native code runs in one call give what their charts give one by one."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.batches.one_by_one import Work
from dynagrad.charts.binding import example_cache
from dynagrad.charts.binding.example_cache import CachedBatch, ExampleCache
from dynagrad.charts.binding.groups import Group
from dynagrad.charts.program import run_cached

CHAIN = """
at(S,0) += init(S) * seen(0,S).
at(T,J) += at(S,I) * move(S,T) * seen(J,T) for J = I+1.
goal += at(_,N) * last(N).
"""
STATES = "abc"
KEYS = ["init/1", "move/2"]


def example(length: int, names: str = STATES) -> dict[str, Any]:
    return {"seen/2": [(i, s) for i in range(length) for s in names], "last/1": [(length - 1,)]}


def bound(semiring: str, least: float = 1.0) -> dg.Bound:
    random = np.random.default_rng(0)
    rows = {
        "init/1": [(s, least + random.random()) for s in STATES],
        "move/2": [(s, t, least + random.random()) for s in STATES for t in STATES],
    }
    return dg.Program(f":- semiring {semiring}.{CHAIN}").bind(rows)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The examples that are run one by one."""
    found: list[int] = []
    finish = Work.finish
    monkeypatch.setattr(Work, "finish", lambda work, n, chart: found.append(n) or finish(work, n, chart))
    return found


@pytest.mark.parametrize("semiring", ["real", "log", "viterbi", "tropical"])
@pytest.mark.parametrize("threads", [1, 3])
def test_sums_are_those_of_charts(semiring: str, threads: int, alone: list[int]) -> None:
    facts = [example(1 + n % 5, "cab" if n % 3 else "ab") for n in range(70)]
    weights = np.random.default_rng(1).random(70) - 0.5
    now = bound(semiring)
    batch = now.run_batch(facts, query="goal", gradient=KEYS, cotangents=weights, threads=threads)
    assert not batch.errors
    assert alone == []
    charts = [now.run(f) for f in facts]
    assert batch.values.tolist() == [c["goal"] for c in charts]
    for key in KEYS:
        expected = sum(w * c.gradient("goal")[key].values for w, c in zip(weights, charts, strict=True))
        assert np.allclose(batch.gradient[key].values, expected, rtol=1e-12, atol=1e-13)


def test_the_gradient_of_logs(alone: list[int]) -> None:
    facts, now = [example(1 + n % 4) for n in range(20)], bound("real")
    batch = now.run_batch(facts, query="goal", gradient=KEYS, objective="log")
    assert alone == []
    charts = [now.run(f) for f in facts]
    for key in KEYS:
        expected = sum(c.gradient("goal")[key].values / c["goal"] for c in charts)
        assert np.allclose(batch.gradient[key].values, expected, rtol=1e-12)


def test_what_is_not_plain_is_run_apart_and_said(alone: list[int]) -> None:
    """An example that fails, one that is not derived, one that underflows and one whose gradient is infinite."""
    now = bound("real")
    facts = [example(2) for _ in range(40)]
    facts[7] = {"seen/2": 7}
    facts[11] = {"seen/2": [(0, "a")], "last/1": [(5,)]}
    facts[23] = {"seen/2": [(0, "a", 1e-320)], "last/1": [(0,)]}
    facts[31] = {"seen/2": [(0, "a", 1e308), (1, "a", 1e308)], "last/1": [(1,)]}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        batch = now.run_batch(facts, query="goal", gradient=KEYS)
    assert sorted(batch.errors) == [7, 31]
    assert set(alone) == {23, 31}
    assert batch.values[11] == 0
    assert ["example 23" in str(w.message) for w in said] == [True]
    plain = [f for n, f in enumerate(facts) if n not in (7, 11, 31)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rest = now.run_batch(plain, query="goal", gradient=KEYS)
    for key in KEYS:
        assert np.allclose(batch.gradient[key].values, rest.gradient[key].values, rtol=1e-13)


def test_what_is_impossible_has_a_log_of_minus_infinity_and_no_gradient(alone: list[int]) -> None:
    facts = [example(2), {"seen/2": [(0, "a")], "last/1": [(5,)]}]
    batch = bound("real").run_batch(facts, query="goal", gradient=KEYS, objective="log")
    assert not batch.errors and batch.values[1] == 0.0
    assert alone == [1]
    first = bound("real").run_batch(facts[:1], query="goal", gradient=KEYS, objective="log")
    for key in KEYS:
        assert np.allclose(batch.gradient[key].values, first.gradient[key].values, rtol=1e-13)
    batch = bound("log").run_batch(facts, query="goal", gradient=KEYS)
    assert not batch.errors
    assert batch.values[1] == -math.inf


def test_groups_are_kept_and_forgotten_where_data_change_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_cache, "BRIEF", 0.0)  # threads however little there is to do
    facts = [example(1 + n % 3) for n in range(48)]
    cache, now, random = ExampleCache(), bound("log"), np.random.default_rng(2)
    for _ in range(9):
        order = random.permutation(48)
        mine = [facts[n] for n in order]
        batch = run_cached(now, mine, CachedBatch(cache, [(f,) for f in mine]), query="goal", gradient=KEYS, threads=2)
        other = now.run_batch(mine, query="goal", gradient=KEYS, threads=1)
        assert batch.values.tobytes() == other.values.tobytes()
        for key in KEYS:
            assert batch.gradient[key].values.tobytes() == other.gradient[key].values.tobytes()
        assert sum(map(len, cache._groups)) <= 4 * 48


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_rows_of_derived_predicates_have_gradients_too(semiring: str, alone: list[int]) -> None:
    """Those of `at/2` are the beginnings of sequences, beside what the rules derive."""
    chain = CHAIN.replace("at(S,0) += init(S) * seen(0,S).", ":- input at/2.")
    begun = {"at/2": [(s, 0, 0.5 + n) for n, s in enumerate(STATES)]}
    moves = {"move/2": [(s, t, 0.1 + ord(s) % 4 + ord(t) % 3) for s in STATES for t in STATES]}
    now = dg.Program(f":- semiring {semiring}.{chain}").bind({**begun, **moves})
    facts = [example(1 + n % 4) for n in range(20)]
    batch = now.run_batch(facts, query="goal", gradient=["at/2", "move/2"])
    assert alone == []
    charts = [now.run(f) for f in facts]
    for key in ("at/2", "move/2"):
        expected = sum(c.gradient("goal")[key].values for c in charts)
        assert np.allclose(batch.gradient[key].values, expected, rtol=1e-12)


@pytest.mark.parametrize("semiring, underived", [("log", False), ("log", True), ("real", False), ("real", True)])
def test_all_parts_by_one_call_have_the_bits_of_a_call_for_each(
    semiring: str, underived: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = [example(1 + n % 5, "cab" if n % 3 else "ab") for n in range(70)]
    if underived:  # in `real` there is no log then, which is for Python to tell
        facts[20] = {"seen/2": [(0, "a")], "last/1": [(5,)]}
    calls: list[int] = []
    run = Group.run
    monkeypatch.setattr(Group, "run", lambda group, *given: calls.append(len(group.examples)) or run(group, *given))
    weights, cache, now = np.random.default_rng(1).random(70) - 0.5, ExampleCache(), bound(semiring)
    asked: dict[str, Any] = {"query": "goal", "gradient": KEYS, "cotangents": weights}
    asked["objective"] = "log" if semiring == "real" else "sum"
    expected = now.run_batch(facts, **asked, threads=2)
    for n in range(3):
        calls.clear()
        batch = run_cached(now, facts, CachedBatch(cache, [(f,) for f in facts]), **asked, threads=1)
        assert (calls[0] == 70) == (n == 1 or (n > 1 and not (underived and semiring == "real")))
        assert (len(calls) == 1) == (n > 0 and not (underived and semiring == "real"))
        assert batch.values.tobytes() == expected.values.tobytes()
        assert batch.errors.keys() == expected.errors.keys()
        for key in KEYS:
            assert batch.gradient[key].values.tobytes() == expected.gradient[key].values.tobytes()
