"""The replay oracle itself: values and derivatives worked out by hand, without the engine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import mpmath
import pytest

from dynagrad.rules.parse import parse
from oracle import evaluate
from replay import Computation, NotPending, differences, directional, hessian_times, item_of, replay

Pops = list[tuple[str, tuple[Any, ...]]]


def near(found: Any, wanted: Any, tolerance: float = 1e-13) -> bool:
    """The same up to the rounding of hand-written formulas in floats."""
    if isinstance(wanted, tuple):
        return all(near(a, b, tolerance) for a, b in zip(found, wanted, strict=True))
    return bool(abs(found - wanted) <= tolerance * max(1, abs(wanted)))


# -- a += a*a. a += r. -----------------------------------------------------------------------------------------------


class TestTheExampleOfTheDerivation:
    SOURCE = "a += a * a. a += r."
    FACTS = {"r/0": [(0.2,)]}  # noqa: RUF012

    @pytest.mark.parametrize("pops", range(6))
    def test_values_and_derivatives_are_those_of_the_polynomials(self, pops: int) -> None:
        r = mpmath.mpf(0.2)
        with mpmath.workdps(50):
            value, slope, bend = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(0)  # of 0, r, r + r^2, r + (r+r^2)^2, ...
            for _ in range(pops):
                value, slope, bend = r + value**2, 1 + 2 * value * slope, 2 * slope**2 + 2 * value * bend
        order: Pops = [("a/0", ())] * pops
        after = replay(self.SOURCE, self.FACTS, order, semiring="real").value("a/0")
        assert after is None if pops == 0 else near(after, value, 1e-40)
        found = differences(self.SOURCE, self.FACTS, order, "a", ["r/0"], semiring="real")
        assert near(found["r/0", 0], slope, 1e-25)
        twice = hessian_times(self.SOURCE, self.FACTS, order, "a", {"r/0": [3.0]}, ["r/0"], semiring="real")
        assert near(twice["r/0", 0] / 3, bend, 1e-15)

    def test_written_the_other_way_round_and_without_a_semiring_it_is_the_same(self) -> None:
        order: Pops = [("a/0", ())] * 4
        for source in ("a += r. a += a * a.", "a += a ^ 2. a += r.", "a += a * a / 1 + 0. a += r."):
            found = differences(source, self.FACTS, order, "a", ["r/0"])
            assert near(found["r/0", 0], 1.8614144)

    def test_in_log_the_derivative_is_with_respect_to_the_log(self) -> None:
        facts = {"r/0": [(math.log(0.2),)]}
        order: Pops = [("a/0", ())] * 2
        assert near(replay(self.SOURCE, facts, order, semiring="log").value("a/0"), math.log(0.24))
        found = differences(self.SOURCE, facts, order, "a", ["r/0"], semiring="log")
        assert near(found["r/0", 0], 0.2 * 1.4 / 0.24)

    def test_fifty_digits_reach_the_fixed_point(self) -> None:
        found = replay(self.SOURCE, self.FACTS, [("a/0", ())] * 150, semiring="real").value("a/0")
        with mpmath.workdps(50):
            assert near(found, (1 - mpmath.sqrt(1 - 4 * mpmath.mpf(0.2))) / 2, 1e-30)

    def test_an_update_that_does_not_wait_cannot_be_popped(self) -> None:
        with pytest.raises(NotPending):
            replay("a += r. b += a. a += b * w.", {"r/0": [(1.0,)], "w/0": [(0.5,)]}, [("b/0", ())])
        with pytest.raises(NotPending):
            replay(self.SOURCE, self.FACTS, [("other/0", ())])


def test_a_cube_of_one_item() -> None:
    """With an update u to x, `a*a*a` sends x' x' u + x' u x + u x x, which is the change of the cube."""
    source = "a += r. a += b. b += a * w. c += a * a * a. d += a * q * a."
    facts = {"r/0": [(2.0,)], "w/0": [(0.25,)], "q/0": [(7.0,)]}
    order: Pops = [("a/0", ()), ("b/0", ()), ("a/0", ())]
    for pops, factor in ((1, 1.0), (2, 1.0), (3, 1.25)):
        chart = replay(source, facts, order[:pops], semiring="real")
        a = 2.0 * factor
        assert near(chart.value("a/0"), a)
        assert near(chart.value("c/0"), a**3)
        assert near(chart.value("d/0"), 7 * a**2)
    found = differences(source, facts, order, "c", ["r/0", "w/0"], semiring="real")
    assert near(found["r/0", 0], 3 * 2.5**2 * 1.25)
    assert near(found["w/0", 0], 3 * 2.5**2 * 2.0)
    cycle = "a += r. a += w * a * a * a."
    facts = {"r/0": [(0.5,)], "w/0": [(0.25,)]}
    value, slope = 0.0, 0.0
    for n in range(1, 5):
        value, slope = (0.5, 1.0) if n == 1 else (0.5 + 0.25 * value**3, 1 + 0.75 * value**2 * slope)
        assert near(replay(cycle, facts, [("a/0", ())] * n, semiring="real").value("a/0"), value)
        assert near(differences(cycle, facts, [("a/0", ())] * n, "a", ["r/0"])["r/0", 0], slope)


