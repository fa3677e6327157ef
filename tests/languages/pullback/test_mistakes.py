"""What is said of texts that are no terms: what stands where, and what should stand there."""

from __future__ import annotations

import random

import pytest

import dynagrad as dg
from dynagrad.languages.pullback import parse

AFTER = "an operator, an argument or the end should stand"
MISTAKES = [
    # what is missing at the end, and what it belongs to
    ("", "The text ends where a term should stand.", 1, 1),
    ("x +", "The text ends where a term should stand.", 1, 4),
    ("(x + 1", "The text ends where `,` or `)` should stand, for the `(` at line 1, column 1.", 1, 7),
    ("f (1, (2)", "The text ends where `,` or `)` should stand, for the `(` at line 1, column 3.", 1, 10),
    ("<1, 2", "The text ends where `,` or `>` should stand, for the `<` at line 1, column 1.", 1, 6),
    ("λx.\n  let y = x", "The text ends where `in` should stand, for the `let` at line 2, column 3.", 2, 12),
    ("let x", "The text ends where `=` should stand, for the `let` at line 1, column 1.", 1, 6),
    ("let", "a name, or names in `<` and `>`, should stand, for the `let` at line 1, column 1.", 1, 4),
    ("λx", "The text ends where `.` or another name should stand, for the `λ` at line 1, column 1.", 1, 3),
    ("λ<x, y", "The text ends where `,` or `>` should stand, for the `<` at line 1, column 2.", 1, 7),
    ("(Ω λx. x)", "The text ends where `.` and the 1-form of the pullback should stand.", 1, 10),
    ("((Ω λx. x) 3)", "`3` stands where `.` and the 1-form of the pullback should stand.", 1, 12),
    ("(λx. x)^ .", "The text ends where a term should stand.", 1, 11),
    # what does not fit
    ("x + ) 1", "`)` stands where a term should stand: nothing is open that it closes.", 1, 5),
    ("x)", f"`)` stands where {AFTER}: nothing is open that it closes.", 1, 2),
    ("(1, 2>", "`>` stands where `,` or `)` should stand, for the `(` at line 1, column 1", 1, 6),
    ("let x = (1 in x", "`in` stands where `,` or `)` should stand, for the `(` at line 1, column 9.", 1, 12),
    ("let x = 1, y = 2 in x", "`,` stands where `in` should stand, for the `let` at line 1, column 1.", 1, 10),
    ("in", "`in` stands where a term should stand: it belongs to no `let`.", 1, 1),
    ("x in y", f"`in` stands where {AFTER}: it belongs to no `let`.", 1, 3),
    ("x = 1", f"`=` stands where {AFTER}: it belongs to no `let`.", 1, 3),
    ("x, y", f"`,` stands where {AFTER}: the parts of a tuple stand in `<` and `>`.", 1, 2),
    ("λ<x>. x", "`>` stands where `,` should stand, for the `<` at line 1, column 2.", 1, 4),
    ("(Ω x. x) . w", "`x` stands where `λ` should stand, for the `(` at line 1, column 1.", 1, 4),
    ("x + λy. y", "an abstraction inside of another term is put in brackets, `(λx. S)`.", 1, 5),
    ("f λx. x", "an abstraction inside of another term is put in brackets, `(λx. S)`.", 1, 3),
    ("f let x = 1 in x", "a `let` inside of another term is put in brackets.", 1, 3),
    ("W", "`W` stands where a term should stand: a pullback is written `(Ω λx. P) . S`.", 1, 1),
    ("x + .5", "`.` stands where a term should stand: a numeral has a digit before its point.", 1, 5),
    ("0x10", "A numeral is written like `2`, `0.5` or `1e-3`, and a product like `2 * x`.", 1, 1),
    ("1 + 2α", "A numeral is written like", 1, 5),
    ("1_000", "A numeral is written like", 1, 1),
    ("x ** 2", "`*` stands where a term should stand: a power is written `power(x, c)` or `x²`.", 1, 4),
    ("(λx. x)^ 1", "A dual `c^` has numerals for coefficients; a dual map is written `(λx. S)^ . T`.", 1, 2),
    ("λ<x, y, x>. 1", "`x` is bound twice in one pattern.", 1, 3),
    (
        "x + " + "sin" + "'" * 5000 + "(1)",
        "the derivative of order 5,000 of sin is asked for, and 100 is the most.",
        1,
        5,
    ),
    ("Jdiv" + "'" * 30 + " . 1", "the derivative of order 10 of div takes more than 20,000 operations.", 1, 1),
    ("1 . 2", "`.` follows `λx`, `(λx. S)^`, `(Ω λx. P)` or `Jf`.", 1, 3),
    # signs that the language has not
    ("x ? y", "`?` is no sign of the language.", 1, 3),
    ("x \u2212 y", "`\u2212` is no sign of the language; `-` is written here.", 1, 3),
    ("\u2126", "`\u2126` (ohm sign) is no sign of the language; `Ω` is written here.", 1, 1),
    ("π x", "`π` (greek small letter pi) is no sign of the language; `π1` or `π2` is written here.", 1, 1),
    ("[1]", "`[` is no sign of the language; `(` is written here.", 1, 1),
    ("é", "names are of Latin and Greek letters, digits, `_` and `'`.", 1, 1),
    ("x\u200by", "U+200B (zero width space) is no sign of the language.", 1, 2),
    ("a\u0301", "U+0301 (combining acute accent) is no sign of the language.", 1, 2),
    ("# a comment\n\n x \x00", "U+0000 is no sign of the language.", 3, 4),
]


@pytest.mark.parametrize(("text", "said", "line", "column"), MISTAKES)
def test_a_mistake_says_what_should_stand_there(text: str, said: str, line: int, column: int) -> None:
    with pytest.raises(dg.SyntaxError) as caught:
        parse(text)
    assert said in str(caught.value)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (line, column)


def test_places_are_those_of_the_text() -> None:
    """Blanks and comments, which are skipped together with what follows them, count."""
    term = parse("λx. # one\n\n  x +\t# two\n    sin(x)")
    text = "λx. # one\n\n  x +\t# two\n    sin(x)"
    inner = [part.span for part in (term.body.first, term.body.second)]  # type: ignore[attr-defined]  # of a sum
    assert [(span.line, span.column, text[span.start : span.end]) for span in inner] == [(3, 3, "x"), (4, 5, "sin(x")]


ALPHABET = [
    "(",
    ")",
    "<",
    ">",
    ",",
    ".",
    "^",
    "²",
    "λ",
    "let",
    "in",
    "=",
    "x",
    "1",
    "0",
    "+",
    "*",
    "-",
    "Ω",
    "π1",
    "Jsin",
]


def test_every_text_of_four_signs_is_a_term_or_says_what_should_stand_there() -> None:
    """Of each pair of signs, before and after a third and a fourth that were drawn."""
    pick = random.Random(0)
    terms = 0
    for first in ALPHABET:
        for second in ALPHABET:
            for _ in range(4):
                text = " ".join([first, second, pick.choice(ALPHABET), pick.choice(ALPHABET)])
                try:
                    parse(text)
                    terms += 1
                except dg.SyntaxError as error:
                    said = str(error).partition("\n")[0]
                    assert said.endswith(".") and "something else" not in said, text
                    assert error.span is not None
    assert terms > 10
