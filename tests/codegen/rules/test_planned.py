"""Plans and sources that are kept on disk are those that would be made, and are found where all is the same.

Costs three seconds: twelve small programs are compiled.
"""

from __future__ import annotations

import math
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dynagrad as dg
from charts.test_engine import given_facts
from dynagrad.charts.chart import run_of
from dynagrad.codegen.rules import planned
from dynagrad.rules.semirings import SEMIRINGS
from dynagrad.runtime.disk import sealed
from dynagrad.runtime.disk.values import packed
from language_cases import CASES, Case

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

PATHS = "path(X) += start(X).  path(Y) += 0.5 * path(X) * arc(X,Y).  goal += path(X) * stop(X)."
FACTS = {"start/1": [("a", 1.0)], "arc/2": [("a", "b", 0.5), ("b", "c", 0.25)], "stop/1": [("c", 0.5)]}


@pytest.fixture(autouse=True)
def sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the package, of which some may be too new for records to be kept."""
    for place in ("rules.cache", "codegen.rules.planned"):
        monkeypatch.setattr(f"dynagrad.{place}.sources", lambda: "the same")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the cache that begins without plans and libraries; libraries stay in it from test to test."""
    dg.Program(PATHS).run(FACTS).gradient("goal")
    shared, own = Path(os.environ["DYNAGRAD_CACHE"]), tmp_path_factory.mktemp("planned") / "cache"
    own.mkdir(mode=0o700)
    for kept in (*shared.glob("*.o"), *shared.glob("*.pch")):  # and without those that take seconds
        for file in (kept, kept.with_suffix(".seal")):
            shutil.copy(file, own)
    for kept in (*shared.glob("*.zig"), *shared.glob("*.calls")):
        shutil.copy(kept, own)
    return own


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[Any]:
    """The plans that are made from here on, over a cache folder without any."""
    for record in folder.glob("*.plan"):
        record.unlink()
    monkeypatch.setenv("DYNAGRAD_CACHE", str(folder))
    plans: list[Any] = []
    real: Callable[..., Any] = planned.make_plan
    monkeypatch.setattr(planned, "make_plan", lambda *given: (plans.append(given), real(*given))[1])
    return plans


