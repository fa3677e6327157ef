"""Places in the frame of a function against a frame that is searched byte by byte; when memory is free again."""

from __future__ import annotations

import random

from dynagrad.native.graphs.memory import Arena, Live, Memory

LINE = 64


class Bytes:
    """A frame that knows of each line whether it is taken."""

    def __init__(self) -> None:
        self.taken: list[bool] = []

    def take(self, size: int) -> tuple[int, int]:
        lines = max(-(-size // LINE), 1)
        start = 0
        while any(self.taken[start : start + lines]):
            start += 1
        return self.at(start, lines)

    def take_apart(self, size: int) -> tuple[int, int]:
        return self.at(len(self.taken), -(-size // LINE))

    def at(self, start: int, lines: int) -> tuple[int, int]:
        self.taken += [False] * (start + lines - len(self.taken))
        self.taken[start : start + lines] = [True] * lines
        return start * LINE, (start + lines) * LINE

    def give(self, place: tuple[int, int]) -> None:
        for line in range(place[0] // LINE, place[1] // LINE):
            self.taken[line] = False


def test_the_first_gap_that_is_wide_enough_is_taken() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        arena, frame = Arena(), Bytes()
        held: list[tuple[int, int]] = []
        for _ in range(200):
            if held and rng.random() < 0.5:
                place = held.pop(rng.randrange(len(held)))
                arena.give(place)
                frame.give(place)
            elif rng.random() < 0.9:
                size = rng.randrange(0, 400)
                held.append(frame.take(size))
                assert arena.take(size) == held[-1]
            else:
                size = rng.randrange(1, 400)
                held.append(frame.take_apart(size))
                assert arena.take_apart(size) == held[-1]
            assert arena.most == len(frame.taken) * LINE


def test_memory_ends_with_the_last_step_that_looks_at_it() -> None:
    """A last step may move to later, and to earlier if that is said."""
    for seed in range(30):
        rng = random.Random(seed)
        live = Live()
        known: list[Memory] = []  # in use
        for now in range(60):
            for _ in range(rng.randrange(3)):
                known.append(Memory("m", True, until=now + rng.randrange(10)))
                live.append(known[-1])
            for memory in known:
                if rng.random() < 0.2:
                    memory.until += rng.randrange(10)
                elif rng.random() < 0.1:
                    memory.until = -1
                    live.append(memory)
            gone = live.ended(now)
            assert len(gone) == len(set(gone))
            assert set(gone) == {m for m in known if m.until <= now}
            known = [m for m in known if m.until > now]
