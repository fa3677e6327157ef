"""Groups that a program declares, for rows and for parametrisations of every kind. Costs three seconds."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.numpy import exp, log
from dynagrad.numpy import sum as total

TEXT = """:- semiring log. :- input free/1. :- input y/1. :- distribution z(K). :- distribution e(K,O) given K.
    goal += z(K) * e(K,O) * x(O). goal += free(K) * z(K) * e(K,O) * y(O)."""
PROGRAM = dg.Program(TEXT)
Z = {"z/1": [(k,) for k in (0, 1)]}
E = {"e/2": [(k, o) for k in (0, 1) for o in "abc"]}
DATA = [{"x/1": [(o,)]} for o in "aab"]


def made(*parts: dict[str, Any]) -> dg.Model:
    return dg.Model(PROGRAM, {name: p for part in parts for name, p in part.items()})


def sums(model: dg.Model) -> dict[Any, float]:
    found: dict[Any, float] = defaultdict(float)
    for k, p in model.weights["z/1"]:
        found["z"] += p
        assert k in (0, 1)
    for k, _, p in model.weights["e/2"]:
        found[k] += p
    return dict(found)


ONE = {"z": pytest.approx(1.0), 0: pytest.approx(1.0), 1: pytest.approx(1.0)}


@pytest.mark.parametrize(
    "parts",
    [
        {**Z, "e": training.Distribution(E, initial="random")},
        {
            **Z,
            "e": training.Distribution(E, initial="uniform", tied=lambda k, o: o),
        },  # which no single group could have
        {**Z, "e": training.Distribution(E, frozen=lambda k, o: k == 0)},
        {**Z, "e": training.Distribution(E, 0)},
        {**Z, "e": training.Distribution(E, [0])},
        {**Z, "e": training.Distribution(E, lambda k, o: f"state {k}")},
        {**Z, "e": training.Distribution(E, groups=[k for k, _ in E["e/2"]])},
        {"both": training.Distribution({**Z, **E}, initial="random")},
        {"both": training.Distribution({**E, **Z}, groups=[*(k for k, _ in E["e/2"]), "z", "z"])},
        {"z": training.Distribution(Z), "e": training.Distribution(E)},
    ],
    ids=["random", "tied", "frozen", "place", "places", "function", "names", "two", "two named", "each"],
)
def test_a_distribution_is_in_the_groups_that_are_declared(parts: dict[str, Any]) -> None:
    model = made(parts)
    assert sums(model) == ONE
    model.fit(DATA, iterations=2)
    assert sums(model) == ONE


@pytest.mark.parametrize("features", [None, lambda k, o: [o, f"{k} {o}"]])
@pytest.mark.parametrize("given", [None, 0])
def test_log_linear_weights_are_normalised_in_the_groups_that_are_declared(features: Any, given: Any) -> None:
    weights = training.LogLinear(E, features, given, noise=1.0)
    model = made({**Z, "e": weights})
    assert sums(model) == ONE
    model.fit(DATA, method="l-bfgs", iterations=2, tolerance=0.0)
    assert sums(model) == ONE


def test_places_are_of_each_declaration_by_itself() -> None:
    text = """:- semiring log. :- distribution n(K,L) given K. :- distribution e(K,O) given K.
        goal += n(K,_) * e(K,O) * x(O)."""
    rows = {"n/2": [(k, m) for k in (0, 1) for m in (0, 1)], **E}
    for p in (training.Distribution(rows, 0, initial="random"), training.LogLinear(rows, None, 0, noise=1.0)):
        model = dg.Model(text, {"both": p})
        for key in rows:
            assert sum(p for k, _, p in model.weights[key] if k == 1) == pytest.approx(1.0)


def test_one_log_linear_parametrisation_of_two_distributions() -> None:
    assert sums(made({"both": training.LogLinear({**Z, **E}, noise=1.0)})) == ONE


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({**Z, "e": training.Distribution(E, 1)}, r"e\(0,a\) and e\(1,a\) sum to one together .* `e\(K,O\) given K`"),
        ({**Z, "e": training.Distribution(E, [0, 1])}, r"e\(0,a\) and e\(0,b\) do not sum to one together by `given`"),
        ({**Z, "e": training.Distribution(E, [])}, r"e\(0,a\) and e\(1,a\) sum to one together by `given`"),
        ({**Z, "e": training.LogLinear(E, given=1)}, r"e\(0,a\) and e\(1,a\) sum to one together by `given`, and"),
        ({"both": training.Distribution({**Z, **E}, lambda *row: 0)}, r"z\(0\) and e\(0,a\) sum to one together"),
        (
            {**Z, "e": training.Distribution({**E, "free/1": [(0,), (1,)]})},
            r"nothing says which rows free\(0\) sums to one with: the program declares `e\(K,O\) given K`",
        ),
        ({**Z, "e": training.Distribution(E, tied=lambda k, o: k)}, "two rows given 0 share a parameter"),
    ],
)
def test_other_groups_are_errors(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(dg.Error, match=message):
        made(parts)


def test_what_is_declared_as_one_is_in_one_parametrisation() -> None:
    text = ":- semiring log. :- distribution r(X,...) given X. goal += r(_,Y) * x(Y). goal += r(_,Y,Z) * x(Y) * x(Z)."
    two, three = {"r/2": [("s", "a"), ("s", "b")]}, {"r/3": [("s", "a", "b")]}
    for parts in (
        {"two": training.Distribution(two), "three": training.Distribution(three)},
        {**two, "three": training.Distribution(three)},
    ):
        with pytest.raises(dg.Error, match=r"r/[23] and r/[23] are one distribution by `r\(X,...\) given X`"):
            dg.Model(text, parts)
    model = dg.Model(text, {"r": training.Distribution({**two, **three}, initial="random")})
    assert sum(p for key in ("r/2", "r/3") for *_, p in model.weights[key]) == pytest.approx(1.0)


def test_a_distribution_of_what_is_not_declared_is_one_group_and_may_be_used_again() -> None:
    rows = training.Distribution({"free/1": [(0, 1.0), (1, 3.0)]})
    model = made({**Z, **E, "free": rows})
    assert model.weights["free/1"].values.tolist() == pytest.approx([0.25, 0.75])
    tied = training.Distribution(E, tied=lambda k, o: o)
    with pytest.raises(dg.Error, match="two rows given nothing share a parameter"):
        dg.Model(":- semiring log. goal += e(_,O) * x(O).", {"e": tied})
    assert sums(made({**Z, "e": tied})) == ONE


def test_functions_that_do_not_normalise_what_is_declared_are_warned_of() -> None:
    def softmax(w: Any) -> Any:
        return (w.reshape(2, 3) - log(total(exp(w.reshape(2, 3)), axis=1))[:, None]).ravel()

    start = np.linspace(-1.0, 1.0, 6)
    with pytest.warns(dg.ProgramWarning, match=r"declares `e\(K,O\) given K`, and the function of 'e' gives e\(0,a\)"):
        made({**Z, "e": training.Differentiable(E, lambda w: w, start)})
    assert sums(made({**Z, "e": training.Differentiable(E, softmax, start)})) == ONE


def test_groups_stay_when_a_model_is_loaded(tmp_path: Any) -> None:
    pytest.importorskip("pyarrow")
    model = made({"both": training.Distribution({**Z, **E}, initial="random")})
    model.save(tmp_path / "m")
    again = dg.load_model(tmp_path / "m")
    for one in (model, again):
        one.fit(DATA, iterations=3)
    assert again.parameters["both"].tobytes() == model.parameters["both"].tobytes()


def test_a_random_start_is_drawn_evenly_from_all_distributions() -> None:
    """Of a Dirichlet of ones over n, the variance of each probability is (n - 1) / n^2 (n + 1), and its mean 1 / n."""
    many = training.Distribution({"p/2": [(g, i) for g in range(4000) for i in range(4)]}, 0, initial="random")
    drawn = np.exp(many.start(np.random.default_rng(0))).reshape(4000, 4)
    assert drawn.sum(axis=1) == pytest.approx(1.0)
    assert drawn.mean(axis=0) == pytest.approx(0.25, abs=0.01)
    assert drawn.var(axis=0) == pytest.approx(3 / 80, rel=0.1)
    assert (drawn[:, 0] > 0.7).mean() == pytest.approx(0.3**3, abs=0.01)
