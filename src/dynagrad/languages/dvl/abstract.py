"""What the builtins of DVL do as a program is specialised; how one comes to that is in `compiled.py`.

It tells the specialiser (`compiler/evaluate/specialiser.py`) what the builtins of DVL do with values of which
some are not known: pairs are tuples and vanish, as closures and tags do, arithmetic becomes operations of the graph,
and derivatives are those of `compiler/transforms`. Bundles that a program makes itself are tuples, too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from ...compiler.evaluate.specialiser import CALLS, Specialiser
from ...compiler.evaluate.values import HostFunction as Run
from ...compiler.evaluate.values import function_like
from ...compiler.transforms import verbs
from ...eager.kinds import fresh as fresh_serial
from ...eager.verbs.fixed_point import fixed_point
from ...errors import Error
from ...ir import Node
from ...ir.operation import Operation, apply
from ...ir.ops import scalars as ops
from .builtins import (
    BUILTINS,
    ELEMENTARY,
    FIRST,
    NONE,
    REST,
    TRUTH,
    Builtin,
    first_argument,
    no_arguments,
    older_tag,
    rest_of_arguments,
    same_tag,
)
from .checks import printed
from .data import Gensym, QuotedSymbol, is_pair
from .data import is_real as is_plain
from .vectors import Vectors, constant, said

Handler = Callable[..., Any]


class Bundled(NamedTuple):
    """A real with a tangent along a tag that a program made itself."""

    tag: Gensym
    primal: Any
    tangent: Any

    def __neg__(self) -> Any:
        return apply(ops.negative, self)

    @staticmethod
    def __apply_operation__(operation: Operation, arguments: Sequence[Any]) -> Any:
        """An operation on bundles, by the youngest tag among them."""
        tag = max(x.tag for x in arguments if isinstance(x, Bundled))
        mine = [isinstance(x, Bundled) and x.tag == tag for x in arguments]
        primals = [x.primal if own else x for own, x in zip(mine, arguments, strict=True)]
        y = apply(operation, *primals)
        if operation.steps:
            return y
        total: Any = None
        for i, own in enumerate(mine):
            rule = (operation.tangent or ())[i] if own else None
            if rule is not None:
                part = rule(arguments[i].tangent, y, *primals)
                total = part if total is None else apply(ops.add, total, part)
        return y if total is None else Bundled(tag, y, total)


def _on_bundles(operation: Operation, reflected: bool = False) -> Any:
    return lambda a, b: apply(operation, b, a) if reflected else apply(operation, a, b)


for _name, _operation in {"add": ops.add, "sub": ops.subtract, "mul": ops.multiply, "truediv": ops.divide}.items():
    setattr(Bundled, f"__{_name}__", _on_bundles(_operation))
    setattr(Bundled, f"__r{_name}__", _on_bundles(_operation, reflected=True))


def is_real(x: Any) -> bool:
    return isinstance(x, Bundled) or (is_plain(x) and (not isinstance(x, Node) or x.type.kind == "real"))


def is_function(x: Any) -> bool:
    return function_like(x) and not isinstance(x, type)


def _combined(sign: str, a: Any, b: Any) -> Run:
    """A sum, a difference or a multiple of functions."""

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        a, b = held
        if sign == "*":
            return VECTORS.multiply(a, s.call(b, given))
        first, second = s.call(a, given), s.call(b, given)
        return VECTORS.add(first, second) if sign == "+" else VECTORS.subtract(first, second)

    return Run(("dvl", "a sum of functions", sign), run, (a, b))


VECTORS = Vectors(_combined, is_function, is_real)


# -- what the builtins do ----------------------------------------------------------------------------------------------


def _plain(x: Any) -> Any:
    while isinstance(x, Bundled):
        x = x.primal
    return x


_COMPARE: dict[str, tuple[Callable[[Any, Any], bool], Operation]] = {
    "<": (operator.lt, ops.less),
    "<=": (operator.le, ops.less_equal),
    ">": (operator.gt, ops.greater),
    ">=": (operator.ge, ops.greater_equal),
    "=": (operator.eq, ops.equal),
}


def _compared(name: str, a: Any, b: Any) -> Any:
    for x in (a, b):
        if not is_real(x):
            raise Error(f"({name} a b) compares reals, and got {_said(x)}")
    plain, operation = _COMPARE[name]
    a, b = _plain(a), _plain(b)
    return plain(a, b) if type(a) is float and type(b) is float else apply(operation, a, b)


def _said(x: Any) -> str:
    return "a truth value" if isinstance(x, Node) and x.type.kind == "boolean" else said(x)


def _truth(x: Any) -> Any:
    return x if isinstance(x, bool) or (isinstance(x, Node) and x.type.kind == "boolean") else True


def _not(x: Any) -> Any:
    x = _truth(x)
    return not x if isinstance(x, bool) else apply(ops.logical_not, x)


def _equal(a: Any, b: Any) -> Any:
    """Whether two values are the same: known, or known to the graph alone."""
    found: Any = True
    while is_pair(a) and is_pair(b):
        found = _both(found, _equal(a[0], b[0]))
        if found is False:
            return False
        a, b = a[1], b[1]
    if is_real(a) and is_real(b):
        return _both(found, _compared("=", a, b))
    if isinstance(a, Node) and isinstance(b, Node):  # truth values
        return _both(found, _not(apply(ops.logical_xor, a, b)) if hasattr(ops, "logical_xor") else _alike(a, b))
    if isinstance(a, Node) or isinstance(b, Node):
        truth, node = (b, a) if isinstance(a, Node) else (a, b)
        return _both(found, (node if truth else _not(node)) if isinstance(truth, bool) else False)
    same = a is b or (type(a) is type(b) and not is_function(a) and bool(a == b))
    return found if same else False


def _alike(a: Node, b: Node) -> Any:
    return _not(apply(ops.logical_and, apply(ops.logical_or, a, b), _not(apply(ops.logical_and, a, b))))


def _both(a: Any, b: Any) -> Any:
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else apply(ops.logical_and, a, b)


def _car(x: Any) -> Any:
    if not is_pair(x):
        raise Error(f"(car x) takes a pair, and got {_said(x)}")
    return x[0]


def _cdr(x: Any) -> Any:
    if not is_pair(x):
        raise Error(f"(cdr x) takes a pair, and got {_said(x)}")
    return x[1]


def _real(x: Any) -> Any:
    if not is_real(x):
        raise Error(f"(real x) takes a real, and got {_said(x)}")
    return x


def _error(s: Specialiser, *given: Any) -> Any:
    words = [str(x) if isinstance(x, str) else "a real" if isinstance(x, Node) else printed(x) for x in given]
    return s.apply("raise", Error(" ".join(words)))


def _not_compiled(name: str) -> Handler:
    def handler(s: Specialiser, *given: Any) -> Any:
        raise Error(f"({name}) reads or writes as the program runs, and cannot be compiled; run it without --compile")

    return handler


def _derivative(s: Specialiser, f: Any) -> Run:
    """`(derivative f)`."""
    if not is_function(f):
        raise Error(f"(derivative f) takes a procedure, and got {_said(f)}")

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        (x,) = given
        if not is_real(x):
            raise Error(f"derivative: the argument is a real, and {_said(x)} is none; there is directional-derivative")
        return verbs.forward(s, "derivative", held[0], [x], [_one(x)])[1]

    return Run(("dvl", "a derivative"), run, (f,))


def _one(x: Any) -> Any:
    """The direction 1 at a real that may be a bundle."""
    return Bundled(x.tag, _one(x.primal), _nothing(x.tangent)) if isinstance(x, Bundled) else 1.0


def _nothing(x: Any) -> Any:
    return Bundled(x.tag, _nothing(x.primal), _nothing(x.tangent)) if isinstance(x, Bundled) else 0.0


def _gradient(s: Specialiser, f: Any) -> Run:
    """`(gradient-r f)`."""
    if not is_function(f):
        raise Error(f"(gradient-r f) takes a procedure, and got {_said(f)}")

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        return _gradient_at(s, held[0], given[0])

    return Run(("dvl", "a gradient"), run, (f,))


class _Tagged(Exception):
    """The result of a function that is differentiated holds a tag of the program's."""

    def __init__(self, tag: Gensym) -> None:
        super().__init__()
        self.tag = tag


