"""Text becomes data: lists, numerals, comments, quotes; and each error points at its place. Costs nothing."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dynagrad as dg
from dynagrad.languages.dvl.program import DVLProgram
from dynagrad.languages.dvl.reader import SourceText, read, shown


def texts(text: str) -> list[str]:
    return [shown(datum) for datum in read(SourceText(text, "here.dvl"))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a (b c) [d])", ["(a (b c) (d))"]),
        ("1 -2.5 +3 .5 1e3 1/4 -3/4", ["1", "-2.5", "3", "0.5", "1000", "0.25", "-0.75"]),
        ("'a '(b . c) ''d", ["(quote a)", "(quote (b . c))", "(quote (quote d))"]),
        ("#t #f #true #false", ["#t", "#f", "#t", "#f"]),
        ("a ; the rest\nb", ["a", "b"]),
        ("a #;(b c) d #; #;e f g", ["a", "d", "g"]),
        ("a #| b #| c |# d |# e", ["a", "e"]),
        ('"a \\"b\\"" - + ... x->y', ['"a \\"b\\""', "-", "+", "...", "x->y"]),
        ("(a #;b)", ["(a)"]),
        ("#[gensym 3]", ["#[gensym 3]"]),
    ],
)
def test_what_is_read(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("(a\n (b c", 2, 2, "never closed"),
        ("(a)\n  )", 2, 3, "closes nothing"),
        ("(a]", 1, 3, "closed by"),
        ("a '", 1, 3, "nothing follows"),
        ("(a ')", 1, 4, "nothing follows"),
        ('a "b', 1, 3, "never closed"),
        ("a\n#| b", 2, 1, "never closed"),
        ("1/0", 1, 1, "divides by zero"),
        ("1e999", 1, 1, "larger than any real"),
        ("#what", 1, 1, "is nothing"),
        ("(a . b c)", 1, 4, "a dot stands"),
        ("( . b)", 1, 3, "a dot stands"),
    ],
)
def test_errors_point_at_their_place(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(dg.SyntaxError, match=words) as caught:
        texts(text)
    assert caught.value.filename == "here.dvl"
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (line, column)


def test_no_nesting_is_too_deep_for_the_reader() -> None:
    deep = "(" * 20_000 + ")" * 20_000
    assert len(read(SourceText(deep, "deep.dvl"))) == 1


@example(r'"\\" "a\"b"')
@given(st.text(alphabet="()[]'#;|.\"\\ \nab12/-", max_size=40))
def test_any_text_is_read_or_is_an_error(text: str) -> None:
    try:
        data = read(SourceText(text, "any.dvl"))
    except dg.SyntaxError:
        return
    again = "\n".join(map(shown, data))
    assert [shown(datum) for datum in read(SourceText(again, "any.dvl"))] == [shown(datum) for datum in data]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('\'(1 "." 2)', '(1 "." 2)'),
        ('"===>"', '"===>"'),
        ('(cond ("else" 1) (#t 2))', "1"),
        ('\'("quote" 3) ===> ("quote" 3)', '("quote" 3)'),
        ("''3 ===> ''3", "(quote 3)"),
        ("''3 ===> (quote (quote 3))", "(quote 3)"),
    ],
)
def test_a_text_is_no_mark_and_no_keyword(text: str, value: str) -> None:
    assert [str(result) for result in DVLProgram(text).run()] == [value]
