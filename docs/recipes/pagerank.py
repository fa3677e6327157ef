"""PageRank: a linear system around the cycles of the web, solved and not iterated, and what a link is worth.

A surfer follows a random link of a page, and now and then begins anew anywhere (Brin and Page 1998). Ranks depend on
each other around cycles: the strongly connected components of the graph are found and solved as linear systems. So is
the gradient, which says by how much each link raises the rank of a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input link/2.       % link(X,Y): the probability to go from X to Y
:- input anew/1.       % anew(X): the probability to begin at X
:- input stuck/1.      % stuck(X): X has no links
:- input damping/0.    % the probability to follow a link

rank(X) += (1 - damping) * anew(X).
rank(Y) += damping * rank(X) * link(X,Y).

% Who is stuck begins anew.
lost += damping * rank(X) * SIDE(stuck(X)).
rank(X) += lost * anew(X).
"""

Facts = dict[str, Any]


def web(pages: int, links: int, seed: int = 0) -> np.ndarray:
    """Links from each page to some others: the more links a page has, the more it gets."""
    random = np.random.default_rng(seed)
    ends = list(range(5))
    found = set()
    for x in range(pages):
        for _ in range(random.poisson(links)):
            y = int(random.integers(pages)) if random.random() < 0.3 else ends[int(random.integers(len(ends)))]
            if x != y:
                found.add((x, y))
                ends.append(y)
    return np.array(sorted(found))


def surfer(links: np.ndarray, pages: int) -> Facts:
    """The facts of a web: who is on a page takes one of its links, each as likely."""
    out = np.bincount(links[:, 0], minlength=pages)
    return {
        "link/2": (links, 1.0 / out[links[:, 0]]),
        "anew/1": np.full(pages, 1.0 / pages),
        "stuck/1": [(int(x),) for x in np.flatnonzero(out == 0)],
        "damping/0": 0.85,
    }


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The web; one run needs no more facts."""
    if size == "small":
        return surfer(np.array([[0, 1], [0, 2], [1, 2], [2, 0], [3, 2], [3, 4]]), 5), [{}]
    return surfer(web(10_000, 5), 10_000), [{}]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    facts, (nothing,) = data(size)
    yield "pages", len(facts["anew/1"])
    yield "links", len(facts["link/2"][1])

    chart = dg.Program(PROGRAM).bind(facts).run(nothing)
    ranks = chart.table("rank/1").values
    best = int(ranks.argmax())
    yield "sum of all ranks", ranks.sum()
    yield "highest rank", ranks[best]

    worth = chart.gradient(f"rank({best})")["link/2"].values
    yield "what the link that matters most is worth to it", worth.max()


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    links = web(10_000, 5)
    chart = dg.Program(PROGRAM).run(surfer(links, 10_000))
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        linked = np.bincount(links[:, 1], minlength=10_000)
        axes.loglog(np.maximum(linked, 0.5), chart.table("rank/1").values, ".", ms=3, alpha=0.5, rasterized=True)
        axes.set(xlabel="links to a page (none at the left)", ylabel="rank")
        plt.savefig(path, dpi=150)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
