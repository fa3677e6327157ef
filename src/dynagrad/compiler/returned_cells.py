"""Cells that a compiled function returned (`ir/ops/cells.py`), read from memory that is ours to free."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import RoomError
from ..ir.ops.cells import BUNDLE, FIRST, REAL, TAG, TRUTH, HeapCell


@functools.cache
def _free() -> Any:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    return free


def imported(address: int | HeapCell, make: Callable[[int, list[Any]], Any]) -> Any:
    """The value in the heap at an address, which is freed; `make` builds a value from a key and its parts.

    Cells that are shared become values that are shared. The interpreter has the cell itself.
    """
    if isinstance(address, HeapCell):
        return _built(_words(address), make)
    if not address:
        raise RoomError("the memory is full")
    count = ctypes.c_int64.from_address(address).value
    words = ctypes.string_at(address + 8, 8 * (count - 1))
    _free()(address)
    return _built(struct.unpack(f"={count - 1}q", words), make)


def _words(root: HeapCell) -> list[int]:
    """What `CellExport` of heap.hpp writes."""
    found: list[int] = []
    places: dict[int, int] = {}
    todo = [root]
    while todo:
        x = todo[-1]
        parts = x.content if x.key >= FIRST or x.key == BUNDLE else ()
        waiting = [part for part in parts if id(part) not in places]
        if waiting:
            todo.append(waiting[0])
            continue
        todo.pop()
        if id(x) in places:
            continue
        places[id(x)] = len(places)
        found.append(x.key)
        if x.key == REAL:
            found += struct.unpack("=q", struct.pack("=d", x.content))
        elif x.key in (TRUTH, TAG):
            found.append(int(x.content))
        elif x.key >= 0:
            found += [len(parts), *(places[id(part)] for part in parts)]
    return found


def _built(words: Sequence[int], make: Callable[[int, list[Any]], Any]) -> Any:
    """The value that words describe: that of the last cell."""
    values: list[Any] = []
    at = 0
    while at < len(words):
        key = words[at]
        at += 1
        if key < 0:
            values.append(None)
            continue
        content = words[at]
        at += 1
        if key == REAL:
            values.append(struct.unpack("=d", struct.pack("=q", content))[0])
        elif key == TRUTH:
            values.append(bool(content))
        elif key == TAG:
            values.append(make(key, [content]))
        else:
            values.append(make(key, [values[place] for place in words[at : at + content]]))
            at += content
    return values[-1]
