"""Control flow: nodes with subgraphs.

A `Graph` is a function of its own: inputs, which are variables that occur nowhere else, and outputs. It sees its inputs
alone. A `cond` has two of them, a `while` a condition and a body, a `repeat` (a loop that knows how often) a body, a
`call` a function, which may call itself. Each is a node whose value is several values, of which `part` takes one. How
such nodes are made of functions of Python is the business of `tracing.py`; here is what they are.

A loop saves what its way back will need on a stack (`push`, `pop`). A stack is a value like any other: pushing and
popping give new ones, and an old one may be looked at again as long as nothing was pushed onto it since. What comes off
an empty stack is zeros. An `empty()` stands for a stack of its own; inside of a subgraph, for a new one each time.

A node that extends another, with `extends`, computes all that the other does as its first parts, so that the other need
not run where both are wanted: see `merge` in `tracing.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Error
from .node import Node, constant, intern, substitute
from .operation import Operation
from .ops.arrays import broadcast_to
from .types import Type, array, stack


@dataclass(frozen=True, eq=False)
class Graph:
    """A function of variables: what they are, and what comes out."""

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    def __call__(self, *arguments: Node) -> tuple[Node, ...]:
        """The outputs, for other inputs."""
        return substitute(self.outputs, dict(zip(self.inputs, arguments, strict=True)))

    def __repr__(self) -> str:
        return f"<graph of {len(self.inputs)} inputs, {len(self.outputs)} outputs>"


@dataclass(frozen=True, eq=False)
class CustomDerivatives:
    """The derivatives of a function, where they do not follow from its body; None stands for zero, see
    autodiff/custom_rules.py.

    `tangent(arguments, results, tangents)` gives those of the results, `adjoint(arguments, results, adjoints, wanted)`
    one for each argument, of which the wanted ones are looked at. Without the first, tangents follow from the body, and
    `inherit(function)` is told of the function that computes them.
    """

    tangent: Callable[[Sequence[Node], Sequence[Node], list[Any]], Sequence[Any]] | None
    adjoint: Callable[[Sequence[Node], Sequence[Node], list[Any], Sequence[int]], Sequence[Any]]
    inherit: Callable[[GraphFunction], None] | None = None


class GraphFunction:
    """A function that may call itself. Its graph is set once, after its body was traced."""

    __slots__ = ("arguments", "derived", "graph", "name", "results", "rule")

    def __init__(self, name: str, arguments: Sequence[Type], results: Sequence[Type]) -> None:
        self.name, self.arguments, self.results = name, tuple(arguments), tuple(results)
        self.graph: Graph | None = None
        self.derived: dict[Any, Any] = {}  # its derivatives, as far as they were asked for
        self.rule: CustomDerivatives | None = None  # where they do not follow from the graph

    def __repr__(self) -> str:
        return f"<function {self.name} of the graph>"


@dataclass(frozen=True, eq=False)
class Loop:
    """What a loop runs: inputs are the states and then what comes from outside; of a repeat, its counter before all."""

    body: Graph
    states: int
    condition: Graph | None = None  # of a `while`
    extends: Node | None = None


@dataclass(frozen=True, eq=False)
class Branches:
    then: Graph
    otherwise: Graph
    extends: Node | None = None


@dataclass(frozen=True, eq=False)
class Called:
    function: GraphFunction
    extends: Node | None = None


def _no_value(*_: Any) -> Any:
    raise Error("control flow is computed by interpret.py or native code")


def _control(name: str, *arguments: Type) -> Operation:
    return Operation(name, arguments or (array,), array, _no_value, None, "", code=name)


COND = _control("cond")
WHILE = _control("while")
REPEAT = _control("repeat")
CALL = _control("call")
PART = _control("part")
PUSH = _control("push")
POP = _control("pop")
EMPTY = _control("empty_stack")
LOOPS = frozenset({COND, WHILE, REPEAT, CALL})


def values(types: Iterable[Type]) -> Type:
    """The type of several values."""
    types = tuple(types)
    found = _VALUES.get(types)
    if found is None:
        found = _VALUES[types] = Type(f"({', '.join(t.name for t in types)})", "", "values")
        _PARTS[found] = types
    return found


_VALUES: dict[tuple[Type, ...], Type] = {}
_PARTS: dict[Type, tuple[Type, ...]] = {}


def part_types(node: Node) -> tuple[Type, ...]:
    """The types of the parts of a node of several values."""
    return _PARTS[node.type]


def part(node: Node, index: int) -> Node:
    return intern(PART, (node,), index, _PARTS[node.type][index])


def parts(node: Node) -> list[Node]:
    return [part(node, i) for i in range(len(_PARTS[node.type]))]


# -- stacks ------------------------------------------------------------------------------------------------------------

_stacks = itertools.count()


def empty() -> Node:
    """A new stack."""
    return intern(EMPTY, (), next(_stacks), stack)


def push(on: Node, items: Sequence[Node]) -> Node:
    """The stack with values on it."""
    return intern(PUSH, (on, *items), None, stack) if items else on


def pop(off: Node, types: Sequence[Type]) -> tuple[Node, list[Node]]:
    """The stack without the values that were pushed last, and these."""
    if not types:
        return off, []
    node = intern(POP, (off,), tuple(types), values((stack, *types)))
    rest, *items = parts(node)
    return rest, items


# -- subgraphs ---------------------------------------------------------------------------------------------------------


# -- nodes -------------------------------------------------------------------------------------------------------------


def make_cond(condition: Node, branches: Branches, captured: Sequence[Node]) -> Node:
    types = values(o.type for o in branches.then.outputs)
    return intern(COND, (condition, *captured), branches, types)


def make_loop(count: Node | None, loop: Loop, init: Sequence[Node], captured: Sequence[Node]) -> Node:
    """A `repeat` where there is a count, a `while` where there is none."""
    types = values(o.type for o in loop.body.outputs)
    if count is None:
        return intern(WHILE, (*init, *captured), loop, types)
    return intern(REPEAT, (count, *init, *captured), loop, types)


def make_call(called: Called, arguments: Sequence[Node]) -> Node:
    return intern(CALL, tuple(arguments), called, values(called.function.results))


# -- merging -----------------------------------------------------------------------------------------------------------


def extended(node: Node) -> Node | None:
    """The node that this one computes all of, and more."""
    return getattr(node.attribute, "extends", None) if node.operation in LOOPS else None


def zero(type: Type) -> Node:
    """The tangent or adjoint of a value of that type that is not connected, where one is needed."""
    if type.kind == "stack":
        return empty()
    return broadcast_to(type.shape)(constant(0.0)) if type.shape else constant(0.0)
