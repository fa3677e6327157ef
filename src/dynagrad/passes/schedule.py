"""Scheduling and loop fusion: in which order values are computed, which share a loop, and which take no memory.

A schedule is a list of steps. A step is one node, or a cluster: nodes that are computed in one loop over one domain
(producer and consumer, or siblings). Values that are cheap, or that only one step reads, are fused into their
consumers, which compute them element by element as they need them: they are inline, are no step and take no memory. An
update in place comes after all readers of the array, where the dependences allow it. No C++ is written here.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.code import code_of
from ..ir.control import CALL, COND, LOOPS, POP, PUSH, REPEAT, WHILE, Graph, part_types
from ..ir.node import Node, order
from ..ir.types import Shape
from .classify import Fold, fold_of, lowering_of, update_of
from .views import places_of

LARGEST_CLUSTER = 250  # nodes
LONG, SHORT_CLUSTER = 800, 4  # graphs of unrolled loops have many nodes; short clusters are often equal as text
MANY = 128
"""The number of loops from which on a graph is long, too."""
STRETCH = 800
"""The most statements of a basic block, since compilers take superlinear time in its length."""
STORE = 4
"""How many statements a store counts for: alias analysis compares it with all others."""
CHEAP = 2  # the cost up to which a value may be recomputed by each consumer


@dataclass
class ScheduledStep:
    """Nodes that are computed together."""

    nodes: list[Node]
    domain: Shape | None = None  # of the loop that the nodes share
    reads: dict[Node, bool] = field(default_factory=dict)  # values it reads; whether only element by element
    after: set[int] = field(default_factory=set)  # the steps it depends on
    first: int = 0  # position of its first node in topological order


@dataclass(frozen=True)
class Schedule:
    """Steps in the order they run in, and what memory planning needs to know."""

    series: tuple[Node, ...]  # all nodes of the graph, each after its arguments
    steps: list[ScheduledStep]
    stored: set[Node]  # arrays that steps make and that need memory
    inline: set[Node]  # values that their consumers compute
    copies: set[Node]  # views that are copied, because the array is overwritten while they are live
    last: dict[Node, int]  # liveness: the last step that reads a value; len(steps) for outputs
    long: bool  # whether there are so many loops, or nodes, that nests are functions of their own
    cuts: frozenset[int]  # the steps after which a basic block ends, because it is long

    def cut_after_result(self, number: int) -> bool:
        """Whether a basic block ends after the numbers among the results up to this one have been stored."""
        return not (number + 1) % (STRETCH // STORE)


def schedule(graph: Graph) -> Schedule:
    """The steps of a graph. Constants, inputs and single results of control flow are no steps."""
    return _Scheduler(graph).run()


class _Scheduler:
    """Builds the schedule of one graph. Dependences between steps are bit sets: `before` is transitively closed."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.series = order(graph.outputs)
        self.most = LARGEST_CLUSTER if len(self.series) < LONG else SHORT_CLUSTER
        self.lowering = {node: lowering_of(node) for node in self.series}
        self.place = {node: i for i, node in enumerate(self.series)}
        self.users: dict[Node, list[Node]] = {node: [] for node in self.series}
        for node in self.series:
            for a in dict.fromkeys(node.arguments):
                self.users[a].append(node)
        self.folds: dict[Node, Fold | None] = {n: fold_of(n) for n in self.series if self.lowering[n] == "fold"}
        self.copies: set[Node] = set()
        self.materialised = self._materialised()
        self.inline = self._fused()
        self.bases: dict[Node, dict[Node, bool]] = {}
        self.steps: list[ScheduledStep] = []
        self.bits: list[int] = []  # one for each step; scalar-only steps have none, since their order is never asked
        self.before: list[int] = []  # for each step, the bits of all steps it depends on
        self.later: list[set[int]] = []  # for each step, the steps that depend on it directly
        self.free = 1  # the next bit
        self.made_by: dict[Node, int] = {}

    # -- which values are fused into their consumers ---------------------------------------------------------------

    def _materialised(self) -> set[Node]:
        """Arrays that must be in memory, because something takes a pointer to them."""
        wanted: set[Node] = {o for o in self.graph.outputs if o.shape}
        for node in self.series:
            if self.lowering[node] in ("control", "whole") or node.operation is PUSH:
                wanted.update(a for a in node.arguments if a.shape)
            read = places_of(node)
            if read is not None:
                wanted.update(hole for hole in read[1] if hole.shape and not hole.is_constant)
            if self.lowering[node] == "update":
                update = update_of(node)
                if update.base is not None and self.lowering[update.base] == "each":
                    wanted.add(update.base)  # so that the update can be made in its memory
                for piece in update.pieces:  # reads of an array that is overwritten come before the write
                    if update.base is not None and piece.value.shape and self._hazard(piece.value, node, update.base):
                        wanted.add(piece.value)
                        self.copies.add(piece.value)
        for node in self.series:
            if node.operation in (REPEAT, WHILE, COND):
                self.copies |= self._overwritten_views(node, wanted)
        return wanted

    def _overwritten_views(self, node: Node, wanted: set[Node]) -> set[Node]:
        """Views that are read in or after a loop or branch which may overwrite the array they look at."""
        if node.operation is COND:
            made = set(part_types(node))
            overwritten = [a for a in node.arguments if a.type in made]
        else:
            counted = 1 if node.operation is REPEAT else 0
            overwritten = list(node.arguments[counted : counted + node.attribute.states])
        found: set[Node] = set()
        after: set[Node] | None = None
        for array in overwritten:
            views = self._views(array) if array.shape else []
            if not any(v in wanted for v in views):
                continue
            if after is None:
                after = self._after(node)
            around = after.difference(views).intersection(self.users[array])
            if around or any(o is array for o in self.graph.outputs):
                continue  # it is not written over
            found.update(v for v in views if v in wanted and any(u is node or u in after for u in self.users[v]))
        return found

    def _views(self, array: Node) -> list[Node]:
        """The views of an array, and views of these."""
        found: list[Node] = []
        todo = [array]
        while todo:
            near = [u for u in self.users[todo.pop()] if u.shape and self.lowering[u] == "view"]
            found += near
            todo += near
        return found

    def _after(self, node: Node) -> set[Node]:
        """The nodes that depend on a node."""
        found: set[Node] = set()
        todo = [node]
        while todo:
            new = [u for u in self.users[todo.pop()] if u not in found]
            found.update(new)
            todo += new
        return found

    def _hazard(self, value: Node, node: Node, base: Node) -> bool:
        """Whether a fused value would read elements of the array it overwrites, other than the one being written."""
        seen: set[tuple[Node, bool]] = set()
        todo = [(value, True)]  # and whether it is read at the index that is written
        while todo:
            at, here = todo.pop()
            if at is base:
                return True
            lowering = self.lowering[at]
            if (at, here) in seen or lowering not in ("view", "each") or (here and self._same_place(at, node, base)):
                continue
            seen.add((at, here))
            here = here and lowering == "each" and not code_of(at)
            todo.extend((a, here and a.shape == value.shape) for a in at.arguments if a.shape)
        return False

    def _same_place(self, view: Node, node: Node, base: Node) -> bool:
        """Whether a view of an array selects exactly the elements that an update overwrites."""
        if not view.arguments or view.arguments[0] is not base or view.shape != node.arguments[1].shape:
            return False
        here, there = places_of(view), places_of(node)
        if here is None or there is None or here[0] != there[0]:
            return False
        return all(a is b and not a.shape for a, b in zip(here[1], there[1], strict=True))

    def _fused(self) -> set[Node]:
        found: set[Node] = set()
        cost: dict[Node, int] = {}
        for node in self.series:  # cheap enough to be computed by every consumer
            if not node.shape or node in self.materialised:
                continue
            lowering = self.lowering[node]
            if lowering == "view":
                found.add(node)
                cost[node] = cost.get(node.arguments[0], 0)
            elif lowering == "each":
                total = node.operation.cost + sum(cost.get(a, 0) for a in node.arguments if a in found)
                if total <= CHEAP:
                    found.add(node)
                    cost[node] = total
        looks: dict[Node, int] = {}  # how many elements of an inline value all consumers compute together
        sinks: dict[Node, set[Node]] = {}  # the nodes of steps that an inline value ends up in
        for node in reversed(self.series):
            if not node.shape or self.lowering[node] not in ("each", "view"):
                continue
            total, seen, elsewhere = 0, set[Node](), False  # `elsewhere`: read at another index than its own
            for user in self.users[node]:
                if user in found:
                    total += looks[user]
                    seen |= sinks[user]
                    elsewhere = elsewhere or self.lowering[user] == "view"
                else:
                    fold = self.folds.get(user)
                    total += math.prod(fold.domain) if fold is not None else max(user.type.size, 1)
                    seen.add(user)
                    moves = self.lowering[user] in ("view", "update") or (fold is not None and not fold.plain)
                    elsewhere = elsewhere or moves
            if node not in found and node not in self.materialised and self.lowering[node] == "each":
                if elsewhere and len(seen) == 1 and total <= node.type.size:
                    found.add(node)
            if node in found:
                looks[node], sinks[node] = total, seen
        return found

    def edges(self, node: Node) -> Iterator[tuple[Node, bool]]:
        """The arguments of a node, and whether it reads them element by element at its own index."""
        lowering = self.lowering[node]
        fold = self.folds.get(node)
        for a in node.arguments:
            same = (
                a.shape == node.shape and lowering == "each" and (not code_of(node) or code_of(node)[0] == "triangle")
            )
            yield a, same or (fold is not None and fold.plain)

    def base(self, node: Node) -> dict[Node, bool]:
        """The values that an inline value is computed from, through other inline values; see `edges`."""
        found = self.bases.get(node)
        if found is None:
            found = self.bases[node] = self._reads(node)
        return found

    def _reads(self, node: Node) -> dict[Node, bool]:
        out: dict[Node, bool] = {}
        for a, same in self.edges(node):
            if a in self.inline:
                for b, also in self.base(a).items():
                    out[b] = out.get(b, True) and same and also
            elif not a.is_constant:
                out[a] = out.get(a, True) and same
        return out

    # -- steps -----------------------------------------------------------------------------------------------------

    def run(self) -> Schedule:
        clusters: dict[Shape, list[int]] = {}
        for node in self.series:
            lowering = self.lowering[node]
            if lowering == "leaf" or node in self.inline:
                continue
            if lowering == "part":
                self.made_by[node] = self.made_by[node.arguments[0]]
                continue
            reads = self._reads(node)
            domain = self._domain(node)
            at = None
            if domain is not None:
                at = self._join(clusters.setdefault(domain, []), reads)
            if at is None:
                at = len(self.steps)
                self.steps.append(ScheduledStep([], domain, first=self.place[node]))
                self.before.append(0)
                self.later.append(set())
                self.bits.append(self._bit(node, domain, reads))
                if domain is not None:
                    clusters[domain].append(at)
            step = self.steps[at]
            step.nodes.append(node)
            for b, same in reads.items():
                step.reads[b] = step.reads.get(b, True) and same
            self.made_by[node] = at
            self._follow(at, {self.made_by[b] for b in reads if b in self.made_by} - {at})
        self._readers_before_writers()
        return self._finish()

    def _bit(self, node: Node, domain: Shape | None, reads: dict[Node, bool]) -> int:
        if domain is None and not node.shape and self.lowering[node] == "each" and not any(b.shape for b in reads):
            return 0
        self.free <<= 1
        return self.free >> 1

    def _domain(self, node: Node) -> Shape | None:
        fold = self.folds.get(node)
        if fold is not None:
            return fold.domain if fold.plain and math.prod(fold.domain) > 1 else None
        return node.shape if self.lowering[node] == "each" and node.type.size > 1 else None

    def _join(self, candidates: list[int], reads: dict[Node, bool]) -> int | None:
        """The cluster that a node joins: a recent one that it neither waits for nor delays, sharing most with it."""
        needs = [(self.made_by[b], b, same) for b, same in reads.items() if b in self.made_by]
        best: int | None = None
        shared = -1
        for at in candidates[-1:-9:-1]:
            if len(self.steps[at].nodes) >= self.most:
                continue
            bit = self.bits[at]
            if any(self.before[s] & bit for s, _, _ in needs if s != at):
                continue
            if any(not same or self.lowering[b] != "each" for s, b, same in needs if s == at):
                continue
            common = sum(s == at for s, _, _ in needs)
            if common > shared:
                best, shared = at, common
        return best

    def _follow(self, at: int, needs: set[int]) -> None:
        """Makes step `at` depend on others, and with it all steps that depend on it."""
        bits = 0
        for s in needs:
            bits |= self.before[s] | self.bits[s]
            self.later[s].add(at)
        self.steps[at].after |= needs
        todo = [at]
        while todo:
            at = todo.pop()
            if bits & ~self.before[at]:
                self.before[at] |= bits
                todo += self.later[at]

    def _readers_before_writers(self) -> None:
        """Orders readers of an array before an update or loop that may overwrite it, unless a dependence forbids it."""
        readers: dict[Node, list[int]] = {}
        for at, step in enumerate(self.steps):
            for b in step.reads:
                if b.shape:
                    readers.setdefault(b, []).append(at)
        for at, step in enumerate(self.steps):
            node = step.nodes[0]
            if self.lowering[node] == "update":
                overwritten = [b for b in (update_of(node).base,) if b is not None]
            elif node.operation in LOOPS and node.operation is not CALL:
                overwritten = [a for a in node.arguments if a.shape]
            else:
                continue
            for b in overwritten:
                for reader in readers.get(b, ()):
                    unordered = not self.before[reader] & self.bits[at] and not self.before[at] & self.bits[reader]
                    if reader != at and unordered:
                        self._follow(at, {reader})

    def _finish(self) -> Schedule:
        """The steps in topological order, as near to the order of the nodes as it can be, and liveness of values."""
        waiting = [len(step.after) for step in self.steps]
        next_: list[list[int]] = [[] for _ in self.steps]
        for at, step in enumerate(self.steps):
            for s in step.after:
                next_[s].append(at)
        ready = [(step.first, at) for at, step in enumerate(self.steps) if not waiting[at]]
        heapq.heapify(ready)
        ordered: list[int] = []
        while ready:
            _, at = heapq.heappop(ready)
            ordered.append(at)
            for later in next_[at]:
                waiting[later] -= 1
                if not waiting[later]:
                    heapq.heappush(ready, (self.steps[later].first, later))
        assert len(ordered) == len(self.steps), "steps wait for each other"
        last: dict[Node, int] = {}
        stored = {n for n in self.materialised if n in self.made_by}
        for now, at in enumerate(ordered):
            for b in self.steps[at].reads:
                last[b] = now
                if b.shape and self.made_by.get(b, at) != at:
                    stored.add(b)
        for node in self.made_by:
            if node.shape and self.lowering[node] not in ("each", "view"):
                stored.add(node)
        for o in self.graph.outputs:
            for b in self.base(o) if o in self.inline else (o,):
                last[b] = len(ordered)
        steps = [self.steps[at] for at in ordered]
        loops = sum(step.nodes[0].type.size > 1 or step.nodes[0] in self.folds for step in steps)
        long = loops > MANY or sum(len(step.nodes) for step in steps) > LONG
        return Schedule(self.series, steps, stored, self.inline, self.copies, last, long, self._cuts(steps, long))

    def _cuts(self, steps: list[ScheduledStep], long: bool) -> frozenset[int]:
        """Where basic blocks are cut: they are as long as the steps since the last loop or branch have statements."""
        found: set[int] = set()
        length = 0
        for now, step in enumerate(steps):
            statements = self._statements(step, long)
            length = 0 if statements is None else length + statements
            if length >= STRETCH:
                found.add(now)
                length = 0
        return frozenset(found)

    def _statements(self, step: ScheduledStep, long: bool) -> int | None:
        """About how many statements a step is; None where it ends a basic block."""
        node = step.nodes[0]
        lowering, fold = self.lowering[node], self.folds.get(node)
        if lowering in ("each", "view") and not node.shape:
            return len(step.nodes)
        if lowering == "control":
            return STORE if node.operation is CALL else None
        if lowering == "stack":
            return STORE * (len(node.attribute) if node.operation is POP else max(len(node.arguments), 1))
        if lowering == "update":
            sizes = [piece.value.type.size for piece in update_of(node).pieces]
        else:
            sizes = [math.prod(fold.domain) if fold is not None else node.type.size]
        if lowering != "whole" and max(sizes, default=0) > 1:  # of a long graph, calls of functions that have the loops
            return STORE * (1 + len(step.nodes)) if long else None
        return STORE * len(step.nodes)
