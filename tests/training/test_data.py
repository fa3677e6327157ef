"""Where data come from, and what of their answers is known: nothing, a part, all. Costs two seconds."""

from __future__ import annotations

import gc
import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.training.examples import DataPasses

SENTENCES = ["the dog barks", "she runs", "the cat sees the dog"]
TABLE = {
    "sentence": [n for n, s in enumerate(SENTENCES) for _ in s.split()],
    "word": [w for s in SENTENCES for w in s.split()],
    "place": [i for s in SENTENCES for i, _ in enumerate(s.split())],
}


# -- tables ------------------------------------------------------------------------------------------------------------


def forms_of_tables() -> Iterator[tuple[str, Any]]:
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    yield "dict", TABLE
    yield "pandas", pandas.DataFrame(TABLE)
    yield "polars", polars.DataFrame(TABLE)
    yield "arrow", arrow.table(TABLE)
    yield "records", np.rec.fromarrays([np.array(c) for c in TABLE.values()], names=list(TABLE))


def test_every_form_of_table_by_a_column() -> None:
    for form, table in forms_of_tables():
        examples = training.by_column({"word/2": table}, "sentence")
        assert [e.name for e in examples] == ["0", "1", "2"], form
        for example, sentence in zip(examples, SENTENCES, strict=True):
            columns = example.facts["word/2"].columns
            assert columns[0].to_list() == sentence.split(), form
            assert columns[1].to_list() == list(range(len(sentence.split()))), form


def test_several_tables_with_values_and_examples_that_one_lacks() -> None:
    words = {"word": ["a", "b", "c"], "id": ["y", "x", "y"], "score": [0.5, 0.25, 0.125]}
    last = {"id": ["x"], "n": [7]}
    y, x = training.by_column({"word/1": words, "last/1": last}, "id")
    assert (y.name, x.name) == ("y", "x")
    assert y.facts["word/1"].values.tolist() == [0.5, 0.125] and y.facts["last/1"].count == 0
    assert x.facts["last/1"].columns[0].to_list() == [7]


def test_tables_that_are_none() -> None:
    with pytest.raises(dg.Error, match=r"the table of word/2 has no column 'line'; it has sentence, word, place"):
        training.by_column({"word/2": TABLE}, "line")
    with pytest.raises(dg.Error, match="no table with named columns"):
        training.by_column({"word/2": [(1, 2)]}, "line")
    with pytest.raises(dg.Error, match="a dict from predicates"):
        training.by_column(TABLE["word"], "line")


# -- files and streams -------------------------------------------------------------------------------------------------

COIN = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
SIDES: dict[str, Any] = {"toss/1": [("h",), ("t",)]}


def coin() -> dg.Model:
    return dg.Model(COIN, SIDES)


