"""Products with Hessians, entropies, and sums of objectives, against differences and brute force. Costs 5 seconds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import numpy as own
from dynagrad import training
from dynagrad.training.examples import DataPasses
from dynagrad.training.problem import Problem
from dynagrad.training.specification import ravelled, unravelled
from dynagrad.training.workers import in_threads
from training.tagging import ROWS, TAGGER, TAGS, tagged

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")


def weighted(soft: bool = False) -> list[training.Example]:
    """The sentences, of which each counts once more than the one before; `soft`: tags have values."""
    return tagged(value=(lambda t, i: 0.1 * i - 0.3 * (t == "n")) if soft else None, weight=lambda n: 1.0 + n)


def linear(**options: Any) -> training.LogLinear:
    return training.LogLinear(ROWS, lambda a, b: {f"{a}-{b}": 1.0, b: 0.5}, **options)


def network() -> training.Differentiable:
    def scores(p: Any) -> Any:
        hidden = own.tanh(own.outer(p["a"], own.arange(24.0) / 7.0))
        return own.sum(hidden * p["b"][:, None], axis=0)

    return training.Differentiable(ROWS, scores, {"a": np.array([0.3, -0.2]), "b": np.array([0.5, 1.0])})


def values() -> training.Differentiable:
    """Weights that are given as they are, and not by their logs."""
    slopes = np.linspace(-1.0, 1.0, 24)
    return training.Differentiable(ROWS, lambda p: 0.5 + (p[0] * slopes + p[1]) ** 2, np.array([0.3, 0.7]), logs=False)


MODELS = {
    "conditional, log-linear": lambda: dg.Model(
        TAGGER, {"w": linear()}, objective=training.Conditional(), prior=training.L2(0.1)
    ),
    "conditional, normalised": lambda: dg.Model(TAGGER, {"w": linear(given=0)}, objective=training.Conditional()),
    "likelihood, distribution": lambda: dg.Model(
        TAGGER, {"w": training.Distribution(ROWS, given=0)}, prior=training.Dirichlet(1.5)
    ),
    "likelihood in real": lambda: dg.Model(
        TAGGER.replace("semiring log", "semiring real").replace("* tag(T,I)", ""), {"w": linear(given=0)}
    ),
    "values": lambda: dg.Model(TAGGER.replace("log", "real"), {"w": values()}, objective=training.Conditional()),
    "frozen": lambda: dg.Model(TAGGER, {"w": training.Distribution(ROWS, given=0, frozen=lambda a, _: a == "d")}),
    "network": lambda: dg.Model(TAGGER, {"w": network()}, objective=training.Conditional()),
    "risk": lambda: dg.Model(COSTS, {"w": linear(given=0)}, objective=training.Risk("cost/2")),
    "entropy": lambda: dg.Model(TAGGER, {"w": network()}, objective=training.Entropy()),
    "sum": lambda: dg.Model(
        TAGGER, {"w": linear()}, objective=training.Sum((1.0, training.Conditional()), (-0.3, training.Entropy()))
    ),
    "items": lambda: dg.Model(TAGGER, {"w": linear()}, objective=training.OfItems(ITEMS, of_items)),
    "items in arithmetic": lambda: dg.Model(
        PLAIN, {"w": values()}, objective=training.OfItems(["goal"], lambda x, _: own.sin(x[0]))
    ),
}
COSTS = TAGGER.replace("tag(T,I) for", "tag(T,I) * cost(T,I) for")
PLAIN = TAGGER.replace(":- semiring log.", "").replace("at(0,start).", "at(0,start) += exp(-1).")
ITEMS = ["goal", "at(1,d)", "goal"]


def of_items(found: Any, example: training.Example) -> Any:
    """A function of items, one of which is asked for twice."""
    goal, part, again = found
    return own.sin(goal) * part - 0.3 * again * own.exp(0.1 * part)


def data_of(m: dg.Model) -> list[training.Example]:
    found = weighted(soft=isinstance(m._spec.objective, training.Entropy))
    if "cost" in m.program.source:
        listed = [(e, [(*row, 0.0 if row in e.observed["tag/2"] else 1.5) for row in e.facts["tag/2"]]) for e in found]
        return [training.Example({**e.facts, "cost/2": costs}, weight=e.weight) for e, costs in listed]
    if "tag" in m.program.source:
        return found
    return [training.Example({k: v for k, v in e.facts.items() if k != "tag/2"}, weight=e.weight) for e in found]


@pytest.mark.parametrize("name", MODELS)
def test_products_with_the_hessian_are_differences_of_gradients(name: str) -> None:
    m = MODELS[name]()
    problem = Problem(m._spec, DataPasses(data_of(m)), in_threads(1))
    like = m.parameters
    random = np.random.default_rng(4)
    at = ravelled(like) + 0.5 * random.standard_normal(len(ravelled(like)))
    if name == "frozen":
        at = ravelled(like)
    along = random.standard_normal(len(at))

    def gradient(x: np.ndarray) -> np.ndarray:
        theta = unravelled(x, like)
        return ravelled(m._spec.pull(theta, problem.objective(theta)[1]))

    h = 1e-5
    moved = along
    if name == "frozen":
        frozen = m._spec.parametrisations["w"].frozen
        moved = np.where(frozen, 0.0, along)
    wanted = (gradient(at + h * moved) - gradient(at - h * moved)) / (2 * h)
    theta = unravelled(at, like)
    found = ravelled(problem.product(theta, problem.objective(theta)[1], unravelled(along, like)))
    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-7)
    assert np.abs(found).max() > 1e-3


@pytest.mark.parametrize("method", ["newton-cg", "trust-ncg", "trust-krylov"])
def test_truncated_newton_reaches_the_optimum_of_l_bfgs(method: str) -> None:
    one, two = (MODELS["conditional, log-linear"]() for _ in range(2))
    first = one.fit(weighted(), method="l-bfgs", tolerance=1e-15, iterations=300)
    second = two.fit(weighted(), method=method, tolerance=1e-15, iterations=50)
    assert second.objective == pytest.approx(first.objective, rel=1e-10)
    assert ravelled(two.parameters) == pytest.approx(ravelled(one.parameters), abs=1e-5)
    assert len(second.history) < 20


def test_a_truncated_newton_run_goes_on_with_the_same_bits(tmp_path: Any) -> None:
    whole, parts = (MODELS["conditional, log-linear"]() for _ in range(2))
    whole.fit(weighted(), method="trust-ncg", iterations=6, tolerance=0.0)
    for n in (2, 4, 6):
        parts.fit(weighted(), method="trust-ncg", iterations=n, tolerance=0.0, checkpoint=tmp_path / "run")
    assert ravelled(parts.parameters).tobytes() == ravelled(whole.parameters).tobytes()


def test_an_observed_derivation_has_second_derivatives_by_values() -> None:
    """The log of the squares of two weights: -2 / x**2 for each."""
    free = training.Differentiable({"w/1": [("a",), ("b",)]}, lambda p: p, np.array([0.5, 2.0]), logs=False)
    m = dg.Model(":- semiring real. goal += w(X) * w(X) * w(Y) * w(Y) * seen(X,Y).", {"w": free})
    facts = {"seen/2": [("a", "b"), ("b", "b")]}
    best = next(d for d in m.bound.run(facts).kbest("goal", 2) if "w(a)" in d.facts())
    problem = Problem(m._spec, DataPasses([training.Example(facts, derivation=best)]), in_threads(1))
    found = problem.product(m.parameters, problem.objective(m.parameters)[1], {"w": np.array([1.0, 3.0])})
    assert found["w"] == pytest.approx([-2 / 0.5**2, 3.0 * -2 / 2.0**2], rel=1e-12)


@pytest.mark.parametrize("semiring", ["log", "viterbi"])
def test_values_of_weights_are_not_learned_where_values_are_logs(semiring: str) -> None:
    """Derivatives by the two would differ by a factor: of an observed derivation, too, whose run is not made."""
    free = training.Differentiable({"w/1": [("a",), ("b",)]}, lambda p: p, np.array([0.5, 2.0]), logs=False)
    with pytest.raises(dg.Error, match=rf"net gives the values .*logs=False.* in {semiring} these are logs already"):
        dg.Model(f":- semiring {semiring}. goal += w(X) * seen(X).", {"net": free}, prior=training.L2(1.0))


def test_where_there_are_no_second_derivatives() -> None:
    for objective in (training.Conditional(), training.OfItems(("goal",), lambda x, _: x[0])):
        m = dg.Model(TAGGER.replace("log", "viterbi"), {"w": linear()}, objective=objective)
        with pytest.raises(dg.Error, match="in real, log and plain arithmetic, not in viterbi; a method that asks for"):
            m.fit(weighted(), method="trust-ncg")


@pytest.mark.parametrize("name", ["conditional, log-linear", "values", "risk", "items", "sum"])
def test_data_that_stay_give_the_bits_of_data_that_are_read_anew(name: str) -> None:
    """Of examples that stay as they are, functions of weights are kept from product to product."""
    one, two = MODELS[name](), MODELS[name]()
    data = data_of(one)
    one.fit(data, method="trust-ncg", iterations=2, tolerance=0.0)
    two.fit(lambda: iter(data), method="trust-ncg", iterations=2, tolerance=0.0)
    assert ravelled(one.parameters).tobytes() == ravelled(two.parameters).tobytes()


def test_a_function_of_weights_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    function = dg.Bound.function
    monkeypatch.setattr(dg.Bound, "function", lambda *given: made.append(given[1]) or function(*given))
    MODELS["conditional, log-linear"]().fit(weighted(), method="trust-ncg", iterations=3, tolerance=0.0)
    assert len(made) == 2 * len(weighted())  # of what is observed, and of all


@pytest.mark.parametrize("name", ["risk", "items", "sum"])
def test_truncated_newton_climbs_as_far_as_l_bfgs_for_other_objectives(name: str) -> None:
    priors = {"prior": training.L2(0.3)}
    found = []
    for method in ("l-bfgs", "trust-ncg"):
        made = MODELS[name]()
        m = dg.Model(made.program, {"w": linear()}, objective=made._spec.objective, **priors)
        found.append(m.fit(data_of(m), method=method, tolerance=1e-10, iterations=300).objective)
    assert found[1] == pytest.approx(found[0], rel=1e-8)


def test_an_item_that_is_not_derived_stays_so() -> None:
    data = [training.Example(e.facts, weight=e.weight) for e in weighted()]
    both = training.OfItems(["goal", "at(9,d)"], lambda x, _: own.logaddexp(*x))
    found = []
    for objective in (training.Likelihood(), both):
        m = dg.Model(TAGGER, {"w": linear()}, objective=objective)
        problem = Problem(m._spec, DataPasses(data), in_threads(1))
        along = {"w": np.linspace(-1.0, 2.0, len(m.parameters["w"]))}
        found.append(problem.product(m.parameters, problem.objective(m.parameters)[1], along)["w"])
    assert found[1] == pytest.approx(found[0], rel=1e-9, abs=1e-12)
    assert np.abs(found[0]).max() > 1e-3


# -- entropy -----------------------------------------------------------------------------------------------------------


def chances(m: dg.Model, example: training.Example) -> np.ndarray:
    """The probabilities of all taggings of a sentence, one by one."""
    weights = {key: {tuple(r[:-1]): np.log(r[-1]) for r in table} for key, table in m.weights.items()}
    words = [w for w, _ in example.facts["word/2"]]
    soft = {(t, i): value for t, i, value in example.facts["tag/2"]}
    scores = []
    for tags in itertools.product(TAGS, repeat=len(words)):
        total = 0.0
        for i, (s, t, w) in enumerate(zip(("start", *tags), tags, words, strict=False)):
            total += weights["trans/2"][s, t] + weights["emit/2"][t, w] + soft[t, i]
        scores.append(total)
    found = np.exp(np.array(scores) - np.logaddexp.reduce(scores))
    return found


def test_the_entropy_is_that_of_all_derivations() -> None:
    m = dg.Model(TAGGER, {"w": linear()}, objective=training.Entropy())
    m._theta = {"w": np.random.default_rng(0).standard_normal(len(m.parameters["w"]))}
    for example in weighted(soft=True):
        p = chances(m, example)
        assert m.score([example]) == pytest.approx(example.weight * -(p @ np.log(p)), rel=1e-11)
        assert m.score([example]) == pytest.approx(
            example.weight * m.bound.run(example.facts).entropy("goal"), rel=1e-9
        )


def test_the_gradient_of_a_sum_with_entropy_is_that_of_differences() -> None:
    objective = training.Sum((1.0, training.Conditional()), (-0.7, training.Entropy()))
    m = dg.Model(TAGGER, {"w": linear()}, objective=objective, prior=training.L2(0.1))
    problem = Problem(m._spec, DataPasses(weighted(soft=True)), in_threads(1))
    random = np.random.default_rng(6)
    like = m.parameters
    at, along = (random.standard_normal(len(like["w"])) for _ in range(2))
    slope = m._spec.pull({"w": at}, problem.objective({"w": at})[1])["w"] @ along
    h = 1e-5
    up, down = (problem.objective({"w": at + s * h * along}, gradient=False)[0] for s in (1, -1))
    assert slope == pytest.approx((up - down) / (2 * h), rel=1e-6)
    totals = problem.objective({"w": at})[1]
    assert totals.value == pytest.approx(np.nansum(totals.values * [1.0, 2.0, 3.0]), rel=1e-12)


def test_less_entropy_of_what_is_not_observed_is_more_certainty() -> None:
    """Grandvalet and Bengio's semi-supervised estimate, beside that of what was observed alone."""
    data = weighted()
    unobserved = [training.Example(e.facts) for e in data[2:]]
    plain = dg.Model(TAGGER, {"w": linear()}, objective=training.Conditional(), prior=training.L2(0.05))
    objective = training.Sum((1.0, training.Conditional()), (-1.0, training.Entropy()))
    sharp = dg.Model(TAGGER, {"w": linear()}, objective=objective, prior=training.L2(0.05))
    entropies = []
    for m in (plain, sharp):
        m.fit([*data[:2], *unobserved], method="l-bfgs", iterations=60)
        entropies.append(m.bound.run(unobserved[0].facts).entropy("goal"))
    assert entropies[1] < 0.2 * entropies[0]


