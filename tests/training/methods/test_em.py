"""EM and its kin, held against forward-backward in numpy and what theory promises. Costs five seconds."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace
from itertools import pairwise, product
from math import lgamma
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.charts.binding import example_cache
from dynagrad.training.examples import DataPasses
from dynagrad.training.methods.em import Reached, must_not_fall
from dynagrad.training.objectives.likelihood import Best
from dynagrad.training.problem import Problem
from dynagrad.training.workers import in_threads
from training.chains import HMM

STATES, WORDS = 3, 5
RANDOM = np.random.default_rng(1)
INIT = RANDOM.dirichlet(np.ones(STATES))
TRANS = RANDOM.dirichlet(np.ones(STATES), STATES)
EMIT = RANDOM.dirichlet(np.ones(WORDS), STATES)
SEQUENCES = [RANDOM.integers(0, WORDS, RANDOM.integers(3, 9)).tolist() for _ in range(24)]
DATA = [{"word/2": [(w, i) for i, w in enumerate(s)], "last/1": [(len(s) - 1,)]} for s in SEQUENCES]


def rows() -> dict[str, Any]:
    return {
        "init/1": [(s, INIT[s]) for s in range(STATES)],
        "trans/2": [(s, t, TRANS[s, t]) for s in range(STATES) for t in range(STATES)],
        "emit/2": [(s, w, EMIT[s, w]) for s in range(STATES) for w in range(WORDS)],
    }


def model(prior: Any = None) -> dg.Model:
    return dg.Model(HMM, rows(), prior=prior)


class ForwardBackward:
    """The textbook's E step, in probabilities (Rabiner 1989, section III)."""

    def __init__(self) -> None:
        self.init, self.trans, self.emit = INIT.copy(), TRANS.copy(), EMIT.copy()

    def counts(self, weights: Any = None) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        first, moves, words = np.zeros(STATES), np.zeros((STATES, STATES)), np.zeros((STATES, WORDS))
        total = 0.0
        for n, s in enumerate(SEQUENCES):
            w = 1.0 if weights is None else weights[n]
            forward, backward = np.zeros((len(s), STATES)), np.ones((len(s), STATES))
            forward[0] = self.init * self.emit[:, s[0]]
            for t in range(1, len(s)):
                forward[t] = forward[t - 1] @ self.trans * self.emit[:, s[t]]
            for t in range(len(s) - 2, -1, -1):
                backward[t] = self.trans @ (self.emit[:, s[t + 1]] * backward[t + 1])
            z = forward[-1].sum()
            total += w * np.log(z)
            posterior = forward * backward / z
            first += w * posterior[0]
            for t in range(len(s)):
                words[:, s[t]] += w * posterior[t]
            for t in range(len(s) - 1):
                moves += w * np.outer(forward[t], self.emit[:, s[t + 1]] * backward[t + 1]) * self.trans / z
        return total, first, moves, words

    def step(self, add: float = 0.0, weights: Any = None) -> float:
        total, first, moves, words = self.counts(weights)
        self.init = (first + add) / (first + add).sum()
        self.trans = (moves + add) / (moves + add).sum(1, keepdims=True)
        self.emit = (words + add) / (words + add).sum(1, keepdims=True)
        return total


def test_em_is_forward_backward_step_by_step() -> None:
    mine, theirs = model(), ForwardBackward()
    fit = mine.fit(DATA, iterations=10, tolerance=0.0)
    assert [r.data for r in fit.history] == pytest.approx([theirs.step() for _ in range(10)], rel=1e-13)
    assert mine.weights["trans/2"].values == pytest.approx(theirs.trans.ravel(), abs=1e-14)
    assert mine.weights["emit/2"].values == pytest.approx(theirs.emit.ravel(), abs=1e-14)
    assert mine.weights["init/1"].values == pytest.approx(theirs.init, abs=1e-14)
    assert fit.stopped == "iterations" and not fit.converged
    assert [r.data for r in fit.history] == sorted(r.data for r in fit.history)


