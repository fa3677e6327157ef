"""The rows of parameters that examples can use, and the runs that objectives tell of; without PyTorch. One second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.charts.program import Program
from dynagrad.training.examples import DataPasses, Example
from dynagrad.training.parameters.parametrisation import Parametrisation
from dynagrad.training.parameters.rows import Rows
from dynagrad.training.used_rows import UsedRows

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

PATHS = """
:- semiring log.
goal += reached(S,3) * sentence(S).
reached(S,0) += sentence(S).
reached(S,J) += reached(S,I) * arc(S,I,J) * open(I,J).
"""
OPEN = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 4)]
"""The last is on no path to 3."""
ARCS = [(s, i, j) for s in range(6) for i in range(4) for j in range(5)]


class Squares(Parametrisation):
    """The log weight of a row is the square of its own parameter; remembers of how many rows it was asked."""

    rowwise = True

    def __init__(self, rows: Mapping[str, Any]) -> None:
        self.rows, self.asked = Rows(rows), list[int]()
        self.size = len(self.rows)

    def start(self, random: np.random.Generator) -> np.ndarray:
        return np.linspace(0.1, 0.9, self.size)

    def weights(self, theta: np.ndarray) -> np.ndarray:
        self.asked.append(self.size)
        return theta**2

    def weights_of(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        self.asked.append(len(rows))
        found = np.full(self.size, -np.inf)
        found[rows] = theta[rows] ** 2
        return found

    def pull(self, theta: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        return 2 * theta * cotangent

    def names(self) -> list[str]:
        return [f"parameter {n}" for n in range(self.size)]


class Every(Squares):
    rowwise = False


class Mine(training.Conditional):
    """One that changes nothing."""


class Other(training.Conditional):
    """One that may make other runs than it inherits, as far as is known."""

    def totals(self, task: Any, examples: Any) -> Any:
        return super().totals(task, examples)


class Told(Other):
    """One that tells of the runs that it makes."""

    def totals(self, task: Any, examples: Any) -> Any:
        return super().totals(task, examples)

    def runs(self, program: Program, goal: str, example: Example) -> Iterator[Any]:
        yield None, goal, example.clamped
        yield None, goal, example.facts


def data() -> list[Example]:
    return [Example({"sentence/1": [(s,)], "open/2": OPEN}, {"open/2": [(0, 2), (2, 3)]}) for s in range(6)]


def model(objective: Any, kind: type[Squares] = Squares) -> tuple[dg.Model, Squares]:
    squares = kind({"arc/3": ARCS})
    return dg.Model(PATHS, {"squares": squares}, objective=objective, prior=training.L2(0.1)), squares


TWO = training.Conditional(clamped=dg.Program(PATHS))


@pytest.mark.parametrize("objective", [training.Likelihood(), training.Conditional(), TWO, Mine(), Told()])
def test_a_minibatch_asks_for_the_weights_of_the_rows_that_it_uses(objective: Any) -> None:
    (some, asked), (every, all_asked) = model(objective), model(objective, Every)
    wanted = [n for n, (s, i, j) in enumerate(ARCS) if s in (1, 4) and (i, j) in OPEN[:-1]]
    if isinstance(objective, training.Likelihood):
        wanted = [n for n in wanted if ARCS[n][1:] in [(0, 2), (2, 3)]]
    examples = list(DataPasses(data()))
    used = UsedRows(some._spec).of([examples[1], examples[4]])
    assert used is not None and used["squares"].tolist() == wanted
    asked.asked.clear()
    for m in (some, every):
        m.fit(data(), method="sgd", size=2, iterations=2, rate=0.01, seed=4)
    assert asked.asked == [len(ARCS)] + [len(wanted)] * 6  # the first to bind the programs for the lookup
    assert set(all_asked.asked) == {len(ARCS)}
    assert some.parameters["squares"] == pytest.approx(every.parameters["squares"], rel=1e-12)


@pytest.mark.parametrize("objective", [Other(), training.Sum((1.0, training.Conditional()), (1.0, Other()))])
def test_all_rows_are_asked_for_where_totals_may_make_other_runs(objective: Any) -> None:
    m, squares = model(objective)
    assert UsedRows(m._spec).of(list(DataPasses(data()))) is None
    m.fit(data(), method="sgd", size=2, iterations=1, rate=0.01)
    assert set(squares.asked) == {len(ARCS)}


@pytest.mark.parametrize("objective", [training.Conditional(), Mine(), Other(), training.Sum((1.0, Mine()))])
def test_the_reason_why_an_example_is_missing_is_that_of_the_runs_of_its_objective(objective: Any) -> None:
    m, _ = model(objective)
    first, *others = data()
    impossible = Example({**first.facts, "open/2": [(0, 2)]}, first.observed)  # only the free run lacks anything
    with pytest.warns(dg.ProgramWarning, match=r"goal is not derived in example 0, for want of open\(0,3\)"):
        m.score([impossible, *others])


def test_what_the_runs_of_an_objective_raise_is_not_taken_for_something_else() -> None:
    class Wrong(Told):
        def totals(self, task: Any, examples: Any) -> Any:
            return super().totals(task, examples)

        def runs(self, program: Program, goal: str, example: Example) -> Iterator[Any]:
            raise KeyError("what I forgot")

    with pytest.raises(KeyError, match="what I forgot"):
        model(Wrong())[0].fit(data(), method="sgd", iterations=1)
