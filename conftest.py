"""What holds for all of pytest's runs, examples in docstrings included: which of these are ours, what no search for
garbage goes through, what took longest, and how to run all but that.

Names of `dynagrad.numpy` and `dynagrad.math` have the docstrings of numpy and math, whose examples are theirs to test.
"""

from __future__ import annotations

import gc
import sys
from collections import defaultdict

import pytest

LONGEST = 10
"""How many files are named at the end of a run, by what their tests took, setting up included."""

QUICK = 0.2
"""Seconds of a test that `--quick` leaves out, if it took as long when it ran last, and passed."""

SLOW = "dynagrad/slow"
"""The name under which pytest's cache has the tests that took so long."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help=f"leave out what took {QUICK} s or more when it ran last")


def pytest_sessionstart(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("quick") and _slow(session.config) is None and terminal is not None:
        terminal.write_line("no test has been timed here yet, so this run leaves none out, and times them")


def _slow(config: pytest.Config) -> set[str] | None:
    """The tests that took long when they ran last; None where none has been timed."""
    cache = getattr(config, "cache", None)  # pytest may be told to remember nothing
    known = None if cache is None else cache.get(SLOW, None)
    return None if known is None else set(known)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = _of_others(items)
    if config.getoption("quick"):
        slow = _slow(config) or set()
        left_out |= {item for item in items if item.nodeid in slow}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _of_others(items: list[pytest.Item]) -> set[pytest.Item]:
    """The examples that are not ours."""
    examples = [item for item in items if isinstance(item, pytest.DoctestItem)]
    if not examples:  # a run of few tests may do without the package
        return set()
    from dynagrad.eager.names.numpy_names import ORIGINALS

    others: set[pytest.Item] = set()
    for item in examples:
        module, _, name = item.name.rpartition(".")
        found = getattr(sys.modules.get(module), name, None)
        if callable(found) and (found in ORIGINALS or not getattr(found, "__module__", "").startswith("dynagrad")):
            others.add(item)
    return others


def pytest_collection_finish() -> None:
    """What was collected lives as long as the run: no search for garbage has to go through it again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    tests: dict[str, float] = defaultdict(float)
    passed = {report.nodeid for report in terminalreporter.stats.get("passed", [])}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                tests[report.nodeid] += report.duration
    if tests and getattr(config, "cache", None) is not None:
        others = (_slow(config) or set()) - set(tests)
        config.cache.set(SLOW, sorted(others | {test for test in passed if tests[test] >= QUICK}))
    files: dict[str, float] = defaultdict(float)
    for test, took in tests.items():
        files[test.partition("::")[0]] += took
    if len(files) <= LONGEST:
        return
    terminalreporter.section(f"the {LONGEST} files that took longest, of {sum(files.values()):.0f} s in all")
    for file in sorted(files, key=files.__getitem__, reverse=True)[:LONGEST]:
        terminalreporter.write_line(f"{files[file]:8.1f} s  {file}")
