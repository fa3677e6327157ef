"""Derivations of small random programs against all of them by brute force, in every semiring, cyclic ones too.

Costs twelve seconds where programs are compiled for the first time: those of a semiring are one compiled program, with
its class that collects derivations. `tests/random_derivations.py` has what is checked, and draws more where it is run
by hand.
"""

from __future__ import annotations

import pytest

from random_derivations import (
    MOMENTS,
    NAMES,
    REASONS,
    check_all_absences,
    check_all_moments,
    check_all_ranks,
    check_all_reasons,
    check_all_sums,
    generated,
    together,
)
from random_programs import CYCLIC_SEMIRINGS

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")  # of odd rules


@pytest.mark.parametrize("semiring", NAMES)
def test_sums_draws_and_expectations_are_those_of_brute_force(semiring: str) -> None:
    assert check_all_sums(together(semiring, False)) > 30


@pytest.mark.parametrize("cyclic", [False, True], ids=["acyclic", "cyclic"])
@pytest.mark.parametrize("semiring", NAMES)
def test_k_best_are_those_of_brute_force(semiring: str, cyclic: bool) -> None:
    if cyclic and semiring not in CYCLIC_SEMIRINGS:
        pytest.skip(f"no cycles in {semiring}")
    assert len(together(semiring, cyclic).programs) >= 5
    assert check_all_ranks(together(semiring, cyclic)) > 60


@pytest.mark.parametrize("semiring", REASONS)
def test_sets_of_facts_suffice_and_are_irreducible(semiring: str) -> None:
    assert check_all_reasons(together(semiring, True)) > 30


def test_what_is_missing_derives_the_item() -> None:
    programs = [*together("boolean", False).programs, *together("boolean", True).programs]
    programs += [p for number in (1, 2) for p in generated("boolean", False, number)]
    assert check_all_absences(programs) > 10


@pytest.mark.parametrize("semiring", MOMENTS)
def test_decoding_and_covariances_are_those_of_brute_force(semiring: str) -> None:
    assert check_all_moments(together(semiring, False)) > 5
