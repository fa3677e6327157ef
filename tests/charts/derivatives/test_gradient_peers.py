"""Gradients against peers: the same recurrences in jax and torch, linear algebra, and inside-outside by hand.

A `Problem` is a program beside the same recurrence over arrays. The recurrence is written once, over an `Algebra`: the
operations of a semiring on the arrays of the library that differentiates it. It shares no derivative rule with the
package. The real grammar is found, or skipped, as in `test_real_data`. Costs four seconds.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dynagrad as dg
from test_real_data import CKY as WSJ
from test_real_data import all_sentences, by_hand, needs_wsj, sentence_facts, wsj_grammar

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

Array = npt.NDArray[np.float64]


def assert_close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Equal shapes, and no entry further off than `tolerance` of the largest."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    size = np.abs(expected).max(initial=0.0)
    assert np.abs(found - expected).max(initial=0.0) <= tolerance * (size or 1.0)


# -- the peers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Algebra:
    """`plus` of an array over some axes and `times` of two, in a library's arrays; `library` has the rest."""

    plus: Callable[[Any, tuple[int, ...]], Any]
    times: Callable[[Any, Any], Any]
    library: Any


@dataclass(frozen=True)
class Derivatives:
    """What a peer says: the value, the gradient, and the Hessian times the directions, an array per input."""

    value: float
    gradient: tuple[Array, ...]
    curvature: tuple[Array, ...]


Recurrence = Callable[..., Any]  # of an algebra and the input arrays; returns a number


def algebra(semiring: str | None, library: Any, log_sum: Callable[[Any, tuple[int, ...]], Any]) -> Algebra:
    plus = {"log": log_sum, "viterbi": library.amax, "tropical": library.amin}.get(semiring or "real", library.sum)
    products = semiring in (None, "real")
    return Algebra(plus, (lambda a, b: a * b) if products else (lambda a, b: a + b), library)


def by_jax(semiring: str | None, recurrence: Recurrence, at: Sequence[Array], along: Sequence[Array]) -> Derivatives:
    jax = pytest.importorskip("jax")
    in_double = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        ours = algebra(semiring, jax.numpy, jax.scipy.special.logsumexp)
        places = tuple(range(len(at)))
        gradient = jax.value_and_grad(lambda *arrays: recurrence(ours, *arrays), places)
        both = jax.jit(lambda x, d: jax.jvp(lambda *arrays: gradient(*arrays), x, d))
        (value, first), (_, second) = both(tuple(map(jax.numpy.asarray, at)), tuple(map(jax.numpy.asarray, along)))
        return Derivatives(float(value), tuple(map(np.asarray, first)), tuple(map(np.asarray, second)))
    finally:
        jax.config.update("jax_enable_x64", in_double)


def by_torch(semiring: str | None, recurrence: Recurrence, at: Sequence[Array], along: Sequence[Array]) -> Derivatives:
    torch = pytest.importorskip("torch")
    ours = algebra(semiring, torch, torch.logsumexp)
    arrays = [torch.tensor(a, requires_grad=True) for a in at]
    value = recurrence(ours, *arrays)
    first = torch.autograd.grad(value, arrays, create_graph=True)
    slope = sum((g * torch.tensor(d)).sum() for g, d in zip(first, along, strict=True))
    if slope.requires_grad:
        second = torch.autograd.grad(slope, arrays, allow_unused=True, materialize_grads=True)
    else:  # a value linear in all inputs
        second = tuple(map(torch.zeros_like, arrays))
    return Derivatives(value.item(), tuple(g.detach().numpy() for g in first), tuple(g.numpy() for g in second))


PEERS = {"jax": by_jax, "torch": by_torch}
PEER = "torch" if find_spec("torch") else "jax"  # which takes a second a problem to compile


# -- the problems ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """A program with an item `goal`, the arrays to differentiate by, other facts, and the same as a recurrence."""

    source: str
    semiring: str | None
    inputs: Mapping[str, Array]
    facts: Mapping[str, Any]
    recurrence: Recurrence

    @cached_property
    def bound(self) -> Any:
        return dg.Program(self.source, semiring=self.semiring).bind(self.inputs)

    @property
    def directions(self) -> list[Array]:
        random = np.random.default_rng(5)
        return [random.normal(size=array.shape) for array in self.inputs.values()]


