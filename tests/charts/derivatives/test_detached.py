"""Gradients and tangents are pickled and copied as tables, and answer as before (2 s)."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from charts.taped import untaped, with_tapes  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "twice": lambda x: copy.deepcopy(pickle.loads(pickle.dumps(x))),
}
FX = dg.Term("f", "x")
OUTPUTS = ":- output goal/0. goal += p(x,Y). p(X,Y) += a(X) * b(Y). q(X) += a(X)."
BEST = "p(V) min= p(U) + e(U,V). p(a) = 0. goal min= p(c)."
PAIR = (2.0, (1.0, 3.0))
CHARTS: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "copies": ("goal += a(X) * b(X). b(x) += 5. c(X) += b(X).", "real", {"a/1": [("x", 2.0), ("x", 1.0), ("y", 0.0)]}),
    "log": ("goal += a(X) * b(X).", "log", {"a/1": [("x", -1.0), ("x", -2.0)], "b/1": [("x", -0.5)]}),
    "terms": ("goal += a([X|R]) * b(f(X)). r(R) += a([_|R]).", None, {"a/1": [(["x", 1], 2.0)], "b/1": [(FX, 1.0)]}),
    "dense": ("goal += a(I,J) * a(J,I).", "real", {"a/2": np.arange(4.0).reshape(2, 2)}),
    "pairs": ("goal += a(X) * b(X).", "expectation", {"a/1": [("x", PAIR)], "b/1": [("x", PAIR)]}),
    "outputs": (OUTPUTS, "real", {"a/1": [("x", 2.0)], "b/1": [("y", 3.0)]}),
    "best": (BEST, None, {"e/2": [("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 9.0)]}),
}  # fmt: skip


@pytest.fixture(scope="module", params=CHARTS)
def chart(request: pytest.FixtureRequest) -> dg.Chart:
    text, semiring, facts = CHARTS[request.param]
    return dg.Program(text, semiring).run(facts)


def asked(answers: Callable[[Any], Any], item: Any) -> Any:
    """An answer, or what is raised instead."""
    try:
        return repr(answers(item))
    except dg.Error as error:
        return type(error), str(error)


STRANGE = ["goal(1)", "nothing", "a(X)", "a(1+1)", "q(x)", "p(z,y)", 3, "a(", ("a", None), "a(nobody)", "b(f(x))"]


def items_of(chart: dg.Chart) -> list[Any]:
    return [*chart, ("a", "x"), ("a", ["x", 1]), *STRANGE]


@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_equal_after_the_way_there_and_back(chart: dg.Chart, way: str) -> None:
    before = chart.gradient("goal")
    after = WAYS[way](before)
    assert after == before and list(after) == list(before) and repr(after.value) == repr(before.value)
    assert isinstance(after, type(before)) and repr(after).startswith(f"<Gradient of {before.value}: ")
    for key in before:
        np.testing.assert_array_equal(after[key].values, before[key].values)
        assert after.get(key) == before.get(key)
    for item in items_of(chart):
        assert asked(after.item, item) == asked(before.item, item), item
    for key in ("a/7", "a", 3, None):
        assert asked(after.__getitem__, key) == asked(before.__getitem__, key)
        assert after.get(key, 1) == 1


@pytest.mark.parametrize("way", WAYS)
def test_tangents_are_equal_after_the_way_there_and_back(chart: dg.Chart, way: str) -> None:
    key, rows = next((k, chart.gradient("goal")[k]) for k in ("a/1", "a/2", "e/2") if k in chart.gradient("goal"))
    before = chart.jvp({key: rows})
    after = WAYS[way](before)
    assert after == before and after != chart.jvp({}) and after != 3
    for item in items_of(chart):
        assert asked(after.__getitem__, item) == asked(before.__getitem__, item), item
    name, _, arity = key.rpartition("/")
    for pattern in (
        "goal",
        f"{name}({','.join('X' * int(arity))})",
        "r([X|Y])",
        "a([x|Y])",
        "b(f(X))",
        "p(x,Y)",
        "p(a)",
        *STRANGE,
    ):
        assert asked(lambda p: list(after.query(p)), pattern) == asked(lambda p: list(before.query(p)), pattern), (
            pattern
        )


def test_expected_counts_pickle_too() -> None:
    chart = dg.Program("goal += a(X) * b(X).").run(
        {"a/1": [("x", 1.0), ("x", 3.0), ("y", 2.0)], "b/1": [("x", 1.0), ("y", 1.0)]}
    )
    before = chart.expected_counts()
    after = pickle.loads(pickle.dumps(before))
    assert after == before and after.item("a(x)") == before.item("a(x)") == pytest.approx(2 / 3)


def test_what_was_kept_stays_when_the_chart_goes_on() -> None:
    chart = dg.Program("goal += a(X) * b(X). a(X) += c(X).").run({"c/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
    gradient = chart.gradient("goal")
    after = copy.deepcopy(gradient)
    chart.add("b/1", [("x", 1.0)])
    chart.run()
    del chart
    assert after["a/1"]["x"] == after.item("c(x)") == 3.0
