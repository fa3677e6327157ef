"""A compiler that starts before its source: what it makes is the same, and none is left where no source comes (8 s)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import dynagrad as dg
from dynagrad.codegen.rules import compiled
from dynagrad.errors import CompileError
from dynagrad.plan.planner import make_plan
from dynagrad.runtime.compiling import cache, child, toolchain
from dynagrad.runtime.compiling.ahead import Ahead
from dynagrad.runtime.compiling.objects import Object
from dynagrad.runtime.disk.sources import sources


def _starts() -> bool:
    """Whether compilers start ahead here: those whose calls of clang and of a linker are known."""
    try:
        tool = toolchain.compiler()
    except CompileError:
        return False
    return bool(toolchain.linker(tool, toolchain.flags(tool)))


pytestmark = pytest.mark.skipif(not _starts(), reason="needs zig and glibc")

NEW = uuid.uuid4().hex
"""Makes texts new in each run of the tests, which share a cache."""

PRELUDE = "dynagrad/outside/rules.hpp"
SOURCE = f'#include <{PRELUDE}>\nextern "C" __attribute__((visibility("default"))) int answer() {{ return 42; }}\n'


@dataclass
class Seen:
    """The compilers that started ahead, and the status of each that was given a source; 0 where it was compiled."""

    started: list[child.Child] = field(default_factory=list)
    places: list[Path] = field(default_factory=list)
    statuses: list[int | None] = field(default_factory=list)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found = Seen()
    start, finish = Ahead.start, Ahead.finish

    def started(self, *given):
        start(self, *given)
        if self._started is not None:
            found.started.append(self._started.child)
            found.places.append(self._started.place)

    def finished(self, *given):
        done = finish(self, *given)
        found.statuses.append(None if done is None else done[0])
        return done

    monkeypatch.setattr(Ahead, "start", started)
    monkeypatch.setattr(Ahead, "finish", finished)
    return found


def build(source: str, ahead: Ahead | None = None, optimise: int | None = None) -> Path:
    """A library that is linked with an object that does nothing, as classes are with those of the runtime."""
    level = compiled.effort(0) if optimise is None else optimise
    return cache.build(
        source, optimise=level, objects=[Object("int unused;\n", 0, bare=True)], prelude=PRELUDE, ahead=ahead
    )


def over(started: child.Child) -> bool:
    return started._first.poll() is not None


def start(ahead: Ahead) -> None:
    cache.start_ahead(ahead, PRELUDE, compiled.effort(0))


@pytest.fixture(scope="module", autouse=True)
def warm() -> Iterator[None]:
    """The header is there, it is known what zig calls, and the objects of small programs are compiled."""
    build(SOURCE + "// first")  # which an earlier run may have left, whose header was another
    build(SOURCE + f"// {NEW} second")
    build(SOURCE + f"// {NEW} third", optimise=1)
    chart = dg.Program("ahead_first += ahead(_X) * 2.").run({"ahead/1": [("x", 3.0)]})
    chart.gradient("ahead_first")
    yield


def test_the_library_is_the_same(seen):
    without = build(SOURCE)
    data = without.read_bytes()
    without.unlink()
    with Ahead() as ahead:
        start(ahead)
        again = build(SOURCE, ahead)
    assert (again, again.read_bytes(), seen.statuses) == (without, data, [0])


@pytest.mark.parametrize("why", ["no source", "an error", "other options", "found in the cache"])
def test_no_compiler_is_left(why, seen):
    try:
        with Ahead() as ahead:
            start(ahead)
            (process,), (place,) = seen.started, seen.places
            time.sleep(0.1)
            assert not over(process) and place.exists(), "it waits for the source"
            if why == "an error":
                raise KeyboardInterrupt
            if why == "other options":
                assert build(SOURCE + f"// {NEW}", ahead, optimise=1).exists()
                assert over(process) and seen.statuses == [None], "not even as long as the other one runs"
            if why == "found in the cache":
                build(SOURCE + "// first", ahead)
    except KeyboardInterrupt:
        assert why == "an error"
    assert over(process) and not place.exists()


def test_an_error_is_told_as_ever(seen):
    with pytest.raises(CompileError) as before:
        build(SOURCE + "int f() { return nothing; }")
    with Ahead() as ahead, pytest.raises(CompileError) as raised:
        start(ahead)
        build(SOURCE + "int f() { return nothing; }", ahead)
    assert seen.statuses == [1]
    # older compilers write the number of errors, and what follows it, in an order of their own
    ahead_of, as_ever = (re.sub(r"\S* error generated\.", "", str(said.value)) for said in (raised, before))
    assert ahead_of.split() == as_ever.split() and "error: use of undeclared identifier" in as_ever


def test_a_long_source(seen):
    """Longer than a pipe holds."""
    long = SOURCE + f"// {NEW}\n" + "".join(f"static int f{n}() {{ return {n}; }}\n" for n in range(5000))
    with Ahead() as ahead:
        start(ahead)
        assert build(long, ahead).exists() and seen.statuses == [0]


def test_a_compiler_that_dies_is_called_again(seen):
    with Ahead() as ahead:
        start(ahead)
        (process,) = seen.started
        os.kill(process._first.pid, 9)
        assert build(SOURCE + f"// died {NEW}", ahead).exists() and seen.statuses == [-9]


def test_a_header_that_is_made_again_meanwhile_is_not_mixed_with_the_one_before(seen, monkeypatch):
    with Ahead() as ahead:
        start(ahead)
        link = seen.places[0] / "prelude.pch"
        link.with_name("other").write_bytes(link.read_bytes())
        os.replace(link.with_name("other"), link)
        assert build(SOURCE + f"// header {NEW}", ahead).exists() and seen.statuses == [None]


def run(code: str, folder: Path, script: str = 'exec "$0" -c "$1"') -> str:
    """What Python prints that a shell starts, with a cache where all is there that a first program makes."""
    source = Path(child.__file__).parents[3]
    done = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable, code],
        env={**os.environ, "PYTHONPATH": str(source), "OUT": str(folder / "out")},
        stdout=subprocess.DEVNULL,
        timeout=120,  # nothing may be compiled yet
    )
    assert done.returncode in (0, -9)
    return (folder / "out").read_text()


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_handles_may_be_closed(closed, tmp_path):
    code = f"""
