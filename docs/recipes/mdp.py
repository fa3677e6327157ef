"""Markov decision processes: optimal values, the policy, and the derivative of a value by the rewards.

No semiring is declared: the value of a state is the largest over actions, that of an action is a reward and a
discounted mean. The two aggregators recur through each other, and are iterated until they stand still. The derivative
of a value by the rewards is the discounted number of times that the best policy takes each action (Puterman 1994).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input reward/2.        % reward(S,A): what the action A brings in the state S
:- input transition/3.    % transition(S,A,T): the probability that it leads to T
:- input discount/0.      % what a reward is worth that comes one step later

action(S,A) += reward(S,A).
action(S,A) += discount * transition(S,A,T) * value(T).
value(S) max= action(S,_).
"""

Facts = dict[str, Any]
MOVES = {"north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1)}


def room(plan: list[str], slip: float = 0.2, discount: float = 0.95) -> Facts:
    """A room seen from above: `#` is a wall, `+` a goal, `-` a pit; a robot slips to a side now and then."""
    free = {(r, c): mark for r, row in enumerate(plan) for c, mark in enumerate(row) if mark != "#"}
    number = {place: n for n, place in enumerate(free)}
    rewards, transitions = [], []
    for place, s in number.items():
        for name, (dr, dc) in MOVES.items():
            rewards.append((s, name, {"+": 1.0, "-": -1.0}.get(free[place], -0.02)))
            chances: dict[int, float] = {}
            for p, (a, b) in ((1 - slip, (dr, dc)), (slip / 2, (dc, dr)), (slip / 2, (-dc, -dr))):
                t = number.get((place[0] + a, place[1] + b), s)
                chances[t] = chances.get(t, 0.0) + p
            if free[place] == "+":
                chances = {0: 1.0}  # from the goal back to the first place
            transitions += [(s, name, t, p) for t, p in chances.items() if p]
    return {"reward/2": rewards, "transition/3": transitions, "discount/0": discount}


def maze(size: int, seed: int = 0) -> list[str]:
    """A room with walls and pits here and there, and one goal."""
    random = np.random.default_rng(seed)
    marks = np.where(random.random((size, size)) < 0.2, "#", np.where(random.random((size, size)) < 0.03, "-", "."))
    marks[0, 0] = "."
    marks[size // 2, size // 2] = "+"
    return ["".join(row) for row in marks]


SMALL = ["...+", ".#.-", "...."]


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The process; one run needs no more facts."""
    return room(SMALL if size == "small" else maze(40), discount=0.98), [{}]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    process, (nothing,) = data(size)
    yield "states", len(process["reward/2"]) // len(MOVES)
    yield "transitions", len(process["transition/3"])

    chart = dg.Program(PROGRAM).bind(process).run(nothing)
    yield "value of the first state", chart["value(0)"]
    yield "sum of all values", chart.table("value/1").values.sum()

    visits = chart.gradient("value(0)")["reward/2"].values
    yield "discounted visits of all states from the first", visits.sum()


def policy(chart: dg.Chart) -> dict[int, str]:
    """The best action in each state."""
    best: dict[int, tuple[float, str]] = {}
    for s, a, value in chart.table("action/2"):
        best[s] = max(best.get(s, (-np.inf, "")), (value, a))
    return {s: a for s, (_, a) in best.items()}


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    plan = maze(18, 4)
    chart = dg.Program(PROGRAM).run(room(plan))
    places = [(r, c) for r, row in enumerate(plan) for c, mark in enumerate(row) if mark != "#"]
    visits = chart.gradient("value(0)")["reward/2"].values.reshape(-1, len(MOVES)).sum(1)
    best = policy(chart)
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, both = plt.subplots(1, 2)
        numbers = (chart.table("value/1").values, np.log10(np.maximum(visits, 1e-4)))
        for axes, colors, title in zip(
            both, numbers, ("value, and policy", "visits from the corner, log10"), strict=True
        ):
            shown = np.full((len(plan), len(plan[0])), np.nan)
            shown[tuple(zip(*places, strict=True))] = colors
            image = axes.imshow(shown)
            axes.set(xticks=[], yticks=[], title=title)
            plt.colorbar(image, shrink=0.7)
        arrows = np.array([MOVES[best[s]] for s in range(len(places))])
        rows, columns = zip(*places, strict=True)
        both[0].quiver(columns, rows, arrows[:, 1], -arrows[:, 0], color="white", scale=30, width=0.006, pivot="mid")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
