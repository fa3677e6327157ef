"""Text to terms. Sugar ends here: `let`, numerals, `*`, `/`, `-`, `²`, tuples, primitives without an argument.

Types are no matter of this file. A name that is a primitive's may not be bound.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer
from lark.common import LexerConf
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lexer import Lexer

from ...collector import collecting_later
from ...errors import Error, NotConverged, Span, SyntaxError, shown
from .mistakes import END, unexpected, unknown_character
from .primitives import BASE, known, primitive
from .terms import (
    TEXT,
    App,
    Coefficients,
    Covector,
    DualMap,
    FormPullback,
    Jac,
    Lam,
    Num,
    Pair,
    Pattern,
    Prim,
    Proj,
    PullbackTerm,
    TermSum,
    Var,
    Zero,
    variables_of,
)
from .trees import nested_right

_NUMERAL = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?").fullmatch


def parse(text: str, filename: str = "") -> PullbackTerm:
    """The term that a text is; `filename` is named in errors.

    >>> parse("let y = x + 1 in sin(y)")
    let y = x + 1 in sin(y)
    >>> parse("let y = x + 1 in")
    Traceback (most recent call last):
        ...
    dynagrad.errors.SyntaxError: The text ends where a term should stand.
      at line 1, column 17
      1 | let y = x + 1 in
        |                 ^
    """
    if not isinstance(text, str):
        raise Error(f"the text of a term is needed, and {shown(text)} is none")
    try:
        with collecting_later():
            made: PullbackTerm = _plain(_parser().parse(text))
    except UnexpectedCharacters as error:
        raise unknown_character(text, error.pos_in_stream or 0, filename) from None
    except UnexpectedToken as error:
        wrong = error.token
        before = takewhile(lambda token: wrong.type == END or token.start_pos < wrong.start_pos, _parser().lex(text))
        raise unexpected(wrong, before, error.accepts or error.expected, text, filename) from None
    except _Refused as error:
        raise SyntaxError(error.message, text, error.span, filename) from None
    return made


def is_name(text: object) -> bool:
    """Whether a variable can have this name.

    >>> is_name("x₁'"), is_name("x y"), is_name("let"), is_name("sin")
    (True, False, False, False)
    """
    if not isinstance(text, str) or _is_primitive(text):
        return False
    return bool(_terminal("NAME")(text)) and not any(_terminal(other)(text) for other in ("OMEGA", "PROJECTION"))


@functools.cache
def _terminal(name: str) -> Callable[[str], object]:
    """Whether a text is all of a terminal of the grammar."""
    return re.compile(_parser().get_terminal(name).pattern.to_regexp()).fullmatch


@functools.cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer=_Lexer, maybe_placeholders=False, transformer=_Builder())


class _Lexer(Lexer):
    """The terminals of the grammar as one regular expression, with what is ignored before them.

    It is what lark's own does, in half the time: that makes tokens of blanks, too.
    """

    def __init__(self, conf: LexerConf) -> None:
        ignored = [terminal for terminal in conf.terminals if terminal.name in conf.ignore]
        longest = lambda of: (-of.priority, -of.pattern.max_width, -len(of.pattern.value), of.name)  # noqa: E731
        kinds = sorted((terminal for terminal in conf.terminals if terminal not in ignored), key=longest)
        blank = "|".join(terminal.pattern.to_regexp() for terminal in ignored)
        token = "|".join(f"(?P<{kind.name}>{kind.pattern.to_regexp()})" for kind in kinds)
        self.match = re.compile(f"(?:{blank})*(?:{token})?").match

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]  # lark calls a lexer of this kind with a text
        """The tokens, each with its place."""
        at, line, line_start = 0, 1, 0
        while True:
            found = self.match(text, at)
            assert found is not None
            kind = found.lastgroup
            start, end = found.span(kind or 0)
            blank_end = start if kind else end
            newlines = text.count("\n", at, blank_end)
            if newlines:
                line += newlines
                line_start = text.rindex("\n", at, blank_end) + 1
            if kind is None:
                if end == len(text):
                    return
                raise UnexpectedCharacters(text, end, line, end - line_start + 1)  # type: ignore[no-untyped-call]
            yield Token(kind, text[start:end], start, line, start - line_start + 1, line, end - line_start + 1, end)
            at = end


class _Refused(Exception):
    """A text that looks like a term and is not one."""

    def __init__(self, message: str, span: Span | None) -> None:
        super().__init__(message)
        self.message, self.span = message, span


class _Name:
    """A primitive that has no argument yet."""

    __slots__ = ("name", "span")

    def __init__(self, name: str, span: Span) -> None:
        self.name, self.span = name, span


class _Bound:
    """A pattern and where it stands."""

    __slots__ = ("pattern", "span")

    def __init__(self, pattern: Pattern, span: Span) -> None:
        self.pattern, self.span = pattern, span


def _at(token: Token) -> Span:
    return Span(token.start_pos, token.end_pos, token.line, token.column)  # type: ignore[arg-type]  # tokens of a text have places


def _place(part: Any) -> Span:
    span = _at(part) if isinstance(part, Token) else part.span
    assert span is not None
    return span


def _over(first: Any, last: Any) -> Span:
    a, b = _place(first), _place(last)
    return Span(a.start, max(a.end, b.end), a.line, a.column)


def _plain(part: Any) -> PullbackTerm:
    """A primitive that stands alone is the function that it is."""
    if isinstance(part, _Name):
        several = known(part.name).width > 1 or part.name.endswith("'")
        name = "p" if several else "x"
        return Lam(name, Prim(part.name, Var(name, span=part.span), span=part.span), span=part.span)
    made: PullbackTerm = part
    return made


def _binary(name: str) -> Callable[[Any, list[Any]], PullbackTerm]:
    def make(_: Any, parts: list[Any]) -> PullbackTerm:
        left, right = map(_plain, parts)
        span = _over(left, right)
        return Prim(name, Pair(left, right, span=span), span=span)

    return make


def _is_primitive(name: str) -> bool:
    return name.rstrip("'") in BASE


def _primitive(name: str, word: Token) -> bool:
    """Whether a word names a primitive; an error where its order is too high."""
    try:
        return primitive(name) is not None
    except NotConverged as error:
        raise _Refused(f"There is no such primitive: {error}.", _at(word)) from None


def _binder(parts: list[Any]) -> Pattern:
    bound: _Bound = nested_right(parts, lambda a, b: _Bound((a.pattern, b.pattern), _over(a, b)))
    names = variables_of(bound.pattern)
    for name in names:
        if _is_primitive(name):
            raise _Refused(f"`{name}` is a primitive function and cannot be bound.", bound.span)
    if len(set(names)) != len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise _Refused(f"`{twice}` is bound twice in one pattern.", bound.span)
    return bound.pattern


class _Builder(Transformer[Token, Any]):
    """A method for each rule of the grammar."""

    def bind(self, parts: list[Any]) -> _Bound:
        return _Bound(str(parts[0]), _at(parts[0]))

    def bind_tuple(self, parts: list[Any]) -> _Bound:
        inner = [part for part in parts if isinstance(part, _Bound)]
        made: _Bound = nested_right(inner, lambda a, b: _Bound((a.pattern, b.pattern), _over(a, b)))
        return made

    def let(self, parts: list[Any]) -> PullbackTerm:
        word, pattern, bound, body = parts
        body = _plain(body)
        span = _over(word, body)
        return App(Lam(_binder([pattern]), body, span=span), _plain(bound), span=span)

    def _lambda(self, parts: list[Any], word: Any) -> PullbackTerm:
        *patterns, _, body = parts
        made = _plain(body)
        for pattern in reversed(patterns):
            made = Lam(_binder([pattern]), made, span=_over(word, made))
        return made

    def lam(self, parts: list[Any]) -> PullbackTerm:
        return self._lambda(parts[1:], parts[0])

    def add(self, parts: list[Any]) -> PullbackTerm:
        left, right = map(_plain, parts)
        return TermSum(left, right, span=_over(left, right))

    def subtract(self, parts: list[Any]) -> PullbackTerm:
        left, right = map(_plain, parts)
        return TermSum(left, self.negative([right]), span=_over(left, right))

    multiply, divide = _binary("mult"), _binary("div")

    def negative(self, parts: list[Any]) -> PullbackTerm:
        of = _plain(parts[-1])
        return Num(-of.value, span=of.span) if isinstance(of, Num) else Prim("neg", of, span=of.span)

    def apply(self, parts: list[Any]) -> PullbackTerm:
        function, argument = parts[0], _plain(parts[1])
        span = _over(function, argument)
        return (
            Prim(function.name, argument, span=span)
            if isinstance(function, _Name)
            else App(function, argument, span=span)
        )

    def project(self, parts: list[Any]) -> PullbackTerm:
        word, of = parts[0], _plain(parts[1])
        return Proj(1 if word[-1] in "1₁" else 2, of, span=_over(word, of))

    def dual_map(self, parts: list[Any]) -> PullbackTerm:
        of, functional = parts[0], _plain(parts[-1])
        if not isinstance(of, Lam):
            raise _Refused(
                "A dual map is written `(λx. S)^ . T`: an abstraction in brackets stands before `^ .`.", _place(of)
            )
        return DualMap(of.pattern, of.body, functional, span=_over(of, functional))

    def omega(self, parts: list[Any]) -> Any:
        return self._lambda(parts[2:], parts[0])

    def pullback(self, parts: list[Any]) -> PullbackTerm:
        of, form = parts[0], _plain(parts[-1])
        return FormPullback(of.pattern, of.body, form, span=_over(of, form))

    def jacobian(self, parts: list[Any]) -> PullbackTerm:
        word, along = parts[0], _plain(parts[-1])
        name = str(word)[1:].removeprefix("_")
        if not _primitive(name, word):
            raise _Refused(f"There is no primitive function `{name}`.", _at(word))
        return Jac(name, along, span=_over(word, along))

    def name(self, parts: list[Any]) -> Any:
        word = parts[0]
        return _Name(str(word), _at(word)) if _primitive(str(word), word) else Var(str(word), span=_at(word))

    def number(self, parts: list[Any]) -> PullbackTerm:
        word = parts[0]
        if word == "0":
            return Zero(span=_at(word))
        if not _NUMERAL(word):
            raise _Refused("A numeral is written like `2`, `0.5` or `1e-3`, and a product like `2 * x`.", _at(word))
        value = float(word)
        if value == float("inf"):
            raise _Refused("The number is too large for a double.", _at(word))
        return Num(value, span=_at(word))

    def covector(self, parts: list[Any]) -> PullbackTerm:
        of = _plain(parts[0])
        return Covector(_coefficients(of), span=of.span)

    def square(self, parts: list[Any]) -> PullbackTerm:
        of = _plain(parts[0])
        return Prim("square", of, span=of.span)

    def brackets(self, parts: list[Any]) -> Any:
        return parts[0]

    def tuple(self, parts: list[Any]) -> Any:
        inner = [_plain(part) for part in parts if not isinstance(part, Token)]
        return nested_right(inner, lambda a, b: Pair(a, b, span=_over(a, b)))


def _coefficients(of: PullbackTerm) -> Coefficients:
    done: list[Coefficients] = []
    todo: list[PullbackTerm | None] = [of]
    while todo:
        here = todo.pop()
        match here:
            case None:
                second, first = done.pop(), done.pop()
                done.append((first, second))
            case Num(value):
                done.append(value)
            case Zero():
                done.append(0.0)
            case Pair(first, second):
                todo += (None, second, first)
            case _:
                hint = (
                    "a dual map is written `(λx. S)^ . T`"
                    if isinstance(of, Lam)
                    else "a power is `power(x, c)` or `x²`"
                )
                raise _Refused(f"A dual `c^` has numerals for coefficients; {hint}.", here.span)
    return done[0]


TEXT["parse"] = parse
