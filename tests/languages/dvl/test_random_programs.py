"""Random programs of DVL, run and compiled, against an oracle that shares no code with the package (`oracle.py`):
nested derivatives in all modes, functions as arguments and results, choices, loops, recursion, lists, fixed points and
tags.

Costs four seconds; `agreement.py` goes on for as long as it is told to.
"""

from __future__ import annotations

from collections import Counter

import pytest

from languages.dvl.agreement import TOGETHER, drawn, judged

FIRST = 1_000_000


@pytest.mark.parametrize("group", range(2))
def test_run_and_compiled(group: int, capsys: pytest.CaptureFixture[str]) -> None:
    cases, counts = [], Counter[str]()
    for seed in range(FIRST + 100 * group, FIRST + 100 * (group + 1)):
        case = drawn(seed)
        if case is not None:
            cases.append((seed, *case))
            judged("run", cases[-1:], counts)
    judged("compiled", cases[:TOGETHER], counts)
    assert counts["run"] > 80 and counts["compiled"] == TOGETHER
    assert set(counts) == {"run", "compiled"}, capsys.readouterr().out
