"""Facts meet a program: relations are gathered, coded and summarised, a plan is chosen, and charts are set up.

The life of a binding: it holds the facts that runs share. The first run looks at all facts, settles domains and plan,
and compiles; what depends on the shared facts alone is kept, so that later runs only code their own facts. A run whose
facts do not fit a plan (other types, another order, no room) gets a plan of its own. The one caveat: a binding is used
by many threads, so whatever is kept is made under a lock and never changed afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .encoding import (
    Encoding,
    TermCodes,
    data_value,
    flat_terms,
    kinds,
    program_constants,
    settle_texts,
    syntax_value,
    topological_ranks,
)
from .errors import Error, FactError
from .facts import AtomColumn, Column, IntColumn, Relation, TermColumn, TextColumn, read
from .plan.compiled import Compiled, FactTable, NativeChart, WeightTable, World, compile_plan
from .plan.joins import rough
from .plan.layout import cells
from .plan.model import Derivatives, DomainSummary, FactSummary, Summary
from .plan.order import ordered_pairs, rank_sources
from .plan.planner import Options, make_plan
from .plan.values import numbers
from .rules import undefined
from .rules.check import nearest
from .rules.normal import Rules
from .rules.types import Domains
from .semirings import Scale
from .terms import Interner, shown

MOST_ARCS = 2_000_000
"""More arcs than this are not searched for an order of their atoms."""

Codes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Signature = frozenset[tuple[str, int, int, int]]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Setting:
    """The parts of a program that its bindings need."""

    rules: Rules
    domains: Domains
    scale: Scale
    options: Options
    externals: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


# -- relations ---------------------------------------------------------------------------------------------------------


def concatenate(first: Relation, second: Relation, one: Any) -> Relation:
    """The rows of both, the first one's first."""
    columns = tuple(_concatenate_columns(a, b) for a, b in zip(first.columns, second.columns, strict=True))
    values: Array | None = None
    if first.values is not None or second.values is not None:
        a, b = (_filled(r, one, first if first.values is not None else second) for r in (first, second))
        if a.dtype == object or b.dtype == object:
            values = np.concatenate([a.astype(object), b.astype(object)])
        else:
            values = np.concatenate([a, b])
    return Relation(first.key, first.count + second.count, columns, values, first.value_shape)


def _filled(relation: Relation, one: Any, like: Relation) -> Array:
    if relation.values is not None:
        return relation.values
    assert like.values is not None
    shape = (relation.count, *like.values.shape[1:])
    row = np.array([x for part in (one if isinstance(one, tuple) else (one,)) for x in np.ravel(part)])
    return np.broadcast_to(row if len(shape) > 1 else row[0], shape).astype(like.values.dtype)


def _concatenate_columns(a: Column, b: Column) -> Column:
    if isinstance(a, IntColumn) and isinstance(b, IntColumn):
        return IntColumn(np.concatenate([a.numbers, b.numbers]))
    if isinstance(a, AtomColumn) and isinstance(b, AtomColumn) and type(a) is type(b):
        atoms = list(a.atoms)
        place = {(type(x), x): i for i, x in enumerate(atoms)}
        moved = []
        for x in b.atoms:
            if (type(x), x) not in place:
                place[type(x), x] = len(atoms)
                atoms.append(x)
            moved.append(place[type(x), x])
        codes = np.concatenate([a.codes, np.array(moved or [0], np.int32)[b.codes]])
        return type(a)(codes.astype(np.int32), atoms)
    values = [*a.to_list(), *b.to_list()]
    if any(isinstance(c, TermColumn) for c in (a, b)):
        return TermColumn(values)
    number: dict[Any, int] = {}
    mixed: list[Any] = []
    codes_list = []
    for x in values:
        place_of = number.setdefault((type(x), x), len(mixed))
        if place_of == len(mixed):
            mixed.append(x)
        codes_list.append(place_of)
    return AtomColumn(np.array(codes_list, np.int32), mixed)


def row_numbers(relation: Relation) -> Codes:
    """A number for each row; rows with equal arguments, and only those, have equal numbers."""
    numbers = np.zeros(relation.count, np.int64)
    for column in relation.columns:
        if isinstance(column, IntColumn):
            codes = column.numbers
        elif isinstance(column, AtomColumn):
            codes = column.codes.astype(np.int64)
        else:
            interner = Interner()
            codes = np.fromiter(map(interner.add, column.terms), np.int64, len(column))
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
        numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].reshape(-1)
    return numbers.astype(np.int32)


