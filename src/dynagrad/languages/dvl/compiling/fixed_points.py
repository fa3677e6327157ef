"""`fixed-point` as a program is specialised.

It is solved and differentiated implicitly by `compiler/transforms/fixed_point.py`; part by part, where a tag of the
program is on the solution; and by iteration of all parts of numbers, where the run makes the tags or decides what the
state is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....compiler.evaluate.heap import tags
from ....compiler.evaluate.heap.tags import is_number
from ....compiler.evaluate.specialiser import Specialiser
from ....compiler.evaluate.values import HostFunction, Union
from ....compiler.frontend.source import Mistake
from ....eager.verbs import fixed_point as plain
from ....ir.operation import apply
from ....ir.ops import scalars as ops
from ..data import Gensym, is_pair
from ..vectors import checked_start, checked_step
from .bundles import bundle, part, youngest
from .derivatives import with_tags
from .tags import Tagged
from .unions import call_on_unions, has_unions, may_be_called
from .values import described, is_function, is_real, on_heap, result_of, without_bundles

TOLERANCE = 1e-12


def fixed_point(s: Specialiser, f: Any, start: Any) -> Any:
    """`(fixed-point f start)`."""
    if not may_be_called(f):
        raise Mistake(f"(fixed-point f) takes a procedure, and got {described(f)}")
    start = _without_bundles(checked_start(start, is_function, described))
    if s.tags or has_unions(start):
        return _iterated(s, f, start)
    try:
        return s.call(plain.fixed_point, [HostFunction(("dvl", "a step"), _step, (f,)), start])
    except Tagged as found:
        return _by_parts(s, found.tag, f, start)
    except _OfRun:
        return _iterated(s, f, start)


class _OfRun(Exception):
    """The run decides what the result of a step is."""


def _step(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    y = result_of(s, held[0], given)
    if has_unions(y):
        raise _OfRun
    tag = youngest(y)
    if tag is not None:
        raise Tagged(tag)
    return checked_step(given[0], y, is_real, described)


def _by_parts(s: Specialiser, tag: Gensym, f: Any, start: Any) -> Any:
    """The primal p of a solution p + tag t solves the equation of primals; then that of tangents has the solution t."""
    p = fixed_point(s, HostFunction(("dvl", "a primal"), _primal, (f, tag)), start)
    t = fixed_point(s, HostFunction(("dvl", "a tangent"), _tangent, (f, tag, p)), _zero_like(start))
    return bundle(s, tag, p, t)


def _primal(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    f, tag = held
    return part(s, tag, 0, s.call(f, given))


def _tangent(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    f, tag, p = held
    return part(s, tag, 1, s.call(f, [bundle(s, tag, p, given[0])]))


def _iterated(s: Specialiser, f: Any, start: Any) -> Any:
    """What comes out of steps until no part of any number changes."""
    return with_tags(s, lambda: call_on_unions(s, "settle", f, start))


def real_part(x: Any) -> Any:
    """A real without tags."""
    x = without_bundles(x)
    return tags.real_part(x) if is_number(x) else x


def settled(a: Any, b: Any) -> Any:
    """Whether no part of a number is another one, but for rounding, in what follows it."""
    a, b = on_heap(a), on_heap(b)
    if isinstance(a, Union) or isinstance(b, Union):
        return tags.settled(b - a, b, TOLERANCE)
    bound = apply(ops.multiply, TOLERANCE, apply(ops.maximum, 1.0, apply(ops.absolute, b)))
    return apply(ops.less_equal, apply(ops.absolute, apply(ops.subtract, b, a)), bound)


def _without_bundles(x: Any) -> Any:
    return tuple(map(_without_bundles, x)) if is_pair(x) else without_bundles(x)


def _zero_like(x: Any) -> Any:
    if is_pair(x):
        return tuple(map(_zero_like, x))
    return 0.0 if is_real(x) else x
