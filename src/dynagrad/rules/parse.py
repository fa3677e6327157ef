"""The parser: `parse` for programs, `parse_item` for queries, `parse_term` for terms in files.

Two steps, in `parsing/`: an LALR parser (`parsing/driver.py`) makes raw trees (`parsing/raw.py`), and when all
statements are read, name resolution turns these into the syntax of `syntax.py` (`parsing/resolve.py`). Only syntax
errors are raised here; `parsing/mistakes.py` writes their messages.
"""

from __future__ import annotations

from typing import Any

from ..errors import SyntaxError
from .parsing.driver import Misplaced
from .parsing.mistakes import explain_mistake
from .parsing.raw import raw_parser
from .parsing.resolve import Resolver
from .suggestions import quotes_for
from .syntax import Item, Source, Term


def parse(text: str, filename: str = "") -> Source:
    """The syntax of a program; errors name the `filename`.

    >>> source = parse("goal += constit(s,0,N) * end(N).  % a parse")
    >>> source.rules[0].head.key, source.rules[0].aggregator
    ('goal/0', '+=')
    >>> parse("goal += constit(s,0,N) * end(N)")
    Traceback (most recent call last):
        ...
    dynagrad.errors.SyntaxError: The last statement does not end: its final `.` is missing.
      at line 1, column 32
      1 | goal += constit(s,0,N) * end(N)
        |                                ^
    """
    statements = _run(text, filename, "start")
    rules, declarations = Resolver(text, filename, statements).resolve(statements)
    return Source(tuple(rules), tuple(declarations), text, filename)


def parse_item(text: str) -> Item:
    """The syntax of an item, as in a query; a final `.` is allowed.

    >>> parse_item("constit(np,0,K)").key
    'constit/3'
    """
    try:
        return Resolver(text, "").item(_run(text, "", "query"))
    except SyntaxError as error:
        quoted = quotes_for(text)
        if not quoted:
            raise
        message = f"{error.message} A symbol with other characters than letters and digits is quoted: {quoted}"
        raise SyntaxError(message, text, error.span) from None


def parse_term(text: str) -> Term:
    """The syntax of a term.

    >>> parse_term("[n]")
    Compound(functor='cons', arguments=(Symbol(name='n'), Symbol(name='nil')))
    """
    return Resolver(text, "").term(_run(text, "", "argument"))


def _run(text: str, filename: str, start: str) -> Any:
    try:
        return raw_parser().parse(text, start)
    except Misplaced as mistake:
        raise explain_mistake(mistake, text, filename, start) from None
