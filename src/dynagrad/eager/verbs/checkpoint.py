"""Checkpointed loops: binomial checkpointing of loops whose tape would be too large.

The loop runs with its pass paused and keeps a few states (snapshots). On the tape it is one entry. When the sweep
reaches it, steps are processed from the last to the first in strides, each as many steps as make a small tape: the
state before a stride is recomputed from the nearest snapshot, its steps are recorded, swept and dropped. The schedule
is that of revolve: c snapshots and r recomputations are enough for binomial(c + r, c) strides (Griewank and Walther
2000, "Algorithm 799: revolve").

In compiled functions, `autodiff/rematerialisation.py` does the same to a loop of the graph.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import math
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ...arguments import whole_number
from ...calls import strict_options
from ...collector import collecting_later
from ...errors import Error, shown
from ...ir.ops.arrays import shape_of
from ...ir.ops.ravelling import ravel, unravel
from ..closures import Entry
from ..copies import kept
from ..kinds import fresh, plain, real_part
from ..numbers import Number, Tape, TapeCell
from ..perturbations import inside, located, opened, sealed
from ..pytree import leaves, transform
from ..sweep import plus, sweep
from ..tape import Recorded

Step = Callable[[Any], Any]
Piece = tuple[int, int, int, Any]  # (a, b, snapshots, state): strides a to b, the snapshots for them, the state at a

SNAPSHOTS = 64  # the default where the number of steps is not known
ROOM = 4096  # the size of the tape of one stride, in entries with few numbers


@strict_options
def checkpoint(step: Step, state: Any, n: int | None = None, *, snapshots: int | None = None) -> Any:
    """`step` applied n times to `state`, with a reverse pass that keeps few states instead of a tape of all steps.

    Without n, the loop goes on until `step` returns None; then `state` is the result. A state is any structure of reals
    and constants; it cannot have functions, but `step` may close over functions and over numbers, which get their
    gradients too. At most `snapshots` states are kept at a time: by default 4 log2(n), with which each step is computed
    a few times more, or 64 without n (Griewank and Walther 2000; where n is not known, every k-th state is kept, with k
    doubled when they are too many, and half of the snapshots are left for the backward pass). The tape holds one step
    at a time, or as many as have a few thousand entries.

    `step` must be deterministic. In a reverse pass it is called more often than n times, so it may not write to arrays
    from outside, those of the state included; that raises Error. To change an array, make it part of the state and
    return a changed copy. Derivatives go through the result only: a number that a step stores elsewhere, such as in a
    list outside, raises Error, too.

    Only the youngest open reverse pass is checkpointed; enclosing ones record the steps as usual, and so does this one
    where a forward pass was begun inside of it. In a forward pass, or in none, this is a plain loop. Compiled functions
    keep some dozens of states, whatever `snapshots` is.

    >>> from dynagrad.eager.verbs.gradients import grad
    >>> grad(lambda x: checkpoint(lambda s: s * x, 1.0, 5))(2.0)  # of x**5
    80.0
    """
    with located():
        return _run(step, state, n, snapshots)


def _run(step: Step, state: Any, n: int | None, snapshots: int | None) -> Any:
    if not callable(step):
        raise Error(f"checkpoint: the step should be a function, and is {shown(step)}")
    if n is not None:
        n = whole_number("checkpoint: n, where it is not None,", n, 0)
    most = _default(n) if snapshots is None else whole_number("checkpoint: snapshots", snapshots, 1)
    state = _checked(state)
    tape = _recording()
    if tape is None:
        for _ in itertools.count() if n is None else range(n):
            new = step(state)
            if new is None and n is None:
                break
            state = _checked(new)
        return state
    with sealed(fresh()):
        return _Loop(step, tape, state, most).run(n)


def _default(n: int | None) -> int:
    return SNAPSHOTS if n is None else max(8, 4 * n.bit_length())


def _recording() -> Tape | None:
    """The tape of the youngest reverse pass of this thread; None if it is paused or has a younger forward pass."""
    passes = inside()
    for i in reversed(range(len(passes))):
        tape = passes[i]
        if isinstance(tape, Tape):
            younger = any(tag > tape.tag for tag in passes[i + 1 :])
            return None if younger or (tape.paused and tape.is_paused()) else tape
    return None


def _checked(state: Any, real: Callable[[Any], Any] = plain) -> Any:
    """A state that a step returned, with `real` applied to its reals; raises Error where it is no state."""
    if state is None:
        raise Error(
            "checkpoint: the step returned None, which ends a loop without n; with n, it returns the next state"
        )
    return transform(state, real, _refuse)


def _refuse(f: Any) -> Any:
    raise Error("checkpoint: the state has a function in it; let the step close over it instead")


# -- the schedule ------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1 << 16)
def split(n: int, c: int) -> int:
    """After how many of n strides to take the next of c snapshots, for the fewest steps in all; n and c are 2 or more.

    >>> split(10, 3)
    4
    """
    r = 1
    while _reach(c, r) < n:
        r += 1
    return max(1, _reach(c, r - 2), n - _reach(c - 1, r))


def _reach(c: int, r: int) -> int:
    """The number of strides that c snapshots and r recomputations are enough for."""
    return math.comb(c + r, c) if r >= 0 else 0


# -- the loop ----------------------------------------------------------------------------------------------------------


class _Loop:
    """One call of `checkpoint` in a reverse pass."""

    def __init__(self, step: Step, tape: Tape, state: Any, most: int) -> None:
        self.step, self.tape, self.most = step, tape, most
        self.inputs = [_number(tape, x) for x in leaves(state)]
        self.used: set[int] = set()  # cells that the steps close over
        self.state = _snapshot(transform(state, lambda x: x if _number(tape, x) is None else x.primal))
        self.stride = 1  # the steps of a stride
        self.steps = 0
        self.result: list[Any] = []

    def run(self, n: int | None) -> Any:
        if n != 0:
            self._measure()
        with self.tape.pause(self.used):
            pieces, final = self._run_until_none() if n is None else self._run_counted(n)
        self.result = list(leaves(final))
        used = self.used.union(number for number in self.inputs if number is not None)
        if not used or not self.result:
            return final
        entry = Entry(lambda delta: self._pull(pieces, delta), list(used))
        numbers = iter(unravel(self.tape.cell(ravel(self.result), entry), list(map(shape_of, self.result))))
        return transform(final, lambda _: next(numbers))

    def _measure(self) -> None:
        """Chooses the stride, by recording the first step and dropping its entries; checks for side effects."""
        tape = self.tape
        before = len(tape.entries)
        outside = list(_captured(self.step))
        seen = list(map(_checksum, outside))
        self.step(transform(self.state, self._cell))
        if list(map(_checksum, outside)) != seen:
            raise Error(
                "checkpoint: the step writes to an array from outside, and the reverse pass would do so again whenever "
                "it recomputes a step; make the array part of the state, and return a changed copy"
            )
        small = self._forgotten(before)
        if any(_number(tape, x) in small for x in _kept_by(self.step) if isinstance(x, Number)):
            raise Error(
                "checkpoint: the step stores a number outside, such as in a list, a dict or a variable of the function "
                "around it; the reverse pass recomputes the steps, and numbers stored there have no derivatives: make "
                "them part of the state, and return it"
            )
        self.stride = max(1, ROOM // max(1, _weight(small.values())))

    def _cell(self, x: Any) -> Any:
        return self.tape.cell(kept(x))

    def _forgotten(self, before: int) -> dict[int, Any]:
        """Removes and returns all entries of the tape but the first `before`."""
        entries = self.tape.entries
        return {n: entries.pop(n) for n in list(itertools.islice(reversed(entries), len(entries) - before))}

    def _run_counted(self, n: int) -> tuple[list[Piece], Any]:
        self.steps, strides = n, -(-n // self.stride)
        pieces, last = self._keeping((0, strides, self.most, self.state))
        return [*pieces, last] if n else [], self._advanced(last[3], last[0], strides)

    def _run_until_none(self) -> tuple[list[Piece], Any]:
        """The forward pass where n is not known: a state every k strides, with k doubled when they are too many."""
        room, every = max(1, self.most // 2), 1
        marks, state = [self.state], _copied(self.state)
        while (new := self.step(state)) is not None:
            state = _checked(new, self._stripped)
            self.steps += 1
            if self.steps % (every * self.stride) == 0:
                marks.append(_snapshot(state))
                if len(marks) > room:
                    marks, every = marks[::2], 2 * every
        strides = -(-self.steps // self.stride)
        ends = [min(strides, (i + 1) * every) for i in range(len(marks))]
        pieces = [(i * every, end, self.most - i, mark) for i, (end, mark) in enumerate(zip(ends, marks, strict=True))]
        return [piece for piece in pieces if piece[1] > piece[0]], state

    # -- forward, with the pass paused

    def _keeping(self, piece: Piece) -> tuple[list[Piece], Piece]:
        """Splits a piece by taking snapshots; the last part has one stride, or no snapshots left."""
        a, b, slots, state = piece
        pieces = []
        while b - a > 1 and slots > 1:
            middle = a + split(b - a, slots)
            pieces.append((a, middle, slots, state))
            a, slots, state = middle, slots - 1, _snapshot(self._advanced(state, a, middle))
        return pieces, (a, b, slots, state)

    def _advanced(self, state: Any, a: int, b: int) -> Any:
        state = _copied(state)
        for _ in range(self._count(a, b)):
            state = _checked(self._recomputed(state), self._stripped)
        return state

    def _recomputed(self, state: Any) -> Any:
        """Recomputes a step."""
        try:
            return self.step(state)
        except StopIteration:
            raise Error(_ANOTHER) from None

    def _count(self, a: int, b: int) -> int:
        """The number of steps from one stride to another."""
        return min(b * self.stride, self.steps) - a * self.stride

    def _stripped(self, x: Any) -> Any:
        """The primal of a cell of this pass, which a step may return from its closure; it is noted as used."""
        if type(x) is float:
            return x
        number = _number(self.tape, x)
        if number is None:
            return plain(x)
        self.used.add(number)
        return x.primal

    # -- backward

    def _pull(self, pieces: list[Piece], delta: Any) -> Iterable[tuple[int, Any]]:
        """The backward pass of the loop: the increments of all cells that it used."""
        tape = self.tape
        total: dict[int, Any] = {}

        def count(number: int | None, increment: Any) -> None:
            if number is not None and increment is not None:
                total[number] = plus(total[number], increment) if number in total else increment

        deltas: list[Any] = unravel(delta, list(map(shape_of, self.result)))
        stack, last = list(pieces), pieces[-1][1] if pieces else 0
        with opened(tape.tag, tape=tape), tape.pause(None), sealed(fresh()), collecting_later():
            while stack:
                with tape.pause(self.used):
                    more, (a, b, slots, state) = self._keeping(stack.pop())
                    stack += more
                    if b - a > 1:
                        stack.append((a, b - 1, slots, state))
                        a, state = b - 1, self._advanced(state, a, b - 1)
                deltas, captured = self._swept(state, self._count(a, b), deltas, self.result if b == last else None)
                for number, increment in captured.items():
                    count(number, increment)
        for place, increment in zip(self.inputs, deltas, strict=True):
            count(place, increment)
        return list(total.items())

    def _swept(
        self, state: Any, steps: int, deltas: list[Any], expected: list[Any] | None
    ) -> tuple[list[Any], dict[int, Any]]:
        """Records and sweeps one stride: the adjoints of the state before it, and of the cells that its steps use."""
        tape = self.tape
        before = len(tape.entries)
        state = transform(state, self._cell)
        inputs = [leaf.number for leaf in leaves(state)]
        for _ in range(steps):
            state = _checked(self._recomputed(state))
        results = list(leaves(state))
        _check_same(results, deltas, expected)
        seed: dict[int, Any] = {}
        for leaf, delta in zip(results, deltas, strict=True):
            number = _number(tape, leaf)
            if number is not None and delta is not None:
                seed[number] = plus(seed[number], delta) if number in seed else delta
        piece = copy.copy(tape)  # a tape of these steps alone, with the cells they use as inputs
        piece.entries = {**dict.fromkeys(self.used), **self._forgotten(before)}
        adjoints = sweep(piece, seed, {*self.used, *inputs}, free=True)
        return [adjoints.get(number) for number in inputs], {n: adjoints[n] for n in self.used if n in adjoints}


def _weight(entries: Iterable[Any]) -> int:
    """The size of entries, in entries with few numbers: large arrays count more, and shared ones once."""
    entries = list(entries)
    arrays = {id(x): x for entry in entries for x in _held(entry) if isinstance(x, np.ndarray)}
    return len(entries) + sum(x.size for x in arrays.values()) // 16


def _held(entry: Any) -> Iterable[Any]:
    """The residuals of an entry."""
    if isinstance(entry, Recorded):
        return map(real_part, (entry.result, *entry.arguments))
    return map(real_part, entry[1::2]) if isinstance(entry, tuple) else ()


def _captured(f: Any, level: int = 0) -> Iterator[np.ndarray]:
    """The plain arrays that a function closes over, directly or through functions that it closes over."""
    for cell in getattr(f, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty cell
            x = cell.cell_contents
            if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
                yield x
            elif callable(x) and level < _LEVELS:
                yield from _captured(x, level + 1)


_LEVELS = 3


def _kept_by(f: Any, level: int = 0) -> Iterator[Any]:
    """What a function closes over, with the contents of containers and objects there, down to a few levels."""
    for cell in getattr(f, "__closure__", None) or ():
        with contextlib.suppress(ValueError):
            x = cell.cell_contents
            if getattr(x, "__closure__", None) is not None:
                if level < _LEVELS:
                    yield from _kept_by(x, level + 1)
            else:
                yield from _inside(x, 0)


def _inside(x: Any, level: int) -> Iterator[Any]:
    if isinstance(x, Number):
        yield x.settled()
    elif level < _LEVELS:
        for part in _contents(x):
            if type(part) not in (float, int, str):
                yield from _inside(part, level + 1)


def _contents(x: Any) -> Iterable[Any]:
    """The elements of a container, or the attributes of an object that is not built in."""
    if isinstance(x, list | tuple | set | deque):
        return x
    if isinstance(x, dict):
        return x.values()
    mine = not isinstance(x, type) and type(x).__module__ != "builtins" and hasattr(x, "__dict__")
    return list(vars(x).values()) if mine else ()


def _checksum(x: np.ndarray) -> int:
    """A checksum, to detect writes to an array without a copy of it."""
    return zlib.crc32(np.ascontiguousarray(x).data)


def _number(tape: Tape, x: Any) -> int | None:
    return x.number if isinstance(x, TapeCell) and x.tape is tape else None


def _snapshot(state: Any) -> Any:
    return transform(state, kept)


def _copied(state: Any) -> Any:
    """A state with new containers, which a step may change."""
    return transform(state, lambda x: x)


def _check_same(results: list[Any], deltas: list[Any], expected: list[Any] | None) -> None:
    """Raises Error where a recomputed step has another result."""
    same = len(results) == len(deltas)
    if same and expected is not None:
        same = all(
            np.shape(real_part(x)) == np.shape(real_part(y))
            and np.allclose(real_part(x), real_part(y), rtol=1e-6, atol=0.0, equal_nan=True)
            for x, y in zip(results, expected, strict=True)
        )
    if not same:
        raise Error(_ANOTHER)


_ANOTHER = (
    "checkpoint: the step had another result when it was recomputed; it must depend on nothing that changes between "
    "its calls, such as random numbers, a counter or an iterator: make these part of the state"
)
