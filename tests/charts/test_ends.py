"""What the statuses of native code mean, for each thing that may end. Costs nothing: nothing is compiled or run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.charts.ends import STATUSES, Collected, End, Phase, check_end
from dynagrad.runtime.engine import STATUS


def ended(status: str, phase: Phase, **more: Any) -> End:
    """The end of something whose report says nothing else."""
    report = SimpleNamespace(underflow=0, pops=7, items=3, bytes=4096)
    prepared: Any = SimpleNamespace(chart=SimpleNamespace(report=report))
    return End(status, prepared, None, phase, **more)  # type: ignore[arg-type]  # these ends do not ask for the scale


def test_every_status_has_a_meaning() -> None:
    assert set(STATUSES) == set(STATUS.values())


def test_what_is_left_of_a_chart() -> None:
    assert {name for name, s in STATUSES.items() if not s.usable} == {"host_error", "interrupted", "no_memory"}
    assert {name for name, s in STATUSES.items() if s.no_room} == {"items", "bytes", "no_memory"}
    assert {name for name, s in STATUSES.items() if s.final} == {"host_error", "interrupted"}


@pytest.mark.parametrize("phase", Phase)
def test_done_is_no_error_and_ctrl_c_always_one(phase: Phase) -> None:
    check_end(ended("done", phase))
    with pytest.raises(KeyboardInterrupt):
        check_end(ended("interrupted", phase))


@pytest.mark.parametrize("status", ["max_pops", "timeout", "until", "paused"])
def test_a_run_may_stop_early(status: str) -> None:
    check_end(ended(status, Phase.RUN))


ERRORS = [
    ("items", Phase.RUN, dg.errors.NotConverged, "stopped after 7 pops at its limit on items: 3 items, 4,096 bytes"),
    ("items", Phase.JETS, dg.errors.NotConverged, "derivatives stopped at its limit on items; raise max_items"),
    ("bytes", Phase.RUN, dg.errors.NotConverged, "Raise max_bytes"),
    ("bytes", Phase.REPEATED, dg.errors.NotConverged, "with its derivatives needs more than 4,096 bytes"),
    ("bytes", Phase.BACKWARD, dg.errors.NotConverged, "run it with a larger max_bytes"),
    ("bytes", Phase.COLLECTING, dg.errors.RoomError, "the forest takes more than the limit on bytes"),
    ("no_memory", Phase.RUN, dg.errors.RoomError, "no memory left after 7 pops"),
    ("no_memory", Phase.JETS, dg.errors.RoomError, "no memory left after 7 pops"),
    ("no_memory", Phase.BACKWARD, dg.errors.RoomError, "there is no memory left; limit the run"),
    ("no_memory", Phase.COLLECTING, dg.errors.RoomError, "no memory left after 7 pops"),
    ("timeout", Phase.REPEATED, dg.errors.NotConverged, "repeated for its derivatives"),
    ("timeout", Phase.BACKWARD, dg.errors.NotConverged, "in the backward pass"),
    ("timeout", Phase.COLLECTING, dg.errors.NotConverged, "while derivations were collected"),
    ("host_error", Phase.RUN, dg.errors.ValueRangeError, "said that it failed"),
    ("host_error", Phase.REPEATED, dg.errors.Error, "failed when the run was repeated"),
    ("max_pops", Phase.BACKWARD, dg.errors.Error, "the backward pass ended with max_pops"),
]


@pytest.mark.parametrize(("status", "phase", "kind", "words"), ERRORS)
def test_errors(status: str, phase: Phase, kind: type[dg.errors.Error], words: str) -> None:
    with pytest.raises(kind, match=words):
        check_end(ended(status, phase, collected=Collected("goal/0", (), 5)))


def test_an_error_at_a_limit_has_the_chart() -> None:
    with pytest.raises(dg.errors.NotConverged) as caught:
        check_end(ended("items", Phase.RUN), "the chart")
    assert caught.value.chart == "the chart"


def test_a_repeated_run_may_stop_where_the_first_one_did() -> None:
    check_end(ended("max_pops", Phase.REPEATED))
