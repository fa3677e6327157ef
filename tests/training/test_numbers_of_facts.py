"""What numbers of rows mean: values of parameters are weights to begin with, those of all other facts the program's."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import numpy as dnp
from dynagrad import training

RULE = "goal += p(X) * fixed(X) * seen(X)."
P, F, S = (np.array(x) for x in ([0.25, 0.75], [0.5, 0.1], [0.3, 0.9]))
PROGRAMS = {
    (semiring, values): dg.Program(f":- semiring {semiring}. {RULE}", values=values)
    for semiring, values in product(("real", "log", "viterbi"), ("weights", "probabilities"))
    if semiring != "real" or values == "weights"
}


def rows(numbers: Any) -> list[tuple[str, float]]:
    return list(zip("ab", np.asarray(numbers, float).tolist(), strict=True))


def told(make: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made = make()
    return made, [str(w.message) for w in found]


KINDS: dict[str, Any] = {
    "distribution": lambda: {"p": training.Distribution({"p/1": rows(P)})},
    "counts of a distribution": lambda: {"p": training.Distribution({"p/1": rows(8 * P)})},
    "log-linear": lambda: {"p": training.LogLinear({"p/1": rows(P)})},
    "log-linear in groups": lambda: {"p": training.LogLinear({"p/1": rows(8 * P)}, given=())},
    "features that begin there": lambda: {
        "p": training.LogLinear({"p/1": rows(P)}, lambda x: [x], initial={"a": np.log(P[0]), "b": np.log(P[1])})
    },
    "function": lambda: {"p": training.Differentiable({"p/1": rows(P)}, lambda w: w, np.log(P))},
}


@pytest.mark.parametrize("semiring", [":".join(names) for names in PROGRAMS])
def test_one_rule_for_every_parametrisation_and_every_place_of_facts(semiring: str) -> None:
    program = PROGRAMS[tuple(semiring.split(":"))]  # type: ignore[index]
    best = program.semiring == "viterbi"
    logs = program.semiring != "real" and semiring.endswith("weights")
    scale = np.log if logs else np.asarray
    terms = P * F * S
    wanted = float(np.log(terms.max() if best else terms.sum()))
    for kind, make in KINDS.items():
        for place in ("model", "example", "observed", "model and example"):
            shared: dict[str, Any] = {}
            facts: dict[str, Any] = {"seen/1": rows(scale(S))}
            observed: dict[str, Any] = {}
            fixed = rows(scale(F))
            match place:
                case "model":
                    shared["fixed/1"] = fixed
                case "example":
                    facts["fixed/1"] = fixed
                case "observed":
                    observed["fixed/1"] = fixed
                case "model and example":
                    shared["fixed/1"], facts["fixed/1"] = fixed[:1], fixed[1:]
            model, said = told(lambda make=make, shared=shared: dg.Model(program, make(), facts=shared))
            assert model.score([training.Example(facts, observed)]) == pytest.approx(wanted, abs=1e-12), (kind, place)
            assert model.weights["p/1"].values == pytest.approx(P, abs=1e-12), kind
            assert not said, (kind, said)


def test_values_of_plain_rows_are_where_training_begins() -> None:
    for program in ("real", "log"):
        text = f":- semiring {program}. :- distribution p(X). {RULE}"
        assert dg.Model(text, {"p/1": rows(P)}).weights["p/1"].values == pytest.approx(P)
    plain = training.Differentiable({"p/1": rows(P)}, lambda w: w, P, logs=False)
    assert dg.Model(RULE, {"p": plain}).weights["p/1"].values == pytest.approx(P)


def test_values_that_count_for_nothing_are_warned_of() -> None:
    other = {"p/1": rows([0.25, 0.5])}
    for parts in (
        {"p": training.LogLinear(other, lambda x: [x])},
        {"p": training.LogLinear(other, initial=0.5)},
        {"p": training.Differentiable(other, lambda w: dnp.array([w, w]), 0.0)},
    ):
        _, said = told(lambda parts=parts: dg.Model(PROGRAMS["log", "weights"], parts))
        assert len(said) == 1 and "has the value 0.25, which counts for nothing" in said[0], parts


def test_first_probabilities_that_do_not_sum_to_one_are_warned_of() -> None:
    rules = ":- semiring log. :- distribution q(K,X) given K. goal += q(_,X) * seen(X)."
    for values, groups in (
        ([0.2, 0.2, 0.5, 0.5], "given a sum to 0.4"),
        ([0.2, 0.2, 0.6, 0.6], "given a sum to 0.4.*1 more"),
        ([0.5, 0.5, 0.7, 0.7], "given b sum to 1.4"),
        ([0.5, 0.5, 0.1, 0.0], "given b sum to 0.1"),
    ):
        pairs = [(k, x, v) for (k, x), v in zip(product("ab", "xy"), values, strict=True)]
        for parts in ({"q/2": pairs}, {"q": training.Distribution({"q/2": pairs}, given=0)}):
            with pytest.warns(dg.ProgramWarning, match=groups) as found:
                model = dg.Model(rules, parts)
            assert len(found) == 1 and "normalised" in str(found[0].message)
            assert model.weights["q/2"].values.reshape(2, 2).sum(axis=1) == pytest.approx(1.0)
    for fine in ([3.0, 1.0, 0.5, 0.5], [0.333, 0.667, 1.0, 0.0], [2.0, 0.5, 1.0, 1.0]):
        pairs = [(k, x, v) for (k, x), v in zip(product("ab", "xy"), fine, strict=True)]
        assert not told(lambda pairs=pairs: dg.Model(rules, {"q/2": pairs}))[1]