def in_scale(semiring: str | None, weights: Array) -> Array:
    """Weights as the numbers of a semiring."""
    return np.log(weights) if semiring in ("log", "viterbi") else weights


HMM = """
forward(0,S) += initial(S) * emission(S,O) * observation(0,O).
forward(I+1,T) += forward(I,S) * transition(S,T) * emission(T,O) * observation(I+1,O).
goal += forward(N-1,_S) * length(N).
"""


def hmm(semiring: str) -> Problem:
    random = np.random.default_rng(1)
    states, symbols, length = 4, 5, 12
    seen = [int(o) for o in random.integers(symbols, size=length)]
    inputs = {
        "initial/1": random.dirichlet(np.ones(states)),
        "transition/2": random.dirichlet(np.ones(states), states),
        "emission/2": random.dirichlet(np.ones(symbols), states),
    }

    def recurrence(a: Algebra, initial: Any, transition: Any, emission: Any) -> Any:
        forward = a.times(initial, emission[:, seen[0]])
        for o in seen[1:]:
            forward = a.times(a.plus(a.times(forward[:, None], transition), (0,)), emission[:, o])
        return a.plus(forward, (0,))

    facts = {"observation/2": list(enumerate(seen)), "length/1": [(length,)]}
    return Problem(HMM, semiring, {key: in_scale(semiring, x) for key, x in inputs.items()}, facts, recurrence)


CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit(0,0,N) * end(N).
"""


def cky(semiring: str) -> Problem:
    random = np.random.default_rng(2)
    symbols, words, length = 3, 4, 6
    sentence = [int(w) for w in random.integers(words, size=length)]
    inputs = {
        "rewrite/3": random.dirichlet(np.ones(symbols**2), symbols).reshape(symbols, symbols, symbols),
        "rewrite/2": random.dirichlet(np.ones(words), symbols),
    }

    def recurrence(a: Algebra, binary: Any, lexical: Any) -> Any:
        chart = {(i, i + 1): lexical[:, w] for i, w in enumerate(sentence)}
        for width in range(2, length + 1):
            for i in range(length + 1 - width):
                k = i + width
                left = a.library.stack([chart[i, j] for j in range(i + 1, k)])  # split, symbol
                right = a.library.stack([chart[j, k] for j in range(i + 1, k)])
                pairs = a.times(left[:, None, :, None], right[:, None, None, :])  # split, parent, left, right
                chart[i, k] = a.plus(a.times(binary[None], pairs), (0, 2, 3))
        return chart[0, length][0]

    facts = {"word/3": [(w, i, i + 1) for i, w in enumerate(sentence)], "end/1": [(length,)]}
    return Problem(CKY, semiring, {key: in_scale(semiring, x) for key, x in inputs.items()}, facts, recurrence)


EDIT = """
distance(0,0) += start.
distance(I+1,J) += distance(I,J) * from(I,C) * drop(C).
distance(I,J+1) += distance(I,J) * to(J,D) * add(D).
distance(I+1,J+1) += distance(I,J) * from(I,C) * to(J,D) * swap(C,D).
goal += distance(I,J) * lengths(I,J).
"""


def edit_distance(semiring: str) -> Problem:
    """Costs drawn at random, so that no two alignments tie."""
    random = np.random.default_rng(3)
    letters = 3
    a, b = ([int(c) for c in random.integers(letters, size=n)] for n in (6, 5))
    shapes = {"drop/1": letters, "add/1": letters, "swap/2": (letters, letters)}
    inputs = {key: random.uniform(0.5, 1.5, size) for key, size in shapes.items()}

    def recurrence(algebra: Algebra, drop: Any, add: Any, swap: Any) -> Any:
        times = algebra.times
        distance = {(0, 0): 0 * drop[0]}
        for i in range(len(a) + 1):
            for j in range(len(b) + 1):
                ways = []
                if i:
                    ways.append(times(distance[i - 1, j], drop[a[i - 1]]))
                if j:
                    ways.append(times(distance[i, j - 1], add[b[j - 1]]))
                if i and j:
                    ways.append(times(distance[i - 1, j - 1], swap[a[i - 1], b[j - 1]]))
                if ways:
                    distance[i, j] = algebra.plus(algebra.library.stack(ways), (0,))
        return distance[len(a), len(b)]

    facts = {"from/2": list(enumerate(a)), "to/2": list(enumerate(b)), "lengths/2": [(len(a), len(b))], "start/0": [()]}
    return Problem(EDIT, semiring, {key: in_scale(semiring, x) for key, x in inputs.items()}, facts, recurrence)


NETWORK = """
total(X,J) += first(J,I) * given(X,I).
hidden(X,J) = tanh(total(X,J) + bias(J)).
score(X,K) += second(K,J) * hidden(X,J).
answer(X,K) = sigmoid(score(X,K)).
goal += (answer(X,K) - wanted(X,K)) ^ 2.
"""


def network() -> Problem:
    random = np.random.default_rng(4)
    given, hidden, answers, examples = 3, 4, 2, 5
    shapes = {
        "first/2": (hidden, given),
        "bias/1": (hidden,),
        "second/2": (answers, hidden),
        "given/2": (examples, given),
    }
    wanted = random.uniform(size=(examples, answers))

    def recurrence(a: Algebra, first: Any, bias: Any, second: Any, given: Any) -> Any:
        library = a.library
        score = library.tanh(given @ first.T + bias) @ second.T
        answer = 1 / (1 + library.exp(-score))
        return ((answer - library.asarray(wanted)) ** 2).sum()

    inputs = {key: random.normal(size=shape) for key, shape in shapes.items()}
    return Problem(NETWORK, None, inputs, {"wanted/2": wanted}, recurrence)


# The probabilities of a softmax, with what is usually done against overflow; the largest score has no say in the end.
SOFTMAX = """
score(X,K) += weight(K,I) * given(X,I).
largest(X) max= score(X,K).
sum(X) += exp(score(X,K) - largest(X)).
goal += gold(X,K) * (score(X,K) - largest(X) - log(sum(X))) / examples.
"""


def softmax() -> Problem:
    random = np.random.default_rng(5)
    examples, size, classes = 6, 3, 4
    gold = np.eye(classes)[random.integers(classes, size=examples)]
    inputs = {"weight/2": random.normal(size=(classes, size)), "given/2": random.normal(size=(examples, size))}

    def recurrence(a: Algebra, weight: Any, given: Any) -> Any:
        score = given @ weight.T
        likelihood = score - a.library.log(a.library.exp(score).sum(1))[:, None]
        return (likelihood * a.library.asarray(gold)).sum() / examples

    return Problem(SOFTMAX, None, inputs, {"gold/2": gold, "examples/0": [(float(examples),)]}, recurrence)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    **{f"hmm in {s}": lambda s=s: hmm(s) for s in ("real", "log")},
    **{f"cky in {s}": lambda s=s: cky(s) for s in ("real", "log")},
    **{f"edit distance in {s}": lambda s=s: edit_distance(s) for s in ("tropical", "log")},
    "network": network,
    "softmax": softmax,
}
problem_of = cache(lambda name: PROBLEMS[name]())


@cache
def said_by(peer: str, name: str) -> Derivatives:
    problem = problem_of(name)
    return PEERS[peer](problem.semiring, problem.recurrence, list(problem.inputs.values()), problem.directions)


@cache
def function_of(name: str) -> Any:
    problem = problem_of(name)
    return problem.bound.function("goal", inputs=list(problem.inputs), facts=problem.facts)


@cache
def chart_of(name: str) -> Any:
    problem = problem_of(name)
    return problem.bound.run(problem.facts)


def slope(expected: Derivatives, problem: Problem) -> float:
    """The derivative along the problem's directions."""
    return float(sum((g * d).sum() for g, d in zip(expected.gradient, problem.directions, strict=True)))


THOROUGH = ("hmm in log", "cky in real", "network")  # the others are only pulled back: every kind of class is compiled


