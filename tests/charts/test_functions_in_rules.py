"""Python functions called in rules, with branches, loops, recursion and derivatives: compiled, and run natively.

Most tests share one program that calls them all. The oracles are the same rules in Python, central differences, and
derivatives of the functions. Costs ten seconds.
"""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dynagrad as dg
from codegen.rules.header.test_cpp import output_of
from dynagrad import cli
from dynagrad.charts.chart import run_of
from dynagrad.ir import variable
from dynagrad.ir.node import Node
from dynagrad.plan.right_sides import to_node
from interrupts import ctrl_c


@dg.compile
def halved(x):
    """A loop whose length depends on the value."""
    total = 0.0
    while x > 1.0:
        x = 0.5 * x
        total += x
    return total + x * x


@dg.compile
def rabbits(x):
    """A recursion."""
    if x < 2.0:
        return x
    return rabbits(x - 1.0) + rabbits(x - 2.0) * x


@dg.compile
def lowest(a):
    """Newton's search, with derivatives of a function that sees the argument."""

    def energy(x):
        return x**4 / 4.0 - a * x + np.cos(x)

    x = 1.0
    for _ in range(12):
        x = x - dg.grad(energy)(x) / dg.grad(dg.grad(energy))(x)
    return x


@dg.compile
def steps(x, y):
    """Two arguments, a break, and an array."""
    s = 0.0
    v = np.stack([x, y])
    while s < y:
        s += x * x + 0.01 * np.sum(v * v)
        if s > 10.0:
            break
    return s - x * y


@dg.compile
def factorial(x):
    """Does not end for negative numbers and fractions."""
    p = 1.0
    while x != 0.0:
        p, x = p * x, x - 1.0
    return p


PROGRAM = """
:- function halved/1, rabbits/1, lowest/1, steps/2, factorial/1.
loop    += halved(a(X)) * b(X).
calls   += rabbits(a(_X)).
inner   += lowest(b(X)) * a(X).
pair(X)  = steps(a(X), b(X)) * steps(b(X), a(X)).
pairs   += pair(_X).
best max= steps(a(X), b(X)).
guarded += if a(X) == 5.0 then factorial(a(X)) * b(X) else a(X) * b(X).
all     += loop + calls.
all     += inner * pairs + best.
all     += halved(guarded).
"""
FUNCTIONS = {"halved": halved, "rabbits": rabbits, "lowest": lowest, "steps": steps, "factorial": factorial}
A, B = np.array([5.0, 0.7, 3.3]), np.array([1.2, 2.6, 0.9])
GOALS = ("loop", "calls", "inner", "pairs", "best", "guarded", "all")


def facts(a: Any = A, b: Any = B) -> dict[str, Any]:
    return {"a/1": list(enumerate(map(float, a))), "b/1": list(enumerate(map(float, b)))}


def by_hand(a: Any, b: Any) -> dict[str, Any]:
    """The program in Python."""
    h, r, low, s = halved.function, recursive, lowest.function, steps.function
    rows = list(zip(a, b, strict=True))
    found = {
        "loop": sum(h(x) * y for x, y in rows),
        "calls": sum(r(x) for x, _ in rows),
        "inner": sum(low(y) * x for x, y in rows),
        "pairs": sum(s(x, y) * s(y, x) for x, y in rows),
        "best": max(s(x, y) for x, y in rows),
        "guarded": sum((factorial.function(x) if x == 5.0 else x) * y for x, y in rows),
    }
    together = found["loop"] + found["calls"] + found["inner"] * found["pairs"] + found["best"] + h(found["guarded"])
    return {**found, "all": together}


def recursive(x):
    return x if x < 2.0 else recursive(x - 1.0) + recursive(x - 2.0) * x


@pytest.fixture(scope="module")
def program() -> dg.Program:
    return dg.Program(PROGRAM, functions=FUNCTIONS)


@pytest.fixture(scope="module")
def chart(program: dg.Program) -> Any:
    return program.run(facts())


@pytest.fixture(scope="module")
def function(program: dg.Program) -> Any:
    return program.function(list(GOALS), inputs=["a/1", "b/1"], facts=facts())


# -- values and derivatives --------------------------------------------------------------------------------------------


