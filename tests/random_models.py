"""Random small models with data, each part of which is written twice: for the package, and for 40 digits in Python.

Nothing here knows how the package adds up derivations or differentiates. Two programs serve all models: examples are
random hypergraphs, whose edges are facts, so a derivation is a tree of edges, and all of them are listed; in the second
program a weight is interpolated with others. What varies is how weights depend on parameters (groups, ties, frozen
ones, features, functions, networks, several of these at once), the objective, the prior, what was observed, how often
an example counts, and which facts are impossible or missing. `tests/random_training.py` holds the two against each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

import dynagrad as dg
from dynagrad import numpy as dnp
from dynagrad import training

PROGRAM = """
:- semiring {semiring}.
item(X) += tip(X,K) * w(K) * cost(X,K).
item(X) += edge(X,K,L,Y,Z) * w(K) * v(L) * item(Y) * item(Z) * cost(X,K).
goal += item(0).
"""
INTERPOLATED = """
:- semiring {semiring}.
chance(K) += share(M) * own(M,K) * w(K).
chance(K) += share(M) * base(M,K).
item(X) += tip(X,K) * chance(K) * cost(X,K).
item(X) += edge(X,K,L,Y,Z) * chance(K) * v(L) * item(Y) * item(Z) * cost(X,K).
goal += item(0).
"""
OTHER_GOAL = "goal += item(0)", "goal += item(1)"
"""What the program of a clamped run has in place of the goal of the model's."""
KS, LS, MS = range(5), range(3), range(4)
ROWS = [("w", k) for k in KS] + [("v", n) for n in LS]
SHARES = [("share", m) for m in MS]
DIGITS = 40
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


def parts_of(facts: Facts, k: int) -> list[tuple[float, tuple[tuple[str, int], ...]]]:
    """The parts of the weight of `k`: a fixed factor, and the parameters that it is multiplied with."""
    if "own/2" not in facts:
        return [(0.0, (("w", k),))]
    own = [(x, (("share", m), ("w", k))) for (m, n), x in facts["own/2"].items() if n == k]
    return own + [(x, (("share", m),)) for (m, n), x in facts["base/2"].items() if n == k]


def trees(facts: Facts, item: int) -> list[Tree]:
    """All derivations of an item, shortest edges first; a list of more than MOST is cut, and of no use."""
    found = []
    for (x, k), value in facts["tip/2"].items():
        if x == item and (x, k) in facts["cost/2"]:
            found += [Tree(value + own, (facts["cost/2"][x, k],), uses) for own, uses in parts_of(facts, k)]
    for (x, k, n, y, z), value in facts["edge/5"].items():
        if x == item and (x, k) in facts["cost/2"]:
            for (own, uses), a, b in product(parts_of(facts, k), trees(facts, y), trees(facts, z)):
                fixed, here = value + own + a.fixed + b.fixed, (*uses, ("v", n))
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
            if key in ("tip/2", "edge/5", "own/2", "base/2"):
                fixed += self.facts[key][arguments]
            elif key == "cost/2":
                costs.append(self.facts[key][arguments])
            elif key in ("w/1", "v/1", "share/1"):
                uses.append((key[:-2], arguments[0]))
        return Tree(fixed, tuple(costs), tuple(uses))


def draw_example(random: np.random.Generator, nodes: int = 4, interpolated: bool = False) -> Drawn:
    """A random acyclic hypergraph; perhaps with what weights are interpolated with."""
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
        if interpolated:
            facts |= {"own/2": {}, "base/2": {}}
            for k in KS:
                for m in 2 * random.integers(2) + random.permutation(2)[: random.integers(1, 3)]:
                    facts["own/2" if m % 2 else "base/2"][int(m), k] = random.normal()
        if random.random() < 0.1:  # what is impossible is derived, with a weight of zero
            facts["tip/2"][next(iter(facts["tip/2"]))] = -np.inf
        if 1 < len(trees(facts, 0)) <= MOST and 0 < len(trees(facts, 1)) <= MOST:
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


