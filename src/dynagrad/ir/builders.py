"""Builds nodes of control flow from Python functions, whose traces are the subgraphs.

`close` is closure conversion: the captured values of a subgraph, which are the nodes older than it, become arguments of
the node. Loop-invariant computations move out of a loop at the same time (loop-invariant code motion), unless they may
fail or not terminate. `merge` replaces a node by one that extends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import Error, counted
from .code import family_of
from .control import (
    EMPTY,
    LOOPS,
    PART,
    REPEAT,
    Branches,
    Called,
    Graph,
    GraphFunction,
    Loop,
    extended,
    make_call,
    make_cond,
    make_loop,
    part,
    part_types,
    parts,
)
from .failures import always_fails
from .names import carry
from .node import CONSTANT, VARIABLE, Node, as_node, fresh, intern, order, substitute, whole, with_arguments
from .ops import integers
from .ops.cells import FRESH_TAG
from .types import Type, boolean, integer
from .value_numbering.congruent_states import congruent
from .value_numbering.reciprocal_roots import share_roots
from .value_numbering.subsumed_loops import subsumed

Trace = Callable[..., Sequence[Any]]


def now() -> int:
    """A serial number (`Node.birth`) smaller than that of every node made from now on."""
    return fresh().birth


def as_values(results: Sequence[Any], types: Sequence[Type] | None, what: str) -> list[Node]:
    """The results of a trace as nodes, converted to these types."""
    if types is not None and len(results) != len(types):
        raise Error(f"{what}: {counted(len(types), 'value')} wanted, and {len(results)} given")
    out = []
    for index, result in enumerate(results):
        wanted = None if types is None else types[index]
        node = convert(result, wanted)
        if node is None:
            raise Error(f"{what}: result {index + 1} is {result!r:.60}, which is no value of a graph")
        if wanted is not None and node.type is not wanted:
            raise Error(f"{what}: result {index + 1} is a {node.type}, and should be a {wanted}")
        out.append(node)
    return out


def convert(value: Any, wanted: Type | None) -> Node | None:
    """A value as a node; integers and truth values are converted to the wanted type where nothing is lost."""
    if isinstance(value, int) and not isinstance(value, bool) and wanted is integer:
        return whole(value)
    node = as_node(value)
    if node is None or wanted is None or node.type is wanted or node.type.shape != wanted.shape:
        return node
    if wanted.kind == "real" and node.type.kind == "integer":
        return as_node(1.0 * node.attribute) if node.is_constant else intern(integers.to_real, (node,))
    if wanted.kind == "real" and node.type.kind == "boolean":
        return as_node(1.0 * node.attribute) if node.is_constant else intern(integers.truth_to_real, (node,))
    if wanted.kind == "integer" and node.type.kind == "boolean":
        return intern(integers.count_true, (node,))
    return node


def close(
    graphs: Sequence[tuple[Sequence[Node], Sequence[Node]]],
    since: int,
    hoist: bool,
    around: frozenset[Node] = frozenset(),
) -> tuple[list[Graph], list[Node]]:
    """Closure conversion: graphs from inputs and outputs, and the captured nodes, which become inputs of all of them.

    A node is captured if it is not younger than `since`, if it is one of those `around`, however young, or, with
    `hoist`, if it depends on no input and cannot fail. One that raises is never captured: it may be older because the
    same branch was made before its derivative.
    """
    own = {v for inputs, _ in graphs for v in inputs}
    merged = iter(merge([o for _, outputs in graphs for o in outputs], since))
    graphs = [(inputs, [next(merged) for _ in outputs]) for inputs, outputs in graphs]
    series = order([o for _, outputs in graphs for o in outputs], since)
    inside: set[Node] = set()  # what depends on an input, or may not be hoisted
    for node in series:
        if node in around:
            continue
        used = node.birth > since and (_may_fail(node) or any(a in inside for a in node.arguments))
        if used or node in own or node.operation is EMPTY:  # each round has its own stack
            inside.add(node)
    outside: dict[Node, Node] = {}

    def captured(node: Node) -> bool:
        if node in inside or node.operation is CONSTANT or always_fails(node):
            return False
        if node in around:
            return True
        if node.operation is PART:  # however young: components of a tuple are captured one by one
            node = node.arguments[0]
        return node.birth <= since or node.operation is VARIABLE or hoist

    reached: dict[Node, None] = {}
    stack_ = [o for _, outputs in graphs for o in outputs]
    while stack_:
        node = stack_.pop()
        if node in reached:
            continue
        reached[node] = None
        if captured(node):
            continue
        stack_.extend(node.arguments)
    for node in sorted((n for n in reached if captured(n)), key=lambda n: n.birth):
        outside[node] = fresh(node.type)
    added = tuple(outside.values())
    # subsumed loops are removed and reciprocal roots shared before anything is differentiated
    closed = [
        subsumed(Graph((*inputs, *added), share_roots(substitute(outputs, outside)))) for inputs, outputs in graphs
    ]
    return closed, list(outside)


def _may_fail(node: Node) -> bool:
    """Whether a node may not be hoisted: it may not terminate, an index may be out of range, or it makes a tag, and
    each round has its own."""
    family = family_of(node.operation)
    if family is not None and family.parameters == ("pattern",):
        return any(a.type.kind == "integer" and not a.is_constant for a in node.arguments)
    return node.operation in LOOPS or node.operation is FRESH_TAG


def cond(condition: Any, then: Trace, otherwise: Trace, extends: Node | None = None) -> list[Node]:
    """The results of `then()` or of `otherwise()`; the other branch is not run.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> [y] = cond(x > 0.0, lambda: [x * x], lambda: [-x])
    >>> y.type.name
    'real'
    """
    test = as_node(condition)
    if test is None or test.type is not boolean:
        raise Error(f"cond: the condition should be a truth value, and is {condition!r:.60}")
    if test.is_constant:
        return as_values(then() if test.attribute else otherwise(), None, "cond")
    since = now()
    first, second = list(then()), list(otherwise())
    if len(first) != len(second):
        raise Error(f"cond: one branch has {counted(len(first), 'result')} and the other {len(second)}")
    types = [_common(a, b) for a, b in zip(first, second, strict=True)]
    outputs = [as_values(first, types, "cond"), as_values(second, types, "cond")]
    [yes, no], captured = close([((), outputs[0]), ((), outputs[1])], since, hoist=False)
    return parts(make_cond(test, Branches(yes, no, extends), captured))


def _common(a: Any, b: Any) -> Type:
    """The common type of two branches' results: an integer becomes a real where the other is one."""
    kinds = {"boolean": 0, "integer": 1, "real": 2, "stack": 3, "heap": 4}
    nodes = [whole(x) if isinstance(x, int) and not isinstance(x, bool) else as_node(x) for x in (a, b)]
    types = [n.type for n in nodes if n is not None]
    if len(types) < 2:
        raise Error(f"cond: a branch gives {a if nodes[0] is None else b!r:.60}, which is no value of a graph")
    if types[0].shape != types[1].shape:
        raise Error(f"cond: one branch gives a {types[0]} and the other a {types[1]}")
    return max(types, key=lambda t: kinds[t.kind])


