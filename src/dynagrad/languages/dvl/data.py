"""The data of DVL besides numbers: symbols, pairs, tags, and the class of procedures.

A pair is a Python tuple of two, the empty list is `()`, a number is one of `eager/numbers.py`. Nothing is computed
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...eager.kinds import LIFTS
from ...eager.numbers import Number
from ...ir import Node

Pair = tuple[Any, Any]
NIL: tuple[()] = ()


class QuotedSymbol(str):
    """A symbol of quoted data."""

    __slots__ = ()

    @property
    def described(self) -> str:
        """What messages of the compiler say that it is."""
        return f"the symbol {self}"


@dataclass(frozen=True, slots=True, order=True)
class Gensym:
    """A tag that `gensym` made; those made later are greater."""

    serial: int


class Procedure:
    """Anything that DVL can call; how, is said in `procedures.py`."""

    __slots__ = ()
    name: str


def is_pair(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) == 2


def is_real(x: Any) -> bool:
    """A number, with derivatives or without, or one that only a graph knows."""
    kind = type(x)
    return kind is float or kind in LIFTS or isinstance(x, Number | Node)


def chain(values: list[Any], last: Any = NIL) -> Any:
    """Values as a chain of pairs that ends in `last`: a list, or the arguments of a call.

    >>> chain([1.0, 2.0]), chain([1.0], 2.0)
    ((1.0, (2.0, ())), (1.0, 2.0))
    """
    for value in reversed(values):
        last = (value, last)
    return last