def test_the_entropy_is_of_weights_however_they_are_given() -> None:
    found = []
    for values in ("weights", "probabilities"):
        text = ":- semiring log. goal += weight(S) * seen(S) * fixed(S)."
        numbers = [0.25, 0.5] if values == "probabilities" else np.log([0.25, 0.5]).tolist()
        m = dg.Model(
            dg.Program(text, values=values),
            {"w": training.LogLinear({"weight/1": [("a",), ("b",)]})},
            objective=training.Entropy(),
            facts={"fixed/1": list(zip("ab", numbers, strict=True))},
        )
        found.append(m.score([{"seen/1": list(zip("ab", numbers[::-1], strict=True))}]))
    assert found == pytest.approx([np.log(2.0)] * 2, rel=1e-12)


@pytest.mark.parametrize("more", [" fixed(b) = -0.5.", " :- external fixed/1."])
def test_factors_that_no_fact_tells_have_no_entropy(more: str) -> None:
    text = ":- semiring log. goal += weight(S) * seen(S) * fixed(S)." + more
    functions = {"fixed": len} if "external" in more else {}
    linear = training.LogLinear({"weight/1": [("a",), ("b",)]})
    m = dg.Model(dg.Program(text, functions=functions), {"w": linear}, objective=training.Entropy())
    with pytest.raises(dg.Error, match=r"the entropy needs the logs of all factors, and .* fixed/1"):
        m.score([{"seen/1": [("a",), ("b",)]}])


