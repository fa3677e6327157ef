"""Tuples, lists, dicts and objects while a function is specialised: making, indexing, attributes, methods.

Their structure is always static; what they hold may be dynamic. Arrays are in `compiler/evaluate/arrays.py`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...eager.names import numpy_names
from ...errors import Error, counted
from ...ir import Node
from ...ir.ops import integers
from ..evaluate.arrays import add_index, at_index, set_index
from ..evaluate.iteration import dynamic_getter, items
from ..evaluate.operators import binary, update
from ..evaluate.specialiser import Specialiser, primitive
from ..evaluate.values import (
    Array,
    Closure,
    Dict,
    DynamicText,
    HostFunction,
    Instance,
    Iteration,
    List,
    describe,
    known,
    normal,
    unwrapped,
    wrapped,
)
from ..frontend.core import UNDEFINED
from ..numpy.calls import joined_along
from .methods import array_attribute

_OURS = __package__.rpartition(".")[0] + "."
# -- making ------------------------------------------------------------------------------------------------------------


@primitive("list")
def list_(s: Specialiser, x: Any) -> List:
    return List(items(s, x))


@primitive("set")
def set_(s: Specialiser, x: Any) -> Any:
    inside = items(s, x)
    if not all(known(e) and not isinstance(e, DynamicText) for e in inside):
        raise Error("the elements of a set must be known when the function is compiled")
    return frozenset(map(unwrapped, inside))


@primitive("concat")
def concat(s: Specialiser, *parts: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x for part in parts for x in part)


def key_of(x: Any) -> Any:
    """A dict key. Raises Error for one that is dynamic."""
    if isinstance(x, Node | Array | DynamicText) or not known(x):
        raise Error("the keys of a dict must be known when the function is compiled")
    return unwrapped(x)


@primitive("dict")
def dict_(s: Specialiser, *pairs: Any) -> Dict:
    """A dict from keys and values in turn; a missing key stands for `**mapping`."""
    found: dict[Any, Any] = {}
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        if key is UNDEFINED:
            found |= mapping(value)
        else:
            found[key_of(key)] = value
    return Dict(found)


def mapping(x: Any) -> Mapping[Any, Any]:
    """The keys and values of a dict."""
    if isinstance(x, Dict):
        return dict(x.content)
    if isinstance(x, dict):
        return x
    raise Error(f"a dict is expected here, and this is {describe(x)}")


@primitive("dict_of_pairs")
def dict_of_pairs(s: Specialiser, pairs: Iterable[Any]) -> Dict:
    return Dict({key_of(key): value for key, value in (items(s, pair) for pair in items(s, pairs))})


@primitive("slice")
def slice_(s: Specialiser, start: Any, stop: Any, step: Any) -> slice:
    return slice(start, stop, step)


@primitive("unpack")
def unpack(s: Specialiser, x: Any, count: int, star: int | None) -> tuple[Any, ...]:
    """Unpacks an iterable into `count` parts; the one at `star` is a list of the rest."""
    inside = items(s, x)
    if star is None:
        if len(inside) != count:
            raise Error(f"{describe(x)} has {counted(len(inside), 'part')}, and is unpacked into {count}")
        return inside
    if len(inside) < count - 1:
        raise Error(f"{describe(x)} has {counted(len(inside), 'part')}, and is unpacked into at least {count - 1}")
    rest = len(inside) - (count - 1)
    return (*inside[:star], List(inside[star : star + rest]), *inside[star + rest :])


@primitive("spread")
def spread(s: Specialiser, function: Any, arguments: tuple[Any, ...], named: Dict) -> Any:
    """A call with `*arguments` and `**named`."""
    return s.call(function, list(arguments), dict(named.content))


# -- indexing ----------------------------------------------------------------------------------------------------------


@primitive("getitem")
def getitem(s: Specialiser, x: Any, index: Any) -> Any:
    """`x[index]`."""
    if isinstance(x, Array | Node | np.ndarray):
        return at_index(s, x, index)
    if isinstance(x, Dict | dict):
        content = x.content if isinstance(x, Dict) else x
        key = key_of(index)
        if key not in content and isinstance(x, Dict) and x.factory is not None:
            setitem(s, x, index, s.call(x.factory, []))
            return x.content[key]
        if key not in content:
            raise Error(f"the dict has no key {key!r}; its keys are {', '.join(map(repr, content))}")
        return normal(content[key])
    if isinstance(x, tuple | List | Iteration | str | range | list):
        if isinstance(x, str):
            return x[unwrapped(index)]
        inside = items(s, x)
        if isinstance(index, slice):
            if not known(index):
                raise Error("the bounds of a slice of a list must be known when the function is compiled")
            part = inside[unwrapped(index)]
            return List(part) if isinstance(x, List) else part
        return _item_at(s, x, inside, index)
    if isinstance(x, Instance) and hasattr(x.cls, "__getitem__"):
        return s.call(attribute(s, x, "__getitem__"), [index])
    if x is np.r_ or x is np.c_ or x is numpy_names.r_ or x is numpy_names.c_:
        return joined_along(numpy_names.ORIGINALS.get(x, x), unwrapped(index))
    if known(index) and not isinstance(x, Closure | HostFunction):
        return wrapped(x[unwrapped(index)])
    raise Error(f"{describe(x)} cannot be indexed in a compiled function")


def _item_at(s: Specialiser, x: Any, inside: tuple[Any, ...], index: Any) -> Any:
    if isinstance(index, Node):
        if index.type.kind == "boolean" and not index.shape:
            index = integers.count_true(index)
        at = dynamic_getter(s, inside)
        if index.type.kind != "integer" or at is None:
            raise Error(
                f"{describe(x)} is indexed with {describe(index)}: an index that is known only as the function runs "
                "can look up only numbers, or arrays of one shape"
            )
        s.may_raise(IndexError)
        return at(index)
    if not isinstance(index, int):
        raise Error(f"{describe(x)} is indexed with {describe(index)}, not with a whole number")
    if not -len(inside) <= index < len(inside):
        raise Error(f"the index {index} is out of range for {describe(x)}")
    return inside[index]


@primitive("setitem")
def setitem(s: Specialiser, x: Any, index: Any, value: Any) -> None:
    """`x[index] = value`."""
    if isinstance(x, Array | np.ndarray):
        set_index(s, x, index, value)
    elif isinstance(x, Dict):
        s.write(x, {**x.content, key_of(index): value})
    elif isinstance(x, List):
        s.write(x, _with_item(x, index, value))
    elif isinstance(x, Instance) and hasattr(x.cls, "__setitem__"):
        s.call(attribute(s, x, "__setitem__"), [index, value])
    else:
        raise Error(f"items of {describe(x)} cannot be assigned")


def _with_item(x: List, index: Any, value: Any) -> tuple[Any, ...]:
    if not isinstance(index, int):
        raise Error(
            f"an item of {describe(x)} is assigned at {describe(index)}: the index into a list must be known when the "
            "function is compiled; use an array for others"
        )
    content = list(x.content)
    if not -len(content) <= index < len(content):
        raise Error(f"the index {index} is out of range for {describe(x)}")
    content[index] = value
    return tuple(content)


@primitive("delitem")
def delitem(s: Specialiser, x: Any, index: Any) -> None:
    """`del x[index]`."""
    if isinstance(x, Dict):
        _dict_pop(s, x, index)
    elif isinstance(x, List) and known(index):
        content = list(x.content)
        del content[unwrapped(index)]
        s.write(x, tuple(content))
    else:
        raise Error(f"items of {describe(x)} cannot be deleted at {describe(index)}")


@primitive("update_item")
def update_item(s: Specialiser, name: str, x: Any, index: Any, value: Any) -> None:
    """Augmented assignment to an item: `x[index] += value`."""
    if isinstance(x, Array | np.ndarray) and name in ("add", "subtract"):
        add_index(s, x, index, value, name == "subtract")
        return
    setitem(s, x, index, update(s, name, getitem(s, x, index), value))


# -- attributes --------------------------------------------------------------------------------------------------------


@primitive("attribute")
def attribute(s: Specialiser, x: Any, name: str) -> Any:
    """`x.name`."""
    if isinstance(x, Instance):
        return _instance_attribute(s, x, name)
    if isinstance(x, Array | Node) or (isinstance(x, np.ndarray) and not isinstance(x, np.matrix)):
        return array_attribute(s, x, name)
    if isinstance(x, List | Dict):
        method = METHODS.get((type(x), name))
        if method is None:
            raise Error(f"{describe(x)} has no {name} in a compiled function")
        return bound(name, method, x)
    if isinstance(x, tuple):
        fields = getattr(x, "_fields", ())
        if name in fields:
            return x[fields.index(name)]
        method = METHODS.get((tuple, name))
        if method is not None:
            return bound(name, method, x)
        found = getattr(type(x), name, None)
        if isinstance(found, property):
            return s.call(found.fget, [x])
        if isinstance(found, types.FunctionType):
            return bound(name, found, x)
    if isinstance(x, HostFunction) and isinstance(x.kind, tuple) and x.kind[0] == "super":
        return s.apply("super attribute", x, name)
    if isinstance(x, Closure | HostFunction | Iteration):
        if name == "__name__":
            return x.name if not isinstance(x, Iteration) else x.kind
        if name == "__wrapped__" and isinstance(x, HostFunction) and x.kind[0] == "wraps" and len(x.captured) == 2:
            return x.captured[1]
        raise Error(f"{describe(x)} has no {name} in a compiled function")
    if isinstance(x, slice):
        return getattr(x, name)
    return normal(getattr(x, name))


def bound(name: str, method: Any, x: Any) -> HostFunction:
    """A bound method."""
    if isinstance(method, types.FunctionType) and method.__module__.startswith(_OURS):
        return HostFunction(
            ("method", name, method), lambda s, captured, args, named: method(s, captured[0], *args, **named), (x,)
        )
    return HostFunction(
        ("method", name, method), lambda s, captured, args, named: s.call(method, [captured[0], *args], named), (x,)
    )


def _instance_attribute(s: Specialiser, x: Instance, name: str) -> Any:
    found = getattr(x.cls, name, None)
    if isinstance(found, property):
        return s.call(found.fget, [x])
    if name in x.content:
        return x.content[name]
    if name == "__class__":
        return x.cls
    if isinstance(found, types.FunctionType):
        raw = vars_of(x.cls).get(name)
        return found if isinstance(raw, staticmethod) else bound(name, found, x)
    if found is not None:
        return normal(found)
    raise Error(f"{describe(x)} has no {name}")


def vars_of(cls: type) -> dict[str, Any]:
    """The attributes of a class, inherited ones included."""
    found: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        found |= vars(each)
    return found


@primitive("setattr")
def setattr_(s: Specialiser, x: Any, name: str, value: Any) -> None:
    """`x.name = value`."""
    if not isinstance(x, Instance):
        raise Error(f"attributes of {describe(x)} cannot be assigned in a compiled function")
    if x.frozen:
        raise Error(f"{x.cls.__name__} is frozen, so its fields cannot be assigned; use dataclasses.replace")
    s.write(x, {**x.content, name: value})


# -- methods -----------------------------------------------------------------------------------------------------------


def _append(s: Specialiser, x: List, value: Any, /) -> None:
    s.write(x, (*x.content, value))


def _extend(s: Specialiser, x: List, values: Any, /) -> None:
    s.write(x, (*x.content, *items(s, values)))


def _insert(s: Specialiser, x: List, index: int, value: Any, /) -> None:
    content = list(x.content)
    content.insert(index, value)
    s.write(x, tuple(content))


def _pop(s: Specialiser, x: List, index: int = -1, /) -> Any:
    content = list(x.content)
    found = content.pop(index)
    s.write(x, tuple(content))
    return found


def _reverse(s: Specialiser, x: List) -> None:
    s.write(x, x.content[::-1])


def _copy(s: Specialiser, x: Any) -> Any:
    return Dict(x.content, empty=x.empty) if isinstance(x, Dict) else List(x.content)


def _get(s: Specialiser, x: Dict, key: Any, default: Any = None, /) -> Any:
    return x.content.get(key_of(key), default)


def _dict_pop(s: Specialiser, x: Dict, key: Any, *default: Any) -> Any:
    content = dict(x.content)
    found = content.pop(key_of(key), *default)
    s.write(x, content)
    return found


def _setdefault(s: Specialiser, x: Dict, key: Any, default: Any = None, /) -> Any:
    if key_of(key) not in x.content:
        s.write(x, {**x.content, key_of(key): default})
    return x.content[key_of(key)]


def _dict_update(s: Specialiser, x: Dict, other: Any = None, /, **named: Any) -> None:
    s.write(x, {**x.content, **({} if other is None else mapping(other)), **named})


def _index(s: Specialiser, x: Any, value: Any, start: Any = 0, stop: Any = sys.maxsize, /) -> int:
    inside = items(s, x)
    if not all(map(known, (value, start, stop, *inside))):
        raise Error("index() needs values that are known when the function is compiled")
    return [unwrapped(i) for i in inside].index(unwrapped(value), start, stop)


def _count(s: Specialiser, x: Any, value: Any, /) -> Any:
    """How many items are equal to a value; the count may be dynamic."""

    equal = [binary(s, "equal", item, value) for item in items(s, x)]
    found: Any = 0
    for each in equal:
        found = binary(s, "add", found, each)
    return found


def _namedtuple_replace(s: Specialiser, x: Any, /, **named: Any) -> Any:
    return x._replace(**named)


METHODS: dict[tuple[type, str], Any] = {
    (List, "append"): _append,
    (List, "extend"): _extend,
    (List, "insert"): _insert,
    (List, "pop"): _pop,
    (List, "reverse"): _reverse,
    (List, "copy"): _copy,
    (List, "index"): _index,
    (tuple, "index"): _index,
    (List, "count"): _count,
    (tuple, "count"): _count,
    (tuple, "_replace"): _namedtuple_replace,
    (tuple, "_asdict"): lambda s, x: Dict(x._asdict()),
    (Dict, "get"): _get,
    (Dict, "pop"): _dict_pop,
    (Dict, "update"): _dict_update,
    (Dict, "setdefault"): _setdefault,
    (Dict, "copy"): _copy,
    (Dict, "keys"): lambda s, x: tuple(x.content),
    (Dict, "values"): lambda s, x: tuple(x.content.values()),
    (Dict, "items"): lambda s, x: tuple(x.content.items()),
}
