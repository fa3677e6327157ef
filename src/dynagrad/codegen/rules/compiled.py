"""From a plan to running code: its C++ source, the library from the compiler or the cache, and the engine over it.

What the source says is for `program.py`; how it is compiled and kept is for `runtime/compiling/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ...plan.model import Derivatives, Passes, Plan
from ...rules.semirings import SEMIRINGS
from ...runtime.compiling import cache
from ...runtime.compiling.ahead import Ahead
from ...runtime.compiling.toolchain import Compiler
from ...runtime.engine import Engine
from ..effort import at_most
from .program import PRELUDE, Generated, generate

LONG = 500
"""The size (`plan/size.py`) from which on a class is compiled with flags that save the compiler's time."""
HUGE = 1100
"""The size from which on a class is compiled with less optimisation, to limit the time."""


@dataclass(frozen=True)
class CompiledPlan:
    """A plan, its source, and its engine."""

    plan: Plan
    generated: Generated
    engine: Engine


_ADJOINTS = Derivatives()
"""The derivatives of a backward pass over plain values, without directions."""


def source_of(plan: Plan) -> Generated:
    """The source of the class of a plan.

    A class that may need a backward pass later has members for a tape, which it fills only when told to record; its
    plan has no derivatives all the same.
    """
    if not plan.adjoint and _may_go_back(plan):
        return generate(replace(plan, derivatives=_ADJOINTS), passes=Passes.FORWARD)
    return generate(plan)


def compile_plan(
    plan: Plan,
    generated: Generated,
    progress: Callable[[str], None] | None = None,
    tool: Compiler | None = None,
    ahead: Ahead | None = None,
) -> CompiledPlan:
    """Compiles the class of a plan, or takes it from the cache. `tool` is the compiler, which may run `ahead`."""
    library = _build(generated, progress, tool, ahead)
    return CompiledPlan(plan, generated, Engine.at(library, library if plan.adjoint else None))


def backward_source_of(plan: Plan, forward: Generated) -> Generated:
    """The source of the backward pass over charts of the class of a plan."""
    return generate(replace(plan, derivatives=_ADJOINTS), passes=Passes.BACKWARD, like=forward)


def compile_backward(
    forward: CompiledPlan,
    generated: Generated,
    progress: Callable[[str], None] | None = None,
    tool: Compiler | None = None,
    ahead: Ahead | None = None,
) -> CompiledPlan:
    """The backward pass of a compiled forward pass that it `extends`, from its source, in a library of its own.

    Charts are made by the library of `forward`. Where the two classes would differ, one with both passes is compiled.
    """
    plan, like = replace(forward.plan, derivatives=_ADJOINTS), forward.generated
    if not generated.works_on(like):
        return compile_plan(plan, source_of(plan), progress, tool, ahead)
    return CompiledPlan(plan, like, Engine.at(forward.engine.path, _build(generated, progress, tool, ahead)))


def start_ahead(ahead: Ahead, tool: Compiler | None = None) -> None:
    """Starts the compiler for a class whose source is yet to be written."""
    cache.start_ahead(ahead, PRELUDE, effort(0), tool)


def extends(forward: CompiledPlan, derivatives: Derivatives | None) -> bool:
    """Whether these derivatives need only a backward pass over charts of a compiled class."""
    return derivatives == _ADJOINTS and not forward.plan.adjoint and _may_go_back(forward.plan)


def _may_go_back(plan: Plan) -> bool:
    """Whether a backward pass may be asked for of a plan later."""
    if plan.collects is not None:
        return False
    return SEMIRINGS[plan.semiring].jets != "" and plan.changes is None and plan.derivatives in (None, _ADJOINTS)


def _build(
    generated: Generated,
    progress: Callable[[str], None] | None,
    tool: Compiler | None,
    ahead: Ahead | None,
) -> Path:
    return cache.build(
        generated.source,
        optimise=effort(generated.size),
        flags=generated.flags,
        long=generated.size >= LONG,
        objects=[replace(o, optimise=at_most(o.optimise)) if o.capped else o for o in generated.objects],
        prelude=generated.prelude,
        tool=tool,
        ahead=ahead,
        progress=progress,
    )


def effort(size: int) -> int:
    """The compiler's level of optimisation for a class of this size: 3, or 1, at most what DYNAGRAD_OPTIMISE says."""
    return at_most(1 if size >= HUGE else 3)
