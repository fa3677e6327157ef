"""The mutable array: it can be written to inside of derivatives (`a[i] = x`), through views too.

A function of `dynagrad.numpy` makes it, from a plain array (`a = np.zeros(n)`) or from a number with derivatives
(`a = x.copy()`); writes replace its elements by numbers with derivatives; and every operation on it first takes its
current value, by `settled`, an immutable number. So operations, tapes and derivative rules know nothing of mutation.

A `Storage` keeps what was written (`records.py`), and is shared with views. Here is the array: how it is made, indexed
and written to, and numpy's functions and methods on it. numpy's functions that write, or make views, are in
`writing.py`. (JAX has references for this, `jax.new_ref`.)

It is long because it is one class, with each method that numpy's arrays have.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ...ir.operation import Operation
from ..kinds import LIFTS, plain, real_part, shape_of
from ..numbers import Number, lift
from ..numpy.arranging import is_descending
from ..numpy.functions import FUNCTIONS, check_cast, check_options, implements, item_of
from ..numpy.linalg import rearranged, strided
from ..numpy.missing import NoAttribute
from ..numpy.protocol import array_function, array_ufunc
from ..perturbations import place
from .records import Storage, View, copied, element_of, gathered
from .writing import ONE_BY_ONE, SPLITS, VIEWS, WRITES, each, into, pieces

_FLOAT = np.dtype(np.float64)


class MutableArray(Number):
    """An array of reals to which numbers with derivatives can be written.

    It is a `Number`, and operations on it use its current value.

    >>> import dynagrad.numpy as np
    >>> import dynagrad as dg
    >>> def f(x):
    ...     a = np.zeros(3)
    ...     a[0] = x
    ...     a[1:] += a[0] * x
    ...     return np.sum(a)
    >>> dg.grad(f)(3.0)
    13.0
    """

    __slots__ = ("_memory", "_settled", "_way")

    can_be_written = True
    tag = sys.maxsize  # the youngest, so that `lift` dispatches on it first, and settles it
    element = True

    def __init__(self, memory: Storage, way: View | None = None) -> None:
        self._memory, self._way = memory, way
        self._settled: tuple[int, Any] = (-1, None)

    # -- its current value

    def elements(self) -> Any:
        """The floats or records of this array, as a view of those in its storage."""
        whole = self._memory.content
        return whole if self._way is None else self._way.of(whole)

    def settled(self) -> Any:
        """The current value: a plain array, or a number with derivatives."""
        memory = self._memory
        if type(memory.content) is np.ndarray and memory.content.dtype is _FLOAT:
            return self.elements()
        version, found = self._settled
        if version != memory.version or found is None:
            found = gathered(self.elements(), memory) if memory.has_records else self.elements()
            self._settled = memory.version, found
        return found

    @property
    def primal(self) -> Any:
        mine = self.elements()
        return mine["value"] if self._memory.has_records else mine

    def held(self) -> Sequence[Any]:
        return (self.settled(),)

    def viewed(self, step: Callable[[Any], Any]) -> Any:
        """The result of a function of numpy that makes a view: a view of this array, or a copy where numpy copies."""
        memory = self._memory
        if memory.is_number:
            shape = shape_of(memory.content)
            laid_out = np.empty(shape) if self._way is None else self._way.layout(shape)
            if np.may_share_memory(step(laid_out), laid_out):
                return MutableArray(memory, View(self._way, step))
            return writable(step(self.settled()))
        mine = self.elements()
        found = step(mine)
        if not isinstance(found, np.ndarray):
            return element_of(found, memory)
        if np.may_share_memory(found, mine):
            return MutableArray(memory, View(self._way, step))
        return MutableArray(copied(found, memory))

    # -- reading and writing

    def __getitem__(self, index: Any) -> Any:
        if self._memory.is_number:
            found = item_of(self.settled(), index)
            if not _is_basic(index):
                return writable(found)
            parts = index if type(index) is tuple else (index,)
            if not shape_of(found) and not any(i is Ellipsis for i in parts):
                return found
            return MutableArray(self._memory, View(self._way, operator.itemgetter(index)))
        found = self.elements()[_plain_index(index)]
        if not isinstance(found, np.ndarray):  # with an ellipsis in the index, numpy gives an array without axes
            return element_of(found, self._memory)
        if _is_basic(index):
            return MutableArray(self._memory, View(self._way, operator.itemgetter(index)))
        return MutableArray(copied(found, self._memory))

    def __setitem__(self, index: Any, x: Any) -> None:
        memory, index = self._memory, _plain_index(index)
        memory.check()
        if isinstance(x, MutableArray) and x._memory is memory and not memory.is_number:
            self.elements()[index] = x.elements()  # numpy handles overlap
            memory.version += 1
            return
        x = plain(x)
        if not isinstance(x, Number):
            if memory.is_number:
                memory.keep_records()
            mine = self.elements()
            if memory.has_records:
                mine["value"][index] = x
                mine["number"][index] = 0
            else:
                mine[index] = x
            memory.version += 1
            return
        _check_fits(self, index, x)
        memory.keep_records()
        mine = self.elements()
        mine["value"][index] = real_part(x)
        mine["number"][index] = memory.enter(x)
        memory.version += 1
        memory.forget()

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(shape_of(self)[0]))

    def __pos__(self) -> Any:
        return self.copy()

    def _in_place(self, made: Any) -> Any:
        self[...] = made
        return self

    def __iadd__(self, other: Any) -> Any:
        return self._in_place(self.settled() + plain(other))

    def __isub__(self, other: Any) -> Any:
        return self._in_place(self.settled() - plain(other))

    def __imul__(self, other: Any) -> Any:
        return self._in_place(self.settled() * plain(other))

    def __itruediv__(self, other: Any) -> Any:
        return self._in_place(self.settled() / plain(other))

    def __ipow__(self, other: Any) -> Any:
        return self._in_place(self.settled() ** plain(other))

    def __imod__(self, other: Any) -> Any:
        return self._in_place(self.settled() % plain(other))

    def __ifloordiv__(self, other: Any) -> Any:
        return self._in_place(self.settled() // plain(other))

    def __imatmul__(self, other: Any) -> Any:
        return self._in_place(self.settled() @ plain(other))

    # -- numpy

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "at":
            return each(ufunc, *inputs)
        out = options.pop("out", None)
        settled = [x.settled() if type(x) is MutableArray else x for x in inputs]
        youngest = next((x for x in settled if isinstance(x, Number)), None)
        if youngest is None:
            found = getattr(ufunc, method)(*settled, **options)
        else:
            found = array_ufunc(youngest, ufunc, method, *settled, **options)
        if out is None:
            return _all_writable(found)
        return into(f"np.{ufunc.__name__}", out, found)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function in ONE_BY_ONE and len(arguments) > 1:
            return tuple(function(x) for x in arguments)
        if function in VIEWS and arguments and type(arguments[0]) is MutableArray:
            first, *rest = arguments
            rest, options = _settled(rest), _settled(options)
            if function in SPLITS:
                return pieces(first, function, rest, options)
            return first.viewed(lambda whole: function(whole, *rest, **options))
        if function in WRITES and arguments and type(arguments[0]) is MutableArray:
            return WRITES[function](arguments[0], *_settled(list(arguments[1:])), **_settled(dict(options)))
        if function is np.einsum and (one := rearranged(arguments)) is not None and type(one[0]) is MutableArray:
            x, names, output = one
            if any(len({n for n, c in zip(shape_of(x), names, strict=True) if c == letter}) > 1 for letter in output):
                raise ValueError(f"einsum: axes with the same letter differ in length in {names!r}")
            return x.viewed(
                lambda whole: (
                    strided(whole, names, output)
                    if type(whole) is np.ndarray
                    else np.einsum(f"{names}->{output}", whole)
                )
            )
        if function is np.meshgrid and options.get("copy", True) is False:
            return list(FUNCTIONS[function](*arguments, **options))
        if function is np.broadcast_arrays:
            shape = np.broadcast_shapes(*map(shape_of, arguments))
            return tuple(np.broadcast_to(x, shape) for x in arguments)
        if function is getattr(np, "astype", None) and type(arguments[0]) is MutableArray:
            return arguments[0].astype(*arguments[1:], **options)
        options = dict(options)
        out = options.pop("out", None)
        if function is np.nan_to_num and not (arguments[1] if len(arguments) > 1 else options.get("copy", True)):
            out = arguments[0]
        given, options = _settled(list(arguments)), _settled(options)
        with_numbers = next((x for x in _within((given, options)) if isinstance(x, Number)), None)
        if with_numbers is None:
            found = function(*given, **options)
        else:
            found = array_function(with_numbers, function, types, given, options)
        if out is not None:
            return into(f"np.{function.__name__}", out, found)
        same = next((x for x, now in zip(arguments, given, strict=True) if found is now), None)
        if type(same) is MutableArray:
            return same
        return _all_writable(found)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        now = self.settled()
        if isinstance(now, Number):
            return super().__array__(dtype, copy)
        return np.array(now, dtype=dtype) if copy or copy is None else np.asarray(now, dtype=dtype)

    def _only_element(self) -> Any:
        """The value of an array with one element, for conversions to Python's numbers."""
        now = self.settled()
        return now.item() if type(now) is np.ndarray else now

    def __float__(self) -> float:
        return float(self._only_element())

    def __int__(self) -> int:
        return int(self._only_element())

    def __bool__(self) -> bool:
        return bool(np.asarray(self.primal if not self._memory.is_number else real_part(self.settled())))

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        now = self.settled()
        return now.__reduce_ex__(protocol)

    @property
    def T(self) -> Any:
        return self.viewed(np.transpose)

    @property
    def mT(self) -> Any:
        return self.viewed(lambda whole: np.swapaxes(whole, -1, -2))

    @property
    def flat(self) -> Any:
        return _Flat(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        _Flat(self)[:] = values

    def reshape(self, *shape: Any, order: Any = "C", **options: Any) -> Any:
        check_options("reshape", options)
        wanted = shape[0] if len(shape) == 1 else shape
        return self.viewed(lambda whole: np.reshape(whole, wanted, order=order))

    def transpose(self, *axes: Any) -> Any:
        order = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)) else axes or None
        return self.viewed(lambda whole: np.transpose(whole, order))

    def ravel(self, order: Any = "C") -> Any:
        return self.viewed(lambda whole: np.ravel(whole, order))

    def squeeze(self, axis: Any = None) -> Any:
        return self.viewed(lambda whole: np.squeeze(whole, axis))

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return self.viewed(lambda whole: np.swapaxes(whole, axis1, axis2))

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        return np.round(self, decimals, out)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        return np.diagonal(self, offset, axis1, axis2)

    def flatten(self, order: str = "C") -> Any:
        return self.copy().ravel(order)

    def copy(self, order: str = "C") -> Any:
        if self._memory.is_number:
            return writable(self.settled())
        return MutableArray(copied(self.elements().copy(), self._memory))

    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        check_options("astype", {"order": order, "subok": subok})
        check_cast(_FLOAT, dtype, casting)
        if np.dtype(dtype) == _FLOAT:
            return self.copy() if copy else self
        now = self.settled()
        return now.astype(dtype, order, casting, subok, copy)

    def fill(self, value: Any) -> None:
        self[...] = value

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        WRITES[np.put](self, indices, values, mode)

    def sort(
        self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: Any = None
    ) -> None:
        """Stably, whatever is asked for."""
        self._memory.check()
        falls = is_descending(kind=kind, order=order, stable=stable, descending=descending)
        places = np.argsort(-self.primal if falls else self.primal, axis=axis, kind="stable")
        if self._memory.is_number:
            self._memory.keep_records()
        mine = self.elements()
        mine[...] = np.take_along_axis(mine, places, axis)
        self._memory.version += 1

    def partition(self, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None) -> None:
        """Sorted, which is a partition at every position."""
        np.argpartition(self.primal, kth, axis, kind, order)  # raises where numpy does
        self.sort(axis)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"arrays have no attribute {name!r}")
        raise NoAttribute(
            f"an array of dynagrad.numpy has no {name} inside of a derivative, where it is not an array of numpy; "
            f"np.asarray(x) is one, if it holds plain numbers{place()}"
        )

    def item(self, *index: Any) -> Any:
        now = self.settled()
        return now.item(*index)

    def tolist(self) -> Any:
        now = self.settled()
        return now.tolist()


