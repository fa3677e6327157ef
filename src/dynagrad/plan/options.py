"""The options of a plan: what it depends on besides rules and facts.

What comes out is in `model.py`. Of the limits of a run only what makes another class is here (`until`, `iterate`); the
others are in `charts/limits.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .model import Derivatives
from .right_sides import TracedSemiring

DENSE_CELLS = 1 << 26
"""The most cells of all dense tables of a plan."""


@dataclass(frozen=True)
class Options:
    """What a plan depends on besides rules and facts."""

    until: str | None = None  # the predicate of the item that a run stops at
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    user: TracedSemiring | None = None
    dense_cells: int = DENSE_CELLS
    vector: int = 1
    changing: bool = False  # for incremental updates of finished charts
    derivatives: Derivatives | None = None
    iterate: bool = False  # cycles are iterated, not solved
    collecting: bool = False  # a class that runs nothing, but collects derivations of items that another one derived
