"""A chart: run it, look items up, query patterns, change facts and run again.

The life of a chart: `Bound.run` makes it from facts and runs it; `chart["goal"]` and `chart.query` read it; `add`,
`retract` and `set` change the facts of this chart alone, and `run` brings it up to date. A chart is used by one thread
at a time. How values are computed is the plan's business; how arguments are coded is `encoding`'s.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import math
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .binding import Along, Binding, Prepared, concatenate, read_facts, row_numbers
from .changing import MOST_ROWS, can_change, change
from .encoding import kinds, settle_texts, syntax_value
from .errors import (
    Error,
    FactError,
    NotComputed,
    NotConverged,
    NotDifferentiable,
    ProgramWarning,
    QueryError,
    ValueRangeError,
)
from .facts import Relation, parse_key
from .gradient import (
    Asked,
    Gradient,
    Seed,
    Source,
    Tangents,
    adjoint_width,
    backward,
    differentiable,
    row_adjoints,
)
from .plan.compiled import Settings, Stop
from .plan.model import Derivatives
from .plan.values import numbers
from .progress import Progress
from .reading import code as code_of
from .reading import column, decode, item_text, matches, ranks, reported
from .rules import parse_item
from .rules.check import nearest
from .rules.show import show
from .rules.syntax import Arithmetic, Compound, Float, Integer, Item, Symbol, Variable
from .rules.syntax import Term as SyntaxTerm
from .table import Table
from .terms import canonical, cut, shown, term_text

Codes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
STATUS = ("done", "max_pops", "timeout", "until", "items", "bytes", "bad_value", "interrupted", "integer_overflow")
MAX_ITEMS = 200_000_000
NATIVE_FUNCTION: Any = ctypes.CFUNCTYPE(None).__base__
PAUSE = 100_000_000  # nanoseconds between two looks of the progress bar


@dataclass(frozen=True)
class Limits:
    """When a run stops before its end. `until` is an item: the run stops when it is final."""

    max_pops: int | None = None
    tolerance: float | None = None
    timeout: float | None = None
    until: str | None = None
    max_items: int | None = None
    max_bytes: int | None = None

    def check(self) -> None:
        for name in ("max_pops", "timeout", "max_items", "max_bytes", "tolerance"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise Error(f"{name} must be a number from 0, and {value!r} is not")


@dataclass(frozen=True)
class Statistics:
    """What a run did.

    `pops` are items taken off the agenda, `updates` contributions of rule instances, `items` derived items, `bytes` the
    memory of the chart itself without the facts that it shares, `seconds` the time in native code. `tape_bytes` is what
    the run keeps for its derivatives: none before the first gradient is asked for, then eight bytes a pop, and the old
    value and the update of each item that was popped again.

    >>> import dynagrad as dg
    >>> dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.").run({"edge/2": [("a", "b", 2.0)]}).stats.items
    2
    """

    pops: int
    updates: int
    items: int
    bytes: int
    seconds: float
    tape_bytes: int = 0


@functools.cache
def default_bytes() -> int:
    """The default limit on a chart's memory: half of the machine's."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return 8 << 30


_SIMPLE = re.compile(r"([a-z]\w*)(?:\(((?:[a-z]\w*|-?[0-9]{1,9})(?:,(?:[a-z]\w*|-?[0-9]{1,9}))*)\))?", re.ASCII)
_KEYWORDS = frozenset({"for", "if", "then", "else", "not", "mod"})


def _parsed(text: str) -> Item:
    """The item that a text is; short ones are remembered."""
    return _remembered(text) if len(text) <= 200 else _read_item(text)


def _read_item(text: str) -> Item:
    """Symbols and integers are read without starting the parser."""
    simple = _SIMPLE.fullmatch(text)
    arguments = simple[2].split(",") if simple and simple[2] else []
    if simple is None or not _KEYWORDS.isdisjoint((simple[1], *arguments)):
        return parse_item(text)
    return Item(simple[1], tuple(Symbol(a) if a[0].isalpha() else Integer(int(a)) for a in arguments))


_remembered = functools.lru_cache(maxsize=4096)(_read_item)


