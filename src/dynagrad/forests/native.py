"""The algorithms on a packed forest, which are native: `dynagrad/forest/forest.hpp`, compiled once on a machine.

Here are ctypes and arrays alone: what users ask is put to a `Walk` by `ranking/` and `sums/`, which also do what is
done in Python.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import Error, NotConverged, RoomError
from ..forks import renewed
from ..runtime.compiling.cache import build
from ..runtime.library import Stop, host, load
from ..runtime.shared import SHARED, numbers
from .time_limit import late

Doubles = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]

_SOURCE = "#include <dynagrad/forest/forest.hpp>\n"
_END = numbers("WalkEnd")
NO_INSTANCE = SHARED.constant("kNoInstance")


ForestView = SHARED.structure("ForestView")
"""A forest as native code sees it."""

ForestOrder = SHARED.structure("ForestOrder")
"""The components of a forest."""

RankedDerivation = SHARED.structure("RankedDerivation")
"""One of the best derivations."""

DrawArrays = SHARED.structure("DrawArrays")
"""Where draws are."""


class Held(NamedTuple):
    """The arrays that a view points to, by the names of its fields."""

    begin: Numbers
    end: Numbers
    rule: npt.NDArray[np.int32]
    first: Numbers
    antecedent: npt.NDArray[np.int32]
    constant: Doubles
    given: Doubles


@functools.cache
def _library() -> dict[str, Callable[..., Any]]:
    library = load(build(_SOURCE))
    names = [name for name in SHARED.names("function") if name.startswith("dg_walk_")]
    return {name.removeprefix("dg_walk_"): library.shared(name) for name in names}


class Walk:
    """A forest at work: the order of its components, and what was worked out of it so far.

    Several threads may use one: all but draws take turns.
    """

    def __init__(self, kind: int, root: int, arrays: Held, rank: Callable[[], Longs]) -> None:
        """`rank` gives the order of nodes in ties, where that is asked for."""
        self._call = _library()
        self.held, self._rank = arrays, rank
        self.rank: Longs | None = None
        self.view = view = ForestView(
            nodes=len(arrays.begin),
            instances=len(arrays.rule),
            antecedents=len(arrays.antecedent),
            kind=kind,
            root=root,
            rules=len(arrays.constant),
            givens=len(arrays.given),
            **{name: _address(array) for name, array in arrays._asdict().items()},
        )
        self.summed = False  # whether its sums are there
        self._ranked = False  # whether the best derivations are there
        self._unbounded: int | None = None
        self.lock = renewed(threading.RLock())
        pointer = self._call["new"]()
        if pointer is None:
            raise _no_memory()
        self.pointer: int = pointer
        weakref.finalize(self, self._call["free"], pointer).atexit = False
        self._call["open"](self.pointer, ctypes.addressof(view))

    def _work(self, name: str, *arguments: Any, stop: Stop | None) -> int:
        address, left = (None, -1) if stop is None else (stop.address, stop.nanoseconds)
        # several threads may draw at once
        with contextlib.nullcontext() if name == "sample" else self.lock:
            how = int(self._call[name](self.pointer, *arguments, host(), address, left))
        if how == _END.NO_ROOM:
            raise _no_memory()
        if how == _END.HALTED and stop is not None and not stop.raised:
            raise late()
        if how == _END.HALTED:
            raise KeyboardInterrupt
        return how

    @property
    def bytes(self) -> int:
        """The memory that the algorithms took."""
        return int(self._call["bytes"](self.pointer))

    def order(self, stop: Stop | None = None) -> tuple[Numbers, Numbers, npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
        """The nodes that the root reaches, by component, antecedents first; where components begin; which are cyclic;
        and the component of each node, -1 where it is not reached.
        """
        self._work("arrange", stop=stop)
        found = ForestOrder()
        self._call["order"](self.pointer, ctypes.addressof(found))
        return (
            self._array(found.nodes, found.reached, np.uint32),
            self._array(found.begin, found.count + 1, np.uint32),
            self._array(found.cyclic, found.count, np.uint8),
            self._array(found.component, int(self.view.nodes), np.int32),
        )

    def _array(self, address: int | None, count: int, kind: Any) -> npt.NDArray[Any]:
        if not count or address is None:
            return np.zeros(0, kind)
        buffer = (ctypes.c_char * (count * np.dtype(kind).itemsize)).from_address(address)
        buffer.owner = self  # arrays keep the buffer, and that keeps the walk
        return np.frombuffer(buffer, kind)

    # -- ranking

    def best(self, stop: Stop | None = None, *, anew: bool = False) -> int | None:
        """Finds the best derivation of every node; a node that has none, because they get better without end.

        It is found once, unless `anew` says that weights have changed.
        """
        with self.lock:
            if self.rank is None:
                self.rank = np.ascontiguousarray(self._rank(), np.int64)
            if anew or not self._ranked:
                self._ranked = False
                bounded = not self._work("best", _address(self.rank), stop=stop)
                self._unbounded = None if bounded else int(self._call["unbounded"](self.pointer))
                self._ranked = True
            return self._unbounded

    def derivable(self) -> tuple[float, int] | None:
        """m and e of the weight of the best derivation of the root, after `best`; None where all are zero."""
        m, e = ctypes.c_double(), ctypes.c_int64()
        found = self._call["derivable"](self.pointer, ctypes.addressof(m), ctypes.addressof(e))
        return (m.value, e.value) if found else None

    def derived(self) -> npt.NDArray[np.bool_]:
        """Which nodes have a derivation that is not zero, after `best`."""
        place = ctypes.c_void_p()
        with self.lock:
            count = int(self._call["chosen"](self.pointer, ctypes.addressof(place)))
            found: npt.NDArray[np.bool_] = self._array(place.value, count, np.uint32) != NO_INSTANCE
        return found

    def need(self, n: int, stop: Stop | None = None) -> bool:
        """Whether the root has derivation n, from 0, that is not zero."""
        return not self._work("need", n, stop=stop)

    def derivation(self, n: int, most: int, stop: Stop | None = None) -> tuple[Numbers, float, int, int] | None:
        """The instances of derivation n, m and e of its weight, and its size; None where it has more than `most`."""
        found = RankedDerivation()
        with self.lock:  # until the instances are copied
            if self._work("derivation", n, most, ctypes.addressof(found), stop=stop):
                return None
            instances = self._array(found.instances, found.count, np.uint32).copy()
        return instances, found.m, found.e, found.size

    # -- sums

    def sums(self, stop: Stop | None = None, *, anew: bool) -> int | None:
        """Sums up the weights of derivations, up to a cyclic component, which it returns; `anew` starts over."""
        return int(self._call["next"](self.pointer)) if self._work("sums", int(anew), stop=stop) else None

    def know(self, m: Doubles, e: Longs) -> None:
        """The sums of all nodes, worked out elsewhere."""
        m, e = np.ascontiguousarray(m, np.float64), np.ascontiguousarray(e, np.int64)
        self._work("known", _address(m), _address(e), stop=None)

    def totals(self) -> tuple[Doubles, Longs]:
        """The sums of all nodes: m and e of each."""
        m, e = np.zeros(int(self.view.nodes)), np.zeros(int(self.view.nodes), np.int64)
        self._call["totals"](self.pointer, m.__array_interface__["data"][0], e.__array_interface__["data"][0])
        return m, e

    def settle(self, nodes: Numbers, m: Doubles, e: Longs) -> None:
        """Gives the nodes of the component at hand their sums."""
        held: list[npt.NDArray[Any]] = [np.ascontiguousarray(nodes, np.uint32), np.ascontiguousarray(m)]
        held.append(np.ascontiguousarray(e, np.int64))
        self._call["settle"](self.pointer, *map(_address, held), len(nodes))

    def shares(self, stop: Stop | None = None) -> Doubles:
        """The share of each instance in its node; sums were found before."""
        place = ctypes.c_void_p()
        self._work("shares", ctypes.addressof(place), stop=stop)
        return self._array(place.value, int(self.view.instances), np.float64)

    def expect(self, stop: Stop | None = None) -> Doubles | None:
        """How often each instance is used, on average; None where there is a cycle. Sums were found before."""
        used = np.zeros(int(self.view.instances))
        return None if self._work("expect", _address(used), stop=stop) else used

    def sample(
        self, seed: int, start: int, end: int, most: int, stop: Stop | None
    ) -> tuple[Numbers, Longs, Doubles] | int:
        """The draws with these numbers: their instances, where each begins, and log-probabilities; else why not.

        Facts that are given once are not among the instances. Several threads may draw at once, until `stop` is set.
        """
        draws = self._call["draws_new"]()
        if draws is None:
            raise _no_memory()
        try:
            found = DrawArrays()
            asked = (seed & (2**64 - 1), start, end, most)
            how = self._work("sample", draws, *asked, ctypes.addressof(found), stop=stop)
            if how:
                return how
            begin = self._array(found.begin, end - start + 1, np.int64).copy()
            instances = self._array(found.instances, int(begin[-1]), np.uint32).copy()
            return instances, begin, self._array(found.log_probability, end - start, np.float64).copy()
        finally:
            self._call["draws_free"](draws)

    def count(self, stop: Stop | None = None) -> int | float | None:
        """How many derivations there are: a whole number, inf, or None where it is too large for native code."""
        words = np.zeros(2, np.uint64)
        how = self._work("count", words.__array_interface__["data"][0], stop=stop)
        if how == _END.UNLIKE:
            return float("inf")
        return None if how else int(words[0]) + (int(words[1]) << 64)


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _no_memory() -> Error:
    return RoomError("there is no memory left for the derivations; ask for fewer, or for those of a smaller item")


def unbounded(item: str) -> NotConverged:
    """The error where derivations get better without end."""
    return NotConverged(
        f"{item} has no best derivation: derivations get better each time around a cycle, without end. Make the "
        "weights around the cycle smaller, or break it"
    )
