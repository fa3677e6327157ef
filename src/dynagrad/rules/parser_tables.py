"""The LALR tables of `grammar.lark`, in `grammar.json`: lark makes them, in time that starting a parser need not take.

After a change of the grammar, `write` makes the file anew; a test holds it against the grammar. What is done by the
tables is in `parsing/driver.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

STARTS = ("start", "query", "argument")
_GRAMMAR = Path(__file__).with_name("grammar.lark")
_TABLES = _GRAMMAR.with_suffix(".json")


@dataclass(frozen=True)
class Production:
    """A rule of the grammar as the parser reduces by it.

    `parts` are the children that its action gets, by their number, or all: ~n stands for all that child n has. With
    `single`, an only child takes the place of the rule.
    """

    origin: str
    size: int
    action: str
    parts: tuple[int, ...] | None
    single: bool


@dataclass(frozen=True)
class Tables:
    """The tables of a parser."""

    terminals: tuple[tuple[str, str], ...]
    """Name and regular expression, in the order in which they are tried."""
    skipped: frozenset[str]
    rules: tuple[Production, ...]
    starts: dict[str, tuple[int, int]]
    """By the rule to start with, the first state and the last."""
    states: tuple[dict[str, str], ...]
    """By what is done, the symbols that it is done for: state n is entered; ~n: rule n is reduced."""


@cache
def tables() -> Tables:
    """The tables, from their file."""
    read = json.loads(_TABLES.read_text(encoding="utf-8"))
    return Tables(
        tuple(map(tuple, read["terminals"])),
        frozenset(read["skipped"]),
        tuple(Production(o, n, a, None if p is None else tuple(p), s) for o, n, a, p, s in read["rules"]),
        {start: tuple(ends) for start, ends in read["starts"].items()},
        tuple(read["states"]),
    )


def made() -> str:
    """The text of `grammar.json` for the grammar as it is."""
    from lark import Lark, grammar, lexer  # for a quick start

    text = _GRAMMAR.read_text(encoding="utf-8")
    lark = Lark(text, parser="lalr", maybe_placeholders=False, start=list(STARTS))
    data, memo = lark.memo_serialize([lexer.TerminalDef, grammar.Rule])
    parser = data["parser"]["parser"]
    order = lexer.BasicLexer(lark.parser.lexer_conf).terminals  # as they are tried
    number = _numbered(parser)
    rules = [memo[rule["@"]] for rule in data["rules"]]
    place = {rule["@"]: n for n, rule in enumerate(data["rules"])}
    states: list[dict[str, list[str]]] = [{} for _ in number]
    for state, row in parser["states"].items():
        for token, (reduces, to) in row.items():
            action = ~place[to["@"]] if reduces else number[to]
            states[number[state]].setdefault(str(action), []).append(parser["tokens"][token])
    parts = {
        "terminals": [[t.name, t.pattern.to_regexp()] for t in order],
        "skipped": sorted(data["parser"]["lexer_conf"]["ignore"]),
        "starts": {s: [number[parser["start_states"][s]], number[parser["end_states"][s]]] for s in STARTS},
        "rules": [_rule(rule) for rule in rules],
        "states": [{a: " ".join(sorted(row[a])) for a in sorted(row, key=int)} for row in states],
    }
    lines = [f'"{name}": {_lines(part)}' for name, part in parts.items()]
    return "{" + ",\n".join(lines) + "}\n"


def _lines(part: Any) -> str:
    """JSON with a line for each of a list's elements."""
    if not isinstance(part, list):
        return json.dumps(part)
    return "[\n" + ",\n".join(json.dumps(element) for element in part) + "\n]"


def _numbered(parser: dict[str, Any]) -> dict[int, int]:
    """Numbers for the states that do not depend on the order of sets: as they are met from the first ones on."""
    found = {parser["start_states"][start]: n for n, start in enumerate(STARTS)}
    for state in (queue := list(found)):
        row = parser["states"][state]
        for token in sorted(row, key=parser["tokens"].__getitem__):
            reduces, to = row[token]
            if not reduces and to not in found:
                found[to] = len(found)
                queue.append(to)
    return found


def _rule(rule: dict[str, Any]) -> list[Any]:
    parts = []
    for n, symbol in enumerate(rule["expansion"]):
        terminal = symbol["__type__"] == "Terminal"
        if not (terminal and symbol["filter_out"]):
            parts.append(n if terminal or not symbol["name"].startswith("_") else ~n)
    size, single = len(rule["expansion"]), rule["options"]["expand1"] and not rule["alias"]
    origin = rule["origin"]["name"]
    return [origin, size, rule["alias"] or origin, None if parts == list(range(size)) else parts, single]


def write() -> None:
    """Writes the file of the tables anew."""
    _TABLES.write_text(made(), encoding="utf-8")
