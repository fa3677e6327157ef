"""Tags that a program makes itself, as it is specialised: bundles, their parts, and functions that hold some.

Nothing of them is left in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....compiler.evaluate.specialiser import Specialiser
from ....compiler.evaluate.values import HostFunction, Union
from ....eager.kinds import fresh as fresh_serial
from ....errors import Error
from ..data import Gensym, is_pair
from ..vectors import stays
from .values import VECTORS, Bundled, combined, described, is_boolean, is_function, is_real


def tag_of(x: Any) -> Gensym:
    """A tag, which is checked."""
    if not isinstance(x, Gensym):
        raise Error(f"a tag is made by (gensym), and {described(x)} is none")
    return x


def _without_unions(x: Any) -> None:
    if isinstance(x, Union):
        raise Error(
            "a tag that a program made itself is put on a value whose size or kind the run decides, and that is not "
            "compiled; take the value apart first"
        )


def bundle(tag: Gensym, x: Any, d: Any, inside: bool = True) -> Any:
    """`x` with a tangent `d` along a tag, part by part; `inside` of a structure, constants stay."""
    _without_unions(x)
    _without_unions(d)
    if is_pair(x) and is_pair(d):
        return (bundle(tag, x[0], d[0]), bundle(tag, x[1], d[1]))
    if is_real(x) and is_real(d):
        if any(isinstance(n, Bundled) and n.tag >= tag for n in (x, d)):
            return VECTORS.add(x, VECTORS.multiply(d, Bundled(tag, 0.0, 1.0)))
        return Bundled(tag, x, d)
    if is_function(x) and is_function(d):
        return combined("+", x, combined("*", Bundled(tag, 0.0, 1.0), d))
    if (inside and is_boolean(x)) if is_boolean(d) else (type(x) is type(d) and stays(x, inside) and x == d):
        return x
    raise Error(f"make-bundle: the tangent has the shape of the primal; they are {described(x)} and {described(d)}")


def _split(tag: Gensym, x: Any) -> tuple[Any, Any]:
    if not isinstance(x, Bundled) or x.tag < tag:
        return x, 0.0
    if x.tag == tag:
        return x.primal, x.tangent
    (p, q), (d, e) = _split(tag, x.primal), _split(tag, x.tangent)
    return Bundled(x.tag, p, d), Bundled(x.tag, q, e)


def part(tag: Gensym, which: int, x: Any) -> Any:
    """The primal or the tangent of a structure."""
    _without_unions(x)
    if is_pair(x):
        return (part(tag, which, x[0]), part(tag, which, x[1]))
    if is_real(x):
        return _split(tag, x)[which]
    if not is_function(x):
        return x

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        tag, f = held
        other = Gensym(fresh_serial())
        y = s.call(f, [_swapped(tag, other, g) for g in given])
        return _swapped(tag, other, part(tag, which, y))

    return HostFunction(("dvl", "a part of a function", which), run, (tag, x))


def _swapped(a: Gensym, b: Gensym, x: Any) -> Any:
    """A structure with two tags in each other's place."""
    _without_unions(x)
    if is_pair(x):
        return (_swapped(a, b, x[0]), _swapped(a, b, x[1]))
    if isinstance(x, Bundled):
        rest, d = _split(a, x)
        (p, q), (d, e) = _split(b, rest), _split(b, d)
        by_a, by_b = Bundled(a, 0.0, 1.0), Bundled(b, 0.0, 1.0)
        total = VECTORS.add(p, VECTORS.multiply(by_b, d))
        total = VECTORS.add(total, VECTORS.multiply(by_a, q))
        return VECTORS.add(total, VECTORS.multiply(VECTORS.multiply(by_a, by_b), e))
    if not is_function(x):
        return x

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        a, b, f = held
        return _swapped(a, b, s.call(f, [_swapped(a, b, g) for g in given]))

    return HostFunction(("dvl", "a function with other tags"), run, (a, b, x))


def youngest(x: Any) -> Gensym | None:
    """The youngest tag of a structure."""
    if is_pair(x):
        tags = [tag for tag in map(youngest, x) if tag is not None]
        return max(tags) if tags else None
    return x.tag if isinstance(x, Bundled) else None
