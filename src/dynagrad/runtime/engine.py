"""The native functions of a compiled program, typed: worlds, fact tables and charts as Python objects that own them.

The C++ side is `dynagrad/outside/runtime.hpp`. Codes and 8-byte words go in and out as numpy arrays; their meaning is
not known here. Every object frees its native part, and keeps alive what that points to.

It is long because it declares every function of the runtime, with its types, in one place.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import weakref
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CompileError, Error, NotConverged, RoomError
from .library import Library, Stop, host, load

Codes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Bounds = npt.NDArray[np.float64]


class Change(enum.IntEnum):
    """The steps of an incremental update, see `codegen/rules/incremental/changing.py`."""

    BEGIN = 0
    MARK = 1
    """Marks all items that a fact reaches."""
    DELETE = 2
    """Deletes the marked items."""
    DERIVE = 3
    """Rederives them from the items that stayed."""
    ADD = 4
    """Adds facts."""


class Collecting(enum.IntFlag):
    """What is collected of derivations: `dynagrad::Collected::How`."""

    ALL = 0
    COUNTS = 1
    """Nothing of instances but how many there are."""
    SIDES = 2
    """Also how items are derived that only have to be derived."""


class Settings(ctypes.Structure):
    """`dynagrad::Settings`; -1 means no limit."""

    _fields_ = (
        ("max_pops", ctypes.c_int64),
        ("timeout_ns", ctypes.c_int64),
        ("max_items", ctypes.c_int64),
        ("max_bytes", ctypes.c_int64),
        ("until_table", ctypes.c_int64),
        ("until_cell", ctypes.c_int64),
        ("pause_ns", ctypes.c_int64),
        ("tolerance", ctypes.c_double),
        ("stopped", ctypes.c_int64),  # 0: in no stage, as far as is known
        ("refine", ctypes.c_int64),
    )


class Backward(ctypes.Structure):
    """`dynagrad::Backward`: functions of the library that has the backward pass."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("open", "seed", "backward", "rows"))


class Examples(ctypes.Structure):
    """`dynagrad::Examples`."""

    _fields_ = (
        ("count", ctypes.c_int64),
        ("tables", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("world", "facts", "weights", "constants", "settings")),
        ("goal", ctypes.c_int64),
        ("width", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("arguments", "ending", "words", "backward")),
        ("of_log", ctypes.c_int64),
        ("cotangent", ctypes.c_void_p),
        ("keys", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("table", "rows", "given", "own", "total")),
        ("part", ctypes.c_int64),
        ("single", ctypes.c_void_p),
    )


class Ending(IntEnum):
    """`dynagrad::Ending`: what became of an example."""

    PLAIN = 0
    UNDERIVED = 1
    APART = 2


_COUNTS = (
    "status",
    "partial",
    "pops",
    "updates",
    "items",
    "bytes",
    "peak",
    "nanoseconds",
    "pending",
    "underflow",
    "error_table",
    "error_cell",
    "stage",
    "tape",
)