@pytest.mark.parametrize("name", PROBLEMS)
class TestGradientOfAFunction:
    def test_where_the_facts_are(self, name: str) -> None:
        expected, problem = said_by(PEER, name), problem_of(name)
        value, pullback = function_of(name).vjp(*problem.inputs.values())
        assert_close(value, expected.value)
        for cotangent in (1.0, -2.5):
            for own, theirs in zip(pullback(cotangent), expected.gradient, strict=True):
                assert_close(own, cotangent * theirs)

    def test_elsewhere(self, name: str) -> None:
        problem = problem_of(name)
        elsewhere = [0.75 * array for array in problem.inputs.values()]
        expected = PEERS[PEER](problem.semiring, problem.recurrence, elsewhere, problem.directions)
        value, pullback = function_of(name).vjp(*elsewhere)
        assert_close(value, expected.value)
        for own, theirs in zip(pullback(1.0), expected.gradient, strict=True):
            assert_close(own, theirs)


@pytest.mark.parametrize("name", THOROUGH)
class TestTheSameRecurrence:
    def test_gradient_of_a_chart(self, name: str) -> None:
        expected, problem = said_by(PEER, name), problem_of(name)
        chart = chart_of(name)
        gradient = chart.gradient("goal")
        assert_close(chart["goal"], expected.value)
        assert_close(gradient.value, expected.value)
        for key, theirs in zip(problem.inputs, expected.gradient, strict=True):
            assert_close(gradient[key].values, theirs)

    def test_forward_derivative_of_a_chart(self, name: str) -> None:
        expected, problem = said_by(PEER, name), problem_of(name)
        tangents = chart_of(name).jvp(dict(zip(problem.inputs, problem.directions, strict=True)))
        assert_close(tangents["goal"], slope(expected, problem))

    def test_value_and_forward_derivative_of_a_function(self, name: str) -> None:
        expected, problem, f = said_by(PEER, name), problem_of(name), function_of(name)
        assert_close(f(*problem.inputs.values()), expected.value)
        value, tangent = f.jvp(tuple(problem.inputs.values()), tuple(problem.directions))
        assert_close(value, expected.value)
        assert_close(tangent, slope(expected, problem))

    def test_hessian_vector_product(self, name: str) -> None:
        expected, problem, f = said_by(PEER, name), problem_of(name), function_of(name)
        products = f.hvp(tuple(problem.inputs.values()), tuple(problem.directions))
        for own, theirs in zip(products, expected.curvature, strict=True):
            assert_close(own, theirs, 1e-8)


def test_along_the_winner_there_is_no_curvature() -> None:
    """The cheapest alignment stays the cheapest nearby, and its cost is a sum."""
    problem, f = problem_of("edit distance in tropical"), function_of("edit distance in tropical")
    for product in f.hvp(tuple(problem.inputs.values()), tuple(problem.directions)):
        assert not product.any()


@pytest.mark.parametrize("name", ["hmm in log", "network"])  # no more: jax compiles each for a second
def test_the_peers_agree(name: str) -> None:
    one, other = said_by("jax", name), said_by("torch", name)
    assert_close(one.value, other.value)
    for ours, theirs in zip(one.gradient + one.curvature, other.gradient + other.curvature, strict=True):
        assert_close(ours, theirs)


# -- linear algebra ----------------------------------------------------------------------------------------------------


