"""Joins over dense rows as vector operations: equal to their ground instances one after the other.

Each program runs twice: as it is, and with a factor of one that is looked up after the last scan, which prevents
vectors. Values must agree to the bit. Costs ten seconds where programs are compiled for the first time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

CHAIN = """
a(0,J)   += start(J).
a(T+1,J) += a(T,I) * pot(T,I,J){one}.
goal     += a(N,_) * end(N).
"""
SPANS = """
span(X,I,K) += leaf(X,I,K).
span(X,I,K) += rule(X,Y,Z) * span(Y,I,J) * span(Z,J,K){one}.
goal        += span(0,0,N) * end(N).
"""
SIZES = (19, 12)  # of a row, and how many there are: two eights and a rest, so that a row also begins inside one


def numbers(semiring: str, spread: float, shape: Any, random: np.random.Generator) -> Any:
    """Numbers of the semiring; every fifth is its zero, and in `log` exponents are far apart if the spread is large."""
    drawn = random.normal(size=shape) * (spread if semiring == "log" else 1.0)
    drawn[random.random(shape) < 0.2] = -np.inf if semiring == "log" else 0.0
    return drawn


def chain(semiring: str, spread: float, random: np.random.Generator) -> dict[str, Any]:
    """A chain whose potentials go from a tag to all tags, to a stretch of them, to tags that are apart, or to none."""
    tags, length = SIZES
    rows = []
    for t in range(length):
        for i in range(3, 3 + tags):
            kind = random.integers(5)
            first, last = sorted(random.integers(3, 4 + tags, 2)) if kind == 1 else (3, 3 + tags)
            to = [j for j in range(first, last) if kind < 3 or (kind == 3 and random.random() < 0.6)]
            rows += [(t, i, j, x) for j, x in zip(to, numbers(semiring, spread, len(to), random), strict=True)]
    start = [(j, 0.5 * j - 4) for j in range(3, 3 + tags)]
    return {"pot/3": rows, "start/1": start, "end/1": [(length, 0.0 if semiring == "log" else 1.0)]}


def spans(semiring: str, spread: float, random: np.random.Generator) -> dict[str, Any]:
    """Spans over a few symbols; two of them are only leaves, so that their rows are nearly empty."""
    length = SIZES[0]
    rules = [(x, y, z) for x in range(2) for y in range(4) for z in range(4) if random.random() < 0.8]
    places = [(x, i, i + 1) for x in range(4) for i in range(length) if random.random() < (1.0, 0.7, 0.2, 0.9)[x]]
    weights = numbers(semiring, spread, len(rules), random), random.normal(size=len(places)) * min(spread, 40)
    given = {
        key: [(*row, w) for row, w in zip(rows, ws, strict=True)]
        for key, rows, ws in zip(("rule/3", "leaf/3"), (rules, places), weights, strict=True)
    }
    return {**given, "end/1": [(length, 0.0 if semiring == "log" else 1.0)]}


@pytest.fixture(scope="module", params=["log", "real"])
def semiring(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    "source, one, make, key, by",
    [
        pytest.param(CHAIN, " * one(J)", chain, "a/2", "pot/3", id="facts"),
        pytest.param(SPANS, " * one(I) * one(K)", spans, "span/3", "rule/3", id="items"),
    ],
)
@pytest.mark.parametrize("spread", [1.0, 40.0, 400.0])
def test_a_row_is_what_its_instances_are(
    semiring: str, source: str, one: str, make: Any, key: str, by: str, spread: float
) -> None:
    if semiring == "real" and spread > 1:
        pytest.skip("numbers in real are of one size")
    random = np.random.default_rng(int(spread))
    ones = [(n, 0.0 if semiring == "log" else 1.0) for n in range(3 + SIZES[0])]
    rows = dg.Program(source.format(one=""), semiring)
    alone = dg.Program(source.format(one=one), semiring)
    for _ in range(2):
        facts = make(semiring, spread, random)
        bound, other = rows.bind(facts), alone.bind({**facts, "one/1": ones})
        assert "contiguous over" in bound.explain()
        assert "contiguous over" not in other.explain()
        ours, theirs = bound.run(), other.run()
        assert list(ours.query(key_text(key))) == list(theirs.query(key_text(key)))
        assert ours.stats.updates == theirs.stats.updates and ours.stats.pops == theirs.stats.pops
        assert semiring == "real" or np.isfinite(ours["goal"])
        found, wanted = ours.gradient("goal")[by].values, theirs.gradient("goal")[by].values
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-300 if semiring == "real" else 1e-13)


def derived(chart: dg.Chart) -> dict[Any, float]:
    """The items of rules and their values."""
    return {(key, *row[:-1]): row[-1] for key in ("a/2", "b/2", "goal/0") for row in chart.table(key)}


def key_text(key: str) -> str:
    """All items of a predicate, as a query."""
    name, arity = key.split("/")
    return f"{name}({','.join(f'V{n}' for n in range(int(arity)))})"


EMIT = """
a(0,J)   += start(J).
b(T,J)   += a(T,J) * emit(J,X) * word(T,X) * may(T,J){one}.
a(T+1,I) += b(T,J) * move(J,I){other}.
goal     += a(N,_) * end(N).
"""


def emissions(semiring: str, spread: float, states: int, kind: str, random: np.random.Generator) -> dict[str, Any]:
    """States that emit one of two words each time: of a full grid, or where some pairs are missing, or far apart."""
    length, codes, far = 5, range(3, 3 + states), 10_000_000 if kind == "far" else 1
    pairs = [(j, x * far) for j in codes for x in range(7) if kind == "grid" or random.random() < 0.8]
    words = [(t, int(x) * far) for t in range(length) for x in random.permutation(7)[:2]]
    may = [(t, j) for t in range(length) for j in codes if kind == "grid" or random.random() < 0.7]
    moves = [(j, i) for j in codes for i in codes if kind == "grid" or random.random() < 0.9]

    def weighed(rows: list[tuple[int, ...]]) -> list[tuple[Any, ...]]:
        values = numbers(semiring, spread, len(rows), random)
        return [(*row, x) for row, x in zip(rows, values, strict=True)]

    some = [(*row, 0.1 * n - 0.8) for n, row in enumerate(words)]
    given = {"emit/2": weighed(pairs), "word/2": some, "may/2": weighed(may), "move/2": weighed(moves)}
    return {**given, "start/1": [(j, 0.5 * j) for j in codes], "end/1": [(length, 0.0 if semiring == "log" else 1.0)]}


@pytest.mark.parametrize("kind", ["grid", "gaps", "far"])
@pytest.mark.parametrize("states, spread", [(21, 1.0), (66, 1.0), (21, 400.0)])
def test_a_row_of_drivers_is_joined_as_if_one_by_one(semiring: str, kind: str, states: int, spread: float) -> None:
    if semiring == "real" and spread > 1:
        pytest.skip("numbers in real are of one size")
    random = np.random.default_rng(states)
    ones = [(n, 0.0 if semiring == "log" else 1.0) for n in range(3, 3 + states)]
    rows = dg.Program(EMIT.format(one="", other=""), semiring)
    alone = dg.Program(EMIT.format(one=" * one(J)", other=" * one(J)"), semiring)
    for _ in range(2):
        facts = emissions(semiring, spread, states, kind, random)
        bound, other = rows.bind(facts), alone.bind({**facts, "one/1": ones})
        ours, theirs = bound.run(), other.run()
        for item in ("a(T,J)", "b(T,J)"):
            assert list(ours.query(item)) == list(theirs.query(item))
        assert ours.stats.updates == theirs.stats.updates and ours.stats.pops == theirs.stats.pops
        found, wanted = ours.gradient("goal"), theirs.gradient("goal")
        for key in facts:
            atol = 1e-13 * max(1.0, float(np.abs(wanted[key].values).max()))
            np.testing.assert_allclose(found[key].values, wanted[key].values, rtol=1e-11, atol=atol)
        for pops in (1, states + 7, ours.stats.pops - 1):
            begun = bound.run(max_pops=pops)
            assert begun.stats.pops == pops
            while not begun.converged:
                begun.run()
            assert derived(begun) == derived(ours)
            again = begun.gradient("goal")["emit/2"].values
            atol = 1e-13 * max(1.0, float(np.abs(again).max()))
            np.testing.assert_allclose(again, found["emit/2"].values, rtol=1e-11, atol=atol)


@pytest.mark.parametrize("states, lacks", [(5, 0), (8, 0), (20, 0), (20, 3), (20, 8), (45, 2), (64, 0)])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_adjoints_of_a_matrix_wait_for_many_rows(states: int, lacks: int, gaps: bool) -> None:
    """So many rows go through one matrix that they do not fit in where they wait; the first drivers are lacking."""
    random, length = np.random.default_rng(states), 70
    there = [j for j in range(lacks, states) if not gaps or j % 3]
    given = {
        "start/1": [(j, 0.1 * j) for j in range(states)],
        "emit/2": [(j, 0, float(x)) for j, x in enumerate(random.normal(size=states))],
        "word/2": [(t, 0, 0.2) for t in range(length)],
        "may/2": [(t, j) for t in range(length) for j in there],
        "move/2": [(j, i, float(random.normal())) for j in range(states) for i in range(states)],
        "end/1": [(length,)],
    }
    ours = dg.Program(EMIT.format(one="", other=""), "log").run(given)
    ones = [(j, 0.0) for j in range(states)]
    theirs = dg.Program(EMIT.format(one=" * one(J)", other=" * one(J)"), "log").run({**given, "one/1": ones})
    assert ours["goal"] == theirs["goal"]
    found, wanted = ours.gradient("goal"), theirs.gradient("goal")
    for key in given:
        np.testing.assert_allclose(found[key].values, wanted[key].values, rtol=1e-11, atol=1e-13)
    assert sum(found["move/2"].values) == pytest.approx(length)  # each position is left once


def test_a_row_that_is_not_valid_is_told_of() -> None:
    facts = emissions("real", 1.0, 21, "grid", np.random.default_rng(0))
    facts["emit/2"] = [(j, x, 1e300) for j, x, _ in facts["emit/2"]]
    facts["word/2"] = [(t, x, 1e300) for t, x, _ in facts["word/2"]]
    with pytest.raises(dg.Error, match="b\\("):
        dg.Program(EMIT.format(one="", other=""), "real").bind(facts).run()


WIDE = """
a(0,J)   += start(J).
a(T+1,J) += a(T,I) * pot(T,I,J){one}.
a(T+1,J) += a(T,J) * stay(J) * time(T).
b(T,J)   += a(T,J) * stay(J).
a(T+2,J) += b(T,I) * b(T,J) * pair(I,J) * time(T).
goal     += a(N,_) * end(N).
"""


def wide(random: np.random.Generator) -> dict[str, Any]:
    """Rows of more than the 64 items that wait together, which rules reach as stretches, and one by one."""
    tags, length = range(5, 95), 3
    rows: list[tuple[Any, ...]] = []
    for t in range(length):
        for i in tags:
            first, last = sorted(random.integers(5, 96, 2))
            to = [j for j in range(first, last) if i % 3 or random.random() < 0.5]
            rows += [(t, i, j, x) for j, x in zip(to, random.random(len(to)), strict=True)]
    pairs = [(i, int(random.integers(5, 95)), x) for i, x in zip(tags, random.random(90), strict=True)]
    some = [(j, 0.01 * j) for j in tags if j % 4]
    times = [(t, 1.0) for t in range(length)]
    return {"pot/3": rows, "pair/2": pairs, "start/1": some, "stay/1": some, "time/1": times, "end/1": [(length, 0.5)]}


@pytest.mark.parametrize("semiring", ["log", "real", "viterbi"])
def test_items_of_a_row_are_popped_as_if_one_by_one(semiring: str) -> None:
    facts, keys = wide(np.random.default_rng(0)), ("pot/3", "pair/2", "stay/1", "start/1")
    ones = [(n, 1.0 if semiring == "real" else 0.0) for n in range(100)]
    bound = dg.Program(WIDE.format(one=""), semiring).bind(facts)
    whole = bound.run()
    alone = dg.Program(WIDE.format(one=" * one(J)"), semiring).bind({**facts, "one/1": ones}).run()
    values, expected_values = derived(whole), derived(alone)
    assert values.keys() == expected_values.keys()
    assert list(values.values()) == pytest.approx([expected_values[item] for item in values], rel=1e-12)
    gradient, expected = whole.gradient("goal"), alone.gradient("goal")
    for key in keys:
        np.testing.assert_allclose(gradient[key].values, expected[key].values, rtol=1e-11, atol=1e-14)
    for pops in (70, 150, whole.stats.pops - 1):
        begun = bound.run(max_pops=pops)
        assert begun.stats.pops == pops
        while not begun.converged:
            begun.run()
        assert derived(begun) == values
        for key in keys:
            np.testing.assert_allclose(begun.gradient("goal")[key].values, gradient[key].values, rtol=1e-11, atol=1e-14)
    for until in ("a(1,6)", "b(2,80)"):
        assert bound.run(until=until)[until] == whole[until]


@pytest.mark.parametrize("items", [100, 200, 250])
def test_items_of_a_row_that_are_left_wait(items: int) -> None:
    bound = dg.Program(WIDE.format(one=""), "log").bind(wide(np.random.default_rng(0)))
    whole = derived(bound.run())
    with pytest.raises(dg.NotConverged) as caught:
        bound.run(max_items=items)
    begun = caught.value.chart
    assert begun is not None
    assert items <= begun.stats.items <= items + items // 100 + 1
    assert begun.pending
    found = {item: x for item, x in derived(begun).items() if item[:2] == ("a/2", 0)}
    assert found
    assert found.items() <= whole.items()


@pytest.mark.parametrize("states, row", [(3, 0), (20, 24)])
def test_a_tape_has_the_rows_that_were_popped(states: int, row: int) -> None:
    """Beside a handle for each pop: unless items are so few that they are found as quickly one by one."""
    length = 30
    given = {
        "start/1": [(j, 0.1 * j) for j in range(states)],
        "emit/2": [(j, 0, 0.1) for j in range(states)],
        "word/2": [(t, 0) for t in range(length)],
        "may/2": [(t, j) for t in range(length) for j in range(states)],
        "move/2": [(j, i, 0.2) for j in range(states) for i in range(states)],
        "end/1": [(length,)],
    }
    bound = dg.Program(EMIT.format(one="", other=""), "log").bind(given)
    bound.run().gradient("goal")
    chart = bound.run()
    assert chart.stats.pops == states * (2 * length + 1)
    more = chart.stats.tape_bytes - 8 * chart.stats.pops
    assert (length * row <= more <= (2 * length + 1) * row + 64) if row else more <= 64
