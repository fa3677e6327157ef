"""Bad input and long input: errors say where, everything has a bound, and Ctrl-C ends what takes long.

Costs eight seconds.
"""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.languages.pullback import compile, covector, evaluate, infer, lines, pair, parse, reduce, show, trees
from interrupts import ctrl_c

TWO = "(λf. λx. f (f x))"
TOWER = f"{TWO} {TWO} {TWO} {TWO} {TWO} (λy. y + 1) 0.0"
"""Its value takes more applications than there are atoms."""


def reduced(text: str) -> Any:
    return reduce(text).result


# -- places ------------------------------------------------------------------------------------------------------------

NOWHERE = [
    ("let a = 1 in\n  a / 0.0", "no value there", 2, 3),
    ("((Ω λx. 1 / x) . (λ_. 1^)) 0.0", "no value there|is inf there", 1, 9),
    ("((Ω λx. x + sqrt(x)) . (λ_. 1^)) 0.0", "sqrt has no derivative", 1, 13),
    ("log(2 + (1 - 3))", "no value there", 1, 1),
    ("1e308 + 1e308", "the sum is inf", 1, 1),
    ("2 * (1e308)^ 100", "the value of the dual is inf", 1, 6),
    ("(Jsqrt . 1) 0.0", "no derivative at|no value there", 1, 2),
]


@pytest.mark.parametrize("run", [reduced, evaluate])
@pytest.mark.parametrize(("text", "said", "line", "column"), NOWHERE)
def test_an_error_of_evaluation_says_where(
    text: str, said: str, line: int, column: int, run: Callable[[str], Any]
) -> None:
    with pytest.raises(dg.Error, match=said) as caught:
        run(text)
    assert f"at line {line}, column {column}" in str(caught.value)


@pytest.mark.parametrize("text", [text for text, *_ in NOWHERE])
def test_compiled_terms_give_no_infinities(text: str) -> None:
    with pytest.raises(dg.ValueRangeError, match="it has no value or no derivative"):
        compile(text)()


def test_terms_that_were_built_are_shown_where_they_have_no_place() -> None:
    with pytest.raises(dg.ValueRangeError, match=r"no value there\n  in 1 / 0\.0"):
        assert reduce(parse("1 / 0.0")).result


def test_arguments_of_the_wrong_shape() -> None:
    made = compile("λ<x, y>. x * y")
    assert made(2, 3.0) == made((2, 3)) == 6.0
    for given in ((1.0,), (1.0, 2.0, 3.0), ("a", 1.0), ()):
        with pytest.raises(dg.Error, match="the function takes"):
            made(*given)
    with pytest.raises(dg.Error, match="is no function"):
        compile("1 + 2")(1.0)
    with pytest.raises(dg.Error, match="a number, a tuple or a function is needed"):
        evaluate("x", x=())


OF_ANOTHER_TYPE = [
    (lambda: evaluate("x + 1 * x", x=(1, 2)), r"a value of the type R is needed, and \(1, 2\) is none"),
    (lambda: evaluate("π1 x", x=1), "a value of the type a × b is needed, and 1 is none"),
    (lambda: evaluate("f 1", f=3), "a value of the type R ⇒ a is needed, and 3 is none"),
    (lambda: evaluate("1 + f 1", f=lambda _: (1, 2)), r"a value of the type R is needed, and \(1, 2\) is none"),
    (lambda: evaluate("λx. x * x")((1, 2)), "a value of the type R is needed"),
    (lambda: evaluate("λ<x, y>. x * y")(1), "a value of the type R × R is needed, and 1 is none"),
    (lambda: evaluate("λ<x, y>. x * y")(1, 2, 3), "a value of the type R is needed"),
    (lambda: evaluate("λf. f 1")(evaluate("λ<x, y>. x * y")), "a value of the type R ⇒ a is needed, and <function>"),
    (lambda: evaluate("λf. f 1")(), "what is called takes an argument"),
    (lambda: evaluate("(3, 4)^")(1), "a value of the type R × R is needed"),
    (lambda: evaluate("1", y=2), "`y` is not free in the term"),
    (lambda: evaluate("λ<x, y>. x + y")(1, (2, 3)), "should be a real|different types"),
]


