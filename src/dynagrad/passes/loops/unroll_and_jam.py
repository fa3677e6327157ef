"""Unroll and jam: unrolls an outer loop and fuses the copies of its inner loop, which accumulates into an array.

The backward loop of an elimination adds to the adjoint of one row in every round, so each round waits for the one
before. With several rounds jammed into one, the inner loop loads and stores the row once for all of them (Callahan,
Carr and Kennedy 1990). It is legal where nothing else that the inner loop reads is written by the rounds that now run
together. No C++ is written here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.code import code_of
from ...ir.control import EMPTY, LOOPS, REPEAT, Graph, Loop, make_loop, part, parts
from ...ir.node import Node, fresh, intern, order, substitute, use_counts, whole
from ...ir.ops import integers
from ...ir.ops.cells import FRESH_TAG
from ...ir.ops.places import NEW, entries
from ...ir.ops.scalars import add
from ...ir.types import integer
from ..in_place_sums import adds_to, sum_in_place
from ..linear_forms import Form, name, number
from ..views import places_of
from .rounds import form_of

WAYS = 4
"""The unroll factor."""
LARGEST = 100  # nodes of the two bodies


def unroll_and_jam(graph: Graph) -> Graph:
    """The graph with nests of two loops unrolled and jammed where that is legal."""
    by: dict[Node, Node] = {}
    for node in order(graph.outputs):
        if node.operation is REPEAT:
            [new] = substitute([node], by) if by else [node]
            made = _jammed(new)
            if made is not None:
                by.update(zip(parts(node), made, strict=True))
    return Graph(graph.inputs, substitute(graph.outputs, by)) if by else graph


def _jammed(node: Node) -> list[Node] | None:
    """The results of the jammed loop; None where it has not the form, is too large, or rounds depend on each other."""
    loop: Loop = node.attribute
    n, count = loop.states, node.arguments[0]
    if count.is_constant and count.attribute < 2 * WAYS:
        return None
    if not any(x.operation is REPEAT for x in order(loop.body.outputs)):
        return None
    body = sum_in_place(loop.body)
    series = order(body.outputs)
    inside = [x for x in series if x.operation in LOOPS]
    if len(inside) != 1 or inside[0].operation is not REPEAT or any(x.operation in (EMPTY, FRESH_TAG) for x in series):
        return None
    [inner] = inside
    what: Loop = inner.attribute
    within = order(what.body.outputs)
    if len(series) + len(within) > LARGEST or any(x.operation in LOOPS for x in within):
        return None
    states, outside = body.inputs[1 : 1 + n], set(body.inputs[1 + n :])
    if not inner.arguments[0].is_constant and inner.arguments[0] not in outside:
        return None
    sums = _sums(body, inner, states)
    after = {inner}  # what depends on the inner loop
    for x in series:
        if any(a in after for a in x.arguments):
            after.add(x)
    before = set(order(inner.arguments))
    later = [o in after for o in body.outputs]
    if not sums or any(inner.arguments[1 + m].shape for m in range(what.states) if m not in sums):
        return None
    for i, state in enumerate(states):
        if i in sums.values() or state not in before or body.outputs[i] is state:
            continue
        if later[i] and not _independent(body, inner, i, before):
            return None
        if not later[i] and state.shape:  # several versions of it would have to be live
            return None
    return _unrolled(node, body, inner, sums, later)


def _sums(body: Graph, inner: Node, states: Sequence[Node]) -> dict[int, int]:
    """Accumulators of the inner loop that are accumulators of the outer loop too: its state by the inner one."""
    uses = use_counts(body.outputs)
    place = {v: i for i, v in enumerate(states)}
    found: dict[int, int] = {}
    for m in range(inner.attribute.states):
        begin, result = inner.arguments[1 + m], part(inner, m)
        i = place.get(begin)
        if i is None or not begin.shape or body.outputs[i] is not result:
            continue
        if uses[begin] == 1 and uses[result] == 1 and adds_to(inner, m):
            found[m] = i
    return found


# -- dependences between rounds ----------------------------------------------------------------------------------------

Entries = list[Form | None]
"""The index on each axis as an affine form; None where it is not one."""


def _entries(node: Node, known: dict[Node, Form | None]) -> Entries | None:
    """The index that a node accesses an array at; None where it is no access, or adds an axis."""
    read = places_of(node)
    if read is None:
        return None
    out: Entries = []
    for entry, hole in entries(*read):
        if entry == NEW:
            return None
        if hole is not None:
            out.append(None if hole.shape else form_of(hole, known))
        else:
            out.append(number(entry) if isinstance(entry, int) else None)
    return out


def _independent(body: Graph, inner: Node, state: int, before: set[Node]) -> bool:
    """Whether no read of an array, up to and in the inner loop, depends on writes after that loop in jammed rounds."""
    counter, n = body.inputs[0], len(body.outputs)
    variable = body.inputs[1 + state]
    known: dict[Node, Form | None] = {counter: name("#")}
    known.update({v: name(f"#{k}") for k, v in enumerate(body.inputs[1 + n :]) if v.type is integer})
    writes: list[Entries] = []
    at = body.outputs[state]
    while at is not variable:
        write = _entries(at, known) if code_of(at)[:1] in (("add_at",), ("set_at",)) else None
        if write is None:
            return False
        writes.append(write)
        if at in before:
            return False
        at = at.arguments[0]
    reads: list[Entries | None] = []
    for x in order(body.outputs):
        if x in before and variable in set(x.arguments):
            single = code_of(x)[:1] == ("item",) and x.arguments[0] is variable
            reads.append(_entries(x, known) if single else None)
    what: Graph = inner.attribute.body
    within: dict[Node, Form | None] = {what.inputs[0]: name("#inner")}
    seen: set[Node] = set()
    for k, (v, a) in enumerate(zip(what.inputs[1:], inner.arguments[1:], strict=True)):
        if a is variable:
            if k < inner.attribute.states:
                return False
            seen.add(v)
        if v.type is integer and k >= inner.attribute.states:
            within[v] = form_of(a, known)
    for x in order(what.outputs):
        if any(a in seen for a in x.arguments):
            reads.append(_entries(x, within) if code_of(x)[:1] == ("item",) and x.arguments[0] in seen else None)
    if any(o in seen for o in what.outputs):
        return False
    shape = variable.shape
    return all(
        r is not None and any(_differ(a, b, ahead, k) for a, b, k in zip(r, w, shape, strict=True))
        for r in reads
        for w in writes
        for ahead in range(1, WAYS)
    )


def _differ(read: Form | None, write: Form | None, ahead: int, length: int) -> bool:
    """Whether an index that is read `ahead` rounds later differs from one that is written, modulo the length."""
    if read is None or write is None:
        return False
    gap = read + read.times("#") * ahead - write
    return gap.constant and 0 < abs(gap.offset) < length


# -- the loops ---------------------------------------------------------------------------------------------------------


def _unrolled(node: Node, body: Graph, inner: Node, sums: dict[int, int], later: Sequence[bool]) -> list[Node]:
    """The results of the jammed loop, followed by a loop over the remaining rounds."""
    loop: Loop = node.attribute
    n = loop.states
    counter, states = body.inputs[0], body.inputs[1 : 1 + n]
    numbers = [intern(integers.add, (intern(integers.multiply, (counter, whole(WAYS))), whole(q))) for q in range(WAYS)]
    early: list[dict[Node, Node]] = []  # for each copy, what its values up to the inner loop are computed from
    for q in range(WAYS):
        values = states if not q else substitute(body.outputs, early[-1])
        early.append(
            {counter: numbers[q], **{s: s if last else v for s, last, v in zip(states, later, values, strict=True)}}
        )
    both, place = _merged(inner, sums, [list(substitute(inner.arguments, by)) for by in early])
    outputs: tuple[Node, ...] = tuple(states)
    for q in range(WAYS):
        by = {counter: numbers[q], **dict(zip(states, outputs, strict=True))}
        by.update({part(inner, m): part(both, place[q][m]) for m in range(inner.attribute.states)})
        outputs = substitute(body.outputs, by)
    inputs = [fresh(v.type) for v in body.inputs]
    several = Graph(tuple(inputs), substitute(outputs, dict(zip(body.inputs, inputs, strict=True))))
    count, init, outside = node.arguments[0], node.arguments[1 : 1 + n], node.arguments[1 + n :]
    if count.is_constant:
        often = whole(count.attribute // WAYS)
        done = whole(often.attribute * WAYS)
        rest = whole(count.attribute - done.attribute)
    else:
        least = intern(integers.maximum, (count, whole(0)))
        often = intern(integers.floor_divide, (least, whole(WAYS)))
        done = intern(integers.multiply, (often, whole(WAYS)))
        rest = intern(integers.subtract, (least, done))
    ran = parts(make_loop(often, Loop(several, n), init, outside))
    if rest.is_constant and not rest.attribute:
        return ran
    start = fresh(integer)
    shifted = substitute(body.outputs, {counter: intern(integers.add, (start, counter))})
    return parts(make_loop(rest, Loop(Graph((*body.inputs, start), shifted), n), ran, (*outside, done)))


def _joined(node: Node) -> Node:
    """Two additions to the same element as one."""
    base = node.arguments[0]
    if code_of(node)[:1] != ("add_at",) or base.operation is not node.operation:
        return node
    (start, first, *places), (_, second, *others) = base.arguments, node.arguments
    if first.type is not second.type or any(a is not b for a, b in zip(places, others, strict=True)):
        return node
    return intern(node.operation, (start, intern(add, (first, second)), *places), node.attribute, node.type)


def _merged(inner: Node, sums: dict[int, int], copies: list[list[Node]]) -> tuple[Node, list[dict[int, int]]]:
    """The jammed inner loop, from the arguments of its copies: they share accumulators, and have other states each."""
    loop: Loop = inner.attribute
    n = loop.states
    inputs = loop.body.inputs
    single = list(sums)
    others = [m for m in range(n) if m not in sums]
    counter = fresh(integer)
    values = {m: fresh(inputs[1 + m].type) for m in single}
    variables = list(values.values())
    init = [copies[0][1 + m] for m in single]
    outside: dict[Node, Node] = {}
    results: list[Node] = []
    place: list[dict[int, int]] = []
    for q, arguments in enumerate(copies):
        by = {inputs[0]: counter, **{inputs[1 + m]: v for m, v in values.items()}}
        for m in others:
            by[inputs[1 + m]] = fresh(inputs[1 + m].type)
            variables.append(by[inputs[1 + m]])
            init.append(arguments[1 + m])
        for v, a in zip(inputs[1 + n :], arguments[1 + n :], strict=True):
            if a not in outside:
                outside[a] = fresh(a.type)
            by[v] = outside[a]
        found = substitute(loop.body.outputs, by)
        values = {m: _joined(found[m]) for m in single}
        results += [found[m] for m in others]
        first = len(single) + q * len(others)
        place.append({**{m: k for k, m in enumerate(single)}, **{m: first + k for k, m in enumerate(others)}})
    outputs = (*values.values(), *results)
    merged = Loop(Graph((counter, *variables, *outside.values()), outputs), len(outputs))
    return make_loop(copies[0][0], merged, init, list(outside)), place
