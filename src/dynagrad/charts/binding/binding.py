"""A program bound to facts that runs share: their encoding, the plans compiled for them, and their native tables.

What depends on the shared facts alone is kept, so that later runs encode only their own facts. Among the runs of one
binding, the plan of a run depends on its facts alone, and on no run before it (`rounding.py`). Runs of about one size
have the same plan, which is compiled once, and plans that differ in estimates alone share a class. A binding that is
made from another may run by a plan that was made for the facts of the other, if this fits.

A binding is used by many threads. Its tables grow under a lock; their entries (codes, plans, loaded facts) are
immutable, but a later run may replace one by a larger one. The kinds of the domains, and whether warnings were issued,
are set without the lock: two runs at once may work out the same, and both warn. What is kept is decided here; how it is
made, in `encoding.py`, `summary.py` and `loading.py`.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...codegen.rules.compiled import CompiledPlan, compile_backward, compile_plan, extends, start_ahead
from ...codegen.rules.planned import planned, planned_backward
from ...codegen.rules.program import Generated
from ...errors import NotConverged, say
from ...facts.relation import Codes, Relation, concatenate
from ...forks import cached, held, renewed
from ...plan.model import Derivatives, Plan, Summary
from ...plan.options import Options
from ...plan.storage.occupancy import PairCount
from ...rules import undefined
from ...runtime.compiling.ahead import Ahead
from ...runtime.compiling.toolchain import Compiler, compiler
from ...runtime.engine import WeightTable
from ...runtime.library import Stop
from .background import Jobs
from .background import until as left
from .context import ProgramContext, axiom_relations
from .copies import check_copies
from .encoding import Encoding, has_texts, held_by, kinds, program_constants, settle_texts
from .loading import (
    Directions,
    Loaded,
    LoadedRun,
    Prepared,
    RunFacts,
    load_shared,
    loaded_run,
    set_up,
    set_up_loaded,
    shared_weights,
)
from .rounding import Signature, rounded, signature
from .summary import CodedFacts, fits, is_superior, pair_count, summarise
from .suspicious_facts import warn, warn_of_iteration


@dataclass
class _Base:
    """What is kept of the shared facts for one choice of the domains' kinds, `chosen`."""

    chosen: tuple[str, ...]
    known: CodedFacts
    plans: list[tuple[CompiledPlan, Signature]] = field(default_factory=list)
    loaded: dict[int, Loaded] = field(default_factory=dict)
    """By the id of the generated code: the forward and the backward class of a plan share their facts."""
    alone: dict[Purpose, tuple[dict[int, Codes], CompiledPlan]] = field(default_factory=dict)
    """For runs without facts of their own, by purpose: the ranks of atoms, and the compiled plan."""


@dataclass(frozen=True)
class Purpose:
    """What the class of a chart is for; what a plan depends on beside rules and facts."""

    until: str | None = None  # the predicate of the item that the run stops at
    changing: bool = False  # incremental updates
    derivatives: Derivatives | None = None  # what the class can differentiate
    iterate: bool = False  # cycles are iterated even if they could be solved
    collecting: bool = False  # it collects derivations of items, and runs nothing


@dataclass(frozen=True)
class SetupLimits:
    """The limits under which a chart is prepared, and who is told.

    `Binding.prepare` raises NotConverged where compiling or loading is not done by the `deadline`, on the clock
    `time.monotonic`; compiling goes on.
    """

    room: int | None = None  # the number of bytes that the chart may take
    deadline: float | None = None
    progress: Callable[[str], None] | None = None  # is told that a compiler starts


FORWARD = Purpose()
UNLIMITED = SetupLimits()

Key = tuple[tuple[str, ...], Signature, Options]
"""What a plan is made for: the kinds of the domains, the signature of the facts, options."""


@dataclass(frozen=True)
class _Plans:
    """Compiled plans by the kinds of the domains, and those that are being compiled in the background."""

    done: dict[tuple[str, ...], list[tuple[CompiledPlan, Signature]]] = field(default_factory=dict)
    jobs: Jobs[CompiledPlan] = field(default_factory=Jobs)
    making: Any = field(default_factory=lambda: renewed(threading.RLock()))
    """Held while a plan is made: two that are made at once may be of one class, which they have to share."""

    @cached
    def compiler(self) -> Compiler:
        """One compiler for all plans: compilers differ in the last bit, and a gradient has to be that of what ran."""
        return compiler()

    def of(self, chosen: tuple[str, ...]) -> list[tuple[CompiledPlan, Signature]]:
        return self.done.setdefault(chosen, [])