def by_predicate(rows: Sequence[tuple[str, int]]) -> dict[str, list[tuple[int]]]:
    """Rows as the package takes them."""
    return {f"{p}/1": [(n,) for q, n in rows if q == p] for p in dict.fromkeys(p for p, _ in rows)}


def draw_log_linear(
    random: np.random.Generator,
    rows: Sequence[tuple[str, int]] = ROWS,
    called: str = "all",
    scaled: bool | None = None,
) -> Weights:
    """Features with values, shared by rows of all predicates; normalised in groups, or not.

    For iterative scaling these are from 0 on, and `scaled` says whether they are normalised.
    """
    features = {
        row: {f"f{f}": float(random.normal()) for f in random.permutation(6)[: random.integers(1, 4)]} for row in rows
    }
    names = list(dict.fromkeys(f for row in rows for f in features[row]))
    grouped = random.random() < 0.4
    if scaled is not None:
        grouped = scaled
        features = {row: {f: abs(x) for f, x in found.items()} for row, found in features.items()}
    group = [n % 2 for _, n in rows]  # over all predicates at once
    frozen = [random.random() < 0.15 for _ in names]
    tables = {
        key: [(n, f, x) for (q, n), found in features.items() if f"{q}/1" == key for f, x in found.items()]
        for key in by_predicate(rows)
    }
    made = training.LogLinear(
        by_predicate(rows),
        tables,
        given=(lambda n: n % 2) if grouped else None,
        shared=True,
        frozen=lambda f: frozen[names.index(f)],
    )
    order = made.names()

    def logs(theta: Mapping[str, Numbers]) -> Logs:
        at = dict(zip(order, theta[called], strict=False))
        scores = [sum(x * at[f] for f, x in features[row].items()) for row in rows]
        return dict(zip(rows, softmax(scores, group) if grouped else scores, strict=False))

    return Weights({called: made}, {called: len(order)}, logs, {called: [frozen[names.index(f)] for f in order]})


def draw_function(
    random: np.random.Generator,
    by_value: bool = False,
    rows: Sequence[tuple[str, int]] = ROWS,
    called: str = "all",
) -> Weights:
    """A function of three parameters, written for the package, and again for 40 digits."""
    c, d = random.normal(size=(2, len(rows)))
    if by_value:
        made = training.Differentiable(
            by_predicate(rows),
            lambda p: 0.3 + (p["a"][0] * c + p["a"][1] * d) ** 2 + dnp.exp(p["b"] * c),
            {"a": np.array([0.5, -0.25]), "b": 1.0},
            logs=False,
        )
    else:
        made = training.Differentiable(
            by_predicate(rows),
            lambda p: dnp.tanh(p["a"][0] * c + p["a"][1]) + p["b"] * d,
            {"a": np.array([0.5, -0.25]), "b": 1.0},
        )

    def logs(theta: Mapping[str, Numbers]) -> Logs:
        one, two, three = theta[called]
        if by_value:
            values = [
                mpmath.log(mpf(0.3) + (one * mpf(x) + two * mpf(y)) ** 2 + mpmath.exp(three * mpf(x)))
                for x, y in zip(c, d, strict=False)
            ]
        else:
            values = [mpmath.tanh(one * mpf(x) + two) + three * mpf(y) for x, y in zip(c, d, strict=False)]
        return dict(zip(rows, values, strict=False))

    return Weights({called: made}, {called: 3}, logs, {called: [False] * 3}, by_value=by_value)


def draw_network(random: np.random.Generator, rows: Sequence[tuple[str, int]], called: str) -> Weights:
    """A network of PyTorch with a hidden layer, over two inputs for each row."""
    import torch

    inputs, seed = random.normal(size=(len(rows), 2)), int(random.integers(1 << 30))
    torch.manual_seed(seed)
    hidden, out = (torch.nn.Linear(*sizes, dtype=torch.float64) for sizes in ((2, 2), (2, 1)))
    module = torch.nn.Sequential(hidden, torch.nn.Tanh(), out)
    made = training.Torch(by_predicate(rows), module, torch.tensor(inputs), rowwise=bool(random.random() < 0.7))

    def logs(theta: Mapping[str, Numbers]) -> Logs:
        t = theta[called]  # 2 x 2 weights and 2 biases, then 2 weights and a bias
        found = {}
        for row, (x, y) in zip(rows, inputs, strict=True):
            a, b = (mpmath.tanh(t[2 * n] * mpf(x) + t[2 * n + 1] * mpf(y) + t[4 + n]) for n in (0, 1))
            found[row] = t[6] * a + t[7] * b + t[8]
        return found

    return Weights({called: made}, {called: 9}, logs, {called: [False] * 9})


