"""Loops that read before they begin what none of their rounds writes to.

A loop may change some places of an array and read others: elimination takes multiples of one row off the rows below it.
What is read there is the same in each round, but a derivative that goes by values would keep it anew whenever it is
read. Here such a loop becomes an equal one, to which a part of the array comes from outside: the row. Then the way back
keeps it once, and its adjoint is summed in an array of its own.

An element is untouched if its index differs, in one axis, from the index of every write in the loop, whichever rounds
the two are in. Indices are compared as forms (`linear_forms.py`), from outside in, so that of an inner loop it is known
how far the counters of those around it go. The part must be in range even if the loop has no rounds, and smaller than
what is read of it. Branches of a loop get what they read in the same way, since what they come from would be saved
whole. What is saved and what is not is not decided here.

It is long since what may be hoisted is one proof, whose parts rest on each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...ir.control import COND, PART, REPEAT, WHILE, Branches, Graph, Loop, make_cond, make_loop, parts
from ...ir.node import Node, fresh, intern, order, substitute
from ...ir.ops import integers
from ...ir.ops import scalars as ops
from ...ir.ops.places import HOLE, NEW, Slice, item
from ...ir.types import integer
from .linear_forms import MOST_STEP, RULES, Bounds, Form, name, number

WORTH = 2
"""So many times is read what is read before, at the least, counted in numbers that are kept."""
SMALL = 4
"""So many times smaller than an array is what a branch gets instead of it, at the least."""
UNKNOWN = 16  # rounds of a loop of which it is not known how many it has
MOST_PAIRS = 5_000  # of a read and a write that are compared

Trail = tuple[tuple[Node, int], ...]
"""The way into subgraphs: at each step a node of control flow, and which of its graphs."""
Interval = tuple[Form, Form] | None
"""The smallest and the largest index in an axis; None where they are not known."""
T = TypeVar("T")

_BELOW = {
    integers.less: (False, 0),
    integers.less_equal: (False, 1),
    integers.greater: (True, 0),
    integers.greater_equal: (True, 1),
}
"""Comparisons: whether the second number is the one below, and whether they may be equal."""


def read_before(node: Node) -> Node:
    """The loop, or an equal one, with what is untouched by its rounds, and by those of loops in it, read before.

    >>> from dynagrad.ir.tracing import repeat
    >>> from dynagrad.ir.ops.places import at_add
    >>> from dynagrad.ir.types import arrays, real
    >>> a = fresh(arrays(real, (9, 9)))
    >>> [b] = repeat(8, lambda i, a: repeat(9, lambda j, a: [at_add(a, (i + 1, j), a[0, j])], [a]), [a])
    >>> read_before(b.arguments[0]).arguments[-1].type.name
    'real[9]'
    """
    return _Pass().loop(node, _Indices({}))


# -- whole numbers of a graph ------------------------------------------------------------------------------------------


@dataclass
class _Indices:
    """Whole numbers of one graph, as far as was asked.

    In a subgraph: as forms, and as nodes of the graph that the loop is in which is looked at. Where there is no such
    loop, numbers that are not known are given names, so that all have forms.
    """

    forms: dict[Node, Form | None]
    home: dict[Node, Node | None] | None = None
    changes: Callable[[Node], bool] = lambda _: False  # whether an array is another one in each round of a loop around


def _folded(node: Node, known: dict[Node, T | None], make: Callable[[Node, list[T]], T | None]) -> T | None:
    """What is made of a whole number from what is made of the numbers it is computed of."""
    todo = [node]
    while todo:
        at = todo[-1]
        if at in known:
            todo.pop()
            continue
        given = at.arguments if at.operation in RULES and not at.shape else ()
        missing = [a for a in given if a not in known]
        if missing:
            todo.extend(missing)
            continue
        found = [f for a in given if (f := known[a]) is not None]
        known[at] = make(at, found) if len(found) == len(given) else make(at, [])
        todo.pop()
    return known[node]


def _home(node: Node, scope: _Indices) -> Node | None:
    """A number as a node of the graph that the loop is in, if it does not depend on what is inside."""
    if scope.home is None:
        return node

    def make(at: Node, given: list[Node]) -> Node | None:
        if at.is_constant:
            return at
        return intern(at.operation, tuple(given)) if given else None

    return _folded(node, scope.home, make)


# -- what a loop does to its arrays ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Access:
    """A read or a write of an array that is a state of the loop."""

    state: int
    node: Node
    trail: Trail
    index: tuple[Interval, ...]
    often: int  # at the most, while the loop runs
    scope: _Indices


class _Look:
    """All reads and writes in a loop. States of which something else looks at a version are spoiled."""

    def __init__(self, run: _Pass, node: Node, outer: _Indices) -> None:
        self.run = run
        self.reads: list[_Access] = []
        self.writes: list[_Access] = []
        self.spoiled: set[int] = set()
        loop: Loop = node.attribute
        shift = 1 if node.operation is REPEAT else 0
        states = loop.body.inputs[shift : shift + loop.states]
        versions = {v: i for i, v in enumerate(states) if v.shape}
        if loop.condition is not None:
            self.only_reads(loop.condition, versions, states)
        scope, rounds = run.enter(node, outer, {})
        self.graph(loop.body, scope, versions, (), rounds)
        for i, output in enumerate(loop.body.outputs):
            self.stays(versions.get(output), i if states[i].shape else None)

    def spoil(self, *states: int | None) -> None:
        self.spoiled |= {s for s in states if s is not None}

    def stays(self, *states: int | None) -> int | None:
        """The state that all of these are; if there is none, they are spoiled."""
        if len(set(states)) == 1:
            return states[0]
        self.spoil(*states)
        return None

    def only_reads(self, graph: Graph, known: dict[Node, int], inputs: Sequence[Node]) -> None:
        """Conditions of loops: what they read stays where it is. They have inputs where the bodies have these."""
        versions = {w: known[v] for v, w in zip(inputs, graph.inputs, strict=False) if v in known}
        for node in order(graph.outputs):
            for k, a in enumerate(node.arguments):
                if a in versions and (k or _places(node)[:1] != ("item",)):
                    self.spoil(versions[a])

    def graph(self, graph: Graph, scope: _Indices, versions: dict[Node, int], trail: Trail, often: int) -> None:
        several: dict[Node, dict[int, int]] = {}
        for node in order(graph.outputs):
            if node.operation is PART and node.arguments[0] in several:
                state = several[node.arguments[0]].get(node.attribute)
                if state is not None:
                    versions[node] = state
                continue
            if not any(a in versions for a in node.arguments):
                continue
            if node.operation in (REPEAT, WHILE):
                several[node] = self.loop(node, scope, versions, trail, often)
            elif node.operation is COND:
                several[node] = self.branches(node, scope, versions, trail, often)
            else:
                self.access(node, scope, versions, trail, often)

    def access(self, node: Node, scope: _Indices, versions: dict[Node, int], trail: Trail, often: int) -> None:
        first, *others = node.arguments
        kind, *rest = _places(node) or ("",)
        self.spoil(*(versions.get(a) for a in others))
        if first not in versions or not kind:
            self.spoil(versions.get(first))
            return
        index = tuple(self.run.interval(entry, hole, scope) for entry, hole in _entries(rest[0], rest[1]))
        access = _Access(versions[first], node, trail, index, often, scope)
        if kind == "item":
            self.reads.append(access)
        else:
            self.writes.append(access)
            versions[node] = versions[first]

    def loop(self, node: Node, outer: _Indices, known: dict[Node, int], trail: Trail, often: int) -> dict[int, int]:
        loop: Loop = node.attribute
        shift = 1 if node.operation is REPEAT else 0
        inputs = loop.body.inputs[shift:]
        versions = {v: known[a] for v, a in zip(inputs, node.arguments[shift:], strict=True) if a in known}
        if loop.condition is not None:
            self.only_reads(loop.condition, versions, inputs)
        scope, rounds = self.run.enter(node, outer, {})
        before = [versions.get(v) for v in inputs[: loop.states]]
        self.graph(loop.body, scope, versions, (*trail, (node, 0)), often * rounds)
        after = [versions.get(o) for o in loop.body.outputs]
        found = {i: self.stays(b, a) for i, (b, a) in enumerate(zip(before, after, strict=True))}
        return {i: state for i, state in found.items() if state is not None}

    def branches(self, node: Node, outer: _Indices, known: dict[Node, int], trail: Trail, often: int) -> dict[int, int]:
        branches: Branches = node.attribute
        outputs: list[list[int | None]] = []
        for k, graph in enumerate((branches.then, branches.otherwise)):
            pairs = list(zip(graph.inputs, node.arguments[1:], strict=True))
            versions = {v: known[a] for v, a in pairs if a in known}
            scope = self.run.branch(graph, node, outer, {})
            self.graph(graph, scope, versions, (*trail, (node, k)), often)
            outputs.append([versions.get(o) for o in graph.outputs])
        found = {i: self.stays(a, b) for i, (a, b) in enumerate(zip(*outputs, strict=True))}
        return {i: state for i, state in found.items() if state is not None}


def _counts(node: Node) -> bool:
    return node.type is integer


def _places(node: Node) -> tuple[Any, ...]:
    """Whether a node reads or writes at places, the pattern, and what fills its holes; () for other nodes."""
    code = node.operation.code
    if not isinstance(code, tuple) or code[0] not in ("item", "set_at", "add_at"):
        return ()
    return code[0], code[1], node.arguments[1 if code[0] == "item" else 2 :]


def _entries(pattern: Sequence[Any], holes: Sequence[Node]) -> Iterator[tuple[Any, Node | None]]:
    """The entry of each axis, and what fills it where it is a hole."""
    given = iter(holes)
    for entry in pattern:
        if not isinstance(entry, str):
            yield entry, None
        elif entry == HOLE:
            yield entry, next(given)


# -- the pass ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A part of an array, made before the loop, and where in it is what is read."""

    node: Node
    index: tuple[Any, ...]


