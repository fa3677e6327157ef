"""A program of rules as a function of arrays, and the derivatives of that function, which are functions of arrays too.

The life of a function: `Bound.function` says which facts are its arguments and which items its value; each evaluation
puts the arrays in the place of the facts' numbers and runs the program once, over jets where there are derivatives. No
derivative is computed here: that is `plan/backward.py` and `native`. What lives here is which numbers go in, and which
of those that come out are meant.

A run over jets of order K takes the components x_S of its facts, one for each set S of K directions, and gives those of
the goals, y_S; going back from cotangents c_S it gives g_S, the jet of the gradient. All of it belongs to one number,
the top component of <c, y>: its derivative with respect to c_S is y_(K-S), and with respect to x_S it is g_(K-S). So a
choice of components that go in, and of components that come out, is a `Function`, and such choices are closed under
derivatives: its tangent is the choice over K+1 directions that repeats each with the new one; its adjoint is the
gradient of that number along what the cotangents say, which again is such a choice.

In `expectation` each of these components is a pair (p, r): p, and then the numbers of r. To Python they are real
numbers like any other, and a pullback is the transpose of the derivative as a matrix of them. `Pass.back` says how that
comes from passes over pairs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import facts as fact_forms
from .binding import Along, Binding, Prepared
from .chart import Chart
from .errors import Error, FactError, NotConverged, NotDifferentiable, QueryError, ValueRangeError
from .facts import Relation
from .functions.numbers import Number
from .gradient import Seed, Source, class_of, differentiable, ended, row_adjoints
from .gradient import backward as go_back
from .graph import arrays
from .graph.operation import Operation, apply
from .graph.types import array as array_type
from .limits import Limits
from .looking import ground, place_of, read_item, words_at, zero_of
from .terms import cut, shown

Array = npt.NDArray[np.float64]
MOST_ORDERS = 10
"""The numbers of a run over jets have two to this many components at most."""
MOST_ORDERS_PLAIN = 6
"""The same where right sides are arithmetic, whose derivatives are written out: beyond, compiling takes minutes."""

UNUSED = -1


@dataclass(frozen=True)
class Slot:
    """A component that goes in or out: of facts (`x`), goals (`y`), cotangents of goals (`c`) or the gradient (`g`).

    `mask` is the set of directions; an unused component is ignored where it goes in, and zero where it comes out.
    """

    kind: Literal["x", "y", "c", "g"]
    mask: int

    def along(self, bits: int) -> Slot:
        return self if self.mask == UNUSED else Slot(self.kind, self.mask | bits)


# -- one run -----------------------------------------------------------------------------------------------------------


class Core:
    """What all derivatives of one function share: the facts, the goals, and what is compiled. Never changed."""

    def __init__(
        self, binding: Binding, goals: tuple[str, ...], listed: bool, inputs: tuple[str, ...], limits: Limits
    ) -> None:
        self.binding, self.goals, self.listed, self.inputs, self.limits = binding, goals, listed, inputs, limits
        self.given = [binding.given[key] for key in inputs]
        scale = binding.setting.scale
        self.width = scale.width  # how many numbers a value has
        self.pair = (scale.width,) if scale.shape == "expectation" else ()  # the axes of a value
        self.shapes = [(*(r.dense_shape if r.dense_shape is not None else (r.count,)), *self.pair) for r in self.given]
        until = limits.until  # checks the item, too
        self.until = None if until is None else read_item(binding.setting, None, until).key

    def __getstate__(self) -> tuple[Any, ...]:
        return self.binding, self.goals, self.listed, self.inputs, self.limits

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def slot_shapes(self, slot: Slot) -> list[tuple[int, ...]]:
        """The shapes of the arrays of a slot."""
        return list(self.shapes) if slot.kind in "xg" else [((len(self.goals),) if self.listed else ()) + self.pair]

    def _class(self, order: int, adjoint: bool) -> tuple[int, bool]:
        """The class to run in; what it needs that is the same for all runs is kept in the binding that they share."""
        kept, until = self.binding.kept, self.until
        found = next((c for c in ((order, adjoint), (order, True)) if (*c, until) in kept), None)
        if found is not None:
            return found
        along = Along(({},) * order, (None,) * order)
        self.binding.prepare({}, until, derivatives=class_of(order, adjoint), along=along)
        kept.add((order, adjoint, until))
        return order, adjoint

    def run(self, order: int, adjoint: bool, x: Mapping[int, Sequence[Array]]) -> Pass:
        """The program over jets of the facts, whose components x has."""
        plain = self.binding.setting.scale.name == "plain"
        most = MOST_ORDERS_PLAIN if plain else MOST_ORDERS
        if order > most:
            what = "a program of plain arithmetic" if plain else "a program of rules"
            raise Error(f"derivatives of {what} are implemented to order {most}, and one of order {order} is asked for")
        derivatives = class_of(*self._class(order, adjoint))
        given = dict(self.binding.given)
        for relation, array in zip(self.given, x[0], strict=True):
            given[relation.key] = self.with_numbers(relation, array)
        binding = self.binding.with_values(given, frozenset(self.inputs))
        parts = {mask: self._gathered(arrays) for mask, arrays in x.items() if mask}
        directions = tuple(parts.pop(1 << d, {}) for d in range(order))
        along = Along(directions, (None,) * order, parts)
        chart = Chart(binding, {}, self.limits, False)
        try:
            prepared = chart.over(derivatives, along)
        except NotConverged:
            if not order:
                raise
            status = chart.status  # the chart is none that could be looked at
            raise NotConverged(
                f"the run with its derivatives stopped at its limit on {status}; raise max_{status}, or stop earlier "
                "with max_pops, timeout or until"
            ) from None
        except ValueRangeError:
            if order and chart.status == "bad_value":
                again = Chart(binding, {}, self.limits, False)
                again.over(class_of(*self._class(0, False)), Along())  # says so where it is the value
                over = chart._require()
                ended(over, over.chart.report)
            raise
        return Pass(self, chart, prepared, order)

    def with_numbers(self, relation: Relation, array: Array) -> Relation:
        """A relation with the numbers of an argument."""
        shape = self.binding.setting.scale.shape
        return replace(relation, values=array.reshape(relation.count, *self.pair), value_shape=shape)

    def _gathered(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """Derivatives of the facts that were given as those of all facts; the axioms of the text have none."""
        found = {}
        for key, array in zip(self.inputs, arrays, strict=True):
            axioms = self.binding.axioms.get(key)
            flat = array.reshape(-1)
            found[key] = flat if axioms is None else np.concatenate([flat, np.zeros(axioms.count * self.width)])
        return found


class Pass:
    """One run over jets, which can be read and gone back over. May be shared by threads."""

    def __init__(self, core: Core, chart: Chart, prepared: Prepared, order: int) -> None:
        self.core, self.chart, self.prepared, self.order = core, chart, prepared, order
        self._lock = threading.Lock()
        setting = core.binding.setting
        self.values = np.zeros((len(core.goals), 1 << order, core.width))
        self.places: list[tuple[str, list[int]] | None] = []
        for row, goal in zip(self.values, core.goals, strict=True):
            key, codes = place_of(setting, prepared, goal)
            words = words_at(prepared, key, codes, row.size)
            if words is None or codes is None:
                row[0] = 0.0 if core.pair else zero_of(setting, key)
                self.places.append(None)
            else:
                row[:] = words.view(np.float64).reshape(row.shape)
                self.places.append((key, codes))

    @cached_property
    def source(self) -> Source:
        """What the run was made of. Raises where it cannot be differentiated."""
        return self.chart._source()

    def component(self, mask: int) -> Array:
        """A component of the goals, a row of numbers for each."""
        found = self.values[:, mask].copy()
        if mask and self.source:
            for n in range(len(found)):
                self._weighs(n)
            wrong = ~np.isfinite(found).all(axis=1) & np.isfinite(self.values[:, 0]).all(axis=1)
            if wrong.any():
                raise ValueRangeError(
                    f"a derivative of {shown(self.core.goals[int(wrong.argmax())])} is NaN or infinite; where numbers "
                    "are only very large, use log"
                )
        return found

    def back(self, cotangents: Array) -> list[Array]:
        """The jet of the gradient with respect to each input: per row and set of directions, a row of numbers.

        Of pairs, a pass back multiplies: its start (s, t) becomes (s g, s h + t g), with (g, h) the derivative of the
        goal, itself a pair. The transpose of that derivative takes a cotangent (c, d) to (c g + d.h, d g), so it is a
        pass started with (d, c) whose result is turned round. Each number of a vector d needs a pass of its own.
        """
        if not self.core.pair:
            return self._back(cotangents)
        found: list[Array] = []
        for n in range(1, self.core.width):
            starts = np.zeros(cotangents.shape)
            starts[..., 0] = cotangents[..., n]
            if n == 1:
                starts[..., 1] = cotangents[..., 0]
            elif not starts.any():
                continue
            rows = self._back(starts)
            found = found or [np.zeros(r.shape) for r in rows]
            for total, row in zip(found, rows, strict=True):
                total[..., n] = row[..., 0]
                total[..., 0] += row[..., n]
        return found

    def _back(self, starts: Array) -> list[Array]:
        """One pass back, over what the semiring has for numbers."""
        seeds = []
        for n, (place, start) in enumerate(zip(self.places, starts, strict=True)):
            if place is not None and start.any():
                self._weighs(n)
                seeds.append(Seed(*place, np.ascontiguousarray(start).reshape(-1).view(np.uint64)))
        shape = self.values.shape[1:]
        with self._lock:
            source = self.source
            go_back(self.prepared, seeds)
            return [row_adjoints(source, self.prepared, key).reshape(-1, *shape) for key in self.core.inputs]

    def _weighs(self, n: int) -> None:
        """Raises where a goal in logs weighs nothing."""
        if (
            self.places[n] is not None
            and self.core.binding.setting.scale.name == "log"
            and not np.isfinite(self.values[n, 0, 0])
        ):
            raise NotDifferentiable(
                f"{shown(self.core.goals[n])} has weight zero, and the log of zero has no derivative; ask for it in "
                "real"
            )


# -- the function ------------------------------------------------------------------------------------------------------


class Function:
    """A program as a function of arrays: the numbers of some facts go in, and the values of some items come out.

    Made by `Bound.function` and `Program.function`. An argument has one number for each row of its predicate, in the
    order of the rows, or the shape of the dense array that the facts came as; a result is a float for one item and an
    array for a list of items. Numbers are in the semiring's scale, and derivatives are those of the computation that
    runs, as in `Chart.gradient`: in `log` with respect to log weights, in `viterbi` and `tropical` along the winner.
    In `expectation` arguments and results have one axis more, the last, for the numbers of a pair: p, and then those
    of r. They are real numbers like any other here, and derivatives are with respect to each of them.

    `tangent` and `adjoint` are functions again, so that derivatives are there to any order (up to ten directions in
    one run). A function is never changed, may be called from several threads, and pickles. The first call for each
    order compiles the program over numbers of that order.

    Each method raises what a run raises, and `Error` for arrays of a wrong number, shape or type, `FactError` for
    numbers that are not possible, and `NotDifferentiable` where a goal in `log` has weight zero.

    >>> import dynagrad as dg
    >>> program = dg.Program("goal += a(X) * b(X).")
    >>> facts = {"a/1": [("x", 2.0), ("y", 1.0)], "b/1": [("x", 3.0), ("y", 5.0)]}
    >>> f = program.function("goal", inputs=["a/1"], facts=facts)
    >>> f([2.0, 1.0]), f.value_and_grad([2.0, 1.0])
    (11.0, (11.0, (array([3., 5.]),)))
    """

    def __init__(self, core: Core, order: int, ins: Sequence[Slot], outs: Sequence[Slot]) -> None:
        self._core, self._order, self._ins, self._outs = core, order, tuple(ins), tuple(outs)

    @property
    def goal(self) -> str | list[str]:
        """The item, or the items, that the program is a function for."""
        return list(self._core.goals) if self._core.listed else self._core.goals[0]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The predicates whose numbers are the arguments."""
        return self._core.inputs

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the arguments."""
        return tuple(s for slot in self._ins for s in self._core.slot_shapes(slot))

    @property
    def result_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the results; a function has several where it is an adjoint."""
        return tuple(s for slot in self._outs for s in self._core.slot_shapes(slot))

    # -- values

    def __call__(self, *arrays: Any) -> Any:
        """The value; of numbers that carry derivatives, a number that does, so that all verbs go through.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> dg.grad(lambda x: f(x) * x[0])(np.array([2.0]))
        array([12.])
        """
        if any(isinstance(a, Number) for a in arrays):
            found = apply(self.operation, *arrays)
            return found if self._single else tuple(_parts(found, self.result_shapes))
        return self.value(*arrays)

    @cached_property
    def operation(self) -> Operation:
        """The function as an operation on numbers: its tangents and adjoints are functions of this kind again.

        Several results are one after the other in one array.
        """
        count = len(self.shapes)

        def along(place: int) -> Callable[..., Any]:
            def rule(d: Any, y: Any, *xs: Any) -> Any:
                zeros = [np.zeros(shape) if shape else 0.0 for shape in self.shapes]
                return self._flat(self.tangent()(*xs, *(d if n == place else z for n, z in enumerate(zeros))))

            return rule

        def adjoint(delta: Any, y: Any, *xs: Any) -> Sequence[Any]:
            parts = [delta] if self._single else _parts(delta, self.result_shapes)
            return tuple(self.adjoint()(*xs, *parts))

        name = f"rules for {cut(str(self.goal), 40)}"
        value = lambda *xs: self._flat(self.value(*xs))  # noqa: E731
        return Operation(name, (array_type,) * count, array_type, value, tuple(map(along, range(count))), "", adjoint)

    def _flat(self, results: Any) -> Any:
        if self._single:
            return results
        pieces = [apply(arrays.reshape((-1,)), r) for r in results]
        return apply(arrays.concatenate(0, len(pieces)), *pieces)

    def value(self, *arrays: Any) -> Any:
        """The value: a float or an array; of an adjoint, a tuple. An item never derived has the semiring's zero.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> facts = {"edge/2": [("a", "b", 2.0), ("b", "c", 1.0)]}
        >>> program.function(["path(b)", "path(c)"], inputs=["edge/2"], facts=facts)([1.0, 4.0])
        array([1., 5.])
        """
        return self._packed(self._evaluate(self._read(arrays), self._outs))

    def value_and_grad(self, *arrays: Any) -> tuple[float, tuple[Array, ...]]:
        """The value and its gradient, an array for each argument; for a function whose value is one number.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.value_and_grad([3.0])
        (9.0, (array([6.]),))
        """
        if not self._number:
            raise Error("the function has more than one number as its value; use vjp, which takes a cotangent")
        value, pullback = self.vjp(*arrays)
        return value, pullback(1.0)

    # -- first derivatives

    def vjp(self, *arrays: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
        """The value, and the function from a cotangent of the value to one for each argument.

        The program runs once; the pullback may be called any number of times. Of an adjoint the value is a tuple, and
        so is the cotangent.

        >>> import dynagrad as dg
        >>> program = dg.Program("twice(X) += a(X) + a(X).")
        >>> f = program.function(["twice(x)", "twice(y)"], inputs=["a/1"], facts={"a/1": [("x", 1.0), ("y", 1.0)]})
        >>> value, pullback = f.vjp([1.0, 5.0])
        >>> value, pullback([1.0, 10.0])
        (array([ 2., 10.]), (array([ 2., 20.]),))
        """
        read = self._read(arrays)
        adjoint = self.adjoint()
        if any(slot.kind != "y" for slot in self._outs):  # linear in a direction that is not known yet
            value = self._packed(self._evaluate(read, self._outs))
            return value, lambda cotangent: tuple(
                adjoint._evaluate([*read, *self._cotangents(cotangent)], adjoint._outs)
            )
        run = self._core.run(self._order, True, self._components(self._ins, read, "x"))
        places = adjoint._ins[len(self._ins) :]

        def pullback(cotangent: Any) -> tuple[Any, ...]:
            given = self._components(places, self._cotangents(cotangent), "c")
            return tuple(adjoint._results(run, given, adjoint._outs))

        return self._packed(self._results(run, {}, self._outs)), pullback

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The value, and its derivative along tangents, one for each argument.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.jvp([[3.0]], [[10.0]])
        (9.0, 60.0)
        """
        tangent = self.tangent()
        read = [*self._read(primals), *self._read(tangents, "the tangent of ")]
        found = tangent._evaluate(read, [*self._outs, *tangent._outs])
        half = len(found) // 2
        return self._packed(found[:half]), self._packed(found[half:])

    # -- of any order

    def tangent(self) -> Function:
        """The derivative along a direction, as a function of the point and the direction: (x, u) -> Df(x)u.

        Its arguments are those of this function, and then a direction for each.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.tangent()([3.0], [10.0]), f.tangent().tangent()([3.0], [10.0], [1.0], [0.0])
        (60.0, 20.0)
        """
        new = 1 << self._order
        ins = [*self._ins, *(slot.along(new) for slot in self._ins)]
        return Function(self._core, self._order + 1, ins, [slot.along(new) for slot in self._outs])

    def adjoint(self) -> Function:
        """The pullback, as a function of the point and the cotangent: (x, c) -> the gradient of <c, f(x)>.

        Its arguments are those of this function, and then a cotangent for each of its results; its value is a tuple, a
        gradient for each of the arguments of this function.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.adjoint()([3.0], 1.0), f.adjoint().tangent()([3.0], 1.0, [10.0], 0.0)
        ((array([6.]),), (array([20.]),))
        """
        new, rest = 1 << self._order, (1 << self._order) - 1
        ins, outs = list(self._ins), []
        for slot in self._outs:
            ins.append(
                Slot("c" if slot.kind == "y" else "x", UNUSED if slot.mask == UNUSED else rest ^ slot.mask | new)
            )
        for slot in self._ins:
            outs.append(
                Slot("y" if slot.kind == "c" else "g", UNUSED if slot.mask == UNUSED else rest ^ slot.mask | new)
            )
        if any(slot.kind == "x" and slot.mask != UNUSED and slot.mask & new for slot in ins):
            return Function(self._core, self._order + 1, ins, outs)
        # No fact changes along the new direction, so neither does a goal, and the gradient does as the cotangents do.
        ins = [_without(slot, new) if slot.kind == "c" else slot for slot in ins]
        return Function(self._core, self._order, ins, [_without(slot, new) for slot in outs])

    def hvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, cotangent: Any = None) -> tuple[Any, ...]:
        """The gradient's derivative along tangents: the Hessian times a vector, by one pass back over dual numbers.

        Where the value is not one number, `cotangent` says of which sum of the values.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * a(X) * a(X).")
        >>> f = program.function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0), ("y", 1.0)]})
        >>> f.hvp([[1.0, 2.0]], [[1.0, 1.0]])
        (array([ 6., 12.]),)
        """
        return self.gradient(primals, (tangents,), cotangent=cotangent)

    def derivative(self, primals: Sequence[Any], directions: Sequence[Sequence[Any]] = ()) -> Any:
        """The mixed derivative along several directions, D^k f(x)[u1, ..., uk]; along none it is the value.

        A direction has an array for each argument. One run over jets of order k.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * a(X) * a(X).")
        >>> f = program.function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.derivative([[2.0]]), f.derivative([[2.0]], [[[1.0]]] * 2), f.derivative([[2.0]], [[[1.0]]] * 3)
        (8.0, 12.0, 6.0)
        """
        along, read = self._along(primals, directions)
        return self._packed(along._evaluate(read, along._outs))

    def gradient(
        self, primals: Sequence[Any], directions: Sequence[Sequence[Any]] = (), cotangent: Any = None
    ) -> tuple[Any, ...]:
        """The gradient of `derivative(primals, directions)` with respect to the primals, an array for each.

        Without directions it is the gradient, along one the Hessian times a vector. Where the value is not one number,
        `cotangent` says of which sum of the values. One run over jets of order k, and one pass back.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * a(X) * a(X).")
        >>> f = program.function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.gradient([[2.0]]), f.gradient([[2.0]], [[[1.0]], [[1.0]]])
        ((array([12.]),), (array([6.]),))
        """
        along, read = self._along(primals, directions)
        if cotangent is None:
            if not self._number:
                raise Error("the function has more than one number as its value; say by cotangent= which sum is meant")
            cotangent = 1.0
        adjoint = along.adjoint()
        return tuple(adjoint._evaluate([*read, *self._cotangents(cotangent)], adjoint._outs[: len(self._ins)]))

    def _along(self, primals: Sequence[Any], directions: Sequence[Sequence[Any]]) -> tuple[Function, list[Array]]:
        """The mixed derivative, as a function of the primals and then each direction."""
        ins, read = list(self._ins), self._read(primals)
        for n, direction in enumerate(_listed(directions, "the directions")):
            ins.extend(slot.along(1 << (self._order + n)) for slot in self._ins)
            read.extend(self._read(direction, f"direction {n + 1} of "))
        order = self._order + len(directions)
        new = (1 << order) - (1 << self._order)
        return Function(self._core, order, ins, [slot.along(new) for slot in self._outs]), read

    # -- arrays in and out

    @property
    def _single(self) -> bool:
        """Whether the value is that of the goals, and no tuple."""
        return len(self._outs) == 1 and self._outs[0].kind == "y"

    @property
    def _number(self) -> bool:
        """Whether the value is one number."""
        return self._single and not self._core.listed and not self._core.pair

    def _read(self, arrays: Any, what: str = "") -> list[Array]:
        """Arrays given for the arguments, checked and copied; `what` says that they are directions."""
        arrays = _listed(arrays, what.removesuffix(" of ") or "the arguments")
        slots = [(slot, n) for slot in self._ins for n in range(len(self._core.slot_shapes(slot)))]
        names = [self._core.inputs[n] if slot.kind == "x" else "the cotangent" for slot, n in slots]
        if len(arrays) != len(slots):
            raise Error(f"the function takes {len(slots)} arrays ({', '.join(names)}), and {len(arrays)} were given")
        read = []
        for (slot, n), name, given in zip(slots, names, arrays, strict=True):
            array = _array(what + name, given, self._core.slot_shapes(slot)[n])
            if slot.kind == "x":
                finite = self._core.binding.setting.scale.finite if slot.mask == 0 and not what else "finite"
                self._check(self._core.given[n], array, finite, "" if finite != "finite" else what)
            elif not np.isfinite(array).all():
                raise Error(f"{what}{name} is NaN or infinite")
            read.append(array)
        return read

    def _check(self, relation: Relation, array: Array, finite: str, what: str) -> None:
        if np.isfinite(array).all():
            return
        try:
            numbers = self._core.with_numbers(relation, array)
            fact_forms.with_values(relation, numbers.values, value_shape=numbers.value_shape, finite=finite)
        except FactError as error:
            raise FactError(f"{what}{error}") from None

    def _cotangents(self, cotangent: Any) -> list[Array]:
        """Cotangents of the results, checked."""
        shapes = self.result_shapes
        given = [cotangent] if self._single else _listed(cotangent, "the cotangents")
        if len(given) != len(shapes):
            raise Error(f"the function has {len(shapes)} results, and {len(given)} cotangents were given")
        read = [_array("the cotangent", c, shape) for c, shape in zip(given, shapes, strict=True)]
        if not all(np.isfinite(c).all() for c in read):
            raise Error("the cotangent is NaN or infinite")
        return read

    def _packed(self, results: Sequence[Any]) -> Any:
        return results[0] if self._single else tuple(results)

    # -- running

    def _evaluate(self, read: Sequence[Array], outs: Sequence[Slot]) -> list[Any]:
        """Some components that come out, of one run on arrays that were read for all that go in."""
        adjoint = any(slot.kind == "g" and slot.mask != UNUSED for slot in outs)
        run = self._core.run(self._order, adjoint, self._components(self._ins, read, "x"))
        return self._results(run, self._components(self._ins, read, "c"), outs)

    def _components(self, slots: Sequence[Slot], read: Sequence[Array], kind: str) -> dict[int, Sequence[Array]]:
        """The arrays of the slots of a kind, by set of directions."""
        found: dict[int, Sequence[Array]] = {}
        place = 0
        for slot in slots:
            count = len(self._core.inputs) if slot.kind == "x" else 1
            if slot.kind == kind and slot.mask != UNUSED:
                found[slot.mask] = read[place : place + count]
            place += count
        return found

    def _results(self, run: Pass, cotangents: Mapping[int, Sequence[Array]], outs: Sequence[Slot]) -> list[Any]:
        core, found = self._core, list[Any]()
        gradient: list[Array] | None = None
        for slot in outs:
            if slot.mask == UNUSED:
                zeros = [np.zeros(shape) for shape in core.slot_shapes(slot)]
                found.extend(float(z) if slot.kind == "y" and not z.shape else z for z in zeros)
            elif slot.kind == "y":
                (shape,) = core.slot_shapes(slot)
                values = run.component(slot.mask).reshape(shape)
                found.append(values if shape else float(values))
            else:
                if gradient is None:
                    jets = np.zeros(run.values.shape)
                    for mask, (array,) in cotangents.items():
                        jets[:, mask] = array.reshape(-1, core.width)
                    gradient = run.back(jets)
                for rows, shape in zip(gradient, core.shapes, strict=True):
                    found.append(np.ascontiguousarray(rows[:, slot.mask]).reshape(shape))  # rows are this call's
        return found

    def __repr__(self) -> str:
        goals = ", ".join(self._core.goals[:3]) + (", ..." if len(self._core.goals) > 3 else "")
        arguments = ", ".join(f"{key} {shape}" for key, shape in zip(self._core.inputs, self._core.shapes, strict=True))
        derived = (self._ins, self._outs) != (POINT, VALUE)
        return f"<Function: {'a derivative of ' if derived else ''}{cut(goals)} by {arguments}>"


POINT, VALUE = (Slot("x", 0),), (Slot("y", 0),)


def function_of(binding: Binding, goal: str | Sequence[str], inputs: Sequence[str], limits: Limits) -> Function:
    """The function of some facts' numbers that the rules are. Raises where there is none."""
    limits.check()
    differentiable(binding.setting.scale)
    listed = not isinstance(goal, str)
    goals = tuple(_listed(goal, "the goals")) if listed else (goal,)
    for item in goals:
        if not isinstance(item, str):
            raise QueryError(f'{shown(item)} is no item; write it as in rules, such as "constit(np,0,2)"')
        ground(read_item(binding.setting, None, item))
    if isinstance(inputs, str) or not isinstance(inputs, Sequence):
        raise Error(f'inputs is a list of predicates, such as ["rewrite/3"], and {shown(inputs)} is none')
    if not inputs:
        raise Error('inputs is empty; name the predicates whose numbers are the arguments, such as ["rewrite/3"]')
    for n, key in enumerate(inputs):
        if key not in binding.given:
            raise Error(f"{shown(key)} has no facts bound; bound are {', '.join(binding.given) or 'none'}")
        if key in inputs[:n]:
            raise Error(f"{key} is among the inputs twice")
    return Function(Core(binding.settled(), goals, listed, tuple(inputs), limits), 0, POINT, VALUE)


