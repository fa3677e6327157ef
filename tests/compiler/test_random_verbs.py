"""Random functions with nested fixed points, custom rules, checkpoints and derivatives, in loops and branches: their
derivatives to second order, in all mixes of modes, equal the eager ones. Costs four seconds.
"""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import through_graph
from dynagrad.autodiff import rematerialisation as again

Written = tuple[list[str], str]
"""Statements, and an expression after them."""
MIXES: list[tuple[Callable[..., Any], ...]] = [
    (),
    (dg.grad,),
    (dg.derivative,),
    (dg.grad, dg.derivative),
    (dg.derivative, dg.grad),
    (dg.grad, dg.grad),
]


class Writer:
    """Writes a random function. Each function in it has a number, which is in the names of its variables."""

    def __init__(self, seed: int) -> None:
        self.random, self.count = random.Random(seed), 0

    def atom(self, names: list[str]) -> str:
        return self.random.choice([*names, "0.3", "1.2"])

    def plain(self, names: list[str]) -> str:
        a, b, c = (self.atom(names) for _ in range(3))
        return self.random.choice(
            [f"np.sin({a} + {b})", f"({a} * {b} + 0.1 * {c})", f"np.tanh({a})", f"np.exp(-({a} ** 2)) * {b}"]
        )

    def value(self, names: list[str], depth: int) -> Written:
        if not depth:
            return [], self.plain(names)
        ways = [self.solution, self.rule, self.steps, self.until, self.loop, self.choice, self.slope]
        return self.random.choice(ways)(names, depth - 1)

    def function(self, names: list[str], depth: int, result: str) -> tuple[list[str], int]:
        """A function of one number; VALUE in the result is something that it computes, X the number."""
        self.count += 1
        k = self.count
        statements, found = self.value([*names, f"x{k}"], depth)
        last = "return " + result.replace("VALUE", found).replace("X", f"x{k}")
        return [f"def f{k}(x{k}):", *indented([*statements, last])], k

    def solution(self, names: list[str], depth: int) -> Written:
        lines, k = self.function(names, depth, f"0.3 * np.sin(VALUE) + 0.2 * np.cos(X) * np.tanh({self.atom(names)})")
        return lines, f"dg.fixed_point(f{k}, {self.atom(names)}, 1e-14)"

    def rule(self, names: list[str], depth: int) -> Written:
        lines, k = self.function([], depth, "VALUE")
        slope, j = self.function([], depth, "VALUE")
        kind = self.random.choice(["jvp=lambda p, t: t[0] * f{}(p[0])", "vjp=lambda p, y, c: c * f{}(y * p[0])"])
        return [*lines, *slope], f"dg.custom_rule(f{k}, {kind.format(j)})({self.atom(names)})"

    def steps(self, names: list[str], depth: int) -> Written:
        lines, k = self.function(names, depth, "0.5 * X + 0.1 * np.sin(VALUE)")
        return lines, f"dg.checkpoint(f{k}, {self.atom(names)}, {self.random.choice([0, 3, 33])})"

    def until(self, names: list[str], depth: int) -> Written:
        lines, k = self.function(names, depth, "0.5 * X + 0.1 * np.sin(VALUE)")
        n = self.random.choice([2.5, 20.5])
        step = [f"def s{k}(s):", f"    return None if s[0] > {n} else (s[0] + 1.0, f{k}(s[1]))"]
        return [*lines, *step], f"dg.checkpoint(s{k}, (0.0, {self.atom(names)}))[1]"

    def loop(self, names: list[str], depth: int) -> Written:
        lines, k = self.function(names, depth, "0.5 * X + 0.2 * np.sin(VALUE)")
        rounds = self.random.choice([2, 20])
        return [*lines, f"y{k} = {self.atom(names)}", f"for _ in range({rounds}):", f"    y{k} = f{k}(y{k})"], f"y{k}"

    def choice(self, names: list[str], depth: int) -> Written:
        self.count += 1
        k = self.count
        (one, first), (other, second) = self.value(names, depth), self.value(names, depth)
        test = f"if {self.atom(names)} > {self.random.choice([-0.2, 0.4])}:"
        sides = [test, *indented([*one, f"y{k} = {first}"]), "else:", *indented([*other, f"y{k} = {second}"])]
        return sides, f"y{k}"

    def slope(self, names: list[str], depth: int) -> Written:
        lines, k = self.function(names, depth, "VALUE")
        verb = self.random.choice(["grad", "derivative"])
        return lines, f"dg.{verb}(f{k})({self.random.choice(names)})"


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@pytest.mark.parametrize("seed", (*range(16), 17, 19, 24, 34))  # the last four: checkpoints in loops and branches
def test_random_functions(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "ROOM", 60)
    statements, found = Writer(seed).value(["x"], 2)
    file = tmp_path / f"verbs_{seed}.py"
    body = indented([*statements, f"return {found}"])
    file.write_text("\n".join(["import numpy as np", "import dynagrad as dg", "def f(x):", *body]) + "\n")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for modes in MIXES:
        f = module.f
        for mode in modes:
            f = mode(f)
        wanted = f(0.6)
        assert np.isclose(through_graph(f, 0.6), wanted, rtol=1e-7, atol=1e-10), (modes, file.read_text())
