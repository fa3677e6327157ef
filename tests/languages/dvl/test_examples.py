"""The example programs: their values are what they say, run and compiled, and the two agree to 1e-12.

Costs fifteen seconds, most of it the saddle and the particle as they are run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dynagrad import cli
from dynagrad.languages.dvl.program import DVLProgram, Result
from languages.dvl.running import EXAMPLES, close


@functools.cache
def run_once(path: Path) -> tuple[DVLProgram, list[Result]]:
    """A program, and its results as it was run."""
    program = DVLProgram(path)
    return program, program.run()


def test_all_are_there() -> None:
    assert [path.stem for path in EXAMPLES] == [
        "church-pairs", "descent", "lambda-calculus", "particle", "perceptron", "perturbations", "prolog",
        "runge-kutta", "saddle", "square-root", "streams", "taylor",
    ]  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_run_and_compiled(path: Path) -> None:
    """With right gradients in all of them, which closes issue 2 of Radul's (2011)."""
    program, run = run_once(path)
    made = program.compiled_results()
    assert len(run) == len(made)
    for a, b in zip(run, made, strict=True):
        assert a.holds and b.holds, (str(a), str(b))
        assert close(a.value, b.value), (str(a), str(b))
    assert path.stem == "descent" or sum(result.expected is not None for result in run) >= 1


def test_the_saddle_is_at_the_origin_by_both_modes() -> None:
    program, _ = run_once(next(path for path in EXAMPLES if path.stem == "saddle"))
    for name in ("by-reverse", "by-forward"):
        (x1, (x2, _)), ((y1, (y2, _)), _) = program[name]
        assert max(map(abs, (x1, x2, y1, y2))) < 1e-4


def test_the_command(tmp_path: Path) -> None:
    runner = CliRunner()
    file = tmp_path / "program.dvl"
    file.write_text("(define (f x) (* x x))\n((derivative f) 3) ===> 6\n(f 2)\n")
    for options in ([], ["--compile"]):
        found = runner.invoke(cli.app, ["dvl", str(file), *options])
        assert (found.exit_code, found.stdout) == (0, "6\n4\n")
    assert "->" in runner.invoke(cli.app, ["dvl", str(file), "--show", "graph"]).stdout
    assert "double" in runner.invoke(cli.app, ["dvl", str(file), "--show", "c++"]).stdout
    assert runner.invoke(cli.app, ["dvl", str(file), "--show", "rust"]).exit_code == 1
    file.write_text("1 ===> 1\n2 ===> 3")
    found = runner.invoke(cli.app, ["dvl", str(file)])
    assert found.exit_code == 1
    assert found.stdout.splitlines()[:2] == ["1", f"{file}, line 2: 2, and line 2 says 3"]
    file.write_text("(car 1)")
    found = runner.invoke(cli.app, ["dvl", str(file)])
    assert found.exit_code == 1 and "line 1, column 1" in found.stderr


def test_the_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    text = "(define (f x)\n(* 2 x))\n(f 4)\n(car 1)\n(f 5)\n"
    found = CliRunner().invoke(cli.app, ["dvl"], input=text)
    assert found.exit_code == 0
    assert "8" in found.stdout and "10" in found.stdout and "takes a pair" in found.stderr


def test_the_prompt_completes_names_and_keeps_what_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By readline, in a terminal of its own; what was typed is there the next time."""
    pytest.importorskip("readline")
    pty = pytest.importorskip("pty")
    monkeypatch.setenv("HOME", str(tmp_path))

    def typed(text: bytes, until: bytes) -> None:
        pid, terminal = pty.fork()
        if not pid:
            os.execv(sys.executable, [sys.executable, "-m", "dynagrad.cli", "dvl"])
        seen = b""

        def read_to(end: bytes) -> None:
            nonlocal seen
            while end not in seen:
                assert select.select([terminal], [], [], 60)[0], seen
                seen += os.read(terminal, 1000)

        try:
            read_to(b"dvl> ")
            os.write(terminal, text)
            read_to(until)
            os.write(terminal, b"\x04")
            with contextlib.suppress(OSError):  # the other side is closed
                read_to(b"no such text")
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)

    answered = b"\n25\r\ndvl> "  # with the next prompt: before it, the end of the input would be lost
    typed(b"(magnitude-s\t '(3 4))\n", answered)
    typed(b"\x10\n", answered)  # the line before this one
