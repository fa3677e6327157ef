"""What all tests share: a cache of compiled programs of this run's own, so that nothing comes from an older one.

Most of the time would go into compiling, and most of that into optimising, so programs are not optimised here: that is
a quarter of the time. What is compared with other programs and on real data is compiled as users have it, those files
set `OPTIMISED`, and so are the cases of `test_engine`. DYNAGRAD_OPTIMISE=3 has all of the suite compiled so.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # Whoever starts this run in the background may have switched Ctrl-C off, for us and for all that we start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):  # the workers of a parallel run inherit it from the process that starts them
        os.environ.setdefault("DYNAGRAD_OPTIMISE", "0")
        config.dynagrad_cache = os.environ["DYNAGRAD_CACHE"] = tempfile.mkdtemp(prefix="dynagrad-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(getattr(config, "dynagrad_cache", ""), ignore_errors=True)


@pytest.fixture(autouse=True)
def optimised(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if getattr(getattr(request.node, "module", None), "OPTIMISED", False):
        monkeypatch.setenv("DYNAGRAD_OPTIMISE", "3")
