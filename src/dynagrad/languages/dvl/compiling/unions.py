"""Values whose kind the run decides, in calls of builtins: a call is a choice between what it is for each kind.

Builtins that go through vectors whose size the run decides are procedures of DVL, in `vectors.dvl`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....compiler.evaluate.heap.unions import is_one_of, opened, unboxed
from ....compiler.evaluate.specialiser import Specialiser
from ....compiler.evaluate.values import Closure, HostFunction, Union
from ....ir import Node
from ....ir.ops import scalars as ops
from ....ir.ops.cells import truth_of
from ..builtins import TRUTH, Builtin
from ..data import chain, is_pair
from ..lower import Definitions
from ..prelude import on_unions, prelude
from .loops import looped_function
from .values import VECTORS, is_boolean, is_function, is_open, is_real

Handler = Callable[..., Any]

_KINDS = frozenset(["real?", "pair?", "null?", "boolean?", "symbol?", "procedure?", "gensym?", "bundle?"])
"""Builtins that ask of which kind a value is."""
_OF_PARTS = frozenset(["make-bundle", "primal", "tangent"])
"""Builtins that go through a value part by part."""
_OF_VECTORS = frozenset(["+", "-", "*", "/", "equal?"])
"""Builtins of two arguments that go through pairs."""
_UNOPENED = frozenset(["cons", "result", "error", "derivative", "gradient-r", "fixed-point"])
"""Builtins that do not look at their arguments."""


def has_unions(x: Any) -> bool:
    """Whether there are values of several kinds in a structure."""
    if not is_pair(x):
        return isinstance(x, Union)
    todo, seen = [x], set()  # parts may be shared
    while todo:
        x = todo.pop()
        if isinstance(x, Union):
            return True
        if is_pair(x) and id(x) not in seen:
            seen.add(id(x))
            todo += x
    return False


def may_be_called(x: Any) -> bool:
    """Whether a value is a procedure, or may turn out to be one."""
    return isinstance(x, Union) or is_function(x)


def _kind_of(x: Union, ask: Callable[[Any], bool]) -> bool | Node:
    """Whether a value of several kinds is of some of them, known or as a condition."""
    return is_one_of(x, frozenset(key for key in x.kinds.roots if ask(unboxed(x.cell, x.kinds, key))))


def _truth_of_union(x: Union) -> bool | Node:
    of_truths = _kind_of(x, is_boolean)
    if of_truths is False:
        return True
    holds: Node = truth_of(x.cell)
    return holds if of_truths is True else ops.logical_or(ops.logical_not(of_truths), holds)


def _closure(procedures: Definitions, at: str) -> Closure:
    group = tuple((name, looped_function(name, code)) for name, code in procedures.functions.items())
    return Closure(dict(group)[at], {}, group)


def from_prelude(name: str) -> Closure:
    """A procedure of `prelude.dvl`."""
    scope, procedures = prelude()
    return _closure(procedures, str(scope.names[name]))


def call_on_unions(s: Specialiser, name: str, *given: Any) -> Any:
    """A call of a procedure of `vectors.dvl`."""
    scope, procedures = on_unions()
    return s.call(_closure(procedures, str(scope.names[name])), [chain(list(given[:-1]), given[-1])])


def each_part(s: Specialiser, f: Any, x: Any) -> Any:
    """A structure whose size the run decides with a procedure applied to all in it that is no pair."""

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        (x,) = given
        return opened(s, x, lambda one: s.call(held[0], [one])) if isinstance(x, Union) else s.call(held[0], given)

    return call_on_unions(s, "each-part", HostFunction(("dvl", "a procedure of parts"), run, (f,)), x)


def _of_parts_of_unions(s: Specialiser, builtin: Builtin, given: Sequence[Any]) -> Any:
    """What a builtin makes of pairs with values of several kinds in them; NotImplemented where that is as usual."""
    pairs = [is_pair(x) for x in given]
    if builtin.name not in _OF_VECTORS or len(given) != 2 or not any(pairs) or not any(map(has_unions, given)):
        return NotImplemented
    a, b = given
    if builtin.name in ("+", "-") and all(pairs):
        return call_on_unions(s, "sum-by", builtin, a, b)
    if builtin.name == "*" and not all(pairs):
        return call_on_unions(s, "multiple", *((b, a) if pairs[0] else (a, b)))
    if builtin.name == "/" and is_real(b):
        return call_on_unions(s, "multiple", VECTORS.divide(1.0, b), a)
    return call_on_unions(s, "same?", a, b) if builtin.name == "equal?" and all(pairs) else NotImplemented


def decided(s: Specialiser, builtin: Builtin, run: Handler, given: list[Any]) -> Any:
    """A call of a builtin, once for each alternative of its arguments."""
    if builtin.name in _UNOPENED:
        return run(s, *given)
    asks = builtin.name in _KINDS
    several = [i for i, x in enumerate(given) if is_open(x) or (asks and isinstance(x, Union))]
    if builtin.name in _OF_PARTS:  # the tag comes first, and they go through the value by themselves
        several = [i for i in several if not i]
    if not several:
        found = _of_parts_of_unions(s, builtin, given)
        return run(s, *given) if found is NotImplemented else found
    first = several[0]
    x, before, after = given[first], given[:first], given[first + 1 :]
    if asks:
        return _kind_of(x, lambda one: bool(run(s, one)))
    if builtin is TRUTH or builtin.name == "not":
        return run(s, _truth_of_union(x))
    return opened(s, x, lambda one: decided(s, builtin, run, [*before, one, *after]))
