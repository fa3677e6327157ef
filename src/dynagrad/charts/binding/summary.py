"""Statistics of facts for the planner: counts, ranges, distinct values, orders; and whether an existing plan fits them.

A plan is made from a summary alone, so it is right for all facts whose summary fits it. Statistics of shared facts are
kept in `CodedFacts`; those of a run's own facts are rounded before a plan is made (`rounding.py`). What the planner
makes of a summary is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from ...facts.relation import Codes, Relation
from ...plan.model import DomainSummary, FactSummary, Plan, Summary
from ...plan.options import Options
from ...plan.order import ordered_pairs
from ...plan.right_sides import numbers
from ...plan.storage.layout import cells, still_dense
from ...plan.storage.occupancy import PairCount
from ...plan.traits import is_dense
from ...rules.semirings import SEMIRINGS
from .context import ProgramContext
from .encoding import Encoding

MOST_ARCS = 2_000_000
"""With more arcs than this, no order of the atoms is searched for."""


# -- making one --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CodedFacts:
    """The facts that runs share, encoded, with their statistics, which are filled in when they are first needed."""

    encoding: Encoding
    codes: Mapping[str, list[Codes | None]]  # None: a column of terms, which native code interns
    distinct: Mapping[str, tuple[int, ...]]
    ranks: dict[int, Codes | None] = field(default_factory=dict)
    gaps: dict[str, dict[tuple[int, int], int]] = field(default_factory=dict)
    sizes: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)
    """From the sizes of all domains, the facts of a run included, to those that a plan is made for."""

    @staticmethod
    def of(context: ProgramContext, encoding: Encoding, relations: Mapping[str, Relation]) -> CodedFacts:
        codes = {key: encoding.codes(context.domains, relation) for key, relation in relations.items()}
        return CodedFacts(encoding, codes, {key: _distinct(c, relations[key].count) for key, c in codes.items()})


def summarise(
    context: ProgramContext,
    known: CodedFacts,
    encoding: Encoding,
    relations: Mapping[str, Relation],
    fresh: Mapping[str, list[Codes | None]],
) -> tuple[Summary, dict[int, Codes]]:
    """The summary of all facts, and the ranks of atoms that facts order; `fresh` has the codes of those not shared."""
    codes = {**known.codes, **fresh}
    ranks: dict[int, Codes] = {}
    for number, sources in context.rank_sources.items():
        if encoding.domains[number].kind == "atom":
            found = _ranks(known, encoding, number, sources, codes, fresh)
            if found is not None:
                ranks[number] = found
    domains = {n: DomainSummary(d.kind, d.low, d.high, n in ranks) for n, d in enumerate(encoding.domains)}
    shape = Summary(domains, {})
    facts = {}
    for key, relation in relations.items():
        columns = codes[key]
        steady = key not in fresh and not any(context.domains.of[key, i] in ranks for i in range(relation.arity))
        gaps = known.gaps.get(key) if steady else None
        if gaps is None:
            gaps = _gaps(context, key, shape, columns, ranks)
            if steady:
                known.gaps[key] = gaps
        distinct = known.distinct.get(key) if key not in fresh else None
        facts[key] = FactSummary(relation.count, distinct or tuple(max(1, relation.count) for _ in columns), gaps)
    return Summary(domains, facts), ranks


def _gaps(
    context: ProgramContext, key: str, shape: Summary, columns: Sequence[Codes | None], ranks: Mapping[int, Codes]
) -> dict[tuple[int, int], int]:
    """The least difference between the two columns of each ordered pair of a relation."""
    gaps = {}
    for i, j in ordered_pairs(context.domains, shape, key, len(columns)):
        a, b = columns[i], columns[j]
        if a is not None and b is not None and len(a):
            rank = ranks.get(context.domains.of[key, i])
            low, high = (rank[a], rank[b]) if rank is not None else (a, b)
            gaps[i, j] = int((high.astype(np.int64) - low).min())
    return gaps


def _ranks(
    known: CodedFacts,
    encoding: Encoding,
    number: int,
    sources: Sequence[tuple[str, int, int]],
    codes: Mapping[str, list[Codes | None]],
    fresh: Mapping[str, list[Codes | None]],
) -> Codes | None:
    """Topological ranks of a domain's atoms, by as many pairs of fact columns as form no cycle; None where all do."""
    count = len(encoding.domains[number].atoms)
    settled = not any(key in fresh for key, _, _ in sources) and count == len(known.encoding.domains[number].atoms)
    if settled and number in known.ranks:
        return known.ranks[number]
    arcs: list[tuple[Codes, Codes]] = []
    for key, i, j in sources:
        columns = codes.get(key)
        a, b = (columns[i], columns[j]) if columns is not None else (None, None)
        if a is not None and b is not None and len(a):
            arcs.append((a, b))
    found = None
    if arcs and sum(len(a) for a, _ in arcs) <= MOST_ARCS:
        found = topological_ranks(count, arcs)
        if found is None and len(arcs) > 1:
            kept: list[tuple[Codes, Codes]] = []
            for arc in arcs:
                tried = topological_ranks(count, [*kept, arc])
                if tried is not None:
                    found, kept = tried, [*kept, arc]
    if settled:
        known.ranks[number] = found
    return found


