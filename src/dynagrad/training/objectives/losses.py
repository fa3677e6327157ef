"""Facts that are losses: those of the predicates that `Risk(cost)` and `Conditional(cost=)` name.

They are factors of rules, so that derivations have them, and no weights: the objective that names them says what they
do, and for everything else that a model works out they are the semiring's one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...calls import nearest_option
from ...charts.binding.context import from_probabilities, read_facts
from ...charts.program import (
    Bound,
    Program,
    context_of,
    in_probabilities,
    with_weights,
)
from ...errors import Error, FactError, shown
from ...facts.readers import read
from ...facts.relation import Relation, parse_key
from ..examples import Example


def cost_key(cost: Any) -> None:
    """Raises Error where this cannot name a predicate of costs."""
    if not isinstance(cost, str):
        raise FactError(f"cost is a predicate whose facts are costs, such as 'loss/2', not {shown(cost)}")
    parse_key(cost)


def losses_of(objective: Any) -> frozenset[str]:
    """The predicates whose facts an objective takes for losses."""
    found: frozenset[str] = getattr(objective, "losses", frozenset())
    return found


def check_losses(program: Program, keys: Collection[str], learned: Collection[str]) -> None:
    """Raises Error where a program has no such predicate, or its values come from rules, or from parameters."""
    rules = context_of(program).rules
    defined = {r.head.key for r in rules.rules} | {a.item.key for a in rules.axioms}
    for key in sorted(keys):
        if key not in program.predicates:
            raise Error(f"the program has no predicate {shown(key)} for costs{nearest_option(key, program.predicates)}")
        if key in defined:
            raise Error(f"costs are facts, and the program has rules for {key}: name a predicate that only facts have")
        if key in learned:
            raise Error(
                f"costs are facts whose values are known, and the weights of {key} are learned: leave it out of "
                "parameters, or name another predicate for costs"
            )


def weightless(facts: Mapping[str, Any], keys: Collection[str]) -> Mapping[str, Any]:
    """Facts without the values of those of some predicates."""
    here = [key for key in keys if key in facts]
    return {**facts, **{key: replace(read(key, facts[key]), values=None) for key in here}} if here else facts


def numbered(losses: Relation) -> Relation:
    """Losses with their values: one where there are none."""
    return replace(losses, values=np.ones(losses.count)) if losses.values is None else losses


def with_losses(example: Example, keys: Collection[str]) -> Mapping[str, Any]:
    """The facts of an example, with losses that stand among what was observed."""
    here = {key: example.observed[key] for key in keys if key in example.observed}
    return {**example.facts, **here} if here else example.facts


def apart(
    program: Program, facts: Mapping[str, Any], keys: Collection[str]
) -> tuple[dict[str, Any], dict[str, Relation]]:
    """The facts of all examples, without the values of those that are losses; and these with them, as they came."""
    losses = read_facts(context_of(program), {k: facts[k] for k in facts if k in keys}, False, bare=True)
    return {**facts, **{key: replace(relation, values=None) for key, relation in losses.items()}}, losses


def charged(bound: Bound, key: str | None, losses: Mapping[str, Relation]) -> Bound:
    """A program with the losses of all examples as weights, if those of this predicate are there."""
    if key is None or key not in losses:
        return bound
    found = numbered(losses[key])
    if in_probabilities(bound.program):
        found = from_probabilities(context_of(bound.program).scale, found)
    assert found.values is not None
    return with_weights(bound, {key: found.values})