class _Flat:
    """`x.flat`: the elements in row-major order, to be read, iterated over and written."""

    def __init__(self, of: MutableArray) -> None:
        self.of = of

    def _places(self, index: Any) -> Any:
        shape = shape_of(self.of)
        return np.unravel_index(np.arange(math.prod(shape))[index], shape)

    def __len__(self) -> int:
        return math.prod(shape_of(self.of))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return self.of[self._places(index)]

    def __setitem__(self, index: Any, x: Any) -> None:
        self.of[self._places(index)] = x


def _lift_mutable(operation: Operation, tag: int, arguments: list[Any]) -> Any:
    return writable(lift(operation, _settled(arguments)))


LIFTS[MutableArray] = _lift_mutable


@implements("copy")
def _copied_array(a: Any, order: str = "C") -> Any:
    """`np.copy`, which makes an array of no dimension from a single number."""
    return a.copy(order) if type(a) is MutableArray else array_of(a)


# -- making and reading ------------------------------------------------------------------------------------------------


def writable(x: Any) -> Any:
    """A mutable array from an array of reals, which must be private, or from a number with derivatives that is an
    array. Other values are returned unchanged.

    >>> writable(np.zeros(2)), writable(3.0)
    (<number with derivatives of array([0., 0.])>, 3.0)
    """
    if type(x) is np.ndarray:
        if x.dtype is not _FLOAT:
            return x
        return MutableArray(Storage(x if x.flags.writeable else x.copy()))
    if type(x) in LIFTS and type(x) is not MutableArray and shape_of(x):
        return MutableArray(Storage(x))
    return x


