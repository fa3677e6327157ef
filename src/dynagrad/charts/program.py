"""Programs with facts bound, and programs of rules, which are those without facts: `Bound` and `Program`.

The text is parsed and checked when a `Program` is made; `bind` gives it facts that runs share; `run` makes a chart.
Code is generated and compiled at the first run, because storage and order depend on the facts; it is cached on disk.
Each method is a call of another file: facts are kept and compiled for in `binding/`, charts run in `run.py`, batches in
`batches/`, and what users do with a chart is in `chart.py`. What limits are is said in `limits.py`.

It is long because of the docstrings of its two classes, each of which makes the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from ..calls import maker, public
from ..collector import collecting_later
from ..errors import Error, FactError, Place, ProgramError, counted, cut, shown
from ..facts import readers
from ..facts.relation import Relation
from ..forks import cached
from ..plan.analyses.recognise import effective_semiring
from ..plan.explain import explain
from ..plan.options import Options
from ..plan.right_sides import trace_semiring
from ..rules import infer
from ..rules.cache import cached_rules, entry_name
from ..runtime.compiling.toolchain import warn_without_compiler
from ..semirings import Semiring, scale
from .batches.result import Array, Batch
from .batches.run import rerun_examples, run_examples
from .binding.binding import Binding
from .binding.context import ProgramContext, from_probabilities, probabilities_flag, read_facts
from .binding.example_cache import CachedBatch
from .chart import Chart, bring_up, make_chart, warn_of_until
from .derivations import Wanted
from .functions.function import Function, function_of
from .limits import LimitOptions, Limits
from .sources import check_compiled, constants_from_probabilities, program_text


@dataclass(frozen=True)
class Numbers:
    """What the numbers of a program are: weights of the semiring, or probabilities."""

    said: str | None  # what `Program(values=)` said
    text: bool  # whether the constants of its text were probabilities, and have been converted

    @property
    def given(self) -> bool:
        """Whether those of facts are probabilities, where a call does not say."""
        return self.said == "probabilities"


class Bound:
    """A program with facts bound, which its runs share. It never changes, and threads may share it.

    A `Program` is one without facts: whatever takes a `Bound` takes it, too.

    >>> program = Program("path(V) min= path(U) + edge(U,V).  path(V) min= start(V).")
    >>> bound = program.bind({"edge/2": [("a", "b", 2.0), ("b", "c", 1.5)]})
    >>> bound.run({"start/1": [("a", 0.0)]})["path(c)"], bound.run({"start/1": [("b", 0.0)]})["path(c)"]
    (3.5, 1.5)
    """

    program: Program
    """The program without the facts."""

    def __init__(self, program: Program, binding: Binding) -> None:
        self.program, self._binding = program, binding

    @property
    def _context(self) -> ProgramContext:
        return self._binding.context

    def _bound_to(self, program: Program, relations: Mapping[str, Relation]) -> Bound:
        """A program with facts. It shares the plans of this one, where it is of the same program."""
        plans = self if program is self.program else program
        return make_bound(program, plans._binding.with_relations(relations))

    @cached
    def _converted(self) -> Bound:
        """The same facts, bound to the program with the constants of its text converted from probabilities."""
        return self._bound_to(self.program._converted.program, self._binding.given)

    def _reading(self, values: str | None) -> Bound:
        """The same facts, bound to the program with its constants as a call with this `values` reads them."""
        numbers = self.program._numbers
        if self._in_probabilities(values):
            self._context.scale.check_probabilities()
        apart = values == "probabilities" and numbers.said is None and not numbers.text
        return self._converted if apart else self

    def _in_probabilities(self, values: str | None) -> bool:
        """Whether the numbers of a call with this `values` are probabilities."""
        return probabilities_flag(values, self.program._numbers.given)

    def _read(self, facts: Mapping[str, Any] | None, values: str | None) -> dict[str, Relation]:
        """Facts that a call with this `values` gives, on the semiring's scale."""
        return read_facts(self._context, {} if facts is None else facts, self._in_probabilities(values))

    @public
    def bind(self, facts: Mapping[str, Any] | None = None, *, values: str | None = None) -> Bound:
        """The program with facts that later runs share; they are loaded once. Facts of a run come beside them.

        `facts` goes from predicates (`"arc/2"`) to rows in any form: tuples with the value last, a dict from argument
        tuples to values, a data frame, anything with `__arrow_c_stream__`, a pair of arrays (n rows by arity, n
        values), or a dense array with a dimension per argument. Where facts of a predicate are bound already, they are
        replaced; those of others stay as they are. `values` says whether the numbers of this call are `"weights"`, on
        the semiring's own scale, or `"probabilities"`; where it does not, `Program(values=)` does. Without numbers each
        fact is one. Raises `FactError` with the predicate, row and column.

        >>> program = Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> bound = program.bind({"edge/2": {("a", "b"): 2.0, ("b", "c"): 1.5}})
        >>> bound, bound.bind({"edge/2": {("a", "b"): 1.0}})
        (<Bound: edge/2: 2>, <Bound: edge/2: 1>)
        """
        return self._bind(facts, values)

    def _bind(self, facts: Mapping[str, Any] | None, values: str | None) -> Bound:
        relations = {**self._binding.given, **self._read(facts, values)}
        program = self.program._reading(values).program
        bound = self._bound_to(_shaped(program, relations.values()), relations)
        if not self._binding.given:  # a gradient that was asked for with facts of runs alone says nothing about these
            bound._binding.derivatives = None
        return bound

    @public
    def with_values(self, numbers: Mapping[str, Any], *, values: str | None = None) -> Bound:
        """The same rows with new values: for each predicate one number a row, in the order of the rows.

        Nothing is encoded again, so this is quick. `values` says what these numbers are, as in `bind`. For facts that
        came as a dense array, an array of its shape will do.
        Raises `Error` where the predicate has no facts bound, and `FactError` where the numbers do not fit.

        >>> program = Program("path(V) min= path(U) + edge(U,V).  path(V) min= start(V).")
        >>> bound = program.bind({"edge/2": [("a", "b", 2.0), ("b", "c", 1.5)]})
        >>> bound.with_values({"edge/2": [1.0, 1.0]}).run({"start/1": [("a", 0.0)]})["path(c)"]
        2.0
        """
        return self._with_values(numbers, self._in_probabilities(values))

    def _with_values(self, numbers: Mapping[str, Any], probabilities: bool, logs: bool = False) -> Bound:
        scale_ = self._context.scale
        shape, finite, _ = scale_.value_form(probabilities)
        given = dict(self._binding.given)
        if not isinstance(numbers, Mapping):
            raise FactError(f"{shown(numbers)} is not a dict of numbers; give one from predicates to a number a row")
        for key, row_values in numbers.items():
            if key not in given:
                name = key if isinstance(key, str) else shown(key)
                raise Error(
                    f"{name} has no facts bound, so it can get no new values; bind has: {', '.join(given) or 'none'}"
                )
            relation = readers.with_values(given[key], row_values, value_shape=shape, finite=finite)
            held = relation.values
            if scale_.shape == "expectation" and held is not None and held.shape[1:] != (scale_.width,):
                raise FactError(f"{key}: the new pairs have vectors of another length than the old ones")
            if probabilities:
                relation = from_probabilities(scale_, relation, Place(key, relation.arity))
            given[key] = relation
        return make_bound(self.program, self._binding.with_values(given, frozenset(numbers), logs))

    @public
    def run(
        self,
        facts: Mapping[str, Any] | None = None,
        *,
        progress: bool = False,
        values: str | None = None,
        **limits: Unpack[LimitOptions],
    ) -> Chart:
        """The chart of the bound facts and those of this run.

        Those of this run come after the bound facts of their predicate and replace none: a fact that is bound and given
        here has two rows, which join as two rows of one call do. They have any form that `bind` takes, and `values`
        says what their numbers are, as there.

        `dg.LimitOptions` says what the limits are: `max_pops`, `timeout` and `until` end the run early, `max_items` and
        `max_bytes` are never exceeded, and `tolerance` and `max_pops` mean that cycles of sums are iterated, which are
        solved as equations otherwise. `progress` draws a progress bar.

        Raises `FactError` for facts that do not fit, `ProgramError` where a predicate has neither facts nor rules,
        `NotConverged` where a cycle has no finite value, arguments grow without end, or the run needs more than a limit
        allows, and `ValueRangeError` where a value leaves its semiring.

        >>> bound = Program("path(V) min= path(U) + edge(U,V).  path(V) min= start(V).").bind()
        >>> chart = bound.run({"edge/2": [("a", "b", 2.0)], "start/1": [("a", 0.0)]}, max_pops=1)
        >>> chart.converged, chart.status, list(chart.pending)
        (False, 'max_pops', ['path/1'])
        """
        within = Limits(**limits)
        chart = self._chart(facts, within, values)
        bring_up(chart, within, progress)
        warn_of_until(chart)
        return chart

    def _chart(self, facts: Mapping[str, Any] | None, limits: Limits, values: str | None) -> Chart:
        """A chart that has not run."""
        began = time.monotonic()
        relations, bound, given = self._read(facts, values), self._reading(values), self._binding.given
        shaped = _shaped(bound.program, [*given.values(), *relations.values()])
        if shaped is not bound.program:
            bound = self._bound_to(shaped, given)
        if bound is not self and self._binding.derivatives is not None:
            bound._binding.derivatives = self._binding.derivatives
        return make_chart(bound._binding, relations, limits, self._in_probabilities(values), time.monotonic() - began)

    @public
    def run_batch(
        self,
        examples: Iterable[Mapping[str, Any]],
        *,
        query: str | None = None,
        gradient: str | Sequence[str] | None = None,
        objective: str = "sum",
        cotangents: Any = None,
        threads: int | None = None,
        values: str | None = None,
        best: int | None = None,
        sample: int | None = None,
        seed: int = 0,
        **limits: Unpack[LimitOptions],
    ) -> Batch:
        """Runs each example on the bound facts, several at a time on threads.

        Facts of an example come after the bound facts of their predicate, as in `run`.

        `query` is the item whose value is kept for each example; without it the charts are kept. An example that fails
        has the value NaN, is reported in `.errors` and does not stop the others; so is one whose warning the filters of
        `warnings` turn into an error. `threads` is the number of cores unless given. The limits are `dg.LimitOptions`
        for each example; its `timeout` does not include compiling, but includes its gradient and its derivations.
        Where a limit stops a run before the query is known to be final, a warning names the example.

        `gradient` names predicates, such as `["rewrite/3"]`. Then `.gradient` has for each of them a table like its
        bound facts, with the derivative of `objective`: the `"sum"` of the query's values over the examples, or in
        `real` and plain programs the sum of their `"log"`. For a predicate whose facts the examples bring, such as the
        outputs of a neural network, it has a list of tables, one an example; where facts are bound, too, one table: the
        bound rows, then those of each example. `cotangents` weights the examples, one number each. An example that
        fails contributes nothing; one whose query was not derived has value zero, so it contributes nothing to a sum,
        and has no log. Contributions are added in an order that depends on the examples alone, so the result is the
        same for any number of threads. `Chart.gradient` says what a single derivative is.

        `best=k` keeps the k best derivations of the query for each example, in `.best`, and `sample=n` so many draws
        from them with this `seed`, in `.samples`; an example whose query was not derived has none.

        Raises `Error` before anything runs for what no example could satisfy: an option that does not fit, an item that
        the program does not have, a predicate without facts, a semiring without derivatives, or without weights of
        derivations.

        >>> program = Program("path(V) min= path(U) + edge(U,V).  path(V) min= start(V).")
        >>> bound = program.bind({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0)]})
        >>> batch = bound.run_batch([{"start/1": [("a", 0.0)]}, {"start/1": 7}], query="path(b)", threads=2)
        >>> batch.values, sorted(batch.errors)
        (array([ 2., nan]), [1])
        >>> starts = [{"start/1": [("a", 0.0)]}, {"start/1": [("b", 0.0)]}]
        >>> batch = bound.run_batch(starts, query="path(c)", gradient=["edge/2"])
        >>> batch.values, list(batch.gradient["edge/2"])
        (array([3., 1.]), [('a', 'b', 1.0), ('b', 'c', 2.0)])
        >>> [d.facts() for found in bound.run_batch(starts, query="path(c)", best=1).best for d in found]
        [['start(a)', 'edge(a,b)', 'edge(b,c)'], ['start(b)', 'edge(b,c)']]
        """
        self._reading(values)  # raises at once for values that the semiring does not have
        return run_examples(
            self._binding,
            partial(self._chart, values=values),
            examples,
            query=query,
            gradient=gradient,
            objective=objective,
            cotangents=cotangents,
            threads=threads,
            limits=Limits(**limits),
            wanted=Wanted.read(query, best, sample, seed),
        )

    @public
    def function(
        self,
        goal: str | Sequence[str],
        inputs: Sequence[str],
        facts: Mapping[str, Any] | None = None,
        *,
        values: str | None = None,
        **limits: Unpack[LimitOptions],
    ) -> Function:
        """The program as a function of the values of some facts, with derivatives to any order; see `Function`.

        `goal` is an item, and the function's value a float, or a list of items, and its value an array. `inputs` are
        predicates, and the function takes an array for each. If the predicate has facts, bound or in `facts`, the array
        has a number for each row, in their order. If it has none, the array is dense, with an axis for each argument of
        the predicate; its shape may differ from call to call. In `expectation` arrays have one more axis, for the
        numbers of a pair. All other facts stay as they are, unless a call gives others, and a call encodes nothing
        again. `values` says what the numbers of `facts`, of later calls' facts and of the arrays are, as in `bind`: for
        arrays of probabilities, derivatives are by these. The limits are `dg.LimitOptions` for each call, which
        warns where one stops it before the goal is known to be final; a backward pass may take as long again.

        Raises `QueryError` for an item or an input that the program does not have, and `NotDifferentiable` in
        `boolean`, `count` and semirings of your own.

        >>> bound = Program("goal += a(X) * b(X).").bind({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
        >>> f = bound.function("goal", inputs=["a/1", "b/1"])
        >>> f([4.0], [5.0]), f.hvp(([4.0], [5.0]), ([1.0], [0.0]))
        (20.0, (array([0.]), array([1.])))
        >>> free = Program("goal += score(I) * until(N) for I < N.").function("goal", inputs=["score/1"])
        >>> free([1.0, 2.0], facts={"until/1": [(2,)]}), free([1.0, 2.0, 3.0, 4.0], facts={"until/1": [(3,)]})
        (3.0, 6.0)
        """
        bound = self._reading(values) if facts is None else self._bind(facts, values)
        return function_of(bound, goal, inputs, Limits(**limits), self._in_probabilities(values))

    @public
    def explain(self, facts: Mapping[str, Any] | None = None) -> str:
        """The plan for these facts as text: tables, indexes, joins, the order of the stages and the reason for it.

        >>> program = Program("path(V) min= path(U) + edge(U,V).  path(V) min= start(V).")
        >>> bound = program.bind({"edge/2": [("a", "b", 2.0)]})
        >>> print(bound.explain({"start/1": [("a", 0.0)]}).splitlines()[0])
        semiring: tropical
        """
        return explain(self._binding.prepare(self._read(facts, None)).compiled.plan)

    def __repr__(self) -> str:
        rows = ", ".join(f"{k}: {r.count:,}" for k, r in self._binding.given.items())
        return f"<Bound: {rows or 'no facts'}>"


