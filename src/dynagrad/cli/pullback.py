"""`dynagrad pullback`: a term, its type and what it reduces to; the steps as text or as a page; its machine code run.

What reduces terms is imported when it is needed, for a quick start of other commands.

Nothing of the terms is known here: they are in `languages/pullback`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ..charts.sources import file_text
from ..errors import Error
from .commands import app, command


@app.command(
    short_help="Reduce, evaluate or compile a pullback term.",
    epilog="Example: dynagrad pullback term.pullback --steps",
)
@command
def pullback(
    file: Annotated[Path, typer.Argument(help="The term, as text.", show_default=False, metavar="FILE")],
    steps: Annotated[
        bool,
        typer.Option("--steps", help="Show each reduction as it is made: its rule, its redex and what that becomes."),
    ] = False,
    html: Annotated[
        bool, typer.Option("--html", help="Print the steps as one page, which needs no network: redirect it to a file.")
    ] = False,
    compiled: Annotated[bool, typer.Option("--compile", help="Make machine code of the term, and run that.")] = False,
    max_steps: Annotated[
        int | None,
        typer.Option(
            "--max-steps",
            min=1,
            help="End with an error after so many reductions, premises included; with --compile, after so many steps "
            "of making the graph.  [default: 1 million; 2 million]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print a term, its type and what it reduces to."""
    if compiled and (steps or html):
        raise Error("--compile shows no steps; leave --steps and --html out")
    text = file_text(file, "term")
    limit: dict[str, int] = {} if max_steps is None else {"max_steps": max_steps}
    lines = compiled_lines(text, str(file), limit) if compiled else reduced_lines(text, str(file), steps, html, limit)
    for line in lines:
        typer.echo(line)


def reduced_lines(text: str, filename: str, steps: bool, html: bool, limit: dict[str, int]) -> Iterator[str]:
    """A term and its value; or its steps, as lines or as a page."""
    from ..languages.pullback import html as page  # for a quick start
    from ..languages.pullback import lines, reduce, show  # for a quick start

    reduction = reduce(text, filename=filename, keep=False, **limit)
    if html:
        yield page(reduction, title=filename)
    elif steps:
        yield from lines(reduction)
    else:
        yield f"{show(reduction.term)} : {reduction.type}"
        yield f"= {show(reduction.result)}"


def compiled_lines(text: str, filename: str, limit: dict[str, int]) -> Iterator[str]:
    """What the machine code of a term gives."""
    from ..languages.pullback import compile  # for a quick start

    made = compile(text, filename=filename, **limit)
    if made.numerals is None:
        raise Error("the term is a function, which has no value before it is applied; apply it in the file")
    yield repr(made())
