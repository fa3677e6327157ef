"""Random small models, held against all of their derivations, which are listed in Python and weighed in 40 digits.

    PYTHONPATH=src:tests python tests/random_training.py SECONDS [FIRST]

Nothing here knows how the package adds up derivations, differentiates or takes steps. One program serves all models:
examples are random hypergraphs, whose edges are facts, so a derivation is a tree of edges. What varies is how weights
depend on parameters (groups, ties, frozen ones, features, functions), the objective, the prior, what was observed, how
often an example counts, and which facts are impossible or missing. `tests/training/test_random_models.py` runs some.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

import dynagrad as dg
from dynagrad import numpy as dnp
from dynagrad import training
from dynagrad.training.examples import DataPasses
from dynagrad.training.problem import Problem
from dynagrad.training.specification import ravelled, unravelled
from dynagrad.training.workers import in_threads

PROGRAM = """
:- semiring {semiring}.
item(X) += tip(X,K) * w(K) * cost(X,K).
item(X) += edge(X,K,L,Y,Z) * w(K) * v(L) * item(Y) * item(Z) * cost(X,K).
goal += item(0).
"""
KS, LS = range(5), range(3)
ROWS = [("w", k) for k in KS] + [("v", n) for n in LS]
DIGITS = 40
STEP = mpf(10) ** -10
MOST = 60
"""Examples with more derivations than this are drawn again."""

Numbers = Sequence[Any]
Logs = Mapping[tuple[str, int], Any]


# -- examples, and their derivations -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """A derivation: the log weight of its tips and edges, its costs, and the parameters that it uses."""

    fixed: float
    costs: tuple[float, ...]
    uses: tuple[tuple[str, int], ...]

    def log(self, logs: Logs, costs: bool = True) -> Any:
        """The log of its weight."""
        return self.fixed + sum(logs[use] for use in self.uses) + (sum(map(mpf, self.costs)) if costs else 0)


Facts = dict[str, dict[tuple[int, ...], float]]
"""Log weights by predicate and arguments."""


def trees(facts: Facts, item: int) -> list[Tree]:
    """All derivations of an item, shortest edges first; a list of more than MOST is cut, and of no use."""
    found = []
    for (x, k), value in facts["tip/2"].items():
        if x == item and (x, k) in facts["cost/2"]:
            found.append(Tree(value, (facts["cost/2"][x, k],), (("w", k),)))
    for (x, k, n, y, z), value in facts["edge/5"].items():
        if x == item and (x, k) in facts["cost/2"]:
            here = (("w", k), ("v", n))
            for a, b in product(trees(facts, y), trees(facts, z)):
                fixed = value + a.fixed + b.fixed
                found.append(Tree(fixed, (facts["cost/2"][x, k], *a.costs, *b.costs), here + a.uses + b.uses))
                if len(found) > MOST:
                    return found
    return found


@dataclass
class Drawn:
    """An example: its facts, those that were observed, how often it counts, and a derivation that was observed."""

    facts: Facts
    observed: Facts
    weight: float
    derivation: dg.Derivation | None = None

    @property
    def clamped(self) -> Facts:
        """The facts with what was observed."""
        return {**self.facts, **self.observed}

    def given(self, real: bool) -> training.Example:
        """As the package takes it."""
        rows = {
            what: {
                key: [(*a, float(np.exp(x)) if real else x) for a, x in table.items()] for key, table in facts.items()
            }
            for what, facts in (("facts", self.facts), ("observed", self.observed))
        }
        return training.Example(rows["facts"], rows["observed"], self.weight, derivation=self.derivation)

    def derived(self) -> Tree:
        """The derivation that was observed, read off the facts that it names."""
        assert self.derivation is not None
        fixed, costs, uses = 0.0, [], []
        for step in self.derivation.steps:
            key, arguments = step.name[0], tuple(step.name[1])
            if key in ("tip/2", "edge/5"):
                fixed += self.facts[key][arguments]
            elif key == "cost/2":
                costs.append(self.facts[key][arguments])
            elif key in ("w/1", "v/1"):
                uses.append((key[0], arguments[0]))
        return Tree(fixed, tuple(costs), tuple(uses))


def draw_example(random: np.random.Generator, nodes: int = 4) -> Drawn:
    """A random acyclic hypergraph."""
    while True:
        facts: Facts = {"tip/2": {}, "edge/5": {}, "cost/2": {}}
        for x in range(nodes):
            for _ in range(random.integers(1, 3)):
                facts["tip/2"][x, int(random.choice(KS))] = random.normal()
            for _ in range(random.integers(0, 3) if x < nodes - 1 else 0):
                y, z = (int(n) for n in random.integers(x + 1, nodes, 2))
                facts["edge/5"][x, int(random.choice(KS)), int(random.choice(LS)), y, z] = random.normal()
            for k in KS:
                if random.random() > 0.03:
                    facts["cost/2"][x, k] = random.normal()
        if random.random() < 0.1:  # what is impossible is derived, with a weight of zero
            facts["tip/2"][next(iter(facts["tip/2"]))] = -np.inf
        if 1 < len(trees(facts, 0)) <= MOST and trees(facts, 1):
            break
    kept = {key: {a: x for a, x in facts[key].items() if random.random() < 0.75} for key in ("tip/2", "edge/5")}
    weight = 1.0 if random.random() < 0.5 else float(random.uniform(0.1, 3.0))
    return Drawn(facts, kept, weight)


# -- how weights depend on parameters ----------------------------------------------------------------------------------


@dataclass
class Weights:
    """A parametrisation of the package, and what it means: the log weight of each row as a function of parameters."""

    made: dict[str, Any]
    sizes: dict[str, int]
    logs: Callable[[Mapping[str, Numbers]], Logs]
    frozen: dict[str, list[bool]]
    groups: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    """Of distributions: the parameter of each row, and the group of each parameter."""
    rows: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    by_value: bool = False


def softmax(scores: Numbers, group: Sequence[int]) -> list[Any]:
    """Scores less the log of the sum of their exponentials over each group."""
    totals = {
        g: mpmath.log(sum(mpmath.exp(s) for s, h in zip(scores, group, strict=False) if h == g)) for g in set(group)
    }
    return [s - totals[g] for s, g in zip(scores, group, strict=False)]


def draw_distributions(random: np.random.Generator) -> Weights:
    """Rows of `w` and of `v` in groups; at times two groups of `w` are tied, and a group is frozen."""
    tied = random.random() < 0.4
    group_w = [0, 0, 1, 1, 2] if tied else random.integers(0, 3, len(KS)).tolist()
    tie = [0, 1, 0, 1, 2] if tied else list(KS)
    parameter = [sorted(set(tie)).index(t) for t in tie]
    group = {p: (0 if tied and group_w[k] < 2 else group_w[k]) for k, p in zip(KS, parameter, strict=False)}
    stays = random.random() < 0.4
    start = random.uniform(0.2, 2.0, len(group))
    of_w = training.Distribution(
        {"w/1": [(k, start[parameter[k]]) for k in KS]},
        lambda k: group_w[k],
        tied=(lambda k: tie[k]) if tied else None,
        frozen=(lambda k: group[parameter[k]] == group[parameter[0]]) if stays else None,
    )
    of_v = training.Distribution({"v/1": [(n, float(random.uniform(0.2, 2.0))) for n in LS]})
    groups = [group[p] for p in range(len(group))]

    def logs(theta: Mapping[str, Numbers]) -> Logs:
        w, v = softmax(theta["w"], groups), softmax(theta["v"], [0] * len(LS))
        return {**{("w", k): w[parameter[k]] for k in KS}, **{("v", n): v[n] for n in LS}}

    frozen = {"w": [stays and g == groups[parameter[0]] for g in groups], "v": [False] * len(LS)}
    return Weights(
        {"w": of_w, "v": of_v},
        {"w": len(groups), "v": len(LS)},
        logs,
        frozen,
        {"w": (parameter, groups), "v": (list(LS), [0] * len(LS))},
        {"w": [("w", k) for k in KS], "v": [("v", n) for n in LS]},
    )


def draw_log_linear(random: np.random.Generator) -> Weights:
    """Features with values, shared by rows of both predicates; normalised in groups, or not."""
    features = {
        row: {f"f{f}": float(random.normal()) for f in random.permutation(6)[: random.integers(1, 4)]} for row in ROWS
    }
    names = list(dict.fromkeys(f for row in ROWS for f in features[row]))
    grouped = random.random() < 0.4
    group = [n % 2 for _, n in ROWS]  # over both predicates at once
    frozen = [random.random() < 0.15 for _ in names]
    tables = {
        f"{p}/1": [(n, f, x) for (q, n), found in features.items() if q == p for f, x in found.items()] for p in "wv"
    }
    made = training.LogLinear(
        {"w/1": [(k,) for k in KS], "v/1": [(n,) for n in LS]},
        tables,
        given=(lambda n: n % 2) if grouped else None,
        frozen=lambda f: frozen[names.index(f)],
    )
    order = made.names()

    def logs(theta: Mapping[str, Numbers]) -> Logs:
        at = dict(zip(order, theta["all"], strict=False))
        scores = [sum(x * at[f] for f, x in features[row].items()) for row in ROWS]
        return dict(zip(ROWS, softmax(scores, group) if grouped else scores, strict=False))

    return Weights({"all": made}, {"all": len(order)}, logs, {"all": [frozen[names.index(f)] for f in order]})


def draw_function(random: np.random.Generator, by_value: bool = False) -> Weights:
    """A function of three parameters, written for the package, and again for 40 digits."""
    c, d = random.normal(size=(2, len(ROWS)))
    if by_value:
        made = training.Differentiable(
            {"w/1": [(k,) for k in KS], "v/1": [(n,) for n in LS]},
            lambda p: 0.3 + (p["a"][0] * c + p["a"][1] * d) ** 2 + dnp.exp(p["b"] * c),
            {"a": np.array([0.5, -0.25]), "b": 1.0},
            logs=False,
        )
    else:
        made = training.Differentiable(
            {"w/1": [(k,) for k in KS], "v/1": [(n,) for n in LS]},
            lambda p: dnp.tanh(p["a"][0] * c + p["a"][1]) + p["b"] * d,
            {"a": np.array([0.5, -0.25]), "b": 1.0},
        )

    def logs(theta: Mapping[str, Numbers]) -> Logs:
        one, two, three = theta["all"]
        if by_value:
            values = [
                mpmath.log(mpf(0.3) + (one * mpf(x) + two * mpf(y)) ** 2 + mpmath.exp(three * mpf(x)))
                for x, y in zip(c, d, strict=False)
            ]
        else:
            values = [mpmath.tanh(one * mpf(x) + two) + three * mpf(y) for x, y in zip(c, d, strict=False)]
        return dict(zip(ROWS, values, strict=False))

    return Weights({"all": made}, {"all": 3}, logs, {"all": [False] * 3}, by_value=by_value)


# -- objectives --------------------------------------------------------------------------------------------------------


def log_sum(terms: Sequence[Any]) -> Any:
    """The log of the sum of exponentials; None where that is zero."""
    total = sum((mpmath.exp(t) for t in terms), mpf(0))
    return mpmath.log(total) if total > 0 else None


def log_max(terms: Sequence[Any]) -> Any:
    """The largest; None where there is none."""
    best = max(terms, default=-mpmath.inf)
    return None if best == -mpmath.inf else best


Value = Callable[[Drawn, Logs], Any]
"""The objective of an example, None where it does not count."""


def total(semiring: str) -> Callable[[Sequence[Any]], Any]:
    """How derivations are added up."""
    return log_max if semiring == "viterbi" else log_sum


def likelihood(semiring: str) -> tuple[Any, Value]:
    """Of what is left with what was observed, or of a derivation."""

    def value(e: Drawn, logs: Logs) -> Any:
        if e.derivation is not None:
            return total(semiring)([e.derived().log(logs)])
        return total(semiring)([t.log(logs) for t in trees(e.clamped, 0)])

    return training.Likelihood(), value


def conditional(semiring: str, item: bool, cost: bool) -> tuple[Any, Value]:
    """What was observed less all: another item, or facts that are left; with costs that count in the second alone."""

    def value(e: Drawn, logs: Logs) -> Any:
        if e.derivation is not None:
            top = total(semiring)([e.derived().log(logs, not cost)])
        else:
            top = total(semiring)([t.log(logs, not cost) for t in trees(e.clamped, 1 if item else 0)])
        bottom = total(semiring)([t.log(logs) for t in trees(e.facts, 0)])
        return None if top is None or bottom is None else top - bottom

    return training.Conditional("item(1)" if item else None, "cost/2" if cost else None), value


def chances(found: Sequence[Tree], logs: Logs, costs: bool) -> list[Any] | None:
    """The probability of each derivation."""
    terms = [t.log(logs, costs) for t in found]
    z = log_sum(terms)
    return None if z is None else [mpmath.exp(t - z) for t in terms]


def risk() -> tuple[Any, Value]:
    """Minus the expected sum of costs."""

    def value(e: Drawn, logs: Logs) -> Any:
        found = trees(e.clamped, 0)
        p = chances(found, logs, False)
        return None if p is None else -sum(x * sum(map(mpf, t.costs)) for x, t in zip(p, found, strict=False))

    return training.Risk("cost/2"), value


def entropy() -> tuple[Any, Value]:
    """The entropy of the derivations of the facts alone."""

    def value(e: Drawn, logs: Logs) -> Any:
        p = chances(trees(e.facts, 0), logs, True)
        return None if p is None else -sum(x * mpmath.log(x) for x in p if x > 0)

    return training.Entropy(), value


def of_items(semiring: str) -> tuple[Any, Value]:
    """A function of two items."""

    def written(x: Any, e: Any) -> Any:
        return 0.5 * x[0] + dnp.tanh(x[1]) * x[0]

    def value(e: Drawn, logs: Logs) -> Any:
        found = [total(semiring)([t.log(logs) for t in trees(e.clamped, n)]) for n in (0, 1)]
        x, y = [-mpmath.inf if z is None else z for z in found]
        if semiring == "real":
            x, y = mpmath.exp(x), mpmath.exp(y)
        return x / 2 + mpmath.tanh(y) * x if mpmath.isfinite(x) else None

    return training.OfItems(["goal", "item(1)"], written), value


def draw_objective(random: np.random.Generator, semiring: str) -> tuple[str, Any, Value]:
    """One of them, or a sum of two."""
    found: dict[str, Callable[[], tuple[Any, Value]]] = {
        "likelihood": lambda: likelihood(semiring),
        "conditional": lambda: conditional(semiring, False, False),
        "conditional item": lambda: conditional(semiring, True, False),
        "conditional cost": lambda: conditional(semiring, False, True),
        "items": lambda: of_items(semiring),
    }
    if semiring == "log":
        found |= {"risk": risk, "entropy": entropy}
        if random.random() < 0.3:
            (one, (a, f)), (two, (b, g)) = (
                (name, found[name]()) for name in random.choice(sorted(set(found) - {"items"}), 2, replace=False)
            )
            x, y = random.normal(size=2).tolist()

            def both(e: Drawn, logs: Logs) -> Any:
                left, right = f(e, logs), g(e, logs)
                return None if left is None or right is None else mpf(x) * left + mpf(y) * right

            return f"{one} and {two}", training.Sum((x, a), (y, b)), both
    name = str(random.choice(sorted(found)))
    return name, *found[name]()


# -- models ------------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A model with data, and what its objective is."""

    name: str
    semiring: str
    weights: Weights
    model: dg.Model
    data: list[Drawn]
    value: Value
    prior: Callable[[Mapping[str, Numbers]], Any]
    alphas: dict[str, list[float]]
    """Of the Dirichlet prior, where there is one."""

    @property
    def given(self) -> list[training.Example]:
        """The data as the package takes them."""
        return [e.given(self.semiring == "real") for e in self.data]

    def objective(self, theta: Numbers) -> tuple[Any, int]:
        """The objective with its prior, and how many examples count."""
        parts = self.split(theta)
        logs = self.weights.logs(parts)
        found = [(mpf(e.weight), self.value(e, logs)) for e in self.data]
        counted = [(w, x) for w, x in found if x is not None]
        return sum((w * x for w, x in counted), self.prior(parts)), len(counted)

    def split(self, theta: Numbers) -> dict[str, Numbers]:
        """A vector by parametrisation."""
        parts, begin = {}, 0
        for name, size in self.weights.sizes.items():
            parts[name] = theta[begin : begin + size]
            begin += size
        return parts

    @property
    def free(self) -> list[bool]:
        """Which parameters may change."""
        return [not f for name in self.weights.sizes for f in self.weights.frozen[name]]


