"""Tail recursion as loops: core language to core language, for the compiler. The machine has no need of it.

A function that calls itself in tail positions alone becomes a loop over its argument. Where a single choice, of which
nothing but builtins is asked, ends it, the loop has that condition; elsewhere the state says whether it goes on.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from ....compiler.frontend.core import (
    UNDEFINED,
    Apply,
    Constant,
    Expression,
    Fix,
    If,
    Lambda,
    Let,
    Name,
    Project,
    Tuple,
    While,
)
from ..builtins import BUILTINS, TRUTH, Builtin
from ..lower import fresh
from ..variables import free


def looped(e: Expression) -> Expression:
    """An expression whose tail recursions are loops."""
    spine: list[Let | Fix] = []
    while isinstance(e, Let | Fix):
        spine.append(e)
        e = e.body
    body = _looped(e)
    for binding in reversed(spine):
        if isinstance(binding, Let):
            body = replace(binding, value=looped(binding.value), body=body)
        else:
            functions = tuple((name, looped_function(name, code)) for name, code in binding.functions)
            if len(functions) == 1 and functions[0][0] not in functions[0][1].free:
                body = Let(*functions[0], body, binding.at)
            else:
                body = replace(binding, functions=functions, body=body)
    return body


def _looped(e: Expression) -> Expression:
    if isinstance(e, Lambda):
        return _inside(e)
    if isinstance(e, If):  # all but #f is true, which is not so in the core language
        test = fresh("test")
        choice = replace(e, condition=Name(test, e.at), then=looped(e.then), otherwise=looped(e.otherwise))
        return Let(test, Apply(Constant(TRUTH), (e.condition,), (), e.at), choice, e.at)
    return e


@functools.lru_cache(maxsize=10_000)
def _inside(code: Lambda) -> Lambda:
    return replace(code, body=looped(code.body))


@functools.lru_cache(maxsize=10_000)
def looped_function(name: str, code: Lambda) -> Lambda:
    """A function that may call itself under a name."""
    body = looped(code.body)
    if name not in code.free or not _only_tail_calls(body, name):
        return replace(code, body=body)
    (parameter,) = code.parameters
    made = _by_condition(body, name, parameter.name, code) or _by_flag(body, name, parameter.name, code)
    return replace(code, body=made, free=tuple(sorted(set(code.free) - {name})))


def _only_tail_calls(e: Expression, name: str) -> bool:
    """Whether a name is called in tail positions, and does not occur elsewhere."""
    while isinstance(e, Let | Fix):
        if name in (free(e.value) if isinstance(e, Let) else {n for _, code in e.functions for n in code.free}):
            return False
        e = e.body
    match e:
        case If():
            return _only_tail_calls(e.then, name) and _only_tail_calls(e.otherwise, name)
        case Apply(function=Name(name=called)) if called == name:
            return not any(isinstance(a, Name) and a.name == name for a in e.arguments)
    return name not in free(e)


def _by_condition(body: Expression, name: str, parameter: str, code: Lambda) -> Expression | None:
    """A loop with a condition: bindings of builtins, then a choice of which one side calls again and the other not."""
    spine: list[Let] = []
    e = body
    while isinstance(e, Let) and _cheap(e.value):
        spine.append(e)
        e = e.body
    if not isinstance(e, If):
        return None
    again, ends = (name in free(e.then), name in free(e.otherwise)), (e.otherwise, e.then)
    if again[0] == again[1]:
        return None
    goes_on, end = (e.then, ends[0]) if again[0] else (e.otherwise, ends[1])
    if _branches(goes_on):
        return None

    def wrapped(inner: Expression) -> Expression:
        for binding in reversed(spine):
            inner = replace(binding, body=inner)
        return inner

    condition: Expression = e.condition
    if not again[0]:
        condition = Apply(Constant(BUILTINS["not"]), (e.condition,), (), e.at)
    state, final = parameter, fresh("state")
    loop = While((state,), (Name(parameter),), wrapped(condition), wrapped(_called(goes_on, name, None)), code.at, True)
    return Let(final, loop, Let(parameter, Project(Name(final), 0), wrapped(end), code.at), code.at)


def _cheap(e: Expression) -> bool:
    if isinstance(e, Apply):
        return isinstance(e.function, Constant) and isinstance(e.function.value, Builtin)
    return not isinstance(e, If | While | Let | Fix | Lambda)


def _branches(e: Expression) -> bool:
    """Whether there are choices, at least two ends, in tail position."""
    while isinstance(e, Let | Fix):
        e = e.body
    return isinstance(e, If)


def _called(e: Expression, name: str, flags: tuple[Constant, Constant] | None) -> Expression:
    """The body of a loop: in the place of a call, the next state; with `flags`, whether it goes on, and the result."""
    spine: list[Let | Fix] = []
    while isinstance(e, Let | Fix):
        spine.append(e)
        e = e.body
    found: Expression
    if isinstance(e, If):
        found = replace(e, then=_called(e.then, name, flags), otherwise=_called(e.otherwise, name, flags))
    elif isinstance(e, Apply) and isinstance(e.function, Name) and e.function.name == name:
        items = (e.arguments[0],) if flags is None else (flags[0], e.arguments[0], Constant(UNDEFINED))
        found = Tuple(items, e.at)
    else:
        result = fresh("result")
        assert flags is not None
        found = Let(result, e, Tuple((flags[1], Constant(UNDEFINED), Name(result)), getattr(e, "at", None)), None)
    for binding in reversed(spine):
        found = replace(binding, body=found)
    return found


def _by_flag(body: Expression, name: str, parameter: str, code: Lambda) -> Expression:
    """A loop whose state says whether it goes on, and what the result is."""
    going, result, final = fresh("going"), fresh("result"), fresh("state")
    inside = _called(body, name, (Constant(True), Constant(False)))
    initial = (Constant(True), Name(parameter), Constant(UNDEFINED))
    loop = While((going, parameter, result), initial, Name(going), inside, code.at, True)
    return Let(final, loop, Project(Name(final), 2), code.at)
