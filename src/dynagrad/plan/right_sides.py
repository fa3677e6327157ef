"""Right sides of rules, priorities and user-defined semirings as op graphs (`ir/`). No C++ is written here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import ir
from ..autodiff import tangents
from ..errors import Error, ProgramError, counted
from ..ir import Node, order
from ..ir.builders import convert
from ..ir.control import LOOPS, Branches, Graph, make_cond, part
from ..ir.interpret import evaluate
from ..ir.node import fresh, substitute
from ..ir.types import real
from ..passes.simplify import simplify
from ..rules.normal import Rules
from ..rules.syntax import WITH_POLES, AntecedentValue, Application, Expression, Item, ItemValue, Numeral, VariableValue

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": ir.add,
    "-": ir.subtract,
    "*": ir.multiply,
    "/": ir.divide,
    "^": ir.power,
    "<": ir.less,
    "=<": ir.less_equal,
    ">": ir.greater,
    ">=": ir.greater_equal,
    "==": ir.equal,
    "!=": ir.not_equal,
    "neg": ir.negative,
    "exp": ir.exp,
    "log": ir.log,
    "sqrt": ir.sqrt,
    "tanh": ir.tanh,
    "sigmoid": ir.sigmoid,
    "abs": ir.absolute,
    "min": ir.minimum,
    "max": ir.maximum,
    "lse": ir.log_add,
    "if": ir.where,
}


def has_poles(value: Expression) -> bool:
    """Whether a right side may be infinite for finite numbers and no overflow, as log(x) and 1/x are at 0."""
    stack = [value]
    while stack:
        match stack.pop():
            case Numeral(value=number) if not math.isfinite(number):
                return True
            case Application(operator="^", operands=(base, Numeral(value=exponent))) if exponent >= 0:
                stack.append(base)
            case Application(operator=operator, operands=operands):
                if operator in WITH_POLES or operator not in OPERATIONS:
                    return True
                stack.extend(operands)
    return False


def to_node(
    value: Expression | VariableValue,
    functions: Mapping[str, Callable[..., Any]],
    item_name: Callable[[Item], str] | None = None,
) -> Node:
    """The op graph of an expression over antecedents `x0`, `x1`, ..., and other items as `item_name` names them."""
    done: list[Any] = []
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        at, ready = stack.pop()
        match at:
            case Numeral(value=number):
                done.append(ir.constant(float(number)))
            case AntecedentValue(index=index):
                done.append(ir.variable(f"x{index}"))
            case VariableValue(name=name):
                done.append(ir.variable(name))
            case ItemValue(item=item):
                assert item_name is not None, "items are numbered antecedents by now"
                done.append(ir.variable(item_name(item)))
            case Application(operator=operator, operands=operands):
                if not ready:
                    stack.append((at, True))
                    stack.extend((o, False) for o in reversed(operands))
                    continue
                count = len(operands)
                arguments = done[len(done) - count :]
                del done[len(done) - count :]
                known = OPERATIONS.get(operator)
                if operator == "if" and functions and any(flows(a) for a in arguments[1:]):
                    done.append(choice(*arguments))  # the branch that is not taken might never end
                elif known is not None:
                    done.append(known(*arguments))
                else:
                    done.append(_call(functions, operator, arguments))
            case _:
                raise Error(f"no op graph for {at!r}")
    return _node(done.pop())


def _node(value: Any) -> Node:
    return value if isinstance(value, Node) else ir.constant(float(value))


def _call(functions: Mapping[str, Callable[..., Any]], name: str, arguments: Sequence[Any]) -> Any:
    try:
        result = ir.trace(functions[name], list(arguments))
    except TypeError as error:
        raise Error(f"the function {name} cannot be called with {counted(len(arguments), 'value')}: {error}") from None
    except Error as error:
        if type(error) is not Error:  # more specific errors pass
            raise
        raise Error(
            f"{error}\n  a function with branches, loops, recursion or functions of math can be compiled: pass "
            f"functions={{{name!r}: dg.compile({name})}}"
        ) from error
    if isinstance(result, tuple):
        raise Error(f"the function {name} returns {counted(len(result), 'value')}, and should return one number")
    return result


def inline(outputs: Sequence[Node]) -> bool:
    """Whether graphs can be written as C++ expressions: they have scalars alone, and no control flow.

    >>> from dynagrad.ir import variable, where
    >>> from dynagrad.ir.builders import cond
    >>> x = variable("x")
    >>> inline([where(x > 0.0, x, -x)]), inline(cond(x > 0.0, lambda: [x], lambda: [-x]))
    (True, False)
    """
    return all(
        n.type.kind in ("real", "boolean") and not n.type.shape and (not n.arguments or n.operation.cxx != "")
        for n in order(outputs)
    )


def flows(node: Node) -> bool:
    """Whether a graph has control flow, so that computing it may be costly, fail, or never end."""
    return any(n.operation in LOOPS for n in order([node]))


def choice(condition: Node, then: Node, otherwise: Node) -> Node:
    """A conditional of two graphs, of which only the chosen one is computed.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> choice(x > 0.0, x * x, -x).type.name
    'real'
    """
    variables = [n for n in order([then, otherwise]) if n.is_variable]
    branches = []
    for node in (then, otherwise):
        inputs = tuple(fresh(v.type) for v in variables)
        branches.append(Graph(inputs, substitute([as_real(node)], dict(zip(variables, inputs, strict=True)))))
    return part(make_cond(condition, Branches(branches[0], branches[1]), variables), 0)


def as_real(node: Node) -> Node:
    found = convert(node, real)
    assert found is not None
    return found


def called(value: Expression | VariableValue, functions: Mapping[str, Callable[..., Any]]) -> str:
    """The names of the declared functions that an expression calls, as a list in a text."""
    found: dict[str, None] = {}
    stack: list[Any] = [value]
    while stack:
        match stack.pop():
            case Application(operator=operator, operands=operands):
                if operator in functions:
                    found[operator] = None
                stack.extend(reversed(operands))
    return ", ".join(found)


def lift(outputs: Sequence[Node], variables: Sequence[str], order: int) -> list[list[Node]]:
    """Graphs lifted to jets: for each output a graph for each set of directions, the primal first.

    A set is a bit mask; component s of variable `x` is the variable `x@s`, and `x` itself for the empty set. Tangents
    of tangents are taken, one direction at a time.

    >>> x = ir.variable("x")
    >>> lift([x * x], ["x"], 1)
    [[x * x, (x@1 * x) + (x@1 * x)]]
    """
    parts = [list(outputs)]
    for direction in range(order):
        seeds: dict[Node, Node | float | None] = {
            ir.variable(component(name, s)): ir.variable(component(name, s | 1 << direction))
            for name in variables
            for s in range(1 << direction)
        }
        flat = [node for part in parts for node in part]
        moved = iter([ir.constant(0.0) if t is None else t for t in tangents(flat, seeds)])
        parts += [[next(moved) for _ in outputs] for _ in parts]
    return [[part[n] for part in parts] for n in range(len(outputs))]


def component(name: str, directions: int) -> str:
    return f"{name}@{directions}" if directions else name


def numbers(value: Expression) -> list[float | int]:
    """The constants of a product, in the order written."""
    found: list[float | int] = []
    stack: list[Expression] = [value]
    while stack:
        match stack.pop():
            case Numeral(value=number):
                found.append(number)
            case Application(operands=operands):
                stack.extend(reversed(operands))
    return found


def factors(value: Expression) -> list[int]:
    """The antecedents of a product, in the order written."""
    found: list[int] = []
    stack: list[Expression] = [value]
    while stack:
        match stack.pop():
            case AntecedentValue(index=index):
                found.append(index)
            case Application(operands=operands):
                stack.extend(reversed(operands))
    return found


def product_order(value: Expression) -> list[tuple[tuple[int, float | int] | None, int | None]]:
    """The factors of a product in the order written, as pairs: one of (place among the constants, constant) and an
    antecedent's number, the other None."""
    found: list[tuple[tuple[int, float | int] | None, int | None]] = []
    stack: list[Expression] = [value]
    constants = 0
    while stack:
        match stack.pop():
            case Numeral(value=number):
                found.append(((constants, number), None))
                constants += 1
            case AntecedentValue(index=index):
                found.append((None, index))
            case Application(operands=operands):
                stack.extend(reversed(operands))
    return found


