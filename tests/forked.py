"""Code in processes of their own, without the half second of importing the package in each.

They are forks of one that has imported the package, and has done nothing with it. `conftest.py` has it as a fixture.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from typing import Self

SERVER = """
import atexit, json, os, select, sys, traceback
import dynagrad
exec(sys.argv[1])
for line in sys.stdin:
    environment, seconds, code = json.loads(line)
    pipes = [os.pipe(), os.pipe()]
    process = os.fork()
    if not process:
        for handle, (_, writable) in zip((1, 2), pipes):
            os.dup2(writable, handle)
        os.environ.update(environment)
        try:
            exec(code, {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(0)
    for _, writable in pipes:
        os.close(writable)
    if seconds is not None and not select.select([pipes[0][0]], [], [], seconds)[0]:
        os.kill(process, 9)
    said = []
    for readable, _ in pipes:
        with open(readable) as file:
            said.append(file.read())
    os.waitpid(process, 0)
    print(json.dumps(said), flush=True)
"""
LONGEST = 120
"""Seconds after which a process counts as hung."""


class Forked:
    """The process that is forked; a context, which ends it. It may run some code first, for all forks."""

    def __init__(self, first: str = "") -> None:
        self._first = first

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER, self._first],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        with self._server:
            pass

    def run(
        self, code: str, environment: Mapping[str, str] | None = None, *, kill: float | None = None
    ) -> tuple[str, str]:
        """What code prints, and what it says on stderr; `kill` is after how many seconds it is killed.

        It has the environment variables of now, and those that are given.
        """
        asked, answers = self._server.stdin, self._server.stdout
        assert asked is not None and answers is not None
        asked.write(json.dumps([{**os.environ, **(environment or {})}, kill, code]) + "\n")
        asked.flush()
        if not select.select([answers], [], [], LONGEST)[0]:
            self._server.kill()
            raise TimeoutError(code)
        said, warned = json.loads(answers.readline())
        return said, warned