def test_the_other_items_are_those_of_the_moment() -> None:
    """Popping x, then y, then x again: z gets x y, then the change of x times y. What waits at the end is not there."""
    source = ":- agenda fifo. x += r. x += y * w. y += x * v. z += x * y. z += y * x * x. t += z."
    facts = {"r/0": [(3.0,)], "w/0": [(0.5,)], "v/0": [(2.0,)]}
    order: Pops = [("x/0", ()), ("y/0", ()), ("x/0", ()), ("z/0", ())]
    found = [replay(source, facts, order[:n], semiring="real") for n in range(5)]
    assert [c.value("x/0") for c in found] == [None, 3, 3, 6, 6]
    assert [c.value("y/0") for c in found] == [None, None, 6, 6, 6]
    assert [c.value("z/0") for c in found] == [None, None, None, None, 6 * 6 + 6 * 6 * 6]
    assert found[4].value("t/0") == 252
    # t = x y + x x y with x = r + r v w, y = r v
    slopes = differences(source, facts, order, "t", ["r/0", "w/0", "v/0"], semiring="real")
    r, w, v = 3.0, 0.5, 2.0
    x, y = r + r * v * w, r * v
    dx, dy = y + 2 * x * y, x + x * x
    assert near(slopes["r/0", 0], dx * (1 + v * w) + dy * v)
    assert near(slopes["w/0", 0], dx * r * v)
    assert near(slopes["v/0", 0], dx * r * w + dy * r)


# -- stop and pathto -------------------------------------------------------------------------------------------------


