"""Each recipe of the documents on its small data, against an algorithm that shares nothing with the rules: all parses,
paths, trees or structures one by one, or the textbook's algorithm in numpy.

Costs 20 seconds where programs are compiled for the first time, and six where they are not.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import math
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import networkx
import numpy as np
import pytest

import dynagrad as dg
from oracle import close
from recipes import (
    aligner,
    build,
    ccg,
    classifier,
    collins,
    crf,
    ctc,
    earley,
    edit_distance,
    eisner,
    gotoh,
    hmm,
    hsmm,
    induction,
    itg,
    mdp,
    neural,
    pagerank,
    points_to,
    rna,
    segmenter,
    shortest_paths,
    tagger,
    transducers,
    transliteration,
    treebank,
)
from recipes import cky as cky_recipe

pytest.importorskip("scipy", reason="scipy is not installed")

FOLDER = Path(cky_recipe.__file__).parent
NAMES = build.NAMES


@pytest.fixture(autouse=True)
def without_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DYNAGRAD_DATA", raising=False)


def figures(recipe: ModuleType) -> dict[str, float]:
    return {what: float(value) for what, value in recipe.main("small")}


def assert_rows(table: Any, expected: dict[Any, float], tolerance: float = 1e-9) -> None:
    """A table has these values, and zero where none is said."""
    found = {row[:-1]: row[-1] for row in table}
    for row in found.keys() | expected.keys():
        key = row if isinstance(row, tuple) else (row,)
        assert abs(found.get(key, 0.0) - expected.get(row, 0.0)) < tolerance, row


# -- what all recipes have in common -----------------------------------------------------------------------------------


def test_every_recipe_has_a_page_and_stands_in_the_gallery() -> None:
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    toctree = re.search(r"```\{toctree\}.*?```", index, re.DOTALL)
    assert toctree
    for name in NAMES:
        page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        assert f"{{literalinclude}} {name}.py" in page and f" made/{name}.svg" in page and f" made/{name}.md" in page
        assert f"\n{name}\n" in toctree[0] and f" made/{name}.svg" in index and f"({name}.md)" in index


def test_what_a_page_includes_of_a_recipe_is_there() -> None:
    for name in NAMES:
        source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```\{literalinclude\} (\w+)\.py\n(.*?)```", page, re.DOTALL)
        assert len(blocks) >= 2
        for file, options in blocks:
            assert file == name
            for kind, text in re.findall(r"^:(start-at|start-after|end-before|end-at): (.*)$", options, re.MULTILINE):
                assert text.strip("'") in source, (name, kind, text)
            for function in re.findall(r"^:pyobject: (\w+)$", options, re.MULTILINE):
                assert re.search(rf"^(def|class) {function}\b", source, re.MULTILINE), (name, function)


# The few trees that are held out of the small data of `collins` teach no trust.
@pytest.mark.filterwarnings("ignore:the objective, Likelihood, is constant:dynagrad.errors.ProgramWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_says_what_it_is_and_gives_figures(name: str) -> None:
    recipe = importlib.import_module(f"recipes.{name}")
    pytest.importorskip(getattr(recipe, "NEEDS", "dynagrad"))
    lines = [line for line in recipe.PROGRAM.splitlines() if line.strip() and not line.strip().startswith("%")]
    assert recipe.__doc__ and 3 < len(lines) < 40
    shared, examples = recipe.data("small")
    assert isinstance(shared, dict) and examples
    found = figures(recipe)
    assert len(found) >= 3 and all(math.isfinite(value) for value in found.values())
    assert callable(recipe.figure)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_page_shows_was_made_by_the_recipe_as_it_is(name: str) -> None:
    assert not build.is_stale(name), f"docs/recipes/{name}.py has changed since its picture was made: make recipes"


def test_pictures_are_small_and_each_is_of_a_recipe() -> None:
    files = list(build.MADE.iterdir())
    assert {path.name for path in files} == {f"{name}.{suffix}" for name in NAMES for suffix in ("md", "svg")}
    assert sum(path.stat().st_size for path in files) < 2_000_000
    assert all(path.stat().st_size < 250_000 for path in files)


SOURCE = """
import os
from pathlib import Path

def main(size):
    yield "ends", 3
    yield "share", 0.25 + ("DYNAGRAD_DATA" in os.environ)

def figure(path):
    Path(path).write_text("<svg><metadata>when</metadata></svg>")
"""


def test_only_recipes_that_have_changed_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And never of data that lies where only we have it."""
    pytest.importorskip("matplotlib")
    made, names = tmp_path / "made", ["drawn_here", "needing"]
    for attribute, value in (("HERE", tmp_path), ("MADE", made), ("NAMES", names)):
        monkeypatch.setattr(build, attribute, value)
    monkeypatch.setattr(build.build, "__defaults__", (made,))
    monkeypatch.setattr(build.is_stale, "__defaults__", (made,))
    monkeypatch.setenv("DYNAGRAD_DATA", "/nowhere")
    monkeypatch.setenv("DYNAGRAD_CACHE", os.environ["DYNAGRAD_CACHE"])  # is put back
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "drawn_here.py").write_text(SOURCE)
    (tmp_path / "needing.py").write_text("NEEDS = 'no_such_package'\n")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    build.main([])
    table, picture = made / "drawn_here.md", made / "drawn_here.svg"
    assert "| ends | 3 | |" in table.read_text() and re.search(r"\| share \| 0.25 \| \d", table.read_text())
    assert picture.read_text() == "<svg></svg>"
    assert (
        not (made / "needing.md").exists() and "the package no_such_package is not installed" in capsys.readouterr().out
    )
    before = table.read_text(), table.stat().st_mtime_ns, picture.stat().st_mtime_ns
    build.main([])
    assert before == (table.read_text(), table.stat().st_mtime_ns, picture.stat().st_mtime_ns)
    for change in (lambda: picture.unlink(), lambda: (tmp_path / "drawn_here.py").write_text(SOURCE + "\n# more\n")):
        assert not build.is_stale("drawn_here")
        change()
        assert build.is_stale("drawn_here")
        build.main([])
    with pytest.raises(SystemExit, match="There is no recipe other; there are drawn_here, needing"):
        build.main(["other"])


