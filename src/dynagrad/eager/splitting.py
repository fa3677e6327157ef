"""Splits a number by a tag: into the part without the tag, and the tangent along it.

The result of a forward pass may hold a cell of a younger reverse pass, and the tag may be in the ancestors of that
cell. So that pass gets more cells: one for each part of each ancestor (`split`). `taylor.py` does the same with more
than two coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .kinds import fresh, zero_like
from .numbers import Bundle, Number, Tape, TapeCell, bundle
from .tape import Pull, Scalars


def split(tag: int, x: Any) -> tuple[Any, Any]:
    """A number without a tag of a forward pass, and its tangent along it (None for none): x = first + tag * second.

    Under a cell of a younger reverse pass the tag may be in the primal and in all ancestors of the cell. So that pass
    gets two cells for each of these: one is x at tag zero, the other the tangent, and they depend on both cells of each
    parent by the product rule.
    """
    if not isinstance(x, Number) or x.tag < tag:
        return x, None
    if type(x) is TapeCell:
        first, second = _cells_of(x.tape, tag, x.number)
        p, q = split(tag, x.primal)
        if second is None:
            return (x, None) if q is None else (cell_at(x.tape, first, p), q)
        return cell_at(x.tape, first, p), cell_at(x.tape, second, zero_like(p) if q is None else q)
    return SPLITS[type(x)](tag, x)


def _split_bundle(tag: int, x: Any) -> tuple[Any, Any]:
    if x.tag == tag:
        return x.primal, x.tangent
    p, q = split(tag, x.primal)
    d, e = split(tag, x.tangent)
    return bundle(x.tag, p, d), None if q is None and e is None else bundle(x.tag, zero_like(p) if q is None else q, e)


SPLITS: dict[type, Callable[[int, Any], tuple[Any, Any]]] = {Bundle: _split_bundle}


def cell_at(tape: Tape, number: int | None, primal: Any) -> Any:
    """The cell with this number; the primal alone where there is none."""
    if number is None:
        return primal
    return TapeCell(tape, primal, number)


Cells = tuple[int | None, ...]


def cells_of(
    tape: Tape,
    tag: int,
    number: int,
    n: int,
    parts: Callable[[Any], Sequence[Any]],
    power: Callable[[int, Any], Any],
) -> Cells:
    """The cells of the n + 1 parts of a cell, x = first + tag * second + ...; None for a part that is zero.

    Ancestors are split first, without recursion, and each once. `parts` splits an increment, and `power(k, x)` is
    tag**k * x.
    """
    known = tape.splits.setdefault((tag, n), {})
    stack = [number]
    while stack:
        at = stack[-1]
        if at in known:
            stack.pop()
            continue
        whole: Cells = (at, *(None,) * n)
        entry = tape.entries.get(at)
        if at < tag or entry is None:  # older than the tag, so it cannot depend on it
            known[at] = whole
            stack.pop()
            continue
        parents = _parents(entry)
        missing = [p for p in parents if p not in known]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if all(known[p] == (p, *whole[1:]) for p in parents) and not _mentions(entry, tag):
            known[at] = whole
            continue
        pull = Scalars(entry) if isinstance(entry, tuple) else entry
        numbers = tuple(fresh() for _ in whole)
        for k, cell in enumerate(numbers):
            tape.entries[cell] = Part(pull, tag, known, parents, k, parts, power)
        known[at] = numbers
    return known[number]


def _cells_of(tape: Tape, tag: int, number: int) -> Cells:
    """The two cells of a cell, for the tag of a bundle."""

    def parts(x: Any) -> Sequence[Any]:
        first, second = halves(tag, x)
        return (first,) if second is None else (first, second)

    return cells_of(tape, tag, number, 1, parts, lambda k, x: times_tag(tag, x))


class Part:
    """The `Pull` of one part of a split cell.

    Where the cell's pullback is the linear map J = J[0] + J[1] tag + ..., part k propagates by J[j] to part k - j of
    each parent. An adjoint may hold the tag too, from an enclosing pass; that is not the map's, so the parts of the
    adjoint go through the map one by one.
    """

    __slots__ = ("k", "known", "numbers", "parts", "power", "pull", "tag")

    def __init__(
        self,
        pull: Pull,
        tag: int,
        known: dict[int, Cells],
        parents: Sequence[int],
        k: int,
        parts: Callable[[Any], Sequence[Any]],
        power: Callable[[int, Any], Any],
    ) -> None:
        self.pull, self.tag, self.known, self.k, self.parts, self.power = pull, tag, known, k, parts, power
        self.numbers = [cell for p in parents for cell in known[p][: k + 1] if cell is not None]

    def mentions(self, tag: int) -> bool:
        return tag != self.tag and _mentions(self.pull, tag)

    def __call__(self, delta: Any) -> Iterable[tuple[int, Any]]:
        return self.increments(delta, self.pull)

    def increments(self, delta: Any, pull: Pull) -> Iterable[tuple[int, Any]]:
        """The increments for the parents' parts, where `pull` is the pullback of the whole cell."""
        found = []
        for k, d in enumerate(self.parts(delta)):
            for number, x in self._sent(d, pull):
                found.append((number, self.power(k, x) if k else x))
        return found

    def _sent(self, delta: Any, pull: Pull) -> Iterable[tuple[int, Any]]:
        for parent, increment in pull(delta):
            if increment is not None:
                cells = reversed(self.known[parent][: self.k + 1])
                for cell, x in zip(cells, self.parts(increment), strict=False):
                    if cell is not None:
                        yield cell, x


def halves(tag: int, x: Any) -> tuple[Any, Any]:
    """`split` of an adjoint, which may be a number or a `Dual`."""
    return x.__dynagrad_halves__(tag) if hasattr(x, "__dynagrad_halves__") else split(tag, x)


def times_tag(tag: int, x: Any) -> Any:
    """An adjoint that does not hold the tag, times the tag."""
    return (
        x.__dynagrad_times__(Bundle(tag, 0.0, 1.0))
        if hasattr(x, "__dynagrad_halves__")
        else bundle(tag, zero_like(x), x)
    )


def contains(tag: int, x: Any) -> bool:
    """Whether a number depends on a tag."""
    if not isinstance(x, Number) or x.tag < tag:
        return False
    if type(x) is TapeCell:
        return _cells_of(x.tape, tag, x.number)[1] is not None or contains(tag, x.primal)
    return x.tag == tag or any(contains(tag, part) for part in x.held())


def _mentions(entry: Any, tag: int) -> bool:
    """Whether the residuals of an entry depend on a tag."""
    if isinstance(entry, tuple):
        return any(contains(tag, entry[i]) for i in range(1, len(entry), 2))
    if hasattr(entry, "held"):
        return any(contains(tag, x) for x in entry.held())
    return bool(entry.mentions(tag)) if hasattr(entry, "mentions") else True


def _parents(entry: Any) -> Sequence[int]:
    return entry[::2] if isinstance(entry, tuple) else getattr(entry, "numbers", ())
