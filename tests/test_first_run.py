"""What the README says of the first run, sentence by sentence: what is compiled, where it is kept, what comes next.

That the folder may be deleted is shown by `runtime/compiling/test_cache.py`. Costs three compilations, some four
seconds. Times are held against each other, as machines and their loads differ.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAID = """
The first run of a program compiles it, for some tenths of a second; the very first compiles what all programs share,
too, and takes a second or two. What was compiled is kept in `~/.cache/dynagrad` (`~/Library/Caches/dynagrad` on macOS),
and the next time takes milliseconds.
"""
TIMED = """
import sys, time
import dynagrad as dg
began = time.perf_counter()
chart = dg.Program(sys.argv[1]).run({"a/1": [(1, 3.0)]})
print(chart["goal"], time.perf_counter() - began)
"""
PROGRAM, OTHER = "goal += a(X) * a(X).", "goal += a(X) * a(X) * a(X)."


def run(program: str, home: Path) -> float:
    """The seconds of a run in a process of its own, whose user has this home."""
    own = {name: x for name, x in os.environ.items() if name not in ("DYNAGRAD_CACHE", "XDG_CACHE_HOME")}
    own |= {"HOME": str(home), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", TIMED, program]
    value, seconds = subprocess.run(command, env=own, capture_output=True, text=True, check=True).stdout.split()
    assert float(value) == (9.0 if program is PROGRAM else 27.0)
    return float(seconds)


def made(folder: Path) -> tuple[set[str], set[str]]:
    """What was compiled for one program, and what for all."""
    ours = {p.name for p in folder.iterdir() if p.suffix in (".so", ".dylib")}
    return ours, {p.name for p in folder.iterdir() if p.suffix in (".o", ".pch")}


@pytest.mark.skipif(bool(os.environ.get("DYNAGRAD_CXX")), reason="the sentences are of the compiler that is installed")
def test_the_sentences_of_the_readme_on_the_first_run_are_true(tmp_path: Path) -> None:
    assert SAID.strip() in (ROOT / "README.md").read_text()
    folder = tmp_path / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "dynagrad"
    very_first = run(PROGRAM, tmp_path)
    first, shared = made(folder)
    assert len(first) == 1 and shared
    other = run(OTHER, tmp_path)
    both, still = made(folder)
    assert first < both and len(both) == 2 and still == shared  # that was compiled by the very first
    assert other < very_first
    files = {p: p.stat().st_mtime_ns for p in folder.iterdir() if p.suffix in (".so", ".dylib", ".o", ".pch")}
    next_times = min(run(PROGRAM, tmp_path) for _ in range(3))
    assert next_times < other / 4
    assert {p: p.stat().st_mtime_ns for p in files} == files  # nothing is compiled anew