def test_json_lines_and_folders(tmp_path: Path) -> None:
    lines = [{"seen/1": [["h"]]}, {"facts": {"seen/1": [["t"]]}, "weight": 3, "name": "tails"}]
    file = tmp_path / "tosses.jsonl"
    file.write_text("\n\n".join(map(json.dumps, lines)))
    m = coin()
    m.fit(file)
    assert m.weights["toss/1"]["h",] == pytest.approx(0.25)
    folder = tmp_path / "data"
    (folder / "one").mkdir(parents=True)
    (folder / "one" / "seen.1.tsv").write_text("h\n")
    (folder / "two.jsonl").write_text(json.dumps(lines[1]) + "\n")
    m.fit(folder)
    assert m.weights["toss/1"]["h",] == pytest.approx(0.25)
    assert [e.name for e in DataPasses(folder)] == ["one", "tails"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: this is not JSON"),
        ("[" * 100_000, "nested too deep"),
        (
            '{"seen/1": [[' + "[" * 900 + "]" * 900 + "]]}",
            "nested too deep|is not derived",
        ),  # by the stack that is left
        ("[1]", "an example is an object"),
        ('{"facts": {}, "wieght": 1}', "no 'wieght'"),
        ('{"facts": {"seen/1": [["h"]]}, "weight": -1}', "its weight is -1"),
        ('{"facts": {"seen/1": [["h"]]}, "weight": "x"}', "its weight is 'x'"),
        ('{"facts": [1]}', "facts are an object"),
        ('{"seen": [["h"]]}', "seen"),
        ('{"seen/1": 5}', "seen/1"),
    ],
)
def test_lines_that_are_no_examples(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(text + "\n")
    with pytest.raises(dg.Error, match=message):
        coin().fit(file)


def test_data_that_change_between_passes(tmp_path: Path) -> None:
    file = tmp_path / "tosses.jsonl"
    line = '{"seen/1": [["h"]]}\n'
    file.write_text(line * 3)

    def append(_: Any) -> None:
        with file.open("a") as out:
            out.write(line)

    with pytest.raises(dg.Error, match=r"tosses.jsonl changed while the model was trained"):
        coin().fit(file, callback=append, tolerance=0.0)

    def same_size(_: Any) -> None:
        now = file.stat().st_mtime_ns
        file.write_text(file.read_text().replace("h", "t", 1))
        os.utime(file, ns=(now + 1_000_000, now + 1_000_000))

    with pytest.raises(dg.Error, match="changed while the model was trained"):
        coin().fit(file, callback=same_size, tolerance=0.0)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.jsonl").write_text(line)
    with pytest.raises(dg.Error, match=r"b\.jsonl is new"):
        coin().fit(folder, callback=lambda _: (folder / "b.jsonl").write_text(line), tolerance=0.0)
    with pytest.raises(dg.Error, match=r"b\.jsonl was removed"):
        coin().fit(folder, callback=lambda _: (folder / "b.jsonl").unlink(), tolerance=0.0)


def test_a_function_that_gives_fewer_examples_the_second_time() -> None:
    left = [3, 2]

    def data() -> Iterator[Any]:
        return iter([{"seen/1": [("h",)]}] * left.pop(0))

    with pytest.raises(dg.Error, match="the first had 3 examples, and this one 2"):
        coin().fit(data, tolerance=0.0)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads how much memory is used as Linux tells it")
def test_memory_does_not_grow_with_a_stream() -> None:
    """A thousand examples, the last four hundred of which at once would be seven megabytes."""
    used: list[int] = []

    def stream() -> Iterator[Any]:
        for n in range(1000):
            if n % 200 == 0:
                gc.collect()
                used.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
            yield {"seen/1": [("h" if n % 4 else "t",)], "more/1": [(i,) for i in range(300)]}

    m = dg.Model(":- input more/1. " + COIN, SIDES)
    m.fit(stream, iterations=1)
    assert len(used) == 5 and used[-1] - used[2] < 4 << 20, used
    assert m.weights["toss/1"]["h",] == pytest.approx(0.75)


# -- observed derivations ----------------------------------------------------------------------------------------------

GRAMMAR = """
:- semiring log.
:- distribution rewrite(X,...) given X.
phrase(X,I,J) += rewrite(X,W) * word(W,I,J).
phrase(X,I,K) += rewrite(X,Y,Z) * phrase(Y,I,J) * phrase(Z,J,K) * permitted(I,K).
goal += phrase(s,0,N) * length(N).
"""
RULES: dict[str, Any] = {
    "rewrite/3": [("s", "np", "vp"), ("np", "np", "np"), ("vp", "v", "np"), ("vp", "vp", "np")],
    "rewrite/2": [("np", w) for w in "abc"] + [("v", w) for w in "abc"] + [("vp", "c")],
}


def sentence(words: str, allowed: Any = None, value: float = 0.0) -> dict[str, Any]:
    n = len(words)
    every = [(i, k, value) for i in range(n) for k in range(i + 1, n + 1)]
    return {
        "word/3": [(w, i, i + 1) for i, w in enumerate(words)],
        "length/1": [(n,)],
        "permitted/2": every if allowed is None else allowed,
    }


def grammar(objective: Any = None) -> dg.Model:
    return dg.Model(GRAMMAR, RULES, objective=objective)


TREES = ["aba", "aab", "abca", "acc"]


def observed() -> list[training.Example]:
    """The best derivations of a grammar with uneven weights."""
    m = grammar()
    m._theta = {n: p.start(np.random.default_rng(0)) for n, p in m._spec.parametrisations.items()}
    m._theta = {n: x + np.random.default_rng(1).standard_normal(len(x)) for n, x in m._theta.items()}
    return [
        training.Example(sentence(w), derivation=m.predict(sentence(w)).detached(), weight=1.0 + n)
        for n, w in enumerate(TREES)
    ]


def relative_frequencies(data: list[training.Example]) -> dict[tuple[Any, ...], float]:
    counts: Counter[tuple[Any, ...]] = Counter()
    for example in data:
        assert example.derivation is not None
        for step in example.derivation:
            if step.rule is None and step.name[0].startswith("rewrite"):
                counts[tuple(step.name[1])] += example.weight
    totals: Counter[Any] = Counter()
    for row, n in counts.items():
        totals[row[0]] += n
    return {row: n / totals[row[0]] for row, n in counts.items()}


def learned(m: dg.Model) -> dict[tuple[Any, ...], float]:
    return {tuple(row[:-1]): row[-1] for table in m.weights.values() for row in table}


@pytest.mark.filterwarnings("ignore:no example uses")
def test_observed_derivations_give_relative_frequencies_in_one_step() -> None:
    data = observed()
    for method in ("em", "viterbi-em"):
        m = grammar()
        m.fit(data, iterations=1, method=method)
        wanted = relative_frequencies(data)
        for row, p in learned(m).items():
            if any(r[0] == row[0] for r in wanted):
                assert p == pytest.approx(wanted.get(row, 0.0), abs=1e-14), (method, row)


@pytest.mark.filterwarnings("ignore:the parameters of rewrite given v have counts of 0")
def test_the_weight_of_an_observed_derivation_has_its_fixed_factors() -> None:
    """Against a run over a sentence that has but one derivation, with soft factors."""
    facts = sentence("ac", value=-0.5)
    m = grammar()
    one = training.Example(facts, derivation=m.predict(facts))
    assert m.score([one]) == pytest.approx(m.score([facts]), rel=1e-14)
    m.fit([one], iterations=1)  # its weight now is another, and so is that of the run
    assert m.score([one]) == pytest.approx(m.score([facts]), rel=1e-14) == pytest.approx(-0.5)
    text = ":- semiring real. goal += 0.25 * toss(S) * toss(R) * seen(S,R,_)."
    n = dg.Model(text, {"toss": training.Distribution({"toss/1": [("h", 0.3), ("t", 0.7)]})})
    data = {"seen/3": [("h", "t", 1, 0.5), ("t", "t", 2, 3.0)]}
    best = training.Example(data, derivation=n.predict(data))
    assert n.score([best]) == pytest.approx(np.log(0.25 * 0.7 * 0.7 * 3.0), rel=1e-14)
    assert n.score([best], executor=1) == n.score([best])


@pytest.mark.filterwarnings("ignore:no example uses")
def test_some_observed_and_some_not() -> None:
    """Semi-supervised: each E step adds what was counted to what is expected."""
    data = [*observed(), sentence("abab"), training.Example(sentence("aac"), weight=2.0)]
    m = grammar()
    fit = m.fit(data, iterations=15, tolerance=0.0)
    assert all(b.objective >= a.objective for a, b in pairwise(fit.history))
    split = grammar()
    split._theta = m._spec.start(0)
    spec = m._spec
    task = spec.task(spec.weights(split._theta), True, 1)
    parts = [spec.objective.totals(task, [e if isinstance(e, training.Example) else training.Example(e)]) for e in data]
    whole = spec.objective.totals(task, list(DataPasses(data)))
    assert (
        whole.value == pytest.approx(sum(p.value for p in parts), rel=1e-14) == pytest.approx(fit.history[0].objective)
    )
    for key, x in whole.gradient.items():
        assert x == pytest.approx(sum(p.gradient[key] for p in parts), abs=1e-13)


@pytest.mark.filterwarnings("ignore:no example uses")
def test_counts_of_derivations_are_initial_values() -> None:
    """A first step over what was observed, and then all data from there."""
    data = observed()
    m = grammar()
    m.fit(data, iterations=1)
    begun = m.parameters
    fit = m.fit([sentence(w) for w in TREES], warm=True, iterations=1)
    other = grammar()
    other._theta = begun
    assert fit.history[0].objective == other.score([sentence(w) for w in TREES])


def test_the_conditional_likelihood_of_a_derivation_is_its_probability() -> None:
    facts = sentence("abca")
    m = grammar(training.Conditional())
    chart = m.bound.run(facts)
    for derivation in chart.kbest("goal", 3):
        expected = derivation.weight - chart["goal"]
        assert m.score([training.Example(facts, derivation=derivation)]) == pytest.approx(expected, abs=1e-12)
    fit = m.fit([training.Example(facts, derivation=chart.best("goal"))], method="l-bfgs", iterations=50)
    assert fit.objective > -0.05


def test_derivations_of_something_else() -> None:
    facts = sentence("abca")
    m = grammar()
    with pytest.raises(dg.Error, match=r"step 20 of the derivation, word\(a,3,4\), is not right"):
        m.fit([training.Example(sentence("bbbb"), derivation=m.predict(facts))], missing="error")
    with pytest.raises(dg.Error, match=r"and not a dg\.Derivation"):
        m.fit([training.Example(facts, derivation="a tree")])  # type: ignore[arg-type]
    small = {**RULES, "rewrite/2": RULES["rewrite/2"][3:]}
    with pytest.raises(dg.Error, match=r"rewrite\(np,a\), which is no parameter here"):
        dg.Model(GRAMMAR, small).fit([training.Example(facts, derivation=m.predict(facts))], missing="error")


# -- known in part -----------------------------------------------------------------------------------------------------


def trees(words: str, x: str = "s") -> Iterator[Any]:
    """All trees over some words, one by one, as (label, parts)."""
    rows = [tuple(r) for t in RULES.values() for r in t]
    for row in rows:
        if row[0] == x and len(row) == 2 and words == row[1]:
            yield (x, words)
        if row[0] == x and len(row) == 3:
            for j in range(1, len(words)):
                for left in trees(words[:j], row[1]):
                    for right in trees(words[j:], row[2]):
                        yield (x, left, right)


def crosses(tree: Any, bracket: tuple[int, int], at: int = 0) -> tuple[int, int]:
    """The width of a tree, and how many of its spans cross the bracket."""
    if isinstance(tree[1], str):
        return 1, 0
    width = count = 0
    for part in tree[1:]:
        w, c = crosses(part, bracket, at + width)
        width, count = width + w, count + c
    i, k, (b, e) = at, at + width, bracket
    return width, count + (i < b < k < e or b < i < e < k)


@pytest.mark.parametrize("factor", [None, 0.125])
def test_brackets_leave_out_what_crosses_them(factor: float | None) -> None:
    """Pereira and Schabes's constraint, hard and soft, against all trees of a sentence."""
    words, bracket = "abaca", (1, 3)
    m = grammar()
    weights = learned(m)

    def chance(tree: Any) -> float:
        if isinstance(tree[1], str):
            return weights[tree]
        return weights[tree[0], tree[1][0], tree[2][0]] * chance(tree[1]) * chance(tree[2])

    soft = 0.0 if factor is None else factor
    total = sum(chance(t) * soft ** crosses(t, bracket)[1] for t in trees(words))
    assert 0 < total < sum(map(chance, trees(words)))
    rows = training.permitted(len(words), [bracket], factor, logs=True)
    assert m.score([sentence(words, rows)]) == pytest.approx(np.log(total), rel=1e-12)
    same = training.permitted_by_tree("(a (b a) c a)", factor, labelled=False, logs=True)
    assert same == rows


def test_trees_in_many_forms() -> None:
    nltk = pytest.importorskip("nltk")
    text = "(S (NP (D the) (N dog)) (VP (V barks)))"
    wanted = training.spans_of(text)
    assert wanted[1] == [("S", 0, 3), ("NP", 0, 2), ("D", 0, 1), ("N", 1, 2), ("VP", 2, 3), ("V", 2, 3)]
    assert training.spans_of(nltk.Tree.fromstring(text)) == wanted
    nested = ("S", ("NP", ("D", "the"), ("N", "dog")), ["VP", ("V", "barks")])
    assert training.spans_of(nested) == wanted
    assert training.phrases_of(f"( {text})") == wanted[1]
    deep = "(X " * 50_000 + "a" + ")" * 50_000
    assert len(training.spans_of(deep)[1]) == 50_000


@pytest.mark.parametrize("wrong", ["", "a b", "(S a", "(S a))", "(S a) (S b)", "(S a) b", ("S", 3), ("S",), 3, None])
def test_what_is_no_tree(wrong: Any) -> None:
    with pytest.raises(dg.Error, match=r"tree"):
        training.spans_of(wrong)


def test_spans_outside_of_a_sentence() -> None:
    with pytest.raises(dg.Error, match="not within a sentence of 3 words"):
        training.permitted(3, [(2, 4)])
    with pytest.raises(dg.Error, match="an end of a span"):
        training.permitted(3, [(-1, 2)])
    with pytest.raises(dg.Error, match="a factor from 0 on"):
        training.permitted(3, [(0, 2)], crossing=-0.1)


def test_trees_as_facts_give_relative_frequencies() -> None:
    """With the phrases of one tree permitted, there is but one derivation."""
    text = (
        GRAMMAR.replace("* permitted(I,K)", "")
        .replace("+= rewrite", "+= tree(X,I,K) * rewrite")
        .replace(",I,J) += tree(X,I,K)", ",I,J) += tree(X,I,J)")
    )
    m = dg.Model(text, RULES)
    tree = "(s (np (np a) (np b)) (vp (v a) (np c)))"
    words, _ = training.spans_of(tree)
    facts = {**sentence("".join(words)), "tree/3": training.phrases_of(tree)}
    del facts["permitted/2"]
    m.fit([facts], iterations=1)
    found = learned(m)
    assert found["np", "np", "np"] == pytest.approx(0.25) == found["np", "a"] == found["np", "b"] == found["np", "c"]
    assert found["vp", "v", "np"] == 1.0 == found["v", "a"]


@pytest.mark.filterwarnings("ignore:no example uses")
def test_word_lattices_are_facts_like_others() -> None:
    """Two paths through a lattice: their weights are those of two sentences, added."""
    m = grammar()
    lattice = {
        "word/3": [
            ("a", 0, 1, np.log(0.75)),
            ("b", 0, 1, np.log(0.25)),
            ("c", 1, 2, 0.0),
            ("b", 1, 3, 0.0),
            ("a", 2, 3, 0.0),
        ],
        "length/1": [(3,)],
        "permitted/2": sentence("aaa")["permitted/2"],
    }
    paths = {"aca": 0.75, "bca": 0.25, "ab": 0.75, "bb": 0.25}
    total = sum(p * np.exp(m.score([sentence(w)], missing="skip")) for w, p in paths.items() if w in ("aca", "bca"))
    # a path of two words has a sentence of its own
    for w in ("ab", "bb"):
        assert not list(trees(w))
    assert m.score([lattice]) == pytest.approx(np.log(total), rel=1e-12)
    m.fit([lattice], iterations=5)
    assert m.weights["rewrite/2"]["np", "a"] > m.weights["rewrite/2"]["np", "b"]


def test_facts_that_are_missing() -> None:
    """A word that is not known is a row for each that it may be; of a predicate without facts, the example is named."""
    m = grammar()
    whole = sentence("aca")
    part = {k: v for k, v in whole.items() if k != "length/1"}
    with pytest.warns(dg.ProgramWarning, match=r"example 1 failed: .*no facts are given for it"):
        assert m.score([whole, part]) == m.score([whole])
    hidden = {**whole, "word/3": [("a", 0, 1), *((w, 1, 2) for w in "abc"), ("a", 2, 3)]}
    total = sum(np.exp(m.score([sentence(f"a{w}a")])) for w in "abc")
    assert m.score([hidden]) == pytest.approx(np.log(total), rel=1e-12)


def test_what_an_example_may_have() -> None:
    coin = ":- semiring log. :- distribution toss(S). goal += toss(S) * seen(S)."
    m = dg.Model(coin, {"toss/1": [("h",), ("t",)]})
    facts = [{"seen/1": [(s,)]} for s in "ht"]
    m.fit([training.Example(facts[0], weight=np.float32(3)), training.Example(facts[1], weight=np.int64(1))])
    assert m.weights["toss/1"]["h",] == pytest.approx(0.75)
    for weight in (10**400, -1, "2", None):
        with pytest.raises(dg.FactError, match="example 0: its weight is"):
            m.fit([training.Example(facts[0], weight=weight)])  # type: ignore[arg-type]
    with pytest.raises(dg.FactError, match="example 0: its facts are None"):
        m.fit([training.Example(None)])  # type: ignore[arg-type]
    with pytest.raises(dg.FactError, match="example 0: its observed are 3"):
        m.fit([training.Example(facts[0], 3)])  # type: ignore[arg-type]
    with pytest.raises(dg.FactError, match="not 3"):
        list(training.read_examples(3))  # type: ignore[arg-type]
