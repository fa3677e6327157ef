"""Linear-chain conditional random fields: a tagger whose words have features, trained by its exact gradient.

The score of a tag sequence is a sum of learned weights; its probability is the softmax over all sequences (Lafferty,
McCallum and Pereira 2001). How a word is written and what stands beside it are features as good as the word itself,
which may never have been seen (Ratnaparkhi 1996, section 2).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

PROGRAM = """
:- input feature/2.    % feature(I,F): the word at position I, from 1, has the feature F
:- input tag/2.        % tag(I,T): the tag that it should get is T
:- input length/1.
:- input emit/2.       % emit(T,F): how well the tag T suits the feature F; learned
:- input move/2.       % move(S,T): how well the tag T suits after S, or after `start`; learned

fit(I,T) += emit(T,F) * feature(I,F).

% The log of the sum over all ways to tag the first I words, the last with T.
all(1,T)   log+= move(start,T) + fit(1,T).
all(I+1,T) log+= all(I,S) + move(S,T) + fit(I+1,T).
logz       log+= all(N,_) * SIDE(length(N)).

score += fit(I,T) * tag(I,T).
score += move(start,T) * tag(1,T).
score += move(S,T) * tag(I,S) * tag(I+1,T).

goal = score - logz.    % the log of the probability of the tags
"""

Facts = dict[str, Any]
Sentence = tuple[list[str], list[str]]
Features = Callable[[list[str], int], list[str]]
"""The features of the word at a place of a sentence."""
STRENGTH = 0.1


def word_alone(words: list[str], i: int) -> list[str]:
    """The word; and what all words have, for the tags of a word that was never seen."""
    return ["any", f"word={words[i].lower()}"]


def with_letters(words: list[str], i: int) -> list[str]:
    """The same, the beginnings and ends of the word, and how it is written."""
    word = words[i]
    shape = ("9" if any(c.isdigit() for c in word) else "A" if word[0].isupper() else "a") + "-" * ("-" in word)
    affixes = [f"{word[:n].lower()}-" for n in (1, 2, 3)] + [f"-{word[-n:].lower()}" for n in (1, 2, 3)]
    return [*word_alone(words, i), f"shape={shape}", *affixes]


def with_neighbours(words: list[str], i: int) -> list[str]:
    """The same, and the words beside it with their ends."""
    found = with_letters(words, i)
    for name, k in (("before", i - 1), ("after", i + 1)):
        beside = words[k].lower() if 0 <= k < len(words) else ""
        found += [f"{name}={beside}", f"{name}=-{beside[-2:]}"]
    return found


SETS: dict[str, Features] = {
    "word alone": word_alone,
    "and its letters": with_letters,
    "and its neighbours": with_neighbours,
}


def sentence(words: list[str], tags: list[str], features: Features = with_neighbours) -> Facts:
    """The facts of a sentence; without tags of one that is to be tagged."""
    return {
        "feature/2": [(i, f) for i in range(1, len(words) + 1) for f in dict.fromkeys(features(words, i - 1))],
        "tag/2": list(enumerate(tags, 1)),
        "length/1": [(len(words),)],
    }


SMALL: list[Sentence] = [
    (["The", "pilot", "saw", "it"], ["article", "noun", "verb", "pronoun"]),
    (["It", "saw", "the", "saw"], ["pronoun", "verb", "article", "noun"]),
    (["Planes", "fly"], ["noun", "verb"]),
]


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Weights of zero for all tags and features that were seen, and the facts of the sentences."""
    known, _ = corpus(size)
    return weights(known, with_neighbours), [sentence(*each) for each in known]


def weights(sentences: Sequence[Sentence], features: Features) -> Facts:
    """What is learned: a weight for each feature that was seen with a tag, and for each pair of tags."""
    tags = sorted({t for _, each in sentences for t in each})
    seen = {(t, f): 0.0 for words, each in sentences for i, t in enumerate(each) for f in features(words, i)}
    return {
        "emit/2": [(*pair, w) for pair, w in seen.items()],
        "move/2": [(s, t, 0.0) for s in ("start", *tags) for t in tags],
    }


def corpus(size: str, seed: int = 0) -> tuple[list[Sentence], list[Sentence]]:
    """Tagged sentences to train on, and others: of a treebank where there is one, else of an artificial language."""
    if size == "small":
        return SMALL, SMALL[1:]
    file = Path(os.environ.get("DYNAGRAD_DATA", "")) / "wsj-sample" / "tagged.txt"
    if "DYNAGRAD_DATA" in os.environ and file.exists():
        lines = file.read_text(encoding="utf-8").splitlines()
        pairs = [[token.rsplit("/", 1) for token in line.split()] for line in lines]
        found = [([w for w, _ in each], [t for _, t in each]) for each in pairs if 5 <= len(each) <= 40]
    else:
        found = drawn(300, seed)
    return found[:200], found[200:300]


