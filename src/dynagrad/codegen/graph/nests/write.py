"""Writes a loop nest as C++. Everything has been decided: statements are written in their order, at their levels.

The innermost loop can be vectorised: it carries nothing but reductions whose terms may be added in any order.
"""

from __future__ import annotations

from typing import assert_never

from ...cxx import literal
from ..body import Body
from .distribute import ArrayCall, Part, Room
from .model import (
    Accumulate,
    Accumulator,
    Addend,
    ArrayAccumulator,
    Combine,
    Convert,
    Definition,
    Digit,
    Elementwise,
    Expression,
    FromEnd,
    Load,
    LoopNest,
    OfRank,
    Operand,
    Store,
    Total,
    Triangle,
)

NEUTRAL = {
    "plus": {"real": "0.0", "integer": "0", "boolean": "0"},
    "times": {"real": "1.0", "integer": "1", "boolean": "1"},
    "larger": {"real": "(-HUGE_VAL)", "integer": "INT64_MIN"},
    "smaller": {"real": "HUGE_VAL", "integer": "INT64_MAX"},
}
"""What each reduction starts with."""
_RANKS = {"larger": "rank<true>", "smaller": "rank<false>"}


_INDEPENDENT = "DYNAGRAD_INDEPENDENT"


def write(code: Body, nest: LoopNest, independent: str = _INDEPENDENT) -> None:
    """Writes a nest into a function; `independent` is the pragma of an innermost loop whose rounds are that."""
    last = len(nest.loops)
    totals = nest.totals if nest.chunks else []
    for level in range(last + 1):
        if level:
            counter, length = nest.loops[level - 1]
            first, end = ("begin", "end") if nest.chunks and level == 1 else ("0", str(length))
            if level == last and nest.independent:
                code.line(independent)
            code.open(f"for (int64_t {counter} = {first}; {counter} < {end}; ++{counter})")
        for statement in nest.before:
            if statement.level == level and statement not in totals:
                code.line(statement_text(statement))
        if nest.chunks and not level:
            _open_chunks(code, nest)
    for stored in nest.stores:
        code.line(statement_text(stored))
    for level in range(last, -1, -1):
        if nest.chunks and not level:
            _close_chunks(code, nest)
        for ending in nest.after:
            if ending.level == level:
                code.line(statement_text(ending))
        if level:
            code.close()


def write_part(code: Body, part: Part) -> None:
    """Writes a part of a nest that is distributed into a function."""
    match part:
        case Room():
            code.line(f"alignas(64) {part.cxx} {part.name}[{part.length}]{' = {}' if part.open else ''};")
        case ArrayCall():
            code.line(f"{part.function}({', '.join((*part.results, *part.arguments, str(part.length)))});")
        case LoopNest():
            code.comes_from(part.lines if part.loops else ())
            write(code, part, f"{_INDEPENDENT}_VECTORS")


def statement_text(s: Definition | Accumulator | ArrayAccumulator | Store | Accumulate) -> str:
    """A statement in C++."""
    match s:
        case Definition():
            return f"const {s.cxx} {s.name} = {expression_text(s.value)};"
        case Accumulator():
            return f"{s.cxx} {s.name} = {NEUTRAL[s.by][s.kind]};"
        case ArrayAccumulator():
            return f"fill<{s.type.cxx}>({s.pointer}, {s.type.size}, {NEUTRAL[s.by][s.type.kind]});"
        case Store():
            at, value = f"{s.pointer}[{s.place}]", _value_text(s.value)
            return f"{at} = {s.by}({at}, {value});" if s.by else f"{at} = {value};"
        case Accumulate():
            return f"{s.name} = {s.by}({s.name}, {_value_text(s.value)});"


def expression_text(x: Expression) -> str:
    """A right side in C++."""
    match x:
        case Load(pointer, place):
            return f"{pointer}[{place}]"
        case Elementwise():
            return _operation_text(x)
        case Combine(by, left, right):
            return f"{by}({left}, {right})"
        case Convert(cxx, value):
            return f"static_cast<{cxx}>({value})"
        case FromEnd(place, length):
            return f"from_end({place}, {length})"
        case Digit(place, step, length):
            return f"({place}) / {step} % {length}"
        case Triangle():
            return f"{x.offset} {'<=' if x.lower else '>='} 0 ? {x.value} : {literal(0.0)}"
        case OfRank(rank):
            return f"of_rank({rank})"
    assert_never(x)


def _value_text(value: Operand | Addend) -> str:
    if isinstance(value, str):
        return value
    text = " * ".join(value.factors)
    text = f"static_cast<{value.cxx}>({text})" if value.cxx else text
    return f"{_RANKS[value.rank]}({text})" if value.rank else text


def _operation_text(x: Elementwise) -> str:
    """The C++ of an elementwise operation on names and literals."""
    if x.at is not None:
        return dict(x.operation.cxx_at)[x.at].format(*x.arguments)
    if x.in_loop and x.operation.in_loops:
        return f"{x.operation.in_loops}({', '.join(x.arguments)})"
    return x.operation.cxx.format(*x.arguments)


def _open_chunks(code: Body, nest: LoopNest) -> None:
    assert nest.chunks is not None
    for total, place in zip(nest.totals, nest.chunks.partials, strict=True):
        if isinstance(total, Accumulator):
            code.line(f"{total.cxx} {place}_of[kMostParts];")
            code.line(f"{total.cxx}* const {place} = {place}_of;")
    given = "[=](int64_t begin, int64_t end, [[maybe_unused]] int64_t part)"
    code.open(f"in_parallel({nest.loops[0][1]}, {nest.chunks.grain}, {given}")
    for total, place in zip(nest.totals, nest.chunks.partials, strict=True):
        if isinstance(total, ArrayAccumulator):
            code.line(f"{total.type.cxx}* const {total.pointer} = {place} + part * {total.type.size};")
        code.line(statement_text(total))


def _close_chunks(code: Body, nest: LoopNest) -> None:
    assert nest.chunks is not None
    totals: list[tuple[Total, str]] = list(zip(nest.totals, nest.chunks.partials, strict=True))
    for total, place in totals:
        if isinstance(total, Accumulator):
            code.line(f"{place}[part] = {total.name};")
    code.close(f"}}, {nest.chunks.unit});")
    for total, place in totals:
        code.line(statement_text(total))
        with code.block(f"for (int64_t part = 0; part < parts_of({nest.loops[0][1]}, {nest.chunks.grain}); ++part)"):
            if isinstance(total, ArrayAccumulator):
                at, one = f"{total.pointer}[i]", f"{place}[part * {total.type.size} + i]"
                code.line(f"for (int64_t i = 0; i < {total.type.size}; ++i) {at} = {total.by}({at}, {one});")
            else:
                code.line(f"{total.name} = {total.by}({total.name}, {place}[part]);")