def take(relation: Relation, rows: Array) -> Relation:
    """Some rows of a relation."""
    values = None if relation.values is None else relation.values[rows]
    columns = tuple(c.take(rows) for c in relation.columns)
    return Relation(relation.key, len(rows), columns, values, relation.value_shape)


def matching(here: Relation, gone: Relation, one: Any) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which rows of `here` are among `gone`, and which of `gone` are there. Values count where `gone` has them."""
    numbers = row_numbers(concatenate(replace(here, values=None), replace(gone, values=None), one))
    mine, theirs = numbers[: here.count], numbers[here.count :]
    among = np.isin(mine, theirs)
    if gone.values is None:
        return among, np.isin(theirs, mine)
    both = concatenate(here, gone, one).values
    assert both is not None
    wanted: dict[int, list[int]] = {}
    for n, number in enumerate(theirs.tolist()):
        wanted.setdefault(number, []).append(n)
    found = np.zeros(gone.count, np.bool_)
    for row in np.flatnonzero(among).tolist():
        same = [n for n in wanted[int(mine[row])] if np.array_equal(both[row], both[here.count + n])]
        among[row] = bool(same)
        found[same] = True
    return among, found


def axiom_relations(rules: Rules, scale: Scale) -> dict[str, Relation]:
    """The axioms of the program's text, as facts."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for axiom in rules.axioms:
        arguments = tuple(syntax_value(t) for t in axiom.item.arguments)
        value: Any = axiom.value
        if scale.shape == "boolean":
            value = bool(value)
        elif scale.shape == "expectation":
            value = (float(value), scale.zero[1])
        elif isinstance(scale.shape, tuple):
            value = (float(value),) * scale.width
        rows.setdefault(axiom.item.key, []).append((*arguments, value))
    return {k: read(k, r, value_shape=scale.shape, finite=scale.finite) for k, r in rows.items()}


def read_facts(setting: Setting, facts: Mapping[str, Any], probabilities: bool) -> dict[str, Relation]:
    """Facts in any form as relations. Raises FactError for a predicate that takes none."""
    known = setting.rules.predicates
    relations: dict[str, Relation] = {}
    if not isinstance(facts, Mapping):
        raise FactError(f'{shown(facts)} is no dict of facts; give one from predicates to rows: {{"rewrite/3": rows}}')
    for key, rows in facts.items():
        if not isinstance(key, str):
            raise FactError(f"{shown(key)} names no predicate; write name/arity, such as 'rewrite/3'")
        if key not in known:
            raise FactError(f"The program has no predicate `{key}`.{nearest(key, sorted(known))}")
        if known[key].external:
            raise FactError(f"`{key}` is external: a function computes its values, so facts cannot be given for it")
        shape = setting.scale.shape
        finite = setting.scale.finite
        if probabilities and shape != "expectation":
            shape, finite = "float", "finite"
        declared = known[key].types or ()
        floats = {i for i, union in enumerate(declared) if any(t.name == "float" for t in union)}
        relation = read(key, rows, value_shape=shape, finite=finite, float_columns=floats)
        if probabilities:
            relation = from_probabilities(setting.scale, relation)
        relations[key] = relation
    return relations


def from_probabilities(scale: Scale, relation: Relation) -> Relation:
    """Facts whose values are probabilities, in the semiring's own scale."""
    try:
        values = scale.from_probabilities(relation.values)
    except Error as error:
        raise FactError(f"{relation.key}, {error}") from None
    return replace(relation, values=values, value_shape=scale.shape)


# -- what is kept per choice of kinds ----------------------------------------------------------------------------------


@dataclass
class _Base:
    """The shared facts, coded, for one choice of kinds."""

    kinds: tuple[str, ...]
    encoding: Encoding
    constants: dict[int, list[Any]]
    codes: dict[str, list[Codes | None]]  # None: a column of terms, which native code numbers
    distinct: dict[str, tuple[int, ...]]
    plans: list[tuple[Compiled, Signature]] = field(default_factory=list)
    natives: dict[int, _Native] = field(default_factory=dict)  # by id of the engine's generated source
    ranks: dict[int, Codes | None] = field(default_factory=dict)
    gaps: dict[str, dict[tuple[int, int], int]] = field(default_factory=dict)


