"""Examples whose goal has one derivation are counted, not run: their values and gradients are those of their charts.

Costs ten seconds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.binding.example_cache import CachedBatch, ExampleCache
from dynagrad.charts.binding.groups import Group
from dynagrad.charts.program import rerun_cached, run_cached

CHAIN = """
:- semiring log.
at(S,0) += init(S) * seen(0,S).
at(T,J) += at(S,I) * move(S,T) * seen(J,T) for J = I+1.
goal += at(_,N) * last(N).
"""
STATES = "abc"
KEYS = ["init/1", "move/2"]
RANDOM = np.random.default_rng(4)


def bound(text: str = CHAIN, **more: Any) -> dg.Bound:
    rows = {
        "init/1": [(s, RANDOM.normal()) for s in STATES],
        "move/2": [(s, t, RANDOM.normal()) for s in STATES for t in STATES],
    }
    return dg.Program(text).bind({**rows, **more})


def example(states: str, **more: Any) -> dict[str, Any]:
    """A chain whose state is known at each place but those of a question mark."""
    seen = [(i, s) for i, known in enumerate(states) for s in (STATES if known == "?" else known)]
    return {"seen/2": seen, "last/1": [(len(states) - 1,)], **more}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many examples each native call ran."""
    found: list[int] = []
    run = Group.run
    monkeypatch.setattr(Group, "run", lambda group, *given: found.append(len(group.examples)) or run(group, *given))
    return found


def batches(now: dg.Bound, facts: list[dict[str, Any]], passes: int = 3, **asked: Any) -> list[Any]:
    """So many batches, with facts that stay loaded."""
    cache = ExampleCache()
    asked = {"query": "goal", "gradient": KEYS, "threads": 1, **asked}
    return [
        run_cached(now, facts, CachedBatch(cache, [(f,) for f in facts], linear=True), **asked) for _ in range(passes)
    ]


def check(now: dg.Bound, facts: list[dict[str, Any]], found: list[Any], weights: Any) -> None:
    """Against charts, one by one."""
    charts = [now.run(f) for f in facts]
    for batch in found:
        np.testing.assert_allclose(batch.values, [c["goal"] for c in charts], rtol=1e-13)
        for key in KEYS:
            expected = sum(w * c.gradient("goal")[key].values for w, c in zip(weights, charts, strict=True))
            np.testing.assert_allclose(batch.gradient[key].values, expected, rtol=1e-12, atol=1e-13)
        assert batch.values.tobytes() == found[0].values.tobytes()
        assert [batch.gradient[k].values.tobytes() for k in KEYS] == [
            found[0].gradient[k].values.tobytes() for k in KEYS
        ]


@pytest.mark.parametrize("threads", [1, 3])
def test_one_derivation_is_counted(threads: int, ran: list[int]) -> None:
    now, facts = bound(), [example("".join(RANDOM.choice(list(STATES), 2 + n % 5))) for n in range(40)]
    found = batches(now, facts, threads=threads)
    check(now, facts, found, np.ones(40))
    assert len(ran) == 80  # each for whether it has one derivation, and for what that uses
    counts = found[0].gradient["move/2"]
    assert (counts.values == np.rint(counts.values)).all()
    weights = RANDOM.random(40) - 0.5
    check(now, facts, batches(now, facts, cotangents=weights, threads=threads), weights)


@pytest.mark.parametrize("threads", [1, 3])
def test_beside_examples_of_several_derivations(threads: int, ran: list[int]) -> None:
    facts = [example("abcab" if n % 3 else "a?c" if n % 2 else "??") for n in range(50)]
    now, weights = bound(), RANDOM.random(50) - 0.5
    check(now, facts, batches(now, facts, cotangents=weights, threads=threads), weights)
    ran.clear()
    batches(now, facts, 1, threads=threads)
    begun = len(ran)
    whole = [f for n, f in enumerate(facts) if n % 3]
    ran.clear()
    batches(now, whole, 4)
    assert 0 < len(ran) < begun * 2


