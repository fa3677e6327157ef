"""The builtins of DVL as a program is specialised: what each does with values of which some are not known.

Pairs are tuples and vanish, as closures and tags do, arithmetic becomes operations of the graph. How the specialiser
comes to them is in `program.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....compiler.evaluate.heap.tags import is_number, is_tag
from ....compiler.evaluate.heap.unions import opened
from ....compiler.evaluate.specialiser import CALLS, Specialiser
from ....compiler.frontend.source import Mistake
from ....errors import Error
from ....ir import Node
from ....ir.node import constant, intern
from ....ir.operation import Operation, apply
from ....ir.ops import scalars as ops
from ....ir.ops.cells import BUNDLE
from ....ir.types import real
from ..builtins import (
    BUILTINS,
    ELEMENTARY,
    FIRST,
    NONE,
    REST,
    SETTLED,
    TRUTH,
    WITHOUT_TAGS,
    Builtin,
    first_argument,
    no_arguments,
    rest_of_arguments,
)
from ..checks import printed
from ..data import Gensym, QuotedSymbol, chain, is_pair
from ..vectors import COMPARISONS
from .bundles import bundle, compared_tags, part, tag_of
from .derivatives import derivative, gradient
from .fixed_points import fixed_point, real_part, settled
from .tags import gensym
from .unions import Handler, decided, has_unions, may_be_called
from .values import VECTORS, Bundled, compared, described, is_boolean, is_function, is_open, is_real


def _truth(x: Any) -> Any:
    return x if is_boolean(x) else True


def _not(x: Any) -> Any:
    x = _truth(x)
    return not x if isinstance(x, bool) else apply(ops.logical_not, x)


def _equal(a: Any, b: Any, compared_pairs: set[tuple[int, int]]) -> Any:
    """Whether two values are the same: known, or known to the graph alone. Pairs that were compared before, since they
    are shared, add nothing to the conjunction that this is."""
    found: Any = True
    while is_pair(a) and is_pair(b):
        if (id(a), id(b)) in compared_pairs:
            return found
        compared_pairs.add((id(a), id(b)))
        found = _both(found, _equal(a[0], b[0], compared_pairs))
        if found is False:
            return False
        a, b = a[1], b[1]
    if is_real(a) and is_real(b):
        return _both(found, compared("=", a, b))
    if isinstance(a, Node) and isinstance(b, Node):  # truth values
        either, both = apply(ops.logical_or, a, b), apply(ops.logical_and, a, b)
        return _both(found, apply(ops.logical_or, both, _not(either)))
    if isinstance(a, Node) or isinstance(b, Node):
        truth, node = (b, a) if isinstance(a, Node) else (a, b)
        return _both(found, (node if truth else _not(node)) if isinstance(truth, bool) else False)
    if is_tag(a) or is_tag(b):
        return _both(found, all(isinstance(x, Gensym) or is_tag(x) for x in (a, b)) and compared_tags("gensym=", a, b))
    same = a is b or (type(a) is type(b) and not is_function(a) and bool(a == b))
    return found if same else False


def _both(a: Any, b: Any) -> Any:
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else apply(ops.logical_and, a, b)


def _car(x: Any) -> Any:
    if not is_pair(x):
        raise Error(f"(car x) takes a pair, and got {described(x)}")
    return x[0]


def _cdr(x: Any) -> Any:
    if not is_pair(x):
        raise Error(f"(cdr x) takes a pair, and got {described(x)}")
    return x[1]


def _real(x: Any) -> Any:
    if not is_real(x):
        raise Error(f"(real x) takes a real, and got {described(x)}")
    return x


def _error(s: Specialiser, *given: Any) -> Any:
    return s.apply("raise", Error(" ".join(map(_word, given))))


def _word(x: Any) -> str:
    if isinstance(x, str):
        return str(x)
    if isinstance(x, Node) or has_unions(x):
        return described(x)
    return printed(x)


def _not_compiled(name: str) -> Handler:
    def handler(s: Specialiser, *given: Any) -> Any:
        raise Error(f"({name}) reads or writes as the program runs, and cannot be compiled; run it without --compile")

    return handler


_hide = Operation("real", (real,), real, lambda x: x, (lambda d, y, x: d,), "{0}")


def _hidden(x: Any) -> Any:
    """The same real, known only to the run."""
    if type(_real(x)) is float:
        return intern(_hide, (constant(x),), "known to the run", real)  # an attribute keeps it from being folded
    return x


_PURE: dict[str, Callable[..., Any]] = {
    **{name: VECTORS.elementary(name, operation) for name, operation in ELEMENTARY.items()},
    **{name: (lambda a, b, name=name: compared(name, a, b)) for name in COMPARISONS},
    "zero?": lambda x: compared("=", x, 0.0),
    "positive?": lambda x: compared(">", x, 0.0),
    "negative?": lambda x: compared("<", x, 0.0),
    "+": VECTORS.add,
    "*": VECTORS.multiply,
    "-": lambda a, *b: VECTORS.subtract(a, *b) if b else VECTORS.negate(a),
    "/": lambda a, *b: VECTORS.divide(a, *b) if b else VECTORS.divide(1.0, a),
    "atan": lambda x, *y: VECTORS.elementary("atan", ops.arctan2 if y else ops.arctan)(x, *y),
    "cons": lambda a, b: (a, b),
    "car": _car,
    "cdr": _cdr,
    "not": _not,
    "real?": is_real,
    "pair?": is_pair,
    "null?": lambda x: isinstance(x, tuple) and not x,
    "boolean?": is_boolean,
    "symbol?": lambda x: isinstance(x, QuotedSymbol),
    "procedure?": is_function,
    "equal?": lambda a, b: _equal(a, b, set()),
    "real": _hidden,
    "gensym?": lambda x: isinstance(x, Gensym) or is_tag(x),
    "gensym=": lambda a, b: compared_tags("gensym=", a, b),
    "gensym<": lambda a, b: compared_tags("gensym<", a, b),
    "bundle?": lambda x: isinstance(x, Bundled) or (is_number(x) and BUNDLE in x.kinds.roots),
}


_CALLING: dict[str, Handler] = {
    "error": _error,
    "read-real": _not_compiled("read-real"),
    "write-real": _not_compiled("write-real"),
    "derivative": derivative,
    "gradient-r": gradient,
    "gensym": gensym,
    "make-bundle": lambda s, tag, x, d: bundle(s, tag_of(tag), x, d, inside=False),
    "primal": lambda s, tag, x: part(s, tag_of(tag), 0, x),
    "tangent": lambda s, tag, x: part(s, tag_of(tag), 1, x),
    "fixed-point": fixed_point,
}
_INNER: dict[Builtin, Callable[..., Any]] = {
    FIRST: first_argument,
    REST: rest_of_arguments,
    NONE: no_arguments,
    TRUTH: _truth,
    WITHOUT_TAGS: lambda x: real_part(x) if is_real(x) else x,
    SETTLED: settled,
}


def enter(builtin: Builtin, run: Handler) -> None:
    """Enters what a builtin does into the table of the specialiser."""

    def handler(s: Specialiser, given: Sequence[Any], named: Any) -> Any:
        if builtin.returns and is_pair(given[0]) and may_be_called(given[0][0]):
            return s.call(run(s, given[0][0]), [given[0][1]])
        if len(given) == 1 and builtin.most != 1:  # a chain of pairs
            last: Any = given[0]
            front: list[Any] = []
            while is_pair(last) and len(front) + 1 < builtin.most:
                front.append(last[0])
                last = last[1]
            if is_open(last):
                return opened(s, last, lambda one: handler(s, [chain(front, one)], named))
            given = builtin.spread(given[0])
        return decided(s, builtin, run, list(given))

    CALLS[builtin] = handler


def _without(function: Callable[..., Any]) -> Handler:
    """What a function does that calls nothing, and so finds mistakes of the program alone."""

    def handler(s: Specialiser, *given: Any) -> Any:
        try:
            return function(*given)
        except Error as problem:
            raise Mistake(str(problem)) from problem

    return handler


for _name, _builtin in BUILTINS.items():
    enter(_builtin, _CALLING[_name] if _name in _CALLING else _without(_PURE[_name]))
for _builtin, _function in _INNER.items():
    enter(_builtin, _without(_function))
