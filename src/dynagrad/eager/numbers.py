"""Numbers that carry derivatives: dual numbers (bundles) for forward mode, tape cells for reverse mode; they nest.

A differentiation pass makes a tag, wraps its inputs, and calls the function; operations on these numbers give such
numbers (`dispatch.py`); at the end the pass extracts the part of the result along its tag (`splitting.py`). Tags tell
the perturbations of nested passes apart. They are serial numbers, never reused, and the numbers inside a number have
smaller tags, so the outermost tag is the youngest. Many passes may be open at once, and a closure may keep one open
after its call, so a tag may be beneath younger ones. (Radul 2011, "Automatic Differentiation in DVL"; Manzyuk et al.
2019, "Perturbation confusion in forward automatic differentiation of higher-order functions".)

Cells do not point at cells: what a cell was computed from is an entry of its pass's `Tape`, under the cell's number, so
a chain of a million operations is a flat list. `tape.py` says what entries mean. Here are the kinds of numbers and
their operators, with a fast path for floats; functions, structures and the public verbs are in other files.

It is long because both kinds of numbers answer to all of Python's operators.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np

from ..errors import Error, shown
from ..ir.operation import Operation, apply, as_number
from ..ir.ops import scalars as ops
from .floats import SLOPES
from .perturbations import place

fresh: Callable[[], int] = itertools.count(1).__next__
"""The next serial number, for tags and for cells, so that their ages compare. Thread-safe."""

LIFTS: dict[type, Callable[[Operation, int, list[Any]], Any]] = {}
"""For each kind of numbers, the rule that applies an operation whose youngest argument is of this kind; see
`dispatch.py`."""


class Number:
    """The base class of numbers with derivatives: Python's operators, and numpy's protocols."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]  # == compares values

    can_be_written = False  # True for the arrays of `eager/mutation/arrays.py`
    tag: int
    primal: Any
    element: bool  # whether numpy would have a numpy scalar here, such as an element of an array
    __apply_operation__: Callable[[Operation, Sequence[Any]], Any]  # `lift` of `dispatch.py`
    __array_ufunc__: Callable[..., Any]  # of `eager/numpy/protocol.py`
    __array_function__: Callable[..., Any]

    def held(self) -> Sequence[Any]:
        """The numbers inside this one: its primal, and derivatives that it stores."""
        return (self.primal,)

    def settled(self) -> Any:
        """The current value of an array that can be written to (`eager/mutation/arrays.py`); others are themselves."""
        return self

    def as_element(self, element: bool = True) -> Any:
        """The same number, marked as a numpy scalar, whose comparisons give numpy's truth values; or not so marked."""
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
            found = Number.__apply_operation__(operation, (self, other))
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
            found = Number.__apply_operation__(operation, (other, self))
            return as_element(found) if self.element else found
        return _binary(operation, other, self)

    return forward, reflected


def _on_cell(operation: Operation, of_numpy: bool = False) -> Callable[[Any], Any]:
    """The same for a unary operator, or with `of_numpy` for a unary ufunc."""
    slopes = SLOPES[operation]

    def method(self: TapeCell) -> Any:
        a, tape = self.primal, self.tape
        if type(a) is not float or tape.paused:
            found = Number.__apply_operation__(operation, (self,))
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
                return as_element(Number.__apply_operation__(operation, inputs))
        return Number.__array_ufunc__(self, ufunc, method, *inputs, **options)


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


_ndarray = np.ndarray


# -- numbers and plain values ------------------------------------------------------------------------------------------


def tag_of(x: Any) -> int:
    """The outermost tag of a number, which is its youngest; 0 for a plain value."""
    return x.tag if type(x) in LIFTS else 0


def real_part(x: Any) -> Any:
    """The value of a number, without any derivatives."""
    while type(x) in LIFTS:
        x = x.primal
    return x


def shape_of(x: Any) -> tuple[int, ...]:
    """`np.shape`, for numbers with derivatives too.

    >>> shape_of(2.0), shape_of(np.ones((2, 3)))
    ((), (2, 3))
    """
    kind = type(x)
    while kind in LIFTS:
        x = x.primal
        kind = type(x)
    return x.shape if kind is _ndarray else () if kind is float else np.shape(x)


