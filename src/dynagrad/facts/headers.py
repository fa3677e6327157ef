"""The first line of a text file, if it is a header: left out, told of, or taken as a fact.

A line of names looks like a fact to a program that takes any symbol. So it is an error where it alone keeps a column
from being numbers, and a warning where its cells are such as columns are often called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import Place, shown, warn

_NUMERIC = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?\s*\Z", re.I | re.A)
_VALUE = re.compile(
    r"\s*[(\[]?[-+0-9.,e\s]*[0-9][-+0-9.,e\s]*[)\]]?\s*\Z|\s*(?:[+-]?inf(?:inity)?|nan|true|false)\s*\Z", re.I | re.A
)
_PARTS = re.compile(r"[a-z]+|[0-9]+")
_WORDS = (
    "address age airport amount arc arg argument begin capital category charge child city class code column "
    "comment cost count country date day degree description dest destination dist distance dst duration edge "
    "emission end entity feature field file first frequency from gene group head height id index input item key "
    "kind label language last lat latitude left lemma length level line link lng lon longitude month name neighbor "
    "neighbour node nr num number object observation offset order origin output parent path phrase place pos "
    "position predicate price prob probability relation right role row rule score sentence sequence sex size "
    "source speed src start state station status step stop street subject surname symbol tag tail target text time "
    "title to token town type val value vertex way weight width word year zip"
)
_NAMES = frozenset(_WORDS.split(" "))
"""What columns are often called."""
WAYS_OUT = "header=True (or --header) leaves it out, and header=False (or --no-header) takes it as a fact"


def _common(cell: str) -> bool:
    """Whether columns are often called so: `Source`, `node_id`, `x1`."""
    parts = _PARTS.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cell).lower())
    return bool(parts) and any(p in _NAMES for p in parts) and all(p in _NAMES or p.isdigit() for p in parts)


def check_header(place: Place, cells: Sequence[Sequence[str]], symbols: frozenset[int] = frozenset()) -> None:
    """Raises where the first line keeps a column from being numbers, and warns where it is likely to be a header.

    `cells` are columns, and `symbols` those that are symbols whatever stands in them.
    """
    first = [column[0] for column in cells] if cells and len(cells[0]) > 1 else []
    if not first or any(_NUMERIC.match(cell) or not cell.strip() for cell in first):  # a header has names
        return
    for index, column in enumerate(cells):
        number = _VALUE if index == place.arity else _NUMERIC
        if index not in symbols and not number.match(first[index]) and all(map(number.match, column[1:])):
            raise place.error(
                f"{shown(first[index])} is the only entry of this column that is not a number, so line 1 seems to be a "
                f"header: {WAYS_OUT}",
                0,
                index,
            )
    if all(map(_common, first)) and len(set(first)) == len(first):
        if not any(cell in column[1:] for cell, column in zip(first, cells, strict=True)):
            said = f"{', '.join(map(shown, first))} seems to be a header, and is taken as a fact: {WAYS_OUT}"
            warn(str(place.error(said, 0)))
