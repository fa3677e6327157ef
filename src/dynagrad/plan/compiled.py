"""From a plan to running code: C++ text, the library from the cache, and the engine that speaks to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..native.cache import build
from ..native.engine import STATUS, Engine, FactTable, NativeChart, Report, Settings, WeightTable, World
from ..native.library import Stop
from .classes import Generated, generate
from .model import Plan

LARGE_SOURCE = 400_000
"""Characters from which on a program is compiled with less optimisation, to be done in time."""


@dataclass(frozen=True)
class Compiled:
    """A plan, its source, and its engine."""

    plan: Plan
    generated: Generated
    engine: Engine


def compile_plan(plan: Plan, progress: Callable[[str], None] | None = None) -> Compiled:
    """Writes and builds the class of a plan; from the cache where it was built before."""
    generated = generate(plan)
    large = len(generated.source) >= LARGE_SOURCE
    library = build(generated.source, optimise=1 if large else 3, progress=progress)
    return Compiled(plan, generated, Engine.at(library, plan.adjoint))


__all__ = [
    "STATUS",
    "Compiled",
    "FactTable",
    "NativeChart",
    "Report",
    "Settings",
    "Stop",
    "WeightTable",
    "World",
    "compile_plan",
]
