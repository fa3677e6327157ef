"""Plans made without facts: right for any facts of the right kinds, and slower than those that were made for some.

What is taken for granted of facts that nobody has seen lives here; how a plan is made of that is `planner.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..rules.normal import Rules
from ..rules.types import Domains
from .model import DomainSummary, FactSummary, Plan, Summary
from .options import Options
from .planner import make_plan

# What estimates go by where nothing is known.
_ROWS, _DISTINCT, _MEMBERS = 1000, 100, 100


@dataclass(frozen=True)
class Assumed(Summary):
    """A summary made without facts: its numbers are guesses for estimates, and nothing else may depend on them."""


def assume(rules: Rules, kinds: Sequence[str]) -> Assumed:
    """What may be taken for granted of facts that are not known: nothing but the kinds of arguments."""
    members = {"int": (0, _MEMBERS - 1), "atom": (0, _MEMBERS - 1), "term": (0, -1)}
    summaries = {n: DomainSummary(kind, *members[kind]) for n, kind in enumerate(kinds)}
    facts = {key: guess(rules, key) for key in takers(rules)}
    return Assumed(summaries, facts)


def guess(rules: Rules, key: str) -> FactSummary:
    """Facts of which nothing is known."""
    return FactSummary(_ROWS, (_DISTINCT,) * rules.predicates[key].arity)


def takers(rules: Rules) -> tuple[str, ...]:
    """The predicates that may have facts: inputs, and those of axioms."""
    with_axioms = {axiom.item.key for axiom in rules.axioms}
    return tuple(k for k, p in rules.predicates.items() if not p.external and (p.input or k in with_axioms))


def assumed_plan(rules: Rules, domains: Domains, kinds: Sequence[str], options: Options | None = None) -> Plan:
    """A plan that is right for any facts of these kinds: hash tables, and only the order that the rules show.

    >>> from dynagrad.rules import check, infer, parse
    >>> rules = check(parse("f(N+1) += f(N).  f(0) = 1."))
    >>> assumed_plan(rules, infer(rules), ["int"]).tables["f/1"].kind
    'hashed'
    """
    options = options or Options()
    wanted = Options(options.until, options.functions, options.user, 0, options.vector)
    return make_plan(rules, domains, assume(rules, kinds), wanted)