@pytest.mark.parametrize(("call", "said"), OF_ANOTHER_TYPE)
def test_values_of_another_type_are_errors(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(dg.Error, match=said):
        call()


def test_values_come_from_python_and_go_there() -> None:
    assert evaluate("λ<x, y, z>. x * y + z")(2, 3, 4) == evaluate("λ<x, y, z>. x * y + z")((2, (3, 4))) == 10.0
    assert evaluate("f <x, 1>", f=lambda p: (p[1], p[0]), x=5) == (1.0, 5.0)
    assert evaluate("λf. f 1")(evaluate("λx. x * 7")) == 7.0
    with pytest.raises(dg.NotDifferentiable, match="a pullback does not go through it"):
        evaluate("((Ω λx. f x) . (λ_. 1^)) 2", f=lambda x: x * x)


def test_functions_of_terms_are_differentiated_from_outside() -> None:
    """What `evaluate` gives takes numbers that carry derivatives."""
    assert dg.grad(evaluate("λx. x * x * x"))(2.0) == 12.0
    assert dg.grad(evaluate("λx. ((Ω λy. y * y * y) . (λ_. 1^)) x 1"))(2.0) == 12.0


@pytest.mark.parametrize("most", [0, -1, 1.5, None, "many", True])
@pytest.mark.parametrize("run", [reduce, evaluate, compile])
def test_a_bound_of_steps_is_a_whole_number(run: Callable[..., Any], most: object) -> None:
    with pytest.raises(dg.Error, match="max_steps= should be a whole number, 1 or larger"):
        run("1 + 1", max_steps=most)


# -- bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [lambda t, n: reduce(t, max_steps=n).result, lambda t, n: evaluate(t, max_steps=n)])
def test_what_takes_too_long_is_an_error_that_names_the_function(run: Callable[[str, int], Any]) -> None:
    with pytest.raises(dg.NotConverged, match=r"more than 5,000 steps; allow more with max_steps=") as caught:
        run(TOWER, 5000)
    assert "The function that was applied last is `λ" in str(caught.value) and "at line 1, column" in str(caught.value)


def test_a_graph_that_would_not_end_is_an_error() -> None:
    with pytest.raises(dg.NotConverged, match="more than 5,000 steps"):
        compile(TOWER, max_steps=5000)


def test_functions_from_python_have_a_bound_for_each_call() -> None:
    function = evaluate(f"λx. {TWO} {TWO} {TWO} (λy. y + x) 0.0", max_steps=400)
    assert function(1.0) == function(1.0) == 16.0
    with pytest.raises(dg.NotConverged):
        evaluate(f"λx. {TWO} {TWO} {TWO} {TWO} (λy. y + x) 0.0", max_steps=400)(1.0)


DOUBLED = "let x0 = 1 in " + "".join(f"let x{i + 1} = <x{i}, x{i}> in " for i in range(60))


@pytest.fixture
def fewer_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that is come to in less time."""
    monkeypatch.setattr(trees, "MOST_PARTS", 20_000)


def test_values_and_terms_have_two_million_parts() -> None:
    with pytest.raises(dg.NotConverged, match="more than 2,000,000 parts"):
        evaluate(DOUBLED + "x60")


@pytest.mark.usefixtures("fewer_parts")
@pytest.mark.parametrize("run", [reduced, evaluate, compile])
def test_a_value_that_would_fill_the_memory_is_an_error(run: Callable[[str], Any]) -> None:
    with pytest.raises(dg.NotConverged, match="more than 20,000 parts"):
        run(DOUBLED + "x60")
    assert run(DOUBLED + "1") is not None
    assert len(str(infer(parse(DOUBLED + "x60")).type)) < 2000


@pytest.mark.usefixtures("fewer_parts")
def test_a_term_that_shares_parts_without_end_is_an_error() -> None:
    whole = pair(1, 2)
    for _ in range(60):
        whole = pair(whole, whole)
    with pytest.raises(dg.NotConverged, match="more than 20,000 parts"):
        infer(whole)
    with pytest.raises(dg.NotConverged, match="more than 20,000 parts"):
        show(whole)
    assert show(whole, limit=10).endswith("…")


# -- deep terms --------------------------------------------------------------------------------------------------------


def deep(count: int) -> dict[str, tuple[str, Any]]:
    names = [f"x{i}" for i in range(count)]
    return {
        "brackets": ("(" * count + "1" + ")" * count, 1.0),
        "lets": ("let y0 = 1 in " + "".join(f"let y{i + 1} = y{i} in " for i in range(count)) + f"y{count}", 1.0),
        "sums": (" + ".join(["1"] * count), float(count)),
        "minus": ("-" * count + "(1 + 1)", 2.0),
        "applications": ("let f = λx. x in " + "f (" * count + "1" + ")" * count, 1.0),
        "functions": ("let f = " + "".join(f"λ{name}. " for name in names) + "1 in 2", 2.0),
        "tuples": (f"π1 <{', '.join(['1'] * count)}>", 1.0),
        "pairs": ("<" * count + "1" + ", 1>" * count, None),
        "patterns": (f"(λ<{', '.join(names)}>. {names[-1]}) <{', '.join(['1'] * count)}>", 1.0),
        "pullbacks": (f"((Ω λ<{', '.join(names)}>. x0) . (λ_. 1^)) <{', '.join(['1'] * count)}>", None),
        "primitives": (f"((Ω λx. {'neg(' * count}x{')' * count}) . (λ_. 1^)) 1 1", 1.0),
        "duals": (f"({', '.join(['1'] * count)})^", None),
        "dual maps": ("(" + "(λv. v)^ . " * count + "1^) 3", 3.0),
    }


@pytest.mark.parametrize("what", deep(2))
def test_deep_terms_are_read_typed_shown_reduced_and_evaluated(what: str) -> None:
    text, value = deep(1500)[what]
    term = parse(text)
    assert parse(show(term)) == term and hash(term) == hash(parse(text))
    assert len(str(infer(term).type)) < 3000
    result = reduce(term).result
    assert str(result) if value is None else float(str(result)) == value
    found = evaluate(text)
    assert found is not None if value is None else found == value
    if what in ("pullbacks", "duals"):
        assert repr(found).startswith("<dual (1.0, (")


def test_unbalanced_brackets_are_errors_however_many() -> None:
    for text in ("(" * 20_000, ")" * 20_000, "(" * 20_000 + "1" + ")" * 19_999, "<" * 20_000, "λ" * 20_000):
        with pytest.raises(dg.SyntaxError):
            parse(text)


@pytest.mark.parametrize("what", ["brackets", "lets", "applications"])
def test_twenty_thousand(what: str) -> None:
    text, value = deep(20_000)[what]
    term = parse(text)
    assert float(str(reduce(term).result)) == value == evaluate(term)


# -- Ctrl-C, and the collector -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [reduced, evaluate, compile, lambda text: list(lines(reduce(text)))])
def test_an_interrupt_ends_it(run: Callable[[str], Any]) -> None:
    with pytest.raises(KeyboardInterrupt), ctrl_c(0.2, within=1.0):
        run(TOWER)
    assert gc.isenabled()


@pytest.mark.parametrize("options", [[], ["--steps"], ["--html"]])
def test_an_interrupt_ends_the_command_within_a_second(options: list[str], tmp_path: Path) -> None:
    """What it has made is not taken apart first. On a busy machine the best of four times counts, and the first
    interrupt may come while the command still starts, which ends it without a word."""
    (tmp_path / "tower.pullback").write_text(TOWER, encoding="utf-8")
    command = [sys.executable, "-c", COMMAND, str(tmp_path / "tower.pullback"), "--max-steps", "100000000", *options]
    took = []
    for wait in (0.5, 1, 2, 4):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None and process.stderr.readline() == "ready\n"
            time.sleep(wait)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=60)[1]
            if said or wait > 0.5:
                assert said == "interrupted\n"
                took.append(time.monotonic() - start)
        assert process.returncode == 130
        if min(took, default=9) < 1:
            break
    assert min(took) < 1


COMMAND = """
import sys
from dynagrad.cli import main
import dynagrad.languages.pullback

class Kept:
    def __del__(self):
        print("taken apart", file=sys.stderr)

kept = Kept()
print("ready", file=sys.stderr, flush=True)
sys.argv = ["dynagrad", "pullback", *sys.argv[1:]]
main()
"""


def test_steps_that_are_not_kept_are_the_same_ones() -> None:
    text = "((Ω λx. let f = λy. y * y in f (x + 1)) . (λ_. 1^)) 2"
    assert list(lines(reduce(text, keep=False))) == list(lines(reduce(text)))
    reduction = reduce(text, keep=False)
    assert str(next(iter(reduction)).contractum).startswith("let f = ")
    assert reduction.result == reduce(text).result and not list(reduction)
    with pytest.raises(dg.Error, match="not kept"):
        reduction.count()


def test_what_a_reduction_holds_is_free_with_it() -> None:
    """No circle of references is left, so a long reduction does not wait for the collector."""
    text = "((Ω λy0. " + "".join(f"let y{i + 1} = sin(y{i}) in " for i in range(50)) + "y50) . (λ_. 1^)) 1"
    reduce(text).count()
    gc.collect()
    gc.disable()
    try:
        reduction = reduce(text)
        assert reduction.count() > 150
        del reduction
        assert gc.collect() < 20
    finally:
        gc.enable()


def test_numbers_that_are_too_large_to_build() -> None:
    with pytest.raises(dg.SyntaxError, match="too large"):
        parse("1e999")
    assert str(covector(1, 2)) == "(1, 2)^"
