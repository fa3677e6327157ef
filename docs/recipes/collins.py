"""A head-driven lexicalised parser in the manner of Collins (1997, 2003), model 1: every phrase knows its head word.

From the head of a phrase modifiers are generated outward, first to the right, then to the left, each given the head
word and whether it is the nearest. Most heads were seen with few modifiers, so probabilities given words are
interpolated with those given tags and given neither, and EM learns on other trees how far words can be trusted.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dynagrad as dg
from dynagrad import training

SMOOTHING = """
:- input word/2, tag/2.               % word(H,W): W is the word at position H; tag(H,U): its tag
:- input often/5, by_word/6, by_tag/6, by_frame/5, joined/6, pair/6, unigram/2, context/4, kind/5.
:- distribution trust(E,B,L) given E,B.   % in a history that was seen B often, so much is said by level L

% A frame F is a phrase with a head child, such as np/npb. modify(F,H,S,D,M,T): where its head word is at H, it has on
% the side S a modifier M whose head has tag T, or no more (stop). D: it is the nearest one there (near), or not (far).
seen(F,H,S,D,B) += word(H,W) * often(F,W,S,D,B).
seen(F,H,S,D,0) += word(H,W) * tag(H,U) * context(F,U,S,D) for not often(F,W,S,D,_).
modify(F,H,S,D,M,T) += seen(F,H,S,D,B) * trust(label,B,word)  * by_word(F,W,S,D,M,T) * word(H,W).
modify(F,H,S,D,M,T) += seen(F,H,S,D,B) * trust(label,B,tag)   * by_tag(F,U,S,D,M,T) * tag(H,U).
modify(F,H,S,D,M,T) += seen(F,H,S,D,B) * trust(label,B,frame) * by_frame(F,S,D,M,T).

% choose(F,H,S,M,N): the head word of that modifier is the one at N.
known(F,H,S,M,T,B) += word(H,W) * joined(F,W,S,M,T,B).
known(F,H,S,M,T,0) += word(H,W) * tag(H,U) * kind(F,U,S,M,T) for not joined(F,W,S,M,T,_).
choose(F,H,S,M,N) += known(F,H,S,M,T,B) * trust(word,B,word) * pair(F,W,S,M,T,V) * word(H,W) * word(N,V) * tag(N,T).
choose(F,H,S,M,N) += known(F,H,S,M,T,B) * trust(word,B,tag)  * unigram(T,V) * word(N,V) * tag(N,T).
"""
TREES = """
:- input modified/7, stopped/5, choices/1.   % what a tree has chosen, one choice after another

done(0).
done(E+1) += done(E) * modified(E,F,H,S,D,M,N) * modify(F,H,S,D,M,T) * tag(N,T) * choose(F,H,S,M,N).
done(E+1) += done(E) * stopped(E,F,H,S,D) * modify(F,H,S,D,stop,stop).
observed += done(E) * choices(E).
"""
PARSER = """
:- input frame/2, head/3, first/2, length/1.   % frame(P,F): F is of a P.  head(F,C,U): C is the head child, of tag U

% phrase(X,H,I,K): a phrase X from I to K, whose head word is at H. A word is a phrase of its tag.
phrase(U,H,H,H+1) += tag(H,U).
phrase(P,H,I,K)   += frame(P,F) * part(F,H,I,K,left,D) * modify(F,H,left,D,stop,stop).

% part(F,H,I,K,S,D): a phrase around its head child, to which modifiers are still added on the side S.
part(F,H,I,K,right,near) += head(F,C,U) * tag(H,U) * phrase(C,H,I,K).
part(F,H,I,K,right,far)  += part(F,H,I,J,right,D) * modifier(F,H,right,D,J,K).
part(F,H,I,K,left,near)  += part(F,H,I,K,right,D) * modify(F,H,right,D,stop,stop).
part(F,H,I,K,left,far)   += part(F,H,J,K,left,D) * modifier(F,H,left,D,I,J).

