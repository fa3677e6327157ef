"""Double buffers of the states of a loop: one that is not updated in place has two arrays, which swap in each round."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.node import Node
from ...ir.types import Type, bytes_of
from .blocks import Block
from .memory import Memory, Value


class DoubleBuffers:
    """Double buffers of states: where the state of the next round may be made, `STATE_next`, if not in place.

    The variables that were used are declared before the loop, by `declared`.
    """

    def __init__(self, block: Block, states: Sequence[str], types: Sequence[Type]) -> None:
        self.block = block
        self.states, self.types = states, types
        self.next = {i: f"{s}_next" for i, s in enumerate(states) if types[i].shape and types[i].size}
        self.places: dict[int, tuple[int, int]] = {}  # offsets of those that are used
        self.moved: set[int] = set()

    def preferences(self, outputs: Sequence[Node]) -> dict[Node, str]:
        """Where outputs of a round should be made, if not in place."""
        return {outputs[i]: text for i, text in self.next.items() if not outputs[i].is_variable}

    def declared(self) -> list[str]:
        """The declarations of the buffers that are used."""
        types = {i: self.types[i].cxx for i in self.places}
        return [
            f"{types[i]}* {self.next[i]} = reinterpret_cast<{types[i]}*>(frame + {begin});"
            for i, (begin, _) in sorted(self.places.items())
        ]

    def next_states(self, inner: Block, found: Sequence[Value]) -> None:
        """Writes the end of a round: assigns the new states."""
        code, states, types = self.block.code, self.states, self.types
        own = {s: i for i, s in enumerate(states)}
        texts = self._delivered(inner, {i: m for i, m in enumerate(found) if isinstance(m, Memory) and i in self.next})
        moving = {i: text for i, text in texts.items() if text != states[i]}
        for i, text in self.next.items():
            if i not in self.places and (text in inner.used or text in moving.values()):
                # A state may be in it throughout a round, so its offset is not shared with anything in the round.
                self.places[i] = self.block.arena.take_fresh(bytes_of(types[i]))
        numbers = {i: str(v) for i, v in enumerate(found) if not isinstance(v, Memory) and str(v) != states[i]}
        values: dict[int, str] = {}
        for i, text in numbers.items():
            if text in own:
                values[i] = code.name("n")
                code.line(f"const {types[i].cxx if types[i].kind != 'stack' else 'Stack'} {values[i]} = {text};")
            else:
                values[i] = text
        for i, text in moving.items():
            values[i] = code.name("n")
            code.line(f"{types[i].cxx}* const {values[i]} = {text};")
        # the buffer of a state that moves away becomes the next buffer of the one that moved
        filled = {k: text for k, text in self.next.items() if text in moving.values()}
        for i in moving:
            if states[i] not in moving.values():
                to = next(k for k in filled if bytes_of(types[k]) == bytes_of(types[i]))
                code.line(f"{filled.pop(to)} = reinterpret_cast<{types[to].cxx}*>({states[i]});")
        for i, text in values.items():
            code.line(f"{states[i]} = {text};")
        self.moved |= set(moving)

    def _delivered(self, inner: Block, memories: dict[int, Memory]) -> dict[int, str]:
        """The buffers that new states are in: each in another one, of a state or a next one; copied where need be."""
        types = self.types
        own = {s: i for i, s in enumerate(self.states)}
        texts: dict[int, str] = {}
        for i, memory in memories.items():
            to = own.get(memory.text, i)
            if (
                memory.text in (*own, *self.next.values())
                and memory.text not in texts.values()
                and types[to] is types[i]
            ):
                texts[i] = memory.text
        rest = [i for i in memories if i not in texts]
        for i in sorted(rest, key=lambda i: self.next[i] in texts.values()):  # first those whose own buffer is free
            free = [k for k in (i, *self.next) if types[k] is types[i] and self.next[k] not in texts.values()]
            texts[i] = self.next[free[0]]
        inner.deliver([(memories[i], texts[i], types[i]) for i in rest])
        return texts
