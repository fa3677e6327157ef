"""Docstrings as reStructuredText: the package writes `code` with single backticks, and plain text otherwise.

Sphinx reads docstrings as reStructuredText, where code stands between double backticks and `*`, `|` and `_` mean
something. So backticks are doubled, and those signs escaped where they stand in plain text. Examples stay as they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CODE = re.compile(r"(``.+?``|`[^`]+`)")


def as_rest(lines: list[str]) -> list[str]:
    """The lines of a docstring of ours as reStructuredText.

    >>> as_rest(["The value of `f(*xs)`, times *k*.", "", ">>> `a`"])
    ['The value of ``f(*xs)``, times \\\\*k\\\\*.', '', '>>> `a`']
    """
    paragraphs = re.split(r"(\n\s*\n)", "\n".join(lines))
    return "".join(_paragraph(text) for text in paragraphs).split("\n")


def _paragraph(text: str) -> str:
    if not text.strip():
        return text
    prose, mark, example = _up_to_example(text)
    parts = CODE.split(prose)
    parts[0::2] = [re.sub(r"([*|]|_(?!\w))", r"\\\1", part) for part in parts[0::2]]
    parts[1::2] = ["``" + part.strip("`") + "``" for part in parts[1::2]]
    return "".join(parts) + mark + example


def _up_to_example(text: str) -> tuple[str, str, str]:
    found = re.search(r"^\s*>>> ", text, re.MULTILINE)
    if found is None:
        return text, "", ""
    before = text[: found.start()]
    return before, "\n" if before.strip() else "", text[found.start() :]


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = as_rest(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Puts the hook where autodoc hands out docstrings."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
