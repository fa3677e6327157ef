"""numpy's dispatch protocols for numbers with derivatives, and the attributes and methods of arrays.

numpy calls `__array_ufunc__` and `__array_function__` of a number, and the tables here answer: a ufunc is an operation,
another function has a handler made of operations. Functions of values only (`np.argmax`, `np.isnan`, steps such as
`np.floor`) get the numbers without derivatives. A function in no table raises an error that says what to write instead;
so does every conversion to a plain array or a float, which would lose the derivatives.

`Number` inherits the attributes and methods of an array from the class here. The handlers are in the files beside this
one, which enter them into the tables of `functions.py`. Options that a handler does not have raise, unless they change
nothing, such as `dtype=float`. It is long because an array has many attributes and methods.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ...ir.operation import Operation, apply
from ...ir.ops import arrays
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import shape_of
from ..kinds import LIFTS, as_element, plain, real_part
from ..perturbations import inside, place, running
from .functions import (
    FUNCTIONS,
    METHODS,
    OF_SCIPY,
    SUCCESSORS,
    Handler,
    bound,
    check_cast,
    check_options,
    item_of,
    name_of,
    of_dtype,
)
from .missing import WHY, no_attribute, unknown

# -- ufuncs ------------------------------------------------------------------------------------------------------------

UFUNCS: dict[Any, Operation] = {
    operation.array: operation for operation in ops.TABLE.values() if isinstance(operation.array, np.ufunc)
} | {np.fabs: ops.absolute, np.float_power: ops.power, np.matmul: arrays.matmul}
"""The operation of each ufunc."""


def _applied(operation: Operation, *arguments: Any) -> Any:
    return apply(operation, *map(plain, arguments))


def _modf(x: Any) -> tuple[Any, Any]:
    whole = np.trunc(real_part(x))
    endless = np.isinf(whole)
    return np.where(endless, np.copysign(0.0, whole), x - np.where(endless, 0.0, whole)), whole


COMPOSED: dict[Any, Handler] = {
    np.positive: lambda x: x,
    np.conjugate: lambda x: x,
    np.deg2rad: lambda x: x * (math.pi / 180.0),
    np.radians: lambda x: x * (math.pi / 180.0),
    np.rad2deg: lambda x: x * (180.0 / math.pi),
    np.degrees: lambda x: x * (180.0 / math.pi),
    np.logaddexp2: lambda a, b: np.logaddexp(a * math.log(2.0), b * math.log(2.0)) * (1.0 / math.log(2.0)),
    np.ldexp: lambda x, n: x * np.exp2(real_part(n)),
    np.divmod: lambda a, b: (np.floor_divide(real_part(a), real_part(b)), _applied(ops.modulo, a, b)),
    np.modf: _modf,
} | {
    getattr(np, name): handler
    for name, handler in (
        ("vecdot", lambda a, b: np.sum(_applied(ops.multiply, a, b), axis=-1)),
        ("matvec", lambda a, b: _applied(arrays.matmul, a, np.expand_dims(b, -1))[..., 0]),
        ("vecmat", lambda a, b: _applied(arrays.matmul, np.expand_dims(a, -2), b)[..., 0, :]),
    )
    if hasattr(np, name)  # new in numpy 2
}
"""Ufuncs that are composed of others."""

STEPS: frozenset[Any] = frozenset(
    {ufunc for ufunc, operation in UFUNCS.items() if operation.tangent == (None,) * len(operation.arguments)}
    | {np.isnan, np.isfinite, np.isinf, np.signbit, np.floor_divide, np.heaviside, np.spacing, np.logical_xor}
)
"""Ufuncs whose results are truth values or piecewise constant."""


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """`__array_ufunc__`: a ufunc, or a method of it, with a number among its arguments."""
    if options and (target := _mutable_target(options)) is not None:
        return target.__array_ufunc__(ufunc, method, *inputs, **options)
    if method == "__call__":
        if options:
            check_options(f"np.{ufunc.__name__}", options)
        operation = UFUNCS.get(ufunc)
        if operation is not None and ufunc not in STEPS:
            return as_element(self.__apply_operation__(operation, inputs))
        if ufunc in STEPS:
            return ufunc(*map(real_part, inputs))
        handler = COMPOSED.get(ufunc) or of_scipy(ufunc)
        if handler is not None:
            return _elements(handler(*inputs))
        raise unknown(f"np.{ufunc.__name__}")
    handler = METHODS[method]
    if ufunc in STEPS and method != "at":
        return getattr(ufunc, method)(*map(real_part, inputs), **{k: _stripped(v) for k, v in options.items()})
    options, others = _own_options(_options_of(handler), options)
    check_options(f"np.{ufunc.__name__}.{method}", others)
    return _elements(handler(ufunc, *inputs, **options))


def _mutable_target(options: dict[str, Any]) -> Any:
    """The array of `out=`, if numbers with derivatives can be written to it."""
    out = options.get("out")
    outs = out if isinstance(out, tuple) else (out,)
    return next((x for x in outs if type(x) in LIFTS and x.can_be_written), None)


def _elements(x: Any) -> Any:
    """Results with single numbers marked as numpy scalars."""
    if isinstance(x, tuple):
        return type(x)(*map(as_element, x)) if hasattr(x, "_fields") else tuple(map(as_element, x))
    return as_element(x)


def _own_options(names: frozenset[str], options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options with these names, and the others."""
    mine = {k: v for k, v in options.items() if k in names}
    return mine, {k: v for k, v in options.items() if k not in names}


