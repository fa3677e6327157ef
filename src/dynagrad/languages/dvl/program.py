"""What users hold: a `DVLProgram`, and a `Session`, which is a program that grows at a prompt.

Included files are put in their place here, and what a program says of its values is taken out. `machine.py` runs what
is left, `compiling/` makes machine code of it.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...charts.sources import file_text
from ...compiler.compiled import Compiled
from ...errors import Error, SyntaxError, cut, shown
from ...moved import renamed
from .builtins import of_fixed_point
from .checks import agrees, printed
from .data import QuotedSymbol
from .expand import definition, head, listed, want
from .lower import FORMS_OF_USERS, FunctionGroup, Item, LoweredValue, Meaning, fresh, sequence, wrong
from .machine import Machine
from .prelude import prelude
from .reader import ARROW, Atom, Datum, SourceText, is_symbol, read
from .reader import shown as datum_text

__getattr__ = renamed(__name__)

HOUR = 3600.0
"""The seconds that a compiled program may run for, unless told."""

_programs = itertools.count(1)
_DEEP = 20_000  # frames of Python, for text that is nested


@dataclass(frozen=True)
class Result:
    """The value of an expression of a program; `expected` is what the program says of it, and `holds` whether it is."""

    value: Any
    line: int
    expected: str | None = None
    holds: bool = True

    def __str__(self) -> str:
        if self.expected is None or self.holds:
            return printed(self.value)
        return f"{printed(self.value)}, and line {self.line} says {self.expected}"


class Session:
    """A program that grows, for a prompt. A name may be defined again, and then all that used it is, too."""

    def __init__(self) -> None:
        self.definitions: dict[str, Datum] = {}
        self._begin()

    def _begin(self) -> None:
        self.machine = Machine()
        self.scope, self.known = prelude()

    def enter(self, text: str, count: int = 1) -> list[Any]:
        """The values of the expressions of a text; Incomplete where more of it is to come."""
        return [result.value for result in self.results(text, count)]

    def results(self, text: str, count: int = 1) -> list[Result]:
        """The same, each with the value that the text expects."""
        source = SourceText(text, f"<input {count}>")
        with nested():
            try:
                expected, body = _expectations(_included(source, Path(), [], set()))
            except SyntaxError as error:
                if any(words in error.message for words in _OPEN):
                    raise Incomplete(str(error)) from error
                raise
            named = {str(defined[0].value): datum for datum in body if (defined := definition(datum)) is not None}
            if named.keys() & self.definitions.keys():
                before = self.machine, self.scope, self.known
                definitions = {**self.definitions, **named}
                self._begin()
                try:
                    self._run([*definitions.values()])
                except BaseException:  # Ctrl-C included
                    self.machine, self.scope, self.known = before
                    raise
                self.definitions = definitions
                return self._run([datum for datum in body if definition(datum) is None], expected)
            found = self._run(body, expected)
            self.definitions.update(named)
        return found

    def _run(self, body: list[Datum], expected: Mapping[Datum, Datum] | None = None) -> list[Result]:
        items, scope, known = sequence(body, self.scope, self.known)
        results = []
        for item in items:
            found = self.machine.run(item)
            if isinstance(item, LoweredValue) and not item.symbol:
                results.append(_result(item, found, expected or {}))
        self.scope, self.known = scope, known
        return results

    def names(self) -> list[str]:
        """What may be typed, for completion."""
        return sorted({*map(str, self.scope.names), *FORMS_OF_USERS, "define", "include"})


_OPEN = ("is never closed", "nothing follows this", "what is expected follows")
"""In messages about a text to which more may be added."""


class Incomplete(Error):
    """A text that ends inside of a list."""


class DVLProgram:
    """A DVL program: its text, or the path of a file of it.

    `functions` has functions of Python, by the names that the program knows them by.

    >>> program = DVLProgram("(define (f x) (* x x x)) ((derivative f) 2) ===> 12")
    >>> print(program.run()[0], program["f"](3.0))
    12 27.0
    """

    def __init__(self, source: str | Path, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        given = dict(functions or {})
        for name, f in given.items():
            if not callable(f):
                raise Error(f"functions has {shown(f)} for {name}, which is no function")
        self.functions = given
        with nested():
            if isinstance(source, Path):
                self.file = str(source)
                body = _file(source, [], set())
            else:
                self.file = f"<dvl {next(_programs)}>"
                body = _included(SourceText(source, self.file), Path(), [], set())
            self.expected, parts = _expectations(body)
            scope, known = prelude()
            names: dict[str, Meaning] = {QuotedSymbol(name): fresh(name) for name in given}
            self.foreign = {str(names[QuotedSymbol(name)]): f for name, f in given.items()}
            self.items: list[Item]
            self.items, inner, _ = sequence(parts, scope | names, known)
        self.names = {name: at for name, at in inner.names.items() if isinstance(at, str)}
        self._machine: Machine | None = None

    def machine(self, max_steps: int | None = None) -> Machine:
        """A machine that knows the functions of Python that were given, and nothing of the program yet."""
        made = Machine(max_steps)
        for name, f in self.foreign.items():
            made.bind(name, f)
        return made

    def run(self, max_steps: int | None = None) -> list[Result]:
        """The values of the expressions of the program, in order. `max_steps` ends each after so many calls."""
        return list(self.results(max_steps))

    def results(self, max_steps: int | None = None) -> Iterator[Result]:
        """The same, each as it is found."""
        machine = self.machine(max_steps)
        for item in self.items:
            with nested():
                found = machine.run(item)
            if isinstance(item, LoweredValue) and not item.symbol:
                with nested():
                    result = _result(item, found, self.expected)
                yield result
        self._machine = machine

    def compiled(self, timeout: float | None = HOUR) -> Compiled:
        """The program as a function of machine code: without arguments, its result is the values of the expressions.
        `timeout` is how many seconds a call may take, once it is compiled."""
        from .compiling.program import Whole  # for a quick start

        return Compiled(Whole(self.items, self.foreign), timeout)

    def compiled_results(self, timeout: float | None = HOUR) -> list[Result]:
        """The values of the expressions, by machine code, which may run for so many seconds in all: an hour unless
        told, and None for no limit. Raises NotConverged where it runs for longer."""
        items = [item for item in self.items if isinstance(item, LoweredValue) and not item.symbol]
        try:
            with nested():
                found = self.compiled(timeout)()
        except Error as problem:
            if str(problem) == of_fixed_point(str(problem)):
                raise
            raise type(problem)(of_fixed_point(str(problem))) from problem
        for item, value in zip(items, found, strict=True):
            if _has_nan(value):
                message = (
                    "this is not a number, as machine code computes it; run it uncompiled to see where that begins"
                )
                raise wrong(message, item.datum)
        with nested():
            return [_result(item, value, self.expected) for item, value in zip(items, found, strict=True)]

    def __getitem__(self, name: str) -> Any:
        """What the program defines under a name: a procedure can be called from Python."""
        at = self.names.get(QuotedSymbol(name))
        if at is None:
            raise Error(f"the program defines no `{name}`")
        if self._machine is None:
            for _ in self.results():
                pass
        assert self._machine is not None
        if at not in self._machine.known:
            for group in prelude()[1].needed([at], _anywhere()):
                self._machine.run(FunctionGroup(group))
        return self._machine.value(at)


def _result(item: LoweredValue, value: Any, expected: Mapping[Datum, Datum]) -> Result:
    """A value, with the value that the program expects there."""
    if _has_nan(value):
        raise wrong("this is not a number", item.datum)
    said = expected.get(item.datum)
    line = item.datum.span.line
    return Result(value, line) if said is None else Result(value, line, datum_text(said), agrees(value, said))


def _has_nan(x: Any) -> bool:
    left, seen = [x], set()
    while left:
        x = left.pop()
        if isinstance(x, tuple):
            if id(x) not in seen:  # parts may be shared
                seen.add(id(x))
                left += x
        elif type(x) is float and x != x:
            return True
    return False


def _anywhere() -> Datum:
    return read(SourceText("here", "<dvl>"))[0]


@contextmanager
def nested() -> Iterator[None]:
    """Room for text that is nested deeply."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEP))
    try:
        yield
    except Error:
        raise
    except RecursionError:
        raise SyntaxError("the text of the program is nested too deep") from None
    finally:
        sys.setrecursionlimit(before)


