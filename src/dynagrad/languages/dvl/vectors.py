"""Arithmetic of DVL: of reals, and of pairs and functions of reals, which are vectors.

What a sum of functions is, the one who computes says: `functions` makes it, of the name of the operation and its
arguments. The evaluator has procedures there, the compiler functions of its own.

Derivatives are not known here: numbers bring theirs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...eager.kinds import real_part
from ...eager.numbers import Bundle, TapeCell
from ...errors import Error
from ...ir.operation import Operation, apply
from ...ir.ops import scalars as ops
from .data import Gensym, Procedure, QuotedSymbol, is_pair, is_real

Functions = Callable[..., Any]


_NUMBERS = frozenset([float, Bundle, TapeCell])
_QUICK: dict[str, tuple[Callable[[Any, Any], Any], Operation]] = {
    "+": (operator.add, ops.add),
    "-": (operator.sub, ops.subtract),
    "*": (operator.mul, ops.multiply),
}


def quick(sign: str, a: Any, b: Any) -> Any:
    """The sum, difference or product of two numbers, without detours where what they hold are floats."""
    compute, operation = _QUICK[sign]
    if type(a) is TapeCell or type(b) is TapeCell:
        return compute(a, b)  # cells have a quick way of their own
    p, d = (a.primal, a.tangent) if type(a) is Bundle else (a, None)
    q, e = (b.primal, b.tangent) if type(b) is Bundle else (b, None)
    if type(p) is not float or type(q) is not float or type(d) not in _FLOAT or type(e) not in _FLOAT:
        return apply(operation, a, b)
    if d is None and e is None:
        return compute(p, q)
    if d is not None and e is not None and a.tag != b.tag:
        return apply(operation, a, b)
    if sign == "*":
        first, second = None if d is None else d * q, None if e is None else p * e
    else:
        first, second = d, e if e is None or sign == "+" else -e
    tangent = second if first is None else first if second is None else first + second
    return Bundle(b.tag if d is None else a.tag, compute(p, q), tangent)


_FLOAT = frozenset([float, type(None)])


_Done = dict[tuple[int, int], Any]
"""What was found of pairs, by their identities: parts may be shared."""


class Vectors:
    """The operations of a vector space; `is_function` and `is_real` say what functions and reals are."""

    def __init__(
        self, functions: Functions, is_function: Callable[[Any], bool], is_real: Callable[[Any], bool] = is_real
    ) -> None:
        self.functions, self.is_function, self.is_real = functions, is_function, is_real

    def elementary(self, name: str, operation: Operation) -> Callable[..., Any]:
        """An operation of reals as a primitive."""
        shape = f"({name} {'x' if len(operation.arguments) == 1 else 'x y'})"

        def function(*given: Any) -> Any:
            for x in given:
                if not self.is_real(x):
                    raise Error(f"{shape} takes reals, and got {said(x)}")
            return apply(operation, *given)

        return function

    def add(self, a: Any, b: Any) -> Any:
        """The sum of two vectors."""
        if type(a) in _NUMBERS and type(b) in _NUMBERS:
            return quick("+", a, b)
        return self._both("+", ops.add, a, b)

    def subtract(self, a: Any, b: Any) -> Any:
        """The difference of two vectors."""
        if type(a) in _NUMBERS and type(b) in _NUMBERS:
            return quick("-", a, b)
        return self._both("-", ops.subtract, a, b)

    def _both(
        self, sign: str, operation: Operation, a: Any, b: Any, inside: bool = False, done: _Done | None = None
    ) -> Any:
        if self.is_real(a) and self.is_real(b):
            return apply(operation, a, b)
        front: list[Any] = []  # of lists, without recursion
        while is_pair(a) and is_pair(b):
            if is_pair(a[0]):
                done = {} if done is None else done
                at = id(a[0]), id(b[0])
                if at not in done:
                    done[at] = self._both(sign, operation, a[0], b[0], True, done)
                front.append(done[at])
            else:
                front.append(self._both(sign, operation, a[0], b[0], inside=True))
            a, b, inside = a[1], b[1], True
        if self.is_real(a) and self.is_real(b):
            last = apply(operation, a, b)
        elif self.is_function(a) and self.is_function(b):
            last = self.functions(sign, a, b)
        elif type(a) is type(b) and stays(a, inside) and a == b:
            last = a
        else:
            raise Error(f"({sign} a b) takes two reals, or two vectors of one shape, and got {said(a)} and {said(b)}")
        for item in reversed(front):
            last = (item, last)
        return last

    def multiply(self, a: Any, b: Any) -> Any:
        """The product of two reals, or of a real and a vector."""
        if type(a) in _NUMBERS and type(b) in _NUMBERS:
            return quick("*", a, b)
        if self.is_real(a):
            return apply(ops.multiply, a, b) if self.is_real(b) else self.scale(a, b)
        if self.is_real(b):
            return self.scale(b, a)
        raise Error(f"(* a b) takes two reals, or a real and a vector, and got {said(a)} and {said(b)}")

    def scale(self, c: Any, x: Any, shape: str = "(* a b) takes two reals, or a real and a vector") -> Any:
        """A vector times a real. `shape` is what an error says of the call."""
        return self._scaled(c, x, shape, False, {})

    def _scaled(self, c: Any, x: Any, shape: str, inside: bool, done: dict[int, Any]) -> Any:
        front: list[Any] = []
        while is_pair(x):
            if not is_pair(x[0]):
                front.append(self._scaled(c, x[0], shape, True, done))
            else:
                if id(x[0]) not in done:
                    done[id(x[0])] = self._scaled(c, x[0], shape, True, done)
                front.append(done[id(x[0])])
            x, inside = x[1], True
        if self.is_real(x):
            last = apply(ops.multiply, c, x)
        elif self.is_function(x):
            last = self.functions("*", c, x)
        elif stays(x, inside):
            last = x
        else:
            raise Error(f"{shape}, and got {said(x)}")
        for item in reversed(front):
            last = (item, last)
        return last

    def divide(self, a: Any, b: Any) -> Any:
        """The quotient of two reals, or of a vector and a real."""
        if not self.is_real(b):
            raise Error(f"(/ a b) divides by a real, and got {said(b)}")
        if type(real_part(b)) is float and real_part(b) == 0.0:
            raise Error("(/ a b) divides by zero")
        if self.is_real(a):
            return apply(ops.divide, a, b)
        return self.scale(apply(ops.divide, 1.0, b), a, "(/ a b) divides a real or a vector")

    def negate(self, a: Any) -> Any:
        """A vector times minus one."""
        return apply(ops.negative, a) if self.is_real(a) else self.scale(-1.0, a, "(- a) takes a real or a vector")


def constant(x: Any) -> bool:
    """Whether a part of a structure has no derivative: the empty list, symbols, truth values, texts, tags."""
    return not x if isinstance(x, tuple) else isinstance(x, bool | str | Gensym)


def stays(x: Any, inside: bool) -> bool:
    """Whether a value is left as it is by sums and multiples: the empty list, and constants inside of a structure."""
    return constant(x) and (inside or isinstance(x, tuple))


def checked_start(x: Any, is_function: Callable[[Any], bool], described: Callable[[Any], str]) -> Any:
    """Where `fixed-point` begins, which has to be made of reals."""
    if constant(x) and not isinstance(x, tuple):
        raise Error(f"(fixed-point f start) starts from a real or a structure of reals, and got {described(x)}")
    left = [x]
    while left:
        part = left.pop()
        if is_pair(part):
            left += part
        elif is_function(part):
            raise Error(f"(fixed-point f start) starts from a real or a structure of reals, and got {described(part)}")
    return x


def checked_step(x: Any, y: Any, is_real: Callable[[Any], bool], described: Callable[[Any], str]) -> Any:
    """What the procedure of `fixed-point` returns, which has the shape of its argument."""
    left = [(x, y)]
    while left:
        a, b = left.pop()
        if is_pair(a) and is_pair(b):
            left += zip(a, b, strict=True)
        elif not (is_real(a) and is_real(b)) and not (type(a) is type(b) and constant(a) and a == b):
            raise Error(
                f"fixed-point: the procedure returns {described(b)} in the place of {described(a)}; it returns a value "
                "of the shape of its argument"
            )
    return y


COMPARISONS: dict[str, tuple[Callable[[Any, Any], bool], Operation]] = {
    "<": (operator.lt, ops.less),
    "<=": (operator.le, ops.less_equal),
    ">": (operator.gt, ops.greater),
    ">=": (operator.ge, ops.greater_equal),
    "=": (operator.eq, ops.equal),
}
"""Comparisons of floats, and the operations that they are."""


def comparison(name: str) -> Callable[[Any, Any], Any]:
    """A comparison of reals."""
    plain, operation = COMPARISONS[name]

    def function(a: Any, b: Any) -> Any:
        if type(a) is float and type(b) is float:
            return plain(a, b)
        for x in (a, b):
            if not is_real(x):
                raise Error(f"({name} a b) compares reals, and got {said(x)}")
        return bool(apply(operation, a, b))

    return function


def said(x: Any) -> str:
    """A value in a message."""
    if is_real(x):
        return f"the real {x!r}" if type(x) is float else "a real"
    if is_pair(x):
        return "a pair"
    if isinstance(x, tuple) and not x:
        return "the empty list"
    if isinstance(x, bool):
        return "#t" if x else "#f"
    if isinstance(x, QuotedSymbol):
        return f"the symbol {x}"
    if isinstance(x, Procedure):
        return f"the procedure {x.name}"
    if isinstance(x, Gensym):
        return "a tag"
    return f"the text {str(x)!r}" if isinstance(x, str) else "a procedure"
