"""The scorer of parses, on cases by hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)
found = importlib.util.spec_from_file_location("evalb_of_benchmarks", ROOT / "benchmarks" / "evalb.py")
assert found is not None and found.loader is not None
evalb = importlib.util.module_from_spec(found)
sys.modules[found.name] = evalb
found.loader.exec_module(evalb)

GOLD = "(TOP (S (NP (PRP I)) (VP (VBD saw) (NP (NP (DT the) (NN man)) (PP (IN with) (NP (NNS ears))))) (. .)))"


def scored(gold: str, parsed: str) -> tuple[int, int, int]:
    one, other = evalb.read_tree(gold), evalb.read_tree(parsed)
    tags = [leaf.label for leaf in one.leaves()]
    s = evalb.score(tags, one.brackets(), other.brackets())
    return s.gold, s.parsed, s.both


def test_a_tree_is_read_with_its_words_and_brackets() -> None:
    tree = evalb.read_tree(GOLD)
    assert [leaf.word for leaf in tree.leaves()] == ["I", "saw", "the", "man", "with", "ears", "."]
    expected = [("TOP", 0, 7), ("S", 0, 7), ("NP", 0, 1), ("VP", 1, 6), ("NP", 2, 6), ("NP", 2, 4), ("PP", 4, 6)]
    assert tree.brackets() == [*expected, ("NP", 5, 6)]


def test_the_same_tree_has_all_brackets_but_the_root() -> None:
    assert scored(GOLD, GOLD) == (7, 7, 7)


def test_another_attachment_lacks_one_bracket() -> None:
    other = "(TOP (S (NP (PRP I)) (VP (VBD saw) (NP (DT the) (NN man)) (PP (IN with) (NP (NNS ears)))) (. .)))"
    assert scored(GOLD, other) == (7, 6, 6)


def test_where_punctuation_is_attached_does_not_matter() -> None:
    lower = "(TOP (S (NP (PRP I)) (VP (VBD saw) (NP (NP (DT the) (NN man)) (PP (IN with) (NP (NNS ears)))) (. .))))"
    assert scored(GOLD, lower) == (7, 7, 7)
    assert scored("(TOP (S (NP (NN a)) (PRN (, ,) (, ,))))", "(TOP (S (NP (NN a)) (, ,) (, ,)))") == (2, 2, 2)


def test_labels_count_but_advp_is_prt() -> None:
    assert scored("(TOP (VP (VB give) (PRT (RP up))))", "(TOP (VP (VB give) (ADVP (RB up))))") == (2, 2, 2)
    assert scored("(TOP (VP (VB give) (NP (RP up))))", "(TOP (VP (VB give) (ADVP (RB up))))") == (2, 2, 1)


def test_a_bracket_that_is_there_twice_has_to_be_found_twice() -> None:
    assert scored("(TOP (NP (NP (NN a))))", "(TOP (NP (NN a)))") == (2, 1, 1)


def test_precision_recall_and_f1() -> None:
    total = evalb.Score(7, 6, 6) + evalb.Score(1, 2, 0)
    assert (total.precision, total.recall) == (0.75, 0.75)
    assert total.f1 == 0.75
    assert evalb.Score().f1 == evalb.Score().precision == evalb.Score().recall == 0.0
