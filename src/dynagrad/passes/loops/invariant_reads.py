"""Hoists loop-invariant array reads: what a loop reads of an array and never writes is read before the loop.

A loop may write some elements of an array and read others: elimination subtracts multiples of one row from the rows
below. What it reads is the same in each round, but reverse mode would save it as a residual at every read. Here the
loop becomes an equal one that captures the row, so that the row is saved once and its adjoint is accumulated in an
array of its own.

A read is invariant if its index differs on some axis from the index of every write in the loop, whichever rounds the
two are in. Indices are compared as affine forms (`linear_forms.py`), outer loops first, so that the ranges of the
counters around an inner loop are known. The hoisted part must be in range even if the loop has no rounds, and must be
read often enough to pay. Branches inside loops capture what they read in the same way, since otherwise the whole array
would be saved for them. Which residuals are saved is not decided here but in `autodiff/residuals.py`.

It is long because the conditions for hoisting are one proof, whose parts rest on each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...ir.code import code_of
from ...ir.control import COND, PART, REPEAT, WHILE, Branches, Graph, Loop, make_cond, make_loop, parts
from ...ir.node import Node, fresh, intern, order, substitute
from ...ir.ops import integers
from ...ir.ops import scalars as ops
from ...ir.ops.places import NEW, Slice, item, on_axes
from ...ir.types import integer
from ..linear_forms import MOST_STEP, RULES, Bounds, Form, name, number
from ..views import places_of

WORTH = 2
"""The least ratio of elements read in the loop to elements hoisted."""
SMALL = 4
"""The least ratio of the size of an array to the part of it that a branch captures instead."""
UNKNOWN = 16  # the number of rounds that is assumed where none is known
MOST_PAIRS = 5_000  # of a read and a write that are compared

Trail = tuple[tuple[Node, int], ...]
"""The path into nested subgraphs: at each step a node of control flow, and which of its graphs."""
Interval = tuple[Form, Form] | None
"""The least and the greatest index on an axis; None where they are not known."""
T = TypeVar("T")

_BELOW = {
    integers.less: (False, 0),
    integers.less_equal: (False, 1),
    integers.greater: (True, 0),
    integers.greater_equal: (True, 1),
}
"""Comparisons: whether the second operand is the smaller one, and 1 where they may be equal."""


def hoist_reads(node: Node) -> Node:
    """The loop, or an equal one, with the reads hoisted that are invariant in it or in loops inside it.

    >>> from dynagrad.ir.builders import repeat
    >>> from dynagrad.ir.ops.places import at_add
    >>> from dynagrad.ir.types import arrays, real
    >>> a = fresh(arrays(real, (9, 9)))
    >>> [b] = repeat(8, lambda i, a: repeat(9, lambda j, a: [at_add(a, (i + 1, j), a[0, j])], [a]), [a])
    >>> hoist_reads(b.arguments[0]).arguments[-1].type.name
    'real[9]'
    """
    return _Pass().loop(node, _Indices({}))


# -- indices as forms --------------------------------------------------------------------------------------------------


@dataclass
class _Indices:
    """The whole numbers of one graph, computed on demand: as forms and, in a subgraph, as nodes outside of the loop.

    Without `home` this is the graph that contains the loop: there unknown numbers are given names, so that every number
    has a form.
    """

    forms: dict[Node, Form | None]
    home: dict[Node, Node | None] | None = None
    changes: Callable[[Node], bool] = lambda _: False  # whether an array varies with the rounds of an enclosing loop


def _folded(node: Node, known: dict[Node, T | None], make: Callable[[Node, list[T]], T | None]) -> T | None:
    """The value of `make` for a number, computed bottom-up over its operands without recursion, and kept in `known`."""
    todo = [node]
    while todo:
        at = todo[-1]
        if at in known:
            todo.pop()
            continue
        operands = at.arguments if at.operation in RULES and not at.shape else ()
        missing = [a for a in operands if a not in known]
        if missing:
            todo.extend(missing)
            continue
        found = [f for a in operands if (f := known[a]) is not None]
        known[at] = make(at, found) if len(found) == len(operands) else make(at, [])
        todo.pop()
    return known[node]


def _home(node: Node, scope: _Indices) -> Node | None:
    """A number as a node of the graph that contains the loop, if it does not depend on the loop."""
    if scope.home is None:
        return node

    def make(at: Node, operands: list[Node]) -> Node | None:
        if at.is_constant:
            return at
        return intern(at.operation, tuple(operands)) if operands else None

    return _folded(node, scope.home, make)


# -- the accesses of a loop --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Access:
    """A read or a write of an array that is a state of the loop."""

    state: int
    node: Node
    trail: Trail
    index: tuple[Interval, ...]
    often: int  # how many times it runs while the loop does, at most
    scope: _Indices


class _Accesses:
    """All reads and writes in a loop. States that are used in other ways are spoiled: their reads are not hoisted."""

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
        """The one state that all of these are versions of; if they are not, None, and they are spoiled."""
        if len(set(states)) == 1:
            return states[0]
        self.spoil(*states)
        return None

    def only_reads(self, graph: Graph, known: dict[Node, int], inputs: Sequence[Node]) -> None:
        """Conditions of loops, whose inputs correspond to `inputs`: reads stay, other uses of a state spoil it."""
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
        index = tuple(self.run.interval(entry, hole, scope) for entry, hole in on_axes(*rest))
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
    """For reads and writes of elements: the family, the pattern, and the indices in its holes; () for other nodes."""
    kind, read = code_of(node)[:1], places_of(node)
    return () if read is None or kind not in (("item",), ("set_at",), ("add_at",)) else (*kind, *read)


# -- the pass ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """A part of an array that is hoisted, and the index in it of what is read."""

    node: Node
    index: tuple[Any, ...]


class _Pass:
    """One run of the pass: the bounds of all counters seen so far, and fresh names for counters and unknown numbers."""

    def __init__(self) -> None:
        self.bounds = Bounds()
        self.names = itertools.count()

    def form(self, node: Node, scope: _Indices) -> Form | None:
        """A whole number of a graph as an affine form."""

        def make(at: Node, operands: list[Form]) -> Form | None:
            if at.is_constant and at.type is integer:
                return number(at.attribute)
            found = self.bounds.made(at.operation, operands) if operands else None
            unknown = found is None and scope.home is None and at.type is integer
            return name(f"?{next(self.names)}") if unknown else found

        return _folded(node, scope.forms, make)

    def interval(self, entry: Any, hole: Node | None, scope: _Indices) -> Interval:
        """The range of the indices that an entry of a pattern selects."""
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
        """The indices of a loop's body, with a fresh name for its counter, and an estimate of its rounds."""
        loop: Loop = node.attribute
        counted = 1 if node.operation is REPEAT else 0
        states = list(zip(loop.body.inputs[counted:], node.arguments[counted:], loop.body.outputs, strict=False))
        scope = self.captured(loop.body.inputs, node.arguments, counted + loop.states, outer, home)
        text = f"#{next(self.names)}"
        rounds = self.form(node.arguments[0], outer) if counted else None
        if counted:
            scope.forms[loop.body.inputs[0]] = name(text)
        known = dict(scope.forms)
        for state, first, after in states:  # induction variables: those that grow by a constant each round
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
        """The indices of a branch."""
        scope = self.captured(graph.inputs, node.arguments[1:], 0, outer, home)
        changing = {v for v, a in zip(graph.inputs, node.arguments[1:], strict=True) if outer.changes(a)}
        scope.changes = changing.__contains__
        return scope

    def captured(
        self,
        inputs: Sequence[Node],
        arguments: Sequence[Node],
        first: int,
        outer: _Indices,
        home: dict[Node, Node | None] | None,
    ) -> _Indices:
        """The indices that a subgraph captures: its inputs from position `first` on."""
        pairs = [(v, a) for v, a in zip(inputs[first:], arguments[first:], strict=True) if _counts(v)]
        return _Indices(
            {v: self.form(a, outer) for v, a in pairs},
            None if home is None else {v: _home(a, outer) for v, a in pairs},
        )

    def while_holds(self, test: Node, text: str, forms: dict[Node, Form | None]) -> Form | None:
        """A bound on the rounds of a `while` loop, where its condition compares an induction variable with a bound."""
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

    # -- loops, outermost first --------------------------------------------------------------------------------------

    def loop(self, node: Node, scope: _Indices) -> Node:
        """A loop with reads hoisted, out of it and out of those inside it."""
        node = self.with_hoisted_rows(node, scope)
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
        """A `cond` node whose branches capture what they read of arrays, in place of the arrays."""
        branches: Branches = node.attribute
        graphs = (branches.then, branches.otherwise)
        then, otherwise = (self.within(g, self.branch(g, node, scope)) for g in graphs)
        reads = [self.reads_of(g, node, scope) for g in (then, otherwise)]
        if then is graphs[0] and otherwise is graphs[1] and not any(reads):
            return node
        made = [_rebuilt(g, (), {(): r}) for g, r in zip((then, otherwise), reads, strict=True)]
        return _branches(node, made, node.arguments, lambda row: row)

    def reads_of(self, graph: Graph, node: Node, scope: _Indices) -> dict[Node, _Row]:
        """The reads of a branch, of arrays that vary, that are in range even when the branch is not taken."""
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
            reached = zip(on_axes(pattern, holes), array.shape, strict=True)
            if len(known) == len(holes) and all(self.in_range(h, n, inner) for (_, h), n in reached):
                found[read] = _Row(intern(read.operation, (array, *known), None, read.type), ())
        return found

    def in_range(self, hole: Node | None, length: int, scope: _Indices) -> bool:
        """Whether an index is proved to be in range, also where its node would not run."""
        if hole is None or (hole.is_constant and hole.shape):
            return True
        form = self.form(hole, scope)
        reach = None if form is None else self.bounds.range(form)
        return reach is not None and -length <= reach[0] and reach[1] < length

    def with_hoisted_rows(self, node: Node, scope: _Indices) -> Node:
        """A loop that captures what it reads and never writes."""
        loop: Loop = node.attribute
        shift = 1 if node.operation is REPEAT else 0
        if not any(a.shape for a in node.arguments[shift : shift + loop.states]):
            return node
        # Twice, with different counters: a read and a write may be in different rounds.
        here, there = _Accesses(self, node, scope), _Accesses(self, node, scope)
        if len(here.reads) * len(there.writes) > MOST_PAIRS:
            return node
        plan: dict[Trail, dict[Node, _Row]] = {}
        for read in here.reads:
            if read.state in here.spoiled:
                continue
            row = self.row(read, node.arguments[shift + read.state])
            writes = (w for w in there.writes if w.state == read.state)
            if row is not None and all(self.disjoint(read, w) for w in writes):
                plan.setdefault(read.trail, {})[read.node] = row
        if not plan:
            return node
        body, rows = _rebuilt(loop.body, (), plan)
        return _loop_of(node, _wider(loop, body, rows), (*node.arguments, *rows))

    def disjoint(self, read: _Access, write: _Access) -> bool:
        """Whether a read and a write never touch the same element, whichever rounds they are in."""
        shape = read.node.arguments[0].shape
        axes = zip(read.index, write.index, shape, strict=True)
        return any(self.distinct(r, w, n) for r, w, n in axes if r is not None and w is not None)

    def distinct(self, a: tuple[Form, Form], b: tuple[Form, Form], length: int) -> bool:
        """Whether indices in two intervals never mean the same element; negative ones count from the end."""
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
        """The part of an array that has all elements which a read may select, if hoisting it is possible and pays."""
        _, pattern, holes = _places(read.node)
        if any(isinstance(e, str) and e == NEW for e in pattern) or any(h.shape for h in holes):
            return None
        before: list[Any] = []
        after: list[Any] = []
        for (entry, hole), n in zip(on_axes(pattern, holes), array.shape, strict=True):
            if isinstance(entry, Slice):
                before.append(entry.python())
                after.append(slice(None))
                continue
            if not self.in_range(hole, n, read.scope):  # a read that stays may be hoisted later, out of inner loops
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