def test_a_picture_is_made_without_a_background(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("agg")
    file = tmp_path / "cky.svg"
    cky_recipe.figure(str(file))
    text = file.read_text(encoding="utf-8")
    assert text.lstrip().startswith("<?xml") and "#808080" in text and "fill: #ffffff" not in text.split("<defs>")[0]


@pytest.mark.parametrize("recipe", [cky_recipe, gotoh, hmm, hsmm, rna])
@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")  # of probabilities as logs: nothing is run
def test_where_the_best_derivation_is_read_off_items_each_is_popped_once(recipe: Any) -> None:
    """The derivatives by derived items say which of them the best derivation uses only there."""
    shared, (facts, *_) = recipe.data("small")
    assert "best value first" not in dg.Program(recipe.PROGRAM, "viterbi").bind(shared).explain(facts)


# -- grammars: all parses, one by one ----------------------------------------------------------------------------------

Parse = tuple[float, Counter[Any], Counter[Any]]  # its weight, and how often it uses each rule and each constituent


def parses(rules: Sequence[tuple[str, tuple[str, ...], float]], words: list[str], top: str) -> list[Parse]:
    """All parses of the words by a grammar without cycles of unary rules."""

    def of(x: str, i: int, k: int) -> Iterator[Parse]:
        for left, right, p in rules:
            if left == x:
                for weight, uses, inside in of_all(right, i, k):
                    yield p * weight, uses + Counter([(left, right)]), inside + Counter([(x, i, k)])

    def of_all(symbols: tuple[str, ...], i: int, k: int) -> Iterator[Parse]:
        if not symbols:
            if i == k:
                yield 1.0, Counter(), Counter()
            return
        first, rest = symbols[0], symbols[1:]
        if first.startswith('"'):
            if i < k and words[i] == first.strip('"'):
                yield from of_all(rest, i + 1, k)
            return
        for j in range(i + 1, k - len(rest) + 1):
            for w1, u1, c1 in of(first, i, j):
                for w2, u2, c2 in of_all(rest, j, k):
                    yield w1 * w2, u1 + u2, c1 + c2

    # Left recursion ends since each further symbol takes a word.
    return list(of(top, 0, len(words)))


def expectation(weighted: Sequence[tuple[float, Counter[Any]]]) -> dict[Any, float]:
    total = sum(weight for weight, _ in weighted)
    result: dict[Any, float] = defaultdict(float)
    for weight, counts in weighted:
        for key, n in counts.items():
            result[key] += weight * n / total
    return result


def test_cky_with_an_unknown_word() -> None:
    grammar, (facts,) = cky_recipe.data()
    words = [w for w, _, _ in facts["word/3"]]
    known = {w for _, w, _ in grammar["rewrite/2"]}
    rules = [(x, (y, z), p) for x, y, z, p in grammar["rewrite/3"]]
    rules += [(x, (f'"{w}"',), p) for x, w, p in grammar["rewrite/2"]]
    rules += [(x, (f'"{w}"',), p) for x, p in grammar["unknown/1"] for w in set(words) - known]
    assert set(words) - known == {"blorf"}
    all_parses = parses(rules, words, "TOP")
    assert len(all_parses) == 2
    total = sum(weight for weight, _, _ in all_parses)
    found = figures(cky_recipe)
    assert close(found["log probability of all sentences"], math.log(total))
    assert close(found["log probability of the best parses"], math.log(max(w for w, _, _ in all_parses)))
    chart = dg.Program(cky_recipe.PROGRAM, "log", values="probabilities").bind(grammar).run(facts)
    gradient = chart.gradient("goal")
    assert_rows(gradient["constit/3"], expectation([(w, c) for w, _, c in all_parses]))
    uses = expectation([(w, u) for w, u, _ in all_parses])
    assert_rows(gradient["rewrite/3"], {(x, *right): n for (x, right), n in uses.items() if len(right) == 2})
    assert_rows(gradient["unknown/1"], {(x,): n for (x, right), n in uses.items() if right == ('"blorf"',)})
    best = dg.Program(cky_recipe.PROGRAM, "viterbi", values="probabilities").bind(grammar).run(facts)
    tied = [set(c) for w, _, c in all_parses if close(w, max(w for w, _, _ in all_parses))]
    assert set(cky_recipe.best_parse(best)) in tied


def test_generated_grammars_have_the_size_that_they_say() -> None:
    for made in (cky_recipe.generated(), earley.generated()):
        grammar, sentences = made
        assert len(sentences) == 20 and all(15 <= s["end/1"][0][0] <= 30 for s in sentences)
        sums: dict[str, float] = defaultdict(float)
        for key in ("rewrite/2", "rewrite/3"):
            for row in grammar.get(key, ()):
                sums[row[0]] += row[-1]
        assert all(close(p, 1.0) for p in sums.values())


def nested(text: str) -> Any:
    """A tree in brackets as tuples: (label, word), or (label, tree, tree, ...)."""
    quoted = re.sub(r"[^\s()]+", lambda m: f"'{m[0]}',", text).replace(")", "),")
    (found,) = ast.literal_eval(f"({quoted})")
    return found


def test_treebank_counts_and_the_best_of_all_parses() -> None:
    """Relative frequencies of the rules of trees, walked through one by one, and smoothed by hand."""
    known, (held_out,) = treebank.corpus("small")
    often = Counter(re.findall(r"[^\s()]+(?=\))", " ".join(known)))

    def seen(word: str) -> str:
        return word if often[word] > 1 else treebank.spelling(word)

    rules, tags = Counter[Any](), Counter[Any]()

    def walk(tree: Any) -> str:
        labels = [tree[0]]
        while len(tree) == 2 and isinstance(tree[1], tuple):
            tree = tree[1]
            labels.append(tree[0])
        symbol = "+".join(labels)
        if isinstance(tree[1], str):
            rules[symbol, (seen(tree[1]),)] += 1
            tags[tree[0], seen(tree[1])] += 1
            return symbol
        left, *parts = [walk(part) for part in tree[1:]]
        above = symbol
        while len(parts) > 1:
            rest = f"{symbol}|<{left}>"
            rules[above, (left, rest)] += 1
            above, (left, *parts) = rest, parts
        rules[above, (left, *parts)] += 1
        return symbol

    roots = Counter(walk(nested(tree)) for tree in known)
    assert roots == {"S": 4} and rules["VP", ("VBD", "VP|<VBD>")] == 1 and rules["NP+NNP", ("<A>",)] == 2
    counts: Counter[Any] = Counter(rules)
    for x in {x for x, right in rules if len(right) == 1}:
        tag = x.rsplit("+", 1)[-1]
        of_tag = {w: n for (t, w), n in tags.items() if t == tag}
        for w, n in of_tag.items():
            counts[x, (w,)] += 5 * n / sum(of_tag.values())
    sums = Counter[str]()
    for (x, _), n in counts.items():
        sums[x] += n
    expected = {(x, right): n / sums[x] for (x, right), n in counts.items()}
    grammar = treebank.Grammar(known)
    for key, width in (("rewrite/2", 1), ("rewrite/3", 2)):
        wanted = {(x, *right): p for (x, right), p in expected.items() if len(right) == width}
        assert len(grammar.model.weights[key]) == len(wanted)
        assert_rows(grammar.model.weights[key], wanted, 1e-12)

    words, _ = treebank.binary(held_out)
    quoted = [(x, right if len(right) > 1 else (f'"{right[0]}"',), p) for (x, right), p in expected.items()]
    every = parses(quoted, [seen(w) for w in words], "S")
    best = max(every, key=lambda parse: parse[0])
    batch = grammar.parser().run_batch([grammar.facts(words)], query="goal", best=1)
    assert len(every) > 1 and close(batch.values[0], math.log(best[0]))
    assert sorted(treebank.phrases(batch.best[0])) == sorted(treebank.brackets(list(best[2].elements())))
    assert Counter(treebank.brackets(treebank.binary(held_out)[1])) == Counter(
        [("S", 0, 7), ("NP", 0, 1), ("VP", 1, 7), ("NP", 2, 4), ("PP", 4, 7), ("NP", 5, 7)]
    )


@pytest.mark.parametrize("bracketed", [0, 2])
def test_a_step_of_induction_is_inside_outside(bracketed: int) -> None:
    """Expected counts by tables of inside and outside values (Lari and Young 1990), in numpy."""
    known, _ = induction.corpus("small")
    start = induction.rows(3, 0)
    names = ["s", "x1", "x2"]
    binary, words = np.zeros((3, 3, 3)), {w: np.zeros(3) for w in "ab"}
    for x, y, z, p in start["rewrite/3"]:
        binary[names.index(x), names.index(y), names.index(z)] = p
    for x, w, p in start["rewrite/2"]:
        words[w][names.index(x)] = p
    sums = binary.sum((1, 2)) + words["a"] + words["b"]
    binary, words = binary / sums[:, None, None], {w: p / sums for w, p in words.items()}
    counts, used, total = np.zeros((3, 3, 3)), {w: np.zeros(3) for w in "ab"}, 0.0
    for number, (text, spans) in enumerate(known):
        n = len(text)
        open_ = {(i, k) for i in range(n) for k in range(i + 2, n + 1)}
        if number < bracketed:
            open_ -= {(i, k) for i, k in open_ for a, b in spans if i < a < k < b or a < i < b < k}
        inside, outside = np.zeros((n + 1, n + 1, 3)), np.zeros((n + 1, n + 1, 3))
        for i, w in enumerate(text):
            inside[i, i + 1] = words[w]
        for i, k in sorted(open_, key=lambda span: span[1] - span[0]):
            for j in range(i + 1, k):
                inside[i, k] += np.einsum("xyz,y,z->x", binary, inside[i, j], inside[j, k])
        outside[0, n, 0] = 1.0
        z = inside[0, n, 0]
        total += math.log(z)
        for i, k in sorted(open_, key=lambda span: span[0] - span[1]):
            for j in range(i + 1, k):
                outside[i, j] += np.einsum("xyz,x,z->y", binary, outside[i, k], inside[j, k])
                outside[j, k] += np.einsum("xyz,x,y->z", binary, outside[i, k], inside[i, j])
                counts += np.einsum("xyz,x,y,z->xyz", binary, outside[i, k], inside[i, j], inside[j, k]) / z
        for i, w in enumerate(text):
            used[w] += words[w] * outside[i, i + 1] / z
    model, fit = induction.learned(known, bracketed, 3, 1, 1)
    assert close(fit.history[0].data, total)
    sums = counts.sum((1, 2)) + used["a"] + used["b"]
    expected = {(names[x], names[y], names[z]): c / sums[x] for (x, y, z), c in np.ndenumerate(counts)}
    assert_rows(model.weights["rewrite/3"], expected)
    assert_rows(model.weights["rewrite/2"], {(names[x], w): used[w][x] / sums[x] for x in range(3) for w in "ab"})


def test_the_hidden_grammar_has_one_parse_for_each_of_its_sentences() -> None:
    known, held_out = induction.corpus("small")
    rules = [(row[0], row[1:3], row[3]) for row in induction.HIDDEN["rewrite/3"]]
    rules += [(x, (f'"{w}"',), p) for x, w, p in induction.HIDDEN["rewrite/2"]]
    logs = 0.0
    for words, spans in [*known, *held_out]:
        ((weight, _, inside),) = parses(rules, words, "s")
        assert words == words[::-1] and {(i, k) for _, i, k in inside if k > i + 1} == set(spans)
        logs -= math.log2(weight)
    every = [*known, *held_out]
    assert close(induction.bits(induction.HIDDEN, every), logs / sum(len(words) for words, _ in every))
    assert induction.right(induction.HIDDEN, every) == 1.0


def test_earley() -> None:
    grammar, (facts,) = earley.data()
    words = [w for w, _, _ in facts["word/3"]]
    rules = [(left, tuple(right.split()), p) for left, right, p in earley.SMALL]
    all_parses = parses(rules, words, "s")
    found = figures(earley)
    assert found["parses of all sentences"] == len(all_parses) == 2
    assert close(found["log probability of all sentences"], math.log(sum(w for w, _, _ in all_parses)))
    uses = expectation([(w, u) for w, u, _ in all_parses])
    chart = dg.Program(earley.PROGRAM, "log", values="probabilities").bind(grammar).run(facts)
    for x, right, n in chart.gradient("goal")["rewrite/2"]:
        written = tuple(f'"{y}"' if isinstance(y, str) else y.arguments[0] for y in right)
        assert abs(uses.get((x, written), 0.0) - n) < 1e-9, (x, right)
    everywhere = dg.Program(earley.EVERYWHERE, "log", values="probabilities").bind(grammar).run(facts)
    assert close(everywhere["goal"], chart["goal"]) and len(everywhere.table("constit/3")) > len(
        chart.table("constit/3")
    )
    needed = {(x, j) for x, j, _ in chart.table("need/2")}
    assert {(part.arguments[0], i) for part, i, _, _ in chart.table("constit/3")} <= needed


def semantics(x: Any, apply: Callable[[Any], Any], fresh: Iterator[int]) -> Any:
    """A meaning as a term: what takes arguments is given a variable for each."""
    if not isinstance(x, dg.Term):
        return apply
    variable = next(fresh)
    argument = meaning(x.arguments[1], ("var", variable))
    return ("lambda", variable, semantics(x.arguments[0], apply(argument), fresh))


def meaning(x: Any, term: Any) -> Any:
    """The meaning of a word or variable of category x: a function of as many arguments as the category wants."""
    if not isinstance(x, dg.Term):
        return term
    result, argument = x.arguments
    return lambda a: meaning(result, (*term, semantics(argument, a, itertools.count(len(str(term))))))


def derivations(lexicon: dict[str, list[Any]], words: list[str]) -> list[tuple[Any, Any]]:
    """All derivations of all words by application and composition, as a category and a meaning."""

    def functor(x: Any, kind: str) -> bool:
        return isinstance(x, dg.Term) and x.functor == kind

    def of(i: int, k: int) -> Iterator[tuple[Any, Any]]:
        if k == i + 1:
            for x in lexicon[words[i]]:
                yield x, meaning(x, (words[i],))
            return
        for j in range(i + 1, k):
            for (x, f), (y, g) in itertools.product(of(i, j), list(of(j, k))):
                if functor(x, "slash") and x.arguments[1] == y:
                    yield x.arguments[0], f(g)
                if functor(y, "under") and y.arguments[1] == x:
                    yield y.arguments[0], g(f)
                if functor(x, "slash") and functor(y, "slash") and x.arguments[1] == y.arguments[0]:
                    yield dg.Term("slash", x.arguments[0], y.arguments[1]), lambda a, f=f, g=g: f(g(a))
                if functor(y, "under") and functor(x, "under") and y.arguments[1] == x.arguments[0]:
                    yield dg.Term("under", y.arguments[0], x.arguments[1]), lambda a, f=f, g=g: g(f(a))

    return [(x, m) for x, m in of(0, len(words)) if x == "s"]


@pytest.mark.parametrize("text", ["the pilot saw the telescope with the old telescope", "the old pilot saw the pilot"])
def test_ccg_has_one_normal_derivation_for_each_reading(text: str) -> None:
    lexicon, _ = ccg.data()
    entries: dict[str, list[Any]] = defaultdict(list)
    for w, x, _ in lexicon["category/2"]:
        entries[w].append(x)
    found = derivations(entries, text.split())
    readings = {repr(m) for _, m in found}
    facts = ccg.sentence(text.split())
    normal, every = (
        dg.Program(source, "count").bind(ccg.without_weights(lexicon)).run(facts)["goal"]
        for source in (ccg.PROGRAM, ccg.ANY_ORDER)
    )
    assert (normal, every) == (len(readings), len(found))
    assert every > normal or len(text.split()) < 7


# -- sequences ---------------------------------------------------------------------------------------------------------


Levels = dict[tuple[str, str], float]


def levels(trees: Sequence[collins.Sentence], head: tuple[str, str], choice: tuple[Any, ...]) -> Levels:
    """What each level says of a choice (frame, side, distance, label, tag, word), in textbook relative frequencies."""
    seen = [
        (c.frame, c.side, c.distance, c.label, *((s.tags[c.at], s.words[c.at]) if c.at >= 0 else ("stop", "")))
        for s in trees
        for c in s.choices
    ]
    heads = [(s.words[c.head], s.tags[c.head]) for s in trees for c in s.choices]
    every = list(zip(seen, heads, strict=True))
    frame, side, distance, label, tag, word = choice

    def share(history: Callable[[Any, Any], bool], event: Callable[[Any], bool]) -> float:
        given = [c for c, h in every if history(c, h)]
        return sum(map(event, given)) / len(given) if given else math.nan

    context = (frame, side, distance)
    found = {("label", "frame"): share(lambda c, h: c[:3] == context, lambda c: c[3:5] == (label, tag))}
    found["label", "tag"] = share(lambda c, h: (*c[:3], h[1]) == (*context, head[1]), lambda c: c[3:5] == (label, tag))
    found["label", "word"] = share(lambda c, h: (*c[:3], h) == (*context, head), lambda c: c[3:5] == (label, tag))
    if label != "stop":
        words = [v for s in trees for t, v in zip(s.tags, s.words, strict=True) if t == tag]
        found["word", "tag"] = words.count(word) / len(words)
        found["word", "word"] = share(
            lambda c, h: (c[0], c[1], c[3], c[4], h[0]) == (frame, side, label, tag, head[0]), lambda c: c[5] == word
        )
    return found


def histories(trees: Sequence[collins.Sentence], head: str, choice: tuple[Any, ...]) -> dict[str, int]:
    """The class of how often a choice's histories with words were seen: 0, 1, 2 for up to 3, 3 for up to 7."""
    frame, side, distance, label, tag, _ = choice
    first = sum(
        (c.frame, c.side, c.distance, s.words[c.head]) == (frame, side, distance, head)
        for s in trees
        for c in s.choices
    )
    second = sum(
        (c.frame, c.side, c.label, s.words[c.head]) == (frame, side, label, head) and s.tags[c.at] == tag
        for s in trees
        for c in s.choices
        if c.at >= 0
    )
    return {"label": math.ceil(math.log2(first + 1)), "word": math.ceil(math.log2(second + 1))}


def chosen(s: collins.Sentence, c: collins.Choice) -> tuple[tuple[str, str], tuple[Any, ...]]:
    """The head of a choice, and the choice in words."""
    said = (s.tags[c.at], s.words[c.at]) if c.at >= 0 else ("stop", "")
    return (s.words[c.head], s.tags[c.head]), (c.frame, c.side, c.distance, c.label, *said)


def test_trust_in_words_is_learned_as_by_deleted_interpolation() -> None:
    known, others, _ = collins.corpus("small")
    others = [*others, *known[:1]]
    trust = {row: 1 / sum(r[:2] == row[:2] for r in collins.LEVELS["trust/3"]) for row in collins.LEVELS["trust/3"]}
    assert len(trust) == 5 * 5 + 3
    for steps in range(3):
        model = collins.trusted(collins.counted(known), others, steps) if steps else None
        if model is not None:
            assert_rows(model.weights["trust/3"], trust, 1e-12)
        counts: Counter[Any] = Counter()
        for s in others:
            for c in s.choices:
                head, choice = chosen(s, c)
                classes = histories(known, head[0], choice)
                shares: dict[str, dict[Any, float]] = defaultdict(dict)
                for (event, level), p in levels(known, head, choice).items():
                    if not math.isnan(p):
                        shares[event][event, classes[event], level] = p * trust[event, classes[event], level]
                for parts in shares.values():
                    counts.update({row: p / sum(parts.values()) for row, p in parts.items()})
        sums: dict[Any, float] = defaultdict(float)
        for row in trust:
            sums[row[:2]] += counts[row] + 0.1
        trust = {row: (counts[row] + 0.1) / sums[row[:2]] for row in trust}


def test_collins_against_all_lexicalised_trees() -> None:
    """The sum over all trees of a sentence with an ambiguity, and the best of them, from probabilities by hand."""
    known, others, (test,) = collins.corpus("small")
    grammar = collins.learned(known, others)
    trust = {row[:3]: row[3] for row in grammar.smoothing.weights["trust/3"]}
    known = [s._replace(words=[grammar.words(w) for w in s.words]) for s in known]
    words, tags = [grammar.words(w) for w in test.words], test.tags
    frames = {(f, p, c, s.tags[h]) for s in known for p, f, c, h in s.frames}

    @cache
    def chance(head: int, choice: tuple[Any, ...]) -> float:
        at = words[head], tags[head]
        found, classes = levels(known, at, choice), histories(known, at[0], choice)
        sums: dict[str, float] = defaultdict(float)
        for (event, level), p in found.items():
            sums[event] += 0.0 if math.isnan(p) else p * trust.get((event, classes[event], level), 0.0)
        return math.prod(sums.values())

    Found = tuple[float, frozenset[tuple[str, int, int]]]

    def grown(label: str, head: int, i: int, k: int) -> Iterator[Found]:
        """All phrases from i to k with this label and head word, without tags among their brackets."""
        if (label, i, k) == (tags[head], head, head + 1):
            yield 1.0, frozenset()
        for frame, p, c, u in frames:
            if (p, u) == (label, tags[head]):
                ways = [f for f, q, _, v in frames if (q, v) == (p, u)]
                start = sum(x[1] == frame and s.tags[x[3]] == u for s in known for x in s.frames) / sum(
                    x[1] in ways and s.tags[x[3]] == u for s in known for x in s.frames
                )
                for a, b in itertools.product(range(i, head + 1), range(head + 1, k + 1)):
                    for (w1, f1), (w2, f2) in itertools.product(
                        side(frame, head, "left", i, a, "near"), side(frame, head, "right", b, k, "near")
                    ):
                        for w, f in grown(c, head, a, b):
                            yield start * w * w1 * w2, f | f1 | f2 | {(label, i, k)}

    def side(frame: str, head: int, name: str, i: int, k: int, distance: str) -> Iterator[Found]:
        """All modifiers of one side, the nearest first, which fill what is between i and k."""
        if i == k:
            yield chance(head, (frame, name, distance, "stop", "stop", "")), frozenset()
            return
        for j in range(i, k) if name == "left" else range(i + 1, k + 1):
            near, rest = ((j, k), (i, j)) if name == "left" else ((i, j), (j, k))
            for n in range(*near):
                for label in {m for _, m, _, _ in frames} | {tags[n]}:
                    p = chance(head, (frame, name, distance, label, tags[n], words[n]))
                    for (w1, f1), (w2, f2) in itertools.product(
                        grown(label, n, *near) if p else (), side(frame, head, name, *rest, "far") if p else ()
                    ):
                        yield p * w1 * w2, f1 | f2

    of_verbs = [v for s in known for t, v in zip(s.tags, s.words, strict=True) if t == "v"]
    (verb,) = (n for n, t in enumerate(tags) if t == "v")
    first = of_verbs.count(words[verb]) / len(of_verbs)
    every = [(first * w, found) for w, found in grown("s", verb, 0, len(words)) if w]
    assert len({found for _, found in every}) == 2
    given = collins.facts(grammar, test)
    total = dg.Program(collins.PARSER, "real").run(given)["goal"]
    assert close(total, sum(w for w, _ in every))
    assert collins.parse(given)[0] == max(every)[1]


def test_hmm_against_all_sequences_of_states() -> None:
    model, (facts,) = hmm.data()
    initial = dict(model["initial/1"])
    transition = {row[:2]: row[2] for row in model["transition/2"]}
    shown = [o for _, o in facts["observation/2"]]
    assert all(close(sum(transition[s, t] for t in initial), 1.0) for s in initial)
    weights = {}
    for sides in itertools.product("+-", repeat=len(shown)):  # a state shows its own base
        states = [o.upper() + side for o, side in zip(shown, sides, strict=True)]
        steps = [transition[pair] for pair in itertools.pairwise(states)]
        weights[tuple(states)] = initial[states[0]] * math.prod(steps)
    total, best = sum(weights.values()), max(weights.values())
    found = figures(hmm)
    assert close(found["log likelihood"], math.log(total))
    assert close(found["log probability of the best states"], math.log(best))
    chart = dg.Program(hmm.PROGRAM, "log", values="probabilities").bind(model).run(facts)
    for i, p in enumerate(hmm.posterior(chart)):
        assert close(p, sum(w for states, w in weights.items() if states[i][1] == "+") / total)
    viterbi = dg.Program(hmm.PROGRAM, "viterbi", values="probabilities").bind(model).run(facts)
    assert close(weights[tuple(hmm.best_states(viterbi))], best)


def test_hsmm_against_all_segmentations() -> None:
    model, (facts,) = hsmm.data()
    (length,) = facts["length/1"][0]
    duration = {(s, d): x for s, d, x in model["duration/2"]}
    longest = max(d for _, d in duration)

    def segmentations(start: int, before: int | None) -> Iterator[tuple[float, list[tuple[int, int]]]]:
        if start == length:
            yield 0.0, []
        for s, d in itertools.product(range(3), range(1, longest + 1)):
            if s != before and start + d <= length:
                entry = model["initial/1"][s] if before is None else math.log(0.5)
                here = entry + duration[s, d] + facts["emission/2"][start : start + d, s].sum()
                for weight, rest in segmentations(start + d, s):
                    yield here + weight, [(start, s), *rest]

    every = list(segmentations(0, None))
    total = np.logaddexp.reduce([w for w, _ in every])
    found = figures(hsmm)
    assert close(found["log likelihood"], total)
    assert close(found["log probability of the best segments"], max(w for w, _ in every))
    chart = dg.Program(hsmm.PROGRAM, "log").bind(model).run(facts)
    begins = expectation([(math.exp(w - total), Counter(i for i, _ in cut)) for w, cut in every])
    assert np.allclose(hsmm.boundaries(chart), [begins.get(i, 0.0) for i in range(length + 1)], atol=1e-12)
    viterbi = dg.Program(hsmm.PROGRAM, "viterbi").bind(model).run(facts)
    assert hsmm.best_segments(viterbi) == max(every)[1]


def test_the_loss_of_a_crf_and_its_gradient_against_all_taggings() -> None:
    model, sentences = crf.data()
    random = np.random.default_rng(0)
    weights = {key: random.normal(size=len(model[key])) for key in ("emit/2", "move/2")}
    rows = {key: [row[:2] for row in model[key]] for key in weights}
    emit, move = (dict(zip(rows[key], weights[key].tolist(), strict=True)) for key in weights)
    tags = sorted({t for _, t in move})
    loss, slope = 0.0, {key: np.zeros(len(w)) for key, w in weights.items()}
    for facts in sentences:
        seen: dict[int, list[str]] = defaultdict(list)
        for i, f in facts["feature/2"]:
            seen[i].append(f)
        gold = tuple(t for _, t in facts["tag/2"])
        counts, scores = {}, {}
        for tagging in itertools.product(tags, repeat=len(gold)):
            # A tag that none of a word's features was seen with is none that the word can have.
            if any(all((t, f) not in emit for f in seen[i]) for i, t in enumerate(tagging, 1)):
                continue
            uses = Counter([("emit/2", (t, f)) for i, t in enumerate(tagging, 1) for f in seen[i] if (t, f) in emit])
            uses += Counter([("move/2", pair) for pair in itertools.pairwise(("start", *tagging))])
            counts[tagging] = uses
            scores[tagging] = sum(n * (emit if key == "emit/2" else move)[row] for (key, row), n in uses.items())
        logz = float(np.logaddexp.reduce(list(scores.values())))
        loss += logz - scores[gold]
        for tagging, uses in counts.items():
            p = math.exp(scores[tagging] - logz) - (tagging == gold)
            for (key, row), n in uses.items():
                slope[key][rows[key].index(row)] += p * n
    batch = (
        dg.Program(crf.PROGRAM)
        .bind(model)
        .with_values(weights)
        .run_batch(sentences, query="goal", gradient=list(weights))
    )
    assert close(-batch.values.sum(), loss)
    for key, expected in slope.items():
        assert np.allclose(-batch.gradient[key].values, expected, atol=1e-10)


def test_a_crf_is_trained_to_where_no_direction_is_better() -> None:
    """The objective is concave, so that a gradient of zero says that it is the largest: here that of all taggings."""
    known, _ = crf.corpus("small")
    model = crf.trained(known, crf.word_alone, 200)
    learned = {key: dict((row[:-1], row[-1]) for row in table) for key, table in model.weights.items()}
    tags = sorted({t for _, t in learned["move/2"]})
    slope: Counter[Any] = Counter({(k, row): -2 * crf.STRENGTH * w for k, t in learned.items() for row, w in t.items()})
    for words, gold in known:
        scored = {}
        for tagging in itertools.product(tags, repeat=len(words)):
            used = [("emit/2", (t, f)) for i, t in enumerate(tagging) for f in crf.word_alone(words, i)]
            used += [("move/2", pair) for pair in itertools.pairwise(("start", *tagging))]
            found = [(key, row) for key, row in used if row in learned[key]]
            scored[tagging] = (math.exp(sum(learned[key][row] for key, row in found)), Counter(found))
        total = sum(w for w, _ in scored.values())
        for tagging, (w, counts) in scored.items():
            for use, n in counts.items():
                slope[use] += n * ((tagging == tuple(gold)) - w / total)
    assert max(map(abs, slope.values())) < 1e-3


def test_features_of_a_word_that_was_never_seen() -> None:
    words = ["Pre-war", "1987"]
    assert crf.with_letters(words, 0)[2:] == ["shape=A-", "p-", "pr-", "pre-", "-r", "-ar", "-war"]
    assert crf.with_neighbours(words, 1)[-4:] == ["before=pre-war", "before=-ar", "after=", "after=-"]


def test_a_classifier_against_logistic_regression() -> None:
    model, texts = classifier.trained(classifier.SMALL, tolerance=1e-12), classifier.SMALL
    words = sorted({"any", *(w for each, _ in texts for w in each)})
    counts = np.array([[1.0 if w == "any" else each.count(w) for w in words] for each, _ in texts])
    classes = sorted({c for _, c in texts})
    learned = {row[:-1]: row[-1] for row in model.weights["weight/2"]}
    w = np.array([[learned[c, word] for word in words] for c in classes])
    scores = np.exp(counts @ w.T)
    p = scores / scores.sum(1, keepdims=True)
    for (each, _), expected in zip(texts, p, strict=True):
        found = classifier.probabilities(model, each)
        assert all(close(found[c], e, 1e-9) for c, e in zip(classes, expected, strict=True))
    right = np.array([[float(c == label) for c in classes] for _, label in texts])
    assert abs((right - p).T @ counts - 2 * classifier.STRENGTH * w).max() < 1e-4  # the gradient, where it is zero

    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    peer = linear.LogisticRegression(C=1 / (2 * classifier.STRENGTH), fit_intercept=False, tol=1e-10, max_iter=10_000)
    peer.fit(counts, [c for _, c in texts])
    assert list(peer.classes_) == classes and np.allclose(peer.predict_proba(counts), p, atol=1e-5)


def test_docstrings_of_the_library_are_texts() -> None:
    words, name = next(classifier.docstrings())
    assert name in {m.strip("_") for m in classifier.MODULES} and 5 < len(words) <= 60


def test_ctc_against_all_paths() -> None:
    for facts in ctc.data()[1]:
        frame = facts["frame/2"]
        labels = [c for _, c in facts["label/2"] if c]
        weights: list[tuple[float, Counter[Any]]] = []
        for path in itertools.product(range(frame.shape[1]), repeat=len(frame)):
            if [c for c, _ in itertools.groupby(path) if c] == labels:
                weights.append((math.exp(sum(frame[t, c] for t, c in enumerate(path))), Counter(enumerate(path))))
        chart = dg.Program(ctc.PROGRAM).bind({}).run(facts)
        assert close(chart["goal"], math.log(sum(w for w, _ in weights)))
        uses = expectation(weights)
        expected = np.exp(frame)
        for (t, c), p in uses.items():
            expected[t, c] -= p
        (slope,) = ctc.slopes(dg.Program(ctc.PROGRAM).bind({}), [facts])
        assert np.allclose(slope, expected, atol=1e-12) and np.allclose(slope.sum(1), 0, atol=1e-12)


# -- pairs of sequences ------------------------------------------------------------------------------------------------


def alignments(a: str, b: str) -> Iterator[list[tuple[str, str]]]:
    """All ways to edit one word into another, a letter or two at a time."""
    if not a and not b:
        yield []
    if a:
        yield from ([(a[0], ""), *rest] for rest in alignments(a[1:], b))
    if b:
        yield from ([("", b[0]), *rest] for rest in alignments(a, b[1:]))
    if a and b:
        yield from ([(a[0], b[0]), *rest] for rest in alignments(a[1:], b[1:]))


def test_edit_distance_learns_what_all_alignments_say() -> None:
    model, pairs = edit_distance.data()
    (stop,) = model["stop/0"][0]
    chance = {(a, b): p for a, b, p in model["replace/2"]}
    chance |= {(a, ""): p for a, p in model["delete/1"]} | {("", b): p for b, p in model["insert/1"]}
    assert close(sum(chance.values()) + stop, 1.0)
    likelihood, counts = 0.0, defaultdict[Any, float](float)
    for facts in pairs:
        words = ["".join(c for _, c in facts[key]) for key in ("from/2", "to/2")]
        every = [(math.prod(chance[e] for e in edits) * stop, Counter(edits)) for edits in alignments(*words)]
        likelihood += math.log(sum(w for w, _ in every))
        for e, n in expectation(every).items():
            counts[e] += n
    losses, learned = edit_distance.learn(model, pairs, 1)
    assert close(losses[0], likelihood)
    total = sum(counts.values()) + len(pairs)
    for a, b, p in learned["replace/2"]:
        assert abs(p - counts[a, b] / total) < 1e-12
    for key, edit in (("delete/1", lambda c: (c, "")), ("insert/1", lambda c: ("", c))):
        assert all(abs(p - counts[edit(c)] / total) < 1e-12 for c, p in learned[key])
    assert close(learned["stop/0"][0][0], len(pairs) / total)
    history, _ = edit_distance.learn(model, pairs, 5)
    assert history == sorted(history)


def test_gotoh_against_the_textbook() -> None:
    """Waterman, Smith and Beyer (1976), with gaps of any length at once."""
    matrix, (facts,) = gotoh.data()
    first, second = ("".join(c for _, c in facts[key]) for key in ("first/2", "second/2"))
    score = gotoh.blosum()
    assert all(score[a, b] == score[b, a] for a, b in score) and len(score) == 400
    best = np.full((len(first) + 1, len(second) + 1), -np.inf)
    best[0, 0] = 0
    for i, j in itertools.product(range(len(first) + 1), range(len(second) + 1)):
        options = [best[i, j], *(best[i - n, j] - 10 - n for n in range(1, i + 1))]
        options += [best[i, j - n] - 10 - n for n in range(1, j + 1)]
        if i and j:
            options.append(best[i - 1, j - 1] + score[first[i - 1], second[j - 1]])
        best[i, j] = max(options)
    assert close(figures(gotoh)["score of the best alignment, in half bits"], best[-1, -1])
    paired = gotoh.pairs(dg.Program(gotoh.PROGRAM, "viterbi").bind(matrix).run(facts))
    assert paired == sorted(paired) and all(i < k and j < m for (i, j), (k, m) in itertools.pairwise(paired))


def test_the_posterior_of_gotoh_against_all_alignments() -> None:
    matrix = gotoh.scores(-3, -1)
    first, second = "WKHE", "PKE"
    score, weights = gotoh.blosum(), []
    for columns in alignments(first, second):
        kinds = ["pair" if a and b else "second" if a else "first" for a, b in columns]
        if ("second", "first") in itertools.pairwise(kinds):
            continue  # of two gaps side by side the one in the first sequence comes first
        points = 0
        for n, ((a, b), kind) in enumerate(zip(columns, kinds, strict=True)):
            points += score[a, b] if kind == "pair" else -1 if n and kinds[n - 1] == kind else -3
        places = itertools.accumulate(
            columns, lambda at, ab: (at[0] + bool(ab[0]), at[1] + bool(ab[1])), initial=(0, 0)
        )
        uses = Counter(at for at, kind in zip(list(places)[1:], kinds, strict=True) if kind == "pair")
        weights.append((math.exp(gotoh.HALF_BIT * points), uses))
    chart = dg.Program(gotoh.PROGRAM, "log").bind(matrix).run(gotoh.sequences(first, second))
    assert close(chart["goal"], math.log(sum(w for w, _ in weights)))
    assert_rows(chart.gradient("goal")["paired/2"], {**expectation(weights), (0, 0): 1.0})


def test_tagger_against_all_sequences_of_tags() -> None:
    """A step of EM on words alone, with noise to begin with, and what counting gives where tags are known."""
    known, held_out = tagger.corpus("small")
    both = [*known, *held_out]
    tags = sorted({t for _, given in both for t in given})
    start = tagger.rows(both, 0)
    chances: dict[Any, float] = {}
    for table in start.values():
        sums: dict[Any, float] = defaultdict(float)
        for *row, p in table:
            sums[tuple(row[:-1])] += p
        chances |= {tuple(row): p / sums[tuple(row[:-1])] for *row, p in table}
    counts: Counter[Any] = Counter()
    for words, _ in known:
        weights = {
            given: math.prod(chances[use] for use in uses(words, given))
            for given in itertools.product(tags, repeat=len(words))
        }
        for given, p in weights.items():
            for use in uses(words, given):
                counts[use] += p / sum(weights.values())
    model = tagger.unsupervised(known, both, 1)
    assert_probabilities(model, start, counts, 0.1)

    counted = Counter(use for words, given in known for use in uses(words, given))
    model = tagger.supervised(known, both)
    assert_probabilities(model, start, counted, 0.1)
    weights_of = {row[:-1]: row[-1] for table in model.weights.values() for row in table}
    words, _ = held_out[0]
    best = max(
        itertools.product(tags, repeat=len(words)),
        key=lambda given: math.prod(weights_of[use] for use in uses(words, given)),
    )
    assert tagger.best_tags(model, tagger.sentence(words, [tags] * len(words))) == list(best)


def uses(words: Sequence[str], tags: Sequence[str]) -> list[tuple[str, ...]]:
    """The parameters that a tagged sentence uses, by their arguments: tags and words are different."""
    return [(tags[0],), *itertools.pairwise(tags), *zip(tags, words, strict=True)]


def assert_probabilities(model: dg.Model, rows: dict[str, Any], counts: Counter[Any], more: float) -> None:
    """Parameters are relative frequencies of counts, with something added to each."""
    for key, table in rows.items():
        sums: dict[Any, float] = defaultdict(float)
        for *row, _ in table:
            sums[tuple(row[:-1])] += counts[tuple(row)] + more
        expected = {tuple(row): (counts[tuple(row)] + more) / sums[tuple(row[:-1])] for *row, _ in table}
        assert_rows(model.weights[key], expected, 1e-12)


def cut_in_all_ways(text: str) -> Iterator[list[str]]:
    if not text:
        yield []
    for k in range(1, len(text) + 1):
        yield from ([text[:k], *rest] for rest in cut_in_all_ways(text[k:]))


def test_segmenter_against_all_segmentations() -> None:
    """A step of EM, then one of variational Bayes (Beal 2003), with all ways to cut the texts one by one."""
    from scipy.special import digamma

    known, held_out = segmenter.corpus("small")
    every = segmenter.rows([*known, *held_out])
    words = [w for w, _ in every["word/1"]]
    total = sum(p for _, p in every["word/1"])
    chance = {w: p / total for w, p in every["word/1"]}

    def counted(weights: dict[str, float], texts: Sequence[Sequence[str]]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for text in texts:
            ways = [(math.prod(weights[w] for w in way), way) for way in cut_in_all_ways("".join(text))]
            for p, way in ways:
                for w in way:
                    counts[w] += p / sum(p for p, _ in ways)
        return counts

    counts = counted(chance, known)
    model = segmenter.by_likelihood(known, every, 1)
    assert_rows(model.weights["word/1"], {(w,): counts[w] / counts.total() for w in words})

    alphas = {w: 20 * 0.5 / 26 * (0.5 / 26) ** (len(w) - 1) for w in words}
    begin = {w: p for w, p in segmenter.by_likelihood(known, every, 3).weights["word/1"]}
    held = {w: alphas[w] + begin[w] * len(words) for w in words}
    weights = {w: math.exp(digamma(a) - digamma(sum(held.values()))) for w, a in held.items()}
    counts = counted(weights, known)
    mass = sum(alphas.values()) + counts.total()
    model = segmenter.with_prior(known, every, 1)
    assert_rows(model.weights["word/1"], {(w,): (alphas[w] + counts[w]) / mass for w in words})

    given = segmenter.supervised(known, every)
    seen = Counter(w for text in known for w in text)
    learned = {w: (alphas[w] + seen[w]) / (sum(alphas.values()) + seen.total()) for w in words}
    assert_rows(given.weights["word/1"], {(w,): p for w, p in learned.items()})
    text = "".join(held_out[0])
    ways = [(math.prod(learned[w] for w in way), way) for way in cut_in_all_ways(text)]
    ends = set(itertools.accumulate(map(len, max(ways)[1])))
    assert segmenter.cuts(given, held_out[:1]) == [ends]
    every_end = [set(itertools.accumulate(map(len, way))) for _, way in ways]
    chances = [
        sum(p for (p, _), at in zip(ways, every_end, strict=True) if i in at) / sum(p for p, _ in ways)
        for i in range(1, len(text))
    ]
    assert np.allclose(segmenter.chances(given, text), chances, atol=1e-12)


def test_model_1_is_that_of_the_textbook() -> None:
    """Expected counts in closed form, each word of the target alone (Brown and others 1993)."""
    pairs, _ = aligner.corpus("small")
    together = aligner.together(pairs)
    table = {row: 1 / sum(w == row[0] for w, _ in together) for row in together}
    for _ in range(3):
        counts: Counter[Any] = Counter()
        for facts in pairs:
            for _, v in facts["target/2"]:
                total = sum(table[w, v] for _, w in facts["source/2"])
                for _, w in facts["source/2"]:
                    counts[w, v] += table[w, v] / total
        sums: dict[str, float] = defaultdict(float)
        for (w, _), n in counts.items():
            sums[w] += n
        table = {(w, v): counts[w, v] / sums[w] for w, v in together}
    assert_rows(aligner.model_1(pairs, 3).weights["translate/2"], table, 1e-12)


def test_aligner_against_all_alignments() -> None:
    pairs, _ = aligner.corpus("small")
    before = aligner.model_1(pairs, 2)
    translate = {(w, v): p for w, v, p in before.weights["translate/2"]}
    size, counts, jumps = 2 * aligner.FAR + 1, Counter[Any](), Counter[int]()
    for facts in pairs:
        source, target = [w for _, w in facts["source/2"]], [v for _, v in facts["target/2"]]
        weights = {
            at: math.prod(translate[source[i], v] / size for i, v in zip(at, target, strict=True))
            for at in itertools.product(range(len(source)), repeat=len(target))
        }
        for at, p in weights.items():
            share = p / sum(weights.values())
            for i, v in zip(at, target, strict=True):
                counts[source[i], v] += share
            for i, k in itertools.pairwise((-1, *at)):
                jumps[k - i] += share
    model = aligner.with_jumps(pairs, before, 1)
    total = sum(jumps.values()) + 0.01 * size
    assert_rows(
        model.weights["jump/1"], {(d,): (jumps[d] + 0.01) / total for d in range(-aligner.FAR, aligner.FAR + 1)}
    )
    sums: dict[str, float] = defaultdict(float)
    for w, v in translate:
        sums[w] += counts[w, v] + 0.01
    assert_rows(model.weights["translate/2"], {(w, v): (counts[w, v] + 0.01) / sums[w] for w, v in translate})
    learned, jumped = model.weights["translate/2"], model.weights["jump/1"]
    for facts in pairs:
        source, target = [w for _, w in facts["source/2"]], [v for _, v in facts["target/2"]]
        found = aligner.best_links(model, facts)

        def weight(at: Sequence[int], source: Any = source, target: Any = target) -> float:
            moves = math.prod(jumped[k - i] for i, k in itertools.pairwise((-1, *at)))
            return moves * math.prod(learned[source[i], v] for i, v in zip(at, target, strict=True))

        best = max(map(weight, itertools.product(range(len(source)), repeat=len(target))))
        assert close(weight([found[j] for j in range(len(target))]), best)


def test_itg_against_all_trees() -> None:
    """The likelihood, the posterior of links, the best tree and a step of EM."""
    rows, pairs = itg.data()
    total = sum(row[-1] for table in rows.values() for row in table)
    chance = {(key, *row[:-1]): row[-1] / total for key, table in rows.items() for row in table}

    Tree = tuple[float, Counter[Any], Counter[Any]]  # its probability, its nodes, and its links

    @cache
    def trees(source: tuple[str, ...], target: tuple[str, ...]) -> list[Tree]:
        """All trees of two strings, with positions in these strings."""
        found: list[Tree] = []
        if len(source) < 2 and len(target) < 2:
            kind = "added/1" if not source else "translation/2" if target else "dropped/1"
            node = (kind, *source, *target)
            found.append((chance[node], Counter([node]), Counter([(0, 0)] if source and target else [])))
        for h, n in itertools.product(range(len(source) + 1), range(len(target) + 1)):
            halves = (0, target[:n]), (n, target[n:])
            for kind, ((at, first), (to, second)) in (("straight/0", halves), ("inverted/0", halves[::-1])):
                if (h or first) and (h < len(source) or second):
                    for (w1, n1, l1), (w2, n2, l2) in itertools.product(
                        trees(source[:h], first), trees(source[h:], second)
                    ):
                        links = Counter((i, j + at) for i, j in l1) + Counter((i + h, j + to) for i, j in l2)
                        found.append((chance[kind,] * w1 * w2, n1 + n2 + Counter([(kind,)]), links))
        return found

    likelihood, counts = 0.0, Counter[Any]()
    model = itg.grammar(rows)
    for facts in pairs:
        source, target = (tuple(w for _, w in facts[key]) for key in ("source/2", "target/2"))
        every = trees(source, target)
        likelihood += math.log(sum(w for w, *_ in every))
        counts.update(expectation([(w, nodes) for w, nodes, _ in every]))
        expected = np.zeros((len(source), len(target)))
        for place, p in expectation([(w, found) for w, _, found in every]).items():
            expected[place] = p
        assert np.allclose(itg.links(model, facts), expected, atol=1e-12)
        best = max(w for w, *_ in every)
        assert itg.aligned(model, facts) in [set(found) for w, _, found in every if close(w, best)]
    assert close(model.score(pairs), likelihood)
    after = itg.learned(rows, pairs, 1)
    for key in rows:
        expected_rows = {node[1:]: n / sum(counts.values()) for node, n in counts.items() if node[0] == key}
        assert_rows(after.weights[key], expected_rows, 1e-12)
    assert itg.f1([{(0, 0), (1, 2)}], [{(0, 0), (1, 1), (2, 1)}]) == 0.4


def test_transducers_against_each_word_by_itself() -> None:
    words = {"cat": 0.4, "at": 0.3, "act": 0.2, "tact": 0.1}
    model, typed = transducers.data()
    arcs: dict[str, list[tuple[str, str, str, float]]] = defaultdict(list)
    for state, read, write, after, p in model["second/4"]:
        arcs[state].append((read.replace("eps", ""), write.replace("eps", ""), after, p))
    letters = {read for state in arcs for read, *_ in arcs[state] if read}
    for state in arcs:
        for a in letters:
            reading = sum(p for read, *_, p in arcs[state] if read == a)
            beside = sum(p for read, *_, p in arcs[state] if not read)
            assert close(reading + beside, 1.0)

    def total(state: str, word: str, text: str) -> float:
        result = 1.0 if (word, text) == ("", "") else 0.0
        for read, write, after, p in arcs[state]:
            if word.startswith(read) and text.startswith(write):
                result += p * total(after, word[len(read) :], text[len(write) :])
        return result

    composed = dg.Program(transducers.PROGRAM, "log", values="probabilities").bind(model)
    for facts in typed:
        joint = {word: p * total("calm", word, "".join(c for _, c in facts["typed/2"])) for word, p in words.items()}
        assert close(composed.run(facts)["goal"], math.log(sum(joint.values())))
        found = transducers.meant(composed, facts)
        assert found.keys() == words.keys()
        assert all(abs(found[w] - joint[w] / sum(joint.values())) < 1e-12 for w in words)


def test_transliteration_against_all_sounds() -> None:
    """A step of EM for both transducers, from all sounds of a name and all that they may be written as."""
    start, pairs = transliteration.data("small")
    chances: dict[str, dict[Any, float]] = {}
    for key, table in start.items():
        sums: dict[Any, float] = defaultdict(float)
        for *arc, p in table:
            sums[tuple(arc[:2])] += p
        chances[key] = {tuple(arc): p / sums[tuple(arc[:2])] for *arc, p in table}

    Run = tuple[float, tuple[str, ...], tuple[Any, ...]]  # a probability, what came out, and the arcs

    def runs(key: str, state: str, text: Sequence[str]) -> Iterator[Run]:
        """All runs of one transducer on a text."""
        if not text and state in ("ready", "vowel", "consonant"):
            yield 1.0, (), ()
        for arc, p in chances[key].items():
            if arc[0] == state and arc[1] in ("eps", *text[:1]):
                for rest, out, arcs in runs(key, arc[3], text[arc[1] != "eps" :]):
                    yield p * rest, ((arc[2],) if arc[2] != "eps" else ()) + out, ((key, arc), *arcs)

    counts, likelihood = Counter[Any](), 0.0
    for facts in pairs:
        name, text = (tuple(x for _, x in facts[key]) for key in ("letter/2", "written/2"))
        weights = [
            (p * q, Counter((*first, *second)))
            for p, sounds, first in runs("speak/4", "start", name)
            for q, out, second in runs("write/4", "ready", sounds)
            if out == text
        ]
        assert len(weights) > 1
        likelihood += math.log(sum(w for w, _ in weights))
        counts.update(expectation(weights))
    model = transliteration.learned(start, pairs, 1)
    assert close(dg.Model(f":- semiring log. {transliteration.PROGRAM}", start).score(pairs), likelihood)
    for key, arcs in chances.items():
        sums = defaultdict(float)
        for arc in arcs:
            sums[arc[:2]] += counts[key, arc] + 0.01
        assert_rows(model.weights[key], {arc: (counts[key, arc] + 0.01) / sums[arc[:2]] for arc in arcs}, 1e-12)


def test_all_spellings_of_a_name_have_probability_one() -> None:
    """The hidden transducers are probabilities given what is read; the best path is found among all spellings."""
    hidden = transliteration.hidden()
    for machine in (transliteration.speaker(), transliteration.writer()):
        sums: dict[Any, float] = defaultdict(float)
        for (state, read, _, _), p in machine.items():
            sums[state, read] += p
        assert all(close(total, 1.0) for total in sums.values())
    name = ["c", "h"]
    texts = [text for n in range(5) for text in itertools.product("цтсшкхч", repeat=n)]
    found = hidden.bound.run_batch([transliteration.pair(name, text) for text in texts], query="goal").values
    weights = dict(zip(texts, np.exp(found), strict=True))
    assert close(sum(weights.values()), 1.0)
    assert tuple(transliteration.spelt(hidden, name)) == max(weights, key=weights.__getitem__)


# -- trees and structures ----------------------------------------------------------------------------------------------


def test_eisner_against_all_projective_trees() -> None:
    (facts,) = eisner.data()[1]
    ((n,),) = facts["length/1"]
    score = {(h, d): x for h, d, x in facts["arc/2"]}
    trees = []
    for heads in itertools.product(range(n + 1), repeat=n):
        arcs = [(h, d) for d, h in enumerate(heads, 1)]
        rooted = all(reaches_root(d, heads) for d in range(1, n + 1))
        crossing = any(min(a) < min(b) < max(a) < max(b) for a in arcs for b in arcs)
        if rooted and not crossing:
            trees.append((math.exp(sum(score[arc] for arc in arcs)), Counter(arcs)))
    assert len(trees) == 55  # 1, 3, 12, 55, ...: binomial(3n, n) / (2n + 1)
    found = figures(eisner)
    assert close(found["log partition functions"], math.log(sum(w for w, _ in trees)))
    best = max(trees, key=lambda tree: tree[0])
    assert close(found["log weight of the best trees"], math.log(best[0]))
    chart = dg.Program(eisner.PROGRAM, "log").bind({}).run(facts)
    assert_rows(chart.gradient("goal")["arc/2"], expectation(trees))
    heads = eisner.heads(dg.Program(eisner.PROGRAM, "viterbi").bind({}).run(facts))
    assert {(h, d) for d, h in heads.items()} == set(best[1])


def test_the_neural_parser_steps_along_the_gradient_of_all_trees() -> None:
    """The loss and a step of gradient ascent, from all trees one by one and the differentiation of PyTorch alone."""
    torch: Any = pytest.importorskip("torch")
    known, _, tests = neural.corpus("small")

    def trees(n: int) -> list[tuple[int, ...]]:
        """The heads of all projective trees of n words."""
        found = []
        for heads in itertools.product(range(n + 1), repeat=n):
            spans = [sorted((d, h)) for d, h in enumerate(heads, 1)]
            crossing = any(a < c < b < d for (a, b), (c, d) in itertools.product(spans, repeat=2))
            if not crossing and all(reaches_root(d, heads) for d in range(1, n + 1)):
                found.append(heads)
        return found

    def scores(module: Any, tree: neural.Tree) -> dict[tuple[int, int], Any]:
        """Of the arcs of a sentence alone."""
        return {(h, d): x for (_, h, d), x in zip(neural.arcs([tree]), module(*module.inputs([tree])), strict=True)}

    def total(module: Any, tree: neural.Tree, heads: Sequence[int]) -> Any:
        arcs = scores(module, tree)
        return torch.stack([arcs[h, d] for d, h in enumerate(heads, 1)]).sum()

    def objective(module: Any) -> Any:
        return sum(
            total(module, tree, tree[1])
            - torch.logsumexp(torch.stack([total(module, tree, heads) for heads in trees(len(tree[1]))]), 0)
            for tree in known
        )

    module = neural.network([w for words, _ in known for w in words])
    value = objective(module)
    value.backward()
    before = np.concatenate([p.detach().numpy().ravel() for p in module.parameters()])
    step = np.concatenate(
        [np.zeros(p.numel()) if p.grad is None else p.grad.numpy().ravel() for p in module.parameters()]
    )
    step = (step - 0.02 * before) / len(known)  # of the prior, too
    history: list[Any] = []
    options = {"method": torch.optim.SGD, "lr": 0.5, "size": 2, "iterations": 1, "patience": None}
    model, after = neural.learned(known, [], dev=None, callback=history.append, **options)
    assert close(history[0].data, value.item())
    assert np.allclose(model.parameters["network"], before + 0.5 * step, atol=1e-12) and np.abs(step).max() > 1e-3
    best = max(trees(len(tests[0][1])), key=lambda heads: total(after, tests[0], heads).item())
    assert neural.parsed(after, [tests[0][0]]) == [list(best)]


def reaches_root(d: int, heads: Sequence[int]) -> bool:
    for _ in heads:
        d = heads[d - 1] if d else 0
    return d == 0


def structures(bases: str, i: int, j: int) -> Iterator[frozenset[tuple[int, int]]]:
    """All sets of base pairs between two positions, from 1, without crossings; a hairpin has three bases at least."""
    if i > j:
        yield frozenset()
        return
    yield from structures(bases, i + 1, j)
    for k in range(i + 4, j + 1):
        if bases[i - 1] + bases[k - 1] in rna.PAIRS:
            for inner, outer in itertools.product(structures(bases, i + 1, k - 1), list(structures(bases, k + 1, j))):
                yield inner | outer | {(i, k)}


def energy(bases: str, pairs: frozenset[tuple[int, int]]) -> float:
    """The sum over all loops of a structure."""

    def end(i: int, j: int) -> float:
        return rna.AU_END if bases[i - 1] + bases[j - 1] not in ("gc", "cg") else 0.0

    def children(i: int, j: int) -> list[tuple[int, int]]:
        inside = [(a, b) for a, b in pairs if i < a and b < j]
        return sorted((a, b) for a, b in inside if not any(c < a and b < d for c, d in inside))

    total = sum(end(*pair) for pair in children(0, len(bases) + 1))
    for i, j in pairs:
        inner = children(i, j)
        if not inner:
            total += rna.loop(rna.HAIRPINS, j - i - 1) + (rna.MISMATCH if j - i - 1 > 3 else 0.0) + end(i, j)
        elif len(inner) > 1:
            total += rna.MULTILOOP + rna.BRANCH * (len(inner) + 1) + end(i, j) + sum(end(*pair) for pair in inner)
        else:
            ((k, m),) = inner
            left, right = k - i - 1, j - m - 1
            if left == right == 0:
                outer_pair, inner_pair = bases[i - 1] + bases[j - 1], bases[m - 1] + bases[k - 1]
                total += rna.STACKS[rna.PAIRS.index(outer_pair)][rna.PAIRS.index(inner_pair)]
            elif left == 0 or right == 0:
                total += rna.loop(rna.BULGES, left + right) + end(i, j) + end(k, m)
            else:
                total += (
                    rna.loop(rna.INTERIORS, left + right) + rna.ASYMMETRY * abs(left - right) + end(i, j) + end(k, m)
                )
    return total


@pytest.mark.parametrize("bases", ["ggggaaaccccaacgaaag", "gggaaacgaaagcaacgc", "gcaaagcugaaagagc"])
def test_rna_against_all_structures(bases: str) -> None:
    model, facts = rna.energies(), rna.molecule(bases)
    every = list(structures(bases, 1, len(bases)))
    assert len(every) == len(set(every)) > 100
    energies = [energy(bases, pairs) for pairs in every]
    weights = [(math.exp(-e / rna.RT), Counter(pairs)) for e, pairs in zip(energies, every, strict=True)]
    chart = dg.Program(rna.PROGRAM, "log").bind(model).run(facts)
    assert close(chart["goal"], math.log(sum(w for w, _ in weights)))
    assert_rows(chart.gradient("goal")["closed/2"], expectation(weights))
    best = dg.Program(rna.PROGRAM, "viterbi").bind(model).run(facts)
    assert abs(best["goal"] + min(energies) / rna.RT) < 1e-9
    found = frozenset((i, j) for i, j, uses in best.gradient("goal")["closed/2"] if uses)
    assert close(energy(bases, found), min(energies), 1e-9) or min(energies) == 0.0


def test_stacks_are_the_same_from_both_ends() -> None:
    assert np.array_equal(np.array(rna.STACKS), np.array(rna.STACKS).T)


# -- graphs ------------------------------------------------------------------------------------------------------------


def test_shortest_paths_against_networkx() -> None:
    roads, (start,) = shortest_paths.data()
    ends, lengths = roads["road/2"]
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from((int(x), int(y), float(w)) for (x, y), w in zip(ends, lengths, strict=True))
    expected = networkx.single_source_dijkstra_path_length(graph, 0)
    chart = dg.Program(shortest_paths.PROGRAM).bind(roads).run(start)
    assert_rows(chart.table("distance/1"), {(x,): d for x, d in expected.items()})
    last = int(ends.max())
    path = networkx.dijkstra_path(graph, 0, last)
    assert set(shortest_paths.way(chart, last)) == set(itertools.pairwise(path))
    found = figures(shortest_paths)
    assert close(found["distance of the last place"], expected[last])
    assert found["places visited by A*"] <= found["places visited on the way to the middle"]


def test_markov_decision_processes_against_policy_iteration() -> None:
    process, _ = mdp.data()
    (discount,) = [process["discount/0"]]
    states, actions = len(process["reward/2"]) // 4, list(mdp.MOVES)
    reward, transition = np.zeros((states, 4)), np.zeros((states, 4, states))
    for s, a, r in process["reward/2"]:
        reward[s, actions.index(a)] = r
    for s, a, t, p in process["transition/3"]:
        transition[s, actions.index(a), t] += p
    assert np.allclose(transition.sum(2), 1)
    policy = np.zeros(states, int)
    while True:
        rows = np.arange(states), policy
        system = np.eye(states) - discount * transition[rows]
        value = np.linalg.solve(system, reward[rows])
        better = (reward + discount * transition @ value).argmax(1)
        if np.allclose((reward + discount * transition @ value).max(1), value, atol=1e-13):
            break
        policy = better
    chart = dg.Program(mdp.PROGRAM).bind(process).run({})
    assert chart.converged
    assert np.allclose(chart.table("value/1").values, value, rtol=1e-9)
    assert all(
        reward[s, actions.index(a)] + discount * transition[s, actions.index(a)] @ value > value[s] - 1e-9
        for s, a in mdp.policy(chart).items()
    )
    visits = np.zeros((states, 4))
    for s, a, n in chart.gradient("value(0)")["reward/2"]:
        visits[s, actions.index(a)] = n
    by_state = np.linalg.solve(system.T, np.eye(states)[0])
    assert np.allclose(visits.sum(1), by_state, atol=1e-8)


def test_pagerank_against_networkx_and_a_linear_system() -> None:
    facts, _ = pagerank.data()
    links, chances = facts["link/2"]
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(5))
    graph.add_edges_from(links.tolist())
    expected = networkx.pagerank(graph, alpha=0.85, tol=1e-14, max_iter=10_000)
    chart = dg.Program(pagerank.PROGRAM).bind(facts).run({})
    assert np.allclose(chart.table("rank/1").values, [expected[x] for x in range(5)], atol=1e-12)

    def rank(weights: np.ndarray) -> np.ndarray:
        follow = np.zeros((5, 5))
        follow[links[:, 1], links[:, 0]] = weights
        follow[:, [x for (x,) in facts["stuck/1"]]] = 1 / 5
        return np.linalg.solve(np.eye(5) - 0.85 * follow, np.full(5, 0.15 / 5))

    worth = chart.gradient("rank(2)")["link/2"].values
    for n in range(len(chances)):
        step = 1e-6 * (np.arange(len(chances)) == n)
        assert abs((rank(chances + step) - rank(chances - step))[2] / 2e-6 - worth[n]) < 1e-7


@pytest.mark.parametrize("facts", [points_to.SMALL, points_to.program(12)], ids=["small", "program"])
def test_points_to_against_a_naive_fixed_point(facts: dict[str, Any]) -> None:
    points: set[tuple[Any, Any]] = set(facts["new/2"])
    fields: set[tuple[Any, Any, Any]] = set()
    while True:
        before = len(points), len(fields)
        points |= {(v, o) for v, w in facts["assign/2"] for x, o in points if x == w}
        fields |= {(b, f, o) for v, f, w in facts["store/3"] for x, b in points if x == v for y, o in points if y == w}
        points |= {
            (v, o) for v, w, f in facts["load/3"] for x, b in points if x == w for c, g, o in fields if (c, g) == (b, f)
        }
        if (len(points), len(fields)) == before:
            break
    chart = dg.Program(points_to.PROGRAM).run(facts)
    assert {row[:-1] for row in chart.table("points/2")} == points
    assert {row[:-1] for row in chart.table("field/3")} == fields
    asked = {v for (v,) in facts["asked/1"]}
    alias = {(v, w) for v, o in points for w, q in points if v in asked and o == q and v != w}
    assert {row[:-1] for row in chart.table("alias/2")} == alias


def test_figures_of_the_small_points_to() -> None:
    assert figures(points_to) == {
        "statements": 9,
        "pairs of a variable and an object": 7,
        "contents of fields": 2,
        "aliases of the variable that was asked about": 2,
    }