class TestPaths:
    SOURCE = "stop(I) += edgezero(I) * pathto(I). pathto(J) += edge(I,J) * pathto(I). pathto(J) += start(J)."
    EDGES = {("a", "b"): 0.5, ("a", "c"): 0.25, ("b", "c"): 0.75}  # noqa: RUF012
    FACTS = {  # noqa: RUF012
        "start/1": [("a", 2.0)],
        "edge/2": [(*arc, weight) for arc, weight in EDGES.items()],
        "edgezero/1": [("a", 0.1), ("b", 0.2), ("c", 0.3)],
    }
    ORDER: Pops = [("pathto/1", (x,)) for x in "abc"]  # noqa: RUF012

    def test_without_cycles_against_the_closed_formulas(self) -> None:
        chart = replay(self.SOURCE, self.FACTS, self.ORDER, semiring="real")
        ab, ac, bc = 0.5, 0.25, 0.75
        assert near(chart.value("pathto/1", ["c"]), 2 * (ac + ab * bc))
        assert near(chart.value("stop/1", ["c"]), 0.3 * 2 * (ac + ab * bc))
        found = differences(
            self.SOURCE, self.FACTS, self.ORDER, "stop(c)", ["start/1", "edge/2", "edgezero/1"], semiring="real"
        )
        wanted = {
            ("start/1", 0): 0.3 * (ac + ab * bc),
            ("edge/2", 0): 0.3 * 2 * bc,
            ("edge/2", 1): 0.3 * 2,
            ("edge/2", 2): 0.3 * 2 * ab,
            ("edgezero/1", 0): 0,
            ("edgezero/1", 1): 0,
            ("edgezero/1", 2): 2 * (ac + ab * bc),
        }
        assert found.keys() == wanted.keys()
        assert all(near(found[place], value) for place, value in wanted.items())

    def test_an_item_that_waits_has_no_part_in_it(self) -> None:
        order = [self.ORDER[0], self.ORDER[2]]  # b never: c from a alone
        chart = replay(self.SOURCE, self.FACTS, order, semiring="real")
        assert near(chart.value("stop/1", ["c"]), 0.3 * 2 * 0.25)
        assert chart.value("pathto/1", ["b"]) is None is chart.value("stop/1", ["b"])
        found = differences(self.SOURCE, self.FACTS, order, "stop(c)", ["edge/2"], semiring="real")
        assert [found["edge/2", n] for n in range(3)] == [0, pytest.approx(0.6, rel=1e-14), 0]

    def test_another_order_gives_the_same_after_all_pops(self) -> None:
        order = [self.ORDER[i] for i in (0, 2, 1, 2)]
        one, other = (replay(self.SOURCE, self.FACTS, o, semiring="real") for o in (self.ORDER, order))
        assert one.values.keys() == other.values.keys()
        assert all(near(one.values[item], other.values[item], 1e-40) for item in one.values)

    def test_a_cycle_that_stopped_early(self) -> None:
        facts = {"start/1": [("a", 2.0)], "edge/2": [("a", "b", 0.5), ("b", "a", 0.25)], "edgezero/1": [("a", 1.0)]}
        order: Pops = [("pathto/1", (x,)) for x in "abab"]
        turns = 0.5 * 0.25
        for pops, value in ((1, 2.0), (2, 2.0), (3, 2 * (1 + turns)), (4, 2 * (1 + turns))):
            assert near(replay(self.SOURCE, facts, order[:pops], semiring="real").value("stop/1", ["a"]), value)
        found = differences(self.SOURCE, facts, order, "stop(a)", ["edge/2"], semiring="real")
        assert near(found["edge/2", 0], 2 * 0.25) and near(found["edge/2", 1], 2 * 0.5)
        found = differences(self.SOURCE, facts, order, "pathto(b)", ["edge/2"], semiring="real")
        assert near(found["edge/2", 0], 2 + 4 * turns)

    def test_with_respect_to_a_weight_added_to_an_item(self) -> None:
        computed = Computation(self.SOURCE, self.FACTS, self.ORDER, semiring="real")
        goal, items = item_of("stop(c)"), [item_of(text) for text in ("pathto(a)", "pathto(b)", "pathto(c)", "stop(c)")]
        found = computed.of_constants([goal], items)[goal]
        for item, wanted in zip(items, (0.3 * (0.25 + 0.5 * 0.75), 0.3 * 0.75, 0.3, 1.0), strict=True):
            assert near(found[item], wanted)

    @pytest.mark.parametrize(("semiring", "sign"), [("viterbi", -1.0), ("tropical", 1.0)])
    def test_the_best_path_has_ones_and_the_others_zeros(self, semiring: str, sign: float) -> None:
        facts = {
            "start/1": [("a", sign * 0.5)],
            "edge/2": [("a", "b", sign), ("a", "c", sign * 5), ("b", "c", sign * 2), ("c", "a", sign * 0.25)],
            "edgezero/1": [("c", sign * 0.125)],
        }
        found = differences(self.SOURCE, facts, self.ORDER, "stop(c)", facts, semiring=semiring)
        wanted = [("start/1", 0), ("edge/2", 0), ("edge/2", 2), ("edgezero/1", 0)]
        assert [place for place in found if found[place] != 0] == wanted
        assert all(near(found[place], 1) for place in wanted)
        early = [self.ORDER[0], self.ORDER[2]]
        found = differences(self.SOURCE, facts, early, "stop(c)", facts, semiring=semiring)
        assert near([found["edge/2", n] for n in range(4)], (0, 1, 0, 0))

    def test_at_a_tie_there_is_no_derivative(self) -> None:
        facts = {"start/1": [("a",)], "edge/2": [("a", "b", 1.0), ("a", "c", 3.0), ("b", "c", 2.0)], "edgezero/1": []}
        found = differences(self.SOURCE, facts, self.ORDER, "pathto(c)", ["edge/2"], semiring="tropical")
        assert all(mpmath.isnan(found["edge/2", n]) for n in range(3))

    def test_infinite_costs_and_weights_of_zero_do_not_move(self) -> None:
        zero = {**self.FACTS, "edge/2": [("a", "b", -math.inf), ("a", "c", -1.0), ("b", "c", -0.5)]}
        for semiring in ("log", "viterbi"):
            found = differences(self.SOURCE, zero, self.ORDER, "stop(c)", ["edge/2"], semiring=semiring)
            assert near([found["edge/2", n] for n in range(3)], (0, 1, 0))