def test_every_plan_of_the_language_is_read_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is compiled here: what is kept is compared with what is made, for each case of the engine."""
    kept: dict[str, bytes] = {}
    monkeypatch.setattr(planned, "recall", kept.get)
    monkeypatch.setattr(planned, "remember", kept.__setitem__)
    cases = [case for case in CASES if case.semiring != "shifted" and not case.functions]
    assert sum(compare(case, kept) for case in cases) > 0.9 * len(cases)


class _Asked(Exception):
    pass


def compare(case: Case, kept: dict[str, bytes]) -> bool:
    """Whether a plan was kept; if so, it and its source are the same when they are read."""
    found: list[Any] = []

    def stop(*given: Any) -> None:
        found.append(given[:2])
        raise _Asked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dynagrad.charts.binding.binding.compile_plan", stop)
        before = len(kept)
        for _ in range(2):
            with pytest.raises(_Asked):
                dg.Program(case.source, None if case.declared else case.semiring).run(given_facts(case.facts))
    (plan, source), (read, again) = found
    assert read == plan and again.source == source.source
    parts = ("constants", "functors", "weights", "flags", "objects", "prelude", "size", "embed")
    assert [getattr(again, p) for p in parts] == [getattr(source, p) for p in parts]
    assert again.names.slots == source.names.slots and again.names.table == source.names.table
    return len(kept) > before


def test_a_second_process_plans_nothing(made: list[Any]) -> None:
    """Two programs of the same text share nothing but the disk."""
    first = dg.Program(PATHS).run(FACTS)
    assert len(made) == 1
    second = dg.Program(PATHS).run(FACTS)
    assert len(made) == 1 and second["goal"] == first["goal"] == 0.5**2 * 0.5 * 0.25 * 0.5
    assert (
        second.gradient("goal")["arc/2"]["a", "b"] == first.gradient("goal")["arc/2"]["a", "b"] == 0.5**2 * 0.25 * 0.5
    )
    assert run_of(second).ready().compiled.plan == run_of(first).ready().compiled.plan


def test_a_backward_pass_is_written_once(made: list[Any], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    written: list[Any] = []
    real = planned.backward_source_of
    monkeypatch.setattr(planned, "backward_source_of", lambda *given: (written.append(given), real(*given))[1])
    found = [dg.Program(PATHS).run(FACTS).gradient("goal")["arc/2"]["a", "b"] for _ in range(2)]
    assert found == [0.5**2 * 0.25 * 0.5] * 2 and len(written) == 1
    dg.Program(PATHS).run({**FACTS, "arc/2": [("a", "b", 0.5), ("b", "a", 0.25)]}).gradient("goal")
    assert len(written) == 2, "that of another class"
    for record in folder.glob("*.plan"):
        record.write_bytes(record.read_bytes()[:-1])
    assert dg.Program(PATHS).run(FACTS).gradient("goal")["arc/2"]["a", "b"] == found[0] and len(written) == 3


def test_other_facts_options_semirings_and_numbers_have_plans_of_their_own(made: list[Any]) -> None:
    dg.Program(PATHS).run(FACTS)
    dg.Program(PATHS).run({**FACTS, "arc/2": [("a", "b", 0.5), ("b", "a", 0.25)]})
    assert len(made) == 2, "a cycle"
    dg.Program(PATHS, "tropical").run(FACTS)
    dg.Program(PATHS, "tropical").run(FACTS, until="path(b)")
    dg.Program(PATHS, "log").run(FACTS)
    assert len(made) == 5
    chart = dg.Program(PATHS, "log", values="probabilities").run(FACTS)
    assert len(made) == 6, "the text's constants are other numbers"
    assert math.exp(chart["goal"]) == pytest.approx(0.5**2 * 0.5 * 0.25 * 0.5, rel=1e-14)


def test_a_program_that_another_version_pickled_has_plans_of_this_one(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pickled = pickle.dumps(dg.Program(PATHS))
    assert dg.Program(PATHS).run(FACTS)["goal"] == pickle.loads(pickled).run(FACTS)["goal"] and len(made) == 1
    monkeypatch.setattr("dynagrad.codegen.rules.planned.sources", lambda: "others")
    pickle.loads(pickled).run(FACTS)
    assert len(made) == 2
    monkeypatch.setattr("dynagrad.codegen.rules.planned.sources", lambda: None)
    pickle.loads(pickled).run(FACTS)
    assert len(made) == 3, "changed since they were imported"


def test_a_damaged_record_is_none(made: list[Any], folder: Path) -> None:
    dg.Program(PATHS).run(FACTS)
    (record,) = folder.glob("*.plan")
    whole = record.read_bytes()
    for broken in (b"", whole[:100], whole[:-1], whole[:64] + whole[80:]):
        record.write_bytes(broken)
        assert dg.Program(PATHS).run(FACTS)["goal"] == 0.5**2 * 0.5 * 0.25 * 0.5
    assert len(made) == 5 and record.read_bytes() == whole, "it is written again"


@pytest.mark.parametrize("value", [1, (), ("plan", [], []), ({}, [{}, {}, {}, []], [])])
def test_a_record_of_another_shape_is_none(made: list[Any], folder: Path, value: object) -> None:
    dg.Program(PATHS).run(FACTS)
    (record,) = folder.glob("*.plan")
    data = packed(value, ())
    assert data is not None
    sealed.save(record, data)
    assert dg.Program(PATHS).run(FACTS)["goal"] == 0.5**2 * 0.5 * 0.25 * 0.5 and len(made) == 2


def test_traits_of_a_semiring_decide_too(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for order in ("value", "arrival"):
        monkeypatch.setitem(SEMIRINGS, "best", replace(SEMIRINGS["viterbi"], order=order))
        dg.Program(PATHS, "best").run({**FACTS, "arc/2": [("a", "b", 0.5), ("b", "a", 0.25)]}, max_pops=10)
    assert len(made) == 2


def test_what_depends_on_functions_of_the_user_is_not_kept(made: list[Any], folder: Path) -> None:
    text = ":- function half/1.  b(X) += half(a(X))."
    for factor in (0.5, 0.25):
        chart = dg.Program(text, functions={"half": lambda x, by=factor: x * by}).run({"a/1": [("x", 8.0)]})
        assert chart["b(x)"] == 8.0 * factor
    assert len(made) == 2 and not list(folder.glob("*.plan"))