def _file(path: Path, around: list[Path], done: set[Path]) -> list[Datum]:
    """The data of a file, with those of the files that it includes in the place of each `include`."""
    text = file_text(path)
    at = path.resolve()
    done.add(at)
    return _included(SourceText(text, str(path)), path.parent, [*around, at], done)


def _included(source: SourceText, folder: Path, around: list[Path], done: set[Path]) -> list[Datum]:
    found: list[Datum] = []
    for datum in read(source):
        if head(datum) != "include":
            found.append(datum)
            continue
        shape = '(include "file.dvl") is wanted'
        items = listed(datum, shape)
        want(len(items) == 2 and isinstance(items[1], Atom) and type(items[1].value) is str, shape, datum)
        assert isinstance(items[1], Atom)
        path = folder / items[1].value
        try:
            at = path.resolve() if path.is_file() else None
        except (OSError, ValueError, RuntimeError):  # a name that no file can have, links in a circle
            at = None
        if at is None:
            raise wrong(f"there is no file {cut(str(path))!r}", datum)
        if at in around:
            raise wrong(f"{path} includes itself", datum)
        if at not in done:
            found += _file(path, around, done)
    return found


def _expectations(body: list[Datum]) -> tuple[dict[Datum, Datum], list[Datum]]:
    """What the program says of its expressions, and the program without that."""
    expected: dict[Datum, Datum] = {}
    left: list[Datum] = []
    waiting: Datum | None = None
    for datum in body:
        arrow = is_symbol(datum, ARROW)
        if waiting is not None:
            want(not arrow, f"what is expected follows {ARROW}", datum)
            want(bool(left) and left[-1] not in expected, f"an expression stands before {ARROW}", waiting)
            want(head(left[-1]) != "define", f"an expression stands before {ARROW}, and this is a definition", left[-1])
            expected[left[-1]] = datum
            waiting = None
        elif arrow:
            want(bool(left), f"an expression stands before {ARROW}", datum)
            waiting = datum
        else:
            left.append(datum)
    want(waiting is None, f"what is expected follows {ARROW}", waiting or (body[-1] if body else _anywhere()))
    return expected, left
