"""Rows of the table of figures, fair timing, and where data and baselines are. No benchmark lives here."""

from __future__ import annotations

import itertools
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE / "build"
SHARED = HERE.parent.parent / "shared"
DATA = Path(os.environ.get("DYNAGRAD_DATA", SHARED / "data"))
BASELINES = Path(os.environ.get("DYNAGRAD_BASELINES", SHARED / "baselines"))


class Skip(Exception):
    """A benchmark cannot run here; the message says why."""


@dataclass(frozen=True)
class Row:
    """One line of the table. The target bounds the ratio to the peer, or our own figure where there is no peer."""

    what: str
    own: float | None = None
    unit: str = "s"
    peer: str = ""
    peers: float | None = None
    target: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.own / self.peers if self.own is not None and self.peers else None

    @property
    def verdict(self) -> str:
        bounded = self.own if self.peers is None else self.ratio
        if self.own is None:
            return "skipped"
        if self.target is None or bounded is None:
            return "reported"
        return "met" if bounded <= self.target else "NOT MET"


def timed(work: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternate(*works: Callable[[], float], repeats: int = 5) -> list[float]:
    """The least figure of each of several measurements, which take turns so that a busy moment affects all of them."""
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        best = [min(b, work()) for b, work in zip(best, works, strict=True)]
    return best


def medians(*works: Callable[[], float], repeats: int = 15) -> list[float]:
    """The median figure of each of several measurements, which take turns; for work that allocates memory."""
    rounds = [[work() for work in works] for _ in range(repeats)]
    return [statistics.median(figures) for figures in zip(*rounds, strict=True)]


def python(code: str, cache: str | None = None, **environment: str) -> list[float]:
    """The numbers that Python code prints in a process of its own, and in the cache folder `cache` if one is named.

    Byte code is cached, as it is for users, whatever the settings of this process.
    """
    env = {**os.environ, **environment, "PYTHONPYCACHEPREFIX": str(BUILD / "bytecode")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    if cache is not None:
        env["DYNAGRAD_CACHE"] = cache
    done = subprocess.run([sys.executable, "-"], input=code, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return [float(x) for x in done.stdout.split()]


def megabytes(run: Callable[[], object]) -> float:
    """What the objects of Python take at their most while something runs.

    Not what the process holds, which begins with what was done before.
    """
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def megabytes_of_compiler() -> float:
    """What the largest C++ compiler that this process has called held at its most."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3


def growth(what: str, unit: str, sizes: tuple[int, ...], code: str) -> list[Row]:
    """Rows on what `code` prints for programs that are twice as large, each in a process and a cache of its own: the
    seconds to specialise and compile, the megabytes to specialise, those of the C++ compiler. `{n}` is the size.

    Memory has a row for the largest alone: that of smaller ones is too little to be told from what Python holds anyway.
    """
    found = {}
    for n in sizes:
        with tempfile.TemporaryDirectory() as cache:
            found[n] = python(code.format(n=n), cache)
    rows = []
    for n, half in itertools.pairwise(sorted(sizes, reverse=True)):
        told = f"{what} of {n:,} {unit}"
        (seconds, own, compiler), (of_half, own_of_half, compiler_of_half) = found[n], found[half]
        rows.append(Row(f"{told}: specialised and compiled", seconds, "s", f"of {half:,}", of_half, 3.0))
        if n == max(sizes):
            rows += [
                Row(f"{told}: memory to specialise it", own, "MB", f"of {half:,}", own_of_half, 3.0),
                Row(f"{told}: memory of the C++ compiler", compiler, "MB", f"of {half:,}", compiler_of_half, 3.0),
            ]
    return rows


def data(*parts: str) -> Path:
    """A file of the data folder."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        raise Skip(f"there is no {'/'.join(parts)} in the data folder; DYNAGRAD_DATA names another one")
    return path


def baseline(name: str) -> Path:
    """The program built from the baseline `name`.cpp."""
    source, program = BASELINES / f"{name}.cpp", BUILD / name
    if not source.exists():
        raise Skip(f"there is no {name}.cpp in the folder of baselines; DYNAGRAD_BASELINES names another one")
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(exist_ok=True)
        gcc = shutil.which("g++")
        compiler = [gcc] if gcc else [sys.executable, "-m", "ziglang", "c++"]
        subprocess.run([*compiler, "-O3", "-march=native", "-std=c++20", source, "-o", program], check=True)
    return program
