"""The types of values in a graph: a kind of number, and a static shape.

Nothing here knows nodes or operations.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Type:
    """A type of values: its name, the C++ type of one number, the kind of number, and the shape.

    >>> real.cxx, real.shape
    ('double', ())
    """

    name: str
    cxx: str
    kind: str = ""
    shape: Shape = ()

    def __str__(self) -> str:
        return self.name

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def scalar(self) -> Type:
        """The type of one number."""
        return KINDS[self.kind]


real = Type("real", "double", "real")
integer = Type("integer", "int64_t", "integer")
boolean = Type("boolean", "bool", "boolean")
stack = Type("stack", "Stack*", "stack")
"""A stack of residuals, which loops push for the backward pass."""
heap = Type("heap", "Cell", "heap")
"""A cell of the heap: a value whose kind is known only as the graph runs; see `ops/cells.py`."""
array = Type("array", "")
"""Any shape: the type that operations on whole arrays declare for an argument. No value has this type."""

KINDS: dict[str, Type] = {t.kind: t for t in (real, integer, boolean, stack, heap)}
DTYPES = {"real": "float64", "integer": "int64", "boolean": "bool"}
"""The numpy type of each kind."""


@functools.cache
def _arrays(kind: Type, shape: Shape) -> Type:
    return Type(f"{kind.name}[{', '.join(map(str, shape))}]", kind.cxx, kind.kind, shape)


def arrays(kind: Type, shape: Shape) -> Type:
    """The type of arrays of a kind and a shape; without dimensions, that of single numbers. Each type is one object.

    >>> arrays(real, (2, 3)), arrays(real, ()) is real
    (Type(name='real[2, 3]', cxx='double', kind='real', shape=(2, 3)), True)
    """
    return _arrays(kind.scalar, tuple(int(n) for n in shape)) if shape else kind.scalar


DIFFERENTIABLE = frozenset(["real", "heap"])
"""The kinds whose values have derivatives; a stack has one if what is pushed on it has."""

BYTES = {"real": 8, "integer": 8, "boolean": 1, "heap": 8}
"""Bytes of a number of each kind in memory."""


def bytes_of(type: Type) -> int:
    """Bytes of a value of this type."""
    return type.size * BYTES[type.kind]
