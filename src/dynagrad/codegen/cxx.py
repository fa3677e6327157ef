"""C++ as text: a writer of indented lines, and literals for numbers, strings, comments and constant arrays.

All generated C++ is written with these; they do not know what it is about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

INDENT = "  "


class Writer:
    """Lines of C++ with the indentation of the blocks that are open."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self.depth = depth

    def line(self, text: str = "", note: str = "") -> None:
        """A line, with a comment behind it."""
        behind = f"  // {note}" if note else ""
        self.lines.append(INDENT * self.depth + text + behind if text else "")

    def open(self, text: str, note: str = "") -> None:
        self.line(f"{text} {{" if text else "{", note)
        self.depth += 1

    def close(self, text: str = "}") -> None:
        self.depth -= 1
        self.line(text)

    def otherwise(self) -> None:
        """Closes the block of an `if`, and opens that of its `else`."""
        self.close("} else {")
        self.depth += 1

    def close_to(self, depth: int) -> None:
        while self.depth > depth:
            self.close()

    def switch(
        self, number: str, cases: Mapping[int, Sequence[str]], *, known: bool = True, returns: bool = False
    ) -> None:
        """Statements by a number. One that is `known` to be among the cases needs no test where there is only one.

        They may `continue` a loop, but not `break`; with `returns` each of them returns.
        """
        if len(cases) == 1 and known:
            for statement in next(iter(cases.values())):
                self.line(statement)
            return
        self.open(f"switch ({number})")
        for value, statements in cases.items():
            if len(statements) == 1:
                self.line(f"case {value}: {statements[0]}{'' if returns else ' break;'}")
            elif statements:
                self.open(f"case {value}:")
                for line in [*statements, *([] if returns else ["break;"])]:
                    self.line(line)
                self.close()
        self.close()

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        self.open(head)
        yield
        self.close(tail)

    @contextmanager
    def aside(self, deeper: int = 0) -> Iterator[list[str]]:
        """Within this context, lines are written to a list of their own, which it yields."""
        kept, self.lines = self.lines, []
        written = self.lines
        self.depth += deeper
        yield written
        self.depth -= deeper
        self.lines = kept

    def function(self, head: str, body: list[str]) -> None:
        """A function whose body was written aside, one deeper."""
        self.open(head)
        self.lines += body
        self.close()
        self.line()


def paragraphs(definitions: Sequence[Sequence[str]]) -> list[str]:
    """Definitions as lines, with an empty one between them.

    >>> paragraphs([["int a;"], ["int f() {", "}"]])
    ['int a;', '', 'int f() {', '}']
    """
    first, *others = definitions
    return [*first, *(line for lines in others for line in ["", *lines])]


_INTEGER_MIN = -(2**63)


def literal(value: float | int | bool, *, operand: bool = True) -> str:
    """A number in C++; one with a sign in parentheses, unless it is no `operand`.

    >>> literal(2.0), literal(-1), literal(True), literal(float("-inf")), literal(-1, operand=False)
    ('2.0', '(-1)', 'true', '(-HUGE_VAL)', '-1')
    """
    negative = "(-{})" if operand else "-{}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if value == _INTEGER_MIN:
            return "INT64_MIN"
        text = str(abs(value)) + ("LL" if abs(value) >= 2**31 else "")
        return text if value >= 0 else negative.format(text)
    if math.isnan(value):
        return "double(NAN)"
    text = "HUGE_VAL" if math.isinf(value) else repr(abs(value))
    return text if math.copysign(1.0, value) > 0.0 else negative.format(text)


def at_offset(pointer: object, by: int) -> str:
    """A pointer, moved by so many elements.

    >>> at_offset("frame", 0), at_offset("frame", 64)
    ('frame', 'frame + 64')
    """
    return f"{pointer} + {by}" if by else str(pointer)


def comment(text: str) -> str:
    """A text made safe for a one-line comment: nothing in it ends the line, or continues the comment on the next.

    >>> print(comment("a\\nb ??/"))
    a b ? ?/
    """
    line = " ".join(text.split()).replace("??", "? ?")[:300]
    line = "".join(c if c.isprintable() else f"<{ord(c):X}>" for c in line)
    return line + "." if line.endswith("\\") else line


def string(text: str) -> str:
    """A C++ string literal; bytes beyond plain ASCII as octal escapes, which end after three digits."""
    out = []
    for byte in text.encode("utf-8", "surrogatepass"):
        char = chr(byte)
        out.append(char if 32 <= byte < 127 and char not in '"\\?' else f"\\{byte:03o}")
    return f'"{"".join(out)}"'


def array(kind: str, name: str, values: Iterable[object], end: str = "0") -> str:
    """The definition of a constant array; `end` is appended, because C++ has no empty arrays."""
    listed = [*map(str, values), end]
    lines: list[str] = []
    for at in range(0, len(listed), 16):
        lines.append(INDENT + ", ".join(listed[at : at + 16]))
    body = listed[0] if len(listed) == 1 else "\n" + ",\n".join(lines) + "\n"
    return f"inline constexpr {kind} {name}[] = {{{body}}};"