def test_examples_count_by_their_weight() -> None:
    weights = [0.5 + n % 3 for n in range(len(DATA))]
    mine, theirs = model(), ForwardBackward()
    fit = mine.fit([training.Example(d, weight=w) for d, w in zip(DATA, weights, strict=True)], iterations=1)
    assert fit.objective == pytest.approx(theirs.step(weights=weights), rel=1e-13)
    assert mine.weights["emit/2"].values == pytest.approx(theirs.emit.ravel(), abs=1e-14)


def test_smoothing_adds_to_counts() -> None:
    mine, theirs = model(training.add_lambda(0.5)), ForwardBackward()
    fit = mine.fit(DATA, iterations=4, tolerance=0.0)
    for _ in range(4):
        theirs.step(0.5)
    assert mine.weights["emit/2"].values == pytest.approx(theirs.emit.ravel(), abs=1e-14)
    assert [r.objective for r in fit.history] == sorted(r.objective for r in fit.history)


def test_what_em_makes_large_does_not_fall() -> None:
    for method, options in {
        "viterbi-em": {},
        "variational": {},
        "incremental-em": {"size": 7},
    }.items():
        fit = model().fit(DATA, method=method, iterations=12, tolerance=0.0, **options)
        values = [r.objective for r in fit.history]
        assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(values)), method


class Falling(training.Likelihood):
    """A likelihood that is wrong from its third pass on, and most in example 2."""

    passes = 0

    def totals(self, task: Any, examples: Any) -> Any:
        found = super().totals(task, examples)
        if len(examples) == len(DATA):
            Falling.passes += 1
        if Falling.passes < 3:
            return found
        loss = np.where(np.arange(len(found.values)) == 2, 40.0, 5.0)
        return replace(found, values=found.values - loss, value=found.value - float(loss.sum()))


@pytest.mark.parametrize("method", ["em", "variational", "annealing"])
def test_a_fall_that_cannot_be_names_the_examples_that_fell_most(method: str, tmp_path: Path) -> None:
    text, options = "fell from -.* which it cannot where runs are exact: most in example 2, ", {"method": method}
    if method == "annealing":
        options["start"] = 1.0
    Falling.passes = 0
    m = dg.Model(HMM, rows(), objective=Falling())
    with pytest.raises(dg.NotConverged, match=text):
        m.fit(DATA, iterations=9, **options)
    # the check is made in the first step of a run that is taken up, too
    Falling.passes = 0
    m.fit(DATA, iterations=2, checkpoint=tmp_path / "c", **options)
    assert Falling.passes == 2
    with pytest.raises(dg.NotConverged, match=text):
        m.fit(DATA, iterations=9, checkpoint=tmp_path / "c", **options)


def test_a_fall_of_the_free_energy_names_the_examples_of_a_shard() -> None:
    class Shards(training.Likelihood):
        passes = 0

        def totals(self, task: Any, examples: Any) -> Any:
            found = super().totals(task, examples)
            Shards.passes += 1
            lost = 40.0 if Shards.passes > 13 and examples[0].facts is DATA[16] else 0.0
            return replace(found, value=found.value - lost)

    with pytest.raises(dg.NotConverged, match=r"the free energy fell .* most in examples 16 to 23; "):
        dg.Model(HMM, rows(), objective=Shards()).fit(DATA, method="incremental-em", size=8, iterations=9)


def test_a_fall_is_a_warning_where_the_program_prunes() -> None:
    Falling.passes = 0
    m = dg.Model(HMM + ":- prune alpha(S,I) < -1e9.", rows(), objective=Falling())
    with pytest.warns(dg.ProgramWarning, match=r"fell from .*: the program prunes its items"):
        m.fit(DATA, iterations=3, tolerance=0.0)


def test_a_fall_of_the_best_derivations_names_the_examples(monkeypatch: Any) -> None:
    passes = 0
    found = Best.totals

    def falling(self: Best, task: Any, examples: Any) -> Any:
        nonlocal passes
        passes += 1
        totals = found(self, task, examples)
        loss = np.where(np.arange(len(totals.values)) == 3, 40.0, 0.0) * (passes > 2)
        return replace(totals, values=totals.values - loss, value=totals.value - float(loss.sum()))

    monkeypatch.setattr(Best, "totals", falling)
    with pytest.raises(dg.NotConverged, match=r"the weight of the best derivations .* fell .* most in example 3, "):
        model().fit(DATA, method="viterbi-em", iterations=9)


