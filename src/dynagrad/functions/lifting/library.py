"""Python's own functions, `math`, classes and what else may be called by name while a function is specialised.

numpy is in `arrays.py`, the derivatives in `verbs.py`.
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import functools
import itertools
import math
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ...graph import Node, integers
from ...graph import operations as ops
from ...graph.types import KINDS as NUMBERS
from .arrays import as_array, holds_node, numpy_call
from .containers import attribute, bound, getitem, items, mapping, setattr_, walk
from .operators import PYTHON, binary, both, negated, truth, unary
from .specialise import KINDS, Specialiser, calls
from .values import (
    Array,
    Closure,
    Dict,
    Instance,
    Items,
    List,
    Made,
    as_type,
    describe,
    known,
    node_of,
    type_of,
    unwrapped,
    wrapped,
)

Given = Sequence[Any]
Named = Mapping[str, Any]

# -- numbers -----------------------------------------------------------------------------------------------------------


def _scalar(x: Any, name: str) -> Node:
    """A single number that is not known."""
    content = unwrapped(x)
    t = type_of(content)
    if t is None or t.size != 1:
        raise Error(f"{name}() is of one number, and was given {describe(x)}")
    node = node_of(content)
    return node[(0,) * node.ndim] if node.ndim else node


@calls(float)
def _float(s: Specialiser, given: Given, named: Named) -> Any:
    if not given or known(given[0]):
        return float(*map(unwrapped, given))
    return as_type(_scalar(given[0], "float"), NUMBERS["real"])


@calls(int)
def _int(s: Specialiser, given: Given, named: Named) -> Any:
    if not given or known(given[0]):
        return int(*map(unwrapped, given))
    node = _scalar(given[0], "int")
    if node.type.kind == "integer":
        return node
    return (integers.count_true if node.type.kind == "boolean" else integers.to_integer)(node)


@calls(bool)
def _bool(s: Specialiser, given: Given, named: Named) -> Any:
    return truth(s, given[0]) if given else False


@calls(complex)
def _complex(s: Specialiser, given: Given, named: Named) -> Any:
    raise Error("complex numbers cannot be compiled; keep two parts of your own")


@calls(abs)
def _abs(s: Specialiser, given: Given, named: Named) -> Any:
    (x,) = given
    if isinstance(x, Instance):
        return s.call(attribute(s, x, "__abs__"), [])
    return wrapped(abs(unwrapped(x)))


@calls(round)
def _round(s: Specialiser, given: Given, named: Named) -> Any:
    x, *digits = given
    if known(x):
        return wrapped(round(unwrapped(x), *digits))
    if isinstance(x, Array) or (digits and digits[0] is not None):
        return numpy_call(s, np.round, given, dict(named))
    node = _scalar(x, "round")
    return node if node.type.kind == "integer" else integers.to_integer(ops.rint(node))


@calls(divmod)
def _divmod(s: Specialiser, given: Given, named: Named) -> Any:
    return binary(s, "floor_divide", *given), binary(s, "modulo", *given)


@calls(pow)
def _pow(s: Specialiser, given: Given, named: Named) -> Any:
    if len(given) == 3:
        return pow(*map(unwrapped, given))
    return binary(s, "power", *given)


def _extreme(largest: bool) -> Callable[..., Any]:
    def handler(s: Specialiser, given: Given, named: Named) -> Any:
        inside = items(s, given[0]) if len(given) == 1 else tuple(given)
        if not inside:
            if "default" in named:
                return named["default"]
            raise Error(f"{'max' if largest else 'min'}() of nothing")
        key = named.get("key")
        if all(map(known, inside)):
            keys = [unwrapped(x if key is None else s.call(key, [x])) for x in inside]
            if not any(map(holds_node, keys)):
                return inside[keys.index((max if largest else min)(keys))]
        if key is not None:
            raise Error("key= cannot be compiled where the keys are known only as the function runs")
        found = inside[0]
        for x in inside[1:]:
            found = _larger(s, found, x) if largest else _larger(s, found, x, integers.minimum, ops.minimum)
        return found

    return handler


def _larger(s: Specialiser, a: Any, b: Any, of_whole: Any = integers.maximum, of_reals: Any = ops.maximum) -> Any:
    if known(a) and known(b):
        return (max if of_reals is ops.maximum else min)(unwrapped(a), unwrapped(b))
    x, y = _scalar(a, "max"), _scalar(b, "max")
    return (of_whole if x.type.kind == y.type.kind == "integer" else of_reals)(x, y)


calls(max)(_extreme(True))
calls(min)(_extreme(False))


@calls(sum)
def _sum(s: Specialiser, given: Given, named: Named) -> Any:
    x, *start = given
    found = start[0] if start else named.get("start", 0)
    if isinstance(x, Array | np.ndarray):
        return binary(s, "add", found, numpy_call(s, np.sum, [x], {"axis": 0}))
    for item in items(s, x):
        found = (
            item if type(found) is int and found == 0 and type_of(item) is not None else binary(s, "add", found, item)
        )
    return found


@calls(math.prod)
def _prod(s: Specialiser, given: Given, named: Named) -> Any:
    found = named.get("start", 1)
    for item in items(s, given[0]):
        found = binary(s, "multiply", found, item)
    return found


@calls(math.fsum)
def _fsum(s: Specialiser, given: Given, named: Named) -> Any:
    inside = items(s, given[0])
    return math.fsum(map(unwrapped, inside)) if all(map(known, inside)) else _sum(s, [inside, 0.0], {})


# -- math --------------------------------------------------------------------------------------------------------------

MATH: dict[Any, Any] = {
    math.sqrt: np.sqrt,
    math.exp: np.exp,
    math.expm1: np.expm1,
    math.log1p: np.log1p,
    math.log2: np.log2,
    math.log10: np.log10,
    math.sin: np.sin,
    math.cos: np.cos,
    math.tan: np.tan,
    math.asin: np.arcsin,
    math.acos: np.arccos,
    math.atan: np.arctan,
    math.atan2: np.arctan2,
    math.sinh: np.sinh,
    math.cosh: np.cosh,
    math.tanh: np.tanh,
    math.asinh: np.arcsinh,
    math.acosh: np.arccosh,
    math.atanh: np.arctanh,
    math.hypot: np.hypot,
    math.fabs: np.fabs,
    math.copysign: np.copysign,
    math.fmod: np.fmod,
    math.degrees: np.degrees,
    math.radians: np.radians,
    math.isnan: np.isnan,
    math.isinf: np.isinf,
    math.isfinite: np.isfinite,
    math.pow: np.power,
} | {getattr(math, name): getattr(np, name) for name in ("cbrt", "exp2") if hasattr(math, name)}


def _of_math(function: Any, instead: Any) -> None:
    def handler(s: Specialiser, given: Given, named: Named) -> Any:
        if all(map(known, given)):
            return function(*map(unwrapped, given))
        return numpy_call(s, instead, [as_type(_scalar(x, function.__name__), NUMBERS["real"]) for x in given], {})

    calls(function)(handler)


for _function, _instead in MATH.items():
    _of_math(_function, _instead)


@calls(math.log)
def _log(s: Specialiser, given: Given, named: Named) -> Any:
    if all(map(known, given)):
        return math.log(*map(unwrapped, given))
    found = numpy_call(s, np.log, [_scalar(given[0], "log")], {})
    return found if len(given) == 1 else binary(s, "divide", found, _log(s, [given[1]], {}))


def _rounding(function: Any, operation: Any) -> None:
    def handler(s: Specialiser, given: Given, named: Named) -> Any:
        if known(given[0]):
            return function(unwrapped(given[0]))
        node = _scalar(given[0], function.__name__)
        return node if node.type.kind == "integer" else integers.to_integer(operation(node))

    calls(function)(handler)


_rounding(math.floor, ops.floor)
_rounding(math.ceil, ops.ceil)
_rounding(math.trunc, ops.trunc)


# -- operators as functions --------------------------------------------------------------------------------------------


def _as_operator(function: Any, name: str) -> None:
    calls(function)(lambda s, given, named: binary(s, name, *given))


for _name, (_operation, _, _) in PYTHON.items():
    _as_operator(_operation, _name)
calls(operator.neg)(lambda s, given, named: unary(s, "negative", *given))
calls(operator.not_)(lambda s, given, named: negated(truth(s, given[0])))
calls(operator.getitem)(lambda s, given, named: getitem(s, *given))


# -- structures --------------------------------------------------------------------------------------------------------


@calls(len)
def _len(s: Specialiser, given: Given, named: Named) -> Any:
    (x,) = given
    if isinstance(x, Instance):
        return s.call(attribute(s, x, "__len__"), [])
    if isinstance(x, Node):
        raise Error("a single number has no length")
    return walk(s, x).length


def _walks(kind: str) -> Callable[..., Any]:
    return lambda s, given, named: Items(kind, tuple(given))


calls(zip)(lambda s, given, named: _zip(s, given, named))
calls(reversed)(_walks("reversed"))


@calls(range)
def _range(s: Specialiser, given: Given, named: Named) -> Any:
    start, stop, step = (0, given[0], 1) if len(given) == 1 else (*given, 1) if len(given) == 2 else given
    return Items("range", (start, stop, step))


@calls(enumerate)
def _enumerate(s: Specialiser, given: Given, named: Named) -> Any:
    return Items("enumerate", (given[0], given[1] if len(given) > 1 else named.get("start", 0)))


def _zip(s: Specialiser, given: Given, named: Named) -> Any:
    if named.get("strict"):
        lengths = [walk(s, x).length for x in given]
        if len({n for n in lengths if isinstance(n, int)}) > 1:
            raise Error(f"zip() with strict=True of {' and '.join(map(describe, given))}, which differ in length")
    return Items("zip", tuple(given))


@calls(map)
def _map(s: Specialiser, given: Given, named: Named) -> Any:
    function, *xs = given
    return tuple(s.call(function, parts) for parts in items(s, Items("zip", tuple(xs))))


@calls(filter)
def _filter(s: Specialiser, given: Given, named: Named) -> Any:
    function, x = given
    found = []
    for item in items(s, x):
        keep = truth(s, item if function is None else s.call(function, [item]))
        if not isinstance(keep, bool):
            raise Error("which items filter() keeps must be known when the function is compiled")
        if keep:
            found.append(item)
    return tuple(found)


@calls(functools.reduce)
def _reduce(s: Specialiser, given: Given, named: Named) -> Any:
    function, x, *start = given
    inside = [*start, *items(s, x)]
    if not inside:
        raise Error("reduce() of nothing")
    found = inside[0]
    for item in inside[1:]:
        found = s.call(function, [found, item])
    return found


@calls(tuple)
def _tuple(s: Specialiser, given: Given, named: Named) -> Any:
    return items(s, given[0]) if given else ()


@calls(list)
def _list(s: Specialiser, given: Given, named: Named) -> Any:
    return List(items(s, given[0]) if given else ())


@calls(set, frozenset)
def _set(s: Specialiser, given: Given, named: Named) -> Any:
    inside = items(s, given[0]) if given else ()
    if not all(map(known, inside)):
        raise Error("the members of a set must be known when the function is compiled")
    return frozenset(map(unwrapped, inside))


@calls(dict)
def _dict(s: Specialiser, given: Given, named: Named) -> Any:
    content: dict[Any, Any] = {}
    if given:
        x = given[0]
        content = dict(mapping(x)) if isinstance(x, Dict | dict) else dict(items(s, p) for p in items(s, x))
    return Dict(content | dict(named))


@calls(sorted)
def _sorted(s: Specialiser, given: Given, named: Named) -> Any:
    inside = items(s, given[0])
    key = named.get("key")
    keys = [unwrapped(x if key is None else s.call(key, [x])) for x in inside]
    if any(map(holds_node, keys)):
        raise Error("sorted() of what is known only as the function runs; use np.sort")
    order = sorted(range(len(inside)), key=lambda i: keys[i], reverse=bool(named.get("reverse", False)))
    return List(tuple(inside[i] for i in order))


@calls(any)
def _any(s: Specialiser, given: Given, named: Named) -> Any:
    found: Any = True
    for item in items(s, given[0]):
        found = both(found, negated(truth(s, item)))
    return negated(found)


@calls(all)
def _all(s: Specialiser, given: Given, named: Named) -> Any:
    found: Any = True
    for item in items(s, given[0]):
        found = both(found, truth(s, item))
    return found


def _arranged(function: Any) -> None:
    def handler(s: Specialiser, given: Given, named: Named) -> Any:
        parts = [x if isinstance(x, int) else items(s, x) for x in given]
        return tuple(function(*parts, **named))

    calls(function)(handler)


for _function in (itertools.product, itertools.combinations, itertools.permutations, itertools.chain):
    _arranged(_function)
if hasattr(itertools, "pairwise"):
    _arranged(itertools.pairwise)


@calls(copy.copy)
def _copied(s: Specialiser, given: Given, named: Named) -> Any:
    (x,) = given
    if isinstance(x, Array):
        return wrapped(x.read())
    if isinstance(x, List | Dict):
        return type(x)(x.content)
    if isinstance(x, Instance):
        return Instance(x.cls, x.content, "", x.fixed)
    return x


@calls(copy.deepcopy)
def _copied_deep(s: Specialiser, given: Given, named: Named) -> Any:
    (x,) = given
    if isinstance(x, List):
        return List(tuple(_copied_deep(s, [part], {}) for part in x.content))
    if isinstance(x, tuple):
        return tuple(_copied_deep(s, [part], {}) for part in x)
    if isinstance(x, Dict):
        return Dict({key: _copied_deep(s, [value], {}) for key, value in x.content.items()})
    if isinstance(x, Instance):
        fields = {key: _copied_deep(s, [value], {}) for key, value in x.content.items()}
        return Instance(x.cls, fields, "", x.fixed)
    return _copied(s, [x], {})


# -- looking at things -------------------------------------------------------------------------------------------------


def class_of(x: Any) -> type:
    """What type() would say."""
    t = type_of(x)
    if t is not None:
        if isinstance(x, Array | np.ndarray):
            return np.ndarray
        return {"real": float, "integer": int, "boolean": bool}[t.kind]
    if isinstance(x, Instance):
        return x.cls
    if isinstance(x, Closure | Made):
        return types.FunctionType
    if isinstance(x, Items):
        return {"range": range, "zip": zip, "enumerate": enumerate}.get(x.kind, object)
    return {List: list, Dict: dict}.get(type(x), type(x))


@calls(type)
def _type(s: Specialiser, given: Given, named: Named) -> Any:
    return class_of(given[0])


@calls(isinstance)
def _isinstance(s: Specialiser, given: Given, named: Named) -> bool:
    x, classes = given
    mine = class_of(x)
    return any(
        issubclass(mine, c) or (c is np.floating and mine is float) or (c is np.integer and mine is int)
        for c in _classes(classes)
    )


def _classes(x: Any) -> list[type]:
    if isinstance(x, tuple):
        return [c for part in x for c in _classes(part)]
    return list(x.__args__) if isinstance(x, types.UnionType) else [x]


@calls(callable)
def _callable(s: Specialiser, given: Given, named: Named) -> bool:
    return isinstance(given[0], Closure | Made) or (callable(given[0]) and type_of(given[0]) is None)


@calls(getattr)
def _getattr(s: Specialiser, given: Given, named: Named) -> Any:
    try:
        return attribute(s, given[0], given[1])
    except (Error, AttributeError):
        if len(given) > 2:
            return given[2]
        raise


@calls(hasattr)
def _hasattr(s: Specialiser, given: Given, named: Named) -> bool:
    try:
        attribute(s, *given)
    except (Error, AttributeError):
        return False
    return True


@calls(setattr)
def _setattr(s: Specialiser, given: Given, named: Named) -> None:
    setattr_(s, *given)


@calls(object.__setattr__)
def _set_frozen(s: Specialiser, given: Given, named: Named) -> None:
    x, name, value = given
    if not isinstance(x, Instance):
        raise Error(f"{describe(x)} does not let its attributes be changed in a compiled function")
    s.write(x, {**x.content, name: value})


@calls(str, repr)
def _str(s: Specialiser, given: Given, named: Named) -> str:
    if given and not known(given[0]):
        return f"<{describe(given[0])}>"
    return str(*map(unwrapped, given))


@calls(print)
def _print(s: Specialiser, given: Given, named: Named) -> Any:
    raise Error("print() cannot be compiled; call the function without compiling it to see what it prints")


calls(slice)(lambda s, given, named: slice(*given))
calls(np.copy)(lambda s, given, named: _copied(s, [as_array(s, given[0])], {}))


@calls(dataclasses.replace)
def _replace(s: Specialiser, given: Given, named: Named) -> Any:
    (x,) = given
    if isinstance(x, Instance):
        return construct(
            s, x.cls, [], {f.name: x.content[f.name] for f in dataclasses.fields(x.cls) if f.init} | dict(named)
        )
    return construct(
        s, type(x), [], {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.init} | dict(named)
    )


# -- classes and other things that can be called -----------------------------------------------------------------------


def construct(s: Specialiser, cls: type, given: Given, named: Named) -> Any:
    """An object of a class of the user's."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _named_tuple(cls, given, named)
    if issubclass(cls, BaseException):
        return cls(*(unwrapped(x) if known(x) else f"<{describe(x)}>" for x in given))
    fixed = bool(dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen)  # type: ignore[attr-defined]
    made = Instance(cls, {}, "", fixed)
    init = cls.__init__  # type: ignore[misc]
    if dataclasses.is_dataclass(cls) and "__dataclass_fields__" in vars(cls) and _is_generated(init):
        _fill(s, made, cls, list(given), dict(named))
        if hasattr(cls, "__post_init__"):
            s.call(bound("__post_init__", cls.__post_init__, made), [])
        return made
    if isinstance(init, types.FunctionType):
        s.call(init, [made, *given], named)
        return made
    if init is object.__init__ and not given and not named:
        return made
    raise Error(
        f"objects of {cls.__name__} cannot be made in a compiled function; there are dataclasses and named tuples"
    )


