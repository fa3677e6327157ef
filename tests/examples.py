"""Small programs with facts that many tests share: those of the recipes, that of the demo, and some that stand here.

Those that stand here have what no recipe has: a lattice of named states, `min=`, `=` and `if` without a semiring,
arithmetic with squashing functions, negation in many strata. None of the expected values was made by the engine.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dynagrad.cli.demo import DEMO, demo_grammar, facts_of
from recipes import rna

Rows = list[tuple[Any, ...]]

LATTICE = """
% CYK on a lattice: parsing all that a recogniser may have heard.
%
% word(W,I,K) is an arc of an acyclic graph, with the recogniser's cost for hearing W between the states I and K. The
% rules are those for a sentence, where every arc goes from a position to the next: positions need not be numbers in
% a row. In the tropical semiring the goal is the cost of the best parse of the best path.

:- semiring tropical.
:- input rewrite/2, rewrite/3.   % costs of rules
:- input word/3.
:- input start/1, end/1.

constit(X,I,K) += rewrite(X,W)   * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).

goal += start(I) * constit(s,I,K) * end(K).
"""

COMPONENTS = """
% Connected components of an undirected graph: each node learns the smallest number in its component.
%
% min= keeps the smallest value that has arrived, and a node passes its own on along every edge, in both directions.

:- input number/1.     % number(X): a number for the node X, different for each
:- input edge/2.

label(X) min= number(X).
label(Y) min= label(X) * SIDE(edge(X,Y)).
label(X) min= label(Y) * SIDE(edge(X,Y)).

% A component is counted at the node whose own number is the label.
representative(X) = if label(X) == number(X) then 1 else 0.
components += representative(_).
"""

NETWORK = """
% A neural network as rules: each unit sums its weighted inputs and squashes the sum.
%
% No semiring is declared, so a right side is plain arithmetic, and each predicate has its own aggregator. The network
% computes `exclusive or` for all examples at once: the variable X runs over them.

:- input example/2.        % example(X,I): the value of the input unit I in the example X
:- input desired/1.        % desired(X): what the network should answer
:- input first/2.          % first(I,H): the weight from an input unit to a hidden unit
:- input second/1.         % second(H): the weight from a hidden unit to the answer
:- input bias/1.

total(X,H) += first(I,H) * example(X,I).
hidden(X,H) = sigmoid(total(X,H) + bias(H)).

score(X) += second(H) * hidden(X,H).
answer(X) = sigmoid(score(X) + bias(answer)).

loss += (answer(X) - desired(X)) ^ 2.
worst max= abs(answer(X) - desired(X)).
"""

REACHABILITY = """
% A game on a graph, solved backwards with negation.
%
% A token stands on a node; the players take turns in moving it along an arc; who cannot move loses. A node is lost
% when every move from it goes to a won one, and won when some move goes to a lost one. `not` asks for what is absent,
% and so needs the predicate to be complete: each depth of the game is a predicate of its own, and looks only at the
% one before it.

:- semiring boolean.
:- input move/2.
:- input start/1.

node(X) += move(X,_).
node(Y) += move(_,Y).

% What a token that begins at the start can ever reach, and what it cannot.
reached(X) += start(X).
reached(Y) += reached(X) * move(X,Y).
unreached(X) += node(X) for not reached(X).

% Depth 0: no move at all.
lost0(X) += node(X) for not move(X,_).
% Depth 1: a move to a node that is lost.
won1(X) += move(X,Y) * lost0(Y).
% Depth 2: no move that escapes from the won nodes; and so on.
escape2(X) += move(X,Y) for not won1(Y).
lost2(X) += node(X) for not escape2(X).
won3(X) += move(X,Y) * lost2(Y).
escape4(X) += move(X,Y) for not won3(Y).
lost4(X) += node(X) for not escape4(X).
won5(X) += move(X,Y) * lost4(Y).

