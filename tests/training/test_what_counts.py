"""Which examples count, which are errors, and who says how many did. Costs five seconds."""

from __future__ import annotations

import csv
import json
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dynagrad as dg
from dynagrad import cli, training
from dynagrad.charts.program import Bound
from dynagrad.training.problem import MISSING
from dynagrad.training.reports.progress import line_of
from dynagrad.training.reports.records import Record

LOG = dg.Program(":- semiring log. :- distribution p(X). goal += p(X) * seen(X) * loss(X).")
REAL = dg.Program(":- semiring real. :- distribution p(X). goal += p(X) * seen(X) * loss(X).")
VITERBI = dg.Program(":- semiring viterbi. goal += p(X) * seen(X) * loss(X).")
ROWS = {"p/1": [("a",), ("b",)]}
LOSS = {"loss/1": [("a", -0.5), ("b", -0.25)]}
OBJECTIVES: dict[str, Any] = {
    "likelihood": training.Likelihood(),
    "conditional": training.Conditional(),
    "conditional with costs": training.Conditional(cost="loss/1"),
    "risk": training.Risk("loss/1"),
    "entropy": training.Entropy(),
    "items": training.OfItems(["goal"], lambda x, _: x[0]),
    "sum": training.Sum((1.0, training.Conditional()), (1.0, training.Risk("loss/1"))),
}
WRONG: dict[str, Any] = {
    "too wide": [("a", "b", "c")],
    "too narrow": [()],
    "a scalar": 3,
    "a scalar for a row": [3],
    "NaN": [("a", float("nan"))],
    "infinite": [("a", float("inf"))],
    "a text": "ab",
    "a text for a value": [("a", "x")],
    "a text for a value in a dict": {"a": "x"},
    "rows of two widths": [("a",), ("b", 1.0, 2.0)],
    "nothing": None,
    "a cube": np.zeros((2, 2, 2)),
    "a frame with NaN": {"x": ["a", "b"], "value": [1.0, float("nan")]},
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.ProgramWarning)
        yield


def model(objective: Any = None, program: dg.Program = LOG, **more: Any) -> dg.Model:
    parts: Any = {"p": training.LogLinear(ROWS)} if program is VITERBI else ROWS
    return dg.Model(program, parts, objective=objective, **more)


GOOD = training.Example({"seen/1": [("a",), ("b",)], **LOSS}, {"seen/1": [("a",)]})
UNDERIVED = training.Example({"seen/1": [("c",)], **LOSS}, {"seen/1": [("c",)]})


@pytest.mark.parametrize("kind", WRONG)
def test_facts_that_are_none_are_errors_whatever_is_said_of_missing_ones(kind: str) -> None:
    """In all objectives, places of facts and calls; the example is named."""
    rows = WRONG[kind]
    for n, objective in enumerate(OBJECTIVES.values()):
        m = model(objective)
        for key in ("seen/1", "loss/1"):
            wrong = [
                training.Example({**GOOD.facts, key: rows}, GOOD.observed, name="the odd one"),
                {**GOOD.facts, key: rows},
            ]
            wrong.append(training.Example(GOOD.facts, {key: rows}))
            if isinstance(objective, training.Likelihood | training.OfItems) and key == "seen/1":
                wrong = wrong[1:]  # in the first, what was observed stands in place of them
            for example in wrong:
                missing = MISSING[n % 3]
                with pytest.raises(dg.FactError, match=rf"^example 1(?: \(the odd one\))?: {key}"):
                    m.score([GOOD, example], missing=missing)
                with pytest.raises(dg.FactError, match=rf"^example 1(?: \(the odd one\))?: {key}"):
                    m.fit([GOOD, example], method=("l-bfgs", "sgd", "adam")[n % 3], missing=missing, iterations=2)


