"""Facts loaded into native code: those that runs share, once for a compiled plan, and charts set up over them.

All native objects of a binding are made here, from facts that are encoded already (`encoding.py`); what is kept is for
`binding.py`. Codes and words are read back by `decoding.py` and `charts/lookup.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...codegen.rules.compiled import CompiledPlan
from ...facts.relation import Array, Codes, Relation
from ...plan.traits import is_external, is_facts
from ...runtime.engine import FactTable, NativeChart, WeightTable, World
from ...runtime.library import Stop
from ...semirings import Scale
from .context import ProgramContext
from .encoding import Encoding, TermCodes, data_value, flat_terms
from .summary import CodedFacts

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Directions:
    """The directions of a run over dual numbers or jets: the tangents of facts, and of constants in the text.

    `facts` has for each direction, by predicate, a row of tangents for each of its gathered facts; for a predicate that
    is missing they are zero. `constants` has for each direction the tangent of a number in the text, as a function of
    that number. `mixed` has derivatives of facts along several directions at once, by the set of directions as a bit
    mask.
    """

    facts: tuple[Mapping[str, Array], ...] = ()
    constants: tuple[Callable[[float], float] | None, ...] = ()
    mixed: Mapping[int, Mapping[str, Array]] = field(default_factory=dict)

    @property
    def order(self) -> int:
        return len(self.facts)

    def tangents(self, key: str) -> dict[int, Array]:
        """The derivatives of a predicate's facts, by set of directions."""
        found = {1 << d: tangents[key] for d, tangents in enumerate(self.facts) if key in tangents}
        return found | {mask: tangents[key] for mask, tangents in self.mixed.items() if key in tangents}


@dataclass(frozen=True)
class Prepared:
    """A chart that is ready to run, with what is needed to read it."""

    compiled: CompiledPlan
    chart: NativeChart
    encoding: Encoding
    terms: TermCodes
    relations: Mapping[str, Relation]
    ranks: Mapping[int, Codes] = field(default_factory=dict)  # of atoms that facts order, by domain
    stops: bool = False  # whether the item that the run is to stop at is final once it is popped
    directions: Directions = Directions()


@dataclass(frozen=True)
class LoadedRun:
    """The facts of a run without its chart, still loaded: for more runs, with other values of the shared facts."""

    run: Mapping[str, Relation]
    how: Any
    """What the class of the run can do: another class has facts of its own."""
    compiled: CompiledPlan
    world: World
    weights: tuple[WeightTable | None, ...]
    """By the number of a table; None for those that are shared."""
    shared: tuple[tuple[str, int], ...]
    """The predicates whose facts are shared, with their tables."""
    constants: Words
    encoding: Encoding
    terms: TermCodes
    relations: Mapping[str, Relation]
    """Those of the run."""
    ranks: Mapping[int, Codes]

    @property
    def rows(self) -> int:
        """How many facts are kept."""
        return sum(relation.count for relation in self.relations.values())


@dataclass(frozen=True)
class RunFacts:
    """The facts of one run: all of them, their encoding, and the codes of those that it does not share (`fresh`)."""

    relations: Mapping[str, Relation]
    encoding: Encoding
    fresh: Mapping[str, list[Codes | None]]
    ranks: Mapping[int, Codes]
    directions: Directions


# -- facts that runs share ---------------------------------------------------------------------------------------------


@dataclass
class Loaded:
    """The shared facts in native code, for one compiled plan."""

    order: int
    world: World
    terms: TermCodes
    constants: list[int]
    facts: dict[str, FactTable]
    weights: dict[str, WeightTable]  # made when a run first needs them

    def with_weights(self, weights: dict[str, WeightTable]) -> Loaded:
        """The same facts with other values, of which some may still be missing."""
        return Loaded(self.order, self.world, self.terms, self.constants, dict(self.facts), weights)

    @staticmethod
    def start(compiled: CompiledPlan, encoding: Encoding) -> Loaded:
        """A world without facts, with the constants of the program."""
        world = World(compiled.engine)
        terms = TermCodes.start(compiled.generated.functors)
        constants: list[int] = []
        for domain, value in compiled.generated.constants:
            plain = data_value(value)
            if domain is None:
                constants.append(int(_numbers_of(world, terms, [plain])[0]))
            else:
                code = encoding.domains[domain].code(plain)
                constants.append(-1 if code is None else code)
        world.set_constants(constants)
        return Loaded(compiled.plan.order, world, terms, constants, {}, {})


