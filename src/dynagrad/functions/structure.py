"""Structures: what derivatives go through besides single numbers.

Tuples (named ones too), lists, dicts, dataclasses and registered classes are taken apart and put together again.
Reals, arrays of reals and numbers with derivatives are leaves. Functions are leaves of their own kind. Integers,
strings, None and everything else inside a structure are constants and stay what they are.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import Error
from ..graph import Node
from ..graph import operations as ops
from ..graph.operation import Operation, apply
from .numbers import LIFTS, Number, plain, shape_of
from .passes import place

Flatten = Callable[[Any], Sequence[Any]]
Unflatten = Callable[[Any, Sequence[Any]], Any]

_REGISTERED: dict[type, tuple[Flatten, Unflatten]] = {}
_MOST = 200  # levels of structures in structures


def register(cls: type, flatten: Flatten, unflatten: Unflatten) -> None:
    """Lets derivatives go through a class: `flatten(x)` are the parts of x, `unflatten(x, parts)` is x with others.

    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register(Point, lambda p: (p.x, p.y), lambda p, parts: Point(*parts))
    """
    _REGISTERED[cls] = (flatten, unflatten)


_STRUCTURES = frozenset([tuple, list, dict])


def is_real(x: Any) -> bool:
    """Whether something is a leaf that has derivatives."""
    kind = type(x)
    if kind is float or kind in LIFTS:
        return True
    if kind in _STRUCTURES:
        return False
    if isinstance(x, Node):
        return True
    return x.dtype.kind == "f" if isinstance(x, np.ndarray) else isinstance(x, np.floating | float)


def is_function(x: Any) -> bool:
    return callable(x) and not isinstance(x, type) and not is_real(x)


def parts(x: Any) -> tuple[Sequence[Any], Unflatten] | None:
    """The parts of a structure and how to put others in their place; None for a leaf or a constant."""
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
    for field, value in zip(dataclasses.fields(old), new, strict=True):
        object.__setattr__(made, field.name, value)
    return made


def _mapping(old: Any, new: Sequence[Any]) -> Any:
    made = copy.copy(old)
    for key, value in zip(old, new, strict=True):
        made[key] = value
    return made


def transform(x: Any, real: Callable[[Any], Any], function: Callable[[Any], Any] | None = None, _level: int = 0) -> Any:
    """The structure with its reals and its functions replaced.

    >>> transform((1.0, [2.0, "a", 3]), lambda r: -r)
    (-1.0, [-2.0, 'a', 3])
    """
    if is_real(x):
        return real(x)
    if type(x) is tuple and _level < _MOST:  # most of what there is
        return tuple([transform(part, real, function, _level + 1) for part in x])
    taken = parts(x)
    if taken is None:
        return function(x) if function is not None and is_function(x) else x
    if _level > _MOST:
        raise Error(f"a structure is nested more than {_MOST} deep")
    inner, unflatten = taken
    return unflatten(x, [transform(part, real, function, _level + 1) for part in inner])


def together(
    what: str,
    x: Any,
    others: Sequence[Any],
    real: Callable[..., Any],
    function: Callable[..., Any] | None = None,
    path: str = "",
) -> Any:
    """As `transform`, of structures side by side. Raises Error where they differ; `what` says what `others` are."""
    if is_real(x):
        for other in others:
            if not is_real(plain(other)) or shape_of(other) != shape_of(x):
                raise Error(
                    f"{what}{path} should be {_described(x)}, as what it belongs to, "
                    f"and is {_described(other)}{place()}"
                )
        return real(x, *(plain(other) for other in others))
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
    """The parts of a structure in the order of those of x; None where it has others."""
    if isinstance(x, dict):
        return [other[key] for key in x] if isinstance(other, dict) and other.keys() == x.keys() else None
    taken = parts(other) if not is_real(other) and not isinstance(other, dict) else None
    return None if taken is None else taken[0]


def leaves(x: Any) -> Iterator[Any]:
    """The reals and functions of a structure, in order."""
    if is_real(x):
        yield x
        return
    taken = parts(x)
    if taken is not None:
        for part in taken[0]:
            yield from leaves(part)
    elif is_function(x):
        yield x


def _described(x: Any) -> str:
    if is_real(x):
        shape = shape_of(x)
        return f"an array of shape {shape}" if shape else "a real"
    taken = parts(x)
    if taken is not None:
        return f"a {type(x).__name__} of {len(taken[0])}"
    return f"{repr(x)[:40]} of type {type(x).__name__}"


# -- vector spaces -----------------------------------------------------------------------------------------------------


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
    if hasattr(f, "plus"):
        return f.plus(g)
    if not callable(g):
        raise Error(f"a function can be added to a function only, and {repr(g)[:40]} is none")
    return lambda *arguments, **named: add(f(*arguments, **named), g(*arguments, **named))


def scale(c: Any, x: Any) -> Any:
    """A vector times a real: reals, arrays, structures of these, functions (their results), duals.

    >>> scale(2.0, {"w": 3.0, "name": "a"})
    {'w': 6.0, 'name': 'a'}
    """
    if isinstance(x, int) and not isinstance(x, bool):
        x = float(x)
    return transform(x, lambda r: apply(ops.multiply, plain(c), plain(r)), lambda f: _scale_function(c, f))


def _scale_function(c: Any, f: Any) -> Any:
    if hasattr(f, "times"):
        return f.times(c)
    return lambda *arguments, **named: scale(c, f(*arguments, **named))
