"""The k best trees of a sentence beside torch-struct's and nltk's, from the same probabilities.

torch-struct takes its maxima over lists of the k best (a semiring), so that every cell and every step costs k; nltk's
`InsideChartParser` makes all trees and sorts them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import dynagrad as dg

from .common import Row, alternate, python, timed

PROGRAM = """
constit(X,I,I+1) += emits(X,I).
constit(X,I,K)   += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal             += root(X) * constit(X,0,N) * end(N).
"""
RULES = [
    *[("S", "NP", "VP", 1.0), ("NP", "Det", "N", 0.4), ("NP", "NP", "PP", 0.25), ("VP", "V", "NP", 0.55)],
    *[("VP", "VP", "PP", 0.35), ("PP", "P", "NP", 1.0)],
]
WORDS = [
    *[("NP", "I", 0.2), ("NP", "telescopes", 0.15), ("VP", "saw", 0.1), ("Det", "the", 0.7), ("Det", "a", 0.3)],
    *[("N", "man", 0.5), ("N", "park", 0.3), ("N", "telescope", 0.2), ("V", "saw", 1.0), ("P", "with", 0.6)],
    ("P", "in", 0.4),
]
TREES = {3: 14, 7: 1430}
"""How many trees a sentence has by the number of its prepositional phrases, of which each may go with all before it."""
NLTK, TORCH_STRUCT = "nltk's InsideChartParser", "torch-struct"


Solver = Callable[[int], list[float]]
"""The weights of the k best trees, and the trees."""


class Grammar(NamedTuple):
    """Log probabilities of a sentence, as torch-struct has them: symbols of rules first, then those of words."""

    emits: Any  # by position and symbol of words
    rewrite: Any  # by symbol of rules, and two symbols of any kind
    root: Any  # by symbol of rules


def sentence(phrases: int) -> list[str]:
    """The words of an ambiguous sentence."""
    return ["I", "saw", "the", "man", *["with", "a", "telescope", "in", "the", "park"] * phrases][: 4 + 3 * phrases]


def ambiguous(phrases: int) -> Grammar:
    """An ambiguous sentence. A symbol that rewrites and emits is one of each kind."""
    words = sentence(phrases)
    inner, outer = sorted({r[0] for r in RULES}), sorted({r[0] for r in WORDS})
    places = {x: [i for i, y in enumerate([*inner, *outer]) if y == x] for x in [*inner, *outer]}
    count = len(inner) + len(outer)
    emits, rewrite = np.full((len(words), len(outer)), -np.inf), np.full((len(inner), count, count), -np.inf)
    for i, word in enumerate(words):
        for x, w, p in WORDS:
            if w == word:
                emits[i, outer.index(x)] = math.log(p)
    for x, y, z, p in RULES:
        rewrite[np.ix_([inner.index(x)], places[y], places[z])] = math.log(p)
    return Grammar(emits, rewrite, np.where(np.array(inner) == "S", 0.0, -np.inf))


def dense(symbols: int, words: int) -> Grammar:
    """Any sentence, with rules of all symbols."""
    random = np.random.default_rng(0)

    def logs(*shape: int) -> Any:
        x = random.normal(size=shape)
        return x - np.log(np.exp(x).sum())

    rules = np.stack([logs(2 * symbols, 2 * symbols) for _ in range(symbols)])
    return Grammar(np.stack([logs(symbols) for _ in range(words)]), rules, logs(symbols))


def own(grammar: Grammar) -> Solver:
    """The weights of the k best trees, which are made; the program is compiled before."""
    inner, count = len(grammar.root), len(grammar.root) + grammar.emits.shape[1]
    bound = dg.Program(PROGRAM, "viterbi").bind(
        {
            "rewrite/3": [(*x, w) for x, w in np.ndenumerate(grammar.rewrite) if w > -np.inf],
            "root/1": [(x, float(w)) for x, w in enumerate(grammar.root) if w > -np.inf],
        }
    )
    assert grammar.rewrite.shape == (inner, count, count)

    def solve(k: int) -> list[float]:
        emits = [(inner + x, i, float(w)) for (i, x), w in np.ndenumerate(grammar.emits) if w > -np.inf]
        chart = bound.run({"emits/2": emits, "end/1": [(len(grammar.emits),)]})
        found = list(chart.kbest("goal", k))
        assert all(d.tree() for d in found)
        return [d.weight for d in found]

    solve(1)
    return solve


def torch_struct(grammar: Grammar, *, weights: bool = False) -> Solver:
    """The same by torch-struct, whose trees are arrays of spans; or their weights, which it works out apart.

    Raises ImportError without it.
    """
    import torch  # an optional peer

    # It does not say what its arguments may be, which torch warns of as soon as torch-struct is used.
    torch.distributions.Distribution.set_default_validate_args(False)
    import torch_struct as struct  # an optional peer

    emits, rules, roots = (torch.from_numpy(np.maximum(a, -1e9))[None] for a in grammar)

    def solve(k: int) -> list[float]:
        cfg = struct.SentCFG((emits, rules, roots), lengths=torch.tensor([emits.shape[1]]))
        if weights:
            found: list[float] = cfg.kmax(k)[:, 0].tolist()
            return found
        spans = cfg.topk(k)[3]
        assert spans.shape[0] == k
        return []

    return solve


def nltk_all(phrases: int) -> Solver:
    """The same by nltk, for an ambiguous sentence. Raises ImportError without it."""
    import nltk  # an optional peer

    def symbol(x: str) -> Any:
        return nltk.Nonterminal(x)

    productions: list[Any] = [nltk.ProbabilisticProduction(symbol(x), [w], prob=p) for x, w, p in WORDS]
    productions += [nltk.ProbabilisticProduction(symbol(x), [symbol(y), symbol(z)], prob=p) for x, y, z, p in RULES]
    parser = nltk.parse.pchart.InsideChartParser(nltk.PCFG(symbol("S"), productions))

    def solve(k: int) -> list[float]:
        return [math.log(tree.prob()) for tree in list(parser.parse(sentence(phrases)))[:k]]

    return solve


MEMORY = """
import re
from benchmarks import k_best