def draw_shares(random: np.random.Generator) -> Weights:
    """What weights are interpolated by: two groups of two, at times tied, and at times frozen."""
    tied, stays = random.random() < 0.3, random.random() < 0.2
    tie = [m % 2 if tied else m for m in MS]
    start = random.uniform(0.2, 2.0, len(MS))
    made = training.Distribution(
        {"share/1": [(m, float(start[tie[m]])) for m in MS]},
        lambda m: m // 2,
        tied=(lambda m: m % 2) if tied else None,
        frozen=(lambda m: m < 2 or tied) if stays else None,
    )
    groups = [0, 0] if tied else [0, 0, 1, 1]

    def logs(theta: Mapping[str, Numbers]) -> Logs:
        found = softmax(theta["share"], groups)
        return {("share", m): found[tie[m]] for m in MS}

    frozen = {"share": [stays and g == 0 for g in groups]}
    return Weights({"share": made}, {"share": len(groups)}, logs, frozen, {"share": (tie, groups)}, {"share": SHARES})


def only(whole: Weights, name: str) -> Weights:
    """One of two distributions."""
    zeros = {other: [mpf(0)] * size for other, size in whole.sizes.items()}

    def logs(theta: Mapping[str, Numbers]) -> Logs:
        return {row: x for row, x in whole.logs({**zeros, name: theta[name]}).items() if row[0] == name}

    tables = (whole.made, whole.sizes, whole.frozen, whole.groups, whole.rows)
    made, sizes, frozen, groups, rows = ({name: table[name]} for table in tables)
    return Weights(made, sizes, logs, frozen, groups, rows)


def together(parts: Sequence[Weights]) -> Weights:
    """Parametrisations beside each other."""

    def logs(theta: Mapping[str, Numbers]) -> Logs:
        return {row: x for part in parts for row, x in part.logs(theta).items()}

    made, sizes, frozen, groups, rows = (
        {name: x for part in parts for name, x in getattr(part, table).items()}
        for table in ("made", "sizes", "frozen", "groups", "rows")
    )
    return Weights(made, sizes, logs, frozen, groups, rows)


NETWORKS = [draw_network] if find_spec("torch") else []


def draw_several(random: np.random.Generator, em: bool, interpolated: bool) -> Weights:
    """A parametrisation for each predicate, of any kind; or one that is shared by two, or by all."""
    distributions = draw_distributions(random)
    parts = [only(distributions, "w"), only(distributions, "v")]
    if interpolated:
        parts.append(draw_shares(random))
    if em:
        return together(parts)
    every = [*ROWS, *(SHARES if interpolated else [])]
    if random.random() < 0.2:
        return draw_log_linear(random, every)
    for n, part in enumerate(parts):
        (called,) = part.made
        rows = [row for row in every if row[0] == called]
        draws = [lambda r, *_, part=part: part, draw_log_linear, lambda r, *a: draw_function(r, False, *a), *NETWORKS]
        parts[n] = draws[int(random.integers(len(draws)))](random, rows, called)
    return together(parts)


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


def likelihood(semiring: str, costs: bool = True) -> tuple[Any, Value]:
    """Of what is left with what was observed, or of a derivation; with `costs` these are weights."""

    def value(e: Drawn, logs: Logs) -> Any:
        if e.derivation is not None:
            return total(semiring)([e.derived().log(logs, costs)])
        return total(semiring)([t.log(logs, costs) for t in trees(e.clamped, 0)])

    return training.Likelihood(), value


