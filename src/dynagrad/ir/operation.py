"""Primitive operations: their declaration, their application by dispatch on the types of arguments, and their types.

An operation is declared once, with its value, derivatives, C++ text and traits. `apply` computes on plain numbers and
arrays; arguments of other types (nodes of a graph, numbers that carry derivatives) handle an operation themselves,
through `__apply_operation__`. The operations are declared in `ops/`. Nothing here knows graphs, tapes or C++ compilers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from ..errors import Error, counted
from .buffers import SMALLEST, empty
from .ops.spelling import Spelling, occurrences
from .types import DTYPES, KINDS, Shape, Type, array, arrays, boolean, real

LinearMap = Callable[..., Any]  # (d, result, *arguments) -> a value that is linear in d
Series = Callable[..., list[Any] | None]  # (order, first coefficient, list of each argument...); see ir/ops/series.py
Partial = Callable[..., Sequence[Any]]  # (wanted, counts, delta, result, *arguments) -> one for each wanted argument
Adjoint = Callable[..., Sequence[Any]]  # (delta, result, *arguments) -> one increment or None for each argument


class Trait(enum.Flag):
    """Properties of elementwise operations that passes, derivatives and code generation rely on."""

    COMMUTES = enum.auto()
    """Commutative in its two arguments."""
    SAFE = enum.auto()
    """Its partial derivatives are finite where its arguments and its result are."""
    EXPENSIVE = enum.auto()
    """As a residual its value is saved, and not rematerialised."""
    DIVIDES = enum.auto()
    """Its C++ divides or takes a root: two of these in a vector instruction cost as much as one."""


PLAIN = Trait(0)
"""No trait."""

CALL = 20
"""The cost of one element for most operations, in additions: that of a call of the C library."""


@dataclass(frozen=True, eq=False, slots=True)
class Operation:
    """A primitive operation.

    `value` computes on Python numbers as C++ would: overflow gives an infinity, a point outside the domain gives NaN,
    nothing raises. `tangent` has one entry for each argument: the linear map that takes a tangent `d` of that argument
    to its part of the tangent of the result, or None where the result is piecewise constant in the argument. It is
    None as a whole for an operation that has no derivative. These rules call operations only, so they work on
    whatever the operation works on.

    The adjoint is the transpose of the tangent. A linear map from reals to reals is its own transpose, so scalars need
    no other rule; `adjoint` may give a better one for all arguments at once. `cxx` says how it is spelt in C++: as an
    operator, a call, or a template with `{0}`, `{1}` for the arguments (`ops/spelling.py`). `array` is the elementwise
    version on numpy arrays, where `value` is for single numbers; an operation on whole arrays declares its arguments as
    `array`, and its `value` takes both. `series` is a rule for truncated power series, better than the one that follows
    from the tangent: from the coefficients of the arguments to those of the result. `needs` lists the residuals: for
    each argument, the arguments whose values its derivative rules read, -1 being the result; of the others they read
    the shape alone, so a tape need not keep them. None stands for all. `accumulate(total, delta)` adds the adjoint of
    the only argument to an array in place; it is for operations that read few of many elements, such as an index.
    `partial` replaces `adjoint` where it matters which arguments are wanted, and which elements of the result count:
    truth values, or None for all. `code` is the family of an operation on whole arrays, with its parameters; see
    `ir/code.py`.

    >>> from dynagrad.ir.types import real
    >>> double = Operation("double", (real,), real, lambda x: 2.0 * x, (lambda d, y, x: double(d),), "2.0 * {0}")
    >>> double(4.0)
    8.0
    """

    name: str
    arguments: tuple[Type, ...]
    result: Type
    value: Callable[..., Any]
    tangent: tuple[LinearMap | None, ...] | None
    cxx: Spelling
    adjoint: Adjoint | None = None
    array: Callable[..., Any] | None = None
    series: Series | None = None
    needs: tuple[tuple[int, ...] | None, ...] | None = None
    accumulate: Callable[[Any, Any], None] | None = None
    partial: Partial | None = None
    code: Any = None
    traits: Trait = PLAIN
    cost: int = CALL
    """The cost of one element, roughly in additions."""
    in_loops: str = ""
    """The vectorisable function of the runtime that loops over arrays call, in place of the one in `cxx`."""
    cxx_at: tuple[tuple[float, Spelling], ...] = ()
    """C++ for some constant values of the last argument."""
    keeps_kind: bool = False
    """Whether integers and truth values in the first argument give a result of that kind, and are not made reals."""
    elementwise: bool = field(init=False)
    """Whether it works element by element, with broadcasting."""
    steps: bool = field(init=False)
    """Whether the result is piecewise constant in all arguments."""
    written: tuple[int, ...] = field(init=False)
    """How often each argument occurs in its C++."""
    on_floats: Callable[..., Any] | None = field(init=False)
    """Its value on floats; None where an argument may not be one."""
    on_arrays: Callable[..., Any] | None = field(init=False)
    """Its value on arrays, and on arrays together with floats."""
    on_large: Callable[..., Any] | None = field(init=False)
    """The same for large arrays: the result is made in memory from `buffers.py`."""

    def __post_init__(self) -> None:
        kinds = set(self.arguments)
        derived = {
            "elementwise": self.array is not None,
            "steps": self.tangent is not None and all(rule is None for rule in self.tangent),
            "written": occurrences(self.cxx, len(self.arguments)),
            "on_floats": self.value if kinds <= {real, array} else None,
            "on_arrays": self.value if self.array is None and kinds == {array} else self.array,
        }
        if isinstance(self.array, np.ufunc) and self.result is real:
            derived["on_large"] = _with_buffer(self.array)
        else:
            derived["on_large"] = derived["on_arrays"]
        for name, value in derived.items():
            object.__setattr__(self, name, value)  # the class is frozen

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


_ndarray = np.ndarray
_FLOAT = np.dtype(np.float64)


def _with_buffer(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """A numpy ufunc whose result is made in memory from `buffers.py`."""

    def compute(*arguments: Any) -> Any:
        shape, of_floats = None, False
        for x in arguments:
            if type(x) is _ndarray:
                of_floats = of_floats or x.dtype is _FLOAT  # and so is the result
                shape = x.shape if shape is None or x.shape == shape else np.broadcast(*arguments).shape
        return ufunc(*arguments, out=empty(shape)) if of_floats else ufunc(*arguments)  # type: ignore[arg-type]  # what is known of it above is more than its type says

    return compute


def apply(operation: Operation, *arguments: Any) -> Any:
    """Apply an operation to plain numbers, nodes, or anything else that has `__apply_operation__`.

    >>> from dynagrad.ir.ops.scalars import multiply
    >>> apply(multiply, 2, 3.5)
    7.0
    """
    compute, truths, large = operation.on_floats, False, False
    for argument in arguments:  # floats and arrays are most of what there is to compute with
        kind = type(argument)
        if kind is float:
            continue
        if kind is _ndarray and argument.ndim:
            if argument.size >= SMALLEST:
                large = True
            compute = operation.on_arrays
        elif kind is bool:
            truths = True
        else:
            break
    else:
        if compute is not None and len(arguments) == len(operation.arguments):
            if large:
                return operation.on_large(*arguments)  # type: ignore[misc]  # there is one with `on_arrays`
            if not truths or compute is operation.on_arrays:
                return compute(*arguments)
    if len(arguments) != len(operation.arguments) and operation.arguments[-1:] != (array,):
        raise Error(
            f"{operation.name} takes {counted(len(operation.arguments), 'argument')} and was given {len(arguments)}"
        )
    refused = False
    for argument in arguments:
        handler = getattr(type(argument), "__apply_operation__", None)
        if handler is not None:
            result = handler(operation, arguments)
            if result is not NotImplemented:
                return result
            refused = True
    if refused:
        kinds = ", ".join(type(argument).__name__ for argument in arguments)
        raise Error(f"{operation.name} cannot be applied to these together: {kinds}")
    if operation.array is None and operation.arguments and operation.arguments[0] is array:
        return operation.value(*arguments)
    if operation.array is not None and any(isinstance(a, np.ndarray) and a.ndim for a in arguments):
        return operation.array(*arguments)
    return operation.value(*(_number(operation, i, argument) for i, argument in enumerate(arguments)))


Operation.__call__ = apply  # type: ignore[assignment,method-assign]  # saves a call for each application


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


# -- types of results --------------------------------------------------------------------------------------------------

_types: dict[tuple[Operation, tuple[Type, ...]], Type] = {}
_ONE: frozenset[Shape] = frozenset([()])  # the shapes of single numbers


def result_type(operation: Operation, types: tuple[Type, ...]) -> Type:
    """The type of the result of an operation on arguments of these types.

    >>> from dynagrad.ir.ops.scalars import add
    >>> result_type(add, (arrays(real, (3, 1)), arrays(real, (2,))))
    Type(name='real[3, 2]', cxx='double', kind='real', shape=(3, 2))
    """
    distinct = {t.shape for t in types}
    if operation.array is not None or (operation.result is not array and distinct <= _ONE):
        if len(distinct) == 1:
            return arrays(operation.result, *distinct)
        try:
            return arrays(operation.result, np.broadcast_shapes(*distinct))
        except ValueError:
            shapes = " and ".join(str(t.shape) for t in types)
            raise Error(f"{operation.name}: arrays of shapes {shapes} do not broadcast") from None
    found = _types.get((operation, types))
    if found is None:
        found = _types[operation, types] = _by_trial(operation, types)
    return found


def _by_trial(operation: Operation, types: tuple[Type, ...]) -> Type:
    """Type inference by running an operation on samples: no zeros, distinct elements, positive definite matrices."""
    samples: list[Any] = []
    for i, t in enumerate(types):
        if i == 1 and operation.name in ("take_along_axis", "put_along_axis"):  # positions, which may be reals
            samples.append(np.zeros(t.shape, DTYPES[t.kind]))
            continue
        if not t.shape:
            samples.append({"integer": 0, "boolean": False}.get(t.kind, 1.0))
            continue
        sample = np.zeros(t.shape, DTYPES[t.kind])
        if t.kind == "real":
            n = t.shape[-1]
            sample += np.arange(1.0, n + 1.0) / (n * n + 1.0) + (np.eye(t.shape[-2], n) if t.ndim > 1 else 1.0)
        samples.append(sample)
    result = operation.value(*samples)
    kind = KINDS[{"b": "boolean", "i": "integer"}.get(np.asarray(result).dtype.kind, "real")]
    return arrays(kind, np.shape(result))
