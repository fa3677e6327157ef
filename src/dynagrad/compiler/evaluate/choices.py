"""Choices on dynamic conditions: both branches are specialised, and their results and changes in place joined.

The join of two numbers that differ is a phi node: a select, where both may be computed (if-conversion), or else an
output of a branch of the graph. How two values are joined is not said here, but in `joins.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import Error, LiftError
from ...ir import Node, builders, control
from ...ir.failures import after
from ...ir.node import constant
from ...ir.ops import integers
from ...ir.ops import scalars as ops
from ...ir.types import heap
from ..frontend.core import (
    KEPT,
    UNDEFINED,
    Apply,
    Constant,
    Expression,
    For,
    If,
    Lambda,
    Name,
    Parameter,
    Primitive,
    While,
)
from ..frontend.operators import is_speculatable
from ..frontend.source import mistake
from .heap.unions import keys, note_choice, opened, refined
from .joins import (
    AbstractValue,
    AtIndex,
    AtName,
    InContent,
    Mismatch,
    Path,
    abstract,
    allow_unions,
    build,
    flatten,
    join,
    leaf_types,
)
from .specialiser import Diverges, Specialiser, Undecided, primitive
from .values import Array, Cell, Closure, Dict, Instance, List, Optional, Ref, Union, describe


@primitive("if")
def _dynamic_if(s: Specialiser, e: If, test: Node, env: dict[str, Any]) -> Any:
    """A choice on a dynamic condition: both branches are specialised, and their results joined."""
    if test in s.assumed:
        return s.evaluate(e.then if s.assumed[test] else e.otherwise, env)
    speculate = is_speculatable(e.then) and is_speculatable(e.otherwise)

    def branch(part: Expression, holds: bool) -> Callable[[], Any]:
        return lambda: s.evaluate(part, _refine(env, test, holds))

    since = builders.now()
    try:
        return s.cond(test, branch(e.then, True), branch(e.otherwise, False), speculate)
    except Mismatch as problem:
        if s.splits and not s.unions:
            raise Undecided(test, mismatch(s, problem, e)) from None
        raise mismatch(s, problem, e) from None
    except Undecided as inner:  # this choice is split first, where the other is made inside of it
        raise Undecided(test, inner) from None if inner.test.birth >= since else inner


def mismatch(s: Specialiser, problem: Mismatch, e: If | While | For) -> LiftError:
    """The error for values that cannot be joined: the variable, and what it is on either side."""
    if isinstance(e, If) and e.names == KEPT:
        return s.error(
            "which items this comprehension keeps is decided as the function runs, but its result has a fixed "
            "length; write a value for each item, as in [v if v > 0.0 else 0.0 for v in x], a loop with `if`, or, "
            "of numbers, a function of filter(), as in sum(filter(f, x))",
            e.at,
        )
    what = _place(problem.path, e.names if isinstance(e, If) else e.state)
    if isinstance(e, If):
        return s.error(
            f"{what} is {problem.a} in one branch and {problem.b} in the other, and which one is taken is "
            "decided as the function runs; both must be of the same kind, shape and structure",
            e.at,
        )
    return s.error(
        f"{what} is {problem.a} before a round of this loop and {problem.b} after it; what a loop changes "
        "must keep its kind, shape and structure",
        e.at,
    )


def _place(path: Path, names: Sequence[str]) -> str:
    """What a path leads to, from the variables of these names."""
    match path:
        case (InContent(ref, content), *rest):
            return _place_in(ref, content, rest)
        case (AtIndex(int() as i), *rest) if i < len(names):
            name = names[i].partition(".")[0]  # names that a front end made have a number
            return "".join(map(str, ["the result" if name == "%result" else name, *rest]))
    return "".join(map(str, ["the result", *path]))


def _place_in(ref: Ref, content: Any, path: Sequence[Any]) -> str:
    """What a path leads to in `content_values`."""
    if not path or isinstance(ref, Array | Cell):
        return describe(ref)
    (at, *rest), steps = path, [*path]
    if isinstance(ref, Dict | Instance):
        if not at.key:
            return f"the tuple of {'keys' if isinstance(ref, Dict) else 'attributes'} of {describe(ref)}"
        key = list(content)[at.key - 1]
        steps = [AtIndex(key) if isinstance(ref, Dict) else AtName(key), *rest]
    return f"{''.join(map(str, steps))} of {describe(ref)}"


@primitive("cond")
def _cond(s: Specialiser, test: Node, then: Callable[[], Any], otherwise: Callable[[], Any], speculate: bool) -> Any:
    """The join of what two functions return, with the join of their changes in place. Raises Mismatch."""
    since = builders.now()
    results: list[Any] = []
    changes: list[dict[Ref, Any]] = []
    diverged = 0
    wrong: Error | None = None
    wanted = keys().tags_wanted
    for run in (then, otherwise):
        with s.journal() as changed:
            s.level += 1
            outer, s.test = s.test, test
            try:
                results.append(run())
            except Diverges:
                diverged += 1
                results.append(UNDEFINED)
            except LiftError as problem:
                outermost = s.level == 1  # where both branches are wrong, whatever the run decides is
                both = wrong is not None and outermost
                wrong = mistake(problem)
                if wrong is None or both or not s.splits or keys().tags_wanted > wanted:
                    raise
                results.append(s.apply("raise", wrong))
            finally:
                s.test = outer
        changes.append(changed)
    if diverged == 2:
        raise Diverges
    refs = list(dict.fromkeys(ref for changed in changes for ref in changed))
    whole = [abstract(result, heap=changed) for result, changed in zip(results, changes, strict=True)]
    with allow_unions(s.unions):
        joined = [join(whole[0], whole[1], (), *changes)]
    sides = [[results[0]], [results[1]]]
    for ref in refs:
        contents = [content_values(ref, changed.get(ref, ref.content)) for changed in changes]
        for side, content in zip(sides, contents, strict=True):
            side.append(content)
        forms = [abstract(content, heap=changed) for content, changed in zip(contents, changes, strict=True)]
        joined.append(join(forms[0], forms[1], (InContent(ref, changes[0].get(ref, ref.content)),), *changes))
    flat = [
        [n for x, p in zip(side, joined, strict=True) for n in flatten(x, p, changed)]
        for side, changed in zip(sides, changes, strict=True)
    ]
    first = token_index(s, joined[:1], refs, joined[1:])
    held = s.token.content
    if first >= 0 and isinstance(held, Node):  # earlier checks come before the test
        test = after(held, test)
    nodes = iter(_phi_nodes(test, flat[0], flat[1], since, speculate and not refs, first))
    value = build(joined[0], nodes)
    note_choice(value, test, results)
    for ref, p in zip(refs, joined[1:], strict=True):
        s.put(ref, content_from(ref, build(p, nodes)))
    return value


def token_index(
    s: Specialiser, results: Sequence[AbstractValue], refs: Sequence[Ref], contents: Sequence[AbstractValue]
) -> int:
    """The index of the token among the numbers of results and changed contents; -1 where it did not change."""
    if s.token not in refs:
        return -1
    return sum(len(leaf_types(p)) for p in (*results, *contents[: refs.index(s.token)]))


def _phi_nodes(
    test: Node, first: list[Node], second: list[Node], since: int, speculate: bool, before: int = -1
) -> list[Node]:
    """The phi nodes of two branches: selects, if both may be speculated (if-conversion), or else a `cond` node.

    The one at the index `before` is computed before the others.
    """
    differ = [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a is not b]
    differ.sort(key=lambda i: i != before)
    found = list(first)
    if speculate and not any(first[i].type.shape or first[i].type is heap for i in differ):
        for i in differ:
            found[i] = select(test, first[i], second[i])
        return found
    if differ:
        outputs = [[side[i] for i in differ] for side in (first, second)]
        [yes, no], captured = builders.close([((), outputs[0]), ((), outputs[1])], since, hoist=False)
        made = control.parts(control.make_cond(test, control.Branches(yes, no), captured))
        for i, node in zip(differ, made, strict=True):
            found[i] = node
    return found


def _refine(env: Mapping[str, Any], test: Node, holds: bool) -> dict[str, Any]:
    """The variables in a branch, with optional ones refined to None or to their value where its condition says so."""
    found = dict(env)
    for name, x in env.items():
        if isinstance(x, Optional) and (test is x.present or test is ops.logical_not(x.present)):
            found[name] = x.value if holds == (test is x.present) else None
        elif isinstance(x, Union):
            found[name] = refined(x, test, holds)
    return found


@functools.cache
def _call_of(roots: frozenset[int]) -> Lambda:
    """The code that calls a union of these alternatives: a function like others, so that it may be recursive."""
    parameters = tuple(Parameter(name, "positional") for name in ("function", "arguments"))
    body = Apply(Constant(Primitive("call alternatives")), tuple(Name(p.name) for p in parameters))
    return Lambda("call", parameters, body)


@primitive("call union")
def _call_union(s: Specialiser, function: Union, arguments: Sequence[Any]) -> Any:
    """A call of a function that is one of several."""
    return s.enter(Closure(_call_of(function.kinds.roots)), [function, tuple(arguments)], {})


@primitive("call alternatives")
def _call_alternatives(s: Specialiser, function: Union, arguments: tuple[Any, ...]) -> Any:
    return opened(s, function, lambda one: s.call(one, arguments))


def select(test: Node, a: Node, b: Node) -> Node:
    """One of two numbers, both of which are computed."""

    found: Node
    if a.type.kind != "boolean":
        found = (integers.where if a.type.kind == "integer" else ops.where)(test, a, b)
    elif b is constant(False):
        found = ops.logical_and(test, a)
    elif a is constant(True):
        found = ops.logical_or(test, b)
    else:
        found = integers.choose(test, a, b)
    return found


def content_values(ref: Ref, content: Any) -> tuple[Any, ...]:
    """The content of a reference as a tuple of values."""
    if isinstance(ref, Array | Cell):
        return (content,)
    if isinstance(ref, List):
        return tuple(content)
    return (tuple(content), *content.values())


def content_from(ref: Ref, values: tuple[Any, ...]) -> Any:
    """The content of a reference from the tuple that `content_values` made."""
    if isinstance(ref, Array):
        return values[0].content if isinstance(values[0], Array) else values[0]
    if isinstance(ref, Cell):
        return values[0]
    if isinstance(ref, List):
        return tuple(values)
    return dict(zip(values[0], values[1:], strict=True))