class Chart:
    """The items of one run and their values.

    >>> import dynagrad as dg
    >>> chart = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.").run({"edge/2": [("a", "b", 2.0)]})
    >>> chart["path(b)"]
    2.0
    >>> list(chart.query("path(X)"))
    [('a', 0.0), ('b', 2.0)]
    """

    def __init__(
        self, binding: Binding, relations: Mapping[str, Relation], limits: Limits, probabilities: bool
    ) -> None:
        self._binding = binding
        self._relations = dict(relations)  # the run's own facts
        self._shared: dict[str, Relation] = {}  # bound predicates whose facts this chart changed
        self._limits = limits
        self._probabilities = probabilities
        self._prepared: Prepared | None = None
        self._stale = True
        self._status = "done"
        self._touched: dict[str, list[Relation]] = {}  # facts that changed since the last run, which then was complete
        self._complete = False
        self._raised: list[BaseException] = []  # by functions behind external predicates, in the run that goes on
        self._columns: dict[str, tuple[Codes, Words]] = {}
        self._course: list[tuple[int | None, float]] = []  # how the run went, see `gradient.Source`
        self._taped: Prepared | None = None  # the same run with a tape

    # -- running

    def run(self, *, progress: bool = False, _stop: Stop | None = None, **limits: Any) -> Chart:
        """Brings the chart up to date: from the start if facts changed, else on from where the last run stopped.

        Takes the limits of `Bound.run`; those not given stay as they were, except `max_pops`, which counts from here.
        Returns the chart itself.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]}, max_pops=1)
        >>> chart.converged, chart.run(max_pops=None).converged
        (False, True)
        """
        wanted = replace(self._limits, **limits)
        wanted.check()
        if (
            self._prepared is None
            or self._stale
            or self._prepared.chart.report.partial
            or wanted.until != self._limits.until
        ):
            if self._follow(wanted):
                return self
            self._start(wanted, progress)
        self._limits = wanted
        self._go(wanted, progress, _stop)
        return self

    def _follow(self, limits: Limits) -> bool:
        """Brings a complete chart up to date from the facts that changed alone, where that can be done."""
        before = self._prepared
        free = replace(limits, tolerance=None) == Limits()
        if before is None or not self._complete or not self._touched or not free:
            return False
        if not can_change(self._binding.setting):
            return False
        if sum(r.count for rows in self._touched.values() for r in rows) > MOST_ROWS:
            return False
        relations = self._binding.gathered(self._relations, self._shared)
        touched: dict[str, npt.NDArray[np.bool_]] = {}
        came: dict[str, npt.NDArray[np.bool_]] = {}
        for key, rows in self._touched.items():
            for relation in rows:
                for found, where in ((touched, before.relations), (came, relations)):
                    if key in where and where[key].count:
                        mask = _matching(where[key], relation, None)[0]
                        found[key] = mask | found[key] if key in found else mask
        self._complete = False
        self._columns.clear()
        self._raised.clear()
        settings = self._settings(limits, 0, 0)
        after = change(self._binding, before, self._relations, self._shared, touched, came, settings, self._connect_all)
        if after is None:
            return False
        self._prepared, self._stale, self._limits = after, False, limits
        self._course, self._taped = [(None, settings.tolerance)], None
        self._after(after.chart.report)
        return True

    def _connect_all(self, prepared: Prepared) -> None:
        for key, function in self._binding.setting.externals.items():
            self._connect(prepared, key, function)

    def over(self, derivatives: Derivatives | None, along: Along) -> Prepared:
        """Runs once, from the start, in a class with these derivatives: for `function`, which reads the native chart.

        Where there are directions, the values in the native chart are jets, and only who knows that may look at it.
        """
        self._limits.check()
        self._start(self._limits, False, derivatives, along)
        self._go(self._limits, False, None)
        return self._ready()

    def _start(
        self,
        limits: Limits,
        progress: bool,
        derivatives: Derivatives | None = None,
        along: Along | None = None,
    ) -> None:
        until = None
        if limits.until is not None:
            until = self._item(limits.until).key
        prepared = self._binding.prepare(
            self._relations,
            until,
            Progress.compiling if progress else None,
            instead=self._shared,
            derivatives=self._binding.derivatives if along is None else derivatives,
            along=along,
        )
        self._connect_all(prepared)
        self._prepared = prepared
        self._stale = False
        self._course = []

    def _prepare(self) -> Chart:
        """Does all of the first run that comes before its native part; `run` is to follow."""
        self._start(self._limits, False)
        return self

    def _connect(self, prepared: Prepared, key: str, function: Any) -> None:
        """Lets native code ask a Python function for the values of an external predicate."""
        table = prepared.compiled.plan.tables.get(key)
        if table is None:
            return
        if isinstance(function, NATIVE_FUNCTION):
            if any(prepared.encoding.domains[d].kind != "int" for d in table.domains):
                raise Error(f"the function behind {key} is native, so all arguments of {key} have to be integers")
            # the setting, which the chart holds, keeps the function alive
            address = ctypes.cast(function, ctypes.c_void_p)
            prepared.chart.engine.chart_external(prepared.chart.pointer, table.number, address)
            return
        scale, known = self._binding.setting.scale, dict[tuple[int, ...], Any]()
        arity = table.arity

        def answer(arguments: Any, words: Any) -> int:
            try:
                codes = tuple(arguments[i] for i in range(arity))
                if codes not in known:
                    values = [decode(prepared, d, [c])[0] for d, c in zip(table.domains, codes, strict=True)]
                    given = function(*values)
                    known[codes] = None if given is None else scale.word_of(scale.one if given is True else given)
                found = known[codes]
                if found is None:
                    return 0
                for i in range(scale.width):
                    words[i] = int(found[i])
                return 1
            except BaseException as error:
                self._raised.append(error)
                return -1

        prepared.chart.set_external(table.number, answer)

    def _settings(self, limits: Limits, pops: int, nanoseconds: int) -> Settings:
        """Limits as native code takes them; pops and time count from what was spent before."""
        settings = Settings(-1, -1, -1, -1, -1, -1, -1, 1e-12)
        if limits.max_pops is not None:
            settings.max_pops = _whole(pops + limits.max_pops)
        if limits.timeout is not None:
            settings.timeout_ns = _whole(nanoseconds + limits.timeout * 1e9)
        if limits.tolerance is not None:
            settings.tolerance = limits.tolerance
        settings.max_items = MAX_ITEMS if limits.max_items is None else _whole(limits.max_items)
        settings.max_bytes = default_bytes() if limits.max_bytes is None else _whole(limits.max_bytes)
        return settings

    def _go(self, limits: Limits, progress: bool, stop: Stop | None) -> None:
        prepared = self._prepared
        assert prepared is not None
        report = prepared.chart.report
        settings = self._settings(limits, report.pops, report.nanoseconds)
        if limits.until is not None and prepared.stops:
            item = self._item(limits.until)
            table = prepared.compiled.plan.tables[item.key]
            codes = self._codes(prepared, item.key, self._values(item))
            if codes is not None:
                settings.until_table = table.number
                settings.until_cell = prepared.chart.locate(table.number, codes)
        self._columns.clear()
        self._raised.clear()
        self._complete = False
        self._taped = None
        try:
            if progress:
                settings.pause_ns = PAUSE
                with Progress() as bar:
                    while STATUS_NAMES[prepared.chart.run(settings, stop).status] == "paused":
                        bar.show(report.pops, report.items, report.pending)
            else:
                prepared.chart.run(settings, stop)
        except BaseException:
            self._stale = True
            raise
        self._course.append((None if report.status == 0 else report.pops, settings.tolerance))
        self._after(report)

    def _after(self, report: Any) -> None:
        """What the end of a run says, as attributes, warnings and errors."""
        self._status = STATUS_NAMES[report.status]
        self._complete = self._status == "done" and not report.partial and not self._raised
        if self._complete:
            self._touched.clear()
        if self._raised:
            self._stale = True
            raise self._raised[0]
        if self._status == "host_error":
            self._stale = True
            raise ValueRangeError("the native function behind an external predicate said that it failed")
        if self._status in ("items", "bytes"):
            raise NotConverged(
                f"the run stopped after {report.pops:,} pops at its limit on {self._status}: {report.items:,} items, "
                f"{report.bytes:,} bytes. Raise max_{self._status}, or stop earlier with max_pops, timeout or until; "
                "the chart so far is in this error's .chart",
                chart=self,
            )
        if self._status == "bad_value":
            item = reported(self._require(), report)
            scale = self._binding.setting.scale
            if scale.shape == "count":
                raise ValueRangeError(f"{item} is too large to be counted: at least 2**128 - 1 derivations")
            if scale.name == "plain":
                raise ValueRangeError(
                    f"{item} became NaN, and is the first item that did: by 0/0, inf - inf, or a function outside its "
                    "domain, such as the log of a negative number; `if ... then ... else ...` can step around it"
                )
            raise ValueRangeError(
                f"{item} became NaN or left the range of the {scale.name} semiring, and is the first item that did. A "
                "sum around a cycle may grow without end; where the numbers are only very large or very small, use log"
            )
        if self._status == "integer_overflow":
            raise ValueRangeError(
                "integer arithmetic in an argument left the range -2**31 .. 2**31-1, or divided by zero; "
                "bound the arguments with a condition, such as `for I < N`"
            )
        if self._status == "two_values":
            raise ValueRangeError(
                f"{reported(self._require(), report)} is given two different values by `=`; "
                "use +=, max= or min= where several contributions may meet"
            )
        if self._status == "interrupted":
            self._stale = True
            raise KeyboardInterrupt
        if report.underflow:
            warnings.warn(
                f"{report.underflow:,} items underflowed to zero or lost digits in the real semiring; "
                "use semiring log, which never underflows",
                ProgramWarning,
                stacklevel=4,
            )

    # -- looking

    def _require(self) -> Prepared:
        if self._prepared is None:
            raise QueryError("this chart has not been run; call chart.run() first")
        return self._prepared

    def _ready(self) -> Prepared:
        prepared = self._require()
        if self._stale:
            raise QueryError("the facts of this chart changed, or its run was interrupted; call chart.run() first")
        return prepared

    @property
    def converged(self) -> bool:
        """Whether the run came to its end; what pruning, a beam or the tolerance held back may still be pending."""
        return self._status == "done" and not self._stale

    @property
    def status(self) -> str:
        """Why the run ended: done, max_pops, timeout, until, items or bytes."""
        return self._status

    @property
    def stats(self) -> Statistics:
        """Pops, updates, items, bytes and seconds of the run so far."""
        r = self._require().chart.report
        tape = r.tape if self._taped is None else self._taped.chart.report.tape
        return Statistics(r.pops, r.updates, r.items, r.peak, r.nanoseconds / 1e9, tape)

    @property
    def pending(self) -> dict[str, Table]:
        """The updates that the run left unpropagated, per predicate: a table of items with their updates."""
        prepared = self._ready()
        scale = self._binding.setting.scale
        found = {}
        for key, table in prepared.compiled.plan.tables.items():
            if table.kind in ("dense", "hashed"):
                codes, words = prepared.chart.items(table.number, table.arity, scale.width, pending=True)
                if len(codes):
                    found[key] = self._table(prepared, key, codes, words)
        return found

    def _item(self, text: Any) -> Item:
        if isinstance(text, str):
            item = _parsed(text)
        elif isinstance(text, Item):
            item = text
        else:
            raise QueryError(f'{shown(text)} is no item; write it as in rules, such as chart["constit(np,0,2)"]')
        self._known(item.key)
        terms: list[SyntaxTerm] = list(item.arguments)
        while terms:
            term = terms.pop()
            if isinstance(term, Arithmetic):
                raise QueryError(f"{cut(show(item))} computes in an argument; write the number itself")
            if isinstance(term, Compound):
                terms.extend(term.arguments)
        return item

    def _known(self, key: str) -> None:
        """Raises where items of a predicate cannot be looked up."""
        predicates = self._binding.setting.rules.predicates
        if key not in predicates:
            raise QueryError(f"the program has no predicate `{cut(key)}`.{nearest(key, sorted(predicates))}")
        if predicates[key].external:
            raise QueryError(f"`{key}` is external: its values are those of your function")
        omitted = {} if self._prepared is None else self._prepared.compiled.plan.omitted
        if key in omitted:
            raise NotComputed(f"`{key}` was left out: {omitted[key]}; declare it as an output to see it")

    def __getitem__(self, item: Any) -> Any:
        """The value of an item; the semiring's zero where it was never derived.

        The item is written as in rules, or given as its name and arguments: `chart["constit", "np", 0, 2]`. The value
        is in the semiring's scale. Raises `QueryError` for a predicate that the program does not have, `NotComputed`
        for one that the declared outputs do not need.
        """
        key, words = self._words(item)
        return self._zero(key) if words is None else self._binding.setting.scale.value(words)

    def _words(self, item: Any) -> tuple[str, npt.NDArray[np.uint64] | None]:
        """An item's predicate, and the words of its value; None where it was not derived."""
        prepared = self._ready()
        key, codes = self._place(prepared, item)
        table = prepared.compiled.plan.tables.get(key)
        if table is None or codes is None:
            return key, None
        return key, prepared.chart.get(table.number, codes, self._binding.setting.scale.width)

    def _place(self, prepared: Prepared, item: Any) -> tuple[str, list[int] | None]:
        """An item's predicate, and the codes of its arguments; None where one of them is unknown to the chart."""
        if isinstance(item, tuple) and item and isinstance(item[0], str):
            key, values = f"{item[0]}/{len(item) - 1}", [_argument(item[0], n, v) for n, v in enumerate(item[1:])]
            self._known(key)
        else:
            found = self._item(item)
            key, values = found.key, self._values(found)
        self._needed(prepared, key, values)
        return key, self._codes(prepared, key, values)

    def _needed(self, prepared: Prepared, key: str, values: Sequence[Any]) -> None:
        """Refuses what the outputs do not need and was therefore not derived; None stands for a variable."""
        for i, constant in prepared.compiled.plan.fixed.get(key, {}).items():
            wanted = syntax_value(constant)
            if type(values[i]) is not type(wanted) or values[i] != wanted:
                raise NotComputed(
                    f"of `{key}` only the items with {term_text(wanted)} as argument {i + 1} were derived, because the "
                    f"outputs need no others; ask for those, or declare {key} as an output"
                )

    def _zero(self, key: str) -> Any:
        setting = self._binding.setting
        if setting.scale.name != "plain":
            return copy.deepcopy(setting.scale.zero)
        return {"*=": 1.0, "max=": -math.inf, "min=": math.inf, "&=": 1.0}.get(
            setting.rules.predicates[key].aggregator, 0.0
        )

    def __contains__(self, item: Any) -> bool:
        """Whether an item was derived, whatever its value."""
        return self._words(item)[1] is not None

    def _values(self, item: Item) -> list[Any]:
        """The arguments of a ground item."""
        try:
            return [syntax_value(term) for term in item.arguments]
        except ValueError:
            raise QueryError(
                f"{cut(show(item))} has variables; use chart.query to find all items that match it"
            ) from None

    def _codes(self, prepared: Prepared, key: str, values: Sequence[Any]) -> list[int] | None:
        """The codes of an item's arguments, or None where one of them is unknown to the chart."""
        codes = []
        for i, value in enumerate(values):
            code = code_of(prepared, self._binding.setting.domains.of[key, i], value)
            if code is None:
                return None
            codes.append(code)
        return codes

    def query(self, pattern: Any) -> Table:
        """All items that match a pattern, as a table of their arguments and values, sorted by argument.

        Variables stand for anything; one that occurs twice for the same thing twice. The table has a column for every
        argument, also for those that the pattern names. Raises as a lookup does.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]})
        >>> list(chart.query("edge(X,b)")), len(chart.query("edge(X,X)"))
        ([('a', 'b', 2.0)], 0)
        """
        prepared = self._ready()
        return self._query(prepared, pattern, lambda key: self._all(prepared, key))

    def _query(self, prepared: Prepared, pattern: Any, items: Callable[[str], tuple[Codes, Words]]) -> Table:
        """The table of the items that match, of all that `items` has of a predicate."""
        item = self._item(pattern)
        table = prepared.compiled.plan.tables.get(item.key)
        assert table is not None
        constant = (Symbol, Integer, Float)
        self._needed(prepared, item.key, [syntax_value(t) if isinstance(t, constant) else None for t in item.arguments])
        codes, words = items(item.key)
        keep = np.ones(len(codes), np.bool_)
        domains = self._binding.setting.domains
        later: list[tuple[int, SyntaxTerm]] = []
        first: dict[str, int] = {}
        for i, term in enumerate(item.arguments):
            if isinstance(term, Variable):
                if term.name in first:
                    same = self._comparable(prepared, domains.of[item.key, i], domains.of[item.key, first[term.name]])
                    if same:
                        keep &= codes[:, i] == codes[:, first[term.name]]
                    else:
                        later.append((i, term))
                else:
                    first[term.name] = i
                continue
            try:
                value = syntax_value(term)
            except ValueError:
                later.append((i, term))
                continue
            code = code_of(prepared, domains.of[item.key, i], value)
            keep &= codes[:, i] == code if code is not None else np.bool_(False)
        rows = np.flatnonzero(keep)
        if later:
            columns = [decode(prepared, d, codes[rows, i]) for i, d in enumerate(table.domains)]
            matching = [n for n, values in enumerate(zip(*columns, strict=True)) if matches(item.arguments, values)]
            rows = rows[matching]
        return self._table(prepared, item.key, codes[rows], words[rows])

    def _comparable(self, prepared: Prepared, a: int, b: int) -> bool:
        return a == b or prepared.encoding.domains[a].kind == prepared.encoding.domains[b].kind != "atom"

    def table(self, key: str) -> Table:
        """All items of a predicate: `chart.table("constit/3")`."""
        self._ready()
        try:
            name, arity = parse_key(key)
        except FactError as error:
            raise QueryError(str(error)) from None
        self._known(f"{name}/{arity}")
        return self.query(Item(name, tuple(Variable(f"X{i}") for i in range(arity))))

    def _all(self, prepared: Prepared, key: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint64]]:
        if key not in self._columns:
            table = prepared.compiled.plan.tables[key]
            width = self._binding.setting.scale.width
            self._columns[key] = prepared.chart.items(table.number, table.arity, width)
        return self._columns[key]

    def _table(
        self, prepared: Prepared, key: str, codes: npt.NDArray[np.int32], words: npt.NDArray[np.uint64]
    ) -> Table:
        table = prepared.compiled.plan.tables[key]
        scale = self._binding.setting.scale
        if len(codes) and table.arity:
            places = [ranks(prepared, d, codes[:, i]) for i, d in enumerate(table.domains)]
            order = np.lexsort(places[::-1])
            codes, words = codes[order], words[order]
        columns = tuple(column(prepared, d, codes[:, i]) for i, d in enumerate(table.domains))
        return Table(Relation(key, len(codes), columns, scale.from_words(words), scale.shape))

    # -- derivatives

    def gradient(self, item: Any) -> Gradient:
        """The derivatives of an item's value with respect to all facts and items, by one backward pass.

        `item` is an item, or a mapping from items to cotangents: their sum so weighted. The result has, per input
        predicate, a table like the facts that came in; see `Gradient`. The gradient is that of the computation that
        ran: exact after early stopping, pruning and at a tolerance. In `log` it is with respect to log weights, so that
        derivatives of a goal are expected counts; in `viterbi`, `tropical` and under `max=` and `min=` it follows the
        winning derivation, and of several that tie the first to reach the value. An item that was not derived has
        gradient zero.

        The first gradient of a program compiles the backward pass, and makes the run of this chart again with a tape;
        later runs of the same bound facts keep one. After 000, the derivation of Dyna's back-propagation (online
        appendix to Eisner, Goldlust and Smith 2005, "Compiling Comp Ling").

        Raises `NotDifferentiable` in `boolean`, `count` and semirings of your own, `QueryError` for an unknown
        predicate or facts that changed since the run, `ValueRangeError` where a derivative is not finite.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]})
        >>> list(chart.gradient("path(c)")["edge/2"])
        [('a', 'b', 1.0), ('b', 'c', 1.0), ('a', 'c', 0.0)]
        """
        return self._gradient(self._weighted(item))

    def jvp(self, direction: Mapping[str, Any]) -> Tangents:
        """The derivatives of all items along one direction of the facts: the program over dual numbers.

        `direction` has, per predicate, one number for each row that was given, in the order of the rows (or an array of
        the shape that a dense table came in), or rows in any form that facts may have. The run is made again, in the
        same course, so that the tangents are those of the computation that ran. Raises as `gradient` does, and
        `FactError` where a direction does not fit.

        >>> import dynagrad as dg
        >>> chart = dg.Program("goal += a(X) * b(X).").run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
        >>> chart.jvp({"a/1": {("x",): 1.0}, "b/1": [10.0]})["goal"]
        23.0
        """
        source = self._source()
        if not isinstance(direction, Mapping):
            raise FactError(
                f'a direction has numbers by predicate, as {{"rewrite/3": [...]}}, and {shown(direction)} has none'
            )
        given = {}
        for key, rows in direction.items():
            if not isinstance(key, str):
                raise QueryError(f'{shown(key)} is no predicate; write it with its arity, such as "rewrite/3"')
            self._known(key)
            given[key] = source.gathered(key, self._direction(source, key, rows))
        prepared = self._again(source, False, Along((given,), (None,)))
        return Tangents(
            source.scale,
            prepared,
            lambda item: self._place(prepared, item),
            lambda pattern, items: self._query(prepared, pattern, items),
        )

    def outside(self, item: Any, goal: Any = "goal") -> Any:
        """The outside value of an item, in the semiring's scale: what a derivation of the goal has beside the item.

        For `real` and `expectation` that is the derivative of the goal with respect to the item, for `log` its log. In
        other value types it raises `NotDifferentiable`.

        >>> import dynagrad as dg
        >>> chart = dg.Program("goal += a(X) * b(X).").run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
        >>> chart.outside("a(x)")
        3.0
        """
        self._sums("an outside value", ("real", "log", "expectation"))
        asked = self._asked([(goal, 1.0)], whole=True)
        words = asked.item(*self._place(asked.prepared, item))
        return self._zero(self._place(asked.prepared, item)[0]) if words is None else asked.source.scale.value(words)

    def marginal(self, item: Any, goal: Any = "goal") -> float:
        """The probability that the item is used in a derivation of the goal; where it can be used several times in
        one, the expected number of times.

        Derivations count in proportion to their weights; in `viterbi` and `tropical` only the winning one counts.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * b(X).")
        >>> chart = program.run({"a/1": [("x", 1.0), ("y", 3.0)], "b/1": [("x", 1.0), ("y", 1.0)]})
        >>> chart.marginal("a(y)")
        0.75
        """
        self._sums("a marginal", ("real", "log", "viterbi", "tropical"))
        if goal not in self:  # it has no derivation that the item could be in
            self._place(self._ready(), item)
            return 0.0
        gradient = self._gradient([(goal, 1.0)])
        share = float(gradient.item(item))
        if self._binding.setting.scale.name != "real":
            return share
        total = self._total(goal)
        return 0.0 if share == 0 else share * float(self[item]) / total

    def expected_counts(self, goal: Any = "goal") -> Gradient:
        """How often each fact is used in a derivation of the goal, on average; derived items likewise.

        Derivations count in proportion to their weights; in `viterbi` and `tropical` only the winning one counts. The
        tables are like those of `gradient`.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * b(X).")
        >>> chart = program.run({"a/1": [("x", 1.0), ("y", 3.0)], "b/1": [("x", 1.0), ("y", 1.0)]})
        >>> list(chart.expected_counts()["a/1"])
        [('x', 0.25), ('y', 0.75)]
        """
        self._sums("an expected count", ("real", "log", "viterbi", "tropical"))
        real = self._binding.setting.scale.name == "real"
        total = self._total(goal) if real and goal in self else 1.0 if real else None
        return self._gradient([(goal, 1.0)], total)

    def entropy(self, goal: Any = "goal") -> float:
        """The entropy, in nats, of the distribution of the goal's derivations, in proportion to their weights.

        From the derivative of log Z with respect to an inverse temperature, which is the expected log weight (Li and
        Eisner 2009, "First- and second-order expectation semirings", section 6.1): H = log Z - E[log weight]. For
        `real` and `log`; weights may not be negative.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(_).")
        >>> round(program.run({"a/1": [("x", 0.5), ("y", 0.5)]}).entropy(), 6)
        0.693147
        """
        self._sums("an entropy", ("real", "log"))
        source = self._source()
        log = source.scale.name == "log"
        directions = {}
        for key, predicate in self._binding.setting.rules.predicates.items():
            if predicate.external:
                raise QueryError(f"the entropy needs the weights of all facts, and those of {key} are a function's")
        if not log and any(n < 0 for rule in self._binding.setting.rules.rules for n in numbers(rule.value)):
            raise QueryError("a rule has a negative constant, so derivations have no distribution")
        for key, relation in self._binding.gathered(self._relations, self._shared).items():
            if relation.values is not None:
                directions[key] = _along_temperature(key, relation.values, log)[:, None]
        constants = (lambda w: w) if log else (lambda w: w * math.log(w) if w > 0 else 0.0)
        prepared = self._again(source, False, Along((directions,), (constants,)))
        key, codes = self._place(prepared, goal)
        table = prepared.compiled.plan.tables.get(key)
        words = None if table is None or codes is None else prepared.chart.get(table.number, codes, 2)
        if words is None:
            raise QueryError(f"{shown(goal)} was not derived, so there is no distribution of its derivations")
        total, tangent = (float(x) for x in words.view(np.float64))
        if not (math.isfinite(total) if log else total > 0):
            raise QueryError(f"{shown(goal)} has weight {total}, so there is no distribution of its derivations")
        return total - tangent if log else math.log(total) - tangent / total

    def _sums(self, what: str, allowed: tuple[str, ...]) -> None:
        name = self._binding.setting.scale.name
        differentiable(self._binding.setting.scale)
        if name not in allowed:
            raise NotDifferentiable(
                f"{what} is defined over derivations with weights, for a program in {', '.join(allowed)}; "
                f"this one is {name}"
            )

    def _total(self, goal: Any) -> float:
        total = float(self[goal])
        if not (total > 0 or total < 0):
            raise QueryError(f"{shown(goal)} has weight {total}, so shares of it have no meaning")
        return total

    def _weighted(self, item: Any) -> list[tuple[Any, Any]]:
        if isinstance(item, Mapping) and not item:
            raise QueryError('the mapping has no items; a gradient is of at least one, such as {"goal": 1.0}')
        return list(item.items()) if isinstance(item, Mapping) else [(item, 1.0)]

    def _gradient(self, items: Sequence[tuple[Any, Any]], counts: float | None = None) -> Gradient:
        asked = self._asked(items)
        value = self[items[0][0]]
        if len(items) > 1 or items[0][1] != 1:
            terms = [(float(c), self[item]) for item, c in items if c]
            if asked.source.scale.shape == "expectation":
                value = tuple(sum(c * pair[i] for c, pair in terms) for i in (0, 1))
            else:
                value = float(sum(c * float(v) for c, v in terms))
        return Gradient(
            asked,
            value,
            lambda item: self._place(asked.prepared, item),
            lambda prepared, key, codes, numbers: self._table(prepared, key, codes, numbers.view(np.uint64)),
            counts,
        )

    def _row_gradient(
        self, item: Any, keys: Sequence[str], cotangent: float, stop: Stop | None = None
    ) -> list[npt.NDArray[np.float64]]:
        """The derivatives of an item, times a cotangent, by the bound facts of predicates: a row of doubles for each.

        What `gradient` has in its tables, without these and without the facts of the run; raises as it does.
        """
        asked = self._asked([(item, cotangent)])
        source, prepared = asked.source, asked.prepared
        if not asked.seeds:  # never derived
            width = adjoint_width(prepared, source.scale)
            return [np.zeros((source.places(key)[0], width)) for key in keys]
        prepared.chart.adjoints_of = None
        backward(prepared, asked.seeds, stop=stop)
        prepared.chart.adjoints_of = asked
        return [row_adjoints(source, prepared, key)[: source.places(key)[0]] for key in keys]

    def _asked(self, items: Sequence[tuple[Any, Any]], *, whole: bool = False) -> Asked:
        """The run with a tape, and what is asked of it."""
        source = self._source()
        scale = source.scale
        apart = whole and scale.name == "log"  # where adjoints may be kept with respect to log weights
        prepared = self._again(source, True, outside=True) if apart else self._tape(source)
        seeds = []
        for item, cotangent in items:
            key, codes = self._place(prepared, item)
            table = prepared.compiled.plan.tables.get(key)
            words = None if table is None or codes is None else prepared.chart.get(table.number, codes, scale.width)
            if words is None or codes is None:
                continue
            if scale.name == "log" and not math.isfinite(scale.value(words)) and not whole:
                raise NotDifferentiable(
                    f"{shown(item)} has weight zero, and the log of zero has no derivative; ask for it in real"
                )
            width = adjoint_width(prepared, scale)
            start = np.zeros(width)
            start[0] = _cotangent(item, cotangent)
            seeds.append(Seed(key, tuple(codes), start.view(np.uint64)))
        return Asked(source, prepared, tuple(seeds), whole)

    def _tape(self, source: Source) -> Prepared:
        """This run in a class that can go back: the chart's own, or the run made again."""
        prepared = self._ready()
        if prepared.compiled.plan.adjoint:
            return prepared
        if self._taped is None:
            self._taped = self._again(source, True)
            self._binding.derivatives = Derivatives()  # later runs keep a tape from the start
        return self._taped

    def _again(self, source: Source, adjoint: bool, along: Along | None = None, *, outside: bool = False) -> Prepared:
        """The run made again with derivatives; what a function behind an external predicate raises is raised here."""
        self._raised.clear()
        try:
            return source.again(adjoint, along, outside=outside)
        except Error:
            if self._raised:
                raise self._raised[0] from None
            raise

    def _source(self) -> Source:
        """What this run was made of. Raises where it cannot be differentiated."""
        prepared = self._ready()
        differentiable(self._binding.setting.scale)
        if prepared.chart.report.partial:
            raise QueryError(
                "the run was stopped in the middle of a step, so it has no gradient; stop it with max_pops instead"
            )
        until = None if self._limits.until is None else self._item(self._limits.until).key
        limit = default_bytes() if self._limits.max_bytes is None else _whole(self._limits.max_bytes)
        return Source(
            self._binding,
            dict(self._relations),
            dict(self._shared),
            tuple(self._course),
            until,
            limit,
            self._connect_all,
        )

    def _direction(self, source: Source, key: str, rows: Any) -> npt.NDArray[np.float64]:
        """A direction of a predicate's facts: a row of numbers for each row of these."""
        own, scale = source.own(key), source.scale
        if own is None:
            raise QueryError(f"there are no facts of {key}, so there is no direction for them")
        width = scale.width
        numbers = _plain_numbers(rows, own, width)
        if numbers is not None:
            if not np.isfinite(numbers).all():
                row = int((~np.isfinite(numbers)).any(axis=1).argmax())
                raise FactError(f"the direction of {key}, row {row + 1}, is NaN or infinite")
            return numbers
        if isinstance(rows, list | np.ndarray) and all(isinstance(x, int | float | np.number) for x in rows):
            raise FactError(f"the direction of {key} has {len(rows)} numbers, and there are {own.count} facts")
        relation = read_facts(self._binding.setting, {key: rows}, False)[key]
        if relation.values is None:
            raise FactError(f"the direction of {key} has no numbers")
        together = concatenate(replace(own, values=None), replace(relation, values=None), scale.one)
        both = _named(row_numbers(together), own)
        order = np.argsort(both[: own.count])
        there = np.searchsorted(both[: own.count], both[own.count :], sorter=order)
        rows_of = order[np.minimum(there, own.count - 1)] if own.count else np.zeros(relation.count, np.int64)
        strange = both[rows_of] != both[own.count :] if own.count else np.ones(relation.count, np.bool_)
        given = relation.values.reshape(relation.count, -1)
        wrong = strange | ~np.isfinite(given).all(axis=1)
        if wrong.any():
            n = int(wrong.argmax())
            text = cut(item_text(key, [c.take(np.array([n])).to_list()[0] for c in relation.columns]))
            if strange[n]:
                raise FactError(f"the direction has {text}, which is no fact of this chart, or more often than it")
            raise FactError(f"the direction of {text} is infinite")
        out = np.zeros((own.count, width))
        out[rows_of] = given
        return out

    def _pops(self) -> list[tuple[str, tuple[Any, ...]]]:
        """The items that were popped, in order, as the tape has them."""
        prepared = self._tape(self._source())
        tables = {t.number: t for t in prepared.compiled.plan.tables.values()}
        found = []
        for number, cell in zip(*(a.tolist() for a in prepared.chart.pops()), strict=True):
            table = tables[number]
            codes = prepared.chart.arguments(number, cell, table.arity)
            values = [decode(prepared, d, [c])[0] for d, c in zip(table.domains, codes, strict=True)]
            found.append((table.key, tuple(values)))
        return found

    # -- changing

    def add(self, key: str, rows: Any, *, values: str = "weights") -> None:
        """Adds facts to this chart; `run` brings it up to date. A fact that is there already adds up by plus.

        `rows` has any form that `bind` takes. Raises `FactError` and leaves the chart as it was where they do not fit.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]})
        >>> chart.add("edge/2", [("a", "b", 1.0)])
        >>> chart.run()["path(b)"]
        1.0
        """
        relation = self._read(key, rows, values)
        here = self._own(key)
        self._put(key, relation if here is None else concatenate(here, relation, self._binding.setting.scale.one), True)
        self._touch(relation)

    def retract(self, key: str, rows: Any, *, values: str = "weights") -> None:
        """Removes every copy of the given facts; rows may have a value, and then only copies with that value go.

        Raises `QueryError`, and leaves the chart as it was, where one of them is no fact of this chart. Axioms of the
        program's text stay.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]})
        >>> chart.retract("edge/2", [("a", "b")])
        >>> chart.run()["path(b)"]
        inf
        """
        gone = self._read(key, rows, values)
        here = self._own(key)
        if here is None or not here.count:
            raise QueryError(f"there are no facts of {key} to retract")
        matching, found = _matching(here, gone, self._binding.setting.scale.one)
        if not found.all():
            row = [c.take(np.flatnonzero(~found)[:1]).to_list()[0] for c in gone.columns]
            raise QueryError(f"{cut(item_text(key, row))} is no fact of this chart, so it cannot be retracted")
        self._put(key, _rows(here, np.flatnonzero(~matching)))
        self._touch(gone)

    def set(self, key: str, rows: Any, *, values: str = "weights") -> None:
        """Gives facts new values: every copy goes, and the given one takes its place.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> chart = program.run({"edge/2": [("a", "b", 2.0)]})
        >>> chart.set("edge/2", {("a", "b"): 7.0})
        >>> chart.run()["path(b)"]
        7.0
        """
        relation = self._read(key, rows, values)
        here = self._own(key)
        if here is not None:
            kept = np.flatnonzero(~_matching(here, replace(relation, values=None), None)[0])
            here = concatenate(_rows(here, kept), relation, self._binding.setting.scale.one)
        self._put(key, relation if here is None else here, True)
        self._touch(relation)

    def _touch(self, relation: Relation) -> None:
        """Remembers which facts changed since the last run."""
        self._touched.setdefault(relation.key, []).append(replace(relation, values=None))

    def _read(self, key: str, rows: Any, values: str) -> Relation:
        probabilities = probabilities_flag(values) or self._probabilities
        setting = self._binding.setting
        relation = read_facts(setting, {key: rows}, probabilities)[key]
        values_given = relation.values
        if setting.scale.shape == "expectation" and values_given is not None and relation.count:
            have = values_given.shape[1]
            if have != setting.scale.width:
                raise FactError(
                    f"{key}: the pairs have vectors of length {have - 1}, but those of this chart have length "
                    f"{setting.scale.width - 1}"
                )
        return relation

    def _own(self, key: str) -> Relation | None:
        """The facts that this chart has of a predicate, without the axioms of the text."""
        shared = self._shared.get(key, self._binding.given.get(key))
        run = self._relations.get(key)
        if shared is None or run is None:
            return shared if run is None else run
        return concatenate(shared, run, self._binding.setting.scale.one)

    def _put(self, key: str, relation: Relation, check: bool = False) -> None:
        if check:  # now, so that what does not fit leaves the chart as it is
            setting = self._binding.setting
            known = {**self._binding.relations, **self._shared, **self._relations, key: relation}
            kinds(setting.rules, setting.domains, settle_texts(setting.domains, known))
        if key in self._binding.given:
            self._shared[key] = relation
            self._relations.pop(key, None)
        else:
            self._relations[key] = relation
        self._stale = True

    # -- pickling: the facts and how far the run came; the chart is computed again, the same way

    def __getstate__(self) -> dict[str, Any]:
        limits = self._limits
        if self._prepared is not None and self._status not in ("done",):
            limits = replace(limits, max_pops=self._prepared.chart.report.pops, timeout=None)
        ran = self._prepared is not None and not self._stale
        return {
            "binding": self._binding,
            "relations": self._relations,
            "shared": self._shared,
            "limits": limits,
            "probabilities": self._probabilities,
            "ran": ran,
            "status": self._status,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["binding"], state["relations"], state["limits"], state["probabilities"])  # type: ignore[misc]
        self._shared = state["shared"]
        if state["ran"]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ProgramWarning)
                self.run()
            self._status = state["status"]

    def __repr__(self) -> str:
        if self._prepared is None or self._stale:
            return "<Chart, to be run>"
        r = self._prepared.chart.report
        return f"<Chart: {r.items:,} items, {r.pops:,} pops, {self._status}>"