import os, dynagrad as dg
from dynagrad.runtime.compiling.ahead import Ahead
statuses, finish = [], Ahead.finish
Ahead.finish = lambda *given: statuses.append(finish(*given)) or statuses[-1]
answer = dg.Program("ahead_closed_{uuid.uuid4().hex} += ahead(_X) * 2.").run({{"ahead/1": [("x", 3.0)]}})
open(os.environ["OUT"], "w").write(repr([*statuses, *answer.items()]))
"""
    said = run(code, tmp_path, f'exec "$0" -c "$1" {closed}')
    assert said.startswith("[(0, ") and "6.0" in said


@pytest.mark.parametrize("how", ["killed", "left", "forked"])
def test_it_ends_with_its_parent_also_before_the_source_comes(how, tmp_path):
    code = f"""
import os, shutil, sys, time
from dynagrad.runtime.compiling import cache
from dynagrad.runtime.compiling.ahead import Ahead
ahead = Ahead()
cache.start_ahead(ahead, {PRELUDE!r}, {compiled.effort(0)})
open(os.environ["OUT"], "w").write(f"{{ahead._started.child._first.pid}} {{ahead._started.place}}")
if {how == "forked"} and os.fork() == 0:
    time.sleep(20)
os._exit(0) if {how == "left"} else os.kill(os.getpid(), 9)
"""
    pid, place = run(code, tmp_path).split()
    for _ in range(200):
        try:
            if " Z " in Path(f"/proc/{pid}/stat").read_text():
                break  # dead, and not waited for
        except OSError:
            break
        time.sleep(0.05)
    else:
        raise AssertionError("it outlives its parent")
    for file in Path(place).iterdir():
        file.unlink()
    Path(place).rmdir()


FACTS = {"ahead/1": [("x", 3.0)]}


@pytest.mark.skipif(sources() is None, reason="of a package that was edited seconds ago nothing is kept")
class TestPrograms:
    """A compiler starts where a plan is new on this machine."""

    def test_the_first_run_and_its_gradient_start_one_each(self, seen):
        goal = f"ahead_goal_{NEW}"
        chart = dg.Program(f"{goal} += ahead(_X) * 2.").run(FACTS)
        assert (chart[goal], seen.statuses) == (6.0, [0])
        assert list(chart.gradient(goal)["ahead/1"]) == [("x", 2.0)] and seen.statuses == [0, 0]

    def test_a_plan_that_is_known_starts_none(self, seen):
        text = f"ahead_known_{NEW} += ahead(_X) * 2."
        dg.Program(text).run(FACTS)
        dg.Program(text).run(FACTS)
        assert seen.statuses == [0] and len(seen.started) == 1

    def test_a_plan_that_counts_pairs_of_facts_starts_one_once(self, seen, monkeypatch):
        def counting(rules, domains, summary, options, count):
            count("ahead/2", 0, 1)
            return make_plan(rules, domains, summary, options, count)

        monkeypatch.setattr("dynagrad.codegen.rules.planned.make_plan", counting)
        goal, facts = f"ahead_counted_{NEW}", {"ahead/2": [("x", "y", 3.0)]}
        assert [dg.Program(f"{goal} += ahead(_X,_Y) * 2.").run(facts)[goal] for _ in range(3)] == [6.0] * 3
        assert len(seen.started) == 1

    def test_an_error_in_planning_leaves_none(self, seen, monkeypatch):
        def fail(*_):
            raise ZeroDivisionError

        monkeypatch.setattr("dynagrad.codegen.rules.planned.make_plan", fail)
        with pytest.raises(ZeroDivisionError):
            dg.Program(f"ahead_failed_{NEW} += ahead(_X) * 2.").run(FACTS)
        assert [over(process) for process in seen.started] == [True]

    def test_a_class_that_is_optimised_less_is_compiled_by_another(self, seen, monkeypatch):
        monkeypatch.setenv("DYNAGRAD_OPTIMISE", "3")
        goal = f"ahead_huge_{NEW}"
        dg.Program("ahead_first += ahead(_X) * 2.").run(FACTS)["ahead_first"]  # what level 3 makes first
        monkeypatch.setattr(compiled, "HUGE", 1)
        assert dg.Program(f"{goal} += ahead(_X) * 2.").run(FACTS)[goal] == 6.0
        assert [over(process) for process in seen.started] == [True] * len(seen.started) and None in seen.statuses
