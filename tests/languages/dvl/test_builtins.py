"""Every procedure with every kind of argument: a value where design and documents give it a meaning, and else an error
with its place; all as they are run, and compiled all values, and of the mistakes what `PARTS` says.

Costs three seconds: three thousand mistakes, each a program of its own.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable
from typing import Any
from zlib import crc32

import pytest

import dynagrad as dg
from dynagrad.languages.dvl.builtins import BUILTINS
from dynagrad.languages.dvl.checks import printed
from dynagrad.languages.dvl.prelude import prelude
from dynagrad.languages.dvl.program import DVLProgram
from languages.dvl.running import close

KINDS = {
    "real": "1/2",
    "bundle": "(make-bundle e 1/2 1)",
    "symbol": "'a",
    "text": '"t"',
    "truth": "#t",
    "nothing": "'()",
    "pair": "'(1/2 . 1/4)",
    "list": "'(1/2 1/4)",
    "symbols": "'(a)",
    "procedure": "(lambda (x) x)",
    "tag": "e",
}
Allowed = Callable[..., bool]
NUMBER = {"real", "bundle"}
PAIR = {"pair", "list", "symbols"}
LIST = {"nothing", "list", "symbols"}
VECTOR = {*NUMBER, "nothing", "procedure", *PAIR}


def every(*sets: set[str] | dict[str, str]) -> Allowed:
    return lambda *kinds: all(kind in allowed for kind, allowed in zip(kinds, sets, strict=True))


def _alike(a: str, b: str) -> bool:
    """Two reals, or two vectors of one shape."""
    return (a in NUMBER and b in NUMBER) or (a == b and a in VECTOR)


def _paired(a: str, b: str) -> bool:
    """The same without functions and symbols, which have no inner product here."""
    return _alike(a, b) and a not in ("procedure", "symbols")


ANY = KINDS
TABLE: dict[str, tuple[int, Allowed]] = {
    **{
        name: (1, every(NUMBER))
        for name in ["abs", "exp", "log", "sin", "cos", "tan", "asin", "acos", "sqrt", "real", "write-real"]
    },
    "atan": (1, every({*NUMBER, "pair"})),  # a pair is two arguments
    **{name: (1, every(NUMBER)) for name in ("zero?", "positive?", "negative?")},
    **{name: (2, every(NUMBER, NUMBER)) for name in ("<", "<=", ">", ">=", "=", "expt")},
    **{
        f"{kind}?": (1, every(ANY))
        for kind in ["real", "pair", "null", "boolean", "symbol", "procedure", "gensym", "bundle"]
    },
    "not": (1, every(ANY)),
    "+": (2, _alike),
    "-": (2, _alike),
    "*": (2, lambda a, b: (a in NUMBER and b in VECTOR) or (b in NUMBER and a in VECTOR)),
    "/": (2, every(VECTOR, NUMBER)),
    "cons": (2, every(ANY, ANY)),
    "car": (1, every(PAIR)),
    "cdr": (1, every(PAIR)),
    "equal?": (2, every(ANY, ANY)),
    "error": (1, lambda a: False),
    "read-real": (0, lambda: False),  # the input of a test is empty
    "gensym": (0, lambda: True),
    "gensym=": (2, every({"tag"}, {"tag"})),
    "gensym<": (2, every({"tag"}, {"tag"})),
    "make-bundle": (3, lambda tag, x, d: tag == "tag" and _alike(x, d)),
    "primal": (2, every({"tag"}, ANY)),
    "tangent": (2, every({"tag"}, ANY)),
    "derivative": (1, every({"procedure"})),
    "gradient-r": (1, every({"procedure"})),
    "fixed-point": (2, every({"procedure"}, {*NUMBER, "nothing", *PAIR})),
    # those of the prelude
    "reverse": (1, every(LIST)),
    "length": (1, every(LIST)),
    "append": (2, every(LIST, ANY)),
    "map": (2, lambda f, items: items in LIST and (f == "procedure" or items == "nothing")),
    "map2": (3, lambda f, a, b: a == b and a in LIST and (f == "procedure" or a == "nothing")),
    "tree-map": (2, lambda f, tree: f == "procedure" or tree == "nothing"),
    "sum": (1, every({"nothing", "list"})),
    "product": (1, every({"nothing", "list"})),
    "dot": (2, _paired),
    "magnitude-squared": (1, lambda a: _paired(a, a)),
    "distance": (2, _paired),
    "jacobian-f": (1, every(ANY)),
    "gradient-f": (1, every(ANY)),
    "j-transpose*v": (1, every(ANY)),
}
ELSEWHERE = {
    "map3": "as map2",
    "reduce": "as map, with a start that may be anything",
    "directional-derivative": "as derivative and +",
    "each-slope": "of the forward derivatives",
    "slopes": "of the forward derivatives",
}
"""Procedures that have no row, and why."""


def calls() -> list[tuple[str, bool]]:
    """Each call, and whether it has a value."""
    found = []
    for name, (count, allowed) in TABLE.items():
        for kinds in itertools.product(KINDS, repeat=count):
            if name == "make-bundle" and kinds[0] not in ("tag", "real"):
                continue
            if name == "map2" and kinds[0] not in ("procedure", "real"):
                continue
            text = " ".join([name, *(KINDS[kind] for kind in kinds)])
            found.append((f"({text})", allowed(*kinds)))
    return found


def test_the_table_has_every_procedure() -> None:
    named = {*map(str, BUILTINS), *(code.name for code in prelude()[1].functions.values())}
    assert named == {*TABLE, *ELSEWHERE}


TAG = "(define e (gensym))\n"
PARTS = {"run": None, "compiled": 1, "called by another name": 0}
"""The mistakes that are made in each way: all as they are run; in either of the others, those with up to one argument,
and of those with more a third that depends on no order, for which this is the remainder of a checksum."""


def other_name(call: str) -> str:
    name, given = call[1:-1].partition(" ")[::2]
    return f"(let ((f {name})) (f {given}))"


def alike(a: Any, b: Any) -> bool:
    """Whether two values are one, but for the numbers of tags, and brackets: compiled, a bundle is what is printed."""
    text, other = (re.sub(r"gensym \d+|[()]| \. ", " ", printed(x)).split() for x in (a, b))
    return close(a, b) or text == other


def test_values() -> None:
    """Compiled, what is not a number is an error where it comes out, and here that is a derivative at 0."""
    good = [text for text, has_value in calls() if has_value and "read-real" not in text]
    run = DVLProgram(TAG + "\n".join(good)).run()
    other = DVLProgram(TAG + "\n".join(map(other_name, good))).run()
    assert len(run) == len(other) == len(good)
    for text, a, b in zip(good, run, other, strict=True):
        assert alike(a.value, b.value), text
    left_out = ("(write-real", "(distance 1/2 (make-bundle", "(distance (make-bundle")
    able = [i for i, text in enumerate(good) if not text.startswith(left_out)]
    made = DVLProgram(TAG + "\n".join(good[i] for i in able)).compiled_results()
    for i, found in zip(able, made, strict=True):
        assert alike(run[i].value, found.value), good[i]


@pytest.mark.parametrize("way", PARTS)
def test_an_error_with_its_place(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    wrong = []
    mistakes = [
        (text, TABLE[text[1:-1].split()[0]][0])
        for text, has_value in calls()
        if not has_value and (way != "compiled" or "-real" not in text)
    ]
    for text, count in mistakes:
        if PARTS[way] not in (None, crc32(text.encode()) % 3) and count > 1:
            continue
        program = TAG + (other_name(text) if way == "called by another name" else text)
        try:
            made = DVLProgram(program)
            found = made.compiled_results() if way == "compiled" else made.run()
        except dg.Error as problem:
            if problem.span is None or problem.span.line != 2:  # type: ignore[attr-defined]
                wrong.append((text, str(problem)))
        else:
            wrong.append((text, printed(found[0].value)))
    assert not wrong, wrong
