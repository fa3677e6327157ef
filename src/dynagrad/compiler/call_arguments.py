"""How calls of library functions are checked against the signature of the function that is installed.

A handler of a function of Python's library names the optional arguments that it knows (`calls(..., knows=...)` in
`evaluate/specialiser.py`). What a call gives is bound as Python binds it; what the handler does not know is refused,
also if only a newer Python has it. Functions of numpy are bound by `eager/numpy/functions.py`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import Error, shown

_WRITTEN: dict[Any, str] = {
    bool: "object=False, /",
    dict: "iterable=None, /, **named",
    filter: "function, iterable, /",
    frozenset: "iterable=(), /",
    functools.partial: "function, /, *arguments, **named",
    functools.reduce: "function, iterable, initial=None, /",
    getattr: "object, name, default=None, /",
    int: "x=0, /, base=10",
    itertools.chain: "*iterables",
    itertools.islice: "iterable, start, stop=None, step=None, /",
    itertools.product: "*iterables, repeat=1",
    itertools.repeat: "object, times=None",
    itertools.zip_longest: "*iterables, fillvalue=None",
    map: "function, iterable, /, *iterables",
    math.hypot: "*coordinates",
    math.log: "x, base=math.e, /",
    max: "first, /, *others, key=None, default=None",
    min: "first, /, *others, key=None, default=None",
    next: "iterator, default=None, /",
    np.fromiter: "iter, dtype, count=-1, *, like=None",
    np.power: "x1, x2, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None, subok=True",
    operator.attrgetter: "name, /, *names",
    operator.itemgetter: "item, /, *items",
    operator.methodcaller: "name, /, *arguments, **named",
    range: "start, stop=None, step=None, /",
    set: "iterable=(), /",
    slice: "start, stop=None, step=None, /",
    str: "object='', encoding='utf-8', errors='strict'",
    super: "type=None, object=None, /",
    type: "object, bases=None, dict=None, /",
    zip: "*iterables, strict=False",
}
"""The parameters of functions that do not say them in each version of Python or numpy; those that do are believed."""


class _Places(NamedTuple):
    signature: inspect.Signature
    places: tuple[inspect.Parameter, ...]  # what may be given by place
    least: int  # how many arguments a call by place has to have
    most: int  # and how many it may have of which the handler knows each


@functools.cache
def signature_of(function: Any) -> inspect.Signature:
    """The signature of a library function as it is installed.

    >>> str(signature_of(sum))
    '(iterable, /, start=0)'
    """
    try:
        return inspect.signature(function)
    except ValueError:
        text = _WRITTEN[function]
    return inspect.signature(eval(f"lambda {text}: None", {"math": math}))  # of the table above


@functools.cache
def _takes(function: Any, knows: frozenset[str] | None) -> _Places:
    signature = signature_of(function)
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = tuple(p for p in signature.parameters.values() if p.kind in by_place)
    least = sum(p.default is p.empty for p in places)
    most = least
    while most < len(places) and (knows is None or places[most].name in knows):
        most += 1
    if most == len(places) and any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
        most = 10**9
    return _Places(signature, places, least, most)


def checked(
    function: Any, knows: frozenset[str] | None, arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, each by place if it has one. `knows` has the optional ones that the handler knows, and
    is None if it knows all. Raises TypeError for a call that Python refuses, and Error for what is not known to the
    handler.

    >>> checked(round, frozenset({"ndigits"}), [2.5], {"ndigits": 1})
    ([2.5, 1], {})
    """
    takes = _takes(function, knows)
    if not named and takes.least <= len(arguments) <= takes.most:
        return list(arguments), {}
    name = getattr(function, "__name__", str(function))
    try:
        given = takes.signature.bind(*arguments, **named)
    except TypeError as problem:
        raise TypeError(f"{name}(): {problem}") from None
    for each in list(given.arguments):
        p, value = takes.signature.parameters[each], given.arguments[each]
        if knows is None or p.default is p.empty or each in knows:
            continue
        if not _same(value, p.default):
            raise Error(f"{name}() does not take {each}={shown(value)} in a compiled function; leave it out")
        del given.arguments[each]
    last = max((i for i, p in enumerate(takes.places) if p.name in given.arguments), default=-1)
    for p in takes.places[: last + 1]:
        given.arguments.setdefault(p.name, p.default)
    given.arguments = {n: given.arguments[n] for n in takes.signature.parameters if n in given.arguments}
    return list(given.args), dict(given.kwargs)


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, int | float | str | tuple) and bool(a == b))


def checking(function: Any, knows: frozenset[str] | None, handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler that gets its arguments checked."""

    def run(s: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        return handler(s, *checked(function, knows, arguments, named))

    return run
