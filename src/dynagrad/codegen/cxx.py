"""C++ as text: a writer of indented lines, and literals for numbers, strings, comments and constant arrays.

All generated C++ is written with these; they do not know what it is about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

INDENT = "  "


class Writer:
    """Lines of C++ with the indentation of the blocks that are open."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self.depth = depth

    def line(self, text: str = "") -> None:
        self.lines.append(INDENT * self.depth + text if text else "")

    def open(self, text: str) -> None:
        self.line(f"{text} {{" if text else "{")
        self.depth += 1

    def close(self, text: str = "}") -> None:
        self.depth -= 1
        self.line(text)

    def close_to(self, depth: int) -> None:
        while self.depth > depth:
            self.close()

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        self.open(head)
        yield
        self.close(tail)

    @contextmanager
    def aside(self) -> Iterator[list[str]]:
        """Within this context, lines are written to a list of their own, which it yields."""
        kept, self.lines = self.lines, []
        written = self.lines
        yield written
        self.lines = kept


_INTEGER_MIN = -(2**63)


def literal(value: float | int | bool) -> str:
    """A number in C++; one with a sign in parentheses.

    >>> literal(2.0), literal(-1), literal(True), literal(float("-inf"))
    ('2.0', '(-1)', 'true', '(-HUGE_VAL)')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if value == _INTEGER_MIN:
            return "INT64_MIN"
        text = str(abs(value)) + ("LL" if abs(value) >= 2**31 else "")
        return text if value >= 0 else f"(-{text})"
    if math.isnan(value):
        return "double(NAN)"
    text = "HUGE_VAL" if math.isinf(value) else repr(abs(value))
    return text if math.copysign(1.0, value) > 0.0 else f"(-{text})"


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