def test_values_are_those_of_the_functions(chart):
    assert {goal: chart[goal] for goal in GOALS} == pytest.approx(by_hand(A, B), rel=1e-13)


@pytest.mark.parametrize("goal", GOALS)
def test_gradients_are_those_of_the_functions(chart, goal):
    found = chart.gradient(goal)
    expected = dg.grad(lambda a, b: by_hand(a, b)[goal], argnums=(0, 1))(A, B)
    assert found["a/1"].values == pytest.approx(expected[0], rel=1e-11)
    assert found["b/1"].values == pytest.approx(expected[1], rel=1e-11)


def test_gradients_are_central_differences(chart, program):
    found = chart.gradient("all")["b/1"].values
    for i in range(3):
        step = 1e-6 * np.eye(3)[i]
        up, down = (program.run(facts(A, B + s))["all"] for s in (step, -step))
        assert found[i] == pytest.approx((up - down) / 2e-6, rel=1e-6)


def test_forward_derivatives(chart, function):
    da, db = np.array([0.3, -1.0, 0.2]), np.array([1.0, 0.5, -0.7])
    tangents = chart.jvp({"a/1": da, "b/1": db})
    gradient = chart.gradient("all")
    expected = gradient["a/1"].values @ da + gradient["b/1"].values @ db
    assert tangents["all"] == pytest.approx(expected, rel=1e-11)
    assert function.jvp((A, B), (da, db))[1][GOALS.index("all")] == pytest.approx(expected, rel=1e-11)


def test_second_derivatives(program):
    f = program.function("all", inputs=["a/1", "b/1"], facts=facts())
    da, db = np.array([0.3, -1.0, 0.2]), np.array([1.0, 0.5, -0.7])
    found = f.hvp((A, B), (da, db))
    expected = dg.hvp(lambda a, b: by_hand(a, b)["all"], (A, B), (da, db))
    assert found[0] == pytest.approx(expected[0], rel=1e-10)
    assert found[1] == pytest.approx(expected[1], rel=1e-10)


def test_batches_run_on_threads(program):
    bound = program.bind({"b/1": facts()["b/1"]})
    examples = [{"a/1": facts(A + d)["a/1"]} for d in (0.0, 0.25, 0.5, 0.75)]
    batch = bound.run_batch(examples, query="loop", gradient=["b/1"], threads=2)
    assert batch.values == pytest.approx([by_hand(A + d, B)["loop"] for d in (0.0, 0.25, 0.5, 0.75)], rel=1e-13)
    expected = sum(np.array([halved.function(x) for x in A + d]) for d in (0.0, 0.25, 0.5, 0.75))
    assert batch.gradient["b/1"].values == pytest.approx(expected, rel=1e-13)


@pytest.mark.filterwarnings("ignore:The sum of")
def test_a_cycle_sends_differences_and_calls_nothing_on_values_that_are_not_there():
    @dg.compile
    def shrunk(x):
        """Never ends at zero, which an item is before it is derived."""
        while x < 0.05:
            x = 2.0 * x
        return 0.1 * x

    text = ":- function h/1.  x(I) += b(I).  x(J) += h(x(I)) * e(I,J)."
    given = {"b/1": [(1, 0.9), (2, 0.5)], "e/2": [(1, 2, 0.5), (2, 1, 0.7)]}
    compiled = dg.Program(text, functions={"h": shrunk}).run(given)
    straight = dg.Program(text, functions={"h": lambda x: 0.1 * x}).run(given)
    assert compiled["x(1)"] == pytest.approx(straight["x(1)"], rel=1e-14)
    found, expected = (c.gradient("x(1)") for c in (compiled, straight))
    assert found["e/2"].values == pytest.approx(expected["e/2"].values, rel=1e-12)
    assert found["b/1"].values == pytest.approx(expected["b/1"].values, rel=1e-12)


def test_functions_in_priorities():
    @dg.compile
    def rank(x):
        while x > 10.0:
            x -= 10.0
        return x

    text = ":- function rank/1. :- priority p(X) = rank(X). p(X) min= a(X). p(Y) min= p(X) + e(X,Y)."
    given = {"a/1": [(1, 1.0), (12, 2.0)], "e/2": [(1, 12, 0.5), (12, 3, 1.0)]}
    chart = dg.Program(text, functions={"rank": rank}).run(given)
    assert [chart[f"p({n})"] for n in (1, 12, 3)] == [1.0, 1.5, 2.5]


