"""Text to syntax: `parse` for programs, `parse_item` for queries, `parse_term` for terms in files.

In two steps, which `parsing/` has: lark's parser of `grammar.lark` gives raw shapes (`parsing/raw.py`), and when all
statements are read these become the syntax of `syntax.py` (`parsing/resolve.py`). What a program means is no matter of
either; they refuse only what is no text of the language, and `parsing/mistakes.py` says why.
"""

from __future__ import annotations

from typing import Any

from lark.exceptions import UnexpectedInput

from .parsing.mistakes import explain_mistake
from .parsing.raw import raw_parser
from .parsing.resolve import Resolver
from .syntax import Item, Source, Term


def parse(text: str, filename: str = "") -> Source:
    """The program that `text` is; `filename` is named in errors.

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
    """The item that `text` is, as in a query; a final `.` may stand.

    >>> parse_item("constit(np,0,K)").key
    'constit/3'
    """
    return Resolver(text, "").item(_run(text, "", "query"))


def parse_term(text: str) -> Term:
    """The term that `text` is.

    >>> parse_term("[n]")
    Compound(functor='cons', arguments=(Symbol(name='n'), Symbol(name='nil')))
    """
    return Resolver(text, "").term(_run(text, "", "argument"))


def _run(text: str, filename: str, start: str) -> Any:
    try:
        return raw_parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise explain_mistake(error, text, filename, start) from None