# -- trees -----------------------------------------------------------------------------------------------------------


class TestTrees:
    """Every item once, by width: what comes out is a sum over trees, which are few enough to list."""

    SOURCE = """
    constit(X,I,K) += rewrite(X,W) * word(W,I,K).
    constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
    goal += constit(s,0,N) * end(N).
    """
    BINARY = {("s", "s", "s"): 0.25, ("s", "s", "x"): 0.5, ("x", "s", "s"): 0.125}  # noqa: RUF012
    UNARY = {("s", "u"): 0.75, ("x", "u"): 0.375}  # noqa: RUF012
    LENGTH = 4

    def facts(self, weight: Any = lambda w: w) -> dict[str, Any]:
        return {
            "rewrite/2": [(*rule, weight(w)) for rule, w in self.UNARY.items()],
            "rewrite/3": [(*rule, weight(w)) for rule, w in self.BINARY.items()],
            "word/3": [("u", i, i + 1) for i in range(self.LENGTH)],
            "end/1": [(self.LENGTH,)],
        }

    def order(self) -> Pops:
        spans = sorted(((i, k) for k in range(self.LENGTH + 1) for i in range(k)), key=lambda span: span[1] - span[0])
        return [("constit/3", (x, i, k)) for i, k in spans for x in "xs"]

    def trees(self, symbol: str, i: int, k: int) -> Iterator[Counter[tuple[str, ...]]]:
        """The rules of each tree."""
        if k == i + 1:
            yield Counter([(symbol, "u")])
        for head, left, right in self.BINARY:
            for j in range(i + 1, k) if head == symbol else ():
                for one in self.trees(left, i, j):
                    for other in self.trees(right, j, k):
                        yield one + other + Counter([(head, left, right)])

    def weighed(self) -> list[tuple[float, Counter[tuple[str, ...]]]]:
        weights: dict[tuple[str, ...], float] = {**self.BINARY, **self.UNARY}
        trees = self.trees("s", 0, self.LENGTH)
        return [(math.prod(weights[rule] ** n for rule, n in tree.items()), tree) for tree in trees]

    def test_the_sum_over_trees_and_its_derivative(self) -> None:
        trees = self.weighed()
        assert len(trees) > 10
        facts = self.facts()
        assert near(
            replay(self.SOURCE, facts, self.order(), semiring="real").value("goal/0"), math.fsum(w for w, _ in trees)
        )
        found = differences(self.SOURCE, facts, self.order(), "goal", ["rewrite/2", "rewrite/3"], semiring="real")
        for (key, n), slope in found.items():
            *rule, weight = facts[key][n]
            assert near(slope, math.fsum(w * tree[tuple(rule)] / weight for w, tree in trees))

    def test_in_log_expected_counts(self) -> None:
        trees = self.weighed()
        total = math.fsum(w for w, _ in trees)
        facts = self.facts(math.log)
        found = differences(self.SOURCE, facts, self.order(), "goal", ["rewrite/3"], semiring="log")
        for n, rule in enumerate(self.BINARY):
            assert near(found["rewrite/3", n], math.fsum(w * tree[rule] for w, tree in trees) / total)

    def test_expectations_are_derivatives_of_derivatives(self) -> None:
        """A pair (p, v) is the number p and its rate of change; so is the pair of derivatives."""
        rates = {"rewrite/2": [0.5, -1.0], "rewrite/3": [1.0, 0.25, -2.0]}
        real = self.facts()
        pairs = {
            key: [(*row[:-1], (row[-1], rate)) for row, rate in zip(real[key], rates[key], strict=True)]
            for key in rates
        }
        facts = {**real, **pairs}
        rate = directional(self.SOURCE, real, self.order(), "goal", rates, semiring="real")
        assert near(replay(self.SOURCE, facts, self.order(), semiring="expectation").value("goal/0")[1], rate)
        found = differences(self.SOURCE, facts, self.order(), "goal", rates, semiring="expectation")
        first = differences(self.SOURCE, real, self.order(), "goal", rates, semiring="real")
        second = hessian_times(self.SOURCE, real, self.order(), "goal", rates, rates, semiring="real")
        assert all(near(found[place], (first[place], second[place])) for place in first)
        along = directional(
            self.SOURCE,
            facts,
            self.order(),
            "goal",
            {"rewrite/3": [(1.0, 2.0), (0, 0), (0, 0)]},
            semiring="expectation",
        )
        assert near(along, (first["rewrite/3", 0], second["rewrite/3", 0] + 2 * first["rewrite/3", 0]))