def load_shared(
    context: ProgramContext,
    compiled: CompiledPlan,
    before: Loaded | None,
    known: CodedFacts,
    run: RunFacts,
    stop: Stop | None = None,
) -> Loaded:
    """The shared facts that a run needs, in native code: those loaded before, and what is missing.

    Raises NotConverged where that takes longer than `stop` allows, as `set_up` does.
    """
    wanted = [key for key in known.codes if key not in run.fresh and key in compiled.plan.tables]
    missing = [key for key in wanted if before is None or key not in before.facts]
    if before is not None and any(c is None for key in missing for c in known.codes[key]):
        before = None  # existing charts refer to its terms, so no new ones may be interned in it
    if before is None:
        loaded, missing = Loaded.start(compiled, known.encoding), wanted
    else:
        loaded = before
    for key in missing:
        loaded.facts[key] = _facts(compiled, loaded.world, loaded.terms, run.relations[key], known.codes[key], stop)
    for key in wanted:
        if key not in loaded.weights and not run.directions.tangents(key):
            words = jet_words(context.scale, run.relations[key], loaded.order)
            loaded.weights[key] = WeightTable(loaded.facts[key], words, stop)
    return loaded


# -- charts ------------------------------------------------------------------------------------------------------------


def set_up(
    context: ProgramContext,
    compiled: CompiledPlan,
    loaded: Loaded,
    run: RunFacts,
    room: int | None = None,
    stop: Stop | None = None,
) -> Prepared:
    """A chart over the shared facts and those of one run; `room` is the number of bytes that it may take."""
    encoding, relations, directions = run.encoding, run.relations, run.directions
    world = World(compiled.engine, loaded.world, room)
    world.set_domains([d.low for d in encoding.domains], [d.high - d.low + 1 for d in encoding.domains])
    for number, rank in run.ranks.items():
        world.set_rank(number, rank)
    world.set_constants(loaded.constants)
    terms = loaded.terms
    if any(c is None for columns in run.fresh.values() for c in columns):
        terms = terms.copy()
    weights: list[WeightTable | None] = [None] * len(compiled.plan.tables)
    for key, facts in list(loaded.facts.items()):
        if key not in run.fresh:
            tangents = directions.tangents(key)
            if tangents:
                held = WeightTable(facts, jet_words(context.scale, relations[key], directions.order, tangents), stop)
            else:
                held = loaded.weights[key]
            weights[compiled.plan.tables[key].number] = held
    for key, columns in run.fresh.items():
        if key in compiled.plan.tables:
            facts = _facts(compiled, world, terms, relations[key], columns, stop)
            words = jet_words(context.scale, relations[key], compiled.plan.order, directions.tangents(key))
            weights[compiled.plan.tables[key].number] = WeightTable(facts, words, stop)
    for key, table in compiled.plan.tables.items():
        n = table.number
        if weights[n] is None and not is_external(table) and _takes_facts(context, compiled, key):
            empty = [np.zeros(0, np.int32)] * table.arity
            weights[n] = WeightTable(FactTable(compiled.engine, world, n, empty, 0), None)
    chart = NativeChart(compiled.engine, world, weights, _constants(context.scale, compiled, directions))
    return Prepared(compiled, chart, encoding, terms, relations, run.ranks, directions=directions)


def loaded_run(context: ProgramContext, prepared: Prepared, run: Mapping[str, Relation], how: Any) -> LoadedRun | None:
    """What can be kept of a run: None where it may intern terms, which are in its world then."""
    world, tables = prepared.chart.world, prepared.compiled.plan.tables
    if prepared.compiled.generated.functors or context.externals or world.base is None or prepared.directions.order:
        return None
    if any(key not in tables for key in run):
        return None
    weights = prepared.chart.weights
    own = tuple(w if w is not None and w.facts.world is world else None for w in weights)
    shared = tuple((k, t.number) for k, t in tables.items() if weights[t.number] is not None and own[t.number] is None)
    relations = {key: prepared.relations[key] for key in run}
    constants = _constants(context.scale, prepared.compiled, prepared.directions)
    return LoadedRun(
        run,
        how,
        prepared.compiled,
        world,
        own,
        shared,
        constants,
        prepared.encoding,
        prepared.terms,
        relations,
        prepared.ranks,
    )


def shared_weights(
    kept: LoadedRun, loaded: Loaded, relations: Mapping[str, Relation], scale: Scale
) -> dict[int, WeightTable] | None:
    """The numbers of the shared facts for a run that was kept, by table.

    None where it was not made over the shared facts that are loaded now.
    """
    if kept.world.base is not loaded.world or any(key not in loaded.facts for key, _ in kept.shared):
        return None
    for key, _ in kept.shared:
        if key not in loaded.weights:
            words = jet_words(scale, relations[key], loaded.order)
            loaded.weights[key] = WeightTable(loaded.facts[key], words)
    return {number: loaded.weights[key] for key, number in kept.shared}