def test_wrong_facts_in_each_method_and_semiring_and_in_held_out_data() -> None:
    odd = {**GOOD.facts, "seen/1": [("a", "b", "c")]}
    methods = ("em", "viterbi-em", "online-em", "incremental-em", "annealing", "variational", "l-bfgs", "sgd")
    for program in (LOG, REAL):
        facts = {**GOOD.facts, "loss/1": [("a", 0.5), ("b", 0.25)]}
        for method in methods:
            with pytest.raises(dg.FactError, match=r"^example 1: seen/1"):
                model(program=program).fit([facts, {**facts, **odd, "loss/1": facts["loss/1"]}], method=method)
        with pytest.raises(dg.FactError, match=r"^example 0: seen/1"):
            model(program=program).fit([facts], [odd])
    with pytest.raises(dg.FactError, match=r"^example 1: seen/1"):
        model(training.Conditional(), VITERBI).fit([GOOD, odd], method="perceptron")
    with pytest.raises(dg.FactError, match=r"^example 1: seen/1"):
        model().fit([GOOD.facts, odd], executor=1)


def test_wrong_facts_in_files(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    good = {"seen/1": [["a"]], "loss/1": [["a", -0.5]]}
    for rows in ([["a", "b", "c"]], [[]], [["a", "x"]], [3], [["a", None]], [["a", float("nan")]]):
        file.write_text(f"{json.dumps(good)}\n{json.dumps({**good, 'seen/1': rows})}\n")
        for missing in MISSING:
            with pytest.raises(dg.FactError, match=r"^example 1 \(.*data.jsonl, line 2\): seen/1"):
                model().score(file, missing=missing)
        model().save(tmp_path / "model")
        for command in ("evaluate", "predict"):
            done = CliRunner().invoke(cli.app, [command, str(tmp_path / "model"), "--data", str(file)])
            assert done.exit_code != 0 and "example 1 (" in done.stderr and "line 2" in done.stderr, command


def test_keys_that_the_program_does_not_have_are_errors() -> None:
    for key in ("sean/1", "seen/2", "seen", 3, ""):
        with pytest.raises(dg.Error, match="example 1"):
            model().score([GOOD, {**GOOD.facts, key: [("a",)]}], missing="skip")


SIZES: dict[str, Any] = {"online-em": {"size": 1}, "incremental-em": {"size": 2}}


def test_score_fit_and_records_say_how_many_count(tmp_path: Path) -> None:
    data = [GOOD, UNDERIVED, GOOD]
    for name, objective in OBJECTIVES.items():
        m = model(objective)
        score = m.score(data, missing="skip")
        assert (score.counted, score.examples) == (2, 3) and score == m.score([GOOD] * 2), name
        assert isinstance(score, float) and repr(score) == repr(float(score))
        again = pickle.loads(pickle.dumps(score))
        assert (again, again.counted, again.examples) == (score, 2, 3)
        for method in ("l-bfgs", "sgd", "adam"):
            fit = m.fit(data, method=method, iterations=3, missing="skip", log=tmp_path / "log.csv")
            assert {(r.counted, r.examples) for r in fit.history} == {(2, 3)}, (name, method)
            assert (fit.counted, fit.examples) == (2, 3) and "on 2 of 3 examples" in repr(fit)
            with (tmp_path / "log.csv").open(newline="") as file:
                assert {(r["counted"], r["examples"]) for r in csv.DictReader(file)} == {("2", "3")}
    for method in ("em", "viterbi-em", "online-em", "incremental-em", "annealing", "variational"):
        fit = model().fit(data, method=method, iterations=3, missing="skip", **SIZES.get(method, {}))
        assert {(r.counted, r.examples) for r in fit.history} == {(2, 3)}, method
    assert "on 3 examples" in repr(model().fit([GOOD] * 3))


def test_a_line_says_how_many_count() -> None:
    assert " 98 of 100 examples · " in line_of(Record(1, -1.0, -1.0, None, None, 1.0, 1.0, 98, 100), 5)
    assert " · 1 example · " in line_of(Record(1, -1.0, -1.0, None, None, 1.0, 1.0, 1, 1), 5)


def test_the_command_line_says_how_many_count(tmp_path: Path) -> None:
    (tmp_path / "coin.dyna").write_text(":- semiring log. :- distribution p(X). goal += p(X) * seen(X).")
    (tmp_path / "p.tsv").write_text("a\nb\n")
    (tmp_path / "data.jsonl").write_text("".join(json.dumps({"seen/1": [[x]]}) + "\n" for x in "aac"))
    train = ["train", str(tmp_path / "coin.dyna"), "-p", f"p/1={tmp_path / 'p.tsv'}", "--save", str(tmp_path / "coin")]
    done = CliRunner().invoke(cli.app, [*train, "--data", str(tmp_path / "data.jsonl"), "--missing", "skip"])
    assert done.exit_code == 0 and ", 2 of 3 examples, stopped: " in done.stdout, done.output
    done = CliRunner().invoke(cli.app, ["evaluate", str(tmp_path / "coin"), "--data", str(tmp_path / "data.jsonl")])
    assert done.exit_code == 0 and float(done.stdout) == 0.0 and "2 of 3 examples" in done.stderr


PLAIN = {
    "+=": "goal += w(U,X) * seen(X). goal += twice(X) - 1 * twice(X).  twice(X) += seen(X) + seen(X).",
    "=": "sum += w(_,X) * seen(X). goal = sum - total. total += w(_,_).",
    "min=": "goal min= w(_,X) * seen(X). aside += w(_,_).",
    "max=": "goal max= w(_,X) * seen(X). aside += w(_,_).",
    "log+=": "goal log+= w(_,X) * seen(X). aside += w(_,_).",
}


@pytest.mark.parametrize("aggregator", ["=", "min=", "max=", "log+="])
def test_goals_that_are_not_derived_in_plain_arithmetic_are_told_of(aggregator: str) -> None:
    rows = {"w/2": [("u", "a"), ("v", "b")]}
    free = training.Differentiable(rows, lambda w: w, np.array([0.0, 3.0]), logs=False)
    m = dg.Model(PLAIN[aggregator], {"w": free})
    data = [{"seen/1": [("a", 1.0)]}, {"seen/1": [("c", 1.0)]}, {"seen/1": [("b", 1.0)]}]
    with pytest.warns(dg.ProgramWarning, match="goal is not derived in example 1"):
        score = m.score(data)
    assert (score.counted, score.examples) == (2, 3)
    assert score == m.score([data[0]]) + m.score([data[2]])  # a value of zero counts
    with pytest.raises(dg.QueryError, match="goal is not derived in example 1"):
        m.score(data, missing="error")
    with pytest.raises(dg.QueryError, match="no example counts: goal is not derived"):
        m.score(data[1:2])
    assert m.fit(data, method="sgd", iterations=1, rate=1e-3, missing="skip").counted == 2


def test_products_with_hessians_in_plain_arithmetic() -> None:
    rows = {"w/1": [("a",), ("b",)]}
    text = "goal = s - t. s += w(X) * seen(X). t += w(X) * w(X) * w(X)."
    data = [{"seen/1": [("a", 3.0), ("b", 1.5)]}]
    best = np.sqrt([1.0, 0.5])
    for free in (
        training.Differentiable(rows, lambda w: w, np.array([0.5, 2.0]), logs=False),
        training.LogLinear(rows),
    ):
        for method in ("newton-cg", "trust-ncg", "l-bfgs"):
            m = dg.Model(text, {"w": free})
            m.fit(data, method=method, tolerance=0.0)
            values = m.weights["w/1"].values
            assert values == pytest.approx(best, abs=1e-4), method


def test_what_an_example_wants_is_said_once() -> None:
    rules = ":- semiring log. :- distribution p(X). goal += p(X) * seen(I,X) * here(I)."
    with pytest.raises(dg.QueryError) as error:
        dg.Model(rules, ROWS).fit([{"seen/2": [(0, "c"), (1, "c")], "here/1": [(0,), (1,)]}], missing="error")
    assert str(error.value).count("p(c)") == 1


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["risk", "entropy", "sum", "likelihood"])
def test_what_was_observed_is_looked_at_where_it_has_no_part(name: str, wrong: str) -> None:
    example = training.Example({"seen/1": [("a",), ("b",)], **LOSS}, {"seen/1": WRONG[wrong]})
    model = dg.Model(LOG, ROWS, objective=OBJECTIVES[name])
    with pytest.raises(dg.Error, match="example 1"):
        model.score([{"seen/1": [("a",), ("b",)], **LOSS}, example], missing="skip")


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("method", ["l-bfgs", "newton-cg", "adam", None])
def test_a_goal_below_zero_is_an_error_that_names_the_example(method: str | None, missing: str) -> None:
    rule = dg.Program(":- semiring real. goal += w(X) * seen(X).")
    model = dg.Model(rule, {"w": training.LogLinear({"w/1": [("a",)]})}, prior=training.L2(0.1))
    data = [{"seen/1": [("a", 1.0)]}, {"seen/1": [("a", -1.0)]}]
    with pytest.raises(dg.NotConverged, match=r"^example 1: goal is below 0, and the objective takes its log"):
        if method is None:
            model.score(data, missing=missing)
        else:
            model.fit(data, method=method, missing=missing, iterations=2)