def draw_prior(random: np.random.Generator, weights: Weights) -> tuple[Any, Any, dict[str, list[float]]]:
    """A prior for all parameters, what its density is, and pseudo-counts."""
    kind = random.choice(["none", "gaussian", "dirichlet"])
    if kind == "dirichlet" and weights.groups:
        alphas = {name: (1 + random.uniform(0, 2, size)).tolist() for name, size in weights.sizes.items()}
        priors = {
            name: training.Dirichlet(dict(zip(p.names(), alphas[name], strict=True)))
            for name, p in weights.made.items()
        }

        def density(parts: Mapping[str, Numbers]) -> Any:
            found = mpf(0)
            for name, (_, group) in weights.groups.items():
                logs = softmax(parts[name], group)
                found += sum(mpf(a - 1) * x for a, x in zip(alphas[name], logs, strict=False))
            return found

        return priors, density, alphas
    if kind == "gaussian":
        variance = float(random.uniform(0.5, 3))
        means = {n: float(random.normal()) for p in weights.made.values() for n in p.names() if random.random() < 0.6}
        names = {name: p.names() for name, p in weights.made.items()}

        def normal(parts: Mapping[str, Numbers]) -> Any:
            return -sum(
                (x - mpf(means.get(n, 0.0))) ** 2 / (2 * mpf(variance))
                for name, numbers in parts.items()
                for n, x in zip(names[name], numbers, strict=False)
            )

        return training.Gaussian(variance, means), normal, {}
    return None, lambda parts: mpf(0), {}


