"""Steps to where there is no objective are shortened: by all methods over all data, to the optimum that scipy finds.

Costs two seconds. An objective that is not finite anywhere beside is an error; see also `test_gradients.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize  # type: ignore[import-untyped]  # it has no types

import dynagrad as dg
import dynagrad.numpy as dnp
from dynagrad import training
from dynagrad.training.methods import descent
from dynagrad.training.methods.limited_memory import limited_memory

ONE = ":- semiring log. goal += w(S) * seen(S)."
DATA = [{"seen/1": [("h",)]}]
Function = Callable[[Any], Any]


def beyond_zero(x: Any) -> Any:
    """No number where x[0] is below 0, and steep down to just above it."""
    return -(1e3 * x[0] - dnp.log(x[0]) + (x[1] - 3) ** 2)


def walls(x: Any) -> Any:
    """Flat, up to a wall at 2 in each direction, behind which are no numbers."""
    return dnp.sum(1e-3 * x + 1e-4 * dnp.log(2.0 - x))


def overflow(x: Any) -> Any:
    """Minus infinity once the exponential is too large for a double."""
    return -(dnp.exp(50 * x[0]) - 100 * x[0] + (x[1] + 1) ** 2)


SHAPES: dict[str, tuple[Function, list[float], list[tuple[float, float]]]] = {
    "beyond zero": (beyond_zero, [5.0, 0.0], [(1e-9, 100.0), (-100.0, 100.0)]),
    "walls": (walls, [-5.0, 0.0], [(-100.0, 2 - 1e-9)] * 2),
    "overflow": (overflow, [-1.0, 3.0], [(-100.0, 10.0)] * 2),
}


@cache
def optimum(shape: str) -> Any:
    """What scipy finds where bounds keep it to where all is finite."""
    function, start, within = SHAPES[shape]
    found = optimize.minimize(lambda x: -function(x), start, bounds=within, method="Nelder-Mead", tol=1e-12)
    return found.x


def weighted(function: Function, start: list[float]) -> dg.Model:
    rows = {"w/1": [("h",)]}
    return dg.Model(ONE, {"w": training.Differentiable(rows, lambda x: dnp.stack([function(x)]), np.array(start))})


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")  # scipy's, at the optimum
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", descent.SCIPY)
def test_steps_to_where_nothing_is_finite_are_shortened(method: str, shape: str) -> None:
    function, start, _ = SHAPES[shape]
    m = weighted(function, start)
    if (method, shape) == ("newton-cg", "overflow"):  # scipy's search looks at no shorter steps
        with pytest.raises(dg.NotConverged, match="newton-cg found no step after which the objective is finite, as"):
            m.fit(DATA, method=method)
        return
    fit = m.fit(DATA, method=method, tolerance=1e-13, iterations=400)
    assert fit.stopped in ("converged", "no better step")
    assert m.parameters["w"] == pytest.approx(optimum(shape), abs=2e-3)


@pytest.mark.parametrize("wrong", [np.inf, np.nan, -np.inf])
@pytest.mark.parametrize("shape", ["beyond zero", "walls"])
def test_our_method_shortens_them_whatever_stands_for_nothing(shape: str, wrong: float) -> None:
    function, start, within = SHAPES[shape]
    value = dg.value_and_grad(function)
    refused = []

    def negative(x: Any) -> Any:
        if all(low <= y <= high for y, (low, high) in zip(x, within, strict=True)):
            found, gradient = value(x)
            return -float(found), -np.asarray(gradient)
        refused.append(x)
        return wrong, np.full(2, np.nan)

    x = limited_memory(negative, np.array(start), lambda x: None)
    assert refused
    assert x == pytest.approx(optimum(shape), abs=1e-3)


@pytest.mark.parametrize("method", ["l-bfgs", "tnc", "trust-ncg"])
def test_a_maximum_at_the_edge_of_what_is_finite_is_told_of(method: str) -> None:
    m = weighted(lambda x: x[0] + 0 * dnp.sqrt(3.0 - x[0]) - x[1] ** 2, [0.0, 1.0])
    with pytest.warns(dg.ProgramWarning, match=rf"further along the last steps, so that {method} may have ended at"):
        m.fit(DATA, method=method, tolerance=1e-12, iterations=300)
    assert m.parameters["w"][0] == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize("method", ["l-bfgs", "bfgs"])
def test_a_start_without_an_objective_is_an_error(method: str) -> None:
    with pytest.raises(dg.NotConverged, match=r"the function gives NaN for w\(h\)"):
        weighted(beyond_zero, [-1.0, 0.0]).fit(DATA, method=method)
    with pytest.raises(dg.NotConverged, match=r"a weight of w/1 is not finite"):
        weighted(lambda x: dnp.exp(1000 * x[0]), [1.0]).fit(DATA, method=method)


@pytest.mark.parametrize("method", ["l-bfgs", "bfgs", "slsqp", "tnc"])
def test_examples_that_count_are_not_lost_on_the_way(method: str) -> None:
    """The sum of a cycle has no value where its weight is one or more: without it the other example grows for ever."""
    text = (
        """:- semiring real. a(X) += start(X). a(X) += a(X) * w(h) * loop(X). goal += a(_). goal += w(h) * pull(_)."""
    )

    def value(values: Any, example: training.Example) -> Any:
        return (-1 if example.name == "cycle" else 5) * dnp.log(values[0])

    m = dg.Model(
        text,
        {"w": training.LogLinear({"w/1": [("h",)]}, initial=-3.0)},
        objective=training.OfItems(["goal"], value),
    )
    data = [
        training.Example({"start/1": [("x",)], "loop/1": [("x",)], "pull/1": []}, name="cycle"),
        training.Example({"start/1": [], "loop/1": [], "pull/1": [("x",)]}, name="pull"),
    ]
    m.fit(data, method=method, tolerance=1e-12)
    assert np.exp(m.parameters["w"]) == pytest.approx([5 / 6], abs=1e-4)


@pytest.mark.parametrize("method", ["l-bfgs", "tnc"])
def test_a_run_that_is_taken_up_shortens_the_same_steps(method: str, tmp_path: Path) -> None:
    whole = weighted(beyond_zero, [5.0, 0.0])
    whole.fit(DATA, method=method, tolerance=0.0, iterations=12)
    parts = weighted(beyond_zero, [5.0, 0.0])
    for iterations in (1, 3, 12):
        parts.fit(DATA, method=method, tolerance=0.0, iterations=iterations, checkpoint=tmp_path / "run")
    assert parts.parameters["w"].tobytes() == whole.parameters["w"].tobytes()
