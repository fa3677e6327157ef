"""Generated C++ has the names of the user's variables, and comments with the line of each loop.

Costs half a second: one small function is compiled.
"""

from __future__ import annotations

import linecache
import re
import sys
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad.codegen.graph.native import Native
from dynagrad.compiler.specialised import specialised


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


def remarks(source: str) -> list[str]:
    """For each outermost loop, the remark before it, with lines counted from the `def`; empty where there is none."""
    found, said = [], ""
    for line in source.splitlines():
        if line.startswith("  // "):
            said = re.sub(r"\d+", lambda n: str(int(n[0]) - SOFTENED), line[5:])
        elif line.startswith("  for ("):
            found.append(said)
            said = ""
    return found


SOFTENED = softened.__code__.co_firstlineno


def test_a_loop_over_arrays_says_its_lines_though_its_values_have_no_names() -> None:
    assert remarks(dg.cpp(softened, np.ones(5), 2.0)) == ["line 1", *["lines 1 and 2"] * 2]  # before and after exp
    assert remarks(dg.cpp(lambda x: np.sum(x * x), np.ones(5))) == [f"line {here() - SOFTENED}"]
    backward = remarks(dg.cpp(dg.grad(softened), np.ones(5), 2.0))
    assert len(backward) >= 3
    assert all(remark in ("line 1", "line 2", "lines 1 and 2", "lines 1, 2 and 3") for remark in backward), backward


def here() -> int:
    """The line of the caller."""
    return sys._getframe(1).f_lineno


def test_where_a_function_stands_in_its_file_changes_nothing_that_is_compiled() -> None:
    texts, kept = [], []
    for before in ("", "\n\n\n"):
        file = f"<{len(before)} lines before>"
        lines = "def f(x, n):", "    y = x * x", "    while n > 0.0:", "        n = n - 1.0", "    return np.sum(y) + n"
        text = before + "\n".join(lines)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        space: dict[str, Any] = {"np": np}
        exec(compile(text, file, "exec"), space)
        texts.append(dg.cpp(space["f"], np.ones(5), 2.0))
        made = specialised(space["f"], (np.ones(5), 2.0))
        kept.append(Native(made.graph, "f", made.names).text.source)
    assert "// lines 2 and 5" in texts[0] and "// lines 5 and 8" in texts[1]
    assert kept[0] == kept[1] and "//" not in kept[0] and "y_0 = " in kept[0]


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


def test_only_what_is_used_is_declared() -> None:
    """No parameter, call or constant is there for nothing: equal elements are a literal where they are stored."""

    def raised(scores: Any) -> Any:
        return np.zeros(5) + 0.0, np.sum(scores[:2])

    def gradient(scores: Any) -> Any:
        return dg.grad(lambda xs: xs[0] * xs[1] + xs[4])(scores)

    for function in (raised, gradient, fall):
        source = dg.cpp(function, *([10.0, 0.0] if function is fall else [np.arange(5.0)]))
        assert "maybe_unused" not in source and "(void)" not in source
        for constant in set(re.findall(r"constant\d+", source)):
            assert source.count(constant) > 1, source
    assert re.search(r"if \(!t\d+\) break;", dg.cpp(fall, 10.0, 0.0))


def test_a_function_of_nothing_names_no_inputs() -> None:
    source = dg.cpp(lambda: np.arange(3.0))
    assert "(const Context* context, const void* const*, void* const* outputs)" in source
