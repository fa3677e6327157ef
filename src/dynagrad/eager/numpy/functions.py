"""The table of handlers for numpy's functions on numbers with derivatives, and how handlers read their arguments.

A handler has the parameters of the numpy function of its name, gets numbers, arrays, floats or lists, and is made of
operations. The handlers are in the files beside this one, by kind. `protocol.py` calls them. Options that a handler
does not take are rejected here, where its parameters are read.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...errors import Error, counted, shown
from ...ir.operation import apply
from ...ir.ops import arrays
from ...ir.ops.arrays import shape_of
from ..kinds import LIFTS, as_element, plain, real_part
from ..perturbations import place

Handler = Callable[..., Any]

FUNCTIONS: dict[Any, Handler] = {}
"""Handlers by numpy function."""
METHODS: dict[str, Handler] = {}
"""`(ufunc, *arguments)` for each method of ufuncs, such as `reduce`."""
OF_SCIPY: dict[str, Handler] = {}
"""Handlers of ufuncs of scipy.special, by name."""
SUCCESSORS: dict[Any, Any] = {old: new for old, new in ((getattr(np, "fix", None), np.trunc),) if old is not None}
"""Functions that newer versions of numpy deprecate, and what does the same, which is called in their place."""


def implements(*names: str) -> Callable[[Handler], Handler]:
    """Enters a handler for numpy's functions of these names, as far as this version of numpy has them."""

    def enter(handler: Handler) -> Handler:
        for name in names:
            try:
                function = operator.attrgetter(name)(np)
            except AttributeError:
                continue
            FUNCTIONS[function] = handler
        return handler

    return enter


# -- options -----------------------------------------------------------------------------------------------------------


