"""The recipe's head-driven parser on sentences of the WSJ sample, beside the grammar of `folds.py` on the same ones.

The treebank says nothing of heads: they are found by the head table of Collins (1999, appendix A). Base noun phrases
are NPB as there (section 2.3.4), and punctuation, which evalb leaves out, is taken away from the words. The model is
the first of Collins, which knows no arguments. It is given the tags of the treebank; so the other grammar is learned
both from words, as in `folds.py`, and from tags in place of words.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence

from docs.recipes import collins
from docs.recipes.treebank import Grammar, phrases

import dynagrad as dg
from dynagrad import training

from . import evalb
from .common import Row, timed
from .evalb import Bracket, Score, read_tree, score
from .folds import FOLDS, trees

LONGEST, SHORT, APART = 20, 15, 20
"""How many words sentences have at most that are parsed, punctuation not among them; how many those that trust in words
is learned on; and of how many other trees one is for that."""

# -- heads -------------------------------------------------------------------------------------------------------------

HEADS = {
    "ADJP": ("left", "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"),
    "ADVP": ("right", "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
    "CONJP": ("right", "CC RB IN"),
    "FRAG": ("right", ""),
    "LST": ("right", "LS"),
    "NAC": ("left", "NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"),
    "PP": ("right", "IN TO VBG VBN RP FW"),
    "PRT": ("right", "RP"),
    "QP": ("left", "$ IN NNS NN JJ RB DT CD NCD QP JJR JJS"),
    "RRC": ("right", "VP NP ADVP ADJP PP"),
    "S": ("left", "TO IN VP S SBAR ADJP UCP NP"),
    "SBAR": ("left", "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
    "SBARQ": ("left", "SQ S SINV SBARQ FRAG"),
    "SINV": ("left", "VBZ VBD VBP VB MD VP S SINV ADJP NP"),
    "SQ": ("left", "VBZ VBD VBP VB MD VP SQ"),
    "UCP": ("right", ""),
    "VP": ("left", "TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP"),
    "WHADJP": ("left", "CC WRB JJ ADJP"),
    "WHADVP": ("right", "CC WRB"),
    "WHNP": ("left", "WDT WP WP$ WHADJP WHPP WHNP"),
    "WHPP": ("right", "IN TO FW"),
}
"""From which side a child with the first of these labels is looked for, then with the second, and so on. Where there is
none it is the child on that side."""
NOUNS = (
    ("right", "NN NNP NNPS NNS NX POS JJR"),
    ("left", "NP NPB"),
    ("right", "$ ADJP PRN"),
    ("right", "CD"),
    ("right", "JJ JJS RB QP"),
)
"""The same of noun phrases, where labels of one line are alike."""


def head(label: str, parts: Sequence[str]) -> int:
    """Which of the children of a phrase is its head."""
    found = noun(parts) if label in ("NP", "NPB", "NX") else other(label, parts)
    return found - 2 if found >= 2 and parts[found - 1] == "CC" else found


def noun(parts: Sequence[str]) -> int:
    last = len(parts) - 1
    if parts[last] == "POS":
        return last
    return next((n for side, labels in NOUNS if (n := nearest(side, labels.split(), parts)) is not None), last)


def other(label: str, parts: Sequence[str]) -> int:
    side, labels = HEADS.get(label, ("left", ""))
    found = (n for each in labels.split() if (n := nearest(side, [each], parts)) is not None)
    return next(found, 0 if side == "left" else len(parts) - 1)


def nearest(side: str, labels: Sequence[str], parts: Sequence[str]) -> int | None:
    """The child nearest to a side that has one of some labels."""
    found = [n for n, part in enumerate(parts) if part in labels]
    return (found[0] if side == "left" else found[-1]) if found else None


# -- trees of the treebank as those of the recipe ----------------------------------------------------------------------


def plain(tree: evalb.Tree) -> evalb.Tree | None:
    """A tree without punctuation, with base noun phrases; nothing where there are no words."""
    if not tree.children:
        return None if tree.label in evalb.PUNCTUATION else tree
    parts = tuple(part for child in tree.children if (part := plain(child)) is not None)
    if not parts:
        return None
    base = tree.label == "NP" and not any(nominal(part) for part in parts)
    if tree.label != "NP":
        parts = tuple(evalb.Tree("NP", (part,)) if part.label == "NPB" else part for part in parts)
    return evalb.Tree("NPB" if base else tree.label, parts)


def nominal(tree: evalb.Tree) -> bool:
    """Whether a noun phrase with this child is no base noun phrase: it is one too, and no possessive."""
    return tree.label in ("NP", "NPB") and tree.children[-1].label != "POS"


def headed(tree: evalb.Tree) -> collins.Tree:
    """The same tree with its heads."""
    if not tree.children:
        return collins.Tree(tree.label, tree.word)
    parts = [headed(child) for child in tree.children]
    at = head(tree.label, [part.label for part in parts])
    return collins.Tree(tree.label, "", parts[at], tuple(parts[:at][::-1]), tuple(parts[at + 1 :]))


def sentence(text: str) -> collins.Sentence | None:
    """What the tree of a text says of its words, where it has any but punctuation."""
    (top,) = read_tree(text).children
    tree = plain(evalb.Tree("TOP", (top,)))
    return None if tree is None or not tree.children[0].children else collins.read(headed(tree.children[0]))


def brackets(found: set[Bracket]) -> list[Bracket]:
    """Phrases as those of the treebank: a base noun phrase that is a whole noun phrase is no other one."""
    return [("NP" if x == "NPB" else x, i, k) for x, i, k in found if x != "NPB" or ("NP", i, k) not in found]


# -- parsing -----------------------------------------------------------------------------------------------------------

Parser = Callable[[str], Sequence[Bracket]]
"""From a tree in brackets, whose words or tags it may see, to the brackets that it finds."""


def learned(sample: Sequence[collins.Sentence], words: bool) -> collins.Grammar:
    """The recipe's grammar: some trees are counted, and on others, the short ones, trust is learned."""
    known = [s for n, s in enumerate(sample) if n % APART]
    others = [s for s in sample[::APART] if len(s.words) <= SHORT]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.ProgramWarning)  # trees with a modifier that was not counted do not count
        return collins.learned(known, others, words)


