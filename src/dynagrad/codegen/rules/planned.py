"""A plan and the source of its class, or of its backward pass, from the cache on disk if they were made before.

A record holds the source that is compiled. So its name is a hash of all that plan and source depend on: the program's
entry in the cache of rules, which stands for its text and for the sources of this package, the semiring, the options,
and the summary of the facts. A plan that depends on functions of the user, or on numbers that were counted in facts, is
not kept; for the latter, the record is empty.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields

from ...collector import collecting_later
from ...plan import model
from ...plan.analyses.recognise import effective_semiring
from ...plan.model import Plan, Summary
from ...plan.options import Options
from ...plan.planner import make_plan
from ...plan.storage.occupancy import PairCount
from ...rules import normal, syntax
from ...rules.normal import Rules
from ...rules.semirings import SEMIRINGS
from ...rules.types import Domains
from ...runtime.compiling import objects
from ...runtime.disk.contents import combined
from ...runtime.disk.records import PLAN, recall, remember
from ...runtime.disk.sources import sources
from ...runtime.disk.values import classes_of_data, packed, unpacked
from .compiled import CompiledPlan, backward_source_of, source_of
from .program import Generated
from .scope import Names


def planned(
    entry: str,
    rules: Rules,
    domains: Domains,
    summary: Summary,
    options: Options,
    count: PairCount,
    on_miss: Callable[[], object] | None = None,
) -> tuple[Plan, Generated]:
    """The plan for rules and a summary of the facts, and the source of its class. The rules are those of the `entry`
    of a program's text in the cache of rules; empty where they are not in it. `on_miss` is called before a plan is made
    that could be kept, and is not: most likely its class has to be compiled.
    """
    with collecting_later():
        name = _name(entry, rules, summary, options)
        shared = (rules, domains, summary, *rules.rules)
        found = _recalled(name, shared, on_miss)
        if found is not None:
            return found
        counted = False

        def asked(key: str, left: int, right: int) -> float:
            nonlocal counted
            counted = True
            return count(key, left, right)

        plan = make_plan(rules, domains, summary, options, asked)
        generated = source_of(plan)
        if not counted:
            _remember(name, plan, generated, shared)
        elif name is not None:
            remember(name, b"")  # it has been made
        return plan, generated


def planned_backward(
    entry: str, forward: CompiledPlan, options: Options, on_miss: Callable[[], object] | None = None
) -> Generated:
    """The source of the backward pass over charts of a class, whose plan is one for these options; `on_miss` as above.

    The record's name has the source of that class, too, as its plan may depend on numbers that were counted in facts.
    """
    with collecting_later():
        plan, like = forward.plan, forward.generated
        name = _name(entry, plan.rules, plan.summary, options, like.source)
        found = _recalled(name, (plan,), on_miss)
        if found is not None:
            return found[1]
        generated = backward_source_of(plan, like)
        _remember(name, plan, generated, (plan,))
        return generated


def _name(entry: str, rules: Rules, summary: Summary, options: Options, forward: str = "") -> str | None:
    """The name of the record; None where the plan depends on functions that are not in the program's text."""
    ours = sources()  # not those in the entry where a program was pickled by another version
    if ours is None or not entry or options.functions or options.user is not None:
        return None
    return f"{combined(ours, entry, _traits(effective_semiring(rules)), repr(summary), repr(options), forward)}{PLAN}"


def _traits(semiring: str) -> str:
    """All that the table says of a semiring, which may be added to it while a program runs."""
    row = SEMIRINGS[semiring]
    said = {f.name: getattr(row, f.name) for f in fields(row)}
    return repr({name: sorted(x) if isinstance(x, frozenset) else x for name, x in said.items() if not callable(x)})


def _recalled(
    name: str | None, shared: tuple[object, ...], on_miss: Callable[[], object] | None
) -> tuple[Plan, Generated] | None:
    """What is kept under a name; where there is no record, `on_miss` is called."""
    if name is None:
        return None
    kept = recall(name)
    if kept is None and on_miss is not None:
        on_miss()
    return _decoded(kept, shared) if kept else None


def _remember(name: str | None, plan: Plan, generated: Generated, shared: tuple[object, ...]) -> None:
    data = None if name is None or generated.names.functions else _encoded(plan, generated, shared)
    if name is not None and data is not None:
        remember(name, data)


# -- as bytes ----------------------------------------------------------------------------------------------------------

_SLOTS = ("constants", "functors", "weights", "weight_values")
"""What `Names` collects while a class is written."""


@functools.cache
def _classes() -> tuple[type, ...]:
    return classes_of_data(syntax, normal, model, objects)


@functools.cache
def _parts() -> tuple[str, ...]:
    return tuple(f.name for f in fields(Generated) if f.name != "names")


def _encoded(plan: Plan, generated: Generated, shared: tuple[object, ...]) -> bytes | None:
    slots = [getattr(generated.names, name) for name in _SLOTS]
    parts = [getattr(generated, name) for name in _parts()]
    return packed((plan, slots, parts), _classes(), shared)


def _decoded(data: bytes, shared: tuple[object, ...]) -> tuple[Plan, Generated] | None:
    match unpacked(data, _classes(), shared):
        case (Plan() as plan, [*slots], [*parts]) if len(slots) == len(_SLOTS) and len(parts) == len(_parts()):
            names = Names(plan)
            for name, value in zip(_SLOTS, slots, strict=True):
                setattr(names, name, value)
            return plan, Generated(names=names, **dict(zip(_parts(), parts, strict=True)))
    return None