# -- user-defined semirings --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TracedSemiring:
    """A user's semiring with its operations traced to op graphs; its numbers are `width` doubles."""

    width: int
    zero: tuple[float, ...]
    one: tuple[float, ...]
    plus: tuple[Node, ...]  # in variables a0.., b0..
    times: tuple[Node, ...]
    less: Node | None
    scalar: bool = field(default=True)
    star: tuple[Node, ...] | None = None  # in variables a0..

    def at(self, nodes: Sequence[Node], a: Sequence[float], b: Sequence[float]) -> tuple[Any, ...]:
        """The values of such nodes at two values of the semiring, each as its numbers."""
        return evaluate(nodes, {f"{n}{i}": x for n, value in (("a", a), ("b", b)) for i, x in enumerate(value)})


def _flat(value: Any) -> tuple[float, ...]:
    return tuple(float(v) for v in value) if isinstance(value, tuple | list) else (float(value),)


def trace_semiring(
    zero: Any,
    one: Any,
    plus: Callable[..., Any],
    times: Callable[..., Any],
    less: Callable[..., Any] | None,
    star: Callable[..., Any] | None = None,
) -> TracedSemiring:
    """A semiring with its operations traced to op graphs. Raises Error where they do not fit together."""
    flat_zero, flat_one = _flat(zero), _flat(one)
    scalar = not isinstance(zero, tuple | list)
    if len(flat_zero) != len(flat_one) or scalar != (not isinstance(one, tuple | list)):
        raise Error(f"a semiring's zero and one must have one shape, and {zero!r} and {one!r} do not")

    def argument(letter: str) -> Any:
        names = tuple(f"{letter}{i}" for i in range(len(flat_zero)))
        return names[0] if scalar else names

    def traced(name: str, function: Callable[..., Any], letters: str = "ab") -> tuple[Node, ...]:
        try:
            result = ir.trace(function, [argument(letter) for letter in letters])
        except TypeError as error:
            count = "two values" if len(letters) == 2 else "one value"
            raise Error(f"the semiring's {name} cannot be called with {count}: {error}") from None
        nodes = tuple(map(_node, result)) if isinstance(result, tuple) else (_node(result),)
        if len(nodes) != len(flat_zero) or isinstance(result, tuple) == scalar:
            raise Error(
                f"the semiring's {name} returns {counted(len(nodes), 'number')}, and its zero has {len(flat_zero)}: "
                "they must have one shape"
            )
        return tuple(simplify(nodes))

    order = None
    if less is not None:
        order = simplify([_truth(ir.trace(less, [argument("a"), argument("b")]))])[0]
    closure = None if star is None else traced("star", star, "a")
    return TracedSemiring(
        len(flat_zero), flat_zero, flat_one, traced("plus", plus), traced("times", times), order, scalar, closure
    )


def _truth(value: Any) -> Node:
    if isinstance(value, tuple):
        raise Error("a semiring's less returns one truth value, not several")
    return value if isinstance(value, Node) else ir.constant(bool(value))


def own_value(rules: Rules, item: Item) -> ProgramError:
    """The error for an item in a priority that is computed together with the items it orders."""
    return ProgramError(
        f"the priority reads {item.key}, which is computed together with the items it orders; "
        "only items of earlier strata, and the item itself, may be read",
        rules.source.text,
        item.span,
        rules.source.filename,
    )
