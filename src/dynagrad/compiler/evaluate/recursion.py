"""Dynamic recursion: a function that calls itself under a dynamic condition becomes a function of the graph.

Such a function is closure-converted: what it captures is passed as arguments. The abstract values of its arguments and
results are found by fixed-point iteration over all its calls, as for loops. In the first iterations a recursive call
has no value (bottom, `Diverges`), so the results come from the branches that end the recursion.

A function that becomes recursive inside another one whose iteration is still going on is inferred again in each
iteration of the outer one, and defined once the outer one is settled; until then placeholders stand for its results.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from ...autodiff.control_flow import NoBody
from ...errors import LiftError
from ...ir import Node, builders, control
from ...ir.node import fresh
from ..frontend.core import Lambda
from .heap.tags import without_tags
from .heap.unions import keys
from .joins import AbstractValue, Mismatch, abstract, allow_unions, build, equal, flatten, join, leaf_types
from .specialiser import Diverges, Specialiser, Undecided, primitive
from .values import Closure, node_of

MOST_ITERATIONS = 30
OWNED = "it is an argument of, or captured by, a function that calls itself; change a copy of it and return that"


class Recursive:
    """A recursive function while it is inferred: abstract arguments and results, and at the end its function."""

    def __init__(self, arguments: AbstractValue, results: AbstractValue | None) -> None:
        self.arguments, self.results = arguments, results
        self.function: control.GraphFunction | None = None
        self.joined = arguments  # the join over the calls of this iteration

    def begin(self, arguments: AbstractValue) -> None:
        """Forgets what was inferred."""
        self.arguments, self.results, self.function = arguments, None, None


def _all_arguments(function: Closure, bound: Mapping[str, Any]) -> tuple[Any, ...]:
    """All arguments after closure conversion: captured values, default values, and the arguments proper."""
    return (*function.captured.values(), *function.defaults.values(), *bound.values())


def _split_arguments(
    function: Closure, bound: Mapping[str, Any], values: tuple[Any, ...]
) -> tuple[Closure, dict[str, Any]]:
    captured = dict(zip(function.captured, values, strict=False))
    rest = values[len(captured) :]
    defaults = dict(zip(function.defaults, rest, strict=False))
    parameters = dict(zip(bound, rest[len(defaults) :], strict=True))
    return Closure(function.code, captured, function.group, defaults), parameters


@primitive("recurse")
def recurse(s: Specialiser, function: Closure, bound: Mapping[str, Any], vary: bool = False) -> Any:
    """A call of a function that has to become a function of the graph; `vary` makes static reals dynamic."""
    code = function.code
    s.may_raise(RecursionError, Exception)
    values = _all_arguments(function, bound)
    mine = abstract(values, deep=True, vary=vary)
    for known in s.functions.get(_way(s, code), []):
        if equal(known.arguments, mine):
            return _called(s, known, values)
    around = list(s.recursions.values())
    provisional = any(outer.function is None for outer in around)
    made = Recursive(mine, None)
    before = dict(s.recursions)
    s.recursions[code, s.tags] = made
    try:
        pending = any(outer.results is None for outer in around)
        _settle(s, made, function, bound, pending, not provisional)
    except Mismatch as problem:
        raise _mismatch(s, code, problem) from None
    finally:
        s.recursions = before
    if provisional:
        return _placeholder(s, made)
    s.functions.setdefault(_way(s, code), []).append(made)
    return _called(s, made, values)


def _way(s: Specialiser, code: Lambda) -> tuple[Lambda, bool, bool]:
    """What a function depends on besides its arguments."""
    return code, s.tags, keys().own_tags


def _called(s: Specialiser, made: Recursive, values: tuple[Any, ...]) -> Any:
    found = _call(s, made, values)
    return found if s.tags else without_tags(found)


def _settle(
    s: Specialiser, made: Recursive, function: Closure, bound: Mapping[str, Any], pending: bool, defines: bool
) -> None:
    """Infers a function, and defines it. Where the front end allows it, values of several kinds are unions if they have
    to be, and derivatives have tags of the run if it is differentiated in its own body."""
    start, wanted = made.arguments, keys().tags_wanted
    way = "known"
    while True:
        made.begin(start)
        try:
            with nullcontext() if way == "known" else s.uniting(tags=way == "tags"), s.closed():
                _infer(s, made, function, bound, pending)
                if defines:
                    _define(s, made, function, bound)
            return
        except Undecided:
            raise
        except NoBody as problem:
            if not s.splits or s.tags or way == "tags" or problem.function is not made.function:
                raise
            way = "tags"
        except (Mismatch, LiftError):
            if s.splits and not s.unions and way == "known":
                way = "unions"
            elif s.splits and not s.tags and way != "tags" and keys().tags_wanted > wanted:
                way = "tags"
            else:
                raise
        if way == "tags":  # it calls itself with such tags
            s.recursions.pop((function.code, False), None)
            s.recursions[function.code, True] = made


def _mismatch(s: Specialiser, code: Lambda, problem: Mismatch) -> LiftError:
    return s.error(
        f"{code.name}() calls itself with, or returns, {problem.a} in one place and {problem.b} in another; a function "
        "that calls itself as the run decides needs arguments and results of one kind, shape and structure",
        code.at,
    )


def _infer(s: Specialiser, made: Recursive, function: Closure, bound: Mapping[str, Any], pending: bool) -> None:
    """Infers abstract arguments and results; `pending` where a function around has no result yet."""
    code: Lambda = function.code
    for _ in range(MOST_ITERATIONS):
        made.joined = made.arguments
        variables = [fresh(t) for t in leaf_types(made.arguments)]
        try:
            result = abstract(_run(s, made, function, bound, variables), deep=True)
        except Diverges:
            if equal(made.joined, made.arguments):
                if pending:
                    raise
                raise s.error(f"{code.name}() never ends: each of its branches calls it again", code.at) from None
            made.arguments = made.joined
            continue
        with allow_unions(s.unions):
            found = result if made.results is None else join(made.results, result)
        if made.results is not None and equal(found, made.results) and equal(made.joined, made.arguments):
            return
        made.arguments, made.results = made.joined, found
    raise s.error(
        f"the arguments or results of {code.name}() get another kind or structure in each call; keep both the same",
        code.at,
    )


def _define(s: Specialiser, made: Recursive, function: Closure, bound: Mapping[str, Any]) -> None:
    assert made.results is not None
    results = made.results
    made.function = control.GraphFunction(function.name, leaf_types(made.arguments), leaf_types(results))
    builders.define(
        made.function,
        lambda *inputs: list(flatten(_run(s, made, function, bound, list(inputs)), results)),
    )


def _run(s: Specialiser, made: Recursive, function: Closure, bound: Mapping[str, Any], variables: list[Any]) -> Any:
    """The token after the body, and its result, for variables as arguments."""
    values = build(made.arguments, iter(variables), OWNED)
    inner, parameters = _split_arguments(function, bound, values)
    for name, value in parameters.items():
        s.name(name, value, None)
    with s.journal() as changed:
        s.level += 1
        s.put(s.token, 0)
        result = s.evaluate(function.code.body, s.environment(inner, parameters))
        checked = s.token.content
    changed.pop(s.token, None)
    if changed:
        raise s.error(
            f"{function.name}() calls itself as the run decides, and changes a value from outside; return it instead",
            function.code.at,
        )
    return checked, result


@primitive("recursive call")
def recursive_call(s: Specialiser, function: Closure, bound: Mapping[str, Any]) -> Any:
    """A recursive call inside a function that is being inferred or defined."""
    made: Recursive = s.recursions[function.code, s.tags]
    values = _all_arguments(function, bound)
    if made.function is not None:
        return _call(s, made, values)
    try:
        with allow_unions(s.unions):
            made.joined = join(made.joined, abstract(values, deep=True))
    except Mismatch as problem:
        raise _mismatch(s, function.code, problem) from None
    if made.results is None:
        raise Diverges
    return _placeholder(s, made)


def _placeholder(s: Specialiser, made: Recursive) -> Any:
    """A result with fresh variables, while the function is not defined."""
    assert made.results is not None
    return _with_token(s, build(made.results, iter([fresh(t) for t in leaf_types(made.results)]), ""))


def _with_token(s: Specialiser, found: tuple[Any, Any]) -> Any:
    """The result of a call, whose token is added to the current one."""
    checked, result = found
    if isinstance(checked, Node):
        s.put(s.token, node_of(s.token.content) + checked)
    return result


def _call(s: Specialiser, made: Recursive, values: tuple[Any, ...]) -> Any:
    assert made.function is not None and made.results is not None
    nodes = builders.call(made.function, *flatten(values, made.arguments)) if made.function.results else []
    return _with_token(s, build(made.results, iter(nodes), ""))
