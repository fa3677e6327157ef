"""Child processes: their output, and that they end with this process, with no other program started instead (3 s).

That a compiler ends with its process is tested in `test_cache`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dynagrad.errors import CompileError
from dynagrad.runtime.compiling import child, toolchain

pytestmark = pytest.mark.skipif(os.name != "posix", reason="no process groups here")

# What `sys.executable` may be where this package is part of another program.
EMBEDDED = {
    "frozen": {"frozen": True},
    "nothing": {"executable": ""},
    "none": {"executable": None},
    "a program": {"executable": "/opt/studio/studio"},
    "a server": {"executable": "/usr/sbin/uwsgi"},
}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of all processes that are started."""
    commands: list[list[str]] = []
    popen = subprocess.Popen

    def recorded(command: Any, *arguments: Any, **options: Any) -> Any:
        commands.append(list(command))
        return popen(command, *arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", recorded)
    return commands


def embed(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    for name, value in EMBEDDED[how].items():
        monkeypatch.setattr(sys, name, value, raising=False)


def test_the_status_and_what_was_said(tmp_path: Path) -> None:
    script = "echo no >&2; pwd -P >&2; exit 3"
    assert child.run(["/bin/sh", "-c", script], os.environ, tmp_path) == (3, f"no\n{tmp_path.resolve()}\n")


def test_a_second_program_reads_what_the_first_one_writes(tmp_path: Path) -> None:
    """It starts as the first one runs, and after what is done meanwhile."""
    done: list[str] = []

    def meanwhile() -> None:
        done.append("meanwhile")
        (tmp_path / "go").touch()

    first = ["/bin/sh", "-c", "while ! test -e go; do sleep 0.01; done; seq 100000; echo one >&2"]
    second = ["/bin/sh", "-c", "sort -n | tail -1 > last; echo two >&2"]
    assert child.run(first, os.environ, tmp_path, then=second, meanwhile=meanwhile) == (0, "one\ntwo\n")
    assert (done, (tmp_path / "last").read_text()) == (["meanwhile"], "100000\n")


@pytest.mark.parametrize(
    ("first", "second", "status"), [("exit 3", "cat", 3), ("exit 0", "exit 4", 4), ("exec seq 1000000", "exit 5", -13)]
)
def test_the_status_of_two_programs(first: str, second: str, status: int, tmp_path: Path) -> None:
    commands = [["/bin/sh", "-c", script] for script in (first, second)]
    assert child.run(commands[0], os.environ, tmp_path, then=commands[1])[0] == status


@pytest.mark.parametrize("signals", ["ignored", "that end"])
@pytest.mark.parametrize("reads", [True, False])
def test_a_program_is_fed(reads: bool, signals: str, tmp_path: Path) -> None:
    """More than a pipe holds; what does not read it is no error here, also where its signal would end this process."""
    program = ["/bin/sh", "-c", "wc -c >&2" if reads else "exit 3"]
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL if signals == "that end" else signal.SIG_IGN)
    try:
        with child.Child(program, os.environ, tmp_path, piped=False, fed=True) as started:
            started.feed(b"x" * 1_000_000)
            status, said = started.finish(None, tmp_path)
    finally:
        signal.signal(signal.SIGPIPE, before)
    assert (status, said.strip()) == ((0, "1000000") if reads else (3, ""))


def test_a_fork_does_not_end_the_child_of_its_parent(tmp_path: Path) -> None:
    with child.Child(["/bin/cat"], os.environ, tmp_path, piped=False, fed=True) as started:
        pid = os.fork()
        if pid == 0:
            try:
                started.__exit__()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        assert started._first.poll() is None
        started.feed(b"")
        assert started.finish(None, tmp_path) == (0, "")


@pytest.mark.parametrize("then", [None, ["/bin/cat"]])
def test_an_error_meanwhile_ends_the_programs(then: list[str] | None, tmp_path: Path) -> None:
    def fail() -> None:
        raise ValueError

    start = time.monotonic()
    with pytest.raises(ValueError):
        child.run(["/bin/sleep", "30"], os.environ, tmp_path, then=then, meanwhile=fail)
    assert time.monotonic() - start < 10


def test_a_second_program_that_does_not_start_ends_the_first(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(child.NotStarted):
        child.run(["/bin/sleep", "30"], os.environ, tmp_path, then=["/no/such/program"])
    assert time.monotonic() - start < 10


def test_a_fork_does_not_keep_the_first_of_two_programs_from_ending(tmp_path: Path) -> None:
    """It writes without end; once the second one has ended, nobody reads it, also where a fork goes on."""
    with child.Child(["/bin/sh", "-c", "exec yes"], os.environ, tmp_path, piped=True) as started:
        pid = os.fork()
        if pid == 0:
            try:
                time.sleep(30)
            finally:
                os._exit(0)
        try:
            start = time.monotonic()
            assert started.finish(["/bin/sh", "-c", "exit 5"], tmp_path) == (-13, "")
            assert time.monotonic() - start < 10
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_children_of_several_threads_are_cancelled_together(tmp_path: Path) -> None:
    scope, ended = child.CancelScope(), []

    def work() -> None:
        scope.join()
        try:
            child.run(["/bin/sleep", "30"], os.environ, tmp_path, then=["/bin/cat"])
        except child.NotStarted:
            ended.append("one")

    threads = [threading.Thread(target=work) for _ in range(3)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    scope.cancel()
    late = threading.Thread(target=work)
    late.start()
    for thread in (*threads, late):
        thread.join(20)
    assert ended == ["one"] * 4 and time.monotonic() - start < 10
    assert child.run(["/bin/sh", "-c", "exit 0"], os.environ, tmp_path) == (0, "")  # a thread that is none of them


def test_a_shell_watches_over_the_child(started: list[list[str]], tmp_path: Path) -> None:
    assert child.run([sys.executable, "-c", ""], os.environ, tmp_path) == (0, "")
    assert [command[0] for command in started] == [sys.executable, "/bin/sh"]


@pytest.mark.parametrize("how", ["killed", "left", "forked"])
def test_the_child_ends_with_its_parent(how: str, tmp_path: Path) -> None:
    """Also where the parent has no time to end it, has a fork that goes on, and where the child has children."""
    code = f"""
import os, threading, time
from pathlib import Path
from dynagrad.runtime.compiling import child
def end():
    if {how == "forked"} and os.fork() == 0:
        os.close(1), os.close(2), time.sleep(30), os._exit(0)
    os._exit(0) if {how == "left"} else os.kill(os.getpid(), 9)
threading.Timer(0.5, end).start()
child.run(["/bin/sh", "-c", "sleep 60 & echo $! > sleeping; wait"], os.environ, Path({str(tmp_path)!r}))
"""
    source = Path(child.__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(source)}, timeout=60)
    sleeping = int((tmp_path / "sleeping").read_text())
    for _ in range(100):
        try:
            os.kill(sleeping, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{sleeping}/stat").exists() and " Z " in Path(f"/proc/{sleeping}/stat").read_text():
            return  # dead, and not waited for
        time.sleep(0.05)
    raise AssertionError("it outlives its parent")


@pytest.mark.parametrize("how", EMBEDDED)
def test_no_program_that_is_no_interpreter_is_started(
    how: str, started: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed(monkeypatch, how)
    assert child.interpreter() is None
    assert child.run(["/bin/sh", "-c", "exit 0"], os.environ, tmp_path) == (0, "")
    assert [command[0] for command in started] == ["/bin/sh", "/bin/sh"]


@pytest.mark.parametrize("how", EMBEDDED)
def test_a_compiler_that_only_an_interpreter_can_start_is_none_without_one(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "ziglang", raising=False)
    found = toolchain._ziglang()
    assert found is not None and found.command[:2] == (sys.executable, "-m")
    embed(monkeypatch, how)
    assert toolchain._ziglang() is None
    with pytest.raises(CompileError, match=r"(?s)there is no C\+\+ compiler.*DYNAGRAD_CXX"):
        toolchain._compiler.__wrapped__("", "")


def test_a_frozen_program_compiles(tmp_path: Path) -> None:
    """As PyInstaller makes them: `sys.executable` is the program, which is not to be started once more."""
    program = tmp_path / "python-studio"  # a name that says nothing
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o700)
    code = (
        f"import sys; sys.frozen, sys.executable = True, {str(program)!r}\n"
        "import dynagrad; print(dynagrad.Program('p += q(_X) * 43.').run({'q/1': [('a', 2.0)]})['p'])"
    )
    source = Path(child.__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=120,  # nothing may be compiled yet
    )
    assert (done.stdout, done.stderr) == ("86.0\n", "") and not (tmp_path / "started").exists()
