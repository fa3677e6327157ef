"""Loading a million facts into native code, from arrays and from Arrow."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import dynagrad as dg

from .common import Row, Skip, timed

PROGRAM = "goal += edge(X,_) * start(X)."
ROWS = 1_000_000


def loading() -> list[Row]:
    try:
        import pyarrow as pa
    except ImportError:
        raise Skip("pyarrow is not installed") from None
    random = np.random.default_rng(0)
    arguments = random.integers(0, 300_000, (ROWS, 2))  # in no order
    values = random.random(ROWS)
    numbers = pa.table({"from": arguments[:, 0], "to": arguments[:, 1], "value": values})
    names = np.array([f"node{i}" for i in range(300_000)])
    symbols = pa.table({"from": names[arguments[:, 0]], "to": names[arguments[:, 1]], "value": values})
    first: dict[str, tuple[Any, Any, float | None]] = {
        "a pair of arrays": ((arguments, values), 0, 0.5),
        "an Arrow table of integers": (numbers, 0, 0.5),
        "an Arrow table of symbols": (symbols, "node0", 0.5),
    }
    rows = []
    for what, (table, start, target) in first.items():
        program, facts = dg.Program(PROGRAM), {"start/1": [(start,)]}

        def load(table: Any = table, program: dg.Program = program, facts: Any = facts) -> dg.Bound:
            bound = program.bind({"edge/2": table})
            bound.run(facts)
            return bound

        bound = load()  # compiles
        again = min(timed(partial(bound.run, facts)) for _ in range(3))
        whole = min(timed(load) for _ in range(5))
        rows.append(Row(f"loading {ROWS:,} rows from {what}", whole - again, target=target))
    return rows