# -- what a right side becomes -----------------------------------------------------------------------------------------


def right_side(function: Callable[..., Any]) -> Node:
    """The graph of a right side that calls a function; equal graphs are one."""
    chart = dg.Program(":- function h/1. goal += h(a(_X)).", functions={"h": function}).run({"a/1": []}, max_pops=0)
    plan = run_of(chart).ready().compiled.plan
    return to_node(plan.rules.rules[0].value, plan.functions)


def test_straight_line_functions_stay_expressions():
    plain, compiled = right_side(lambda x: x * x + 1.0), right_side(dg.compile(lambda x: x * x + 1.0))
    x = variable("x0")
    assert plain is compiled is x * x + 1.0
    assert right_side(halved) is right_side(halved) is not right_side(factorial)


def test_the_same_argument_twice_is_another_call():
    x, y = variable("x"), variable("y")
    assert steps(x, x) is not steps(x, y) and steps(x, y) is not steps(y, x)


def test_programs_with_compiled_functions_pickle(program):
    again = pickle.loads(pickle.dumps(program))
    assert again.run(facts())["loop"] == by_hand(A, B)["loop"]
    assert pickle.loads(pickle.dumps(halved)) is halved and copy.copy(halved) is halved


HEADER = r"""
int main() {
  calls::chart chart;
  chart.add_a(1, 5.0), chart.add_a(2, 0.7);
  printf("%d\n", (int)chart.run());
  printf("%.17g\n", chart.goal().value);
  auto gradient = chart.gradient(chart.goal());
  if (!gradient) puts(gradient.error());
  for (auto& fact : gradient.added_a_1()) printf("%.17g\n", fact.value);
  chart.add_a(3, -1.0);
  printf("%d\n", (int)chart.run());
  puts(chart.error());
}
"""


def test_functions_in_headers_for_c_plus_plus(tmp_path):
    (tmp_path / "p.dyna").write_text(":- function rabbits/1, deep/1.\ngoal += rabbits(a(X)) + deep(a(X)).\n")
    (tmp_path / "p.py").write_text(
        "import dynagrad as dg\n\n@dg.compile\ndef rabbits(x):\n    if x < 2.0:\n        return x\n"
        "    return rabbits(x - 1.0) + rabbits(x - 2.0) * x\n\n"
        "@dg.compile\ndef deep(x):\n    return 0.0 if x > 0.0 else deep(x - 1.0) + x\n"
    )
    arguments = ["cpp", str(tmp_path / "p.dyna"), "--functions", str(tmp_path / "p.py"), "--name", "calls"]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.stderr
    assert "need the flags -fwrapv -fno-strict-aliasing." in result.stdout
    ran, value, first, second, again, why = output_of(tmp_path, {"calls": result.stdout}, HEADER, {})
    assert ran == "1" and float(value) == pytest.approx(recursive(5.0) + 0.7, rel=1e-14)
    assert float(first) == pytest.approx(dg.grad(recursive)(5.0), rel=1e-13) and float(second) == 1.0
    assert again == "0" and "a function failed: goal: rabbits, deep: functions call each other too often" in why


def test_the_command_line_takes_functions_from_a_file(tmp_path):
    (tmp_path / "p.dyna").write_text(":- function twice/1.\ngoal += twice(a(_X)).\na(1) = 2.\n")
    (tmp_path / "p.py").write_text("def twice(x):\n    return 2.0 * x\n")
    runner = CliRunner()
    result = runner.invoke(cli.app, ["run", str(tmp_path / "p.dyna"), "--functions", str(tmp_path / "p.py")])
    assert result.exit_code == 0 and "4" in result.stdout
    (tmp_path / "p.py").write_text("1 / 0\n")
    result = runner.invoke(cli.app, ["run", str(tmp_path / "p.dyna"), "--functions", str(tmp_path / "p.py")])
    assert result.exit_code == 1 and "ZeroDivisionError" in result.stderr