def conditional(
    semiring: str, item: bool, cost: bool, clamped: dg.Program | None = None, costs: bool = True
) -> tuple[Any, Value]:
    """What was observed less all: another item, or facts that are left; with costs that count in the second alone.

    Without `cost` they are weights, unless `costs` is false.

    `clamped` is a program of which the goal is what the item is in the model's.
    """

    def value(e: Drawn, logs: Logs) -> Any:
        if e.derivation is not None:
            top = total(semiring)([e.derived().log(logs, costs and not cost)])
        else:
            top = total(semiring)([t.log(logs, costs and not cost) for t in trees(e.clamped, 1 if item else 0)])
        bottom = total(semiring)([t.log(logs, cost or costs) for t in trees(e.facts, 0)])
        return None if top is None or bottom is None else top - bottom

    observed = "item(1)" if item and clamped is None else None
    return training.Conditional(observed, "cost/2" if cost else None, clamped), value


def chances(found: Sequence[Tree], logs: Logs, costs: bool) -> list[Any] | None:
    """The probability of each derivation."""
    terms = [t.log(logs, costs) for t in found]
    z = log_sum(terms)
    return None if z is None else [mpmath.exp(t - z) for t in terms]


def risk() -> tuple[Any, Value]:
    """Minus the expected sum of costs, over all derivations of the facts."""

    def value(e: Drawn, logs: Logs) -> Any:
        found = trees(e.facts, 0)
        p = chances(found, logs, False)
        return None if p is None else -sum(x * sum(map(mpf, t.costs)) for x, t in zip(p, found, strict=False))

    return training.Risk("cost/2"), value


def entropy(costs: bool = True) -> tuple[Any, Value]:
    """The entropy of the derivations of the facts alone; with `costs` these are weights."""

    def value(e: Drawn, logs: Logs) -> Any:
        p = chances(trees(e.facts, 0), logs, costs)
        return None if p is None else -sum(x * mpmath.log(x) for x in p if x > 0)

    return training.Entropy(), value


def of_items(semiring: str, costs: bool = True) -> tuple[Any, Value]:
    """A function of two items; with `costs` these are weights."""

    def written(x: Any, e: Any) -> Any:
        return 0.5 * x[0] + dnp.tanh(x[1]) * x[0]

    def value(e: Drawn, logs: Logs) -> Any:
        found = [total(semiring)([t.log(logs, costs) for t in trees(e.clamped, n)]) for n in (0, 1)]
        x, y = [-mpmath.inf if z is None else z for z in found]
        if semiring == "real":
            x, y = mpmath.exp(x), mpmath.exp(y)
        return x / 2 + mpmath.tanh(y) * x if mpmath.isfinite(x) else None

    return training.OfItems(["goal", "item(1)"], written), value


def draw_objective(
    random: np.random.Generator, semiring: str, clamped: dg.Program | None = None
) -> tuple[str, Any, Value]:
    """One of them, or a sum of two; perhaps with a program for clamped runs."""
    found: dict[str, Callable[[bool], tuple[Any, Value]]] = {
        "likelihood": lambda costs: likelihood(semiring, costs),
        "conditional": lambda costs: conditional(semiring, False, False, costs=costs),
        "conditional item": lambda costs: conditional(semiring, True, False, costs=costs),
        "conditional cost": lambda _: conditional(semiring, False, True),
        "items": lambda costs: of_items(semiring, costs),
    }
    if clamped is not None:
        found["conditional program"] = lambda costs: conditional(semiring, True, False, clamped, costs)
    if semiring == "log":
        found |= {"risk": lambda _: risk(), "entropy": entropy}
        if random.random() < 0.3:
            one, two = map(str, random.choice(sorted(set(found) - {"items"}), 2, replace=False))
            plain = not {one, two} & {"risk", "conditional cost"}  # else costs are losses, and no weights
            (a, f), (b, g) = found[one](plain), found[two](plain)
            x, y = random.normal(size=2).tolist()

            def both(e: Drawn, logs: Logs) -> Any:
                left, right = f(e, logs), g(e, logs)
                return None if left is None or right is None else mpf(x) * left + mpf(y) * right

            return f"{one} and {two}", training.Sum((x, a), (y, b)), both
    name = str(random.choice(sorted(found)))
    return name, *found[name](True)


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
    def objectives(self) -> list[str]:
        """The names of the objectives, of which there may be two."""
        return self.name.split(", ")[2].split(" and ")

    @property
    def free(self) -> list[bool]:
        """Which parameters may change."""
        return [not f for name in self.weights.sizes for f in self.weights.frozen[name]]