def array_of(x: Any) -> Any:
    """`writable`, which also makes an array of no dimension from a single real."""
    if type(x) is float or type(x) is np.float64:
        return MutableArray(Storage(np.array(x)))
    if type(x) in LIFTS and type(x) is not MutableArray and not shape_of(x):
        return MutableArray(Storage(x))
    return writable(x)


def _all_writable(x: Any) -> Any:
    return type(x)([writable(part) for part in x]) if type(x) in (list, tuple) else writable(x)


def _settled(x: Any) -> Any:
    """The current values of mutable arrays, in lists, tuples and dicts too."""
    kind = type(x)
    if kind is MutableArray:
        return x.settled()
    if kind is dict:
        return {key: _settled(value) for key, value in x.items()}
    return kind([_settled(part) for part in x]) if kind in (list, tuple) else x


def _within(x: Any) -> Iterator[Any]:
    """The elements of nested lists, tuples and dicts."""
    if type(x) is dict:
        x = list(x.values())
    if type(x) in (list, tuple):
        for part in x:
            yield from _within(part)
    else:
        yield x


# -- indices -----------------------------------------------------------------------------------------------------------


def _is_basic(index: Any) -> bool:
    """Whether an index is basic, so that numpy makes a view."""
    parts = index if type(index) is tuple else (index,)
    return all(
        i is None or i is Ellipsis or type(i) is slice or (isinstance(i, int | np.integer) and not isinstance(i, bool))
        for i in parts
    )


def _plain_index(index: Any) -> Any:
    parts = index if type(index) is tuple else (index,)
    if any(isinstance(i, Number) for i in parts):
        raise Error(
            "an index is a whole number, and this one carries derivatives; use np.argmax and the like to make one"
            + place()
        )
    return index


def _check_fits(x: MutableArray, index: Any, value: Any) -> None:
    """Raises numpy's ValueError where a value does not broadcast to the index, before anything is written."""
    shape = shape_of(value)
    wanted = np.broadcast_to(np.zeros((), dtype=bool), shape_of(x))[index].shape
    try:
        small = shape
        while len(small) > len(wanted) and small[0] == 1:
            small = small[1:]
        fits = np.broadcast_shapes(small, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"could not broadcast input array from shape {shape} into shape {wanted}")
