"""A compiler that starts before its source: what it makes is the same, and none is left where no source comes (4 s)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

import dynagrad as dg
from dynagrad.codegen.rules import compiled
from dynagrad.errors import CompileError
from dynagrad.forks import pipes
from dynagrad.plan.planner import make_plan
from dynagrad.runtime.compiling import ahead, cache, child, toolchain
from dynagrad.runtime.compiling.ahead import Ahead
from dynagrad.runtime.disk.folder import trusted_folder

pytestmark = pytest.mark.skipif(os.name != "posix" or not toolchain.compiler().zig, reason="needs zig")

NEW = uuid.uuid4().hex
"""Makes texts new in each run of the tests, which share a cache."""

PRELUDE = "dynagrad/outside/rules.hpp"
SOURCE = f'#include <{PRELUDE}>\nextern "C" __attribute__((visibility("default"))) int answer() {{ return 42; }}\n'


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[child.Child]:
    """The compilers that were started ahead."""
    found: list[child.Child] = []

    class Recorded(child.Child):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            found.append(self)

    monkeypatch.setattr(ahead, "Child", Recorded)
    return found


def build(source: str, started: Ahead | None = None, optimise: int = 0) -> Path:
    """A library that is linked with no object that does anything, as classes are with those of the runtime."""
    objects = [cache.Object("int dynagrad_unused;\n", 0, bare=True)]
    return cache.build(source, optimise=optimise, objects=objects, prelude=PRELUDE, ahead=started)


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """The header is there, and it is known what zig calls."""
    build(SOURCE + "// first")


def ended(process: child.Child) -> bool:
    return process._first.poll() is not None


def left() -> set[Path]:
    """The temporary folders of compilers that began ahead."""
    folder, _ = trusted_folder()
    assert folder is not None
    return set(folder.glob(f"tmp-*/{ahead.SOURCE}"))


def test_the_library_is_the_same(begun, tmp_path, monkeypatch):
    without = build(SOURCE)
    data = without.read_bytes()
    without.unlink()
    with Ahead() as started:
        cache.begin(started, PRELUDE, 0)
        again = build(SOURCE, started)
        assert len(begun) == 1 and ended(begun[0])
    assert (again, again.read_bytes()) == (without, data)


@pytest.mark.parametrize("why", ["no source", "an error", "other options", "found in the cache"])
def test_no_compiler_is_left(why, begun):
    before, folders = set(pipes), left()
    try:
        with Ahead() as started:
            cache.begin(started, PRELUDE, 0)
            (process,) = begun
            assert not ended(process) and len(pipes) == len(before) + 1
            if why == "an error":
                raise KeyboardInterrupt
            if why == "other options":
                assert build(SOURCE + f"// {NEW}", started, optimise=1).exists() and not ended(process)
            if why == "found in the cache":
                build(SOURCE + "// first", started)
    except KeyboardInterrupt:
        assert why == "an error"
    assert ended(process) and pipes == before
    assert left() == folders


def test_an_error_is_told_as_ever(begun):
    with pytest.raises(CompileError) as before:
        build(SOURCE + "int f() { return nothing; }")
    with Ahead() as started, pytest.raises(CompileError) as raised:
        cache.begin(started, PRELUDE, 0)
        build(SOURCE + "int f() { return nothing; }", started)
    assert len(begun) == 1
    assert str(raised.value) == str(before.value) and "error: use of undeclared identifier" in str(raised.value)


def test_a_long_source(begun):
    """Longer than a pipe holds."""
    long = SOURCE + f"// {NEW}\n" + "".join(f"static int f{n}() {{ return {n}; }}\n" for n in range(5000))
    with Ahead() as started:
        cache.begin(started, PRELUDE, 0)
        assert build(long, started).exists() and ended(begun[0])


def test_a_compiler_that_dies_is_called_again(begun):
    with Ahead() as started:
        cache.begin(started, PRELUDE, 0)
        begun[0]._first.kill()
        begun[0]._first.wait()
        assert build(SOURCE + f"// died {NEW}", started).exists()


@pytest.mark.parametrize("how", ["killed", "left", "forked"])
def test_it_ends_with_its_parent_also_before_the_source_comes(how, tmp_path):
    code = f"""
