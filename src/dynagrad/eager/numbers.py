"""Numbers that carry derivatives: dual numbers (bundles) for forward mode, tape cells for reverse mode; they nest.

A differentiation pass makes a tag, wraps its inputs, and calls the function; operations on these numbers give such
numbers (`lift`); at the end the pass extracts the part of the result along its tag (`splitting.py`). Tags tell
the perturbations of nested passes apart. They are serial numbers, never reused, and the numbers inside a number have
smaller tags, so the outermost tag is the youngest. Many passes may be open at once, and a closure may keep one open
after its call, so a tag may be beneath younger ones. (Radul 2011, "Automatic Differentiation in DVL"; Manzyuk et al.
2019, "Perturbation confusion in forward automatic differentiation of higher-order functions".)

Cells do not point at cells: what a cell was computed from is an entry of its pass's `Tape`, under the cell's number, so
a chain of a million operations is a flat list. `tape.py` says what entries mean. Here are the kinds of numbers and
their operators, with a fast path for floats; functions, structures and the public verbs are in other files. It is long
because each kind has its own fast path for each operator.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np

from ..errors import Error
from ..ir.operation import Operation, apply
from ..ir.ops import scalars as ops
from .copies import owned
from .floats import SLOPES
from .kinds import LIFTS, as_element, fresh, plain, real_part, shape_of, tag_of
from .numpy.protocol import ArrayMethods
from .perturbations import place
from .tangents import quiet, tangent_of
from .tape import CHOOSING, record

_ndarray = np.ndarray
_FLOAT = np.dtype(np.float64)


def lift(operation: Operation, arguments: Sequence[Any]) -> Any:
    """An operation applied to arguments of which some carry derivatives, by their youngest tag."""
    tape, foreign, places, numbers, primals = None, False, [], [], []
    for i, x in enumerate(arguments):  # the common case: cells of one tape, floats and arrays
        kind = type(x)
        if kind is TapeCell:
            if tape is None:
                tape = x.tape
            elif x.tape is not tape:
                break
            places.append(i)
            numbers.append(x.number)
            x = x.primal
        elif kind is _ndarray:
            if x.dtype is not _FLOAT or not x.ndim:
                break
            foreign = True
        elif kind is not float:
            break
        primals.append(x)
    else:
        if tape is not None and not operation.steps:
            return record(operation, tape, places, numbers, primals, foreign)
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
        return apply(operation, *given)
    if operation.steps:  # piecewise constant: no derivative
        return apply(operation, *map(real_part, given))
    return LIFTS[youngest](operation, tag, given)


class Unhashable(Error, TypeError):
    """The error for a number as a key, which Python gives as a TypeError for what has no hash."""


_NAME = "number with derivatives"
"""What a class of numbers is called in messages of Python, which know no better than to name it."""

_OURS = f"{__name__.partition('.')[0]}."
"""How the names of modules of the package begin."""


class _Kind(type):
    """The class of classes of numbers: one that is compared with float or an array's class by `==`, or `in`, is asked
    for what it cannot answer as without derivatives, and was false in silence. `is` asks nobody."""

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, type) and other in _PLAIN_CLASSES:
            module = str(sys._getframe(1).f_globals.get("__name__"))
            if not module.startswith((_OURS, "numpy.")):
                raise Error(
                    f"type(x) == {other.__name__} is false of a number with derivatives, which is of a class of its "
                    f"own; write isinstance(x, {other.__name__}), or x.__class__ is {other.__name__}{place()}"
                )
        return type.__eq__(cls, other)

    __hash__ = type.__hash__

    def __repr__(cls) -> str:
        return f"<class of a {cls.__name__}>"


_PLAIN_CLASSES = (float, np.float64, np.ndarray)  # dynagrad.numpy.ndarray equals the last


class Number(ArrayMethods, metaclass=_Kind):
    """The base class of numbers with derivatives: Python's operators, and numpy's protocols."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        cls.__name__ = _NAME

    __array_priority__ = 1000.0

    def __hash__(self) -> int:
        what = "an array" if shape_of(self) else "a number with derivatives"
        raise Unhashable(
            f"{what} is no key of a dict, a set or a cache such as functools.lru_cache, which would find what another "
            f"derivative has left there; compare values, as in x == 2.0{place()}"
        )

    @property  # type: ignore[misc]  # in the place of an attribute
    def __class__(self) -> type:
        """The type that Python would have here, for `isinstance`, `match` and `singledispatch` of a function that is
        differentiated, which then takes the same way as without. The package itself tells numbers from floats."""
        asking: Any = sys._getframe(1)
        while asking is not None and asking.f_globals.get("__name__") == "abc":  # for `isinstance(x, Real)`
            asking = asking.f_back
        module = "" if asking is None else str(asking.f_globals.get("__name__"))
        if module.startswith(_OURS):
            return type(self)
        if self.can_be_written or shape_of(self):
            return type(self) if module.startswith("numpy.") else np.ndarray  # whose own code looks into the memory
        return np.float64 if self.element else float

    can_be_written = False  # True for the arrays of `eager/mutation/arrays.py`
    tag: int
    primal: Any
    element: bool  # whether numpy would have a numpy scalar here, such as an element of an array
    __apply_operation__ = staticmethod(lift)

    def held(self) -> Sequence[Any]:
        """The numbers inside this one: its primal, and derivatives that it stores."""
        return (self.primal,)

    def settled(self) -> Any:
        """The current value of an array that can be written to (`eager/mutation/arrays.py`); others are themselves."""
        return self

    def as_element(self, element: bool = True) -> Any:
        """The same number, with or without the mark of a numpy scalar, whose comparisons give numpy's truth values."""
        return self

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
        return _unary(ops.negative, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _unary(ops.absolute, self)

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

    def __str__(self) -> str:
        return str(real_part(self))

    # -- copies: numbers are immutable

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise Error(
            "a number with derivatives cannot be pickled, as for another process: its derivatives are in this one; "
            f"compute with it here, or give the function a rule with dg.custom_rule{place()}"
        )


Operator = Callable[[Any, Any], Any]


def _on_bundles(operation: Operation) -> tuple[Operator, Operator]:
    """An operator and its reflected version, with a fast path for bundles of floats."""
    slopes = SLOPES[operation]

    def forward(self: Bundle, other: Any) -> Any:
        a, d, kind = self.primal, self.tangent, type(other)
        if type(a) is type(d) is float:
            if kind is float:
                y, p, _ = slopes(a, other)
                d = d * p
                return Bundle(self.tag, y, d, self.element)
            if kind is Bundle and other.tag == self.tag and type(other.primal) is type(other.tangent) is float:
                y, p, q = slopes(a, other.primal)
                d = d * p + other.tangent * q
                return Bundle(self.tag, y, d, self.element or other.element)
            if kind in _EXACT:
                found = forward(self, plain(other))
                return found if kind is int else as_element(found)
        return _binary(operation, self, other)

    def reflected(self: Bundle, other: Any) -> Any:
        a, d = self.primal, self.tangent
        if type(a) is type(d) is float:
            if type(other) is float:
                y, _, q = slopes(other, a)
                d = d * q
                return Bundle(self.tag, y, d, self.element)
            if type(other) in _EXACT:
                found = reflected(self, plain(other))
                return found if type(other) is int else as_element(found)
        return _binary(operation, other, self)

    return forward, reflected


_EXACT = frozenset([int, np.float64])  # types that are converted to float directly


class Bundle(Number):
    """A dual number: a primal and a tangent along one tag, `primal + tag * tangent`, where the tag squared is zero."""

    __slots__ = ("element", "primal", "tag", "tangent")

    def __init__(self, tag: int, primal: Any, tangent: Any, element: bool = False) -> None:
        self.tag, self.primal, self.tangent, self.element = tag, primal, tangent, element

    def as_element(self, element: bool = True) -> Any:
        return Bundle(self.tag, self.primal, self.tangent, element)

    def held(self) -> Sequence[Any]:
        return (self.primal, self.tangent)

    __add__, __radd__ = _on_bundles(ops.add)
    __sub__, __rsub__ = _on_bundles(ops.subtract)
    __mul__, __rmul__ = _on_bundles(ops.multiply)
    __truediv__, __rtruediv__ = _on_bundles(ops.divide)
    __pow__, __rpow__ = _on_bundles(ops.power)


class Tape:
    """The tape (Wengert list) of one reverse pass: for each cell, by number, how it was computed.

    An entry is `(a, pa)` or `(a, pa, b, pb)`, numbers of cells with partial derivatives, or a `Pull`, or None for an
    input. If `forward` is set, calls of input functions are missing, and their cotangents need forward mode. `paused`
    has the threads in which the pass is paused; see `pause`.
    """

    __slots__ = ("chooses", "entries", "forward", "paused", "splits", "tag")

    def __init__(self) -> None:
        self.tag = fresh()
        self.chooses = False  # whether elements of arrays were selected, see `masks.py`
        self.entries: dict[int, Any] = {}
        self.splits: dict[tuple[int, int], dict[int, tuple[int | None, ...]]] = {}  # see `splitting.cells_of`
        self.paused: dict[int, set[int]] = {}
        self.forward = False

    def cell(self, primal: Any, entry: Any = None) -> Any:
        """A new cell; the primal alone while the pass is paused."""
        if self.paused and self.is_paused():
            return primal
        number = fresh()
        self.entries[number] = entry
        return TapeCell(self, primal, number)

    @contextmanager
    def pause(self, used: set[int] | None) -> Iterator[None]:
        """A context that pauses the pass in this thread: operations leave no entries, and their results do not depend
        on it; the numbers of the cells that they use go to the set `used`. With None it records inside of a pause."""
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

    def is_paused(self, *used: int) -> bool:
        """Whether the pass is paused in this thread; if so, notes that cells with these numbers are used."""
        noted = self.paused.get(threading.get_ident())
        if noted is None:
            return False
        noted.update(used)
        return True


def _on_cells(operation: Operation) -> tuple[Operator, Operator]:
    """An operator and its reflected version, with a fast path for cells of floats."""
    slopes = SLOPES[operation]

    def forward(self: TapeCell, other: Any) -> Any:
        a, tape, kind = self.primal, self.tape, type(other)
        if type(a) is float and not tape.paused:
            if kind is TapeCell:
                b = other.primal
                if other.tape is tape and type(b) is float:
                    y, p, q = slopes(a, b)
                    number = fresh()
                    tape.entries[number] = (self.number, p, other.number, q)
                    return TapeCell(tape, y, number, self.element or other.element)
            elif kind is float:
                y, p, _ = slopes(a, other)
                number = fresh()
                tape.entries[number] = (self.number, p)
                return TapeCell(tape, y, number, self.element)
            elif kind in _EXACT:
                found = forward(self, plain(other))
                return found if kind is int else as_element(found)
        if kind in _USUAL:
            found = lift(operation, (self, other))
            return as_element(found) if self.element or (kind is TapeCell and other.element) else found
        return _binary(operation, self, other)

    def reflected(self: TapeCell, other: Any) -> Any:
        a, tape = self.primal, self.tape
        if type(a) is float and not tape.paused:
            if type(other) is float:
                y, _, q = slopes(other, a)
                number = fresh()
                tape.entries[number] = (self.number, q)
                return TapeCell(tape, y, number, self.element)
            if type(other) in _EXACT:
                found = reflected(self, plain(other))
                return found if type(other) is int else as_element(found)
        if type(other) in _USUAL:
            found = lift(operation, (other, self))
            return as_element(found) if self.element else found
        return _binary(operation, other, self)

    return forward, reflected


def _on_cell(operation: Operation, of_numpy: bool = False) -> Callable[[Any], Any]:
    """The same for a unary operator, or with `of_numpy` for a unary ufunc."""
    slopes = SLOPES[operation]

    def method(self: TapeCell) -> Any:
        a, tape = self.primal, self.tape
        if type(a) is not float or tape.paused:
            found = lift(operation, (self,))
            return as_element(found) if of_numpy or self.element else found
        y, p = slopes(a)
        number = fresh()
        tape.entries[number] = (self.number, p)
        return TapeCell(tape, y, number, of_numpy or self.element)

    return method


class TapeCell(Number):
    """A value of a reverse pass; its number is the key of its entry on the tape."""

    __slots__ = ("element", "number", "primal", "tape")

    def __init__(self, tape: Tape, primal: Any, number: int, element: bool = False) -> None:
        self.tape, self.primal, self.number, self.element = tape, primal, number, element

    def as_element(self, element: bool = True) -> Any:
        return TapeCell(self.tape, self.primal, self.number, element)

    @property
    def tag(self) -> int:  # type: ignore[override]  # a property in the place of an attribute
        return self.tape.tag

    __add__, __radd__ = _on_cells(ops.add)
    __sub__, __rsub__ = _on_cells(ops.subtract)
    __mul__, __rmul__ = _on_cells(ops.multiply)
    __truediv__, __rtruediv__ = _on_cells(ops.divide)
    __pow__, __rpow__ = _on_cells(ops.power)
    __neg__, __abs__ = _on_cell(ops.negative), _on_cell(ops.absolute)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options:
            quick = _UFUNCS.get(ufunc)
            if quick is not None:
                return quick(self)
            operation = _OF_TWO.get(ufunc)
            if operation is not None:
                return as_element(lift(operation, inputs))
        return super().__array_ufunc__(ufunc, method, *inputs, **options)


_UFUNCS: dict[Any, Callable[[Any], Any]] = {
    operation.array: _on_cell(operation, of_numpy=True)
    for operation in SLOPES
    if len(operation.arguments) == 1 and isinstance(operation.array, np.ufunc)
}
"""The fast paths of unary ufuncs on cells."""

_OF_TWO: dict[Any, Operation] = {
    operation.array: operation
    for operation in ops.TABLE.values()
    if len(operation.arguments) == 2 and isinstance(operation.array, np.ufunc) and not operation.steps
}
"""The operations of binary ufuncs on cells; `eager/numpy/protocol.py` has all ufuncs."""


_USUAL = frozenset([float, TapeCell, np.ndarray])
"""The types of arguments beside cells that need no conversion."""


_OPERANDS = (Number, float, int, np.ndarray, np.generic, list, tuple, complex)


def _binary(operation: Operation, a: Any, b: Any) -> Any:
    for x in (a, b):
        if not isinstance(x, _OPERANDS) and not hasattr(type(x), "__apply_operation__") and not isinstance(x, Real):
            return NotImplemented
    found = lift(operation, (a, b))
    return as_element(found) if _is_element(a) or _is_element(b) else found


def _unary(operation: Operation, x: Any) -> Any:
    found = lift(operation, (x,))
    return as_element(found) if x.element else found


def _compared(operation: Operation, a: Any, b: Any) -> Any:
    if not isinstance(b, _OPERANDS) and not isinstance(b, Real):
        return NotImplemented
    found = apply(operation, real_part(a), real_part(plain(b)))
    return np.bool_(found) if type(found) is bool and (a.element or _is_element(b)) else found


def _is_element(x: Any) -> bool:
    return x.element if isinstance(x, Number) else isinstance(x, np.generic)


def bundle(tag: int, primal: Any, tangent: Any) -> Any:
    """`primal + tag * tangent`, with the youngest tag outermost; the primal alone where the tangent is None.

    A tangent that is zero by value is kept, since zero times an infinite partial derivative is NaN and not zero.

    >>> bundle(3, 2.0, None)
    2.0
    """
    if tangent is None:
        return primal
    if tag_of(primal) < tag and tag_of(tangent) < tag:
        return Bundle(tag, primal, tangent)
    return apply(ops.add, primal, apply(ops.multiply, Bundle(tag, 0.0, 1.0), tangent))


# -- operations --------------------------------------------------------------------------------------------------------


def _lift_bundle(operation: Operation, tag: int, arguments: list[Any]) -> Any:
    mine = [type(x) is Bundle and x.tag == tag for x in arguments]
    primals = [x.primal if own else x for own, x in zip(mine, arguments, strict=True)]
    total: Any = None
    if operation in SLOPES and all(type(x) is float for x in primals):
        y, *slopes = SLOPES[operation](*primals)
        for own, x, slope in zip(mine, arguments, slopes, strict=True):
            if own and not (slope == 0.0 and operation in CHOOSING):  # what was not selected is not connected
                part = x.tangent * slope if type(x.tangent) is float else apply(ops.multiply, x.tangent, slope)
                total = part if total is None else total + part
        return bundle(tag, y, total)
    y = owned(apply(operation, *primals))
    with quiet(y):
        total = tangent_of(operation, mine, arguments, primals, y)
    return bundle(tag, y, total)


def _lift_cell(operation: Operation, tag: int, arguments: list[Any]) -> Any:
    mine = [i for i, x in enumerate(arguments) if type(x) is TapeCell and x.tape.tag == tag]
    tape, numbers = arguments[mine[0]].tape, [arguments[i].number for i in mine]
    primals = [x.primal if i in mine else x for i, x in enumerate(arguments)]
    foreign = any(type(x) is _ndarray for i, x in enumerate(arguments) if i not in mine)
    return record(operation, tape, mine, numbers, primals, foreign)


LIFTS[Bundle] = _lift_bundle
LIFTS[TapeCell] = _lift_cell
