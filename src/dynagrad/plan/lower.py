"""Joins become nests: what each step binds, and what of an item that was found is still to be matched.

Steps were ordered by `joins.py`, and got their access paths in `access.py`. Here nothing is chosen.
"""

from __future__ import annotations

from ..rules.syntax import Item, Term, Variable
from .joins import term_variables
from .model import Absent, Filter, Join, Lookup, Plan, Scan, Solve, Step, Unfold
from .nest import Absence, Access, Guard, Head, Let, Loop, Match, Nest, Operation, Probe
from .traits import is_dense, is_external, is_facts


def lower(plan: Plan, join: Join) -> Nest:
    """The nest of a join."""
    rule = join.rule
    given: tuple[Term, ...] = ()
    if join.from_head:
        given = rule.head.arguments
    elif join.driver is not None:
        given = rule.antecedents[join.driver].item.arguments
    bound: set[str] = set().union(*map(term_variables, given))
    body: list[Operation] = []
    for step in join.steps:
        operation = _operation(plan, join, step, bound, inside=any(isinstance(o, Loop) for o in body))
        if operation is not None:
            body.append(operation)
    return Nest(
        rule=rule,
        driver=join.driver,
        from_head=join.from_head,
        given=given,
        body=tuple(body),
        head=Head(rule.head),
        same=frozenset(join.same),
        domains=plan.domains.variables[rule.number],
    )


def _operation(plan: Plan, join: Join, step: Step, bound: set[str], *, inside: bool) -> Operation | None:
    """What a step becomes; None where it has nothing to do. `bound` grows by what it binds."""
    match step:
        case Lookup(antecedent=i):
            item = join.rule.antecedents[i].item
            table = plan.tables[item.key]
            invariant = inside and is_facts(table) and table.arity > 0
            return Probe(i, item, table.kind, _is_final(plan, join, item), invariant)
        case Scan():
            return _loop(plan, join, step, bound)
        case Filter(condition=condition):
            return Guard(condition)
        case Solve(variable=variable, term=term, exact=exact):
            if variable in bound:
                return None
            bound.add(variable)
            return Let(variable, term, exact)
        case Unfold(variable=variable, pattern=pattern):
            return Match(variable, pattern, _bind(bound, pattern))
        case Absent(item=item, index=index, keys=keys):
            return Absence(item, index, keys)


def _loop(plan: Plan, join: Join, step: Scan, bound: set[str]) -> Loop:
    item = join.rule.antecedents[step.antecedent].item
    table = plan.tables[item.key]
    access = {"rows": Access.ROW, "index": Access.INDEX, "all": Access.ALL}[step.via]
    places = table.order if is_dense(table) and access is not Access.ROW else range(table.arity)
    if access is Access.ROW:
        places = table.order[-1:]
    matches: list[int] = []
    binds: list[str] = []
    for k in places:
        term = item.arguments[k]
        if access is Access.ROW or not _is_known(term, bound):
            matches.append(k)
            binds += _bind(bound, term)
    row = join.vector if step is join.steps[-1] else None
    return Loop(
        antecedent=step.antecedent,
        item=item,
        kind=table.kind,
        access=access,
        index=step.index,
        keys=step.keys,
        matches=tuple(matches),
        binds=tuple(binds),
        final=_is_final(plan, join, item),
        row=row,
    )


def _is_known(term: Term, bound: set[str]) -> bool:
    """Whether an index has matched an argument already: a constant or a bound variable at top level."""
    return (isinstance(term, Variable) and term.name in bound) or not term_variables(term)


def _bind(bound: set[str], term: Term) -> tuple[str, ...]:
    """The variables of a term that were not bound, which now are."""
    fresh = tuple(dict.fromkeys(name for name in _in_order(term) if name not in bound))
    bound.update(fresh)
    return fresh


def _in_order(term: Term) -> list[str]:
    """The variables of a term as they stand in it."""
    found: list[str] = []
    todo = [term]
    while todo:
        match todo.pop():
            case Variable(name=name):
                found.append(name)
            case other:
                todo += reversed(getattr(other, "arguments", ()))
    return found


def _is_final(plan: Plan, join: Join, item: Item) -> bool:
    """Whether values of a predicate do not change while a rule of this head is applied."""
    table = plan.tables[item.key]
    if is_facts(table) or is_external(table):
        return True
    stage = plan.stage_of[join.rule.head.key]
    return item.key not in stage.keys or stage.final
