"""Functions in the core language, as text: straight-line code, loops and exits become as little as possible."""

from __future__ import annotations

from typing import Any

import pytest

from dynagrad.compiler.frontend.core import For, If, Let, Project, While, show
from dynagrad.compiler.frontend.statements import lower


def test_a_loop_without_a_break_stays_a_plain_loop() -> None:
    def f(x: Any) -> Any:
        while x < 10:
            t = x * 2
            x = t + 1
        return x

    assert show(lower(f).body) == (
        "let %N = loop x = x while\n"
        "    less(x, 10)\n"
        "do\n"
        "    let t = multiply(x, 2)\n"
        "    let x = add(t, 1)\n"
        "    (x)\n"
        "let x = %N[0]\n"
        "x"
    ).replace("%N", show(lower(f).body).split()[1])


def test_what_no_round_passes_on_is_no_state() -> None:
    def f(x: Any) -> Any:
        for i in range(3):
            t = x * i
            x = t + 1
        return x

    body = lower(f).body
    while isinstance(body, Let) and not isinstance(body.value, For):
        body = body.body
    assert isinstance(body, Let) and isinstance(body.value, For)
    assert body.value.state == ("x",)
    assert body.value.guard is None


def test_a_break_gives_the_loop_one_more_state() -> None:
    def f(x: Any) -> Any:
        while x < 10:
            x = x + 1
            if x == 5:
                break
        return x

    body = lower(f).body
    while isinstance(body, Let) and not isinstance(body.value, While):
        body = body.body
    assert isinstance(body, Let) and isinstance(body.value, While)
    assert body.value.state == ("x", "%going")


def test_an_early_return_takes_the_rest_into_the_other_branch() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            return 1.0
        y = x * 2
        return y

    body = lower(f).body
    while isinstance(body, Let):
        body = body.body
    assert isinstance(body, If)
    assert not isinstance(body.then, Let | Project)


def test_what_a_function_takes_from_outside_is_constant_in_it() -> None:
    k = 2.5

    def f(x: Any) -> Any:
        return x * k + len(POINTS)

    text = show(lower(f).body)
    assert "2.5" in text and "[1, 2]" in text


POINTS = [1, 2]


def test_places_are_those_of_the_file() -> None:
    def f(x: Any) -> Any:
        return x + 1

    body = lower(f).body
    assert isinstance(body, Let) and body.at is not None
    assert body.at.file == __file__
    assert (body.at.line, body.at.column, body.at.end_column) == (f.__code__.co_firstlineno + 1, 15, 20)


@pytest.mark.parametrize("index", [0, 1])
def test_one_of_several_lambdas_of_a_line(index: int) -> None:
    f = (lambda x: x + 1, lambda x: x * 5)[index]
    assert show(lower(f).body) == ("add(x, 1)", "multiply(x, 5)")[index]  # type: ignore[arg-type]


def test_functions_that_use_each_other_are_defined_together() -> None:
    def f(x: Any) -> Any:
        def even(n: Any) -> Any:
            return 1.0 if n < 0.5 else odd(n - 1)

        def odd(n: Any) -> Any:
            return 0.0 if n < 0.5 else even(n - 1)

        return even(x)

    text = show(lower(f).body)
    assert text.startswith("fix even") and "\nfix odd" in text and "cell" not in text
