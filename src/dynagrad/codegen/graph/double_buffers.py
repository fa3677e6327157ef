"""Double buffers of the states of a loop: one that is not updated in place has two arrays, which swap in each round."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.node import Node
from ...ir.types import Type, bytes_of
from ..cxx import at_offset
from .blocks import Block
from .memory import LocalVariable, Memory, Value


class DoubleBuffers:
    """Double buffers of states: where the state of the next round may be made, `STATE_next`, if not in place.

    The variables that were used are declared before the loop, by `declared`.
    """

    def __init__(self, block: Block, states: Sequence[LocalVariable], types: Sequence[Type]) -> None:
        self.block = block
        self.states, self.types = states, types
        self.next = {i: LocalVariable(f"{s}_next") for i, s in enumerate(states) if types[i].shape and types[i].size}
        self.places: dict[int, tuple[int, int]] = {}  # offsets of those that are used
        self.moved: set[int] = set()

    def preferences(self, outputs: Sequence[Node]) -> dict[Node, LocalVariable]:
        """Where outputs of a round should be made, if not in place."""
        return {outputs[i]: buffer for i, buffer in self.next.items() if not outputs[i].is_variable}

    def declared(self) -> list[str]:
        """The declarations of the buffers that are used."""
        types = {i: self.types[i].cxx for i in self.places}
        return [
            f"{types[i]}* {self.next[i]} = reinterpret_cast<{types[i]}*>({at_offset('frame', begin)});"
            for i, (begin, _) in sorted(self.places.items())
        ]

    def next_states(self, inner: Block, found: Sequence[Value]) -> None:
        """Writes the end of a round: assigns the new states."""
        code, states, types = self.block.code, self.states, self.types
        buffers = self._delivered(
            inner, {i: m for i, m in enumerate(found) if isinstance(m, Memory) and i in self.next}
        )
        moving = {i: buffer for i, buffer in buffers.items() if buffer is not states[i]}
        for i, buffer in self.next.items():
            if i not in self.places and (buffer in inner.used or buffer in moving.values()):
                # A state may be in it throughout a round, so its offset is not shared with anything in the round.
                self.places[i] = self.block.arena.take_fresh(bytes_of(types[i]))
        numbers = {i: v for i, v in enumerate(found) if not isinstance(v, Memory) and v is not states[i]}
        values: dict[int, LocalVariable] = {}
        for i, number in numbers.items():
            values[i] = number
            if number in states:
                values[i] = code.variable("n")
                code.line(f"const {types[i].cxx if types[i].kind != 'stack' else 'Stack'} {values[i]} = {number};")
        for i, buffer in moving.items():
            values[i] = code.variable("n")
            code.line(f"{types[i].cxx}* const {values[i]} = {buffer};")
        # the buffer of a state that moves away becomes the next buffer of the one that moved
        filled = {k: buffer for k, buffer in self.next.items() if buffer in moving.values()}
        for i in moving:
            if states[i] not in moving.values():
                to = next(k for k in filled if bytes_of(types[k]) == bytes_of(types[i]))
                code.line(f"{filled.pop(to)} = reinterpret_cast<{types[to].cxx}*>({states[i]});")
        for i, value in values.items():
            code.line(f"{states[i]} = {value};")
        self.moved |= set(moving)

    def _delivered(self, inner: Block, memories: dict[int, Memory]) -> dict[int, LocalVariable]:
        """The buffers that new states are in: each in another one, of a state or a next one; copied where need be."""
        types = self.types
        own = {s: i for i, s in enumerate(self.states)}
        buffers: dict[int, LocalVariable] = {}
        for i, memory in memories.items():
            to = own.get(memory.pointer, i)
            if (
                memory.pointer in (*own, *self.next.values())
                and memory.pointer not in buffers.values()
                and types[to] is types[i]
            ):
                buffers[i] = memory.pointer
        rest = [i for i in memories if i not in buffers]
        for i in sorted(rest, key=lambda i: self.next[i] in buffers.values()):  # first those whose own buffer is free
            free = [k for k in (i, *self.next) if types[k] is types[i] and self.next[k] not in buffers.values()]
            buffers[i] = self.next[free[0]]
        inner.deliver([(memories[i], buffers[i], types[i]) for i in rest])
        return buffers
