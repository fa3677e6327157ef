"""Pytrees of arguments and results, flattened and rebuilt in native code (`dynagrad/calls/walk.hpp`).

A function of leaves becomes one of nested lists, tuples and dicts with fixed values in between. Arguments of another
structure, or with leaves that the function does not take, are passed to a Python function. The structure of a call is
found elsewhere (`compiler/evaluate/signatures.py`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import calling
from .compiling import cache
from .library import Library, load
from .shared import SHARED, numbers

MOST_LEAVES = SHARED.constant("kMostLeaves")


@dataclass(frozen=True)
class Leaf:
    """A number, or an array of numbers."""


@dataclass(frozen=True)
class Fixed:
    """A value that is the same in every call."""

    value: Any


@dataclass(frozen=True)
class Sequenced:
    """A list or a tuple."""

    kind: type
    parts: tuple[Structure, ...]


@dataclass(frozen=True)
class Keyed:
    """A dict, with its keys in order."""

    keys: tuple[Any, ...]
    parts: tuple[Structure, ...]


Structure = Leaf | Fixed | Sequenced | Keyed
LEAF = Leaf()
UNFIT = object()


def unfit(*leaves: Any) -> object:
    """A function of leaves that takes none: it returns `UNFIT`."""
    return UNFIT


_PART = numbers("Part")


def count(structure: Structure) -> int:
    """The number of leaves of a structure.

    >>> count(Sequenced(list, (LEAF, Fixed(3), Keyed(("a",), (LEAF,)))))
    2
    """
    if isinstance(structure, Sequenced | Keyed):
        return sum(map(count, structure.parts))
    return int(isinstance(structure, Leaf))


def walker(
    flat: Callable[..., Any],
    arguments: Sequence[Structure],
    result: Structure,
    otherwise: Callable[..., Any],
    *,
    single: bool,
) -> Callable[..., Any] | None:
    """A builtin function from arguments of these structures to a result of that one; None where it cannot be made.

    `flat` takes the leaves and returns a tuple of the leaves of the result, or, with `single`, its only one, or
    `UNFIT`. `otherwise` is called with arguments that do not fit.

    >>> pair, named = Sequenced(list, (LEAF, LEAF)), Keyed(("a", "b"), (LEAF, LEAF))
    >>> walk = walker(lambda x, y: (y, x), [pair], named, print, single=False)
    >>> walk([1.5, 2.5])
    {'a': 2.5, 'b': 1.5}
    >>> walk((1.5, 2.5))
    (1.5, 2.5)
    """
    if calling.PYTHON is None or sum(map(count, arguments)) > MOST_LEAVES:
        return None
    objects: list[Any] = []
    taken: list[int] = []
    for argument in arguments:
        _encode(argument, taken, objects)
    built: list[int] = []
    _encode(result, built, objects)
    library = _library()
    codes = [(ctypes.c_int32 * max(1, len(c)))(*c) for c in (taken, built)]
    addresses = (ctypes.c_void_p * max(1, len(objects)))(*map(id, objects))
    walk = Pytree(
        **dict(zip(("in", "out"), map(ctypes.addressof, codes), strict=True)),
        objects=ctypes.addressof(addresses),
        flat=id(flat),
        otherwise=id(otherwise),
        unfit=id(UNFIT),
        arguments=len(arguments),
        single=int(single),
    )
    method = calling.method_of(library, "dg_walk", getattr(flat, "__name__", "walk"))
    held = (ctypes.addressof(walk), walk, codes, addresses, objects, flat, otherwise, method, library)
    return calling.builtin_of(method, held)


Pytree = SHARED.structure("Pytree")
"""A walk: two structures as numbers, and the objects that these speak of."""

Walking = SHARED.structure("Walking")
"""Functions and objects of the interpreter, for walks."""


def _encode(structure: Structure, codes: list[int], objects: list[Any]) -> None:
    """Appends a structure in preorder to `codes`, and its keys and fixed values to `objects`."""
    match structure:
        case Leaf():
            codes.append(_PART.LEAF)
        case Fixed(value=value):
            codes += [_PART.KNOWN, len(objects)]
            objects.append(value)
        case Sequenced(kind=kind, parts=parts):
            codes += [_PART.LIST if kind is list else _PART.TUPLE, len(parts)]
            for part in parts:
                _encode(part, codes, objects)
        case Keyed(keys=keys, parts=parts):
            codes += [_PART.DICT, len(parts), *range(len(objects), len(objects) + len(keys))]
            objects.extend(keys)
            for part in parts:
                _encode(part, codes, objects)


@functools.cache
def _library() -> Library:
    """The library that all walkers call."""
    types = {"list_type": id(list), "tuple_type": id(tuple), "dict_type": id(dict)}
    library = load(cache.build("#include <dynagrad/calls/walk.hpp>\n"))
    table = Walking(**calling.pointers("Walking"), **types)
    library.shared("dg_walking")(ctypes.addressof(table))
    return library
