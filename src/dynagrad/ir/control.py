"""Structured control flow: nodes with closed subgraphs, and stacks of residuals.

A `Graph` is a closed function: its inputs are variables that occur nowhere else, and its outputs depend on them alone
(closure conversion has made captured values into arguments). A `cond` node has two graphs, a `while` a condition and a
body, a `repeat` (a counted loop) a body, a `call` a function, which may be recursive. The value of such a node is a
tuple, of which `part` projects one component. `builders.py` makes these nodes from Python functions.

A loop pushes its residuals onto a stack (`push`), and the loop of its derivative pops them (`pop`). A stack is a value:
pushing and popping give new ones, and an old one may be read as long as nothing has been pushed onto it since. Popping
an empty stack gives zeros. Each `empty()` is a stack of its own; in a subgraph, a new one each time that it runs.

A node that extends another, by its field `extends`, computes all results of the other first, and then more, so that the
other need not run where both are needed: see `merge` in `builders.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Error, counted
from .node import Node, constant, intern, order, substitute
from .operation import Operation
from .ops.arrays import broadcast_to
from .ops.cells import nothing
from .types import Type, array, stack


@dataclass(frozen=True, eq=False)
class Graph:
    """A closed function: its parameters, and its results as expressions of these."""

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    def __call__(self, *arguments: Node) -> tuple[Node, ...]:
        """The outputs, for other inputs."""
        return substitute(self.outputs, dict(zip(self.inputs, arguments, strict=True)))

    def __repr__(self) -> str:
        return f"<graph of {counted(len(self.inputs), 'input')}, {counted(len(self.outputs), 'output')}>"


@dataclass(frozen=True, eq=False)
class CustomDerivatives:
    """Custom derivatives of a function, in place of those of its body; None stands for zero. See
    `autodiff/custom_rules.py`.

    `tangent(arguments, results, tangents)` gives the tangents of the results. `adjoint(arguments, results, adjoints,
    wanted)` gives one adjoint for each argument, of which only the wanted ones are used. Without `tangent`, tangents
    follow from the body, and `inherit` is called with the function that computes them.
    """

    tangent: Callable[[Sequence[Node], Sequence[Node], list[Any]], Sequence[Any]] | None
    adjoint: Callable[[Sequence[Node], Sequence[Node], list[Any], Sequence[int]], Sequence[Any]]
    inherit: Callable[[GraphFunction], None] | None = None


class GraphFunction:
    """A function, possibly recursive. Its graph is set once, after its body was traced."""

    __slots__ = ("arguments", "derived", "graph", "name", "results", "rule")

    def __init__(self, name: str, arguments: Sequence[Type], results: Sequence[Type]) -> None:
        self.name, self.arguments, self.results = name, tuple(arguments), tuple(results)
        self.graph: Graph | None = None
        self.derived: dict[Any, Any] = {}  # a cache of its derivatives
        self.rule: CustomDerivatives | None = None  # in place of the derivatives of its graph

    def __repr__(self) -> str:
        return f"<function {self.name} of the graph>"


@dataclass(frozen=True, eq=False)
class Loop:
    """What a loop runs. Inputs of the body: the counter of a `repeat`, the states, and the captured values."""

    body: Graph
    states: int
    condition: Graph | None = None  # of a `while`
    extends: Node | None = None


@dataclass(frozen=True, eq=False)
class Branches:
    """What a `cond` runs: two graphs with the same inputs, which are captured values, and results of the same types."""

    then: Graph
    otherwise: Graph
    extends: Node | None = None


@dataclass(frozen=True, eq=False)
class Called:
    """What a `call` runs."""

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
    """The tuple type of these types."""
    types = tuple(types)
    found = _VALUES.get(types)
    if found is None:
        found = _VALUES[types] = Type(f"({', '.join(t.name for t in types)})", "", "values")
        _PARTS[found] = types
    return found


_VALUES: dict[tuple[Type, ...], Type] = {}
_PARTS: dict[Type, tuple[Type, ...]] = {}


def part_types(node: Node) -> tuple[Type, ...]:
    """The types of the components of a node whose value is a tuple."""
    return _PARTS[node.type]


def part(node: Node, index: int) -> Node:
    """One component of a node whose value is a tuple."""
    return intern(PART, (node,), index, _PARTS[node.type][index])


def parts(node: Node) -> list[Node]:
    """All components of a node whose value is a tuple."""
    return [part(node, i) for i in range(len(_PARTS[node.type]))]


def all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph, of its loops and branches, and of the functions that it calls; each graph counts once.

    >>> from dynagrad.ir.builders import repeat
    >>> from dynagrad.ir.node import variable
    >>> x = variable("x")
    >>> [n.operation.name for n in all_nodes(Graph((x,), tuple(repeat(3, lambda i, a: [a * a], [x])))) if n.arguments]
    ['repeat', 'part', 'multiply']
    """
    todo, seen = [graph], {graph}
    while todo:
        for node in order(todo.pop().outputs):
            yield node
            new = [g for g in _run_by(node) if g not in seen]
            seen.update(new)
            todo += new


def _run_by(node: Node) -> list[Graph]:
    """The graphs that a node of control flow runs."""
    what, found = node.attribute, list[Graph | None]()
    if node.operation not in LOOPS:
        return []
    match what:
        case Branches():
            found = [what.then, what.otherwise]
        case Called():
            found = [what.function.graph]
        case _:
            found = [what.condition, what.body]
    return [g for g in found if g is not None]


# -- stacks ------------------------------------------------------------------------------------------------------------

_stacks = itertools.count()


def empty() -> Node:
    """A new, empty stack."""
    return intern(EMPTY, (), next(_stacks), stack)


def push(on: Node, items: Sequence[Node]) -> Node:
    """The stack with values pushed onto it."""
    return intern(PUSH, (on, *items), None, stack) if items else on


def pop(off: Node, types: Sequence[Type]) -> tuple[Node, list[Node]]:
    """The stack without the values that were pushed last, and these values."""
    if not types:
        return off, []
    node = intern(POP, (off,), tuple(types), values((stack, *types)))
    rest, *items = parts(node)
    return rest, items


# -- nodes -------------------------------------------------------------------------------------------------------------


def make_cond(condition: Node, branches: Branches, captured: Sequence[Node]) -> Node:
    """A `cond` node."""
    types = values(o.type for o in branches.then.outputs)
    return intern(COND, (condition, *captured), branches, types)


def make_loop(count: Node | None, loop: Loop, init: Sequence[Node], captured: Sequence[Node]) -> Node:
    """A `repeat` node where there is a count, a `while` node where there is none."""
    types = values(o.type for o in loop.body.outputs)
    if count is None:
        return intern(WHILE, (*init, *captured), loop, types)
    return intern(REPEAT, (count, *init, *captured), loop, types)


def make_call(called: Called, arguments: Sequence[Node]) -> Node:
    """A `call` node."""
    return intern(CALL, tuple(arguments), called, values(called.function.results))


def extended(node: Node) -> Node | None:
    """The node that this one extends: it computes the same results first, and then more."""
    return getattr(node.attribute, "extends", None) if node.operation in LOOPS else None


def zero(type: Type) -> Node:
    """The zero of a type, for a tangent or an adjoint that must be there; for stacks an empty one."""
    if type.kind == "stack":
        return empty()
    if type.kind == "heap":
        return nothing()
    return broadcast_to(type.shape)(constant(0.0)) if type.shape else constant(0.0)
