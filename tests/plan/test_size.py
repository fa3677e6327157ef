"""The size of a class is known from its plan, and decides how it is compiled.

Costs a second: one program is compiled.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

import dynagrad as dg
import examples
from dynagrad.charts.chart import run_of
from dynagrad.codegen.rules.compiled import HUGE, LONG
from dynagrad.codegen.rules.program import generate
from dynagrad.plan.model import Derivatives, Passes, Plan
from dynagrad.plan.size import LARGE_PROGRAM, is_large, shares_joins, size
from plan.planned import planned

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")


@functools.cache
def chain(rules: int, semiring: str = "real") -> Plan:
    """The plan of a grammar with so many rules over ten predicates."""
    text = [f"p{i % 10}(I,K) += 0.5 * p{i * 7 % 10}(I,J) * p{i * 3 % 10}(J,K)." for i in range(rules - 1)]
    return planned("\n".join([f":- semiring {semiring}.", *text, "p0(I,K) += w(I,K)."]), {"w/2": [(0, 1, 0.5)]})


def test_size_grows_with_rules_and_passes() -> None:
    small, large = chain(20), chain(200)
    assert size(small, Passes.FORWARD) < size(large, Passes.FORWARD) < 15 * size(small, Passes.FORWARD)
    taped = replace(large, derivatives=Derivatives())
    forward, backward, both = (size(taped, passes) for passes in (Passes.FORWARD, Passes.BACKWARD, Passes.BOTH))
    assert forward < backward < both < forward + backward


def test_large_programs_share_joins() -> None:
    assert not is_large(chain(LARGE_PROGRAM - 1)) and shares_joins(chain(LARGE_PROGRAM))
    assert size(chain(LARGE_PROGRAM), Passes.FORWARD) < size(chain(LARGE_PROGRAM - 1), Passes.FORWARD)


def test_hundreds_of_rules_are_compiled_with_less_optimisation() -> None:
    plan = chain(LARGE_PROGRAM)  # though their joins share functions
    assert generate(plan, passes=Passes.FORWARD).size >= HUGE
    assert generate(replace(plan, derivatives=Derivatives())).size >= HUGE


@pytest.mark.parametrize("name", ["cky", "crf_recipe", "lattice", "network"])
def test_examples_are_compiled_with_full_optimisation(name: str) -> None:
    assert size(planned(examples.source(name), examples.facts(name)), Passes.BOTH) < LONG


@dg.compile
def reduced(x: float) -> float:
    while x > 1.0:
        x = x * 0.5
    return (((((x * x + 1.0) * x + 2.0) * x + 3.0) * x + 4.0) * x + 5.0) * x


def test_functions_of_values_count() -> None:
    program = dg.Program(":- function f/1.\na(X) += f(b(X)).", functions={"f": reduced})
    plan = run_of(program.run({"b/1": [("x", 1.0)]}, max_pops=0)).ready().compiled.plan
    assert generate(plan).size > size(plan, Passes.BOTH)
