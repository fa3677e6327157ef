"""Iteration spaces: what loops, comprehensions and unpacking go over, with static or dynamic length and items.

How a loop runs over one, unrolled or in the graph, is in `loops.py`; `itertools` is in `compiler/library/itertools.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, ItemsView, KeysView, ValuesView
from typing import Any

import numpy as np

from ...errors import Error
from ...ir import Node
from ...ir.node import whole
from ...ir.ops import integers
from .arrays import at_index, stacked
from .specialiser import Specialiser, primitive
from .values import Array, Dict, Instance, Iteration, List, Masked, describe, type_of

LONGEST = 100_000  # items of a list or tuple that is made


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class IterationSpace:
    """What a loop goes over: its length, its item at a static index, and at a dynamic one, where that can be had."""

    what: str
    length: int | Node
    static_item: Callable[[int], Any]
    dynamic_item: Callable[[Node], Any] | None
    measure: Callable[[], int] | None = None  # the length by now, where the loop may change it

    def current_length(self) -> int:
        """The static length by now: a list may grow while a loop goes over it."""
        return self.measure() if self.measure is not None else self.length  # type: ignore[return-value]  # checked above


def iteration_space(s: Specialiser, x: Any) -> IterationSpace:
    """The iteration space of a value. Raises Error where it has none."""
    if isinstance(x, Iteration):
        return _SPACES[x.kind](s, *x.operands)
    if isinstance(x, range):
        return _range(s, x.start, x.stop, x.step)
    if isinstance(x, Array | np.ndarray) and type_of(x) is not None:
        t = type_of(x)
        assert t is not None
        if not t.shape:
            raise Error(f"{describe(x)} cannot be looped over")
        return IterationSpace(describe(x), t.shape[0], lambda i: at_index(s, x, i), lambda i: at_index(s, x, i))
    if isinstance(x, Node):
        raise Error("a single number cannot be looped over")
    if isinstance(x, List):
        return IterationSpace(
            describe(x),
            len(x.content),
            lambda i: x.content[i],
            dynamic_getter(s, x.content) and (lambda i: _list_item(s, x, i)),
            lambda: len(x.content),
        )
    if isinstance(x, Masked):
        raise Error(
            "how many elements a mask or filter() chooses is known only as the function runs, so they cannot be looped "
            "over: loop over all elements with `if` inside; those that are chosen have sums and other reductions, and "
            "len()"
        )
    inside = _known_items(s, x)
    if inside is None:
        raise Error(f"{describe(x)} cannot be looped over in a compiled function")
    return IterationSpace(describe(x), len(inside), lambda i: inside[i], dynamic_getter(s, inside))


def _known_items(s: Specialiser, x: Any) -> tuple[Any, ...] | None:
    if isinstance(x, tuple):
        return x
    if isinstance(x, List):
        inside: tuple[Any, ...] = x.content
        return inside
    if isinstance(x, Dict):
        return tuple(x.content)
    if isinstance(x, str | bytes | frozenset | set | list | dict | KeysView | ValuesView | ItemsView):
        return tuple(x)
    if isinstance(x, Instance) and hasattr(x.cls, "__iter__"):
        return items(s, s.call(s.apply("attribute", x, "__iter__"), []))
    return None


def dynamic_getter(s: Specialiser, inside: tuple[Any, ...]) -> Callable[[Node], Any] | None:
    """The function from a dynamic index to an item; None unless all items are numbers, or arrays of one shape."""
    types = [type_of(x) for x in inside]
    if not inside or any(t is None or t.shape != types[0].shape for t in types):  # type: ignore[union-attr]  # checked above: not None
        return None
    if any((t.kind == "boolean") != (types[0].kind == "boolean") for t in types if t and types[0]):
        return None

    def at(i: Node) -> Any:
        return at_index(s, stacked(list(inside)), i)

    return at


def _list_item(s: Specialiser, x: List, i: Node) -> Any:
    """An item of a list at a dynamic index, of its content by now."""
    choose = dynamic_getter(s, x.content)
    if choose is None:
        raise Error(f"{describe(x)} is changed by a loop over it; loop over a copy of it")
    return choose(i)


def _count(x: Any) -> Any:
    """A length, in arithmetic of nodes where it is one."""
    return x if isinstance(x, Node) else int(x)


def _range(s: Specialiser, start: Any, stop: Any, step: Any) -> IterationSpace:
    for x in (start, stop, step):
        t = type_of(x)
        if t is None or t.kind not in ("integer", "boolean") or t.shape:
            raise Error(f"range() takes whole numbers, not {describe(x)}")
    if type(step) is int and step == 0:
        raise Error("the step of a range cannot be 0")
    length: Any
    if not isinstance(step, int):
        distance = stop - start
        rounds = integers.where(step > 0, (distance + step - 1) // step, (distance + step + 1) // step)
        length = integers.maximum(rounds, whole(0))
    elif isinstance(start, int) and isinstance(stop, int):
        length = len(range(start, stop, step))
    else:
        distance = stop - start if step > 0 else start - stop
        size = abs(step)
        rounds = distance if size == 1 else (distance + (size - 1)) // size
        length = integers.maximum(rounds, whole(0))

    def at(i: Any) -> Any:
        return start + (i if type(step) is int and step == 1 else i * step)

    return IterationSpace("a range", length, at, at)


def _enumerate(s: Specialiser, x: Any, start: Any) -> IterationSpace:
    inner = iteration_space(s, x)
    at = inner.dynamic_item
    return IterationSpace(
        inner.what,
        inner.length,
        lambda i: (start + i, inner.static_item(i)),
        None if at is None else lambda i: (i + start, at(i)),
        inner.measure and (lambda: inner.current_length()),
    )


def _zip(s: Specialiser, *xs: Any) -> IterationSpace:
    walks = [iteration_space(s, x) for x in xs]
    if not walks:
        return IterationSpace("an empty zip", 0, lambda i: (), lambda i: ())
    lengths = [w.length for w in walks]
    fixed = [n for n in lengths if isinstance(n, int)]
    length: Any = min(fixed) if fixed else lengths[0]
    for n in lengths:
        if isinstance(n, Node) and n is not length:
            length = integers.minimum(n, whole(length) if isinstance(length, int) else length)
    ways = [w.dynamic_item for w in walks]
    return IterationSpace(
        next((w.what for w in walks if w.dynamic_item is None), "a zip"),
        length,
        lambda i: tuple(w.static_item(i) for w in walks),
        None if any(at is None for at in ways) else lambda i: tuple(at(i) for at in ways if at is not None),
        (lambda: min(w.current_length() for w in walks))
        if any(w.measure for w in walks) and len(fixed) == len(walks)
        else None,
    )


def _reversed(s: Specialiser, x: Any) -> IterationSpace:
    inner = iteration_space(s, x)
    n, at = inner.length, inner.dynamic_item
    return IterationSpace(
        inner.what,
        n,
        lambda i: inner.static_item(n - 1 - i) if isinstance(n, int) else inner.dynamic_item(n - 1 - i),  # type: ignore[misc]  # called only where there is one
        None if at is None else lambda i: at((whole(n) if isinstance(n, int) else n) - 1 - i),
    )


def _cycle(s: Specialiser, inside: tuple[Any, ...]) -> IterationSpace:
    n, choose = len(inside), dynamic_getter(s, inside)
    return IterationSpace(
        "itertools.cycle() or repeat()",
        2**62 if n else 0,
        lambda i: inside[i % n],
        choose and (lambda i: choose(i % n)),
    )


_SPACES: dict[str, Callable[..., IterationSpace]] = {
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "reversed": _reversed,
    "cycle": _cycle,
}


@primitive("items")
def items(s: Specialiser, x: Any) -> tuple[Any, ...]:
    """All items of an iterable, as a tuple. Raises Error where their number is dynamic or too large."""
    found = iteration_space(s, x)
    if not isinstance(found.length, int):
        raise Error(
            f"how many items {found.what} has is known only as the function runs, and a structure of a compiled "
            "function has a fixed length; use a loop that changes numbers or an array"
        )
    if found.length > LONGEST:
        raise Error(
            f"{found.what} has {found.length} items, too many for a structure in a compiled function; use arrays"
        )
    return tuple(found.static_item(i) for i in range(found.length))


@primitive("collect")
def collect(s: Specialiser, function: Any, x: Any) -> tuple[Any, ...]:
    """The concatenation of the tuples that a function returns for each item: a comprehension is made of these."""
    found: list[Any] = []
    for item in items(s, x):
        part = s.call(function, [item])
        if not isinstance(part, tuple):
            raise Error("which items a comprehension keeps must be known when the function is compiled")
        found.extend(part)
        if len(found) > LONGEST:
            raise Error("this comprehension makes too many items for a compiled function; use arrays")
    return tuple(found)
