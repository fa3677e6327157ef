"""The derivations of a chart's items: the chart's items go into a class that collects them (`codegen/rules/forest/`).

What can be asked of a forest once it is there is the business of `dynagrad/forests`, which knows no charts.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arguments import real_number, whole_number
from ..errors import Error, QueryError, cut
from ..facts.relation import take
from ..facts.terms import item_text
from ..forests.absence.attempts import WhyNot
from ..forests.absence.searching import Knowledge, why_not
from ..forests.algebra import ALGEBRAS, Algebra, check_order, check_sums, user_algebra
from ..forests.derivation import Derivation
from ..forests.native import Held, Walk
from ..forests.packed import NO_ROW, Arrays, ForestRule, Meaning, Name, Packed
from ..forests.ranking.k_best import ranking
from ..forests.sums.draws import Samples, make_samples
from ..forests.sums.totals import weighs
from ..forests.unfolding import unfolded
from ..forks import cached, renewed
from ..ir.interpret import evaluate
from ..plan.model import Plan, TableLayout
from ..plan.right_sides import numbers, to_node
from ..plan.traits import is_derived, is_external, merges_copies
from ..rules.normal import NormalRule
from ..rules.show import show
from ..rules.syntax import AntecedentValue, Application, Expression, ItemValue, Numeral, Side, Source
from ..runtime.engine import CELL_BITS, Collecting, Settings
from ..runtime.library import Stop
from . import lookup
from .binding.binding import Purpose, SetupLimits
from .binding.context import ProgramContext
from .binding.decoding import column, ranks
from .binding.loading import Prepared, coded
from .binding.unknown_arguments import unknown_argument
from .changes import translated
from .ends import Collected, End, Phase, check_end
from .externals import connect
from .finality import Query, adds_up, may_be_partial, stopped_at
from .run import Run

MOST_INSTANCES = 100_000_000
"""The most instances of a forest, unless its user says otherwise."""

MOST_MISSING, MOST_DEPTH = 100, 100
"""The bounds of a search for what is missing, which recurses on both."""


@dataclass(frozen=True)
class Collector:
    """A native chart with the items of a run, in the class that collects derivations."""

    prepared: Prepared
    raised: list[BaseException]  # by functions behind external predicates
    run: Run
    lock: Any = field(default_factory=lambda: renewed(threading.RLock()))
    """What is collected lies in the native chart until it is read, so threads take turns."""

    @property
    def plan(self) -> Plan:
        return self.prepared.compiled.plan

    @cached
    def rules(self) -> Mapping[int, ForestRule]:
        """The rules of its forests, by number."""
        assert self.plan.collects is not None
        return {join.rule.number: _rule(self.plan, join.rule) for join in self.plan.collects}

    def collect(
        self, key: str, codes: Sequence[int], most: int, how: int = Collecting.ALL, stop: Stop | None = None
    ) -> tuple[int, int]:
        """Collects the derivations of an item; how many items and instances there are."""
        timeout = -1 if stop is None else stop.nanoseconds
        settings = Settings(timeout_ns=timeout, max_bytes=self.run.limits.room, tolerance=0.0)
        chart = self.prepared.chart
        status = chart.collect(self.plan.tables[key].number, codes, settings, most, how, stop)
        if self.raised:
            raise self.raised[0]
        items, instances, _, _ = chart.collected()
        if status != "done":
            scale, asked = self.run.context.scale, Collected(key, codes, most)
            check_end(End(status, self.prepared, scale, Phase.COLLECTING, collected=asked))
        return items, instances


def collector(run: Run, stop: Stop | None = None) -> Collector:
    """A collector with the items of a run."""
    before, facts = run.ready(), run.facts
    after = facts.binding.prepare(
        facts.run,
        Purpose(collecting=True),
        SetupLimits(run.limits.room, None if stop is None else stop.deadline),
        overrides=facts.overrides,
        like=before.encoding,
    )
    raised: list[BaseException] = []
    connect(facts.context, after, raised)
    width = facts.context.scale.width
    for key, table in after.compiled.plan.tables.items():
        old = before.compiled.plan.tables.get(key)
        if is_derived(table) and old is not None:
            codes, words = before.chart.items(old.number, old.arity, width)
            if not after.chart.restore(table.number, translated(before, after, table.domains, codes), words):
                raise Error(f"the items of {key} do not fit the class that collects derivations")
    return Collector(after, raised, run)


def place(run: Run, held: Collector, item: Any) -> tuple[str, list[int]]:
    """An item's predicate and codes. Raises where it was not derived."""
    key, codes = lookup.place_of(run.context, held.prepared, item)
    words = lookup.words_at(held.prepared, key, codes, run.context.scale.width)
    if words is None or codes is None:
        name = cut(str(item) if isinstance(item, str) else item_text(*lookup.place(item, lambda _: None)))
        early = "" if run.status == "done" else f"; the run stopped early, {stopped_at(run)}: chart.run() continues it"
        said = unknown_argument(run.context, held.prepared, *lookup.place(item, lambda _: None))
        hint = said or f"chart.why_not({name!r}) says what is missing"
        raise QueryError(f"{name} was not derived, so it has no derivation; {hint}{early}")
    return key, codes