def bound(
    function: Any, handler: Handler, arguments: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a call of numpy's function, as its handler takes them.

    What may be given, in which place and under which name, says the signature of the function as it is installed, which
    may be newer than the handler. Raises TypeError for what it does not take, and Error for what the handler does not
    know, unless it changes nothing: no argument is dropped.
    """
    takes = _signature(handler)
    assert takes is not None
    if not options and (takes.rest or len(arguments) <= len(takes.places)):
        return arguments, {}
    given, named, known = list(arguments), dict(options), _signature(function)
    if known is not None and not known.rest:
        for name in known.places[len(given) :]:
            if name not in named or name not in known.needed:
                break
            given.append(named.pop(name))
        if len(given) > len(known.places):
            raise TypeError(
                f"{name_of(function)}() takes {counted(len(known.places), 'argument')}, and not {len(given)}"
            )
        if not takes.rest:
            for name, value in zip(known.places[len(takes.places) :], given[len(takes.places) :], strict=False):
                if name in named:
                    raise TypeError(f"{name_of(function)}() is given {name} twice")
                named[name] = value
            given = given[: len(takes.places)]
    if known is not None and not known.others:
        for name in named:
            if name not in known.defaults and name not in known.needed:
                raise TypeError(f"{name_of(function)}() got an unexpected keyword argument {name!r}")
    if not takes.others:
        others = {name: value for name, value in named.items() if name not in takes.names}
        check_options(name_of(function), others, {} if known is None else known.defaults)
        named = {name: value for name, value in named.items() if name in takes.names}
    return given, {name: value for name, value in named.items() if value is not np._NoValue}


def out_by_name(
    function: Any, arguments: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]]:
    """The arguments of a call of numpy's function or ufunc, with `out` by its name, and all that is given after it."""
    if isinstance(function, np.ufunc):
        places: tuple[str, ...] = ("out",)
        start = function.nin
        if len(arguments) > start and function.nout > 1:
            return arguments[:start], {"out": tuple(arguments[start:]), **options}
    else:
        known = _signature(function)
        places = () if known is None or known.rest else known.places
        start = places.index("out") if "out" in places else len(arguments)
        places = places[start:]
    return arguments[:start], dict(zip(places, arguments[start:], strict=False)) | dict(options)


def dtype_given(function: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The `dtype` of a call of numpy's function, by place or by name; None where none is given.

    >>> dtype_given(np.sum, [[1, 2], 0, float], {})
    <class 'float'>
    """
    known = None if isinstance(function, np.ufunc) else _signature(function)
    if known is not None and not known.rest and "dtype" in known.places[: len(arguments)]:
        return arguments[known.places.index("dtype")]
    return options.get("dtype")


class _Takes(NamedTuple):
    """What a function takes."""

    names: frozenset[str]
    places: tuple[str, ...]  # those that may be given by place
    needed: frozenset[str]
    defaults: Mapping[str, Any]
    rest: bool  # whether it takes any number of arguments
    others: bool  # and under any name


@functools.cache
def _signature(function: Any) -> _Takes | None:
    """What a function takes; None for those of numpy that do not say it."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return None
    rest, others = (
        any(p.kind is kind for p in parameters.values())
        for kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    )
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    single = {n: p for n, p in parameters.items() if p.kind in (*by_place, inspect.Parameter.KEYWORD_ONLY)}
    return _Takes(
        frozenset(single),
        tuple(name for name, p in single.items() if p.kind in by_place),
        frozenset(name for name, p in single.items() if p.default is p.empty),
        {name: p.default for name, p in single.items() if p.default is not p.empty},
        rest,
        others,
    )


_ANY_MEMORY: dict[str, tuple[Any, ...]] = {
    "order": ("K", "A", "C", "F"),
    "casting": ("no", "equiv", "safe", "same_kind", "unsafe"),
    "subok": (True, False),
    "device": ("cpu",),
    "where": (True,),
}
"""Options of which these values change no value here: numbers have one type, and no layout in memory."""


def check_options(name: str, options: Mapping[str, Any], defaults: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Raises Error for options that would change the result; those of the function's own defaults do not."""
    for option, value in options.items():
        if option == "out" and any(x is not None for x in (value if isinstance(value, tuple) else (value,))):
            raise Error(
                f"{name}: out= and in-place operators such as `a += x` would write a number with derivatives into an "
                "array; write `a = a + x`, or make the array with dynagrad.numpy"
            )
        if value is np._NoValue or option == "out" or (value is None and defaults.get(option) is None):
            continue
        usual = (*_ANY_MEMORY.get(option, ()), *([defaults[option]] if option in defaults else []))
        if any(type(value) is type(one) and value == one for one in usual):
            continue
        if option == "dtype" and not _is_dynamic(value) and np.dtype(value) == np.float64:
            continue
        raise Error(
            f"{name} does not take {option}={shown(value)} with numbers that carry derivatives; "
            + _WITHOUT.get(option, "leave it out")
            + place()
        )


_WITHOUT = {
    "dtype": "derivatives are of float64",
    "where": "choose with np.where, or leave it out",
    "casting": "derivatives are of float64, which nothing is cast to",
    "returned": "leave it out, and compute the sum of the weights with np.sum",
    "prepend": "join with np.concatenate before, and leave it out",
    "append": "join with np.concatenate before, and leave it out",
    "mean": "leave it out, or write np.mean((x - mean) ** 2)",
    "keepdims": "leave it out, and use np.expand_dims",
    "initial": "leave it out, and join it to the result",
}
"""What to do instead of an option."""


def check_cast(before: Any, after: Any, casting: Any) -> None:
    """Raises TypeError for a conversion that numpy does not make under this rule of casting."""
    if not np.can_cast(before, after, casting):
        raise TypeError(f"cannot cast from {np.dtype(before)} to {np.dtype(after)} according to the rule {casting!r}")


def _is_dynamic(x: Any) -> bool:
    return hasattr(type(x), "__apply_operation__")


def name_of(function: Any) -> str:
    """The name that users write for a function of numpy."""
    module = getattr(function, "__module__", None) or ""
    where = next((part for part in ("linalg", "fft", "emath", "stride_tricks") if part in module), "")
    where = {"stride_tricks": "lib.stride_tricks"}.get(where, where)
    if not where and getattr(np.emath, function.__name__, None) is function:
        where = "emath"
    return ".".join(("np", where, function.__name__) if where else ("np", function.__name__))


# -- arguments ---------------------------------------------------------------------------------------------------------


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as non-negative numbers; None is all of them."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple | list):
        return (axis_of(axis, ndim),)
    found = tuple(axis_of(a, ndim) for a in axis)
    if len(set(found)) < len(found):
        raise ValueError("an axis is named twice")
    return found


def axis_of(axis: Any, ndim: int) -> int:
    """An axis as a non-negative number."""
    i = operator.index(axis)
    if not -ndim <= i < ndim:
        raise np.exceptions.AxisError(i, ndim)
    return i % ndim


def whole(name: str, what: str, x: Any) -> int:
    """A count or a position as a Python integer, which must be known.

    >>> whole("np.linspace", "num", np.int64(3))
    3
    """
    if hasattr(type(x), "__apply_operation__"):
        known = "no number with derivatives" if type(x) in LIFTS else "known when the function is compiled"
        raise Error(f"{name}: {what} is a whole number, and should be {known}{place()}")
    return operator.index(x)


def is_known(x: Any) -> bool:
    """Whether a value is a plain number or array, and not a node of a graph."""
    return isinstance(x, float | int | np.ndarray | np.generic)


def rank(x: Any) -> int:
    """The number of axes."""
    return len(shape_of(x))


def elements(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """The number of elements along axes."""
    return math.prod(shape[i] for i in axes)


def of_dtype(what: str, x: Any, dtype: Any) -> Any:
    """A number converted to a dtype; integers and truth values have no derivatives, being piecewise constant."""
    wanted = np.dtype(dtype)
    if wanted == np.float64:
        return x
    if wanted.kind not in "biu":
        advice = "; leave the conversion out, or convert the result" if wanted.kind == "f" else ""
        raise Error(f"{what} is of float64, and cannot become {wanted}{advice}{place()}")
    return np.asarray(real_part(x)).astype(wanted)[()]


def item_of(x: Any, index: Any) -> Any:
    """`x[index]`."""
    if type(index) in LIFTS or (type(index) is tuple and any([type(i) in LIFTS for i in index])):
        raise Error(
            "an index is a whole number, and this one carries derivatives; use np.argmax and the like to make one"
        )
    take = arrays.getitem(index)
    return as_element(x.__apply_operation__(take, (x,)) if type(x) in LIFTS else apply(take, plain(x)))