def _gradient_at(s: Specialiser, f: Any, x: Any) -> Any:
    """The gradient of a function; of p + tag t it is g + tag h, with g and h those of the tangent of the result by t
    and by p."""
    if not (is_real(x) or is_pair(x) or is_function(x)):
        return x
    tag = _youngest(x)
    if tag is not None:
        by_p, by_t = _gradient_at(s, _of_parts(tag, f), (_part(tag, 0, x), _part(tag, 1, x)))
        return _bundle(tag, by_t, by_p)

    def checked(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        y = s.call(held[0], given)
        if isinstance(y, Bundled):
            raise _Tagged(y.tag)
        if not is_real(y):
            raise Error(f"gradient-r: the result of the function is a real, and {_said(y)} is none")
        return y

    try:
        return verbs.value_and_grad(s, Run(("dvl", "a function"), checked, (f,)), 0, False, [x], {})[1]
    except _Tagged as found:
        first, second = (_gradient_at(s, _result_part(found.tag, which, f), x) for which in (0, 1))
        return _bundle(found.tag, first, second)


def _youngest(x: Any) -> Gensym | None:
    """The youngest tag of a structure."""
    if is_pair(x):
        tags = [tag for tag in map(_youngest, x) if tag is not None]
        return max(tags) if tags else None
    return x.tag if isinstance(x, Bundled) else None


def _of_parts(tag: Gensym, f: Any) -> Run:
    """From a pair of a primal and a tangent to the tangent of a function's result."""

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        tag, f = held
        ((p, t),) = given
        return _part(tag, 1, s.call(f, [_bundle(tag, p, t)]))

    return Run(("dvl", "a tangent"), run, (tag, f))


def _result_part(tag: Gensym, which: int, f: Any) -> Run:
    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        return _part(held[0], which, s.call(held[1], given))

    return Run(("dvl", "a part of a result", which), run, (tag, f))


# -- tags --------------------------------------------------------------------------------------------------------------


def _tag(x: Any) -> Gensym:
    if not isinstance(x, Gensym):
        raise Error(f"a tag is made by (gensym), and {_said(x)} is none")
    return x


def _bundle(tag: Gensym, x: Any, d: Any) -> Any:
    if is_pair(x) and is_pair(d):
        return (_bundle(tag, x[0], d[0]), _bundle(tag, x[1], d[1]))
    if is_real(x) and is_real(d):
        if any(isinstance(n, Bundled) and n.tag >= tag for n in (x, d)):
            return VECTORS.add(x, VECTORS.multiply(d, Bundled(tag, 0.0, 1.0)))
        return Bundled(tag, x, d)
    if is_function(x) and is_function(d):
        return _combined("+", x, _combined("*", Bundled(tag, 0.0, 1.0), d))
    if constant(x):
        return x
    raise Error(f"make-bundle: the tangent has the shape of the primal; they are {_said(x)} and {_said(d)}")


def _split(tag: Gensym, x: Any) -> tuple[Any, Any]:
    if not isinstance(x, Bundled) or x.tag < tag:
        return x, 0.0
    if x.tag == tag:
        return x.primal, x.tangent
    (p, q), (d, e) = _split(tag, x.primal), _split(tag, x.tangent)
    return Bundled(x.tag, p, d), Bundled(x.tag, q, e)


def _part(tag: Gensym, which: int, x: Any) -> Any:
    """The primal or the tangent of a structure."""
    if is_pair(x):
        return (_part(tag, which, x[0]), _part(tag, which, x[1]))
    if is_real(x):
        return _split(tag, x)[which]
    if not is_function(x):
        return x

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        tag, f = held
        other = Gensym(fresh_serial())
        y = s.call(f, [_swapped(tag, other, g) for g in given])
        return _swapped(tag, other, _part(tag, which, y))

    return Run(("dvl", "a part of a function", which), run, (tag, x))


def _swapped(a: Gensym, b: Gensym, x: Any) -> Any:
    """A structure with two tags in each other's place."""
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

    return Run(("dvl", "a function with other tags"), run, (a, b, x))


hidden_by: ContextVar[Any] = ContextVar("hidden_by", default=1.0)
"""A real that only the run knows, and that is 1: `(real x)` is x times it, so that x is not known either."""


def _hidden(x: Any) -> Any:
    return VECTORS.multiply(_real(x), hidden_by.get())


# -- entering ----------------------------------------------------------------------------------------------------------

_PURE: dict[str, Callable[..., Any]] = {
    **{name: VECTORS.elementary(name, operation) for name, operation in ELEMENTARY.items()},
    **{name: (lambda a, b, name=name: _compared(name, a, b)) for name in _COMPARE},
    "zero?": lambda x: _compared("=", x, 0.0),
    "positive?": lambda x: _compared(">", x, 0.0),
    "negative?": lambda x: _compared("<", x, 0.0),
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
    "boolean?": lambda x: isinstance(x, bool) or (isinstance(x, Node) and x.type.kind == "boolean"),
    "symbol?": lambda x: isinstance(x, QuotedSymbol),
    "procedure?": is_function,
    "equal?": _equal,
    "real": _hidden,
    "gensym": lambda: Gensym(fresh_serial()),
    "gensym?": lambda x: isinstance(x, Gensym),
    "gensym=": same_tag,
    "gensym<": older_tag,
    "bundle?": lambda x: isinstance(x, Bundled),
    "make-bundle": lambda tag, x, d: _bundle(_tag(tag), x, d),
    "primal": lambda tag, x: _part(_tag(tag), 0, x),
    "tangent": lambda tag, x: _part(_tag(tag), 1, x),
}
_CALLING: dict[str, Handler] = {
    "error": _error,
    "read-real": _not_compiled("read-real"),
    "write-real": _not_compiled("write-real"),
    "derivative": _derivative,
    "gradient-r": _gradient,
    "fixed-point": lambda s, f, x: s.call(fixed_point, [f, x]),
}
_INNER: dict[Builtin, Callable[..., Any]] = {
    FIRST: first_argument,
    REST: rest_of_arguments,
    NONE: no_arguments,
    TRUTH: _truth,
}


def enter(builtin: Builtin, run: Handler) -> None:
    def handler(s: Specialiser, given: Sequence[Any], named: Any) -> Any:
        if len(given) == 1 and builtin.most != 1:
            if builtin.returns and is_pair(given[0]) and is_function(given[0][0]):
                return s.call(run(s, given[0][0]), [given[0][1]])
            given = builtin.spread(given[0])
        elif builtin.returns and is_pair(given[0]) and is_function(given[0][0]):
            return s.call(run(s, given[0][0]), [given[0][1]])
        return run(s, *given)

    CALLS[builtin] = handler


def _without(function: Callable[..., Any]) -> Handler:
    return lambda s, *given: function(*given)


for _name, _builtin in BUILTINS.items():
    enter(_builtin, _CALLING[_name] if _name in _CALLING else _without(_PURE[_name]))
for _builtin, _function in _INNER.items():
    enter(_builtin, _without(_function))
