"""Runs of pytest without what takes long: `--quick`, of the conftest.py at the top. Two seconds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

TESTS = """
import pathlib, time

def test_at_once(): pass

def test_slow(): time.sleep(0.25)

def test_slow_and_wrong():
    time.sleep(0.25)
    assert pathlib.Path("mended").exists()
"""


def last_line(folder: Path, *options: str) -> str:
    """How a run of pytest over `TESTS` ended, without its time."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", *options]
    bare = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins take longer to load than these tests to run
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=bare).stdout
    return said.splitlines()[-1].partition(" in ")[0]


def test_a_quick_run_leaves_out_what_took_long_when_it_ran_last_and_passed(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parent.parent / "conftest.py", tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    assert last_line(tmp_path, "--co") == "3 tests collected"
    assert last_line(tmp_path, "--quick") == "1 failed, 2 passed"  # none has been timed
    assert last_line(tmp_path, "--quick") == "1 failed, 1 passed, 1 deselected"
    (tmp_path / "mended").touch()
    assert last_line(tmp_path, "--quick", "-n", "1") == "2 passed"  # which passes now, and is left out from then on
    assert last_line(tmp_path, "--quick") == "1 passed, 2 deselected"
    assert last_line(tmp_path) == "3 passed"
    assert last_line(tmp_path, "-p", "no:cacheprovider", "--quick") == "3 passed"  # nothing is remembered


def test_what_numpy_gives_up_is_not_called_by_the_package() -> None:
    """Warnings of a call of ours are errors, in whichever file numpy raises them; those of others among themselves are
    not."""
    for module in ("dynagrad.eager.numpy.protocol", "numpy", "numpy.lib._ufunclike_impl"):
        with pytest.raises(DeprecationWarning):
            warnings.warn_explicit("given up", DeprecationWarning, "a.py", 1, module=module)
    warnings.warn_explicit("given up", DeprecationWarning, "a.py", 1, module="pandas.core")


GIVEN_UP = """
import warnings
def row_stack(): warnings.warn("`row_stack` is deprecated", DeprecationWarning, stacklevel=2); return "stacked"
"""


def module(name: str, text: str, **names: Any) -> dict[str, Any]:
    """The names of a module of this name."""
    found = {"__name__": name, **names}
    exec(text, found)
    return found


@pytest.mark.parametrize("caller", ["dynagrad.eager.numpy.joining", "dynagrad.facts.columns", "dynagrad"])
def test_what_numpy_gives_up_is_an_error_where_the_package_calls_it(caller: str) -> None:
    """By the filters of pyproject.toml; what others call is theirs to mend."""
    row_stack = module("numpy.lib", GIVEN_UP)["row_stack"]
    with pytest.raises(DeprecationWarning, match="`row_stack` is deprecated"):
        module(caller, "row_stack()", row_stack=row_stack)
    module("scipy.stats", "row_stack()", row_stack=row_stack)


def test_so_it_is_where_numpy_speaks_of_its_own_files() -> None:
    with pytest.raises(DeprecationWarning):
        warnings.warn_explicit("`fix` is deprecated", DeprecationWarning, "numpy/lib/_ufunclike.py", 1, "numpy.lib")
    warnings.warn_explicit("`fix` is deprecated", DeprecationWarning, "pandas/core.py", 1, "pandas.core")
