"""Messages of syntax errors: what stands there, what is allowed there, and what habits of other languages mean here.

Where the parser stopped is given; what is well-formed but means nothing is refused by `rules/checks/`.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from ...errors import Span, SyntaxError
from .driver import END, Misplaced, Token

_DECLARATIONS: tuple[str, ...] = (
    "semiring",
    "valtype",
    "input",
    "output",
    "type",
    "agenda",
    "solve",
    "priority",
    "prune",
    "beam",
)
_DECLARATIONS += ("transient", "external", "function", "show", "distribution")

_SKIP = re.compile(
    r"""%[^\n]*|\s+|(?P<quoted>'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")"""
    r"""|(?P<number>\d*\.\d+|\d+\.[eE][+-]?\d+(?!\w))|(?P<dots>\.\.\.)|(?P<dot>\.)|(?P<open>[(\[])|(?P<close>[)\]])|(?P<word>\w+)"""
    r"""|(?P<other>.)""",
    re.DOTALL,
)

_FOREIGN: tuple[tuple[str, str], ...] = (
    (":=", "`:=` is not an operator here: write `+=`, or `=` for a constant."),
    (":-", "`:-` starts a declaration, or stands after a head alone: `head :- item, condition.`"),
    ("<-", "A rule is written `head += body.`"),
    ("->", "`->` is not an operator here; a choice is written `if C then A else B`."),
    ("=>", "The comparison is written `>=`."),
    ("<>", "The comparison is written `!=`."),
    ("\\=", "The comparison is written `!=`."),
    ("\\+", "Negation is written `not item`, after `for`."),
    ("&&", "Conditions are separated by commas, after `for`."),
    ("||", "Write one rule for each of the alternatives."),
    ("//", "A comment starts with `%`."),
    ("/*", "A comment starts with `%` and ends with its line."),
    ("#", "A comment starts with `%`."),
    (";", "A statement ends with `.`; alternatives are rules of their own."),
    ("{", "Terms are written with `(...)` or as lists `[...]`."),
)

_WORD_BEFORE = re.compile(r"\b(if|not)\s*$")
_MISPLACED = {
    "if": "`if` starts a choice, `if C then A else B`, which stands in brackets inside other arithmetic; the "
    "conditions of a rule come after the word `for`.",
    "not": "`not item` is a condition: it stands after the word `for`.",
}

# Terminals by the words that describe them in messages.
_EXPECTED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a name", ("NAME",)),
    ("a variable", ("VARIABLE",)),
    ("a number", ("INTEGER", "FLOAT")),
    ("one of `+=`, `*=`, `max=`, `min=`, `|=`, `&=`, `=`", ("AGGREGATOR",)),
    ("`=`", ("EQUALS",)),
    ("a comparison", ("COMPARE",)),
    ("an arithmetic operator", ("PLUS", "STAR")),
    ("`/`", ("SLASH",)),
    ("`(`", ("_LPAR",)),
    ("`)`", ("RPAR",)),
    ("`]`", ("RBRACKET",)),
    ("`,`", ("_COMMA",)),
    ("`|`", ("_BAR",)),
    ("`then`", ("_THEN",)),
    ("`else`", ("_ELSE",)),
    ("`by`", ("_BY",)),
    ("`keep`", ("_KEEP",)),
    ("`given`", ("_GIVEN",)),
    ("`as`", ("_AS",)),
    ("`for`", ("_FOR",)),
    ("a final `.`", ("DOT",)),
)


def _expected(accepts: set[str]) -> str:
    """The terminals that the parser accepts, in words."""
    if {"NAME", "INTEGER", "_LPAR"} <= accepts:
        return "an item, a term or a number"
    if "AGGREGATOR" in accepts:
        accepts = accepts - {"EQUALS", "_LPAR"}
    if "SLASH" in accepts and "PLUS" in accepts:
        accepts = accepts - {"SLASH", "FLOOR", "MOD", "POWER"}
    if "_FOR" in accepts:
        accepts = accepts - {"COMPARE", "_LPAR"}
    words = [words for words, group in _EXPECTED if accepts.intersection(group)]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _span_at(text: str, start: int, end: int) -> Span:
    line_start = text.rfind("\n", 0, start) + 1
    return Span(start, end, text.count("\n", 0, start) + 1, start - line_start + 1)


class BeforeError:
    """The text before an error: its open brackets, the start of its statement, the end of its last token."""

    def __init__(self, text: str, stop: int) -> None:
        self.open: list[int] = []
        self.statement, self.end, self.tokens = 0, 0, 0
        position = 0
        while position < stop:
            match = _SKIP.match(text, position)
            assert match is not None  # the last alternative takes any character
            position, kind = match.end(), match.lastgroup
            if kind is None:
                continue
            self.tokens += 1
            if self.tokens == 1:
                self.statement = match.start()
            self.end = position
            if kind == "open":
                self.open.append(match.start())
            elif kind == "close" and self.open:
                self.open.pop()
            elif kind == "dot" and not self.open:
                self.tokens = 0


