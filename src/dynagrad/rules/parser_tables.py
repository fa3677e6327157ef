"""The LALR tables that lark makes of `grammar.lark`, cached on disk: a parser from them starts twenty times as fast.

They are plain data, found by a hash of what they depend on: the grammar, lark, Python, and this file. `Lark.load` would
unpickle them, so the functions that it calls are called here.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
from pathlib import Path
from typing import Any

import lark
from lark import Lark, Transformer
from lark.exceptions import LarkError
from lark.grammar import Rule
from lark.lexer import TerminalDef

from ..runtime.disk.records import recall, remember


def parser(transformer: Transformer[Any, Any]) -> Lark:
    """The parser of programs, queries and arguments, with the semantic actions of a transformer."""
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    depends = f"{lark.__version__}\n{sys.version}\n{Path(__file__).read_text(encoding='utf-8')}\n{grammar}"
    name = f"{hashlib.sha256(depends.encode()).hexdigest()[:40]}.tables"
    kept = recall(name)
    found = None if kept is None else _from(kept, transformer)
    if found is None:
        tables = _made(grammar)
        remember(name, marshal.dumps(tables))
        found = _parser(tables, transformer)
    return found


def _from(kept: bytes, transformer: Transformer[Any, Any]) -> Lark | None:
    """The parser made from cached tables; None where they are not valid."""
    try:
        return _parser(marshal.loads(kept), transformer)
    except (EOFError, ValueError, TypeError, LookupError, AttributeError, AssertionError, LarkError):
        return None


def _parser(tables: Any, transformer: Transformer[Any, Any]) -> Lark:
    return Lark.__new__(Lark)._load(tables, transformer=transformer)


def _made(grammar: str) -> dict[str, Any]:
    """The tables of a grammar, as dicts, lists and tuples of numbers and texts."""
    starts = ["start", "query", "argument"]
    made = Lark(grammar, parser="lalr", maybe_placeholders=False, start=starts)
    data, memo = made.memo_serialize([TerminalDef, Rule])
    return {"data": data, "memo": memo}
