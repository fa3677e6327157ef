"""Generated code reads like a person's: indented, without casts to void, empty functions, or loops over nothing.

Costs two seconds: nothing is compiled.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
import examples
from dynagrad.charts.binding.binding import Purpose
from dynagrad.codegen.rules.program import generate
from dynagrad.plan.model import Derivatives
from dynagrad.rules.semirings import SEMIRINGS
from plan.planned import planned

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")


CONSTANT = re.compile(
    r"&& \((true|false)\)|(true|false) \|\||const bool \w+ = (true|false);"
    r"|\w \* 1 \+ 0| = \(-[\w.]+\);|[(,] ?- \w|\w \+ 0[,;)]|\((\d+) > 0 \? \4 : 0\)"
    r"|narrow\(\([^()]*\([^()]*\)[^()]*\)\)|\{ break; \}"
)
"""Tests of what is known, sums with nothing, parentheses around parentheses, and blocks of one `break`."""


def faults(source: str) -> list[str]:
    """The lines that no person would write."""
    found, depth = [], 0
    deeper: list[bool] = []  # whether what stands in an open brace is indented
    for number, line in enumerate(source.splitlines(), 1):
        text = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line).strip()
        closing = len(text) - len(text.lstrip("}"))
        label = text.startswith("#") or re.match(r"(public|private|case .*|default):|namespace |} +// namespace", text)
        if text and not label and len(line) - len(line.lstrip()) < 2 * (depth - closing):
            found.append(f"{number}: not indented: {line}")
        for brace in re.findall("[{}]", text):
            if brace == "{":
                deeper.append(not text.startswith(("namespace", 'extern "C"')))
            else:
                deeper.pop()
        depth = sum(deeper)
        if "(void)" in text or re.search(r"\bvoid \w+\(.*\) (const )?\{ ?\}", text) or re.search(r"; \w+ < 0;", text):
            found.append(f"{number}: {line}")
        if CONSTANT.search(text):
            found.append(f"{number}: a constant that no person would write: {line}")
    for name in re.findall(r"const \w+ (constant\d+)\[", source):
        if len(re.findall(rf"\b{name}\b", source)) == 1:
            found.append(f"{name} is not used")
    return found


def test_faults_are_found() -> None:
    assert faults("void f() {\n  return;\n}\n") == []
    assert len(faults("void f() {\nreturn;\n}\nvoid g() {}\nvoid h(int x) {\n  (void)x;\n}\n")) == 3


@pytest.mark.parametrize("name", examples.NAMES)
def test_programs(name: str) -> None:
    plan = planned(examples.source(name), examples.facts(name))
    assert faults(generate(plan).source) == []
    for purpose in (Purpose(changing=True), Purpose(collecting=True)):
        assert faults(generate(planned(examples.source(name), examples.facts(name), purpose=purpose)).source) == []
    if SEMIRINGS[plan.semiring].jets:
        for derivatives in (Derivatives(), Derivatives(1)):
            assert faults(generate(replace(plan, derivatives=derivatives)).source) == []


def path_lengths(weights: Any, x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        if x[i] > 0.0:
            total = total + np.sum(weights[i] * x)
    while total > 1.0:
        total = total * 0.5
    return total


def root(x: float) -> float:
    guess = x
    while abs(guess * guess - x) > 1e-12:
        guess = 0.5 * (guess + x / guess)
    return guess


def best_before(x: Any) -> float:
    best = -1.0
    for i in range(len(x)):
        if x[i] < 0.0:
            break
        if x[i] > best:
            best = x[i]
    return best


def factorial(n: float) -> float:
    return 1.0 if n <= 1.0 else n * factorial(n - 1.0)


def correlated(x: Any, window: Any) -> Any:
    found = np.zeros(len(x) - len(window) + 1)
    for i in range(len(found)):
        found[i] = np.dot(x[i : i + len(window)], window)
    return np.sum(found**2) + np.linalg.slogdet(np.outer(window, window) + np.eye(len(window)))[1]


FUNCTIONS: dict[Any, tuple[Any, ...]] = {
    path_lengths: (np.ones((4, 4)), np.ones(4)),
    root: (2.0,),
    best_before: (np.ones(4),),
    factorial: (5.0,),
    correlated: (np.ones(9), np.ones(3)),
}


@pytest.mark.parametrize("verb", [lambda f: f, dg.grad], ids=["function", "gradient"])
@pytest.mark.parametrize("of", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions(of: Any, verb: Any) -> None:
    assert faults(dg.cpp(verb(of), *FUNCTIONS[of])) == []
