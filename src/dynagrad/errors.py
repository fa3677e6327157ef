"""Errors and warnings: every error that a user can cause is a `dg.Error`, with its place.

There are two kinds of place: a `Span` of source text, shown as a line with carets, and a `Place` among facts, shown as
predicate, file, row and column. Warnings are issued here, so that all point at the line of the caller. This file
imports nothing of ours, and has no checks of its own.
"""

from __future__ import annotations

import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """A range of source text: offsets `start` to `end` (half open), and the line and column of its start, from 1."""

    start: int
    end: int
    line: int
    column: int


def excerpt(source: str, span: Span) -> str:
    """The line of `source` that `span` starts in, with carets under the span.

    >>> print(excerpt("a += b.", Span(5, 6, 1, 6)))
      1 | a += b.
        |      ^
    """
    lines = source.split("\n")
    line = lines[span.line - 1] if span.line <= len(lines) else ""
    column, width = span.column - 1, max(1, min(span.end - span.start, len(line) - span.column + 1))
    if len(line) > 160:  # a very long line is shown around the place alone
        left = max(0, column - 60)
        line, column, width = line[left : left + 160], column - left, min(width, 100)
    line = line.replace("\t", " ")
    gutter = f"{span.line:>3}"
    return f"{gutter} | {line}\n{' ' * len(gutter)} | {' ' * column}{'^' * width}"


def at(source: str, span: Span, filename: str = "") -> str:
    """The end of a message that says where in a text something is.

    >>> print("This is wrong." + at("a += b.", Span(5, 6, 1, 6)))
    This is wrong.
      at line 1, column 6
      1 | a += b.
        |      ^
    """
    where = f"{filename}, line" if filename else "line"
    return f"\n  at {where} {span.line}, column {span.column}\n{excerpt(source, span)}"


def cut(text: str, length: int = 200) -> str:
    """The start of a text, for messages."""
    return text if len(text) <= length else f"{text[:length]}..."


_LONG_WORD = re.compile(r"`([^`\n]{120})[^`\n]{80,}`")


def _cut_words(message: str) -> str:
    """A message in which long quotations of source text are cut.

    >>> len(_cut_words(f"Nothing binds the variable `{'X' * 1_000_000}`."))
    153
    """
    return _LONG_WORD.sub(r"`\1...`", message)


def shown(value: object) -> str:
    """A short text of any object, for messages."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"of {value.bit_length()} bits"
    if isinstance(value, str | bytes) and len(value) > 60:
        return f"{value[:60]!r}..."
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:80]}..."


def shown_path(path: object) -> str:
    """A short text of a path, for messages: of a long one the end, which says most.

    >>> shown_path("a/b"), shown_path("/" + "x" * 500 + "/name")[-20:]
    ("'a/b'", "xxxxxxxxxxxxxx/name'")
    """
    text = str(path)
    return repr(text) if len(text) <= 100 else f"...{text[-97:]!r}"


def raised(error: BaseException) -> str:
    """A text of an exception that other code raised, for messages.

    >>> raised(ValueError("no such file")), raised(KeyError())
    ('ValueError: no such file', 'KeyError')
    """
    try:
        said = cut(str(error))
    except Exception:
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


@dataclass(frozen=True, slots=True)
class Place:
    """The place of facts, for messages. `lines` has the line of each row in a file, where these are not 1, 2, ...;
    a `columnar` file has no lines."""

    key: str
    arity: int
    file: str = ""
    lines: Sequence[int] | None = field(default=None, repr=False)
    columnar: bool = field(default=False, repr=False)

    def error(self, message: str, row: int | None = None, column: int | None = None) -> FactError:
        """The error for row and column, both from 0; the column after the arguments is the value."""
        words = [cut(self.key)]
        if self.file:
            words.append(cut(self.file))
        if row is not None:
            words.append(self.row(row))
        if column is not None:
            words.append("value" if column == self.arity else f"column {column + 1}")
        return FactError(f"{', '.join(words)}: {message}")

    def checked(self, row: int, column: int, value: object, check: Callable[[object], Any]) -> Any:
        """The result of `check` for a value; a `FactError` that it raises gets the place of the value."""
        try:
            return check(value)
        except FactError as error:
            raise self.error(str(error), row, column) from None

    def row(self, row: int) -> str:
        """Which row it is, for messages: `line 3` of a text file, else `row 3`."""
        noun = "line" if self.file and not self.columnar else "row"
        return f"{noun} {self.lines[row] if self.lines else row + 1}"

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A context in which exceptions of other libraries' tables become `FactError`s."""
        try:
            yield
        except Error:
            raise
        except Exception as error:
            raise self.error(f"the table cannot be read: {raised(error)}") from error


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """The places of rows that were put together from several tables: each with its first row, in order."""

    parts: tuple[tuple[int, Place], ...]

    def of(self, row: int) -> tuple[Place, int]:
        """The place of a row, and which row it is there."""
        first, place = [part for part in self.parts if part[0] <= row][-1]
        return place, row - first

    def error(self, message: str, row: int, column: int | None = None) -> FactError:
        """The error for row and column, as where it came from."""
        place, there = self.of(row)
        return place.error(message, there, column)


class Error(Exception):
    """The base of all errors that Dynagrad raises on purpose.

    >>> import dynagrad as dg
    >>> try:
    ...     dg.Program("goal += word(_).").run({"word/1": [], "wrod/1": []})
    ... except dg.Error as error:
    ...     print(error)
    The program has no predicate `wrod/1`. Did you mean `word/1`?
    """

    of_the_run: str | None = None
    """What it says without the number that its example has in a batch; None outside batches."""


