"""Numbers that carry derivatives: bundles for forward mode, tape cells for reverse mode, nested in any order.

The life of a number: a pass of differentiation makes a tag, wraps its inputs, and calls the function; every operation
on numbers (`lift`) makes numbers; at the end the pass looks for its tag and takes its part out. Tags are whole numbers
in order of creation and never used again, and what a number holds has smaller tags, so the outermost tag is the
youngest. Many passes may be open at once, and a closure may keep one open after its call: that is why a tag may have to
be looked for beneath younger ones, see `split`.

The one caveat: cells do not point at cells. What a cell was made of is an entry of its pass's `Tape`, under the cell's
number, so that a chain of a million operations is as flat as a list. What the entries mean is `sweep.py`'s business;
functions, containers and the public verbs are in other files. (Radul 2011, "Automatic Differentiation in DVL"; Manzyuk
et al. 2019, "Perturbation confusion in forward automatic differentiation of higher-order functions".)
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..errors import Error, NotDifferentiable
from ..graph import operations as ops
from ..graph.arrays import broadcast_to, sum_to
from ..graph.buffers import SMALLEST, Lease, copy, is_copy
from ..graph.operation import Operation, apply, as_number
from .floats import SLOPES
from .passes import place

fresh: Callable[[], int] = itertools.count(1).__next__
"""The next whole number: for tags, and for cells, so that ages of both compare. Safe in threads."""

Pull = Callable[[Any], Iterable[tuple[int, Any]]]  # from a cell's adjoint to increments: (number of a cell, increment)


class Number:
    """What all numbers with derivatives have in common: operators, and their place in numpy's protocols."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]  # == compares values

    tag: int
    primal: Any
    __apply_operation__: Callable[[Operation, Sequence[Any]], Any]  # `lift`
    __array_ufunc__: Callable[..., Any]  # of `numpy_protocol.py`

    def held(self) -> Sequence[Any]:
        """The numbers that this one is made of."""
        return (self.primal,)

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self)

    # -- Python's operators

    def __add__(self, other: Any) -> Any:
        return _binary(ops.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary(ops.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _binary(ops.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary(ops.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return _binary(ops.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary(ops.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        return _binary(ops.divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary(ops.divide, other, self)

    def __pow__(self, other: Any) -> Any:
        return _binary(ops.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _binary(ops.power, other, self)

    def __neg__(self) -> Any:
        return lift(ops.negative, (self,))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return lift(ops.absolute, (self,))

    def __lt__(self, other: Any) -> Any:
        return _compared(ops.less, self, other)

    def __le__(self, other: Any) -> Any:
        return _compared(ops.less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return _compared(ops.greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return _compared(ops.greater_equal, self, other)

    def __eq__(self, other: Any) -> Any:
        return _compared(ops.equal, self, other)

    def __ne__(self, other: Any) -> Any:
        return _compared(ops.not_equal, self, other)

    def __bool__(self) -> bool:
        return bool(real_part(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {real_part(self)!r}>"


Operator = Callable[[Any, Any], Any]


def _on_bundles(operation: Operation) -> tuple[Operator, Operator]:
    """An operator, and the same reflected, that does without detours where bundles hold floats."""
    slopes = SLOPES[operation]

    def forward(self: Bundle, other: Any) -> Any:
        a, d, kind = self.primal, self.tangent, type(other)
        if type(a) is type(d) is float:
            if kind is float:
                y, p, _ = slopes(a, other)
                d = d * p
                return Bundle(self.tag, y, d)
            if kind is Bundle and other.tag == self.tag and type(other.primal) is type(other.tangent) is float:
                y, p, q = slopes(a, other.primal)
                d = d * p + other.tangent * q
                return Bundle(self.tag, y, d)
            if kind in _EXACT:
                return forward(self, plain(other))
        return _binary(operation, self, other)

    def reflected(self: Bundle, other: Any) -> Any:
        a, d = self.primal, self.tangent
        if type(a) is type(d) is float:
            if type(other) is float:
                y, _, q = slopes(other, a)
                d = d * q
                return Bundle(self.tag, y, d)
            if type(other) in _EXACT:
                return reflected(self, plain(other))
        return _binary(operation, other, self)

    return forward, reflected


_EXACT = frozenset([int, np.float64])  # what becomes a float without another thought


class Bundle(Number):
    """A primal and a tangent along one tag: `primal + tag * tangent`, where the square of the tag is zero."""

    __slots__ = ("primal", "tag", "tangent")

    def __init__(self, tag: int, primal: Any, tangent: Any) -> None:
        self.tag, self.primal, self.tangent = tag, primal, tangent

    def held(self) -> Sequence[Any]:
        return (self.primal, self.tangent)

    __add__, __radd__ = _on_bundles(ops.add)
    __sub__, __rsub__ = _on_bundles(ops.subtract)
    __mul__, __rmul__ = _on_bundles(ops.multiply)
    __truediv__, __rtruediv__ = _on_bundles(ops.divide)
    __pow__, __rpow__ = _on_bundles(ops.power)


class Tape:
    """The cells of one reverse pass: from a cell's number to what it was made of.

    An entry is `(a, pa)` or `(a, pa, b, pb)`, numbers of cells with partial derivatives, or a `Pull`, or None for an
    input. With `forward`, the entries do not have all that input functions did. `paused` says in which threads the pass
    is paused, see `pause`.
    """

    __slots__ = ("chooses", "entries", "forward", "paused", "splits", "tag")

    def __init__(self) -> None:
        self.tag = fresh()
        self.chooses = False  # whether arrays were chosen from, see `masks.py`
        self.entries: dict[int, Any] = {}
        self.splits: dict[int, dict[int, tuple[int | None, int | None]]] = {}
        self.paused: dict[int, set[int]] = {}
        self.forward = False

    def cell(self, primal: Any, entry: Any = None) -> Any:
        """A new cell; the primal alone while the pass is paused."""
        if self.paused and self.rests():
            return primal
        number = fresh()
        self.entries[number] = entry
        return TapeCell(self, primal, number)

    @contextmanager
    def pause(self, used: set[int] | None) -> Iterator[None]:
        """In this thread, operations leave no entries and their results do not depend on the pass; the numbers of the
        cells that are used go to a set. With None they are recorded again."""
        me = threading.get_ident()
        before = self.paused.pop(me, None)
        if used is not None:
            self.paused[me] = used
        try:
            yield
        finally:
            self.paused.pop(me, None)
            if before is not None:
                self.paused[me] = before

    def rests(self, *used: int) -> bool:
        """Whether the pass is paused in this thread, where cells with these numbers are used."""
        noted = self.paused.get(threading.get_ident())
        if noted is None:
            return False
        noted.update(used)
        return True


def _on_cells(operation: Operation) -> tuple[Operator, Operator]:
    """An operator, and the same reflected, that does without detours where cells hold floats."""
    slopes = SLOPES[operation]

    def forward(self: TapeCell, other: Any) -> Any:
        a, tape = self.primal, self.tape
        if type(a) is float and not tape.paused:
            kind = type(other)
            if kind is TapeCell:
                b = other.primal
                if other.tape is tape and type(b) is float:
                    y, p, q = slopes(a, b)
                    number = fresh()
                    tape.entries[number] = (self.number, p, other.number, q)
                    return TapeCell(tape, y, number)
            elif kind is float:
                y, p, _ = slopes(a, other)
                number = fresh()
                tape.entries[number] = (self.number, p)
                return TapeCell(tape, y, number)
            elif kind in _EXACT:
                return forward(self, plain(other))
        return _binary(operation, self, other)

    def reflected(self: TapeCell, other: Any) -> Any:
        a, tape = self.primal, self.tape
        if type(a) is float and not tape.paused:
            if type(other) is float:
                y, _, q = slopes(other, a)
                number = fresh()
                tape.entries[number] = (self.number, q)
                return TapeCell(tape, y, number)
            if type(other) in _EXACT:
                return reflected(self, plain(other))
        return _binary(operation, other, self)

    return forward, reflected


def _on_cell(operation: Operation) -> Callable[[Any], Any]:
    """The same for an operator with one argument."""
    slopes = SLOPES[operation]

    def method(self: TapeCell) -> Any:
        a, tape = self.primal, self.tape
        if type(a) is not float or tape.paused:
            return lift(operation, (self,))
        y, p = slopes(a)
        number = fresh()
        tape.entries[number] = (self.number, p)
        return TapeCell(tape, y, number)

    return method


class TapeCell(Number):
    """A value computed in a reverse pass."""

    __slots__ = ("number", "primal", "tape")

    def __init__(self, tape: Tape, primal: Any, number: int) -> None:
        self.tape, self.primal, self.number = tape, primal, number

    @property
    def tag(self) -> int:  # type: ignore[override]
        return self.tape.tag

    __add__, __radd__ = _on_cells(ops.add)
    __sub__, __rsub__ = _on_cells(ops.subtract)
    __mul__, __rmul__ = _on_cells(ops.multiply)
    __truediv__, __rtruediv__ = _on_cells(ops.divide)
    __pow__, __rpow__ = _on_cells(ops.power)
    __neg__, __abs__ = _on_cell(ops.negative), _on_cell(ops.absolute)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        quick = _UFUNCS.get(ufunc)
        if quick is not None and method == "__call__" and not options:
            return quick(self)
        return Number.__array_ufunc__(self, ufunc, method, *inputs, **options)


_UFUNCS: dict[Any, Callable[[Any], Any]] = {
    operation.array: _on_cell(operation)
    for operation in SLOPES
    if len(operation.arguments) == 1 and isinstance(operation.array, np.ufunc)
}
"""What numpy's functions of one argument do with a cell."""


# -- what is a number --------------------------------------------------------------------------------------------------


def tag_of(x: Any) -> int:
    """The youngest tag of a number; 0 for a plain one."""
    return x.tag if type(x) in LIFTS else 0


def real_part(x: Any) -> Any:
    """The number with all derivatives left out."""
    while type(x) in LIFTS:
        x = x.primal
    return x


def shape_of(x: Any) -> tuple[int, ...]:
    """numpy's shape, also of numbers with derivatives.

    >>> shape_of(2.0), shape_of(np.ones((2, 3)))
    ((), (2, 3))
    """
    while type(x) in LIFTS:
        x = x.primal
    kind = type(x)
    return () if kind is float else x.shape if kind is np.ndarray else np.shape(x)


def zero_like(x: Any) -> Any:
    """The zero of a number's shape.

    >>> zero_like(3.0), zero_like(np.ones(2))
    (0.0, array([0., 0.]))
    """
    shape = shape_of(x)
    return np.zeros(shape) if shape else 0.0


_FLOAT = np.dtype(np.float64)


def plain(x: Any) -> Any:
    """An argument of an operation as numbers are computed with: floats, arrays of floats, numbers, truth values.

    Arrays that belong to somebody else are copied where an operation keeps them; see `kept`.
    """
    kind = type(x)
    if kind is float or kind in LIFTS or (kind is np.ndarray and x.ndim and x.dtype is _FLOAT):
        return x
    if kind is int:
        return as_number(x)
    if isinstance(x, np.generic):
        return x.item() if kind is np.bool_ else float(x)
    if isinstance(x, np.ndarray) and not x.ndim and x.dtype.kind in "biuf":
        return plain(x[()])
    if isinstance(x, np.ndarray) and x.dtype != np.float64 and x.dtype != np.bool_:
        if x.dtype.kind in "iuf":
            return x.astype(np.float64)
        if x.dtype.kind == "O":
            raise Error(
                "an array of objects holds numbers with derivatives; stack them with np.stack or np.array first"
                + place()
            )
    if isinstance(x, list | tuple):
        return np.stack(x) if any(isinstance(part, Number) for part in x) else np.asarray(x, np.float64)
    return x


_OPERANDS = (Number, float, int, np.ndarray, np.generic, list, tuple)


def _binary(operation: Operation, a: Any, b: Any) -> Any:
    for x in (a, b):
        if not isinstance(x, _OPERANDS) and not hasattr(type(x), "__apply_operation__"):
            return NotImplemented
    return lift(operation, (a, b))


def _compared(operation: Operation, a: Any, b: Any) -> Any:
    if not isinstance(b, _OPERANDS):
        return NotImplemented
    return apply(operation, real_part(a), real_part(plain(b)))


# -- making numbers ----------------------------------------------------------------------------------------------------


def bundle(tag: int, primal: Any, tangent: Any) -> Any:
    """`primal + tag * tangent`, sorted by tag; the primal alone where there is no tangent.

    A tangent that happens to be zero is one: times an infinite slope it must not pass for zero.

    >>> bundle(3, 2.0, None)
    2.0
    """
    if tangent is None:
        return primal
    if tag_of(primal) < tag and tag_of(tangent) < tag:
        return Bundle(tag, primal, tangent)
    return apply(ops.add, primal, apply(ops.multiply, Bundle(tag, 0.0, 1.0), tangent))


def kept(x: Any) -> Any:
    """An argument that a derivative will be computed from later: arrays that may be written to are copied."""
    if type(x) is float or not isinstance(x, np.ndarray) or _closed(x):
        return x
    large = x.size >= SMALLEST and x.dtype is _FLOAT and x.flags.c_contiguous
    if large:
        of, earlier = _COPIES.get(id(x), (None, None))
        if of is not None and of() is x and is_copy(earlier, x):
            return earlier
    made = copy(x)
    made.flags.writeable = False
    if large:
        key = id(x)
        _COPIES[key] = weakref.ref(x, lambda _: _COPIES.pop(key, None)), made
        for oldest in list(_COPIES)[:-16]:
            _COPIES.pop(oldest, None)
    return made


def _closed(x: np.ndarray[Any, Any]) -> bool:
    """Whether an array, and what it is a view of, is closed to writing."""
    at: Any = x
    while isinstance(at, np.ndarray):
        if at.flags.writeable:
            return False
        at = at.base
    return at is None or type(at) is Lease


_COPIES: dict[int, tuple[weakref.ref[Any], np.ndarray[Any, Any]]] = {}
"""The last copies of large arrays, such as the data of a loss function: one that did not change is not copied again."""


def owned(x: Any) -> Any:
    """A result that nobody else has: it is closed to writing, so that it need not be copied again."""
    if type(x) is np.ndarray and (x.base is None or isinstance(x.base, Lease)):
        x.setflags(write=False)
    return x


# -- operations on numbers ---------------------------------------------------------------------------------------------


def lift(operation: Operation, arguments: Sequence[Any]) -> Any:
    """An operation on numbers, by the youngest tag among its arguments: their primals first, then its part."""
    tag, youngest, given = 0, float, []
    for x in arguments:
        kind = type(x)
        if kind in LIFTS:
            at = x.tape.tag if kind is TapeCell else x.tag
            if at > tag:
                tag, youngest = at, kind
        elif kind is not float:
            x = plain(x)
        given.append(x)
    if not tag:
        return owned(apply(operation, *given))
    if operation.steps:  # nothing to carry
        return apply(operation, *map(real_part, given))
    return LIFTS[youngest](operation, tag, given)


Number.__apply_operation__ = staticmethod(lift)


def _lift_bundle(operation: Operation, tag: int, arguments: list[Any]) -> Any:
    mine = [type(x) is Bundle and x.tag == tag for x in arguments]
    primals = [x.primal if own else x for own, x in zip(mine, arguments, strict=True)]
    total: Any = None
    if operation in SLOPES and all(type(x) is float for x in primals):
        y, *slopes = SLOPES[operation](*primals)
        for own, x, slope in zip(mine, arguments, slopes, strict=True):
            if own and not (slope == 0.0 and operation in CHOOSING):  # what was not chosen is not connected
                part = x.tangent * slope if type(x.tangent) is float else apply(ops.multiply, x.tangent, slope)
                total = part if total is None else total + part
        return bundle(tag, y, total)
    y = owned(apply(operation, *primals))
    with quiet(y):
        total = _tangent(operation, mine, arguments, primals, y)
    return bundle(tag, y, total)


def _tangent(operation: Operation, mine: list[bool], arguments: list[Any], primals: list[Any], y: Any) -> Any:
    """The tangent of a result, along the tag of some of the arguments."""
    total: Any = None
    for index, own in enumerate(mine):
        if own:
            part = tangent_part(operation, index, arguments[index].tangent, y, primals)
            if part is not None and not (operation in CHOOSING and type(part) is float and part == 0.0):
                total = part if total is None else apply(ops.add, total, part)
    return total


def quiet(y: Any) -> AbstractContextManager[Any]:
    """A context for the derivatives of a result: of infinite ones and NaN, the verb says more than numpy's warnings."""
    return _NOTHING if type(y) is float else np.errstate(all="ignore")


_NOTHING: AbstractContextManager[Any] = nullcontext()


def tangent_part(operation: Operation, index: int, d: Any, y: Any, primals: Sequence[Any]) -> Any:
    """What the tangent of one argument adds to that of the result; None for nothing."""
    if operation.tangent is None:
        raise _no_derivative(operation, index)
    rule = operation.tangent[index] if index < len(operation.tangent) else operation.tangent[-1]
    if rule is None:
        return None
    part = rule(d, y, *primals)
    if operation.elementwise:
        shape = shape_of(y)
        if shape_of(part) != shape:
            part = broadcast_to(shape)(part)
    return part


def _lift_cell(operation: Operation, tag: int, arguments: list[Any]) -> Any:
    places, numbers, primals, floats = [], [], [], True
    tape: Any = None
    for i, x in enumerate(arguments):
        if type(x) is TapeCell and x.tape.tag == tag:
            tape = x.tape
            places.append(i)
            numbers.append(x.number)
            x = x.primal
        floats = floats and type(x) is float
        primals.append(x)
    if tape.paused and tape.rests(*numbers):
        return owned(apply(operation, *primals))
    if floats and operation in SLOPES:
        y, *partials = SLOPES[operation](*primals)
        if operation in CHOOSING:  # what was not chosen is not connected: zero times infinity would be NaN
            chosen = [(n, partials[i]) for n, i in zip(numbers, places, strict=True) if partials[i] != 0.0]
            return tape.cell(y, _entry([n for n, _ in chosen], [p for _, p in chosen]))
        return tape.cell(y, _entry(numbers, [partials[i] for i in places]))
    y = owned(apply(operation, *primals))
    if operation.elementwise:
        if operation in FREE:
            shape = shape_of(y)
            if not shape or all(shape_of(primals[i]) == shape for i in places):
                slopes = FREE[operation](*primals)
                return tape.cell(y, _entry(numbers, [kept(slopes[i]) for i in places]))
        if type(y) is float:
            if operation.tangent is None:
                raise _no_derivative(operation, places[0])
            rules = [operation.tangent[i] for i in places]
            found = [(n, rule(1.0, y, *primals)) for n, rule in zip(numbers, rules, strict=True) if rule is not None]
            if operation in CHOOSING:
                found = [(n, p) for n, p in found if not (type(p) is float and p == 0.0)]
            return tape.cell(y, _entry([n for n, _ in found], [p for _, p in found]))
    if operation in CHOOSING:
        tape.chooses = True
    return tape.cell(y, Recorded(operation, places, numbers, *_needed(operation, places, y, primals)))


CHOOSING: frozenset[Operation] = frozenset({ops.where, ops.minimum, ops.maximum})
"""Operations whose result is one of their arguments, element by element; what was not chosen is not connected."""


class Outline:
    """Stands for an array of which a rule needs the shape alone."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def _needed(operation: Operation, places: list[int], y: Any, primals: list[Any]) -> tuple[Any, list[Any]]:
    """The result and the arguments, as far as the rules for the arguments at these places look at them."""
    wanted = _wanted(operation, tuple(places))
    if wanted is None:
        return y, [kept(x) for x in primals]
    arguments = [kept(x) if i in wanted else _outlined(x) for i, x in enumerate(primals)]
    return (y if -1 in wanted else _outlined(y)), arguments


@functools.lru_cache(maxsize=4096)
def _wanted(operation: Operation, places: tuple[int, ...]) -> frozenset[int] | None:
    """The places of what the rules look at; -1 is the result, None for all."""
    needs = [None if operation.needs is None else operation.needs[i] for i in places]
    return None if None in needs else frozenset(i for some in needs if some is not None for i in some)


def _outlined(x: Any) -> Any:
    return x if type(x) is float else Outline(shape_of(x))


FREE: dict[Operation, Callable[..., tuple[Any, ...]]] = {
    ops.add: lambda a, b: (1.0, 1.0),
    ops.subtract: lambda a, b: (1.0, -1.0),
    ops.multiply: lambda a, b: (b, a),
    ops.negative: lambda x: (-1.0,),
}
"""Partial derivatives, element by element, where they are nothing to compute, whatever the numbers hold."""


def _entry(numbers: Sequence[int], partials: Sequence[Any]) -> Any:
    """The entry of a cell that was made of cells of its shape, element by element."""
    if len(numbers) == 1:
        return numbers[0], partials[0]
    if len(numbers) == 2:
        return numbers[0], partials[0], numbers[1], partials[1]
    return Scalars(tuple(x for pair in zip(numbers, partials, strict=True) for x in pair))


def times(delta: Any, slope: Any) -> Any:
    """The product of an adjoint and a partial derivative, element by element."""
    if type(slope) is float:
        if type(delta) is float:
            return delta * slope
        if slope == 1.0:
            return delta
    elif type(delta) is float and delta == 1.0:
        return slope
    return apply(ops.multiply, delta, slope)


class Scalars:
    """A `Pull`: an entry of numbers of cells and partial derivatives, as a function."""

    __slots__ = ("entry", "numbers")

    def __init__(self, entry: tuple[Any, ...]) -> None:
        self.entry, self.numbers = entry, entry[::2]

    def __call__(self, delta: Any) -> Iterable[tuple[int, Any]]:
        entry = self.entry
        return [(entry[i], times(delta, entry[i + 1])) for i in range(0, len(entry), 2)]

    def mentions(self, tag: int) -> bool:
        return _mentions(self.entry, tag)


class Recorded:
    """A `Pull`: an operation with its result and arguments, of which some are cells of the pass."""

    __slots__ = ("arguments", "numbers", "operation", "places", "result")

    def __init__(
        self, operation: Operation, places: list[int], numbers: list[int], result: Any, arguments: list[Any]
    ) -> None:
        self.operation, self.places, self.numbers = operation, places, numbers
        self.result, self.arguments = result, arguments

    def __call__(self, delta: Any) -> Iterable[tuple[int, Any]]:
        operation, y, arguments = self.operation, self.result, self.arguments
        found: list[tuple[int, Any]] = []
        if operation.adjoint is not None and not operation.elementwise:
            parts = operation.adjoint(delta, y, *arguments)
            for number, i in zip(self.numbers, self.places, strict=True):
                part = parts[i]
                if part is not None:
                    found.append((number, part))
            return found
        rules = operation.tangent
        if rules is None:
            raise _no_derivative(operation, self.places[0])
        for number, i in zip(self.numbers, self.places, strict=True):
            rule = rules[i if i < len(rules) else -1]
            part = None if rule is None else rule(delta, y, *arguments)
            if part is not None:
                if operation.elementwise:
                    shape = shape_of(arguments[i])
                    if shape_of(part) != shape:
                        part = sum_to(shape)(part)
                found.append((number, part))
        return found

    def mentions(self, tag: int) -> bool:
        return contains(tag, self.result) or any(contains(tag, x) for x in self.arguments)


def _no_derivative(operation: Operation, index: int) -> NotDifferentiable:
    return NotDifferentiable(
        f"the operation {operation.name} has no derivative, and one is asked for through its argument {index + 1}; "
        f"give it one with dg.custom_rule, or leave it out of what is differentiated{place()}"
    )


LIFTS: dict[type, Callable[[Operation, int, list[Any]], Any]] = {Bundle: _lift_bundle, TapeCell: _lift_cell}
"""How the youngest number's kind carries an operation; `series.py` adds its own."""


# -- taking a tag out --------------------------------------------------------------------------------------------------


def split(tag: int, x: Any) -> tuple[Any, Any]:
    """The number without a tag of a forward pass, and its tangent along it (None for none): x = first + tag * second.

    Under a cell of a younger reverse pass the tag may be in the primal and in all that the cell was made of. So that
    pass gets two cells for each of these: one is x at tag zero, the other the tangent, and they depend on both cells of
    each ancestor by the product rule.
    """
    if not isinstance(x, Number) or x.tag < tag:
        return x, None
    if type(x) is TapeCell:
        first, second = _split_cell(x.tape, tag, x.number)
        p, q = split(tag, x.primal)
        if second is None:
            return (x, None) if q is None else (_at(x.tape, first, p), q)
        return _at(x.tape, first, p), _at(x.tape, second, zero_like(p) if q is None else q)
    return SPLITS[type(x)](tag, x)


def _split_bundle(tag: int, x: Any) -> tuple[Any, Any]:
    if x.tag == tag:
        return x.primal, x.tangent
    p, q = split(tag, x.primal)
    d, e = split(tag, x.tangent)
    return bundle(x.tag, p, d), None if q is None and e is None else bundle(x.tag, zero_like(p) if q is None else q, e)


SPLITS: dict[type, Callable[[int, Any], tuple[Any, Any]]] = {Bundle: _split_bundle}


def _at(tape: Tape, number: int | None, primal: Any) -> Any:
    if number is None:
        return primal
    return TapeCell(tape, primal, number)


def _split_cell(tape: Tape, tag: int, number: int) -> tuple[int | None, int | None]:
    """The cells of both parts of a cell. Ancestors first, without recursion; each is split once."""
    known = tape.splits.setdefault(tag, {})
    stack = [number]
    while stack:
        at = stack[-1]
        if at in known:
            stack.pop()
            continue
        entry = tape.entries.get(at)
        if at < tag or entry is None:  # made before the tag was: it cannot be in there
            known[at] = (at, None)
            stack.pop()
            continue
        parents = _parents(entry)
        missing = [p for p in parents if p not in known]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if all(known[p] == (p, None) for p in parents) and not _mentions(entry, tag):
            known[at] = (at, None)
            continue
        pull = _pull_of(entry)
        first, second = fresh(), fresh()
        tape.entries[first] = Parted(pull, tag, known, parents, of_tangent=False)
        tape.entries[second] = Parted(pull, tag, known, parents, of_tangent=True)
        known[at] = (first, second)
    return known[number]


class Parted:
    """A `Pull` of one part of a cell that was split.

    With `tag` in the linear map J = J0 + tag * J1: the part at zero sends J0 to parts at zero; the tangent sends J0 to
    tangents and J1 to parts at zero. An adjoint may hold the tag too, where its pass is open around this one; that is
    none of the map's, so its parts go through the map one by one.
    """

    __slots__ = ("known", "numbers", "of_tangent", "pull", "tag")

    def __init__(
        self,
        pull: Pull,
        tag: int,
        known: dict[int, tuple[int | None, int | None]],
        parents: Sequence[int],
        *,
        of_tangent: bool,
    ) -> None:
        self.pull, self.tag, self.known, self.of_tangent = pull, tag, known, of_tangent
        self.numbers = [n for p in parents for n in known[p] if n is not None]

    def mentions(self, tag: int) -> bool:
        return tag != self.tag and _mentions(self.pull, tag)

    def __call__(self, delta: Any) -> Iterable[tuple[int, Any]]:
        rest, held = halves(self.tag, delta)
        found = list(self._sent(rest))
        if held is not None:
            found += [(number, times_tag(self.tag, x)) for number, x in self._sent(held)]
        return found

    def _sent(self, delta: Any) -> Iterable[tuple[int, Any]]:
        for parent, increment in self.pull(delta):
            if increment is None:
                continue
            zero, tangent = self.known[parent]
            at_zero, along = halves(self.tag, increment)
            if not self.of_tangent:
                if zero is not None:
                    yield zero, at_zero
                continue
            if tangent is not None:
                yield tangent, at_zero
            if zero is not None and along is not None:
                yield zero, along


def halves(tag: int, x: Any) -> tuple[Any, Any]:
    """As `split`, of whatever an adjoint may be: a number, or a functional that knows how to part itself."""
    return x.halves(tag) if hasattr(x, "halves") else split(tag, x)


def times_tag(tag: int, x: Any) -> Any:
    """An adjoint without the tag, times the tag."""
    return x.times(Bundle(tag, 0.0, 1.0)) if hasattr(x, "halves") else bundle(tag, zero_like(x), x)


def contains(tag: int, x: Any) -> bool:
    """Whether a number depends on a tag."""
    if not isinstance(x, Number) or x.tag < tag:
        return False
    if type(x) is TapeCell:
        return _split_cell(x.tape, tag, x.number)[1] is not None or contains(tag, x.primal)
    return x.tag == tag or any(contains(tag, part) for part in x.held())


def _mentions(entry: Any, tag: int) -> bool:
    """Whether what an entry computes with depends on a tag."""
    if isinstance(entry, tuple):
        return any(contains(tag, entry[i]) for i in range(1, len(entry), 2))
    mentions = getattr(entry, "mentions", None)
    return True if mentions is None else bool(mentions(tag))


def _parents(entry: Any) -> Sequence[int]:
    if isinstance(entry, tuple):
        return entry[::2]
    return getattr(entry, "numbers", ())


def _pull_of(entry: Any) -> Pull:
    return Scalars(entry) if isinstance(entry, tuple) else entry
