"""`derivative` and `gradient-r` as a program is specialised, by `compiler/transforms`, or with tags of the run.

How a graph is differentiated is for `autodiff/`; how a running program is, for `procedures.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....autodiff.control_flow import NoBody
from ....compiler.evaluate.heap import tags
from ....compiler.evaluate.heap.tags import is_number
from ....compiler.evaluate.heap.unions import keys, opened
from ....compiler.evaluate.specialiser import Enclosed, Specialiser
from ....compiler.evaluate.values import HostFunction, Union
from ....compiler.frontend.source import Mistake
from ....compiler.transforms import verbs
from ....errors import Error
from ....ir.ops.cells import BUNDLE, TAG
from ..data import Gensym, is_pair
from .bundles import bundle, part, youngest
from .tags import Tagged
from .unions import call_on_unions, has_unions, may_be_called
from .values import Bundled, described, is_boolean, is_function, is_open, is_real, on_heap, result_of


def derivative(s: Specialiser, f: Any) -> HostFunction:
    """`(derivative f)`."""
    if not may_be_called(f):
        raise Mistake(f"(derivative f) takes a procedure, and got {described(f)}")

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        (x,) = given
        if is_open(x):
            return opened(s, x, lambda one: run(s, held, [one], named))
        if not is_real(x):
            raise Mistake(
                f"derivative: the argument is a real, and {described(x)} is none; there is directional-derivative"
            )
        if is_number(x):
            return with_tags(s, lambda: _along(s, held[0], x))
        known = lambda: verbs.forward(s, "derivative", held[0], [x], [_one(x)], _with_truths)[1]  # noqa: E731
        return _known_or_not(s, known, lambda: _along(s, held[0], x))

    return HostFunction(("dvl", "a derivative"), run, (f,))


def _along(s: Specialiser, f: Any, x: Any) -> Any:
    """A derivative by a tag that the graph makes."""
    tag, moved = tags.bundled(on_heap(x))
    return part(s, tag, 1, s.call(f, [moved]))


def with_tags(s: Specialiser, run: Callable[[], Any]) -> Any:
    """What is computed with tags of the graph, without them."""
    with s.uniting(tags=True):
        found = run()
    return found if s.tags else tags.without_tags(found)


def _known_or_not(s: Specialiser, known: Callable[[], Any], of_run: Callable[[], Any]) -> Any:
    """A derivative whose tag vanishes, or, where that cannot be, one whose tag the graph makes."""
    if s.tags:
        return of_run()
    wanted = keys().tags_wanted
    try:
        try:
            return known()
        except Enclosed:
            if s.unions or not s.splits or keys().tags_wanted > wanted:
                raise
            with s.uniting():
                return known()
    except NoBody:
        raise
    except Error:
        if keys().tags_wanted == wanted:
            raise
        return with_tags(s, of_run)


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
        raise Mistake(f"(gradient-r f) takes a procedure, and got {described(f)}")

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        (x,) = given
        of_run = lambda: _by_tags(s, held[0], x)  # noqa: E731
        if has_unions(x) and _has_tags(x):
            return with_tags(s, of_run)
        return _known_or_not(s, lambda: _gradient_at(s, held[0], x), of_run)

    return HostFunction(("dvl", "a gradient"), run, (f,))


def _by_tags(s: Specialiser, f: Any, x: Any) -> Any:
    """The gradient of a function forward, by a tag of the graph for each real of the argument. In the place of a
    function it has a procedure: at h, the derivative of the result as that function moves along h."""

    def by_part(x: Any, whole: HostFunction) -> Any:
        if is_pair(x):
            return tuple(by_part(x[i], HostFunction(("dvl", "put back", i), _put_back(i), (whole, *x))) for i in (0, 1))
        if is_open(x):
            return call_on_unions(s, "each-leaf", HostFunction(("dvl", "by a part"), _by_leaf, (f,)), x, whole)
        return _by_leaf(s, (f,), ((x, whole),), {})

    return by_part(x, HostFunction(("dvl", "the same"), lambda s, held, given, named: given[0]))


def _put_back(i: int) -> Any:
    """From a part of a pair to the whole that has it in its place."""

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        whole, first, rest = held
        return s.call(whole, [(first, given[0]) if i else (given[0], rest)])

    return run


def _by_leaf(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    (f,) = held
    ((x, whole),) = given
    if is_open(x):
        return opened(s, x, lambda one: _by_leaf(s, held, ((one, whole),), named))
    if is_real(x):
        tag, moved = tags.bundled(on_heap(x))
        return _slope(s, tag, result_of(s, f, [s.call(whole, [moved])]))
    return HostFunction(("dvl", "moved"), _by_function, (f, whole, x)) if is_function(x) else x


def _by_function(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    f, whole, g = held
    if not may_be_called(given[0]):
        raise Mistake(
            f"the gradient with respect to a function is applied to a function, and {described(given[0])} is none"
        )

    def along() -> Any:
        tag = tags.fresh_tag()
        moved = HostFunction(("dvl", "a function that moves"), _moved, (g, tag, *given))
        return _slope(s, tag, result_of(s, f, [s.call(whole, [moved])]))

    return with_tags(s, along)


def _moved(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
    """g + e h, with the primal 0 and the tangent 1 of e."""
    g, tag, h = held
    return bundle(s, tag, s.call(g, given), s.call(h, given))


def _slope(s: Specialiser, tag: Union, y: Any) -> Any:
    """The derivative of a result, which has to be a real."""
    if is_open(y):
        return opened(s, y, lambda one: _slope(s, tag, one))
    if not is_real(y):
        raise _no_real(y)
    return part(s, tag, 1, y)


def _has_tags(x: Any) -> bool:
    """Whether there may be numbers with tags of the graph in a structure."""
    if is_pair(x):
        return any(map(_has_tags, x))
    return isinstance(x, Union) and (TAG in (every := x.kinds.roots.union(*x.kinds.parts.values())) or BUNDLE in every)


def _gradient_at(s: Specialiser, f: Any, x: Any) -> Any:
    """The gradient of a function; of p + tag t it is g + tag h, with g and h those of the tangent of the result by t
    and by p."""
    if not (is_real(x) or is_pair(x) or is_function(x) or isinstance(x, Union)):
        y = result_of(s, f, [x])
        if not (is_real(y) or isinstance(y, Union)):
            raise _no_real(y)
        return x
    tag = youngest(x)
    if tag is not None:
        by_p, by_t = _gradient_at(s, _of_parts(tag, f), (part(s, tag, 0, x), part(s, tag, 1, x)))
        return bundle(s, tag, by_t, by_p)

    def checked(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        def real_result(y: Any) -> Any:
            if is_number(y):
                if keys().own_tags:
                    keys().tags_wanted += 1
                    raise Error("gradient-r: the result of the function has tags that the run makes")
                return tags.without_tags(y)
            if isinstance(y, Union):
                return opened(s, y, real_result)
            if isinstance(y, Bundled):
                raise Tagged(y.tag)
            if not is_real(y):
                raise _no_real(y)
            return y

        return real_result(result_of(s, held[0], given))

    try:
        return verbs.value_and_grad(s, HostFunction(("dvl", "a function"), checked, (f,)), 0, False, [x], {})[1]
    except Tagged as found:
        first, second = (_gradient_at(s, _result_part(found.tag, which, f), x) for which in (0, 1))
        return bundle(s, found.tag, first, second)


def _no_real(y: Any) -> Error:
    return Mistake(f"gradient-r: the result of the function is a real, and {described(y)} is none")


def _of_parts(tag: Gensym, f: Any) -> HostFunction:
    """From a pair of a primal and a tangent to the tangent of a function's result."""

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        tag, f = held
        ((p, t),) = given
        return part(s, tag, 1, s.call(f, [bundle(s, tag, p, t)]))

    return HostFunction(("dvl", "a tangent"), run, (tag, f))


def _result_part(tag: Gensym, which: int, f: Any) -> HostFunction:
    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        return part(s, held[0], which, s.call(held[1], given))

    return HostFunction(("dvl", "a part of a result", which), run, (tag, f))