def kilobytes(name):
    return float(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

solve = k_best.{name}(k_best.dense({symbols}, {words}))
solve(1)
before = kilobytes("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # the peak begins here
solve({k})
print((kilobytes("VmHWM") - before) / 1e3)
"""


def k_best() -> list[Row]:
    """A sentence of few trees, beside both; and one of many, with rules of all symbols, beside torch-struct."""
    symbols, words, k = 10, 15, 10
    few, more = TREES
    many = dense(symbols, words)
    any_rule = f"{2 * symbols} symbols with all rules, {words} words: "
    rows = [
        *_beside(_what(more, k), own(ambiguous(more)), k, NLTK, lambda: nltk_all(more), lambda: nltk_all(more)),
        *_beside(
            _what(few, k),
            own(ambiguous(few)),
            k,
            TORCH_STRUCT,
            lambda: torch_struct(ambiguous(few)),
            lambda: torch_struct(ambiguous(few), weights=True),
        ),
        *_beside(
            f"{any_rule}the {k} best trees",
            own(many),
            k,
            TORCH_STRUCT,
            lambda: torch_struct(many),
            lambda: torch_struct(many, weights=True),
        ),
    ]
    if all(row.peers is None for row in rows if row.peer == TORCH_STRUCT):
        return rows
    taken = [python(MEMORY.format(name=n, symbols=symbols, words=words, k=k))[0] for n in ("own", "torch_struct")]
    return [*rows, Row(f"{any_rule}memory for the {k} best trees", taken[0], "MB", TORCH_STRUCT, taken[1])]


def _what(phrases: int, k: int) -> str:
    return f"{len(sentence(phrases))} ambiguous words: the {k} best of {TREES[phrases]:,} trees"


def _beside(
    what: str, solve: Solver, k: int, peer: str, make: Callable[[], Solver], weigh: Callable[[], Solver]
) -> list[Row]:
    """Our time and a peer's for the k best trees, and how far their weights are apart."""
    try:
        theirs, weights = make(), weigh()
    except ImportError as error:
        return [Row(what, peer=peer, note=f"{error.name} is not installed")]
    pairs = list(zip(solve(k), weights(k), strict=True))
    mine, other = alternate(
        lambda: min(timed(lambda: solve(k)) for _ in range(5)), lambda: timed(lambda: theirs(k)), repeats=2
    )
    worst = max(abs(a - b) / abs(b) for a, b in pairs)
    return [
        Row(what, mine, "s", peer, other),
        Row(f"{what}: worst relative difference of a weight", worst, "", target=1e-9, note=f"from {peer}"),
    ]
