"""A maximum-entropy classifier: which module of Python's library is a docstring from?

The probability of a class is the softmax of a sum of learned weights, one for each word and class (Berger, Della Pietra
and Della Pietra 1996; for texts: Nigam, Lafferty and McCallum 1999). Statisticians call it logistic regression.
"""

from __future__ import annotations

import ast
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

PROGRAM = """
:- input feature/1.      % feature(F): how often the text has the word F
:- input right/1.        % right(C): its class is C
:- input weight/2.       % weight(C,F): how well F suits C; learned

score(C) += weight(C,F) * feature(F).
logz log+= score(_).
chosen += score(C) * right(C).

goal = chosen - logz.    % the log of the probability of the right class
"""

Facts = dict[str, Any]
Text = tuple[list[str], str]
"""The words and the class."""
STRENGTH = 0.05
MODULES = (
    "asyncio",
    "email",
    "unittest",
    "importlib",
    "multiprocessing",
    "_pydecimal",
    "turtle",
    "argparse",
    "inspect",
)
SMALL: list[Text] = [
    (["ball", "goal", "win"], "sport"),
    (["goal", "goal", "match"], "sport"),
    (["vote", "law", "win"], "politics"),
    (["law", "court"], "politics"),
    (["star", "light"], "science"),
    (["light", "law", "star"], "science"),
]


def text(words: Sequence[str], right: str | None = None) -> Facts:
    """The facts of a text; without a class of one that is to be classified. The feature `any` is in all texts."""
    counts = Counter(words)
    return {
        "feature/1": [("any", 1.0), *((w, float(n)) for w, n in counts.items())],
        "right/1": [] if right is None else [(right,)],
    }


def docstrings() -> Iterator[Text]:
    """Those of some modules of Python's library, as far as their sources are there."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for name in MODULES:
        for file in sorted((library / name).glob("*.py")) or [library / f"{name}.py"]:
            if file.exists():
                for node in ast.walk(ast.parse(file.read_bytes())):
                    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                        words = re.findall("[a-z]{2,}", (ast.get_docstring(node) or "").lower())
                        if len(words) > 5:
                            yield words[:60], name.strip("_")


def corpus(size: str, seed: int = 0) -> tuple[list[Text], list[Text]]:
    """Texts to train on, and others."""
    if size == "small":
        return SMALL, SMALL[::2]
    found = list(docstrings())
    np.random.default_rng(seed).shuffle(found)  # type: ignore[arg-type]  # a list is shuffled, too
    return found[: len(found) * 3 // 4], found[len(found) * 3 // 4 :]


def weights(known: Sequence[Text]) -> Facts:
    """A weight of zero for each class and each word."""
    words = dict.fromkeys(["any", *(w for each, _ in known for w in each)])
    return {"weight/2": [(c, w, 0.0) for c in sorted({c for _, c in known}) for w in words]}


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Weights of zero, and the texts."""
    known, _ = corpus(size)
    return weights(known), [text(*each) for each in known]


def trained(known: Sequence[Text], prior: Any = None, tolerance: float = 1e-6) -> dg.Model:
    """A classifier: its weights are numbers of any sign, with a Gaussian prior unless there is another."""
    rows = weights(known)
    free = training.Differentiable(rows, lambda w: w, np.zeros(len(rows["weight/2"])), logs=False)
    model = dg.Model(PROGRAM, {"weights": free}, prior=prior or training.L2(STRENGTH))
    model.fit([text(*each) for each in known], method="l-bfgs", tolerance=tolerance, iterations=200)
    return model


def probabilities(model: dg.Model, words: Sequence[str]) -> dict[str, float]:
    """Of each class: the derivative of log Z by its score."""
    return dict(iter(model.bound.run(text(words)).gradient("logz")["score/1"]))


def accuracy(model: dg.Model, texts: Sequence[Text]) -> float:
    """The share of texts whose likeliest class is the right one."""
    found = [probabilities(model, words) for words, _ in texts]
    return sum(max(p, key=p.__getitem__) == c for p, (_, c) in zip(found, texts, strict=True)) / len(texts)


def telling(model: dg.Model, most: int = 4) -> dict[str, list[str]]:
    """The words of the largest weights, for each class."""
    found: dict[str, list[tuple[float, str]]] = {}
    for c, w, x in model.weights["weight/2"]:
        found.setdefault(c, []).append((x, w))
    return {c: [w for _, w in sorted(pairs, reverse=True)[:most]] for c, pairs in found.items()}


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    known, held_out = corpus(size)
    yield "texts to train on", len(known)
    yield "words in them", sum(len(words) for words, _ in known)
    yield "weights", len(weights(known)["weight/2"])
    (commonest, _), *_ = Counter(c for _, c in known).most_common(1)
    yield "share of the commonest class, held out", sum(c == commonest for _, c in held_out) / len(held_out)
    model = trained(known)
    yield "share of right classes, held out", accuracy(model, held_out)
    yield "log probability of a text's class, held out", model.score([text(*each) for each in held_out]) / len(held_out)
    sparse = trained(known, training.L1(0.3), 1e-4)
    yield "the share with L1", accuracy(sparse, held_out)
    yield "weights that are not zero with L1", int(np.count_nonzero(sparse.weights["weight/2"].values))


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    known, held_out = corpus("real")
    sizes = [n for n in (25, 50, 100, 200, 400, 800) if n < len(known)] + [len(known)]
    models = [trained(known[:n]) for n in sizes]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, (left, right) = plt.subplots(1, 2, width_ratios=[3, 2])
        left.plot(sizes, [accuracy(model, held_out) for model in models], "o-")
        left.set(xlabel="texts to train on", ylabel="share of right classes, held out", xscale="log", ylim=(0, 1))
        for n, (name, words) in enumerate(telling(models[-1]).items()):
            right.text(0, n, f"{name}: ", ha="right", color="C0", fontsize=8)
            right.text(0, n, ", ".join(words), fontsize=8)
        right.set(xlim=(-1.2, 2.2), ylim=(-0.5, len(MODULES) - 0.5), title="words of the largest weights")
        right.axis("off")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
