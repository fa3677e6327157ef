"""Gradients and tangents of a run, as Python sees them: adjoints and dual numbers of native code, read as tables.

A gradient needs a run with a tape: the chart's own, or its `Replay.rerun`. Items are seeded with their cotangents,
native code goes back over the tape, and `Gradient` reads the adjoints as tables like the facts that came in. Tangents
are read from a run over dual numbers. The backward pass itself is `running/sweep.hpp`, over what
`codegen/rules/backward/` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...calls import public
from ...errors import QueryError, ValueRangeError, cut, shown
from ...facts.relation import IntColumn, Relation, fact_text, row_numbers
from ...facts.table import Table, make_table
from ...facts.terms import item_text
from ...plan.traits import is_derived, is_facts
from ...rules.suggestions import nearest
from ...rules.syntax import Item, Term, Variable
from ...runtime.library import Stop
from ...semirings import Scale
from ..binding.context import ProgramContext
from ..binding.decoding import code, place_text
from ..binding.loading import Prepared, jet_words
from ..ends import End, Phase, check_end, first_going_backward, use_log
from ..lookup import find, place_of, table_of, warn_if_unknown
from ..replay import Replay

Array = npt.NDArray[Any]
Words = npt.NDArray[np.uint64]


# -- backward ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seed:
    """An item and its cotangent: its predicate, the codes of its arguments, and the words of the cotangent."""

    key: str
    codes: Sequence[int]
    cotangent: Words


def adjoint_width(prepared: Prepared, scale: Scale) -> int:
    """The number of doubles in a derivative."""
    return (scale.width if scale.shape == "expectation" else 1) << prepared.compiled.plan.order


def backward(
    prepared: Prepared, scale: Scale, seeds: Sequence[Seed], *, whole: bool = False, stop: Stop | None = None
) -> None:
    """Runs the backward pass over a taped run; `whole` seeds outside values, not derivatives by log weights."""
    chart, tables = prepared.chart, prepared.compiled.plan.tables
    chart.engine.adjoints_open(chart.pointer)
    for seed in seeds:
        chart.seed(tables[seed.key].number, seed.codes, seed.cotangent, whole=whole)
    status = chart.backward(stop)
    check_end(End(status, prepared, scale, Phase.BACKWARD))


def row_adjoints(replay: Replay, prepared: Prepared, key: str, stop: Stop | None = None) -> Array:
    """The derivatives with respect to the given facts of a predicate, a row of doubles for each."""
    width = adjoint_width(prepared, replay.scale)
    shared, axioms, run = replay.facts.places(key)
    table = prepared.compiled.plan.tables.get(key)
    if table is None or not shared + run:  # the outputs do not depend on it
        return np.zeros((shared + run, width))
    relation = prepared.relations[key]
    given = jet_words(replay.scale, relation, prepared.directions.order, prepared.directions.tangents(key))
    words = prepared.chart.adjoints_of_rows(table.number, given, relation.count, width)
    numbers = words.view(np.float64)
    if axioms:
        numbers = np.concatenate([numbers[:shared], numbers[shared + axioms :]])
    with np.errstate(all="ignore"):
        fine = np.isfinite(numbers.sum()) or np.isfinite(numbers).all()  # the sum is quicker, and mostly finite
    if not fine:
        raise _non_finite(replay, prepared, key, int((~np.isfinite(numbers)).any(axis=1).argmax()), stop)
    return numbers


def _non_finite(replay: Replay, prepared: Prepared, key: str, row: int, stop: Stop | None) -> ValueRangeError:
    """The error for a fact whose derivative is NaN or infinite though the backward pass completed.

    It names the item that the pass met first whose derivative is not finite, if there is one; its adjoint was finite.
    Otherwise the fact's own derivative overflowed, and a run over dual numbers in its direction may say at which item.
    """
    before = _first_backward(prepared, replay.scale)
    if before is not None:
        return first_going_backward(prepared, before)
    own = replay.facts.own(key)
    assert own is not None
    found, text = replay.first_non_finite(key, row, stop), ""
    if found is not None:
        table = prepared.compiled.plan.tables.get(found[0])
        codes = [] if table is None else [code(prepared, d, v) for d, v in zip(table.domains, found[1], strict=True)]
        known = [c for c in codes if c is not None]
        if table is not None and len(known) == len(codes):
            share = prepared.chart.adjoint(table.number, known, adjoint_width(prepared, replay.scale))
            if share is not None and share.view(np.float64).any():
                text = f", and {cut(item_text(*found))} is the first item whose derivative by it is"
    fact = cut(fact_text(own, row))
    return ValueRangeError(f"the gradient with respect to {fact} is NaN or infinite{text}{use_log(prepared)}")


def _first_backward(prepared: Prepared, scale: Scale) -> str | None:
    """The item popped last among those whose derivative is NaN or infinite; None where there is none."""
    chart, plan = prepared.chart, prepared.compiled.plan
    wrong: dict[int, list[list[int]]] = {}
    for table in plan.tables.values():
        if not is_derived(table):
            continue
        codes, _ = chart.items(table.number, table.arity, scale.width << plan.order)
        numbers = chart.adjoints_of_items(table.number, adjoint_width(prepared, scale)).view(np.float64)
        unsound = ~np.isfinite(numbers).all(axis=1)
        if unsound.any():
            wrong[table.number] = codes[unsound].tolist()
    if not wrong:
        return None
    tables = {table.number: table for table in plan.tables.values()}
    for number, cell in zip(*(a[::-1].tolist() for a in chart.pops()), strict=True):
        if number in wrong:
            arguments = chart.arguments(number, cell, tables[number].arity)
            if arguments in wrong[number]:
                return place_text(prepared, tables[number].key, arguments)
    number = next(iter(wrong))  # never popped
    return place_text(prepared, tables[number].key, wrong[number][0])


def _finite(prepared: Prepared, key: str, codes: Any, numbers: Array, what: str = "gradient with respect to") -> Array:
    """These derivatives, a row for each item of a predicate; raises for the first that is NaN or infinite.

    The backward pass stops at an adjoint that is not finite; but an adjoint may hold numbers too large for a float.
    """
    wrong = ~np.isfinite(numbers).all(axis=1)
    if wrong.any():
        text = place_text(prepared, key, codes[int(wrong.argmax())])
        raise ValueRangeError(f"the {what} {cut(text)} is NaN or infinite")
    return numbers


def fact_table(replay: Replay, key: str, numbers: Array) -> Table:
    """Derivatives by a predicate's facts, as a table like the facts that came in."""
    own = replay.facts.own(key)
    assert own is not None
    return like(own, replay.scale, numbers)


