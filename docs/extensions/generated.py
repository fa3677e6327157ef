"""What is read off the package and its list of rooms: the options of the command line, what becomes of each name of
numpy, the picture of the house. It is made when the documents are built.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# -- the command line --------------------------------------------------------------------------------------------------


def cell(text: str) -> str:
    """A text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(map(cell, row))} |" for row in lines]


def command_line() -> str:
    """All commands with their arguments and options."""
    import typer

    from dynagrad.cli import app

    group: Any = typer.main.get_command(app)
    lines = []
    for name, command in group.commands.items():
        usage = " ".join([f"dynagrad {name}", *command.collect_usage_pieces(typer.Context(command))])
        lines += ["", f"## `dynagrad {name}`", "", "```text", usage, "```", "", command.help or ""]
        rows = [
            (
                ", ".join(f"`{spelling}`" for spelling in [*parameter.opts, *parameter.secondary_opts])
                if parameter.param_type_name == "option"
                else f"`{parameter.name.upper()}`",
                getattr(parameter, "help", None) or "",
            )
            for parameter in command.params
            if not getattr(parameter, "hidden", False)
        ]
        lines += ["", *table(("argument or option", "meaning"), rows)] if rows else []
    return "\n".join(lines)


# -- the names of numpy ------------------------------------------------------------------------------------------------


KINDS = {
    "differentiated": "**With derivatives**: the derivative of the result is that of numpy's function.",
    "constant": "**With derivative zero**: the result is constant between steps, or a truth value.",
    "made": "**Defined anew**: they take numbers with derivatives where numpy's own do not.",
    "in place": "**In place**: they change arrays of `dynagrad.numpy`, and copies, also with numbers with derivatives.",
    "values": "**Of values alone**: they see the plain values, and their results are constants.",
    "refused": "**Without a derivative**: given a number with derivatives they raise `dg.NotDifferentiable`.",
    "types": "**Types, constants and modules**: numpy's own, except the module `linalg`.",
    "others": "**All others** are for plain values, as numpy's own. Arrays that they make can be filled.",
}


def kind_of(name: str) -> str:
    """What becomes of a name of numpy, as the tables of the package have it."""
    from dynagrad.eager.names.numpy_names import OWN
    from dynagrad.eager.numpy import missing, protocol
    from dynagrad.eager.numpy.functions import FUNCTIONS

    original: Any = getattr(np, name)
    if (isinstance(original, type) and original not in OWN) or not callable(original):
        return "types"
    if original in protocol.STEPS:
        return "constant"
    if original in protocol.UFUNCS or original in protocol.COMPOSED:
        return "differentiated"
    if original in protocol.LOOKS:
        return "values"
    if missing.WHY.get(f"np.{name}", "").startswith(missing.IN_PLACE):
        return "in place"
    if f"np.{name}" in missing.WHY or isinstance(original, np.ufunc):
        return "refused"
    if original in OWN and original not in FUNCTIONS:
        return "made"
    return "differentiated" if original in FUNCTIONS else "others"


def numpy_names() -> str:
    """The names of numpy by what becomes of them."""
    names: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in sorted(np.__all__):
        if not name.startswith("__"):
            names[kind_of(name)].append(f"`{name}`")
    return "\n\n".join(f"{text}\n{', '.join(names[kind])}." for kind, text in KINDS.items())


# -- the house ---------------------------------------------------------------------------------------------------------


CONTRIBUTING = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
SIDES = {
    "semirings.py": "rules",
    "facts/": "rules",
    "plan/": "rules",
    "rules/": "rules",
    "compiler/": "functions",
    "numpy/": "functions",
    "eager/": "functions",
}
"""Whose a room is; the others are shared."""


def rooms() -> list[tuple[str, str, list[tuple[str, str]]]]:
    """The list of CONTRIBUTING.md from the top down: rooms, what they are, and the rooms inside of each."""
    text = CONTRIBUTING.read_text(encoding="utf-8").partition("## How the house is laid out")[2].partition("\n## ")[0]
    found: list[tuple[str, str, list[tuple[str, str]]]] = []
    for indent, names, what in re.findall(r"^    ( *)((?:\S+ )*\S+)  +(.*)$", text, re.MULTILINE):
        if indent:
            found[-1][2].append((names, what))
        else:
            found.append((names, what, []))
    return found


def marked(text: str) -> str:
    """Plain text as HTML, with its code."""
    return re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text))


def box(names: str, what: str, inner: list[tuple[str, str]], side: str) -> str:
    """One room, with the rooms in it."""
    parts = "".join(f"<li><code>{name}</code> {marked(said)}</li>" for name, said in inner)
    listed = f"<ul>{parts}</ul>" if parts else ""
    return f'<div class="room {side}"><p><code>{names}</code> {marked(what)}</p>{listed}</div>'


def house() -> str:
    """The rooms as boxes from the top down, drawn by `static/site.css`. Neighbours of different sides share a row."""
    rows: list[dict[str, list[str]]] = []
    for names, what, inner in rooms():
        side = SIDES.get(names.split()[0], "shared")
        if side == "shared" or not rows or "shared" in rows[-1]:
            rows.append({})
        rows[-1].setdefault(side, []).append(box(names, what, inner, side))
    drawn = ["".join(f"<div>{''.join(boxes)}</div>" for boxes in row.values()) for row in rows]
    return '<div class="house">' + "".join(f'<div class="row">{columns}</div>' for columns in drawn) + "</div>"


# -- directives --------------------------------------------------------------------------------------------------------


class Generated(SphinxDirective):
    """`{generated} command_line`: what a function of this file gives, Markdown or HTML."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name == "house":
            self.env.note_dependency(str(CONTRIBUTING))
            return [nodes.raw("", house(), format="html")]
        text = {"command_line": command_line, "numpy_names": numpy_names}[name]()
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes the directive known to Sphinx."""
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
