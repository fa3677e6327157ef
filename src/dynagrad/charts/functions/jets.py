"""Derivatives of any order: a program run over jets, with a choice of components that go in and that come out.

A jet of order K has a component for each set S of K directions (nilpotent dual numbers, one for each direction). A run
over jets takes the components x_S of the facts to those of the goals, y_S; its backward pass takes cotangents c_S to
g_S, the jet of the gradient. All of them are derivatives of one number, the top component of <c, y>: by c_S it has
derivative y_(K-S), by x_S it has g_(K-S). So choices of components are closed under differentiation: the tangent of a
choice repeats each component with a new direction, over K+1 directions; its adjoint is the gradient of that number
along the cotangents, which is such a choice again.

In `expectation` each component is a pair (p, r): p, and then the numbers of r. To Python they are plain real numbers,
and a pullback is the transpose of the derivative as a matrix of them; see `Pass.back`.

Native code computes the derivatives (`running/sweep.hpp`, `jets.hpp`). What users call is in
`function.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...errors import Error, ValueRangeError, shown, warn
from ...facts.relation import Relation
from ...forks import cached, renewed
from ...rules.semirings import SEMIRINGS
from ..binding.binding import Binding, Purpose, SetupLimits
from ..binding.database import Database
from ..binding.loading import Directions, Prepared
from ..chart import Chart, make_chart, run_of
from ..derivatives.gradient import Seed, backward, row_adjoints
from ..ends import STATUSES, Phase, check_end
from ..finality import early
from ..limits import Limits
from ..lookup import place_of, read_item, warn_if_unknown, words_at, zero_of
from ..replay import Replay, class_of
from .probabilities import by_probabilities, check_lifted, lifted, on_scale, slopes_of

Array = npt.NDArray[np.float64]
MOST_ORDERS = 10
"""The most directions of a run over jets, whose numbers have 2**order components."""
MOST_ORDERS_PLAIN = 6
"""The same for plain arithmetic, whose derivatives are written out term by term: beyond, compiling takes minutes."""

UNUSED = -1


# -- components --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """A component of a jet: of facts (`x`), goals (`y`), cotangents of goals (`c`) or the gradient (`g`).

    `mask` is its set of directions, or UNUSED: such an argument is ignored, and such a result is zero.
    """

    kind: Literal["x", "y", "c", "g"]
    mask: int

    def with_directions(self, bits: int) -> Slot:
        """This component along more directions."""
        return self if self.mask == UNUSED else Slot(self.kind, self.mask | bits)

    def without(self, bit: int) -> Slot:
        """The coefficient of a direction, in which cotangents and gradients are linear; UNUSED where there is none."""
        there = self.mask != UNUSED and self.kind in "cg" and self.mask & bit
        return Slot(self.kind, self.mask ^ bit if there else UNUSED)


@dataclass(frozen=True)
class Choice:
    """The components of a run over jets of some order that are arguments, and those that are results."""

    order: int
    ins: tuple[Slot, ...]
    outs: tuple[Slot, ...]

    def directional(self, count: int = 1) -> Choice:
        """The mixed derivative along `count` new directions, whose tangents follow the arguments, one after another."""
        new = [1 << (self.order + n) for n in range(count)]
        ins = [slot.with_directions(bit) for bit in (0, *new) for slot in self.ins]
        return Choice(self.order + count, tuple(ins), tuple(slot.with_directions(sum(new)) for slot in self.outs))

    def adjoint(self) -> Choice:
        """The pullback: cotangents of the results follow the arguments, and the results are gradients by these."""
        new, rest = 1 << self.order, (1 << self.order) - 1

        def turned(slots: Sequence[Slot], kinds: Mapping[str, Literal["x", "y", "c", "g"]]) -> list[Slot]:
            masks = [UNUSED if slot.mask == UNUSED else rest ^ slot.mask | new for slot in slots]
            return [Slot(kinds[slot.kind], mask) for slot, mask in zip(slots, masks, strict=True)]

        ins = [*self.ins, *turned(self.outs, {"y": "c", "g": "x"})]
        outs = turned(self.ins, {"c": "y", "x": "g"})
        if any(slot.kind == "x" and slot.mask != UNUSED and slot.mask & new for slot in ins):
            return Choice(self.order + 1, tuple(ins), tuple(outs))
        # Facts are constant along the new direction, so goals are, and the gradient is linear in the cotangents alone.
        ins = [slot.without(new) if slot.kind == "c" else slot for slot in ins]
        return Choice(self.order, tuple(ins), tuple(slot.without(new) for slot in outs))


VALUE = Choice(0, (Slot("x", 0),), (Slot("y", 0),))
"""The function's value, without derivatives."""


# -- one run -----------------------------------------------------------------------------------------------------------