class TestMatrices:
    """Products and inverses, whose derivatives are formulas."""

    SIZE = 5

    @pytest.fixture(scope="class")
    def matrices(self) -> Array:
        """A, B, C and a direction V, with small entries of both signs."""
        return np.random.default_rng(6).uniform(-0.3, 0.3, size=(4, self.SIZE, self.SIZE))

    # In `facts` the same fact is in several antecedents, in `items` the same item that comes off the agenda.
    PRODUCTS = """
    chain += a(I,J) * b(J,K) * c(K,L) * v(I,L).
    facts += a(I,J) * a(J,K) * a(K,I).
    both(I,J) += a(I,J).
    both(I,J) += a(J,I).
    items += both(I,J) * both(J,K) * both(K,I).
    """

    @pytest.fixture(scope="class")
    def products(self, matrices: Array) -> Any:
        return dg.Program(self.PRODUCTS, "real").bind(dict(zip(("a/2", "b/2", "c/2", "v/2"), matrices, strict=True)))

    def test_a_chain_of_three(self, matrices: Array, products: Any) -> None:
        a, b, c, v = matrices
        value, pullback = products.function("chain", inputs=["a/2", "b/2", "c/2", "v/2"]).vjp(a, b, c, v)
        assert_close(value, (a @ b @ c * v).sum())
        expected = (v @ (b @ c).T, a.T @ v @ c.T, (a @ b).T @ v, a @ b @ c)
        for own, theirs in zip(pullback(1.0), expected, strict=True):
            assert_close(own, theirs)

    @pytest.mark.parametrize("goal", ["facts", "items"])
    def test_the_trace_of_a_cube(self, matrices: Array, products: Any, goal: str) -> None:
        m, v = matrices[0], matrices[3]
        f = products.function(goal, inputs=["a/2"])
        a, along = (m, v) if goal == "facts" else (m + m.T, v + v.T)
        first, second = 3 * (a @ a).T, 3 * (a @ along + along @ a).T
        if goal == "items":
            first, second = first + first.T, second + second.T
        value, pullback = f.vjp(m)
        assert_close(value, np.trace(a @ a @ a))
        assert_close(pullback(1.0)[0], first)
        assert_close(f.jvp((m,), (v,))[1], (first * v).sum())
        assert_close(f.hvp((m,), (v,))[0], second, 1e-8)

    def test_a_sum_over_all_paths_of_a_cyclic_graph(self, matrices: Array) -> None:
        arcs, direction = np.abs(matrices[0]), matrices[3]
        start, finish = matrices[1][0], matrices[1][1]
        source = "path(Y) += start(Y). path(Y) += path(X) * arc(X,Y). goal += path(X) * finish(X)."
        f = (
            dg.Program(source, "real")
            .bind({"arc/2": arcs, "start/1": start, "finish/1": finish})
            .function("goal", inputs=["start/1", "arc/2", "finish/1"], facts={}, tolerance=1e-15)
        )
        closure = np.linalg.inv(np.eye(self.SIZE) - arcs)
        before, after = start @ closure, closure @ finish
        value, pullback = f.vjp(start, arcs, finish)
        assert_close(value, before @ finish)
        for own, theirs in zip(pullback(1.0), (after, np.outer(before, after), before), strict=True):
            assert_close(own, theirs)
        along = (np.zeros(self.SIZE), direction, np.zeros(self.SIZE))
        turned_before, turned_after = before @ direction @ closure, closure @ direction @ after
        turned = np.outer(turned_before, after) + np.outer(before, turned_after)
        for own, theirs in zip(f.hvp((start, arcs, finish), along), (turned_after, turned, turned_before), strict=True):
            assert_close(own, theirs, 1e-8)


# -- inside-outside on a real grammar ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counts:
    """Inside-outside on one sentence: its probability, and how often each rule is expected, row by row."""

    probability: float
    binary: Array
    lexical: Array


def inside_outside(words: Sequence[str], grammar: Mapping[str, list[tuple[Any, ...]]]) -> Counts:
    """By vectors over all binary rules, for each span and split."""
    binary, lexical = grammar["rewrite/3"], grammar["rewrite/2"]
    names = {name for row in binary for name in row[:3]} | {row[0] for row in lexical}
    number = {name: n for n, name in enumerate(sorted(names))}
    parent, left, right = (np.array([number[row[k]] for row in binary]) for k in range(3))
    weight = np.array([row[3] for row in binary])
    n, symbols = len(words), len(number)
    inside, outside = np.zeros((2, n + 1, n + 1, symbols))
    for i, word in enumerate(words):
        for x, w, p in lexical:
            if w == word:
                inside[i, i + 1, number[x]] += p
    spans = [(i, i + width) for width in range(2, n + 1) for i in range(n + 1 - width)]
    for i, k in spans:
        pairs = sum(inside[i, j][left] * inside[j, k][right] for j in range(i + 1, k))
        inside[i, k] = np.bincount(parent, weight * pairs, symbols)
    probability = inside[0, n, number["TOP"]]
    outside[0, n, number["TOP"]] = 1.0
    uses = np.zeros(len(binary))
    for i, k in reversed(spans):
        down = weight * outside[i, k][parent]
        for j in range(i + 1, k):
            from_left, from_right = inside[i, j][left], inside[j, k][right]
            outside[i, j] += np.bincount(left, down * from_right, symbols)
            outside[j, k] += np.bincount(right, down * from_left, symbols)
            uses += down * from_left * from_right
    found = [sum(outside[i, i + 1, number[x]] for i, word in enumerate(words) if word == w) * p for x, w, p in lexical]
    return Counts(probability, uses / probability, np.array(found) / probability)