def like(relation: Relation, scale: Scale, numbers: Array) -> Table:
    """Derivatives, a row of doubles for each row of a relation, as a table of its rows."""
    return make_table(replace(relation, values=_values(scale, numbers), value_shape=_shape(scale)))


def _values(scale: Scale, numbers: Array) -> Array:
    return numbers if scale.shape == "expectation" else np.ascontiguousarray(numbers[:, 0])


def _shape(scale: Scale) -> Any:
    return "expectation" if scale.shape == "expectation" else "float"


@dataclass(frozen=True)
class GradientRequest:
    """What a gradient is asked of: items with cotangents, in a run with a tape."""

    replay: Replay
    prepared: Prepared
    seeds: tuple[Seed, ...]
    whole: bool = False  # adjoints alone: outside values

    def fill(self, stop: Stop | None = None) -> None:
        """Runs the backward pass, unless the native chart's adjoints are those of this request already."""
        chart = self.prepared.chart
        if chart.adjoints_of is not self:
            chart.adjoints_of = None
            backward(self.prepared, self.replay.scale, self.seeds, whole=self.whole, stop=stop)
            chart.adjoints_of = self

    def item(self, key: str, codes: Sequence[int] | None, stop: Stop | None = None) -> Words | None:
        """The derivative with respect to one item, as words; None where it is not in the chart."""
        table = self.prepared.compiled.plan.tables.get(key)
        if table is None or codes is None:
            return None
        self.fill(stop)
        width = adjoint_width(self.prepared, self.replay.scale)
        return self.prepared.chart.adjoint(table.number, codes, width, whole=self.whole)


