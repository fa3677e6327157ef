"""The primitive functions of pullback terms: operations of the op graph, and their Jacobians to any order.

The Jacobian of f along s at p is a primitive again, `f'(s, p)`, so `Jf.s` stands for `λp. f'(s, p)`. No terms here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import NotConverged, NotDifferentiable, ValueRangeError
from ...forks import cached
from ...ir import TABLE, Node, Operation, add, constant, multiply, order
from ...ir.node import fresh
from ...ir.types import real

_OWN_NAMES = {
    "multiply": "mult",
    "divide": "div",
    "negative": "neg",
    "absolute": "abs",
    "minimum": "min",
    "maximum": "max",
}
BASE: dict[str, Operation] = {
    _OWN_NAMES.get(name, name): operation
    for name, operation in TABLE.items()
    if operation.result is real
    and all(argument is real for argument in operation.arguments)
    and operation.tangent is not None
    and name not in ("add", "subtract")  # sums are terms
}
"""Operations by the name that they have in terms."""
MOST_ORDERS = 100
"""How many primes the name of a primitive may have."""
MOST_NODES = 20_000
"""How many operations a derivative of a primitive may take: they grow by a factor with each order of most of them."""
_ALL = slice(None)


@dataclass(frozen=True, eq=False)
class PrimitiveFunction:
    """A function from reals to a real, as a graph."""

    name: str
    inputs: tuple[Node, ...]
    output: Node
    order: int
    """How many tangents it takes before the point."""
    operation: Operation | None = None

    @property
    def width(self) -> int:
        """How many reals the point has, and each tangent."""
        return len(self.inputs) // (self.order + 1)

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """The value at numbers of any kind that operations take."""
        if self.operation is not None:
            return self.operation(*arguments)
        return computed(self.inputs, [self.output], arguments)[0]

    @cached
    def partials(self) -> tuple[Node, ...]:
        """The partial derivatives, as nodes."""
        return tuple(_partials(self.output, self.inputs))

    @cached
    def partials_in_order(self) -> tuple[Node, ...]:
        """What the partial derivatives are computed of, in the order in which it is."""
        return tuple(order(self.partials))

    def value(self, arguments: Sequence[float]) -> float:
        """The value at floats; an error where there is none."""
        found = float(self(arguments))
        if not math.isfinite(found) and all(map(math.isfinite, arguments)):
            raise ValueRangeError(f"{self.name}({', '.join(map(repr, arguments))}) is {found}: it has no value there")
        return found

    def slopes(self, arguments: Sequence[float], which: slice = _ALL) -> list[float]:
        """The partial derivatives at floats, or some of them: infinite or NaN where there is none."""
        nodes = self.partials[which]
        return [float(value) for value in computed(self.inputs, nodes, arguments, self.partials_in_order)]

    def along(self, arguments: Sequence[float], tangent: Sequence[float]) -> float:
        """The derivative at floats along a tangent. Where that is 0, the partial derivative does not count."""
        used = [(slope, d) for slope, d in zip(self.slopes(arguments), tangent, strict=True) if d != 0.0]
        self.check_slopes(arguments, [slope for slope, _ in used])
        return finite(sum(slope * d for slope, d in used), "the derivative")

    def check_slopes(self, arguments: Sequence[float], found: Sequence[float]) -> None:
        """Raises the error where one of these partial derivatives is not there."""
        if not all(map(math.isfinite, found)) and all(map(math.isfinite, arguments)):
            raise NotDifferentiable(
                f"{self.name} has no derivative at ({', '.join(map(repr, arguments))}): it would be {found}"
            )


def finite(value: float, what: str) -> float:
    """A number that was computed of finite ones; an error where it is too large for a double.

    >>> finite(1e308 + 1e308, "the sum")
    Traceback (most recent call last):
        ...
    dynagrad.errors.ValueRangeError: the sum is inf: it is too large for a double
    """
    if not math.isfinite(value):
        raise ValueRangeError(f"{what} is {value}: it is too large for a double")
    return value


def computed(
    inputs: Sequence[Node], outputs: Sequence[Node], arguments: Sequence[Any], nodes: Sequence[Node] | None = None
) -> list[Any]:
    """The outputs of a small graph without control flow, for numbers of any kind; `nodes` has its order, if known."""
    values: dict[Node, Any] = dict(zip(inputs, arguments, strict=True))
    for node in order(outputs) if nodes is None else nodes:
        if node not in values:
            if node.is_constant:
                values[node] = node.attribute
            else:
                values[node] = node.operation(*(values[argument] for argument in node.arguments))
    return [values[node] for node in outputs]


def _partials(output: Node, inputs: Sequence[Node]) -> list[Node]:
    adjoints: dict[Node, Any] = {output: constant(1.0)}
    for node in reversed(order([output])):
        delta = adjoints.get(node)
        if delta is None or node.is_constant or node.is_variable:
            continue
        rules = node.operation.tangent
        if rules is None:
            raise NotDifferentiable(f"{node.operation.name} has no derivative")
        for rule, argument in zip(rules, node.arguments, strict=True):
            if rule is not None:
                part = rule(delta, node, *node.arguments)
                adjoints[argument] = add(adjoints[argument], part) if argument in adjoints else part
    zero = constant(0.0)
    return [adjoints.get(node, zero) for node in inputs]


@functools.cache
def primitive(name: str) -> PrimitiveFunction | None:
    """The primitive of that name: of the table, or a derivative of one, which has a prime for each order.

    The second takes f''(u, v, p), and so on: it is linear in each tangent, and the point comes last.

    >>> primitive("sin")([0.0]), primitive("sin'")([2.0, 0.0]), primitive("mult''")([1.0, 0.0, 5.0, 7.0, 2.0, 3.0])
    (0.0, 2.0, 7.0)
    """
    if name.endswith("'"):
        base = name.rstrip("'")
        if base not in BASE:
            return None
        count = len(name) - len(base)
        if count > MOST_ORDERS:
            raise NotConverged(
                f"the derivative of order {count:,} of {base} is asked for, and {MOST_ORDERS} is the most"
            )
        inner = known(name[:-1])
        width = inner.width
        point = inner.inputs[-width:]
        along = tuple(fresh() for _ in point)
        output: Any = constant(0.0)
        for part, slope in zip(along, _partials(inner.output, point), strict=True):
            output = add(output, multiply(part, slope))
        if len(order([output])) > MOST_NODES:
            raise NotConverged(f"the derivative of order {count} of {base} takes more than {MOST_NODES:,} operations")
        return PrimitiveFunction(name, inner.inputs[:-width] + along + point, output, inner.order + 1)
    operation = BASE.get(name)
    if operation is None:
        return None
    inputs = tuple(fresh() for _ in operation.arguments)
    return PrimitiveFunction(name, inputs, operation(*inputs), 0, operation)


def known(name: str) -> PrimitiveFunction:
    """The primitive of a name that is known to be one."""
    found = primitive(name)
    assert found is not None
    return found
