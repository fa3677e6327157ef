"""`Chart`: the items that a run derived and their values; queries, changes of facts, and derivatives.

`Bound.run` makes a chart and runs it; `chart["goal"]` and `chart.query` read it; `add`, `retract` and `set` change the
facts of this chart alone, and `run` brings it up to date. One thread at a time may use a chart. Only what users call
lives here, each method a call of another file: `run.py` runs a chart, `binding/database.py` changes facts, `lookup.py`
finds items, `derivatives/queries.py` answers what needs derivatives.

It is long because of the docstrings of what users call.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import replace
from itertools import islice
from typing import Any, Unpack

import numpy as np

from ..arguments import yes_or_no
from ..calls import maker, public, public_iterator
from ..errors import FactError, ProgramWarning, QueryError, counted
from ..facts.relation import Relation, parse_key
from ..facts.table import Table
from ..forests.absence.attempts import WhyNot
from ..forests.derivation import Derivation
from ..forests.forest import Forest, make_forest
from ..forests.packed import Packed, RuleInstance
from ..forests.ranking.k_best import KBest, best, make_kbest
from ..forests.reasons.why import Why, why
from ..forests.sums.counting import count, count_simple
from ..forests.sums.draws import Samples, make_samples
from ..forests.sums.expectations import expectation
from ..forests.time_limit import stop_after
from ..plan.traits import is_derived, is_external
from ..rules.syntax import Item, Variable
from ..runtime.library import Stop
from . import derivations, lookup
from .binding.binding import Binding
from .binding.context import ProgramContext, probabilities_flag, read_facts
from .binding.database import Database
from .binding.loading import Prepared
from .derivatives import queries
from .derivatives.directions import read_weighted
from .derivatives.gradient import Gradient, Tangents
from .ends import check_end
from .finality import cut_short
from .limits import LimitOptions, Limits, Statistics
from .run import Run, Start

MOST_OFFERED = 10_000
"""The most items that are offered for completion."""


class Chart:
    """The items that a run derived from facts, and their values (Kay 1980; Shieber, Schabes and Pereira 1995).

    >>> import dynagrad as dg
    >>> chart = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.").run({"edge/2": [("a", "b", 2.0)]})
    >>> chart["path(b)"]
    2.0
    >>> list(chart.query("path(X)"))
    [('a', 0.0), ('b', 2.0)]
    """

    def __init__(
        self,
        binding: Binding,
        relations: Mapping[str, Relation],
        limits: Limits,
        probabilities: bool,
        spent: float = 0.0,
    ) -> None:
        """`spent` are seconds that count towards the limit on the time of the first run."""
        self._state = Run(Database(binding, dict(relations)), limits, spent)
        self._probabilities = probabilities
        self._collected: tuple[Any, tuple[Any, ...], derivations.Collector] | None = None

    # -- running

    @public
    def run(self, *, progress: bool = False, **limits: Unpack[LimitOptions]) -> Chart:
        """Brings the chart up to date: from the start if facts changed, else on from where the last run stopped.

        `dg.LimitOptions` says what the limits are. One that is not given stays as it was, but that `max_pops` counts
        from here; None takes it away. Returns the chart itself.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]}, max_pops=1)
        >>> chart.converged, chart.run(max_pops=None).converged
        (False, True)
        """
        bring_up(self, replace(self._state.limits, **limits), progress)
        warn_of_until(self)
        return self

    # -- looking

    @property
    def _context(self) -> ProgramContext:
        return self._state.context

    @property
    def _prepared(self) -> Prepared | None:
        return self._state.prepared

    def _require(self) -> Prepared:
        return self._state.require()

    def _ready(self) -> Prepared:
        return self._state.ready()

    @property
    def converged(self) -> bool:
        """Whether the run reached a fixed point.

        Where cycles were iterated, the estimate of what is still to come is below the tolerance; where they were
        solved, the solution has more than half of its digits. `error_bound` says how good the values are. Items that
        pruning or a beam held back may still be pending.
        """
        if self._state.status != "done" or self._state.stale:
            return False
        report = self._require().chart.report
        return not report.critical and not report.unfinished

    @property
    def error_bound(self) -> float:
        """A bound on the relative error of the chart's values, or an estimate: 0 where there are no cycles.

        It is that of the worst component of the ground program: where cycles are solved, the residual of the equations,
        or what rounding does to numbers, times their condition number (0 where that is near one); where they are
        iterated, an estimate of the remainder from the rate of convergence. It is infinite where a limit ended the run
        while cycles were iterated: then nothing is known of what was still to come.

        >>> import dynagrad as dg
        >>> tree = dg.Program("x += 0.5. x += 0.5 * x * x.", "real")
        >>> tree.run().error_bound < 1e-6, tree.run(max_pops=3).error_bound
        (True, inf)
        """
        return math.inf if cut_short(self._state) else float(self._require().chart.report.error_bound)

    @property
    def status(self) -> str:
        """Why the run ended: done, max_pops, timeout, until, items or bytes."""
        return self._state.status

    @property
    def stats(self) -> Statistics:
        """Pops, updates, items, bytes and seconds of the run so far."""
        r = self._require().chart.report
        tape = r.tape if self._state.taped is None else self._state.taped.chart.report.tape
        return Statistics(r.pops, r.updates, r.items, r.peak, r.nanoseconds / 1e9, tape)

    @property
    @public
    def pending(self) -> dict[str, Table]:
        """The updates that the run left unpropagated, per predicate: a table of items with their updates."""
        prepared = self._ready()
        scale = self._context.scale
        found = {}
        for key, table in prepared.compiled.plan.tables.items():
            if is_derived(table):
                codes, words = prepared.chart.items(table.number, table.arity, scale.width, pending=True)
                if len(codes):
                    found[key] = lookup.table_of(self._context, prepared, key, codes, words)
        return found

    @public
    def __getitem__(self, item: Any) -> Any:
        """The value of an item; the semiring's zero where it was never derived.

        The item is written as in rules, or given as its name and arguments: `chart["constit", "np", 0, 2]`. The value
        is in the semiring's scale. Raises `QueryError` for a predicate that the program does not have, `NotComputed`
        for one that the declared outputs do not need.
        """
        return lookup.value_of(self._context, self._ready(), item)

    @public
    def __contains__(self, item: Any) -> bool:
        """Whether an item was derived, even if its value is zero."""
        return lookup.words_of(self._context, self._ready(), item)[1] is not None

    # as a mapping from the texts of items to values

    @public_iterator
    def __iter__(self) -> Iterator[str]:
        """The items of the chart as texts, facts among them, predicate by predicate.

        >>> import dynagrad as dg
        >>> chart = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.").run({"edge/2": [("a", "b", 2.0)]})
        >>> list(chart), len(chart)
        (['path(a)', 'path(b)', 'edge(a,b)'], 3)
        >>> dict(chart)
        {'path(a)': 0.0, 'path(b)': 2.0, 'edge(a,b)': 2.0}
        """
        prepared = self._ready()
        yield from lookup.names_of(self._context, prepared, lambda key: self._state.items(prepared, key))

    def __reversed__(self) -> Iterator[str]:
        """The items of the chart as texts, the last first."""
        return reversed(list(self))

    @public
    def __len__(self) -> int:
        """How many items there are, facts among them."""
        prepared = self._ready()
        tables = prepared.compiled.plan.tables.items()
        return sum(len(self._state.items(prepared, key)[0]) for key, table in tables if not is_external(table))

    def __bool__(self) -> bool:
        """True, even for a chart without items."""
        return True

    def keys(self) -> KeysView[str]:
        """The items of the chart as texts, facts among them."""
        return lookup.ItemTexts(self)

    def values(self) -> ValuesView[Any]:
        """The values of the items, in the order of `keys`."""
        return ValuesView(self)

    def items(self) -> ItemsView[str, Any]:
        """The items as texts, with their values."""
        return lookup.ItemPairs(self)

    def _ipython_key_completions_(self) -> list[str]:
        """What IPython offers after `chart["`."""
        try:
            return list(islice(self, MOST_OFFERED))
        except QueryError:
            return []

    @public
    def query(self, pattern: Any) -> Table:
        """All items that match a pattern, as a table of their arguments and values, sorted by argument.

        A variable matches any argument, and the same one wherever it occurs. The table has a column for each argument,
        also for those that are constants in the pattern. Raises as `chart[...]` does.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]})
        >>> list(chart.query("edge(X,b)")), len(chart.query("edge(X,X)"))
        ([('a', 'b', 2.0)], 0)
        """
        prepared = self._ready()
        return lookup.find(self._context, prepared, pattern, lambda key: self._state.items(prepared, key))

    @public
    def table(self, key: str) -> Table:
        """All items of a predicate: `chart.table("constit/3")`."""
        self._ready()
        try:
            name, arity = parse_key(key)
        except FactError as error:
            raise QueryError(str(error)) from None
        lookup.check_known(self._context, self._prepared, f"{name}/{arity}")
        return self.query(Item(name, tuple(Variable(f"X{i}") for i in range(arity))))

    # -- derivatives

    @public
    def gradient(self, item: Any, *, timeout: float | None = None) -> Gradient:
        """The derivatives of an item's value with respect to all facts and items, by one backward pass.

        `item` is an item, or a mapping from items to cotangents, for their weighted sum. The result has, for each input
        predicate, a table like the facts that came in; see `Gradient`. Where cycles were solved, the gradient is that
        of the solution (implicit differentiation); otherwise that of the computation that ran, also after early
        stopping, pruning or at a tolerance. In `log` it is with respect to log weights, so that derivatives of a goal
        are expected counts; in `viterbi`, `tropical` and under `max=` and `min=` it follows the best derivation, and
        of several that tie the first to reach the value. An item that was not derived has gradient zero, and so has
        one of weight zero in `log`, `viterbi` and `tropical`.

        The first gradient of a program compiles the backward pass, and repeats the run of this chart with a tape;
        later runs of the same bound facts keep a tape from the start. The method is that of Eisner, Goldlust and Smith
        (2005), "Compiling Comp Ling".

        `timeout` is a limit in seconds on all of this; compiling that it interrupts goes on in the background.

        Raises `NotDifferentiable` in `boolean`, `count` and semirings of your own, `QueryError` for an unknown
        predicate or facts that changed since the run, `ValueRangeError` where a derivative is not finite, and
        `NotConverged` at the limit on time, which leaves the chart as it was.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]})
        >>> list(chart.gradient("path(c)")["edge/2"])
        [('a', 'b', 1.0), ('b', 'c', 1.0), ('a', 'c', 0.0)]
        """
        return queries.gradient(self._within(timeout), read_weighted(item))

    @public
    def jvp(self, direction: Mapping[str, Any], *, timeout: float | None = None) -> Tangents:
        """The derivatives of all items along one direction of the facts (forward mode, over dual numbers).

        `direction` has, for each predicate, one number for each row that was given, in the order of the rows (or an
        array of the shape of a dense table), or rows in any form that facts may have; facts that are left out have
        tangent zero. The run is repeated pop for pop, so that the tangents are those of the computation that ran.
        Raises as `gradient` does, and `FactError` where a direction does not fit. `timeout` is as in `gradient`.

        >>> import dynagrad as dg
        >>> chart = dg.Program("goal += a(X) * b(X).").run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
        >>> chart.jvp({"a/1": {("x",): 1.0}, "b/1": [10.0]})["goal"]
        23.0
        """
        return queries.tangents(self._within(timeout), direction)

    @public
    def outside(self, item: Any, goal: Any = "goal", *, timeout: float | None = None) -> Any:
        """The outside value of an item, in the semiring's scale: the total weight of derivations of the goal that
        use the item, without the item's own weight.

        In `real` and `expectation` it is the derivative of the goal with respect to the item, in `log` the log of that.
        In other semirings it raises `NotDifferentiable`.

        >>> import dynagrad as dg
        >>> chart = dg.Program("goal += a(X) * b(X).").run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
        >>> chart.outside("a(x)")
        3.0
        """
        return queries.outside(self._within(timeout), item, goal)

    @public
    def marginal(self, item: Any, goal: Any = "goal", *, timeout: float | None = None) -> float:
        """The probability that a derivation of the goal uses the item; where one can use it several times, the
        expected number of times.

        A derivation is as probable as its weight is large; in `viterbi` and `tropical` only the best one counts.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * b(X).")
        >>> chart = program.run({"a/1": [("x", 1.0), ("y", 3.0)], "b/1": [("x", 1.0), ("y", 1.0)]})
        >>> chart.marginal("a(y)")
        0.75
        """
        return queries.marginal(self._within(timeout), item, goal)

    @public
    def expected_counts(self, goal: Any = "goal", *, timeout: float | None = None) -> Gradient:
        """The expected number of times that a derivation of the goal uses each fact, and each derived item.

        A derivation is as probable as its weight is large; in `viterbi` and `tropical` only the best one counts. The
        tables are like those of `gradient`.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * b(X).")
        >>> chart = program.run({"a/1": [("x", 1.0), ("y", 3.0)], "b/1": [("x", 1.0), ("y", 1.0)]})
        >>> list(chart.expected_counts()["a/1"])
        [('x', 0.25), ('y', 0.75)]
        """
        return queries.expected_counts(self._within(timeout), goal)

    @public
    def entropy(self, goal: Any = "goal", *, timeout: float | None = None) -> float:
        """The entropy, in nats, of the distribution over the goal's derivations that is proportional to their weights.

        H = log Z - E[log weight], where the expectation is the derivative of log Z with respect to an inverse
        temperature (Li and Eisner 2009, "First- and second-order expectation semirings", section 6.1). For `real` and
        `log`; weights may not be negative. As everywhere, copies of a fact are leaves of different derivations, and
        those of an item of clauses weigh the same.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(_).")
        >>> round(program.run({"a/1": [("x", 0.5), ("y", 0.5)]}).entropy(), 6)
        0.693147
        """
        ran = self._within(timeout)
        entropy = queries.entropy(ran, goal)
        if not queries.worth_one(ran, goal):
            return entropy
        return math.log(count(self._packed(goal, ran.stop), ran.stop))  # the value does not say how many there are

    # -- derivations

    def _collector(self, stop: Stop | None = None) -> derivations.Collector:
        """The items of this chart in the class that collects derivations, until it runs again."""
        self._ready()
        report = self._require().chart.report
        came = (self._state.status, report.pops, report.updates, report.items)  # items of sinks are not popped
        if self._collected is None or self._collected[0] is not self._prepared or self._collected[1] != came:
            self._collected = (self._prepared, came, derivations.collector(self._state, stop))
        return self._collected[2]

    def _packed(self, item: Any, stop: Stop | None, *, best: bool = False) -> Packed:
        return derivations.collect(self._collector(stop), item, None, stop, best=best)

    @public
    def forest(self, item: Any = "goal", *, limit: int | None = None, timeout: float | None = None) -> Forest:
        """All derivations of an item, packed: the items that it is derived from, and the instances of rules.

        It is collected from the finished chart, for what the item reaches alone. Every derivation counts, those that
        repeat an item on their own path included, so that weights add up to the chart's value. Of a run that stopped
        early it is there for items that are known to be final; what pruning held back of them is told in a warning.
        `limit` is the most instances that it may have, and `timeout` a limit in seconds. Raises `QueryError` for an
        item that was not derived or is not final, and `NotConverged` at a limit.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> forest = program.run({"edge/2": [("a", "b", 2.0), ("a", "c", 1.0)]}).forest("path(b)")
        >>> [str(item) for item in forest.items]
        ['path(b)', 'path(a)', 'edge(a,b)']
        """
        stop = stop_after(timeout)
        return make_forest(derivations.collect(self._collector(stop), item, limit, stop))

    @public
    def forest_size(
        self, item: Any = "goal", *, limit: int | None = None, timeout: float | None = None
    ) -> tuple[int, int]:
        """How many items and how many instances the forest of an item has, which is not made for that.

        Limits are those of `forest`.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> program.run({"edge/2": [("a", "b", 2.0), ("a", "c", 1.0)]}).forest_size("path(b)")
        (3, 3)
        """
        stop = stop_after(timeout)
        return derivations.size(self._collector(stop), item, limit, stop)

    @public
    def best(self, item: Any = "goal", *, timeout: float | None = None) -> Derivation:
        """The best derivation of an item: of the largest weight, in `tropical` of the least cost.

        Of several that tie, one of the fewest instances; of these the first in the order of rules, then of antecedents.
        So it may be another than the one that the gradient in `viterbi` followed. `timeout` is a limit in seconds on
        all that this takes, at which `NotConverged` is raised.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]})
        >>> chart.best("path(c)").facts()
        ['path(a)', 'edge(a,b)', 'edge(b,c)']
        """
        stop = stop_after(timeout)
        return best(self._packed(item, stop, best=True), stop)

    @public
    def kbest(
        self,
        item: Any = "goal",
        k: int | None = None,
        *,
        simple: bool = False,
        distinct: str | Callable[[Derivation], Hashable] | None = None,
        timeout: float | None = None,
    ) -> KBest:
        """The k best derivations of an item, or all, as an iterator that finds the next one when it is asked for.

        `simple` leaves out derivations that repeat an item on their own path. With `distinct`, only the first of
        those with one key is given: "yield" (the facts at the leaves), "tree" (without labels), or a function.
        `timeout` is a limit in seconds on this call, which collects the forest, and on each derivation that is asked
        for; after `NotConverged` the iterator may be asked again.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]})
        >>> [d.weight for d in chart.kbest("path(c)", 2)]
        [3.0, 9.0]
        """
        forest = self._packed(item, stop_after(timeout))
        return make_kbest(forest, k, simple=simple, distinct=distinct, timeout=timeout)

    @public
    def sample(self, item: Any = "goal", n: int = 1, *, seed: int = 0, timeout: float | None = None) -> Samples:
        """Draws from the derivations of an item, in proportion to their weight: exact, also in cyclic programs.

        Draw i depends on the seed and on i alone. In `boolean` all derivations are as likely as each other. `timeout`
        is as in `best`.

        >>> import dynagrad as dg
        >>> chart = dg.Program("goal += a(_).").run({"a/1": [("x", 1.0), ("y", 3.0)]})
        >>> draws = chart.sample("goal", 1000, seed=1)
        >>> sum(d.facts() == ["a(y)"] for d in draws) / 1000
        0.771
        """
        stop = stop_after(timeout)
        return make_samples(self._packed(item, stop), n, seed, stop=stop)

    @public
    def count(self, item: Any = "goal", *, simple: bool = False, timeout: float | None = None) -> int | float:
        """How many derivations an item has: an exact whole number, or `math.inf`.

        `simple` counts those that repeat no item on their own path. `timeout` is as in `best`.

        >>> import dynagrad as dg
        >>> dg.Program("a += b * b. b += c(_).").run({"c/1": [("x",), ("y",)]}).count("a")
        4
        """
        stop = stop_after(timeout)
        return (count_simple if yes_or_no("simple", simple) else count)(self._packed(item, stop), stop)

    @public
    def expected(self, item: Any, value: Callable[[RuleInstance], Any], *, timeout: float | None = None) -> Any:
        """The expectation of a function that is a sum over the rule instances of a derivation.

        Derivations count in proportion to their weights. `value` gives what an instance contributes: a number, or an
        array of them. `timeout` is as in `best`.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * b(X).")
        >>> chart = program.run({"a/1": [("x", 1.0), ("y", 3.0)], "b/1": [("x", 1.0), ("y", 1.0)]})
        >>> chart.expected("goal", lambda instance: str(instance.head) == "a(y)")
        0.75
        """
        stop = stop_after(timeout)
        return expectation(self._packed(item, stop), value, stop)

    @public
    def why(
        self,
        item: Any = "goal",
        *,
        depth: int = 1,
        goal: Any = None,
        sets: int = 1,
        budget: int = 100_000,
        above: float | None = None,
    ) -> Why:
        """Why an item is there: the rule instances that make it with the share of each, and facts that suffice for it.

        Instances are opened to a `depth` of so many items. With a `goal` each says how much the goal changes for it, by
        its adjoint. `sets` is how many irreducible sets of facts are looked for, the smallest first: each derives the
        item, and does not without any one of its facts; items under `not` are held as they are, and axioms of the
        text always hold. Several take up to `budget` steps, and `.complete` says whether these are all. With `above` a
        set is one for which the value is still as good as that.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]})
        >>> chart.why("path(c)", sets=9).sets
        [['edge(a,c)'], ['edge(a,b)', 'edge(b,c)']]
        """
        held = self._collector()
        gradient = None if goal is None else self.gradient(goal)

        def adjoint(name: str) -> float:
            assert gradient is not None
            found = gradient.item(name)
            return float(found[0]) if isinstance(found, tuple) else float(found)

        return why(
            derivations.collect(held, item),
            lambda: derivations.collect(held, item, sides=True),
            depth,
            None if goal is None else adjoint,
            sets,
            budget,
            above,
        )

    @public
    def why_not(
        self, item: Any = "goal", *, missing: int = 3, depth: int = 30, bindings: int = 100_000, seconds: float = 1.0
    ) -> WhyNot:
        """Why an item is not there: the rules that came nearest, and what is missing for them, down to the facts.

        Attempts with one missing leaf are looked for first, then with more, up to `missing`: facts that were not given,
        comparisons that fail, negated items that are there. `depth`, `bindings` and `seconds` are limits of the search,
        and `.complete` says that it met none. The item may have variables, which stand for anything.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> why_not = program.run({"edge/2": [("a", "b", 2.0)]}).why_not("path(c)")
        >>> [attempt.missing for attempt in why_not.attempts]
        [['edge(a,c)'], ['edge(b,c)']]
        """
        return derivations.explain_absence(self._state, item, missing, depth, bindings, seconds)

    def _within(self, timeout: float | None) -> queries.FinishedRun:
        """The run of this chart for `derivatives/queries.py`, with a limit on the time of the answer."""
        return queries.FinishedRun(self._state, stop_after(timeout))

    # -- changing

    @public
    def add(self, key: str, rows: Any, *, values: str | None = None) -> None:
        """Adds facts to this chart, after its rows; `run` brings it up to date.

        A fact that is there already has one more row, and rows of one fact join: by the semiring's plus, or by the
        aggregator of the rules that read them.

        `rows` has any form that `bind` takes, and `values` says what their numbers are; where it does not, they are
        what those of the run were that made the chart. Raises `FactError` and leaves the chart as it was where they do
        not fit. Of rows of one fact that do not join `run` says so, since a row may be retracted before.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]})
        >>> chart.add("edge/2", [("a", "c", 1.0), ("c", "b", 0.5)])
        >>> chart.run()["path(b)"]
        1.5
        """
        relation = self._read(key, rows, values)
        self._state.change(self._state.facts.added(relation), relation)

    @public
    def retract(self, key: str, rows: Any, *, values: str | None = None) -> None:
        """Removes every copy of the given facts; of a row with a value, only the copies with that value.

        Raises `QueryError`, and leaves the chart as it was, where one of them is not a fact of it. Axioms in the
        program's text stay.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]})
        >>> chart.retract("edge/2", [("a", "b")])
        >>> chart.run()["path(b)"]
        inf
        """
        gone = self._read(key, rows, values, bare=True)
        self._state.change(self._state.facts.retracted(gone), gone)

    @public
    def set(self, key: str, rows: Any, *, values: str | None = None) -> None:
        """Gives facts new values: a given row replaces all copies of its fact, and stands where the first of them was.

        Of several rows for one fact, the n-th stands where its n-th copy was. New facts come last.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]})
        >>> chart.set("edge/2", {("a", "b"): 7.0})
        >>> chart.run()["path(b)"]
        7.0
        """
        relation = self._read(key, rows, values)
        self._state.change(self._state.facts.updated(relation), relation)

    def _read(self, key: str, rows: Any, values: str | None, *, bare: bool = False) -> Relation:
        probabilities = probabilities_flag(values, self._probabilities)
        context = self._context
        parse_key(key)
        relation = read_facts(context, {key: rows}, probabilities, bare=bare, strict=True)[key]
        values_given = relation.values
        if context.scale.shape == "expectation" and values_given is not None:
            have = values_given.shape[1]
            if not relation.count:  # an empty table may say no width, or any
                return replace(relation, values=np.zeros((0, context.scale.width)))
            if have != context.scale.width:
                raise FactError(
                    f"{key}: the pairs have vectors of length {have - 1}, but those of this chart have length "
                    f"{context.scale.width - 1}"
                )
        return relation

    # -- pickling: the facts and how far the run came; the chart is recomputed, pop for pop

    def __getstate__(self) -> dict[str, Any]:
        stopped = self._prepared is not None and self._state.status != "done"
        return {
            "facts": self._state.facts,
            "limits": self._state.limits,
            "probabilities": self._probabilities,
            "ran": self._prepared is not None and not self._state.stale,
            "status": self._state.status,
            "pops": self._require().chart.report.pops if stopped else None,
            "iterate": self._state.iterate,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        limits = state["limits"]
        vars(self).update(vars(make_chart(state["facts"].binding, {}, limits, state["probabilities"])))
        run = self._state
        run.facts = state["facts"]
        if state["ran"]:  # up to the same pop, with `iterate` as it was: a limit on pops alone would mean iteration
            there = replace(limits, timeout=None)
            if state["pops"] is not None:
                there = replace(there, max_pops=state["pops"])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ProgramWarning)
                how = Start(there, 0.0, iterate=state["iterate"])
                run.start(how)
                check_end(run.resume(how, None), self)
            run.limits, run.status = limits, state["status"]

    def __repr__(self) -> str:
        if self._prepared is None or self._state.stale:
            return "<Chart, to be run>"
        r = self._prepared.chart.report
        return f"<Chart: {counted(r.items, 'item')}, {counted(r.pops, 'pop')}, {self._state.status}>"


def run_of(chart: Chart) -> Run:
    """The run behind a chart, for other rooms of the package."""
    return chart._state


def bring_up(chart: Chart, limits: Limits, progress: bool = False, stop: Stop | None = None) -> None:
    """Brings a chart up to date within limits. Raises and warns for how that ended."""
    check_end(chart._state.bring_up(limits, progress, stop), chart)


def warn_of_until(chart: Chart) -> None:
    """Warns where the item at which the run was to stop has an argument that no fact and no item has."""
    if chart._state.limits.until is not None:
        lookup.warn_if_unknown(chart._context, chart._ready(), chart._state.limits.until)


make_chart = maker(Chart, "charts come from program.run(facts), or bound.run(facts)")
