"""The log of a training run: its records in a file as they are made.

What a record says, and how it is written as a line, is in `records.py`; checkpoints are in `training/storage/`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from ...errors import Error, shown_path
from ...packages import optional
from ...runtime.disk.whole import replace_file
from .records import Record, table_of, write_csv

SUFFIXES = (".csv", ".arrow", ".feather")
SELDOM = 1.0
"""Seconds between two writes of an Arrow log, which is written anew each time."""


class Log:
    """The records of a run in a file, CSV or Arrow by its suffix.

    It begins with `history`, in place of what was in the file: for a run that is taken up, with the steps up to the
    checkpoint, as those that were made after it are made again. A CSV gets a line at each step; an Arrow file is
    replaced as a whole, once a second and at the end.
    """

    def __init__(self, path: Path, history: Iterable[Record]) -> None:
        self._path, self._records = path, list(history)
        self._arrow = path.suffix != ".csv"
        if path.suffix not in SUFFIXES:
            raise Error(f"log={shown_path(path)}: a log ends in {', '.join(SUFFIXES)}")
        self._written = 0.0
        if self._arrow:
            self._write_arrow()
        else:
            write_csv(path, self._records)

    def add(self, record: Record) -> None:
        """Writes a step."""
        if not self._arrow:
            write_csv(self._path, [record], begin=False)
            return
        self._records.append(record)
        if time.monotonic() - self._written >= SELDOM:
            self._write_arrow()

    def close(self) -> None:
        """Ends the file."""
        if self._arrow:
            self._write_arrow()

    def _write_arrow(self) -> None:
        pa = optional("pyarrow", "a log as Arrow")
        table, sink = table_of(self._records), pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table)
        replace_file(self._path, bytes(sink.getvalue()))
        self._written = time.monotonic()
