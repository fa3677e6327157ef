"""The functions of `dynagrad.numpy`: numpy's, which also create arrays of numbers with derivatives.

Outside of a differentiation pass each is numpy's own. Inside of one, lists and tuples with numbers that carry
derivatives are converted to arrays first, and new arrays of reals are mutable ones (`eager/mutation/arrays.py`). Most
functions are wrapped in that way (`of_numpy`); those whose originals would convert their arguments to plain arrays are
defined here. `ORIGINALS` maps each of them to numpy's function, which compiled functions know.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ..kinds import LIFTS, plain, shape_of
from ..mutation.arrays import MutableArray, array_of, writable
from ..numbers import Number
from ..numpy.functions import FUNCTIONS, bound, check_options, of_dtype
from ..perturbations import inside, place

ORIGINALS: dict[Any, Any] = {}
"""The original, in numpy or math, of each function of this package."""

MODULE = "dynagrad.numpy"


def holds_number(x: Any) -> bool:
    """Whether a value is a number with derivatives, or a nested list or tuple with one."""
    kind = type(x)
    if kind in LIFTS:
        return True
    return kind in (list, tuple) and any(map(holds_number, x))


def stands_for(original: Any, module: str = MODULE) -> Callable[[Callable[..., Any]], Any]:
    """A decorator for a replacement of a function of numpy, which is called only inside of a pass."""

    def enter(ours: Callable[..., Any]) -> Any:
        @functools.wraps(original)
        def called(*arguments: Any, **options: Any) -> Any:
            return (ours if inside() else original)(*arguments, **options)

        called.__module__ = module
        ORIGINALS[called] = original
        return called

    return enter


def of_numpy(original: Any, module: str = MODULE) -> Any:
    """The version in `dynagrad.numpy` of a name of numpy."""
    try:
        own = OWN.get(original)
    except TypeError:  # not hashable
        return original
    if own is not None:
        return own
    if isinstance(original, np.ufunc):
        return Ufunc(original)
    if not isinstance(original, types.FunctionType | types.BuiltinFunctionType | _DISPATCHER):
        return original
    arrays = original in _OF_ARRAYS

    def joined(x: Any) -> Any:
        return x if original is np.block else _joined(x, arrays)  # whose lists are rows

    def ours(*arguments: Any, **options: Any) -> Any:
        given = [joined(x) for x in arguments]
        found = original(*given, **{key: joined(x) for key, x in options.items()})
        if original is np.einsum or (original is np.meshgrid and options.get("copy", True) is False):
            return found  # which may be views
        if isinstance(found, tuple) and hasattr(found, "_fields"):
            return type(found)(*[_new(part, given) for part in found])
        return type(found)([_new(x, given) for x in found]) if type(found) in (list, tuple) else _new(found, given)

    return stands_for(original, module)(ours)


class Ufunc:
    """A ufunc of numpy that takes lists of numbers with derivatives, and gives mutable arrays. Its attributes, such as
    `reduce` and `at`, are the original's."""

    def __init__(self, original: Any) -> None:
        self.original = original
        self.__doc__, self.__name__, self.__module__ = original.__doc__, original.__name__, MODULE
        ORIGINALS[self] = original

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if not inside():
            return self.original(*arguments, **options)
        given = [_joined(x, False) for x in arguments]
        found = self.original(*given, **options)
        return tuple([_new(x, given) for x in found]) if type(found) is tuple else _new(found, given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.original, name)

    def __repr__(self) -> str:
        return repr(self.original)

    def __reduce__(self) -> Any:
        return self.__name__  # pickled by name, in its module


_DISPATCHER = type(np.sum)  # the type of numpy's functions with `__array_function__` dispatch
_OF_ARRAYS = frozenset(
    getattr(np, name)
    for name in (
        *("concatenate", "concat", "stack", "vstack", "row_stack", "hstack", "dstack", "column_stack", "select"),
        *("choose", "lexsort", "piecewise"),
    )
    if hasattr(np, name)
) | {np.linalg.multi_dot}
"""Functions with an argument that is a list of arrays."""


def _joined(x: Any, arrays: bool) -> Any:
    """A list with numbers that carry derivatives, as an array; with `arrays`, each element of the list."""
    if type(x) not in (list, tuple) or not holds_number(x):
        return x
    if arrays:
        return type(x)([_joined(part, False) for part in x])
    return _stacked(x)


