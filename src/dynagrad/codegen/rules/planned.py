"""`planned`: a plan and the source of its class, from the cache on disk if both were made before.

A record is found by the program's entry in the cache of rules and by all else that a plan depends on, the sources of
the planner and of the writers included. What is compiled from it is looked up by its source as ever
(`runtime/compiling/cache.py`), so a record saves time and decides nothing.
"""

from __future__ import annotations

import functools
import os
from dataclasses import fields, is_dataclass

from ...plan import model
from ...plan.layout import PairCount
from ...plan.model import Plan, Summary
from ...plan.options import Options
from ...plan.planner import make_plan
from ...plan.recognise import effective_semiring
from ...rules import normal, syntax
from ...rules.normal import Rules
from ...rules.semirings import SEMIRINGS
from ...rules.types import Domains
from ...runtime.compiling.fingerprint import combined
from ...runtime.disk.contents import hash_of, stats_in
from ...runtime.disk.records import recall, remember
from ...runtime.disk.values import packed, unpacked
from .compiled import source_of
from .program import Generated
from .scope import Names


def planned(
    entry: str, rules: Rules, domains: Domains, summary: Summary, options: Options, count: PairCount | None = None
) -> tuple[Plan, Generated]:
    """The plan for rules and a summary of the facts, and the source of its class. The rules are those of the `entry`
    of a program's text in the cache of rules; empty where they are not in it.
    """
    name = _name(entry, rules, summary, options)
    shared = (rules, domains, summary, *rules.rules)
    kept = None if name is None else recall(name)
    found = None if kept is None else _decoded(kept, shared)
    if found is not None:
        return found
    counted = False

    def asked(key: str, left: int, right: int) -> float:
        nonlocal counted
        counted = True
        assert count is not None
        return count(key, left, right)

    plan = make_plan(rules, domains, summary, options, None if count is None else asked)
    generated = source_of(plan)
    data = None if name is None or counted or generated.names.functions else _encoded(plan, generated, shared)
    if name is not None and data is not None:
        remember(name, data)
    return plan, generated


def _name(entry: str, rules: Rules, summary: Summary, options: Options) -> str | None:
    """The name of the record; None where the plan depends on functions that are not in the program's text."""
    if not entry or options.functions or options.user is not None:
        return None
    row = SEMIRINGS[effective_semiring(rules)]  # which may be added to the table while a program runs
    semiring = (row.cxx, row.jets, *row.source, *row.jets_source)
    return f"{combined(_writers(), entry, repr(semiring), repr(summary), repr(options))}.plan"


_WRITERS = ("autodiff", "codegen/cxx.py", "codegen/expression.py", "codegen/rules", "ir", "passes", "plan")
"""Of the package, beside the rooms of rules, which an entry in their cache depends on."""


@functools.cache
def _writers() -> str:
    """A hash of the sources that make plans and classes: older records are not found after a change of them."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    return hash_of(stats_in(*(os.path.join(package, place) for place in _WRITERS)), package)


# -- as bytes ----------------------------------------------------------------------------------------------------------

_SLOTS = ("constants", "functors", "weights", "weight_values")
"""What `Names` collects while a class is written."""


@functools.cache
def _classes() -> tuple[type, ...]:
    named = {**vars(syntax), **vars(normal), **vars(model)}
    return tuple(c for c in named.values() if isinstance(c, type) and is_dataclass(c))


@functools.cache
def _parts() -> tuple[str, ...]:
    return tuple(f.name for f in fields(Generated) if f.name != "names")


def _encoded(plan: Plan, generated: Generated, shared: tuple[object, ...]) -> bytes | None:
    slots = [getattr(generated.names, name) for name in _SLOTS]
    parts = [getattr(generated, name) for name in _parts()]
    return packed((plan, slots, parts), _classes(), shared)


def _decoded(data: bytes, shared: tuple[object, ...]) -> tuple[Plan, Generated] | None:
    found = unpacked(data, _classes(), shared)
    if found is None:
        return None
    plan, slots, parts = found
    names = Names(plan)
    for name, value in zip(_SLOTS, slots, strict=True):
        setattr(names, name, value)
    return plan, Generated(names=names, **dict(zip(_parts(), parts, strict=True)))