def _is_generated(init: Any) -> bool:
    code = getattr(init, "__code__", None)
    return code is not None and code.co_filename.startswith("<")


def _named_tuple(cls: Any, given: Given, named: Named) -> Any:
    values = dict(cls._field_defaults) | dict(zip(cls._fields, given, strict=False)) | dict(named)
    missing = [name for name in cls._fields if name not in values]
    if missing or len(given) > len(cls._fields) or set(values) - set(cls._fields):
        raise Error(f"{cls.__name__} has the fields {', '.join(cls._fields)}, each of which wants one value")
    return cls._make(values[name] for name in cls._fields)


def _fill(s: Specialiser, made: Instance, cls: type, given: list[Any], named: dict[str, Any]) -> None:
    content: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.init and given and not field.kw_only:
            content[field.name] = given.pop(0)
        elif field.init and field.name in named:
            content[field.name] = named.pop(field.name)
        elif field.default is not dataclasses.MISSING:
            content[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            content[field.name] = s.call(field.default_factory, [])
        elif field.init:
            raise Error(f"{cls.__name__}() needs a value for {field.name}")
    if given or named:
        raise Error(f"{cls.__name__}() was given more than its fields: {', '.join(named) or len(given)}")
    made.content = content


def _partial(s: Specialiser, given: Given, named: Named) -> Any:
    function, *first = given
    names, values = tuple(named), tuple(named.values())
    count = len(first)

    def run(s: Specialiser, held: tuple[Any, ...], more: Given, others: Named) -> Any:
        mine = dict(zip(names, held[1 + count :], strict=True))
        return s.call(held[0], [*held[1 : 1 + count], *more], mine | dict(others))

    return Made(("partial", "partial", count, names), run, (function, *first, *values))


calls(functools.partial)(_partial)


def _other_kinds(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """Methods of objects that are known, classes, partial functions, objects that can be called, wrapped functions."""
    if isinstance(function, functools.partial):
        return lambda s, given, named: s.call(function.func, [*function.args, *given], {**function.keywords, **named})
    if isinstance(function, types.MethodType):
        return lambda s, given, named: s.call(function.__func__, [function.__self__, *given], named)
    if isinstance(function, type):
        if function.__module__ == "builtins" and not issubclass(function, BaseException):
            return None
        return lambda s, given, named: construct(s, function, given, named)
    if isinstance(function, types.BuiltinFunctionType | types.MethodWrapperType | types.BuiltinMethodType):
        return _of_builtin(s, function)
    whole = getattr(function, "__compiles__", None)
    if callable(whole):  # a compiled function: what it was compiled from
        return lambda s, given, named: s.call(whole, given, named)
    method = getattr(type(function), "__call__", None)
    if isinstance(method, types.FunctionType) and not isinstance(function, types.FunctionType):
        return lambda s, given, named: s.call(method, [function, *given], named)
    return None


def _of_builtin(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """A function in C, computed at once where everything is known."""
    module = getattr(function, "__module__", None) or ""
    owner = getattr(function, "__self__", None)
    pure = module in ("math", "_operator") or isinstance(owner, str | bytes | int | float | tuple | dict | frozenset)
    if module == "builtins" and getattr(builtins, function.__name__, None) is function:
        pure = function.__name__ in ("chr", "ord", "hash", "bin", "hex", "oct", "ascii", "format")
    if not pure:
        return None

    def handler(s: Specialiser, given: Given, named: Named) -> Any:
        if not all(map(known, given)):
            raise Error(f"{function.__name__}() cannot be compiled where its arguments are known only as it runs")
        return wrapped(function(*map(unwrapped, given), **named))

    return handler


KINDS.append(_other_kinds)
