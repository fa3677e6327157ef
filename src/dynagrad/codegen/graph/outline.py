"""Loops over arrays as functions of their own: what a graph of thousands of loops is compiled as.

A compiler takes more than twice as long for a function of twice the length, and a round that is written out many times
(over the letters of a text) is much the same each time. So loops that differ in names alone become one function, which
is compiled once. Short graphs stay in one piece: there a call costs more than it saves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MANY = 128
"""Loops of a graph from which on they are functions."""

_NAME = re.compile(r"\b[a-z]+\d+\b(?!\()")  # of a variable; functions such as log2 are called
_DECLARED = re.compile(r"\b(?:double|int64_t|bool)\s*(?:\*\s*(?:const\s+)?)?([a-z]+\d+)\s*=")
_CHANGED = re.compile(r"^\s*([a-z]+\d+) = ")
_TIED = re.compile(r"\b(?:return|call|frame|slots)\b")  # what cannot stand elsewhere


class Outlines:
    """The functions of one source, by their text."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def call(self, lines: Sequence[str]) -> str | None:
        """The call of a function that does what these lines do; None where they have to stay."""
        text = "\n".join(lines)
        if _TIED.search(text):
            return None
        inside = set(_DECLARED.findall(text))
        changed = {m[1] for line in lines if (m := _CHANGED.match(line))} - inside
        new: dict[str, str] = {}
        body = _NAME.sub(lambda m: new.setdefault(m[0], f"n{len(new)}"), text)
        free = [name for name in new if name not in inside]
        parameters = ", ".join(f"auto& {new[n]}_at" if n in changed else f"auto const {new[n]}" for n in free)
        # In the loop it is a variable: what is in memory is taken for independent from round to round.
        first = "".join(f"    auto {new[n]} = {new[n]}_at;\n" for n in free if n in changed)
        last = "".join(f"    {new[n]}_at = {new[n]};\n" for n in free if n in changed)
        whole = f"({parameters}) {{\n{first}{body}\n{last}}}"
        name = self._names.setdefault(whole, f"loop{len(self._names)}")
        return f"{name}({', '.join(free)});"

    def definitions(self) -> list[str]:
        return [f"__attribute__((noinline)) void {name}{whole}" for whole, name in self._names.items()]


__all__ = ["MANY", "Outlines"]
