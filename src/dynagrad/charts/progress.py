"""The progress bar of long runs, drawn with rich on standard error.

When one is shown, and with which numbers, is decided in `run.py`; that of training is in `training/reports/`.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ..errors import counted


class Progress:
    """A line with the numbers of pops and items so far; a context manager."""

    def __init__(self) -> None:
        self._live: Any = None
        self._task: Any = None

    @staticmethod
    def compiling(text: str) -> None:
        """Says that a compiler starts."""
        _console().print(f"[dim]{text}[/dim]")

    def __enter__(self) -> Progress:
        return self

    def show(self, pops: int, items: int, waiting: int) -> None:
        """Draws the numbers; the line appears with the first call."""
        if self._live is None:
            from rich.progress import Progress as Bar  # for a quick start
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn  # for a quick start

            self._live = Bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=_console())
            self._live.start()
            self._task = self._live.add_task("running")
        done = f"{counted(pops, 'pop')}, {counted(items, 'item')}"
        self._live.update(self._task, description=f"{done}, {waiting:,} on the agenda")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()


def _console() -> Any:
    from rich.console import Console  # for a quick start

    return Console(stderr=True)