modifier(F,H,right,D,J,K) += modify(F,H,right,D,M,T) * phrase(M,N,J,K) * tag(N,T) * choose(F,H,right,M,N) for H < J.
modifier(F,H,left,D,I,J)  += modify(F,H,left,D,M,T) * phrase(M,N,I,J) * tag(N,T) * choose(F,H,left,M,N) for J =< H.

goal += first(X,H) * phrase(X,H,0,N) * length(N).   % first(X,H): a sentence is an X with its head word at H
"""
PROGRAM = SMOOTHING + PARSER

Facts = dict[str, Any]
Bracket = tuple[str, int, int]


class Tree(NamedTuple):
    """A phrase: its label, head child, and modifiers on both sides, the nearest first. Words have tags as labels."""

    label: str
    word: str = ""
    child: Tree | None = None
    left: tuple[Tree, ...] = ()
    right: tuple[Tree, ...] = ()


class Choice(NamedTuple):
    """A modifier whose head word is at some place, or that there are no more (at -1)."""

    frame: str
    head: int
    side: str
    distance: str
    label: str
    at: int


class Sentence(NamedTuple):
    """What a tree says of its words."""

    words: list[str]
    tags: list[str]
    head: int
    brackets: list[Bracket]
    frames: list[tuple[str, str, str, int]]
    choices: list[Choice]


def read(tree: Tree) -> Sentence:
    """The words of a tree, and its choices."""
    found = Sentence([], [], 0, [], [], [])

    def visit(at: Tree) -> int:
        """The position of the head word."""
        if at.child is None:
            found.words.append(at.word)
            found.tags.append(at.label)
            return len(found.words) - 1
        begin = len(found.words)
        left = [(each.label, visit(each)) for each in reversed(at.left)][::-1]
        head = visit(at.child)
        right = [(each.label, visit(each)) for each in at.right]
        found.brackets.append((at.label, begin, len(found.words)))
        frame = f"{at.label}/{at.child.label}"
        found.frames.append((at.label, frame, at.child.label, head))
        for side, modifiers in (("right", right), ("left", left)):
            for n, (label, position) in enumerate([*modifiers, ("stop", -1)]):
                found.choices.append(Choice(frame, head, side, "far" if n else "near", label, position))
        return head

    head = visit(tree)
    return found._replace(head=head)


# -- counting ----------------------------------------------------------------------------------------------------------


def bucket(count: int) -> int:
    """How often a history was seen: 1, up to 3, 7, 15, or more."""
    return min(count.bit_length(), 5)


def totals(events: Counter[tuple[Any, ...]], given: int) -> Counter[tuple[Any, ...]]:
    """How often the first few members of events were seen."""
    found: Counter[tuple[Any, ...]] = Counter()
    for event, n in events.items():
        found[event[:given]] += n
    return found


def ratios(events: Counter[tuple[Any, ...]], given: int) -> list[tuple[Any, ...]]:
    """Relative frequencies of what follows the first few members of each event."""
    sums = totals(events, given)
    return [(*event, n / sums[event[:given]]) for event, n in events.items()]


def counted(trees: Sequence[Sentence], words: bool = True) -> Facts:
    """What a treebank says of modifiers; without `words` nothing of what it says of words."""
    counts: dict[str, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for s in trees:
        for frame, head, side, distance, label, at in s.choices:
            w, u = s.words[head], s.tags[head]
            t = s.tags[at] if at >= 0 else "stop"
            counts["by_word/6"][frame, w, side, distance, label, t] += 1
            counts["by_tag/6"][frame, u, side, distance, label, t] += 1
            counts["by_frame/5"][frame, side, distance, label, t] += 1
            if at >= 0:
                counts["pair/6"][frame, w, side, label, t, s.words[at]] += 1
        counts["unigram/2"].update(zip(s.tags, s.words, strict=True))
    given = {"by_word/6": 4, "by_tag/6": 4, "by_frame/5": 3, "pair/6": 5, "unigram/2": 1}
    found = {key: ratios(counts[key], n) for key, n in given.items()}
    found["often/5"] = [(*history, bucket(n)) for history, n in totals(counts["by_word/6"], 4).items()]
    found["joined/6"] = [(*history, bucket(n)) for history, n in totals(counts["pair/6"], 5).items()]
    fits: dict[str, set[str]] = defaultdict(set)  # the tags of the heads of each frame
    for f, u, *_ in counts["by_tag/6"]:
        fits[f].add(u)
    kinds = dict.fromkeys((f, s, m, t) for f, s, _, m, t in counts["by_frame/5"] if m != "stop")
    found["context/4"] = [(f, u, s, d) for f, s, d in totals(counts["by_frame/5"], 3) for u in sorted(fits[f])]
    found["kind/5"] = [(f, u, *rest) for f, *rest in kinds for u in sorted(fits[f])]
    return found if words else found | {key: [] for key in ("by_word/6", "often/5", "pair/6", "joined/6")}


def grown(trees: Sequence[Sentence]) -> Facts:
    """Which frames there are, how likely given the phrase and the tag of its head."""
    frames = Counter((p, s.tags[h], f, c) for s in trees for p, f, c, h in s.frames)
    return {
        "frame/2": sorted({(p, f) for p, _, f, _ in frames}),
        "head/3": [(f, c, u, x) for _, u, f, c, x in ratios(frames, 2)],
    }


# -- training and parsing ----------------------------------------------------------------------------------------------


def words_of(s: Sentence) -> Facts:
    return {"word/2": list(enumerate(s.words)), "tag/2": list(enumerate(s.tags))}


def observed(s: Sentence) -> Facts:
    """A tree as the choices that it made."""
    return {
        **words_of(s),
        "modified/7": [(e, *c) for e, c in enumerate(s.choices) if c.at >= 0],
        "stopped/5": [(e, *c[:4]) for e, c in enumerate(s.choices) if c.at < 0],
        "choices/1": [(len(s.choices),)],
    }


LEVELS = {
    "trust/3": [
        (event, b, level)
        for event, levels in (("label", ("word", "tag", "frame")), ("word", ("word", "tag")))
        for b in range(6)
        for level in levels[b == 0 :]
    ]
}
"""What is learned. A history that was never seen has no level `word`."""


def trusted(tables: Facts, trees: Sequence[Sentence], iterations: int = 20) -> dg.Model:
    """How far each level is to be trusted: learned on trees that were not counted."""
    program = f":- semiring real. {SMOOTHING} {TREES}"
    model = dg.Model(program, LEVELS, goal="observed", facts=tables, prior=training.add_lambda(0.1))
    model.fit([observed(s) for s in trees], iterations=iterations)
    return model


class Grammar(NamedTuple):
    """What was learned from a treebank. Words that it does not have twice stand for their class."""

    words: training.Vocabulary

    smoothing: dg.Model
    frames: Facts
    tops: dict[tuple[str, str], float]
    unigram: dict[tuple[str, str], float]
    tables: Facts


def learned(known: Sequence[Sentence], others: Sequence[Sentence], words: bool = True) -> Grammar:
    """Counted on some trees, and on others how far counts are to be trusted."""
    vocabulary = training.vocabulary(w for s in known for w in s.words)
    known, others = ([s._replace(words=[*map(vocabulary, s.words)]) for s in trees] for trees in (known, others))
    tables = counted(known, words)
    unigram = {(u, w): p for u, w, p in tables["unigram/2"]}
    tops = Counter((s.brackets[-1][0], s.tags[s.head]) for s in known)
    first = {top: n / len(known) for top, n in tops.items()}
    return Grammar(vocabulary, trusted(tables, others), grown(known), first, unigram, tables)


def sentence(s: Sentence, tops: Mapping[tuple[str, str], float], unigram: Mapping[tuple[str, str], float]) -> Facts:
    """What the parser is told of the words, whatever the grammar's choices."""
    words = list(zip(s.tags, s.words, strict=True))
    first = [(x, h, tops[x, u] * unigram.get((u, w), 0.0)) for h, (u, w) in enumerate(words) for x, t in tops if t == u]
    return {
        "tag/2": list(enumerate(s.tags)),
        "first/2": [(x, h, p) for x, h, p in first if p],
        "length/1": [(len(s.words),)],
    }