def while_(condition: Callable[..., Any], body: Trace, init: Sequence[Any], extends: Node | None = None) -> list[Node]:
    """The final states of a loop: `body(*states)` gives the next ones as long as `condition(*states)` holds.

    >>> from dynagrad.ir import variable
    >>> [x] = while_(lambda x: x < 100.0, lambda x: [x * x], [variable("x")])
    >>> x.type.name
    'real'
    """
    start = as_values(init, None, "while")
    since = now()
    states = _states(start, extends)
    test = as_node(condition(*states))
    if test is None or test.type is not boolean:
        raise Error("while: the condition should be a truth value, such as x > 0")
    after = as_values(body(*states), [s.type for s in states], "while")
    return loop_of(None, test, states, after, start, since, extends)


def repeat(count: Any, body: Trace, init: Sequence[Any], extends: Node | None = None) -> list[Node]:
    """The states after `count` rounds of a counted loop: `body(i, *states)` gives the next ones, for i from 0 on.

    >>> from dynagrad.ir import variable
    >>> [y] = repeat(3, lambda i, y: [y * 2.0], [variable("x")])
    >>> y.type.name
    'real'
    """
    number = whole(count) if isinstance(count, int) else as_node(count)
    if number is None or number.type is not integer:
        raise Error(f"repeat: the count should be a whole number, and is {count!r:.60}")
    start = as_values(init, None, "repeat")
    since = now()
    counter = fresh(integer)
    states = _states(start, extends)
    after = as_values(body(counter, *states), [s.type for s in states], "repeat")
    return loop_of(number, counter, states, after, start, since, extends)


def _states(start: Sequence[Node], extends: Node | None) -> list[Node]:
    """The states of a loop that starts so; the first have the source names of those of a loop that it extends."""
    states = [fresh(node.type) for node in start]
    if extends is not None:
        loop: Loop = extends.attribute
        for old, new in zip(loop.body.inputs[extends.operation is REPEAT :][: loop.states], states, strict=False):
            carry(old.birth, new.birth)
    return states


def loop_of(
    count: Node | None,
    test: Node,
    states: list[Node],
    after: list[Node],
    start: list[Node],
    since: int,
    extends: Node | None = None,
    around: frozenset[Node] = frozenset(),
) -> list[Node]:
    """The results of a loop whose invariant states are captured, and whose congruent states are one. What it starts
    with may be younger than its round: `around` has what of that became part of the round."""
    stays = [a is s for a, s in zip(after, states, strict=True)]
    if any(stays):  # repeated, since substituting an invariant state may make others invariant
        known = {s: b for s, b, same in zip(states, start, stays, strict=True) if same}
        moving = [i for i, same in enumerate(stays) if not same]
        replaced = substitute([test, *(after[i] for i in moving)], known)
        inner = (
            loop_of(
                count,
                replaced[0],
                [states[i] for i in moving],
                list(replaced[1:]),
                [start[i] for i in moving],
                since,
                extends,
                around.union(known.values()),
            )
            if moving
            else []
        )
        found = dict(zip(moving, inner, strict=True))
        return [found.get(i, start[i]) for i in range(len(states))]
    if count is not None:
        [body], captured = close([((test, *states), after)], since, True, around)
        condition = None
    else:
        [condition, body], captured = close([(states, [test]), (states, after)], since, True, around)
    first = len(body.inputs) - len(captured) - len(states)
    own = body.inputs[first : first + len(states)]
    same = congruent(own, body.outputs, start, 0 if extends is None else len(part_types(extends)))
    if same:
        body = _joined(body, first, same, body.outputs)
        condition = None if condition is None else _joined(condition, 0, same, ())
    kept = [i for i in range(len(states)) if i not in same]
    loop = Loop(body, len(kept), condition, extends)
    made = dict(zip(kept, parts(make_loop(count, loop, [start[i] for i in kept], captured)), strict=True))
    return [made[same.get(i, i)] for i in range(len(states))]


