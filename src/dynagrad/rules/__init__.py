"""The rule language, front to back: text -> syntax -> normal form -> checks.

`syntax.py` says what a program is, `parse.py` makes one from text and `show.py` text from one, `normal.py` has the few
forms that the plan reads and `normalise.py` rewrites a program to them, `types.py` groups arguments into domains,
`check.py` refuses what cannot mean anything, by the checks of `checks/`. What each semiring and each aggregator is
stands in the tables of `semirings.py` and `aggregators.py`; `tables.py` and `remembered.py` keep what was worked out on
disk. Nothing here knows of facts or storage.
"""

from .check import check, undefined
from .parse import parse, parse_item, parse_term
from .show import show
from .types import infer

__all__ = ["check", "infer", "parse", "parse_item", "parse_term", "show", "undefined"]
