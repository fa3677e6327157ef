"""Plans made without facts, from assumed statistics: right for any facts of the right kinds, but slower.

`planner.py` makes a plan of the statistics that are assumed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..rules.normal import Rules
from ..rules.types import Domains
from .model import DomainSummary, FactSummary, Plan, Summary
from .options import Options
from .planner import make_plan

# The statistics that estimates assume.
_ROWS, _DISTINCT, _MEMBERS = 1000, 100, 100


@dataclass(frozen=True)
class Assumed(Summary):
    """A summary made without facts: its numbers are guesses for estimates, and nothing else may depend on them."""


def assume(rules: Rules, kinds: Sequence[str]) -> Assumed:
    """The summary of unknown facts: only the kinds of arguments are certain."""
    members = {"int": (0, _MEMBERS - 1), "atom": (0, _MEMBERS - 1), "term": (0, -1)}
    summaries = {n: DomainSummary(kind, *members[kind]) for n, kind in enumerate(kinds)}
    facts = {key: guess(rules, key) for key in takers(rules)}
    return Assumed(summaries, facts)


def guess(rules: Rules, key: str) -> FactSummary:
    """The statistics of a predicate's unknown facts."""
    return FactSummary(_ROWS, (_DISTINCT,) * rules.predicates[key].arity)


def takers(rules: Rules) -> tuple[str, ...]:
    """The predicates that may have facts: inputs, and those of axioms."""
    with_axioms = {axiom.item.key for axiom in rules.axioms}
    return tuple(k for k, p in rules.predicates.items() if not p.external and (p.input or k in with_axioms))


def assumed_plan(rules: Rules, domains: Domains, kinds: Sequence[str], options: Options | None = None) -> Plan:
    """A plan that is right for any facts of these kinds: hash tables, and only the order that the rules show.

    >>> from dynagrad.rules import check, infer, parse
    >>> rules = check(parse("f(N+1) += f(N).  f(0) = 1."))
    >>> assumed_plan(rules, infer(rules), ["int"]).tables["f/1"].kind.value
    'hashed'
    """
    options = options or Options()
    wanted = Options(options.until, options.functions, options.user, 0, options.vector)
    return make_plan(rules, domains, assume(rules, kinds), wanted)
