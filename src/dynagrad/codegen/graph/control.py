"""Writes control flow: branches, loops, calls, and stacks of residuals.

States of a loop are variables; those that are arrays point to them (`double_buffers.py`). Bounds checks that can be
hoisted stand before the loop (`ranges.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from ...errors import Error
from ...ir.control import CALL, COND, EMPTY, LOOPS, POP, PUSH, REPEAT, Branches, Called, Loop, part_types
from ...ir.names import source_name
from ...ir.node import Node, order
from ...ir.types import Type, bytes_of
from ...passes.bounds import GraphBounds
from ...passes.classify import lowering_of, root
from ...passes.loops import rounds
from ...passes.loops.rounds import words
from ..cxx import INDENT, at_offset, literal
from . import ranges
from .blocks import Block
from .body import Body
from .double_buffers import DoubleBuffers
from .memory import LocalVariable, Memory, Shared, Track, Value

LONG = 1 << 14
"""Rounds of a loop between two polls for an interrupt, where each has fewer operations than that."""
SHORT = 1 << 20
"""The most operations of a loop that never polls."""
UNIT = 256
"""How many operations a poll counts as one unit of work."""
LARGE = 300
"""The number of nodes from which on a body is not written twice, with and without bounds checks."""


def write(block: Block, node: Node) -> None:
    """Writes a node of control flow."""
    if node.operation is COND:
        _cond(block, node)
    elif node.operation is CALL:
        _call(block, node)
    else:
        _loop(block, node)


def _bind(block: Block, node: Node, index: int, value: Value) -> None:
    """Records where a result of a node of control flow is."""
    made = block.parts.get(node, {}).get(index)
    if isinstance(value, Memory):
        if made is not None:
            block.bind(made, value)
        else:
            value.until = max(value.until, block.now)
            block.live.append(value)
    elif made is not None:
        block.numbers[made] = value


def _input(block: Block, node: Node, reusable: dict[Node, Memory] | None = None) -> Value:
    """An argument of a node of control flow, as an input of its block; memory in `reusable` may be overwritten."""
    if not node.shape:
        return block.stack(node) if node.type.kind == "stack" else block.variable(node)
    if reusable and node in reusable:
        return Memory(reusable[node].pointer, True)
    return Memory(block.whole_pointer(node), False)


def _preferred(block: Block, node: Node, index: int) -> LocalVariable | None:
    made = block.parts.get(node, {}).get(index)
    return None if made is None else block.prefer.get(made)


# -- branches ----------------------------------------------------------------------------------------------------------


def _position(nodes: Sequence[Node], node: Node) -> int:
    return next(k for k, n in enumerate(nodes) if n is node)


def _cond(block: Block, node: Node) -> None:
    branches: Branches = node.attribute
    test, *outside = node.arguments
    types = part_types(node)
    reusable: dict[Node, Memory] = {}
    results: list[Value] = []
    for i, type in enumerate(types):
        if not type.shape:
            number = block.code.variable("c")
            if type.kind != "stack":
                block.code.line(f"{type.cxx} {number};")
            results.append(number)
            continue
        memory = None
        for graph in (branches.then, branches.otherwise):
            start = root(graph.outputs[i])
            if memory is None and start in set(graph.inputs) and start.type is type:
                given = outside[_position(graph.inputs, start)]
                found = block.dying(given)
                if found is not None and given not in reusable and sum(a is given for a in outside) == 1:
                    memory = reusable[given] = found
        results.append(memory or block.room(type, _preferred(block, node, i)))
    stacks: list[dict[int, LocalVariable]] = []
    written: list[list[str]] = []
    for inside in block.bounds.inside(node):
        with block.code.aside() as lines:
            block.code.depth += 1
            stacks.append(_branch(block, inside, [_input(block, a, reusable) for a in outside], results, types))
            block.code.depth -= 1
        written.append(lines)
    final = list(results)
    for i, type in enumerate(types):
        if type.kind != "stack":
            continue
        if stacks[0][i] is stacks[1][i]:
            final[i] = stacks[0][i]
            continue
        block.code.line(f"Stack {results[i]};")
        for lines, made in zip(written, stacks, strict=True):
            lines.append(INDENT * (block.code.depth + 1) + f"{results[i]} = {made[i]};")
    block.code.open(f"if ({block.number(test)})")
    block.code.lines += written[0]
    if written[1]:
        block.code.close("} else {")
        block.code.depth += 1
        block.code.lines += written[1]
    block.code.close()
    for i, value in enumerate(final):
        if isinstance(value, Memory) and any(value is m for m in reusable.values()):
            value.until = -1
        _bind(block, node, i, value)


def _branch(
    block: Block, bounds: GraphBounds, inputs: Sequence[Value], results: Sequence[Value], types: Sequence[Type]
) -> dict[int, LocalVariable]:
    """Writes one branch. Both branches leave their results in the same variables and memory. Returns the stacks of this
    one, by position."""
    prefer = {
        o: r.pointer
        for o, r in zip(bounds.graph.outputs, results, strict=True)
        if isinstance(r, Memory) and not o.is_variable
    }
    inner = block.inner(bounds, inputs, prefer)
    found = inner.run()
    stacks: dict[int, LocalVariable] = {}
    pending: list[tuple[Memory, Memory, Type]] = []
    for i, (value, result) in enumerate(zip(found, results, strict=True)):
        if isinstance(value, Memory) and isinstance(result, Memory):
            pending.append((value, result, types[i]))
        elif types[i].kind == "stack":
            assert isinstance(value, LocalVariable), "a stack is in no memory"
            stacks[i] = value
        else:
            block.code.line(f"{result} = {value};")
    inner.deliver([(value, result.pointer, type) for value, result, type in pending])
    inner.close()
    return stacks


# -- loops -------------------------------------------------------------------------------------------------------------


def _loop(block: Block, node: Node) -> None:
    loop: Loop = node.attribute
    code = block.code
    arguments = list(node.arguments)
    count = arguments.pop(0) if node.operation is REPEAT else None
    init, outside = arguments[: loop.states], arguments[loop.states :]
    types = part_types(node)
    memories: list[Memory | None] = []
    states: list[LocalVariable] = []
    own = loop.body.inputs[count is not None :]
    said = next((s for v in own[: loop.states] if (s := source_name(v.birth)) is not None and s.line), None)
    if said is not None:
        code.comes_from([said.line], "the loop of ")
    for i, (a, type) in enumerate(zip(init, types, strict=True)):
        memory = None
        if type.kind == "stack":
            states.append(block.stack(a))
        elif not type.shape:
            states.append(code.variable("x", own[i]))
            code.line(f"{type.cxx} {states[-1]} = {block.assigned(a)};")
        else:
            memory = block.dying(a) if sum(b is a for b in node.arguments) == 1 else None
            if memory is None:
                memory = block.room(type, _preferred(block, node, i))
                block.copy_elements(a, memory.pointer)
            states.append(code.variable("a", own[i]))
            code.line(f"{type.cxx}* {states[-1]} = {memory.pointer};")
        memories.append(memory)
    captured = [_input(block, a) for a in outside]
    length = None if count is None else block.variable(count)
    swaps = DoubleBuffers(block, states, types)
    inside = block.bounds.inside(node)

    def body(
        in_range: Collection[tuple[Node, int]],
        counter: LocalVariable | None,
        tracks: Mapping[Node, Track] | None = None,
    ) -> None:
        inputs: list[Value] = [] if counter is None else [counter]
        inputs += [Memory(s, True) if t.shape else s for s, t in zip(states, types, strict=True)]
        prefer = swaps.preferences(loop.body.outputs)
        inner = block.inner(inside[0], [*inputs, *captured], prefer, in_range, tracks, in_place=True)
        for v in loop.body.inputs[len(inputs) :]:  # each round starts from a captured stack as it was
            inner.uses[v] += 1
        swaps.next_states(inner, inner.run())
        inner.close()

    def around() -> None:
        if count is not None and length is not None:
            _repeat(block, node, states, captured, length, body)
        else:
            _while(block, node, states, types, captured, body)

    with code.aside() as lines:
        around()
    for text in swaps.declared():
        code.line(text)
    code.lines += lines
    moved = [m for i, m in enumerate(memories) if m is not None and i in swaps.moved]
    shared = Shared([*(p for m in moved for p in m.places), *swaps.places.values()], len(moved))
    if not moved:
        for place in swaps.places.values():
            block.arena.give(place)
    loose = any(m.loose or not m.places for m in moved)
    for i, (state, memory) in enumerate(zip(states, memories, strict=True)):
        if memory is None:
            _bind(block, node, i, state)
            continue
        if i in swaps.moved:  # which buffer it is in is known only at run time
            if memory.shared is not None:
                shared.within.append(memory.shared)
            memory.pointer, memory.places, memory.shared, memory.loose = state, [], shared, loose
        memory.until = -1
        _bind(block, node, i, memory)


def _while(
    block: Block,
    node: Node,
    states: list[LocalVariable],
    types: Sequence[Type],
    captured: list[Value],
    body: Callable[..., None],
) -> None:
    code = block.code
    inside, condition = block.bounds.inside(node)
    units = _units(inside, condition)
    poll = code.name("left") if units == 1 else ""
    if poll:
        code.line(f"int64_t {poll} = 64;")
    with code.block("for (;;)"):
        inputs: list[Value] = [Memory(s, False) if t.shape else s for s, t in zip(states, types, strict=True)]
        test = block.inner(condition, [*inputs, *captured])
        [found] = test.run()
        test.close()
        code.line(f"if (!{found}) break;")
        if poll:
            with code.block(f"if (--{poll} == 0)"):
                code.line(f"{poll} = 64;")
                code.line("if (call.stops(64)) return call.stopped();")
        else:
            code.line(f"if (call.stops({units})) return call.stopped();")
        body((), None)


def _repeat(
    block: Block,
    node: Node,
    states: list[LocalVariable],
    captured: list[Value],
    length: LocalVariable,
    body: Callable[..., None],
) -> None:
    code = block.code
    loop: Loop = node.attribute
    series = order(loop.body.outputs)
    inside = any(n.operation in LOOPS for n in series)
    [bounds] = block.bounds.inside(node)
    light = bounds.work < LONG and not inside
    light = light and not any(n.shape and lowering_of(n) != "leaf" and lowering_of(n) != "update" for n in series)
    tracks: dict[Node, tuple[LocalVariable, int]] = {}
    after: list[str] = []
    for steady, ask, sign in ((rounds.pushes, "room", 1), (rounds.pops, "has", -1)):
        for i, number in steady(loop, words).items():
            code.line(f"if (!{states[i]}.{ask}({number}, {length})) return call.saved();")
            track = code.variable("w")
            code.line(f"double* const {track} = {states[i]}.data + {states[i]}.top;")
            tracks[loop.body.inputs[1 + i]] = track, sign * number
            count = node.arguments[0]
            all_rounds = f"{number} * ({length} > 0 ? {length} : 0)"
            if count.is_constant:
                all_rounds = str(number * max(count.attribute, 0))
            after.append(f"{states[i]}.top {'+' if sign > 0 else '-'}= {all_rounds};")
    independent = light and rounds.independent(loop)
    most = block.bounds.most_rounds(node)
    short = most is not None and bounds.most_work is not None and most * bounds.most_work < SHORT
    units = 0 if short else _units(bounds)
    counter = code.variable("r")
    known = ranges.hoisted(loop, captured, str(counter), str(length), most, bounds)

    def rounds_of(counter: LocalVariable, in_range: Collection[tuple[Node, int]]) -> None:
        placed = {v: Track(start, step, counter) for v, (start, step) in tracks.items()}
        _rounds(code, counter, length, units, light, independent, lambda: body(in_range, counter, placed))

    if known.condition and not inside and len(series) < LARGE:
        with code.block(f"if ({known.condition})", "} else {"):
            rounds_of(counter, known.indices)
        code.depth += 1
        rounds_of(code.variable("r"), ())
        code.depth -= 1
        code.line("}")
    else:
        rounds_of(counter, ())
    for text in after:
        code.line(text)


def _rounds(
    code: Body,
    counter: LocalVariable,
    length: LocalVariable,
    units: int,
    light: bool,
    independent: bool,
    body: Callable[[], None],
) -> None:
    """Writes the loop around a body, which polls for interrupts after so many units of work in a round, or 0: never."""
    with code.aside(1 if not units or not light else 2) as lines:
        body()
    if not units:
        if independent:
            code.line("DYNAGRAD_INDEPENDENT")
        with code.block(f"for (int64_t {counter} = 0; {counter} < {length}; ++{counter})"):
            code.lines += lines
    elif light:
        end = code.name("end")
        with code.block(f"for (int64_t {counter} = 0; {counter} < {length};)"):
            code.line(f"const int64_t {end} = {length} - {counter} > {LONG} ? {counter} + {LONG} : {length};")
            if independent:
                code.line("DYNAGRAD_INDEPENDENT")
            with code.block(f"for (; {counter} < {end}; ++{counter})"):
                code.lines += lines
            code.line(f"if ({counter} < {length} && call.stops(64)) return call.stopped();")
    else:
        with code.block(f"for (int64_t {counter} = 0; {counter} < {length}; ++{counter})"):
            code.lines += lines
            code.line(f"if (call.stops({'' if units == 1 else units})) return call.stopped();")


def _units(*graphs: GraphBounds) -> int:
    """The units of work of a round, for polls."""
    return min(max(sum(g.work for g in graphs) // UNIT, 1), SHORT)


# -- calls -------------------------------------------------------------------------------------------------------------


def _call(block: Block, node: Node) -> None:
    called: Called = node.attribute
    code = block.code
    function = block.program.function(called.function)
    given = []
    for a in node.arguments:
        variable = block.stack if a.type.kind == "stack" else block.variable
        given.append(block.whole_pointer(a) if a.shape else variable(a))
    results: list[Value] = []
    for i, type in enumerate(part_types(node)):
        if type.shape:
            memory = block.room(type, _preferred(block, node, i))
            results.append(memory)
            given.append(memory.pointer)
            continue
        number = code.variable("c")
        code.line(f"Stack {number};" if type.kind == "stack" else f"{type.cxx} {number};")
        results.append(number)
        given.append(number)
    status = code.name("status")
    arguments = ", ".join(["call", *map(str, given)])
    code.line(f"if (const int64_t {status} = {function}({arguments}); {status} != kDone) return {status};")
    for i, value in enumerate(results):
        _bind(block, node, i, value)


# -- stacks ------------------------------------------------------------------------------------------------------------


def stack(block: Block, node: Node) -> None:
    """Writes a new stack, a push or a pop."""
    code = block.code
    if node.operation is EMPTY:
        name = code.variable("stack")
        code.line(f"Stack {name}({at_offset('slots', code.slots)});")
        code.slots += 1
        block.numbers[node] = name
        return
    name = block.stack(node.arguments[0])
    if any(t.kind == "stack" for t in _items(node)):
        raise Error("native code can push numbers and arrays on a stack, but no stacks")
    total = sum(map(words, _items(node)))
    track = block.tracks.get(node.arguments[0])
    first = 0 if track is None else track.offset if node.operation is PUSH else track.offset - total

    def place(at: int) -> str:
        return at_offset(f"{name}.data + {name}.top", at) if track is None else _tracked(track, first + at)

    if node.operation is PUSH:
        if track is None:
            code.line(f"if (!{name}.room({total})) return call.saved();")
        at = 0
        for item in node.arguments[1:]:
            if not item.shape:
                cast = f"{item.type.cxx}({literal(item.attribute)})" if item.is_constant else block.number(item)
                code.line(f"put({place(at)}, {cast});")
            elif item.type.size:
                code.line(f"memcpy({place(at)}, {block.whole_pointer(item)}, {bytes_of(item.type)});")
            at += words(item.type)
        if track is None:
            code.line(f"{name}.top += {total};")
        else:
            block.tracks[node] = replace(track, offset=track.offset + total)
        block.numbers[node] = name
        return
    parts = block.parts.get(node, {})
    if track is None:
        code.line(f"if (!{name}.has({total})) return call.saved();")
        code.line(f"{name}.top -= {total};")
    if 0 in parts:
        block.numbers[parts[0]] = name
        if track is not None:
            block.tracks[parts[0]] = replace(track, offset=first)
    at = 0
    for i, type in enumerate(node.attribute, start=1):
        popped = parts.get(i)
        if popped is not None:
            if not type.shape:
                block.numbers[popped] = code.variable("t")
                code.line(f"{type.cxx} {block.numbers[popped]};")
                code.line(f"get({place(at)}, {block.numbers[popped]});")
            elif type.size:
                block.copy(block.fresh(popped).pointer, LocalVariable(place(at)), type)
        at += words(type)


def _tracked(track: Track, offset: int) -> str:
    at = f"{track.step} * {track.counter}"
    return f"{track.start} + ({at} {'-' if offset < 0 else '+'} {abs(offset)})" if offset else f"{track.start} + {at}"


def _items(node: Node) -> list[Type]:
    return list(node.attribute) if node.operation is POP else [a.type for a in node.arguments[1:]]