class Core:
    """What all derivatives of one function share: its facts, goals, inputs and limits. Immutable."""

    def __init__(
        self,
        binding: Binding,
        goals: tuple[str, ...],
        listed: bool,
        inputs: tuple[str, ...],
        limits: Limits,
        probabilities: bool = False,
    ) -> None:
        self.binding, self.goals, self.listed, self.inputs, self.limits = binding, goals, listed, inputs, limits
        self.probabilities = probabilities  # whether those are the arguments
        self._told: set[str] = set()  # goals that a warning told of
        self.given = [binding.given[key] for key in inputs]
        scale = binding.context.scale
        self.sign = SEMIRINGS[scale.name].log_sign if probabilities else 0.0
        self.finite = "finite" if probabilities else scale.finite
        self.width = scale.width  # the number of doubles in a value
        self.pair = (scale.width,) if scale.shape == "expectation" else ()  # the axes of a value
        self.shapes = [(*(r.dense_shape if r.dense_shape is not None else (r.count,)), *self.pair) for r in self.given]
        until = limits.until  # checks the item, too
        self.until = None if until is None else read_item(binding.context, None, until).key

    def __getstate__(self) -> tuple[Any, ...]:
        return self.binding, self.goals, self.listed, self.inputs, self.limits, self.probabilities

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # what is kept beside the state is made anew

    def tell_of(self, prepared: Prepared, goal: str) -> None:
        """Warns, once, of a goal with a symbol that no fact and no item has."""
        if goal not in self._told:
            self._told.add(goal)
            warn_if_unknown(self.binding.context, prepared, goal)

    def slot_shapes(self, slot: Slot) -> list[tuple[int, ...]]:
        """The shapes of the arrays of a slot."""
        return list(self.shapes) if slot.kind in "xg" else [((len(self.goals),) if self.listed else ()) + self.pair]

    def _class(self, order: int, adjoint: bool) -> tuple[int, bool]:
        """The compiled class to run in: one that is there already, if it can do as much; else it is compiled now."""
        kept, until = self.binding.kept, self.until
        found = next((c for c in ((order, adjoint), (order, True)) if (*c, until) in kept), None)
        if found is not None:
            return found
        directions = Directions(({},) * order, (None,) * order)
        stop = self.limits.stop()
        deadline = None if stop is None else stop.deadline
        purpose = Purpose(until, derivatives=class_of(order, adjoint))
        self.binding.prepare({}, purpose, SetupLimits(deadline=deadline), directions=directions)
        kept.add((order, adjoint, until))
        return order, adjoint

    def run(self, order: int, adjoint: bool, x: Mapping[int, Sequence[Array]]) -> Pass:
        """Runs the program over jets; `x` has the components of the inputs' facts, by set of directions."""
        plain = self.binding.context.scale.name == "plain"
        most = MOST_ORDERS_PLAIN if plain else MOST_ORDERS
        if order > most:
            what = "a program of plain arithmetic" if plain else "a program of rules"
            raise Error(f"derivatives of {what} are implemented to order {most}, and one of order {order} is asked for")
        derivatives = class_of(*self._class(order, adjoint))
        slopes: list[Array] | None = None
        at_zero: Array | None = None
        if self.sign:
            if order or adjoint:
                positive = lifted(self.inputs, x[0], order + adjoint)
                if positive is not None:
                    at_zero = self.run(0, False, {0: x[0]}).values[:, 0]
                    x = {**x, 0: positive}
                slopes = slopes_of(x, order, self.sign)
            x = on_scale(x, order, self.sign)
        given = dict(self.binding.given)
        for relation, array in zip(self.given, x[0], strict=True):
            given[relation.key] = self.with_numbers(relation, array)
        binding = self.binding.with_values(given, frozenset(self.inputs))
        parts = {mask: self._gathered(arrays) for mask, arrays in x.items() if mask}
        tangents = tuple(parts.pop(1 << d, {}) for d in range(order))
        directions = Directions(tangents, (None,) * order, parts)
        chart = make_chart(binding, {}, self.limits, False)
        how, end = run_of(chart).run_in_class(derivatives, directions)
        if not order:
            check_end(end, chart)
        else:  # without the chart, which has jets for values
            if Phase.JETS in STATUSES[end.status].errors:
                self._check_values(binding)
            check_end(replace(end, phase=Phase.JETS))
        made = Pass(self, chart, run_of(chart).settled(how), order, slopes)
        for said in filter(None, (early(run_of(chart), made.prepared, goal, order) for goal in self.goals)):
            warn(said)
            break
        if at_zero is not None:
            check_lifted(self.goals, at_zero[:, 0], made.values[:, 0, 0])
            made.values[:, 0] = at_zero
        return made

    def _check_values(self, binding: Binding) -> None:
        """Raises, with a message about values, where the run fails without derivatives, too."""
        chart = make_chart(binding, {}, self.limits, False)
        check_end(run_of(chart).run_in_class(class_of(*self._class(0, False)), Directions())[1], chart)

    def evaluate(self, choice: Choice, arrays: Sequence[Array], outs: Sequence[Slot]) -> list[Any]:
        """Some results of a choice, by one run; `arrays` has all its arguments."""
        adjoint = any(slot.kind == "g" and slot.mask != UNUSED for slot in outs)
        run = self.run(choice.order, adjoint, self.components(choice.ins, arrays, "x"))
        return run.results(outs, self.components(choice.ins, arrays, "c"))

    def components(self, slots: Sequence[Slot], arrays: Sequence[Array], kind: str) -> dict[int, Sequence[Array]]:
        """The arrays of the slots of a kind, by set of directions."""
        found: dict[int, Sequence[Array]] = {}
        place = 0
        for slot in slots:
            count = len(self.inputs) if slot.kind == "x" else 1
            if slot.kind == kind and slot.mask != UNUSED:
                found[slot.mask] = arrays[place : place + count]
            place += count
        return found

    def with_numbers(self, relation: Relation, array: Array) -> Relation:
        """A relation with the values of an argument."""
        r, shape = relation, self.binding.context.scale.shape
        values = array.reshape(r.count, *self.pair)
        return Relation(r.key, r.count, r.columns, values, shape, r.dense_shape, r.names)

    def _gathered(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """Tangents of the given facts as those of all gathered facts, with zeros for axioms."""
        database, pairs = Database(self.binding), zip(self.inputs, arrays, strict=True)
        return {key: database.for_all(key, array.reshape(-1, self.width)) for key, array in pairs}


class Pass:
    """A finished run over jets: its goals' components, and backward passes over it. Threads may share it."""

    def __init__(
        self, core: Core, chart: Chart, prepared: Prepared, order: int, slopes: Sequence[Array] | None = None
    ) -> None:
        """`slopes` has the jets of the derivatives of the facts by the arguments, where these are probabilities."""
        self.core, self.chart, self.prepared, self.order, self.slopes = core, chart, prepared, order, slopes
        self._lock = renewed(threading.RLock())
        context = core.binding.context
        self.values = np.zeros((len(core.goals), 1 << order, core.width))
        self.places: list[tuple[str, list[int]] | None] = []
        for row, goal in zip(self.values, core.goals, strict=True):
            key, codes = place_of(context, prepared, goal)
            words = words_at(prepared, key, codes, row.size)
            if words is None or codes is None:
                core.tell_of(prepared, goal)
                row[0] = 0.0 if core.pair else zero_of(context, key)
                self.places.append(None)
            else:
                row[:] = words.view(np.float64).reshape(row.shape)
                self.places.append((key, codes))

    @cached
    def replay(self) -> Replay:
        """The run as a value. Raises where it cannot be differentiated."""
        return run_of(self.chart).replay()

    def results(self, outs: Sequence[Slot], cotangents: Mapping[int, Sequence[Array]]) -> list[Any]:
        """Some results, as arrays of their shapes; those of gradients take a backward pass."""
        core, found = self.core, list[Any]()
        gradient: list[Array] | None = None
        for slot in outs:
            if slot.mask == UNUSED:
                zeros = [np.zeros(shape) for shape in core.slot_shapes(slot)]
                found.extend(float(z) if slot.kind == "y" and not z.shape else z for z in zeros)
            elif slot.kind == "y":
                (shape,) = core.slot_shapes(slot)
                values = self.component(slot.mask).reshape(shape)
                found.append(values if shape else float(values))
            else:
                if gradient is None:
                    jets = np.zeros(self.values.shape)
                    for mask, (array,) in cotangents.items():
                        jets[:, mask] = array.reshape(-1, core.width)
                    gradient = self.back(jets)
                    if self.slopes is not None:
                        pairs = zip(gradient, self.slopes, strict=True)
                        gradient = [by_probabilities(rows, slope) for rows, slope in pairs]
                for rows, shape in zip(gradient, core.shapes, strict=True):
                    found.append(np.ascontiguousarray(rows[:, slot.mask]).reshape(shape))
        return found

    def component(self, mask: int) -> Array:
        """A component of the goals' jets, a row of numbers for each goal."""
        found = self.values[:, mask].copy()
        if mask and self.replay:
            wrong = ~np.isfinite(found).all(axis=1)
            if wrong.any():
                raise ValueRangeError(
                    f"a derivative of {shown(self.core.goals[int(wrong.argmax())])} is NaN or infinite; where numbers "
                    "are only very large, use log"
                )
        return found

    def back(self, cotangents: Array) -> list[Array]:
        """The jet of the gradient by each input: for each of its rows and each set of directions, a row of numbers.

        Over pairs of `expectation`, a backward pass multiplies: it takes its start (s, t) to (s g, s h + t g), where
        (g, h) is the derivative of the goal, itself a pair. The transpose of that derivative as a matrix takes a
        cotangent (c, d) to (c g + d.h, d g): a backward pass from (d, c) with the result reversed. Each number of a
        vector d needs a pass of its own.
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
        """One backward pass over the numbers of the semiring."""
        seeds = []
        for place, start in zip(self.places, starts, strict=True):
            if place is not None and start.any():
                seeds.append(Seed(*place, np.ascontiguousarray(start).reshape(-1).view(np.uint64)))
        shape = self.values.shape[1:]
        with self._lock:
            replay = self.replay
            stop = self.core.limits.stop()  # a backward pass may take as long as a run
            backward(self.prepared, replay.scale, seeds, stop=stop)
            return [row_adjoints(replay, self.prepared, key, stop).reshape(-1, *shape) for key in self.core.inputs]
