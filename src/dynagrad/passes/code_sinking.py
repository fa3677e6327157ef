"""Code sinking: moves values into the only branch that uses them, so that the other branch does not compute them.

It runs before scheduling (partial dead code elimination: Knoop, Rüthing and Steffen 1994). Stacks, and values popped
off them, stay where they are. A value sunk into a branch may sink on into one inside it, when that one is prepared.
"""

from __future__ import annotations

from ..ir.control import COND, PART, Branches, Graph, make_cond, part_types
from ..ir.node import Node, fresh, order, substitute

Owner = tuple[Node, int] | None
"""A `cond` node and which of its branches (0: then, 1: otherwise); None for the graph itself."""


def sink(graph: Graph) -> Graph:
    """The graph with values moved into the only branch that uses them."""
    series = order(graph.outputs)
    conds = [n for n in series if n.operation is COND]
    if not conds:
        return graph
    owners = _owners(series, graph)
    outputs = graph.outputs
    moved: dict[Node, tuple[set[Node], set[Node]]] = {}
    for node in series:
        last: Owner = None
        owner = owners.get(node)
        while owner is not None:
            last, owner = owner, owners.get(owner[0])
        if last is not None:
            moved.setdefault(last[0], (set(), set()))[last[1]].add(node)
    for sides in moved.values():
        for inside in sides:  # a part moves only together with the node whose result it is
            inside -= {n for n in inside if n.operation is PART and n.arguments[0] not in inside}
    for node in reversed(conds):
        if node in moved:
            outputs = substitute(outputs, {node: _rewritten(node, moved[node])})
    return Graph(graph.inputs, outputs)


def _used(graph: Graph) -> list[bool]:
    reached = set(order(graph.outputs))
    return [v in reached for v in graph.inputs]


def _owners(series: tuple[Node, ...], graph: Graph) -> dict[Node, Owner]:
    """For each node that may move, the innermost branch that has all its users."""
    users: dict[Node, list[Node]] = {node: [] for node in series}
    for node in series:
        for a in dict.fromkeys(node.arguments):
            users[a].append(node)
    stays = set(graph.outputs)
    used = {n: (_used(n.attribute.then), _used(n.attribute.otherwise)) for n in series if n.operation is COND}
    owners: dict[Node, Owner] = {}
    for node in reversed(series):
        if node in stays or node.is_variable or node.is_constant or not _moves(node):
            continue
        found: list[Owner] = []
        for user in users[node]:
            if user.operation is not COND:
                found.append(owners.get(user))
                continue
            places = [k for k, a in enumerate(user.arguments[1:]) if a is node]
            sides = {side for side in (0, 1) if any(used[user][side][k] for k in places)}
            if node is user.arguments[0] or len(sides) != 1:
                found.append(owners.get(user))
            else:
                found.append((user, sides.pop()))
        owners[node] = _common(found, owners)
    return owners


def _moves(node: Node) -> bool:
    """Whether a node may be sunk: not what reads or makes a stack."""
    if any(a.type.kind == "stack" for a in node.arguments) or node.type.kind == "stack":
        return False
    if node.operation is PART:
        return _moves(node.arguments[0])
    return node.type.kind != "values" or not any(type.kind == "stack" for type in part_types(node))


def _common(found: list[Owner], owners: dict[Node, Owner]) -> Owner:
    """The innermost branch that contains all of these."""
    if not found:
        return None
    candidate = found[0]
    while candidate is not None:
        if all(_inside(other, candidate, owners) for other in found[1:]):
            return candidate
        candidate = owners.get(candidate[0])
    return None


def _inside(inner: Owner, outer: tuple[Node, int], owners: dict[Node, Owner]) -> bool:
    while inner is not None:
        if inner[0] is outer[0]:
            return inner[1] == outer[1]
        inner = owners.get(inner[0])
    return False


def _rewritten(node: Node, moved: tuple[set[Node], set[Node]]) -> Node:
    """The `cond` node with values moved into its branches; what these need from outside is captured."""
    branches: Branches = node.attribute
    test, *captured = node.arguments
    outputs = []
    for graph, inside in zip((branches.then, branches.otherwise), moved, strict=True):
        by = {v: a if a in inside else fresh(a.type) for v, a in zip(graph.inputs, captured, strict=True)}
        back = {by[v]: a for v, a in zip(graph.inputs, captured, strict=True) if a not in inside}
        outputs.append((substitute(graph.outputs, by), back, inside))
    outside: dict[Node, Node] = {}
    closed = []
    for results, back, inside in outputs:
        reached = set(order(results))
        by = {}
        for stands, a in back.items():
            if stands in reached:
                by[stands] = outside.setdefault(a, fresh(a.type))
        for n in sorted(inside, key=lambda n: n.birth):
            for a in n.arguments:
                if a not in inside and not a.is_constant:
                    by[a] = outside.setdefault(a, fresh(a.type))
        closed.append((results, by))
    graphs = [Graph(tuple(outside.values()), substitute(results, by)) for results, by in closed]
    return make_cond(test, Branches(graphs[0], graphs[1], branches.extends), list(outside))
