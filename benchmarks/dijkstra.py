"""Shortest paths on a grid, beside scipy's Dijkstra; loading of the arcs is timed separately."""

from __future__ import annotations

import numpy as np

import dynagrad as dg

from .common import Row, Skip, alternate, timed

PROGRAM = """
path(V) min= path(U) + edge(U,V).
path(S) min= start(S).
"""
SIDE = 500


def grid(side: int) -> tuple[np.ndarray, np.ndarray]:
    """The arcs of a grid, both ways, with integer weights from 1 to 100."""
    at = np.arange(side * side).reshape(side, side)
    edges = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    arcs = [np.stack([u.ravel(), v.ravel()], 1) for a, b in edges for u, v in ((a, b), (b, a))]
    both = np.concatenate(arcs)
    return both, np.random.default_rng(0).integers(1, 101, len(both)).astype(float)


def dijkstra() -> list[Row]:
    try:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra as peers
    except ImportError:
        raise Skip("scipy is not installed") from None
    arcs, weights = grid(SIDE)
    matrix = csr_array((weights, (arcs[:, 0], arcs[:, 1])), shape=(SIDE**2, SIDE**2))
    program, start = dg.Program(PROGRAM), {"start/1": [(0, 0.0)]}
    bound = program.bind({"edge/2": (arcs, weights)})
    distances = bound.run(start).table("path/1").values
    if not np.array_equal(distances, peers(matrix, indices=0)):
        raise AssertionError("the distances differ from scipy's")
    own, peer = alternate(
        lambda: timed(lambda: bound.run(start)), lambda: timed(lambda: peers(matrix, indices=0)), repeats=15
    )

    def load() -> float:
        return timed(lambda: program.bind({"edge/2": (arcs, weights)}).run(start))

    loading = max(0.0, min(load() for _ in range(5)) - own)
    what = f"Dijkstra, grid of {SIDE} by {SIDE}"
    return [
        Row(what, own, "s", "scipy.sparse.csgraph.dijkstra", peer, 1.3),
        Row(f"{what}: loading of {len(arcs):,} arcs", loading, "s", target=0.5),
    ]