def zero_like(x: Any) -> Any:
    """Zeros in the shape of a number.

    >>> zero_like(3.0), zero_like(np.ones(2))
    (0.0, array([0., 0.]))
    """
    shape = shape_of(x)
    return np.zeros(shape) if shape else 0.0


_FLOAT = np.dtype(np.float64)


def plain(x: Any) -> Any:
    """An argument of an operation, normalised: a float, an array of floats, a number with derivatives or a truth value.

    Arrays are not copied here, but where an operation keeps them; see `copies.py`.
    """
    kind = type(x)
    if kind is float or (kind is np.ndarray and x.ndim and x.dtype is _FLOAT):
        return x
    if kind in LIFTS:
        return x.settled()
    if kind is int:
        return as_number(x)
    if isinstance(x, np.ndarray):
        return _plain_array(x)
    if kind is np.float64:
        return float(x)
    if isinstance(x, np.generic):
        if kind is np.bool_:
            return x.item()
        if isinstance(x, np.number) and not isinstance(x, np.complexfloating):
            return float(x)
    if isinstance(x, complex | np.complexfloating):
        raise is_complex(repr(x))
    if isinstance(x, list | tuple):
        rows = [plain(part) if isinstance(part, list | tuple) else part for part in x]
        if any(isinstance(part, Number) for part in rows):
            return np.stack(rows)
        try:
            return np.asarray(x, np.float64)
        except (TypeError, ValueError):
            if _has_complex(x):
                raise is_complex(shown(x)) from None
            raise Error(f"an array of reals is needed, and this is {shown(x)}") from None
    if isinstance(x, Real):  # fractions
        return as_number(x)
    return x


def _has_complex(x: Any) -> bool:
    try:
        return bool(np.asarray(x).dtype.kind == "c")
    except ValueError:  # its parts differ in shape
        return False


def _plain_array(x: Any) -> Any:
    if type(x) is not np.ndarray:
        if type(x) not in _SAME:
            raise Error(
                f"an array of class {type(x).__name__}, which computes by rules of its own, cannot be used together "
                "with derivatives; convert it with np.asarray(x), or with x.filled(0.0) if it is masked" + place()
            )
        x = np.asarray(x)
    if not x.ndim and x.dtype.kind in "biuf":
        return plain(x[()])
    if x.dtype == np.float64 or x.dtype == np.bool_:
        return x
    if x.dtype.kind in "iuf":
        return x.astype(np.float64)
    if x.dtype.kind == "c":
        raise is_complex(f"an array of {x.dtype}")
    if x.dtype.kind == "O":
        raise Error(
            f"an array of objects holds numbers with derivatives; stack them with np.stack or np.array first{place()}"
        )
    raise Error(f"an array of {x.dtype} has no numbers to compute with{place()}")


_SAME = frozenset([np.memmap])  # subclasses of arrays that compute as arrays do


def is_complex(what: str) -> Error:
    """The error for complex numbers."""
    return Error(f"derivatives are of reals, and {what[:60]} is complex; keep its two parts as reals{place()}")


_OPERANDS = (Number, float, int, np.ndarray, np.generic, list, tuple, complex)


def _binary(operation: Operation, a: Any, b: Any) -> Any:
    for x in (a, b):
        if not isinstance(x, _OPERANDS) and not hasattr(type(x), "__apply_operation__") and not isinstance(x, Real):
            return NotImplemented
    found = Number.__apply_operation__(operation, (a, b))
    return as_element(found) if _is_element(a) or _is_element(b) else found


def _unary(operation: Operation, x: Any) -> Any:
    found = Number.__apply_operation__(operation, (x,))
    return as_element(found) if x.element else found


def _compared(operation: Operation, a: Any, b: Any) -> Any:
    if not isinstance(b, _OPERANDS) and not isinstance(b, Real):
        return NotImplemented
    found = apply(operation, real_part(a), real_part(plain(b)))
    return np.bool_(found) if type(found) is bool and (a.element or _is_element(b)) else found


def _is_element(x: Any) -> bool:
    return x.element if isinstance(x, Number) else isinstance(x, np.generic)


def as_element(x: Any) -> Any:
    """A result of numpy, whose single numbers are marked as numpy scalars; see `Number.element`."""
    return x.as_element() if type(x) in LIFTS and not x.element and not shape_of(x) else x


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
