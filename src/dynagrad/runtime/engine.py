"""The native functions of a compiled program, typed: worlds, fact tables and charts as Python objects that own them.

They are declared in `dynagrad/shared.h`, as the structures and numbers here are, and defined in
`dynagrad/outside/runtime.hpp`. Codes and 8-byte words go in and out as numpy arrays; their meaning is not known here.
Every object frees its native part, and keeps alive what that points to.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CompileError, Error, NotConverged, RoomError
from .library import Stop, host, load
from .shared import SHARED, numbers

Codes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Bounds = npt.NDArray[np.float64]

Change = numbers("Change")
"""The steps of an incremental update."""
Collecting = numbers("Collecting", enum.IntFlag)
"""What is collected of derivations."""
Ending = numbers("Ending")
"""What became of an example."""
Failure = numbers("Failure")
"""How a guarded call ended early."""
STATUS: dict[int, str] = {number: name.lower().removeprefix("at_") for name, number in SHARED.numbers("Status").items()}
"""How a run ended, by the status of its report."""
CELL_BITS = SHARED.constant("kCellBits")
"""Of handles of items: so many lower ones are the cell, the others the table."""
LARGE = SHARED.constant("kLargeBlock")
"""From this many bytes on, arrays of results are native blocks."""
EXTERNAL = ctypes.PYFUNCTYPE(*SHARED.callback("External"))


class Settings(ctypes.Structure):
    """The limits of a run; those that are not given are none."""

    _fields_ = SHARED.fields("Settings")
    __slots__ = ()  # another name is an error

    def __init__(self, **limits: float) -> None:
        super().__init__(**{**_NO_LIMITS, **limits})


_NO_LIMITS = SHARED.defaults("Settings")


class Report(ctypes.Structure):
    """What a run did."""

    _fields_ = SHARED.fields("Report")
    __slots__ = ()


Examples = SHARED.structure("Examples")
"""Examples that are run in one call."""

TermNode = SHARED.structure("TermNode")
"""A term without its arguments."""

_BACKWARD = ("adjoints_", "block_", "tape_")
"""How the names of functions begin that are called in the library with the backward pass."""


def out_of_memory(failure: int) -> Error:
    """The error where memory ran out: that under a limit, or that of the system."""
    if failure == Failure.LIMITED:
        return NotConverged(
            "there is not enough room under the limit on bytes that the chart was run with; run it with a larger "
            "max_bytes"
        )
    return RoomError(
        "there is no memory left; limit the run with max_items or max_bytes, or give it fewer facts or less to derive"
    )


def _ended_early(failure: int) -> BaseException:
    """The error where an object could not be made."""
    if failure == Failure.STOPPED:  # by another thread
        return KeyboardInterrupt()
    if failure == Failure.LATE:
        return NotConverged("the limit on time was met while facts were loaded; raise timeout. There is no chart")
    return out_of_memory(failure)


def _until(stop: Stop | None) -> tuple[int, int, int | None]:
    """The last arguments of functions that may run long: their remaining time, the host, and the flag to stop."""
    return (-1, host(), None) if stop is None else (stop.nanoseconds, host(), stop.address)


def _went(failure: int, function: object, arguments: tuple[Any, ...]) -> None:
    if failure:
        raise out_of_memory(failure)


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
        self.backward: ctypes.Structure | None = None
        """The functions of the backward pass, for native code."""
        self._forward = load(path)
        self._backward = None if backward is None else load(backward)
        if self._backward is not None:
            used: Any = {name: getattr(self, f"adjoints_{name}") for name in SHARED.members("Backward")}
            addresses = {name: ctypes.cast(f, ctypes.c_void_p).value for name, f in used.items()}
            self.backward = SHARED.structure("Backward")(**addresses)
            size = self._backward.shared("dg_chart_size")()
            if size != self.chart_size():
                raise CompileError(
                    f"charts of {path} have {self.chart_size()} bytes, those of {backward} {size}\n"
                    "  this is a defect of Dynagrad; delete the cache folder, and report it if that does not help"
                )

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The native function of that name, with "dg_" before it; declared when it is first asked for."""
        library = None if name.startswith("_") else self._backward if name.startswith(_BACKWARD) else self._forward
        if library is None or not SHARED.declares("function", f"dg_{name}"):
            raise AttributeError(name)
        function: Any = library.shared(f"dg_{name}")
        signature = SHARED.signature(f"dg_{name}")
        if signature.makes:
            function.errcheck = self._made
        elif signature.fails:
            function.errcheck = _went
        setattr(self, name, function)
        return function  # type: ignore[no-any-return]  # what is known of it above is more than its type says

    def _made(self, pointer: int | None, function: object, arguments: tuple[Any, ...]) -> int:
        if pointer is None:
            raise _ended_early(self.failure())
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
        node, room = TermNode(), 8
        while True:
            arguments = np.zeros(room, np.int32)
            self.engine.terms_node(self.pointer, number, ctypes.addressof(node), _address(arguments), room)
            if node.arity <= room:
                return node.kind, node.payload, arguments[: node.arity].tolist()
            room = node.arity


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

    def change(self, step: int, table: int = 0, rows: Codes | None = None, words: Words | None = None) -> None:
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
        how: int = Collecting.ALL,
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
        sizes = SHARED.structure("ForestSizes")()
        self.engine.forest_sizes(self.pointer, ctypes.addressof(sizes))
        return sizes.nodes, sizes.instances, sizes.antecedents, sizes.givens

    def forest(self, width: int) -> tuple[dict[str, npt.NDArray[Any]], Words]:
        """What was collected: arrays, now the caller's, by the names in the header, and the words of values."""
        nodes, instances, antecedents, given = self.collected()
        arrays = SHARED.structure("ForestArrays")()
        words = np.zeros((nodes, width), np.uint64)
        kept = _NativeMemory(self.engine.forest_take(self.pointer, ctypes.addressof(arrays), _address(words)))
        _finally(kept, self.engine.forest_free, kept.pointer)
        counts = {"rule": instances, "first": instances + 1, "antecedent": antecedents, "given": given}
        return {
            name: _view(kept, getattr(arrays, name), counts.get(name, nodes), member.target)
            for name, member in SHARED.members("ForestArrays").items()
        }, words

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
            raise out_of_memory(self.engine.failure())
        return cell
