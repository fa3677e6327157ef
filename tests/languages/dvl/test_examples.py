"""The example programs: their values are what they say, run and compiled, and the two agree to 1e-12.

Costs nine seconds, most of it for compilation. Searches of which a run takes seconds have fewer rounds in it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dynagrad import cli
from dynagrad.languages.dvl.program import DVLProgram, Result
from languages.dvl.running import EXAMPLES, close

FEWER_ROUNDS = {
    "particle": [("particle.dvl", "(dt 0.1)", "(dt 0.5)"), ("particle.dvl", "(newton miss 0)", "(newton miss 0.28)")],
    "saddle": [("descent.dvl", "(step 1e-3)", "(step 1e-2)"), ("descent.dvl", "(= good 10)", "(= good 3)")],
    "lambda-calculus": [
        ("lambda-calculus.dvl", "(* 0.05 ", "(* 0.3 "),
        ("lambda-calculus.dvl", "gradient-r 300)", "gradient-r 40)"),
        ("lambda-calculus.dvl", "gradient-f 300)", "gradient-f 40)"),
    ],
}
"""What is put into the text of an example as it is run, so that its search comes to its end sooner."""
ELSEWHERE = "particle"
"""That whose search ends elsewhere then, so that it is also compiled with this text."""


@functools.cache
def run_once(path: Path) -> tuple[DVLProgram, list[Result]]:
    """A program, and its results as it was run."""
    with tempfile.TemporaryDirectory() as name:
        folder = shutil.copytree(path.parent, Path(name) / "examples")
        for file, old, new in FEWER_ROUNDS.get(path.stem, []):
            text = (folder / file).read_text(encoding="utf-8")
            assert text.count(old) == 1
            (folder / file).write_text(text.replace(old, new), encoding="utf-8")
        program = DVLProgram(folder / path.name)
        return program, program.run()


def test_all_are_there() -> None:
    assert [path.stem for path in EXAMPLES] == [
        "church-pairs", "descent", "lambda-calculus", "particle", "perceptron", "perturbations", "prolog",
        "runge-kutta", "saddle", "square-root", "streams", "taylor",
    ]  # fmt: skip


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_run_and_compiled(path: Path) -> None:
    """Compiled, all are as they stand in the package."""
    program, run = run_once(path)
    made = DVLProgram(path).compiled_results()
    if path.stem == ELSEWHERE:
        assert all(result.holds for result in made)
        made = program.compiled_results()
    within = 1e-8 if path.stem in FEWER_ROUNDS else 1e-12
    assert len(run) == len(made)
    for a, b in zip(run, made, strict=True):
        assert a.holds and b.holds, (str(a), str(b))
        assert close(a.value, b.value, within), (str(a), str(b))
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
