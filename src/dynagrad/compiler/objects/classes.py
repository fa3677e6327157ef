"""Calls of classes, methods and callable objects while a function is specialised; `super()` and `functools.partial`.

What objects hold, and their attributes, are in `containers.py`; functions in Python are called by the specialiser
itself.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.numpy.missing import unknown
from ...errors import Error
from ..evaluate.specialiser import Args, Named, Specialiser, calls, primitive
from ..evaluate.values import DynamicText, HostFunction, Instance, known, normal, unwrapped, wrapped
from .containers import attribute, bound, vars_of


def construct(s: Specialiser, cls: type, args: Args, named: Named) -> Any:
    """A call of a class: a dataclass, a named tuple, an exception, or one with an `__init__` in Python."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _named_tuple(cls, args, named)
    if issubclass(cls, BaseException):
        if named:
            raise Error(
                f"{cls.__name__} takes no arguments by name in a compiled function, and {next(iter(named))} is given"
            )
        return cls(*(unwrapped(x) if known(x) else DynamicText.of(x) for x in args))
    frozen = bool(dataclasses.is_dataclass(cls) and getattr(cls, "__dataclass_params__").frozen)  # noqa: B009  # type checkers do not know this attribute
    made = Instance(cls, {}, "", frozen)
    init = cls.__init__
    if dataclasses.is_dataclass(cls) and "__dataclass_fields__" in vars(cls) and _is_generated(init):
        _fill(s, made, cls, args, named)
        if hasattr(cls, "__post_init__"):
            s.call(bound("__post_init__", cls.__post_init__, made), [])
        return made
    if isinstance(init, types.FunctionType):
        s.call(init, [made, *args], named)
        return made
    if init is object.__init__ and not args and not named:
        return made
    raise Error(
        f"objects of {cls.__name__} cannot be made in a compiled function; use a dataclass, a named tuple, or a class "
        "whose __init__ is written in Python"
    )


def _of_numpy(cls: type, args: Args, named: Named) -> Any:
    """An object of a class of numpy, made of static arguments."""
    if not all(map(known, [*args, *named.values()])):
        raise unknown(f"np.{cls.__name__}")
    return wrapped(cls(*map(unwrapped, args), **{name: unwrapped(x) for name, x in named.items()}))


def _is_generated(init: Any) -> bool:
    code = getattr(init, "__code__", None)
    return code is not None and code.co_filename.startswith("<")


def _named_tuple(cls: Any, args: Args, named: Named) -> Any:
    values = dict(cls._field_defaults) | dict(zip(cls._fields, args, strict=False)) | dict(named)
    missing = [name for name in cls._fields if name not in values]
    if missing or len(args) > len(cls._fields) or set(values) - set(cls._fields):
        raise Error(f"{cls.__name__} has the fields {', '.join(cls._fields)}; give one value for each")
    return cls._make(values[name] for name in cls._fields)


