"""The front end of the rule language: text -> syntax -> normal form -> checks. Facts and storage are not known here.

- `syntax.py`: the syntax of programs; `parse.py` makes it from text, by the steps of `parsing/` (`parser_tables.py`
  has the tables of the parser, which lark makes of the grammar), and `show.py` is the pretty-printer.
- `normal.py`: the normal form of rules, which the planner reads; `normalise.py` rewrites syntax to it, and `unfold.py`
  unfolds transient predicates; `substitution.py` has variables, substitution and unification.
- `check.py`: the checks of `checks/`, in order, with `integers.py` for constants out of range.
- `suggestions.py`: what a misspelt predicate was probably meant to be.
- `types.py`: type inference: which argument positions share a domain.
- `semirings.py`, `aggregators.py`: a table each, with all that the package knows of one.
- `cache.py`: checked programs on disk.
"""

from .check import check, undefined
from .parse import parse, parse_item, parse_term
from .show import show
from .types import infer

__all__ = ["check", "infer", "parse", "parse_item", "parse_term", "show", "undefined"]