def _new(x: Any, arguments: Sequence[Any]) -> Any:
    """A result as a mutable array, unless it is, or may share memory with, one of the arguments."""
    if type(x) is np.ndarray and any(isinstance(a, np.ndarray) and np.may_share_memory(a, x) for a in arguments):
        return x
    return x if any(x is a for a in arguments) else writable(x)


def _stacked(x: Any) -> Any:
    """Nested lists stacked to one number with derivatives."""
    if type(x) in LIFTS:
        return x.settled()
    if type(x) not in (list, tuple):
        return plain(x)
    parts = [_stacked(part) for part in x]
    shapes = {shape_of(part) for part in parts}
    if len(shapes) > 1:
        raise ValueError(
            "the parts of an array of numbers with derivatives differ in shape: "
            + ", ".join(map(str, sorted(shapes)))
            + place()
        )
    return FUNCTIONS[np.stack](parts) if parts else np.zeros(0)


def _typed(name: str, x: Any, dtype: Any) -> Any:
    """A number converted to a dtype, where every width of reals is float64."""
    return (
        x if dtype is None or np.dtype(dtype).kind == "f" else of_dtype(f"{name}: a number with derivatives", x, dtype)
    )


def _without_type(options: dict[str, Any]) -> dict[str, Any]:
    """Options with every real dtype replaced by float64."""
    wanted = options.get("dtype")
    narrow = wanted is not None and np.dtype(wanted).kind == "f" and np.dtype(wanted) != np.float64
    return options | {"dtype": np.float64} if narrow else options


def _known(name: str, options: dict[str, Any], *honoured: str) -> None:
    """Raises Error for options that would change what is made of numbers with derivatives, but for those honoured."""
    check_options(name, {key: x for key, x in options.items() if key not in honoured})


# -- creation ----------------------------------------------------------------------------------------------------------


@stands_for(np.array)
def array(object: Any, dtype: Any = None, *, ndmin: int = 0, **options: Any) -> Any:
    if type(object) is MutableArray and not options.get("copy", True) and ndmin <= len(shape_of(object)):
        return _typed("np.array", object, dtype)
    if not holds_number(object):
        return array_of(np.array(object, **_without_type({"dtype": dtype}), ndmin=ndmin, **options))
    _known("np.array", options, "copy")
    found = _typed("np.array", _stacked(object), dtype)
    short = ndmin - len(shape_of(found))
    return array_of(FUNCTIONS[np.reshape](found, (1,) * short + shape_of(found)) if short > 0 else found)


def _as_array(original: Any) -> Any:
    @stands_for(original)
    def ours(a: Any, dtype: Any = None, **options: Any) -> Any:
        if holds_number(a):
            _known(f"np.{original.__name__}", options, "copy")
        if type(a) in LIFTS:
            if type(a) is MutableArray and options.get("copy"):
                return _typed(f"np.{original.__name__}", a.copy(), dtype)
            if type(a) is MutableArray and original in _LAID_OUT:
                return _typed(f"np.{original.__name__}", a.viewed(original), dtype)
            found = _typed(f"np.{original.__name__}", a, dtype)
            return found if shape_of(a) else array_of(found)
        if isinstance(a, np.ndarray) or not holds_number(a):
            found = original(a, dtype, **options)
            return found if isinstance(a, np.ndarray) else writable(found)
        return array(a, dtype)

    return ours


_LAID_OUT = (np.ascontiguousarray, np.asfortranarray)  # which copy arrays of another memory layout
asarray = _as_array(np.asarray)
asanyarray = _as_array(np.asanyarray)
ascontiguousarray = _as_array(np.ascontiguousarray)
asfortranarray = _as_array(np.asfortranarray)


