"""Facts without numbers weigh one: small tables of them share their numbers, which no change of one may reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg

ONE = {"real": 1.0, "plain": 1.0, "log": 0.0, "viterbi": 0.0, "tropical": 0.0}
SHARED = 1024  # rows of the largest tables that share


def program(semiring: str) -> dg.Program:
    return dg.Program("goal += seen(X) * weight(X).", None if semiring == "plain" else semiring)


def weights(count: int) -> list[tuple[int, float]]:
    return list(enumerate(np.random.default_rng(count).normal(size=count).tolist()))


@pytest.mark.parametrize("count", [1, 7, SHARED, SHARED + 1])
@pytest.mark.parametrize("semiring", ONE)
def test_they_weigh_one(semiring: str, count: int) -> None:
    bound = program(semiring).bind({"weight/1": weights(count)})
    bare = bound.run({"seen/1": [(n,) for n in range(count)]})
    given = bound.run({"seen/1": [(n, ONE[semiring]) for n in range(count)]})
    assert bare["goal"] == given["goal"]
    for key in ("seen/1", "weight/1"):
        assert bare.gradient("goal")[key].values.tolist() == given.gradient("goal")[key].values.tolist()


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_a_change_of_one_is_no_change_of_others(semiring: str) -> None:
    bound = program(semiring).bind({"weight/1": weights(9)})
    rows: list[tuple[Any, ...]] = [(n,) for n in range(9)]
    first, second = bound.run({"seen/1": rows}), bound.run({"seen/1": rows})
    before = second["goal"]
    first.set("seen/1", [(2, 0.25)])
    first.add("seen/1", [(3,)])
    first.retract("seen/1", [(4,)])
    first.run()
    one = ONE[semiring]
    changed = [(*r, one) for r in rows if r not in [(2,), (4,)]] + [(2, 0.25), (3, one)]
    assert first["goal"] == pytest.approx(bound.run({"seen/1": changed})["goal"], rel=1e-12)
    assert second["goal"] == before == bound.run({"seen/1": rows})["goal"]


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_copies_are_added_up(semiring: str) -> None:
    bound = program(semiring).bind({"weight/1": weights(3)})
    twice = bound.run({"seen/1": [(n,) for n in (0, 1, 1, 2)]})
    double = 2.0 if semiring == "real" else float(np.log(2))
    given = bound.run({"seen/1": [(0, ONE[semiring]), (1, double), (2, ONE[semiring])]})
    assert twice["goal"] == pytest.approx(given["goal"], rel=1e-14)
    found, wanted = (chart.gradient("goal")["weight/1"].values for chart in (twice, given))
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
