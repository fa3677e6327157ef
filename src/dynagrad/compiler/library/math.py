"""Functions of numbers while a function is specialised: Python's built-in ones, and those of `math`.

numpy's are in `compiler/numpy/calls.py`, operators in `compiler/evaluate/operators.py`; for functions that run eagerly,
those of `math` are in `eager/names/math_names.py`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...eager.names.math_names import MATH, SPECIAL
from ...errors import Error
from ...ir import Node
from ...ir.ops import integers
from ...ir.ops import scalars as ops
from ...ir.types import KINDS
from ..evaluate.arrays import holds_node
from ..evaluate.exceptions import check
from ..evaluate.iteration import items
from ..evaluate.joins import Mismatch
from ..evaluate.operators import binary, integer_power, truth
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import Array, Instance, List, as_type, describe, known, node_of, type_of, unwrapped, wrapped
from ..numpy.calls import numpy_call
from ..objects.containers import attribute

# -- numbers -----------------------------------------------------------------------------------------------------------


def _scalar(x: Any, name: str) -> Node:
    """A dynamic number, or the element of an array that has one, as a node."""
    content = unwrapped(x)
    t = type_of(content)
    if t is None or t.size != 1:
        raise Error(f"{name}() takes one number, not {describe(x)}")
    node = node_of(content)
    return node[(0,) * node.ndim] if node.ndim else node


@calls(float, knows="x")
def _float(s: Specialiser, args: Args, named: Named) -> Any:
    if not args or known(args[0]):
        return float(*map(unwrapped, args))
    return as_type(_scalar(args[0], "float"), KINDS["real"])


@calls(int, knows="x base")
def _int(s: Specialiser, args: Args, named: Named) -> Any:
    if not args or known(args[0]):
        return int(*map(unwrapped, args))
    if len(args) > 1:
        raise Error(f"int() with base= takes a text, and not {describe(args[0])}")
    node = _scalar(args[0], "int")
    if node.type.kind == "integer":
        return node
    return integers.count_true(node) if node.type.kind == "boolean" else _whole(s, "int", node)


def _whole(s: Specialiser, name: str, x: Node) -> Node:
    """A real truncated to a whole number; RunError for NaN, infinities and reals of 2**63 or more."""
    s.may_raise(ValueError, OverflowError)
    test = ops.less(ops.absolute(x), 2.0**63)
    check(s, test, f"{name}() of ", x, ": a whole number of a compiled function has 64 bits")
    found: Node = integers.to_integer(x)
    return found


@calls(bool, knows="object")
def _bool(s: Specialiser, args: Args, named: Named) -> Any:
    return truth(s, args[0]) if args else False


@calls(complex, knows=None)
def _complex(s: Specialiser, args: Args, named: Named) -> Any:
    raise Error("complex numbers cannot be compiled; compute with the real and the imaginary part")


@calls(abs)
def _abs(s: Specialiser, args: Args, named: Named) -> Any:
    (x,) = args
    if isinstance(x, Instance):
        return s.call(attribute(s, x, "__abs__"), [])
    content = unwrapped(x)
    if isinstance(content, Node) and content.type.kind == "boolean":
        return wrapped(content) if content.shape else integers.count_true(content)
    return wrapped(abs(content))


@calls(round, knows="ndigits")
def _round(s: Specialiser, args: Args, named: Named) -> Any:
    x, *digits = args
    if known(x):
        return wrapped(round(unwrapped(x), *digits))
    digits = [n for n in digits if n is not None]
    t = type_of(x)
    if isinstance(x, Array) or (digits and t is not None and t.kind != "real"):
        return numpy_call(s, np.round, [x, *digits], {})
    node = _scalar(x, "round")
    if digits:
        return _to_decimals(node, digits[0])
    return node if node.type.kind == "integer" else _whole(s, "round", ops.rint(node))


def _to_decimals(x: Node, n: Any) -> Any:
    """`round(x, n)` as Python computes it: of the exact value, half to even, to the nearest double. numpy multiplies by
    a power of ten first, which rounds twice."""
    if not isinstance(n, int) or not -_MOST_ZEROS <= n <= _MOST_DECIMALS:
        raise Error(
            f"the number of decimals of round() must be known when the function is compiled, and from -{_MOST_ZEROS} "
            f"to {_MOST_DECIMALS}; use np.round for others"
        )
    if n == 0:
        return ops.rint(x)
    scale, a = 10.0 ** abs(n), abs(x)
    if n > 0:
        scaled = a * scale
        low = ops.floor(scaled)
        half = (2.0 * low + 1.0) / (2.0 * scale)  # the number between the two candidates, rounded
        rest = ops.fmod(2.0 * low + 1.0, a)  # where that is `a`, this decides exactly on which side it is
        up = (a > half) | ((a == half) & (((rest == 0.0) & _odd(low)) | (rest > 0.5 * a)))
        found = (low + ops.where(up & (scaled < 2.0**52), 1.0, 0.0)) / scale
    else:
        scaled, last = a / scale, ops.fmod(a, 4.0 * scale)
        rest = ops.fmod(last, scale)
        low = 4.0 * ops.rint((a - last) / (4.0 * scale)) + ops.rint((last - rest) / scale)  # in two parts, to be exact
        up = (rest > 0.5 * scale) | ((rest == 0.5 * scale) & _odd(low))
        found = (low + ops.where(up, 1.0, 0.0)) * scale
    itself = ops.where(
        a < 2.0**53, ops.rint(a * 2.0**52) * 2.0**-52, ops.rint(a)
    )  # a step function, whose derivative is 0
    return ops.copysign(ops.where(scaled < 2.0**53, found, itself), ops.where(x < 0.0, -1.0, ops.copysign(1.0, x)))


def _odd(x: Any) -> Any:
    return ops.fmod(x, 2.0) == 1.0


_MOST_DECIMALS, _MOST_ZEROS = 15, 22  # up to which remainders above, and powers of ten, are exact


@calls(divmod)
def _divmod(s: Specialiser, args: Args, named: Named) -> Any:
    return binary(s, "floor_divide", *args), binary(s, "modulo", *args)


@calls(pow, knows="mod")
def _pow(s: Specialiser, args: Args, named: Named) -> Any:
    if len(args) == 3 and args[2] is not None:
        if not all(map(known, args)):
            raise Error("pow() with three arguments must be known when the function is compiled; write (a**b) % n")
        return pow(*map(unwrapped, args))
    return binary(s, "power", *args[:2])


@calls(np.power, knows=None)
def _numpy_power(s: Specialiser, args: Args, named: Named) -> Any:
    types = [type_of(x) for x in args]
    if len(args) == 2 and not named and all(t is not None and t.kind != "real" for t in types):
        exponent = unwrapped(args[1])
        if isinstance(exponent, Node) and types[1].kind == "integer":  # type: ignore[union-attr]  # checked above: not None
            return integer_power(s, args[0], args[1], exact=False)
    return numpy_call(s, np.power, args, dict(named))


def _extreme(largest: bool) -> Callable[..., Any]:
    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        inside = items(s, args[0]) if len(args) == 1 else tuple(args)
        if "default" in named and len(args) > 1:
            raise TypeError("there is a default for one iterable alone, and not for several arguments")
        if not inside:
            if "default" in named:
                return named["default"]
            raise Error(f"{'max' if largest else 'min'}() of an empty iterable has no value; give default=")
        key = named.get("key")
        if all(map(known, inside)):
            keys = [unwrapped(x if key is None else s.call(key, [x])) for x in inside]
            if not any(map(holds_node, keys)):
                return inside[keys.index((max if largest else min)(keys))]
        if key is not None or any(isinstance(x, tuple | List) for x in inside):
            return _by_key(s, inside, key, "greater" if largest else "less")
        found = inside[0]
        for x in inside[1:]:
            found = _larger(s, found, x) if largest else _larger(s, found, x, integers.minimum, ops.less)
        return found

    return handler


def _by_key(s: Specialiser, inside: Sequence[Any], key: Any, further: str) -> Any:
    """The item with the largest, or least, key; the first of several."""
    keys = [x if key is None else s.call(key, [x]) for x in inside]
    best = inside[0], keys[0]
    for pair in zip(inside[1:], keys[1:], strict=True):
        test = truth(s, binary(s, further, pair[1], best[1]))
        if isinstance(test, bool):
            best = pair if test else best
            continue
        try:
            best = s.cond(test, lambda pair=pair: pair, lambda best=best: best)  # type: ignore[misc]  # mypy infers no type for a default
        except Mismatch as problem:
            raise Error(
                f"{'max' if further == 'greater' else 'min'}() chooses among items as the function runs, so all must "
                f"have one structure; there are {problem.a} and {problem.b}"
            ) from None
    return best[0]


def _larger(s: Specialiser, a: Any, b: Any, of_whole: Any = integers.maximum, further: Any = ops.greater) -> Any:
    """The second number if it is larger, else the first: so Python treats ties and NaN."""
    if known(a) and known(b):
        return (max if further is ops.greater else min)(unwrapped(a), unwrapped(b))
    x, y = _scalar(a, "max"), _scalar(b, "max")
    kinds = {x.type.kind, y.type.kind}
    if kinds == {"boolean"}:
        return (ops.logical_or if further is ops.greater else ops.logical_and)(x, y)
    return ops.where(further(y, x), y, x) if "real" in kinds else of_whole(x, y)


calls(max, knows="key default")(_extreme(True))
calls(min, knows="key default")(_extreme(False))


@calls(sum, knows="start")
def _sum(s: Specialiser, args: Args, named: Named) -> Any:
    x, *start = args
    found = start[0] if start else 0
    if isinstance(x, Array | np.ndarray):
        return binary(s, "add", found, numpy_call(s, np.sum, [x], {"axis": 0}))
    for item in items(s, x):
        t = type_of(item)
        nothing = (
            type(found) is int and found == 0 and t is not None and t.kind != "boolean"
        )  # truth values are counted
        found = item if nothing else binary(s, "add", found, item)
    return found


@calls(math.prod, knows="start")
def _prod(s: Specialiser, args: Args, named: Named) -> Any:
    found = named.get("start", 1)
    for item in items(s, args[0]):
        found = binary(s, "multiply", found, item)
    return found


@calls(math.fsum)
def _fsum(s: Specialiser, args: Args, named: Named) -> Any:
    inside = items(s, args[0])
    if all(map(known, inside)):
        return math.fsum(map(unwrapped, inside))
    terms: list[Any] = [as_type(_scalar(x, "fsum"), KINDS["real"]) for x in inside]
    plain = functools.reduce(operator.add, terms)
    for _ in range(2):  # as if in three times the digits: Ogita, Rump and Oishi 2005
        for n in range(1, len(terms)):
            terms[n], terms[n - 1] = _with_its_error(terms[n], terms[n - 1])
    exact = functools.reduce(operator.add, terms)
    return ops.where(ops.less(abs(plain), math.inf), exact, plain)


def _with_its_error(a: Node, b: Node) -> tuple[Node, Node]:
    """A sum as it is rounded, and what rounding left out (Knuth)."""
    found = a + b
    of_b = found - a
    return found, (a - (found - of_b)) + (b - of_b)


# -- math --------------------------------------------------------------------------------------------------------------


def _of_math(function: Any, counterpart: Any) -> None:
    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        if all(map(known, args)):
            return function(*map(unwrapped, args))
        s.may_raise(ValueError, OverflowError)
        return numpy_call(s, counterpart, [as_type(_scalar(x, function.__name__), KINDS["real"]) for x in args], {})

    calls(function)(handler)


for _function, _instead in MATH.items():
    if _function is not math.hypot:
        _of_math(_function, _instead)


def _special(function: Any, counterpart: Any) -> None:
    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        if all(map(known, args)):
            return function(*map(unwrapped, args))
        s.may_raise(ValueError, OverflowError)
        return s.call(counterpart, [as_type(_scalar(x, function.__name__), KINDS["real"]) for x in args])

    calls(function)(handler)


for _function, _instead in SPECIAL.items():
    _special(_function, _instead)


@calls(math.hypot)
def _hypot(s: Specialiser, args: Args, named: Named) -> Any:
    """`math.hypot` of any number of coordinates."""
    if all(map(known, args)):
        return math.hypot(*map(unwrapped, args))
    first, *rest = (as_type(_scalar(x, "hypot"), KINDS["real"]) for x in args)
    found = abs(first)
    for x in rest:
        found = numpy_call(s, np.hypot, [found, x], {})
    return found


def _of_products(s: Specialiser, args: Args, named: Named) -> Any:
    """`math.sumprod`, of Python 3.12."""
    p, q = (items(s, x) for x in args)
    if len(p) != len(q):
        raise ValueError("inputs of math.sumprod() are not of the same length")
    products = tuple(binary(s, "multiply", a, b) for a, b in zip(p, q, strict=True))
    types = [type_of(x) for x in products]
    return (_fsum if any(t is not None and t.kind == "real" for t in types) else _sum)(s, [products], {})


if hasattr(math, "sumprod"):
    calls(math.sumprod)(_of_products)


@calls(math.isclose, knows="rel_tol abs_tol")
def _isclose(s: Specialiser, args: Args, named: Named) -> Any:
    if all(map(known, [*args, *named.values()])):
        return math.isclose(*map(unwrapped, args), **{key: unwrapped(x) for key, x in named.items()})
    a, b = (as_type(_scalar(x, "isclose"), KINDS["real"]) for x in args)
    relative, absolute = (unwrapped(named.get(name, usual)) for name, usual in (("rel_tol", 1e-9), ("abs_tol", 0.0)))
    s.may_raise(ValueError)
    for tolerance in (relative, absolute):
        test = tolerance >= 0.0
        check(s, test if isinstance(test, Node) else bool(test), "math.isclose(): tolerances must be non-negative")
    apart, size = abs(a - b), np.maximum(abs(a), abs(b))
    near = (apart <= np.maximum(size * relative, absolute)) & (apart < math.inf)
    return near | (a == b)


@calls(math.dist)
def _dist(s: Specialiser, args: Args, named: Named) -> Any:
    if all(map(known, args)):
        return math.dist(*map(unwrapped, args))
    pairs = zip(*(items(s, x) for x in args), strict=True)
    return _hypot(s, [binary(s, "subtract", a, b) for a, b in pairs], {})


@calls(math.log, knows="base")
def _log(s: Specialiser, args: Args, named: Named) -> Any:
    if all(map(known, args)):
        return math.log(*map(unwrapped, args))
    s.may_raise(ValueError)
    found = numpy_call(s, np.log, [_scalar(args[0], "log")], {})
    return found if len(args) == 1 else binary(s, "divide", found, _log(s, [args[1]], {}))


def _rounding(function: Any, operation: Any) -> None:
    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        if known(args[0]):
            return function(unwrapped(args[0]))
        node = _scalar(args[0], function.__name__)
        return node if node.type.kind == "integer" else _whole(s, function.__name__, operation(node))

    calls(function)(handler)


_rounding(math.floor, ops.floor)
_rounding(math.ceil, ops.ceil)
_rounding(math.trunc, ops.trunc)


@calls(math.ldexp)
def _ldexp(s: Specialiser, args: Args, named: Named) -> Any:
    if all(map(known, args)):
        return math.ldexp(*map(unwrapped, args))
    x, i = args[0], args[1]
    if known(i):
        math.ldexp(0.0, unwrapped(i))  # which raises for what is no integer
    left: Any = unwrapped(i) if known(i) else as_type(_scalar(i, "ldexp"), KINDS["real"])
    for _ in range(3):  # as 2.0**1074 overflows
        part = max(-1022, min(left, 1023)) if known(i) else np.minimum(np.maximum(left, -1022.0), 1023.0)
        x = binary(s, "multiply", x, binary(s, "power", 2.0, s.call(float, [part])))
        left = left - part
    return x


@calls(math.modf)
def _modf(s: Specialiser, args: Args, named: Named) -> Any:
    if known(args[0]):
        return math.modf(unwrapped(args[0]))
    return numpy_call(s, np.modf, [as_type(_scalar(args[0], "modf"), KINDS["real"])], {})
