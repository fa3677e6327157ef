"""The types of values in a graph. A type is a name and how C++ spells it; what is done with values is elsewhere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """A type of values.

    >>> real.cxx
    'double'
    """

    name: str
    cxx: str

    def __str__(self) -> str:
        return self.name


real = Type("real", "double")
boolean = Type("boolean", "bool")
array = Type("array", "")
"""Reals in an array of any shape, or a single one."""
