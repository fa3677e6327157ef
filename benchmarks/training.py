"""Training beside peers: EM of hidden Markov models, random fields, EM of the grammar of the WSJ sample, memory.

Each figure is the time of one pass over data that have been gone through before. The first pass, which encodes and
loads the examples, is left out, unless a row says otherwise.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

from .common import Row, Skip, alternate, baseline, python, timed
from .common import data as wsj_sample
from .wsj import PROGRAM as CKY
from .wsj import facts, rows, sentences

# -- passes ------------------------------------------------------------------------------------------------------------


def passes(model: dg.Model, data: Any, count: int, **options: Any) -> list[float]:
    """The seconds of each of so many iterations of training."""
    seconds: list[float] = []
    began = time.perf_counter()

    def told(record: Any) -> None:
        nonlocal began
        seconds.append(time.perf_counter() - began)
        began = time.perf_counter()

    model.fit(data, iterations=count, tolerance=0.0, callback=told, **options)
    return seconds


# -- hidden Markov models ----------------------------------------------------------------------------------------------

HMM = """
:- distribution first(S).  :- distribution move(S,T) given S.  :- distribution emit(S,W) given S.
enter(S,0)   += first(S).
enter(T,I+1) += at(S,I) * move(S,T).
at(S,I)      += enter(S,I) * emit(S,W) * word(I,W).
goal         += at(_,N) * last(N).
"""
LONG = (45, 500, 100, 100)  # states, symbols, observations a sequence, sequences
SHORT = (10, 50, 20, 500)


def hmm() -> list[Row]:
    """An iteration of EM, from the same start, over the same sequences."""
    try:
        from hmmlearn.hmm import CategoricalHMM  # type: ignore[import-untyped]  # it has no types
    except ImportError:
        raise Skip("hmmlearn is not installed") from None
    found = []
    for (states, symbols, length, count), target in ((LONG, 0.3), (SHORT, None)):
        random = np.random.default_rng(0)
        first = random.dirichlet(np.ones(states))
        move = random.dirichlet(np.ones(states), states)
        emit = random.dirichlet(np.ones(symbols), states)
        words = random.integers(0, symbols, (count, length))
        data = [{"word/2": list(enumerate(s)), "last/1": [(length - 1,)]} for s in words.tolist()]
        given = {
            "first/1": [(s, p) for s, p in enumerate(first.tolist())],
            "move/2": [(s, t, p) for (s, t), p in np.ndenumerate(move)],
            "emit/2": [(s, w, p) for (s, w), p in np.ndenumerate(emit)],
        }
        models = [dg.Model(f":- semiring {name}.{HMM}", given) for name in ("real", "log")]

        def theirs(implementation: str, steps: int, given: Any = (first, move, emit, words)) -> CategoricalHMM:
            first, move, emit, words = given
            made = CategoricalHMM(
                len(first),
                implementation=implementation,
                n_iter=steps,
                tol=-np.inf,
                init_params="",
                n_features=emit.shape[1],
            )
            made.startprob_, made.transmat_, made.emissionprob_ = first, move, emit
            return made.fit(words.reshape(-1, 1), [words.shape[1]] * len(words))

        expected = list(theirs("log", 3).monitor_.history)
        for model in models:
            reached = [r.data for r in model.fit(data, iterations=3, tolerance=0.0).history]
            if not np.allclose(reached, expected, rtol=1e-9):
                raise AssertionError("the likelihood differs from hmmlearn's")
        real, log, by_log, by_scaling = alternate(
            lambda models=models, data=data: min(passes(models[0], data, 4, threads=1)[1:]),
            lambda models=models, data=data: min(passes(models[1], data, 4, threads=1)[1:]),
            lambda theirs=theirs: timed(lambda: theirs("log", 3)) / 3,
            lambda theirs=theirs: timed(lambda: theirs("scaling", 3)) / 3,
            repeats=3,
        )
        what = f"EM of an HMM, an iteration, {states} states, {symbols} symbols, {count} sequences of {length}, in"
        found += [
            Row(f"{what} real", real, "s", "hmmlearn, log", by_log, target),
            Row(f"{what} log", log, "s", "hmmlearn, log", by_log, target),
            Row(f"{what} real", real, "s", "hmmlearn, scaling", by_scaling),
        ]
    return found


# -- random fields -----------------------------------------------------------------------------------------------------

CRF = """
:- semiring log.
enter(T,0)   += tag(0,T).
enter(T,I+1) += at(S,I) * trans(S,T).
at(T,I)      += enter(T,I) * emit(T,X) * word(I,X) * tag(I,T).
goal         += at(_,N) * last(N).
"""
TAGS, KINDS, LENGTH, COUNT = 20, 400, 25, 200


def attributes(kind: int) -> list[str]:
    """The features of a kind of word."""
    return [f"word={kind}", f"tens={kind // 10}", f"units={kind % 10}", "bias"]


def tagged() -> list[tuple[list[int], list[int]]]:
    """The kinds of the words of each sentence, and their tags."""
    random = np.random.default_rng(0)
    prefers = random.dirichlet(np.full(TAGS, 0.1), KINDS)
    found = []
    for _ in range(COUNT):
        words = random.integers(0, KINDS, LENGTH).tolist()
        found.append((words, [int(random.choice(TAGS, p=prefers[w])) for w in words]))
    return found


def field() -> tuple[dg.Model, list[training.Example]]:
    """The model, and its examples."""
    every = [(i, t) for i in range(LENGTH) for t in range(TAGS)]
    data = [
        training.Example(
            {"word/2": list(enumerate(words)), "tag/2": every, "last/1": [(LENGTH - 1,)]},
            {"tag/2": list(enumerate(tags))},
        )
        for words, tags in tagged()
    ]
    emit = {"emit/2": [(t, k) for t in range(TAGS) for k in range(KINDS)]}
    trans = {"trans/2": [(s, t) for s in range(TAGS) for t in range(TAGS)]}
    parameters = {
        "emit": training.LogLinear(emit, lambda t, k: [(a, t) for a in attributes(k)]),
        "trans": training.LogLinear(trans, lambda s, t: [(s, t)]),
    }
    return dg.Model(CRF, parameters, objective=training.Conditional(), prior=training.L2(1.0)), data


STEPS = 20


def crf_iteration() -> float:
    """The seconds of an iteration: of all but the first few, which prepare the examples."""
    model, data = field()
    seconds = passes(model, data, STEPS, method="l-bfgs", threads=1)
    return sum(seconds[5:]) / len(seconds[5:])


def crf() -> list[Row]:
    """An iteration of L-BFGS beside one of CRFsuite: the same data, features, penalty and optimum, one thread.

    Our own is timed in a process whose BLAS has one thread as well: others would wait in loops that take its time.
    """
    try:
        import pycrfsuite  # type: ignore[import-untyped]  # it has no types
    except ImportError:
        raise Skip("python-crfsuite is not installed") from None

    def own() -> float:
        code = "from benchmarks.training import crf_iteration; print(crf_iteration())"
        return python(code, OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")[0]

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    options = {"c1": 0.0, "c2": 1.0, "feature.possible_states": True, "feature.possible_transitions": True}
    for words, tags in tagged():
        trainer.append([attributes(w) for w in words], [str(t) for t in tags])

    def peer(most: int) -> Any:
        trainer.set_params({**options, "max_iterations": most, "epsilon": 1e-9, "delta": 1e-12})
        with tempfile.TemporaryDirectory() as folder:
            trainer.train(str(Path(folder) / "model"))
        return trainer.logparser

    def theirs() -> float:
        """Of a long training less a short one, as what it reports of an iteration is rounded to milliseconds."""
        short, long = (timed(lambda n=n: peer(n)) for n in (5, 5 + 2 * STEPS))
        return (long - short) / (2 * STEPS)

    best = peer(1000).last_iteration["loss"]
    model, data = field()
    reached = -model.fit(data, method="l-bfgs", iterations=400, tolerance=1e-12).objective
    mine, its = alternate(own, theirs, repeats=3)
    what = f"CRF, {TAGS} tags, {COUNT} sentences of {LENGTH}, {len(attributes(0))} features a word"
    return [
        Row(f"{what}: an iteration of L-BFGS", mine, "s", "CRFsuite", its, 1.0),
        Row(f"{what}: difference of the least losses (of {best:.2f})", abs(reached - best), "", target=1e-4),
    ]


# -- the grammar of the WSJ sample -------------------------------------------------------------------------------------

LONGEST, SENTENCES, ITERATIONS = 25, 500, 10
GRAMMAR = f":- semiring log. :- distribution rewrite(X,...) given X.\n{CKY}"


def by_hand(count: int) -> float:
    """The seconds that so many copies of the hand-written program take, inside and outside, side by side."""
    command = [str(baseline("inside_outside")), str(wsj_sample("wsj-sample")), "1", str(LONGEST), str(SENTENCES)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    said = [process.communicate()[0] for process in running]
    return max(sum(map(float, re.findall(r"(?:inside|outside) ([\d.]+) s", text))) for text in said)


def wsj() -> list[Row]:
    """Iterations of EM against the bare runs, inside and outside, of the same sentences; and on two threads."""
    given = {"rewrite/3": rows("binary.tsv"), "rewrite/2": rows("lexical.tsv")}
    data = [facts(s) for s in sentences() if len(s) <= LONGEST][:SENTENCES]
    model = dg.Model(GRAMMAR, given)
    bound = dg.Program(GRAMMAR).bind(given, values="probabilities")
    bound.run_batch(data[:2], query="goal", gradient=list(given))  # compiles

    def bare() -> float:
        """Native time alone: a run with its tape, and the backward pass."""
        seconds = 0.0
        for one in data:
            chart = bound.run(one)
            seconds += chart.stats.seconds + timed(lambda chart=chart: chart.gradient("goal")["rewrite/3"])
        return seconds

    whole, alone = alternate(lambda: sum(passes(model, data, ITERATIONS, threads=1)), bare, repeats=2)
    one, both, copy, copies = alternate(
        *(lambda t=t: min(passes(model, data, 4, threads=t)[1:]) for t in (1, 2)),
        *(lambda n=n: by_hand(n) for n in (1, 2)),
        repeats=3,
    )
    two_of_both = one * copies / (2 * copy)  # what two threads would take that gain what two copies do
    what = f"EM of the WSJ grammar in log, {len(data)} sentences of at most {LONGEST} words"
    return [
        Row(f"{what}: {ITERATIONS} iterations", whole, "s", "inside and outside runs", alone * ITERATIONS, 2.0),
        Row(f"{what}: an iteration after the first", one, "s", "inside and outside runs", alone),
        Row(
            f"{what}: an iteration on two threads",
            both,
            "s",
            "on one, divided by what two copies of the hand-written C++ side by side gain over one",
            two_of_both,
            1 / 0.95,
            note=f"{one / both:.2f} times as fast as on one; the copies gain {2 * copy / copies:.2f}",
        ),
    ]


# -- many short examples -----------------------------------------------------------------------------------------------

SHORT_ONES = 100_000
UPDATES = 1_000_000


def stream(count: int) -> Iterator[dict[str, Any]]:
    """Short examples, made as they are read."""
    for n in range(count):
        yield {"seen/2": [(0, n % 7), (1, n % 5)]}


def memory() -> list[Row]:
    """The memory of a process after one pass of many short examples, and after three."""
    code = f"""
