"""Bundles that a program makes itself, as it is specialised: their parts, and functions that hold some.

Where tags are known, nothing of them is left in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from ....compiler.evaluate.heap import tags
from ....compiler.evaluate.heap.tags import is_number, is_tag
from ....compiler.evaluate.heap.unions import opened
from ....compiler.evaluate.specialiser import Specialiser
from ....compiler.evaluate.values import HostFunction, Union
from ....compiler.frontend.source import Mistake
from ....errors import Error
from ....ir.ops import integers
from ..data import Gensym, is_pair
from ..vectors import stays
from .tags import Tag, fresh_tag, of_graph
from .unions import call_on_unions, each_part
from .values import VECTORS, Bundled, combined, described, is_boolean, is_function, is_open, is_real, on_heap

PARTS = (tags.primal, tags.tangent)


def tag_of(x: Any) -> Tag:
    """A tag, which is checked."""
    if not isinstance(x, Gensym) and not is_tag(x):
        raise Mistake(f"a tag is made by (gensym), and {described(x)} is none")
    found: Tag = x
    return found


def compared_tags(name: str, a: Any, b: Any) -> Any:
    """Whether two tags are the same, or one is older."""
    for x in (a, b):
        if not isinstance(x, Gensym) and not is_tag(x):
            raise Error(f"({name} a b) takes tags, and got {described(x)}")
    if isinstance(a, Gensym) and isinstance(b, Gensym):
        return a == b if name == "gensym=" else a < b
    return (integers.equal if name == "gensym=" else integers.less)(*(tags.serial_of(of_graph(x)) for x in (a, b)))


def bundle(s: Specialiser, tag: Tag, x: Any, d: Any, inside: bool = True) -> Any:
    """`x` with a tangent `d` along a tag, part by part; `inside` of a structure, constants stay."""
    if is_open(x) or is_open(d):
        return call_on_unions(
            s, "bundle-by", HostFunction(("dvl", "a bundle of parts"), _bundle_of_parts, (tag,)), x, d
        )
    if is_pair(x) and is_pair(d):
        return (bundle(s, tag, x[0], d[0]), bundle(s, tag, x[1], d[1]))
    if is_real(x) and is_real(d):
        if is_number(x) or is_number(d) or isinstance(tag, Union):
            return VECTORS.add(x, VECTORS.multiply(d, tags.step(of_graph(tag))))
        if any(isinstance(n, Bundled) and n.tag >= tag for n in (x, d)):
            return VECTORS.add(x, VECTORS.multiply(d, Bundled(tag, 0.0, 1.0)))
        return Bundled(tag, x, d)
    if is_function(x) and is_function(d):
        by = tags.step(tag) if isinstance(tag, Union) else Bundled(tag, 0.0, 1.0)
        return combined("+", x, combined("*", by, d))
    if is_tag(x):
        return x
    if (inside and is_boolean(x)) if is_boolean(d) else (type(x) is type(d) and stays(x, inside) and x == d):
        return x
    raise Error(f"make-bundle: the tangent has the shape of the primal; they are {described(x)} and {described(d)}")


def _bundle_of_parts(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    def of_parts(x: Any, d: Any) -> Any:
        if is_open(x):
            return opened(s, x, lambda one: of_parts(one, d))
        return opened(s, d, lambda one: of_parts(x, one)) if is_open(d) else bundle(s, held[0], x, d)

    ((x, d),) = given
    return of_parts(x, d)


def _split(tag: Gensym, x: Any) -> tuple[Any, Any]:
    if not isinstance(x, Bundled) or x.tag < tag:
        return x, 0.0
    if x.tag == tag:
        return x.primal, x.tangent
    (p, q), (d, e) = _split(tag, x.primal), _split(tag, x.tangent)
    return Bundled(x.tag, p, d), Bundled(x.tag, q, e)


def part(s: Specialiser, tag: Tag, which: int, x: Any) -> Any:
    """The primal or the tangent of a structure; of a function, the function that gives that of its results."""
    if is_pair(x):
        return (part(s, tag, which, x[0]), part(s, tag, which, x[1]))
    if is_real(x):
        if isinstance(tag, Gensym) and not is_number(x):
            return _split(tag, x)[which]
        return PARTS[which](of_graph(tag), on_heap(x))
    if is_open(x):
        return each_part(s, HostFunction(("dvl", "a part of a value", which), _part_of_part(which), (tag,)), x)
    if not is_function(x):
        return x
    return HostFunction(("dvl", "a part of a function", which), _part_of_result(which), (tag, x))


def _part_of_part(which: int) -> Any:
    return lambda s, held, given, named: part(s, held[0], which, given[0])


def _part_of_result(which: int) -> Any:
    """A call of a function of whose results a part is taken. Its arguments may hold the tag from an earlier call of
    itself, so each call uses a fresh one."""

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        tag, f = held
        of_run = isinstance(tag, Union)
        with s.uniting(tags=True) if of_run else nullcontext():
            other = fresh_tag(s, of_run)
            y = s.call(f, [_swapped(s, tag, other, g) for g in given])
            y = _swapped(s, tag, other, part(s, tag, which, y))
        return y if s.tags else tags.without_tags(y)

    return run


def _swapped(s: Specialiser, a: Tag, b: Tag, x: Any) -> Any:
    """A structure with two tags in each other's place."""
    if is_pair(x):
        return (_swapped(s, a, b, x[0]), _swapped(s, a, b, x[1]))
    if is_number(x) or (isinstance(x, Bundled) and not (isinstance(a, Gensym) and isinstance(b, Gensym))):
        return tags.swapped(of_graph(a), of_graph(b), on_heap(x))
    if isinstance(x, Bundled):
        assert isinstance(a, Gensym) and isinstance(b, Gensym)
        rest, d = _split(a, x)
        (p, q), (d, e) = _split(b, rest), _split(b, d)
        by_a, by_b = Bundled(a, 0.0, 1.0), Bundled(b, 0.0, 1.0)
        total = VECTORS.add(p, VECTORS.multiply(by_b, d))
        total = VECTORS.add(total, VECTORS.multiply(by_a, q))
        return VECTORS.add(total, VECTORS.multiply(VECTORS.multiply(by_a, by_b), e))
    if is_open(x):
        return each_part(s, HostFunction(("dvl", "a part with other tags"), _swapped_part, (a, b)), x)
    if not is_function(x):
        return x
    return HostFunction(("dvl", "a function with other tags"), _swapped_call, (a, b, x))


def _swapped_part(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    a, b = held
    return _swapped(s, a, b, given[0])


def _swapped_call(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    a, b, f = held
    return _swapped(s, a, b, s.call(f, [_swapped(s, a, b, g) for g in given]))


def youngest(x: Any) -> Gensym | None:
    """The youngest tag of a structure that is known."""
    if is_pair(x):
        found = [tag for tag in map(youngest, x) if tag is not None]
        return max(found) if found else None
    return x.tag if isinstance(x, Bundled) else None
