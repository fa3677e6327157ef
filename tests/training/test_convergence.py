"""What a run may say of itself: where it has converged little is left to gain, and it is at no saddle. Costs 25
seconds, of which methods that are scipy's take most."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize  # type: ignore[import-untyped]  # it has no types

import dynagrad as dg
from dynagrad import training
from dynagrad.training.convergence import left_to_gain, text_of
from dynagrad.training.methods import descent
from dynagrad.training.steps import Saddle

TOLERANCE = 1e-6
HMM = dg.Program(""":- semiring log. :- distribution init(T). :- distribution next(S,T) given S.
    :- distribution emit(T,O) given T. at(0,T) += init(T) * emit(T,O) * obs(0,O).
    at(I+1,T) += at(I,S) * next(S,T) * emit(T,O) * obs(I+1,O). goal += at(I,_) * len(I+1).""")
PAIRS = dg.Program(""":- semiring log. :- distribution z(K). :- distribution e(K,O) given K.
    goal += z(K) * e(K,O) * x(O) * e(K,P) * y(P).""")
TREES = dg.Program(""":- semiring log. :- distribution r(X,...) given X.
    phrase(X,I,I+1) += r(X,W) * word(I,W). phrase(X,I,K) += r(X,Y,Z) * phrase(Y,I,J) * phrase(Z,J,K).
    goal += phrase(s,0,N) * len(N).""")


def turns(length: int = 60, seed: int = 1) -> list[dict[str, Any]]:
    """Three states that follow each other, each with a symbol of its own nine times in ten."""
    draw = np.random.default_rng(seed)
    symbols = [int((i + (0 if draw.random() < 0.9 else draw.integers(1, 3))) % 3) for i in range(length)]
    return [{"obs/2": list(enumerate(symbols)), "len/1": [(length,)]}]


def chain(states: int, **options: Any) -> dg.Model:
    rows = {
        "init/1": [(i,) for i in range(states)],
        "next/2": [(i, j) for i in range(states) for j in range(states)],
        "emit/2": [(i, o) for i in range(states) for o in range(3)],
    }
    return dg.Model(HMM, {key: training.Distribution({key: r}, **options) for key, r in rows.items()})


def mixture(**options: Any) -> dg.Model:
    rows = {"z/1": [(k,) for k in range(3)], "e/2": [(k, o) for k in range(3) for o in "abcd"]}
    return dg.Model(PAIRS, {key: training.Distribution({key: r}, **options) for key, r in rows.items()})


def grammar(**options: Any) -> dg.Model:
    rows = {
        "r/2": [(x, w) for x in "sab" for w in "uv"],
        "r/3": [(x, y, z) for x in "sab" for y in "ab" for z in "ab"],
    }
    return dg.Model(TREES, {"r": training.Distribution(rows, **options)})


OF_PAIRS = [{"x/1": [(a,)], "y/1": [(b,)]} for a, b in ("aa", "ab", "bb", "cd", "cc", "dd", "dc", "ab", "aa", "cd")]
OF_TREES = [
    {"word/2": list(enumerate(text)), "len/1": [(len(text),)]}
    for text in ("uv", "uuvv", "uvuv", "vu", "uuv", "v", "uvv")
]
MODELS: dict[str, Any] = {
    "chain of 2": (lambda **o: chain(2, **o), turns()),
    "chain of 4": (lambda **o: chain(4, **o), turns()),
    "mixture": (mixture, OF_PAIRS),
    "grammar": (grammar, OF_TREES),
}


def test_what_is_left_is_a_geometric_series() -> None:
    gains = [0.5**k for k in range(8)]
    assert left_to_gain(np.cumsum(gains).tolist()) == pytest.approx(2.0 - sum(gains))
    assert left_to_gain([1.0]) == left_to_gain([1.0, 2.0]) == left_to_gain([0.0, 1.0, 3.0]) == np.inf
    assert left_to_gain([0.0, 1.0, 1.0]) == left_to_gain([5.0, 5.0]) == 0.0
    assert left_to_gain([0.0, 1.0, 0.5]) == np.inf


# -- where it starts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "method"),
    [(name, method) for name in MODELS for method in ("em", "incremental-em", "l-bfgs")]
    + [("mixture", "annealing"), ("mixture", "variational"), ("mixture", "bfgs")],
)
def test_a_start_where_hidden_states_are_alike_is_warned_of(name: str, method: str) -> None:
    made, data = MODELS[name]
    model = made(initial="uniform")
    with pytest.warns(dg.ProgramWarning, match="at a saddle, which is no maximum: .* alike .* by symmetry"):
        fit = model.fit(data, method=method, **({"start": 0.9} if method == "annealing" else {}))
    assert fit.stopped == "saddle" and not fit.converged


@pytest.mark.parametrize("method", ["em", "online-em"])
def test_so_it_is_where_a_limit_ended_the_run(method: str) -> None:
    with pytest.warns(dg.ProgramWarning, match="at a saddle"):
        fit = mixture(initial="uniform").fit(OF_PAIRS, method=method, iterations=2, tolerance=0.0)
    assert fit.stopped == "iterations"


@pytest.mark.parametrize("states", [2, 3])
def test_annealing_leaves_the_point_to_which_low_powers_bring_all_starts(states: int) -> None:
    """With its defaults: by the power one states are alike to the last bit, unless something is put back."""
    model = chain(states, initial="random")
    fit = model.fit(turns(20), method="annealing", restarts=2, iterations=1000, tolerance=1e-5)
    assert fit.converged and fit.starts[0] != fit.starts[1]
    assert np.ptp(model.weights["emit/2"].values.reshape(states, 3), axis=0).max() > 0.3
    alone = chain(1).score(turns(20)) - 1e-6  # the symmetric point is worth no more than one state
    same = chain(1)
    same.fit(turns(20), iterations=3)
    assert alone < same.score(turns(20)) < fit.objective - 1


@pytest.mark.parametrize("starts", [1, 2])
@pytest.mark.parametrize("drawn", [False, True])
def test_the_advice_about_a_saddle_is_none_that_was_given(starts: int, drawn: bool) -> None:
    text = text_of(Saddle(("a", "b"), False, drawn), starts)
    assert ("initial=" in text) != drawn
    assert ("give fit restarts=" in text.lower()) == (starts == 1)
    assert ("another seed=" in text) == (drawn and starts > 1)


def test_some_states_that_are_alike_are_enough() -> None:
    init = [(i, 1.0) for i in range(3)]
    cells = [(i, j, 1.0) for i in range(3) for j in range(3)]
    emit = [(i, o, 1.0 + (i == 2) * (o == 0)) for i in range(3) for o in range(3)]
    with pytest.warns(dg.ProgramWarning, match="at a saddle"):
        fit = dg.Model(HMM, {"init/1": init, "next/2": cells, "emit/2": emit}).fit(turns(), iterations=1000)
    assert not fit.converged


@pytest.mark.parametrize("noise", [1e-1, 1e-3, 1e-5])
def test_a_start_beside_a_saddle_leaves_it(noise: float) -> None:
    """Three steps of little gain are no convergence, however little it is."""
    draw = np.random.default_rng(0)
    rows = {
        "init/1": [(i, 1 + noise * draw.random()) for i in range(3)],
        "next/2": [(i, j, 1 + noise * draw.random()) for i in range(3) for j in range(3)],
        "emit/2": [(i, o, 1 + noise * draw.random()) for i in range(3) for o in range(3)],
    }
    fit = dg.Model(HMM, rows).fit(turns(), iterations=500)
    assert fit.objective > fit.history[2].objective + 20
    assert fit.converged


@pytest.mark.parametrize("method", ["em", "incremental-em", "variational", "l-bfgs"])
def test_what_is_alike_at_the_maximum_is_not_warned_of(method: str) -> None:
    """Counts of what was seen, two rows of which are alike; and classes that have no effect."""
    text = ":- semiring log. :- distribution e(K,O) given K. goal += e(K,O) * seen(K,O)."
    seen = dg.Model(text, {"e/2": [(k, o) for k in "uvw" for o in "ab"]}, prior=training.add_lambda(0.5))
    assert seen.fit([{"seen/2": [(k, o)]} for k in "uv" for o in "aab"], method=method).converged
    text = ":- semiring log. :- distribution z(K). :- distribution e(K,O) given K. goal += z(K) * e(K,O) * x(O)."
    single = dg.Model(text, {"z/1": [(0,), (1,)], "e/2": [(k, o) for k in (0, 1) for o in "ab"]})
    assert single.fit([{"x/1": [(o,)]} for o in "aab"], method=method).converged


@pytest.mark.filterwarnings("ignore:no example uses a parameter")
@pytest.mark.parametrize(
    ("name", "method"),
    [*((name, "em") for name in MODELS), ("mixture", "incremental-em"), ("chain of 2", "viterbi-em")],
)
def test_from_where_em_has_converged_more_steps_gain_little(name: str, method: str) -> None:
    made, data = MODELS[name]
    some = 0
    for seed in range(2):
        model = made(initial="random")
        fit = model.fit(data, method=method, seed=seed, iterations=200, tolerance=TOLERANCE)
        if fit.converged:
            some += 1
            more = model.fit(
                data, method="viterbi-em" if method == "viterbi-em" else "em", warm=True, iterations=300, tolerance=0
            )
            assert more.objective - fit.objective <= 10 * TOLERANCE * max(1.0, abs(fit.objective)), seed
    assert some


# -- convex problems ---------------------------------------------------------------------------------------------------

CHOICE = ":- semiring {}. goal += s(I,C) * at(I) * may(C){}."
CLASSES = range(3)


def problem(seed: int, kind: str, prior: Any, positive: bool = False) -> tuple[dg.Model, list[Any], Any]:
    """Points with one of three classes and random features, the model of them, and what it is made of."""
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(10, 3, 4)) * 10.0 ** draw.uniform(-1, 1, 4), draw.integers(3, size=10)
    x = np.abs(x) if positive else x
    rows = {"s/2": [(i, c) for i in range(10) for c in CLASSES]}
    weights = training.LogLinear(rows, lambda i, c: {f"w{k}": float(x[i, c, k]) for k in range(4)})
    cost = kind == "margin"
    program = CHOICE.format("log" if kind == "log" else "viterbi", " * cost(C)" if cost else "")
    objective = training.Conditional(cost="cost/1") if cost else training.Conditional()
    model = dg.Model(program, {"s": weights}, objective=objective, prior=prior)
    data = [
        training.Example(
            {"at/1": [(i,)], "may/1": [(c,) for c in CLASSES]}
            | ({"cost/1": [(c, float(c != y[i])) for c in CLASSES]} if cost else {}),
            {"may/1": [(int(y[i]),)]},
        )
        for i in range(10)
    ]

    return model, data, (x, y, cost * (np.arange(3) != y[:, None]))


def likelihood(points: Any, w: Any) -> float:
    x, y, _ = points
    return float(np.sum((x @ w)[np.arange(10), y] - np.logaddexp.reduce(x @ w, axis=1)))


@pytest.mark.parametrize("method", [*descent.SCIPY, "gis"])
def test_where_a_method_has_converged_the_maximum_is_near(method: str) -> None:
    tolerance = 1e-4 if method == "gis" else TOLERANCE  # its steps are many
    for seed in range(2 if method in ("l-bfgs", "bfgs") else 1):
        model, data, points = problem(seed, "log", training.L2(0.05), positive=method == "gis")
        fit = model.fit(data, method=method, iterations=3000, tolerance=tolerance)
        best = optimize.minimize(lambda w, of=points: 0.05 * w @ w - likelihood(of, w), np.zeros(4), tol=1e-10)
        assert fit.converged, seed
        assert -best.fun - fit.objective <= 10 * tolerance * max(1.0, abs(best.fun)), seed


@pytest.mark.parametrize("method", ["l-bfgs", "tnc"])
@pytest.mark.parametrize("strength", [0.3, 3.0])
def test_with_an_l1_prior_it_is(method: str, strength: float) -> None:
    for seed in range(2):
        model, data, points = problem(seed, "log", training.L1(strength))
        fit = model.fit(data, method=method, iterations=3000, tolerance=TOLERANCE)

        def negative(both: Any, of: Any = points) -> float:
            return strength * float(both.sum()) - likelihood(of, both[:4] - both[4:])

        options = {"ftol": 1e-12, "maxiter": 2000}
        best = optimize.minimize(negative, np.full(8, 0.1), bounds=[(0, None)] * 8, method="SLSQP", options=options)
        assert fit.converged, seed
        assert -best.fun - fit.objective <= 10 * TOLERANCE * max(1.0, abs(best.fun)), seed


def largest(points: Any, prior: float) -> float:
    """The maximum where the best class counts: a smooth problem, with a bound of the scores of each point."""
    x, y, cost = points
    own = x[np.arange(10), y]

    def negative(v: Any) -> tuple[float, Any]:
        w, top = v[:4], v[4:]
        return float(top.sum() - (own @ w).sum() + prior * w @ w), np.r_[2 * prior * w - own.sum(0), np.ones(10)]

    rows = np.repeat(np.eye(10), 3, axis=0)
    above = {
        "type": "ineq",
        "fun": lambda v: (v[4:, None] - x @ v[:4] - cost).ravel(),
        "jac": lambda v: np.hstack([-x.reshape(30, 4), rows]),
    }
    options = {"ftol": 1e-12, "maxiter": 1000}
    found = optimize.minimize(negative, np.r_[np.zeros(4), np.ones(10)], jac=True, constraints=above, options=options)
    assert found.success
    return -float(found.fun)


@pytest.mark.parametrize("kind", ["margin", "perceptron"])
@pytest.mark.parametrize("method", [m for m in descent.SCIPY if m not in descent.SECOND])
def test_where_there_are_kinks_it_is_not_said_off_the_maximum(kind: str, method: str) -> None:
    for seed in range(3 if method == "l-bfgs" else 1):
        model, data, points = problem(seed, kind, training.L2(0.1))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fit = model.fit(data, method=method, iterations=40)
        if fit.converged:
            assert largest(points, 0.1) - fit.objective <= 1e-3, seed
        else:
            assert fit.stopped in ("iterations", "no better step")
            kinks = any("the objective has kinks, where derivations of equal weight" in str(w.message) for w in said)
            assert kinks == (fit.stopped == "no better step")
