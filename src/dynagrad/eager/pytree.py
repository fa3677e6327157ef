"""Pytrees: structures of reals that derivatives map over, and their vector space.

Tuples (named ones too), lists, dicts, dataclasses and registered classes are nodes. Reals, arrays of reals and numbers
with derivatives are leaves; functions are leaves of another kind. Integers, strings, None and all other objects in a
structure are constants.

Other structures have walks of their own: values of the specialiser, which have identities and nodes in them
(`compiler/evaluate/joins.py`), and arguments of compiled functions, which may hold nothing else
(`compiler/evaluate/signatures.py`). Values become one vector in `ir/ops/ravelling.py`.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import inspect
import itertools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..calls import strict_options
from ..errors import Error, shown
from ..ir import Node
from ..ir.operation import Operation, apply
from ..ir.ops import scalars as ops
from ..ir.ops.ravelling import unravel
from .combinations import Combination
from .kinds import LIFTS, is_complex, plain, shape_of
from .numbers import Number
from .perturbations import place

Flatten = Callable[[Any], Sequence[Any]]
Unflatten = Callable[[Any, Sequence[Any]], Any]

_REGISTERED: dict[type, tuple[Flatten, Unflatten]] = {}
MOST = 200  # the deepest nesting of structures


@strict_options
def register(cls: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Registers a class as a structure: `flatten(x)` gives the parts of x, `unflatten(x, parts)` is x with new parts.

    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register(Point, lambda p: (p.x, p.y), lambda p, parts: Point(*parts))
    """
    if not isinstance(cls, type):
        raise Error(f"dg.register: the first argument should be a class, and is {shown(cls)}")
    for name, value in (("flatten", flatten), ("unflatten", unflatten)):
        if not callable(value):
            raise Error(f"dg.register: {name} should be a function, and is {shown(value)}")
    _REGISTERED[cls] = (flatten, unflatten)


def is_registered(cls: type) -> bool:
    """Whether a class was registered."""
    return cls in _REGISTERED


_STRUCTURES = frozenset([tuple, list, dict])
_ndarray = np.ndarray


def is_real(x: Any) -> bool:
    """Whether something is a leaf of reals: a float, an array of floats, or a number with derivatives."""
    kind = type(x)
    if kind is float or kind in LIFTS:
        return True
    if kind is _ndarray:
        return bool(x.dtype.kind == "f")
    if kind in _STRUCTURES:
        return False
    if isinstance(x, Node):
        return True
    return x.dtype.kind == "f" if isinstance(x, np.ndarray) else isinstance(x, np.floating | float)


def is_function(x: Any) -> bool:
    """Whether something is a leaf that is a function."""
    return callable(x) and not isinstance(x, type) and not is_real(x)