def drawn(count: int, seed: int) -> list[Sentence]:
    """Sentences of a random hidden Markov model, whose words are often written as their tag would have it."""
    random = np.random.default_rng(seed)
    tags, endings = 20, ["ed", "ing", "er", "ly", "on", "al", "s", "e", "t", "y"]
    follows = random.dirichlet(np.full(tags, 0.2), tags)

    def word(t: int) -> str:
        stem = "".join(
            random.choice([*"bdfglmnprst"]) + random.choice([*"aeiou"]) for _ in range(random.integers(1, 4))
        )
        if t == 0:
            return str(random.integers(10_000))
        ending = endings[(t + int(random.random() < 0.3)) % 10]
        return (stem.capitalize() if t in (1, 2) else stem) + ending

    words = [[word(t) for _ in range(300)] for t in range(tags)]
    chances = 1 / np.arange(1, 301) / (1 / np.arange(1, 301)).sum()
    sentences = []
    for _ in range(count):
        t, said, given = int(random.integers(tags)), [], []
        for _ in range(random.integers(8, 30)):
            said.append(str(random.choice(words[t], p=chances)))
            given.append(f"tag{t}")
            t = int(random.choice(tags, p=follows[t]))
        sentences.append((said, given))
    return sentences


def trained(known: Sequence[Sentence], features: Features, iterations: int = 40) -> dg.Model:
    """A tagger: its weights are numbers of any sign, with a Gaussian prior."""
    rows = weights(known, features)
    free = training.Differentiable(rows, lambda w: w, {key: np.zeros(len(r)) for key, r in rows.items()}, logs=False)
    model = dg.Model(PROGRAM, {"weights": free}, prior=training.L2(STRENGTH))
    model.fit([sentence(*each, features) for each in known], method="l-bfgs", iterations=iterations)
    return model


def marginals(tagger: dg.Bound, given: Facts) -> dict[int, dict[str, float]]:
    """For each position the probability of each tag: the derivative of log Z by what the tag adds to it."""
    found: dict[int, dict[str, float]] = {}
    for i, tag, p in tagger.run({**given, "tag/2": []}).gradient("logz")["fit/2"]:
        found.setdefault(i, {})[tag] = p
    return found


def compared(model: dg.Model, sentences: Sequence[Sentence], features: Features) -> list[tuple[str, bool]]:
    """For each word whether its likeliest tag is the one that it should get."""
    found = []
    for words, tags in sentences:
        chances = marginals(model.bound, sentence(words, [], features))
        likeliest = [max(chances[i], key=chances[i].__getitem__) for i in range(1, len(words) + 1)]
        found += [(word, a == b) for word, a, b in zip(words, likeliest, tags, strict=True)]
    return found


def share(right: Sequence[bool]) -> float:
    return sum(right) / len(right) if right else 1.0


def scores(
    size: str, features: Features, known: Sequence[Sentence], held_out: Sequence[Sentence]
) -> tuple[float, float]:
    """The share of right tags of held-out sentences: of all words, and of those that were not seen in training."""
    seen = {word.lower() for words, _ in known for word in words}
    each = compared(trained(known, features, 10 if size == "small" else 40), held_out, features)
    return share([right for _, right in each]), share([right for word, right in each if word.lower() not in seen])


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    known, held_out = corpus(size)
    yield "sentences to train on", len(known)
    yield "words in them", sum(len(words) for words, _ in known)
    for name, features in SETS.items():
        yield f"{name}: features with tags", len(weights(known, features)["emit/2"])
        right, unseen = scores(size, features, known, held_out)
        yield f"{name}: share of right tags, held out", right
        yield f"{name}: the same of words that were not seen", unseen


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    known, held_out = corpus("real")
    found = [scores("real", features, known, held_out) for features in SETS.values()]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        places = np.arange(len(SETS))
        axes.bar(places - 0.2, [right for right, _ in found], 0.4, label="all words")
        axes.bar(places + 0.2, [unseen for _, unseen in found], 0.4, label="words that were not seen in training")
        axes.set_xticks(places, list(SETS))
        axes.set(ylabel="share of right tags, held out", ylim=(0, 1.25))
        axes.legend(loc="upper left", ncols=2)
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