# -- rebuilding loops --------------------------------------------------------------------------------------------------


def _loop_of(node: Node, loop: Loop, arguments: Sequence[Node]) -> Node:
    """A loop of the same kind, with these arguments."""
    shift = 1 if node.operation is REPEAT else 0
    end = shift + loop.states
    return make_loop(arguments[0] if shift else None, loop, arguments[shift:end], arguments[end:])


def _wider(loop: Loop, body: Graph, rows: Sequence[Node]) -> Loop:
    """A loop with a body that captures rows; its condition gets the same inputs."""
    condition = loop.condition
    if condition is not None:
        condition = Graph((*condition.inputs, *(fresh(r.type) for r in rows)), condition.outputs)
    return Loop(body, loop.states, condition, loop.extends)


Plan = dict[Trail, dict[Node, _Row]]


def _rebuilt(graph: Graph, trail: Trail, plan: Plan) -> tuple[Graph, list[Node]]:
    """A graph with reads replaced by reads of rows, which are inputs after its own; and these rows."""
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
    """A node of control flow with its graphs rebuilt; `old` is the original, which the plan refers to."""
    if isinstance(node.attribute, Loop):
        body, rows = _rebuilt(node.attribute.body, (*trail, (old, 0)), plan)
        return _loop_of(node, _wider(node.attribute, body, rows), (*node.arguments, *map(standing, rows)))
    branches: Branches = node.attribute
    both = [_rebuilt(g, (*trail, (old, k)), plan) for k, g in enumerate((branches.then, branches.otherwise))]
    return _branches(node, both, node.arguments, standing)


def _branches(
    node: Node, both: Sequence[tuple[Graph, list[Node]]], arguments: Sequence[Node], standing: Callable[[Node], Node]
) -> Node:
    """A `cond` node of two graphs whose last inputs are rows."""
    wanted = list(dict.fromkeys(row for _, rows in both for row in rows))
    then, otherwise = (_with_inputs(graph, rows, wanted) for graph, rows in both)
    attribute = Branches(then, otherwise, node.attribute.extends)
    return make_cond(arguments[0], attribute, (*arguments[1:], *map(standing, wanted)))


def _with_inputs(graph: Graph, has: Sequence[Node], wanted: Sequence[Node]) -> Graph:
    """A graph whose last inputs are some rows, with one input for every wanted row, in that order."""
    count = len(graph.inputs) - len(has)
    found = dict(zip(has, graph.inputs[count:], strict=True))
    added = (found[row] if row in found else fresh(row.type) for row in wanted)
    return Graph((*graph.inputs[:count], *added), graph.outputs)
