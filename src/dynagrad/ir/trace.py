"""Tracing: makes a graph of a Python function of scalars by calling it once with nodes.

Loops and branches on values cannot be traced: functions with them are read by `compiler/`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..errors import Error
from .node import Node, as_node, variable
from .operation import as_number
from .types import Type, boolean, real

_DEEP = 100  # levels of tuples in tuples
_HERE = os.path.dirname(os.path.abspath(__file__))


def trace(function: Callable[..., Any], arguments: tuple[Any, ...] | list[Any]) -> Any:
    """The result of a function as a node, or as tuples of nodes in the structure that it returns.

    `arguments` describes each argument: a string is a real variable of that name, a node stands for itself, a number or
    a type for a variable named after its position (`x0`, `x1_0`), a tuple for a tuple.

    >>> trace(lambda p, q: p + q, ("p", "q"))
    p + q
    >>> trace(lambda a, b: (a[0] * b[0], a[0] * b[1] + a[1] * b[0]), [("p", "r"), ("q", "s")])
    (p * q, (p * s) + (r * q))
    """
    inputs = [_input(argument, f"x{index}", 0) for index, argument in enumerate(arguments)]
    try:
        return _output(function(*inputs), "what it returns", 0)
    except Error as error:
        if type(error) is not Error:  # a subclass, which callers may catch
            raise
        raise Error(f"cannot trace {_describe(function, error)}: {error}") from error
    except TypeError as error:
        if "Node" not in str(error):  # a mistake of the function itself, shown unchanged
            raise
        raise Error(
            f"cannot trace {_describe(function, error)}: {error}; values know + - * / **, comparisons, abs, & | ~, "
            "dynagrad's operations and numpy's functions of the same names"
        ) from error
    except RecursionError as error:
        raise Error(
            f"cannot trace {_describe(function, None)}: it calls itself without end; "
            "a recursion may not depend on a value"
        ) from error


def _input(argument: Any, name: str, depth: int) -> Any:
    if depth > _DEEP:
        raise Error(f"the arguments of a traced function are nested more than {_DEEP} deep")
    if isinstance(argument, Node):
        return argument
    if isinstance(argument, str):
        return variable(argument)
    if isinstance(argument, Type):
        return variable(name, argument)
    if isinstance(argument, tuple | list):
        return tuple(_input(part, f"{name}_{index}", depth + 1) for index, part in enumerate(argument))
    number = as_number(argument)
    if number is None:
        raise Error(f"an argument of a traced function is a real or a tuple of these, and {argument!r} is not")
    return variable(name, boolean if isinstance(number, bool) else real)


def _output(result: Any, what: str, depth: int) -> Any:
    if depth > _DEEP:
        raise Error(f"{what[:40]} ... is nested more than {_DEEP} deep")
    node = as_node(result)
    if node is not None:
        if node.type.shape:
            raise Error(f"{what} should be a single number, and is a {node.type}")
        return node
    if isinstance(result, tuple | list):
        return tuple(_output(part, f"{what}[{index}]", depth + 1) for index, part in enumerate(result))
    if result is None:
        raise Error(f"{what} is None; is a `return` missing?")
    raise Error(f"{what} should be a value or a tuple of values, and is a {type(result).__name__}")


def _describe(function: Callable[..., Any], error: BaseException | None) -> str:
    """The function's name, and the innermost line outside of this package that raised the error."""
    name = getattr(function, "__qualname__", None) or repr(function)
    code = getattr(function, "__code__", None)
    place = (code.co_filename, code.co_firstlineno) if code is not None else None
    step = error.__traceback__ if error is not None else None
    while step is not None:
        filename = step.tb_frame.f_code.co_filename
        if not os.path.abspath(filename).startswith(_HERE + os.sep):
            place = (filename, step.tb_lineno)
        step = step.tb_next
    return name if place is None else f"{name} ({place[0]}, line {place[1]})"
