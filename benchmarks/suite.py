"""Processor time of the tests: all of them where nothing is compiled yet, and those of `make quick` after that.

As with first calls, it is compared with what g++ takes to compile a hand-written parser.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from .common import HERE, Row, alternate
from .first_calls import YARDSTICK, yardstick


def processor_seconds(*options: str) -> float:
    """What a run of pytest takes, its workers and all that its tests start included. Failing tests are an error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", *options]
    environment = {name: value for name, value in os.environ.items() if name != "DYNAGRAD_OPTIMISE"}
    done = subprocess.run(command, cwd=HERE.parent, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def suite() -> list[Row]:
    """A whole run and a quick one. It takes a quarter of an hour on two cores."""
    (y,) = alternate(yardstick)
    with tempfile.TemporaryDirectory() as folder:
        kept = ["-o", f"cache_dir={Path(folder) / 'cache'}"]
        whole, quick = processor_seconds(*kept), processor_seconds(*kept, "--quick")
    peer = f"g++ of {YARDSTICK}"
    return [
        Row("processor time of the tests, nothing compiled before", whole, peer=peer, peers=y, target=85.0),
        Row("processor time of `make quick` after that", quick, peer=peer, peers=y),
    ]
