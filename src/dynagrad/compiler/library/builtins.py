"""Built-in functions of structures while a function is specialised, and reflection: `type`, `getattr`, `callable`.

Those of numbers are in `math.py`, numpy's in `compiler/numpy/calls.py`, classes in `compiler/objects/classes.py`.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.numpy.functions import check_options
from ...errors import Error
from ...ir import Node
from ..evaluate.arrays import as_array, stacked
from ..evaluate.iteration import dynamic_getter, items, iteration_space
from ..evaluate.numpy_scalars import is_numpy_scalar
from ..evaluate.operators import conjunction, negated, truth
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import (
    Array,
    Closure,
    Dict,
    DynamicText,
    HostFunction,
    Instance,
    Iteration,
    List,
    Masked,
    describe,
    known,
    node_of,
    rebuilt,
    type_of,
    unwrapped,
    wrapped,
)
from ..objects.containers import attribute, mapping, setattr_, vars_of

# -- structures --------------------------------------------------------------------------------------------------------


@calls(len)
def _len(s: Specialiser, args: Args, named: Named) -> Any:
    (x,) = args
    if isinstance(x, Instance):
        return s.call(attribute(s, x, "__len__"), [])
    if isinstance(x, Node):
        raise Error("a single number has no length")
    return iteration_space(s, x).length


def _iteration_of(kind: str) -> Callable[..., Any]:
    return lambda s, args, named: Iteration(kind, tuple(args))


calls(zip, knows="strict")(lambda s, args, named: _zip(s, args, named))
calls(reversed)(_iteration_of("reversed"))


@calls(range, knows="stop step")
def _range(s: Specialiser, args: Args, named: Named) -> Any:
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
    return Iteration("range", (start, stop, step))


@calls(enumerate, knows="start")
def _enumerate(s: Specialiser, args: Args, named: Named) -> Any:
    return Iteration("enumerate", (args[0], args[1] if len(args) > 1 else 0))


def _zip(s: Specialiser, args: Args, named: Named) -> Any:
    _check_lengths(s, "zip", args, named)
    return Iteration("zip", tuple(args))


def _check_lengths(s: Specialiser, name: str, xs: Args, named: Named) -> None:
    """`strict=` of `zip` and `map`."""
    strict = named.get("strict", False)
    if not known(strict):
        raise Error(f"strict= of {name}() must be known when the function is compiled")
    if not unwrapped(strict) or len(xs) < 2:
        return
    lengths = [iteration_space(s, x).length for x in xs]
    if not all(isinstance(n, int) for n in lengths):
        raise Error(
            f"{name}() with strict=True takes what has a length that is known when the function is compiled, and not "
            f"{describe(next(x for x, n in zip(xs, lengths, strict=True) if not isinstance(n, int)))}"
        )
    if len(set(lengths)) > 1:
        raise Error(f"{name}() with strict=True of {' and '.join(map(describe, xs))}, which differ in length")


@calls(map, knows="strict")
def _map(s: Specialiser, args: Args, named: Named) -> Any:
    function, *xs = args
    _check_lengths(s, "map", xs, named)
    return tuple(s.call(function, parts) for parts in items(s, Iteration("zip", tuple(xs))))


@calls(filter)
def _filter(s: Specialiser, args: Args, named: Named) -> Any:
    function, x = args
    inside, kept = items(s, x), []
    for item in inside:
        kept.append(truth(s, item if function is None else s.call(function, [item])))
    if any(isinstance(keep, Node) for keep in kept):
        return _masked_items(s, inside, kept)
    return tuple(item for item, keep in zip(inside, kept, strict=True) if keep)


def _masked_items(s: Specialiser, inside: tuple[Any, ...], kept: list[Any]) -> Masked:
    """The items that a dynamic condition keeps, as masked elements of an array."""
    if dynamic_getter(s, inside) is None:
        raise Error(
            "which of these items filter() keeps is decided as the function runs; this works only for numbers, or "
            "arrays of one shape: loop over all items with `if` inside"
        )
    mask = node_of(wrapped(stacked(kept)))
    return Masked(node_of(wrapped(stacked(list(inside)))), mask, s.at, listed=True)


@calls(functools.reduce, knows="initial")
def _reduce(s: Specialiser, args: Args, named: Named) -> Any:
    function, x, *start = args
    inside = [*start, *items(s, x)]
    if not inside:
        raise Error("reduce() of an empty iterable has no value; give a start value")
    found = inside[0]
    for item in inside[1:]:
        found = s.call(function, [found, item])
    return found


@calls(tuple, knows="iterable")
def _tuple(s: Specialiser, args: Args, named: Named) -> Any:
    return items(s, args[0]) if args else ()


@calls(list, knows="iterable")
def _list(s: Specialiser, args: Args, named: Named) -> Any:
    return List(items(s, args[0]) if args else ())


@calls(set, frozenset, knows="iterable")
def _set(s: Specialiser, args: Args, named: Named) -> Any:
    inside = items(s, args[0]) if args else ()
    if not all(known(e) and not isinstance(e, DynamicText) for e in inside):
        raise Error("the elements of a set must be known when the function is compiled")
    return frozenset(map(unwrapped, inside))


@calls(dict, knows="iterable")
def _dict(s: Specialiser, args: Args, named: Named) -> Any:
    content: dict[Any, Any] = {}
    if args:
        x = args[0]
        content = dict(mapping(x)) if isinstance(x, Dict | dict) else dict(items(s, p) for p in items(s, x))
    return Dict(content | dict(named))


@calls(any)
def _any(s: Specialiser, args: Args, named: Named) -> Any:
    found: Any = True
    for item in items(s, args[0]):
        found = conjunction(found, negated(truth(s, item)))
    return negated(found)


@calls(all)
def _all(s: Specialiser, args: Args, named: Named) -> Any:
    found: Any = True
    for item in items(s, args[0]):
        found = conjunction(found, truth(s, item))
    return found


@calls(copy.copy)
def _copied(s: Specialiser, args: Args, named: Named) -> Any:
    (x,) = args
    if isinstance(x, Array):
        return wrapped(x.read())
    if isinstance(x, List):
        return List(x.content)
    if isinstance(x, Dict):
        return Dict(x.content, empty=x.empty)
    if isinstance(x, Instance):
        return Instance(x.cls, x.content, "", x.frozen)
    return x


@calls(copy.deepcopy)
def _copied_deep(s: Specialiser, args: Args, named: Named) -> Any:
    (x,) = args
    if isinstance(x, List):
        return List(tuple(_copied_deep(s, [part], {}) for part in x.content))
    if isinstance(x, tuple):
        return rebuilt(x, [_copied_deep(s, [part], {}) for part in x])
    if isinstance(x, Dict):
        return Dict({key: _copied_deep(s, [value], {}) for key, value in x.content.items()}, empty=x.empty)
    if isinstance(x, Instance):
        fields = {key: _copied_deep(s, [value], {}) for key, value in x.content.items()}
        return Instance(x.cls, fields, "", x.frozen)
    return _copied(s, [x], {})


# -- reflection --------------------------------------------------------------------------------------------------------


_OF_PYTHON: dict[str, type] = {"real": float, "integer": int, "boolean": bool}
_OF_NUMPY: dict[str, type] = {"real": np.float64, "integer": np.int64, "boolean": np.bool_}


def class_of(x: Any) -> type:
    """The class that `type()` returns."""
    t = type_of(x)
    if t is not None:
        if isinstance(x, Array | np.ndarray):
            return np.ndarray
        if not isinstance(x, Node):
            return type(x)
        return (_OF_NUMPY if is_numpy_scalar(x) else _OF_PYTHON)[t.kind]
    if isinstance(x, Instance):
        return x.cls
    if isinstance(x, Closure | HostFunction):
        return types.FunctionType
    if isinstance(x, Iteration):
        return {"range": range, "zip": zip, "enumerate": enumerate}.get(x.kind, object)
    if isinstance(x, Dict):
        return type(x.empty)
    return list if isinstance(x, List) else type(x)


@calls(type)
def _type(s: Specialiser, args: Args, named: Named) -> Any:
    return class_of(args[0])


@calls(isinstance)
def _isinstance(s: Specialiser, args: Args, named: Named) -> bool:
    x, classes = args
    mine = class_of(x)
    found = any(issubclass(mine, c) for c in _classes(classes))
    if not found and mine is float and isinstance(x, Node):  # which may be one of numpy, such as what np.sin makes
        if any(issubclass(np.float64, c) for c in _classes(classes)):
            raise Error(
                "isinstance(): whether this number is one of numpy is not known when the function is compiled; ask for "
                "float as well, which those of numpy are: isinstance(x, (float, np.floating))"
            )
    return found


def _classes(x: Any) -> list[type]:
    if isinstance(x, tuple):
        return [c for part in x for c in _classes(part)]
    return list(x.__args__) if isinstance(x, types.UnionType) else [x]


@calls(callable)
def _callable(s: Specialiser, args: Args, named: Named) -> bool:
    (x,) = args
    if isinstance(x, Instance):
        return "__call__" in vars_of(x.cls)
    return isinstance(x, Closure | HostFunction) or (callable(x) and type_of(x) is None)


@calls(getattr, knows="default")
def _getattr(s: Specialiser, args: Args, named: Named) -> Any:
    try:
        return attribute(s, args[0], args[1])
    except (Error, AttributeError):
        if len(args) > 2:
            return args[2]
        raise


@calls(hasattr)
def _hasattr(s: Specialiser, args: Args, named: Named) -> bool:
    try:
        attribute(s, *args)
    except (Error, AttributeError):
        return False
    return True


@calls(setattr)
def _setattr(s: Specialiser, args: Args, named: Named) -> None:
    setattr_(s, *args)


@calls(object.__setattr__)
def _set_frozen(s: Specialiser, args: Args, named: Named) -> None:
    x, name, value = args
    if not isinstance(x, Instance):
        raise Error(f"attributes of {describe(x)} cannot be assigned in a compiled function")
    s.write(x, {**x.content, name: value})


@calls(str, knows="object encoding errors")
def _str(s: Specialiser, args: Args, named: Named) -> str:
    if len(args) == 1 and not known(args[0]):
        return DynamicText.of(args[0])
    if not all(map(known, args)):
        raise Error("str() with encoding= or errors= takes bytes that are known when the function is compiled")
    return str(*map(unwrapped, args))


@calls(repr)
def _repr(s: Specialiser, args: Args, named: Named) -> str:
    return repr(unwrapped(args[0])) if known(args[0]) else DynamicText.of(args[0])


@calls(print, knows=None)
def _print(s: Specialiser, args: Args, named: Named) -> Any:
    raise Error("print() cannot be compiled; call the function without dg.compile to see what it prints")


calls(slice, knows="stop step")(lambda s, args, named: slice(*args))


@calls(np.copy, knows="order subok")
def _numpy_copy(s: Specialiser, args: Args, named: Named) -> Any:
    x, *options = args
    check_options("np.copy", dict(zip(("order", "subok"), options, strict=False)))
    return _copied(s, [as_array(s, x)], {})