def head_driven(grammar: collins.Grammar) -> Parser:
    """The recipe's parser. A word not seen with its tag stands as the class of rare words seen most with it."""
    classes: dict[str, tuple[float, str]] = {}
    for (tag, word), p in grammar.unigram.items():
        if word not in grammar.words.words:
            classes[tag] = max(classes.get(tag, (0.0, "")), (p, word))
    known = grammar._replace(words=training.vocabulary((word for _, word in grammar.unigram), least=1))

    def seen(tag: str, word: str) -> str:
        return word if (tag, known.words(word)) in known.unigram else classes.get(tag, (0.0, word))[1]

    def parse(text: str) -> list[Bracket]:
        s = sentence(text)
        if s is None:
            return []
        given = collins.facts(known, s._replace(words=[*map(seen, s.tags, s.words)]))
        try:
            found, _ = collins.parse(given)
        except dg.QueryError:  # no parse
            return []
        tags = [leaf.label for leaf in read_tree(text).leaves()]
        kept = [n for n, tag in enumerate(tags) if tag not in evalb.PUNCTUATION]
        return [(x, kept[i], kept[k - 1] + 1) for x, i, k in brackets(found)]

    return parse


def of_tags(text: str) -> str:
    """A tree whose words are their tags."""
    return re.sub(r"\((\S+) [^\s()]+\)", r"(\1 \1)", text)


def read_off(grammar: Grammar) -> Parser:
    """The parser of `folds.py`."""
    parser = grammar.parser()

    def parse(text: str) -> list[Bracket]:
        given = grammar.facts([leaf.word for leaf in read_tree(text).leaves()])
        (best,) = parser.run_batch([given], query="goal", best=1, threads=1).best
        return phrases(best)

    return parse


def scored(parser: Parser, held_out: Sequence[str]) -> tuple[Score, int, float]:
    """The score of some trees, how many sentences have no parse, and the seconds that each takes."""
    found: list[Sequence[Bracket]] = []
    seconds = timed(lambda: found.extend(map(parser, held_out)))
    total = Score()
    for text, parsed in zip(held_out, found, strict=True):
        tree = read_tree(text)
        total += score([leaf.label for leaf in tree.leaves()], tree.brackets(), parsed)
    return total, sum(not parsed for parsed in found), seconds / len(held_out)


def wsj() -> list[Row]:
    """Labelled F1 of the sentences of the first fold, by what the other folds teach."""
    sample = trees()
    rest = [text for n, text in enumerate(sample) if n % FOLDS]
    sentences = [s for s in map(sentence, rest) if s is not None]
    held_out = [text for text in sample[::FOLDS] if (s := sentence(text)) is not None and len(s.words) <= LONGEST]
    grammars: list[collins.Grammar] = []
    seconds = timed(lambda: grammars.append(learned(sentences, words=True)))
    with_words = scored(head_driven(grammars[0]), held_out)
    without_words = scored(head_driven(learned(sentences, words=False)), held_out)
    words = scored(read_off(Grammar(rest)), held_out)
    tags = scored(read_off(Grammar([*map(of_tags, rest)])), [*map(of_tags, held_out)])
    what = f"WSJ sample, one fold, {len(held_out)} sentences of at most {LONGEST} words"

    def row(name: str, own: tuple[Score, int, float], peer: str, other: tuple[Score, int, float]) -> Row:
        note = (
            f"precision {own[0].precision:.4f}, recall {own[0].recall:.4f}, {own[1]} without a parse, peer {other[1]}"
        )
        return Row(f"{what}: labelled F1 {name}", own[0].f1, "", peer, other[0].f1, note=note)

    return [
        row("of the recipe `collins.py`, which is given tags", with_words, "the grammar of `folds`", words),
        row("of the same without words of heads", without_words, "the grammar of `folds`, from tags", tags),
        Row(f"{what}: best parse of a sentence", with_words[2], "s", "the grammar of `folds`", words[2]),
        Row(f"{what}: learning the grammar with words", seconds),
    ]