PROGRAMS: dict[str, dg.Program] = {}


def program(semiring: str) -> dg.Program:
    """The program, made once for each semiring."""
    if semiring not in PROGRAMS:
        PROGRAMS[semiring] = dg.Program(PROGRAM.format(semiring=semiring))
    return PROGRAMS[semiring]


def draw_case(seed: int, em: bool = False) -> Case:
    """The model of a number; with `em` one that EM can learn."""
    random = np.random.default_rng(seed)
    semiring = str(random.choice(["log", "real"] if em else ["log", "log", "real", "viterbi"]))
    kind = "distributions" if em else str(random.choice(["distributions", "features", "function", "values"]))
    if kind == "values" and semiring != "real":
        kind = "features"
    weights = {
        "distributions": draw_distributions,
        "features": draw_log_linear,
        "function": draw_function,
        "values": lambda r: draw_function(r, True),
    }[kind](random)
    name, objective, value = ("likelihood", *likelihood(semiring)) if em else draw_objective(random, semiring)
    prior, density, alphas = draw_prior(random, weights)
    if em and not alphas:
        prior, density = None, lambda parts: mpf(0)
    data = [draw_example(random) for _ in range(random.integers(1, 5))]
    model = dg.Model(program(semiring), weights.made, objective=objective, prior=prior)
    if name in ("likelihood", "conditional", "conditional cost") and random.random() < 0.4:
        for e in data[: len(data) // 2 + 1]:
            if any(t.log({row: 0.0 for row in ROWS}) > -np.inf for t in trees(e.facts, 0)):
                best = list(model.bound.run(e.given(semiring == "real").facts).kbest("goal", 5))
                e.observed, e.derivation = {}, best[int(random.integers(len(best)))]
    found = (
        f"{seed}: {semiring}, {kind}, {name}, prior {type(next(iter(prior.values())) if alphas else prior).__name__}"
    )
    return Case(found, semiring, weights, model, data, value, density, alphas)


# -- what is held against what -----------------------------------------------------------------------------------------


def close(found: Any, wanted: Any, what: str, case: Case, tolerance: float = 1e-9) -> None:
    """Raises AssertionError, with the case, where two arrays differ."""
    a, b = np.asarray(found, float), np.asarray([float(x) for x in np.ravel(np.asarray(wanted, object))], float)
    worst = np.abs(a.ravel() - b) - tolerance * (1 + np.abs(b))
    assert a.size == b.size and (worst <= 0).all(), f"{what} of {case.name}: {a.ravel()} and not {b}"


def differences(f: Callable[[Numbers], Any], at: Numbers, along: Sequence[Numbers]) -> list[Any]:
    """The derivatives of a function along directions."""
    found = []
    for d in along:
        up, down = ([x + s * STEP * mpf(y) for x, y in zip(at, d, strict=False)] for s in (1, -1))
        found.append((f(up) - f(down)) / (2 * STEP))
    return found


def check_gradient(case: Case) -> bool:
    """Value, gradient and, where there is one, a product with the Hessian. Whether any example counts."""
    random = np.random.default_rng(len(case.name))
    problem = Problem(case.model._spec, DataPasses(case.given), in_threads(1), "skip")
    like = case.model.parameters
    start = ravelled(like) + np.where(case.free, random.normal(size=len(case.free)) * 0.5, 0.0)
    at = [mpf(float(x)) for x in start]
    value, counted = case.objective(at)
    if not counted:
        return False
    theta = unravelled(start, like)
    found, totals = problem.objective(theta)
    close([found], [value], "value", case)
    close([totals.counted], [counted], "number of examples", case)
    unit = [d if free else np.zeros(len(at)) for d, free in zip(np.eye(len(at)), case.free, strict=False)]
    f = lambda x: case.objective(x)[0]  # noqa: E731
    gradient = ravelled(case.model._spec.pull(theta, totals))
    close(gradient, differences(f, at, unit), "gradient", case)
    smooth = any(n in case.name for n in ("likelihood", "conditional")) and " and " not in case.name
    if smooth and case.semiring != "viterbi" and not case.weights.by_value:
        tangent = np.where(case.free, random.normal(size=len(at)), 0.0)
        product = ravelled(problem.product(theta, totals, unravelled(tangent, like)))
        wanted = [differences(lambda x, d=d: differences(f, x, [tangent])[0], at, [d])[0] for d in unit]
        close(product, wanted, "product with the Hessian", case)
    return True


class Tie(Exception):
    """Two derivations are the best ones."""


def counts(case: Case, logs: Logs, best: bool = False, power: float = 1.0) -> tuple[Any, dict[tuple[str, int], Any]]:
    """The log-likelihood and the expected count of each row; with `best` of the best derivation alone."""
    found, value = dict.fromkeys(ROWS, mpf(0)), mpf(0)
    scaled = {row: power * x for row, x in logs.items()}
    for e in case.data:
        here = trees(e.clamped, 0) if e.derivation is None else [e.derived()]
        terms = [t.log(scaled) for t in here]
        z = (log_max if best else log_sum)(terms)
        if z is None:
            continue
        value += mpf(e.weight) * z
        firsts = [x for x in terms if abs(x - z) < mpf(10) ** -20] if best else []
        if len(firsts) > 1:  # either may be taken
            raise Tie
        for t, x in zip(here, terms, strict=False):
            p = mpf(x == z) if best else mpmath.exp(x - z)
            for use in t.uses:
                found[use] += mpf(e.weight) * p
    return value, found


def maximised(case: Case, found: Mapping[tuple[str, int], Any], before: Mapping[str, Numbers]) -> dict[str, list[Any]]:
    """Relative frequencies of counts with pseudo-counts, as probabilities; groups without any stay."""
    new = {}
    for name, (parameter, group) in case.weights.groups.items():
        sums = [mpf(a) - 1 for a in case.alphas.get(name, [1.0] * len(group))]
        for row, p in zip(case.weights.rows[name], parameter, strict=False):
            sums[p] += found[row]
        whole = {g: sum(s for s, h in zip(sums, group, strict=False) if h == g) for g in set(group)}
        old = [mpmath.exp(x) for x in softmax(before[name], group)]
        new[name] = [
            old[n] if case.weights.frozen[name][n] or not whole[g] else sums[n] / whole[g] for n, g in enumerate(group)
        ]
    return new


def check_em(case: Case) -> bool:
    """One step of EM, of Viterbi EM, of the annealed one, two of variational Bayes, two of incremental EM."""
    like = case.model.parameters
    at = {name: [mpf(float(x)) for x in numbers] for name, numbers in like.items()}
    logs = case.weights.logs(at)
    value, found = counts(case, logs)
    if not any(found.values()):
        return False

    def after(method: str, steps: int = 1, **options: Any) -> tuple[float, dict[str, np.ndarray]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = case.model.fit(case.given, method=method, iterations=steps, missing="skip", tolerance=0.0, **options)
        return fit.objective, {name: np.exp(x) for name, x in case.model.parameters.items()}

    def held(method: str, wanted: Any, new: dict[str, list[Any]], steps: int = 1, **options: Any) -> None:
        objective, parameters = after(method, steps, **options)
        if wanted is not None:
            close([objective], [wanted], f"objective of {method}", case)
        for name, numbers in new.items():
            close(parameters[name], numbers, f"{name} after {method}", case)

    prior = case.prior(at)
    held("em", value + prior, maximised(case, found, at))
    with suppress(Tie):
        best, hard = counts(case, logs, best=True)
        held("viterbi-em", best + prior, maximised(case, hard, at))
    cool, soft = counts(case, logs, power=0.5)
    held("annealing", cool + prior, maximised(case, soft, at), start=0.5)
    check_incremental(case, at, held)
    check_variational(case, at, held)
    return True


def check_incremental(case: Case, at: Mapping[str, Numbers], held: Callable[..., None]) -> None:
    """The counts of each example are kept: those of a second pass replace them one by one."""
    whole, kept = case.data, []
    theta: Mapping[str, Numbers] = at
    for turn in (0, 1):
        for n, e in enumerate(whole):
            case.data = [e]
            _, here = counts(case, case.weights.logs(theta))
            if turn == 0:
                kept.append(here)
                continue
            kept[n] = here
            theta = logs_of(maximised(case, added(kept), theta))
        case.data = whole
        theta = logs_of(maximised(case, added(kept), theta))
    held("incremental-em", None, {name: [mpmath.exp(x) for x in p] for name, p in theta.items()}, 2, size=1)


def added(many: Sequence[Mapping[tuple[str, int], Any]]) -> dict[tuple[str, int], Any]:
    """The sums of counts."""
    return {row: sum(one[row] for one in many) for row in ROWS}


def logs_of(probabilities: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Parameters from probabilities; a log of zero is so small that it is one."""
    return {name: [mpmath.log(p) if p > 0 else mpf(-10000) for p in numbers] for name, numbers in probabilities.items()}


def check_variational(case: Case, at: Mapping[str, Numbers], held: Callable[..., None]) -> None:
    """A Dirichlet for each group, first with the initial probabilities as its mean; then its bound and its mean."""
    weights = case.weights
    alphas = {name: list(map(mpf, case.alphas.get(name, [1.0] * len(g)))) for name, (_, g) in weights.groups.items()}
    q = {}
    for name, (_, group) in weights.groups.items():
        p = [mpmath.exp(x) for x in softmax(at[name], group)]
        q[name] = [a + x * group.count(g) for a, x, g in zip(alphas[name], p, group, strict=False)]
    bound = mpf(0)
    for _ in range(2):
        logs: dict[tuple[str, int], Any] = {}
        apart = mpf(0)
        for name, (parameter, group) in weights.groups.items():
            stays = softmax(at[name], group)
            sums = {g: sum(x for x, h in zip(q[name], group, strict=False) if h == g) for g in set(group)}
            mean = [mpmath.digamma(x) - mpmath.digamma(sums[g]) for x, g in zip(q[name], group, strict=False)]
            frozen = weights.frozen[name]
            for row, n in zip(weights.rows[name], parameter, strict=False):
                logs[row] = stays[n] if frozen[n] else mean[n]
            for g in set(group):
                mine = [n for n, h in enumerate(group) if h == g and not frozen[n]]
                if mine:
                    apart += mpmath.loggamma(sums[g]) - mpmath.loggamma(sum(alphas[name][n] for n in mine))
                    for n in mine:
                        a, x = alphas[name][n], q[name][n]
                        apart += mpmath.loggamma(a) - mpmath.loggamma(x) + (x - a) * mean[n]
        value, found = counts(case, logs)
        bound = value - apart
        for name, (parameter, _) in weights.groups.items():
            q[name] = list(alphas[name])
            for row, n in zip(weights.rows[name], parameter, strict=False):
                q[name][n] += found[row]
    means = {}
    for name, (_, group) in weights.groups.items():
        sums = {g: sum(x for x, h in zip(q[name], group, strict=False) if h == g) for g in set(group)}
        stays = [mpmath.exp(x) for x in softmax(at[name], group)]
        means[name] = [stays[n] if weights.frozen[name][n] else q[name][n] / sums[g] for n, g in enumerate(group)]
    held("variational", bound, means, 2)


def main(seconds: float, first: int = 0) -> None:
    """Draws models until the time is over."""
    mpmath.mp.dps = DIGITS
    warnings.simplefilter("ignore", dg.ProgramWarning)
    end, seed, counted = time.monotonic() + seconds, first, [0, 0]
    while time.monotonic() < end:
        for n, (em, check) in enumerate(((False, check_gradient), (True, check_em))):
            try:
                counted[n] += check(draw_case(seed, em))
            except Exception as error:  # a difference, or what the package raised: print it and go on
                print(f"seed {seed}, em={em}: {type(error).__name__}: {error}", flush=True)
        seed += 1
    print(f"seeds {first} to {seed - 1}: {counted[0]} gradients and {counted[1]} steps of EM")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