def draw_prior(
    random: np.random.Generator, weights: Weights, l1: bool = False
) -> tuple[Any, Any, dict[str, list[float]]]:
    """A prior for all parameters, what its density is, and pseudo-counts."""
    kind = random.choice(["none", "gaussian", "dirichlet"])
    if l1:
        strength = float(random.uniform(0.1, 1.0))
        return training.L1(strength), lambda parts: -strength * sum(abs(x) for p in parts.values() for x in p), {}
    if kind == "dirichlet" and weights.groups:
        alphas = {name: (1 + random.uniform(0, 2, weights.sizes[name])).tolist() for name in weights.groups}
        priors = {
            name: training.Dirichlet(dict(zip(weights.made[name].names(), alphas[name], strict=True)))
            for name in weights.groups
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


@cache
def program(semiring: str, text: str = PROGRAM, other_goal: bool = False) -> dg.Program:
    """A program, made once for each semiring."""
    return dg.Program((text.replace(*OTHER_GOAL) if other_goal else text).format(semiring=semiring))


def draw_case(seed: int, em: bool = False, several: bool = False, l1: bool = False, scaled: bool = False) -> Case:
    """The model of a number; with `em` one that EM can learn, with `scaled` one that iterative scaling can.

    With `several` it has several parametrisations, and with `l1` that prior.
    """
    random = np.random.default_rng(seed)
    semiring = str(random.choice(["log", "real"] if em or scaled else ["log", "log", "real", "viterbi"]))
    whole = scaled and (semiring != "log" or random.random() < 0.5)
    kind = "distributions" if em else str(random.choice(["distributions", "features", "function", "values"]))
    if kind == "values" and semiring != "real":
        kind = "features"
    interpolated = several and random.random() < 0.6
    if several:
        kind = "interpolated" if interpolated else "several"
    if scaled:
        kind = "features"
    weights = {
        "distributions": draw_distributions,
        "features": lambda r: draw_log_linear(r, scaled=whole if scaled else None),
        "function": draw_function,
        "values": lambda r: draw_function(r, True),
        "several": lambda r: draw_several(r, em, False),
        "interpolated": lambda r: draw_several(r, em, True),
    }[kind](random)
    text = INTERPOLATED if interpolated else PROGRAM
    clamped = program(semiring, text, True) if several else None
    if em or whole:
        name, objective, value = "likelihood", *likelihood(semiring)
    elif scaled:
        name, objective, value = "conditional", *conditional(semiring, False, False)
    else:
        name, objective, value = draw_objective(random, semiring, clamped)
    prior, density, alphas = draw_prior(random, weights, l1)
    if em and not alphas:
        prior, density = None, lambda parts: mpf(0)
    data = [draw_example(random, interpolated=interpolated) for _ in range(random.integers(1, 5))]
    model = dg.Model(program(semiring, text), weights.made, objective=objective, prior=prior)
    if name in ("likelihood", "conditional", "conditional cost") and random.random() < 0.4:
        for e in data[: len(data) // 2 + 1]:
            if any(t.log({row: 0.0 for row in ROWS + SHARES}) > -np.inf for t in trees(e.facts, 0)):
                best = list(model.bound.run(e.given(semiring == "real").facts).kbest("goal", 5))
                e.observed, e.derivation = {}, best[int(random.integers(len(best)))]
    found = (
        f"{seed}: {semiring}, {kind}, {name}, prior {type(next(iter(prior.values())) if alphas else prior).__name__}"
    )
    return Case(found, semiring, weights, model, data, value, density, alphas)