# -- features of the language ----------------------------------------------------------------------------------------


def test_side_is_news_once_and_worth_one() -> None:
    source = "a += r. a += a * a. c += SIDE(a) * a * w. d += SIDE(a) * w."
    facts = {"r/0": [(0.25,)], "w/0": [(3.0,)]}
    for pops, a in ((1, 0.25), (2, 0.3125)):
        chart = replay(source, facts, [("a/0", ())] * pops, semiring="real")
        assert (chart.value("c/0"), chart.value("d/0")) == (3 * a, 3)
    found = differences(source, facts, [("a/0", ())] * 2, "c", ["r/0", "w/0"], semiring="real")
    assert near(found["r/0", 0], 3 * 1.5) and near(found["w/0", 0], 0.3125)


def test_axioms_negation_conditions_and_facts_of_derived_items() -> None:
    source = """
    :- input p/1.
    base(x) = 2.
    p(X) += base(X). p(Y) += p(X) * e(X,Y) for X != Y.
    lost(X) += node(X) for not p(X).
    """
    facts = {"p/1": [("x", 1.0), ("y", 0.5)], "e/2": [("x", "y", 0.25), ("x", "x", 9.0)], "node/1": [("x",), ("z",)]}
    order: Pops = [("p/1", ("x",)), ("p/1", ("y",))]
    chart = replay(source, facts, order, semiring="real")
    assert (chart.value("p/1", "x"), chart.value("p/1", "y")) == (3, 1.25)
    assert chart.value("lost/1", "x") is None and chart.value("lost/1", "z") == 1
    found = differences(source, facts, order, "p(y)", ["p/1", "e/2"], semiring="real")
    assert [found["p/1", 0], found["p/1", 1]] == [pytest.approx(0.25), pytest.approx(1)]
    assert [found["e/2", 0], found["e/2", 1]] == [pytest.approx(3), 0]


