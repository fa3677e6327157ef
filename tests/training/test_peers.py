"""Models held against other libraries, and EM of a grammar against inside-outside in numpy. Costs eight seconds.

Each test of a library is skipped where it is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.training.examples import DataPasses
from dynagrad.training.problem import Problem
from dynagrad.training.workers import in_threads
from training.chains import HMM

# -- a hidden Markov model, and hmmlearn's -----------------------------------------------------------------------------


def test_em_of_an_hmm_is_hmmlearns_step_by_step() -> None:
    hmm = pytest.importorskip("hmmlearn.hmm")
    states, words, random = 4, 7, np.random.default_rng(3)
    init = random.dirichlet(np.ones(states))
    trans = random.dirichlet(np.ones(states), states)
    emit = random.dirichlet(np.ones(words), states)
    sequences = [random.integers(0, words, length) for length in (1, 5, 9, 12, 30, 2)]
    rows = {
        "init/1": [(s, init[s]) for s in range(states)],
        "trans/2": [(s, t, trans[s, t]) for s in range(states) for t in range(states)],
        "emit/2": [(s, w, emit[s, w]) for s in range(states) for w in range(words)],
    }
    data = [{"word/2": [(int(w), i) for i, w in enumerate(s)], "last/1": [(len(s) - 1,)]} for s in sequences]
    mine = dg.Model(HMM, rows)
    for steps in range(1, 7):
        peer = hmm.CategoricalHMM(states, n_features=words, n_iter=steps, tol=-np.inf, init_params="")
        peer.startprob_, peer.transmat_, peer.emissionprob_ = init, trans, emit
        peer.fit(np.concatenate(sequences)[:, None], list(map(len, sequences)))
        fit = mine.fit(data, iterations=steps, tolerance=0.0)
        assert [r.data for r in fit.history] == pytest.approx(list(peer.monitor_.history), rel=1e-11)
        assert mine.weights["init/1"].values == pytest.approx(peer.startprob_, abs=1e-11)
        assert mine.weights["trans/2"].values == pytest.approx(peer.transmat_.ravel(), abs=1e-11)
        assert mine.weights["emit/2"].values == pytest.approx(peer.emissionprob_.ravel(), abs=1e-11)


# -- maximum entropy, and scikit-learn's -------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.05, 2.0])
def test_maximum_entropy_is_scikit_learns_logistic_regression(strength: float) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    random = np.random.default_rng(0)
    points, features, classes = 60, 4, 3
    x, y = random.standard_normal((points, features)), random.integers(0, classes, points)
    peer = linear_model.LogisticRegression(C=1 / (2 * strength), fit_intercept=False, tol=1e-12, max_iter=10_000)
    peer.fit(x, y)
    rows = {"class/2": [(n, c) for n in range(points) for c in range(classes)]}
    linear = training.LogLinear(rows, lambda n, c: {f"{j}-{c}": x[n, j] for j in range(features)}, given=0)
    model = dg.Model(":- semiring log. goal += class(N,C) * seen(N,C).", {"w": linear}, prior=training.L2(strength))
    data = [{"seen/2": [(n, int(y[n]))]} for n in range(points)]
    fit = model.fit(data, method="l-bfgs", tolerance=1e-16, iterations=500)
    found = dict(zip(linear.names(), model.parameters["w"], strict=True))
    weights = [[found[f"{j}-{c}"] for j in range(features)] for c in range(classes)]
    assert np.array(weights) == pytest.approx(peer.coef_, abs=1e-6)
    scores = x @ peer.coef_.T
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    objective = logs[np.arange(points), y].sum() - strength * (peer.coef_**2).sum()
    assert fit.objective == pytest.approx(objective, rel=1e-9)


# -- a conditional random field, and CRFsuite's ------------------------------------------------------------------------

CRF = """
:- semiring log.
at(0,T) += emit(T,X) * seen(X,0) * tag(T,0).
at(J,T) += at(I,S) * trans(S,T) * emit(T,X) * seen(X,J) * tag(T,J) for J = I+1.
goal += at(N,_) * last(N).
"""
TAGS = ("a", "b", "c")


def attributes(kind: int) -> list[str]:
    """The features of a kind of word: itself, and three that it shares with others."""
    return [f"word={kind}", f"third={kind % 3}", f"half={kind % 2}", "bias"]


@pytest.mark.parametrize("penalty", [0.1, 1.0])
def test_a_crf_is_crfsuites(penalty: float, tmp_path: Any) -> None:
    suite = pytest.importorskip("pycrfsuite")
    random = np.random.default_rng(1)
    kinds = 8
    sentences = [
        [(int(k), TAGS[(int(k) + (random.random() < 0.3) + (i % 2)) % 3]) for i, k in enumerate(ks)]
        for ks in (random.integers(0, kinds, n) for n in random.integers(1, 9, 40))
    ]
    trainer = suite.Trainer(algorithm="lbfgs", verbose=False)
    options = {"c1": 0.0, "c2": penalty, "max_iterations": 1000, "epsilon": 1e-9, "delta": 1e-12, "num_memories": 20}
    trainer.set_params({**options, "feature.possible_states": True, "feature.possible_transitions": True})
    for sentence in sentences:
        trainer.append([attributes(k) for k, _ in sentence], [t for _, t in sentence])
    trainer.train(str(tmp_path / "model"))
    loss = trainer.logparser.last_iteration["loss"]

    emit = training.LogLinear(
        {"emit/2": [(t, k) for t in TAGS for k in range(kinds)]}, lambda t, k: [(a, t) for a in attributes(k)]
    )
    trans = training.LogLinear({"trans/2": [(s, t) for s in TAGS for t in TAGS]}, lambda s, t: [(s, t)])
    parameters = {"emit": emit, "trans": trans}
    model = dg.Model(CRF, parameters, objective=training.Conditional(), prior=training.L2(penalty))
    data = [
        training.Example(
            {
                "seen/2": [(k, i) for i, (k, _) in enumerate(s)],
                "tag/2": [(t, i) for i in range(len(s)) for t in TAGS],
                "last/1": [(len(s) - 1,)],
            },
            {"tag/2": [(t, i) for i, (_, t) in enumerate(s)]},
        )
        for s in sentences
    ]
    fit = model.fit(data, method="l-bfgs", iterations=500, tolerance=1e-14)
    assert -fit.objective == pytest.approx(loss, abs=1e-4)

    # And at the weights that CRFsuite found the two are the same function.
    tagger = suite.Tagger()
    tagger.open(str(tmp_path / "model"))
    info = tagger.info()
    theta = {
        "emit": np.array([info.state_features.get((a, t), 0.0) for a, t in emit.features]),
        "trans": np.array([info.transitions.get((s, t), 0.0) for s, t in trans.features]),
    }
    value, _ = Problem(model._spec, DataPasses(data), in_threads(1)).objective(theta)
    assert -value == pytest.approx(loss, abs=1e-4)


# -- inside-outside ----------------------------------------------------------------------------------------------------

CKY = """
:- semiring {}.
:- distribution rewrite(X,...) given X.
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit(0,0,N) * end(N).
"""
SYMBOLS, WORDS = 3, 4
Counts = tuple[float, np.ndarray, np.ndarray]


def grammar() -> tuple[np.ndarray, np.ndarray]:
    """A random grammar: binary rules, and lexical ones; those of a symbol sum to one together."""
    both = np.random.default_rng(4).dirichlet(np.ones(SYMBOLS**2 + WORDS), SYMBOLS)
    return both[:, : SYMBOLS**2].reshape(SYMBOLS, SYMBOLS, SYMBOLS), both[:, SYMBOLS**2 :]


def sentences() -> list[list[int]]:
    random = np.random.default_rng(5)
    return [random.integers(0, WORDS, n).tolist() for n in (1, 2, 3, 4, 5, 6, 7)]


def inside_outside(binary: np.ndarray, lexical: np.ndarray, sentence: list[int]) -> Counts:
    """log p, and the expected counts of both kinds of rules (Baker 1979; Lari and Young 1990)."""
    n = len(sentence)
    inside, outside = (np.zeros((n + 1, n + 1, SYMBOLS)) for _ in range(2))
    for i, w in enumerate(sentence):
        inside[i, i + 1] = lexical[:, w]
    for i, j, k in spans(n):
        inside[i, k] += np.einsum("xyz,y,z->x", binary, inside[i, j], inside[j, k])
    outside[0, n, 0] = 1.0
    rules, words = np.zeros_like(binary), np.zeros_like(lexical)
    for i, j, k in reversed(list(spans(n))):
        uses = binary * outside[i, k][:, None, None] * inside[i, j][:, None] * inside[j, k]
        outside[i, j] += np.einsum("xyz,x,z->y", binary, outside[i, k], inside[j, k])
        outside[j, k] += np.einsum("xyz,x,y->z", binary, outside[i, k], inside[i, j])
        rules += uses
    for i, w in enumerate(sentence):
        words[:, w] += outside[i, i + 1] * lexical[:, w]
    total = inside[0, n, 0]
    return float(np.log(total)), rules / total, words / total


def spans(n: int) -> Iterator[tuple[int, int, int]]:
    """Spans from short to long, with the places where they can be split."""
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            for j in range(i + 1, i + width):
                yield i, j, i + width


def cky_model(semiring: str) -> dg.Model:
    binary, lexical = grammar()
    return dg.Model(
        CKY.format(semiring),
        {
            "rewrite/3": [(x, y, z, p) for (x, y, z), p in np.ndenumerate(binary)],
            "rewrite/2": [(x, w, p) for (x, w), p in np.ndenumerate(lexical)],
        },
    )


def cky_data() -> list[dict[str, Any]]:
    return [{"word/3": [(w, i, i + 1) for i, w in enumerate(s)], "end/1": [(len(s),)]} for s in sentences()]


def counted(binary: np.ndarray, lexical: np.ndarray) -> Counts:
    """Of all sentences."""
    found = [inside_outside(binary, lexical, s) for s in sentences()]
    return sum(f[0] for f in found), np.add.reduce([f[1] for f in found]), np.add.reduce([f[2] for f in found])


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_em_of_a_grammar_is_inside_outside_step_by_step(semiring: str) -> None:
    model = cky_model(semiring)
    fit = model.fit(cky_data(), iterations=8, tolerance=0.0)
    binary, lexical = grammar()
    totals = []
    for _ in range(8):
        total, rules, words = counted(binary, lexical)
        sums = rules.sum((1, 2)) + words.sum(1)
        binary, lexical = rules / sums[:, None, None], words / sums[:, None]
        totals.append(total)
    assert [r.data for r in fit.history] == pytest.approx(totals, rel=1e-12)
    assert model.weights["rewrite/3"].values == pytest.approx(binary.ravel(), abs=1e-13)
    assert model.weights["rewrite/2"].values == pytest.approx(lexical.ravel(), abs=1e-13)


def test_expected_counts_are_parameters_times_the_gradient() -> None:
    """The gradient by probabilities, as a batch in `real` has it; in `log` the gradient by logs is the count itself."""
    binary, lexical = grammar()
    _, rules, words = counted(binary, lexical)
    facts = {"rewrite/3": binary, "rewrite/2": lexical}
    bound = dg.Program(CKY.format("real")).bind(facts)
    batch = bound.run_batch(cky_data(), query="goal", gradient=list(facts), objective="log")
    assert binary * batch.gradient["rewrite/3"].values == pytest.approx(rules, rel=1e-11)
    assert lexical * batch.gradient["rewrite/2"].values == pytest.approx(words, rel=1e-11)
    for semiring in ("real", "log"):
        spec = cky_model(semiring)._spec
        totals = Problem(spec, DataPasses(cky_data()), in_threads(1)).totals(spec.weights(spec.start(0)))
        assert totals.gradient["rewrite/3"] == pytest.approx(rules.ravel(), rel=1e-11)
        assert totals.gradient["rewrite/2"] == pytest.approx(words.ravel(), rel=1e-11)