def facts(grammar: Grammar, s: Sentence) -> Facts:
    """All choices among the words of a sentence, each a sum over levels, for the parser."""
    s = s._replace(words=[*map(grammar.words, s.words)])
    smoothed = grammar.smoothing.bound.run(words_of(s))
    return {
        "modify/6": smoothed.table("modify/6"),
        "choose/5": smoothed.table("choose/5"),
        **grammar.frames,
        **sentence(s, grammar.tops, grammar.unigram),
    }


def parse(given: Facts) -> tuple[set[Bracket], dict[int, int]]:
    """The phrases of the best parse, and the head that each prepositional phrase modifies."""
    tags, phrases, heads = dict(given["tag/2"]), set(), {}
    for step in dg.Program(PARSER, "viterbi", values="probabilities").run(given).best("goal"):
        match step.name:
            case "phrase/4", (x, h, i, k) if x != tags[h]:
                phrases.add((x, i, k))
            case "modifier/6", (_, h, "right", _, i, _) if tags[i] == PREPOSITION:
                heads[i] = h
    return phrases, heads


Score = tuple[float, float]


def scored(parses: Sequence[tuple[set[Bracket], dict[int, int]]], trees: Sequence[Sentence]) -> Score:
    """F1 of labelled phrases, and the share of prepositional phrases that modify the right word."""
    right = [(set(s.brackets), {c.at: c.head for c in s.choices if c.at >= 0}) for s in trees]
    both = sum(len(found & brackets) for (found, _), (brackets, _) in zip(parses, right, strict=True))
    every = sum(len(found) + len(brackets) for (found, _), (brackets, _) in zip(parses, right, strict=True))
    placed = [
        found.get(at) == heads[at]
        for s, (_, found), (_, heads) in zip(trees, parses, right, strict=True)
        for at in heads
        if s.tags[at] == PREPOSITION
    ]
    return 2 * both / every, sum(placed) / max(len(placed), 1)


