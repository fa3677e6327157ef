"""From a plan to running code: C++ text, the library from the cache, and the engine that speaks to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import Error
from ..native.cache import build
from ..native.engine import (
    STATUS,
    Engine,
    FactTable,
    Failure,
    NativeChart,
    Report,
    Settings,
    WeightTable,
    World,
    out_of_memory,
)
from ..native.library import Stop
from ..native.toolchain import Compiler, compiler
from .backward import DIFFERENTIABLE
from .classes import Generated, generate
from .model import Derivatives, Passes, Plan

LARGE_SOURCE = 400_000
"""Characters from which on a program is compiled with less optimisation, to be done in time."""


@dataclass(frozen=True)
class Compiled:
    """A plan, its source, and its engine."""

    plan: Plan
    generated: Generated
    engine: Engine


def compile_plan(plan: Plan, progress: Callable[[str], None] | None = None, tool: Compiler | None = None) -> Compiled:
    """Writes and builds the class of a plan; from the cache where it was built before. `tool` is the compiler."""
    if not plan.adjoint and _goes_back_later(plan):
        generated = generate(replace(plan, derivatives=_ADJOINTS), passes=Passes.FORWARD)
    else:
        generated = generate(plan)
    library = _build(generated, progress, tool)
    return Compiled(plan, generated, Engine.at(library, library if plan.adjoint else None))


def compile_backward(
    forward: Compiled, progress: Callable[[str], None] | None = None, tool: Compiler | None = None
) -> Compiled:
    """What `extends` to a backward pass, with that pass, which alone is built."""
    plan = replace(forward.plan, derivatives=_ADJOINTS)
    library = _build(generate(plan, passes=Passes.BACKWARD), progress, tool)
    return Compiled(plan, forward.generated, Engine.at(forward.engine.path, library))


_ADJOINTS = Derivatives()


def extends(forward: Compiled, derivatives: Derivatives | None) -> bool:
    """Whether a backward pass over the charts of a class is all that these derivatives need."""
    return derivatives == _ADJOINTS and not forward.plan.adjoint and _goes_back_later(forward.plan)


def _goes_back_later(plan: Plan) -> bool:
    """Whether a class without a backward pass can keep a tape for one."""
    return plan.semiring in DIFFERENTIABLE and plan.changes is None and plan.derivatives in (None, _ADJOINTS)


def _build(generated: Generated, progress: Callable[[str], None] | None, tool: Compiler | None) -> Path:
    return build(
        generated.source,
        optimise=effort(generated.source),
        flags=generated.flags,
        objects=generated.objects,
        prelude=generated.prelude,
        tool=tool,
        progress=progress,
    )


def effort(source: str) -> int:
    """How much the compiler optimises: 3, or 1 for very long sources, unless DYNAGRAD_OPTIMISE says it."""
    wished = os.environ.get("DYNAGRAD_OPTIMISE", "")
    if wished not in ("", "0", "1", "2", "3"):
        raise Error(f"the environment variable DYNAGRAD_OPTIMISE is 0, 1, 2 or 3, and {wished[:20]!r} is none of them")
    most = int(wished or 3)
    return min(1, most) if len(source) >= LARGE_SOURCE else most


__all__ = [
    "STATUS",
    "Compiled",
    "Compiler",
    "FactTable",
    "Failure",
    "NativeChart",
    "Report",
    "Settings",
    "Stop",
    "WeightTable",
    "World",
    "compile_plan",
    "compiler",
    "out_of_memory",
]