def test_numbers_of_other_facts_count_as_well() -> None:
    facts = [example("ab"), example("abc"), example("a?c")]
    for f in facts:
        f["seen/2"] = [(*row, RANDOM.normal()) for row in f["seen/2"]]
        f["last/1"] = [(*row, RANDOM.normal()) for row in f["last/1"]]
    now = bound(CHAIN.replace("goal +=", "goal += more *"), **{"more/0": [(0.25,)]})
    check(now, facts, batches(now, facts), np.ones(3))


NOT_COUNTED = {
    "a number in the text": (CHAIN.replace("goal +=", "goal += 0.5 *"), {}, {}),
    "facts of what is derived": (CHAIN + ":- input at/2.", {}, {"at/2": [("a", 0, 0.5)]}),
    "two rules": (CHAIN + "goal += at(a,_).", {}, {}),
    "a weight of zero": (CHAIN, {}, {"last/1": [(1, -np.inf)]}),
    "copies": (CHAIN, {"init/1": [("a", 0.1), ("a", 0.2), ("b", 0.3)]}, {}),
}


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
@pytest.mark.parametrize("what", NOT_COUNTED)
def test_what_is_run_all_the_same(what: str, ran: list[int]) -> None:
    text, shared, own = NOT_COUNTED[what]
    now, facts = bound(text, **shared), [example("ab", **own)] * 1
    found = batches(now, facts)
    if what != "a weight of zero":
        check(now, facts, found, np.ones(1))
    plain = now.run_batch(facts, query="goal", gradient=KEYS)
    assert [b.values.tobytes() for b in found] == [plain.values.tobytes()] * 3
    ran.clear()
    batches(now, facts, 4)
    assert len(ran) >= 4


def test_what_is_not_derived_has_no_value() -> None:
    facts = [example("ab"), {"seen/2": [(0, "a")], "last/1": [(5,)]}, example("abc")]
    for batch in batches(bound(), facts):
        assert batch.values[1] == -np.inf
        assert np.isfinite(batch.values[[0, 2]]).all()
        assert not batch.errors


def test_other_weights_give_what_charts_give() -> None:
    now, facts, cache = bound(), [example("abca"), example("a?"), example("cab")], ExampleCache()
    for _ in range(4):
        now = now.with_values({"init/1": RANDOM.normal(size=3), "move/2": RANDOM.normal(size=9)})
        cached = CachedBatch(cache, [(f,) for f in facts], linear=True)
        check(now, facts, [run_cached(now, facts, cached, query="goal", gradient=KEYS, threads=1)], np.ones(3))


@pytest.mark.parametrize("states", [("a?b", "??", "a??c"), ("abc", "cb", "aaaa"), ("abc", "??", "aaaa")])
@pytest.mark.parametrize("linear", [True, False])
def test_a_batch_again_has_the_same_bits(states: tuple[str, ...], linear: bool) -> None:
    """Where all are run, all are counted, or some of each."""
    facts, cache, weights = [example(s) for s in states], ExampleCache(), np.array([0.5, 2.0, -1.0])
    numbers = np.random.default_rng(0)

    def again(now: dg.Bound) -> Any:
        cached = CachedBatch(cache, [(f,) for f in facts], linear=linear)
        return rerun_cached(now, facts, cached, "goal", KEYS, "sum", weights)

    now = bound()
    assert again(now) is None  # nothing is loaded yet
    for _ in range(3):
        now = now.with_values({"init/1": numbers.normal(size=3), "move/2": numbers.normal(size=9)})
        cached = CachedBatch(cache, [(f,) for f in facts], linear=linear)
        whole = run_cached(now, facts, cached, query="goal", gradient=KEYS, threads=2, cotangents=weights)
        values, gradient = again(now)
        assert values.tobytes() == whole.values.tobytes()
        for key, found in zip(KEYS, gradient, strict=True):
            assert found.tobytes() == whole.gradient[key].values.tobytes()
            found[:] = 0.0  # it is no one else's


