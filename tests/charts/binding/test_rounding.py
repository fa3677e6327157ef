"""The plan of a run follows from its facts alone, in coarse steps: runs of about one size share it, whatever ran first.

It costs 3 s, and compiles the classes of two programs.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynagrad as dg
from dynagrad.charts.binding import binding as binding_module
from dynagrad.charts.binding.rounding import _domain_sizes, _fine_step, _least_gap, _step
from dynagrad.charts.chart import run_of
from dynagrad.codegen.rules.compiled import CompiledPlan, compile_plan
from dynagrad.plan.model import DomainSummary, Strategy

STATES = 7
TAGGER = """
:- semiring log.
at(0,T) += first(T) * emit(T,W) * word(0,W) * permitted(0,T).
at(J,T) += at(I,S) * next(S,T) * emit(T,W) * word(J,W) * permitted(J,T) for J = I+1.
goal += at(I,_) * length(N) for N = I+1.
"""
CKY = """
:- semiring log.
span(X,I,J) += rewrite(X,W) * word(W,I,J).
span(X,I,J) += rewrite(X,Y,Z) * span(Y,I,K) * span(Z,K,J).
goal += span(s,0,N) * length(N).
"""


def tagged(length: int, tags: int) -> dict[str, Any]:
    """A sentence of so many words, of which each may have so many tags: more than one of them has a value each."""
    random = np.random.default_rng(1000 * length + tags)
    words = [(i, i % 3) for i in range(length)]
    rows = [(i, t) for i in range(length) for t in range(tags)]
    permitted = [(*row, -float(random.random())) for row in rows] if tags > 1 else rows
    return {"word/2": words, "permitted/2": permitted, "length/1": [(length,)]}


def parsed(length: int, choices: int) -> dict[str, Any]:
    """A lattice of so many places, with so many words from each to the next."""
    words = [(f"w{c}", i, i + 1, -0.1 * c) for i in range(length) for c in range(choices)]
    return {"word/3": words, "length/1": [(length,)]}


def bound(text: str) -> dg.Bound:
    random = np.random.default_rng(0)
    if text == TAGGER:
        return dg.Program(text).bind(
            {
                "first/1": [(t, -1.0) for t in range(STATES)],
                "next/2": [(s, t, -random.random()) for s in range(STATES) for t in range(STATES)],
                "emit/2": [(t, w, -random.random()) for t in range(STATES) for w in range(3)],
            }
        )
    pairs = [(x, y, z, -1 - random.random()) for x in "sab" for y in "sab" for z in "sab"]
    words = [(x, f"w{c}", -random.random()) for x in "ab" for c in range(3)]
    return dg.Program(text).bind({"rewrite/3": pairs, "rewrite/2": words})


SIZES = [(1, 1), (2, 1), (2, 2), (3, 3), (5, 2), (9, 3), (17, 1), (33, 3), (40, 2), (70, 2)]
CASES = {TAGGER: (tagged, "next/2"), CKY: (parsed, "rewrite/3")}


def alone(text: str, size: tuple[int, int]) -> bytes:
    """The value and the gradient of one example where nothing ran before it."""
    return each(bound(text), text, size)


def each(now: dg.Bound, text: str, size: tuple[int, int]) -> bytes:
    made, by = CASES[text]
    chart = now.run(made(*size))
    gradient = chart.gradient("goal")[by]
    return np.float64(chart["goal"]).tobytes() + np.asarray(gradient.values).tobytes()


@pytest.fixture(scope="module")
def bits() -> dict[tuple[str, tuple[int, int]], bytes]:
    return {(text, size): alone(text, size) for text in CASES for size in SIZES}


@pytest.mark.parametrize("text", CASES)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_the_numbers_of_a_run_do_not_depend_on_runs_before(
    bits: dict[tuple[str, tuple[int, int]], bytes], text: str, data: Any
) -> None:
    now = bound(text)
    for size in data.draw(st.permutations(SIZES)):
        assert each(now, text, size) == bits[text, size]


def test_nor_do_those_of_a_run_that_adds_to_bound_facts() -> None:
    random = np.random.default_rng(1)
    places = [f"n{n}" for n in range(12)]
    pairs = [(x, y, float(random.random())) for x in places for y in random.choice(places, 3, replace=False)]
    weighed = [(x, float(random.random())) for x in places]
    program = dg.Program("goal += edge(X,Y) * link(Y,Z) * w(Z) * v(X).")
    shared = {"link/2": pairs, "w/1": weighed, "v/1": weighed}
    plain = {"edge/2": [(x, y, float(random.random())) for x, y in zip(places, places[5:], strict=False)]}
    adds = {**plain, "link/2": [("n0", "n1", 0.5), ("n3", "n40", 0.25)]}
    found = set()
    for order in ([plain, adds], [adds, plain], [adds, adds, plain]):
        now = dg.Program(program.source).bind(shared)
        values = [now.run(facts)["goal"] for facts in order]
        found.add((values[order.index(plain)], values[order.index(adds)]))
    assert len(found) == 1


@pytest.mark.parametrize("text", CASES)
def test_batches_in_any_order_have_the_same_sums(text: str) -> None:
    made, by = CASES[text]
    found = set()
    for first in range(3):
        now = bound(text)
        now.run_batch([made(*size) for size in SIZES[first::3]], query="goal", gradient=[by])
        batch = now.run_batch([made(*size) for size in SIZES], query="goal", gradient=[by])
        found.add(batch.values.tobytes() + np.asarray(batch.gradient[by].values).tobytes())
    assert len(found) == 1


def test_runs_of_any_length_share_a_class_and_what_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []

    def counted(*args: Any) -> CompiledPlan:
        compiled.append(args)
        return compile_plan(*args)

    monkeypatch.setattr(binding_module, "compile_plan", counted)
    now = bound(CKY)
    for length in (2, 3, 8, 30, 60, 100):
        now.run(parsed(length, 1))
    assert len(compiled) == 1
    (base,) = now._binding._bases.values()
    assert len(base.plans) > 1 and len(base.loaded) == 1


def test_threads_that_make_plans_at_once_share_their_class() -> None:
    for _ in range(5):
        now, start = bound(CKY), Barrier(4)
        values = now._binding.relations["rewrite/3"].values
        bounds = [now.with_values({"rewrite/3": values}) for _ in range(4)]

        def work(n: int, bounds: Any = bounds, start: Barrier = start) -> None:
            start.wait()
            bounds[n].run(parsed((2, 2, 40, 40)[n], 1))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        (plans,) = now._binding._plans.done.values()
        assert len(plans) == 2 and len({id(made.generated) for made, _ in plans}) == 1


def sizes(count: int, symbols: int, text: str = CKY) -> int:
    """What a domain of so many places is planned for, beside so many symbols."""
    context = dg.Program(text)._context
    number = next(n for (key, i), n in context.domains.of.items() if key.startswith("span/") and i == 1)
    kinds = {n: DomainSummary("atom", 0, symbols - 1) for n in set(context.domains.of.values())}
    domains = {**kinds, number: DomainSummary("int", 3, 3 + count - 1)}
    return dict(zip(domains, _domain_sizes(context, domains, {number}), strict=True))[number]


def test_steps_are_coarse_but_where_arrays_would_be_large() -> None:
    assert sizes(40, 20) == 256  # 20 * 256 * 256 cells
    assert sizes(41, 3000) == 48 and sizes(41, 2000) == 41  # in an array of 48 places it would have to be asked for
    assert sizes(64, 3000) == 64 and sizes(65, 3000) == 80


def test_sizes_are_exact_where_another_size_would_be_no_array() -> None:
    cube = "span(X,I,J,K,L) += a(X,I) * a(X,J) * a(X,K) * a(X,L)."
    assert sizes(40, 9, cube) == 40  # 9 * 40**4 cells are 23 million
    assert [sizes(n, 9, cube) for n in (51, 52)] == [51, 52]  # 56 would be too many
    assert sizes(53, 9, cube) == 56  # as 53 are


def test_many_arrays_are_large_together() -> None:
    many = CKY + "".join(f"span{n}(X,I,J) += span(X,I,J).\n" for n in range(60))
    assert sizes(40, 20) == 256 and sizes(40, 20, many) == 40


@given(st.integers(0, 10**6), st.integers(-(10**6), 10**6))
def test_what_is_planned_for_bounds_what_is_there(count: int, gap: int) -> None:
    for step in (_step, _fine_step):
        assert step(count) >= count and step(step(count)) == step(count)
    for most in (4, 20):
        least = _least_gap(gap, most)
        assert least <= gap and (least > 0) == (gap > 0) and (least < 0) == (gap < 0)
        assert least == gap or not 0 <= gap <= most


@pytest.mark.parametrize("back", [0, 3, 9])
def test_arguments_that_go_back_by_less_than_facts_go_forward_are_in_order(back: int) -> None:
    program = dg.Program(f"path(K) += path(I) * arc(I,J) for K = J-{back}.  path(0) += 1.")
    for ahead in (1, 2, 7):
        arcs = [(i, i + back + ahead, 0.5) for i in range(10)]
        chart = program.run({"arc/2": arcs})
        assert chart[f"path({ahead})"] == 0.5
        (stage,) = (s for s in run_of(chart).require().compiled.plan.stages if "path/1" in s.keys)
        assert stage.strategy is Strategy.LEVELS