class Report(ctypes.Structure):
    """`dynagrad::Report`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in _COUNTS),
        ("error_bound", ctypes.c_double),
        ("radius", ctypes.c_double),
        ("critical", ctypes.c_int64),
        ("unfinished", ctypes.c_int64),
    )


STATUS = (
    "done",
    "max_pops",
    "timeout",
    "until",
    "items",
    "bytes",
    "bad_value",
    "interrupted",
    "integer_overflow",
    "paused",
    "two_values",
    "host_error",
    "bad_adjoint",
    "unsettled",
    "function_failed",
    "diverges",
    "cyclic",
    "near_critical",
    "quiet",
    "no_order",
    "no_memory",
)


class Failure(IntEnum):
    """`dynagrad::Failure`: how a guarded call ended early."""

    NONE = 0
    LIMITED = 1
    EXHAUSTED = 2
    STOPPED = 3
    LATE = 4


LARGE = 1 << 20  # from this many bytes on, arrays of results are native blocks

_P, _I, _L = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64


class _Made(ctypes.c_void_p):
    """The result type of functions that make an object: null where memory ran out."""


class _Failure(ctypes.c_int64):
    """The result type of other functions that allocate: a `dynagrad::Failure`."""


_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "world_new": (_Made, _P),
    "failure": (_L,),
    "world_free": (None, _P),
    "world_limit": (None, _P, _L),
    "world_domains": (_Failure, _P, _L, _P, _P),
    "world_rank": (_Failure, _P, _L, _P, _L),
    "world_constants": (_Failure, _P, _L, _P),
    "terms_make": (_Failure, _P, _L, _P, _P, _P, _P, _P),
    "terms_count": (_L, _P),
    "terms_node": (None, _P, _I, _P, _P, _I),
    "terms_find": (_I, _P, _I, _I, _P, _I),
    "facts_new": (_Made, _P, _L, _P, _L, _L, _P, _P),
    "facts_rows": (_L, _P),
    "facts_free": (None, _P),
    "weights_new": (_Made, _L, _P, _P, _L, _P, _P),
    "weights_free": (None, _P),
    "chart_new": (_Made, _P, _P, _P, _P),
    "chart_size": (_L,),
    "chart_record": (None, _P),
    "chart_free": (None, _P),
    "chart_run": (None, _P, _P, _P, _P, _P),
    "chart_change": (_Failure, _P, _L, _L, _P, _P, _L, _P),
    "chart_swap": (_Failure, _P, _L, _P, _P, _L),
    "chart_restore": (_Failure, _P, _L, _P, _P, _P, _L, _P),
    "chart_bounds": (_L, _P, _L, _P, _L),
    "chart_fact": (_L, _P, _L, _P, _P),
    "chart_get": (_L, _P, _L, _P, _P),
    "chart_items": (_L, _P, _L, _P, _P, _L),
    "chart_pending": (_L, _P, _L, _P, _P, _L),
    "chart_arguments": (None, _P, _L, _L, _P),
    "chart_locate": (_L, _P, _L, _P),
    "chart_external": (None, _P, _L, _P),
    "chart_message": (ctypes.c_char_p, _P),
    "chart_blamed": (ctypes.c_char_p, _P),
    "chart_disagree": (ctypes.POINTER(ctypes.c_double), _P),
    "chart_cycle": (_L, _P, _P, _P, _L),
    "forest_collect": (None, _P, _P, _P, _L, _P, _L, _L, _P, _P),
    "forest_sizes": (None, _P, _P),
    "forest_take": (_Made, _P, _P, _P),
    "forest_free": (None, _P),
    "forest_arguments": (None, _P, _L, _P, _L, _P),
    "examples": (_L, _P, _P, _P),
}

_ADJOINT_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "adjoints_open": (_Failure, _P),
    "adjoints_close": (None, _P),
    "adjoints_seed": (_L, _P, _L, _P, _P, _L),
    "adjoints_backward": (_L, _P, _P, _L, _P, _P),
    "adjoints_item": (_L, _P, _L, _P, _P, _L),
    "adjoints_items": (_L, _P, _L, _P, _L),
    "adjoints_rows": (_Failure, _P, _L, _P, _P),
    "block_new": (_Made, _L),
    "block_free": (None, _P),
    "tape_pops": (_L, _P, _P, _P, _L),
}

EXTERNAL = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_uint64))


def out_of_memory(failure: Failure) -> Error:
    """The error where memory ran out: that under a limit, or that of the system."""
    if failure is Failure.LIMITED:
        return NotConverged(
            "there is not enough room under the limit on bytes that the chart was run with; run it with a larger "
            "max_bytes"
        )
    return RoomError(
        "there is no memory left; limit the run with max_items or max_bytes, or give it fewer facts or less to derive"
    )


def _ended_early(failure: Failure) -> BaseException:
    """The error where an object could not be made."""
    if failure is Failure.STOPPED:  # by another thread
        return KeyboardInterrupt()
    if failure is Failure.LATE:
        return NotConverged("the limit on time was met while facts were loaded; raise timeout. There is no chart")
    return out_of_memory(failure)


def _until(stop: Stop | None) -> tuple[int, int, int | None]:
    """The last arguments of functions that may run long: their remaining time, the host, and the flag to stop."""
    return (-1, host(), None) if stop is None else (stop.nanoseconds, host(), stop.address)


def _went(failure: int, function: object, arguments: tuple[Any, ...]) -> None:
    if failure:
        raise out_of_memory(Failure(failure))


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]  # as `array.ctypes.data`, in a third of the time
    return address


def _finally(owner: Any, free: Callable[..., Any], *arguments: Any) -> None:
    """Frees native memory with its owner, but not at exit, when other finalizers may still use it."""
    weakref.finalize(owner, free, *arguments).atexit = False


class Engine:
    """A compiled program: the library of its forward pass, and that of its backward pass, if it has one."""

    def __init__(self, path: Path, backward: Path | None = None) -> None:
        self.path, self.goes_back = path, backward is not None
        self.backward: Backward | None = None
        """The functions of the backward pass, for native code."""
        library = load(path)
        self._take(library, _FUNCTIONS)
        if backward is not None:
            self._take(load(backward), _ADJOINT_FUNCTIONS)
            used: tuple[Any, ...] = (self.adjoints_open, self.adjoints_seed, self.adjoints_backward, self.adjoints_rows)
            self.backward = Backward(*(ctypes.cast(f, ctypes.c_void_p).value for f in used))
            size = load(backward).function("dg_chart_size", _L)()
            if size != self.chart_size():
                raise CompileError(
                    f"charts of {path} have {self.chart_size()} bytes, those of {backward} {size}\n"
                    "  this is a defect of Dynagrad; delete the cache folder, and report it if that does not help"
                )

    def _take(self, library: Library, functions: dict[str, tuple[Any, ...]]) -> None:
        """Declares functions of a library as attributes. One with a single pass has only those of this pass."""
        for name, (result, *arguments) in functions.items():
            plain = _P if result is _Made else _L if result is _Failure else result
            function = library.function(f"dg_{name}", plain, *arguments)
            if result is _Made:
                function.errcheck = self._made  # type: ignore[attr-defined]  # of functions of ctypes
            elif result is _Failure:
                function.errcheck = _went  # type: ignore[attr-defined]  # functions take attributes
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Callable[..., Any]:  # for type checkers: the functions set above
        raise AttributeError(name)

    def _made(self, pointer: int | None, function: object, arguments: tuple[Any, ...]) -> int:
        if pointer is None:
            raise _ended_early(Failure(self.failure()))
        return pointer

    @staticmethod
    @functools.cache
    def at(path: Path, backward: Path | None = None) -> Engine:
        """The engine of these libraries, made once; both passes may be in one library."""
        return Engine(path, backward)


class World:
    """The domains, ranks, constants and terms behind codes in native code; see `dynagrad::World`."""

    def __init__(self, engine: Engine, base: World | None = None, room: int | None = None) -> None:
        """`base` has terms that this world shares, and `room` is the number of bytes that a chart over it may take."""
        self.engine, self.base = engine, base
        self.pointer: int = engine.world_new(base.pointer if base is not None else None)
        _finally(self, engine.world_free, self.pointer)
        if room is not None:
            self.limit(room)

    def limit(self, room: int) -> None:
        """Sets the number of bytes that a chart over this world may take."""
        self.engine.world_limit(self.pointer, room)

    def set_domains(self, low: Sequence[int], count: Sequence[int]) -> None:
        lows, counts = np.array(low, np.int32), np.array(count, np.int64)
        self.engine.world_domains(self.pointer, len(lows), _address(lows), _address(counts))

    def set_rank(self, domain: int, ranks: Codes) -> None:
        ranks = np.ascontiguousarray(ranks, np.int32)
        self.engine.world_rank(self.pointer, domain, _address(ranks), len(ranks))

    def set_constants(self, codes: Sequence[int]) -> None:
        array = np.array(codes, np.int32)
        self.engine.world_constants(self.pointer, len(array), _address(array))

    def make_terms(
        self,
        kind: Codes,
        payload: Codes,
        first: npt.NDArray[np.int64],
        children: Codes,
    ) -> Codes:
        """Interns nodes in post-order; returns the number of each."""
        out = np.zeros(len(kind), np.int32)
        kind, payload = np.ascontiguousarray(kind, np.int32), np.ascontiguousarray(payload, np.int32)
        first, children = np.ascontiguousarray(first, np.int64), np.ascontiguousarray(children, np.int32)
        self.engine.terms_make(
            self.pointer,
            len(kind),
            _address(kind),
            _address(payload),
            _address(first),
            _address(children),
            _address(out),
        )
        return out

    def term(self, number: int) -> tuple[int, int, list[int]]:
        """Kind, payload and arguments of a term."""
        out, room = np.zeros(3, np.int32), 8
        while True:
            arguments = np.zeros(room, np.int32)
            self.engine.terms_node(self.pointer, number, _address(out), _address(arguments), room)
            if out[2] <= room:
                return int(out[0]), int(out[1]), arguments[: out[2]].tolist()
            room = int(out[2])


class FactTable:
    """The native table of a predicate's facts: immutable rows of codes."""

    def __init__(
        self,
        engine: Engine,
        world: World,
        table: int,
        columns: Sequence[Codes],
        rows: int,
        stop: Stop | None = None,
    ) -> None:
        self.engine, self.world, self.table = engine, world, table
        held = [np.ascontiguousarray(c, np.int32) for c in columns]
        pointers = (ctypes.c_void_p * max(1, len(held)))(*(_address(c) for c in held))
        self.pointer: int = engine.facts_new(world.pointer, table, ctypes.addressof(pointers), rows, *_until(stop))
        _finally(self, engine.facts_free, self.pointer)

    @property
    def rows(self) -> int:
        """How many facts there are, those that were given several times counted once."""
        rows: int = self.engine.facts_rows(self.pointer)
        return rows