def size(held: Collector, item: Any, limit: int | None = None, stop: Stop | None = None) -> tuple[int, int]:
    """How many items and instances the forest of an item has, without making it."""
    key, codes = place(held.run, held, item)
    most = MOST_INSTANCES * 100 if limit is None else whole_number("limit", limit, 0)
    if may_be_partial(held.run):
        collect(held, item, limit, stop)  # for its error where some of the derivations are not known
    with held.lock:
        return held.collect(key, codes, most, Collecting.COUNTS, stop)


def collect(
    held: Collector,
    item: Any,
    limit: int | None = None,
    stop: Stop | None = None,
    *,
    sides: bool = False,
    best: bool = False,
) -> Packed:
    """The forest of an item's derivations; with `sides`, of those of items under `SIDE`, too; for the `best` alone.

    Raises where the run stopped before the item was final, see `finality.py`.
    """
    run, most = held.run, MOST_INSTANCES if limit is None else whole_number("limit", limit, 0)
    key, codes = place(run, held, item)
    scale, prepared = run.context.scale, held.prepared
    with held.lock:
        held.collect(key, codes, most, Collecting.SIDES if sides else Collecting.ALL, stop)
        arrays, words = prepared.chart.forest(scale.width)
    handles, given = arrays.pop("item"), arrays.pop("given")
    tables = (handles >> np.uint64(CELL_BITS)).astype(np.int64)
    cells = (handles & np.uint64((1 << CELL_BITS) - 1)).astype(np.int64)
    values = scale.from_words(words)
    packed = Arrays(**arrays)
    exact = True
    if may_be_partial(run):

        def cyclic() -> bool:
            held = {name: arrays[name] for name in ("begin", "end", "rule", "first", "antecedent")}
            view = Held(**held, constant=np.zeros(0), given=np.zeros(0))
            return bool(Walk(-1, 0, view, lambda: np.zeros(0, np.int64)).order(stop)[2].any())

        nodes = {
            table.key: prepared.chart.places(table.number, cells[tables == table.number], table.arity)
            for table in _present(held.plan, tables)
        }
        exact = adds_up(run, Query(prepared, key, tuple(codes), nodes, cyclic, best))
    weights, rows, given_of = _given(held, packed, tables, values, given)
    forest = Packed(
        packed,
        Meaning(
            lambda nodes: _names(prepared, tables, cells, nodes),
            lambda: values,
            weights,
            rows,
            lambda: _rank(prepared, tables, cells),
            held.rules,
            algebra_of(run.context),
            run.context.rules.source,
            exact,
            {key: p.aggregator for key, p in run.context.rules.predicates.items()},
            evaluate=_evaluator(held.plan, run.context.rules.source),
            given_of=given_of,
        ),
    )
    return unfolded(forest)


def algebra_of(context: ProgramContext) -> Algebra:
    """The weights of the derivations of a program."""
    if context.scale.name != "user":
        return ALGEBRAS[context.scale.name]
    user = context.options.user
    assert user is not None
    return user_algebra(context.scale.one, *_user_functions(user))


def _user_functions(user: Any) -> tuple[Any, Any, Any]:
    """The times, the plus and the order of a user's semiring, on values as they are outside."""

    def parts(value: Any) -> tuple[float, ...]:
        return (float(value),) if user.scalar else tuple(float(v) for v in value)

    def value(nodes: Any, a: Any, b: Any) -> Any:
        found = tuple(float(v) for v in user.at(nodes, parts(a), parts(b)))
        return found[0] if user.scalar else found

    def times(a: Any, b: Any) -> Any:
        return value(user.times, a, b)

    def plus(a: Any, b: Any) -> Any:
        return value(user.plus, a, b)

    def less(a: Any, b: Any) -> bool:
        return bool(user.at([user.less], parts(a), parts(b))[0])

    return times, plus, None if user.less is None else less


def _rule(plan: Plan, rule: NormalRule) -> ForestRule:
    constants = tuple(numbers(rule.value)) if plan.semiring != "plain" else ()
    return ForestRule(rule.number, rule.text, rule.source, constants, rule)