import resource, time
import dynagrad as dg
from benchmarks.training import stream
model = dg.Model(
    ":- semiring real. :- distribution toss(S). goal += toss(X) * toss(Y) * seen(0,X) * seen(1,Y).",
    {{"toss/1": [(n,) for n in range(7)]}},
)
peaks, seconds = [], []
began = time.perf_counter()
def told(record):
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
model.fit(lambda: stream({SHORT_ONES}), iterations=3, tolerance=0.0, threads=1, callback=told)
print(peaks[0], peaks[-1], (time.perf_counter() - began) / 3)
"""
    one, three, seconds = python(code)
    what = f"a pass of {SHORT_ONES:,} short examples from a stream"
    return [
        Row(f"{what}: memory after three passes", three, "MB", "after one", one, 1.02),
        Row(f"{what}: time", seconds),
        Row(
            f"probabilities after {UPDATES:,} updates: how far sums are from one, in roundings", drift(), "", target=5.0
        ),
    ]


def drift() -> float:
    """How far the sums of three distributions are from one after many steps of stepwise EM, in units of rounding."""
    p = training.Distribution({"t/2": [(s, x) for s in range(3) for x in range(2 + s)]}, given=0)
    assert p.groups is not None
    draw = np.random.default_rng(0)
    drawn = draw.gamma(0.3, size=(1000, p.size))
    theta = p.start(draw)
    for n in range(UPDATES):
        theta = p.groups.normalised(np.log(0.99 * np.exp(theta) + 0.01 * drawn[n % 1000]))
    sums = p.groups.totals(np.exp(p.weights(theta)))
    return float(np.max(np.abs(sums - 1.0)) / np.finfo(float).eps)