% What is neither, so far: with this graph, the nodes from which both players can go on for ever.
open(X) += node(X) for not won5(X), not lost4(X).
"""

NUSSINOV = """
% Nussinov's algorithm: the most base pairs that an RNA molecule can form without crossing.
%
% fold(I,K) is the largest number of pairs among the bases between the positions I and K. The last base is unpaired,
% or it pairs with one before it, and what lies between folds by itself. The viterbi semiring takes the largest of
% sums.

:- semiring viterbi.
:- input base/2.      % base(I,B): the base after position I is B
:- input length/1.

bond(a,u) = 1.  bond(u,a) = 1.
bond(c,g) = 1.  bond(g,c) = 1.
bond(g,u) = 1.  bond(u,g) = 1.   % the wobble pair

% A hairpin has at least three bases in its loop.
pair(J,K) += base(J,A) * base(K,B) * bond(A,B) for K > J + 3.

fold(0,0) = 0.
fold(I+1,I+1) += base(I,_).                               % nothing is folded yet
fold(I,K+1) += fold(I,K) * base(K,_).                     % the last base is unpaired
fold(I,K+1) += fold(I,J) * fold(J+1,K) * pair(J,K).       % it pairs with the base after J

goal += fold(0,N) * length(N).
"""

HERE: dict[str, tuple[str, dict[str, Rows], dict[str, float]]] = {
    "lattice": (
        LATTICE,
        {
            "end/1": [(9, 0.0), (10, 0.0)],
            "rewrite/2": [
                ("np", "we", 1.0),
                ("adj", "wee", 4.0),
                ("v", "recognise", 2.5),
                ("v", "wreck", 2.5),
                ("det", "a", 0.5),
                ("adj", "nice", 1.0),
                ("np", "speech", 2.25),
                ("n", "beach", 2.0),
                ("n", "peach", 2.5),
                ("n", "speech", 2.0),
                ("p", "on", 0.5),
                ("np", "sunday", 2.0),
                ("np", "sundays", 2.5),
            ],
            "rewrite/3": [
                ("s", "np", "vp", 0.0),
                ("vp", "v", "np", 0.5),
                ("vp", "vp", "pp", 1.0),
                ("np", "np", "pp", 1.25),
                ("np", "det", "nbar", 1.0),
                ("np", "det", "n", 0.75),
                ("nbar", "adj", "n", 0.5),
                ("pp", "p", "np", 0.0),
            ],
            "start/1": [(0, 0.0)],
            "word/3": [
                ("we", 0, 1, 1.0),
                ("wee", 0, 1, 1.5),
                ("recognise", 1, 4, 2.0),
                ("wreck", 1, 2, 0.75),
                ("a", 2, 3, 0.25),
                ("nice", 3, 5, 0.5),
                ("speech", 4, 7, 1.5),
                ("beach", 5, 7, 1.0),
                ("peach", 5, 7, 1.25),
                ("on", 7, 8, 0.5),
                ("sunday", 8, 9, 0.5),
                ("sundays", 8, 10, 0.25),
            ],
        },
        {
            "goal": 15.25,
            "constit(s,0,7)": 10.75,
            "constit(s,0,9)": 15.25,
            "constit(s,0,10)": 15.5,
            "constit(np,0,1)": 2.0,
            "constit(vp,1,7)": 8.75,
        },
    ),
    "components": (
        COMPONENTS,
        {
            "edge/2": [
                ("ant", "bee"),
                ("bee", "cat"),
                ("cat", "ant"),
                ("dog", "eel"),
                ("fox", "gnu"),
                ("gnu", "hen"),
                ("hen", "ibis"),
                ("ibis", "jay"),
                ("kiwi", "dog"),
            ],
            "number/1": [
                ("ant", 1.0),
                ("bee", 2.0),
                ("cat", 3.0),
                ("dog", 4.0),
                ("eel", 5.0),
                ("fox", 6.0),
                ("gnu", 7.0),
                ("hen", 8.0),
                ("ibis", 9.0),
                ("jay", 10.0),
                ("kiwi", 11.0),
                ("lynx", 12.0),
            ],
        },
        {
            "components": 4.0,
            "label(ant)": 1.0,
            "label(cat)": 1.0,
            "label(kiwi)": 4.0,
            "label(jay)": 6.0,
            "label(lynx)": 12.0,
            "representative(fox)": 1.0,
            "representative(jay)": 0.0,
        },
    ),
    "network": (
        NETWORK,
        {
            "bias/1": [("some", -2.5), ("all", -7.0), ("answer", -3.5)],
            "desired/1": [("neither", 0.0), ("left", 1.0), ("right", 1.0), ("both", 0.0)],
            "example/2": [
                ("neither", "a", 0.0),
                ("neither", "b", 0.0),
                ("left", "a", 1.0),
                ("left", "b", 0.0),
                ("right", "a", 0.0),
                ("right", "b", 1.0),
                ("both", "a", 1.0),
                ("both", "b", 1.0),
            ],
            "first/2": [("a", "some", 6.0), ("b", "some", 6.0), ("a", "all", 4.5), ("b", "all", 4.5)],
            "second/1": [("some", 8.0), ("all", -8.5)],
        },
        {
            "loss": 0.006378308230781601,
            "worst": 0.052110153017790733,
            "answer(neither)": 0.052110153017790733,
            "answer(left)": 0.97393389508671,
            "answer(right)": 0.97393389508671,
            "answer(both)": 0.04799954721185146,
            "hidden(left,all)": 0.07585818002124356,
        },
    ),
    "reachability": (
        REACHABILITY,
        {
            "move/2": [
                ("start", "a"),
                ("start", "b"),
                ("a", "c"),
                ("b", "c"),
                ("b", "d"),
                ("c", "end"),
                ("d", "c"),
                ("e", "a"),
                ("e", "d"),
                ("loop1", "loop2"),
                ("loop2", "loop1"),
                ("loop2", "c"),
                ("start", "loop1"),
                ("island", "end"),
                ("far", "island"),
                ("g", "b"),
                ("h", "g"),
            ],
            "start/1": [("start",)],
        },
        {
            "won5(start)": 1.0,
            "won1(c)": 1.0,
            "won3(c)": 1.0,
            "lost0(end)": 1.0,
            "lost2(a)": 1.0,
            "won3(b)": 1.0,
            "lost4(g)": 1.0,
            "won5(h)": 1.0,
            "lost4(b)": 0.0,
            "open(loop1)": 1.0,
            "open(loop2)": 1.0,
            "open(a)": 0.0,
            "reached(end)": 1.0,
            "reached(e)": 0.0,
            "unreached(e)": 1.0,
            "unreached(island)": 1.0,
        },
    ),
    "nussinov": (
        NUSSINOV,
        {"base/2": list(enumerate(rna.TRNA)), "length/1": [(len(rna.TRNA),)]},
        {"goal": 28.0, "fold(0,20)": 6.0, "fold(26,44)": 6.0, "fold(48,66)": 6.0, "fold(0,76)": 28.0},
    ),
    "cky": (
        ":- semiring real.\n" + (DEMO / "parser.dyna").read_text("utf-8"),
        {**demo_grammar(), **facts_of("the girl saw the old man with the telescope in the park")},
        {
            "goal": 5.5728477746643003e-11,
            "constit(s,0,12)": 5.5728477746643003e-11,
            "constit(s,0,9)": 2.8733528338808857e-08,
            "constit(np,0,2)": 0.02244,
            "constit(np,3,12)": 8.097806657740805e-09,
            "constit(vp,2,12)": 3.104304687313001e-09,
            "constit(pp,6,12)": 6.352016000000003e-06,
            "constit(np,3,6)": 0.003437280000000001,
            "constit(v,2,3)": 0.45,
        },
    ),
}

SENTENCES: dict[str, float] = {
    "the girl saw the old man with the telescope in the park": 5.5728477746643003e-11,
    "time flies like an arrow": 1.5823872000000003e-07,
    "fruit flies like a banana": 2.4773760000000005e-07,
    "they saw her duck": 1.1543040000000002e-05,
    "visiting relatives can duck": 1.152e-06,
    "she gave the man a banana and the girl slept": 2.2089969893376014e-12,
    "i knew that the old man flies yesterday": 9.123256074240003e-10,
    "the old man the house": 7.609254400000004e-07,
    "mary saw the man and the girl on the hill with a telescope quickly": 3.93315227447044e-15,
}
"""Sentences of the demo's grammar, with their probabilities."""