def _parts(flat: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Arrays that stand one after the other in one."""
    found, start = [], 0
    for shape in shapes:
        size = math.prod(shape)
        piece = apply(arrays.getitem((slice(start, start + size),)), flat)
        found.append(apply(arrays.reshape(tuple(shape)), piece))
        start += size
    return found


def _without(slot: Slot, bit: int) -> Slot:
    """A component of what is linear in a direction, as one of what is not; nothing where it was without it."""
    there = slot.mask != UNUSED and slot.kind in "cg" and slot.mask & bit
    return Slot(slot.kind, slot.mask ^ bit if there else UNUSED)


def _listed(given: Any, what: str) -> list[Any]:
    one = not hasattr(given, "__iter__") or getattr(given, "shape", None) == ()
    if one or isinstance(given, str | bytes | Mapping):
        raise Error(f"{what} are a list or a tuple, and {shown(given)} is neither")
    return list(given)


def _array(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """An array of floats of our own, from an array or list of numbers."""
    try:
        array = given if type(given) is np.ndarray else np.asarray(given)
    except Exception as error:  # other libraries' arrays may raise anything
        raise Error(f"{name}: what was given is no array of numbers: {cut(str(error))}") from error
    if np.ma.is_masked(given):
        raise Error(f"{name}: the array has masked entries, and a number is needed for each")
    if array.dtype.kind not in "fiub":
        raise Error(f"{name}: an array of real numbers is needed, and what was given has type {array.dtype}")
    if array.shape != shape:
        raise Error(f"{name}: an array of shape {shape} is needed, and what was given has shape {array.shape}")
    return np.array(array, np.float64)
