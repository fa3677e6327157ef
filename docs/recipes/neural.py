"""A dependency parser whose arcs are scored by a neural network: Eisner's rules, and a network of PyTorch.

A bidirectional LSTM reads the words, and a bilinear form of what it says of two of them is the score of an arc
(Kiperwasser and Goldberg 2016; Dozat and Manning 2017). The rules sum over all projective trees (Eisner 1996), and what
is made large is the probability of the right tree. Its gradient goes through the rules, and then through the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

NEEDS = "torch"
"""An optional package, without which there is neither training nor a picture."""
PROGRAM = """
:- input score/3.        % score(S,H,D): of the arc from the head H to its dependent D in sentence S; 0 is the root
:- input permitted/2.    % permitted(H,D): the arcs that a tree may have
:- input sentence/1, word/1, length/1.   % the words are at the positions from 1 on

arc(H,D) += score(S,H,D) * sentence(S) * permitted(H,D).

% right(I,K): I with all its dependents to the right, up to K.  left(I,K): K with all of its to the left, down to I.
% to_right(I,K): those with an arc from I to K, K without its dependents to the right yet; to_left(I,K): from K to I.
right(0,0) += SIDE(length(_)).
right(D,D) += word(D).
left(D,D)  += word(D).

to_right(I,K) += right(I,J) * left(J+1,K) * arc(I,K) for I =< J, J < K.
to_left(I,K)  += right(I,J) * left(J+1,K) * arc(K,I) for I =< J, J < K.
right(I,K)    += to_right(I,J) * right(J,K).
left(I,K)     += left(I,J) * to_left(J,K).

goal += right(0,N) * length(N).
"""

Facts = dict[str, Any]
Tree = tuple[list[str], list[int]]
"""Words, and the position of the head of each: 0 is the root."""

SMALL: list[Tree] = [
    (["the", "dog", "barks"], [2, 3, 0]),
    (["dog", "bites", "the", "man"], [2, 0, 4, 2]),
    (["the", "man", "bites"], [2, 3, 0]),
]
FAR = 6
"""The longest distance of which scores know."""


# -- a treebank --------------------------------------------------------------------------------------------------------


KINDS = {
    "det": ["the", "a", "this"],
    "adj": [f"w{n}" for n in range(12)],
    "noun": [f"w{n}" for n in range(6, 46)],
    "verb": [f"w{n}" for n in range(30, 60)],
    "of": ["of", "from"],
    "with": ["with", "at"],
}
"""Words of each kind: some are of two. Those of `of` depend on nouns, those of `with` on verbs."""
BESIDE = {
    "verb": [("noun", "left", 0.9), ("noun", "right", 0.7), ("with", "right", 0.5), ("with", "right", 0.2)],
    "noun": [("adj", "left", 0.4), ("det", "left", 0.6), ("of", "right", 0.3)],
    "of": [("noun", "right", 1.0)],
    "with": [("noun", "right", 1.0)],
}
"""The dependents that a kind of word has, the nearest first, and how often."""


def corpus(size: str, seed: int = 0) -> tuple[list[Tree], list[Tree], list[Tree]]:
    """Trees to train on, trees that say when to stop, and trees to test."""
    if size == "small":
        return SMALL[:2], SMALL[:1], SMALL[2:]
    random = np.random.default_rng(seed)

    def drawn(kind: str) -> tuple[list[str], list[int], int]:
        """The words below one of a kind, their heads (of that word itself -1), and where it stands."""
        words, heads, at = [str(random.choice(KINDS[kind]))], [-1], 0
        for other, side, chance in BESIDE.get(kind, []):
            if random.random() < chance:
                more, below, _ = drawn(other)
                before, after = (0, len(words)) if side == "right" else (len(more), 0)
                heads = [h + before if h >= 0 else h for h in heads]
                below = [h + after if h >= 0 else at + before for h in below]
                words, heads = (words + more, heads + below) if side == "right" else (more + words, below + heads)
                at += before
        return words, heads, at

    trees: list[Tree] = []
    while len(trees) < 500:
        words, heads, _ = drawn("verb")
        if 5 <= len(words) <= 12:
            trees.append((words, [h + 1 for h in heads]))
    return trees[:250], trees[250:300], trees[300:]


def sentence(number: int, tree: Tree) -> training.Example:
    """The facts of a sentence, to which any word may be the head of any other, and those of its tree."""
    n = len(tree[0])
    every = [(h, d) for d in range(1, n + 1) for h in range(n + 1) if h != d]
    facts = {
        "sentence/1": [(number,)],
        "word/1": [(d,) for d in range(1, n + 1)],
        "length/1": [(n,)],
        "permitted/2": every,
    }
    return training.Example(facts, {"permitted/2": [(h, d) for d, h in enumerate(tree[1], 1)]})


def arcs(trees: Sequence[Tree]) -> list[tuple[int, int, int]]:
    """All arcs that sentences may have: the number of the sentence, a head, a dependent."""
    return [(s, h, d) for s, tree in enumerate(trees) for h, d in sentence(s, tree).facts["permitted/2"]]


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Scores that prefer short arcs, and the sentences."""
    known, _, _ = corpus(size)
    scores = [(s, h, d, -0.1 * abs(h - d)) for s, h, d in arcs(known)]
    return {"score/3": scores}, [dict(sentence(s, tree).facts) for s, tree in enumerate(known)]


