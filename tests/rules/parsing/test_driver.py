"""The LALR driver against lark's: the same trees, and mistakes at the same places (two seconds)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import UnexpectedInput, UnexpectedToken

from dynagrad.rules import parser_tables
from dynagrad.rules.parsing.driver import Misplaced, Parser

PROGRAM = """
% a program with most of what there is
a(X,f([Y|Z]),"q") += b(X,_) * exp(c(Y))**2 for X < Y + 1, Z != Y.  :- solve iterate.
best(X, 'it s') max= SIDE(w(X)) - (-3.5e2 // 2) mod (if for(X) =< 1 <= 2 then [] else [1, 2.5 | T]).
a. b(1). goal :- not a, X = b(X), ... . mod(if1) log+= not1 ^ 2 / .5.
:- semiring log. :- valtype (x, y). :- input a/1, 'b'/2. :- type a(int|b(c), d). :- agenda priority.
:- priority a(X) = X. :- prune a(X) < -1.5. :- beam a(X) by (X) keep 3. :- beam a(X,Y) by X keep 3.
:- show a(X) as X. :- show a(X). :- distribution a(X,Y) given X. :- transient a. :- function f/1.
"""


class Recorder:
    """Actions that say what they were called with."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name.isupper():  # of repetitions, and of terminals
            raise AttributeError(name)
        return lambda children: (name, *map(seen, children))


def seen(child: Any) -> Any:
    """A child as plain data: tokens of both kinds are alike."""
    if not isinstance(child, str):
        return child
    token: Any = child
    return (str(token), token.type, token.start_pos, token.end_pos, token.line, token.column)


GRAMMAR = Path(parser_tables.__file__).with_name("grammar.lark").read_text(encoding="utf-8")
LARK = Lark(GRAMMAR, parser="lalr", maybe_placeholders=False, start=list(parser_tables.STARTS), transformer=Recorder())
OWN = Parser(parser_tables.tables(), Recorder())


def by_lark(text: str, start: str) -> Any:
    """The tree of a text; or where it has a mistake, with the token there, and what could stand there."""
    try:
        return LARK.parse(text, start=start)
    except UnexpectedInput as error:
        token = error.token if isinstance(error, UnexpectedToken) else None
        at_end = token is not None and token.type == "$END"
        parser: Any = error.interactive_parser
        accepted = {name for name in parser.accepts() if name.isupper()}
        place = len(text) if at_end else error.pos_in_stream
        return place, None if token is None else (str(token), token.type), accepted


def by_driver(text: str, start: str) -> Any:
    try:
        return OWN.parse(text, start)
    except Misplaced as mistake:
        token = mistake.token
        return mistake.position, None if token is None else (str(token), token.type), mistake.accepted


def test_a_program() -> None:
    found = by_driver(PROGRAM, "start")
    assert found[0] == "start" and len(found) == 22 and found == by_lark(PROGRAM, "start")


_WORDS = """a b(X) f( ( ) [ ] | , . ... for if then else not mod SIDE SIDE( X _ 1 2.5 .5 1e3 'q' "r" += max= log+= = ==
 != < <= =< > + - * ** ^ / // :- semiring input show by keep given as prune beam type # ' é É é(X) %"""
WORDS = ["\n", *_WORDS.split()]


@pytest.mark.parametrize("start", parser_tables.STARTS)
@given(words=st.lists(st.sampled_from([*WORDS, " ", "\n", "% no\n"]), max_size=12), gap=st.sampled_from(["", " "]))
def test_any_text(start: str, words: list[str], gap: str) -> None:
    text = gap.join(words)
    assert by_driver(text, start) == by_lark(text, start)


@given(at=st.integers(0, len(PROGRAM)), drop=st.integers(0, 9), other=st.sampled_from(["", " ", *WORDS]))
def test_a_program_with_a_change(at: int, drop: int, other: str) -> None:
    text = PROGRAM[:at] + other + PROGRAM[at + drop :]
    assert by_driver(text, "start") == by_lark(text, "start")
