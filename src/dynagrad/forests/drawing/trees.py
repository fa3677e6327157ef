"""Derivations in the notations of other programs: nested tuples, brackets, `nltk.Tree`, and LaTeX.

Pictures are in `pictures.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...packages import optional
from .boxes import Box


def nested(boxes: Sequence[Box], conditions: bool = False) -> Any:
    """Nested tuples; with `conditions`, these are leaves too."""

    def made(box: Box, parts: list[Any]) -> Any:
        parts = [*parts, *box.conditions] if conditions else parts
        return box.text if box.leaf and not parts else (box.text, *parts)

    return _folded(boxes, made)


def brackets(boxes: Sequence[Box]) -> str:
    """Text in brackets, as treebanks have it."""
    return _written(boxes, lambda box: _bracketed(box.text) if box.leaf else f"({_bracketed(box.text)}", ")")


def _bracketed(text: str) -> str:
    plain = text and not any(c in " ()'\t\n" for c in text)
    return text if plain else "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def nltk_tree(boxes: Sequence[Box]) -> Any:
    """An `nltk.Tree`. Raises `Error` where nltk is not installed."""
    tree = optional("nltk", "derivation.nltk()").Tree
    return _folded(boxes, lambda box, parts: box.text if box.leaf else tree(box.text, parts))


_LATEX = {c: f"\\{c}" for c in "_#$%&{}"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "'": r"\textquotesingle{}",
    '"': r"\char34{}",
}
"""Characters that LaTeX would read or print otherwise."""


def latex(boxes: Sequence[Box]) -> str:
    """A tree for LaTeX, with its package `forest`; braces keep the commas and brackets of a text from it."""
    text = _written(boxes, lambda box: "[{" + "".join(_LATEX.get(c, c) for c in box.text) + "}", "]", leaves=True)
    return f"\\begin{{forest}} {text} \\end{{forest}}"


def _folded(boxes: Sequence[Box], make: Callable[[Box, list[Any]], Any]) -> Any:
    """Folds a tree from the leaves up: `make` gets a box and the results of its children."""
    made: list[Any] = [None] * len(boxes)
    for n in range(len(boxes) - 1, -1, -1):
        made[n] = make(boxes[n], [made[i] for i in boxes[n].antecedents])
    return made[0]


def _written(boxes: Sequence[Box], opening: Callable[[Box], str], closing: str, *, leaves: bool = False) -> str:
    """The boxes in preorder, each closed after its children; leaves are closed only with `leaves`."""
    out: list[str] = []
    stack: list[int | None] = [0]
    while stack:
        n = stack.pop()
        if n is None:
            out.append(closing)
            continue
        out += [" "] if out else []
        out.append(opening(boxes[n]))
        if leaves or not boxes[n].leaf:
            stack.append(None)
        stack.extend(reversed(boxes[n].antecedents))
    return "".join(out)