def _joined(graph: Graph, first: int, same: Mapping[int, int], states: Sequence[Node]) -> Graph:
    """A graph of a loop, whose states are its inputs from `first` on, without those in `same`, replaced by others.

    `states` are the outputs of a body; () for a condition, whose output stays.
    """
    by = {graph.inputs[first + i]: graph.inputs[first + j] for i, j in same.items()}
    outputs = [o for i, o in enumerate(states) if i not in same] if states else graph.outputs
    return Graph(tuple(v for v in graph.inputs if v not in by), substitute(outputs, by))


def function(name: str, arguments: Sequence[Type], results: Sequence[Type], body: Trace) -> GraphFunction:
    """A function with this body, which uses nothing but its arguments.

    >>> from dynagrad.ir import real, variable
    >>> double = function("double", [real], [real], lambda x: [2.0 * x])
    >>> double.graph(variable("x"))
    (2.0 * x,)
    """
    made = GraphFunction(name, arguments, results)
    define(made, body)
    return made


def define(made: GraphFunction, body: Trace, named: Sequence[Node] = ()) -> None:
    """Gives a function its body, which may call the function. The first inputs get the source names of `named`.

    >>> from dynagrad.ir import real, variable
    >>> power = GraphFunction("power", [real, integer], [real])
    >>> define(power, lambda x, n: cond(n > 0, lambda: [x * call(power, x, n - 1)[0]], lambda: [1.0]))
    >>> call(power, variable("x"), 3)[0].type
    Type(name='real', cxx='double', kind='real', shape=())
    """
    inputs = tuple(fresh(t) for t in made.arguments)
    for old, new in zip(named, inputs, strict=False):
        carry(old.birth, new.birth)
    outputs = as_values(body(*inputs), made.results, f"the function {made.name}")
    known = set(inputs)
    free = [n for n in order(outputs) if n.is_variable and n not in known]
    if free:
        raise Error(f"the function {made.name} uses {free[0]!r}, which is not an argument of it")
    made.graph = Graph(inputs, tuple(outputs))


def call(made: GraphFunction, *arguments: Any) -> list[Node]:
    """The results of a function."""
    nodes = as_values(arguments, made.arguments, f"the function {made.name}")
    return parts(make_call(Called(made), nodes))


def merge(outputs: Sequence[Node], since: int = 0) -> tuple[Node, ...]:
    """The outputs with every node of control flow replaced by one that extends it, where there is one.

    Nodes that are not younger than `since` stay as they are: in a subgraph they are captured, and new copies of them
    would be taken for nodes of the subgraph.
    """
    outputs = tuple(outputs)
    while True:
        series = order(outputs, since)
        present = set(series)
        better: dict[Node, Node] = {}
        for node in series:
            old = extended(node)
            if old is None or old.birth <= since:
                continue
            if old in present and old not in better and not _needs(node, old):
                better[old] = node
        if not better:
            return outputs
        # a node that extends an extension replaces both
        by: dict[Node, Node] = {}
        for old, new in better.items():
            while new in better:
                new = better[new]
            for i in range(len(part_types(old))):
                by[part(old, i)] = part(new, i)
        outputs = _replace(outputs, by)


def _needs(node: Node, other: Node) -> bool:
    """Whether a node depends on another."""
    todo, seen = list(node.arguments), set()
    while todo:
        n = todo.pop()
        if n is other:
            return True
        if n in seen or n.birth < other.birth:
            continue
        seen.add(n)
        todo.extend(n.arguments)
    return False


def _replace(outputs: Sequence[Node], by: Mapping[Node, Node]) -> tuple[Node, ...]:
    """The outputs with nodes replaced, also in the arguments of their replacements (other than `substitute`)."""
    done: dict[Node, Node] = {}
    todo = list(outputs)
    while todo:
        node = todo[-1]
        if node in done:
            todo.pop()
            continue
        target = by.get(node)
        needs = target.arguments if target is not None else node.arguments
        missing = [a for a in needs if a not in done]
        if missing:
            todo.extend(missing)
            continue
        base = target if target is not None else node
        done[node] = with_arguments(base, [done[a] for a in base.arguments])
        todo.pop()
    return tuple(done[o] for o in outputs)
