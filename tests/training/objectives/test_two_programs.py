"""The conditional likelihood of two programs, which share their parameters. Costs eight seconds."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.charts.binding import example_cache
from dynagrad.training.examples import DataPasses
from dynagrad.training.problem import Problem
from dynagrad.training.specification import ravelled, unravelled
from dynagrad.training.workers import in_threads
from training.tagging import ROWS, SENTENCES, TAGS

FREE = """
:- semiring log.
at(0,start).
at(J,T) += at(I,S) * trans(S,T) * emit(T,W) * word(W,I) * tag(T,I) * open(T) for J = I+1.
goal += at(N,_) * end(N).
"""
# from right to left, over tags that were told; `bonus` is of this program alone, and `open` of the other
CLAMPED = """
:- semiring log.
from(N) += end(N).
from(I) += from(J) * told(I,T) * emit(T,W) * word(W,I) * move(I,T) * bonus(T) for J = I+1.
move(0,T) += trans(start,T).
move(I,T) += told(H,S) * trans(S,T) for I = H+1.
goal += from(0).
"""
OPEN, BONUS = {"d": 0.0, "n": -0.5, "v": 0.25}, {"d": -0.25, "n": -0.75, "v": 0.0}
FACTS: dict[str, Any] = {"open/1": list(OPEN.items()), "bonus/1": list(BONUS.items())}


def examples(told: str = "told/2") -> list[training.Example]:
    found = []
    for text, tags in SENTENCES:
        words = text.split()
        facts: dict[str, Any] = {"word/2": [(w, i) for i, w in enumerate(words)], "end/1": [(len(words),)]}
        facts["tag/2"] = [(t, i) for i in range(len(words)) for t in TAGS]
        found.append(training.Example(facts, {told: list(enumerate(tags.split()))}))
    return found


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


FREE_PROGRAM, CLAMPED_PROGRAM = dg.Program(FREE), dg.Program(CLAMPED)
FREE_AND_BONUS = dg.Program(FREE + "used += bonus(_).")  # which takes all facts
TWO = training.Conditional(clamped=CLAMPED_PROGRAM)


def model(objective: Any = TWO, program: Any = FREE_PROGRAM) -> dg.Model:
    linear = training.LogLinear(ROWS, lambda a, b: [f"{a}-{b}", b])
    return dg.Model(program, {"w": linear}, objective=objective, prior=training.L2(0.2), facts=FACTS)


def by_hand(m: dg.Model) -> float:
    """The log probability of what was told, with all taggings one by one."""
    found = 0.0
    trans, emit = (m.weights[key] for key in ("trans/2", "emit/2"))

    def score(words: list[str], tags: Any, extra: dict[str, float]) -> float:
        pairs = zip(("start", *tags), tags, words, strict=False)
        return float(sum(np.log(trans[s, t]) + np.log(emit[t, w]) + extra[t] for s, t, w in pairs))

    for text, told in SENTENCES:
        words, tags = text.split(), told.split()
        every = [score(words, some, OPEN) for some in itertools.product(TAGS, repeat=len(words))]
        found += score(words, tags, BONUS) - np.logaddexp.reduce(every)
    return found


def at_random(m: dg.Model, seed: int = 0) -> dg.Model:
    m._theta = {"w": np.random.default_rng(seed).standard_normal(len(m.parameters["w"])) * 0.5}
    return m


def test_the_value_is_that_of_all_derivations() -> None:
    for seed in range(3):
        m = at_random(model(), seed)
        assert m.score(examples()) == pytest.approx(by_hand(m), rel=1e-12)


def test_gradients_and_products_with_the_hessian_are_those_of_differences() -> None:
    m = model()
    problem, like = Problem(m._spec, DataPasses(examples()), in_threads(1)), m.parameters
    random = np.random.default_rng(1)
    at, along, h = *random.standard_normal((2, len(ravelled(like)))), 1e-5

    def gradient(x: Any) -> Any:
        here = unravelled(x, like)
        value, totals = problem.objective(here)
        return value, ravelled(m._spec.pull(here, totals)), totals

    _, slope, first = gradient(at)
    (up, slope_up, _), (down, slope_down, _) = gradient(at + h * along), gradient(at - h * along)
    assert slope @ along == pytest.approx((up - down) / (2 * h), rel=1e-7)
    product = ravelled(problem.product(unravelled(at, like), first, unravelled(along, like)))
    assert product == pytest.approx((slope_up - slope_down) / (2 * h), rel=1e-5, abs=1e-7)


def same_rules() -> tuple[dg.Model, list[training.Example], dg.Model, list[training.Example]]:
    """A model of one program, and one of two which have its rules."""
    one = model(training.Conditional(), program=FREE_AND_BONUS)
    again = dg.Program(FREE.replace("tag(T,I)", "told(I,T)"))
    two = model(training.Conditional(clamped=again), program=FREE_AND_BONUS)
    clamped = [training.Example(e.facts, {"tag/2": [(t, i) for i, t in e.observed["told/2"]]}) for e in examples()]
    return one, clamped, two, examples()


def test_it_is_what_one_program_gives_in_two_runs() -> None:
    one, clamped, two, data = same_rules()
    for method in ("l-bfgs", "newton-cg", "sgd"):
        for m, given in ((one, clamped), (two, data)):
            m.fit(given, method=method, iterations=6)
        assert one.parameters["w"].tobytes() == two.parameters["w"].tobytes()


def test_two_programs_are_trained_by_all_workers_and_loaded_again_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(example_cache, "BRIEF", 0.0)  # threads however little there is to do
    m = model()
    fit = m.fit(examples(), method="l-bfgs", iterations=5, tolerance=0.0)
    assert fit.objective > fit.history[0].objective
    assert m.score(examples()) == pytest.approx(by_hand(m), rel=1e-12)
    for how in ({"threads": 2}, {"executor": 1}):
        other = model()
        other.fit(examples(), method="l-bfgs", iterations=5, tolerance=0.0, **how)  # type: ignore[arg-type]
        assert other.parameters["w"].tobytes() == m.parameters["w"].tobytes()
    m.save(tmp_path / "m")
    again = dg.load_model(tmp_path / "m")
    assert again.score(examples()) == m.score(examples())
    again.fit(examples(), method="l-bfgs", iterations=5, tolerance=0.0)
    assert again.parameters["w"].tobytes() == m.parameters["w"].tobytes()
    again.save(tmp_path / "m")  # its files are replaced


def test_functions_of_both_programs_are_given_again(tmp_path: Path) -> None:
    one = dg.Program(":- semiring log. :- external up/1. goal += w(S) * seen(S) * up(S).", functions={"up": len})
    two = dg.Program(":- semiring log. :- external on/1. goal += w(S) * told(S) * on(S).", functions={"on": len})
    m = dg.Model(
        one, {"w": training.LogLinear({"w/1": [("a",), ("bb",)]})}, objective=training.Conditional(clamped=two)
    )
    data = [training.Example({"seen/1": [("a",), ("bb",)]}, {"told/1": [("a",)]})]
    assert m.score(data) == pytest.approx(1.0 - np.logaddexp(1.0, 2.0))
    m.save(tmp_path / "m")
    assert dg.load_model(tmp_path / "m", functions={"up": len, "on": len}).score(data) == m.score(data)
    with pytest.raises(dg.Error, match="has the function on"):
        dg.load_model(tmp_path / "m", functions={"up": len})


def test_sums_have_parts_of_other_programs(tmp_path: Path) -> None:
    m = at_random(model(training.Sum((1.0, TWO), (-0.5, training.Entropy()))))
    entropy = at_random(model(training.Entropy(), program=FREE_AND_BONUS))
    expected = by_hand(m) - 0.5 * entropy.score([training.Example(e.facts) for e in examples()])
    assert m.score(examples()) == pytest.approx(expected, rel=1e-10)
    m.save(tmp_path / "m")
    assert dg.load_model(tmp_path / "m").score(examples()) == m.score(examples())


def test_an_observed_derivation_is_one_of_the_clamped_program() -> None:
    m = at_random(model())
    data = examples()
    weights = {
        key: [(*row, x) for row, x in zip(ROWS[key], np.log(m.weights[key].values), strict=True)] for key in ROWS
    }
    best = CLAMPED_PROGRAM.bind({**weights, "bonus/1": FACTS["bonus/1"]}).run(
        {k: x for k, x in data[0].clamped.items() if k != "tag/2"}
    )
    told = training.Example(data[0].clamped, derivation=best.best("goal"))
    assert m.score([told]) == pytest.approx(m.score(data[:1]), rel=1e-12)


def test_a_checkpoint_knows_the_clamped_program(tmp_path: Path) -> None:
    given: dict[str, Any] = {"method": "l-bfgs", "iterations": 2, "checkpoint": tmp_path / "c"}
    model().fit(examples(), **given)
    with pytest.raises(dg.Error, match="of another run, whose objective differ"):
        model(training.Conditional(clamped=dg.Program(CLAMPED + "% other\n"))).fit(examples(), **given)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("emit(T,W)", "emits(T,W)"), "has no emit/2, whose weights are learned.*did you mean emits/2"),
        (("emit(T,W)", "emit(T,W,0)"), "has no emit/2, whose weights are learned"),
        (("semiring log", "semiring real"), "clamped run is in real, with weights, and that of the model in log"),
    ],
)
def test_programs_have_to_share_parameters(change: tuple[str, str], says: str) -> None:
    with pytest.raises(dg.Error, match=says):
        model(training.Conditional(clamped=dg.Program(CLAMPED.replace(*change))))


def test_wrong_programs_and_items() -> None:
    with pytest.raises(dg.Error, match=r"the program of the clamped run, a dg\.Program"):
        training.Conditional(clamped="goal.")  # type: ignore[arg-type]
    with pytest.raises(dg.QueryError, match="goat"):
        model(training.Conditional("goat", clamped=CLAMPED_PROGRAM)).score(examples())


def test_what_is_missing_is_told_of_the_program_that_lacks_it() -> None:
    first, second, _ = examples()
    nothing_told = training.Example(first.facts, {"told/2": first.observed["told/2"][:2]})
    with pytest.warns(dg.ProgramWarning, match="goal is not derived in example 0, for want of end"):
        assert model().score([nothing_told, second]) == pytest.approx(model().score([second]))
    no_tags = training.Example({**second.facts, "tag/2": []}, second.observed)
    with pytest.raises(dg.QueryError, match="goal is not derived in example 1"):
        model().score([first, no_tags], missing="error")


def test_more_in_the_clamped_program_than_in_the_other_is_warned_of() -> None:
    more = [*FACTS["bonus/1"][:1], ("n", 9.0), ("v", 9.0)]
    linear = training.LogLinear(ROWS, lambda a, b: [f"{a}-{b}", b])
    m = dg.Model(FREE_PROGRAM, {"w": linear}, objective=TWO, facts={**FACTS, "bonus/1": more})
    with pytest.warns(dg.ProgramWarning, match="derive what that of the model does not"):
        m.score(examples())


class _Mine:
    """An objective of the user's."""

    value = "mine"

    def totals(self, task: Any, data: Any) -> Any:
        return training.Likelihood().totals(task, data)


def test_a_sum_that_is_given_again_leaves_no_program_in_the_folder(tmp_path: Path) -> None:
    model(training.Sum((1, TWO), (1, _Mine()))).save(tmp_path / "model")
    assert [path.name for path in (tmp_path / "model").glob("*.dyna")] == ["program.dyna"]


def test_fixed_facts_from_an_iterator_are_for_both_programs() -> None:
    text = ":- semiring log. goal += w(X) * c(X)."
    both = training.Conditional(clamped=dg.Program(text))
    weights = {"w": training.LogLinear({"w/1": [("x",), ("y",)]}, lambda x: [x])}
    m = dg.Model(text, weights, objective=both, facts={"c/1": iter([("x", 0.0), ("y", 0.0)])})
    assert m.score([{}]) == pytest.approx(0.0, abs=1e-15)
