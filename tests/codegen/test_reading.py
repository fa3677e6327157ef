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
from dynagrad.codegen.rules.program import generate
from dynagrad.plan.model import Derivatives
from dynagrad.rules.semirings import SEMIRINGS
from plan.planned import planned

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")


CONSTANT = re.compile(
    r"&& \((true|false)\)|(true|false) \|\||const bool \w+ = (true|false);"
    r"|\w \* 1 \+ 0|narrow\(\([^()]*\([^()]*\)[^()]*\)\)|\{ break; \}"
)
"""Tests of what is known, parentheses around parentheses, and blocks of one `break`."""


def faults(source: str) -> list[str]:
    """The lines that no person would write."""
    found, depth = [], 0
    for number, line in enumerate(source.splitlines(), 1):
        text = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line).strip()
        closing = len(text) - len(text.lstrip("}"))
        label = text.startswith("#") or re.match(r"(public|private|case .*|default):|namespace |} +// namespace", text)
        if text and not label and len(line) - len(line.lstrip()) < 2 * (depth - closing):
            found.append(f"{number}: not indented: {line}")
        depth += text.count("{") - text.count("}")
        depth -= text.startswith(("namespace", 'extern "C"')) and text.endswith("{")
        if "(void)" in text or re.search(r"\bvoid \w+\(.*\) (const )?\{ ?\}", text) or re.search(r"; \w+ < 0;", text):
            found.append(f"{number}: {line}")
        if CONSTANT.search(text):
            found.append(f"{number}: a constant that no person would write: {line}")
    return found


def test_faults_are_found() -> None:
    assert faults("void f() {\n  return;\n}\n") == []
    assert len(faults("void f() {\nreturn;\n}\nvoid g() {}\nvoid h(int x) {\n  (void)x;\n}\n")) == 3


@pytest.mark.parametrize("name", examples.NAMES)
def test_programs(name: str) -> None:
    plan = planned(examples.source(name), examples.facts(name))
    assert faults(generate(plan).source) == []
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


@pytest.mark.parametrize("of", [path_lengths, dg.grad(path_lengths)], ids=["function", "gradient"])
def test_functions(of: Any) -> None:
    assert faults(dg.cpp(of, np.ones((4, 4)), np.ones(4))) == []
