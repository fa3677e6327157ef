"""Raw parse trees, in which arguments and right sides look the same, and the semantic actions that build them.

The parser (`driver.py`) does not recurse; each rule of `grammar.lark` has a method here. Variables, symbols, short
integers and floats are final already.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ...errors import Span
from ..parser_tables import tables
from ..syntax import (
    Float,
    Integer,
    Symbol,
    Variable,
)
from .driver import Parser, Token


class RawShape:
    __slots__ = ("span",)
    span: Span


class RawAnonymous(RawShape):
    """`_`, which gets its number when its statement is resolved."""

    __slots__ = ()

    def __init__(self, span: Span) -> None:
        self.span = span


class RawLiteral(RawShape):
    """A number that may be out of range: one of many digits, or too large for a double."""

    __slots__ = ("text",)

    def __init__(self, text: str, span: Span) -> None:
        self.text, self.span = text, span


class RawCall(RawShape):
    __slots__ = ("arguments", "name", "quoted")

    def __init__(self, name: str, arguments: list[Any], span: Span, quoted: bool = False) -> None:
        self.name, self.arguments, self.span, self.quoted = name, arguments, span, quoted


class RawOperation(RawShape):
    """An operator with its operands; also `list` (elements, then the tail or None), `chain`, `if` and `SIDE`."""

    __slots__ = ("operands", "operator")

    def __init__(self, operator: str, operands: list[Any], span: Span) -> None:
        self.operator, self.operands, self.span = operator, operands, span


class RawType(RawShape):
    __slots__ = ("name", "unions")

    def __init__(self, name: str, unions: list[list[RawType]], span: Span) -> None:
        self.name, self.unions, self.span = name, unions, span


class RawStatement(RawShape):
    """A statement of some kind, with its parts as the grammar names them."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: str, parts: list[Any], span: Span) -> None:
        self.kind, self.parts, self.span = kind, parts, span


def span_of(token: Token) -> Span:
    return Span(token.start_pos, token.end_pos, token.line, token.column)


def span_over(first: Span, last: Span) -> Span:
    return Span(first.start, last.end, first.line, first.column)


_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is None:
        return _ESCAPED.get(match[4], match[4])
    return chr(min(int(code, 16), 0x10FFFF))


def name_of(token: Token) -> str:
    """The name that a NAME or QUOTED token stands for."""
    if token.type != "QUOTED":
        return str(token)
    body = token[1:-1]
    return _ESCAPE.sub(_unescape, body) if "\\" in body else str(body)


def is_variable(name: str) -> bool:
    """Whether a bare word is a variable: it starts with a capital letter or an underscore."""
    first = name[0]
    return first == "_" or first.isupper() or first.istitle()


SPELLINGS = {"<=": "=<", "**": "^"}  # other spellings of operators
_ARGUMENT = re.compile(r"[^\s(),]+")


def _atom(text: str, span: Span) -> Any:
    if text == "_":
        return RawAnonymous(span)
    if is_variable(text):
        return Variable(text, False, span)
    if text[0] in "-0123456789":
        return Integer(int(text), span)
    return Symbol(text, span)


