"""The commands that show derivations: `best`, `why` and `why-not`."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from ..charts.chart import Chart
from ..forests.absence.attempts import WhyNot
from ..forests.derivation import Derivation
from ..forests.reasons.why import Why
from .commands import (
    Facts,
    File,
    FunctionsOption,
    HeaderOption,
    SemiringName,
    ValuesOption,
    app,
    check_ground,
    command,
    note_missing,
)
from .inputs import Values, facts_of, program_of


class TreeFormat(StrEnum):
    """How `best` prints derivations."""

    tree = "tree"
    brackets = "brackets"
    json = "json"
    svg = "svg"


class TextFormat(StrEnum):
    """How `why` and `why-not` print."""

    text = "text"
    json = "json"
    svg = "svg"


ItemArgument = Annotated[
    str, typer.Option("--query", "-q", metavar="ITEM", help="The item that is asked about.", show_default="goal")
]


def _chart(
    file: File,
    facts: list[str],
    semiring: str | None,
    values: Values,
    functions: FunctionsOption,
    header: bool | None,
) -> Chart:
    program = program_of(file, semiring, values, functions)
    relations = facts_of(program, facts, values, header)
    note_missing(program, relations)
    return program.run(relations)


@app.command(
    short_help="Print the best derivations of an item.",
    epilog="Example: dynagrad best cky.dyna --facts facts --semiring viterbi -q goal --k 10 --format brackets",
)
@command
def best(
    file: File,
    facts: Facts = [],  # noqa: B006  -- typer copies it
    query: ItemArgument = "goal",
    k: Annotated[int, typer.Option("--k", min=1, help="How many derivations, the best first.")] = 1,
    format: Annotated[TreeFormat, typer.Option("--format", help="How to print.")] = TreeFormat.tree,
    everything: Annotated[
        bool, typer.Option("--everything", help="Print also what the program does not show (`:- show`).")
    ] = False,
    semiring: SemiringName = None,
    values: ValuesOption = Values.weights,
    header: HeaderOption = None,
    functions: FunctionsOption = None,
) -> None:
    """Print the best derivations of an item, each with its weight before it."""
    check_ground("--query", query)
    chart = _chart(file, facts, semiring, values, functions, header)
    found = [chart.best(query)] if k == 1 else list(chart.kbest(query, k))
    if format is TreeFormat.json:
        typer.echo(json.dumps([json.loads(d.to_json()) for d in found], ensure_ascii=False))
        return
    for n, derivation in enumerate(found):
        if n and format is TreeFormat.tree:
            typer.echo("")
        typer.echo(_printed(derivation, format, everything))


def _printed(derivation: Derivation, format: TreeFormat, everything: bool) -> str:
    draw, after_weight = _DRAWN[format]
    text = draw(derivation, everything=everything)
    return text if derivation.weight is None or after_weight is None else f"{derivation.weight}{after_weight}{text}"


_DRAWN: dict[TreeFormat, tuple[Callable[..., str], str | None]] = {
    TreeFormat.tree: (Derivation.text, "\n"),
    TreeFormat.brackets: (Derivation.brackets, "\t"),
    TreeFormat.svg: (Derivation.svg, None),
}
"""How a derivation is printed, and what parts its weight from that; None: it has no weight before it."""


def _told(found: Why | WhyNot, format: TextFormat) -> str:
    return {TextFormat.text: found.__str__, TextFormat.json: found.to_json, TextFormat.svg: found.svg}[format]()


@app.command(
    short_help="Print why an item is there.",
    epilog="Example: dynagrad why cky.dyna --facts facts -q 'constit(np,0,2)' --depth 2",
)
@command
def why(
    file: File,
    facts: Facts = [],  # noqa: B006  -- typer copies it
    query: ItemArgument = "goal",
    depth: Annotated[int, typer.Option(min=0, help="To how many items rule instances are opened.")] = 1,
    goal: Annotated[
        str | None, typer.Option(metavar="ITEM", help="Say how much this item changes for each.", show_default=False)
    ] = None,
    sets: Annotated[int, typer.Option(min=0, help="How many sets of facts that suffice to look for.")] = 1,
    format: Annotated[TextFormat, typer.Option("--format", help="How to print.")] = TextFormat.text,
    semiring: SemiringName = None,
    values: ValuesOption = Values.weights,
    header: HeaderOption = None,
    functions: FunctionsOption = None,
) -> None:
    """Print the rule instances that make an item, with their shares, and facts that suffice for it."""
    check_ground("--query", query)
    chart = _chart(file, facts, semiring, values, functions, header)
    found = chart.why(query, depth=depth, goal=goal, sets=sets)
    typer.echo(_told(found, format))


@app.command(
    "why-not",
    short_help="Print what is missing for an item.",
    epilog="Example: dynagrad why-not cky.dyna --facts facts -q goal",
)
@command
def why_not(
    file: File,
    facts: Facts = [],  # noqa: B006  -- typer copies it
    query: ItemArgument = "goal",
    missing: Annotated[int, typer.Option(min=1, help="How many missing leaves to look for at most.")] = 3,
    depth: Annotated[int, typer.Option(min=1, help="How many rules deep to look.")] = 30,
    bindings: Annotated[int, typer.Option(min=1, help="How many bindings to try.")] = 100_000,
    seconds: Annotated[float, typer.Option(min=0, help="How long to look.")] = 1.0,
    format: Annotated[TextFormat, typer.Option("--format", help="How to print.")] = TextFormat.text,
    semiring: SemiringName = None,
    values: ValuesOption = Values.weights,
    header: HeaderOption = None,
    functions: FunctionsOption = None,
) -> None:
    """Print the rules that came nearest to an item that was not derived, and what is missing for them."""
    chart = _chart(file, facts, semiring, values, functions, header)
    found = chart.why_not(query, missing=missing, depth=depth, bindings=bindings, seconds=seconds)
    typer.echo(_told(found, format))