import os, signal, time
from dynagrad.runtime.compiling import cache
from dynagrad.runtime.compiling.ahead import Ahead
from dynagrad.runtime.disk.folder import trusted_folder
started = Ahead()
cache.begin(started, {PRELUDE!r}, 0)
print(started._child._first.pid, flush=True)
if {how == "forked"} and os.fork() == 0:
    os.close(1)
    time.sleep(20)
os.kill(os.getpid(), 9) if {how == "killed"} else os._exit(0)
"""
    source = Path(child.__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    compiler = int(done.stdout)
    for _ in range(200):
        try:
            os.kill(compiler, 0)
        except ProcessLookupError:
            return
        stat = Path(f"/proc/{compiler}/stat")
        if stat.exists() and " Z " in stat.read_text():
            return  # dead, and not waited for
        time.sleep(0.05)
    raise AssertionError("it outlives its parent")


class TestPrograms:
    """A compiler starts where a plan is new on this machine."""

    def test_the_first_run_and_its_gradient_start_one_each(self, begun):
        chart = dg.Program(f"ahead_goal_{NEW} += ahead(_X) * 2.").run({"ahead/1": [("x", 3.0)]})
        made = len(begun)
        assert (made, chart[f"ahead_goal_{NEW}"]) == (1, 6.0)
        assert list(chart.gradient(f"ahead_goal_{NEW}")["ahead/1"]) == [("x", 2.0)]
        assert len(begun) == 2 and all(map(ended, begun))

    def test_a_plan_that_is_known_starts_none(self, begun):
        text, facts = f"ahead_known_{NEW} += ahead(_X) * 2.", {"ahead/1": [("x", 3.0)]}
        dg.Program(text).run(facts)
        dg.Program(text).run(facts)
        assert len(begun) == 1

    def test_a_plan_that_counts_pairs_of_facts_starts_one_once(self, begun, monkeypatch):
        def counting(rules, domains, summary, options, count):
            count("ahead/2", 0, 1)
            return make_plan(rules, domains, summary, options, count)

        monkeypatch.setattr("dynagrad.codegen.rules.planned.make_plan", counting)
        text, facts = f"ahead_counted_{NEW} += ahead(_X,_Y) * 2.", {"ahead/2": [("x", "y", 3.0)]}
        assert [dg.Program(text).run(facts)[f"ahead_counted_{NEW}"] for _ in range(3)] == [6.0] * 3
        assert len(begun) == 1

    def test_an_error_in_planning_leaves_none(self, begun, monkeypatch):
        def fail(*_):
            raise ZeroDivisionError

        monkeypatch.setattr("dynagrad.codegen.rules.planned.make_plan", fail)
        with pytest.raises(ZeroDivisionError):
            dg.Program(f"ahead_failed_{NEW} += ahead(_X) * 2.").run({"ahead/1": [("x", 3.0)]})
        assert len(begun) == 1 and ended(begun[0])

    def test_a_size_that_is_optimised_less_is_compiled_by_another(self, begun, monkeypatch):
        monkeypatch.setenv("DYNAGRAD_OPTIMISE", "3")
        dg.Program(f"ahead_warm_{NEW} += ahead(_X) * 2.").run({"ahead/1": [("x", 3.0)]})
        monkeypatch.setattr(compiled, "HUGE", 0)
        chart = dg.Program(f"ahead_huge_{NEW} += ahead(_X) * 2.").run({"ahead/1": [("x", 3.0)]})
        assert chart[f"ahead_huge_{NEW}"] == 6.0 and all(map(ended, begun))
