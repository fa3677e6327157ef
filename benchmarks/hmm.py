"""The forward pass of a hidden Markov model, beside hmmlearn."""

from __future__ import annotations

import numpy as np

import dynagrad as dg

from .common import Row, Skip, alternate, timed

PROGRAM = """
alpha(S,1)   += initial(S) * emit(S,W) * observed(0,W).
alpha(S,T+1) += alpha(R,T) * transition(R,S) * emit(S,W) * observed(T,W).
goal         += alpha(_,N) * end(N).
"""
STATES, SYMBOLS, LENGTH = 45, 500, 100_000


def forward() -> list[Row]:
    try:
        from hmmlearn.hmm import CategoricalHMM  # type: ignore[import-untyped]  # it has no types
    except ImportError:
        raise Skip("hmmlearn is not installed") from None
    random = np.random.default_rng(0)
    initial = random.dirichlet(np.ones(STATES))
    transition = random.dirichlet(np.ones(STATES), STATES)
    emit = random.dirichlet(np.ones(SYMBOLS), STATES)
    observed = random.integers(0, SYMBOLS, LENGTH)

    model = {"initial/1": initial, "transition/2": transition, "emit/2": emit}
    bound = dg.Program(PROGRAM, "log").bind(model, values="probabilities")
    facts = {
        "observed/2": (np.stack([np.arange(LENGTH), observed], 1), np.zeros(LENGTH)),
        "end/1": [(LENGTH,)],
    }
    value = bound.run(facts)["goal"]

    def peer(implementation: str) -> CategoricalHMM:
        made = CategoricalHMM(STATES, implementation=implementation, n_features=SYMBOLS)
        made.startprob_, made.transmat_, made.emissionprob_ = initial, transition, emit
        return made

    log, scaling = peer("log"), peer("scaling")
    column = observed[:, None]
    if not np.isclose(value, log.score(column), rtol=1e-9):
        raise AssertionError("the log likelihood differs from hmmlearn's")
    own, by_log, by_scaling = alternate(
        lambda: timed(lambda: bound.run(facts)),
        lambda: timed(lambda: log.score(column)),
        lambda: timed(lambda: scaling.score(column)),
        repeats=4,
    )
    what = f"HMM forward in log, {STATES} states, {LENGTH:,} observations"
    return [
        Row(what, own, "s", "hmmlearn, log", by_log, 1.0),
        Row(what, own, "s", "hmmlearn, scaling", by_scaling),
    ]
