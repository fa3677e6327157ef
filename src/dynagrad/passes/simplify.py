"""Algebraic simplification and constant folding, one operation at a time.

Every rewrite keeps every value to the bit, infinities, signed zeros and NaN included (a NaN stays a NaN; its sign and
payload may differ). So `x * 0` stays, and `x + 0` too, because `-0.0 + 0.0` is `0.0`. Common subexpressions are found
by hash-consing when nodes are made, and dead code is whatever no output reaches: neither needs a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..ir.names import carry
from ..ir.node import Node, constant, intern, order, whole, with_arguments
from ..ir.operation import Operation, Trait
from ..ir.ops import integers
from ..ir.ops import scalars as ops
from ..ir.types import array, heap, integer

# Compared with `is`, since `==` would build a node; constants are hash-consed, so each of these is the only one.
_ZERO, _MINUS_ZERO, _ONE, _MINUS_ONE, _TWO = map(constant, (0.0, -0.0, 1.0, -1.0, 2.0))
_TRUE, _FALSE = constant(True), constant(False)
_NONE, _SINGLE = whole(0), whole(1)


def simplify(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """The outputs with constants folded and safe algebra applied, in one pass over the graph.

    >>> from dynagrad.ir import variable, where
    >>> x = variable("x")
    >>> simplify([-(-x) * 1.0 + (2.0 - 4.0), x * 0.0])
    (x + -2.0, x * 0.0)
    """
    simple: dict[Node, Node] = {}
    place: dict[Node, int] = {}  # of simple nodes: orders the arguments of commutative operations reproducibly
    for node in order(outputs):
        arguments = [simple[argument] for argument in node.arguments]
        if not arguments:
            new = node
        elif node.attribute is not None or node.type.kind in ("values", "stack"):  # control flow
            new = with_arguments(node, arguments)
        else:
            if Trait.COMMUTES in node.operation.traits:
                arguments.sort(key=lambda argument: (argument.is_constant, place[argument]))
            new = _make(node.operation, *arguments)
        simple[node] = new
        if new is not node:
            carry(node.birth, new.birth)
        place.setdefault(new, len(place))
    return tuple(simple[output] for output in outputs)


def _make(operation: Operation, *arguments: Node) -> Node:
    """The operation applied to simple arguments, made simple."""
    if all(argument.is_constant and not argument.type.shape for argument in arguments):
        folded = _folded(operation, arguments)
        if folded is not None:
            return folded
    node = intern(operation, arguments)
    rule, of_code = _RULES.get(operation), operation.code[0] if isinstance(operation.code, tuple) else None
    better = rule(*arguments) if rule is not None else _CODES[of_code](node) if of_code in _CODES else None
    if operation.elementwise and node.type.shape and (better is None or better is node):
        better = _narrowed(node)
    return node if better is None or better.type is not node.type else better


def _folded(operation: Operation, arguments: Sequence[Node]) -> Node | None:
    """Constant folding, of numbers only: an array would be larger than what computes it."""
    if operation.result is not array and operation.result is not heap:
        value = operation.value(*(argument.attribute for argument in arguments))
        return whole(value) if operation.result is integer else constant(value)
    return None


def _narrowed(node: Node) -> Node | None:
    """An elementwise operation on unbroadcast arguments, where it would broadcast them itself."""
    arguments = list(node.arguments)
    for i, argument in enumerate(arguments):
        if argument.operation.code == ("broadcast",):
            others = [a.type.shape for j, a in enumerate(arguments) if j != i]
            inner = argument.arguments[0].type.shape
            if np.broadcast_shapes(inner, *others) == node.type.shape:
                arguments[i] = argument.arguments[0]
    if all(a is b for a, b in zip(arguments, node.arguments, strict=True)):
        return None
    return _make(node.operation, *arguments)


def _broadcast(node: Node) -> Node | None:
    inner = node.arguments[0]
    if inner.type is node.type:
        return inner
    if inner.operation.code == ("broadcast",):
        return intern(node.operation, inner.arguments)
    return None


def _unchanged(node: Node) -> Node | None:
    """`sum_to` of a shape that the argument has already."""
    return node.arguments[0] if node.arguments[0].type is node.type else None


def _reshaped(node: Node) -> Node | None:
    inner = node.arguments[0]
    if inner.type is node.type:
        return inner
    return intern(node.operation, inner.arguments) if inner.operation.code == ("reshape",) else None


def _transposed(node: Node) -> Node | None:
    inner = node.arguments[0]
    axes = node.operation.code[1]
    if tuple(axes) == tuple(range(len(axes))):
        return inner
    code = inner.operation.code
    if (
        isinstance(code, tuple)
        and code[0] == "transpose"
        and tuple(code[1][i] for i in axes) == tuple(range(len(axes)))
    ):
        return inner.arguments[0]
    return None


def _is(node: Node, operation: Operation) -> bool:
    return node.operation is operation


# -- the rules: arguments -> something simpler, or None; each calls `_make` on smaller expressions only ----------------


def _add(a: Node, b: Node) -> Node | None:
    for this, other in ((a, b), (b, a)):
        if this is _MINUS_ZERO:
            return other
        if _is(this, ops.negative):
            return _make(ops.subtract, other, this.arguments[0])
    return None


def _neutral(neutral: Node) -> Callable[[Node, Node], Node | None]:
    """The rule of an operation on integers that commutes and has a neutral element."""
    return lambda a, b: b if a is neutral else a if b is neutral else None


def _subtract(a: Node, b: Node) -> Node | None:
    if b is _ZERO:
        return a
    if a is _MINUS_ZERO:
        return _make(ops.negative, b)
    return _make(ops.add, a, b.arguments[0]) if _is(b, ops.negative) else None


def _multiply(a: Node, b: Node) -> Node | None:
    for this, other in ((a, b), (b, a)):
        if this is _ONE:
            return other
        if this is _MINUS_ONE:
            return _make(ops.negative, other)
    return _both_negative(ops.multiply, a, b)


def _divide(a: Node, b: Node) -> Node | None:
    if b is _ONE:
        return a
    if b is _MINUS_ONE:
        return _make(ops.negative, a)
    if (
        b.is_constant
        and not b.type.shape
        and abs(math.frexp(b.attribute)[0]) == 0.5
        and 2.0**-1000 < abs(b.attribute) < 2.0**1000
    ):
        return _make(ops.multiply, a, constant(1.0 / b.attribute))  # a power of two: its inverse is exact
    return _both_negative(ops.divide, a, b)


def _both_negative(operation: Operation, a: Node, b: Node) -> Node | None:
    if _is(a, ops.negative) and _is(b, ops.negative):
        return _make(operation, a.arguments[0], b.arguments[0])
    return None


def _negative(x: Node) -> Node | None:
    return x.arguments[0] if _is(x, ops.negative) else None


def _power(a: Node, b: Node) -> Node | None:
    if a is _ONE or b is _ZERO or b is _MINUS_ZERO:
        return _ONE  # for NaN too, as in C
    if b is _ONE:
        return a
    return _make(ops.multiply, a, a) if b is _TWO else None


def _absolute(x: Node) -> Node | None:
    if _is(x, ops.negative):
        return _make(ops.absolute, x.arguments[0])
    return x if _is(x, ops.absolute) else None


def _same(a: Node, b: Node) -> Node | None:
    return a if a is b else None


def _strict(a: Node, b: Node) -> Node | None:
    return _FALSE if a is b else None  # also where it is NaN


def _where(condition: Node, a: Node, b: Node) -> Node | None:
    if condition.is_constant and not condition.type.shape:
        return a if condition.attribute else b
    if a is b:
        return a
    if _is(condition, ops.logical_not):
        return _make(ops.where, condition.arguments[0], b, a)
    if _is(a, ops.where) and a.arguments[0] is condition:
        return _make(ops.where, condition, a.arguments[1], b)
    if _is(b, ops.where) and b.arguments[0] is condition:
        return _make(ops.where, condition, a, b.arguments[2])
    return None


def _connective(neutral: Node) -> Callable[[Node, Node], Node | None]:
    def rule(a: Node, b: Node) -> Node | None:
        for this, other in ((a, b), (b, a)):
            if this.is_constant and not this.type.shape:
                return other if this is neutral else this
        return _same(a, b)

    return rule


def _logical_not(x: Node) -> Node | None:
    if _is(x, ops.logical_not):
        return x.arguments[0]
    opposite = {ops.equal: ops.not_equal, ops.not_equal: ops.equal}.get(x.operation)  # of `<` none, because of NaN
    return None if opposite is None else _make(opposite, *x.arguments)


_CODES: dict[str, Callable[[Node], Node | None]] = {
    "broadcast": _broadcast,
    "sum_to": _unchanged,
    "reshape": _reshaped,
    "transpose": _transposed,
}

_RULES: dict[Operation, Callable[..., Node | None]] = {
    ops.add: _add,
    integers.add: _neutral(_NONE),
    integers.multiply: _neutral(_SINGLE),
    integers.subtract: lambda a, b: a if b is _NONE else None,
    ops.subtract: _subtract,
    ops.multiply: _multiply,
    ops.divide: _divide,
    ops.negative: _negative,
    ops.power: _power,
    ops.absolute: _absolute,
    ops.minimum: _same,
    ops.maximum: _same,
    ops.where: _where,
    ops.less: _strict,
    ops.greater: _strict,
    ops.logical_and: _connective(_TRUE),
    ops.logical_or: _connective(_FALSE),
    ops.logical_not: _logical_not,
}
