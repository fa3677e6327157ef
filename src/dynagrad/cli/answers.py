"""The answers of `dynagrad run`, printed as text, as tab-separated rows, or as JSON.

An answer is the value of an item, the items that match a pattern, or the derivatives of an item by the facts of a
predicate. Numbers are printed with all their digits. Which queries there are is settled in `commands.py`; derivations
are printed in `derivations.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import typer

from ..charts.binding.encoding import syntax_value
from ..charts.chart import Chart
from ..errors import counted
from ..facts.terms import term_text
from ..rules.syntax import Item


class Format(StrEnum):
    """The output formats of `run`."""

    text = "text"
    tsv = "tsv"
    json = "json"


@dataclass(frozen=True)
class Answer:
    """A query with its answer: one value, or rows. `by` is the predicate by whose facts they are derivatives."""

    text: str
    value: Any = None
    rows: list[tuple[Any, ...]] | None = None
    arguments: tuple[Any, ...] = ()
    by: str = ""


def answer(chart: Chart, text: str, item: Item) -> Answer:
    """The value of an item, or the items that match a pattern."""
    try:
        arguments = tuple(syntax_value(t) for t in item.arguments)
    except ValueError:  # it has variables
        return Answer(text, rows=sorted(chart.query(item), key=_place))
    return Answer(text, chart[item], arguments=arguments)


def derivatives(chart: Chart, text: str, keys: Sequence[str], timeout: float | None = None) -> list[Answer]:
    """The derivatives of an item by the facts of each predicate."""
    gradient = chart.gradient(text, timeout=timeout)
    return [Answer(text, rows=list(gradient[key]), by=key) for key in keys]


# -- order and texts ---------------------------------------------------------------------------------------------------


def _size(row: Sequence[Any]) -> float:
    """The absolute value of a derivative; for a pair, that of its largest number."""
    value = row[-1]
    if isinstance(value, float):
        return abs(value)
    return max(float(np.max(np.abs(part), initial=0.0)) for part in value)


def _place(row: Sequence[Any]) -> tuple[tuple[int, float, str], ...]:
    """The sort key of a row: numbers before texts, each in order."""
    return tuple((0, a, "") if isinstance(a, int | float) else (1, 0.0, term_text(a)) for a in row[:-1])


def _value(value: Any) -> str:
    """A value as text, with all its digits."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list) or hasattr(value, "tolist"):
        listed = value.tolist() if hasattr(value, "tolist") else value
        return " ".join(_value(v) for v in listed) if isinstance(listed, tuple | list) else repr(listed)
    return repr(value)


def _cells(row: Sequence[Any]) -> list[str]:
    return [*(v if isinstance(v, str) else term_text(v) for v in row[:-1]), _value(row[-1])]


# -- formats -----------------------------------------------------------------------------------------------------------


def _print_text(answers: Sequence[Answer], limit: int) -> None:
    for place, answer in enumerate(answers):
        if answer.rows is None:
            typer.echo(_value(answer.value) if len(answers) == 1 else f"{answer.text} = {_value(answer.value)}")
            continue
        if place and len(answers) > 1:
            typer.echo()
        count, rows = len(answer.rows), answer.rows
        if answer.by:
            typer.echo(f"derivatives of {answer.text} by {answer.by}: {counted(count, 'fact')}")
            rows = sorted(rows, key=_size, reverse=True)
        else:
            typer.echo(f"{answer.text}: {counted(count, 'item')}")
        shown = [_cells(row) for row in rows[: limit or None]]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        for cells in shown:
            typer.echo("  " + "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip())
        if count > len(shown):
            typer.echo(f"  ... and {count - len(shown):,} more; --limit 0 shows all")


def _print_tsv(answers: Sequence[Answer], limit: int) -> None:
    for answer in answers:
        rows = [(*answer.arguments, answer.value)] if answer.rows is None else answer.rows
        names = [answer.text, answer.by] if answer.by else []
        for row in rows:
            typer.echo("\t".join([*names, *_cells(row)]))


def _print_json(answers: Sequence[Answer], limit: int) -> None:
    found = []
    for answer in answers:
        if answer.rows is None:
            found.append({"query": answer.text, "value": _plain(answer.value)})
        else:
            rows = [{"arguments": [_plain(a) for a in row[:-1]], "value": _plain(row[-1])} for row in answer.rows]
            names = {"gradient": answer.text, "by": answer.by} if answer.by else {"query": answer.text}
            found.append({**names, "rows": rows})
    typer.echo("[\n" + ",\n".join("  " + json.dumps(one, ensure_ascii=False) for one in found) + "\n]")


def _plain(value: Any) -> Any:
    """A value or an argument for JSON: infinities and terms become text."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else repr(value)
    if isinstance(value, tuple | list) and all(isinstance(v, str | int | float) for v in value):
        return [_plain(v) for v in value]
    return term_text(value)


PRINTERS: dict[Format, Callable[[Sequence[Answer], int], None]] = {
    Format.text: _print_text,
    Format.tsv: _print_tsv,
    Format.json: _print_json,
}