def test_a_fall_is_a_warning_where_a_beam_leaves_items_out() -> None:
    Falling.passes = 0
    m = dg.Model(HMM + ":- beam alpha(S,I) by (I) keep 2.", rows(), objective=Falling())
    with pytest.warns(dg.ProgramWarning, match=r"fell from .*: the program prunes its items"):
        m.fit(DATA, iterations=3, tolerance=0.0)


SKIPPING = """:- solve iterate. :- semiring log. :- distribution move(M).
    at(0) += move(go). at(I) += at(I) * move(stay) * word(_,I). at(J) += at(I) * move(go) * word(_,J) for J = I+1.
    goal += at(N) * last(N) * move(end)."""  # words are skipped any number of times, in a cycle of the ground program
MOVES = ("go", "stay", "end")


@pytest.mark.filterwarnings("ignore:The sum of `at/1` may diverge")
def test_a_fall_is_an_error_where_cycles_are_iterated_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is cut off is below rounding there, and cannot be what makes the likelihood fall by five."""
    rest = "fell from .*: the program iterates its cycles, so what it sums is cut off"
    for cut_off, said in ((False, "fell from .* which it cannot where runs are exact"), (True, rest)):
        Falling.passes = 0
        m = dg.Model(SKIPPING, {"move/1": [(move,) for move in MOVES]}, objective=Falling())
        if cut_off:
            monkeypatch.setattr(training.problem.Problem, "cuts_off", lambda self: True)
        with pytest.warns(dg.ProgramWarning, match=said) if cut_off else pytest.raises(dg.NotConverged, match=said):
            m.fit(DATA, iterations=3, tolerance=0.0)


@pytest.mark.filterwarnings("ignore:The sum of `at/1` may diverge")
@pytest.mark.parametrize(("stay", "cut_off"), [(0.5, False), (1.0, True), (1.5, True)])
def test_a_sum_is_cut_off_where_iteration_does_not_converge(stay: float, cut_off: bool) -> None:
    m = dg.Model(SKIPPING, {"move/1": [(move,) for move in MOVES]})
    problem = Problem(m._spec, DataPasses(DATA[:1]), in_threads(1))
    with contextlib.suppress(dg.QueryError):  # the only example has no finite value
        problem.totals({"move/1": np.log([0.2, stay, 0.3])})
    assert problem.cuts_off() is cut_off


@pytest.mark.parametrize("method", ["em", "variational", "incremental-em"])
def test_a_fall_is_an_error_where_each_item_is_popped_once(method: str) -> None:
    """An HMM is recursive, and time goes on in it, so that no run has a cycle to iterate."""
    Falling.passes = 0
    m = dg.Model(":- solve iterate. " + HMM, rows(), objective=Falling())
    options = {"size": len(DATA)} if method == "incremental-em" else {}
    with pytest.raises(dg.NotConverged, match=r"fell from .* which it cannot where runs are exact"):
        m.fit(DATA, iterations=4, tolerance=0.0, method=method, **options)


def test_a_fall_is_an_error_where_there_are_no_cycles_to_iterate() -> None:
    Falling.passes = 0
    text = (
        ":- solve iterate. :- semiring log. :- distribution emit(W). side(W) += emit(W) * word(W,0). goal += side(_)."
    )
    data = [{"word/2": facts["word/2"]} for facts in DATA]
    m = dg.Model(text, {"emit/1": [(w,) for w in range(WORDS)]}, objective=Falling())
    with pytest.raises(dg.NotConverged, match=r"fell from .* which it cannot where runs are exact"):
        m.fit(data, iterations=3, tolerance=0.0)


def test_an_example_that_fails_in_one_pass_is_no_error() -> None:
    """Around its cycle the first weights have no finite sum."""
    text = """:- semiring real. :- distribution t(S).
        a(X) += t(s) * start(X).  a(X) += t(l) * a(X) * w(X).  goal += a(_) * t(e)."""
    m = dg.Model(text, {"t/1": [("s", 0.2), ("l", 0.7), ("e", 0.1)]})
    data = [{"start/1": [("x",)], "w/1": [("x", w)]} for w in (1.5, 1.0)]
    with pytest.warns(dg.ProgramWarning) as said:
        fit = m.fit(data, iterations=3, tolerance=0.0)
    assert str(said[0].message).startswith("example 0 failed: a(x) has no finite value")
    assert fit.history[1].data < fit.history[0].data
    assert "example 0 counted in one of two passes only" in str(said[1].message)


def test_incremental_em_ends_where_batch_em_does() -> None:
    one, two = model(), model()
    data = DATA[:8]
    one.fit(data, iterations=400, tolerance=1e-11)
    two.fit(data, method="incremental-em", iterations=400, tolerance=1e-11)
    gradient = {}
    for m in (one, two):  # a stationary point, which need not be the same one
        spec = m._spec
        problem = training.problem.Problem(spec, training.examples.DataPasses(data), training.workers.in_threads(1))
        value, totals = problem.objective(m.parameters)
        gradient[m] = max(np.abs(x).max() for x in spec.pull(m.parameters, totals).values())
        assert np.isfinite(value)
    assert max(gradient.values()) < 1e-2


def test_stepwise_em_gets_near_in_few_passes() -> None:
    batch, online = model(), model()
    batch.fit(DATA, iterations=3, tolerance=0.0)
    online.fit(DATA, method="online-em", iterations=3, tolerance=0.0, size=2)
    assert online.score(DATA) > batch.score(DATA)


PAIR = dg.Program(":- semiring log. :- distribution e(K,O) given K. goal += e(K,O) * seen(K,O).")
PAIRS = [("u", "a"), ("u", "a"), ("u", "b"), ("v", "b"), ("v", "b"), ("v", "a"), ("u", "a"), ("v", "c")]
CELLS = [(k, o) for k in "uvw" for o in "abc"]


def stepwise(size: int, passes: int, add: float, weights: Any, power: float = 0.7) -> np.ndarray:
    """Stepwise EM of counts in a table of three groups, each of which begins uniform."""
    p, means = np.full((3, 3), 1 / 3), np.zeros((3, 3))
    whole, k = 1.0, 0
    for _ in range(passes):
        seen = 0.0
        for begin in range(0, len(PAIRS), size):
            new, weight = np.zeros((3, 3)), 0.0
            for (group, outcome), w in list(zip(PAIRS, weights, strict=True))[begin : begin + size]:
                new["uvw".index(group), "abc".index(outcome)] += w
                weight += w
            new, seen = new / weight, seen + weight
            rate = (k + 2) ** -power
            k += 1
            for g in range(3):
                old = new[g] if k == 1 and size >= len(PAIRS) else means[g] if means[g].sum() else p[g] * new[g].sum()
                means[g] = (1 - rate) * old + rate * new[g]
                counts = means[g] + add / max(seen, whole)
                p[g] = counts / counts.sum() if counts.sum() else p[g]
        whole = seen
    return p


@pytest.mark.parametrize("add", [0.0, 0.5])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_stepwise_em_keeps_what_its_first_examples_have_not(size: int, add: float) -> None:
    """Of every group, whichever example is the first to use it; the last is used by none."""
    weights = [1.0 + n % 2 for n in range(len(PAIRS))]
    data = [training.Example({"seen/2": [pair]}, weight=w) for pair, w in zip(PAIRS, weights, strict=True)]
    m = dg.Model(PAIR, {"e/2": CELLS}, prior=training.add_lambda(add) if add else None)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit = m.fit(data, method="online-em", size=size, iterations=4)
    assert ["given w have counts of 0" in str(w.message) for w in said] == ([] if add else [True])
    assert m.weights["e/2"].values == pytest.approx(stepwise(size, 4, add, weights).ravel(), rel=1e-12)
    assert fit.stopped == "iterations"
    assert (m.weights["e/2"].values > 0).all() or size == 100  # of all data at once, the first step is one of EM


def test_stepwise_em_is_near_relative_frequencies_whatever_comes_first() -> None:
    text = ":- semiring log. :- distribution p(X). goal += p(X) * seen(X)."
    m = dg.Model(text, {"p/1": [("a",), ("b",)]})
    for order in ("aab", "aba", "baa", "a" * 20 + "b" * 10):
        m.fit([{"seen/1": [(x,)]} for x in order], method="online-em", size=1, iterations=50)
        assert 0.2 < m.weights["p/1"]["b",] < 0.55, order


def test_a_probability_of_zero_stays_zero_in_stepwise_em() -> None:
    rows = [(k, o, 0.0 if (k, o) == ("u", "c") else 1.0) for k, o in CELLS if k != "w"]
    m = dg.Model(PAIR, {"e/2": rows})
    m.fit([{"seen/2": [pair]} for pair in PAIRS], method="online-em", size=1, iterations=2)
    assert m.weights["e/2"]["u", "c"] == 0.0 and m.weights["e/2"]["v", "c"] > 0.0


def test_viterbi_em_counts_the_best_derivation_alone() -> None:
    """Against all state sequences, one by one."""
    counts = np.zeros((STATES, WORDS))
    total = 0.0
    for s in SEQUENCES:
        best = max(
            product(range(STATES), repeat=len(s)),
            key=lambda z, s=s: (
                np.log(INIT[z[0]])
                + sum(np.log(EMIT[a, w]) for a, w in zip(z, s, strict=True))
                + sum(np.log(TRANS[a, b]) for a, b in pairwise(z))
            ),
        )
        total += np.log(INIT[best[0]]) + sum(np.log(EMIT[a, w]) for a, w in zip(best, s, strict=True))
        total += sum(np.log(TRANS[a, b]) for a, b in pairwise(best))
        for a, w in zip(best, s, strict=True):
            counts[a, w] += 1
    mine = model()
    fit = mine.fit(DATA, method="viterbi-em", iterations=1)
    assert fit.objective == pytest.approx(total, rel=1e-12)
    expected = counts / counts.sum(1, keepdims=True)
    assert mine.weights["emit/2"].values == pytest.approx(expected.ravel(), abs=1e-14)


def test_variational_bayes_raises_its_bound_below_the_evidence() -> None:
    """One group and one draw: the evidence is known in closed form."""
    text = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
    data = [{"seen/1": [(s,)]} for s in "hhhtt"]
    m = dg.Model(text, {"toss/1": [("h",), ("t",)]}, prior=training.Dirichlet(0.5))
    fit = m.fit(data, method="variational", iterations=20)
    evidence = lgamma(1.0) - lgamma(6.0) + lgamma(3.5) + lgamma(2.5) - 2 * lgamma(0.5)
    assert fit.objective == pytest.approx(evidence, rel=1e-12)  # nothing is hidden, so the bound is tight
    assert m.weights["toss/1"]["h",] == pytest.approx(3.5 / 6.0)


@pytest.mark.parametrize("alpha", [1e-100, 1e-6, 1e3, 1e6, 1e12, 1e15, 1e60])
def test_the_bound_of_the_evidence_is_exact_for_any_pseudo_counts(alpha: float) -> None:
    """Log Gamma of 1e15 is 3e16: what is left of differences of such numbers is no bound of anything."""
    text = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
    m = dg.Model(text, {"toss/1": [("h",), ("t",)]}, prior=training.Dirichlet(alpha))
    fit = m.fit([{"seen/1": [(s,)]} for s in "hhhtt"], method="variational", iterations=20, tolerance=1e-13)
    with mpmath.workdps(150):
        a, log_gamma = mpmath.mpf(alpha), mpmath.loggamma
        evidence = log_gamma(2 * a) - log_gamma(2 * a + 5) + log_gamma(a + 3) + log_gamma(a + 2) - 2 * log_gamma(a)
        assert fit.objective == pytest.approx(float(evidence), rel=1e-12)
        assert m.weights["toss/1"]["h",] == pytest.approx(float((a + 3) / (2 * a + 5)), rel=1e-12)


def test_annealing_ends_as_em() -> None:
    m = model()
    fit = m.fit(DATA[:12], method="annealing", start=0.5, growth=1.5, steps=2, iterations=600, tolerance=1e-6)
    assert fit.converged
    again = m.fit(DATA[:12], warm=True, iterations=1)
    assert again.objective == pytest.approx(fit.objective, rel=1e-5)


def test_the_number_of_threads_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_cache, "BRIEF", 0.0)  # threads however little there is to do
    found = []
    for threads in (1, 2, 3):
        m = model()
        m.fit(DATA, iterations=3, threads=threads)
        found.append(m.parameters)
    for other in found[1:]:
        for name, x in found[0].items():
            assert x.tobytes() == other[name].tobytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (":- semiring viterbi. goal += toss(S) * seen(S).", "real` or `log`, not viterbi"),
        (":- semiring real. goal += toss(S) * -1 * seen(S).", "has a factor below 0"),
        (":- semiring real. goal += toss(S) * seen(S). goal += SIDE(toss(S)) * seen(S).", "asks whether a parameter"),
        (":- semiring real. goal += toss(S) * seen(S). goal += seen(S) * odd(S) for not toss(S).", "asks whether"),
        (":- semiring real. :- input toss/1. goal += toss(S) * seen(S). toss(X) += other(X).", "derives parameters"),
    ],
)
def test_where_em_has_no_formula_it_says_so(text: str, message: str) -> None:
    m = dg.Model(text + " :- distribution toss(S).", {"toss/1": [("h",), ("t",)]})
    with pytest.raises(dg.Error, match=message) as found:
        m.fit([{"seen/1": [("h",)]}])
    assert "l-bfgs" in str(found.value)


def test_a_deficient_model_is_learned() -> None:
    """Pairs of tosses that agree are all that it derives: their chances add up to less than one, as EM allows."""
    m = dg.Model(":- semiring real. :- distribution t(S). goal += t(S) * t(S) * seen(S).", {"t/1": [("h",), ("e",)]})
    assert sum(np.exp(m.score([{"seen/1": [(s,)]}])) for s in "he") == pytest.approx(0.5)
    fit = m.fit([{"seen/1": [(s,)]} for s in "hhhe"], tolerance=0.0, iterations=3)
    assert m.weights["t/1"]["h",] == pytest.approx(0.75)
    assert fit.history[-1].data == pytest.approx(2 * (3 * np.log(0.75) + np.log(0.25)))


def test_factors_below_zero_are_errors() -> None:
    rows = {"toss/1": [("h",), ("t",)]}
    m = dg.Model(COIN.replace("seen(S)", "seen(S) * f(S)"), rows, facts={"f/1": [("h", -0.1), ("t", 1.0)]})
    with pytest.raises(
        dg.Error, match=r"the rule `goal \+= .*` has a factor below 0, as a fact of f/1 is -0.1; a grad"
    ):
        m.fit([{"seen/1": [("h",), ("t",)]}])
    for method in ("em", "incremental-em", "online-em", "variational"):
        with pytest.raises(dg.Error, match=r"the expected count of toss\(h\) is -.*: examples have facts below 0"):
            dg.Model(COIN, rows).fit([{"seen/1": [("h", -0.5), ("t", 1.0)]}], method=method)
    dg.Model(COIN, rows).fit([{"seen/1": [("h", -0.5), ("t", 1.0)]}], method="l-bfgs", iterations=3)


def test_alpha_below_one_has_no_largest_value() -> None:
    with pytest.raises(dg.Error, match='method="variational"'):
        model(training.Dirichlet(0.5)).fit(DATA)
    model(training.Dirichlet(0.5)).fit(DATA, method="variational", iterations=2)


def test_examples_that_cannot_be_derived() -> None:
    data = [*DATA[:3], {"word/2": [(99, 0)], "last/1": [(0,)]}]
    with pytest.warns(dg.ProgramWarning, match=r"goal is not derived in example 3, for want of emit\(.*,99\)"):
        fit = model().fit(data, iterations=2)
    assert fit.history[0].data == pytest.approx(model().fit(DATA[:3], iterations=1).objective)
    with pytest.raises(dg.QueryError, match="example 3"):
        model().fit(data, iterations=2, missing="error")
    model().fit(data, iterations=2, missing="skip")
    with pytest.raises(dg.QueryError, match="no example counts"):
        model().fit(data[3:], iterations=2)


def test_the_free_energy_may_fall_where_more_examples_count() -> None:
    text = ":- semiring log. :- distribution toss(S). goal += toss(S) * seen(S)."
    m = dg.Model(text, {"toss/1": [("h", 1.0), ("t", 0.0)]}, prior=training.add_lambda(0.1))
    data = [{"seen/1": [(s,)]} for s in "hht"]
    with pytest.warns(dg.ProgramWarning, match="examples 0 to 15 counted in one of two passes only"):
        m.fit(data, method="incremental-em", missing="skip")
    assert m.weights["toss/1"]["h",] == pytest.approx(2.1 / 3.2, abs=1e-6)


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_viterbi_em_leaves_out_what_has_no_weight(semiring: str) -> None:
    text = f":- semiring {semiring}. :- distribution toss(S). goal += toss(S) * seen(S)."
    m = dg.Model(text, {"toss/1": [("h", 0.5), ("t", 0.5), ("edge", 0.0)]})
    data = [{"seen/1": [(s,)]} for s in ("h", "edge", "h", "t")]
    fit = m.fit(data, method="viterbi-em", missing="skip")
    assert fit.converged
    assert m.weights["toss/1"].values == pytest.approx([2 / 3, 1 / 3, 0.0])


def test_rounding_near_zero_is_no_fall() -> None:
    m = model()
    problem = Problem(m._spec, DataPasses(DATA), in_threads(1))
    before, now = (Reached.of_examples(x, np.array([x])) for x in (5.55e-16, -2.78e-16))
    assert must_not_fall(problem, before, now, "the likelihood") is now
    with pytest.raises(dg.NotConverged, match=r"the likelihood fell from 5.55e-16 to -1e-11"):
        must_not_fall(problem, before, Reached.of_examples(-1e-11, np.array([-1e-11])), "the likelihood")


def test_groups_without_counts_stay() -> None:
    text = ":- semiring real. :- distribution t(S,X) given S. goal += t(S,X) * seen(S,X)."
    m = dg.Model(text, {"t/2": [("a", "x", 0.2), ("a", "y", 0.8), ("b", "x", 0.3), ("b", "y", 0.7)]})
    with pytest.warns(
        dg.ProgramWarning,
        match="the parameters of t/2 given b have counts of 0, as no derivation that counts uses them: they stay",
    ):
        m.fit([{"seen/2": [("a", "x")]}], iterations=1)
    assert m.weights["t/2"].values == pytest.approx([1.0, 0.0, 0.3, 0.7])


def test_data_in_memory_are_prepared_once_and_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts that stay loaded between passes, beside data that are read anew in each."""
    monkeypatch.setattr(example_cache, "BRIEF", 0.0)
    found = []
    for data in (DATA, lambda: [dict(d) for d in DATA]):
        for threads in (1, 2):
            m = model()
            fit = m.fit(data, DATA[:5], iterations=4, tolerance=0.0, threads=threads)
            found.append([(r.data, r.dev) for r in fit.history] + [x.tobytes() for x in m.parameters.values()])
    assert all(other == found[0] for other in found[1:])


