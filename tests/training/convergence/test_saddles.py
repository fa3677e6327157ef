"""Where a run says that it has converged it is at no saddle, and where a limit ended it that is looked at, too."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.training.convergence.saddles import text_of
from dynagrad.training.steps import Saddle
from training.hidden import HMM, MODELS, chain, turns


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


@pytest.mark.parametrize(
    "method", ["em", "online-em", "incremental-em", "adam", "adagrad", "sgd", "perceptron", "l-bfgs"]
)
@pytest.mark.parametrize("name", list(MODELS))
def test_so_it_is_where_a_limit_ended_the_run(name: str, method: str) -> None:
    """Whatever else its steps have still to do."""
    made, data = MODELS[name]
    with pytest.warns(dg.ProgramWarning, match="at a saddle"):
        fit = made(initial="uniform").fit(data, method=method, iterations=2, tolerance=0.0)
    assert fit.stopped in ("iterations", "saddle")  # some stand still by then


LINKS = """:- semiring log. :- distribution t(W,V) given W.
    done(0). done(J+1) += done(J) * source(_,W) * t(W,V) * target(J,V). goal += done(N) * length(N)."""
"""Model 1 of IBM: its likelihood is a concave function of the probabilities, so it has no saddle."""
SENTENCES = [("the house", "la casa"), ("the blue house", "la casa blu"), ("blue flower", "fiore blu")]


@pytest.mark.parametrize("method", ["em", "online-em", "incremental-em", "adam", "sgd", "l-bfgs"])
@pytest.mark.parametrize("iterations", [1, 2, 5, 20])
def test_words_that_are_alike_are_no_saddle(method: str, iterations: int) -> None:
    """`the` and `house` occur together, and have the same numbers for ever: which has which is all the same."""
    pairs = [(one.split(), other.split()) for one, other in SENTENCES]
    rows = sorted({(w, v) for source, target in pairs for w in source for v in target})
    model = dg.Model(LINKS, {"t": training.Distribution({"t/2": rows})})
    data = [{"source/2": list(enumerate(s)), "target/2": list(enumerate(t)), "length/1": [(len(t),)]} for s, t in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(data, method=method, iterations=iterations, tolerance=0.0)
    table = model.weights["t/2"]
    assert table["the", "casa"] == pytest.approx(table["house", "casa"], rel=1e-9)
    likelihoods = []
    for apart in (0.0, 1e-3, 0.1, 0.3):  # the two words part, each with what the other loses: nothing is gained
        moved = {(w, v): p + apart * _side(w, v) * table["the", "casa"] for w, v, p in table}
        likelihoods.append(_of_pairs(pairs, moved))
    assert max(likelihoods) <= likelihoods[0] + 1e-9


def _side(word: str, other: str) -> int:
    """Which way it moves: `the` towards `la`, and `house` towards `casa`."""
    return {("the", "la"): 1, ("the", "casa"): -1, ("house", "la"): -1, ("house", "casa"): 1}.get((word, other), 0)


def _of_pairs(pairs: Any, table: Any) -> float:
    return sum(np.log(sum(table[w, v] for w in source)) for source, target in pairs for v in target)


def test_groups_that_are_alike_by_chance_are_no_saddle() -> None:
    """They have the same numbers to begin with, and steps part them, as their counts are not the same."""
    program = """:- semiring log. :- distribution z(K). :- distribution e(K,O) given K.
        goal += z(K) * e(K,O) * x(O) * e(K,P) * y(P) * may(K)."""
    rows = {"e/2": [(k, o) for k in range(2) for o in "ab"], "z/1": [(0, 0.7), (1, 0.3)]}
    data = [
        {"x/1": [(a,)], "y/1": [(b,)], "may/1": [(0, 0.0), (1, 1.0 if a == b else -1.0)]} for a, b in ("aa", "bb", "ab")
    ]
    for method in ("sgd", "adam"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dg.Model(program, rows).fit(data, method=method, iterations=1, tolerance=0.0, rate=1e-12)


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
