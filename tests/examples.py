"""The examples that ship, as the tests read them: program text, facts, and the expected values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "examples"
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/expected.tsv"))


def lines(path: Path) -> list[list[str]]:
    """The rows of a file, as text."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line]


def source(name: str) -> str:
    """The program of an example."""
    return (FOLDER / name / f"{name}.dyna").read_text(encoding="utf-8")


def facts(name: str) -> dict[str, list[tuple[Any, ...]]]:
    """The facts of an example: `rewrite.3.tsv` holds `rewrite/3`; a column of integers is one of integers."""
    result: dict[str, list[tuple[Any, ...]]] = {}
    for path in sorted((FOLDER / name).glob("*.*.tsv")):
        predicate, arity, _ = path.name.split(".")
        rows = lines(path)
        columns = [_column(column) for column in zip(*(row[: int(arity)] for row in rows), strict=True)]
        values = [tuple(float(cell) for cell in row[int(arity) :]) for row in rows]
        arguments = list(zip(*columns, strict=True)) if columns else [()] * len(rows)
        result[f"{predicate}/{arity}"] = [(*row, *value) for row, value in zip(arguments, values, strict=True)]
    return result


def _column(cells: tuple[str, ...]) -> list[str] | list[int]:
    if all(cell.lstrip("-").isdigit() for cell in cells):
        return [int(cell) for cell in cells]
    return list(cells)


def expected(name: str) -> Iterator[tuple[str, float]]:
    """Items, as a program writes them, and their values."""
    for item, value in lines(FOLDER / name / "expected.tsv"):
        yield item, float(value)
