"""Shortest paths: Dijkstra's algorithm on a map of 90,000 places, the way itself, and A* search.

In the tropical semiring + is the smaller of two costs and * adds them. Best first, each place is settled once: that is
Dijkstra's algorithm. The derivative of a distance by the roads has a one for each road of the shortest way.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- semiring tropical.
:- input start/1.      % start(X): what it costs to begin at X
:- input road/2.       % road(X,Y): the length of a road from X to Y

distance(Y) += start(Y).
distance(Y) += distance(X) * road(X,Y).
"""

TOWARDS = """
:- input estimate/1.   % estimate(X): no more than the distance from X to the goal
:- priority distance(X) = 0 - distance(X) - guess(X).
guess(X) += estimate(X).
"""
"""With this, and `until`, the search goes towards one goal, as that of Hart, Nilsson and Raphael (1968)."""

Facts = dict[str, Any]


def grid(size: int, seed: int = 0) -> tuple[Facts, np.ndarray]:
    """A square map whose roads lead to the four neighbours, up and down hill; and how high each place lies."""
    random = np.random.default_rng(seed)
    waves = random.normal(size=(6, 4))
    x, y = np.meshgrid(np.linspace(0, 1, size), np.linspace(0, 1, size))
    heights = sum(a * np.sin(7 * (b * x + c * y) + d) for a, b, c, d in waves)
    places = np.arange(size * size).reshape(size, size)
    pairs = [(places[:, :-1], places[:, 1:]), (places[:-1], places[1:])]
    ends = np.concatenate(
        [np.stack([a.ravel(), b.ravel()], 1) for one, other in pairs for a, b in ((one, other), (other, one))]
    )
    climb = np.maximum(0.0, np.diff(heights.ravel()[ends])[:, 0])
    return {"road/2": (ends, 1.0 + 0.2 * size * climb + 0.2 * random.random(len(ends)))}, heights


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The roads, and where to begin."""
    return grid(4 if size == "small" else 300)[0], [{"start/1": [(0, 0.0)]}]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    roads, (start,) = data(size)
    ends, lengths = roads["road/2"]
    last = int(ends.max())
    yield "places", last + 1
    yield "roads", len(lengths)

    chart = dg.Program(PROGRAM).bind(roads).run(start)
    yield "distance of the last place", chart[f"distance({last})"]
    yield "sum of all distances", chart.table("distance/1").values.sum()
    yield "roads of the shortest way", float(len(way(chart, last)))

    # Towards the middle of the map: a run that ends there, and one that goes there first. A road costs one at least, so
    # the places that lie between on the grid are an estimate that is never too high.
    side = int(np.sqrt(last + 1))
    goal = side * (side // 2) + side // 2
    yield "places visited on the way to the middle", float(chart_until(PROGRAM, roads, start, goal).stats.pops)
    rows, columns = np.divmod(np.arange(last + 1), side)
    apart = abs(rows - side // 2) + abs(columns - side // 2)
    estimates = {"estimate/1": apart.astype(float)}
    yield "places visited by A*", float(chart_until(PROGRAM + TOWARDS, {**roads, **estimates}, start, goal).stats.pops)


def chart_until(program: str, roads: Facts, start: Facts, goal: int) -> dg.Chart:
    """A run that ends as soon as the distance of the goal is final."""
    return dg.Program(program).bind(roads).run(start, until=f"distance({goal})")


def way(chart: dg.Chart, goal: int) -> list[tuple[int, int]]:
    """The roads of the shortest way."""
    return [(x, y) for x, y, uses in chart.gradient(f"distance({goal})")["road/2"] if uses]


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    size = 100
    roads, heights = grid(size)
    chart = dg.Program(PROGRAM).bind(roads).run({"start/1": [(0, 0.0)]})
    distances = chart.table("distance/1").values.reshape(size, size)
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots(figsize=(5, 4.2))
        shown = axes.imshow(distances)
        axes.contour(heights, colors="white", linewidths=0.4, alpha=0.6)
        for goal in (size * size - 1, size - 1, size * (size - 1), size * size // 2 + 3 * size // 4):
            for x, y in way(chart, goal):
                axes.plot([x % size, y % size], [x // size, y // size], color="C1", lw=1.5)
        axes.set(xticks=[], yticks=[], title="Distances from a corner, and shortest ways")
        plt.colorbar(shown)
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