def is_exact(x: Any) -> bool:
    """Whether something is an integer or a truth value, or an array of these: as a result its derivative is zero."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in "biu"
    return isinstance(x, int | np.integer | np.bool_)


def parts(x: Any) -> tuple[Sequence[Any], Unflatten] | None:
    """The parts of a structure and a function that replaces them; None for a leaf or a constant."""
    kind = type(x)
    if kind in _REGISTERED:
        flatten, unflatten = _REGISTERED[kind]
        return flatten(x), unflatten
    if kind is tuple:
        return x, lambda _, new: tuple(new)
    if kind is list:
        return x, lambda _, new: list(new)
    if kind is dict:
        return list(x.values()), lambda old, new: dict(zip(old, new, strict=True))
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return x, lambda old, new: type(old)._make(new)
    if dataclasses.is_dataclass(x) and not isinstance(x, type | Number | Operation):
        return [getattr(x, f.name) for f in dataclasses.fields(x)], _dataclass
    if isinstance(x, dict):
        return list(x.values()), _mapping
    return None


def _dataclass(old: Any, new: Sequence[Any]) -> Any:
    made = copy.copy(old)  # as it is, without __init__ and __post_init__
    fields = dataclasses.fields(old)
    for field, value in zip(fields, new, strict=True):
        object.__setattr__(made, field.name, value)
    _forget(made, {field.name for field in fields})
    return made


def _forget(made: Any, fields: set[str]) -> None:
    """Drops attributes that were computed from the fields of the original, such as cached properties."""
    attributes: dict[str, Any] = getattr(made, "__dict__", {})
    for name in [name for name in attributes if name not in fields]:
        source = inspect.getattr_static(type(made), name, None)
        if hasattr(type(source), "__get__") and not isinstance(source, _METHODS):
            del attributes[name]


_METHODS = (types.FunctionType, classmethod, staticmethod)


def _mapping(old: Any, new: Sequence[Any]) -> Any:
    made = copy.copy(old)
    for key, value in zip(old, new, strict=True):
        made[key] = value
    return made


def transform(x: Any, real: Callable[[Any], Any], function: Callable[[Any], Any] | None = None, _level: int = 0) -> Any:
    """Maps over the leaves of a structure: `real` over reals, `function` over functions.

    >>> transform((1.0, [2.0, "a", 3]), lambda r: -r)
    (-1.0, [-2.0, 'a', 3])
    """
    kind = type(x)
    if kind is tuple and _level < MOST:  # the common case
        return tuple([transform(part, real, function, _level + 1) for part in x])
    if kind in LIFTS:
        return real(x.settled())
    if is_real(x):
        return real(x)
    taken = parts(x)
    if taken is None:
        return function(x) if function is not None and is_function(x) else x
    if _level > MOST:
        raise Error(f"a structure is nested more than {MOST} deep")
    inner, unflatten = taken
    return unflatten(x, [transform(part, real, function, _level + 1) for part in inner])


def zero_of(x: Any) -> Any:
    """The zero for an integer, a truth value or an array of these."""
    return np.zeros(x.shape) if isinstance(x, np.ndarray) and x.ndim else 0.0


def float_of(x: Any) -> Any:
    """An integer, a truth value or an array of these as reals."""
    return x.astype(np.float64) if isinstance(x, np.ndarray) and x.ndim else float(x)


def of_result(
    x: Any,
    real: Callable[[Any], Any],
    function: Callable[[Any], Any] | None = None,
    exact: Callable[[Any], Any] = zero_of,
    _level: int = 0,
) -> Any:
    """`transform` for a derivative of a result, in which computed integers and truth values have derivative zero. That
    holds for the result itself and inside tuples, lists and dicts; in fields of a class they are constants.

    >>> of_result((2, [True, 3.0], "a"), lambda r: r)
    (0.0, [0.0, 3.0], 'a')
    """
    kind = type(x)
    if kind is float:
        return real(x)
    if kind in LIFTS:
        return real(x.settled())
    if kind in _STRUCTURES and _level < MOST:
        if kind is dict:
            return {key: of_result(part, real, function, exact, _level + 1) for key, part in x.items()}
        return kind([of_result(part, real, function, exact, _level + 1) for part in x])
    if kind not in _REGISTERED and is_exact(x):
        return exact(x)
    return transform(x, real, function)


def no_hidden_numbers(verb: str, x: Any) -> None:
    """Raises Error where a result has numbers with derivatives inside an object that is no structure."""
    if type(x) in LIFTS or type(x) is float:
        return
    for constant in _constants(x):
        if isinstance(constant, Iterator) and type(constant).__module__ in ("builtins", "itertools"):
            raise Error(
                f"{verb}: the result is or contains {shown(constant)}, which is evaluated lazily, when the derivative "
                f"is over; return a list{place()}"
            )
        if _holds_number(constant):
            if isinstance(constant, np.ndarray):
                advice = "stack them with np.stack"
            else:
                advice = f"return a tuple, a list or a dict, or register {type(constant)} with dg.register"
            raise Error(
                f"{verb}: the result has numbers with derivatives in {_kind(constant)}, where derivatives do not go; "
                f"{advice}{place()}"
            )


def _kind(x: Any) -> str:
    return f"an object of type {type(x).__name__}" if not isinstance(x, np.ndarray) else "an array of objects"


def _constants(x: Any) -> Iterator[Any]:
    """The constants of a structure that might hold a number with derivatives; raises Error for complex numbers."""
    if isinstance(x, complex | np.complexfloating) or (isinstance(x, np.ndarray) and x.dtype.kind == "c"):
        raise is_complex(f"the result {shown(x)}")
    if isinstance(x, _PLAIN) or is_real(x):
        return
    taken = parts(x)
    if taken is not None:
        for part in taken[0]:
            yield from _constants(part)
    elif not is_function(x) and not (isinstance(x, np.ndarray) and x.dtype.kind != "O"):
        if isinstance(x, np.ndarray) and any(is_real(part) and not isinstance(part, Number) for part in x.flat):
            raise Error(
                "the result has reals in an array of objects, where derivatives do not go; return a list, or make an "
                f"array of floats of them: x.astype(float){place()}"
            )
        yield x


_PLAIN = (int, str, bytes, float, type(None), type, np.generic)
_LOOKED_AT = 1000  # the most objects that are searched for a number


def _holds_number(x: Any) -> bool:
    """Whether an object has a number with derivatives in its attributes or elements."""
    seen: set[int] = set()
    stack = [x]
    while stack and len(seen) < _LOOKED_AT:
        at = stack.pop()
        if isinstance(at, Number):
            return True
        if isinstance(at, _PLAIN) or id(at) in seen or isinstance(at, types.ModuleType):
            continue
        seen.add(id(at))
        if isinstance(at, np.ndarray):
            stack += at.ravel().tolist() if at.dtype.kind == "O" else ()
        elif isinstance(at, Mapping):
            stack += at.values()
        elif isinstance(at, tuple | list | set | frozenset | collections.deque):
            stack += itertools.islice(at, _LOOKED_AT)
        elif not is_function(at):
            stack += (getattr(at, "__dict__", None) or {}).values()
            slots = (name for cls in type(at).__mro__ for name in _slots(cls))
            stack += [value for name in slots if (value := getattr(at, name, None)) is not None]
    return False


def _slots(cls: type) -> Sequence[str]:
    names = cls.__dict__.get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)


def together(
    what: str,
    x: Any,
    others: Sequence[Any],
    real: Callable[..., Any],
    function: Callable[..., Any] | None = None,
    path: str = "",
) -> Any:
    """Maps over the leaves of several structures together. Raises Error where they differ; `what` names `others`."""
    if is_real(x):
        for other in others:
            if not is_real(plain(other)) or shape_of(other) != shape_of(x):
                raise Error(
                    f"{what}{path} should be {_described(x)}, as what it belongs to, "
                    f"and is {_described(other)}{place()}"
                )
        return real(plain(x), *(plain(other) for other in others))
    taken = parts(x)
    if taken is None:
        if function is not None and is_function(x):
            return function(x, *others)
        return x
    inner, unflatten = taken
    lists = []
    for other in others:
        theirs = _parts_as(x, other)
        if theirs is None or len(theirs) != len(inner):
            raise Error(
                f"{what}{path} should be {_described(x)}, as what it belongs to, and is {_described(other)}{place()}"
            )
        lists.append(theirs)
    names = list(x) if isinstance(x, dict) else range(len(inner))
    return unflatten(
        x,
        [
            together(what, part, [theirs[i] for theirs in lists], real, function, f"{path}[{name!r}]")
            for i, (name, part) in enumerate(zip(names, inner, strict=True))
        ],
    )


def _parts_as(x: Any, other: Any) -> Sequence[Any] | None:
    """The parts of a structure in the order of the parts of x; None where it differs."""
    if isinstance(x, dict):
        return [other[key] for key in x] if isinstance(other, dict) and other.keys() == x.keys() else None
    taken = parts(other) if not is_real(other) and not isinstance(other, dict) else None
    return None if taken is None else taken[0]


def leaves(x: Any) -> Iterator[Any]:
    """The reals and functions of a structure, in order."""
    if is_real(x):
        yield x.settled() if type(x) in LIFTS else x
        return
    taken = parts(x)
    if taken is not None:
        for part in taken[0]:
            if type(part) is float:
                yield part
            elif type(part) in LIFTS:
                yield part.settled()
            else:
                yield from leaves(part)
    elif is_function(x):
        yield x


def unravelled(x: Any, vector: Any) -> Any:
    """A structure like x, with the numbers of a vector in place of its reals.

    >>> unravelled((1.0, {"a": np.zeros(2)}), np.array([1.0, 2.0, 3.0]))
    (1.0, {'a': array([2., 3.])})
    """
    numbers = iter(unravel(vector, [shape_of(leaf) for leaf in leaves(x)]))
    return transform(x, lambda _: next(numbers))


def _described(x: Any) -> str:
    if is_real(x):
        shape = shape_of(x)
        return f"an array of shape {shape}" if shape else "a real"
    taken = parts(x)
    if taken is not None:
        return f"a {type(x).__name__} of {len(taken[0])}"
    return f"{shown(x)} of type {type(x).__name__}"


# -- vector spaces -----------------------------------------------------------------------------------------------------


@strict_options
def add(a: Any, b: Any) -> Any:
    """The sum of two vectors: reals, arrays, structures of these, functions (pointwise), duals.

    Constants inside structures stay as they are in the first one. Raises Error where the structures differ.

    >>> add((1.0, [2.0]), (10.0, [20.0]))
    (11.0, [22.0])
    >>> add(lambda x: x, lambda x: x * x)(3.0)
    12.0
    """
    if isinstance(a, int) and not isinstance(a, bool) and is_real(plain(b)):
        a = float(a)
    return together("the second summand", a, [b], lambda x, y: apply(ops.add, x, y), _add_functions)


def _add_functions(f: Any, g: Any) -> Any:
    if hasattr(f, "__dynagrad_plus__"):
        return f.__dynagrad_plus__(g)
    if not callable(g):
        raise Error(f"only a function can be added to a function, and not {shown(g)}{place()}")
    return _combined(("add", f, {"b": g}), combination(f).plus(combination(g)))


def combination(f: Any) -> Combination:
    """A function as a linear combination: the one it was made as, or itself."""
    made = getattr(f, "combination", None)
    return made if isinstance(made, Combination) else Combination(f)


def _combined(what: tuple[str, Any, dict[str, Any]], made: Combination) -> Callable[..., Any]:
    def combined(*arguments: Any, **named: Any) -> Any:
        total, begun = None, False
        for factor, f in made.terms():
            y = f(*arguments, **named)
            if not (type(factor) is float and factor == 1.0):
                y = scale(factor, y)
            total, begun = add(total, y) if begun else y, True
        return total

    combined.combination = made  # type: ignore[attr-defined]  # functions take attributes
    combined.__dynagrad__ = what  # type: ignore[attr-defined]  # as `gradients.marked` has it
    return combined


@strict_options
def scale(c: Any, x: Any) -> Any:
    """A vector times a real: reals, arrays, structures of these, functions (their results), duals.

    >>> scale(2.0, {"w": 3.0, "name": "a"})
    {'w': 6.0, 'name': 'a'}
    """
    if isinstance(x, int) and not isinstance(x, bool):
        x = float(x)
    if not is_real(plain(c)):
        raise Error(f"scale: the factor should be a real, and is {shown(c)}{place()}")
    try:
        return transform(x, lambda r: apply(ops.multiply, plain(c), plain(r)), lambda f: _scale_function(c, f))
    except ValueError as error:
        raise Error(f"scale: the factor {shown(c)} does not fit{place()}: {error}") from None


def _scale_function(c: Any, f: Any) -> Any:
    if hasattr(f, "__dynagrad_times__"):
        return f.__dynagrad_times__(c)
    return _combined(("scale", f, {"c": c}), combination(f).times(c))
