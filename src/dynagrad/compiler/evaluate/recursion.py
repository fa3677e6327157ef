"""Functions that call themselves as the graph decides: these become functions of the graph.

Such a function sees its arguments alone, so what it holds is passed to it as well. What its arguments and results have
in common over all calls is found by trial, as for loops. In the first trials a call of itself has no value (`Diverges`)
so that its results are known from the branches that end the recursion; what these return settles the type.

Where one such function is made inside of another, what is found in a trial of the outer one holds in that trial only:
there the inner one has a kind of result, and it is made when the outer one is settled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import LiftError
from ...ir import Node, control, tracing
from ...ir.node import fresh
from ..frontend.core import Lambda
from .joins import Mismatch, Pattern, build, equal, flatten, leaf_types, merge, pattern
from .specialiser import Diverges, Specialiser, primitive
from .values import Closure, node_of

TRIALS = 30
OWNED = "it came from outside of a function that calls itself; change a copy of it and return that"


class Recursive:
    """A function of the graph while it is made: what its calls have in common, and, once it is known, the function."""

    def __init__(self, arguments: Pattern, results: Pattern | None) -> None:
        self.arguments, self.results = arguments, results
        self.function: control.GraphFunction | None = None
        self.seen = arguments  # what the calls of the present trial have in common


def _whole(function: Closure, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """All that a call passes on: what the function holds, and its arguments."""
    return (*function.held.values(), *function.defaults.values(), *given.values())


def _parted(function: Closure, given: Mapping[str, Any], values: tuple[Any, ...]) -> tuple[Closure, dict[str, Any]]:
    held = dict(zip(function.held, values, strict=False))
    rest = values[len(held) :]
    defaults = dict(zip(function.defaults, rest, strict=False))
    parameters = dict(zip(given, rest[len(defaults) :], strict=True))
    return Closure(function.code, held, function.group, defaults), parameters


@primitive("recurse")
def recurse(s: Specialiser, function: Closure, given: Mapping[str, Any]) -> Any:
    """A call of a function that has to become one of the graph."""
    code = function.code
    s.may_raise(RecursionError, Exception)
    values = _whole(function, given)
    mine = pattern(values, deep=True)
    for known in s.functions.get(code, []):
        if equal(known.arguments, mine):
            return _called(s, known, values)
    around = list(s.recursions.values())
    tried = any(outer.function is None for outer in around)
    made = Recursive(mine, None)
    s.recursions[code] = made
    try:
        _settle(s, made, function, given, any(outer.results is None for outer in around))
        if not tried:
            _define(s, made, function, given)
    except Mismatch as problem:
        raise _differs(s, code, problem) from None
    finally:
        del s.recursions[code]
    if tried:
        return _standing_for(s, made)
    s.functions.setdefault(code, []).append(made)
    return _called(s, made, values)


def _differs(s: Specialiser, code: Lambda, problem: Mismatch) -> LiftError:
    return s.error(
        f"{code.name}() calls itself with, or returns, {problem.a} in one place and {problem.b} in another; a function "
        "that calls itself as the run decides needs arguments and results of one kind, shape and structure",
        code.at,
    )


def _settle(s: Specialiser, made: Recursive, function: Closure, given: Mapping[str, Any], pending: bool) -> None:
    """Finds what all calls have in common, and all results; `pending` where a function around has no result yet."""
    code: Lambda = function.code
    for _ in range(TRIALS):
        made.seen = made.arguments
        variables = [fresh(t) for t in leaf_types(made.arguments)]
        try:
            result = pattern(_run(s, made, function, given, variables), deep=True)
        except Diverges:
            if equal(made.seen, made.arguments):
                if pending:
                    raise
                raise s.error(f"{code.name}() never ends: each of its branches calls it again", code.at) from None
            made.arguments = made.seen
            continue
        found = result if made.results is None else merge(made.results, result, "the result")
        if made.results is not None and equal(found, made.results) and equal(made.seen, made.arguments):
            return
        made.arguments, made.results = made.seen, found
    raise s.error(f"the arguments or results of {code.name}() do not settle down to one kind", code.at)


def _define(s: Specialiser, made: Recursive, function: Closure, given: Mapping[str, Any]) -> None:
    assert made.results is not None
    results = made.results
    made.function = control.GraphFunction(function.name, leaf_types(made.arguments), leaf_types(results))
    tracing.define(
        made.function,
        lambda *inputs: list(flatten(_run(s, made, function, given, list(inputs)), results)),
    )


def _run(s: Specialiser, made: Recursive, function: Closure, given: Mapping[str, Any], variables: list[Any]) -> Any:
    """What is checked in the body, and its result, for variables as arguments."""
    values = build(made.arguments, iter(variables), OWNED)
    inner, parameters = _parted(function, given, values)
    with s.journal() as changed:
        s.level += 1
        s.put(s.token, 0)
        result = s.evaluate(function.code.body, s.environment(inner, parameters))
        checked = s.token.content
    changed.pop(s.token, None)
    if changed:
        raise s.error(
            f"{function.name}() calls itself as the run decides, and changes something from outside; return it instead",
            function.code.at,
        )
    return checked, result


@primitive("call again")
def again(s: Specialiser, function: Closure, given: Mapping[str, Any]) -> Any:
    """A call of a function inside of itself, while it is made."""
    made: Recursive = s.recursions[function.code]
    values = _whole(function, given)
    if made.function is not None:
        return _called(s, made, values)
    try:
        made.seen = merge(made.seen, pattern(values, deep=True))
    except Mismatch as problem:
        raise _differs(s, function.code, problem) from None
    if made.results is None:
        raise Diverges
    return _standing_for(s, made)


def _standing_for(s: Specialiser, made: Recursive) -> Any:
    """Anything of the kind of a result, while the function is not known."""
    assert made.results is not None
    return _checked(s, build(made.results, iter([fresh(t) for t in leaf_types(made.results)]), ""))


def _checked(s: Specialiser, found: tuple[Any, Any]) -> Any:
    """The result of a call, whose token is added to that of the run."""
    checked, result = found
    if isinstance(checked, Node):
        s.put(s.token, node_of(s.token.content) + checked)
    return result


def _called(s: Specialiser, made: Recursive, values: tuple[Any, ...]) -> Any:
    assert made.function is not None and made.results is not None
    nodes = tracing.call(made.function, *flatten(values, made.arguments)) if made.function.results else []
    return _checked(s, build(made.results, iter(nodes), ""))