make_bound = maker(Bound, "bound programs come from program.bind(facts)")


class Program(Bound):
    """A dynamic program, given by its equations (Eisner, Goldlust and Smith 2004, "Dyna", section 2).

    It is the `Bound` without facts, so it has its methods: `bind`, `run`, `run_batch`, `function` and `explain`.

    `source` is the text of the program, or a `Path` to a `.dyna` file. `semiring` names a built-in one, or is a
    `dg.Semiring`; without it the program's own declaration counts. `values` says what the constants of the text are,
    and what the numbers of facts are where the call that gives them does not say: `"weights"`, on the semiring's own
    scale, or `"probabilities"`, which are converted to it. Without it they are weights; but a `bind`, `run`,
    `run_batch` or `function` that gives probabilities makes the constants probabilities, too. Constants of plain
    arithmetic are plain numbers in any case.

    `functions` maps names to the functions of values that the program declares (`sigmoid2`), and keys to the functions
    behind external predicates (`dist/2`). A function of values is traced, or, where it branches or loops on values,
    given as `dg.compile(f)`; either way it runs natively in the rules, with its derivatives. A function behind an
    external predicate gets the arguments of an item and returns its value (True for one, False for zero), or None where
    the item is not derived. Where all arguments are integers it may be native: a ctypes function pointer to an
    `int32_t f(const int32_t* arguments, double* value)` that returns 1, or 0 where the item is not derived, or -1 to
    end the run; several threads may call it at once.

    Raises `SyntaxError` or `ProgramError`, with line and column, and `Error` for a wrong option or a function that
    cannot be compiled. Warns with `ProgramWarning`, of a missing C++ compiler too. Nothing is compiled before the first
    run.

    >>> program = Program("goal += a(X) * b(X).")
    >>> program.run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})["goal"]
    6.0
    """

    @public
    def __init__(
        self,
        source: str | Path,
        semiring: str | Semiring | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        *,
        values: str | None = None,
    ) -> None:
        warn_without_compiler()
        text, filename = program_text(source)
        probabilities = probabilities_flag(values, False)
        if functions is not None and not isinstance(functions, Mapping):
            raise Error(f"functions must be a dict from names to functions, not {shown(functions)}")
        given = dict(functions or {})
        user = semiring if isinstance(semiring, Semiring) else None
        chosen = "user" if user is not None else semiring
        if chosen is not None and not isinstance(chosen, str):
            raise Error(f"semiring must be a name or a dg.Semiring, not {shown(chosen)}")
        for name, f in given.items():
            if not isinstance(name, str):
                raise Error(f"functions has {shown(name)}, which is not a name; it is a dict from names to functions")
            if not callable(f):
                raise Error(f"functions has {shown(f)} for {cut(name)}, which is not a function")
        named = {name: f for name, f in given.items() if "/" not in name}
        entry = entry_name(text, filename, chosen, named)
        with collecting_later():
            rules = cached_rules(text, filename, chosen, named, entry)
            domains = infer(rules)
        check_compiled(rules, text, filename, named)
        externals = {key: p for key, p in rules.predicates.items() if p.external}
        for key in externals:  # by name alone, where that is clear
            if key not in given and key.rsplit("/", 1)[0] in given:
                given[key] = given[key.rsplit("/", 1)[0]]
        for key in given:
            if "/" in key and key not in externals:
                raise Error(
                    f"functions has {cut(key)}, but the program declares no external predicate of that name and arity"
                )
        for key, predicate in externals.items():
            if key not in given:
                raise ProgramError(
                    f"no function is given for the external predicate {key}; pass functions={{{key!r}: ...}}",
                    text,
                    predicate.span,
                    filename,
                )
        traced = None
        if user is not None:
            traced = trace_semiring(user.zero, user.one, user.plus, user.times, user.less, user.star)
        name = effective_semiring(rules)
        number_scale = scale(
            name,
            width=traced.width if traced is not None else 1,
            zero=user.zero if user is not None else 0.0,
            one=user.one if user is not None else 1.0,
        )
        context = ProgramContext(
            rules,
            domains,
            number_scale,
            Options(functions=named, user=traced),
            {k: given[k] for k in externals},
            entry,
        )
        if probabilities:
            context = constants_from_probabilities(context)
        self._set(context, Numbers(values, probabilities))

    def _set(self, context: ProgramContext, numbers: Numbers) -> None:
        """Makes this the program of a context."""
        self.program, self._numbers, self._binding = self, numbers, Binding(context, {})
        self._of_length: dict[int, Program] = {}  # this program over vectors of other lengths, which share their plans

    @cached
    def _converted(self) -> Bound:
        """This program with the constants of its text converted from probabilities, for one where they are not."""
        return _program(constants_from_probabilities(self._context), replace(self._numbers, text=True))

    @property
    def source(self) -> str:
        """The text of the program."""
        return self._context.rules.source.text

    @property
    def semiring(self) -> str:
        """The semiring that the program runs in; "plain" for arithmetic."""
        return self._context.scale.name

    @property
    def values(self) -> str:
        """How its numbers are given: "weights", or "probabilities"."""
        return "probabilities" if self._numbers.given else "weights"

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the checks."""
        return self._context.rules.warnings

    @property
    def predicates(self) -> tuple[str, ...]:
        """All predicates, as name/arity."""
        return tuple(self._context.rules.predicates)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The predicates that facts may be given for."""
        return tuple(k for k, p in self._context.rules.predicates.items() if p.input)

    def __getstate__(self) -> dict[str, Any]:
        said, text = self._numbers.said, self._numbers.text
        return {"setting": self._context, "values": said, "converted": text}  # `setting` is the name of old pickles

    def __setstate__(self, state: dict[str, Any]) -> None:
        said = "probabilities" if state.get("probabilities") else state.get("values")  # the former in old pickles
        self._set(state["setting"], Numbers(said, state["converted"]))

    def __dir__(self) -> list[str]:
        """What completion offers: not what is for programs that have facts."""
        return [name for name in super().__dir__() if name not in ("program", "with_values")]

    def __repr__(self) -> str:
        rules = self._context.rules
        size = f"{counted(len(rules.rules), 'rule')}, {counted(len(rules.predicates), 'predicate')}"
        return f"<Program: {size}, {self.semiring}>"


