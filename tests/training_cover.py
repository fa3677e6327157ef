"""What models of `tests/random_models.py` have between them: every pair of a semiring, a kind of weights, an objective,
a prior and what was observed, and each of these with every method of training that takes it.

Two tables say what goes together: `POSSIBLE` of models, and `TAKES` of methods. `check_steps` holds two steps of a
method against all derivations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, pairwise, product

import numpy as np
from mpmath import mpf

from dynagrad.training.specification import ravelled
from random_models import Case
from random_training import close, counts

Facets = tuple[str, ...]
NAMES = ("semiring", "weights", "objective", "prior", "observed")
FACETS: tuple[Facets, ...] = (
    ("log", "real", "viterbi"),
    ("distributions", "features", "function", "values"),
    ("likelihood", "conditional", "conditional item", "conditional cost", "items", "risk", "entropy", "sum"),
    ("NoneType", "Gaussian", "Dirichlet", "L1"),
    ("facts", "derivation"),
)
"""What models have, in the order of `NAMES`."""
LOG_ALONE, OF_DERIVATIONS = ("risk", "entropy", "sum"), ("likelihood", "conditional", "conditional cost")

Rule = Callable[[str, str, str, str, str], bool]
POSSIBLE: dict[str, Rule] = {
    "weights that are no logs are drawn for `real`": lambda s, w, o, p, d: w != "values" or s == "real",
    "expectations are of programs in `log`": lambda s, w, o, p, d: o not in LOG_ALONE or s == "log",
    "a Dirichlet prior is of probabilities": lambda s, w, o, p, d: p != "Dirichlet" or w == "distributions",
    "some objectives know of no derivation": lambda s, w, o, p, d: d == "facts" or o in OF_DERIVATIONS,
}


def smooth(s: str, w: str, o: str, p: str, d: str) -> bool:
    """L1 has kinks."""
    return p != "L1"


def twice(s: str, w: str, o: str, p: str, d: str) -> bool:
    """Truncated Newton asks for second derivatives, of which a maximum has none."""
    return p != "L1" and s != "viterbi"


def every(s: str, w: str, o: str, p: str, d: str) -> bool:
    """All of them."""
    return True


def em(s: str, w: str, o: str, p: str, d: str) -> bool:
    """Expected counts give the best probabilities."""
    return s != "viterbi" and w == "distributions" and o == "likelihood" and p in ("NoneType", "Dirichlet")


TAKES: dict[str, Rule] = {
    **dict.fromkeys(("em", "viterbi-em", "variational", "online-em", "incremental-em", "annealing"), em),
    **dict.fromkeys(("cg", "bfgs", "tnc", "slsqp", "trust-constr"), smooth),
    **dict.fromkeys(("newton-cg", "trust-ncg", "trust-krylov"), twice),
    **dict.fromkeys(("l-bfgs", "sgd", "adagrad", "adam", "perceptron"), every),
}
"""Which models a method is for."""
SCALING: dict[str, Rule] = {
    "gis": lambda s, w, o, p, d: scaled(s, w, o, p, d) and (o == "likelihood" or s == "log"),
    "iis": lambda s, w, o, p, d: scaled(s, w, o, p, d) and o == "likelihood",
}
"""The same of iterative scaling, for which models are drawn with features from 0 on."""


def scaled(s: str, w: str, o: str, p: str, d: str) -> bool:
    """Likelihoods, conditional ones too, of log-linear weights."""
    return s != "viterbi" and w == "features" and o in OF_DERIVATIONS[:2] and p in ("NoneType", "Gaussian")


RISES = ("em", "viterbi-em", "gis", "iis", "cg", "bfgs", "l-bfgs", "newton-cg", "tnc", "trust-ncg", "trust-krylov")
"""Methods of which each step is at least as good as the one before."""
MINIBATCHES = ("sgd", "adagrad", "adam", "perceptron")
BEFORE = ("em", "viterbi-em", "gis", "iis")
"""Methods that tell the objective where a step begins; others tell it of where it ends, or another one."""
OTHERS = ("variational", "online-em", "incremental-em", "annealing")
"""Those whose records are of a bound, or of examples as they come: `check_em` holds them."""


def facets_of(case: Case) -> Facets:
    """What a model has."""
    semiring, weights, objective, prior = case.name.split(": ")[1].split(", ")
    observed = "derivation" if any(e.derivation is not None for e in case.data) else "facts"
    return semiring, weights, "sum" if " and " in objective else objective, prior.removeprefix("prior "), observed


def pairs(found: Facets) -> set[tuple[str, str]]:
    """Any two of them, each with its name."""
    named = [f"{name} {x}" for name, x in zip(NAMES, found, strict=True)]
    return set(combinations(named, 2))


def wanted() -> set[tuple[str, str]]:
    """All pairs that a model can have."""
    whole = [f for f in product(*FACETS) if all(rule(*f) for rule in POSSIBLE.values())]
    return set().union(*map(pairs, whole))


def wanted_of(rule: Rule) -> set[str]:
    """All that the models of a method can have."""
    whole = [f for f in product(*FACETS) if all(r(*f) for r in POSSIBLE.values()) and rule(*f)]
    return {f"{name} {x}" for f in whole for name, x in zip(NAMES, f, strict=True)}


def takes(method: str, facets: Facets, drawn_for_scaling: bool) -> bool:
    """Whether a method is for a model; iterative scaling is for those that were drawn for it, and no other is."""
    rule = (SCALING if drawn_for_scaling else TAKES).get(method)
    return rule is not None and rule(*facets)


def chosen(method: Rule, given: Iterable[Facets]) -> tuple[list[int], set[str]]:
    """Which models a method is tried on: those that bring it something new; and what it has not met then."""
    left, found = wanted_of(method), []
    for n, facets in enumerate(given):
        new = {f"{name} {x}" for name, x in zip(NAMES, facets, strict=True)} & left
        if method(*facets) and new:
            found.append(n)
            left -= new
    return found, left


def check_steps(case: Case, method: str) -> bool:
    """After two steps, and after one, the objective is what all derivations say; some methods make it no worse."""
    options = {"size": len(case.data)} if method in MINIBATCHES else {}
    if method == "perceptron":
        options["average"] = False
    if method == "online-em":
        options["size"] = len(case.data)

    def value(best: bool = False) -> tuple[float, float]:
        at = [mpf(float(x)) for x in ravelled(case.model.parameters)]
        prior = case.prior(case.split(at))
        if best:
            return float(counts(case, case.weights.logs(case.split(at)), best=True)[0] + prior), float(prior)
        return float(case.objective(at)[0]), float(prior)

    hard = method == "viterbi-em"
    (case.model._theta,) = case.model._spec.starts(0, 1)
    reached = [value(hard)]
    for steps in (1, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = case.model.fit(case.given, method=method, iterations=steps, missing="skip", tolerance=0.0, **options)
            score = case.model.score(case.given, missing="skip")
        said = f"{method} on {case.name}"
        full, prior = value()
        close([score + prior], [full], f"the score after {said}", case)
        reached.append(value(hard))
    records = fit.history
    if method in BEFORE:
        close([r.objective for r in records], [x for x, _ in reached[: len(records)]], said, case)
    elif method in MINIBATCHES:
        close([r.data for r in records], [x - p for x, p in reached[: len(records)]], said, case)
    elif method not in OTHERS:
        close([records[-1].objective], [reached[-1][0]], said, case)
    if method in RISES:
        rising: Sequence[float] = [x for x, _ in reached]
        assert all(b >= a - 1e-9 * (1 + abs(a)) for a, b in pairwise(rising)), f"{said}: {rising}"
    return bool(np.isfinite(reached[-1][0]))
