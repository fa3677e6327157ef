"""Every example that ships runs as it stands, under every order of the agenda, and has the values that it says.

The expected values were not made by the engine; here the oracle, or a closed form, makes each of them once more.
"""

from __future__ import annotations

import itertools
import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import dynagrad as dg
import examples
from dynagrad.rules.parse import parse
from oracle import Key, close, declared_semiring, evaluate, ground, zero_of
from programs import Program, combined

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

SLOW_FOR_THE_ORACLE = {"nussinov"}


def key_of(item: str) -> Key:
    """The item that some text of the rule language names."""
    head = parse(f"{item} = 1.").rules[0].head
    return head.key, tuple(v for a in head.arguments if (v := ground(a, {})) is not None)


def test_all_examples_are_there() -> None:
    folders = {path.name for path in examples.FOLDER.iterdir() if path.is_dir()}
    assert folders == set(examples.NAMES)
    for name in folders:
        readme = (examples.FOLDER / name / "README.md").read_text(encoding="utf-8")
        assert f"dynagrad run examples/{name}/{name}.dyna" in readme
        files = [path for path in (examples.FOLDER / name).glob("*.*.tsv")]
        assert all(f"examples/{name}/{path.name}" in readme for path in files), "the command names all data"


# -- the engine ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", examples.NAMES)
def test_example_has_the_expected_values(name: str) -> None:
    chart = dg.Program(examples.source(name)).run(examples.facts(name))
    assert chart.converged
    for item, value in examples.expected(name):
        assert close(chart[item], value), item


SEMIRING = {name: declared_semiring(parse(examples.source(name))) for name in examples.NAMES}


@pytest.mark.parametrize("agenda", ["priority", "fifo", "lifo"])
@pytest.mark.parametrize("semiring", sorted(set(SEMIRING.values()), key=str), ids=str)
def test_examples_have_the_same_values_in_every_order(semiring: str | None, agenda: str) -> None:
    """The examples of one semiring share one source, each with names of its own: that compiles once."""
    names = [name for name in examples.NAMES if SEMIRING[name] == semiring]
    programs = [Program(_without_semiring(examples.source(name)), examples.facts(name)) for name in names]
    together = combined(programs)
    declared = f":- semiring {semiring}.\n" if semiring else ""
    chart = dg.Program(f"{declared}:- agenda {agenda}.\n{together.source}").run(together.facts)
    assert chart.converged
    for number, name in enumerate(names):
        for item, value in examples.expected(name):
            assert close(chart[f"p{number}_{item}"], value), f"{name}: {item}"


def _without_semiring(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if not line.startswith(":- semiring"))


def test_an_example_runs_from_its_file() -> None:
    path: Path = examples.FOLDER / "dijkstra" / "dijkstra.dyna"
    chart = dg.Program(path).run(examples.facts("dijkstra"))
    assert all(close(chart[item], value) for item, value in examples.expected("dijkstra"))


