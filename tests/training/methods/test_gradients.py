"""Gradient methods reach known optima, and gradients of all objectives are those of differences. Costs 5 seconds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize  # type: ignore[import-untyped]  # it has no types

import dynagrad as dg
from dynagrad import numpy as own
from dynagrad import training
from dynagrad.training.examples import DataPasses
from dynagrad.training.problem import Problem
from dynagrad.training.specification import ravelled, unravelled
from dynagrad.training.workers import in_threads
from training.tagging import ROWS, SENTENCES, TAGGER, TAGS, tagged

COIN = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
TOSSES = [{"seen/1": [(s,)]} for s in "hhht"]
METHODS = ["cg", "bfgs", "l-bfgs", "newton-cg", "tnc", "slsqp", "trust-constr"]


@pytest.mark.parametrize("method", METHODS)
def test_softmax_reaches_the_relative_frequencies(method: str) -> None:
    m = dg.Model(COIN, {"toss/1": [("a",), ("b",), ("c",)]})
    m.fit([{"seen/1": [(s,)]} for s in "aaaaabbbc"], method=method, tolerance=1e-15, iterations=500)
    assert m.weights["toss/1"].values == pytest.approx([5 / 9, 3 / 9, 1 / 9], abs=1e-5)


@pytest.mark.parametrize("method", ["sgd", "adam", "adagrad"])
def test_stochastic_methods_get_near(method: str) -> None:
    m = dg.Model(COIN, {"toss/1": [("h",), ("t",)]})
    m.fit(TOSSES, method=method, iterations=100, size=2, rate=lambda k: 1.0 / (1 + 0.1 * k))
    assert m.weights["toss/1"]["h",] == pytest.approx(0.75, abs=0.03)


def crf(objective: Any = None, semiring: str = "log", **options: Any) -> dg.Model:
    linear = training.LogLinear(ROWS, lambda a, b: [f"{a}-{b}", b], **options)
    return dg.Model(TAGGER.replace("log", semiring), {"weights": linear}, objective=objective or training.Conditional())


def slope_and_differences(m: dg.Model, data: Any, seed: int = 0) -> tuple[float, float]:
    """The derivative of the objective along a random direction at a random place, and by differences."""
    random = np.random.default_rng(seed)
    problem = Problem(m._spec, DataPasses(data), in_threads(1))
    like = m.parameters
    at = random.standard_normal(len(ravelled(like))) * 0.5
    along = random.standard_normal(len(at))
    here = unravelled(at, like)
    _, totals = problem.objective(here)
    slope = float(ravelled(m._spec.pull(here, totals)) @ along)
    h = 1e-5
    up = problem.objective(unravelled(at + h * along, like), gradient=False)[0]
    down = problem.objective(unravelled(at - h * along, like), gradient=False)[0]
    return slope, (up - down) / (2 * h)


def chance(values: Any, example: training.Example) -> Any:
    """A function of two items, as a user writes one."""
    goal, part = values
    return 2.0 * goal - 0.5 * part * part


def with_costs(example: training.Example) -> training.Example:
    gold = set(example.observed["tag/2"])
    costs = [(t, i, float((t, i) not in gold)) for t, i in example.facts["tag/2"]]
    return training.Example({**example.facts, "cost/2": costs}, example.observed)


COSTS = TAGGER.replace("tag(T,I) for", "tag(T,I) * cost(T,I) for")


def of(name: str) -> tuple[dg.Model, list[training.Example]]:
    """A model with an objective, and data for it."""
    if name == "likelihood":
        rows = {"toss/1": [("h",), ("t",), ("e",)]}
        text = ":- semiring real. goal += toss(S) * toss(R) * seen(S,R)."
        m = dg.Model(text, {"toss": training.Distribution(rows)}, prior=training.Dirichlet(1.5))
        return m, [training.Example({"seen/2": [("h", "t"), ("e", "e")]}), training.Example({"seen/2": [("t", "t")]})]
    if name == "conditional":
        return crf(), tagged()
    if name == "another item":  # the clamped run asks for a goal of its own
        goals = TAGGER + "right += at(N,n) * end(N)."
        m = dg.Model(goals, {"w": training.LogLinear(ROWS)}, objective=training.Conditional("right"))
        return m, [training.Example(e.facts) for e in tagged()]
    if name == "derivation":
        facts = tagged()[0].facts
        with_best = training.Example(facts, derivation=crf().predict(facts))
        return crf(), [with_best, tagged()[1]]
    if name == "best":
        m = dg.Model(TAGGER.replace("log", "viterbi"), {"w": training.LogLinear(ROWS)}, prior=training.L2(0.3))
        return m, [training.Example(e.clamped) for e in tagged()]
    if name == "perceptron":
        return crf(semiring="viterbi"), tagged()
    if name == "margin":
        objective = training.Conditional(cost="cost/2")
        m = dg.Model(COSTS.replace("log", "viterbi"), {"w": training.LogLinear(ROWS)}, objective=objective)
        return m, [with_costs(e) for e in tagged()]
    if name == "items":
        m = crf(training.OfItems(("goal", "at(2,n)"), chance))
        return m, tagged()[:2]
    m = dg.Model(COSTS, {"weights": training.LogLinear(ROWS)}, objective=training.Risk("cost/2"))
    return m, [with_costs(e) for e in tagged()]


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
@pytest.mark.parametrize(
    "name",
    ["likelihood", "best", "conditional", "another item", "derivation", "perceptron", "margin", "items", "risk"],
)
def test_gradients_of_objectives_are_those_of_differences(name: str) -> None:
    m, data = of(name)
    for seed in range(3):
        slope, difference = slope_and_differences(m, data, seed)
        assert slope == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("second", [False, True])
def test_what_has_weight_zero_without_what_was_observed_counts_on_neither_side(second: bool) -> None:
    """The goal of an example is impossible, and the item that was observed is not: it has no conditional likelihood."""
    rows = {"w/1": [("a",), ("b",)]}
    text = ":- semiring log. goal += w(S) * seen(S). told += w(S) * right(S)."
    m = dg.Model(text, {"w": training.LogLinear(rows)}, objective=training.Conditional("told"))
    one = {"seen/1": [("a",), ("b",)], "right/1": [("a",)]}
    lost = {"seen/1": [("a", -np.inf)], "right/1": [("b",)]}
    found = []
    for data in ([one], [one, lost]):
        problem = Problem(m._spec, DataPasses(data), in_threads(1), "skip")
        totals = problem.objective(m.parameters)[1]
        along = {"w": np.array([1.0, -0.5])}
        found.append(problem.product(m.parameters, totals, along)["w"] if second else totals.gradient["w/1"])
    assert found[1] == pytest.approx(found[0], abs=1e-15)
    assert found[0] == pytest.approx([-0.375, 0.375] if second else [0.5, -0.5])


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
def test_expected_loss_is_that_of_all_derivations() -> None:
    """Against all taggings of a sentence, one by one."""
    import itertools

    m, data = of("risk")
    random = np.random.default_rng(5)
    m._theta = {"weights": random.standard_normal(len(m.parameters["weights"]))}
    weights = {key: dict(((a, b), v) for a, b, v in table) for key, table in m.weights.items()}
    words = [w for w, _ in data[0].facts["word/2"]]
    gold = dict((i, t) for t, i in data[0].observed["tag/2"])
    total = loss = 0.0
    for tags in itertools.product(TAGS, repeat=len(words)):
        p = 1.0
        for previous, t, w in zip(("start", *tags), tags, words, strict=False):
            p *= weights["trans/2"][previous, t] * weights["emit/2"][t, w]
        total += p
        loss += p * sum(t != gold[i] for i, t in enumerate(tags))
    assert m.score([training.Example(data[0].facts)]) == pytest.approx(-loss / total, rel=1e-12)


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
def test_the_perceptron_learns_what_can_be_separated() -> None:
    m = crf(semiring="viterbi")
    start = m.score(tagged())
    fit = m.fit(tagged(), method="perceptron", iterations=20, size=1, average=False)
    assert m.score(tagged()) == 0.0 >= start  # no tagging is better than what was observed
    assert fit.history[-1].change == 0.0  # and nothing moves any more
    averaged = crf(semiring="viterbi")
    averaged.fit(tagged(), method="perceptron", iterations=20, size=1)
    assert -0.5 < averaged.score(tagged()) <= 0.0


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
def test_an_average_is_that_of_the_parameters_after_each_step() -> None:
    after = []
    for steps in range(1, 6):
        m = crf(semiring="viterbi")
        m.fit(tagged(), method="perceptron", iterations=steps, size=len(SENTENCES), average=False)
        after.append(m.parameters["weights"])
    averaged = crf(semiring="viterbi")
    averaged.fit(tagged(), method="perceptron", iterations=5, size=len(SENTENCES))
    assert averaged.parameters["weights"] == pytest.approx(np.mean(after, axis=0), abs=1e-14)
    assert np.ptp(after, axis=0).max() > 0.1


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
def test_max_margin_wants_more_than_the_perceptron() -> None:
    m = dg.Model(
        COSTS.replace("log", "viterbi"),
        {"weights": training.LogLinear(ROWS)},
        objective=training.Conditional(cost="cost/2"),
        prior=training.L2(0.01),
    )
    data = [with_costs(e) for e in tagged()]
    m.fit(data, method="sgd", iterations=60, size=1, rate=0.2)
    assert m.score(data) > -0.7  # of margins that were asked for, next to nothing is missing
    free = [training.Example({k: v for k, v in e.facts.items() if k != "cost/2"}) for e in data]
    for example, (_, tags) in zip(free, SENTENCES, strict=True):
        costless = {**example.facts, "cost/2": [(t, i, 0.0) for t, i in example.facts["tag/2"]]}
        steps = m.predict(costless)
        assert [s.name[1][1] for s in steps if s.name[0] == "at/2"][::-1][1:] == tags.split()


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
def test_l1_makes_weights_zero_and_is_at_its_optimum() -> None:
    m = dg.Model(
        TAGGER,
        {"weights": training.LogLinear(ROWS)},
        objective=training.Conditional(),
        prior=training.L1(0.2),
    )
    m.fit(tagged(), method="l-bfgs", tolerance=1e-14, iterations=500)
    theta = m.parameters["weights"]
    assert 0 < (np.abs(theta) < 1e-6).sum() < len(theta)
    problem = Problem(m._spec, DataPasses(tagged()), in_threads(1))
    totals = problem.totals(m._spec.weights(m.parameters))
    slope = m._spec.parametrisations["weights"].pull(
        theta, m._spec.parametrisations["weights"].rows.joined(totals.gradient)
    )
    zero = np.abs(theta) < 1e-6
    assert (np.abs(slope[zero]) <= 0.2 + 1e-4).all()
    assert slope[~zero] == pytest.approx(0.2 * np.sign(theta[~zero]), abs=1e-4)


STOCHASTIC: dict[str, dict[str, Any]] = {
    "sgd": {"rate": lambda k: 1.0 / (1 + 0.01 * k)},
    "adagrad": {"rate": 1.0},
    "adam": {"rate": lambda k: 0.1 / (1 + 0.01 * k)},
}


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")  # scipy's, at the optimum
@pytest.mark.parametrize("method", [*METHODS, "trust-ncg", "trust-krylov", *STOCHASTIC])
def test_maximum_entropy_is_logistic_regression(method: str) -> None:
    """Against Newton's method on the textbook's formula; stochastic methods see all examples at each step."""
    random = np.random.default_rng(2)
    count = 10
    x, y = random.standard_normal((count, 3)), random.integers(0, 2, count)
    strength = 0.5
    w = np.zeros(3)
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ w))
        w -= np.linalg.solve(
            x.T @ (x * (p * (1 - p))[:, None]) + 2 * strength * np.eye(3), x.T @ (p - y) + 2 * strength * w
        )
    rows = {"class/2": [(n, c) for n in range(count) for c in (0, 1)]}
    linear = training.LogLinear(rows, lambda n, c: {j: c * x[n, j] for j in range(3)}, given=0)
    m = dg.Model(":- semiring log. goal += class(N,C) * seen(N,C).", {"w": linear}, prior=training.L2(strength))
    data = [{"seen/2": [(n, int(y[n]))]} for n in range(count)]
    options = {"size": count, **STOCHASTIC[method]} if method in STOCHASTIC else {}
    m.fit(data, method=method, tolerance=1e-16, iterations=200, **options)
    assert m.parameters["w"] == pytest.approx(w, abs=1e-4 if method in STOCHASTIC else 1e-6)


def test_bounds_and_constraints_are_scipys() -> None:
    m = dg.Model(COIN, {"toss/1": [("h",), ("t",)]})
    m.fit(TOSSES, method="l-bfgs", bounds=[(-10, np.log(0.5)), (np.log(0.5), 10)], iterations=50)
    assert m.weights["toss/1"]["h",] <= 0.5 + 1e-12
    with pytest.raises(dg.Error, match="cg has no bounds"):
        m.fit(TOSSES, method="cg", bounds=[(0, 1)] * 2)


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")  # scipy's
@pytest.mark.filterwarnings("ignore:Singular Jacobian matrix")
@pytest.mark.parametrize("method", ["slsqp", "trust-constr"])
def test_constraints_that_do_not_hold_in_the_end_are_told_of(method: str) -> None:
    m = dg.Model(COIN, {"toss/1": [("h",), ("t",)]})
    both = [{"type": "eq", "fun": lambda x: x[0] - 1}, optimize.LinearConstraint([[1, 0]], -np.inf, -1)]
    with pytest.warns(
        dg.ProgramWarning, match=rf"where {method} ended, constraints\[\d\] is .*, and has to be (0|-1 or less)"
    ):
        m.fit(TOSSES, method=method, constraints=both, iterations=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dg.ProgramWarning)
        m.fit(TOSSES, method=method, constraints=both[1], iterations=20)
        m.fit(TOSSES, method=method, constraints=both[0], iterations=20)
        m.fit(TOSSES, method=method, constraints={"type": "ineq", "fun": lambda x: x - 1}, iterations=20)


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")  # scipy's, at the optimum
@pytest.mark.parametrize("method", ["slsqp", "trust-constr"])
def test_the_best_place_on_a_line_is_that_of_calculus(method: str) -> None:
    """Weights that are exp(a) and exp(b), of which one was seen three times and the other once, where a + b = 1."""
    free = training.LogLinear({"weight/1": [("h",), ("t",)]})
    m = dg.Model(":- semiring log. goal += weight(S) * seen(S).", {"w": free}, objective=training.Conditional())
    data = [training.Example({"seen/1": [("h",), ("t",)]}, {"seen/1": [(s,)]}) for s in "hhht"]
    m.fit(
        data,
        method=method,
        constraints=optimize.LinearConstraint([[1.0, 1.0]], 1.0, 1.0),
        tolerance=1e-15,
        iterations=300,
    )
    a, b = m.parameters["w"]
    assert a + b == pytest.approx(1.0, abs=1e-9)
    assert a - b == pytest.approx(np.log(3.0), abs=1e-4)  # the ratio of the counts


def test_a_seed_makes_a_run_what_it_is() -> None:
    def run(seed: int) -> tuple[bytes, list[float]]:
        m = dg.Model(COIN, {"toss": training.Distribution({"toss/1": [("h",), ("t",)]}, initial="random")})
        fit = m.fit(TOSSES * 5, method="adam", size=3, iterations=3, seed=seed)
        return m.parameters["toss"].tobytes(), [r.objective for r in fit.history]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_compiled_function_gives_weights() -> None:
    """Logistic weights of a slope and a bias, by `dg.compile`, as by the same function that runs in Python."""

    def logits(p: Any) -> Any:
        return own.array([p[0] * 0.5 + p[1], p[0] * -1.5 + p[1], p[1] * 0.0])

    found = []
    for function in (logits, dg.compile(logits)):
        free = training.Differentiable({"weight/1": [("a",), ("b",), ("c",)]}, function, np.array([0.1, -0.2]))
        objective, prior = training.Conditional(), training.L2(0.01)
        m = dg.Model(":- semiring log. goal += weight(S) * seen(S).", {"w": free}, objective=objective, prior=prior)
        data = [training.Example({"seen/1": [("a",), ("b",), ("c",)]}, {"seen/1": [(s,)]}) for s in "aab"]
        m.fit(data, method="l-bfgs", tolerance=1e-14)
        found.append(m.parameters["w"])
    assert found[1] == pytest.approx(found[0], rel=1e-9)
    assert np.abs(found[0]).max() > 0.1


@pytest.mark.parametrize(
    ("method", "wrong"), [("l-bfgs", np.inf), ("sgd", np.inf), ("l-bfgs", np.nan), ("sgd", np.nan)]
)
def test_an_objective_that_is_not_finite_ends_the_run_and_keeps_what_was_good(method: str, wrong: float) -> None:
    """Infinite, or no number, in example 2 from its third evaluation on."""
    evaluated: list[float] = []

    def loss(values: Any, example: training.Example) -> Any:
        if example.name == "bad":
            evaluated.append(0.0)
            if len(evaluated) > 2:
                return values[0] * wrong
        return values[0]

    m = dg.Model(COIN, {"toss/1": [("h",), ("t",)]}, objective=training.OfItems(["goal"], loss))
    data = [training.Example(d, name="bad" if n == 2 else "") for n, d in enumerate(TOSSES)]
    kept: list[np.ndarray] = []
    with pytest.raises(dg.NotConverged, match=r"the objective is not finite: in example 2 \(bad\)"):
        m.fit(data, method=method, iterations=9, tolerance=0.0, callback=lambda r: kept.append(m.parameters))
    assert kept and np.isfinite(m.parameters["toss/1"]).all()


@pytest.mark.parametrize("method", ["trust-constr", "trust-ncg", "trust-krylov"])
def test_a_step_that_is_rejected_is_no_convergence(method: str) -> None:
    m = dg.Model(COIN, {"toss/1": [("a", 0.999), ("b", 0.0005), ("c", 0.0005)]})
    fit = m.fit([{"seen/1": [(s,)]} for s in "aaaaabbbc"], method=method)
    assert fit.converged
    assert m.weights["toss/1"].values == pytest.approx([5 / 9, 3 / 9, 1 / 9], abs=1e-2)


@pytest.mark.parametrize("method", [*METHODS, "trust-ncg", "sgd"])
def test_a_probability_of_zero_stays_and_the_others_are_learned(method: str) -> None:
    m = dg.Model(COIN, {"toss/1": [("h", 0.1), ("t", 0.9), ("edge", 0.0)]})
    options = {"rate": 1.0} if method == "sgd" else {}
    m.fit(TOSSES, method=method, iterations=60, **options)
    assert m.weights["toss/1"].values == pytest.approx([0.75, 0.25, 0.0], abs=1e-2)
    assert m.weights["toss/1"]["edge",] == 0.0


def test_a_prior_that_excludes_the_initial_parameters_is_an_error() -> None:
    m = dg.Model(COIN, {"toss/1": [("h", 1.0), ("t", 0.0)]}, prior=training.add_lambda(0.5))
    with pytest.raises(dg.Error, match="the prior density of the initial parameters is zero"):
        m.fit(TOSSES, method="l-bfgs")
    with pytest.warns(dg.ProgramWarning, match="goal has weight zero in example 3: all of its derivations use weights"):
        assert m.fit(TOSSES, method="em").converged  # which adds to counts


@pytest.mark.parametrize("method", ["sgd", "incremental-em", "online-em"])
def test_data_of_which_nothing_is_derived(method: str) -> None:
    m = dg.Model(COIN, {"toss/1": [("h",), ("t",)]})
    with pytest.raises(dg.QueryError, match=r"no example counts: goal is not derived in example 0, for want of"):
        m.fit([{"seen/1": [("edge",)]}] * 3, method=method, missing="skip")


def test_a_rate_that_is_no_number() -> None:
    m = dg.Model(COIN, {"toss/1": [("h",), ("t",)]})
    for rate in ("x", float("nan")):
        with pytest.raises(dg.Error, match="a result of rate must be a number"):
            m.fit(TOSSES, method="sgd", rate=lambda k, rate=rate: rate)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("method", ["sgd", "adagrad", "adam", "perceptron"])
def test_starts_are_compared_by_what_their_parameters_give(method: str, average: bool) -> None:
    """The steps of a pass are of other parameters: their sum is above the maximum where the mean is far from it."""
    text = (
        ":- semiring log. :- distribution k(K). :- distribution p(K,O) given K. goal += k(K)*p(K,O)*o(O)*p(K,Q)*q(Q)."
    )
    rows = {"k/1": [(0,), (1,)], "p/2": [(k, x) for k in (0, 1) for x in "abc"]}
    data = [{"o/1": [(x,)], "q/1": [(y,)]} for x, y in ("ab", "cc", "aa", "ba", "cb")]
    weights = {"d": training.Distribution(rows, initial="random")}
    model = dg.Model(text, weights, prior=training.add_lambda(0.5))
    fit = model.fit(data, method=method, average=average, iterations=12, size=2, restarts=4, seed=5)
    prior = 0.5 * sum(float(np.log(table.values).sum()) for table in model.weights.values())
    assert max(fit.starts) == pytest.approx(model.score(data) + prior, rel=1e-12)
    alone = []
    for n in range(1, 5):  # the first n of them
        one = dg.Model(text, weights, prior=training.add_lambda(0.5))
        alone.append(one.fit(data, method=method, average=average, iterations=12, size=2, restarts=n, seed=5))
    assert [len(f.starts) for f in alone[1:]] == [2, 3, 4]
    assert all(f.starts == fit.starts[: len(f.starts)] for f in alone[1:])
    assert all(f.counted == f.examples == 5 for f in alone)
