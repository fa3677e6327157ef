"""Values against peers: the same problems solved by scipy, networkx, hmmlearn, nltk, and by plain loops.

Costs a few seconds.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import networkx
import numpy as np
import numpy.typing as npt
import pytest

import dynagrad as dg
from oracle import close

OPTIMISED = True  # compiled as users have it

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

Matrix = npt.NDArray[np.float64]


@cache
def program(source: str, semiring: str | None = None) -> Any:
    return dg.Program(source, semiring=semiring)


# -- graphs ------------------------------------------------------------------------------------------------------------

PATHS = "path(Y) += start(Y). path(Y) += path(X) * arc(X,Y)."
Arcs = list[tuple[int, int, float]]


def random_arcs(nodes: int, arcs: int, seed: int) -> Arcs:
    """Arcs of a random directed graph, no two between the same nodes, with loops."""
    random = np.random.default_rng(seed)
    ends = {(int(x), int(y)) for x, y in random.integers(nodes, size=(arcs, 2))}
    return [(x, y, float(cost)) for (x, y), cost in zip(sorted(ends), random.exponential(size=len(ends)), strict=True)]


@pytest.mark.parametrize("nodes, arcs, seed", [(1, 1, 0), (20, 30, 1), (50, 400, 2), (400, 1200, 3), (2000, 20_000, 4)])
def test_shortest_paths(nodes: int, arcs: int, seed: int) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    listed = random_arcs(nodes, arcs, seed)
    chart = program(PATHS, "tropical").run({"start/1": [(0,)], "arc/2": listed})
    mine = {x: cost for x, cost in chart.table("path/1")}

    graph = networkx.DiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_weighted_edges_from(listed)
    theirs = networkx.single_source_dijkstra_path_length(graph, 0)
    assert mine.keys() == theirs.keys()
    assert all(close(mine[x], theirs[x], 1e-12) for x in theirs)

    x, y, cost = zip(*listed, strict=True)
    places = np.array([x, y], np.int32)  # the only ones that the oldest scipy walks along
    matrix = sparse.csr_array((cost, tuple(places)), shape=(nodes, nodes))
    distances = pytest.importorskip("scipy.sparse.csgraph").dijkstra(matrix, indices=0)
    assert set(np.flatnonzero(np.isfinite(distances))) == mine.keys()
    assert all(close(mine[v], distances[v], 1e-12) for v in mine)
    if nodes > 1:  # best first: each node is settled once
        assert chart.stats.pops == len(mine)


@pytest.mark.parametrize("nodes, arcs, seed", [(8, 9, 5), (30, 40, 6), (60, 200, 7)])
def test_transitive_closure(nodes: int, arcs: int, seed: int) -> None:
    source = "reach(X,Y) += arc(X,Y). reach(X,Z) += reach(X,Y) * arc(Y,Z)."
    listed = [(x, y) for x, y, _ in random_arcs(nodes, arcs, seed)]
    chart = program(source, "boolean").run({"arc/2": listed})
    mine = {(x, y) for x, y, _ in chart.table("reach/2")}
    closure = networkx.transitive_closure(networkx.DiGraph(listed), reflexive=False)
    assert mine == set(closure.edges)


def test_the_number_of_paths_of_an_acyclic_graph() -> None:
    listed = [(min(x, y), max(x, y), 1 + (x + y) % 9) for x, y, _ in random_arcs(60, 1200, 8) if x != y]
    matrix = [[0] * 60 for _ in range(60)]
    for x, y, n in listed:
        matrix[x][y] += n
    paths = [1] + [0] * 59
    for y in range(60):
        paths[y] += sum(paths[x] * matrix[x][y] for x in range(y))
    chart = program(PATHS, "count").run({"start/1": [(0, 1)], "arc/2": listed})
    assert {x: n for x, n in chart.table("path/1")} == {x: n for x, n in enumerate(paths) if n}
    assert max(paths) > 2**53


# -- hidden Markov models ----------------------------------------------------------------------------------------------

HMM = """
forward(0,S) += initial(S) * emission(S,O) * observation(0,O).
forward(I+1,T) += forward(I,S) * transition(S,T) * emission(T,O) * observation(I+1,O).
goal += forward(N-1,_S) * length(N).
"""


class TestHiddenMarkovModel:
    STATES, SYMBOLS = 6, 9

    @pytest.fixture(scope="class")
    def parameters(self) -> tuple[Matrix, Matrix, Matrix]:
        random = np.random.default_rng(11)
        initial = random.dirichlet(np.ones(self.STATES))
        transition = random.dirichlet(np.ones(self.STATES), size=self.STATES)
        emission = random.dirichlet(np.ones(self.SYMBOLS), size=self.STATES)
        return initial, transition, emission

    @pytest.fixture(scope="class")
    def model(self, parameters: tuple[Matrix, Matrix, Matrix]) -> Any:
        hmm = pytest.importorskip("hmmlearn.hmm")
        model = hmm.CategoricalHMM(n_components=self.STATES, n_features=self.SYMBOLS)
        model.startprob_, model.transmat_, model.emissionprob_ = parameters
        return model

    def bound(self, semiring: str, parameters: tuple[Matrix, Matrix, Matrix]) -> Any:
        facts = dict(zip(("initial/1", "transition/2", "emission/2"), parameters, strict=True))
        return program(HMM, semiring).bind(facts, values="probabilities")  # dense tables over 0, 1, ...

    def observed(self, length: int) -> tuple[list[int], dict[str, Any]]:
        seen = [int(o) for o in np.random.default_rng(length).integers(self.SYMBOLS, size=length)]
        return seen, {"observation/2": list(enumerate(seen)), "length/1": [(length,)]}

    @pytest.mark.parametrize("length", [1, 2, 50, 2000])
    def test_forward_in_log(self, length: int, model: Any, parameters: tuple[Matrix, Matrix, Matrix]) -> None:
        seen, facts = self.observed(length)
        chart = self.bound("log", parameters).run(facts)
        assert chart["goal"] == pytest.approx(model.score(np.array(seen)[:, None]), rel=1e-9)
        assert chart.stats.pops == length * self.STATES

    @pytest.mark.parametrize("length", [1, 2, 50])
    def test_forward_in_real(self, length: int, model: Any, parameters: tuple[Matrix, Matrix, Matrix]) -> None:
        seen, facts = self.observed(length)
        found = self.bound("real", parameters).run(facts)["goal"]
        assert math.log(found) == pytest.approx(model.score(np.array(seen)[:, None]), rel=1e-9)

    @pytest.mark.parametrize("length", [1, 2, 200])
    def test_the_best_sequence(self, length: int, model: Any, parameters: tuple[Matrix, Matrix, Matrix]) -> None:
        seen, facts = self.observed(length)
        found = self.bound("viterbi", parameters).run(facts)["goal"]
        assert found == pytest.approx(model.decode(np.array(seen)[:, None])[0], rel=1e-9)


# -- grammars ----------------------------------------------------------------------------------------------------------

CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit('S',0,N) * end(N).
"""
GRAMMAR = """
S -> NP VP [0.9] | S PP [0.1]
NP -> Det N [0.5] | NP PP [0.25] | 'I' [0.125] | 'fish' [0.125]
VP -> V NP [0.7] | VP PP [0.2] | 'fish' [0.1]
PP -> P NP [1.0]
V -> 'saw' [0.6] | 'fish' [0.4]
Det -> 'the' [0.7] | 'my' [0.3]
N -> 'man' [0.4] | 'telescope' [0.3] | 'park' [0.2] | 'fish' [0.1]
P -> 'with' [0.5] | 'in' [0.5]
"""
SENTENCES = (
    "I fish",
    "fish fish fish",
    "I saw the man with my telescope",
    "the man in my park saw fish with the telescope in the park",
    "I saw the man with the telescope in my park with fish in the telescope",
    "telescope the saw",
)