class Binding:
    """A program's context and the facts that runs share, with everything that is kept for later runs."""

    def __init__(
        self,
        context: ProgramContext,
        relations: Mapping[str, Relation],
        axioms: dict[str, Relation] | None = None,
        plans: _Plans | None = None,
    ) -> None:
        self.context = context
        self.given = dict(relations)  # as given, without the axioms of the text
        self.axioms = axioms = axiom_relations(context.rules, context.scale) if axioms is None else axioms
        merged = dict(relations)
        for key, axiom in axioms.items():
            merged[key] = concatenate(merged[key], axiom, context.scale.one) if key in merged else axiom
        self.relations = merged
        self._bases: dict[tuple[tuple[str, ...], tuple[str, ...]], _Base] = {}
        self._plans = _Plans() if plans is None else plans  # shared by the bindings that are made from this one
        self._kinds: tuple[str, ...] | None = None  # of the domains, where there are no facts but the shared ones
        self._lock = renewed(threading.RLock())
        self._warned_of_facts = self._warned_of_plan = False
        self._logs: frozenset[str] = frozenset()  # predicates whose values are known to be logs
        self.compiling = 0.0  # seconds that runs waited for a compiler
        self.derivatives: Derivatives | None = None  # of later runs, once a gradient was asked for
        self.kept: set[tuple[int, bool, str | None]] = set()  # classes that functions ran in: order, adjoint, until

    def __getstate__(self) -> dict[str, Any]:
        return {"setting": self.context, "given": self.given}  # the names are those of old pickles

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["setting"], state["given"])  # type: ignore[misc]  # the lock and what is kept are made anew

    def with_values(self, relations: Mapping[str, Relation], changed: frozenset[str], logs: bool = False) -> Binding:
        """This binding with new values for the same rows of `changed`; nothing is encoded again.

        With `logs` they are known to be on the semiring's scale, and are not asked whether they look like it.
        """
        made = self.with_relations(relations)
        made._kinds = self._kinds
        made._logs = self._logs | changed if logs else self._logs - changed
        made._warned_of_facts, made._warned_of_plan = self._warned_of_facts, self._warned_of_plan
        with self._lock:
            for chosen, base in self._bases.items():
                fresh = replace(base, loaded={})
                for place, loaded in base.loaded.items():
                    kept = {key: held for key, held in loaded.weights.items() if key not in changed}
                    fresh.loaded[place] = loaded.with_weights(kept)
                made._bases[chosen] = fresh
        return made

    def with_relations(self, relations: Mapping[str, Relation]) -> Binding:
        """A binding of other facts to the same program, which shares the compiled plans."""
        made = Binding(self.context, relations, self.axioms, self._plans)
        made.derivatives = self.derivatives
        made._logs = frozenset(key for key in self._logs if relations.get(key) is self.given.get(key))
        return made

    def keep_tapes(self) -> None:
        """Makes later runs keep a tape from the start, for derivatives that will be asked for."""
        if self.derivatives is None:
            self.derivatives = Derivatives()

    def quiet(self) -> Binding:
        """This binding without further warnings: they were issued for another one of its kind."""
        self._warned_of_facts = self._warned_of_plan = True
        return self

    def settled(self) -> Binding:
        """This binding, or one in which columns of text have the types that they get among the shared facts."""
        if not any(map(has_texts, self.relations.values())):
            return self
        settled = settle_texts(self.context.domains, self.relations)
        given = {
            key: replace(relation, columns=tuple(c.take(np.arange(relation.count)) for c in settled[key].columns))
            for key, relation in self.given.items()
        }
        return Binding(self.context, given)

    # -- preparing a run

    def gathered(self, run: Mapping[str, Relation], overrides: Mapping[str, Relation]) -> dict[str, Relation]:
        """All facts of a chart: shared facts or their overrides, axioms, and the facts of the run."""
        relations = dict(self.relations)
        for key, relation in overrides.items():
            axiom = self.axioms.get(key)
            relations[key] = relation if axiom is None else concatenate(relation, axiom, self.context.scale.one)
        for key, relation in run.items():
            known = relations.get(key)
            relations[key] = relation if known is None else concatenate(known, relation, self.context.scale.one)
        return relations

    def places(self, key: str, run: Mapping[str, Relation], overrides: Mapping[str, Relation]) -> tuple[int, int, int]:
        """The numbers of shared rows, axioms, and rows of the run among the gathered facts, in this order."""
        sources = overrides.get(key, self.given.get(key)), self.axioms.get(key), run.get(key)
        shared, axioms, own = (0 if relation is None else relation.count for relation in sources)
        return shared, axioms, own

    def prepare(
        self,
        run: Mapping[str, Relation],
        purpose: Purpose = FORWARD,
        limits: SetupLimits = UNLIMITED,
        *,
        overrides: Mapping[str, Relation] | None = None,
        like: Encoding | None = None,
        directions: Directions | None = None,
    ) -> Prepared:
        """A chart for the shared facts and those of one run, ready to run.

        `overrides` replaces the facts of shared predicates that the chart changed; `like` is an encoding whose codes
        have to stay; `directions` has the tangents of facts.
        """
        context, until, deadline = self.context, purpose.until, limits.deadline
        chosen, relations, mixed = self._typed(run, overrides or {})
        if not self._warned_of_facts:
            self._warned_of_facts = True
            warn(context, relations, self._logs)
        superior = until is not None and is_superior(context, relations)
        purpose = replace(purpose, until=until if superior else None)
        patience = None if deadline is None else Stop(deadline)
        with self._locked(deadline):
            base = self._base(chosen, self._shared(chosen, relations, run, overrides or {}))
            known = base.known
            alone = None if mixed or like is not None else base.alone.get(purpose)
            start = known.encoding if like is None or not like.keeps(known.encoding) else like
            encoding = start.extend(context.domains, mixed) if mixed else start
            fresh = {key: encoding.codes(context.domains, r) for key, r in mixed.items()}
            if alone is not None:
                ranks, compiled = alone
            else:
                summary, ranks = summarise(context, known, encoding, relations, fresh)
                present = frozenset(k for k, r in relations.items() if r.count)
                options = replace(context.options, **vars(purpose))
                rough = rounded(context, known, summary, fresh.keys())
                key = chosen, signature(context, known, rough, present, fresh.keys()), options
                count = pair_count(relations, {**known.codes, **fresh}, fresh.keys(), rough)
                compiled = self._compiled(base, rough, count, key, limits)
                if not mixed and like is None:
                    base.alone[purpose] = ranks, compiled
            facts = RunFacts(relations, encoding, fresh, ranks, directions or Directions())
            loaded = load_shared(context, compiled, base.loaded.get(id(compiled.generated)), known, facts, patience)
            base.loaded[id(compiled.generated)] = loaded
        prepared = set_up(context, compiled, loaded, facts, limits.room, patience)
        check_copies(context, prepared, lambda key: self.places(key, run, overrides or {}))
        stops = superior or any(until in stage.keys and stage.final for stage in compiled.plan.stages)
        if purpose.changing or purpose.collecting:  # terms that an update interns belong to its chart alone
            prepared = replace(prepared, terms=prepared.terms.copy())
        return replace(prepared, stops=stops) if stops else prepared

    def _typed(
        self, run: Mapping[str, Relation], overrides: Mapping[str, Relation]
    ) -> tuple[tuple[str, ...], Mapping[str, Relation], Mapping[str, Relation]]:
        """The kinds of the domains, all facts of a chart, columns of text with their types, and those of them that are
        not the shared ones alone."""
        context, relations = self.context, self.gathered(run, overrides)
        mixed = {key: relations[key] for key in {**overrides, **run}}
        if not mixed and self._kinds is not None:
            return self._kinds, relations, mixed
        undefined(context.rules, relations)
        if any(map(has_texts, relations.values())):
            relations = settle_texts(context.domains, relations)
            mixed = {
                key: relations[key] for key in relations if key in mixed or relations[key] is not self.relations[key]
            }
        chosen = kinds(context.rules, context.domains, relations)
        if not mixed and all(relations[key] is relation for key, relation in self.relations.items()):
            self._kinds = chosen
        return chosen, relations, mixed

    # -- facts of runs that are run again

    def kept_facts(self, prepared: Prepared, run: Mapping[str, Relation], iterate: bool) -> LoadedRun | None:
        """The facts of a run, to be run again with other values of the shared facts; None where they cannot be kept."""
        same = all(prepared.relations[key] is r for key, r in self.relations.items() if key not in run)
        if not same or any(key in self.given for key in run):
            return None
        return loaded_run(self.context, prepared, run, (self.derivatives, iterate))

    def set_up_loaded(self, kept: LoadedRun, iterate: bool, room: int | None) -> Prepared | None:
        """A chart over facts that were kept, as `prepare` makes one; None where they have to be prepared anew."""
        shared = self.shared_weights(kept, iterate)
        if shared is None:
            return None
        prepared = set_up_loaded(kept, shared, self.relations, room)
        check_copies(self.context, prepared, lambda key: self.places(key, kept.run, {}))
        return prepared

    def shared_weights(self, kept: LoadedRun, iterate: bool) -> dict[int, WeightTable] | None:
        """The numbers of the shared facts for a run that was kept, by table; None where it has to be prepared anew."""
        if kept.how != (self.derivatives, iterate):
            return None
        with self._locked(None):
            for base in self._bases.values():
                loaded = base.loaded.get(id(kept.compiled.generated))
                if loaded is not None:
                    found = shared_weights(kept, loaded, self.relations, self.context.scale)
                    if found is not None:
                        return found
        return None

    def _shared(
        self,
        chosen: tuple[str, ...],
        relations: Mapping[str, Relation],
        run: Mapping[str, Relation],
        overrides: Mapping[str, Relation],
    ) -> dict[str, Relation]:
        """The shared facts, with the types of text that they have among all facts of a run.

        All of them, also those that this run adds to: so what is kept of them does not depend on which run came first.
        But of predicates that the chart changed, only those whose entries the kinds of its domains hold.
        """
        shared = {}
        for key, given in self.relations.items():
            if key not in run and key not in overrides:
                shared[key] = relations[key]
            elif not has_texts(given):
                if key not in overrides or held_by(self.context.domains, chosen, given):
                    shared[key] = given
            elif key not in overrides:  # those of the run come after them
                columns = tuple(c.take(np.arange(given.count)) for c in relations[key].columns)
                shared[key] = replace(given, columns=columns)
        return shared

    def _base(self, chosen: tuple[str, ...], shared: Mapping[str, Relation]) -> _Base:
        texts = [key for key, relation in self.relations.items() if has_texts(relation)]
        typed = tuple(type(c).__name__ for key in texts if key in shared for c in shared[key].columns)
        name = chosen, typed  # atoms may be symbols in one run and integers in another
        base = self._bases.get(name)
        if base is None or not set(base.known.codes) >= set(shared):
            constants = program_constants(self.context.rules, self.context.domains)
            encoding = Encoding.start(chosen, constants).extend(self.context.domains, shared)
            known = CodedFacts.of(self.context, encoding, shared)
            base = self._bases[name] = _Base(chosen, known, self._plans.of(chosen))
        return base

    def _compiled(
        self,
        base: _Base,
        summary: Summary,
        count: PairCount,
        key: Key,
        limits: SetupLimits,
    ) -> CompiledPlan:
        """A compiled plan for facts with this rounded summary: an existing one, or a new one."""
        for _, _, said in self._plans.jobs.finished():
            say(said)
        began = time.monotonic()
        compiled = self._made(base, summary, count, key, limits)
        self.compiling += time.monotonic() - began
        if not self._warned_of_plan and not compiled.plan.changes and compiled.plan.collects is None:
            self._warned_of_plan = True
            warn_of_iteration(self.context, compiled.plan)
        return compiled

    def _made(
        self,
        base: _Base,
        summary: Summary,
        count: PairCount,
        key: Key,
        limits: SetupLimits,
    ) -> CompiledPlan:
        _, marks, options = key
        tool = self._plans.compiler  # raises at once where there is none

        def found(wanted: Options) -> CompiledPlan | None:
            return next((c for c, made_for in base.plans if made_for == marks and fits(c.plan, summary, wanted)), None)

        def made() -> CompiledPlan:
            entry, without = self.context.entry, replace(options, derivatives=None)
            ran = found(without)
            rules, domains, progress = self.context.rules, self.context.domains, limits.progress
            with Ahead() as ahead:
                on_miss = functools.partial(start_ahead, ahead, tool)
                if ran is not None and extends(ran, options.derivatives):
                    generated = planned_backward(entry, ran, without, on_miss)
                    return compile_backward(ran, generated, progress, tool, ahead)
                first = None if base.plans else on_miss  # an earlier plan may have the same class
                plan, generated = planned(entry, rules, domains, summary, options, count, first)
                same = _of_same_class(base, plan, generated)
                return same or compile_plan(plan, generated, progress, tool, ahead)

        def work() -> CompiledPlan:
            with held(self._plans.making):
                compiled = found(options)  # by another thread
                if compiled is None:
                    compiled = made()
                    base.plans.append((compiled, marks))
                return compiled

        while True:
            compiled = found(options)
            if compiled is not None:
                return compiled
            if limits.deadline is None:
                return work()
            result = self._plans.jobs.result(key, work, limits.deadline)
            if result is None:
                raise _late()
            compiled, said = result
            say(said)
            # a job may have begun for other facts, and its plan may not fit these
            if compiled.plan.summary == summary or fits(compiled.plan, summary, options):
                return compiled

    @contextmanager
    def _locked(self, deadline: float | None) -> Iterator[None]:
        """One thread at a time."""
        with held(self._lock, -1 if deadline is None else left(deadline)) as got:
            if not got:
                raise _late()
            yield


def _of_same_class(base: _Base, plan: Plan, generated: Generated) -> CompiledPlan | None:
    """The plan over the class of an earlier one that differs in estimates alone, if there is one; they share facts."""
    source = generated.source
    for made, _ in base.plans:
        if made.plan.derivatives == plan.derivatives and made.generated.source == source:
            return replace(made, plan=plan)
    return None


def _late() -> NotConverged:
    """The error for a call whose code was not compiled in time."""
    return NotConverged(
        "the limit on time was met while code was compiled for this call; compiling goes on in the background, so a "
        "later call finds it done; raise timeout to wait for it"
    )
