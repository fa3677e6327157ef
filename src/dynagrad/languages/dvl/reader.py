"""From the text of a file to data: lists, symbols, numerals, each with its place. Nothing is known of their meaning.

The reader keeps a stack of its own, so that no nesting is too deep for it.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...compiler.frontend.core import Position
from ...errors import Span, SyntaxError
from .data import QuotedSymbol


@dataclass(frozen=True, slots=True, eq=False)
class SourceText:
    """A text and the file that it came from; errors in a library are those of the program that calls it."""

    text: str
    file: str
    library: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """A symbol, a real, a truth value or a text."""

    value: Any
    span: Span
    source: SourceText


@dataclass(frozen=True, slots=True, eq=False)
class ListForm:
    """A list; `tail` is what stands after a dot."""

    items: tuple[Datum, ...]
    span: Span
    source: SourceText
    tail: Datum | None = None


Datum = Atom | ListForm

ARROW = "===>"
_TOKEN = re.compile(
    r"""(?P<space>\s+|;[^\n]*)
      | (?P<block>\#\|)
      | (?P<skip>\#;)
      | (?P<tag>\#\[[^\]\n]*\])
      | (?P<open>[(\[])
      | (?P<close>[)\]])
      | (?P<quote>')
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<word>[^\s()\[\]'";]+)""",
    re.VERBOSE | re.DOTALL,
)
_BLOCK = re.compile(r"#\||\|#")
_NUMERAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?\d+/\d+")
_DOT = "a dot stands before the last datum of a list, and after another"
_CLOSES = {"(": ")", "[": "]"}
_TRUTHS = {"#t": True, "#f": False, "#true": True, "#false": False}


def is_symbol(datum: Datum, name: str) -> bool:
    """Whether a datum is this symbol, and not a text of the same letters."""
    return isinstance(datum, Atom) and type(datum.value) is QuotedSymbol and datum.value == name


def problem(message: str, at: Datum | None) -> SyntaxError:
    """An error that points at a datum."""
    if at is None:
        return SyntaxError(message)
    return SyntaxError(message, at.source.text, at.span, at.source.file)


def read(source: SourceText) -> list[Datum]:
    """The data of a text.

    >>> [shown(datum) for datum in read(SourceText("(+ 1 2/4) ; a sum", "f.dvl"))]
    ['(+ 1 0.5)']
    """
    top: list[Datum] = []
    stack: list[_Open] = [_Open("", Span(0, 0, 1, 1), top)]
    for kind, text, span in _tokens(source):
        here = stack[-1]
        if kind == "open":
            stack.append(_Open(text, span, []))
            continue
        if kind in ("quote", "skip"):
            here.before.append((kind, span, len(here.items)))
            continue
        datum: Datum
        if kind == "close":
            if len(stack) == 1:
                raise SyntaxError("this parenthesis closes nothing", source.text, span, source.file)
            if text != _CLOSES[here.opened]:
                message = f"`{here.opened}` is closed by `{text}`, and should be by `{_CLOSES[here.opened]}`"
                raise SyntaxError(message, source.text, span, source.file)
            if here.before:
                raise SyntaxError("nothing follows this", source.text, here.before[-1][1], source.file)
            stack.pop()
            datum = here.closed(source, span)
        else:
            datum = Atom(_value(kind, text, span, source), span, source)
            if text == "." and (len(stack) == 1 or here.before):
                raise problem(_DOT, datum)
        _put(stack[-1], datum, source)
    if len(stack) > 1:
        raise SyntaxError("this parenthesis is never closed", source.text, stack[-1].span, source.file)
    if stack[0].before:
        raise SyntaxError("nothing follows this", source.text, stack[0].before[-1][1], source.file)
    return top


class _Open:
    """A list that is being read; `before` are quotes and `#;` that wait for a datum."""

    def __init__(self, opened: str, span: Span, items: list[Datum]) -> None:
        self.opened, self.span, self.items = opened, span, items
        self.before: list[tuple[str, Span, int]] = []

    def closed(self, source: SourceText, end: Span) -> ListForm:
        span = Span(self.span.start, end.end, self.span.line, self.span.column)
        items = self.items
        dots = [i for i, item in enumerate(items) if is_symbol(item, ".")]
        if not dots:
            return ListForm(tuple(items), span, source)
        if dots != [len(items) - 2] or len(items) < 3:
            raise problem(_DOT, items[dots[0]])
        return ListForm(tuple(items[:-2]), span, source, items[-1])


def _put(here: _Open, datum: Datum, source: SourceText) -> None:
    """Adds a datum to a list, with the quotes before it."""
    while here.before and here.before[-1][2] == len(here.items):
        kind, span, _ = here.before.pop()
        if kind == "skip":
            return
        whole = Span(span.start, datum.span.end, span.line, span.column)
        datum = ListForm((Atom(QuotedSymbol("quote"), span, source), datum), whole, source)
    here.items.append(datum)


def _value(kind: str, text: str, span: Span, source: SourceText) -> Any:
    if kind == "text":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if kind == "tag":
        return QuotedSymbol(text)
    if text in _TRUTHS:
        return _TRUTHS[text]
    if _NUMERAL.fullmatch(text):
        _, slash, bottom = text.partition("/")
        if slash and not bottom.strip("0"):
            raise SyntaxError("this numeral divides by zero", source.text, span, source.file)
        try:
            value = float(Fraction(text)) if slash else float(text)
        except (OverflowError, ValueError):
            value = math.inf
        if math.isinf(value):
            message = "this numeral is larger than any real, or longer than can be read"
            raise SyntaxError(message, source.text, span, source.file)
        return value
    if text.startswith("#"):
        raise SyntaxError(f"`{text}` is nothing; there are #t and #f", source.text, span, source.file)
    return QuotedSymbol(text)


def _tokens(source: SourceText) -> Iterator[tuple[str, str, Span]]:
    text, at, line, start = source.text, 0, 1, 0  # `start` is where the line begins
    while at < len(text):
        found = _TOKEN.match(text, at)
        span = Span(at, at + 1, line, at - start + 1)
        if found is None:
            message = "this text is never closed" if text[at] == '"' else f"{text[at]!r} cannot stand here"
            raise SyntaxError(message, text, span, source.file)
        kind, end = str(found.lastgroup), found.end()
        if kind == "block":
            end = _after_block(source, at, span)
        elif kind != "space":
            yield kind, found[0], Span(at, end, line, at - start + 1)
        breaks = text.count("\n", at, end)
        if breaks:
            line += breaks
            start = text.rindex("\n", at, end) + 1
        at = end


def _after_block(source: SourceText, at: int, span: Span) -> int:
    """The end of a comment between `#|` and `|#`, which may hold others."""
    depth = 0
    for found in _BLOCK.finditer(source.text, at):
        depth += 1 if found[0] == "#|" else -1
        if not depth:
            return found.end()
    raise SyntaxError("this comment is never closed", source.text, span, source.file)


def shown(datum: Datum) -> str:
    """A datum as text."""
    if isinstance(datum, ListForm):
        inside = " ".join(map(shown, datum.items))
        return f"({inside})" if datum.tail is None else f"({inside} . {shown(datum.tail)})"
    value = datum.value
    if isinstance(value, bool):
        return "#t" if value else "#f"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value) if isinstance(value, QuotedSymbol) else '"' + re.sub(r'(["\\])', r"\\\1", str(value)) + '"'


def place(datum: Datum) -> Position | None:
    """The place of a datum, unless it is in a library: there, errors have the place of the call from outside."""
    return None if datum.source.library else position(datum)


def position(datum: Datum) -> Position:
    """The place of a datum as the compiler has it: columns in bytes, from 0."""
    file, span = datum.source.file, datum.span
    starts, offsets = _lines(datum.source)
    end_line = bisect_right(starts, span.end)
    start, stop = starts[span.line - 1], starts[end_line - 1]
    before, end = span.start - start, span.end - stop
    if offsets is not None:
        before, end = offsets[span.start] - offsets[start], offsets[span.end] - offsets[stop]
    return Position(file, span.line, before, end_line, end)


@functools.lru_cache(maxsize=32)
def _lines(source: SourceText) -> tuple[list[int], list[int] | None]:
    """Where lines begin, and how many bytes are before each letter, unless that is their number."""
    file, text = source.file, source.text
    if file.startswith("<"):  # errors show lines of texts that are in no file
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    if text.isascii():
        return starts, None
    return starts, [0, *itertools.accumulate(len(letter.encode(errors="replace")) for letter in text)]
