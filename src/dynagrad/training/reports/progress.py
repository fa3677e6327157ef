"""The progress bar of training, drawn with rich on standard error.

When a step is shown is decided by `training/fit.py`; the bar of a chart's run is in `charts/progress.py`.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .records import Record, counted_text


class Bar:
    """A line that tells of each step; a context manager. With `shown` False it draws nothing."""

    def __init__(self, shown: bool, iterations: int) -> None:
        self._shown, self._iterations = shown, iterations
        self._live: Any = None
        self._task: Any = None

    def __enter__(self) -> Bar:
        if self._shown:
            from rich.console import Console  # for a quick start
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # for a quick start

            self._live = Progress(
                MofNCompleteColumn(),
                BarColumn(20),
                TextColumn("{task.fields[told]}"),
                console=Console(stderr=True),
            )
            self._live.start()
            self._task = self._live.add_task("", total=self._iterations, told="the first step")
        return self

    def show(self, record: Record) -> None:
        """Draws a step."""
        if self._live is not None:
            self._live.update(self._task, completed=record.iteration, told=line_of(record, self._iterations))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()


def line_of(record: Record, iterations: int) -> str:
    """A step as a line: objective, norm of the gradient, held-out objective, examples, how many a second, time left.

    >>> line_of(Record(5, -1234.5678, -1234.0, 0.25, -99.0, 10.0, 321.0, 98, 100), 35)
    'objective -1234.57 · gradient 0.25 · held out -99 · 98 of 100 examples · 321 examples/s · at most 1:00 left'
    """
    parts = [f"objective {record.objective:.6g}"]
    if record.change is not None:
        parts.append(f"gradient {record.change:.3g}")
    if record.dev is not None:
        parts.append(f"held out {record.dev:.6g}")
    parts += [counted_text(record.counted, record.examples), f"{record.speed:,.0f} examples/s"]
    left = round((iterations - record.iteration) * record.seconds / record.iteration)
    minutes, seconds = divmod(left, 60)
    hours, minutes = divmod(minutes, 60)
    parts.append(f"at most {f'{hours}:{minutes:02}' if hours else minutes}:{seconds:02} left")
    return " · ".join(parts)