class TestGrammar:
    @pytest.fixture(scope="class")
    def grammar(self) -> Any:
        return pytest.importorskip("nltk").PCFG.fromstring(GRAMMAR)

    @pytest.fixture(scope="class")
    def bound(self, grammar: Any) -> dict[str, Any]:
        rules = [((str(p.lhs()), *map(str, p.rhs())), p.prob()) for p in grammar.productions()]

        def bind(semiring: str, counted: bool) -> Any:
            rows = [(*names, 1 if counted else p) for names, p in rules]
            facts = {f"rewrite/{n}": [row for row in rows if len(row) == n + 1] for n in (2, 3)}
            return program(CKY, semiring).bind(facts, values="weights" if counted else "probabilities")

        return {semiring: bind(semiring, semiring == "count") for semiring in ("viterbi", "count", "real")}

    def goal(self, bound: dict[str, Any], semiring: str, sentence: str) -> Any:
        words = sentence.split()
        facts = {"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]}
        return bound[semiring].run(facts)["goal"]

    @pytest.mark.parametrize("sentence", SENTENCES)
    def test_the_best_parse(self, grammar: Any, bound: dict[str, Any], sentence: str) -> None:
        parses = list(pytest.importorskip("nltk").ViterbiParser(grammar).parse(sentence.split()))
        assert close(math.exp(self.goal(bound, "viterbi", sentence)), parses[0].prob() if parses else 0.0)

    @pytest.mark.parametrize("sentence", SENTENCES)
    def test_all_parses(self, grammar: Any, bound: dict[str, Any], sentence: str) -> None:
        parses = list(pytest.importorskip("nltk").InsideChartParser(grammar).parse(sentence.split()))
        assert bool(parses) == (sentence != SENTENCES[-1])
        assert self.goal(bound, "count", sentence) == len(parses)
        assert close(self.goal(bound, "real", sentence), math.fsum(p.prob() for p in parses))


# -- plain dynamic programs --------------------------------------------------------------------------------------------

EDIT = """
:- semiring tropical.
distance(0,0) = 0.
distance(I+1,J) += distance(I,J) * from(I,_) * 1.
distance(I,J+1) += distance(I,J) * to(J,_) * 1.
distance(I+1,J+1) += distance(I,J) * from(I,C) * to(J,C).
distance(I+1,J+1) += distance(I,J) * from(I,C) * to(J,D) * 1 for C != D.
goal += distance(I,J) * lengths(I,J).
"""


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


@pytest.mark.parametrize(
    "a, b",
    [
        ("kitten", "sitting"),
        ("", ""),
        ("", "abc"),
        ("abc", ""),
        ("a", "a"),
        ("intention", "execution"),
        ("ab" * 60, "ba" * 50),
    ],
)
def test_edit_distance(a: str, b: str) -> None:
    facts = {"from/2": list(enumerate(a)), "to/2": list(enumerate(b)), "lengths/2": [(len(a), len(b))]}
    chart = program(EDIT).run(facts)
    assert chart["goal"] == edit_distance(a, b)
    assert len(chart.table("distance/2")) == (len(a) + 1) * (len(b) + 1)


NUSSINOV = """
:- semiring viterbi.
bond(a,u) = 1. bond(u,a) = 1. bond(c,g) = 1. bond(g,c) = 1. bond(g,u) = 1. bond(u,g) = 1.
pair(J,K) += base(J,A) * base(K,B) * bond(A,B) for K > J + 3.
fold(0,0) = 0.
fold(I+1,I+1) += base(I,_).
fold(I,K+1) += fold(I,K) * base(K,_).
fold(I,K+1) += fold(I,J) * fold(J+1,K) * pair(J,K).
goal += fold(0,N) * length(N).
"""


def most_pairs(bases: str) -> int:
    bonds = {"au", "ua", "cg", "gc", "gu", "ug"}
    n = len(bases)
    best = [[0] * (n + 1) for _ in range(n + 2)]
    for width in range(2, n + 1):
        for i in range(n - width + 1):
            k = i + width
            best[i][k] = best[i][k - 1]
            for j in range(i, k - 4):
                if bases[j] + bases[k - 1] in bonds:
                    best[i][k] = max(best[i][k], best[i][j] + 1 + best[j + 1][k - 1])
    return best[0][n]


@pytest.mark.parametrize("length", [0, 1, 4, 5, 12, 30, 70])
def test_rna_folding(length: int) -> None:
    bases = "".join(np.random.default_rng(length).choice(list("acgu"), size=length))
    chart = program(NUSSINOV).run({"base/2": list(enumerate(bases)), "length/1": [(length,)]})
    assert chart["goal"] == most_pairs(bases)
    assert len(chart.table("fold/2")) == (length + 1) * (length + 2) // 2
