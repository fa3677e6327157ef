"""Gradients of programs, beside hand-written code, jax and torch-struct, and beside the value alone.

A gradient is timed as its user gets it: from the facts to an array of numbers in Python, the run included. The value
alone is a run of bound facts that were never asked for a gradient, as runs of those that were keep a tape.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import dynagrad as dg

from .common import Row, Skip, alternate, baseline, data, timed
from .wsj import facts, grammar, sentences

Array = npt.NDArray[np.float64]

# -- the grammar of the WSJ sample -------------------------------------------------------------------------------------

RULES = "rewrite/3"
SHORTEST, LONGEST, COUNT = 25, 40, 50


def medium() -> list[dict[str, Any]]:
    """The facts of the sentences that the baseline parses."""
    return [facts(s) for s in sentences() if SHORTEST <= len(s) <= LONGEST][:COUNT]


@dataclass(frozen=True)
class InsideOutside:
    """What the baseline prints: its seconds, and the sum over sentences and binary rules of d log p / d rule."""

    inside: float
    outside: float
    total: float


def inside_outside() -> InsideOutside:
    command = [baseline("inside_outside"), data("wsj-sample"), *map(str, (SHORTEST, LONGEST, COUNT))]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"inside (\S+) s  outside (\S+) s .* rule (\S+)", said)
    assert found is not None, said
    return InsideOutside(*map(float, found.groups()))


def value_and_gradient(bound: dg.Bound, given: dict[str, Any], key: str) -> dg.Chart:
    """The chart of a run, with the gradient of `goal` by the facts of a predicate computed and read."""
    chart = bound.run(given)
    chart.gradient("goal")[key].values  # noqa: B018  # reading it is the work
    return chart


def wsj_gradient() -> list[Row]:
    """50 sentences of 25 to 40 words in `real`: value and gradient, against the baseline and against the value alone.

    The batch gives the gradient of the sum of log p, summed over the sentences; the baseline computes a gradient per
    sentence and adds up its entries.
    """
    given, plain, bound = medium(), grammar(), grammar()
    plain.run(given[0])  # compiles

    def batch() -> Any:
        return bound.run_batch(given, query="goal", gradient=[RULES], objective="log", threads=1)

    def one_by_one() -> list[dg.Chart]:
        return [value_and_gradient(bound, one, RULES) for one in given]

    found, charts = batch(), one_by_one()  # compile
    if found.errors:
        raise AssertionError(f"sentences failed: {found.errors}")
    total = inside_outside().total
    off = abs(found.gradient[RULES].values.sum() - total) / total
    tape, pops = (sum(numbers) for numbers in zip(*((c.stats.tape_bytes, c.stats.pops) for c in charts), strict=True))
    del charts
    outside: list[float] = []

    def peer() -> float:
        by_hand = inside_outside()
        outside.append(by_hand.outside)
        return by_hand.inside + by_hand.outside

    together, separate, value, peers = alternate(
        lambda: timed(batch),
        lambda: sum(timed(partial(value_and_gradient, bound, one, RULES)) for one in given),
        lambda: sum(timed(partial(plain.run, one)) for one in given),
        peer,
        repeats=10,
    )
    what = f"WSJ, {COUNT} sentences of {SHORTEST} to {LONGEST} words: "
    by_cpp = "hand-written C++, inside and outside"
    return [
        Row(f"{what}value and gradient in a batch", together, "s", by_cpp, peers, 1.5),
        Row(f"{what}value and gradient, a chart each", separate, "s", by_cpp, peers),
        Row(f"{what}value and gradient, a chart each", separate, "s", "the value alone", value, 3.0),
        Row(f"{what}what the gradient adds", separate - value, "s", "hand-written C++, outside", min(outside)),
        Row(f"{what}tapes", tape / 1e6, "MB", "8 bytes a pop", pops * 8 / 1e6, 1.01),
        Row(f"{what}relative difference of the sum of d log p / d rule", off, "", target=1e-9),
    ]


def hessian() -> list[Row]:
    """A Hessian-vector product beside a gradient, both of `Bound.function`, on the first of the sentences."""
    given = medium()[0]
    rules = [line.split("\t") for line in data("wsj-sample", "binary.tsv").read_text().splitlines()]
    weights = np.array([float(p) for *_, p in rules])
    direction = np.random.default_rng(0).normal(size=len(weights)) * weights
    f = grammar().function("goal", inputs=[RULES], facts=given)

    def gradient() -> Any:
        return f.vjp(weights)[1](1.0)

    def product() -> Any:
        return f.hvp((weights,), (direction,))

    gradient(), product()  # compile
    by_product, by_gradient = alternate(lambda: timed(product), lambda: timed(gradient), repeats=10)
    what = f"WSJ, a sentence of {given['end/1'][0][0]} words: a Hessian-vector product"
    return [Row(what, by_product, "s", "value and gradient", by_gradient)]


# -- a linear-chain conditional random field ---------------------------------------------------------------------------

CHAIN = """
alpha(0,S)   += tag(S).
alpha(T+1,S) += alpha(T,R) * potential(T,R,S).
goal         += alpha(T,_) * last(T).
"""
TAGS, POSITIONS = 50, 1000
Solver = Callable[[Array], tuple[float, Array]]  # from log potentials (position, from tag, to tag): log Z, its gradient


def own_chain(potentials: Array) -> Solver:
    """Our value and gradient for potentials of this shape, with new numbers in each call."""
    chain = {"tag/1": [(s,) for s in range(TAGS)], "last/1": [(POSITIONS - 1,)]}
    f = dg.Program(CHAIN, "log").bind({"potential/3": potentials}).function("goal", inputs=["potential/3"], facts=chain)

    def solve(potentials: Array) -> tuple[float, Array]:
        value, pullback = f.vjp(potentials)
        return value, pullback(1.0)[0]

    return solve


def torch_struct_chain() -> Solver:
    import torch

    # It does not say what its arguments may be, which torch warns of as soon as torch-struct is used.
    torch.distributions.Distribution.set_default_validate_args(False)
    import torch_struct

    def solve(potentials: Array) -> tuple[float, Array]:
        # It wants (sentence, position, to tag, from tag). Its marginals are the gradient of its partition; asked for
        # both, it would compute the partition twice.
        turned = torch.from_numpy(potentials).transpose(1, 2).contiguous()[None].requires_grad_()
        partition = torch_struct.LinearChainCRF(turned).partition
        (marginals,) = torch.autograd.grad(partition.sum(), turned)
        return partition.item(), marginals[0].transpose(1, 2).numpy()

    return solve


def jax_chain() -> Solver:
    import jax

    jax.config.update("jax_enable_x64", True)
    log_sum = jax.scipy.special.logsumexp

    def partition(potentials: Any) -> Any:
        def step(alpha: Any, potential: Any) -> tuple[Any, None]:
            return log_sum(alpha[:, None] + potential, axis=0), None

        return log_sum(jax.lax.scan(step, jax.numpy.zeros(TAGS), potentials)[0])

    compiled = jax.jit(jax.value_and_grad(partition))

    def solve(potentials: Array) -> tuple[float, Array]:
        value, gradient = compiled(potentials)
        return float(value), np.asarray(gradient)

    return solve


CHAINS: dict[str, tuple[Callable[[], Solver], float | None]] = {  # with the target for our time over theirs
    "torch-struct": (torch_struct_chain, 1.0),
    "jax.jit of lax.scan": (jax_chain, None),
}


def crf() -> list[Row]:
    """log Z of a chain and its gradient by all potentials, from a dense array with new numbers in each repetition."""
    what = f"linear-chain CRF, {TAGS} tags, {POSITIONS:,} positions, value and gradient in log"
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(POSITIONS - 1, TAGS, TAGS)) for _ in range(4)]
    peers: dict[str, Solver] = {}
    missing = []
    for name, (make, _) in CHAINS.items():
        try:
            peers[name] = make()
        except ImportError as error:
            missing.append(Row(what, peer=name, note=f"{error.name} is not installed"))
    if not peers:
        raise Skip("neither torch-struct nor jax is installed")

    solve = own_chain(arrays[0])
    value, gradient = solve(arrays[1])
    worst = 0.0
    for peer in peers.values():  # this also compiles
        theirs, marginals = peer(arrays[1])
        worst = max(worst, abs(value - theirs) / abs(theirs), float(np.abs(gradient - marginals).max()))

    def several(solver: Solver, times: int) -> Callable[[], float]:
        following = itertools.cycle(arrays)
        return lambda: min(timed(lambda: solver(next(following))) for _ in range(times))

    quick = {name: 1 if name == "torch-struct" else 5 for name in peers}
    own, *others = alternate(several(solve, 5), *(several(peers[name], quick[name]) for name in peers), repeats=5)
    rows = [Row(what, own, "s", name, time, CHAINS[name][1]) for name, time in zip(peers, others, strict=True)]
    note = f"of log Z or of a marginal, from {' and '.join(peers)}"
    return [*rows, *missing, Row(what + ": worst difference", worst, "", target=1e-9, note=note)]


# -- what a call costs -------------------------------------------------------------------------------------------------

CALLED = (5, 20)  # tags and positions: so few that a call is most of the time


def calls() -> list[Row]:
    """Value and gradient by a call of `Program.function`, of arrays of a known shape and of a new one, and by a run of
    the bound program."""
    tags, positions = CALLED
    random = np.random.default_rng(0)
    program = dg.Program(CHAIN, "log")
    facts = {"tag/1": [(s,) for s in range(tags)]}
    f = program.function("goal", inputs=["potential/3"])

    def given(positions: int) -> tuple[Array, dict[str, Any]]:
        return random.normal(size=(positions - 1, tags, tags)), facts | {"last/1": [(positions - 1,)]}

    seen, others = given(positions)
    of_other_lengths = itertools.count(positions + 1)
    bound = program.bind({"potential/3": seen, **others})

    def unseen() -> float:
        array, others = given(next(of_other_lengths))
        return timed(lambda: f.value_and_grad(array, facts=others))

    def several() -> float:
        return min(timed(lambda: f.value_and_grad(seen, facts=others)) for _ in range(20))

    unseen(), several()  # compile
    known, new, run = alternate(several, unseen, lambda: timed(lambda: value_and_gradient(bound, {}, "potential/3")))
    what = f"call of a program as a function, chain of {tags} tags and {positions} positions, value and gradient:"
    return [
        Row(f"{what} arrays of a known shape", known, "s", "a run of bound facts", run, 1.0),
        Row(f"{what} arrays of a new shape", new, "s", "a known shape", known),
    ]


# -- how the cost grows ------------------------------------------------------------------------------------------------

CKY = """
constit(X,I,K) += lexical(X,W) * word(W,I,K).
constit(X,I,K) += binary(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit(0,0,N) * end(N).
"""
SYMBOLS, WORDS = 10, 20
LENGTHS = (32, 50, 80, 127)  # four times the work from each to the next


def cost() -> list[Row]:
    """The ratio of the gradient by all rules to the value, for a dense random grammar in `real` at several lengths."""
    random = np.random.default_rng(0)
    binary = random.dirichlet(np.ones(SYMBOLS**2), SYMBOLS).reshape(SYMBOLS, SYMBOLS, SYMBOLS)
    lexical = random.dirichlet(np.ones(WORDS), SYMBOLS)
    program = dg.Program(CKY, "real")
    measured = []
    for length in LENGTHS:
        words = random.integers(0, WORDS, length).tolist()
        given = {"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(length,)]}
        in_log = dg.Program(CKY, "log").bind({"binary/3": binary, "lexical/2": lexical}, values="probabilities")
        scale = np.exp(-in_log.run(given)["goal"] / length)  # so that the value is near one, however long
        grammar = {"binary/3": binary, "lexical/2": lexical * scale}
        plain, bound = program.bind(grammar), program.bind(grammar)
        plain.run(given), value_and_gradient(bound, given, "binary/3")  # compile
        value, both = alternate(
            partial(timed, partial(plain.run, given)),
            partial(timed, partial(value_and_gradient, bound, given, "binary/3")),
            repeats=10,
        )
        measured.append((value, both - value))
    what = f"CKY in real, {SYMBOLS} symbols, "
    rows = [
        Row(f"{what}{length} words: what the gradient adds", gradient, "s", "the value alone", value)
        for length, (value, gradient) in zip(LENGTHS, measured, strict=True)
    ]
    ratios = [gradient / value for value, gradient in measured]
    growth = f"{what}gradient over value: {LENGTHS[-1]} words over {LENGTHS[1]}"
    return [*rows, Row(growth, ratios[-1] / ratios[1], "", target=1.5)]
