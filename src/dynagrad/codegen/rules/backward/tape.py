"""The tape in a generated class; the pass that goes back over it is in `running/sweep.hpp`."""

from __future__ import annotations

from ..context import ClassContext


def write_tape(context: ClassContext) -> None:
    """The members that hold the tape, and where the pass has come to."""
    out = context.out
    out.line("Tape<semiring> tape{&account};")
    out.line("uint32_t position = 0;  // the current pop of the stage, from 1; 0 before the first")
    out.line("int64_t saved_at = 0, from_at = 0, rounds_at = 0;  // backward: how much of the tape is left")
    out.line("Bits wanted{&account};  // per pop: whether an item waits for an update that it made")
