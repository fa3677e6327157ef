"""Joins of equal shape share one function: every case of the engine, compiled like programs of thousands of rules.

Costs four compilations, one for each semiring, and some for programs of many rules in a ring.
"""

from __future__ import annotations

import pytest

import dynagrad as dg
from charts.test_engine import check
from dynagrad.codegen.rules import program as classes
from dynagrad.plan import size as class_size
from language_cases import CASES
from plan.planned import planned

pytestmark = [
    pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning"),
    pytest.mark.usefixtures("unplanned"),
]


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_size, "LARGE_PROGRAM", 1)


@pytest.mark.parametrize("semiring", ["real", "viterbi", "shifted", None])
def test_programs_with_shared_joins_agree_with_the_oracle(semiring: str | None) -> None:
    check([case for case in CASES if case.semiring == semiring and not case.declared], semiring, "auto")


SAME_SHAPE = "".join(f"a{n}(X,Z) += {0.5 + n} * a{n}(X,Y) * e(Y,Z).\na{n}(X,Y) += e(X,Y).\n" for n in range(20))


def test_rules_that_differ_in_names_and_constants_alone_are_written_once() -> None:
    text = SAME_SHAPE + "goal += a3(x,_)."
    facts = {"e/2": [("x", "y", 0.25), ("y", "z", 0.5), ("z", "w", 0.125)]}
    source = classes.generate(planned(text, facts)).source
    assert source.count("void shape") == 3  # the recursive rule, the other, and that of the goal
    chart = dg.Program(text).run(facts)
    assert chart["goal"] == pytest.approx(0.25 + 3.5 * 0.25 * 0.5 + 3.5**2 * 0.25 * 0.5 * 0.125)
    assert chart.gradient("goal")["e/2"].values[0] == pytest.approx(1 + 3.5 * 0.5 + 3.5**2 * 0.5 * 0.125)


@pytest.mark.parametrize("semiring", ["real", "log", "tropical"])
def test_visits_that_are_data_are_those_of_the_ordinary_class(semiring: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predicates of one stage around a ring, with rules of several shapes, in the order in which they stand."""
    count = 12
    rules = [f"x{i}(A) += {0.5 + i / 8} * s(A)." for i in range(count)]
    rules += [f"x{i}(B) += x{(i - 1) % count}(A) * e(A,B)." for i in range(count)]
    rules += [f"x{i}(B) += 0.25 * x{(i - 5) % count}(A) * x{(i - 1) % count}(A) * e(A,B)." for i in range(0, count, 3)]
    text = f":- semiring {semiring}.\n" + "\n".join(rules) + "\ngoal += x3(A) * t(A)."
    edges = [(a, b, 0.125 * (a + b)) for a in range(6) for b in range(a + 1, 6)]
    facts = {"s/1": [(0, 0.5), (1, 0.75)], "e/2": edges, "t/1": [(a, 0.5) for a in range(6)]}
    large = dg.Program(text).run(facts)
    gradient = large.gradient("goal")
    source = classes.generate(planned(text, facts)).source
    monkeypatch.setattr(class_size, "LARGE_PROGRAM", 10_000)
    small = dg.Program(text).run(facts)
    assert "const Row0& row" in source  # else nothing is shown
    assert [large[f"x{i}(5)"] for i in range(count)] == [small[f"x{i}(5)"] for i in range(count)]
    assert large["goal"] == small["goal"]
    ordinary = small.gradient("goal")
    for key in facts:
        assert gradient[key].values.tolist() == ordinary[key].values.tolist()
