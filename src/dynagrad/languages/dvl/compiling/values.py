"""Numbers, functions and vectors of DVL as a program is specialised.

A number is a float, a node, a number on the heap, or a bundle whose tag the program made itself. Pairs are tuples.
Values whose kind the run decides are in `unions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....compiler.evaluate.heap.tags import is_number, is_tag, step
from ....compiler.evaluate.specialiser import Specialiser
from ....compiler.evaluate.values import HostFunction, Union, function_like
from ....compiler.frontend.core import UNDEFINED
from ....compiler.frontend.source import Mistake
from ....errors import Error
from ....ir import Node
from ....ir.operation import Operation, apply
from ....ir.ops import scalars as ops
from ..builtins import BUILTINS
from ..data import Gensym
from ..data import is_real as is_plain
from ..vectors import COMPARISONS, Vectors, said
from .tags import checked, of_graph


class Bundled(NamedTuple):
    """A real with a tangent along a tag that a program made itself."""

    tag: Gensym
    primal: Any
    tangent: Any

    @property
    def heap_number(self) -> Union:
        """The same where the run decides what a value is: on the heap there are only tags of the graph."""
        number = on_heap(self)
        assert isinstance(number, Union)
        return number

    def __neg__(self) -> Any:
        return apply(ops.negative, self)

    @staticmethod
    def __apply_operation__(operation: Operation, arguments: Sequence[Any]) -> Any:
        """An operation on bundles, by the youngest tag among them."""
        if any(isinstance(x, Union) for x in arguments):
            return apply(operation, *map(on_heap, arguments))
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


def on_heap(x: Any) -> Any:
    """A number whose tags are of the graph, where it has some."""
    if not isinstance(x, Bundled):
        return x
    return on_heap(x.primal) + on_heap(x.tangent) * step(of_graph(x.tag))


def _on_bundles(operation: Operation, reflected: bool = False) -> Any:
    return lambda a, b: apply(operation, b, a) if reflected else apply(operation, a, b)


for _name, _operation in {"add": ops.add, "sub": ops.subtract, "mul": ops.multiply, "truediv": ops.divide}.items():
    setattr(Bundled, f"__{_name}__", _on_bundles(_operation))
    setattr(Bundled, f"__r{_name}__", _on_bundles(_operation, reflected=True))


def is_real(x: Any) -> bool:
    if isinstance(x, Bundled):
        checked(x.tag)
        return True
    return is_number(x) or (is_plain(x) and (not isinstance(x, Node) or x.type.kind == "real"))


def is_open(x: Any) -> bool:
    """Whether the run decides of which kind a value is; it is no number and no tag."""
    return isinstance(x, Union) and not is_number(x) and not is_tag(x)


def is_boolean(x: Any) -> bool:
    return isinstance(x, bool) or (isinstance(x, Node) and x.type.kind == "boolean")


def is_function(x: Any) -> bool:
    return function_like(x) and not isinstance(x, type)


def combined(sign: str, a: Any, b: Any) -> HostFunction:
    """A sum, a difference or a multiple of functions."""

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        a, b = held
        parts = [a, s.call(b, given)] if sign == "*" else [s.call(a, given), s.call(b, given)]
        return s.call(BUILTINS[sign], parts)

    return HostFunction(("dvl", "a sum of functions", sign), run, (a, b))


VECTORS = Vectors(combined, is_function, is_real)


def result_of(s: Specialiser, f: Any, given: Sequence[Any]) -> Any:
    """What a procedure returns. Raises the error of the program where it returns nothing, since each branch is one."""
    y = s.call(f, given)
    if y is UNDEFINED and isinstance(s.raised, Error):
        raise Mistake(str(s.raised))
    return y


def described(x: Any) -> str:
    """A value in a message."""
    if isinstance(x, Union):
        return "a value whose kind the run decides"
    if isinstance(x, Bundled):
        return "a real"
    return "a truth value" if isinstance(x, Node) and x.type.kind == "boolean" else said(x)


def without_bundles(x: Any) -> Any:
    """The real of a number with tags of the program's own."""
    while isinstance(x, Bundled):
        x = x.primal
    return x


def compared(name: str, a: Any, b: Any) -> Any:
    """A comparison of reals."""
    for x in (a, b):
        if not is_real(x):
            raise Error(f"({name} a b) compares reals, and got {described(x)}")
    plain, operation = COMPARISONS[name]
    a, b = without_bundles(a), without_bundles(b)
    return plain(a, b) if type(a) is float and type(b) is float else apply(operation, a, b)
