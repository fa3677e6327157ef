"""Cells that a compiled function returned (`ir/ops/cells.py`), read from memory that is ours to free."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import RoomError
from ..ir.ops.cells import REAL, TAG, TRUTH, HeapCell


@functools.cache
def _free() -> Any:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    return free


def imported(address: int | HeapCell, make: Callable[[int, list[Any]], Any]) -> Any:
    """What is at an address, which is freed; `make` makes a value of a key and its parts.

    The interpreter has the cell itself.
    """
    if isinstance(address, HeapCell):
        return _built(_words(address), make)
    if not address:
        raise RoomError("the memory is full")
    count = ctypes.c_int64.from_address(address).value
    words = ctypes.string_at(address + 8, 8 * (count - 1))
    _free()(address)
    return _built(struct.unpack(f"={count - 1}q", words), make)


def _words(cell: HeapCell) -> list[int]:
    found: list[int] = []
    todo = [cell]
    while todo:
        x = todo.pop()
        found.append(x.key)
        if x.key == REAL:
            found += struct.unpack("=q", struct.pack("=d", x.content))
        elif x.key in (TRUTH, TAG):
            found.append(int(x.content))
        elif x.key >= 0:
            found.append(len(x.content))
            todo += reversed(x.content)
    return found


def _built(words: Sequence[int], make: Callable[[int, list[Any]], Any]) -> Any:
    """The value that words in preorder describe, built from the last word on."""
    starts: list[int] = []
    at = 0
    while at < len(words):
        starts.append(at)
        at += 1 if words[at] < 0 else 2
    values: list[Any] = []
    for at in reversed(starts):
        key = words[at]
        if key == REAL:
            values.append(struct.unpack("=d", struct.pack("=q", words[at + 1]))[0])
        elif key == TRUTH:
            values.append(bool(words[at + 1]))
        elif key == TAG:
            values.append(make(key, [words[at + 1]]))
        elif key < 0:
            values.append(None)
        else:
            parts = [values.pop() for _ in range(words[at + 1])]
            values.append(make(key, parts))
    return values[0]