def test_all_sentences_of_the_grammar_parse() -> None:
    facts = examples.facts("cky")
    grammar = {key: facts[key] for key in ("rewrite/2", "rewrite/3")}
    bound = dg.Program(examples.source("cky")).bind(grammar)
    for sentence, probability in examples.lines(examples.FOLDER / "cky" / "sentences.tsv"):
        words = sentence.split()
        chart = bound.run({"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]})
        assert close(chart["goal"] / float(probability), 1.0), sentence


def test_the_tagger_learns(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(examples.FOLDER / "crf" / "train.py"), run_name="__main__")
    *losses, first, second, third = capsys.readouterr().out.splitlines()
    at = [float(line.rsplit(" ", 1)[1]) for line in losses]
    assert at[0] > 5 and sorted(at, reverse=True) == at and at[-1] < 0.4
    found = [[word.split()[0] for word in line.split("/")[1:]] for line in (first, second, third)]
    assert found == [
        ["pronoun", "verb", "article", "noun"],
        ["article", "noun", "auxiliary", "verb"],
        ["pronoun", "verb", "article", "noun"],
    ]


def test_a_long_sentence_stays_in_range() -> None:
    """Against the forward-backward algorithm with weights that are brought near one at each word."""
    facts = examples.facts("crf")
    emit, move = ({row[:2]: row[2] for row in facts[key]} for key in ("emit/2", "move/2"))
    tags, vocabulary = sorted({t for t, _ in emit}), sorted({w for _, w in emit})
    rng = np.random.default_rng(0)
    words = [vocabulary[i] for i in rng.integers(len(vocabulary), size=400)]
    gold = [tags[i] for i in rng.integers(len(tags), size=400)]
    weigh = np.exp([[move[s, t] for t in tags] for s in tags])
    suits = np.exp([[emit[t, w] for t in tags] for w in words])
    forward, logz = [], 0.0
    at = np.exp([move["start", t] for t in tags]) * suits[0]
    for n in range(400):
        at = at if n == 0 else (at @ weigh) * suits[n]
        logz += math.log(at.sum())
        at = at / at.sum()
        forward.append(at)
    backward = [np.ones(len(tags))]
    for n in range(399, 0, -1):
        after = weigh @ (suits[n] * backward[0])
        backward.insert(0, after / after.sum())
    wanted = {key: dict.fromkeys(rows, 0.0) for key, rows in (("emit/2", emit), ("move/2", move))}
    score = 0.0
    for n, (word, tag) in enumerate(zip(words, gold, strict=True)):
        here = forward[n] * backward[n]
        for t, p in zip(tags, here / here.sum(), strict=True):
            wanted["emit/2"][t, word] += p
            if n == 0:
                wanted["move/2"]["start", t] += p
        before = "start" if n == 0 else gold[n - 1]
        wanted["emit/2"][tag, word] -= 1.0
        wanted["move/2"][before, tag] -= 1.0
        score += emit[tag, word] + move[before, tag]
        if n:
            pairs = forward[n - 1][:, None] * weigh * (suits[n] * backward[n])
            for (i, s), (j, t) in itertools.product(enumerate(tags), repeat=2):
                wanted["move/2"][s, t] += pairs[i, j] / pairs.sum()
    tagger = dg.Program(examples.source("crf")).bind({key: facts[key] for key in wanted})
    sentence = {"word/2": list(enumerate(words, 1)), "tag/2": list(enumerate(gold, 1)), "length/1": [(400,)]}
    chart = tagger.run(sentence)
    assert logz > 800 and close(chart["logz"], logz, 1e-12) and close(chart["loss"], logz - score, 1e-10)
    batch = tagger.run_batch([sentence], query="loss", gradient=list(wanted))
    for key, rows in wanted.items():
        for table in (chart.gradient("loss")[key], batch.gradient[key]):
            for row, derivative in rows.items():
                assert abs(table[row] - derivative) < 1e-9, (key, row)


# -- the expected values ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in examples.NAMES if name not in SLOW_FOR_THE_ORACLE])
def test_oracle_agrees_with_the_expected_values(name: str) -> None:
    program = parse(examples.source(name))
    values = evaluate(program, examples.facts(name))
    for item, value in examples.expected(name):
        key = key_of(item)
        mine = float(values.get(key, zero_of(program, key[0])))
        assert mine == value or close(mine / value, 1.0, 1e-12), item


def _dijkstra(facts: Any) -> dict[str, float]:
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from(facts["road/2"])
    return {
        f"distance({place})": d for place, d in networkx.single_source_dijkstra_path_length(graph, "harbour").items()
    }


def _edit_distance(facts: Any) -> dict[str, float]:
    a, b = ("".join(row[1] for row in facts[key]) for key in ("from/2", "to/2"))
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(row[-1] + 1, before[j] + 1, before[j - 1] + (x != y)))
    return {"goal": float(row[-1])}


def _hmm(best: bool) -> Callable[[Any], dict[str, float]]:
    def compute(facts: Any) -> dict[str, float]:
        states = ["cold", "hot"]
        convert: Callable[[float], float] = math.exp if best else float
        transition = {row[:2]: convert(row[2]) for row in facts["transition/2"]}
        emission = {row[:2]: convert(row[2]) for row in facts["emission/2"]}
        matrix = np.array([[transition[a, b] for b in states] for a in states])
        shows = {o: np.array([emission[a, o] for a in states]) for o in (1, 2, 3)}
        initial, final = (np.array([convert(dict(facts[key])[a]) for a in states]) for key in ("initial/1", "final/1"))
        seen = [row[1] for row in facts["observation/2"]]
        now = initial * shows[seen[0]]
        for o in seen[1:]:
            now = ((now[:, None] * matrix).max(0) if best else now @ matrix) * shows[o]
        return {"goal": math.log((now * final).max()) if best else float(now @ final)}

    return compute


def _nussinov(facts: Any) -> dict[str, float]:
    bases = "".join(row[1] for row in sorted(facts["base/2"]))
    bonds = {"au", "ua", "cg", "gc", "gu", "ug"}
    n = len(bases)
    most = [[0] * (n + 1) for _ in range(n + 1)]
    for i, k in sorted(itertools.combinations(range(n + 1), 2), key=lambda span: span[1] - span[0]):
        paired = [most[i][j] + 1 + most[j + 1][k - 1] for j in range(i, k - 4) if bases[j] + bases[k - 1] in bonds]
        most[i][k] = max([most[i][k - 1], *paired])
    spans = itertools.combinations(range(n + 1), 2)
    return {"goal": float(most[0][n])} | {f"fold({i},{k})": float(most[i][k]) for i, k in spans}


def _components(facts: Any) -> dict[str, float]:
    graph = networkx.Graph(row[:2] for row in facts["edge/2"])
    number = dict(facts["number/1"])
    graph.add_nodes_from(number)
    components = list(networkx.connected_components(graph))
    labels = {f"label({x})": min(number[y] for y in c) for c in components for x in c}
    return {"components": float(len(components))} | labels


def _composition(facts: Any) -> dict[str, float]:
    """All ways to type a word, one by one."""
    arcs: dict[str, list[tuple[str, str, str, float]]] = {}
    for state, read, write, after, weight in facts["typist/4"]:
        arcs.setdefault(state, []).append((read, write, after, weight))

    def total(state: str, word: str, typed: str) -> float:
        result = 1.0 if (state, word, typed) == ("calm", "", "") else 0.0
        for read, write, after, weight in arcs[state]:
            read, write = read.replace("eps", ""), write.replace("eps", "")
            if word.startswith(read) and typed.startswith(write):
                result += weight * total(after, word[len(read) :], typed[len(write) :])
        return result

    typed = "".join(row[1] for row in sorted(facts["typed/2"]))
    words = {row[1]: row[4] for row in facts["speller/4"] if row[1] != "eps"}
    meant = {word: p * total("calm", word, typed) for word, p in words.items()}
    return {f"meant({word})": p for word, p in meant.items()} | {"goal": sum(meant.values())}


def _crf(facts: Any) -> dict[str, float]:
    """All taggings, one by one."""
    emit, move = ({row[:2]: row[2] for row in facts[key]} for key in ("emit/2", "move/2"))
    words, gold = ([row[1] for row in sorted(facts[key])] for key in ("word/2", "tag/2"))

    def score(tags: Any) -> float:
        suits = [emit[pair] for pair in zip(tags, words, strict=True)]
        return math.fsum(suits + [move[pair] for pair in itertools.pairwise(["start", *tags])])

    total = math.fsum(math.exp(score(tags)) for tags in itertools.product({t for t, _ in emit}, repeat=len(words)))
    return {"logz": math.log(total), "score": score(gold), "loss": math.log(total) - score(gold)}


CLOSED_FORMS: dict[str, Callable[[Any], dict[str, float]]] = {
    "dijkstra": _dijkstra,
    "edit_distance": _edit_distance,
    "hmm_forward": _hmm(best=False),
    "hmm_viterbi": _hmm(best=True),
    "nussinov": _nussinov,
    "components": _components,
    "composition": _composition,
    "crf": _crf,
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms_agree_with_the_expected_values(name: str) -> None:
    computed = CLOSED_FORMS[name](examples.facts(name))
    listed = {item: value for item, value in examples.expected(name) if item in computed}
    assert (listed and "goal" in listed) or name in ("dijkstra", "components", "crf")
    for item, value in listed.items():
        assert computed[item] == value or close(computed[item] / value, 1.0, 1e-12), item