def _fill(s: Specialiser, made: Instance, cls: type, args: Args, named: Named) -> None:
    args, named = list(args), dict(named)
    content: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.init and args and not field.kw_only:
            content[field.name] = args.pop(0)
        elif field.init and field.name in named:
            content[field.name] = named.pop(field.name)
        elif field.default is not dataclasses.MISSING:
            content[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            content[field.name] = s.call(field.default_factory, [])
        elif field.init:
            raise Error(f"{cls.__name__}() needs a value for {field.name}")
    if args or named:
        raise Error(f"{cls.__name__}() was given more than its fields: {', '.join(named) or len(args)}")
    s.put(made, {**made.content, **content})


@calls(super, knows=None)
def _super(s: Specialiser, args: Args, named: Named) -> Any:
    if len(args) != 2 or not isinstance(args[0], type):
        raise Error("super() cannot be compiled here; write it inside a method, or name the class: Base.f(self)")
    return HostFunction(("super", args[0]), _no_call, (args[1],))


def _no_call(s: Specialiser, captured: tuple[Any, ...], args: Args, named: Named) -> Any:
    raise Error("super() is called here; call a method of it: super().f()")


@primitive("super attribute")
def super_attribute(s: Specialiser, x: HostFunction, name: str) -> Any:
    """`super().name`: the attribute in the classes that follow in the method resolution order."""
    (me,) = x.captured
    classes = (me.cls if isinstance(me, Instance) else type(me)).__mro__
    after = classes[classes.index(x.kind[1]) + 1 :]
    raw = next((vars(cls)[name] for cls in after if name in vars(cls)), None)
    if name == "__init__" and (raw is None or raw is object.__init__):
        return HostFunction(("method", name), lambda *_: None)
    owner = next((cls for cls in after if name in vars(cls)), None)
    if raw is None or owner is None:
        raise AttributeError(f"'super' object has no attribute {name!r}")
    if name == "__init__" and _is_generated(raw):
        return HostFunction(
            ("method", name, owner), lambda s, captured, args, named: _fill(s, me, owner, args, named), (me,)
        )
    if isinstance(raw, property):
        return s.call(raw.fget, [me])
    if isinstance(raw, staticmethod):
        return raw.__func__
    if isinstance(raw, classmethod):
        return bound(name, raw.__func__, classes[0])
    return bound(name, raw, me) if isinstance(raw, types.FunctionType) else normal(raw)


def _partial(s: Specialiser, args: Args, named: Named) -> Any:
    function, *first = args
    names, values = tuple(named), tuple(named.values())
    count = len(first)

    def run(s: Specialiser, captured: tuple[Any, ...], more: Args, others: Named) -> Any:
        mine = dict(zip(names, captured[1 + count :], strict=True))
        return s.call(captured[0], [*captured[1 : 1 + count], *more], mine | dict(others))

    return HostFunction(("partial", "partial", count, names), run, (function, *first, *values))


calls(functools.partial)(_partial)


@calls(functools.update_wrapper)
def _wrapping(s: Specialiser, args: Args, named: Named) -> HostFunction:
    """`functools.update_wrapper`: the first function, with the name of the second."""
    names = dict(named)
    wrapper, wrapped_, *_ = [*args, *(names[name] for name in ("wrapper", "wrapped")[len(args) :])]
    name = attribute(s, wrapped_, "__name__") if not isinstance(wrapped_, Instance) else wrapped_.cls.__name__
    return HostFunction(
        ("wraps", name), lambda s, captured, args, named: s.call(captured[0], args, named), (wrapper, wrapped_)
    )


@calls(functools.wraps)
def _wraps(s: Specialiser, args: Args, named: Named) -> HostFunction:
    function = [*args, *named.values()][0]
    return HostFunction(
        ("wraps", "wraps"), lambda s, captured, args, _: _wrapping(s, [args[0], captured[0]], {}), (function,)
    )


def of_object(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The finder for bound methods, classes, partial and compiled functions, and objects with `__call__`."""
    if isinstance(function, Instance) and "__call__" in vars_of(function.cls):
        return lambda s, args, named: s.call(attribute(s, function, "__call__"), args, named)
    if isinstance(function, functools.partial):
        return lambda s, args, named: s.call(function.func, [*function.args, *args], {**function.keywords, **named})
    if isinstance(function, types.MethodType):
        return lambda s, args, named: s.call(function.__func__, [function.__self__, *args], named)
    if isinstance(function, type):
        if function.__module__ == "builtins" and not issubclass(function, BaseException):
            return None
        if issubclass(function, np.generic | np.finfo | np.iinfo | np.dtype):
            return None  # scalar types, handled in compiler/numpy/calls.py
        if function.__module__.split(".")[0] == "numpy":
            return lambda s, args, named: _of_numpy(function, args, named)
        return lambda s, args, named: construct(s, function, args, named)
    if isinstance(function, types.BuiltinFunctionType | types.MethodWrapperType | types.BuiltinMethodType):
        return _of_builtin(s, function)
    if isinstance(function, types.FunctionType) and (function.__module__, function.__name__) == (_COMPILED, "compile"):
        return lambda s, args, named: args[0]  # compiled with the function around it
    if type(function).__module__ == _COMPILED:  # the function that it was compiled from
        return lambda s, args, named: s.call(function.function, args, named)
    if isinstance(function, np.poly1d):
        return lambda s, args, named: s.call(np.polyval, [function.coeffs, *args], named)
    method = vars_of(type(function)).get("__call__")
    if isinstance(method, types.FunctionType) and not isinstance(function, types.FunctionType):
        return lambda s, args, named: s.call(method, [function, *args], named)
    return None


def _of_builtin(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The handler of a pure function in C, which is called with static arguments only."""
    module = getattr(function, "__module__", None) or ""
    owner, name = getattr(function, "__self__", None), str(function.__name__)
    pure = module in ("math", "_operator") or isinstance(owner, str | bytes | int | float | tuple | frozenset)
    pure = pure or (isinstance(owner, dict | list) and name in ("get", "items", "keys", "values", "index", "count"))
    if module == "builtins" and getattr(builtins, name, None) is function:
        pure = name in ("chr", "ord", "hash", "bin", "hex", "oct", "ascii", "format")
    if not pure:
        return None

    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        if not all(map(known, [*args, *named.values()])):
            raise Error(f"{name}() cannot be compiled with arguments that are known only as the function runs")
        return wrapped(function(*map(unwrapped, args), **{key: unwrapped(x) for key, x in named.items()}))

    return handler


_COMPILED = __name__.rsplit(".", 2)[0] + ".compiled"


@calls(dataclasses.replace)
def _replace(s: Specialiser, args: Args, named: Named) -> Any:
    (x,) = args
    if isinstance(x, Instance):
        return construct(
            s, x.cls, [], {f.name: x.content[f.name] for f in dataclasses.fields(x.cls) if f.init} | dict(named)
        )
    return construct(
        s, type(x), [], {f.name: getattr(x, f.name) for f in dataclasses.fields(x) if f.init} | dict(named)
    )