def test_what_has_no_entropy_and_no_sum() -> None:
    m = dg.Model(TAGGER.replace("at(I,S) *", "at(I,S) * 0.5 *"), {"w": linear()}, objective=training.Entropy())
    with pytest.raises(dg.Error, match="has a constant among its own; make it a fact"):
        m.score(weighted())
    m = dg.Model(TAGGER.replace("log", "real"), {"w": linear()}, objective=training.Entropy())
    with pytest.raises(dg.Error, match="in `log`, not real"):
        m.score(weighted())
    with pytest.raises(dg.Error, match="a number and an objective"):
        training.Sum(training.Entropy())  # type: ignore[arg-type]
    with pytest.raises(dg.Error, match="at least one"):
        training.Sum()


def test_an_example_counts_for_all_parts_of_a_sum_or_for_none() -> None:
    data = weighted()
    lost = training.Example(data[0].facts, {"tag/2": [("x", 0)]})
    objective = training.Sum((1.0, training.Conditional()), (-0.5, training.Entropy()))
    m = dg.Model(TAGGER, {"w": linear()}, objective=objective)
    spec = m._spec
    task = spec.task(spec.weights(m.parameters), True, 1)
    both, alone = objective.totals(task, [data[1], lost]), objective.totals(task, [data[1]])
    assert both.value == pytest.approx(alone.value, rel=1e-14)
    for key, x in alone.gradient.items():
        assert both.gradient[key] == pytest.approx(x, abs=1e-14)


PATHS = """
:- semiring log.
:- distribution w(X).  :- distribution v(X).
goal += edge(X,Y) * link(Y,Z) * w(Z) * v(X).
"""


def test_products_are_the_same_to_the_bit_whatever_ran_before() -> None:
    random = np.random.default_rng(0)

    def pairs(count: int) -> list[tuple[int, int, float]]:
        return [(*divmod(int(n), 12), -float(random.random())) for n in random.choice(144, count, replace=False)]

    rows = {key: [(n,) for n in range(12)] for key in ("w/1", "v/1")}
    links = {"link/2": pairs(27)}
    data = [{"edge/2": pairs(count)} for count in random.choice([18, 20, 24, 30, 32], 16)]
    found = set()
    for before in ([], data[::-1], data[7:]):
        m = dg.Model(PATHS, rows, facts=links, prior=training.add_lambda(0.1))
        for some in [before, data] if before else [data]:
            m.fit(some, method="newton-cg", iterations=2, threads=1)
        found.add(b"".join(m.parameters[key].tobytes() for key in rows))
    assert len(found) == 1
