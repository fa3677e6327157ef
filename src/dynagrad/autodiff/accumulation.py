"""Adjoint accumulation in a reverse sweep, and for each adjoint whether to accumulate or to pass increments on.

An adjoint is initialised by its first increment, incremented by each further use of its value, and finalised when the
sweep reaches the value, since all uses stand after it. An adjoint that *accumulates* is held: increments are added up,
and the sum is propagated once, to the adjoints of the arguments. One that *passes* is never held: each increment is
propagated as it arrives. A value that is used once passes, and so does one whose propagation costs no more than adding
up; the adjoints that are asked for accumulate. `choose` decides, by counting the numbers that are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from ..ir.code import family_of
from ..ir.node import Node
from ..ir.ops import scalars as ops

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Adjoints(Generic[Key, Value]):
    """The adjoints of one sweep, and its cost: how many were held, and how many additions there were.

    `generate(key, delta)` propagates an adjoint, or an increment of one: it gives increments for the arguments.

    >>> uses = {"t": [("a", 2.0), ("b", 3.0)]}
    >>> generate = lambda key, delta: [(a, delta * slope) for a, slope in uses.get(key, [])]
    >>> adjoints = Adjoints(lambda a, b: a + b, generate, passing={"t", "b"})
    >>> adjoints.sweep(["a", "b", "t"], [("t", 1.0), ("t", 10.0)], {"a"}), adjoints.additions, adjoints.held
    ({'a': 22.0}, 1, 1)
    """

    def __init__(
        self,
        add: Callable[[Value, Value], Value],
        generate: Callable[[Key, Value], Iterable[tuple[Key, Value]]],
        passing: Collection[Key],
    ) -> None:
        self._add, self._generate, self._passing = add, generate, passing
        self._values: dict[Key, Value] = {}
        self.additions = 0
        self.held = 0

    def increment(self, key: Key, delta: Value) -> None:
        """Adds to an adjoint, or passes the increment on."""
        todo = [(key, delta)]
        while todo:
            key, delta = todo.pop()
            if key in self._passing:
                todo.extend(reversed(tuple(self._generate(key, delta))))
            elif key in self._values:
                self._values[key] = self._add(self._values[key], delta)
                self.additions += 1
            else:
                self.initialise(key, delta)

    def initialise(self, key: Key, delta: Value) -> None:
        """The first increment of an adjoint that is held."""
        self._values[key] = delta
        self.held += 1

    def finalise(self, key: Key) -> Value | None:
        """The complete adjoint, which is propagated and no longer held; None if there is none."""
        delta = self._values.pop(key, None)
        if delta is not None:
            for argument, increment in self._generate(key, delta):
                self.increment(argument, increment)
        return delta

    def sweep(self, order: Sequence[Key], seed: Iterable[tuple[Key, Value]], keep: Collection[Key]) -> dict[Key, Value]:
        """A reverse sweep over a let-series; the adjoints of the keys to keep that are reached."""
        for key, delta in seed:
            self.increment(key, delta)
        kept: dict[Key, Value] = {}
        for key in reversed(order):
            final = self.finalise(key)
            if final is not None and key in keep:
                kept[key] = final
        return kept


def sweep(
    order: Sequence[Key],
    seed: Mapping[Key, Value],
    add: Callable[[Value, Value], Value],
    generate: Callable[[Key, Value], Iterable[tuple[Key, Value]]],
    keep: Collection[Key],
) -> dict[Key, Value]:
    """The sweep of `Adjoints` in which all accumulate, without its calls for each stage.

    Tapes use it: there a step is often a multiplication of two floats, and with those calls the gradient of a function
    of single numbers takes 1.3 times as long. Keys that are never reached are not in the result.
    """
    adjoints = dict(seed)
    kept: dict[Key, Value] = {}
    for step in reversed(order):
        delta = adjoints.pop(step, None)
        if delta is None:
            continue
        if step in keep:
            kept[step] = delta
        for argument, increment in generate(step, delta):
            adjoints[argument] = add(adjoints[argument], increment) if argument in adjoints else increment
    return kept


# -- to accumulate or to pass ------------------------------------------------------------------------------------------


def _propagation_cost(node: Node, index: int) -> float | None:
    """How many numbers are computed to propagate an increment to an argument; None if too many to do it twice."""
    operation = node.operation
    if isinstance(operation.code, tuple):
        family = family_of(operation)
        return 0.0 if family is not None and family.same else None
    if node.arguments[index].type.shape != node.type.shape:
        return None  # summed over what was broadcast
    if operation is ops.add or (operation is ops.subtract and index == 0):
        return 0.0
    return float(node.type.size) if operation in (ops.subtract, ops.negative) else None


def cheaper(node: Node, increments: int, to: Sequence[int]) -> bool:
    """Whether it is cheaper to pass so many increments of an adjoint on, one by one, to the arguments `to`.

    Accumulation costs an addition for each increment but the first, one propagation with an addition for each argument,
    and for an array another pass over it, since it has to be stored; a single number stays in a register.

    >>> from dynagrad.ir.node import fresh
    >>> from dynagrad.ir.types import arrays, real
    >>> x, y = fresh(arrays(real, (9,))), fresh(arrays(real, (9,)))
    >>> cheaper(x + y, 2, [0, 1]), cheaper(x + y, 3, [0, 1]), cheaper(x * y, 2, [0, 1]), cheaper(x * y, 1, [0, 1])
    (True, False, False, True)
    """
    if increments <= 1 or not to:
        return True
    work = 0.0
    for index in to:
        cost = _propagation_cost(node, index)
        if cost is None:
            return False
        work += cost + node.arguments[index].type.size
    size = node.type.size
    stored = size if node.type.shape else 0
    return increments * work <= (increments - 1) * size + stored + work


def choose(
    series: Sequence[Node], seed: Iterable[Node], keep: Collection[Node], known: Mapping[Node, object]
) -> set[Node]:
    """The values whose adjoints pass increments on; `known` are those that depend on the requested nodes.

    >>> from dynagrad.ir import exp, order, variable
    >>> x = variable("x")
    >>> t = exp(x)
    >>> y = t * t
    >>> choose(order([y]), [y], {x}, {x: True, t: True, y: True}) == {y}
    True
    """
    arriving: dict[Node, int] = {}
    for node in seed:
        arriving[node] = arriving.get(node, 0) + 1
    passing: set[Node] = set()
    for node in reversed(series):
        count = arriving.get(node, 0)
        if not count:
            continue
        to = [i for i, argument in enumerate(node.arguments) if argument in known]
        sent = 1
        if node not in keep and cheaper(node, count, to):
            passing.add(node)
            sent = count
        for i in to:
            argument = node.arguments[i]
            arriving[argument] = arriving.get(argument, 0) + sent
    return passing