@pytest.mark.parametrize("where", ["facts", "observed", "model"])
@pytest.mark.parametrize("number", [1.0, None])
def test_a_loss_without_a_number_is_one_loss(where: str, number: float | None) -> None:
    losses = {"loss/1": [(x,) if number is None else (x, number) for x in "ab"]}
    seen = {"seen/1": [("a",), ("b",)]}
    example = training.Example(
        seen | (losses if where == "facts" else {}), {"seen/1": [("a",)]} | (losses if where == "observed" else {})
    )
    for objective, expected in (
        (training.Risk("loss/1"), -1.0),
        (training.Conditional(cost="loss/1"), float(np.log(0.5)) - 1.0),
    ):
        model = dg.Model(LOG, ROWS, objective=objective, facts=losses if where == "model" else None)
        assert model.score([example]) == pytest.approx(expected, abs=1e-12)


def test_costs_of_all_examples_that_are_no_probabilities_are_an_error() -> None:
    rule = dg.Program(":- semiring log. goal += w(X) * seen(X) * loss(X).", values="probabilities")
    weights = {"w": training.LogLinear({"w/1": [("a",)]})}
    model = dg.Model(rule, weights, objective=training.Conditional(cost="loss/1"), facts={"loss/1": [("a", -0.5)]})
    with pytest.raises(dg.FactError, match=r"loss/1, .*-0\.5"):
        model.score([training.Example({"seen/1": [("a",)]}, {"seen/1": [("a",)]})])


