"""Decorators of public functions: misspelt options and exhausted memory are our errors, and tracebacks are short.

`public` decorates every function and method that a user calls with options, `public_iterator` generators. Type checkers
and completion see the function as it is written; options that it takes as one `Unpack[SomeTypedDict]` are named one by
one in its signature. `strict_options` is the same without shorter tracebacks, for functions that call users' functions.

What a single argument may be is checked in `arguments.py`; what errors are is in `errors.py`.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar, get_type_hints

from .errors import HOUSE, Error, RoomError, cut, shown

P = ParamSpec("P")
R = TypeVar("R")


def public(f: Callable[P, R]) -> Callable[P, R]:
    """A function whose misspelt options are errors, and whose errors have tracebacks that end at the caller's line.

    >>> @public
    ... def brew(*, minutes: int = 3) -> int:
    ...     return minutes
    >>> brew(minuets=4)
    Traceback (most recent call last):
        ...
    dynagrad.errors.Error: brew has no option minuets; did you mean minutes?
    """
    _name_options(f)
    options, refused = _options(f), _refused
    shortened, ours, memory, room = _shortened, (Error, Warning), MemoryError, _no_room
    # locals, because the copy of `call` that `_like` makes has the globals of f

    def call(*arguments: Any, **named: Any) -> Any:
        if not options.issuperset(named):
            raise refused(f, arguments, named)
        try:
            return f(*arguments, **named)
        except ours as error:
            raise shortened(error)  # noqa: B904  -- it is the same error
        except memory as error:
            raise room(f, arguments, error) from None

    return _like(f, call)


def public_iterator(f: Callable[P, Iterator[R]]) -> Callable[P, Iterator[R]]:
    """`public` for a generator function."""
    shortened, ours, memory, room = _shortened, (Error, Warning), MemoryError, _no_room

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            yield from f(*arguments, **named)
        except ours as error:
            raise shortened(error)  # noqa: B904  -- it is the same error
        except memory as error:
            raise room(f, arguments, error) from None

    return _like(f, call)


def strict_options(f: Callable[P, R]) -> Callable[P, R]:
    """A function whose misspelt options are errors."""
    options, refused = _options(f), _refused

    def call(*arguments: Any, **named: Any) -> Any:
        if not options.issuperset(named):
            raise refused(f, arguments, named)
        return f(*arguments, **named)

    return _like(f, call)


def strict_options_class(cls: type[R]) -> type[R]:
    """A class whose constructor has misspelt options as errors."""
    cls.__init__ = strict_options(cls.__init__)  # type: ignore[method-assign]  # the same parameters
    return cls


def maker(cls: Callable[P, R], source: str) -> Callable[P, R]:
    """A factory for a class that only our own code instantiates; users who call the class are told where to get one.

    >>> class Cup:
    ...     def __init__(self, size: int) -> None:
    ...         self.size = size
    >>> make_cup = maker(Cup, "cups come from brew")
    >>> make_cup(3).size
    3
    >>> Cup(3)
    Traceback (most recent call last):
        ...
    dynagrad.errors.Error: cups come from brew
    """
    kind: Any = cls
    fill = kind.__init__

    def refuse(self: Any, /, *_: Any, **__: Any) -> None:
        raise Error(source)

    def make(*arguments: Any, **named: Any) -> Any:
        made = kind.__new__(kind)
        fill(made, *arguments, **named)
        return made

    refuse.__doc__ = f"Not for users: {source}."
    refuse.__name__, refuse.__qualname__ = "__init__", f"{kind.__qualname__}.__init__"
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    refuse.__signature__ = inspect.Signature([this])  # type: ignore[attr-defined]  # functions have it if it is set
    kind.__init__ = refuse
    make.__name__ = make.__qualname__ = f"make_{kind.__name__.lower()}"  # where pickles look for it
    make.__module__ = kind.__module__
    return make


def _name_options(f: Callable[..., Any]) -> None:
    """Gives a function of `**options: Unpack[SomeTypedDict]` a signature with each of these options."""
    found = [match for hint in f.__annotations__.values() if (match := re.fullmatch(r"Unpack\[(\w+)\]", str(hint)))]
    if found:
        signature, options = inspect.signature(f), get_type_hints(f.__globals__[found[0][1]])
        *others, _ = signature.parameters.values()
        kind = inspect.Parameter.KEYWORD_ONLY
        each = [inspect.Parameter(name, kind, default=None, annotation=hint) for name, hint in options.items()]
        f.__signature__ = signature.replace(parameters=[*others, *each])  # type: ignore[attr-defined]  # see `maker`


class _Every(frozenset[str]):
    """The options of a function that looks at their names itself."""

    def issuperset(self, other: Iterable[object]) -> bool:
        return True


def _options(f: Callable[..., Any]) -> frozenset[str]:
    parameters = inspect.signature(f).parameters.values()
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return _Every()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(p.name for p in parameters if p.kind in named)


def _like(f: Callable[P, R], call: Callable[..., Any]) -> Callable[P, R]:
    """`call` in place of `f`, with its name, its signature, and its globals, in which doctests find it."""
    assert isinstance(call, FunctionType) and isinstance(f, FunctionType)
    made = FunctionType(call.__code__, f.__globals__, f.__name__, None, call.__closure__)
    return functools.update_wrapper(made, f)


def _refused(f: Callable[..., Any], arguments: Sequence[Any], named: Iterable[str]) -> Error:
    """The error for the first name that is not an option."""
    options = sorted(_options(f) - {"self", "cls"})
    wrong = next(name for name in named if name not in options)
    return Error(f"{_called(f, arguments)} has no option {cut(wrong, 100)}{nearest_option(wrong, options)}")


def _called(f: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """What the caller calls a function: a method by the class of its object, which may have inherited it."""
    owner, dot, name = f.__qualname__.removesuffix(".__init__").split("<locals>.")[-1].rpartition(".")
    inherited = any(owner == c.__name__ for a in arguments[:1] for c in type(a).__mro__)
    return (type(arguments[0]).__name__ if inherited else owner) + dot + name


def nearest_option(wrong: str, options: Iterable[str]) -> str:
    """A hint at the option that was probably meant.

    >>> nearest_option("treads", ["query", "threads"]), nearest_option("colour", ["query", "threads"])
    ('; did you mean threads?', '; there are query, threads')
    """
    options = list(options)
    close = difflib.get_close_matches(wrong[:100], options, 1, 0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; there are {', '.join(options)}" if options else f"; it takes none, and {shown(wrong)} was given"


_LIBRARIES = frozenset({"contextlib", "dynagrad", "numpy", "pandas", "pyarrow"})
"""Libraries that our own code calls; frames of other modules are a user's. What `dataclass` writes has our name, and no
file."""


def _is_ours(error: BaseException) -> bool:
    """Whether an error was raised with only our frames on the stack, and none of a user's function."""
    frame: TracebackType | None = error.__traceback__
    frame = frame.tb_next if frame is not None else None
    while frame is not None:
        module = frame.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if not frame.tb_frame.f_code.co_filename.startswith(HOUSE) and module not in _LIBRARIES:
            return False
        frame = frame.tb_next
    return True


E = TypeVar("E", bound=BaseException)


def _shortened(error: E) -> E:
    """An error without our frames; with all frames if a user's function is among them."""
    return error.with_traceback(None) if _is_ours(error) else error


def _no_room(f: Callable[..., Any], arguments: Sequence[Any], error: MemoryError) -> BaseException:
    """The error for memory that ran out in our code."""
    if not _is_ours(error):
        return error
    name = _called(f, arguments).partition(".__")[0]  # such as Chart.query, or Chart for its operators
    return RoomError(
        f"there is no memory left for {name}: ask for less at once, such as a pattern that fewer items match "
        "or fewer facts, or give the process more"
    )
