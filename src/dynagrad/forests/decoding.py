"""Derivations chosen by what they are expected to share with the true one: minimum Bayes risk, and max-rule.

The best derivation need not be the one that has most in common with the others. Decoding looks for the derivation with
the largest expected gain: the sum, over its rule instances and its facts, of a gain times the chance that this very
instance, or fact, occurs in a derivation (Goodman 1996, "Parsing algorithms and metrics"); or for the one whose
instances have the largest product of chances (Petrov and Klein 2007, "Improved inference for unlexicalized parsing").
What the chances are is for `sums/occurrences.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arguments import numeric_function
from ..errors import Error, QueryError, RoomError, shown
from ..runtime.library import Stop
from .algebra import Doubles, Kind
from .derivation import Derivation, make_derivation
from .native import Held, Walk, unbounded
from .packed import Packed, RuleInstance
from .ranking.k_best import MOST_INSTANCES, product_of
from .sums.expectations import expected_counts
from .sums.occurrences import chances
from .sums.totals import summed
from .time_limit import look

Gain = Callable[[RuleInstance], float]
RULES = ("sum", "product")


def decode(forest: Packed, gain: Gain | None, by: str, stop: Stop | None = None) -> Derivation:
    """The derivation with the largest expected gain, or with the largest product of chances of its instances."""
    if not isinstance(by, str) or by not in RULES:
        raise Error(f"by is 'sum' or 'product', and {shown(by)} is neither")
    if gain is not None and by == "product":
        raise Error("a gain is added up, so it goes with by='sum'")
    gained = numeric_function("gain", (lambda _: 1.0) if gain is None else gain)
    counts = expected_counts(forest, stop)
    rule, used = forest.arrays.rule, np.flatnonzero(counts > 0)
    scores = np.full(len(counts), -np.inf)
    scores[used] = 0.0
    if by == "product":
        valued = used[rule[used] >= 0]  # the chances that are multiplied are those of rules
        gains = np.ones(len(valued))
    else:
        gains = np.zeros(len(used))
        for place, n in enumerate(used.tolist()):
            look(stop)
            gains[place] = gained(RuleInstance(forest, n))
        if not np.isfinite(gains).all():
            raise Error("a gain is a finite number")
        valued, gains = used[gains != 0], gains[gains != 0]
    chance = chances(forest, summed(forest, stop), counts, valued, stop)
    with np.errstate(divide="ignore"):
        scores[valued] = np.log(chance) if by == "product" else gains * chance
    return _best(forest, scores, stop)


def _best(forest: Packed, scores: Doubles, stop: Stop | None) -> Derivation:
    """The derivation with the largest sum of scores, one for each instance."""
    a = forest.arrays
    given = np.zeros(len(forest.meaning.given))
    facts = np.flatnonzero(a.rule < 0)
    given[-1 - a.rule[facts]] = scores[facts]
    numbers = np.where(a.rule < 0, a.rule, np.arange(len(a.rule))).astype(np.int32)
    walk = Walk(
        int(Kind.SUMS), 0, Held(a.begin, a.end, numbers, a.first, a.antecedent, scores, given), forest.meaning.rank
    )
    worst = walk.best(stop)
    if worst is not None:
        raise unbounded(forest.text(worst))
    if not walk.need(0, stop):
        raise QueryError(f"all derivations of {forest.text(0)} have weight zero")
    found = walk.derivation(0, MOST_INSTANCES, stop)
    if found is None:
        raise RoomError(f"this derivation has more than {MOST_INSTANCES:,} instances")
    return make_derivation(forest, found[0], product_of(forest, found[0]))