RECIPES: dict[str, str | None] = {
    "aligner": "real",
    "ccg": "real",
    "cky": "real",
    "classifier": None,
    "collins": "real",
    "crf": None,
    "ctc": None,
    "earley": "real",
    "edit_distance": "real",
    "eisner": "viterbi",
    "gotoh": "viterbi",
    "hmm": "real",
    "hsmm": "viterbi",
    "induction": "real",
    "itg": "real",
    "mdp": None,
    "neural": "viterbi",
    "pagerank": None,
    "points_to": None,
    "rna": "viterbi",
    "segmenter": "real",
    "shortest_paths": None,
    "tagger": "real",
    "transducers": "real",
    "transliteration": "real",
    "treebank": "real",
}
"""The semiring in which each recipe is run here; None where its program says so itself."""

NAMES = sorted([*HERE, *(f"{name}_recipe" for name in RECIPES)])


def source(name: str) -> str:
    """The program, with its semiring declared."""
    if name in HERE:
        return HERE[name][0]
    recipe = name.removesuffix("_recipe")
    text: str = importlib.import_module(f"recipes.{recipe}").PROGRAM
    return text if RECIPES[recipe] is None else f":- semiring {RECIPES[recipe]}.\n{text}"


@cache
def _facts(name: str) -> Mapping[str, Rows]:
    if name in HERE:
        return HERE[name][1]
    shared, examples = importlib.import_module(f"recipes.{name.removesuffix('_recipe')}").data("small")
    found = {key: rows(key, table) for key, table in {**shared, **examples[0]}.items()}
    if name == "rna_recipe":  # loops as long as the molecule have no use, and make the oracle slow
        found = {
            key: [row for row in table if sum(n for n in row if isinstance(n, int)) < 20 or key == "base/2"]
            for key, table in found.items()
        }
    return found


def facts(name: str) -> dict[str, Rows]:
    """The facts, as rows."""
    return {key: list(table) for key, table in _facts(name).items()}


def rows(key: str, table: Any) -> Rows:
    """Any form of table that a recipe gives, as rows."""
    arity = int(key.rpartition("/")[2])
    if isinstance(table, np.ndarray):
        return [(*map(int, place), float(table[place])) for place in np.ndindex(table.shape)]
    if isinstance(table, tuple):
        arguments, values = table
        return [(*map(int, row), float(value)) for row, value in zip(arguments, values, strict=True)]
    if arity == 0 and not isinstance(table, list):
        return [(float(table),)]
    return list(table)


def expected(name: str) -> Iterable[tuple[str, float]]:
    """Items, as a program writes them, and their values, where they are listed here."""
    return HERE[name][2].items()


def write(name: str, folder: Path) -> Path:
    """The program and its facts as files of a folder; the path of the program."""
    program = folder / f"{name}.dyna"
    program.write_text(source(name), encoding="utf-8")
    for key, table in _facts(name).items():
        lines = ("\t".join(map(str, row)) + "\n" for row in table)
        (folder / f"{key.replace('/', '.')}.tsv").write_text("".join(lines), encoding="utf-8")
    return program