class WeightTable:
    """The native values of a fact table's rows."""

    def __init__(self, facts: FactTable, words: Words | None, stop: Stop | None = None) -> None:
        self.facts = facts
        engine = facts.engine
        held = None if words is None else np.ascontiguousarray(words, np.uint64)
        address = None if held is None else _address(held)
        self.pointer: int = engine.weights_new(facts.table, facts.pointer, address, *_until(stop))
        _finally(self, engine.weights_free, self.pointer)


class _NativeMemory:
    """Native memory that arrays look into."""

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer


def _view(kept: _NativeMemory, address: int | None, count: int, kind: Any) -> npt.NDArray[Any]:
    if not count or address is None:
        return np.zeros(0, kind)
    buffer = (ctypes.c_char * (count * np.dtype(kind).itemsize)).from_address(address)
    buffer.kept = kept  # arrays keep the buffer, and that keeps the memory
    return np.frombuffer(buffer, kind)


class NativeChart:
    """The native chart of one run."""

    def __init__(
        self,
        engine: Engine,
        world: World,
        weights: Sequence[WeightTable | None],
        constants: Words,
    ) -> None:
        self.engine, self.world, self.weights = engine, world, tuple(weights)
        held = np.ascontiguousarray(constants, np.uint64)
        n = max(1, len(weights))
        facts_pointers = (ctypes.c_void_p * n)(*(w.facts.pointer if w else None for w in weights))
        weight_pointers = (ctypes.c_void_p * n)(*(w.pointer if w else None for w in weights))
        self.pointer: int = engine.chart_new(
            world.pointer, ctypes.addressof(facts_pointers), ctypes.addressof(weight_pointers), _address(held)
        )
        if engine.goes_back:  # a library of the forward pass alone has to be told to record
            engine.chart_record(self.pointer)
        self.report = Report()
        self._externals: list[Any] = []
        self._held: list[Any] = []  # facts that an update may still read
        self.adjoints_of: object = None  # the request that the adjoints in this chart answer
        _finally(self, engine.chart_free, self.pointer)

    def run(self, settings: Settings, stop: Stop | None = None) -> Report:
        """Runs until a limit or the end, without the interpreter lock; Ctrl-C interrupts it."""
        self.adjoints_of = None
        self.engine.chart_run(
            self.pointer,
            ctypes.addressof(settings),
            ctypes.addressof(self.report),
            host(),
            stop.address if stop is not None else None,
        )
        return self.report

    def change(self, step: Change, table: int = 0, rows: Codes | None = None, words: Words | None = None) -> None:
        """One step of an incremental update; only for plans made for these."""
        codes = np.ascontiguousarray(rows if rows is not None else np.zeros((0, 1)), np.int32)
        values = np.ascontiguousarray(words if words is not None else np.zeros(1), np.uint64)
        self.engine.chart_change(self.pointer, step, table, _address(codes), _address(values), len(codes), host())

    def swap(self, table: int, weights: WeightTable, *, settled: bool) -> None:
        """Replaces the facts of a predicate; unless `settled`, the next step of an update still joins the old ones."""
        self._held.append(self.weights)
        self.weights = tuple(weights if n == table else w for n, w in enumerate(self.weights))
        self.engine.chart_swap(self.pointer, table, weights.facts.pointer, weights.pointer, int(settled))
        if settled:
            self._held.clear()

    def restore(self, table: int, rows: Codes, words: Words, bounds: Bounds | None = None) -> bool:
        """Enters items of another chart as they are, with their `bounds`; false where there is no room for one."""
        codes, values = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(words, np.uint64)
        held = None if bounds is None else _address(bounds)
        fits = np.zeros(1, np.int64)
        self.engine.chart_restore(
            self.pointer, table, _address(codes), _address(values), held, len(codes), _address(fits)
        )
        return bool(fits[0])

    def bounds(self, table: int, count: int) -> Bounds | None:
        """The error bounds of the `count` items of a predicate, in the order of `items`; None where it has none."""
        found = np.zeros(max(1, count), np.float64)
        return found if self.engine.chart_bounds(self.pointer, table, _address(found), count) else None

    def set_external(self, table: int, function: Callable[[Any, Any], int]) -> None:
        held = EXTERNAL(function)
        self._externals.append(held)
        self.engine.chart_external(self.pointer, table, ctypes.cast(held, ctypes.c_void_p))

    def get(self, table: int, arguments: Sequence[int], width: int) -> Words | None:
        """The words of an item's value, or None where it is not in the chart."""
        codes, words = np.array([*arguments, 0], np.int32), np.zeros(width, np.uint64)
        found = self.engine.chart_get(self.pointer, table, _address(codes), _address(words))
        return words if found else None

    def fact(self, table: int, arguments: Sequence[int], width: int) -> Words | None:
        """The words of a fact's own value, even where rules define the predicate too."""
        codes, words = np.array([*arguments, 0], np.int32), np.zeros(width, np.uint64)
        found = self.engine.chart_fact(self.pointer, table, _address(codes), _address(words))
        return words if found else None

    def items(self, table: int, arity: int, width: int, *, pending: bool = False) -> tuple[Codes, Words]:
        """All items of a predicate, or those with a pending update: arguments (n, arity) and words (n, width)."""
        call = self.engine.chart_pending if pending else self.engine.chart_items
        none = np.zeros(1, np.int64)
        count = call(self.pointer, table, _address(none), _address(none), 0)
        codes, words = np.zeros((count, arity), np.int32), np.zeros((count, width), np.uint64)
        call(self.pointer, table, _address(codes), _address(words), count)
        return codes, words

    def failed_function(self) -> tuple[str, str]:
        """The function of values that failed, or the names of several of which one did, and what it said."""
        names, said = self.engine.chart_blamed(self.pointer), self.engine.chart_message(self.pointer)
        return names.decode("utf-8", "replace"), said.decode("utf-8", "replace")

    def disagreeing(self, width: int) -> tuple[list[float], list[float]]:
        """Two values about which a semiring's plus and less disagree, as numbers, `width` of each."""
        numbers = self.engine.chart_disagree(self.pointer)
        return numbers[:width], numbers[width : 2 * width]

    # -- derivations, in engines made for them

    def collect(
        self,
        table: int,
        arguments: Sequence[int],
        settings: Settings,
        most: int,
        how: Collecting = Collecting.ALL,
        stop: Stop | None = None,
    ) -> str:
        """Collects the derivations of an item, `most` instances; says how it ended."""
        codes = np.array([*arguments, 0], np.int32)
        self.engine.forest_collect(
            self.pointer,
            ctypes.addressof(settings),
            ctypes.addressof(self.report),
            table,
            _address(codes),
            most,
            int(how),
            host(),
            stop.address if stop is not None else None,
        )
        return STATUS[self.report.status]

    def collected(self) -> tuple[int, int, int, int]:
        """How many items, instances, antecedents and given facts were collected."""
        sizes = np.zeros(4, np.int64)
        self.engine.forest_sizes(self.pointer, _address(sizes))
        nodes, instances, antecedents, given = sizes.tolist()
        return nodes, instances, antecedents, given

    def forest(self, width: int) -> tuple[list[npt.NDArray[Any]], Words]:
        """What was collected: the arrays of `dynagrad::Collected`, now the caller's, and the words of values."""
        nodes, instances, antecedents, given = self.collected()
        places = (ctypes.c_void_p * 8)()
        words = np.zeros((nodes, width), np.uint64)
        kept = _NativeMemory(self.engine.forest_take(self.pointer, ctypes.addressof(places), _address(words)))
        _finally(kept, self.engine.forest_free, kept.pointer)
        kinds = (np.uint64, np.uint32, np.uint32, np.uint8, np.int32, np.uint32, np.int32, np.uint32)
        counts = (nodes, nodes, nodes, nodes, instances, instances + 1, antecedents, given)
        return [_view(kept, p, n, k) for p, n, k in zip(places, counts, kinds, strict=True)], words

    def places(self, table: int, cells: npt.NDArray[np.int64], arity: int) -> Codes:
        """The arguments of places of a table, a row for each."""
        held, out = np.ascontiguousarray(cells, np.int64), np.zeros((len(cells), arity), np.int32)
        self.engine.forest_arguments(self.pointer, table, _address(held), len(held), _address(out))
        return out

    # -- differentiation, in engines with a backward pass

    def seed(self, table: int, arguments: Sequence[int], cotangent: Words, *, whole: bool = False) -> bool:
        """Sets the cotangent of an item; false where it is not in the chart."""
        codes, words = np.array([*arguments, 0], np.int32), np.ascontiguousarray(cotangent, np.uint64)
        return bool(self.engine.adjoints_seed(self.pointer, table, _address(codes), _address(words), int(whole)))

    def backward(self, stop: Stop | None = None) -> str:
        """Runs the backward pass from the seeds; returns how it ended, a name of STATUS."""
        status = self.engine.adjoints_backward(self.pointer, ctypes.addressof(self.report), *_until(stop))
        return STATUS[status]

    def adjoint(self, table: int, arguments: Sequence[int], width: int, *, whole: bool = False) -> Words | None:
        """The derivative by one item, or with `whole` its outside value; None where it is not in the chart."""
        codes, words = np.array([*arguments, 0], np.int32), np.zeros(width, np.uint64)
        found = self.engine.adjoints_item(self.pointer, table, _address(codes), _address(words), int(whole))
        return words if found else None

    def adjoints_of_items(self, table: int, width: int) -> Words:
        """The derivatives by the items of a predicate, in the order of `items`: (n, width)."""
        none = np.zeros(1, np.uint64)
        words = np.zeros((self.engine.adjoints_items(self.pointer, table, _address(none), 0), width), np.uint64)
        self.engine.adjoints_items(self.pointer, table, _address(words), len(words))
        return words

    def adjoints_of_rows(self, table: int, given: Words | None, count: int, width: int) -> Words:
        """The derivatives by facts, row by row as they were given: (count, width). `given` has the words of these."""
        held = None if given is None else np.ascontiguousarray(given, np.uint64)
        words = self._room(count * width).reshape(count, width)
        if count:
            address = None if held is None else _address(held)
            self.engine.adjoints_rows(self.pointer, table, address, _address(words))
        return words

    def _room(self, count: int) -> Words:
        """An array of words; a large one is a native block, whose pages are mapped already."""
        size = 8 * count
        if size < LARGE:
            return np.zeros(count, np.uint64)
        pointer = self.engine.block_new(size)
        buffer = (ctypes.c_uint64 * count).from_address(pointer)
        _finally(buffer, self.engine.block_free, pointer)
        return np.ctypeslib.as_array(buffer)

    def pops(self) -> tuple[Codes, npt.NDArray[np.int64]]:
        """The items that were popped, in order: their tables and cells."""
        none = np.zeros(1, np.int64)
        count = self.engine.tape_pops(self.pointer, _address(none), _address(none), 0)
        tables, cells = np.zeros(count, np.int32), np.zeros(count, np.int64)
        self.engine.tape_pops(self.pointer, _address(tables), _address(cells), count)
        return tables, cells

    def cycle(self) -> list[tuple[int, int]]:
        """The table and the cell of each item around the cycle that ended the run."""
        none = np.zeros(1, np.int64)
        count = self.engine.chart_cycle(self.pointer, _address(none), _address(none), 0)
        tables, cells = np.zeros(count, np.int32), np.zeros(count, np.int64)
        self.engine.chart_cycle(self.pointer, _address(tables), _address(cells), count)
        return list(zip(tables.tolist(), cells.tolist(), strict=True))

    def arguments(self, table: int, cell: int, arity: int) -> list[int]:
        out = np.zeros(max(1, arity), np.int32)
        self.engine.chart_arguments(self.pointer, table, cell, _address(out))
        return [int(x) for x in out[:arity]]

    def locate(self, table: int, arguments: Sequence[int]) -> int:
        """The cell of an item, made if necessary; -1 where it is out of its table's range."""
        codes = np.array([*arguments, 0], np.int32)
        cell = int(self.engine.chart_locate(self.pointer, table, _address(codes)))
        if cell < -1:
            raise out_of_memory(Failure(self.engine.failure()))
        return cell