def _filled(original: Any) -> Any:
    @stands_for(original)
    def ours(like: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
        shape = shape_of(like) if original is np.full_like else like
        value = _stacked(fill_value) if holds_number(fill_value) else fill_value
        if not isinstance(value, Number):
            if original is np.full_like and isinstance(like, Number):
                like = np.zeros(shape)
            return writable(original(like, value, **_without_type({"dtype": dtype}), **options))
        _known(f"np.{original.__name__}", options, "shape")
        shape = shape if options.get("shape") is None else options["shape"]
        value = _typed(f"np.{original.__name__}", value, dtype)
        if not isinstance(value, Number):
            return np.full(shape, value)
        return array_of(FUNCTIONS[np.broadcast_to](value, shape))

    return ours


full, full_like = _filled(np.full), _filled(np.full_like)


@stands_for(np.fromiter)
def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1, **options: Any) -> Any:
    items = [x for _, x in zip(range(count), iter, strict=False)] if count >= 0 else list(iter)
    if holds_number(items):
        _known("np.fromiter", options)
        return array(items, dtype)
    return writable(np.fromiter(items, **_without_type({"dtype": dtype}), **options))


def _zeros(original: Any) -> Any:
    @stands_for(original)
    def ours(shape: Any, dtype: Any = float, **options: Any) -> Any:
        return writable(original(shape, **_without_type({"dtype": dtype}), **options))

    return ours


zeros, ones, empty = map(_zeros, (np.zeros, np.ones, np.empty))


