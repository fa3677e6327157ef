"""Priors: what is believed of parameters before data are seen, as a log density that is added to the objective.

`Dirichlet` is of the probabilities of a distribution, and for EM a pseudo-count of each; the others are of free
parameters. Constants of densities are left out.

What is made large of the data is in `objectives/`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arguments import real_number
from ..calls import strict_options, strict_options_class
from ..errors import Error, shown
from .parameters.distribution import Distribution
from .parameters.groups import values_of
from .parameters.parametrisation import Parametrisation
from .parameters.rows import Doubles


class Prior(ABC):
    """A log density of the parameters of a parametrisation."""

    smooth = True

    @abstractmethod
    def log_density(self, of: Parametrisation, theta: Doubles) -> float:
        """Up to a constant."""

    @abstractmethod
    def gradient(self, of: Parametrisation, theta: Doubles) -> Doubles:
        """By the parameters."""

    def curvature(self, of: Parametrisation, theta: Doubles, tangent: Doubles) -> Doubles:
        """How the gradient changes along a direction."""
        raise Error(f"{type(self).__name__} has no second derivatives; methods that ask for gradients alone take it")


@strict_options_class
@dataclass(frozen=True)
class Dirichlet(Prior):
    """A Dirichlet prior on each group: the density is the product of p ** (alpha - 1).

    `alpha` is a number, a function of a row's arguments, or a dict from names of parameters to numbers. Above one it
    adds pseudo-counts. Below one the density has no finite maximum: only variational Bayes (`method="variational"`)
    takes that.

    >>> import dynagrad as dg
    >>> text = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
    >>> model = dg.Model(text, {"toss/1": [("h",), ("t",)]}, prior=Dirichlet(2.0))  # one more of each
    >>> fit = model.fit([{"seen/1": [("h",)]}, {"seen/1": [("h",)]}])
    >>> round(model.weights["toss/1"]["h",], 12)
    0.75
    """

    alpha: float | Callable[..., float] | Mapping[str, float] = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.alpha, Mapping) or callable(self.alpha):
            return
        _scale("alpha", self.alpha)

    def alphas(self, of: Parametrisation) -> Doubles:
        """Of each parameter."""
        if not isinstance(of, Distribution):
            raise Error("a Dirichlet prior is of probabilities: it needs a training.Distribution")
        if isinstance(self.alpha, Mapping):
            names = of.names()
            for name in names:
                if name not in self.alpha:
                    raise Error(f"the Dirichlet prior has no alpha for {name}")
            return np.array([_scale(f"alpha of {name}", self.alpha[name]) for name in names])
        if not callable(self.alpha):
            return np.full(of.size, float(self.alpha))
        assert of.groups is not None
        rows = of.rows
        found = rows.results("alpha", self.alpha)
        return values_of(of.groups, rows, [_scale(f"alpha of {rows.text(n)}", x) for n, x in enumerate(found)])

    def pseudo_counts(self, of: Parametrisation) -> Doubles:
        """alpha - 1 for each parameter. Raises Error where one is negative."""
        found = self.alphas(of) - 1.0
        if (found < 0).any():
            n = int(np.argmin(found))
            raise Error(
                f"the Dirichlet prior of {of.names()[n]} has alpha {found[n] + 1:g}, below one, so its density has no "
                'largest value; use method="variational"'
            )
        return found

    def log_density(self, of: Parametrisation, theta: Doubles) -> float:
        counts = self.pseudo_counts(of)
        assert of.groups is not None
        logs = of.groups.normalised(theta)
        return float(np.sum(np.where(counts > 0, counts * np.where(counts > 0, logs, 0.0), 0.0)))

    def gradient(self, of: Parametrisation, theta: Doubles) -> Doubles:
        assert of.groups is not None
        return of.groups.pulled(of.groups.normalised(theta), self.pseudo_counts(of))

    def curvature(self, of: Parametrisation, theta: Doubles, tangent: Doubles) -> Doubles:
        assert of.groups is not None
        return of.groups.bent(of.groups.normalised(theta), self.pseudo_counts(of), tangent)


LEAST, MOST = 1e-100, 1e100
"""How small and how large a parameter of a prior may be: with others, densities are zero, infinite, or no numbers."""


def _scale(what: str, given: Any) -> float:
    """An argument that has to be a number above zero. Raises Error, with its name, where it is none."""
    number = real_number(what, given)
    if not 0 < number < np.inf:
        raise Error(f"{what} must be a number above 0, not {shown(given)}")
    if not LEAST <= number <= MOST:
        raise Error(f"{what} is {number}, and densities can be worked out from {LEAST:g} to {MOST:g} only")
    return number


@strict_options
def add_lambda(amount: float) -> Dirichlet:
    """Add-lambda smoothing: so much is added to each count, as by a Dirichlet prior of alpha = 1 + lambda.

    >>> add_lambda(0.5)
    Dirichlet(alpha=1.5)
    """
    if not 0 <= real_number("lambda", amount) < np.inf:
        raise Error(f"lambda must be a number from 0 on, not {amount}")
    return Dirichlet(1.0 + amount)


@strict_options_class
@dataclass(frozen=True)
class Gaussian(Prior):
    """A normal density around given values: minus (theta - mean)^2 / (2 variance), summed.

    `mean` is a number, or a dict from names of parameters to numbers (others have 0); what is given for a name that
    several features have is the mean of each that has none for itself.

    >>> from dynagrad import training
    >>> weights = training.LogLinear({"weight/1": [("h",), ("t",)]})
    >>> Gaussian(2.0, {"weight(h)": 3.0}).log_density(weights, np.zeros(2))
    -2.25
    """

    variance: float = 1.0
    mean: float | Mapping[str, float] = 0.0

    def __post_init__(self) -> None:
        _scale("variance", self.variance)
        for mean in self.mean.values() if isinstance(self.mean, Mapping) else (self.mean,):
            if not abs(real_number("mean", mean)) <= MOST:
                raise Error(f"mean must be a finite number up to {MOST:g}, or a dict of these, not {mean}")

    def means(self, of: Parametrisation) -> Doubles | float:
        """Of each parameter, or the one of all."""
        if isinstance(self.mean, Mapping):
            mean, common = self.mean, of.common_names
            return np.array([float(mean.get(name, mean.get(common.get(name, name), 0.0))) for name in of.names()])
        return float(self.mean)

    def log_density(self, of: Parametrisation, theta: Doubles) -> float:
        return float(-np.add.reduce(np.square(theta - self.means(of))) / (2 * self.variance))

    def gradient(self, of: Parametrisation, theta: Doubles) -> Doubles:
        return (self.means(of) - theta) / self.variance

    def curvature(self, of: Parametrisation, theta: Doubles, tangent: Doubles) -> Doubles:
        return -tangent / self.variance


@strict_options
def L2(strength: float) -> Gaussian:
    """Minus strength times the sum of squares: a Gaussian around zero of variance 1 / (2 strength).

    >>> L2(0.25)
    Gaussian(variance=2.0, mean=0.0)
    """
    return Gaussian(1.0 / (2.0 * _scale("the strength of L2", strength)))


@strict_options_class
@dataclass(frozen=True)
class L1(Prior):
    """Minus strength times the sum of absolute values, which makes many parameters zero.

    >>> from dynagrad import training
    >>> L1(0.5).log_density(training.LogLinear({"weight/1": [("h",), ("t",)]}), np.array([3.0, -1.0]))
    -2.0
    """

    strength: float
    smooth: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if real_number("the strength of L1", self.strength) != 0:
            _scale("the strength of L1", self.strength)

    def log_density(self, of: Parametrisation, theta: Doubles) -> float:
        return float(-self.strength * np.abs(theta).sum())

    def gradient(self, of: Parametrisation, theta: Doubles) -> Doubles:
        return -self.strength * np.sign(theta)


def unknown_names(prior: Prior, parametrisations: Collection[Parametrisation]) -> list[str]:
    """The names that a prior has a number for, and that are no parameters of those that it is a prior of."""
    given = prior.alpha if isinstance(prior, Dirichlet) else prior.mean if isinstance(prior, Gaussian) else None
    if not isinstance(given, Mapping):
        return []
    known = {name for p in parametrisations for name in (*p.names(), *p.common_names.values())}
    return sorted((name for name in given if name not in known), key=str)


def prior_of(given: Any, name: str) -> Prior | None:
    """The prior of one parametrisation, from one for all or a dict by name."""
    found = given.get(name) if isinstance(given, Mapping) else given
    if found is not None and not isinstance(found, Prior):
        raise Error(f"the prior of {name} must be a training.Dirichlet, Gaussian, L1 or L2, not {shown(found)}")
    return found