class SourceError(Error):
    """A program's text is wrong; the message shows the line, the column and a caret."""

    def __init__(self, message: str, source: str = "", span: Span | None = None, filename: str = "") -> None:
        message = _cut_words(message)
        self.message, self.source, self.span, self.filename = message, source, span, filename
        super().__init__(message if span is None else message + at(source, span, filename))


class SyntaxError(SourceError):
    """The text is not a program."""


class ProgramError(SourceError):
    """The text is a program, but it cannot mean anything: unbound variables, types that cannot meet, bad cycles."""


class FactError(Error):
    """Facts that do not fit the program: the message names the predicate, the row and the column."""


class QueryError(Error):
    """A lookup or a query that does not fit the program."""


class NotComputed(QueryError):
    """An item was looked up that was not derived because the declared outputs do not need it."""


class LiftError(SourceError):
    """A Python function cannot be compiled: the message names its file and line, and says what is supported."""


class CompileError(Error):
    """The C++ compiler failed; the message has its output and the path of the source."""


class RunError(Error):
    """A compiled function failed as it ran; the message names the function. Or memory ran out: `RoomError`.

    Subclasses are also the errors that Python would have raised: IndexError, RecursionError, MemoryError. What the
    function raises itself, by `raise` or `assert`, is this error, with the name of the exception in its message.
    """


class PlaceError(RunError, IndexError):
    """An index is out of range: in a compiled function, or of a sequence such as `chart.sample` gives."""


class DepthError(RunError, RecursionError):
    """The recursion of compiled functions is too deep."""


class RoomError(RunError, MemoryError):
    """There is no memory left, for facts, a run, its derivatives, an answer or a compiled function.

    It is a MemoryError, too. Computing less at once may help, and so may `max_items` and `max_bytes`, which end a run
    before. A compiled function also raises it where a loop would save more than its limit.

    >>> import dynagrad as dg
    >>> issubclass(dg.RoomError, MemoryError) and issubclass(dg.RoomError, dg.Error)
    True
    """


class ValueRangeError(Error):
    """A value left what its semiring can hold: an inexact count, or NaN; the message names the item."""


class NotConverged(Error):
    """A call did not complete: it reached a limit on items, bytes or time, or there is no finite value.

    `.chart` is the chart so far, where a run was stopped that had one. It is None where compiling, loading facts or
    differentiating took too long, where there was no room for a chart, and for fixed points of functions. Where values
    diverge, `.cycle` has the items around a cycle along which they grow, each an antecedent of the next, and `.radius`
    the spectral radius of the component, where it is known.
    """

    def __init__(
        self, message: str, chart: Any = None, cycle: tuple[str, ...] = (), radius: float | None = None
    ) -> None:
        super().__init__(message)
        self.chart, self.cycle, self.radius = chart, cycle, radius


class ProgramWarning(UserWarning):
    """Something in a program that is allowed but probably not meant."""

    of_the_run: str | None = None
    """What it says without the number that its example has in a batch; None outside batches."""


class NotDifferentiable(Error):
    """A derivative was asked for where there is none: the message names the operation."""


# -- warnings ----------------------------------------------------------------------------------------------------------

HOUSE = str(Path(__file__).parent / "_")[:-1]
"""The prefix of the paths of our own files."""


Said = list[tuple[str, type[Warning]]]
"""Warnings that are still to be issued: messages and categories."""


class _Waiting(threading.local):
    """The warnings of this thread that another one will issue, or None where it issues them itself."""

    said: Said | None = None


_waiting = _Waiting()


@contextmanager
def collected() -> Iterator[Said]:
    """A context that collects the warnings of this thread, instead of issuing them.

    A thread of ours has no caller to point at, and filters that its caller set may be gone; so the thread that waits
    for it issues them.
    """
    before, said = _waiting.said, Said()
    _waiting.said = said
    try:
        yield said
    finally:
        _waiting.said = before


def say(said: Said) -> None:
    """Issues warnings that were collected."""
    for message, category in said:
        warn(message, category)


def counted(count: int, noun: str, several: str | None = None) -> str:
    """So many of something, for messages.

    >>> counted(1, "row"), counted(1200, "row"), counted(2, "entry", "entries")
    ('1 row', '1,200 rows', '2 entries')
    """
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def warn(message: str, category: type[Warning] = ProgramWarning) -> None:
    """Issues a warning that points at the line outside of this package that called into it."""
    if _waiting.said is not None:
        _waiting.said.append((message, category))
        return
    level, _ = _caller()
    warnings.warn(message, category, stacklevel=level)


def refused(said: Said) -> Warning | None:
    """The first of these warnings that the filters turn into an error, at the line where `warn` would point."""
    if not said:
        return None
    _, frame = _caller()
    module = frame.f_globals.get("__name__") or "<unknown>"
    filters = getattr(warnings, "_get_filters", lambda: warnings.filters)()  # from 3.14 on each context has its own
    for message, category in said:
        for action, text, kind, place, line in filters:
            if (
                issubclass(category, kind)
                and _matches(text, message)
                and _matches(place, module)
                and line in (0, frame.f_lineno)
            ):
                if action == "error":
                    return category(message)
                break
    return None


def _matches(pattern: Any, text: str) -> bool:
    """Whether a pattern of a filter of `warnings` matches."""
    return pattern is None or bool(pattern == text if isinstance(pattern, str) else pattern.match(text))


def _caller() -> tuple[int, FrameType]:
    """The frame outside of this package that called into it, and its stack level, counted from the caller of this."""
    level, frame = 0, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HOUSE):
        level, frame = level + 1, frame.f_back
    return level, frame
