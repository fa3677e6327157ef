"""Runs the fuzzers, each in a process of its own, so that crashes are found as well. By hand: `make fuzz`, or

    PYTHONPATH=src:tests:docs python -m fuzz.run --seconds 3600 --first 0 programs tables files

An input is named by its number: the same number is the same input everywhere. Failures are printed with it. With
`--sanitize` compiled programs are checked by AddressSanitizer, which needs g++ with its libasan.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

KINDS = ("programs", "charts", "tables", "files", "caches", "headers", "calls", "pullback", "steps", "nests", "judges")
HUNG = 300
"""Seconds without a new input after which a process counts as hung."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Random hostile inputs of several kinds.")
    parser.add_argument("kinds", nargs="*", default=[*KINDS, "pairs"])
    parser.add_argument("--seconds", type=float, default=3600, help="for all kinds together")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    environment = {**os.environ, **(sanitized() if options.sanitize else {})}
    found = 0
    for kind in options.kinds:
        seconds = options.seconds / len(options.kinds)
        tried = pairs if kind == "pairs" else fuzz
        count, wrong = tried(kind, options.first, seconds=seconds, environment=environment)
        print(f"{kind}: {count:,} inputs, {len(wrong)} of them wrong", flush=True)
        for text in wrong:
            print(f"  {text}", flush=True)
        found += len(wrong)
    return 1 if found else 0


def sanitized() -> dict[str, str]:
    """The environment in which compiled programs are checked by AddressSanitizer."""
    # The C++ library first of all, too: libasan looks there for what throws, and pyarrow throws.
    libraries = [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    return {
        "DYNAGRAD_CXX": "g++ -fsanitize=address -fno-omit-frame-pointer",
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
    }


def fuzz(
    kind: str, first: int, *, count: int | None = None, seconds: float = 3600, environment: dict[str, str] | None = None
) -> tuple[int, list[str]]:
    """How many inputs from number `first` on were tried, until `count` or the time is over, and what was wrong."""
    wrong: list[str] = []
    until, at = time.monotonic() + seconds, first
    while time.monotonic() < until and (count is None or at < first + count):
        with tempfile.TemporaryDirectory() as folder:
            last, errors = Path(folder) / "last", Path(folder) / "errors"
            command = [sys.executable, "-m", "fuzz.run", "--child", kind, str(at), str(last)]
            command += [str(until - time.monotonic()), str(first + count if count is not None else -1)]
            path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
            variables = {"PYTHONPATH": path, "DYNAGRAD_OPTIMISE": "0", "RUST_BACKTRACE": "0"}
            with errors.open("wb") as said:
                variables = {**(environment or os.environ), **variables}
                process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=said, text=True)
                seen, moved = "", time.monotonic()
                while True:
                    try:
                        out, _ = process.communicate(timeout=5)
                        break
                    except subprocess.TimeoutExpired:
                        now = last.read_text() if last.exists() else ""
                        if now != seen:
                            seen, moved = now, time.monotonic()
                        elif time.monotonic() - moved > HUNG:
                            process.send_signal(signal.SIGABRT)
            wrong += [line for line in out.splitlines() if line]
            reached = last.read_text().strip() if last.exists() else ""
            if process.returncode != 0:
                words = errors.read_text(errors="replace")[-2000:]
                wrong.append(f"{reached or 'before the first'}: ended with {process.returncode}: {words}")
            if not reached:  # nor would the next process come to one
                break
            at = int(reached) + 1
    return at - first, wrong


def pairs(_: str, first: int, *, seconds: float, environment: dict[str, str]) -> tuple[int, list[str]]:
    """Random programs with facts against the oracle: `random_against_oracle.py`."""
    script = Path(__file__).parents[1] / "random_against_oracle.py"
    command = [sys.executable, str(script), str(seconds), str(first)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    said = done.stdout.strip().splitlines()
    if done.returncode != 0 or not said:
        return 0, [f"ended with {done.returncode}: {done.stderr[-2000:]}"]
    counts = ast.literal_eval(said[-1])
    return counts.get("pairs", 0), said[:-1]


def child(kind: str, first: int, last: Path, seconds: float, end: int) -> None:
    """Tries one input after the other; prints what is wrong, and leaves the number of the input at hand in a file."""
    warnings.simplefilter("ignore")
    check = importlib.import_module(f"fuzz.{kind}").check
    until, at = time.monotonic() + seconds, first
    with last.open("w") as file:
        while at != end and (time.monotonic() < until or at == first):
            file.seek(0)
            file.write(f"{at:<20}")
            file.flush()
            try:
                wrong = check(at)
            except Exception as error:  # every error of an input is a dg.Error, which `check` knows
                places = traceback.extract_tb(error.__traceback__)
                ours = [f"{Path(p.filename).name}:{p.lineno}" for p in places][-4:]
                wrong = f"{type(error).__name__}: {str(error)[:300]} in {' '.join(ours)}"
            if wrong:
                print(f"{at}: " + wrong.replace("\n", " | ")[:1500], flush=True)
            at += 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
    else:
        sys.exit(main())
