"""Generated C++ has the names of the user's variables, and comments with the line of each loop.

Costs half a second: one small function is compiled.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import dynagrad as dg


def fall(height: Any, v: Any) -> Any:
    energy = 0.5 * v * v + 9.81 * height
    while height > 0.0:
        drag = 0.1 * v * abs(v)
        v = v + 0.01 * (9.81 - drag)
        height = height - 0.01 * v
    return v * energy


def softened(scores: Any, weight: Any) -> Any:
    shifted = scores - np.max(scores)
    total = np.sum(np.exp(shifted))
    return weight * np.log(total)


LINE = fall.__code__.co_firstlineno


def test_numbers_arrays_and_states_of_loops_are_called_as_the_user_calls_them() -> None:
    source = dg.cpp(fall, 10.0, 0.0)
    for name in ("height", "v", "energy", "drag"):
        assert re.search(rf"double {name}_\d+ = ", source), name
    source = dg.cpp(softened, np.ones(5), 2.0)
    assert "const double* const scores_0 = " in source and "const double weight_0 = " in source
    assert "const double shifted_0 = " in source and "total_0 = plus(total_0, " in source


def test_a_loop_says_its_line_also_on_the_way_back() -> None:
    assert f"// the loop of line {LINE + 2}\n" in dg.cpp(fall, 10.0, 0.0)
    assert f"// the loop of line {LINE + 2}\n" in dg.cpp(dg.grad(fall), 10.0, 0.0)


def test_names_are_those_of_one_function_whatever_was_compiled_before() -> None:
    def other(x: Any) -> Any:
        drag = 9.81 * x
        return drag + 1.0

    def same(x: Any) -> Any:
        lift = 9.81 * x
        return lift + 1.0

    first, second = dg.cpp(other, 2.0), dg.cpp(same, 2.0)
    assert "drag_0" in first and "drag" not in second and "lift_0" in second
    assert dg.cpp(other, 2.0) == first


def test_names_that_c_has_too_are_no_trouble() -> None:
    def f(log: Any, int: Any, call: Any, inputs: Any, exp2: Any, größe: Any, t0: Any) -> Any:
        frame = np.exp(log) + int
        slots = frame * call
        outputs = slots - inputs
        double = np.log2(outputs * outputs + 1.0) + 2.0**exp2
        return double * größe + t0

    given = (0.3, 2.0, 0.7, 0.1, 0.5, 1.5, 0.25)
    np.testing.assert_allclose(dg.compile(f)(*given), f(*given), rtol=1e-14)