@functools.cache
def _options_of(handler: Handler) -> frozenset[str]:
    return frozenset(inspect.signature(handler).parameters)


def of_scipy(ufunc: Any) -> Handler | None:
    """The handler of a ufunc of scipy.special, by its name."""
    return OF_SCIPY.get(ufunc.__name__)


# -- functions ---------------------------------------------------------------------------------------------------------

LOOKS: frozenset[Any] = frozenset(
    {
        np.all,
        np.allclose,
        np.any,
        np.argmax,
        np.argmin,
        np.argpartition,
        np.argsort,
        np.argwhere,
        np.around,
        np.array2string,
        np.array_equal,
        np.array_equiv,
        np.array_repr,
        np.array_str,
        np.can_cast,
        np.common_type,
        np.count_nonzero,
        np.digitize,
        np.empty_like,
        np.flatnonzero,
        np.isclose,
        np.iscomplex,
        np.iscomplexobj,
        np.isin,
        np.isneginf,
        np.isposinf,
        np.isreal,
        np.isrealobj,
        np.lexsort,
        np.may_share_memory,
        np.min_scalar_type,
        np.nanargmax,
        np.nanargmin,
        np.ndim,
        np.nonzero,
        np.ones_like,
        np.result_type,
        np.round,
        np.searchsorted,
        np.shape,
        np.shares_memory,
        np.size,
        np.zeros_like,
        np.linalg.matrix_rank,
    }
)
"""Functions of values only, whose results are truth values, positions, shapes or integers."""


BY_UFUNC: dict[Any, Any] = {
    np.sum: np.add,
    np.prod: np.multiply,
    np.max: np.maximum,
    np.amax: np.maximum,
    np.min: np.minimum,
    np.amin: np.minimum,
}
"""The ufunc whose `reduce` a function is: it has the options `where` and `initial`."""
CHOOSING = frozenset({"where", "initial"})


