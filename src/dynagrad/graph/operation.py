"""What an operation is, and how one is applied.

An operation is declared once, with everything that anybody needs to know of it. `apply` looks at what it is given:
plain numbers compute; anything else that takes part (nodes of a graph, and later numbers that carry derivatives) says
itself what an operation does with it, through `__apply_operation__`. The operations themselves are in operations.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..errors import Error
from .types import Type, boolean

LinearMap = Callable[..., Any]  # (d, result, *arguments) -> a value that is linear in d
Adjoint = Callable[..., Sequence[Any]]  # (delta, result, *arguments) -> one increment or None for each argument


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """An elementary operation.

    `value` computes on Python numbers as C++ would: overflow gives an infinity, a point outside the domain gives NaN,
    nothing raises. `tangent` has one entry for each argument: the linear map that takes a tangent `d` of that argument
    to its part of the tangent of the result, or None where the result is piecewise constant in the argument. It is
    None as a whole for an operation that has no derivative. These rules call operations only, so they work on
    whatever the operation works on.

    The adjoint is the transpose of the tangent. A linear map from reals to reals is its own transpose, so scalars need
    no other rule; `adjoint` may give a better one for all arguments at once. `cxx` is the C++ text, with `{0}`, `{1}`
    for the arguments.

    >>> from dynagrad.graph.types import real
    >>> double = Operation("double", (real,), real, lambda x: 2.0 * x, (lambda d, y, x: double(d),), "2.0 * {0}")
    >>> double(4.0)
    8.0
    """

    name: str
    arguments: tuple[Type, ...]
    result: Type
    value: Callable[..., Any]
    tangent: tuple[LinearMap | None, ...] | None
    cxx: str
    adjoint: Adjoint | None = None

    def __call__(self, *arguments: Any) -> Any:
        return apply(self, *arguments)

    def __repr__(self) -> str:
        return f"<operation {self.name}>"


def as_number(value: object) -> float | bool | None:
    """A plain number as a Python float or bool, None for anything else.

    >>> as_number(2), as_number(True), as_number("2")
    (2.0, True, None)
    """
    if isinstance(value, float | bool):
        return value if type(value) is bool else float(value)
    if isinstance(value, Real):
        try:
            return float(value)
        except OverflowError as error:
            raise Error(f"the whole number {str(value)[:20]}... is too large for a double") from error
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():  # np.bool, arrays of no dimension
        item = value.item()  # type: ignore[attr-defined]  # numpy scalars have it
        return as_number(item) if isinstance(item, Real) else None
    return None


def apply(operation: Operation, *arguments: Any) -> Any:
    """Apply an operation to plain numbers, nodes, or anything else that has `__apply_operation__`.

    >>> from dynagrad.graph.operations import multiply
    >>> apply(multiply, 2, 3.5)
    7.0
    """
    if len(arguments) != len(operation.arguments):
        raise Error(f"{operation.name} takes {len(operation.arguments)} arguments and was given {len(arguments)}")
    handlers = [h for a in arguments if (h := getattr(type(a), "__apply_operation__", None)) is not None]
    if not handlers:
        return operation.value(*(_number(operation, i, argument) for i, argument in enumerate(arguments)))
    for handler in handlers:
        result = handler(operation, arguments)
        if result is not NotImplemented:
            return result
    kinds = ", ".join(type(argument).__name__ for argument in arguments)
    raise Error(f"{operation.name} cannot be applied to these together: {kinds}")


def _number(operation: Operation, index: int, argument: object) -> float | bool:
    number = as_number(argument)
    wanted = operation.arguments[index]
    if number is None:
        raise Error(
            f"{operation.name}: argument {index + 1} should be a {wanted}, "
            f"and is {repr(argument)[:60]} of type {type(argument).__name__}"
        )
    if wanted is not boolean:
        return float(number)
    if not isinstance(number, bool):
        raise Error(f"{operation.name}: argument {index + 1} should be a truth value such as x > 0, and is {number}")
    return number