@dataclass
class _Native:
    """The shared facts inside native code, for one compiled program."""

    order: int
    world: World
    terms: TermCodes
    constants: list[int]
    facts: dict[str, FactTable]
    weights: dict[str, WeightTable]  # made when a run first needs them


@dataclass(frozen=True)
class Along:
    """The directions of a run over dual numbers: of each, per predicate, the tangents of its facts.

    A predicate's tangents stand in the order of its gathered rows, a row of words each; a predicate that is missing has
    none. `constants` are the tangents of the numbers in the program's text, as functions of these. `mixed` has, by the
    set of directions as a bit mask, derivatives that facts themselves have along several directions at once.
    """

    directions: tuple[Mapping[str, Array], ...] = ()
    constants: tuple[Callable[[float], float] | None, ...] = ()
    mixed: Mapping[int, Mapping[str, Array]] = field(default_factory=dict)

    @property
    def order(self) -> int:
        return len(self.directions)

    def tangents(self, key: str) -> dict[int, Array]:
        """The derivatives of a predicate's facts, by set of directions."""
        found = {1 << d: tangents[key] for d, tangents in enumerate(self.directions) if key in tangents}
        return found | {mask: tangents[key] for mask, tangents in self.mixed.items() if key in tangents}


@dataclass(frozen=True)
class Prepared:
    """A chart that is ready to run, with what is needed to read it."""

    compiled: Compiled
    chart: NativeChart
    encoding: Encoding
    terms: TermCodes
    relations: Mapping[str, Relation]
    stops: bool = False  # the item that the run is to stop at is final once it is popped
    along: Along = Along()