class _AxisJoiner:
    """`np.r_` and `np.c_`, which join the parts of an index along an axis."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __getitem__(self, key: Any) -> Any:
        if inside() and holds_number(key):
            return writable(join_along(self.original, key))
        found = self.original[key]
        return writable(found) if inside() and type(found) is np.ndarray and found.base is None else found

    def __len__(self) -> int:
        return 0


def join_along(original: Any, key: Any) -> Any:
    """`np.r_[key]` or `np.c_[key]`, for keys with numbers that carry derivatives, or with nodes of a graph."""
    parts = list(key) if type(key) is tuple else [key]
    directive = parts.pop(0) if isinstance(parts[0], str) else "0,1,-1" if original is np.r_ else "-1,2,0"
    try:
        numbers = [int(n) for n in directive.split(",")]
    except ValueError:
        raise Error(
            f"np.{'r_' if original is np.r_ else 'c_'}: {directive!r} makes a matrix, which cannot hold derivatives; "
            f"use 'axis', 'axis,ndmin' or 'axis,ndmin,place'{place()}"
        ) from None
    axis, least, at = (*numbers, *(0, 1, -1)[len(numbers) :])[:3]
    arrays = [original[x] if isinstance(x, slice) else _stacked(x) for x in parts]
    return FUNCTIONS[np.concatenate]([_raised(x, least, at) for x in arrays], axis)


def _raised(x: Any, least: int, at: int) -> Any:
    """An array with at least so many axes; `at` is the position of its own axes among these, as in `np.r_`."""
    shape = shape_of(x)
    if not shape:  # a single number
        return FUNCTIONS[np.reshape](x, (1,) * max(least, 1))
    missing = least - len(shape)
    if missing <= 0:
        return x
    before = missing if at == -1 else at if at >= 0 else missing + at + 1
    before = min(max(before, 0), missing)
    return FUNCTIONS[np.reshape](x, (1,) * before + shape + (1,) * (missing - before))


r_, c_ = _AxisJoiner(np.r_), _AxisJoiner(np.c_)


class vectorize:
    """`np.vectorize`: maps a function of single numbers over the elements of arrays, with broadcasting.

    Results may carry derivatives. A function with several results gives a tuple of arrays. With a `signature` such as
    "(n),(n)->()", the function takes whole slices along the last axes of its arguments.
    """

    def __init__(self, pyfunc: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        self.original = np.vectorize(pyfunc, *arguments, **options)
        named = ("otypes", "doc", "excluded", "cache", "signature")  # which may be given by place
        self.pyfunc, self._options = pyfunc, dict(zip(named, arguments, strict=False)) | options
        self._excluded = set(self._options.get("excluded") or ())
        functools.update_wrapper(self, pyfunc, updated=())

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if not inside():
            return self.original(*arguments, **named)
        over: dict[Any, Any] = {i: x for i, x in enumerate(arguments) if i not in self._excluded}
        over |= {key: x for key, x in named.items() if key not in self._excluded}
        over = {key: _stacked(x) if holds_number(x) else np.asarray(x) for key, x in over.items()}
        if not over:
            return self.pyfunc(*arguments, **named)
        inner = dict(zip(over, self._inner(len(over)), strict=True))  # the number of axes of a slice, by argument
        outer = {key: shape_of(x)[: len(shape_of(x)) - inner[key]] for key, x in over.items()}
        shape = np.broadcast_shapes(*outer.values())
        wide = {key: np.broadcast_to(x, shape + shape_of(x)[len(outer[key]) :]) for key, x in over.items()}
        results = []
        for index in np.ndindex(shape):
            at = {key: x[index] if shape or not shape_of(x) else x for key, x in wide.items()}
            results.append(
                self.pyfunc(
                    *(at.get(i, x) for i, x in enumerate(arguments)),
                    **{key: at.get(key, x) for key, x in named.items()},
                )
            )
        if not results:
            return self.original(*map(_emptied, arguments), **named)
        if isinstance(results[0], tuple):
            return tuple(self._assembled(list(column), shape, k) for k, column in enumerate(zip(*results, strict=True)))
        return self._assembled(results, shape, 0)

    def _inner(self, count: int) -> list[int]:
        signature = self._options.get("signature")
        if signature is None:
            return [0] * count
        given = signature.replace(" ", "").split("->")[0].strip("()").split("),(")
        if len(given) != count:
            raise TypeError(f"wrong number of positional arguments: expected {len(given)}, got {count}")
        return [sum(map(bool, axes.split(","))) for axes in given]

    def _assembled(self, results: list[Any], shape: tuple[int, ...], k: int) -> Any:
        types = self.original.otypes
        if not holds_number(results):
            found = np.array(results, types[k] if types else None)
            found = found.reshape(shape + found.shape[1:])
            return writable(found) if found.shape else found[()]
        found = _stacked(results)
        return writable(FUNCTIONS[np.reshape](found, shape + shape_of(found)[1:]))


def _emptied(x: Any) -> Any:
    return np.zeros(shape_of(x)) if isinstance(x, Number) else x


def _handled(original: Any) -> Any:
    """A function whose handler is always called, since numbers may come from a function or an option."""

    @stands_for(original)
    def ours(*arguments: Any, **options: Any) -> Any:
        given = [_joined(x, original is np.piecewise) for x in arguments]
        taken, options = bound(original, FUNCTIONS[original], given, options)
        return writable(FUNCTIONS[original](*taken, **options))

    return ours


_HANDLED = tuple(map(_handled, (np.apply_along_axis, np.apply_over_axes, np.piecewise, np.interp)))


@stands_for(np.isscalar)
def isscalar(element: Any) -> bool:
    if type(element) in LIFTS:
        return type(element) is not MutableArray and not shape_of(element)
    return np.isscalar(element)


class _ArrayType(type):
    """The metaclass of `ndarray`, which has plain and mutable arrays as instances, and constructs plain ones."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, namespace, **options)
        plainly = tuple(np.ndarray if type(base) is cls else base for base in bases)
        return types.new_class(name, plainly, options, lambda body: body.update(namespace))

    def __instancecheck__(cls, instance: Any) -> bool:
        if type(instance) in LIFTS:
            return type(instance) is MutableArray or bool(shape_of(instance))
        return isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, np.ndarray | MutableArray)

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        found = np.ndarray(*arguments, **options)
        return writable(found) if inside() and found.base is None else found

    def __getattr__(cls, name: str) -> Any:
        return getattr(np.ndarray, name)

    def __getitem__(cls, parameters: Any) -> Any:
        return np.ndarray[parameters]

    def __eq__(cls, other: object) -> bool:
        return True if other is cls or other is np.ndarray else NotImplemented

    def __hash__(cls) -> int:
        return hash(np.ndarray)


class ndarray(metaclass=_ArrayType):
    """numpy's arrays and arrays with derivatives: `isinstance(x, np.ndarray)` holds for both."""

    __module__ = MODULE


OWN: dict[Any, Any] = {
    ORIGINALS[ours]: ours
    for ours in (
        *(array, asarray, asanyarray, ascontiguousarray, asfortranarray, full, full_like, fromiter),
        *(zeros, ones, empty, isscalar),
        *_HANDLED,
    )
} | {np.r_: r_, np.c_: c_, np.vectorize: vectorize, np.ndarray: ndarray}
"""The replacements that are defined here, by their originals."""
ORIGINALS |= {vectorize: np.vectorize, r_: np.r_, c_: np.c_, ndarray: np.ndarray}