def context_of(program: Program) -> ProgramContext:
    """The rules, domains, scale and options of a program, for other rooms of the package."""
    return program._context


def binding_of(bound: Bound) -> Binding:
    """The facts behind a bound program, for other rooms of the package."""
    return bound._binding


def in_probabilities(program: Program) -> bool:
    """Whether the numbers of a program are given as probabilities."""
    return program._numbers.given


def said_values(program: Program) -> str | None:
    """What `Program(values=)` said of a program's numbers."""
    return program._numbers.said


def with_facts(program: Program, relations: Mapping[str, Relation]) -> Bound:
    """A program with facts whose values are on the semiring's scale, however its numbers are given."""
    return program._bound_to(program, relations)


def with_own_plans(bound: Bound) -> Bound:
    """The same facts with plans of their own, and none that were made for other facts bound to the program.

    What is computed is then the same to the bit in every process, whatever else the program was bound to there.
    """
    return make_bound(bound.program, Binding(bound._context, bound._binding.given))


def with_weights(bound: Bound, numbers: Mapping[str, Any]) -> Bound:
    """`with_values` on the semiring's scale, however the numbers of the program are given."""
    return bound._with_values(numbers, False, logs=True)


def chart_of(bound: Bound, facts: Mapping[str, Any], limits: Limits) -> Chart:
    """A chart whose run has not begun: see `run.Run.set_up` and `chart.bring_up`."""
    return bound._chart(facts, limits, None)