class Binding:
    """Facts that runs share, and everything that is known of them."""

    def __init__(
        self, setting: Setting, relations: Mapping[str, Relation], axioms: dict[str, Relation] | None = None
    ) -> None:
        self.setting = setting
        self.given = dict(relations)  # as given, without the axioms of the text
        self.axioms = axioms = axiom_relations(setting.rules, setting.scale) if axioms is None else axioms
        merged = dict(relations)
        for key, axiom in axioms.items():
            merged[key] = concatenate(merged[key], axiom, setting.scale.one) if key in merged else axiom
        self.relations = merged
        self._bases: dict[tuple[str, ...], _Base] = {}
        self._sources: dict[int, list[tuple[str, int, int]]] | None = None  # what could order atoms, once it was asked
        self._lock = threading.RLock()
        self.derivatives: Derivatives | None = None  # of later runs, once a gradient was asked for
        self.kept: set[tuple[int, bool, str | None]] = set()  # what functions were run over, with what they ran until

    def __getstate__(self) -> dict[str, Any]:
        return {"setting": self.setting, "given": self.given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["setting"], state["given"])  # type: ignore[misc]  # the lock and what is kept are made anew

    def with_values(self, relations: Mapping[str, Relation], changed: frozenset[str]) -> Binding:
        """This binding with new numbers for the same rows of `changed`; nothing is coded again."""
        made = Binding(self.setting, relations, self.axioms)
        made.derivatives = self.derivatives
        with self._lock:
            made._sources = self._sources
            for chosen, base in self._bases.items():
                fresh = replace(base, natives={})
                for place, native in base.natives.items():
                    kept = {key: held for key, held in native.weights.items() if key not in changed}
                    fresh.natives[place] = replace(native, facts=dict(native.facts), weights=kept)
                made._bases[chosen] = fresh
        return made

    def settled(self) -> Binding:
        """This binding, or one where columns from files have the types that the shared facts give them."""
        if not any(isinstance(c, TextColumn) for r in self.relations.values() for c in r.columns):
            return self
        settled = settle_texts(self.setting.domains, self.relations)
        given = {
            key: replace(relation, columns=tuple(c.take(np.arange(relation.count)) for c in settled[key].columns))
            for key, relation in self.given.items()
        }
        return Binding(self.setting, given)

    # -- preparing a run

    def gathered(self, run: Mapping[str, Relation], instead: Mapping[str, Relation]) -> dict[str, Relation]:
        """All facts of a chart: the shared ones or what stands instead of them, the axioms, and those of the run."""
        relations = dict(self.relations)
        for key, relation in instead.items():
            axiom = self.axioms.get(key)
            relations[key] = relation if axiom is None else concatenate(relation, axiom, self.setting.scale.one)
        for key, relation in run.items():
            known = relations.get(key)
            relations[key] = relation if known is None else concatenate(known, relation, self.setting.scale.one)
        return relations

    def prepare(
        self,
        run: Mapping[str, Relation],
        until: str | None = None,
        progress: Callable[[str], None] | None = None,
        *,
        instead: Mapping[str, Relation] | None = None,
        changing: bool = False,
        like: Encoding | None = None,
        derivatives: Derivatives | None = None,
        along: Along | None = None,
    ) -> Prepared:
        """A chart for the shared facts and those of one run.

        `instead` has the facts of shared predicates that this chart changed; `changing` asks for a chart whose facts
        can change later; `like` is an encoding whose codes have to stay; `derivatives` says what it can differentiate,
        and `along` has the directions of dual numbers.
        """
        along = along or Along()
        setting = self.setting
        relations = self.gathered(run, instead or {})
        mixed = {key: relations[key] for key in {**(instead or {}), **run}}
        undefined(setting.rules, relations)
        if any(isinstance(c, TextColumn) for r in relations.values() for c in r.columns):
            relations = settle_texts(setting.domains, relations)
            mixed = {
                key: relations[key] for key in relations if key in mixed or relations[key] is not self.relations[key]
            }
        chosen = kinds(setting.rules, setting.domains, relations)
        superior = until is not None and is_superior(setting, relations)
        with self._lock:
            base = self._base(chosen, {k: relations[k] for k in self.relations if k not in mixed})
            start = base.encoding if like is None or not like.keeps(base.encoding) else like
            encoding = start.extend(setting.domains, mixed) if mixed else start
            codes = {key: self._codes(encoding, r) for key, r in mixed.items()}
            summary, ranks = self._summary(base, encoding, relations, {**base.codes, **codes}, frozenset(mixed))
            compiled = self._compiled(
                base,
                summary,
                frozenset(k for k, r in relations.items() if r.count),
                replace(
                    setting.options,
                    until=until if superior else None,
                    changing=changing,
                    derivatives=derivatives,
                ),
                progress,
            )
            native = self._native(base, compiled, relations, frozenset(mixed), along)
        prepared = self._chart(compiled, native, encoding, ranks, mixed, codes, relations, along)
        stops = superior or any(until in stage.keys and stage.final for stage in compiled.plan.stages)
        if changing:  # what a change makes of terms stays with its chart
            prepared = replace(prepared, terms=prepared.terms.copy())
        return replace(prepared, stops=stops)

    def _base(self, chosen: tuple[str, ...], shared: Mapping[str, Relation]) -> _Base:
        base = self._bases.get(chosen)
        if base is not None and set(base.codes) >= set(shared):
            return base
        constants = program_constants(self.setting.rules, self.setting.domains)
        encoding = Encoding.start(chosen, constants).extend(self.setting.domains, shared)
        base = _Base(chosen, encoding, constants, {k: self._codes(encoding, r) for k, r in shared.items()}, {})
        base.distinct = {k: _distinct(c, shared[k].count) for k, c in base.codes.items()}
        self._bases[chosen] = base
        return base

    def _codes(self, encoding: Encoding, relation: Relation) -> list[Codes | None]:
        numbers = [self.setting.domains.of[relation.key, i] for i in range(relation.arity)]
        return [
            None if encoding.domains[d].kind == "term" else encoding.column(d, c)
            for d, c in zip(numbers, relation.columns, strict=True)
        ]

    def _summary(
        self,
        base: _Base,
        encoding: Encoding,
        relations: Mapping[str, Relation],
        codes: Mapping[str, list[Codes | None]],
        fresh: frozenset[str],
    ) -> tuple[Summary, Mapping[int, Codes]]:
        """What the plan may know, and the ranks of atoms that the facts order."""
        setting = self.setting
        ranks: dict[int, Codes] = {}
        if self._sources is None:
            self._sources = rank_sources(setting.rules, setting.domains)
        for number, sources in self._sources.items():
            if encoding.domains[number].kind == "atom":
                found = self._ranks(base, encoding, number, sources, codes, fresh)
                if found is not None:
                    ranks[number] = found
        domains = {n: DomainSummary(d.kind, d.low, d.high, n in ranks) for n, d in enumerate(encoding.domains)}
        shape = Summary(domains, {})
        facts = {}
        for key, relation in relations.items():
            columns = codes[key]
            steady = key not in fresh and not any(setting.domains.of[key, i] in ranks for i in range(relation.arity))
            gaps = base.gaps.get(key) if steady else None
            if gaps is None:
                gaps = self._gaps(key, shape, columns, ranks)
                if steady:
                    base.gaps[key] = gaps
            distinct = base.distinct.get(key) if key not in fresh else None
            facts[key] = FactSummary(relation.count, distinct or tuple(max(1, relation.count) for _ in columns), gaps)
        return Summary(domains, facts), ranks

    def _gaps(
        self, key: str, shape: Summary, columns: Sequence[Codes | None], ranks: Mapping[int, Codes]
    ) -> dict[tuple[int, int], int]:
        """The least differences between ordered columns of a relation."""
        gaps = {}
        for i, j in ordered_pairs(self.setting.domains, shape, key, len(columns)):
            a, b = columns[i], columns[j]
            if a is not None and b is not None and len(a):
                rank = ranks.get(self.setting.domains.of[key, i])
                low, high = (rank[a], rank[b]) if rank is not None else (a, b)
                gaps[i, j] = int((high.astype(np.int64) - low).min())
        return gaps

    def _ranks(
        self,
        base: _Base,
        encoding: Encoding,
        number: int,
        sources: Sequence[tuple[str, int, int]],
        codes: Mapping[str, list[Codes | None]],
        fresh: frozenset[str],
    ) -> Codes | None:
        """Ranks of a domain's atoms along as many fact columns as go together without a cycle; None where none does."""
        count = len(encoding.domains[number].atoms)
        settled = not any(key in fresh for key, _, _ in sources) and count == len(base.encoding.domains[number].atoms)
        if settled and number in base.ranks:
            return base.ranks[number]
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
            base.ranks[number] = found
        return found

    def _compiled(
        self,
        base: _Base,
        summary: Summary,
        present: frozenset[str],
        options: Options,
        progress: Callable[[str], None] | None,
    ) -> Compiled:
        signature = _signature(summary, present)
        for compiled, made_for in base.plans:
            if made_for == signature and _fits(compiled, summary, options):
                return compiled
        counted = {
            k: f
            if k in base.distinct
            else replace(f, rows=int(rough(f.rows)), distinct=_distinct_counts(f, self.setting, summary, k))
            for k, f in summary.facts.items()
        }
        plan = make_plan(self.setting.rules, self.setting.domains, Summary(summary.domains, counted), options)
        compiled = compile_plan(plan, progress)
        base.plans.append((compiled, signature))
        return compiled

    # -- native data

    def _native(
        self,
        base: _Base,
        compiled: Compiled,
        relations: Mapping[str, Relation],
        fresh: frozenset[str],
        along: Along,
    ) -> _Native:
        native = base.natives.get(id(compiled))
        wanted = [key for key in base.codes if key not in fresh and key in compiled.plan.tables]
        missing = [key for key in wanted if native is None or key not in native.facts]
        if native is not None and any(c is None for key in missing for c in base.codes[key]):
            native = None  # charts stand on its terms, so no new ones may be made in it
        if native is None:
            missing = wanted
            world = World(compiled.engine)
            terms = TermCodes.start(compiled.generated.functors)
            constants: list[int] = []
            for domain, value in compiled.generated.constants:
                plain = data_value(value)
                if domain is None:
                    constants.append(int(_intern(world, terms, [plain])[0]))
                else:
                    code = base.encoding.domains[domain].code(plain)
                    constants.append(-1 if code is None else code)
            world.set_constants(constants)
            native = _Native(compiled.plan.order, world, terms, constants, {}, {})
            base.natives[id(compiled)] = native
        for key in missing:
            native.facts[key] = self._facts(compiled, native.world, native.terms, relations[key], base.codes[key])
        for key in wanted:
            if key not in native.weights and not along.tangents(key):
                words = jet_words(self.setting.scale, relations[key], native.order)
                native.weights[key] = WeightTable(native.facts[key], words)
        return native

    def intern(self, prepared: Prepared, values: Sequence[Any]) -> Codes:
        """The numbers of terms in the world of a chart."""
        return _intern(prepared.chart.world, prepared.terms, values)

    def load(self, prepared: Prepared, relation: Relation) -> tuple[WeightTable, npt.NDArray[np.int32]]:
        """A relation in the world of a chart that is there already: its table, and the codes of its rows."""
        columns = [
            _intern(prepared.chart.world, prepared.terms, relation.columns[i].to_list()) if c is None else c
            for i, c in enumerate(self._codes(prepared.encoding, relation))
        ]
        table = self._load(prepared.compiled, prepared.chart.world, prepared.terms, relation, columns)
        codes = np.stack(columns, axis=1) if columns else np.zeros((relation.count, 0), np.int32)
        return table, codes

    def _load(
        self,
        compiled: Compiled,
        world: World,
        terms: TermCodes,
        relation: Relation,
        columns: Sequence[Codes | None],
        tangents: Mapping[int, Array] | None = None,
    ) -> WeightTable:
        facts = self._facts(compiled, world, terms, relation, columns)
        return WeightTable(facts, jet_words(self.setting.scale, relation, compiled.plan.order, tangents))

    def _facts(
        self,
        compiled: Compiled,
        world: World,
        terms: TermCodes,
        relation: Relation,
        columns: Sequence[Codes | None],
    ) -> FactTable:
        coded = [
            _intern(world, terms, relation.columns[i].to_list()) if c is None else c for i, c in enumerate(columns)
        ]
        table = compiled.plan.tables[relation.key].number
        return FactTable(compiled.engine, world, table, coded, relation.count)

    def _chart(
        self,
        compiled: Compiled,
        native: _Native,
        encoding: Encoding,
        ranks: Mapping[int, Codes],
        fresh: Mapping[str, Relation],
        codes: Mapping[str, list[Codes | None]],
        relations: Mapping[str, Relation],
        along: Along,
    ) -> Prepared:
        world = World(compiled.engine, native.world)
        world.set_domains([d.low for d in encoding.domains], [d.high - d.low + 1 for d in encoding.domains])
        for number, rank in ranks.items():
            world.set_rank(number, rank)
        world.set_constants(native.constants)
        terms = native.terms
        if any(c is None for columns in codes.values() for c in columns):
            terms = terms.copy()
        weights: list[WeightTable | None] = [None] * len(compiled.plan.tables)
        for key, facts in list(native.facts.items()):
            if key not in fresh:
                tangents = along.tangents(key)
                if tangents:
                    held = WeightTable(facts, jet_words(self.setting.scale, relations[key], along.order, tangents))
                else:
                    held = native.weights[key]
                weights[compiled.plan.tables[key].number] = held
        for key, relation in fresh.items():
            if key in compiled.plan.tables:
                table = compiled.plan.tables[key].number
                weights[table] = self._load(compiled, world, terms, relation, codes[key], along.tangents(key))
        for key, table_plan in compiled.plan.tables.items():
            n = table_plan.number
            if weights[n] is None and table_plan.kind != "external" and self._takes_facts(compiled, key):
                empty = [np.zeros(0, np.int32)] * table_plan.arity
                weights[n] = WeightTable(FactTable(compiled.engine, world, n, empty, 0), None)
        numbers = self._constants(compiled, along)
        chart = NativeChart(compiled.engine, world, weights, numbers)
        return Prepared(compiled, chart, encoding, terms, relations, along=along)

    def _takes_facts(self, compiled: Compiled, key: str) -> bool:
        predicate = self.setting.rules.predicates[key]
        return compiled.plan.tables[key].kind == "facts" or predicate.input or key in compiled.plan.summary.facts

    def _constants(self, compiled: Compiled, along: Along) -> Words:
        """The words of the numbers in the program's text."""
        scale = self.setting.scale
        constants = [scale.word_of(w) for w in self._rule_weights(compiled)]
        if not constants:
            return np.zeros(1, np.uint64)
        if not along.order:
            return np.concatenate(constants)
        rows = np.zeros((len(constants), scale.width << along.order))
        rows[:, : scale.width] = np.stack(constants).view(np.float64)
        for d, tangent in enumerate(along.constants):
            if tangent is not None:
                rows[:, scale.width << d] = [tangent(w) for w in compiled.generated.weights]
        return rows.view(np.uint64).reshape(-1)

    def _rule_weights(self, compiled: Compiled) -> Iterable[Any]:
        scale = self.setting.scale
        for weight in compiled.generated.weights:
            if scale.shape == "expectation":
                yield [float(weight), *np.ravel(scale.zero[1])]
            elif scale.shape == "count":
                yield int(weight)
            else:
                yield [float(weight)] * scale.width


