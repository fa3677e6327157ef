"""Rounded summaries: what a plan may know of a run's own facts, so coarse that runs of about one size agree in it.

So they share a plan, which does not depend on the runs before; and a run computes the same numbers, to the bit,
whatever ran before it in its binding. What shared facts say stays exact. Statistics are made in `summary.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from math import prod

from ...plan.joins import rough
from ...plan.model import DomainSummary, FactSummary, Summary
from ...plan.storage.layout import SMALL, dense_tables
from .context import ProgramContext
from .summary import CodedFacts

Signature = tuple[frozenset[str], tuple[object, ...], tuple[object, ...]]
"""What facts that share a plan have in common: which predicates have facts; coarsely, domains and counts."""


def rounded(context: ProgramContext, known: CodedFacts, summary: Summary, fresh: Set[str]) -> Summary:
    """The summary that a plan is made from: exact in what shared facts say, in coarse steps in what runs differ in.

    `fresh` are the predicates of which a run has facts of its own.
    """
    domains = summary.domains
    own = {n for n, d in domains.items() if _is_extended(known, n, d)}
    if own:
        counts = tuple(d.count for d in domains.values())
        sizes = known.sizes.get(counts)
        if sizes is None:
            sizes = known.sizes[counts] = _domain_sizes(context, domains, own)
        domains = {n: replace(d, low=0, high=sizes[n] - 1) if n in own else d for n, d in domains.items()}
    facts = {}
    for key, found in summary.facts.items():
        if key in fresh:
            rows = _step(found.rows)
            distinct = _distinct_counts(rows, known, context, domains, key)
            facts[key] = FactSummary(rows, distinct, _least_gaps(context, found))
        elif key in known.gaps:
            facts[key] = found
        else:  # in an order that the facts of a run have a part in
            facts[key] = replace(found, gaps=_least_gaps(context, found))
    return Summary(domains, facts)


def signature(
    context: ProgramContext, known: CodedFacts, summary: Summary, present: frozenset[str], fresh: Set[str]
) -> Signature:
    """What the facts of a rounded summary have in common with others that may share its plan.

    Shared facts are the same for all runs; those of other bindings differ, and may share plans if they fit.
    """
    domains = tuple(
        (d.kind, d.count if _is_extended(known, n, d) else int(rough(d.count)), d.ranked)
        for n, d in summary.domains.items()
    )
    facts = tuple(
        (key, f.rows, f.distinct, tuple(f.gaps.items()))
        if key in fresh
        else (key, int(rough(f.rows)), tuple(_least_gaps(context, f).items()))
        for key, f in summary.facts.items()
        if key in present
    )
    return present, domains, facts


def _is_extended(known: CodedFacts, number: int, domain: DomainSummary) -> bool:
    """Whether the facts of a run have integers or atoms that shared facts have not."""
    before = known.encoding.domains[number]
    return domain.kind != "term" and (domain.low, domain.high) != (before.low, before.high)


def _domain_sizes(context: ProgramContext, domains: Mapping[int, DomainSummary], own: Set[int]) -> tuple[int, ...]:
    """The sizes to plan for: of domains that runs extend as coarse ones as leave the same tables arrays."""

    def sizes(step: Callable[[int], int]) -> dict[int, int]:
        return {n: step(d.count) if n in own else d.count for n, d in domains.items()}

    def tables(sizes: Mapping[int, int]) -> dict[str, int | None]:
        """By predicate, the cells of its array; None where it has none."""
        found: dict[str, int | None] = {}
        for key, predicate in context.rules.predicates.items():
            if predicate.defined:
                places = [context.domains.of[key, i] for i in range(predicate.arity)]
                found[key] = None if any(domains[n].kind == "term" for n in places) else prod(sizes[n] for n in places)
        return found

    def arrays(sizes: Mapping[int, int]) -> tuple[frozenset[str], list[str]]:
        """The tables that would be arrays if all were full, and those that are in any case."""
        cells = tables(sizes)
        dense = dense_tables(cells, context.options.dense_cells, lambda: None)
        return dense, [key for key, size in cells.items() if size is not None and size <= SMALL]

    coarse = sizes(_step)
    cells = [size or 0 for size in tables(coarse).values()]
    if max(cells, default=0) <= SMALL and sum(cells) <= context.options.dense_cells:
        return tuple(coarse.values())
    fine, exact = sizes(_fine_step), sizes(int)
    return tuple((fine if arrays(fine) == arrays(exact) else exact).values())


def _distinct_counts(
    rows: int, known: CodedFacts, context: ProgramContext, domains: Mapping[int, DomainSummary], key: str
) -> tuple[int, ...]:
    """The distinct counts of a run's facts: as many as the domain allows; where they add to shared facts, theirs."""
    if key in known.distinct:
        return known.distinct[key]
    counts = []
    for i in range(context.rules.predicates[key].arity):
        domain = domains[context.domains.of[key, i]]
        counts.append(rows if domain.kind == "term" else min(rows, _step(domain.count)))
    return tuple(counts)


def _step(count: int) -> int:
    """A count of a run's facts, rounded up coarsely.

    >>> [_step(n) for n in (1, 2, 30, 40, 300)]
    [1, 32, 32, 256, 2048]
    """
    return count if count <= 1 else int(rough(count, 32))


def _fine_step(count: int) -> int:
    """The same in four steps from a power of two to the next, as the cells of an array grow with its dimensions.

    >>> [_fine_step(n) for n in (3, 17, 40, 300)]
    [3, 20, 40, 320]
    """
    step = 1 << max(0, count.bit_length() - 3)
    return -(-count // step) * step


def _least_gaps(context: ProgramContext, facts: FactSummary) -> dict[tuple[int, int], int]:
    """The least differences between arguments of a run's facts, as a plan relies on them."""
    return {pair: _least_gap(gap, context.most_gap) for pair, gap in facts.gaps.items()}


def _least_gap(gap: int, most: int) -> int:
    """A least difference between arguments, rounded down coarsely: a lower bound for the facts of more runs.

    >>> [_least_gap(n, 4) for n in (-9, -1, 0, 1, 7)]
    [-32, -4, 0, 1, 4]
    """
    return min(gap, most) if gap >= 0 else -int(rough(-gap, 4))
