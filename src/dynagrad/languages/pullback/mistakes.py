"""Messages of syntax errors: what stands where in a text, and what should stand there. No term is made here."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable

from lark import Token

from ...errors import Span, SyntaxError

END = "$END"
_CLOSED_BY = {"LPAR": "`)`", "LANGLE": "`>`", "LET": "`in`"}
_OPENED_BY = {"RPAR": "LPAR", "RANGLE": "LANGLE", "IN": "LET", "EQUAL": "LET"}
_SINGLE = {"DOT": "`.`", "EQUAL": "`=`", "IN": "`in`", "COMMA": "`,`", "RPAR": "`)`", "RANGLE": "`>`", "LAMBDA": "`λ`"}
_IN_BRACKETS = {
    "LAMBDA": "an abstraction inside of another term is put in brackets, `(λx. S)`",
    "LET": "a `let` inside of another term is put in brackets",
    "OMEGA": "a pullback is written `(Ω λx. P) . S`",
}
_MEANT = {
    **dict.fromkeys("\u2212\u2013\u2014\u2010\u2011", "`-`"),  # dashes
    **dict.fromkeys("\u22c5\u2219\u2022", "`·`"),  # dots
    **dict.fromkeys("\u3008\u300a\u2039", "`<`"),
    **dict.fromkeys("\u3009\u300b\u203a", "`>`"),
    **dict.fromkeys("\u00f7\u2215", "`/`"),
    **dict.fromkeys("[{", "`(`"),
    **dict.fromkeys("]}", "`)`"),
    "→": "`.` after what `λ` binds",
    "π": "`π1` or `π2`",
    "\u2126": "`Ω`",  # the unit
    "³": "a product",
    "\u2032": "`'`",
}
"""What is written for signs that look like some of the language."""


def unknown_character(text: str, at: int, filename: str) -> SyntaxError:
    """A character that no part of a term begins with."""
    sign = text[at]
    shown = f"`{sign}`" if sign.isprintable() and not unicodedata.combining(sign) else f"U+{ord(sign):04X}"
    if sign in "π\u2126" or sign not in _MEANT:
        name = unicodedata.name(sign, "")
        shown += f" ({name.lower()})" if name and not sign.isascii() else ""
    hint = ""
    if sign in _MEANT:
        hint = f"; {_MEANT[sign]} is written here"
    elif sign.isalpha():
        hint = "; names are of Latin and Greek letters, digits, `_` and `'`"
    return SyntaxError(f"{shown} is no sign of the language{hint}.", text, span_of(text, at, at + 1), filename)


def unexpected(
    token: Token, before: Iterable[Token], accepts: Collection[str], text: str, filename: str
) -> SyntaxError:
    """A token that does not fit; `before` are those before it, and `accepts` what would fit."""
    opened = _open(before)
    wanted = _wanted(accepts, opened)
    if token.type == END:
        end = len(text.rstrip())
        return SyntaxError(f"The text ends where {wanted}.", text, span_of(text, end, end + 1), filename)
    hint = _hint(token, accepts, opened, text)
    assert token.start_pos is not None and token.end_pos is not None
    place = span_of(text, token.start_pos, token.end_pos)
    return SyntaxError(f"`{token}` stands where {wanted}{hint and ': '}{hint}.", text, place, filename)


def _open(tokens: Iterable[Token]) -> list[Token]:
    """The brackets, `let` and `λ` that are not at their end yet."""
    opened: list[Token] = []
    for token in tokens:
        if token.type in ("LPAR", "LANGLE", "LET", "LAMBDA"):
            opened.append(token)
        elif token.type in ("RPAR", "RANGLE", "IN") or (token.type == "DOT" and _binds(opened)):
            opened.pop()
    return opened


def _binds(opened: list[Token]) -> bool:
    return bool(opened) and opened[-1].type == "LAMBDA"


def _wanted(accepts: Collection[str], opened: list[Token]) -> str:
    """What should stand there, as the end of a sentence."""
    for_whom = ""
    if opened:
        for_whom = f", for the `{opened[-1]}` at line {opened[-1].line}, column {opened[-1].column}"
    if "PLUS" in accepts:  # after a term
        if opened:
            return f"{_CLOSED_BY[opened[-1].type]} or an operator should stand{for_whom}"
        return "an operator, an argument or the end should stand"
    if "NUMBER" in accepts:
        return "a term should stand"
    if "NAME" in accepts:
        more = "`.` or another name" if "DOT" in accepts else "a name, or names in `<` and `>`,"
        return f"{more} should stand{for_whom}"
    if {*accepts} <= {END}:
        return "an operator, an argument or the end should stand"
    if {*accepts} == {"DOT"} and not _binds(opened):
        return "`.` and the 1-form of the pullback should stand"
    names = [words for name, words in _SINGLE.items() if name in accepts]
    return f"{' or '.join(names) or 'something else'} should stand{for_whom}"


def _hint(token: Token, accepts: Collection[str], opened: list[Token], text: str) -> str:
    """What was probably meant."""
    if token.type in _IN_BRACKETS:
        return _IN_BRACKETS[token.type] if {"PLUS", "NUMBER"} & {*accepts} else ""
    opener = _OPENED_BY.get(token.type)
    if opener is not None and all(other.type != opener for other in opened):
        return "it belongs to no `let`" if opener == "LET" else "nothing is open that it closes"
    if token.type == "_TIMES" and text[: token.start_pos].endswith("*"):
        return "a power is written `power(x, c)` or `x²`"
    if token.type == "COMMA" and not opened:
        return "the parts of a tuple stand in `<` and `>`"
    if token.type == "DOT":
        if text[token.end_pos : (token.end_pos or 0) + 1].isdigit() and "NUMBER" in accepts:
            return "a numeral has a digit before its point"
        if "PLUS" in accepts:
            return "`.` follows `λx`, `(λx. S)^`, `(Ω λx. P)` or `Jf`"
    return ""


def span_of(text: str, start: int, end: int) -> Span:
    """A place in a text, with its line and column."""
    return Span(start, end, text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