def jet_words(
    scale: Scale, relation: Relation, order: int, tangents: Mapping[int, Array] | None = None
) -> Words | None:
    """The words of a relation's values over dual numbers: the value, then its derivatives by set of directions."""
    if not order:
        return scale.to_words(relation.values, relation.count)
    rows = np.zeros((relation.count, scale.width << order))
    values = scale.to_words(relation.values, relation.count)
    rows[:, : scale.width] = scale.word_of(scale.one).view(np.float64) if values is None else values.view(np.float64)
    for mask, tangent in (tangents or {}).items():
        rows[:, scale.width * mask : scale.width * (mask + 1)] = tangent.reshape(relation.count, scale.width)
    return rows.view(np.uint64)


def _intern(world: World, terms: TermCodes, values: Sequence[Any]) -> Codes:
    """The numbers of terms, made where they are new."""
    flat = flat_terms(values)
    numbers = world.make_terms(*terms.translate(flat))
    return numbers[flat.roots] if len(numbers) else np.zeros(0, np.int32)


def _distinct(columns: Sequence[Codes | None], count: int) -> tuple[int, ...]:
    """How many values each column has, estimated from at most 100,000 rows."""
    out = []
    for column in columns:
        if column is None or not len(column):
            out.append(max(1, count // 2))
            continue
        sample = column if len(column) <= 100_000 else column[:: len(column) // 100_000]
        found = len(np.unique(sample))
        out.append(found if found < len(sample) // 2 else max(1, found * (len(column) // len(sample))))
    return tuple(out)


def _distinct_counts(facts: FactSummary, setting: Setting, summary: Summary, key: str) -> tuple[int, ...]:
    """For facts of a run: as many values as the domain allows."""
    counts = []
    for i in range(len(facts.distinct)):
        domain = summary.domains[setting.domains.of[key, i]]
        most = rough(facts.rows if domain.kind == "term" else domain.count)
        counts.append(int(min(rough(facts.rows), most)))
    return tuple(counts)


def is_superior(setting: Setting, relations: Mapping[str, Relation]) -> bool:
    """Whether no fact and no constant makes anything better: then what a best-first search pops is final."""
    sign = {"tropical": 1.0, "viterbi": -1.0, "boolean": 0.0}.get(setting.scale.name)
    if sign is None:
        return False
    constants = [n for rule in setting.rules.rules for n in numbers(rule.value)]
    given = [r.values for r in relations.values() if r.values is not None and r.count]
    return all(sign * n >= 0 for n in constants) and all(bool((sign * v >= 0).all()) for v in given)


def _signature(summary: Summary, present: frozenset[str]) -> Signature:
    """What facts must have in common to share a plan: which there are, and which of their columns are in order."""
    return frozenset(
        (key, i, j, (gap > 0) - (gap < 0))
        for key in present
        for (i, j), gap in (*summary.facts[key].gaps.items(), ((-1, -1), 0))
    )


def _fits(compiled: Compiled, summary: Summary, options: Options) -> bool:
    """Whether a plan made for other facts is right for these too."""
    plan = compiled.plan
    if plan.until != options.until or (plan.changes is not None) != options.changing:
        return False
    if plan.derivatives != options.derivatives:
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
        if any(pair not in gaps for pair in facts.gaps):  # made when this predicate was empty
            return False
    for table in plan.tables.values():
        if table.kind == "dense":
            size = cells(table.arity, [summary.domains[d] for d in table.domains], table.extents, table.order)
            if size is None or size > options.dense_cells:
                return False
    return True