class Gradient(Mapping[str, Table]):
    """The derivatives of an item, or of a weighted sum of items, by predicate.

    A predicate with facts has a table of these, in the order and shape in which they came, with derivatives in place of
    values. A predicate that is only derived has a table of its items, with the derivative with respect to a constant
    contribution to the item; where plus selects, with respect to the item's value wherever it was used, which counts
    its uses in the best derivation. Numbers are in the semiring's scale; in `expectation` they are pairs. Derivatives
    by what the item does not depend on are zero. `value` is the value of the item, or of the sum. A gradient pickles
    and is copied as its tables, without the chart that it came from.

    >>> import dynagrad as dg
    >>> program = dg.Program("goal += a(X) * b(X).")
    >>> gradient = program.run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]}).gradient("goal")
    >>> gradient["a/1"]["x"], gradient["b/1"]["x"], gradient.value
    (3.0, 2.0, 6.0)
    """

    def __init__(
        self,
        request: GradientRequest,
        value: Any,
        counts: float | None = None,
        stop: Stop | None = None,
    ) -> None:
        self._request = request
        self._counts = counts  # the value of the goal, where these are expected counts in `real`
        self._pops = request.prepared.chart.report.pops
        self._tables: dict[str, Table] = {}
        self.value = value
        request.fill(stop)
        replay = request.replay
        for key in self:  # derivatives by facts are read at once, those by derived items on demand
            own = replay.facts.own(key)
            if own is not None:
                numbers = row_adjoints(replay, request.prepared, key, stop)
                if counts is not None:
                    values = 1.0 if own.values is None else own.values[:, None]
                    numbers = numbers * values / counts
                self._tables[key] = fact_table(replay, key, numbers)

    def __iter__(self) -> Iterator[str]:
        predicates = self._request.replay.facts.context.rules.predicates
        return (key for key, predicate in predicates.items() if not predicate.external)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key in list(self)

    @public
    def get(self, key: str, default: Any = None) -> Any:
        """The table of a predicate, or `default` where the program has none."""
        if key not in self:
            return default
        return self[key]

    @public
    def __getitem__(self, key: str) -> Table:
        if not isinstance(key, str) or key not in self._tables:
            if key not in self:
                near = nearest(key, list(self)) if isinstance(key, str) else ""
                raise QueryError(f"there is no gradient for {shown(key)}.{near}")
            self._tables[key] = self._derived(key)
        return self._tables[key]

    def _check_current(self) -> None:
        if self._request.prepared.chart.report.pops != self._pops:
            raise QueryError("the chart ran on since this gradient was made; ask for the gradient again")
        self._request.fill()

    def _derived(self, key: str) -> Table:
        """The table of derivatives by the items of a predicate."""
        prepared, scale = self._request.prepared, self._request.replay.scale
        table = prepared.compiled.plan.tables.get(key)
        if table is None:  # the outputs do not need it
            arity = self._request.replay.facts.context.rules.predicates[key].arity
            none = tuple(IntColumn(np.zeros(0, np.int64)) for _ in range(arity))
            return make_table(Relation(key, 0, none, np.zeros((0, scale.width))[:, 0], "float"))
        self._check_current()
        codes, held = prepared.chart.items(table.number, table.arity, scale.width)
        width = adjoint_width(prepared, scale)
        if is_facts(table):  # axioms of the text
            rows = [prepared.chart.adjoint(table.number, row, width) for row in codes.tolist()]
            words = np.array(rows, np.uint64).reshape(len(codes), width)
        else:
            words = prepared.chart.adjoints_of_items(table.number, width)
        numbers = _finite(prepared, key, codes, words.view(np.float64))
        if self._counts is not None:  # of `real`
            numbers = numbers * held.view(np.float64) / self._counts
        return table_of(self._request.replay.facts.context, prepared, key, codes, numbers.view(np.uint64))

    @public
    def item(self, item: Any) -> Any:
        """The derivative with respect to one item; zero where it was not derived.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> program.run({"edge/2": [("a", "b", 2.0)]}).gradient("path(b)").item("edge(a,b)")
        1.0
        """
        self._check_current()
        scale = self._request.replay.scale
        key, codes = place_of(self._request.replay.facts.context, self._request.prepared, item)
        words = self._request.item(key, codes)
        if words is None or codes is None:
            warn_if_unknown(self._request.replay.facts.context, self._request.prepared, item)
            return (0.0, scale.zero[1]) if scale.shape == "expectation" else 0.0
        _finite(self._request.prepared, key, [codes], words.view(np.float64)[None])
        if self._counts is not None:
            prepared = self._request.prepared
            held = prepared.chart.get(prepared.compiled.plan.tables[key].number, codes, scale.width)
            assert held is not None
            return float(words.view(np.float64)[0] * held.view(np.float64)[0] / self._counts)
        return scale.value(words) if scale.shape == "expectation" else float(words.view(np.float64)[0])

    @public
    def to_pandas(self) -> dict[str, Any]:
        """A `pandas.DataFrame` for each predicate, with the column names of the frame that came in.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * b(X).")
        >>> gradient = program.run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]}).gradient("goal")
        >>> gradient.to_pandas()["a/1"].to_dict("list")
        {'arg1': ['x'], 'value': [3.0]}
        """
        return {key: self[key].to_pandas() for key in self}

    def _ipython_key_completions_(self) -> list[str]:
        """What IPython offers after `gradient["`."""
        return list(self)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{key}: {len(table):,}" for key, table in self._tables.items())
        return f"<Gradient of {self.value}: {sizes or 'no facts'}>"