class Builder:
    """The parser's semantic actions, called at each reduction, bottom up; stateless, so threads share one."""

    def start(self, children: list[Any]) -> list[RawStatement]:
        return children

    # Terms and expressions.

    def query(self, children: list[Any]) -> Any:
        return children[0]  # without the final dot

    def variable(self, children: list[Any]) -> Any:
        return _atom(str(children[0]), span_of(children[0]))

    def integer(self, children: list[Any]) -> Any:
        token = children[0]
        return Integer(int(token), span_of(token)) if len(token) <= 18 else RawLiteral(str(token), span_of(token))

    def float(self, children: list[Any]) -> Any:
        token = children[0]
        value = float(token)
        return RawLiteral(str(token), span_of(token)) if math.isinf(value) else Float(value, span_of(token))

    def symbol(self, children: list[Any]) -> Any:
        token = children[0]
        span = span_of(token)
        if token.type == "NAME" and is_variable(token):  # a capital outside ASCII, which the grammar does not know
            return Variable(str(token), False, span)
        return Symbol(name_of(token), span)

    def plain(self, children: list[Any]) -> Any:
        token = children[0]
        start, line, column = token.start_pos, token.line, token.column
        name, _, _ = token.partition("(")
        arguments = []
        for match in _ARGUMENT.finditer(token, len(name) + 1):
            left, right = match.span()
            arguments.append(_atom(match[0], Span(start + left, start + right, line, column + left)))
        return RawCall(str(name), arguments, span_of(token))

    def call(self, children: list[Any]) -> Any:
        quoted = children[0].type == "QUOTED"
        return RawCall(name_of(children[0]), children[1], span_over(span_of(children[0]), span_of(children[2])), quoted)

    def ellipsis(self, children: list[Any]) -> Any:
        return RawOperation("...", [], span_of(children[0]))

    def values(self, children: list[Any]) -> list[Any]:
        return children

    def binary(self, children: list[Any]) -> Any:
        left, operator, right = children
        return RawOperation(SPELLINGS.get(operator, str(operator)), [left, right], span_over(left.span, right.span))

    def chain(self, children: list[Any]) -> Any:
        links = [self.binary(children[i : i + 3]) for i in range(0, len(children) - 2, 2)]
        return RawOperation("chain", links, span_over(children[0].span, children[-1].span))

    def negate(self, children: list[Any]) -> Any:
        minus, operand = children
        span = span_over(span_of(minus), operand.span)
        if isinstance(operand, Integer):
            return Integer(-operand.value, span)
        if isinstance(operand, Float):
            return Float(-operand.value, span)
        if isinstance(operand, RawLiteral):
            return RawLiteral(operand.text[1:] if operand.text.startswith("-") else "-" + operand.text, span)
        return RawOperation("neg", [operand], span)

    def conditional(self, children: list[Any]) -> Any:
        keyword, condition, then, otherwise = children
        return RawOperation("if", [condition, then, otherwise], span_over(span_of(keyword), otherwise.span))

    def side(self, children: list[Any]) -> Any:
        return RawOperation("SIDE", [children[1]], span_over(span_of(children[0]), span_of(children[2])))

    def parenthesis(self, children: list[Any]) -> Any:
        return children[0]

    def closed_list(self, children: list[Any]) -> Any:
        elements = children[1] if len(children) == 3 else []
        return RawOperation("list", [*elements, None], span_over(span_of(children[0]), span_of(children[-1])))

    def open_list(self, children: list[Any]) -> Any:
        bracket, elements, tail, closing = children
        return RawOperation("list", [*elements, tail], span_over(span_of(bracket), span_of(closing)))

    # Conditions.

    def conditions(self, children: list[Any]) -> list[Any]:
        return children

    def equation(self, children: list[Any]) -> Any:
        left, _, right = children
        return RawOperation("=", [left, right], span_over(left.span, right.span))

    def negation(self, children: list[Any]) -> Any:
        word, item = children
        return RawOperation("not", [item], span_over(span_of(word), item.span))

    # Declarations.

    def keys(self, children: list[Any]) -> list[tuple[str, int, str]]:
        return children

    def key(self, children: list[Any]) -> tuple[str, int, str]:
        """The name and arity of a predicate, and the aggregator behind them, if there is one."""
        arity = int(children[2][:9]) if len(children) > 2 else 0
        return name_of(children[0]), arity, str(children[-1]) if len(children) in (2, 4) else ""

    def types(self, children: list[Any]) -> list[Any]:
        return children

    def type(self, children: list[Any]) -> RawType:
        unions = [child for child in children if isinstance(child, list)]
        return RawType(name_of(children[0]), unions, span_over(span_of(children[0]), _at_end(children[-1])))

    signature = type

    def union(self, children: list[Any]) -> list[Any]:
        return children

    def group(self, children: list[Any]) -> list[Token]:
        return [token for token in children if token.type == "VARIABLE"]

    def number(self, children: list[Any]) -> Any:
        token = children[-1]
        literal = self.integer([token]) if token.type == "INTEGER" else self.float([token])
        return self.negate([children[0], literal]) if len(children) == 2 else literal


def _at_end(last: Any) -> Span:
    if isinstance(last, Token):
        return span_of(last)
    span: Span = last[-1].span
    return span


def _statement(kind: str) -> Callable[[Builder, list[Any]], RawStatement]:
    def build(self: Builder, children: list[Any]) -> RawStatement:
        first = children[0]
        start = span_of(first) if isinstance(first, Token) else first.span
        return RawStatement(kind, children[:-1], span_over(start, span_of(children[-1])))

    return build


_STATEMENTS: tuple[str, ...] = (
    "rule",
    "fact",
    "clause",
    "semiring",
    "valtype",
    "agenda",
    "solve",
    "predicates",
    "type_declaration",
)
_STATEMENTS += ("priority", "prune", "beam", "show", "distribution")
for _kind in _STATEMENTS:
    setattr(Builder, _kind, _statement(_kind))


@lru_cache(maxsize=1)
def raw_parser() -> Parser:
    """The parser of programs, items and terms, built when first needed."""
    return Parser(tables(), Builder())
