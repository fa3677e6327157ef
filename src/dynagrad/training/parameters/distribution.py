"""Probabilities that sum to one in groups: free log weights, normalised as they are used (softmax).

Which rows sum to one together is for `groups.py`; priors on them are in `training/priors.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from ...arguments import truth
from ...calls import strict_options
from ...errors import Error, shown
from .groups import (
    By,
    Declared,
    Groups,
    all_declared,
    groups_of,
    in_declared,
    names_of_groups,
    numbered,
    part_of,
    values_of,
)
from .parametrisation import Parametrisation
from .rows import Doubles, Flags, Rows

INITIAL = ("given", "uniform", "random")
ROUNDED = 0.01
"""Sums of probabilities that were written with few digits differ by so much from one."""


class Distribution(Parametrisation):
    """Probabilities of rows, which sum to one over the rows that are `given` the same.

    `given` is a function of a row's arguments, or the places of some; without, groups are those that the program of
    the model declares (`:- distribution`), and all rows are one where it declares none. `initial` is "given" (the
    values of the rows, normalised, or uniform where they have none), "uniform", or "random" (each group drawn evenly
    from all distributions over it, a Dirichlet of ones, with the seed of `fit`). `tied` gives the same for rows that
    share a parameter; ties cover whole groups. Rows for which `frozen` is true keep their initial probability: whole
    groups. `groups` names the group of each row, one after another, in place of `given`.

    Its parameters are log weights. EM sets them to logs of probabilities, gradient methods move them freely, which is
    the softmax parametrisation.

    >>> from dynagrad import training
    >>> coin = training.Distribution({"side/2": [("c", "heads"), ("c", "tails")]}, given=0)
    >>> coin.groups.names, np.exp(coin.weights(coin.start(np.random.default_rng(0))))
    (('c',), array([0.5, 0.5]))
    """

    frozen: Flags

    @strict_options
    def __init__(
        self,
        rows: Mapping[str, Any],
        given: By | None = None,
        *,
        initial: str = "given",
        tied: By | None = None,
        frozen: Callable[..., bool] | None = None,
        groups: Sequence[Any] | None = None,
    ) -> None:
        if not isinstance(initial, str) or initial not in INITIAL:
            raise Error(f"initial is one of {', '.join(INITIAL)}, not {shown(initial)}")
        self.rows, self.initial = Rows(rows), initial
        self._parameter = None if tied is None else numbered(part_of(self.rows, tied, "tied"))[0]
        self._stays = self._answers(frozen)
        parts = part_of(self.rows, given, "given") if groups is None else self._named(groups, given)
        self._open, self._places = given is None and groups is None, given is not None and not callable(given)
        self._objection: Error | None = None
        try:
            self._settle(parts)
        except Error as error:
            if not self._open:
                raise
            self._objection = error  # unless the program of the model declares other groups

    def _settle(self, parts: Sequence[Hashable]) -> None:
        """Sets all that depends on what rows are given."""
        self.groups = groups_of(parts, self._parameter)
        self.size = self.groups.size
        self._values = None if self.rows.values is None else values_of(self.groups, self.rows, self.rows.values)
        if self._values is not None and not (np.isfinite(self._values) & (self._values >= 0)).all():
            n = int(np.flatnonzero(~(np.isfinite(self._values) & (self._values >= 0)))[0])
            raise Error(f"{self.names()[n]} has the initial weight {self._values[n]}, which is no probability")
        self.frozen = self._frozen(self.groups)

    def in_groups(self, declared: Sequence[Declared | None] | None) -> Parametrisation:
        if declared is None:
            if self._objection is not None:
                raise self._objection
            return self
        found = copy(self)
        found._open, found._objection = False, None
        if self._open:
            found._settle(all_declared(self.rows, declared))
        else:
            assert self.groups is not None
            found.groups = in_declared(self.rows, self.groups, declared, self._places)
        return found

    def _named(self, groups: Any, given: Any) -> list[Hashable]:
        """The groups that rows were said to be in."""
        if given is not None:
            raise Error("a distribution has its groups from given or from groups, not from both")
        if not isinstance(groups, Sequence) or isinstance(groups, str | bytes) or len(groups) != len(self.rows):
            raise Error(f"groups is a list with the group of each of the {len(self.rows):,} rows, not {shown(groups)}")
        return names_of_groups(self.rows, groups, "groups")

    def _answers(self, frozen: Callable[..., bool] | None) -> list[float] | None:
        """Of each row, whether it stays as it is."""
        if frozen is None:
            return None
        if not callable(frozen):
            raise Error(f"frozen is a function that says of a row's arguments whether they are, not {shown(frozen)}")
        return [float(truth("frozen", x)) for x in self.rows.results("frozen", frozen)]

    def _frozen(self, groups: Groups) -> Flags:
        """Which parameters stay as they are."""
        if self._stays is None:
            return np.zeros(self.size, bool)
        found = values_of(groups, self.rows, self._stays) > 0
        some = groups.totals(found.astype(float))
        of = groups.totals(np.ones(self.size))
        for g in np.flatnonzero((some > 0) & (some < of)).tolist():
            raise Error(f"frozen: some probabilities given {groups.names[g]} are frozen and some are not")
        return found

    def doubts(self) -> list[str]:
        if self.initial != "given" or self._values is None or self.groups is None:
            return []
        most = np.zeros(len(self.groups.names))
        np.maximum.at(most, self.groups.group, self._values)
        totals = self.groups.totals(self._values)
        off = np.flatnonzero((most < 1) & (totals > 0) & (np.abs(totals - 1) > ROUNDED))  # others are counts
        if not len(off):
            return []
        more = "" if len(off) == 1 else f", nor do those of {len(off) - 1:,} more"
        keys = ", ".join(self.rows.keys)
        return [
            f"the first probabilities of {keys} given {self.groups.names[off[0]]} sum to {totals[off[0]]:.6g}, and not "
            f"to one{more}: they are normalised"
        ]

    def start(self, random: np.random.Generator) -> Doubles:
        assert self.groups is not None
        if self.initial == "random":
            weights = random.standard_exponential(self.size)  # which are a draw from a Dirichlet, once normalised
        elif self.initial == "given" and self._values is not None:
            weights = self._values
        else:
            weights = np.ones(self.size)
        empty = np.flatnonzero(self.groups.totals(weights) == 0)
        if len(empty):
            raise Error(f"all initial probabilities given {self.groups.names[int(empty[0])]} are zero")
        with np.errstate(divide="ignore"):
            return self.groups.normalised(np.log(weights))

    def draw(self, random: np.random.Generator) -> Doubles:
        """Each group evenly from all distributions over it, but for what is frozen or impossible at the start."""
        assert self.groups is not None
        begin = self.start(np.random.default_rng(0)) if self.initial == "random" else self.start(random)
        drawn = np.where(np.isneginf(begin), 0.0, random.standard_exponential(self.size))
        with np.errstate(divide="ignore"):
            return np.where(self.frozen, begin, self.groups.normalised(np.log(drawn)))

    def weights(self, theta: Doubles) -> Doubles:
        assert self.groups is not None
        return self.groups.normalised(theta)[self.groups.parameter]

    def pull(self, theta: Doubles, cotangent: Doubles) -> Doubles:
        assert self.groups is not None
        found = self.groups.pulled(self.groups.normalised(theta), self.groups.of_parameters(cotangent))
        return np.where(self.frozen, 0.0, found)

    def push(self, theta: Doubles, tangent: Doubles) -> Doubles:
        assert self.groups is not None
        moved = np.where(self.frozen, 0.0, tangent)
        return self.groups.pushed(self.groups.normalised(theta), moved)[self.groups.parameter]

    def bend(self, theta: Doubles, cotangent: Doubles, tangent: Doubles) -> Doubles:
        assert self.groups is not None
        moved, counts = np.where(self.frozen, 0.0, tangent), self.groups.of_parameters(cotangent)
        return np.where(self.frozen, 0.0, self.groups.bent(self.groups.normalised(theta), counts, moved))

    def probabilities(self, theta: Doubles) -> Doubles:
        """The probability of each parameter."""
        assert self.groups is not None
        return np.exp(self.groups.normalised(theta))

    def names(self) -> list[str]:
        assert self.groups is not None
        first = np.zeros(self.size, np.int64)
        first[self.groups.parameter[::-1]] = np.arange(len(self.rows))[::-1]
        return [self.rows.text(n) for n in first.tolist()]