# -- the network -------------------------------------------------------------------------------------------------------


def network(words: Sequence[str], width: int = 24, context: bool = True, seed: int = 0) -> Any:
    """A module that scores the arcs of sentences. Without `context` it sees the two words and their distance alone."""
    import torch  # an optional package
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

    torch.manual_seed(seed)
    number = {w: n for n, w in enumerate(dict.fromkeys(words), 2)}  # 0 is the root, 1 all other words

    class Scorer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(len(number) + 2, width)
            self.lstm = torch.nn.LSTM(width, width // 2, batch_first=True, bidirectional=True)
            self.head, self.dependent = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
            self.distance = torch.nn.Parameter(torch.zeros(2 * FAR + 1))

        def forward(self, sentences: Sequence[Any], places: Any) -> Any:
            """The scores of arcs: `places` has the number of the sentence, the head and the dependent of each."""
            seen = self.embed(pad_sequence(sentences, batch_first=True))
            if context:
                lengths = torch.tensor([len(each) for each in sentences])
                packed = pack_padded_sequence(seen, lengths, batch_first=True, enforce_sorted=False)
                seen, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
            head, dependent = torch.tanh(self.head(seen)), torch.tanh(self.dependent(seen))
            s, h, d = places
            return (head @ dependent.transpose(1, 2))[s, h, d] + self.distance[(d - h).clamp(-FAR, FAR) + FAR]

        def inputs(self, trees: Sequence[Tree]) -> tuple[list[Any], Any]:
            """What `forward` takes, for all arcs of some sentences."""
            read = [torch.tensor([0, *(number.get(w, 1) for w in words)]) for words, _ in trees]
            return read, torch.tensor(arcs(trees)).T

    return Scorer().double()


def learned(known: Sequence[Tree], stop: Sequence[Tree], context: bool = True, **options: Any) -> tuple[dg.Model, Any]:
    """A parser that is trained on trees until others get no better, and its network."""
    trees = [*known, *stop]
    module = network([w for words, _ in known for w in words], context=context)
    scores = training.Torch({"score/3": arcs(trees)}, module, *module.inputs(trees))
    model = dg.Model(
        f":- semiring log. {PROGRAM}",
        {"network": scores},
        objective=training.Conditional(),
        prior=training.L2(0.01),
    )
    examples = [sentence(s, tree) for s, tree in enumerate(trees)]
    chosen = {"dev": examples[len(known) :], "method": "l-bfgs", "iterations": 60, "patience": 10, **options}
    model.fit(examples[: len(known)], **chosen)
    return model, scores.to_module(model.parameters["network"])


def parsed(module: Any, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
    """The heads of the words of any sentences, in the best trees."""
    trees = [(list(each), [0] * len(each)) for each in sentences]
    rows = zip(arcs(trees), module(*module.inputs(trees)).tolist(), strict=True)
    parser = dg.Program(PROGRAM, "viterbi").bind({"score/3": [(*arc, score) for arc, score in rows]})
    batch = parser.run_batch([sentence(s, tree).facts for s, tree in enumerate(trees)], query="goal", best=1)
    found = []
    for best in batch.best:
        heads = {d: h for step in best[0] if step.name[0] == "arc/2" for h, d in [step.name[1]]}
        found.append([heads[d] for d in range(1, len(heads) + 1)])
    return found


def attached(module: Any, tests: Sequence[Tree]) -> float:
    """The share of words with the right head."""
    found = parsed(module, [words for words, _ in tests])
    pairs = [pair for f, (_, heads) in zip(found, tests, strict=True) for pair in zip(f, heads, strict=True)]
    return sum(f == h for f, h in pairs) / len(pairs)


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    known, stop, tests = corpus(size)
    yield "trees to train on", len(known)
    yield "words in them", sum(len(words) for words, _ in known)
    model, module = learned(known, stop)
    yield "parameters of the network", model.parameters["network"].size
    yield "share of words with the right head, held out", attached(module, tests)
    yield "the same without the LSTM", attached(learned(known, stop, False)[1], tests)


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    known, stop, _ = corpus("real")
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        for context, label in ((True, "with the LSTM"), (False, "without")):
            history: list[float] = []
            learned(known, stop, context, callback=lambda record, history=history: history.append(record.dev))
            axes.plot(range(1, len(history) + 1), np.array(history) / len(stop), label=label)
        axes.set(xlabel="iterations of L-BFGS", ylabel="log probability of a tree held out")
        axes.legend(loc="lower right")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
