"""`Function`: a program of rules as a differentiable function of arrays; its derivatives are such functions again.

`Bound.function` says which facts are the arguments and which items the value. Each evaluation replaces the values of
these facts by the arrays and runs the program once, over jets where there are derivatives. Here are the methods that
users call, and the arrays that go in and come out; `jets.py` chooses components of jets and runs programs over them.

It is long because of the docstrings of one class.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...calls import maker, public
from ...eager.kinds import real_part
from ...eager.numbers import Number
from ...errors import Error, FactError, QueryError, counted, cut, shown
from ...facts import readers
from ...facts.relation import Relation, parse_key
from ...facts.values import is_masked
from ...forks import cached, renewed
from ...ir.operation import Operation, apply
from ...ir.ops.ravelling import ravel, unravel
from ...ir.types import array as array_type
from ...rules.suggestions import nearest
from ..binding.binding import Binding
from ..binding.example_cache import ROW_BYTES
from ..limits import Limits
from ..lookup import ground, read_item
from ..replay import differentiable
from .jets import VALUE, Choice, Core, Slot
from .probabilities import check_probabilities

Array = npt.NDArray[np.float64]


class Function:
    """A program as a function of arrays, from the values of some facts to the values of some items.

    Made by `Bound.function` and `Program.function`. An argument has one number for each row of its predicate, in the
    order of the rows, or the shape of the dense array that the facts came as; a result is a float for one item and an
    array for a list of items. Numbers are in the semiring's scale, and derivatives are those of the computation that
    runs, as in `Chart.gradient`: in `log` with respect to log weights, in `viterbi` and `tropical` those of the best
    derivation. In `expectation` arguments and results have one more axis, the last, for the numbers of a pair: p, and
    then those of r. Derivatives are with respect to each of these numbers. Where `values` of `function`, or of the
    program, says that numbers are probabilities, so are the arguments, and derivatives are with respect to these; the
    value is still on the semiring's scale.

    Arguments for inputs without bound facts are dense arrays, and their shapes may differ from call to call. `facts`
    are then the other facts of a call, such as the length of a sentence. What a call prepares for its shapes and facts
    is kept for later calls, unless the facts are many.

    `tangent` and `adjoint` are functions of the same kind, so there are derivatives of any order (up to ten directions
    in one run). A function is immutable, may be called from several threads, and pickles. The first call for each order
    compiles the program over numbers of that order.

    Each method raises what a run raises, and `Error` for arrays of a wrong number, shape or type, `FactError` for
    values that the semiring does not have, and `NotDifferentiable` where a goal in `log` has weight zero.

    >>> import dynagrad as dg
    >>> program = dg.Program("goal += a(X) * b(X).")
    >>> facts = {"a/1": [("x", 2.0), ("y", 1.0)], "b/1": [("x", 3.0), ("y", 5.0)]}
    >>> f = program.function("goal", inputs=["a/1"], facts=facts)
    >>> f([2.0, 1.0]), f.value_and_grad([2.0, 1.0])
    (11.0, (11.0, (array([3., 5.]),)))
    """

    def __init__(self, core: Core | Open, choice: Choice) -> None:
        self._given, self._choice = core, choice

    def __getstate__(self) -> dict[str, Any]:
        return {"_given": self._given, "_choice": self._choice}  # and no operation, which holds functions

    @property
    def _core(self) -> Core:
        """What runs. Where shapes differ from call to call, take that of `_with_shapes`."""
        if isinstance(self._given, Open):
            raise Error("the shapes of the arguments are not known before the function is called")
        return self._given

    def _with_shapes(self, arrays: Any, facts: Mapping[str, Any] | None) -> Function:
        """This function for the shapes of these arrays, and with these facts."""
        if isinstance(self._given, Open):
            return make_function(self._given.at(_listed(arrays, "the arguments"), facts), self._choice)
        if facts is not None:
            raise Error("all inputs of this function have facts, so its facts were given when it was made")
        return self

    @property
    def goal(self) -> str | list[str]:
        """The item, or the items, whose values the function returns."""
        return list(self._given.goals) if self._given.listed else self._given.goals[0]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The predicates whose facts' values are the arguments."""
        return self._given.inputs

    @property
    def shapes(self) -> tuple[tuple[int | None, ...], ...]:
        """The shapes of the arguments, with None for a size that may differ from call to call."""
        return tuple(s for slot in self._choice.ins for s in self._given.slot_shapes(slot))

    @property
    def result_shapes(self) -> tuple[tuple[int | None, ...], ...]:
        """The shapes of the results; an adjoint has several."""
        return tuple(s for slot in self._choice.outs for s in self._given.slot_shapes(slot))

    # -- values

    @public
    def __call__(self, *arrays: Any, facts: Mapping[str, Any] | None = None) -> Any:
        """The value at some arrays. Tracked numbers go in and come out, so the function can be used under `dg.grad`.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> dg.grad(lambda x: f(x) * x[0])(np.array([2.0]))
        array([12.])
        """
        f = self._with_shapes(arrays, facts)
        if any(isinstance(a, Number) for a in arrays):
            found = apply(f._operation, *arrays)
            return found if f._single else tuple(unravel(found, f._out_shapes))
        return f._value(arrays)

    @cached
    def _operation(self) -> Operation:
        """The function as an operation for `eager/numbers.py`, whose tangents and adjoint are such operations again.

        Several results are concatenated in one array.
        """
        count = len(self.shapes)
        shapes = [s for slot in self._choice.ins for s in self._core.slot_shapes(slot)]

        def along(place: int) -> Callable[..., Any]:
            def rule(d: Any, y: Any, *xs: Any) -> Any:
                zeros = [np.zeros(shape) if shape else 0.0 for shape in shapes]
                return self._flat(self.tangent()(*xs, *(d if n == place else z for n, z in enumerate(zeros))))

            return rule

        def adjoint(delta: Any, y: Any, *xs: Any) -> Sequence[Any]:
            parts = [delta] if self._single else unravel(delta, self._out_shapes)
            return tuple(self.adjoint()(*xs, *parts))

        name = f"rules for {cut(str(self.goal), 40)}"

        def value(*xs: Any) -> Any:
            return self._flat(self._value(xs))

        return Operation(name, (array_type,) * count, array_type, value, tuple(map(along, range(count))), "", adjoint)

    def _flat(self, results: Any) -> Any:
        return results if self._single else ravel(results)

    @public
    def value(self, *arrays: Any, facts: Mapping[str, Any] | None = None) -> Any:
        """The value at some arrays, without derivatives: a float or an array, or a tuple for an adjoint.

        An item that was not derived has the semiring's zero.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
        >>> facts = {"edge/2": [("a", "b", 2.0), ("b", "c", 1.0)]}
        >>> program.function(["path(b)", "path(c)"], inputs=["edge/2"], facts=facts)([1.0, 4.0])
        array([1., 5.])
        """
        return self._with_shapes(arrays, facts)._value(arrays)

    def _value(self, arrays: Sequence[Any]) -> Any:
        return self._packed(self._evaluate(self._read(arrays)))

    @public
    def value_and_grad(self, *arrays: Any, facts: Mapping[str, Any] | None = None) -> tuple[float, tuple[Array, ...]]:
        """The value and its gradient, an array for each argument, of a function whose value is one number.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.value_and_grad([3.0])
        (9.0, (array([6.]),))
        """
        if not self._scalar:
            raise Error("the function has more than one number as its value; use vjp, which takes a cotangent")
        value, pullback = self._with_shapes(arrays, facts)._vjp(arrays)
        return value, pullback(1.0)

    # -- first derivatives

    @public
    def vjp(self, *arrays: Any, facts: Mapping[str, Any] | None = None) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
        """The value, and the pullback: from a cotangent of the value to cotangents of the arguments.

        The program runs once; the pullback may be called any number of times. For an adjoint, the value and its
        cotangent are tuples.

        >>> import dynagrad as dg
        >>> program = dg.Program("twice(X) += a(X) + a(X).")
        >>> f = program.function(["twice(x)", "twice(y)"], inputs=["a/1"], facts={"a/1": [("x", 1.0), ("y", 1.0)]})
        >>> value, pullback = f.vjp([1.0, 5.0])
        >>> value, pullback([1.0, 10.0])
        (array([ 2., 10.]), (array([ 2., 20.]),))
        """
        return self._with_shapes(arrays, facts)._vjp(arrays)

    def _vjp(self, arrays: Sequence[Any]) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
        read = self._read(arrays)
        adjoint = self.adjoint()
        if any(slot.kind != "y" for slot in self._choice.outs):  # linear in a direction that is not known yet
            value = self._packed(self._evaluate(read))
            return value, lambda cotangent: tuple(adjoint._evaluate([*read, *self._cotangents(cotangent)]))
        run = self._core.run(self._choice.order, True, self._core.components(self._choice.ins, read, "x"))
        places = adjoint._choice.ins[len(self._choice.ins) :]

        def pullback(cotangent: Any) -> tuple[Any, ...]:
            given = self._core.components(places, self._cotangents(cotangent), "c")
            return tuple(run.results(adjoint._choice.outs, given))

        return self._packed(run.results(self._choice.outs, {})), pullback

    @public
    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, facts: Mapping[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """The value, and its derivative along tangents, of which there is one for each argument.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.jvp([[3.0]], [[10.0]])
        (9.0, 60.0)
        """
        f = self._with_shapes(primals, facts)
        tangent = f._choice.directional()
        read = [*f._read(primals), *f._read(tangents, "the tangent of ")]
        found = f._core.evaluate(tangent, read, [*f._choice.outs, *tangent.outs])
        half = len(found) // 2
        return f._packed(found[:half]), f._packed(found[half:])

    # -- of any order

    @public
    def tangent(self) -> Function:
        """The derivative along a direction, as a function of the point and the direction: (x, u) -> Df(x)u.

        Its arguments are those of this function, followed by a direction for each.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.tangent()([3.0], [10.0]), f.tangent().tangent()([3.0], [10.0], [1.0], [0.0])
        (60.0, 20.0)
        """
        return make_function(self._given, self._choice.directional())

    @public
    def adjoint(self) -> Function:
        """The pullback, as a function of the point and the cotangent: (x, c) -> the gradient of <c, f(x)>.

        Its arguments are those of this function, followed by a cotangent for each of its results; its value is a tuple
        with a gradient for each argument of this function.

        >>> import dynagrad as dg
        >>> f = dg.Program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.adjoint()([3.0], 1.0), f.adjoint().tangent()([3.0], 1.0, [10.0], 0.0)
        ((array([6.]),), (array([20.]),))
        """
        return make_function(self._given, self._choice.adjoint())

    @public
    def hvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        cotangent: Any = None,
        facts: Mapping[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        """The Hessian times a vector, the gradient's derivative along tangents, by one backward pass over dual numbers.

        For a function whose value is not one number, `cotangent` has the weights of the sum that is differentiated.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * a(X) * a(X).")
        >>> f = program.function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0), ("y", 1.0)]})
        >>> f.hvp([[1.0, 2.0]], [[1.0, 1.0]])
        (array([ 6., 12.]),)
        """
        return self._with_shapes(primals, facts)._gradient(primals, (tangents,), cotangent)

    @public
    def derivative(
        self,
        primals: Sequence[Any],
        directions: Sequence[Sequence[Any]] = (),
        *,
        facts: Mapping[str, Any] | None = None,
    ) -> Any:
        """The mixed derivative along several directions, D^k f(x)[u1, ..., uk], by one run over jets of order k.

        A direction has an array for each argument. Without directions it is the value.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * a(X) * a(X).")
        >>> f = program.function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.derivative([[2.0]]), f.derivative([[2.0]], [[[1.0]]] * 2), f.derivative([[2.0]], [[[1.0]]] * 3)
        (8.0, 12.0, 6.0)
        """
        along, read = self._with_shapes(primals, facts)._directional(primals, directions)
        return self._packed(along._evaluate(read))

    @public
    def gradient(
        self,
        primals: Sequence[Any],
        directions: Sequence[Sequence[Any]] = (),
        cotangent: Any = None,
        *,
        facts: Mapping[str, Any] | None = None,
    ) -> tuple[Any, ...]:
        """The gradient of `derivative(primals, directions)` with respect to the primals, an array for each.

        Without directions it is the gradient, along one the Hessian times a vector. For a function whose value is not
        one number, `cotangent` has the weights of the sum that is differentiated. One run over jets of order k,
        and one backward pass.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(X) * a(X) * a(X).")
        >>> f = program.function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0)]})
        >>> f.gradient([[2.0]]), f.gradient([[2.0]], [[[1.0]], [[1.0]]])
        ((array([12.]),), (array([6.]),))
        """
        return self._with_shapes(primals, facts)._gradient(primals, directions, cotangent)

    def _gradient(self, primals: Sequence[Any], directions: Sequence[Sequence[Any]], cotangent: Any) -> tuple[Any, ...]:
        along, read = self._directional(primals, directions)
        if cotangent is None:
            if not self._scalar:
                raise Error("the function has more than one number as its value; say by cotangent= which sum is meant")
            cotangent = 1.0
        choice = along._choice.adjoint()
        outs = choice.outs[: len(self._choice.ins)]
        return tuple(self._core.evaluate(choice, [*read, *self._cotangents(cotangent)], outs))

    def _directional(self, primals: Sequence[Any], directions: Sequence[Sequence[Any]]) -> tuple[Function, list[Array]]:
        """The mixed derivative, as a function of the primals and the directions, with these arguments."""
        read, listed = self._read(primals), _listed(directions, "the directions")
        for n, direction in enumerate(listed, 1):
            read.extend(self._read(direction, f"direction {n} of "))
        return make_function(self._core, self._choice.directional(len(listed))), read

    # -- arrays in and out

    @property
    def _single(self) -> bool:
        """Whether there is one result, the value of the goals, and no tuple."""
        return len(self._choice.outs) == 1 and self._choice.outs[0].kind == "y"

    @property
    def _scalar(self) -> bool:
        """Whether the value is one number."""
        return self._single and not self._given.listed and not self._given.pair

    @property
    def _out_shapes(self) -> list[tuple[int, ...]]:
        return [s for slot in self._choice.outs for s in self._core.slot_shapes(slot)]

    def _read(self, arrays: Any, what: str = "") -> list[Array]:
        """Arrays for the arguments, checked and copied; `what` describes them in errors, where they are directions."""
        arrays = _listed(arrays, what.removesuffix(" of ") or "the arguments")
        slots = [(slot, n) for slot in self._choice.ins for n in range(len(self._core.slot_shapes(slot)))]
        names = [self._core.inputs[n] if slot.kind == "x" else "the cotangent" for slot, n in slots]
        if len(arrays) != len(slots):
            raise _wrong_count(names, len(arrays))
        read = []
        for (slot, n), name, given in zip(slots, names, arrays, strict=True):
            array = _array(what + name, given, self._core.slot_shapes(slot)[n])
            if slot.kind == "x":
                point = slot.mask == 0 and not what
                finite = self._core.finite if point else "finite"
                self._check(self._core.given[n], array, finite, "" if finite != "finite" else what)
                if point and self._core.probabilities:
                    check_probabilities(name, array)
            elif not np.isfinite(array).all():
                raise Error(f"{what}{name} is NaN or infinite")
            read.append(array)
        return read

    def _check(self, relation: Relation, array: Array, finite: str, what: str) -> None:
        if np.isfinite(array).all():
            return
        try:
            numbers = self._core.with_numbers(relation, array)
            readers.with_values(relation, numbers.values, value_shape=numbers.value_shape, finite=finite)
        except FactError as error:
            raise FactError(f"{what}{error}") from None

    def _cotangents(self, cotangent: Any) -> list[Array]:
        """Cotangents of the results, checked."""
        shapes = self._out_shapes
        given = [cotangent] if self._single else _listed(cotangent, "the cotangents")
        if len(given) != len(shapes):
            raise Error(
                f"the function has {counted(len(shapes), 'result')}, and got {counted(len(given), 'cotangent')}"
            )
        read = [_array("the cotangent", c, shape) for c, shape in zip(given, shapes, strict=True)]
        if not all(np.isfinite(c).all() for c in read):
            raise Error("the cotangent is NaN or infinite")
        return read

    def _evaluate(self, read: Sequence[Array]) -> list[Any]:
        return self._core.evaluate(self._choice, read, self._choice.outs)

    def _packed(self, results: Sequence[Any]) -> Any:
        return results[0] if self._single else tuple(results)

    def __repr__(self) -> str:
        core = self._given
        goals = ", ".join(core.goals[:3]) + (", ..." if len(core.goals) > 3 else "")
        shapes = [str(shape).replace("None", "any") for shape in core.shapes]
        arguments = ", ".join(f"{key} {shape}" for key, shape in zip(core.inputs, shapes, strict=True))
        return f"<Function: {'' if self._choice == VALUE else 'a derivative of '}{cut(goals)} by {arguments}>"


PLAN_BYTES, RULE_BYTES = 64 << 10, 12 << 10
"""About what the plans of a function take, and what each rule of its program adds."""


def bytes_of(function: Function) -> int:
    """About what a function takes that has plans of its own, where the shapes of its arguments are known."""
    binding = function._core.binding
    rows = sum(r.count for r in binding.given.values())
    return PLAN_BYTES + RULE_BYTES * len(binding.context.rules.rules) + ROW_BYTES * rows


make_function = maker(
    Function, "functions of programs come from program.function(goal, inputs); those of Python from dg.compile"
)


MOST_SHAPES = 256
"""The most shapes and facts for which an `Open` function keeps a `Core`."""
MOST_KEPT_ROWS = 1 << 22
"""The most facts, approximately, in all the cores that are kept."""
MOST_KEYED_ROWS = 64
"""With more facts of a predicate than this, the core of a call is not kept."""


class Binder(Protocol):
    """What `Open` needs of `charts.program.Bound`, which imports this file."""

    _binding: Binding

    def _bind(self, facts: Mapping[str, Any] | None, values: str | None) -> Binder: ...


class Open:
    """A function's bound facts, goals and inputs before the shapes of its arguments are known: a factory of `Core`s."""

    def __init__(
        self,
        bound: Binder,
        goals: tuple[str, ...],
        listed: bool,
        inputs: tuple[str, ...],
        limits: Limits,
        probabilities: bool = False,
    ) -> None:
        self.bound, self.goals, self.listed, self.inputs, self.limits = bound, goals, listed, inputs, limits
        self.probabilities = probabilities  # whether those are what facts and arguments have
        binding = bound._binding
        scale = binding.context.scale
        self.pair = (scale.width,) if scale.shape == "expectation" else ()
        self.shapes: list[tuple[int | None, ...]] = []
        for key in inputs:
            held = binding.given.get(key)
            shape: tuple[int | None, ...] = (None,) * parse_key(key)[1]
            if held is not None:
                shape = held.dense_shape if held.dense_shape is not None else (held.count,)
            self.shapes.append((*shape, *self.pair))
        self._cores: OrderedDict[Hashable, Core] = OrderedDict()
        self._lock = renewed(threading.RLock())

    def __getstate__(self) -> tuple[Any, ...]:
        return self.bound, self.goals, self.listed, self.inputs, self.limits, self.probabilities

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # what is kept beside the state is made anew

    def slot_shapes(self, slot: Slot) -> list[tuple[int | None, ...]]:
        """The shapes of the arrays of a slot, as far as they are known."""
        return list(self.shapes) if slot.kind in "xg" else [((len(self.goals),) if self.listed else ()) + self.pair]

    def at(self, arrays: Sequence[Any], facts: Mapping[str, Any] | None) -> Core:
        """The core for arrays of these shapes, with these facts beside the bound ones."""
        if len(arrays) < len(self.inputs):
            raise _wrong_count(self.inputs, len(arrays))
        shapes = [_shape(key, array) for key, array in zip(self.inputs, arrays, strict=False)]
        name = _cache_key(shapes, facts)
        if name is not None:
            with self._lock:
                found = self._cores.get(name)
                if found is not None:
                    self._cores.move_to_end(name)
                    return found
        core = self._core(shapes, facts)
        if name is not None:
            rows = sum(relation.count for relation in core.binding.relations.values())
            with self._lock:
                self._cores[name] = core
                while len(self._cores) > max(4, min(MOST_SHAPES, MOST_KEPT_ROWS // max(1, rows))):
                    self._cores.popitem(last=False)
        return core

    def _core(self, shapes: Sequence[tuple[int, ...]], facts: Any) -> Core:
        if facts is not None and not isinstance(facts, Mapping):
            raise FactError(f"{shown(facts)} is not a dict of facts; give predicates and rows")
        given = {} if facts is None else dict(facts)
        held = self.bound._binding.given
        for key, found, shape in zip(self.inputs, shapes, self.shapes, strict=True):
            if key in given:
                raise Error(f"{key} is an argument of the function, so facts cannot be given for it")
            if key not in held:
                if len(found) != len(shape):
                    raise Error(
                        f"{key}: an array with {counted(len(shape), 'axis', 'axes')} is needed, and what "
                        f"was given has shape {found}"
                    )
                given[key] = np.zeros(found)  # each run replaces these values
        binding = self.bound._bind(given, "probabilities" if self.probabilities else "weights")._binding
        with self._lock:  # warnings about facts are issued for the first core alone
            if self._cores:
                binding = binding.quiet()
        return Core(binding.settled(), self.goals, self.listed, self.inputs, self.limits, self.probabilities)


def _shape(key: str, array: Any) -> tuple[int, ...]:
    """The shape of an argument."""
    if isinstance(array, Number):
        array = real_part(array)
    shape: tuple[int, ...] = array.shape if type(array) is np.ndarray else _array(key, array, None).shape
    return shape


def _cache_key(shapes: Sequence[tuple[int, ...]], facts: Any) -> Hashable | None:
    """The key under which a call's core is kept: its shapes and its facts; None where these are not few and plain."""
    parts: list[Hashable] = list(shapes)
    if facts is None:
        return tuple(parts)
    if not isinstance(facts, Mapping):
        return None
    for key, rows in facts.items():
        if isinstance(rows, bool | int | float):
            parts.append((key, type(rows), rows))
            continue
        if not isinstance(rows, list | tuple) or len(rows) > MOST_KEYED_ROWS:
            return None
        for row in rows:
            if type(row) is not tuple or not all(type(x) in (int, str, float) for x in row):
                return None
            parts.append((key, row, tuple(map(type, row))))
        parts.append((key, len(rows)))
    return tuple(parts)


def function_of(
    bound: Binder, goal: str | Sequence[str], inputs: Sequence[str], limits: Limits, probabilities: bool = False
) -> Function:
    """The function from the values of `inputs`, which may be probabilities, to that of `goal`, if there is one."""
    binding = bound._binding
    differentiable(binding.context.scale)
    listed = not isinstance(goal, str)
    goals = tuple(_listed(goal, "the goals")) if listed else (goal,)
    for item in goals:
        if not isinstance(item, str):
            raise QueryError(f'{shown(item)} is not an item; write it as in rules, such as "constit(np,0,2)"')
        ground(read_item(binding.context, None, item))
    if isinstance(inputs, str) or not isinstance(inputs, Sequence):
        raise Error(f'inputs must be a list of predicates, such as ["rewrite/3"], not {shown(inputs)}')
    if not inputs:
        raise Error('inputs is empty; name the predicates whose numbers are the arguments, such as ["rewrite/3"]')
    known = binding.context.rules.predicates
    for n, key in enumerate(inputs):
        if not isinstance(key, str) or key not in known:
            near = nearest(key, known) if isinstance(key, str) else ""
            raise QueryError(f"inputs: the program has no predicate {shown(key)}.{near}")
        if key in inputs[:n]:
            raise Error(f"{key} is among the inputs twice")
        if key not in binding.given and known[key].external:
            raise Error(f"{key} is external: a function computes its values, so they are no argument")
        if key not in binding.given and not known[key].input:
            raise Error(f"{key} has no facts bound, and rules define it; where it is an argument too, declare :- input")
    if all(key in binding.given for key in inputs):
        return make_function(Core(binding.settled(), goals, listed, tuple(inputs), limits, probabilities), VALUE)
    return make_function(Open(bound, goals, listed, tuple(inputs), limits, probabilities), VALUE)


def _wrong_count(names: Sequence[str], given: int) -> Error:
    return Error(f"the function takes {counted(len(names), 'array')} ({', '.join(names)}), but {given} were given")


def _listed(given: Any, what: str) -> list[Any]:
    one = not hasattr(given, "__iter__") or getattr(given, "shape", None) == ()
    if one or isinstance(given, str | bytes | Mapping):
        raise Error(f"{what} must be a list or a tuple, not {shown(given)}")
    return list(given)


def _array(name: str, given: Any, shape: tuple[int, ...] | None) -> Array:
    """A copy of an array or list of numbers as an array of floats; None for `shape` allows any."""
    try:
        array = given if type(given) is np.ndarray else np.asarray(given)
    except Exception as error:  # other libraries' arrays may raise anything
        raise Error(f"{name}: not an array of numbers: {cut(str(error))}") from error
    if is_masked(given):
        raise Error(f"{name}: the array has masked entries, and a number is needed for each")
    if array.dtype.kind not in "fiub":
        raise Error(f"{name}: an array of real numbers is needed, and what was given has type {array.dtype}")
    if shape is not None and array.shape != shape:
        raise Error(f"{name}: an array of shape {shape} is needed, and what was given has shape {array.shape}")
    return np.array(array, np.float64)