def test_whether_plain_goals_are_derived_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = dg.Program("goal += (w(X) - 0.5) * seen(X).")
    assert rule.semiring == "plain"
    weights = training.Differentiable({"w/1": [("a",)]}, lambda p: p, np.ones(1), logs=False)
    model = dg.Model(rule, {"w": weights}, objective=training.Likelihood())
    data, runs, run = [{"seen/1": [("a", x)]} for x in (0.0, 1.0, 0.0)], 0, Bound.run

    def counted(self: Any, *given: Any, **options: Any) -> Any:
        nonlocal runs
        runs += 1
        return run(self, *given, **options)

    monkeypatch.setattr(Bound, "run", counted)
    model.fit(data, method="adam", size=3, iterations=5)
    assert runs == 2


def test_rows_given_as_iterators_last(tmp_path: Path) -> None:
    def data() -> list[Any]:
        return [{"seen/1": iter([(x,)]), **LOSS} if x == "a" else {"seen/1": [(x,)], **LOSS} for x in "aab"]

    plain, saved = (dg.Model(LOG, ROWS).fit(data(), **more) for more in ({}, {"checkpoint": tmp_path / "c"}))
    assert plain.counted == saved.counted == 3 and plain.objective == saved.objective


@pytest.mark.parametrize(
    "method",
    [
        "em",
        "viterbi-em",
        "variational",
        "annealing",
        "incremental-em",
        "online-em",
        "l-bfgs",
        "bfgs",
        "cg",
        "newton-cg",
        "sgd",
        "adam",
    ],
)
def test_where_no_example_has_a_weight_it_is_said(method: str) -> None:
    """They count, so nothing is missing; but there is nothing to learn from."""
    text = ":- semiring log. :- distribution toss(S). goal += toss(S) * seen(S)."
    data = [training.Example({"seen/1": [(side,)]}, weight=0.0) for side in "hht"]
    model = dg.Model(text, {"toss/1": [("h",), ("t",)]})
    if method == "online-em":
        with pytest.raises(dg.Error, match="all examples have the weight 0, so that there are no mean counts"):
            model.fit(data, method=method, iterations=2)
        return
    with pytest.warns(dg.ProgramWarning) as said:
        fit = model.fit(data, method=method, iterations=3)
    assert fit.stopped == ("iterations" if method in ("annealing", "sgd", "adam") else "no example has a weight")
    assert sum("all examples have the weight 0" in str(w.message) for w in said) == 1
    assert not any("constant" in str(w.message) or "counts of 0" in str(w.message) for w in said)
    assert [x for _, x in model.weights["toss/1"]] == pytest.approx([0.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = [training.Example({"seen/1": [(side,)]}, weight=1e-3) for side in "ht"]
        model.fit([*data, *some], method=method, iterations=2)
    with pytest.warns(dg.ProgramWarning, match="all examples have the weight 0"):
        assert model.score(data) == 0.0


@pytest.mark.parametrize("method", ["em", "viterbi-em", "incremental-em", "online-em"])
def test_counts_of_zero_are_told_for_what_they_are(method: str) -> None:
    """Of a group that only an example of weight 0 uses, beside one that is learned."""
    text = ":- semiring log. :- distribution t(S,X) given S. goal += t(S,X) * seen(S,X)."
    model = dg.Model(text, {"t/2": [("a", "x", 0.2), ("a", "y", 0.8), ("b", "x", 0.3), ("b", "y", 0.7)]})
    data = [training.Example({"seen/2": [("a", "x")]}), training.Example({"seen/2": [("b", "y")]}, weight=0.0)]
    with pytest.warns(dg.ProgramWarning) as said:
        model.fit(data, method=method, iterations=3)
    assert [str(w.message) for w in said] == [
        "the parameters of t/2 given b have counts of 0, as no derivation that counts uses them: they stay as they are"
    ]
    assert [x for s, _, x in model.weights["t/2"] if s == "b"] == pytest.approx([0.3, 0.7])


def test_where_no_example_has_a_weight_the_prior_is_all() -> None:
    data = [training.Example({"seen/1": [("h",)]}, weight=0.0)]
    model = dg.Model(
        ":- semiring log. :- distribution toss(S). goal += toss(S) * seen(S).",
        {"toss/1": [("h", 0.9), ("t", 0.1)]},
        prior=training.Dirichlet(2.0),
    )
    for method in ("em", "l-bfgs"):
        with pytest.warns(dg.ProgramWarning) as said:
            fit = model.fit(data, method=method, tolerance=1e-12)
        assert [str(w.message) for w in said] == ["all examples have the weight 0: they count, and teach nothing"]
        assert fit.stopped == "no example has a weight"
        assert [x for _, x in model.weights["toss/1"]] == pytest.approx([0.5, 0.5])


def test_costs_are_no_parameters() -> None:
    """Of every objective that has them, in a sum too."""
    linear = {"w": training.LogLinear({"w/1": [("a",)]}), "c": training.LogLinear({"cost/1": [("a",)]})}
    risk, margin = training.Risk("cost/1"), training.Conditional(cost="cost/1")
    for objective in (risk, margin, training.Sum((0.5, risk), (1.0, training.Likelihood()))):
        with pytest.raises(dg.Error, match="the weights of cost/1 are learned: leave it out of parameters"):
            dg.Model(":- semiring log. goal += w(S) * cost(S).", linear, objective=objective)