def run_cached(bound: Bound, examples: Sequence[Mapping[str, Any]], cache: CachedBatch, **asked: Any) -> Batch:
    """`Bound.run_batch`, with facts of examples that stay loaded from one batch to the next."""
    return run_examples(bound._binding, partial(bound._chart, values=None), examples, **asked, cache=cache)


def rerun_cached(
    bound: Bound,
    examples: Sequence[Mapping[str, Any]],
    cache: CachedBatch,
    query: str,
    keys: Sequence[str],
    objective: str,
    cotangents: Array,
) -> tuple[Array, list[Array]] | None:
    """A batch that `run_cached` has loaded, run once more on one thread: the values, and the derivatives by the rows of
    each predicate, as arrays.

    None where `run_cached` has to run it: the first time, or where there is an error or a warning to report.
    """
    return rerun_examples(bound._binding, examples, query, keys, objective == "log", cotangents, cache)


def _program(context: ProgramContext, numbers: Numbers) -> Program:
    """The program of a context that was made from another one."""
    made = Program.__new__(Program)
    made._set(context, numbers)
    return made


def _shaped(program: Program, relations: Iterable[Relation]) -> Program:
    """The program with the vector length of `expectation` that the facts have."""
    context = program._context
    if context.scale.name != "expectation":
        return program
    widths = {r.values.shape[1] for r in relations if r.values is not None and r.count}
    if widths <= {context.scale.width}:
        return program
    if len(widths) > 1:
        raise FactError(f"the pairs of expectation have vectors of different lengths: {sorted(w - 1 for w in widths)}")
    length = widths.pop() - 1
    if length not in program._of_length:
        options, wide = replace(context.options, vector=length), scale("expectation", vector=length)
        program._of_length[length] = _program(replace(context, scale=wide, options=options), program._numbers)
    return program._of_length[length]