STATUS_NAMES = (*STATUS, "paused", "two_values", "host_error")


def probabilities_flag(values: str) -> bool:
    """Whether numbers are given as probabilities."""
    if values not in ("weights", "probabilities"):
        raise Error(f'values={values!r}: it is "weights", the semiring\'s own numbers, or "probabilities"')
    return values == "probabilities"


def _argument(name: str, place: int, value: Any) -> Any:
    """An argument of an item, given as Python has it."""
    try:
        return canonical(value)
    except FactError as error:
        raise QueryError(f"{cut(name)}, argument {place + 1}: {error}") from None


def _plain_numbers(rows: Any, own: Relation, width: int) -> npt.NDArray[np.float64] | None:
    """One number, or `width`, for each fact, in their order or in the shape of their dense array; None for else."""
    try:
        numbers = np.asarray(rows)
    except Exception:  # what it is instead is for those to say who read facts
        return None
    more = (width,) if width > 1 else ()
    shapes = [(own.count, *more)] if own.dense_shape is None else [(own.count, *more), (*own.dense_shape, *more)]
    tuples = width == 1 and isinstance(rows, list) and any(isinstance(row, tuple) for row in rows)  # rows of facts
    if tuples or numbers.dtype.kind not in "fiub" or numbers.shape not in shapes or np.ma.is_masked(rows):
        return None
    return numbers.astype(np.float64).reshape(own.count, width)


