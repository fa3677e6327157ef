"""Values as bytes, for records: pickles from which nothing can be made but instances of given classes.

A pickle may name any function, and have it called where it is read. The reader of this file knows some classes of data
and nothing else. Values that writer and reader share, such as a program that is there anyway, are in no pickle.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from operator import attrgetter
from types import ModuleType
from typing import Any


def classes_of_data(*modules: ModuleType) -> tuple[type, ...]:
    """The dataclasses and enumerations that are at hand in some modules."""
    named = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    return tuple(dict.fromkeys(value for value in named if is_dataclass(value) or issubclass(value, Enum)))


def packed(value: object, classes: Iterable[type], shared: Sequence[object] = ()) -> bytes | None:
    """The bytes of a value; None where it has a part that is neither of these classes nor plain data.

    `classes` are dataclasses, whose instances are written by their fields, and enumerations. In place of an object of
    `shared`, by identity, stands its number.
    """
    file = io.BytesIO()
    try:
        (_SharingPacker(file, classes, shared) if shared else _Packer(file, classes)).dump(value)
    except (pickle.PicklingError, RecursionError, TypeError, AttributeError):
        return None
    return file.getvalue()


def unpacked(data: bytes, classes: Iterable[type], shared: Sequence[object] = ()) -> Any:
    """The value of these bytes; None where they are not valid.

    >>> from dynagrad.errors import Span
    >>> data = packed((1, Span(0, 4, 1, 1)), [Span])
    >>> unpacked(data, [Span])
    (1, Span(start=0, end=4, line=1, column=1))
    >>> unpacked(data, []) is None, packed(print, [Span]) is None
    (True, True)
    """
    try:
        return _Unpacker(data, classes, shared).load()
    except Exception:  # a reader of bytes that anything may have written raises anything
        return None


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, classes: Iterable[Any]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.parts = {kind: _parts(kind) for kind in classes}

    def reducer_override(self, value: Any) -> Any:
        parts = self.parts.get(type(value))
        if parts is not None:
            return type(value), parts(value)
        if isinstance(value, type) and value in self.parts:
            return NotImplemented  # by its name
        raise pickle.PicklingError(f"{type(value)} is not among the classes")


class _SharingPacker(_Packer):
    """A class of its own, because `persistent_id` is called for each number and each name, too."""

    def __init__(self, file: io.BytesIO, classes: Iterable[Any], shared: Sequence[object]) -> None:
        super().__init__(file, classes)
        self.places = {id(value): n for n, value in enumerate(shared)}

    def persistent_id(self, value: object) -> int | None:
        return self.places.get(id(value))


def _parts(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """A function of the fields of an instance; of a member of an enumeration, its value."""
    if issubclass(kind, Enum):
        return lambda member: (member.value,)
    names = [f.name for f in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: bytes, classes: Iterable[type], shared: Sequence[object]) -> None:
        super().__init__(io.BytesIO(data))
        self.named = {(kind.__module__, kind.__qualname__): kind for kind in classes}
        self.shared = shared

    def find_class(self, module: str, name: str) -> type:
        found = self.named.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is not among the classes")
        return found

    def persistent_load(self, number: int) -> object:
        return self.shared[number]
