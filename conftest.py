"""What holds for all of pytest's runs, examples in docstrings included: which of these are ours, what no search for
garbage goes through, and what took longest.

Names of `dynagrad.numpy` and `dynagrad.math` have the docstrings of numpy and math, whose examples are theirs to test.
"""

from __future__ import annotations

import gc
import sys
from collections import defaultdict

import pytest

LONGEST = 10
"""How many files are named at the end of a run, by what their tests took, setting up included."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    from dynagrad.eager.names.numpy_names import ORIGINALS

    others = []
    for item in items:
        module, _, name = item.name.rpartition(".")
        found = getattr(sys.modules.get(module), name, None) if isinstance(item, pytest.DoctestItem) else None
        if callable(found) and (found in ORIGINALS or not getattr(found, "__module__", "").startswith("dynagrad")):
            others.append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def pytest_collection_finish() -> None:
    """What was collected lives as long as the run: no search for garbage has to go through it again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seconds: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    if len(seconds) <= LONGEST:
        return
    terminalreporter.section(f"the {LONGEST} files that took longest, of {sum(seconds.values()):.0f} s in all")
    for file in sorted(seconds, key=seconds.__getitem__, reverse=True)[:LONGEST]:
        terminalreporter.write_line(f"{seconds[file]:8.1f} s  {file}")