def test_a_transient_predicate_never_waits() -> None:
    source = ":- transient t/0. a += r. t += a * w. a += t * a. c += t * a."
    unfolded = "a += r. a += a * w * a. c += a * w * a."
    facts = {"r/0": [(0.5,)], "w/0": [(0.25,)]}
    for pops in range(1, 5):
        one, other = (replay(text, facts, [("a/0", ())] * pops, semiring="real") for text in (source, unfolded))
        assert near(one.value("a/0"), other.value("a/0"), 1e-40) and near(one.value("c/0"), other.value("c/0"), 1e-40)


class TestPlainArithmetic:
    def test_a_sum_sends_differences(self) -> None:
        source = "a += r. a += w * tanh(a)."
        facts = {"r/0": [(0.5,)], "w/0": [(0.75,)]}
        value = slope = 0.0
        for n in range(1, 6):
            if n == 1:
                value, slope = 0.5, 1.0
            else:
                value, slope = 0.5 + 0.75 * math.tanh(value), 1 + 0.75 * slope / math.cosh(value) ** 2
            assert near(replay(source, facts, [("a/0", ())] * n).value("a/0"), value)
            assert near(differences(source, facts, [("a/0", ())] * n, "a", ["r/0"])["r/0", 0], slope)

    def test_what_comes_in_one_go_sees_the_end_of_what_came_before(self) -> None:
        source = "a += r. a += a * a. most max= 1 - a. most max= -3 * a. many *= a + 1. many *= a. all = a / 2."
        facts = {"r/0": [(0.25,)]}
        order: Pops = [("a/0", ())] * 2
        chart = replay(source, facts, order)
        a, slope = 0.3125, 1.5
        assert near(chart.value("most/0"), 1 - a) and near(chart.value("many/0"), a * (a + 1))
        assert near(differences(source, facts, order, "most", ["r/0"])["r/0", 0], -slope)
        assert near(differences(source, facts, order, "many", ["r/0"])["r/0", 0], (2 * a + 1) * slope)
        assert near(differences(source, facts, order, "all", ["r/0"])["r/0", 0], slope / 2)

    def test_selection_follows_the_winner(self) -> None:
        source = "d(a) = 0. d(Y) min= d(X) + e(X,Y) ^ 2."
        facts = {"e/2": [("a", "b", 3.0), ("a", "c", 1.0), ("c", "b", 2.0)]}
        order: Pops = [("d/1", (x,)) for x in "acb"]
        assert replay(source, facts, order).value("d/1", "b") == 5
        found = differences(source, facts, order, "d(b)", ["e/2"])
        assert [found["e/2", n] for n in range(3)] == [0, pytest.approx(2), pytest.approx(4)]
        found = differences(source, facts, [order[0], order[2]], "d(b)", ["e/2"])
        assert [found["e/2", n] for n in range(3)] == [pytest.approx(6), 0, 0]

    def test_at_a_kink_there_is_no_derivative(self) -> None:
        found = differences("p += abs(q) + q.", {"q/0": [(0.0,)]}, [], "p", ["q/0"])
        assert mpmath.isnan(found["q/0", 0])


@pytest.mark.parametrize("semiring", ["real", "log", "viterbi", "tropical", "expectation"])
def test_all_pops_of_a_program_without_cycles_lead_to_the_values_of_the_other_oracle(semiring: str) -> None:
    source = """
    p(I) += s(I). p(J) += p(I) * e(I,J) * SIDE(p(I)) for I < J.
    q(f(I),[J]) += p(I) * p(J) * p(I). r += q(f(_),[2]) * p(0). r += p(I) * none for not s(I).
    """
    rows = [(0, 1), (0, 2), (1, 2), (2, 1)]
    facts = {
        "s/1": [(0, 0.5), (1, 0.25), (0, 0.125)],
        "e/2": [(i, j, 0.5 + n / 8) for n, (i, j) in enumerate(rows)],
        "none/0": [(0.75,)],
    }
    order: Pops = [("p/1", (i,)) for i in range(3)]
    wanted = evaluate(parse(source), facts, semiring=semiring)
    found = replay(source, facts, order, semiring=semiring).values
    assert found.keys() == wanted.keys()
    assert all(near(found[item], wanted[item]) for item in wanted)