def by_items(gradient: Gradient, key: str) -> Table:
    """The table of derivatives by a predicate's items: that by its facts, unless facts have copies or axioms."""
    replay = gradient._request.replay
    own = replay.facts.own(key)
    if own is None or replay.facts.places(key)[1] or len(np.unique(row_numbers(own))) < own.count:
        return gradient._derived(key)
    return gradient[key]


class Tangents:
    """The derivatives of all items along one direction of the facts. Tangents pickle and are copied as tables.

    >>> import dynagrad as dg
    >>> chart = dg.Program("goal += a(X) * b(X).").run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
    >>> tangents = chart.jvp({"a/1": [1.0]})
    >>> tangents["goal"], list(tangents.query("b(X)"))
    (3.0, [('x', 0.0)])
    """

    def __init__(self, context: ProgramContext, prepared: Prepared) -> None:
        self._context, self._prepared = context, prepared

    def _tables(self) -> dict[str, Table]:
        """The tangents of all items, by predicate."""
        plan = self._prepared.compiled.plan
        return {
            key: self.query(all_items(key, plan.fixed.get(key, {})))
            for key, predicate in self._context.rules.predicates.items()
            if key in plan.tables and not predicate.external
        }

    def __eq__(self, other: object) -> bool:
        """Whether the tangents of all items are the same."""
        if not isinstance(other, Tangents):
            return NotImplemented
        return self is other or self._tables() == other._tables()

    __hash__ = None  # type: ignore[assignment]  # as for any container that compares by what it holds

    __iter__ = None  # a lookup by name, not a sequence

    @public
    def __getitem__(self, item: Any) -> Any:
        """The tangent of an item; zero where it was not derived."""
        scale = self._context.scale
        key, codes = place_of(self._context, self._prepared, item)
        table = self._prepared.compiled.plan.tables.get(key)
        words = None
        if table is not None and codes is not None:
            words = self._prepared.chart.get(table.number, codes, 2 * scale.width)
        if words is None or codes is None:
            warn_if_unknown(self._context, self._prepared, item)
            return (0.0, scale.zero[1]) if scale.shape == "expectation" else 0.0
        tangent = words[scale.width :]
        _finite(self._prepared, key, [codes], tangent.view(np.float64)[None], "derivative of")
        return scale.value(tangent)

    @public
    def query(self, pattern: Any) -> Table:
        """The tangents of all items that match a pattern, as `chart.query` finds them."""
        return find(self._context, self._prepared, pattern, self._read)

    def _read(self, key: str) -> tuple[npt.NDArray[np.int32], Words]:
        table, width = self._prepared.compiled.plan.tables[key], self._context.scale.width
        codes, words = self._prepared.chart.items(table.number, table.arity, 2 * width)
        tangents = np.ascontiguousarray(words[:, width:])
        _finite(self._prepared, key, codes, tangents.view(np.float64), "derivative of")
        return codes, tangents


def tables_of(tangents: Tangents) -> dict[str, Table]:
    """The tangents of all items, by predicate, for `detached.py`."""
    return tangents._tables()


def behind(derivatives: Gradient | Tangents) -> tuple[ProgramContext, Prepared]:
    """The program and the chart that derivatives came from, for `detached.py`."""
    if isinstance(derivatives, Tangents):
        return derivatives._context, derivatives._prepared
    return derivatives._request.replay.facts.context, derivatives._request.prepared


def all_items(key: str, fixed: Mapping[int, Term]) -> Item:
    """The pattern of all items of a predicate, where the outputs restrict some arguments."""
    name, _, arity = key.rpartition("/")
    return Item(name, tuple(fixed.get(i, Variable(f"X{i}")) for i in range(int(arity))))
