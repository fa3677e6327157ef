"""The fuzzers, with fixed numbers; what each draws is said in the files beside this one (80 s)."""

from __future__ import annotations

import pytest

from fuzz.run import fuzz


@pytest.mark.parametrize(
    ("kind", "count"),
    [("programs", 2500), ("tables", 3000), ("files", 1000), ("caches", 2000), ("headers", 1), ("calls", 20)],
)
def test_nothing_crashes_and_every_error_is_one_of_ours(kind: str, count: int) -> None:
    tried, wrong = fuzz(kind, 0, count=count)
    assert (tried, wrong) == (count, [])
