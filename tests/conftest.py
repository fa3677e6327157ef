"""What all tests share: a cache of compiled programs, which is not the user's.

Half of the time would go into compiling. So the cache is kept for the next run, beside what pytest itself remembers.
Nothing stale is found in it: an entry's name is a hash of all that made it.
`pytest --cache-clear` begins without it.

Programs and compiled functions are not optimised here: that would be a quarter of the time. What is compared with
other programs on real data is compiled as users have it, and so is most of what holds the native code of graphs against
its meaning, or runs it for long: those files set `OPTIMISED`. So are the cases of `test_engine` in `real`.
With DYNAGRAD_OPTIMISE=3 all of the suite is compiled so.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forked import Forked

MOST = 1 << 30
"""Bytes of compiled programs from which on the cache is not worth its room, and begun anew."""


def pytest_configure(config: pytest.Config) -> None:
    # Whoever starts this run in the background may have switched Ctrl-C off, for us and for all that we start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(100_000, 20, 20)  # tests make much that stays, which would be looked through again and again
    if not hasattr(config, "workerinput"):  # the workers of a parallel run inherit it from the process that starts them
        os.environ.setdefault("DYNAGRAD_OPTIMISE", "0")
        # Threads of numpy's products spin while they wait, and matrices are small here.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        folder = _kept(config) or _temporary(config)
        os.environ["DYNAGRAD_CACHE"] = str(folder)
        # Hundreds of tests start Python anew. Where no bytecode is kept, each would compile the package's text again.
        if os.environ.pop("PYTHONDONTWRITEBYTECODE", None) is not None:
            os.environ.setdefault("PYTHONPYCACHEPREFIX", str(folder.with_name("dynagrad-bytecode")))


def _kept(config: pytest.Config) -> Path | None:
    """The folder of the cache that is kept for the next run; None where pytest is told to remember nothing."""
    cache = getattr(config, "cache", None)
    if cache is None:
        return None
    folder: Path = cache.mkdir("dynagrad")
    with contextlib.suppress(OSError):  # another run may be at work in it
        if sum(file.stat().st_size for file in folder.iterdir()) > MOST:
            shutil.rmtree(folder)
            folder.mkdir()
    folder.chmod(0o700)  # in a folder that others may write to, nothing is taken for a cache
    return folder


def _temporary(config: pytest.Config) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="dynagrad-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    programs = folder / "dynagrad"
    programs.mkdir(mode=0o700)
    return programs


_file: Path | None = None
_generators: dict[Path, list[tuple[np.random.Generator, Any]]] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keeps what the files before have left (what they compiled, thousands of tests) from the garbage collector; and
    has every test of a file draw from its generators as if it were the first.

    By the end that is ten million objects, and a collection, of which some tests make hundreds, takes seconds. What a
    test draws must not depend on which others ran in its process.
    """
    global _file
    if item.path != _file:
        _file = item.path
        gc.collect()
        gc.freeze()
    if item.path not in _generators:
        names = vars(getattr(item, "module", None) or object)
        found = [value for value in names.values() if isinstance(value, np.random.Generator)]
        _generators[item.path] = [(generator, generator.bit_generator.state) for generator in found]
    for generator, state in _generators[item.path]:
        generator.bit_generator.state = state


@pytest.fixture(autouse=True)
def optimised(request: pytest.FixtureRequest) -> None:
    if getattr(getattr(request.node, "module", None), "OPTIMISED", False):
        request.getfixturevalue("monkeypatch").setenv("DYNAGRAD_OPTIMISE", "3")


@pytest.fixture(scope="session")
def forked() -> Iterator[Forked]:
    with Forked() as process:
        yield process


@pytest.fixture
def unplanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan is taken from the cache, nor kept: for tests that change how plans or sources are made."""
    monkeypatch.setattr("dynagrad.codegen.rules.planned._name", lambda *_: None)