@needs_wsj
class TestInsideOutside:
    @pytest.fixture(autouse=True)
    def optimised(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Compiled as users have it, as the program written by hand is."""
        monkeypatch.setenv("DYNAGRAD_OPTIMISE", "3")

    @pytest.fixture(scope="class")
    def grammar(self) -> dict[str, list[tuple[Any, ...]]]:
        return wsj_grammar()

    @pytest.fixture(scope="class")
    def sentences(self) -> list[list[str]]:
        """Ten, of 3 to 24 words."""
        every = [words for words in all_sentences() if 3 <= len(words) <= 24]
        return [every[n * (len(every) - 1) // 9] for n in range(10)]

    @pytest.fixture(scope="class")
    def expected(self, grammar: Any, sentences: list[list[str]]) -> list[Counts]:
        return [inside_outside(words, grammar) for words in sentences]

    @pytest.fixture(scope="class")
    def baseline(self, sentences: list[list[str]], tmp_path_factory: pytest.TempPathFactory) -> float:
        folder = tmp_path_factory.mktemp("baseline")
        with by_hand(sentences, folder) as process:  # builds it
            process.communicate(timeout=120)
        command = [folder / "inside_outside", folder, "1", "1000", "1000"]
        said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
        return float(re.findall(r"sum of d log p / d rule (\S+)", said)[0])

    @pytest.fixture(scope="class", params=["real", "log"])
    def bound(self, request: pytest.FixtureRequest, grammar: Any) -> Any:
        return dg.Program(WSJ, semiring=request.param).bind(grammar, values="probabilities")

    def test_a_batch(self, bound: Any, grammar: Any, sentences: list[list[str]], expected: list[Counts]) -> None:
        """The gradient of the log-likelihood of all sentences at once, in either semiring and on two threads."""
        in_log = bound.program.semiring == "log"
        batch = bound.run_batch(
            [sentence_facts(words) for words in sentences],
            query="goal",
            gradient=["rewrite/3", "rewrite/2"],
            objective="sum" if in_log else "log",  # a goal in `log` is the log already
            threads=2,
        )
        assert not batch.errors
        assert_close(np.exp(batch.values) if in_log else batch.values, [c.probability for c in expected])
        sums = {"rewrite/3": sum(c.binary for c in expected), "rewrite/2": sum(c.lexical for c in expected)}
        for key, theirs in sums.items():
            scale = 1.0 if in_log else np.array([row[-1] for row in grammar[key]])
            assert_close(batch.gradient[key].values * scale, theirs)

    def test_expected_counts(
        self, bound: Any, grammar: Any, sentences: list[list[str]], expected: list[Counts]
    ) -> None:
        in_log = bound.program.semiring == "log"
        for words, counts in zip(sentences, expected, strict=True):
            chart = bound.run(sentence_facts(words))
            assert_close(np.exp(chart["goal"]) if in_log else chart["goal"], counts.probability)
            gradient, mine = chart.gradient("goal"), chart.expected_counts("goal")
            for key, theirs in (("rewrite/3", counts.binary), ("rewrite/2", counts.lexical)):
                weights = np.array([row[-1] for row in grammar[key]])
                scale = 1.0 if in_log else weights / counts.probability
                assert_close(gradient[key].values * scale, theirs)
                assert_close(mine[key].values, theirs)
            assert mine["rewrite/2"].values.sum() == pytest.approx(len(words), rel=1e-9)  # a tree has a leaf per word
            assert mine["rewrite/3"].values.sum() == pytest.approx(len(words) - 1, rel=1e-9)

    def test_a_program_written_by_hand(
        self, bound: Any, grammar: Any, sentences: list[list[str]], baseline: float
    ) -> None:
        """The sum over sentences and binary rules of d log p / d rule."""
        weights = np.array([row[-1] for row in grammar["rewrite/3"]])
        total = 0.0
        for words in sentences:
            chart = bound.run(sentence_facts(words))
            gradient = chart.gradient("goal")["rewrite/3"].values
            total += float(sum(gradient / weights if bound.program.semiring == "log" else gradient / chart["goal"]))
        assert total == pytest.approx(baseline, rel=1e-9)