def topological_ranks(count: int, arcs: Sequence[tuple[Codes, Codes]]) -> Codes | None:
    """Numbers for 0..count-1 such that every arc goes from a smaller to a larger one, or None where arcs form a cycle.

    >>> topological_ranks(3, [(np.array([2, 0], np.int32), np.array([0, 1], np.int32))])
    array([1, 2, 0], dtype=int32)
    """
    tails = np.concatenate([a for a, _ in arcs]) if arcs else np.zeros(0, np.int32)
    heads = np.concatenate([b for _, b in arcs]) if arcs else np.zeros(0, np.int32)
    order = np.argsort(tails, kind="stable")
    start = np.searchsorted(tails[order], np.arange(count + 1)).tolist()
    following = heads[order].tolist()
    waiting = np.bincount(heads, minlength=count).tolist() if len(heads) else [0] * count
    ranks = np.zeros(count, np.int32)
    ready = [n for n in range(count) if not waiting[n]]
    done = 0
    depth = [0] * count
    while done < len(ready):
        node = ready[done]
        done += 1
        below = depth[node] + 1
        for to in following[start[node] : start[node + 1]]:
            if depth[to] < below:
                depth[to] = below
            waiting[to] -= 1
            if not waiting[to]:
                ready.append(to)
    if done < count:
        return None
    ranks[:] = depth
    return ranks


def _distinct(columns: Sequence[Codes | None], count: int) -> tuple[int, ...]:
    """The number of distinct values in each column, estimated from at most 100,000 rows."""
    out = []
    for column in columns:
        if column is None or not len(column):
            out.append(max(1, count // 2))
            continue
        sample = column if len(column) <= 100_000 else column[:: len(column) // 100_000]
        found = len(np.unique(sample))
        out.append(found if found < len(sample) // 2 else max(1, found * (len(column) // len(sample))))
    return tuple(out)


def pair_count(
    relations: Mapping[str, Relation], codes: Mapping[str, Sequence[Codes | None]], fresh: Set[str], summary: Summary
) -> PairCount:
    """Counts the values of facts in pairs of columns, for a plan that has to know: in at most 100,000 rows.

    Of a run's own facts (`fresh`) it says the most that their rounded `summary` allows.
    """

    def count(key: str, i: int, j: int) -> float:
        rows = relations[key].count if key in relations else 0
        if key in fresh and rows:
            facts = summary.facts[key]
            return float(min(facts.rows, facts.distinct[i] * (facts.distinct[j] if i != j else 1)))
        columns = codes.get(key)
        if not rows or columns is None:
            return float(rows)
        a, b = columns[i], columns[j]
        if a is None or b is None:
            return float(rows)
        step = max(1, rows // 100_000)
        both = (a[::step].astype(np.int64) << 32) | b[::step].astype(np.int64)
        return min(float(rows), float(len(np.unique(both)) * step))

    return count


# -- using one ---------------------------------------------------------------------------------------------------------


def fits(plan: Plan, summary: Summary, options: Options) -> bool:
    """Whether a plan that was made for other facts is right for these."""
    if plan.until != options.until or (plan.changes is not None) != options.changing:
        return False
    if (plan.collects is not None) != options.collecting:
        return False
    if plan.derivatives != options.derivatives:
        return False
    if not options.collecting and (plan.solves if options.iterate else plan.iterates and not options.changing):
        return False
    for number, domain in summary.domains.items():
        if plan.summary.domains[number].ranked != domain.ranked:
            return False
    for key, gaps in plan.gaps.items():
        facts = summary.facts.get(key)
        if facts is None or not facts.rows:
            continue
        if any(facts.gaps.get(pair, least) < least for pair, least in gaps.items()):
            return False
        if any(pair not in gaps for pair in facts.gaps):  # the plan was made when this predicate was empty
            return False
    dense = {key: table for key, table in plan.tables.items() if is_dense(table)}
    sizes = {k: cells(t.arity, [summary.domains[d] for d in t.domains], t.extents, t.order) for k, t in dense.items()}
    return still_dense(sizes, {key: table.cells for key, table in dense.items()}, options.dense_cells)


def ordered(
    context: ProgramContext, plan: Plan, key: str, columns: Sequence[Codes | None], ranks: Mapping[int, Codes]
) -> bool:
    """Whether other facts of a predicate are in the order that a plan relies on."""
    if not plan.gaps:
        return True
    relied = plan.gaps.get(key, {})
    found = _gaps(context, key, plan.summary, columns, ranks)
    return all(pair in relied and relied[pair] <= gap for pair, gap in found.items())


def is_superior(context: ProgramContext, relations: Mapping[str, Relation]) -> bool:
    """Whether no fact and no constant can improve a value (superiority, Knuth 1977): then best-first pops are final."""
    sign = SEMIRINGS[context.scale.name].superior_sign
    if sign is None:
        return False
    constants = [n for rule in context.rules.rules for n in numbers(rule.value)]
    given = [r.values for r in relations.values() if r.values is not None and r.count]
    return all(sign * n >= 0 for n in constants) and all(bool((sign * v >= 0).all()) for v in given)
