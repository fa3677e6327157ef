"""What is wrong with a program is an error with its file, line and column; nothing hangs, and nothing is silent.

Costs five seconds, most of it a recursion that never ends.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import dynagrad as dg
from dynagrad.compiler.specialised import specialised
from dynagrad.ir.failures import FAILURES, failure
from dynagrad.ir.interpret import run
from dynagrad.languages.dvl import procedures
from dynagrad.languages.dvl.builtins import of_fixed_point
from dynagrad.languages.dvl.program import DVLProgram
from languages.dvl.running import values

BAD = [
    ("(f 3)", 1, 2, "`f` is not bound"),
    ("(drivative car)", 1, 2, "`drivative` is not bound. Did you mean `derivative`\\?\n"),
    ("(define sum/3 1) sum/2", 1, 18, "Did you mean `sum/3`"),
    ("1/" + "1" * 5000, 1, 1, "longer than can be read"),
    ("\n (car 3)", 2, 2, "takes a pair"),
    ("(define (f x y) x)\n(f 1)", 1, 9, "`f` takes 2 arguments, and got the real 1.0"),
    ("((lambda () 1) 2)", 1, 10, "takes no argument"),
    ("(sin 1 2)", 1, 1, "sin takes 1 argument, and got 2"),
    ("(+ 1 (map + 1 2 3))", 1, 6, "takes 2 arguments|takes a pair"),
    ("(+ 1 'a)", 1, 1, "two reals, or two vectors"),
    ("(map sin 3)", 1, 1, r"^\(map f items\) takes a list"),
    ("(sum 'a)", 1, 1, r"^\(sum items\) takes a list"),
    ("(begin 1 2)", 1, 2, "a body has several expressions as it is"),
    ("(* '(1) '(1))", 1, 1, "a real and a vector"),
    ("(+ '(1 2) '(1))", 1, 1, "of one shape"),
    ("(< 1 'a)", 1, 1, "compares reals"),
    ("(sin car)", 1, 1, "takes reals"),
    ("((gradient-f sin) 'a)", 1, 1, "takes reals"),  # it is run, though there is nothing to differentiate by
    ("(3 4)", 1, 2, "is no procedure"),
    ("(+ 1\n ((car (list 3)) 4))", 2, 2, "is called, and is no procedure"),
    ("(/ 1 0)", 1, 1, "divides by zero"),
    ("((derivative (lambda (x) (/ 1 (- x x)))) 2)", 1, 26, "divides by zero"),
    ("(+ 1 ((derivative (lambda (x) (* (sqrt x) (sqrt x)))) 0))", 1, 6, "chain rule has no answer"),
    ("((gradient-r (lambda (x) (cons x x))) 2)", 1, 1, "the result of the function is a real, and a pair is none"),
    ("((gradient-f (lambda (x) (cons x x))) 2)", None, None, "the result of the function is a real"),
    ("((derivative sin) '(1))", 1, 1, "derivative: the argument is a real"),
    ("(derivative 3)", 1, 1, "takes a procedure"),
    ('(error "too" \'bad 3)', 1, 1, "too bad 3"),
    ("(+ 1 (log (- 0 1)))", 1, 6, r"\(log -1\) is not a number"),
    ("((derivative sqrt) (- 1))", 1, 1, r"\(sqrt -1\) is not a number"),
    ("(+ 1 1)\n(- (exp 1000) (exp 1000))", 2, 1, "this is not a number"),
    ("(+ 1\n (fixed-point (lambda (x) (+ x 1)) 1))", 2, 2, r"Newton's method\n  at <dvl \d+>, line 2"),
    ("(define (g f) (+ 1\n (fixed-point f 1)))\n(g car)", 2, 2, r"\(car x\) takes a pair"),
    ("(+ 1\n (fixed-point (lambda (x)\n (+ x 'a)) 1))", 3, 2, "two reals, or two vectors"),
    ("(dot '(1 2) '(1))", 1, 1, "two vectors of one shape"),
    ("(dot 1 '(1))", 1, 1, "two vectors of one shape"),
    ("((j-transpose*v (lambda (x) (list x x))) 1 '(1))", 1, 1, "two vectors of one shape"),
    ("(make-bundle 1 2 3)", 1, 1, "a tag is made by"),
    ("(make-bundle (gensym) 2 '(3))", 1, 1, "has the shape of the primal"),
    ("(if 1 2)", 1, 1, "is wanted"),
    ("(let ((x)) 1)", 1, 7, "is wanted"),
    ("(let ((x 1) (x 2)) 1)", 1, 14, "bound twice"),
    ("(lambda (x x) 1)", 1, 12, "stands twice"),
    ("(lambda (3) 1)", 1, 9, "an argument is a symbol"),
    ("(lambda ((car x)) 1)", 1, 10, "a pattern is"),
    ("(cond (else 1) (2 3))", 1, 7, "last clause"),
    ("(cond (#f 1))", 1, 1, "no clause"),
    ("(define x 1) (define x 2)", 1, 22, "defined twice"),
    ("(define x (+ y 1)) (define y 2)", 1, 11, "defined later"),
    ("(define x (f 1)) (define y 2) (define (f z) y)", 1, 11, "defined later"),
    ("(define x (+ x 1))", 1, 14, "needed for its own value"),
    ("(lambda (x) (define y 1))", 1, 13, "ends in an expression"),
    ("(+ 1 (define x 2))", 1, 6, "stands at the top"),
    ("lambda", 1, 1, "the name of a form"),
    ("(set! x 1)", 1, 2, "not in DVL"),
    ("(call/cc car)", 1, 2, "not in DVL"),
    ("()", 1, 1, "no expression"),
    ("(car . cdr)", 1, 1, "no dot"),
    ("===> 1", 1, 1, "stands before"),
    ("1 ===>", 1, 3, "follows"),
    ("(define x 1) ===> 1", 1, 1, "this is a definition"),
    ("(include 3)", 1, 1, "is wanted"),
    ("(define (f x) (+ 1 (f x))) (f 1)", 1, 20, "3,000,000 calls wait"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), BAD)
def test_errors_have_their_place(text: str, line: int | None, column: int | None, words: str) -> None:
    with pytest.raises(dg.SourceError, match=words) as caught:
        DVLProgram(text).run()
    span = caught.value.span
    assert span is not None
    if line is not None:
        assert (span.line, span.column) == (line, column)
        assert caught.value.filename.startswith("<dvl")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(car 3)", "takes a pair"),
        ("(define (f x) (+ 1 (f x))) (f 1)", r"f\(\) never ends"),
        ("(define (f x) (cons 1 (f (cons x x)))) (f '())", "f calls itself more than 120 times"),
        ("(define (f x) (f (cons x x))) (f '())", "this loop never ends"),
        ("(define (f x) (f (+ x 1))) (f 1)", "never ends"),
        ("((gradient-r (lambda (x) (cons x x))) 2)", "the result of the function is a real"),
        ("((derivative (lambda (x) (/ 1 (- x x)))) 2)", "not a number"),
        ("(read-real)", "cannot be compiled; run it without --compile"),
        ("(+ 1 (write-real 2))", "cannot be compiled; run it without --compile"),
        ('(error "bad" 3)', "bad 3"),
        (
            "(fixed-point (lambda (x) (+ x 1)) 0)",
            r"^fixed-point: no fixed point was reached .* by 1\. Start nearer, or",
        ),
        ("(+ 'a 1)", "two reals, or two vectors"),
        ("(3 4)", "is no procedure"),
        ("((car '(a)) 1)", "^the symbol a is called, and is no procedure"),
        ("(map (real 3) '(1))", "^a real is called, and is no procedure"),
        ("(length (real 3))", r"^\(length items\) takes a list"),
        (
            "(define (nth n f) (if (= n 0) f (nth (- n 1) (derivative f)))) ((nth (real 1) (lambda (a) (car 3))) 2)",
            r"^no branch is known to give this a value, and one of them is an error: \(car x\) takes a pair",
        ),
    ],
)
def test_what_cannot_be_compiled_says_so(text: str, words: str) -> None:
    with pytest.raises(dg.Error, match=words):
        DVLProgram(text).compiled_results()


@pytest.mark.parametrize("code", FAILURES)
def test_a_fixed_point_that_fails_speaks_of_dvl(code: int) -> None:
    words = of_fixed_point(str(failure(code, 3, 0.5)))
    assert words.startswith("fixed-point: ")
    assert not any(word in words for word in ("fixed_point", "max_steps", "tolerance", "derivative of f "))


MISTAKES = """
(define (first x) (if (< x 2) 1 (+ 1 (car x))))
(define (called x) (let ((f (if (< x 2) sin 'a))) (f x)))
(define (added x) (let ((y (if (< x 2) x 'a))) (+ y 2)))
(define (slope x) ((derivative (lambda (y) (if (< y 2) (* y y) (car y)))) x))
(define (differentiated x) (if (< x 2) x ((derivative x) 1)))
(define (to-a-pair x) (if (< x 2) x ((gradient-r (lambda (y) (cons y y))) x)))
(define (bundled x) (if (< x 2) x (primal x x)))
(define (in-loop x) (let ((f (if (< x 2) sin 'a))) (let loop ((i 0) (x x)) (if (< i 3) (loop (+ i 1) (f x)) x))))
"""
"""Functions of which one branch is wrong: that from 2 on."""


def test_a_mistake_in_one_branch_is_an_error_where_it_is_taken() -> None:
    for name, words in {
        "first": "takes a pair",
        "called": "is no procedure",
        "added": "two reals",
        "slope": "takes a pair",
        "differentiated": "takes a procedure",
        "to-a-pair": "the result of the function is a real",
        "bundled": "a tag is made by",
        "in-loop": "is no procedure",
    }.items():
        right = DVLProgram(f"{MISTAKES} ({name} (real 1))")
        assert right.compiled_results()[0].value == pytest.approx(right.run()[0].value, rel=1e-15)
        wrong = DVLProgram(f"{MISTAKES} ({name} (real 3))")
        with pytest.raises(dg.RunError, match=words):
            wrong.compiled_results()
        with pytest.raises(dg.SourceError, match=words):
            wrong.run()
    with pytest.raises(dg.LiftError, match="takes a pair"):
        DVLProgram("(if (< (real 1) 2) (car 2) (car 3))").compiled_results()


def test_a_mistake_in_a_branch_stays_there_in_derivatives() -> None:
    """Its error was computed outside of the branch, where the same one was made before its derivative."""
    for verb in ("derivative", "gradient-r"):
        function = DVLProgram(f"(define (f x y) (({verb} (lambda (w) (if (< w 0) (car x) (* w w)))) y))")["f"]
        graph = specialised(function, (1.0, 0.2)).graph
        assert run(graph, [1.0, 0.2]) == (0.4,)
        with pytest.raises(dg.RunError, match="takes a pair"):
            run(graph, [1.0, -0.2])


def test_what_follows_an_error_in_a_branch_is_compiled_and_the_error_is_that_of_the_branch() -> None:
    body = """
      (cond ((< x 0) (+ 1 (error "sum")))
            ((< x 1) (* 2 (if (< y 0) (car 3) (+ 'a 1))))
            ((< x 2) ((gradient-r (lambda (z) (error "gradient"))) y))
            ((< x 3) (fixed-point (lambda (z) (error "step")) y))
            ((< x 4) ((letrec ((even (lambda (n) (if (< n 0) 1 (* 2 (odd (- n 1))))))
                               (odd (lambda (n) (if (< n 0) (car n) (+ 1 (even (- n 1)))))))
                        even) y))
            (else y))"""
    program = DVLProgram(f"(define (f x y) {body})")
    plain, fast = program["f"], dg.compile(program["f"])
    assert fast(5.0, 7.0) == plain(5.0, 7.0) == 7.0 and fast(3.5, 1.5) == plain(3.5, 1.5) == 4.0
    for x, y, words in (
        (-1.0, 0.0, "sum"), (0.5, -1.0, "takes a pair"), (0.5, 1.0, "takes two reals"), (1.5, 0.0, "gradient$"),
        (2.5, 0.0, "step$"), (3.5, 0.5, "takes a pair"),
    ):  # fmt: skip
        for f in (plain, fast):
            with pytest.raises(dg.Error) as caught:
                f(x, y)
            assert re.search(words, str(caught.value).splitlines()[0].partition(" (<dvl")[0])


def test_what_a_run_finds_is_an_error_of_the_run() -> None:
    with pytest.raises(dg.RunError, match="too small"):
        DVLProgram('(let ((x (real 1))) (if (> x 0) (error "too small") x))').compiled_results()


def test_a_run_can_be_stopped() -> None:
    with pytest.raises(dg.SourceError, match=r"stopped after .* steps, as `f` was called"):
        DVLProgram("(define (f x) (f x)) (f 1)").run(max_steps=100_000)


def test_a_run_has_a_bound_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procedures, "MOST_STEPS", 200_000)
    with pytest.raises(dg.SourceError, match=r"stopped after 200,000 steps, as `f` was called; allow more") as caught:
        DVLProgram("1\n(define (f x) (f x))\n(f 1)").run()
    assert caught.value.span is not None and caught.value.span.line == 3


def test_a_run_has_a_bound_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procedures, "memory", lambda: 100_000_000)
    with pytest.raises(dg.SourceError, match=r"takes more than 0.05 GB of memory, as `f` is called") as caught:
        DVLProgram("1\n(define (f x) (f (cons x x)))\n(f 1)").run()
    assert isinstance(caught.value, dg.RoomError)
    assert caught.value.span is not None and caught.value.span.line == 3


@pytest.mark.parametrize("verb", ["derivative", "gradient-r"])
def test_derivatives_that_nest_without_end(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level doubles what a number holds, so that no bound on calls would be reached."""
    monkeypatch.setattr(procedures, "MOST_PARTS", 100)
    with pytest.raises(dg.SourceError, match=r"more than 100 parts, as `lambda` is differentiated") as caught:
        DVLProgram(f"(define (f x)\n (({verb} (lambda (y) (f (* x y)))) x))\n(f 1)").run()
    assert isinstance(caught.value, dg.RoomError)


def test_shared_parts_are_gone_through_once() -> None:
    """Sums, multiples and comparisons of what would have 2^60 parts, were it written."""
    share = "(define (f n x) (if (= n 0) x (f (- n 1) (cons x x))))"
    first = "(define (first x) (if (pair? x) (first (car x)) x))"
    text = f"{share} {first} (equal? (f 60 1) (f 60 1)) (equal? (f 60 1) (f 60 2))"
    assert values(f"{text} (first (+ (f 60 1) (f 60 1))) (first (* 3 (f 60 1)))") == [True, False, 2.0, 3.0]
    text = f"{share} {first} (first ((derivative (lambda (x) (f 60 (* x x)))) 3))"
    bundles = (
        "(let ((e (gensym))) (list (first (tangent e (make-bundle e (f 60 1) (f 60 2)))) (first (primal e (f 60 1)))))"
    )
    swaps = "(((derivative (lambda (x) (lambda (p) (* x (first p))))) 3) (f 60 4))"
    assert values(f"{text} {bundles} {swaps}") == [6.0, (2.0, (1.0, ())), 4.0]
    assert values(f"{first} ((gradient-r (lambda (x) (* 2 (first x)))) (let ((p (cons 1 1))) (cons p p)))") == [
        ((2.0, 0.0), (0.0, 0.0))
    ]


@pytest.mark.parametrize("depth", ["60", "(real 60)"])
def test_compiled_programs_may_share_parts_too(depth: str) -> None:
    share = f"(define (f n x) (if (= n 0) x (let ((y (f (- n 1) x))) (cons y y)))) (define shared (f {depth} 1))"
    depths = "(define (depth x) (if (pair? x) (+ 1 (depth (car x))) 0))"
    program = DVLProgram(f"{share} {depths} shared (depth shared)")
    assert [str(result) for result in program.compiled_results()] == [str(result) for result in program.run()]


def test_comparing_shared_parts_that_are_known_as_a_program_is_compiled() -> None:
    share = "(define (f n x) (if (= n 0) x (let ((y (f (- n 1) x))) (cons y y))))"
    program = DVLProgram(
        f"{share} (equal? (f 60 1) (f 60 1)) (equal? (f 60 (real 1)) (f 60 1)) (equal? (f 60 1) (f 60 2))"
    )
    assert [result.value for result in program.compiled_results()] == [True, True, False]


def test_a_compiled_program_has_a_bound_on_time() -> None:
    """Also where it is one walk through a structure that shares its parts, which code for lists of the run repeats."""
    share = "(define (f n) (if (= n 0) 1 (let ((y (f (- n 1)))) (cons y y))))"
    for text in (
        "(let loop ((x (real 1e300)) (n 0)) (if (= x 0) n (loop (- x 1) (+ n 1))))",
        f"{share} (equal? (f (real 60)) (f (real 60)))",
    ):
        with pytest.raises(dg.NotConverged, match=r"program: a call takes more than 500 milliseconds: does it end\?"):
            DVLProgram(text).compiled_results(timeout=0.5)
    assert inspect.signature(DVLProgram.compiled_results).parameters["timeout"].default == 3600.0


def test_a_gradient_by_more_reals_than_can_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procedures, "MOST_REALS", 1_000)
    share = "(define (f n x) (if (= n 0) x (f (- n 1) (cons x x))))"
    with pytest.raises(dg.RoomError, match="the argument has more than 1,000 reals"):
        values(f"{share} ((gradient-r (lambda (x) 1)) (f 60 1))")


def test_text_may_be_nested_deeply() -> None:
    deep = 2_000
    assert DVLProgram("(+ 1 " * deep + "0" + ")" * deep).run()[0].value == deep
    with pytest.raises(dg.SyntaxError, match="nested too deep"):
        DVLProgram("(+ 1 " * 30_000 + "0" + ")" * 30_000)


DEEP = "(define (f n x g) (if (= n 0) x (f (- n 1) (g x) g)))"


def test_values_may_be_nested_deeply_or_share_their_parts() -> None:
    deep = str(DVLProgram(DEEP + "(f 50000 0 (lambda (x) (cons x 1)))").run()[0])
    assert deep == "(" * 50_000 + "0" + " . 1)" * 50_000
    shared = str(DVLProgram(DEEP + "(f 60 0 (lambda (x) (cons x x)))").run()[0])
    assert len(shared) < 10**6 and "..." in shared
    with pytest.raises(dg.Error, match="a value is nested too deep"):
        DVLProgram(DEEP + "(let ((x (f 50000 0 (lambda (x) (cons x 1))))) (+ x x))").run()


@pytest.mark.parametrize("name", ["round.dvl", "a\0b", "x" * 5000, ".", "/dev/zero"])
def test_what_is_included_is_a_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "round.dvl").symlink_to("round.dvl")
    (tmp_path / "main.dvl").write_text(f'1\n (include "{name}")')
    with pytest.raises(dg.SourceError, match="there is no file") as caught:
        DVLProgram(tmp_path / "main.dvl")
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, 2)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no such device")
def test_a_device_without_an_end() -> None:
    with pytest.raises(dg.Error, match="larger than"):
        DVLProgram(Path("/dev/zero"))


def test_a_mark_of_the_order_of_bytes_is_no_symbol(tmp_path: Path) -> None:
    (tmp_path / "marked.dvl").write_bytes(b"\xef\xbb\xbf(+ 1 2)\r\n(car 3)")
    results = DVLProgram(tmp_path / "marked.dvl").results()
    assert next(results).value == 3.0
    with pytest.raises(dg.SourceError, match="line 2, column 1"):
        next(results)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(dg.Error, match="cannot be read"):
        DVLProgram(tmp_path / "nothing.dvl")
    (tmp_path / "bytes.dvl").write_bytes(b"\xff\xfe")
    with pytest.raises(dg.Error, match="is not UTF-8"):
        DVLProgram(tmp_path / "bytes.dvl")
    with pytest.raises(dg.Error, match="is no function"):
        DVLProgram("1", functions={"f": 3})  # type: ignore[dict-item]