class _Pass:
    def __init__(self) -> None:
        self.bounds = Bounds()
        self.names = itertools.count()

    def form(self, node: Node, scope: _Indices) -> Form | None:
        def make(at: Node, given: list[Form]) -> Form | None:
            if at.is_constant and at.type is integer:
                return number(at.attribute)
            found = self.bounds.made(at.operation, given) if given else None
            unknown = found is None and scope.home is None and at.type is integer
            return name(f"?{next(self.names)}") if unknown else found

        return _folded(node, scope.forms, make)

    def interval(self, entry: Any, hole: Node | None, scope: _Indices) -> Interval:
        if isinstance(entry, Slice):
            places: Any = range(entry.start, entry.stop, entry.step)
        elif hole is None:
            places = [entry]
        elif hole.is_constant and hole.shape:
            places = hole.attribute.ravel().tolist()
        else:
            form = self.form(hole, scope)
            return None if form is None else (form, form)
        return (number(min(places)), number(max(places))) if len(places) else None

    # -- scopes ------------------------------------------------------------------------------------------------------

    def enter(self, node: Node, outer: _Indices, home: dict[Node, Node | None] | None = None) -> tuple[_Indices, int]:
        """What is known in the body of a loop, with a new name for its counter, and how many rounds it may have."""
        loop: Loop = node.attribute
        counted = 1 if node.operation is REPEAT else 0
        states = list(zip(loop.body.inputs[counted:], node.arguments[counted:], loop.body.outputs, strict=False))
        scope = self.given(loop.body.inputs, node.arguments, counted + loop.states, outer, home)
        text = f"#{next(self.names)}"
        rounds = self.form(node.arguments[0], outer) if counted else None
        if counted:
            scope.forms[loop.body.inputs[0]] = name(text)
        known = dict(scope.forms)
        for state, first, after in states:  # which may grow by the same each round
            begin = self.form(first, outer) if _counts(state) else None
            if begin is not None:
                mark = name(f"?{next(self.names)}")
                grown = self.form(after, _Indices({**known, state: mark}, {}))
                if grown is not None and (grown - mark).constant and abs((grown - mark).offset) <= MOST_STEP:
                    scope.forms[state] = begin + name(text) * (grown - mark).offset
        if loop.condition is not None:
            pairs = zip(loop.condition.inputs, loop.body.inputs, strict=True)
            rounds = self.while_holds(loop.condition.outputs[0], text, {w: scope.forms.get(v) for w, v in pairs})
        outside = set(loop.body.inputs[counted + loop.states :])
        scope.changes = lambda a: not a.is_constant and a not in outside
        self.bounds.counter(text, rounds)
        last = self.bounds.last.get(text)
        most = None if last is None else self.bounds.high(last)
        return scope, UNKNOWN if most is None else max(most + 1, 0)

    def branch(
        self, graph: Graph, node: Node, outer: _Indices, home: dict[Node, Node | None] | None = None
    ) -> _Indices:
        """What is known in a branch."""
        scope = self.given(graph.inputs, node.arguments[1:], 0, outer, home)
        changing = {v for v, a in zip(graph.inputs, node.arguments[1:], strict=True) if outer.changes(a)}
        scope.changes = changing.__contains__
        return scope

    def given(
        self,
        inputs: Sequence[Node],
        arguments: Sequence[Node],
        first: int,
        outer: _Indices,
        home: dict[Node, Node | None] | None,
    ) -> _Indices:
        """What is known of the inputs of a graph that come from outside: those from the first one on."""
        pairs = [(v, a) for v, a in zip(inputs[first:], arguments[first:], strict=True) if _counts(v)]
        return _Indices(
            {v: self.form(a, outer) for v, a in pairs},
            None if home is None else {v: _home(a, outer) for v, a in pairs},
        )

    def while_holds(self, test: Node, text: str, forms: dict[Node, Form | None]) -> Form | None:
        """How many rounds a condition holds at the most, where it says that a number which grows is below another."""
        scope = _Indices(forms, {})
        todo = [test]
        while todo:
            at = todo.pop()
            if at.operation is ops.logical_and:
                todo.extend(at.arguments)
            if at.operation not in _BELOW:
                continue
            a, b = (self.form(x, scope) for x in at.arguments)
            if a is None or b is None:
                continue
            turned, more = _BELOW[at.operation]
            gap = (a - b if turned else b - a) + more
            step = -gap.times(text)
            begin = gap + name(text) * step
            if step == 1:
                return begin
            if step > 1 and begin.constant:
                return number(-(-begin.offset // step))
        return None

    # -- loops, from outside in --------------------------------------------------------------------------------------

    def loop(self, node: Node, scope: _Indices) -> Node:
        node = self.with_rows(node, scope)
        loop: Loop = node.attribute
        inner, _ = self.enter(node, scope)
        body = self.within(loop.body, inner)
        if body is loop.body:
            return node
        return _loop_of(node, Loop(body, loop.states, loop.condition, loop.extends), node.arguments)

    def within(self, graph: Graph, scope: _Indices) -> Graph:
        """The graph with its loops rewritten."""
        by: dict[Node, Node] = {}
        for node in order(graph.outputs):
            if node.operation not in (REPEAT, WHILE, COND):
                continue
            [new] = substitute([node], by)
            made = self.conditional(new, scope) if node.operation is COND else self.loop(new, scope)
            if made is not new:
                by.update(zip(parts(node), parts(made), strict=True))
        return Graph(graph.inputs, substitute(graph.outputs, by)) if by else graph

    def conditional(self, node: Node, scope: _Indices) -> Node:
        branches: Branches = node.attribute
        graphs = (branches.then, branches.otherwise)
        then, otherwise = (self.within(g, self.branch(g, node, scope)) for g in graphs)
        reads = [self.reads_of(g, node, scope) for g in (then, otherwise)]
        if then is graphs[0] and otherwise is graphs[1] and not any(reads):
            return node
        made = [_rebuilt(g, (), {(): r}) for g, r in zip((then, otherwise), reads, strict=True)]
        return _branches(node, made, node.arguments, lambda row: row)

    def reads_of(self, graph: Graph, node: Node, scope: _Indices) -> dict[Node, _Row]:
        """What a branch reads of arrays that change, as far as it is in range also where the branch is not taken."""
        inner = self.branch(graph, node, scope, {})
        around = dict(zip(graph.inputs, node.arguments[1:], strict=True))
        found: dict[Node, _Row] = {}
        for read in order(graph.outputs):
            array = around.get(read.arguments[0]) if _places(read)[:1] == ("item",) else None
            if array is None or not scope.changes(array) or read.type.kind != "real":
                continue
            if read.type.size * SMALL > array.type.size:
                continue
            _, pattern, holes = _places(read)
            known = [h for hole in holes if (h := _home(hole, inner)) is not None]
            reached = zip(_entries(pattern, holes), array.shape, strict=True)
            if len(known) == len(holes) and all(self.in_range(h, n, inner) for (_, h), n in reached):
                found[read] = _Row(intern(read.operation, (array, *known), None, read.type), ())
        return found

    def in_range(self, hole: Node | None, length: int, scope: _Indices) -> bool:
        """Whether an index is in range, whatever is run."""
        if hole is None or (hole.is_constant and hole.shape):
            return True
        form = self.form(hole, scope)
        reach = None if form is None else self.bounds.range(form)
        return reach is not None and -length <= reach[0] and reach[1] < length

    def with_rows(self, node: Node, scope: _Indices) -> Node:
        """A loop with what is untouched by its rounds read before it."""
        loop: Loop = node.attribute
        shift = 1 if node.operation is REPEAT else 0
        if not any(a.shape for a in node.arguments[shift : shift + loop.states]):
            return node
        here, there = _Look(self, node, scope), _Look(self, node, scope)  # counters of a read, and of a write
        if len(here.reads) * len(there.writes) > MOST_PAIRS:
            return node
        plan: dict[Trail, dict[Node, _Row]] = {}
        for read in here.reads:
            if read.state in here.spoiled:
                continue
            row = self.row(read, node.arguments[shift + read.state])
            writes = (w for w in there.writes if w.state == read.state)
            if row is not None and all(self.apart(read, w) for w in writes):
                plan.setdefault(read.trail, {})[read.node] = row
        if not plan:
            return node
        body, rows = _rebuilt(loop.body, (), plan)
        return _loop_of(node, _wider(loop, body, rows), (*node.arguments, *rows))

    def apart(self, read: _Access, write: _Access) -> bool:
        """Whether a read and a write are never at the same place, whichever rounds they are in."""
        shape = read.node.arguments[0].shape
        axes = zip(read.index, write.index, shape, strict=True)
        return any(self.distinct(r, w, n) for r, w, n in axes if r is not None and w is not None)

    def distinct(self, a: tuple[Form, Form], b: tuple[Form, Form], length: int) -> bool:
        """Whether indices in two intervals never mean the same; those below zero count from the end."""
        if (self.bounds.low(b[0] - a[1]) or 0) < 1:
            a, b = b, a
            if (self.bounds.low(b[0] - a[1]) or 0) < 1:
                return False
        most = self.bounds.high(b[1] - a[0])
        if most is not None and most < length:
            return True
        first = self.bounds.low(a[0])
        return first is not None and first >= 0

    def row(self, read: _Access, array: Node) -> _Row | None:
        """The part of an array that reads like this one are in, if it is worth being made before the loop."""
        _, pattern, holes = _places(read.node)
        if any(isinstance(e, str) and e == NEW for e in pattern) or any(h.shape for h in holes):
            return None
        before: list[Any] = []
        after: list[Any] = []
        for (entry, hole), n in zip(_entries(pattern, holes), array.shape, strict=True):
            if isinstance(entry, Slice):
                before.append(entry.python())
                after.append(slice(None))
                continue
            if not self.in_range(hole, n, read.scope):  # also what is read inside may be moved out, of inner loops
                return None
            known = entry if hole is None else _home(hole, read.scope)
            before.append(slice(None) if known is None else known)
            if known is None:
                after.append(hole)
        if len(after) == len(before):
            return None
        made: Node = item(array, tuple(before))
        pays = read.often * read.node.type.size >= WORTH * made.type.size
        return _Row(made, tuple(after)) if pays else None


# -- loops made again --------------------------------------------------------------------------------------------------


def _loop_of(node: Node, loop: Loop, arguments: Sequence[Node]) -> Node:
    """A loop like another one."""
    shift = 1 if node.operation is REPEAT else 0
    end = shift + loop.states
    return make_loop(arguments[0] if shift else None, loop, arguments[shift:end], arguments[end:])


def _wider(loop: Loop, body: Graph, rows: Sequence[Node]) -> Loop:
    """A loop with a body to which rows come from outside, too."""
    condition = loop.condition
    if condition is not None:
        condition = Graph((*condition.inputs, *(fresh(r.type) for r in rows)), condition.outputs)
    return Loop(body, loop.states, condition, loop.extends)


Plan = dict[Trail, dict[Node, _Row]]


def _rebuilt(graph: Graph, trail: Trail, plan: Plan) -> tuple[Graph, list[Node]]:
    """A graph with other inputs after its own, which rows are read from, and the rows."""
    stands: dict[Node, Node] = {}
    by: dict[Node, Node] = {}
    reads = plan.get(trail, {})
    inside = {t[len(trail)][0] for t in plan if len(t) > len(trail) and _begins(t, trail)}

    def standing(row: Node) -> Node:
        if row not in stands:
            stands[row] = fresh(row.type)
        return stands[row]

    for node in order(graph.outputs):
        row = reads.get(node)
        if row is not None:
            holes = iter(substitute([e for e in row.index if isinstance(e, Node)], by))
            by[node] = item(standing(row.node), tuple(next(holes) if isinstance(e, Node) else e for e in row.index))
        elif node in inside:
            [new] = substitute([node], by)
            made = _rebuilt_control(node, new, trail, plan, standing)
            by.update(zip(parts(node), parts(made), strict=True))
    outputs = substitute(graph.outputs, by)
    return Graph((*graph.inputs, *stands.values()), outputs), list(stands)


def _begins(trail: Trail, start: Trail) -> bool:
    return all(a is b and i == j for (a, i), (b, j) in zip(trail, start, strict=False))


def _rebuilt_control(old: Node, node: Node, trail: Trail, plan: Plan, standing: Callable[[Node], Node]) -> Node:
    """A node of control flow of which the graphs, known by the old one, are made again."""
    if isinstance(node.attribute, Loop):
        body, rows = _rebuilt(node.attribute.body, (*trail, (old, 0)), plan)
        return _loop_of(node, _wider(node.attribute, body, rows), (*node.arguments, *map(standing, rows)))
    branches: Branches = node.attribute
    both = [_rebuilt(g, (*trail, (old, k)), plan) for k, g in enumerate((branches.then, branches.otherwise))]
    return _branches(node, both, node.arguments, standing)


def _branches(
    node: Node, both: Sequence[tuple[Graph, list[Node]]], arguments: Sequence[Node], standing: Callable[[Node], Node]
) -> Node:
    """A choice between two graphs whose last inputs stand for rows."""
    wanted = list(dict.fromkeys(row for _, rows in both for row in rows))
    then, otherwise = (_with_inputs(graph, rows, wanted) for graph, rows in both)
    attribute = Branches(then, otherwise, node.attribute.extends)
    return make_cond(arguments[0], attribute, (*arguments[1:], *map(standing, wanted)))


def _with_inputs(graph: Graph, has: Sequence[Node], wanted: Sequence[Node]) -> Graph:
    """A graph whose last inputs stand for some rows, with inputs for other rows, too, in the order that is wanted."""
    count = len(graph.inputs) - len(has)
    found = dict(zip(has, graph.inputs[count:], strict=True))
    added = (found[row] if row in found else fresh(row.type) for row in wanted)
    return Graph((*graph.inputs[:count], *added), graph.outputs)
