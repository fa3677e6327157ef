"""The heads that the benchmark finds in trees of a treebank, on cases by hand."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)
sys.path.insert(0, str(ROOT))
from benchmarks import collins, evalb  # noqa: E402  # after the path

TREE = """(TOP (S (NP (NP (DT the) (NN man)) (PP (IN of) (NP (NNP Rome)))) (, ,) (VP (VBD saw) (NP (NP (NN art))
(CC and) (NP (JJ old) (NNS stones) (. .)))) (. .)))"""


@pytest.mark.parametrize(
    ("label", "parts", "at"),
    [
        ("VP", "MD RB VP", 0),
        ("VP", "VB NP PP", 0),
        ("PP", "IN NP", 0),
        ("S", "NP ADVP VP", 2),
        ("SBAR", "WHNP S", 0),
        ("ADJP", "RB JJ PP", 1),
        ("NP", "NP PP", 0),
        ("NPB", "DT NN NN", 2),
        ("NPB", "NNP POS", 1),
        ("NPB", "DT JJ", 1),
        ("NPB", "DT CD JJ", 1),
        ("NP", "NP CC NP", 0),
        ("VP", "VP CC VP", 0),
        ("UCP", "ADJP CC NP", 0),
        ("X", "SYM NN", 0),
    ],
)
def test_the_head_of_a_phrase(label: str, parts: str, at: int) -> None:
    assert collins.head(label, parts.split()) == at


def test_a_tree_of_the_treebank_with_heads_and_base_noun_phrases() -> None:
    s = collins.sentence(TREE)
    assert s is not None
    assert s.words == ["the", "man", "of", "Rome", "saw", "art", "and", "old", "stones"]
    assert s.words[s.head] == "saw" and s.brackets[-1] == ("S", 0, 9)
    modifiers = {(c.frame, s.words[c.head], c.side, c.label, s.words[c.at]) for c in s.choices if c.at >= 0}
    assert modifiers == {
        ("S/VP", "saw", "left", "NP", "man"),
        ("NP/NPB", "man", "right", "PP", "of"),
        ("NPB/NN", "man", "left", "DT", "the"),
        ("PP/IN", "of", "right", "NP", "Rome"),
        ("VP/VBD", "saw", "right", "NP", "art"),
        ("NP/NPB", "art", "right", "CC", "and"),
        ("NP/NPB", "art", "right", "NPB", "stones"),
        ("NPB/NNS", "stones", "left", "JJ", "old"),
    }


def test_brackets_of_heads_are_those_of_the_treebank() -> None:
    s = collins.sentence(TREE)
    assert s is not None
    tree = evalb.read_tree(TREE)
    tags = [leaf.label for leaf in tree.leaves()]
    places = [n for n, tag in enumerate(tags) if tag not in evalb.PUNCTUATION]
    found = [(x, places[i], places[k - 1] + 1) for x, i, k in collins.brackets(set(s.brackets))]
    score = evalb.score(tags, tree.brackets(), found)
    assert Counter(x for x, _, _ in found)["NP"] == 6 and score.gold == score.parsed == score.both == 9


def test_a_text_without_words_but_punctuation() -> None:
    assert collins.sentence("(TOP (X (. .) (: --)))") is None


def test_words_become_tags() -> None:
    assert collins.of_tags("(S (NP (PRP I)) (VP (VBD saw)))") == "(S (NP (PRP PRP)) (VP (VBD VBD)))"