def explain_mistake(mistake: Misplaced, text: str, filename: str, start: str) -> SyntaxError:
    token, accepts = mistake.token, mistake.accepted
    at_end = token is not None and token.type == END
    position = len(text.rstrip()) if at_end else mistake.position
    context = BeforeError(text, len(text) if at_end else position)
    if at_end:
        position = context.end
    length = len(token) if token is not None and not at_end else 1
    message, place = _message(text, position, at_end, accepts, context, start, token)
    if place != position:
        length = 1
    return SyntaxError(message, text, _span_at(text, place, place + max(1, length)), filename)


def _message(
    text: str, position: int, at_end: bool, accepts: set[str], context: BeforeError, start: str, token: Token | None
) -> tuple[str, int]:
    """The message, and the offset that it points at."""
    program = start == "start"
    first_of_line = not text[text.rfind("\n", 0, position) + 1 : position].strip()
    rest = text[position : position + 3]
    found = "the text ends" if at_end else f"found {_describe(text, position, token)}"
    if not at_end and rest[0] in "'\"" and token is None:
        return "This quoted symbol is not closed on its line.", position
    for foreign, hint in _FOREIGN:
        for place in (position, max(0, position - 1)):
            if text.startswith(foreign, place) and not (foreign == ":-" and first_of_line):
                return f"`{foreign}` cannot stand here. {hint}", place
    before = _WORD_BEFORE.search(text[max(0, position - 20) : position])
    if before and before[1] in _MISPLACED:
        return _MISPLACED[before[1]], position - len(before[0])
    if token is not None and token.type in ("IF", "NOT"):
        return _MISPLACED[token.type.lower()], position
    if program and context.tokens and ("DOT" in accepts and (at_end or first_of_line)):
        which = "The last statement does not end" if at_end else "This statement does not end"
        return f"{which}: its final `.` is missing.", context.end
    aggregator = rest[:1] == "=" and text[position - 1 : position] in ("+", "*", "|", "&")
    if context.open and (at_end or rest[0] == "." or aggregator or (first_of_line and "RPAR" in accepts)):
        opened = _span_at(text, context.open[-1], context.open[-1] + 1)
        bracket = text[opened.start]
        found = f"found `{text[position - 1]}=`" if aggregator else found
        return f"The `{bracket}` at line {opened.line}, column {opened.column} is not closed, and {found}.", position
    if context.tokens == 0 and token is not None and token.type == "VARIABLE":
        return f"A statement starts with the name of a predicate, in lower case; `{token}` is a variable.", position
    if rest[:1] == ")" and "RPAR" not in accepts and not context.open:
        return "This `)` closes no bracket.", position
    if rest[:1] == ")" and text[:position].rstrip()[-1:] == "(" and "NAME" in accepts:
        return "Empty brackets: a predicate without arguments is written without them, as in `goal`.", position
    if rest[:1] == "," and "DOT" in accepts and "_FOR" in accepts:
        return (
            "A `,` cannot stand on a right side: items are joined with `*`, and conditions come after the word `for`.",
            position,
        )
    if "SEMIRING" in accepts:
        word = re.match(r"\w*", text[position : position + 60])
        near = get_close_matches(word[0] if word else "", _DECLARATIONS, 1)
        hint = f" Did you mean `{near[0]}`?" if near else f" The declarations are {', '.join(_DECLARATIONS)}."
        return f"This is not a declaration: {found}.{hint}", position
    if token is not None and token.type in ("NAME", "PLAIN") and "VARIABLE" in accepts and "NAME" not in accepts:
        return f"Expected a variable, which starts with a capital letter or `_`, but {found}.", position
    if "NAME" in accepts and token is not None and token.type == "VARIABLE" and "INTEGER" not in accepts:
        return f"Expected a name, which starts with a lower-case letter, but {found}.", position
    expected = _expected(accepts)
    if token is not None and "PLUS" in accepts and token.type in ("NAME", "PLAIN", "VARIABLE", "INTEGER", "FLOAT"):
        expected += " between the two"
    return f"{found[0].upper()}{found[1:]}{f', but expected {expected}' if expected else ''}.", position


def _describe(text: str, position: int, token: Token | None) -> str:
    if token is None:
        return f"{text[position]!r}" if not text[position].isprintable() else f"`{text[position]}`"
    shown = str(token) if len(token) <= 40 else token[:37] + "..."
    kind = {"VARIABLE": "the variable ", "NAME": "the name ", "INTEGER": "the number ", "FLOAT": "the number "}
    return f"{kind.get(token.type, '')}`{shown}`"
