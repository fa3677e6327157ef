"""`derivative` and `gradient-r` as a program is specialised, by `compiler/transforms`, or with tags of the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....compiler.evaluate.heap import tags
from ....compiler.evaluate.heap.tags import is_number
from ....compiler.evaluate.heap.unions import opened
from ....compiler.evaluate.specialiser import Specialiser
from ....compiler.evaluate.values import HostFunction, Union
from ....compiler.transforms import verbs
from ....errors import Error
from ..data import Gensym, is_pair
from .bundles import bundle, part, youngest
from .unions import each_part, from_prelude, may_be_called
from .values import Bundled, described, is_boolean, is_function, is_real


def derivative(s: Specialiser, f: Any) -> HostFunction:
    """`(derivative f)`."""
    if not may_be_called(f):
        raise Error(f"(derivative f) takes a procedure, and got {described(f)}")

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        (x,) = given
        if isinstance(x, Union) and not is_number(x):
            return opened(s, x, lambda one: run(s, held, [one], named))
        if not is_real(x):
            raise Error(
                f"derivative: the argument is a real, and {described(x)} is none; there is directional-derivative"
            )
        if s.tags:
            tag, moved = tags.bundled(x)
            return _tangent_parts(s, tag, s.call(held[0], [moved]))
        return _with_truths(*verbs.forward(s, "derivative", held[0], [x], [_one(x)]))

    return HostFunction(("dvl", "a derivative"), run, (f,))


def _tangent_parts(s: Specialiser, tag: Union, y: Any) -> Any:
    """The tangent of a structure along a tag that the graph made."""
    if is_pair(y):
        return (_tangent_parts(s, tag, y[0]), _tangent_parts(s, tag, y[1]))
    if is_real(y):
        return tags.tangent(tag, y)
    if isinstance(y, Union):
        return each_part(s, HostFunction(("dvl", "a tangent of a part"), _tangent_of_part, (tag,)), y)
    if is_function(y):
        raise Error("a derivative that nests as the run decides is a function, and has to be a structure of reals")
    return y


def _tangent_of_part(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    return _tangent_parts(s, held[0], given[0])


def _with_truths(y: Any, d: Any) -> Any:
    """The derivative of a structure, in which truth values stay as symbols do."""
    if is_pair(y) and is_pair(d):
        return (_with_truths(y[0], d[0]), _with_truths(y[1], d[1]))
    return y if is_boolean(y) else d


def _one(x: Any) -> Any:
    """The direction 1 at a real that may be a bundle."""
    return Bundled(x.tag, _one(x.primal), _nothing(x.tangent)) if isinstance(x, Bundled) else 1.0


def _nothing(x: Any) -> Any:
    return Bundled(x.tag, _nothing(x.primal), _nothing(x.tangent)) if isinstance(x, Bundled) else 0.0


def gradient(s: Specialiser, f: Any) -> HostFunction:
    """`(gradient-r f)`."""
    if not may_be_called(f):
        raise Error(f"(gradient-r f) takes a procedure, and got {described(f)}")

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        if not s.tags:
            return _gradient_at(s, held[0], given[0])
        return s.call(s.call(from_prelude("gradient-f"), [held[0]]), given)

    return HostFunction(("dvl", "a gradient"), run, (f,))


class _Tagged(Exception):
    """The result of a function that is differentiated holds a tag of the program's."""

    def __init__(self, tag: Gensym) -> None:
        super().__init__()
        self.tag = tag


def _gradient_at(s: Specialiser, f: Any, x: Any) -> Any:
    """The gradient of a function; of p + tag t it is g + tag h, with g and h those of the tangent of the result by t
    and by p."""
    if not (is_real(x) or is_pair(x) or is_function(x) or isinstance(x, Union)):
        y = s.call(f, [x])
        if not (is_real(y) or isinstance(y, Union)):
            raise _no_real(y)
        return x
    tag = youngest(x)
    if tag is not None:
        by_p, by_t = _gradient_at(s, _of_parts(tag, f), (part(tag, 0, x), part(tag, 1, x)))
        return bundle(tag, by_t, by_p)

    def checked(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        def real_result(y: Any) -> Any:
            if is_number(y):
                return tags.without_tags(y)
            if isinstance(y, Union):
                return opened(s, y, real_result)
            if isinstance(y, Bundled):
                raise _Tagged(y.tag)
            if not is_real(y):
                raise _no_real(y)
            return y

        return real_result(s.call(held[0], given))

    try:
        return verbs.value_and_grad(s, HostFunction(("dvl", "a function"), checked, (f,)), 0, False, [x], {})[1]
    except _Tagged as found:
        first, second = (_gradient_at(s, _result_part(found.tag, which, f), x) for which in (0, 1))
        return bundle(found.tag, first, second)


def _no_real(y: Any) -> Error:
    return Error(f"gradient-r: the result of the function is a real, and {described(y)} is none")


def _of_parts(tag: Gensym, f: Any) -> HostFunction:
    """From a pair of a primal and a tangent to the tangent of a function's result."""

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        tag, f = held
        ((p, t),) = given
        return part(tag, 1, s.call(f, [bundle(tag, p, t)]))

    return HostFunction(("dvl", "a tangent"), run, (tag, f))


def _result_part(tag: Gensym, which: int, f: Any) -> HostFunction:
    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        return part(held[0], which, s.call(held[1], given))

    return HostFunction(("dvl", "a part of a result", which), run, (tag, f))
