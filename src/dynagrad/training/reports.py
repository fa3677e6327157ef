"""What a training run was: a record for each of its steps, why it ended, and tables, files and pictures of these."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from ..arguments import whole_number
from ..errors import Error, shown
from ..facts.readers import import_module
from .storage.whole import replace_file, why


@dataclass(frozen=True)
class Record:
    """A step: its number, the objective with priors, that of the data alone, and more.

    `change` is the norm of the gradient, None for methods without; `dev` the objective of held-out data; `seconds` are
    since the beginning; `speed` is in examples a second.
    """

    iteration: int
    objective: float
    data: float
    change: float | None
    dev: float | None
    seconds: float
    speed: float


NAMES = tuple(f.name for f in fields(Record))


@dataclass(frozen=True)
class Fit:
    """How a model was trained.

    `stopped` says why it ended: "converged", "iterations" (the limit), "dev" (held-out data got no better),
    "callback", or "method" (which found nothing better). `converged` is true for the first, and means only that the
    objective changed by less than the tolerance in the last step.
    """

    method: str
    history: tuple[Record, ...]
    stopped: str

    @property
    def converged(self) -> bool:
        """Whether the last step changed the objective by less than the tolerance."""
        return self.stopped == "converged"

    @property
    def objective(self) -> float:
        """The objective of the last step."""
        return self.history[-1].objective

    def to_arrow(self) -> Any:
        """The history as a `pyarrow.Table`."""
        return _table(self.history)

    def to_csv(self, path: str | Path) -> None:
        """The history as a file of comma-separated values."""
        Log(path_of("path", path), self.history, ".csv").close()

    def curve(self, width: int = 60, height: int = 12) -> str:
        """The objective by iteration, drawn with characters for a terminal."""
        return curve(
            [r.objective for r in self.history],
            whole_number("width", width, 2, 10_000),
            whole_number("height", height, 2, 10_000),
        )

    def plot(self) -> Any:
        """The objective, and that of held-out data, as a matplotlib figure."""
        plt = import_module("matplotlib.figure", "docs", "plot")
        figure = plt.Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        x = [r.iteration for r in self.history]
        axes.plot(x, [r.objective for r in self.history], label="objective")
        if any(r.dev is not None for r in self.history):
            axes.plot(x, [r.dev for r in self.history], label="held out")
            axes.legend()
        axes.set(xlabel="iteration", ylabel="objective")
        return figure

    def __repr__(self) -> str:
        return f"<Fit by {self.method}: {len(self.history)} iterations, objective {self.objective:.6g}, {self.stopped}>"


# -- files -------------------------------------------------------------------------------------------------------------


def path_of(what: str, given: Any) -> Path:
    """An argument that has to be a path. Raises Error, with its name."""
    if not isinstance(given, str | Path) or not str(given) or "\0" in str(given):
        raise Error(f"{what} must be the path of a file, not {shown(given)}")
    return Path(given)


SUFFIXES = (".csv", ".arrow", ".feather")
SELDOM = 1.0
"""Seconds between two writes of an Arrow log, which is written anew each time."""


class Log:
    """The records of a run in a file, CSV or Arrow by its suffix.

    It begins with `history`, in place of what was in the file: for a run that is taken up, with the steps up to the
    checkpoint, as those that were made after it are made again. A CSV gets a line at each step; an Arrow file is
    replaced as a whole, once a second and at the end.
    """

    def __init__(self, path: Path, history: Iterable[Record], suffix: str | None = None) -> None:
        self._path, self._records = path, list(history)
        self._arrow = (suffix or path.suffix) != ".csv"
        if (suffix or path.suffix) not in SUFFIXES:
            raise Error(f"log={shown(str(path))}: a log ends in {', '.join(SUFFIXES)}")
        self._written = 0.0
        if self._arrow:
            self._write_arrow()
            return
        with _told(path):
            path.write_text("", "utf-8")
        self._append(NAMES, *map(astuple, self._records))

    def add(self, record: Record) -> None:
        """Writes a step."""
        if not self._arrow:
            self._append(astuple(record))
            return
        self._records.append(record)
        if time.monotonic() - self._written >= SELDOM:
            self._write_arrow()

    def close(self) -> None:
        """Ends the file."""
        if self._arrow:
            self._write_arrow()

    def _append(self, *rows: Sequence[Any]) -> None:
        with _told(self._path), self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)

    def _write_arrow(self) -> None:
        pa = import_module("pyarrow", "train", "a log as Arrow")
        table, sink = _table(self._records), pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table)
        replace_file(self._path, bytes(sink.getvalue()))
        self._written = time.monotonic()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Errors of the system, as ours."""
    try:
        yield
    except OSError as error:
        raise Error(f"{shown(str(path))} cannot be written: {why(error)}") from None


def _table(records: Sequence[Record]) -> Any:
    pa = import_module("pyarrow", "train", "a history as an Arrow table")
    types = {name: pa.int64() if name == "iteration" else pa.float64() for name in NAMES}
    return pa.table({name: pa.array([getattr(r, name) for r in records], types[name]) for name in NAMES})


# -- pictures ----------------------------------------------------------------------------------------------------------


def curve(values: Sequence[float], width: int, height: int) -> str:
    """Numbers in their order as a curve of characters."""
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    columns = min(width, len(values))
    picked = [values[n * (len(values) - 1) // max(1, columns - 1)] for n in range(columns)]
    rows = [round((v - low) / span * (height - 1)) for v in picked]
    lines = []
    for row in range(height - 1, -1, -1):
        label = f"{low + span * row / (height - 1):>12.5g} " if row in (0, height - 1) else " " * 13
        lines.append((label + "".join("*" if r == row else " " for r in rows)).rstrip())
    return "\n".join(lines)