COIN = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."


@pytest.mark.parametrize(
    ("rows", "facts", "message"),
    [
        ({"toss/1": []}, {}, "toss/1 has no rows"),
        ({"toss/1": [("h",)]}, {"toss/1": [("t",)]}, "toss/1 is among parameters and among facts"),
        (
            {"w": training.LogLinear({"seen/1": [("h",)]})},
            {},
            r"distribution toss\(S\)` is declared, and toss has no",
        ),
    ],
)
def test_rows_that_cannot_be_learned(rows: Any, facts: Any, message: str) -> None:
    with pytest.raises(dg.Error, match=message):
        dg.Model(COIN, rows, facts=facts)


def test_an_example_brings_no_rows_of_parameters() -> None:
    data = [{"seen/1": [("h",)]}, training.Example({"seen/1": [("h",)], "toss/1": [("h",)]}, name="mine")]
    for method in ("em", "sgd"):
        with pytest.raises(dg.FactError, match=r"example 1 \(mine\) has facts for toss/1, whose rows are parameters"):
            dg.Model(COIN, {"toss/1": [("h",), ("t",)]}).fit(data, method=method)


def test_examples_of_a_minibatch_are_named_by_their_place_in_the_data() -> None:
    data = [{"seen/1": [("h" if n != 5 else "x",)]} for n in range(9)]
    with pytest.raises(dg.QueryError, match="goal is not derived in example 5,"):
        dg.Model(COIN, {"toss/1": [("h",), ("t",)]}).fit(data, method="sgd", size=2, missing="error")
