"""A loop nest as data. Names and literals are those of the C++ that is written; everything else is structure.

A nest has perfectly nested loops. What is computed has a level: the number of loops around it. At level n, `before`
stands at the beginning of the n-th loop's body (at 0 before all loops) and `after` at its end; `stores` are the body of
the innermost loop, after everything that a round reads.

Nothing is decided or written here: nests are made by `build.py`, changed by `collapse.py` and `chunks.py`, and become
text in `write.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from ....ir.operation import Operation
from ....ir.types import Type
from ....passes.index_forms import Form

Operand = str
"""The name of a value, or the literal of a constant."""

# -- expressions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """An element of an array in memory."""

    pointer: str
    place: Form


@dataclass(frozen=True)
class Elementwise:
    """An elementwise operation; `at` is what the last argument is known to be, where that has a spelling of its own."""

    operation: Operation
    arguments: tuple[Operand, ...]
    in_loop: bool
    at: float | None


@dataclass(frozen=True)
class Combine:
    """Two values combined by a function that reductions know."""

    by: str
    left: Operand
    right: Operand


@dataclass(frozen=True)
class Convert:
    """A value as another C++ type."""

    cxx: str
    value: Operand


@dataclass(frozen=True)
class FromEnd:
    """An index; a negative one counts from the end of its axis."""

    place: Form
    length: int


@dataclass(frozen=True)
class Digit:
    """The index along one axis of an offset: a digit of it, in the mixed radix of a shape."""

    place: Form
    step: int
    length: int


@dataclass(frozen=True)
class Triangle:
    """An element of a triangular part of a matrix: the value on one side of a diagonal, and zero on the other."""

    value: Operand
    offset: Form  # the column relative to the diagonal
    lower: bool
    axes: tuple[Form, Form]  # of the row and the column


@dataclass(frozen=True)
class Addend:
    """A term of a reduction: a product, converted to the type of the result; with `rank`, as its rank among reals."""

    factors: tuple[Operand, ...]
    cxx: str = ""
    rank: str = ""


@dataclass(frozen=True)
class OfRank:
    """The real of a rank."""

    rank: str


Expression = Load | Elementwise | Combine | Convert | FromEnd | Digit | Triangle | OfRank

# -- statements --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Definition:
    """A value that is computed and named."""

    level: int
    cxx: str
    name: str
    value: Expression


@dataclass(frozen=True)
class Accumulator:
    """A variable that a reduction starts with; at level 0 it is carried by the outermost loop."""

    level: int
    cxx: str
    name: str
    by: str
    kind: str


@dataclass(frozen=True)
class ArrayAccumulator:
    """An array that a reduction starts with, before all loops; the outermost one may carry it."""

    pointer: str
    type: Type
    by: str
    carried: bool
    level: int = 0


@dataclass(frozen=True)
class Store:
    """An element stored, or combined with what is there."""

    level: int
    pointer: str
    place: Form
    value: Operand | Addend
    by: str = ""


@dataclass(frozen=True)
class Accumulate:
    """A term joins a reduction."""

    name: str
    by: str
    value: Addend


Before = Definition | Accumulator | ArrayAccumulator
Total = Accumulator | ArrayAccumulator


@dataclass(frozen=True)
class Chunks:
    """How the outermost loop is split: rounds of a chunk, and of what the chunks are multiples; for each total, the
    memory of its partial results."""

    grain: int
    unit: int
    partials: tuple[str, ...]


@dataclass(frozen=True)
class LoopNest:
    """Loops by counter and length. Equal nests are the same code, whatever lines of the user's they come from."""

    loops: tuple[tuple[str, int], ...]
    before: tuple[Before, ...]
    stores: tuple[Store | Accumulate, ...]
    after: tuple[Definition | Store, ...]
    independent: bool  # whether no round of the innermost loop stores where another one does
    chunks: Chunks | None = None
    work: tuple[int, ...] = field(default=(), compare=False)  # of one round of each loop, without its inner loops
    lines: frozenset[int] = field(default=frozenset(), compare=False)  # of the user's functions

    @property
    def totals(self) -> list[Total]:
        """The reductions that the outermost loop carries."""
        return [
            s
            for s in self.before
            if (isinstance(s, Accumulator) and not s.level) or (isinstance(s, ArrayAccumulator) and s.carried)
        ]


def forms(x: Any) -> Iterator[Form]:
    """All offsets and indices in a nest, or in a part of it."""
    if isinstance(x, Form):
        yield x
    elif isinstance(x, tuple):
        for part in x:
            yield from forms(part)
    elif isinstance(x, _PARTS):
        for f in fields(x):
            yield from forms(getattr(x, f.name))


def rewritten(x: Any, change: Any) -> Any:
    """A part of a nest with `change` applied to each form."""
    if isinstance(x, Form):
        return change(x)
    if isinstance(x, tuple):
        return tuple(rewritten(part, change) for part in x)
    if isinstance(x, _PARTS):
        return type(x)(**{f.name: rewritten(getattr(x, f.name), change) for f in fields(x)})
    return x


_PARTS = (Load, FromEnd, Digit, Triangle, Definition, Store, LoopNest)
"""What forms stand in."""
