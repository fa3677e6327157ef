"""`operator`, `functools.lru_cache`, and third-party libraries with static arguments, while a function is specialised.

Python's operators are in `compiler/evaluate/operators.py`, `functools.partial` in `compiler/objects/classes.py`.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.names import special
from ...errors import Error, LiftError
from ..evaluate.iteration import items
from ..evaluate.operators import binary, contained, is_, negated, truth, unary, update
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import Closure, HostFunction, Instance, List, describe, known, type_of, unwrapped, wrapped
from ..frontend.operators import PYTHON, UNARY
from ..objects.containers import attribute, delitem, getitem, setitem

# -- operators as functions --------------------------------------------------------------------------------------------


def _enter(function: Any, run: Callable[..., Any]) -> None:
    calls(function, knows="default")(lambda s, args, named: run(s, *args))


def _enter_operator(name: str, function: Any) -> None:
    _enter(function, lambda s, a, b: binary(s, name, a, b))
    in_place = getattr(operator, "i" + function.__name__.strip("_"), None)
    if in_place is not None:
        _enter(in_place, lambda s, a, b: update(s, name, a, b))


for _name, (_function, _, _) in PYTHON.items():
    _enter_operator(_name, _function)
for _name, (_unary, _) in UNARY.items():
    _enter(_unary, lambda s, a, name=_name: unary(s, name, a))
_enter(operator.abs, lambda s, a: s.call(abs, [a]))
_enter(operator.is_, is_)
_enter(operator.is_not, lambda s, a, b: negated(is_(s, a, b)))
_enter(operator.not_, lambda s, a: negated(truth(s, a)))
_enter(operator.truth, truth)
_enter(operator.contains, lambda s, a, b: contained(s, b, a))
_enter(operator.concat, lambda s, a, b: binary(s, "add", a, b))
_enter(operator.iconcat, lambda s, a, b: update(s, "add", a, b))
_enter(operator.getitem, getitem)
_enter(operator.setitem, setitem)
_enter(operator.delitem, delitem)
_enter(operator.length_hint, lambda s, a, default=0: s.call(len, [a]))
if hasattr(operator, "call"):
    calls(operator.call)(lambda s, args, named: s.call(args[0], args[1:], named))


@calls(operator.index)
def _index(s: Specialiser, args: Args, named: Named) -> Any:
    (x,) = args
    t = type_of(x)
    if t is None or t.kind == "real" or t.shape:
        raise Error(f"operator.index() takes whole numbers, not {describe(x)}")
    return s.call(int, [x])


@calls(operator.countOf)
def _count(s: Specialiser, args: Args, named: Named) -> Any:
    found: Any = 0
    for x in items(s, args[0]):
        found = binary(s, "add", found, s.call(int, [truth(s, binary(s, "equal", x, args[1]))]))
    return found


@calls(operator.indexOf)
def _place(s: Specialiser, args: Args, named: Named) -> int:
    for i, x in enumerate(items(s, args[0])):
        same = truth(s, binary(s, "equal", x, args[1]))
        if not isinstance(same, bool):
            raise Error("operator.indexOf() of numbers that are known only as the function runs: use np.argmax(x == y)")
        if same:
            return i
    raise Error(f"operator.indexOf(): {describe(args[1])} is not in it")


# -- getters -----------------------------------------------------------------------------------------------------------


def _items(s: Specialiser, captured: tuple[Any, ...], args: Args, named: Named) -> Any:
    found = tuple(getitem(s, args[0], key) for key in captured)
    return found[0] if len(found) == 1 else found


def _attributes(s: Specialiser, captured: tuple[Any, ...], args: Args, named: Named) -> Any:
    found = []
    for path in captured:
        x = args[0]
        for name in path.split("."):
            x = attribute(s, x, name)
        found.append(x)
    return found[0] if len(found) == 1 else tuple(found)


def _method(s: Specialiser, captured: tuple[Any, ...], args: Args, named: Named) -> Any:
    name, *rest = captured
    return s.call(attribute(s, args[0], name), rest, named)


_GETTERS: dict[type, Callable[..., Any]] = {
    operator.itemgetter: _items,
    operator.attrgetter: _attributes,
    operator.methodcaller: _method,
}


def _getter(cls: type, options: Named, arguments: Args) -> HostFunction:
    name, run = cls.__name__, _GETTERS[cls]
    fixed = dict(options)
    return HostFunction(
        (name, name, *fixed), lambda s, captured, args, _: run(s, captured, args, fixed), tuple(arguments)
    )


for _cls in _GETTERS:
    calls(_cls)(lambda s, args, named, cls=_cls: _getter(cls, named, args))


def of_getter(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The finder for getters made outside of compiled code, and for functions with `functools.lru_cache`."""
    if isinstance(function, tuple(_GETTERS)):
        reduced: tuple[Any, ...] = tuple(function.__reduce__())
        cls, arguments, options = reduced[0], reduced[1], {}
        if isinstance(cls, functools.partial):  # a methodcaller with named arguments
            arguments, options = (*cls.args, *arguments), cls.keywords
        return lambda s, args, named: s.call(_getter(type(function), options, arguments), args)
    if isinstance(function, functools._lru_cache_wrapper):
        return lambda s, args, named: s.call(function.__wrapped__, args, named)
    return None


# -- third-party libraries ---------------------------------------------------------------------------------------------

_PURE = frozenset({"scipy", "statistics", "fractions", "cmath", "decimal", "numbers"})
"""Packages of pure functions."""


def plain(x: Any) -> bool:
    """Whether a value is static, and the same object that a library gets without compilation."""
    if isinstance(x, Closure | HostFunction | Instance):
        return False
    if isinstance(x, tuple):
        return all(map(plain, x))
    return all(map(plain, x.content)) if isinstance(x, List) else known(x)


def of_library(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The finder for pure libraries: called with static arguments, compiled from source where that is possible."""
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or type(owner).__module__
    if module.split(".")[0] not in _PURE or isinstance(function, np.ufunc) or not callable(function):
        return None
    name = f"{module.removesuffix('._basic')}.{getattr(function, '__name__', type(function).__name__)}"
    if name.rsplit(".", 1)[-1] in ("rvs", "resample", "bootstrap"):
        raise s.error(
            "random numbers cannot be drawn in a compiled function, which would use the same in each call; pass them in"
        )

    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        if all(map(plain, args)) and all(map(plain, named.values())):
            return wrapped(function(*map(unwrapped, args), **{key: unwrapped(x) for key, x in named.items()}))
        if isinstance(function, types.FunctionType):
            try:
                return s.enter(s.closure_of(function), args, named)
            except LiftError:
                pass
        short = name.rsplit(".", 1)[-1]
        advice = f"there is dg.special.{short}" if hasattr(special, short) else "write it with numpy"
        raise Error(
            f"{name} cannot be compiled with arguments that are known only as the function runs; {advice}, or give it "
            "a rule with dg.custom_rule"
        )

    return handler
