"""Runs that keep a tape from the first, as if a gradient had been asked for before.

So one class is compiled for a run and its gradient, and not two, where it is the derivatives that are tested. Usually a
run is repeated for its tape when a gradient is asked for. That this gives the same gradients to the bit is shown in
`codegen/rules/test_compiled.py`, for complete runs. Repetitions of runs that stopped early, pruned, had a tolerance, or
followed changes are in `derivatives/test_gradient.py`, in the tests with `untaped`, and in
`derivatives/test_gradient_replay.py`.
"""

from __future__ import annotations

import pytest

from dynagrad.charts.binding.binding import Binding
from dynagrad.plan.model import Derivatives
from dynagrad.rules.semirings import SEMIRINGS


def _kept(binding: Binding) -> Derivatives | None:
    return None if SEMIRINGS[binding.context.scale.name].no_derivatives else Derivatives()


@pytest.fixture
def untaped() -> None:
    """Runs keep no tape before a gradient is asked for: where it is about that."""


@pytest.fixture(autouse=True)
def with_tapes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all tests of a file that imports this."""
    if "untaped" not in request.fixturenames:
        always = property(_kept, lambda binding, value: vars(binding).update(derivatives=value))
        monkeypatch.setattr(Binding, "derivatives", always, raising=False)
