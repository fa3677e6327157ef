"""Random small models agree with all of their derivations, listed in plain Python. Costs 25 seconds, of which the cover
of pairs takes 15.

`tests/random_models.py` has what is drawn, `tests/random_training.py` what it is held against; that draws more where it
is run by hand. `tests/training_cover.py` says which pairs of what a model has are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

import mpmath
import pytest

from dynagrad import training
from dynagrad.training.methods import METHODS
from dynagrad.training.parameters.parametrisation import Parametrisation
from dynagrad.training.priors import Prior
from random_models import DIGITS, NETWORKS, Case, draw_case
from random_training import check_em, check_gradient
from training_cover import SCALING, TAKES, check_steps, chosen, facets_of, pairs, wanted

MODELS = (0, 2, 4, 5, 11, 13, 25, 30, 120, 130, 132, 298, 419, 5808)
"""Seeds that have between them every pair of a semiring and weights, of weights and a prior, and of a semiring and an
objective, but for the likelihood in `real` and conditional costs in `log`; in `real`, a function of items has weights
by value in one and by logs in another. 120 and the last three have a fact or an example of weight zero, which went
wrong before."""
SEVERAL = (0, 1, 2, 4, 7, 8, 11, 13, 22, 61)
"""They have every pair of a semiring and a program, and interpolated weights with every prior. Functions of these
weights take seconds to compile in `log`, so there they have one objective, a conditional item."""
LEARNED = (*range(9), 212)
MORE = (24, 818, 42, 149, 9, 212, 63, 249, 1, 34, 102, 147, 185, 6, 31, 46, 233, 56, 1240)
KINKED = (7, 12, 11, 4, 0, 1, 5, 6)
"""With `MODELS` they have every pair of a semiring, weights, an objective, a prior and what was observed. `KINKED` have
an L1 prior."""
OF_EM, SCALED = (1, 7, 9), (0, 6, 21, 34, 47, 49, 61)
"""Models for EM and its kin, and for iterative scaling."""

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")


@pytest.fixture(autouse=True)
def many_digits() -> Iterator[None]:
    with mpmath.workdps(DIGITS):
        yield


def test_objectives_and_their_derivatives_are_those_of_all_derivations() -> None:
    assert sum(check_gradient(draw_case(seed)) for seed in MODELS) >= 0.9 * len(MODELS)


def test_models_of_several_parametrisations_and_of_interpolated_weights() -> None:
    assert sum(check_gradient(draw_case(seed, several=True)) for seed in SEVERAL) >= 0.9 * len(SEVERAL)
    assert sum(check_em(draw_case(seed, em=True, several=True)) for seed in (1, 2, 3, 5)) == 4


def test_steps_of_em_and_its_kin_are_those_of_all_derivations() -> None:
    assert sum(check_em(draw_case(seed, em=True)) for seed in LEARNED) >= 0.9 * len(LEARNED)


def cover() -> list[Case]:
    """Models that have every pair between them."""
    return [*map(draw_case, (*MODELS, *MORE)), *(draw_case(seed, l1=True) for seed in KINKED)]


def test_every_pair_of_what_a_model_has_is_held_against_all_derivations() -> None:
    cases = cover()
    assert wanted() <= set().union(*map(pairs, map(facets_of, cases)))
    assert all(check_gradient(case) for case in cases[len(MODELS) :])


def test_every_method_steps_as_it_says_with_all_that_it_takes() -> None:
    assert set(TAKES) | set(SCALING) == set(METHODS)
    drawn = cover()
    of_em = [draw_case(seed, em=True) for seed in OF_EM]
    scaled = [draw_case(seed, scaled=True) for seed in SCALED]
    for method, rule in {**TAKES, **SCALING}.items():
        cases = scaled if method in SCALING else [*of_em, *drawn]
        some, left = chosen(rule, map(facets_of, cases))
        assert not left, f"no model tries {method} with {sorted(left)}"
        for n in some:
            assert check_steps(cases[n], method)


def test_every_objective_parametrisation_and_prior_is_in_a_model() -> None:
    cases = [*cover(), *(draw_case(seed, several=True) for seed in SEVERAL)]
    specs = [case.model._spec for case in cases]
    found = {type(x) for s in specs for x in (s.objective, *s.parametrisations.values(), *s.priors.values())}
    public = [x for x in map(training.__dict__.get, training.__all__) if isinstance(x, type)]
    wanted = {x for x in public if hasattr(x, "totals") or issubclass(x, Prior | Parametrisation)}
    assert wanted - found <= ({training.Torch} if not NETWORKS else set())
