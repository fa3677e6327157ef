"""Fuzzes facts in every form, with hostile entries: rows, dicts, arrays, frames, Arrow tables, and objects that raise.

One input is one table for one of a few programs that are compiled once. It is read and run, or raises a `dg.Error`.
"""

from __future__ import annotations

import array
import collections
import contextlib
import decimal
import enum
import fractions
import functools
import math
import random
import traceback
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad.facts.terms import Term

MOST_AXES = getattr(np, "MAXDIMS", 64)
"""Of an array; numpy 2 has no name for it."""


class Raises:
    """Raises in whatever it is asked."""

    def __float__(self) -> float:
        raise RuntimeError("no float")

    def __index__(self) -> int:
        raise ZeroDivisionError("no index")

    def __eq__(self, other: object) -> bool:
        raise ValueError("no comparing")

    def __hash__(self) -> int:
        raise KeyError("no hash")

    def __repr__(self) -> str:
        raise LookupError("no text")

    def __len__(self) -> int:
        raise OSError("no length")

    def __iter__(self) -> Any:
        raise MemoryError("no rows")

    def __getitem__(self, index: Any) -> Any:
        raise ArithmeticError("no entries")

    def __bool__(self) -> bool:
        raise AttributeError("no truth")


class Floats:
    """A number by `__float__`, which raises or gives something else."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __float__(self) -> float:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result  # type: ignore[no-any-return]


class Arrays:
    """Hands out an array by protocols, or raises in them."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __array__(self, *_: Any, **__: Any) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Streams:
    """Hands out an Arrow stream, or raises."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Colour(enum.IntEnum):
    RED = 1


class Words(str):
    __slots__ = ()


class Number(float):
    __slots__ = ()


class Whole(int):
    __slots__ = ()


class Rows(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("no rows")


class Pair(collections.namedtuple("Pair", "a v")):
    __slots__ = ()


ERRORS = (
    RuntimeError("x"),
    ValueError("x"),
    MemoryError(),
    RecursionError("x"),
    OverflowError("x"),
    KeyError("x"),
    StopIteration(),
)

ENTRIES: tuple[Any, ...] = (
    "a",
    "b",
    "",
    "a b",
    "\0",
    "\ud800",
    "é" * 50,
    1,
    0,
    -1,
    2**31 - 1,
    -(2**31),
    2**31,
    -(2**31) - 1,
    2**63,
    2**64,
    -(2**63),
    10**400,
    10**5000,
    True,
    False,
    None,
    0.5,
    1.0,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    5e-324,
    1.7e308,
    1j,
    b"x",
    bytearray(b"x"),
    memoryview(b"x"),
    (),
    ("a",),
    ("a", 1),
    ["a", ["b", []]],
    [],
    {},
    set(),
    {"a"},
    {1: 2},
    np.int8(3),
    np.int64(-7),
    np.uint64(2**63),
    np.float32(0.5),
    np.float16(np.inf),
    np.longdouble("1e4000"),
    np.bool_(True),
    np.str_("a"),
    np.bytes_(b"a"),
    np.datetime64("2020-01-01"),
    np.timedelta64(1),
    np.array(3),
    np.array([1, 2]),
    np.array("a"),
    decimal.Decimal("0.1"),
    decimal.Decimal("NaN"),
    decimal.Decimal("sNaN"),
    decimal.Decimal("1e999999"),
    fractions.Fraction(1, 3),
    fractions.Fraction(10**400),
    Colour.RED,
    Words("a"),
    Number(0.5),
    Whole(7),
    Term("f", ("a", 1)),
    Term("cons", ("a", "nil")),
    Term("f", (Term("g", ()),)),
    Raises(),
    Floats(0.5),
    Floats("x"),
    Floats(None),
    *map(Floats, ERRORS),
    Arrays(np.zeros(2)),
    Arrays(ValueError("x")),
    object(),
    int,
    lambda: 1,
    range(3),
    slice(1),
    Ellipsis,
    NotImplemented,
    array.array("d", [1.0]),
)  # fmt: skip


@functools.cache
def programs() -> tuple[tuple[str, int, dg.Program], ...]:
    """A predicate, its arity, and a program that sums over it, for several types of values."""
    return (
        ("f/1", 1, dg.Program("goal += f(_X).", "real")),
        ("f/2", 2, dg.Program("goal += f(_X,_Y).", "log")),
        ("f/0", 0, dg.Program("goal += f.", "tropical")),
        ("f/1", 1, dg.Program("goal += f(_X).", "boolean")),
        ("f/2", 2, dg.Program("goal += f(_X,_X).", "count")),
        ("f/1", 1, dg.Program("goal += f(_X).", "expectation")),
        ("f/2", 2, dg.Program("goal += f(X,Y) for X < Y.")),
        ("f/1", 1, dg.Program("goal max= f([X|_]) + f(X).")),
    )


def entry(draw: random.Random, odd: float = 0.3) -> Any:
    return draw.choice(ENTRIES) if draw.random() < odd else draw.choice(("a", "b", "c", 1, 2, 3))


def number(draw: random.Random, odd: float = 0.3) -> Any:
    return draw.choice(ENTRIES) if draw.random() < odd else draw.random()


def rows(draw: random.Random, arity: int) -> Any:
    count, odd = draw.choice((0, 1, 1, 2, 5)), draw.choice((0.0, 0.05, 0.3))
    made = [
        tuple(entry(draw, odd) for _ in range(arity)) + ((number(draw, odd),) if draw.random() < 0.9 else ())
        for _ in range(count)
    ]
    if draw.random() < 0.1:
        made = [draw.choice((row, list(row), row[:-1], row + row, row[0] if row else None)) for row in made]
    return draw.choice(
        (made, made, made, tuple(made), iter(made), dict(enumerate(made)).values(), Rows(made), collections.deque(made))
    )


def table(draw: random.Random, arity: int) -> Any:
    """A table of some form."""
    match draw.randrange(12):
        case 0 | 1 | 2:
            return rows(draw, arity)
        case 3:
            made: dict[Any, Any] = {}
            for _ in range(draw.randrange(4)):
                key = tuple(entry(draw, 0.2) for _ in range(arity))
                with contextlib.suppress(Exception):  # keys that refuse to be hashed
                    made[key if arity != 1 or draw.random() < 0.3 else key[0]] = number(draw)
            return made
        case 4 | 5:
            kinds: tuple[Any, ...] = (
                np.float64,
                np.float32,
                np.float16,
                np.longdouble,
                np.int8,
                np.int64,
                np.uint64,
                bool,
                complex,
                object,
                "U3",
                "S3",
                "M8[s]",
                "m8[s]",
                "V4",
                [("a", "i4"), ("v", "f8")],
            )
            dims = min(MOST_AXES, draw.choice((arity, arity, arity, draw.randrange(5), draw.choice((16, 32, 33, 64)))))
            shape = tuple(draw.choice((0, 1, 1, 2, 3)) if dims < 6 else 1 for _ in range(dims))
            made_array = np.zeros(shape, np.dtype(draw.choice(kinds)))
            if made_array.dtype.kind in "fc" and draw.random() < 0.2:
                made_array[...] = draw.choice((np.nan, np.inf, 0.5, -1))
            if made_array.dtype.kind == "O":
                made_array[...] = None
                for at in np.ndindex(*shape):
                    made_array[at] = entry(draw)
            if draw.random() < 0.2:
                return np.ma.array(made_array, mask=draw.random() < 0.5)
            return made_array
        case 6:
            count = draw.randrange(4)
            arguments = np.array(
                [[entry(draw, 0.0) for _ in range(arity)] for _ in range(count)], draw.choice((object, None))
            )
            values = draw.choice(
                (np.ones(count), [1.0] * count, None, "x", np.ones(count + 1), [number(draw) for _ in range(count)])
            )
            return (arguments, values)
        case 7:
            return pandas_frame(draw, arity)
        case 8:
            return polars_frame(draw, arity)
        case 9:
            return arrow_table(draw, arity)
        case 10:
            return draw.choice(
                (
                    Raises(),
                    *map(Arrays, ERRORS),
                    *map(Streams, ERRORS),
                    Streams(None),
                    Streams("x"),
                    Arrays(None),
                    Arrays("x"),
                    Arrays(np.ones((2,) * arity)),
                    *ENTRIES,
                )
            )
        case _:
            data = draw.choice((b"", b"ab", bytes(8)))
            return draw.choice(
                (
                    memoryview(data),
                    memoryview(bytearray(data)),
                    array.array("d", [1.0, 2.0]),
                    array.array("i", [1]),
                    memoryview(array.array("d", [1.0])),
                    bytearray(data),
                )
            )


def column(draw: random.Random, count: int, values: bool) -> list[Any]:
    pools: tuple[tuple[Any, ...], ...] = (
        ("a", "b", None),
        ("a", "b"),
        (1, 2, 3),
        (0.5, 1.0),
        (True, False),
        (2**40,),
        (2**31, 1),
        (math.nan, 1.0),
        ENTRIES,
    )
    pool = draw.choice(((0.5, 1.0), *pools) if values else pools)
    return [draw.choice(pool) for _ in range(count)]


def columns(draw: random.Random, arity: int) -> dict[str, list[Any]]:
    count, width = draw.choice((0, 1, 3)), draw.choice((arity, arity + 1, arity + 1, arity + 1, draw.randrange(5)))
    return {f"c{i}": column(draw, count, i == arity) for i in range(width)}


def plain_columns(draw: random.Random, arity: int) -> dict[str, list[Any]]:
    """Nothing out of the ordinary: from some of it pyarrow itself crashes, and polars panics."""
    plain = {int, float, str, bool, bytes}
    return {n: [v if type(v) in plain else None for v in c] for n, c in columns(draw, arity).items()}


def pandas_frame(draw: random.Random, arity: int) -> Any:
    import pandas as pd

    try:
        frame = pd.DataFrame(columns(draw, arity))
        for name in frame.columns:
            if draw.random() < 0.4:
                kind = draw.choice(
                    (
                        "Int64",
                        "Float64",
                        "string",
                        "category",
                        "boolean",
                        "UInt8",
                        "datetime64[ns]",
                        "complex",
                        "Int8",
                        "string[pyarrow]",
                        "int64[pyarrow]",
                        "Sparse[float]",
                    )
                )
                frame[name] = frame[name].astype(kind)
    except Exception:  # pandas's own refusal
        return pd.DataFrame()
    return frame


def polars_frame(draw: random.Random, arity: int) -> Any:
    import polars as pl

    try:
        frame = pl.DataFrame(plain_columns(draw, arity), strict=False)
        kinds = (
            pl.Int128,
            pl.UInt64,
            pl.Int8,
            pl.Float32,
            pl.String,
            pl.Categorical,
            pl.Decimal(38, 2),
            pl.Boolean,
            pl.Date,
            pl.Duration,
            pl.Binary,
            pl.List(pl.Int64),
            pl.Object,
            getattr(pl, "UInt128", pl.UInt64),  # not in the oldest release that is supported
            pl.Float64,
        )
        for name in frame.columns:
            if draw.random() < 0.4:
                frame = frame.with_columns(frame[name].cast(draw.choice(kinds), strict=False))
    except BaseException as error:  # polars's own refusal, panics included
        if isinstance(error, KeyboardInterrupt):
            raise
        return pl.DataFrame()
    return draw.choice((frame, frame, frame, frame.lazy()))


def arrow_table(draw: random.Random, arity: int) -> Any:
    import pyarrow as pa

    try:
        made = pa.table(plain_columns(draw, arity))
        kinds = (
            pa.int8(),
            pa.uint64(),
            pa.float16(),
            pa.float32(),
            pa.large_string(),
            getattr(pa, "string_view", pa.string)(),
            pa.binary(),
            pa.decimal128(38, 2),
            pa.decimal256(50, 1),
            pa.date32(),
            pa.timestamp("s"),
            pa.bool_(),
            pa.dictionary(pa.int8(), pa.string()),
            pa.dictionary(pa.int32(), pa.int64()),
            pa.list_(pa.int64()),
            pa.null(),
            pa.duration("s"),
            pa.time64("ns"),
        )
        for i, name in enumerate(made.column_names):
            if draw.random() < 0.4:
                made = made.set_column(i, name, made[name].cast(draw.choice(kinds), safe=False))
        if draw.random() < 0.2 and made.num_rows:
            data = bytes(draw.randrange(256) for _ in range(8))
            text = pa.StringArray.from_buffers(
                made.num_rows,
                pa.py_buffer(np.array([0, 2, 4, 8][: made.num_rows + 1], np.int32).tobytes()),
                pa.py_buffer(data),
            )
            made = made.set_column(0, "c0", text)
    except Exception:  # pyarrow's own refusal
        return pa.table({})
    return draw.choice((made, made, made.to_batches()[0] if made.num_rows else made, made.to_reader()))


def check(seed: int) -> str | None:
    """What is wrong, or nothing."""
    draw = random.Random(seed)
    key, arity, program = draw.choice(programs())
    given = table(draw, arity)
    options: dict[str, Any] = {"values": "probabilities"} if draw.random() < 0.2 else {}
    try:
        chart = program.run({key: given}, max_pops=1000, **options)
        chart["goal"]
    except dg.Error as error:
        return ours(error)
    return None


def ours(error: BaseException) -> str | None:
    """An error that code of ours made by accident, and that became a `dg.Error` like those of other people's code."""
    cause = error.__cause__
    if cause is None or isinstance(cause, dg.Error) or cause.__traceback__ is None:
        return None
    last = traceback.extract_tb(cause.__traceback__)[-1]
    accident = isinstance(cause, TypeError | IndexError | AttributeError | AssertionError | UnboundLocalError)
    if not accident or "dynagrad" not in last.filename:
        return None
    return f"{cause!r} in {last.filename}, line {last.lineno}: {error}"