# -- a treebank --------------------------------------------------------------------------------------------------------

Chances = dict[Any, float]
STOP: Chances = {("stop", "stop"): 1.0}
SHORTEST, LONGEST = 7, 16
PREPOSITION = "in"


def zipf(words: Sequence[str]) -> Chances:
    weights = 1 / np.arange(1, len(words) + 1)
    return dict(zip(words, (weights / weights.sum()).tolist(), strict=True))


NOUNS = zipf([f"n{i}" for i in range(150)])
VERBS = zipf([f"v{i}" for i in range(40)])
PREPOSITIONS = ["of", "with", "in", "on", "from", "to"]


class Language:
    """A lexicalised grammar: verbs, nouns and prepositions like some words beside them more than others."""

    def __init__(self, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.attach = {w: float(random.choice([0.02, 0.05, 0.4], p=[0.5, 0.3, 0.2])) for w in NOUNS}
        self.attach |= {w: float(random.choice([0.1, 0.4, 0.6])) for w in VERBS}
        self.transitive = {w: float(random.choice([0.3, 0.95], p=[0.3, 0.7])) for w in VERBS}
        self.likes = {
            w: dict(zip(PREPOSITIONS, random.dirichlet([0.2] * len(PREPOSITIONS)).tolist(), strict=True))
            for w in (*NOUNS, *VERBS)
        }
        self.nouns: dict[tuple[str, str], Chances] = {}
        for context in (
            [("s/vp", v) for v in VERBS] + [("vp/v", v) for v in VERBS] + [("pp/in", p) for p in PREPOSITIONS]
        ):
            liked = [str(w) for w in random.choice(list(NOUNS), 6, replace=False)]
            self.nouns[context] = {w: 0.4 * p + 0.1 * (w in liked) for w, p in NOUNS.items()}

    def modifiers(self, frame: str, w: str, side: str, distance: str) -> Chances:
        """Labels and tags of what may come next, with their probabilities."""
        match frame, side, distance:
            case "s/vp", "left", "near":
                return {("np", "nn"): 0.7, ("np", "prp"): 0.3}
            case "vp/v", "right", "near":
                t = self.transitive[w]
                rest = {("pp", "in"): 0.6 * (1 - t), ("stop", "stop"): 0.4 * (1 - t)}
                return {("np", "nn"): 0.85 * t, ("np", "prp"): 0.15 * t, **rest}
            case ("vp/v", "right", "far") | ("np/npb", "right", _) if w in self.attach:
                return {("pp", "in"): self.attach[w], ("stop", "stop"): 1 - self.attach[w]}
            case "npb/nn", "left", "near":
                return {("dt", "dt"): 0.6, ("jj", "jj"): 0.25, ("stop", "stop"): 0.15}
            case "pp/in", "right", "near":
                return {("np", "nn"): 0.9, ("np", "prp"): 0.1}
        return STOP

    def words(self, frame: str, w: str, tag: str) -> Chances:
        """Head words with a tag, in a frame with the head word w."""
        if tag == "in":
            return self.likes.get(w, {})
        if tag == "nn":
            return self.nouns.get((frame, w), {})
        return {
            "dt": {"the": 0.7, "a": 0.3},
            "jj": {"old": 0.5, "new": 0.3, "red": 0.2},
            "prp": {"she": 0.5, "they": 0.3, "it": 0.2},
        }[tag]


CHILD = {"s": "vp", "vp": "v", "np": "npb", "pp": "in"}


def drawn(language: Language, random: np.random.Generator) -> Tree:
    """A tree of the language, at random."""

    def one(chances: Chances) -> Any:
        return list(chances)[int(random.choice(len(chances), p=list(chances.values())))]

    def phrase(label: str, tag: str, word: str) -> Tree:
        if label == tag:
            return Tree(label, word)
        child = CHILD.get(label, tag)
        frame = f"{label}/{child}"
        sides: dict[str, list[Tree]] = {"right": [], "left": []}
        for side, found in sides.items():
            while (chosen := one(language.modifiers(frame, word, side, "far" if found else "near")))[0] != "stop":
                found.append(phrase(*chosen, one(language.words(frame, word, chosen[1]))))
        return Tree(label, "", phrase(child, tag, word), tuple(sides["left"]), tuple(sides["right"]))

    return phrase("s", "v", one(VERBS))


def treebank(number: int, language: Language, seed: int = 0) -> list[Sentence]:
    """Trees of the language, none of them long."""
    random = np.random.default_rng(seed)
    found: list[Sentence] = []
    while len(found) < number:
        s = read(drawn(language, random))
        if SHORTEST <= len(s.words) <= LONGEST:
            found.append(s)
    return found


def hidden(language: Language, s: Sentence) -> Facts:
    """The same facts as `facts` gives, by the grammar that made the treebank."""
    frames = {"v": ["s/vp", "vp/v"], "nn": ["np/npb", "npb/nn"], "prp": ["np/npb", "npb/prp"], "in": ["pp/in"]}
    label = {"nn": "np", "prp": "np", "in": "pp", "dt": "dt", "jj": "jj"}
    modify, choose = [], []
    for (h, (w, u)), side in itertools.product(enumerate(zip(s.words, s.tags, strict=True)), ("left", "right")):
        for f in frames.get(u, []):
            for d in ("near", "far"):
                modify += [(f, h, side, d, *m, x) for m, x in language.modifiers(f, w, side, d).items()]
            for n, (v, t) in enumerate(zip(s.words, s.tags, strict=True)):
                if t in label and (x := language.words(f, w, t).get(v, 0.0)):
                    choose.append((f, h, side, label[t], n, x))
    grows = [(f.split("/")[0], f, f.split("/")[1], u) for u, found in frames.items() for f in found]
    return {
        "modify/6": modify,
        "choose/5": choose,
        "frame/2": sorted({(p, f) for p, f, _, _ in grows}),
        "head/3": [(f, c, u) for _, f, c, u in grows],
        **sentence(s, {("s", "v"): 1.0}, {("v", w): p for w, p in VERBS.items()}),
    }


def small() -> list[Sentence]:
    """Three trees by hand, and one more."""

    def np(word: str, *right: Tree) -> Tree:
        base = Tree("npb", "", Tree("nn", word), (Tree("dt", "the"),))
        return Tree("np", "", base, (), right)

    def pp(word: str) -> Tree:
        return Tree("pp", "", Tree("in", "with"), (), (np(word),))

    def sentence(subject: Tree, *right: Tree) -> Tree:
        return Tree("s", "", Tree("vp", "", Tree("v", "saw"), (), right), (subject,))

    return [
        read(sentence(np("man"), np("dog"), pp("telescope"))),
        read(sentence(np("dog"), np("man", pp("dog")))),
        read(sentence(np("man"), np("telescope"), pp("telescope"))),
        read(sentence(np("dog"), np("dog", pp("dog")))),
    ]


def corpus(size: str) -> tuple[list[Sentence], list[Sentence], list[Sentence]]:
    """Trees to count, others to learn from how far counts can be trusted, and trees to test."""
    if size == "small":
        trees = small()
        return trees[:2], trees[2:3], trees[3:]
    trees = treebank(1900, Language())
    return trees[:1500], trees[1500:1700], trees[1700:]


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """What was counted and learned, and the words of the trees to test."""
    known, others, tests = corpus(size)
    g = learned(known, others)
    shared = {**g.tables, **g.frames, "trust/3": list(g.smoothing.weights["trust/3"])}
    tests = [s._replace(words=[*map(g.words, s.words)]) for s in tests]
    return shared, [words_of(s) | sentence(s, g.tops, g.unigram) for s in tests]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    known, others, tests = corpus(size)
    yield "trees", len(known) + len(others)
    yield "sentences to parse", len(tests)
    for what, words in (("with words", True), ("without", False)):
        grammar = learned(known, others, words)
        f1, placed = scored([parse(facts(grammar, s)) for s in tests], tests)
        yield f"F1 of labelled phrases, {what}", f1
        yield f"share of prepositional phrases at the right word, {what}", placed
    if size == "real":
        f1, placed = scored([parse(hidden(Language(), s)) for s in tests], tests)
        yield "F1 by the grammar that made the trees", f1
        yield "share of prepositional phrases at the right word, by that grammar", placed


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    known, others, tests = corpus("real")
    tests = tests[:100]
    sizes = [100, 200, 400, 800, 1500]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        best = scored([parse(hidden(Language(), s)) for s in tests], tests)[1]
        axes.axhline(best, color="C2", ls="--", label="by the grammar that made the trees")
        for words, label in ((True, "with words"), (False, "without")):
            grammars = [learned(known[:n], others, words) for n in sizes]
            share = [scored([parse(facts(grammar, s)) for s in tests], tests)[1] for grammar in grammars]
            axes.plot(sizes, share, "o-", label=label)
        axes.set(xlabel="trees that were counted", ylabel="phrases at the right word", ylim=(0.5, 1), xscale="log")
        axes.set_xticks(sizes, sizes)
        axes.minorticks_off()
        axes.legend(loc="lower right")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
