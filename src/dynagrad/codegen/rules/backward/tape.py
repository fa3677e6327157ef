"""The tape of a program: what the forward pass records for the backward pass, and the members that hold it.

An entry is a pop. Items that can be popped several times have their earlier values saved, and where the aggregator
selects, an update says in which pop it was made. The pass that reads the tape is in `sweep.py`, the C++ of the tape
itself in `running/tape.hpp`.
"""

from __future__ import annotations

from ....plan.model import Plan
from ....plan.traits import sweeps
from ..context import ClassContext


def write_members(context: ClassContext) -> None:
    plan, out = context.plan, context.out
    out.line("Tape<semiring> tape{&account};")
    out.line("uint32_t position = 0;  // the current pop of the stage, from 1; 0 before the first")
    out.line("int64_t saved_at = 0, from_at = 0;  // backward: how much of the tape is left")
    out.line("Bits wanted{&account};  // per pop: whether an item waits for an update that it made")
    for stage in plan.stages:
        if sweeps(stage):
            out.line(f"Array<int64_t> rounds{stage.number}{{&account}};  // the pops before each round")


def tape_bytes(plan: Plan) -> str:
    """The size of the tape in bytes."""
    rounds = [f" + rounds{s.number}.size * 8" for s in plan.stages if sweeps(s)]
    return f"tape.bytes(){''.join(rounds)}"