def test_what_is_to_be_told_of_is_left_to_a_batch() -> None:
    facts, cache = [example("aaa?"), example("??")], ExampleCache()
    now = bound()

    def cached() -> CachedBatch:
        return CachedBatch(cache, [(f,) for f in facts])

    asked: dict[str, Any] = {"query": "goal", "gradient": KEYS, "threads": 1}
    run_cached(now, facts, cached(), **asked)
    huge = np.array([1e308, 1.0])  # of the first one, move(a,a) has twice as much
    assert rerun_cached(now, facts, cached(), "goal", KEYS, "sum", np.ones(2)) is not None
    assert rerun_cached(now, facts, cached(), "goal", KEYS, "sum", huge) is None
    told = run_cached(now, facts, cached(), cotangents=huge, **asked).errors[0]
    assert "infinite" in str(told)
    others = [example("a?b"), example("??")]
    fresh = CachedBatch(cache, [(f,) for f in others])
    assert rerun_cached(now, others, fresh, "goal", KEYS, "sum", np.ones(2)) is None  # these were never loaded


@pytest.mark.parametrize("values", [(), (-0.25,)], ids=["without values", "with values"])
def test_facts_with_copies_are_added_up_and_not_counted(values: tuple[float, ...]) -> None:
    """Of an example, and of all; those without values are worth the log of how many they are."""
    text = ":- semiring log.  goal += w(X) * seen(X) * there(X)."
    one, two = ("a", *values), ("b", *values)
    for shared, own in (([one], [one, one]), ([one, one], [one]), ([one, one, two], [one, one, one])):
        now = dg.Program(text).bind({"w/1": [("a", 0.5), ("b", -0.5)], "there/1": shared})
        facts, cache = {"seen/1": own}, ExampleCache()
        for _ in range(3):
            cached = CachedBatch(cache, [(facts,)], linear=True)
            found = run_cached(now, [facts], cached, query="goal", gradient=["w/1"], threads=1)
            chart = now.run(facts)
            assert found.values[0] == pytest.approx(chart["goal"], rel=1e-14)
            expected = 0.5 + sum(values) * 2 + math.log(len(own) * shared.count(one))
            assert chart["goal"] == pytest.approx(expected, rel=1e-14)
            assert found.gradient["w/1"].values.ravel().tolist() == pytest.approx([1.0, 0.0], rel=1e-14)


@pytest.mark.parametrize("states", [["abca", "c"], ["ab", "b?", "cab"], ["abc"] * 40])
def test_a_batch_that_is_counted_is_given_again_by_its_counts(states: list[str], ran: list[int]) -> None:
    """To the bits of a batch, with other weights too; and of none that was not counted, or has others beside it."""
    facts, cache, weights = [example(s) for s in states], ExampleCache(), RANDOM.normal(size=len(states))
    asked: dict[str, Any] = {"query": "goal", "gradient": KEYS, "threads": 1, "cotangents": weights}

    def cached(linear: bool = True) -> CachedBatch:
        return CachedBatch(cache, [(f,) for f in facts], linear=linear)

    now = bound()
    assert rerun_cached(now, facts, cached(), "goal", KEYS, "sum", weights) is None  # nothing was loaded yet
    run_cached(now, facts, cached(), **asked)
    for _ in range(2):
        ran.clear()
        given = rerun_cached(now, facts, cached(), "goal", KEYS, "sum", weights)
        assert (given is None or bool(ran)) == any("?" in s for s in states)
        batch = run_cached(now, facts, cached(), **asked)
        check(now, facts, [batch], weights)
        if given is not None:
            assert given[0].tobytes() == batch.values.tobytes()
            for key, part in zip(KEYS, given[1], strict=True):
                assert part.tobytes() == batch.gradient[key].values.tobytes()
        now = now.with_values({key: RANDOM.normal(size=3 ** int(key[-1])) for key in KEYS})
    assert rerun_cached(now, facts, cached(False), "goal", KEYS, "sum", weights) is None  # these are run, not counted