# -- limits and errors -------------------------------------------------------------------------------------------------

ONE = ":- function h/1.\ngoal(X) += h(a(X))."


@pytest.fixture(scope="module")
def endless() -> dg.Program:
    def forever(x):
        while x > 0.0:
            x = x + 1.0
        return x

    program = dg.Program(ONE, functions={"h": dg.compile(forever)})
    program.run({"a/1": [("x", -1.0)]})  # compiled now
    return program


def test_a_loop_without_end_stops_at_the_timeout(endless):
    begun = time.monotonic()
    chart = endless.run({"a/1": [("x", 1.0)]}, timeout=0.3)
    assert chart.status == "timeout" and not chart.converged and time.monotonic() - begun < 3.0


def test_a_loop_without_end_can_be_interrupted(endless):
    with pytest.raises(KeyboardInterrupt), ctrl_c(0.3):
        endless.run({"a/1": [("x", 1.0)]})


def test_a_recursion_without_end_names_function_and_item():
    def deep(x):
        return deep_(x + 1.0) + 1.0 if x > 0.0 else x

    deep_ = dg.compile(deep)
    program = dg.Program(ONE, functions={"h": deep_})
    assert program.run({"a/1": [("x", -1.0)]})["goal(x)"] == -1.0
    with pytest.raises(dg.Error, match=r"the function h failed for goal\(y\): functions call each other too often"):
        program.run({"a/1": [("x", -1.0), ("y", 1.0)]})


def test_an_index_out_of_range():
    def chosen(x):
        return np.stack([x, 2.0 * x, 3.0 * x])[int(x)]

    program = dg.Program(ONE, functions={"h": dg.compile(chosen)})
    assert program.run({"a/1": [("x", 2.0)]})["goal(x)"] == 6.0
    with pytest.raises(dg.Error, match=r"goal\(y\): index 5 is out of range for an axis of length 3"):
        program.run({"a/1": [("y", 5.0)]})


def test_nan_is_the_error_that_it_is_elsewhere():
    def root(x):
        while x > 4.0:
            x = x / 4.0
        return np.sqrt(x)

    with np.errstate(all="ignore"), pytest.raises(dg.ValueRangeError, match=r"goal\(y\) became NaN"):
        dg.Program(ONE, functions={"h": dg.compile(root)}).run({"a/1": [("y", -5.0)]})


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: (x, x), "returns one real number, and the function given for it returns a tuple"),
        (lambda x: np.stack([x, x]), r"returns real\[2\]"),
        (lambda x: x > 0.0, "returns boolean"),
        (lambda x: "x", "returns a str"),
        (lambda x: x[0], "`h/1` is called with 1 number"),
        (lambda x, y: x + y, "needs a value for y"),
    ],
)
def test_what_is_no_function_of_numbers(function: Callable[..., Any], said: str):
    with pytest.raises(dg.ProgramError, match=said) as caught:
        dg.Program(ONE, functions={"h": dg.compile(function)})
    assert caught.value.span is not None and caught.value.span.line == 1


def test_what_only_python_computes_is_refused():
    program = dg.Program(ONE, functions={"h": dg.compile(lambda x: dg.special.gammaln(x))})
    with pytest.raises(dg.Error, match="h uses gammaln, which is computed in Python"):
        program.run({"a/1": [("x", 1.0)]})


def test_a_traced_function_that_branches_is_told_of_compile():
    with pytest.raises(dg.Error, match=r"may not branch(.|\n)*dg.compile\(h\)"):
        dg.Program(ONE, functions={"h": lambda x: x if x > 0 else 0.0}).run({"a/1": []})


def test_what_a_function_asserts_is_an_error_of_the_run_that_names_the_item():
    @dg.compile
    def h(x):
        assert x < 3.0, f"too large: {x}"
        return x * 2.0

    program = dg.Program(":- function h/1. total += h(force(_)).", functions={"h": h})
    assert program.run({"force/1": [("p", 1.0)]})["total"] == 2.0
    with pytest.raises(dg.Error, match="the function h failed for total: AssertionError: too large: 8"):
        program.run({"force/1": [("p", 8.0)]})
