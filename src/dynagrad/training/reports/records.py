"""The history of a training run: a record for each of its steps, why it ended, and tables and pictures of these.

Files that grow while a run goes on are in `logs.py`.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from ...arguments import whole_number
from ...errors import Error, counted, shown, shown_path
from ...packages import optional
from ...runtime.disk.whole import why


@dataclass(frozen=True)
class Record:
    """A step: its number, the objective with priors, that of the data alone, and more.

    `change` is the norm of the gradient, None for methods without; `dev` the objective of held-out data; `seconds` are
    since the beginning; `speed` is in examples a second; `counted` of `examples` are those that the step is of, and the
    others were not derived.
    """

    iteration: int
    objective: float
    data: float
    change: float | None
    dev: float | None
    seconds: float
    speed: float
    counted: int = 0
    examples: int = 0


NAMES = tuple(f.name for f in fields(Record))
WHOLE = ("iteration", "counted", "examples")
"""Those that are whole numbers."""


class Score(float):
    """The objective of data: a number, which knows of how many examples it is, and how many there are.

    >>> score = Score(-1.5, 2, 3)
    >>> score, score.counted, score.examples
    (-1.5, 2, 3)
    """

    counted: int
    examples: int

    def __new__(cls, value: float, counted: int, examples: int) -> Score:
        found = super().__new__(cls, value)
        found.counted, found.examples = counted, examples
        return found

    def __getnewargs__(self) -> tuple[float, int, int]:  # type: ignore[override]
        return float(self), self.counted, self.examples


def counted_text(some: int, examples: int) -> str:
    """How many examples count.

    >>> counted_text(3, 3), counted_text(2, 3), counted_text(1, 1)
    ('3 examples', '2 of 3 examples', '1 example')
    """
    of = "" if some == examples else f"{some:,} of "
    return of + counted(examples, "example")


def write_csv(path: Path, records: Iterable[Record], *, begin: bool = True) -> None:
    """Records as a file of comma-separated values, or more of them at the end of one."""
    with written(path), path.open("w" if begin else "a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([*([NAMES] if begin else []), *map(astuple, records)])


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Errors of the system, as ours."""
    try:
        yield
    except OSError as error:
        raise Error(f"{shown_path(path)} cannot be written: {why(error)}") from None


def path_of(what: str, given: Any) -> Path:
    """An argument that has to be a path. Raises Error, with its name."""
    try:
        name = os.fsencode(given) if isinstance(given, str | Path) else b""
    except UnicodeEncodeError:
        name = b""
    if not name or b"\0" in name:
        raise Error(f"{what} must be the path of a file, not {shown(given)}")
    return Path(given)


@dataclass(frozen=True)
class Fit:
    """How a model was trained.

    `stopped` says why it ended:

    - "converged": the last step changed the objective by less than the tolerance (of its size), there is about as
      little left to gain, as far as the method can tell, and no saddle was found there;
    - "iterations": the limit; "dev": held-out data got no better; "callback": it returned False;
    - "saddle": parameters do not change any more, and nearby ones are better, as where hidden states are alike;
    - "no better step": the method looked for one and found none, at a kink of the objective or for want of digits;
    - "options": a limit that its own options have.

    `converged` is true for the first. `starts` has the objective that was reached from each start, where there were
    `restarts`, for stochastic methods that of the parameters in the end; all else is of the best of them.
    """

    method: str
    history: tuple[Record, ...]
    stopped: str
    best: Record | None = None
    """The step that was best on held-out data, whose parameters the model has; None where there were no such data."""
    starts: tuple[float, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether there is less left to gain than the tolerance, as far as the method can tell."""
        return self.stopped == "converged"

    @property
    def counted(self) -> int:
        """How many examples counted in the last step: the others were not derived."""
        return self.history[-1].counted

    @property
    def examples(self) -> int:
        """How many examples the last step was of."""
        return self.history[-1].examples

    @property
    def objective(self) -> float:
        """The objective of the last step: for EM of the parameters before it, elsewhere perhaps of those on the way.

        `model.score` says what the parameters in the end give.
        """
        return self.history[-1].objective

    def to_arrow(self) -> Any:
        """The history as a `pyarrow.Table`."""
        return table_of(self.history)

    def to_csv(self, path: str | Path) -> None:
        """The history as a file of comma-separated values."""
        write_csv(path_of("path", path), self.history)

    def curve(self, width: int = 60, height: int = 12) -> str:
        """The objective by iteration, drawn with characters for a terminal."""
        return curve(
            [r.objective for r in self.history],
            whole_number("width", width, 2, 10_000),
            whole_number("height", height, 2, 10_000),
        )

    def plot(self) -> Any:
        """The objective, and that of held-out data, as a matplotlib figure."""
        plt = optional("matplotlib.figure", "fit.plot()")
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
        steps = f"{counted(len(self.history), 'iteration')} on {counted_text(self.counted, self.examples)}"
        among = f", the best of {counted(len(self.starts), 'start')}" if self.starts else ""
        return f"<Fit by {self.method}: {steps}, objective {self.objective:.6g}, {self.stopped}{among}>"


def table_of(records: Sequence[Record]) -> Any:
    """Records as a `pyarrow.Table`."""
    pa = optional("pyarrow", "a history as an Arrow table")
    types = {name: pa.int64() if name in WHOLE else pa.float64() for name in NAMES}
    return pa.table({name: pa.array([getattr(r, name) for r in records], types[name]) for name in NAMES})


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