def with_axis(arguments: Sequence[Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options of a ufunc's `reduce` for those of a function, which is of all axes where none is given."""
    return options if len(arguments) > 1 else {"axis": None} | options


def array_function(self: Any, function: Any, types: Any, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
    """`__array_function__`: a function of numpy with a number among its arguments."""
    if options and (target := _mutable_target(options)) is not None:
        return target.__array_function__(function, types, arguments, options)
    handler = FUNCTIONS.get(function)
    if handler is not None:
        if function in BY_UFUNC and not CHOOSING.isdisjoint(options):
            return array_ufunc(self, BY_UFUNC[function], "reduce", *arguments, **with_axis(arguments, options))
        arguments, options = bound(function, handler, arguments, options)
        return _elements(handler(*arguments, **options))
    if function in LOOKS:
        return function(*_stripped(list(arguments)), **_stripped(options))
    if function in SUCCESSORS:
        return SUCCESSORS[function](*arguments, **options)
    raise unknown(name_of(function))


def _stripped(x: Any) -> Any:
    """Numbers without derivatives, in lists, tuples and dicts too."""
    if type(x) in LIFTS:
        return real_part(x)
    if isinstance(x, dict):
        return {key: _stripped(value) for key, value in x.items()}
    if type(x) in (list, tuple):
        return type(x)(_stripped(value) for value in x)
    return x


# -- numbers as arrays -------------------------------------------------------------------------------------------------


BY_FUNCTION = (
    *("sum", "prod", "max", "min", "mean", "var", "std", "ptp", "cumsum", "cumprod", "dot", "clip", "trace"),
    *("diagonal", "repeat", "take", "ravel", "squeeze", "swapaxes"),
)
"""The methods of arrays that are numpy's function with the same name."""


def _method(function: Any) -> Any:
    """The method of arrays that is a function of numpy."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        return self.__array_function__(function, (), (self, *arguments), options)

    return method


def _refused(what: str, advice: str) -> Any:
    def refuse(self: Any, *arguments: Any, **options: Any) -> Any:
        raise Error(f"{what} would lose the derivatives of a number; {advice}{place()}")

    return refuse


def _is_call_of(dtype: Any) -> bool:
    """Whether the user's line is a call such as `np.int64(x)`, which asks for the conversion explicitly."""
    named = re.match(r"(?:\w+\.)*(\w+)\(", running())
    kind = getattr(np, named[1], None) if named else None
    return isinstance(kind, type) and issubclass(kind, np.generic) and np.dtype(kind) == dtype


def _no_array() -> Any:
    """Raises the error for `__array__`, which functions on plain arrays and numpy's classes call."""
    text = running()
    named = re.match(r"(?:\w+\.)*(\w+)\(", text)
    advice = WHY.get("np.MaskedArray" if ".ma." in text else f"np.{named[1]}") if named else None
    if advice is None:
        advice = (
            "make arrays of numbers with dynagrad.numpy (import dynagrad.numpy as np), or np.stack([x, y]); functions "
            "that are not of numpy may be in dg.special"
        )
        advice = advice if inside() else _OTHER_THREAD
    what = "turning it into a plain array, which numpy wants here,"
    raise Error(f"{what} would lose the derivatives of a number; {advice}{place()}")


_OTHER_THREAD = (
    "no derivative is being taken in this thread, where dynagrad.numpy gives plain arrays: make arrays in the function "
    "that is differentiated and not in another thread, or join numbers with np.stack([x, y])"
)


def _to_float(self: Any) -> Any:
    """Raises the error for `__float__`, which functions of `math` call, and assignments to elements of plain arrays."""
    text = running()
    named = re.match(r"(?:\w+\.)*(\w+)\(", text)
    if named and hasattr(math, named[1]):
        advice = f"{text} is of floats alone: use dynagrad.math.{named[1]} (import dynagrad.math as math)"
        same = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(named[1], named[1])
        advice += f", or np.{same}" if hasattr(np, same) else ""
    elif not inside():
        advice = _OTHER_THREAD
    elif text.endswith("]"):
        advice = (
            f"the array in {text} = ... is a plain one: make it with dynagrad.numpy (import dynagrad.numpy as np), "
            "whose arrays can be written to, or use np.stack"
        )
    elif re.match(r"[a-zA-Z]*[\"'].*%", text):
        advice = 'a text shows its value by f"{x:.3f}"'
    else:
        advice = (
            "math.exp is np.exp, or dynagrad.math.exp; arrays of dynagrad.numpy can be written to; functions that are "
            "plain Python code may be in dg.special"
        )
    raise Error(f"turning it into a float would lose the derivatives of a number; {advice}{place()}")


_ASKS = frozenset({"is_integer", "hex"})
"""Methods of floats that look at the value alone, as a comparison does."""


def _asked(name: str) -> Any:
    """The property for a name of floats or arrays that is not defined here. One for all, `__getattr__`, would make
    every attribute slow in Python 3.11."""

    def ask(self: Any) -> Any:
        single, what = not shape_of(self), "an array" if shape_of(self) else "a number"
        if single and name in _ASKS:
            return getattr(float(real_part(self)), name)
        if not hasattr(np.float64 if single else np.ndarray, name):
            raise AttributeError(f"{what} with derivatives has no attribute {name!r}")
        function = getattr(np, name, None)
        known = callable(function) and (function in FUNCTIONS or function in LOOKS)
        raise no_attribute(f"{what} with derivatives", name, known, place())

    return property(ask)


class ArrayMethods:
    """The attributes and methods of arrays, for numbers."""

    __slots__ = ()

    shape: Any
    __apply_operation__: Callable[[Operation, Sequence[Any]], Any]
    __array_ufunc__ = array_ufunc
    __array_function__ = array_function

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    dtype = property(lambda self: np.dtype(np.float64))
    T = property(lambda self: FUNCTIONS[np.transpose](self))
    mT = property(lambda self: np.swapaxes(self, -1, -2))
    real = property(lambda self: self)
    imag = property(lambda self: FUNCTIONS[np.imag](self))
    flat = property(lambda self: FUNCTIONS[np.ravel](self))

    def compress(self, condition: Any, axis: Any = None) -> Any:
        return np.compress(condition, self, axis)

    def reshape(self, *shape: Any, order: str = "C", **options: Any) -> Any:
        check_options("reshape", options)
        return FUNCTIONS[np.reshape](self, shape[0] if len(shape) == 1 else shape, order)

    def transpose(self, *axes: Any) -> Any:
        if not axes or axes == (None,):
            return np.transpose(self)
        return np.transpose(self, axes[0] if isinstance(axes[0], tuple | list) else axes)

    def copy(self, order: str = "C") -> Any:
        """A copy that can be written to; a single real, which cannot, is its own."""
        return FUNCTIONS[np.copy](self, order) if self.shape else self

    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        check_options("astype", {"order": order, "subok": subok})
        check_cast(np.float64, dtype, casting)
        found = of_dtype("a number with derivatives", self, dtype)
        return self.copy() if copy and found is self else found

    def flatten(self, order: str = "C") -> Any:
        return FUNCTIONS[np.copy](FUNCTIONS[np.ravel](self, order))

    def conj(self) -> Any:
        return self

    conjugate = conj

    def argmax(self, *arguments: Any, **options: Any) -> Any:
        return np.argmax(real_part(self), *arguments, **options)

    def argmin(self, *arguments: Any, **options: Any) -> Any:
        return np.argmin(real_part(self), *arguments, **options)

    def argsort(self, *arguments: Any, **options: Any) -> Any:
        return np.argsort(real_part(self), *arguments, **options)

    def any(self, *arguments: Any, **options: Any) -> Any:
        return np.any(real_part(self), *arguments, **options)

    def all(self, *arguments: Any, **options: Any) -> Any:
        return np.all(real_part(self), *arguments, **options)

    def nonzero(self) -> Any:
        return np.nonzero(real_part(self))

    def round(self, decimals: int = 0) -> Any:
        return np.round(real_part(self), decimals)

    def __len__(self) -> int:
        shape = shape_of(self)
        if not shape:
            raise TypeError("a single real has no length")
        return shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not shape_of(self):
            raise TypeError("a single real cannot be iterated over")
        return (item_of(self, i) for i in range(shape_of(self)[0]))

    __getitem__ = item_of

    def __contains__(self, x: Any) -> bool:
        return bool(np.any(np.equal(real_part(self), real_part(x))))

    def __matmul__(self, other: Any) -> Any:
        return as_element(self.__apply_operation__(arrays.matmul, (self, other)))

    def __rmatmul__(self, other: Any) -> Any:
        return as_element(self.__apply_operation__(arrays.matmul, (other, self)))

    def __mod__(self, other: Any) -> Any:
        return self.__apply_operation__(ops.modulo, (self, other))

    def __rmod__(self, other: Any) -> Any:
        return self.__apply_operation__(ops.modulo, (other, self))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __floordiv__(self, other: Any) -> Any:
        return np.floor_divide(real_part(self), real_part(other))

    def __rfloordiv__(self, other: Any) -> Any:
        return np.floor_divide(real_part(other), real_part(self))

    def __format__(self, spec: str) -> str:
        return format(real_part(self), spec)

    def __round__(self, digits: int | None = None) -> Any:
        return round(real_part(self), digits)

    def __trunc__(self) -> int:
        whole: int = math.trunc(real_part(self))
        return whole

    def __floor__(self) -> int:
        whole: int = math.floor(real_part(self))
        return whole

    def __ceil__(self) -> int:
        whole: int = math.ceil(real_part(self))
        return whole

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is not None and np.dtype(dtype).kind in "biu" and _is_call_of(dtype):
            return np.asarray(of_dtype("a number with derivatives", self, dtype))
        frame = sys._getframe(1)
        callers = {f.f_code.co_name for f in (frame, frame.f_back) if f is not None}
        if any("vectorize" in name or name == "_get_ufunc_and_otypes" for name in callers):
            raise Error(
                "np.vectorize makes plain arrays of its arguments, which would lose the derivatives of a number; use "
                "the one of dynagrad.numpy (import dynagrad.numpy as np)"
            )
        _no_array()

    __float__ = _to_float
    __int__ = _refused("turning it into a whole number", "np.floor, np.round and comparisons look at its value")
    __index__ = _refused("using it as an index or a whole number", "np.argmax, np.searchsorted and the like give one")
    __complex__ = _refused("turning it into a complex number", "derivatives are of reals; keep two parts of your own")
    item = _refused("item()", "index it with x[()] or x[i]")
    tolist = _refused("tolist()", "list(x) has its parts, with their derivatives")
    sort = _refused("sort(), which works in place,", "write np.sort(x)")
    fill = _refused("fill(), which works in place,", "write np.full_like(x, value)")
    __setitem__ = _refused(
        "writing into it",
        "what was computed is not changed: write into a copy, y = x.copy(), into an array of dynagrad.numpy, or use "
        "np.where(mask, new, x)",
    )


for _name in BY_FUNCTION:
    setattr(ArrayMethods, _name, _method(getattr(np, _name)))
for _name in {*dir(np.float64), *dir(np.ndarray)}.difference(dir(ArrayMethods), ["shape"]):
    if not _name.startswith("_"):
        setattr(ArrayMethods, _name, _asked(_name))