def _present(plan: Plan, numbers_of: npt.NDArray[np.int64]) -> list[TableLayout]:
    """The tables with these numbers, in order: a forest has items of few of a large program's predicates."""
    numbered = {table.number: table for table in plan.tables.values()}
    return [numbered[n] for n in np.unique(numbers_of).tolist()]


def _names(
    prepared: Prepared, tables: npt.NDArray[np.int64], cells: npt.NDArray[np.int64], nodes: Sequence[int]
) -> list[Name]:
    """The names of nodes, decoded predicate by predicate."""
    listed = np.asarray(nodes, np.int64)
    found: list[Name] = [("", ())] * len(listed)
    own = tables[listed]
    for table in _present(prepared.compiled.plan, own):
        at = np.flatnonzero(own == table.number)
        codes = prepared.chart.places(table.number, cells[listed[at]], table.arity)
        columns = [column(prepared, d, codes[:, i]).to_list() for i, d in enumerate(table.domains)]
        rows = zip(*columns, strict=True) if columns else [()] * len(at)
        for n, row in zip(at.tolist(), rows, strict=True):
            found[n] = (table.key, tuple(row))
    return found


def _rank(prepared: Prepared, tables: npt.NDArray[np.int64], cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The order of nodes: by predicate as the program names them, then by argument."""
    rank = np.zeros(len(tables), np.int64)
    start = 0
    for table in _present(prepared.compiled.plan, tables):
        at = np.flatnonzero(tables == table.number)
        order = np.arange(len(at))
        if table.arity:
            codes = prepared.chart.places(table.number, cells[at], table.arity)
            keys = [ranks(prepared, d, codes[:, i]) for i, d in enumerate(table.domains)]
            order = np.lexsort(keys[::-1])
        rank[at[order]] = start + np.arange(len(at))
        start += len(at)
    return rank


def _given(
    held: Collector,
    arrays: Arrays,
    tables: npt.NDArray[np.int64],
    values: npt.NDArray[Any],
    given: npt.NDArray[np.uint32],
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
    """The weight of each given fact, and which row of its predicate it is; those of each predicate, by number."""
    scale, relations = held.run.context.scale, held.prepared.relations
    places = np.flatnonzero(arrays.rule < 0)
    numbers_of = -1 - arrays.rule[places].astype(np.int64)
    owner = arrays.owner[places]
    table_of = np.zeros(len(given), np.int64)
    table_of[numbers_of] = tables[owner]
    node_of = np.zeros(len(given), np.int64)
    node_of[numbers_of] = owner
    rows = given.astype(np.int64)
    like = scale.from_words(np.repeat(np.asarray(scale.word_of(scale.one))[None], max(1, len(given)), axis=0))
    weights = np.array(like[: len(given)])
    found: dict[str, npt.NDArray[np.int64]] = {}
    if scale.shape == "count":
        weights = np.array(weights, object)
    for table in _present(held.plan, table_of):
        at = np.flatnonzero(table_of == table.number)
        found[table.key] = at
        if is_external(table):
            weights[at] = values[node_of[at]]
            rows[at] = NO_ROW
            continue
        shared, axioms, _ = held.run.facts.places(table.key)
        place = rows[at]
        if merges_copies(held.plan, table):
            weights[at], place = _merged(held, table, given[at])
        after = np.where(place < shared + axioms, shared - 1 - place, place - axioms)
        rows[at] = np.where(place < shared, place, after)
        if merges_copies(held.plan, table):
            continue
        own = relations.get(table.key)
        if own is not None and own.values is not None:
            chosen = take(own, given[at].astype(np.int64)).values
            assert chosen is not None
            weights[at] = chosen
    return weights, rows, found


def _evaluator(plan: Plan, source: Source) -> Callable[[ForestRule, Sequence[Any]], Any] | None:
    """The value of an instance in plain arithmetic, from those of its antecedents."""
    if plan.semiring != "plain":
        return None

    def numbered(rule: ForestRule) -> Expression:
        """The right side over numbered antecedents; as it is written, where transient items are antecedents."""
        if rule.normal is not None:
            return rule.normal.value
        places = itertools.count()

        def visit(at: Expression) -> Expression:
            if isinstance(at, ItemValue):
                return AntecedentValue(next(places))
            if isinstance(at, Side):
                next(places)
                return Numeral(1)
            return replace(at, operands=tuple(map(visit, at.operands))) if isinstance(at, Application) else at

        return visit(source.rules[rule.source].body)

    def value(rule: ForestRule, values: Sequence[Any]) -> Any:
        node = to_node(numbered(rule), plan.functions)
        known = {f"x{i}": v for i, v in enumerate(values) if v is not None}
        return float(evaluate([node], known)[0])

    return value


# -- batches -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """What a batch is to have of each example's derivations."""

    best: int | None
    sample: int | None
    seed: int

    @staticmethod
    def read(query: Any, best: Any, sample: Any, seed: Any) -> Wanted | None:
        """None where nothing is wanted. Raises Error for what cannot be."""
        best = None if best is None else whole_number("best", best, 1)
        sample = None if sample is None else whole_number("sample", sample, 0)
        if best is None and sample is None:
            return None
        if query is None:
            raise Error('best and sample need an item whose derivations are wanted, such as query="goal"')
        return Wanted(best, sample, whole_number("seed", seed))

    def check(self, context: ProgramContext) -> None:
        """Raises where no run of the program could have such derivations."""
        if self.best is not None:
            check_order(algebra_of(context))
        if self.sample is not None:
            check_sums(algebra_of(context))

    def of(self, run: Run, query: Any, stop: Stop) -> tuple[list[Derivation], Samples | None]:
        """Those of one example: none where the item was not derived. They keep no chart.

        Compiling the class that collects them is no part of the example, and does not look at the time.
        """
        held = collector(run)
        key, codes = lookup.place_of(run.context, held.prepared, query)
        if lookup.words_at(held.prepared, key, codes, run.context.scale.width) is None:
            return [], None
        forest = collect(held, query, None, stop)
        ranked = [] if self.best is None else list(itertools.islice(ranking(forest, lambda: stop), self.best))
        drawn = None
        if self.sample is not None and weighs(forest, stop):  # else there is none to draw, but a value
            drawn = make_samples(forest, self.sample, self.seed, stop=stop)
        return [d.detached() for d in ranked], drawn


# -- why not -----------------------------------------------------------------------------------------------------------


def knowledge(run: Run) -> Knowledge:
    """What there is in a chart, for whoever looks for what is missing."""
    prepared, context = run.ready(), run.context
    tables = prepared.compiled.plan.tables

    def decoded(key: str, codes: npt.NDArray[np.int32]) -> list[tuple[Any, ...]]:
        table = tables[key]
        columns = [column(prepared, d, codes[:, i]).to_list() for i, d in enumerate(table.domains)]
        return list(zip(*columns, strict=True)) if columns else [()] * len(codes)

    def rows(key: str) -> list[tuple[Any, ...]]:
        return decoded(key, run.items(prepared, key)[0]) if key in tables else []

    def pending(key: str) -> list[tuple[Any, ...]]:
        table = tables.get(key)
        if table is None or not is_derived(table):
            return []
        codes, _ = prepared.chart.items(table.number, table.arity, context.scale.width, pending=True)
        there = set(rows(key))
        return [row for row in decoded(key, codes) if row not in there]

    predicates = context.rules.predicates
    status = "" if run.status == "done" else f"the run ended early, at its limit on {run.status}"
    return Knowledge(
        rows,
        context.rules.rules,
        frozenset(k for k, p in predicates.items() if p.defined),
        frozenset(k for k, p in predicates.items() if p.input),
        frozenset(k for k, p in predicates.items() if p.external),
        lambda key, row: context.externals[key](*row),
        pending,
        status,
    )


def explain_absence(run: Run, item: Any, most: int, depth: int, bindings: int, seconds: float) -> WhyNot:
    """Why an item is not there. Raises where it is."""
    most, depth = whole_number("missing", most, 1, MOST_MISSING), whole_number("depth", depth, 1, MOST_DEPTH)
    bindings = whole_number("bindings", bindings, 1)
    seconds = real_number("seconds", seconds)
    prepared = run.ready()
    if isinstance(item, tuple):
        key, values = lookup.place(item, lambda key: lookup.check_known(run.context, prepared, key))
        item = item_text(key, values)
    read = lookup.read_item(run.context, prepared, item)
    table = lookup.find(run.context, prepared, read, lambda key: run.items(prepared, key), quiet=True)
    if len(table):
        raise QueryError(f"{show(read)} is derived; chart.why({show(read)!r}) says why")
    return why_not(knowledge(run), read, most, depth, bindings, seconds)


def _merged(
    held: Collector, table: TableLayout, rows: npt.NDArray[np.uint32]
) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Of rows of a fact table in which copies are one: their values, and the first copy of each."""
    scale, relation = held.run.context.scale, held.prepared.relations[table.key]
    codes = coded(held.run.context, held.prepared, relation)
    unique, first = np.unique(codes, axis=0, return_index=True) if table.arity else (codes[:1], np.zeros(1, np.int64))
    values = []
    for row in rows.tolist():
        words = held.prepared.chart.fact(table.number, unique[row].tolist(), scale.width)
        assert words is not None
        values.append(scale.value(words))
    return values, np.asarray(first[rows], np.int64)