def set_up_loaded(
    kept: LoadedRun, shared: Mapping[int, WeightTable], relations: Mapping[str, Relation], room: int | None
) -> Prepared:
    """A chart over the facts of a run that was kept, and `relations`, those that it shares with others."""
    weights = [shared.get(number, held) for number, held in enumerate(kept.weights)]
    if room is not None:
        kept.world.limit(room)
    chart = NativeChart(kept.compiled.engine, kept.world, weights, kept.constants)
    return Prepared(kept.compiled, chart, kept.encoding, kept.terms, {**relations, **kept.relations}, kept.ranks)


def _takes_facts(context: ProgramContext, compiled: CompiledPlan, key: str) -> bool:
    predicate = context.rules.predicates[key]
    return is_facts(compiled.plan.tables[key]) or predicate.input or key in compiled.plan.summary.facts


def _constants(scale: Scale, compiled: CompiledPlan, directions: Directions) -> Words:
    """The words of the numbers in the program's text."""
    constants = [scale.word_of(w) for w in _rule_weights(scale, compiled)]
    if not constants:
        return np.zeros(1, np.uint64)
    if not directions.order:
        return np.concatenate(constants)
    rows = np.zeros((len(constants), scale.width << directions.order))
    rows[:, : scale.width] = np.stack(constants).view(np.float64)
    for d, tangent in enumerate(directions.constants):
        if tangent is not None:
            rows[:, scale.width << d] = [tangent(w) for w in compiled.generated.weights]
    return rows.view(np.uint64).reshape(-1)


def _rule_weights(scale: Scale, compiled: CompiledPlan) -> Iterable[Any]:
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
    """The words of a relation's values over jets: the value, then its derivatives by set of directions."""
    if not order:
        return scale.to_words(relation.values, relation.count)
    rows = np.zeros((relation.count, scale.width << order))
    values = scale.to_words(relation.values, relation.count)
    rows[:, : scale.width] = scale.word_of(scale.one).view(np.float64) if values is None else values.view(np.float64)
    for mask, tangent in (tangents or {}).items():
        rows[:, scale.width * mask : scale.width * (mask + 1)] = tangent.reshape(relation.count, scale.width)
    return rows.view(np.uint64)


# -- loading -----------------------------------------------------------------------------------------------------------


def intern(prepared: Prepared, values: Sequence[Any]) -> Codes:
    """Terms interned in the world of a chart: their codes."""
    return _numbers_of(prepared.chart.world, prepared.terms, values)


def load(context: ProgramContext, prepared: Prepared, relation: Relation) -> tuple[WeightTable, Codes]:
    """A relation loaded into the world of an existing chart: its table, and the codes of its rows."""
    compiled, world = prepared.compiled, prepared.chart.world
    codes = coded(context, prepared, relation)
    columns = list(codes.T)
    facts = FactTable(compiled.engine, world, compiled.plan.tables[relation.key].number, columns, relation.count)
    return WeightTable(facts, jet_words(context.scale, relation, compiled.plan.order)), codes


def coded(context: ProgramContext, prepared: Prepared, relation: Relation) -> Codes:
    """The codes of a relation in the world of a chart, a row of codes for each of its rows."""
    columns = prepared.encoding.codes(context.domains, relation)
    codes = _coded(prepared.chart.world, prepared.terms, relation, columns)
    return np.stack(codes, axis=1) if codes else np.zeros((relation.count, 0), np.int32)


def _facts(
    compiled: CompiledPlan,
    world: World,
    terms: TermCodes,
    relation: Relation,
    columns: Sequence[Codes | None],
    stop: Stop | None,
) -> FactTable:
    coded = _coded(world, terms, relation, columns)
    number = compiled.plan.tables[relation.key].number
    return FactTable(compiled.engine, world, number, coded, relation.count, stop)


def _coded(world: World, terms: TermCodes, relation: Relation, columns: Sequence[Codes | None]) -> list[Codes]:
    """The codes of all columns, with those of terms interned."""
    return [_numbers_of(world, terms, relation.columns[i].to_list()) if c is None else c for i, c in enumerate(columns)]


def _numbers_of(world: World, terms: TermCodes, values: Sequence[Any]) -> Codes:
    """The codes of terms, interned where they are new."""
    flat = flat_terms(values)
    numbers = world.make_terms(*terms.translate(flat))
    return numbers[flat.roots] if len(numbers) else np.zeros(0, np.int32)
