"""Rows of the table of figures, fair timing, and where data and baselines are. No benchmark lives here."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
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