def _named(numbers: Codes, own: Relation) -> npt.NDArray[np.int64]:
    """Numbers of rows, those of `own` first, made different for copies: the first has the number of the other first."""
    found = np.zeros(len(numbers), np.int64)
    for part in (slice(0, own.count), slice(own.count, None)):
        order = np.argsort(numbers[part], kind="stable")
        ordered = numbers[part][order]
        begins = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, np.bool_)
        places = np.arange(len(ordered))
        copies = np.zeros(len(ordered), np.int64)
        copies[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
        found[part] = copies
    return numbers + found * (int(numbers.max(initial=0)) + 1)


def _cotangent(item: Any, value: Any) -> float:
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    try:
        number = float(value) if isinstance(value, int | float | np.floating | np.integer) else math.nan
    except OverflowError:  # of a whole number
        number = math.nan
    if not math.isfinite(number):
        raise QueryError(f"the cotangent of {shown(item)} is a finite number, and {shown(value)} is not")
    return number


def _along_temperature(key: str, weights: npt.NDArray[Any], log: bool) -> npt.NDArray[np.float64]:
    """The derivative of w**b with respect to b at one, or of its log."""
    if log:
        return np.where(np.isfinite(weights), weights, 0.0)
    if (weights < 0).any():
        row = int((weights < 0).argmax())
        raise QueryError(f"{key}, row {row + 1}, has a negative weight, so derivations have no distribution")
    return weights * np.log(np.where(weights > 0, weights, 1.0))


def _whole(number: float) -> int:
    """A limit as native code takes it."""
    return int(min(number, 2**62))


def _rows(relation: Relation, rows: npt.NDArray[Any]) -> Relation:
    """Some rows of a relation."""
    values = None if relation.values is None else relation.values[rows]
    columns = tuple(c.take(rows) for c in relation.columns)
    return Relation(relation.key, len(rows), columns, values, relation.value_shape)


def _matching(here: Relation, gone: Relation, one: Any) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which rows of `here` are among `gone`, and which of `gone` are there. Values count where `gone` has them."""
    numbers = row_numbers(concatenate(replace(here, values=None), replace(gone, values=None), one))
    mine, theirs = numbers[: here.count], numbers[here.count :]
    matching = np.isin(mine, theirs)
    if gone.values is None:
        return matching, np.isin(theirs, mine)
    both = concatenate(here, gone, one).values
    assert both is not None
    wanted: dict[int, list[int]] = {}
    for n, number in enumerate(theirs.tolist()):
        wanted.setdefault(number, []).append(n)
    found = np.zeros(gone.count, np.bool_)
    for row in np.flatnonzero(matching).tolist():
        same = [n for n in wanted[int(mine[row])] if np.array_equal(both[row], both[here.count + n])]
        matching[row] = bool(same)
        found[same] = True
    return matching, found
