"""The forms of DVL, its procedures, its bodies and files, run by the machine. Costs two seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynagrad as dg
from dynagrad.languages.dvl.program import DVLProgram, Incomplete, Session
from languages.dvl.running import shown, value, values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # calls: several arguments are a chain of pairs, and a pair may be one
        ("(+ (cons 3 4))", "7"),
        ("((lambda (x y) (list y x)) (cons 1 2))", "(2 1)"),
        ("((lambda (x y) (list y x)) 1 2)", "(2 1)"),
        ("((lambda (x) x) 1 2)", "(1 . 2)"),
        ("((lambda () 5))", "5"),
        ("((lambda (x . rest) rest) 1 2 3)", "(2 . 3)"),
        ("(define (f (cons a b) c) (list a b c)) (f (cons 1 2) 3)", "(1 2 3)"),
        ("((lambda ((list a (list b c))) (+ a (* b c))) '(1 (2 3)))", "7"),
        ("((lambda ((cons* a b c)) c) '(1 2 3 4))", "(3 4)"),
        ("(let ((f +)) (f 1 2))", "3"),
        ("(reduce + 0 '(1 2 3))", "6"),
        ("(- (cons 3 4))", "-1"),
        ("(- 3)", "-3"),
        ("(+ 1 2 3 4)", "10"),
        ("(- 10 1 2)", "7"),
        ("(atan 1 1)", "0.7853981633974483"),
        # forms
        ("(if #f 1 2)", "2"),
        ("(if 0 1 2)", "1"),
        ("(if '() 1 2)", "1"),
        ("(let ((x 1) (y 2)) (let ((x y) (y x)) (list x y)))", "(2 1)"),
        ("(let* ((x 1) (y (+ x 1))) (* x y))", "2"),
        ("(let (((cons a b) (cons 1 2))) (list a b))", "(1 2)"),
        ("(letrec ((even? (lambda (n) (if (= n 0) #t (odd? (- n 1))))) (odd? (lambda (n) (if (= n 0) #f (even? (- n 1)"
         ")))))"
         " (even? 1001))", "#f"),
        ("(let loop ((i 0) (s 0)) (if (< i 5) (loop (+ i 1) (+ s i)) s))", "10"),
        ("(cond (#f 1) ((= 1 1) 2) (else 3))", "2"),
        ("(cond (#f 1) (7) (else 3))", "7"),
        ("(list (and) (and 1 2) (and #f (car 0)) (or) (or #f 3) (or 4 (car 0)))", "(#t 2 #f #f 3 4)"),
        ("(cons* 1 2 '(3))", "(1 2 3)"),
        ("'(a 1.5 #t (b . c) \"d\")", '(a 1.5 #t (b . c) "d")'),
        ("(define ((f x) y) (- x y)) ((f 5) 3)", "2"),
        ("(define (f x) (define y (* 2 x)) (define (g z) (+ y z)) (g 1)) (f 5)", "11"),
        ("(let ((if (lambda (a b c) c))) (if 1 2 3))", "3"),
        ("(let ((or 1) (t 2)) (cond (#f 1) (t)))", "2"),
        ("(let ((t 5)) (or #f t))", "5"),
        ("(define (car x) 7) (list (car 1) (map cdr '((1 2))))", "(7 ((2)))"),
        ("(define list 3) (+ list 1)", "4"),
        # names are looked up where they stand, and functions may be defined later
        ("(define (f x) (g x)) (define c 3) (define (g x) (+ x c)) (f 1)", "4"),
        ("(define ones (cons 1 (lambda () ones))) (car ((cdr ((cdr ones)))))", "1"),
        # procedures
        ("(list (abs -2) (exp 0) (log 1) (sin 0) (cos 0) (tan 0) (asin 0) (acos 1) (atan 0) (sqrt 4) (expt 2 10))",
         "(2 1 0 0 1 0 0 0 0 2 1024)"),
        ("(list (zero? 0) (positive? 1) (negative? 1) (real? 1) (pair? 1) (null? '()) (boolean? #f) (procedure? car))",
         "(#t #t #f #t #f #t #t #t)"),
        ("(list (< 1 2) (<= 2 2) (> 1 2) (>= 1 2) (= 1 1) (not #f) (not 0))", "(#t #t #f #f #t #t #f)"),
        ("(list (map - '(1 2)) (map2 + '(1 2) '(3 4)) (map3 (lambda (a b c) (+ a b c)) '(1 2) '(3 4) '(5 6)))",
         "((-1 -2) (4 6) (9 12))"),
        ("(tree-map (lambda (x) (* x x)) '((1 2) (3 . 4)))", "((1 4) (9 . 16))"),
        ("(list (append '(1 2) '(3)) (reverse '(1 2 3)) (sum '(1 2 3)) (product '(2 3 4)) (length '(1 2)))",
         "((1 2 3) (3 2 1) 6 24 2)"),
        ("(list (dot '(1 2) '(3 4)) (magnitude-squared '(3 4)) (distance '(0 0) '(3 4)))", "(11 25 5)"),
        ("(list (equal? '(1 (a . #t)) '(1 (a . #t))) (equal? '(1) '(2)) (equal? 'a 1))", "(#t #f #f)"),
        ("(let* ((a (gensym)) (b (gensym))) (list (gensym? a) (gensym? 1) (gensym= a a) (gensym= a b) (gensym< a b)))",
         "(#t #f #t #f #t)"),
        ("(let ((e (gensym))) (list (bundle? 1) (bundle? (make-bundle e 3 4)) (primal e (make-bundle e 3 4))"
         " (tangent e (make-bundle e 3 4)) (tangent e 5)))", "(#f #t 3 4 0)"),
        # vectors
        ("(list (+ '(1 (2)) '(10 (20))) (- '(1 . 2) '(3 . 4)) (* 2 '(1 2)) (* '(1 2) 2) (/ '(2 4) 2))",
         "((11 (22)) (-2 . -2) (2 4) (2 4) (1 2))"),
        ("((+ sin (* 2 cos)) 0)", "2"),
        ("((- car cdr) (cons 5 3))", "2"),
        ("(((+ (lambda (x) (lambda (y) (* x y))) (lambda (x) (lambda (y) (+ x y)))) 3) 4)", "19"),
    ],
)  # fmt: skip
def test_what_a_program_means(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_expectations_are_checked_by_structure_and_digits() -> None:
    program = DVLProgram(
        "(/ 1 3) ===> 0.333\n(/ 1 3) ===> 1/3\n(/ 1 3) ===> 0.334\n'(a (1 . #t)) ===> (a (1 . #t))\n"
        "(let ((e (gensym))) (list e (make-bundle e 1 2))) ===> (#[gensym 7] (bundle #[gensym 7] 1 2))\n"
        "(list (gensym) (gensym)) ===> (#[gensym 1] #[gensym 1])\ncar ===> #[procedure car]\n(list 1 2) ===> (1 _)\n"
        "2 ===> 3\n1e-13 ===> 0\n(list 1) ===> (quote (1))"
    )
    assert [result.holds for result in program.run()] == [
        True, True, False, True, True, False, True, True, False, True, True,
    ]  # fmt: skip
    assert str(program.run()[2]) == "0.3333333333333333, and line 3 says 0.334"


def test_a_million_rounds_and_calls_that_are_no_rounds() -> None:
    """Tail calls take no room, mutual ones included; other calls are not held by Python's stack."""
    assert value("(let loop ((i 0) (x 1)) (if (= i 1000000) x (loop (+ i 1) (+ x 1))))") == 1_000_001.0
    mutual = "(define (a n) (if (= n 0) 'done (b (- n 1)))) (define (b n) (a n)) (a 50000)"
    assert shown(mutual) == "done"
    assert value("(define (count n) (if (= n 0) 0 (+ 1 (count (- n 1))))) (count 100000)") == 100_000.0


def test_lists_may_be_long() -> None:
    text = "(define (upto n) (let loop ((i n) (l '())) (if (= i 0) l (loop (- i 1) (cons i l)))))"
    assert value(f"{text} (sum (+ (upto 20000) (map - (upto 20000))))") == 0.0
    assert value(f"{text} (car ((gradient-r (lambda (l) (sum (map * (map2 cons l l))))) (upto 10000)))") == 2.0


def test_calls_and_lets_may_be_long() -> None:
    """Time and memory grow with their length alone: what waits for the next argument is one value."""
    many = 1_000
    ones, calls = "1 " * many, "(f 1) " * many
    text = f"(define (f x) x) (define (g . x) x) (+ {ones}) (+ {calls}) (length (list {calls} 1)) (car (g {calls}))"
    assert values(text) == [float(many), float(many), many + 1.0, 1.0]
    steps = " ".join(f"(x{i + 1} (f x{i}))" for i in range(1_500))
    assert value(f"(define (f x) (+ x 1)) (let* ((x0 1) {steps}) (+ x0 x1500))") == 1_502.0
    steps = " ".join(f"(x{i} (f {i}))" for i in range(600))
    late = " ".join(f"x{i}" for i in range(600))
    branch = f"(if (< x 0) x (let* ({steps}) (if (> x0 1e9) 0 (+ x {late} ((lambda () x599))))))"
    assert value(f"(define (f x) (+ x 1)) (define (g x) {branch}) (+ (g -1) (g (g 1)))") == 361_800.0
    assert shown(f"(list {'1 ' * 60} (write-real 3))") == f"({'1 ' * 60}3)"


@pytest.mark.parametrize("name", ["and", "or"])
def test_and_and_or_may_be_long(name: str) -> None:
    """Each arm is asked once, in order, until one decides; the last one is a tail call."""
    arms = " ".join(f"(asked x {i})" for i in range(2_000))
    asked = {"and": "(if (= i x) #f i)", "or": "(if (= i x) i #f)"}[name]
    text = f"(define (asked x i) (let ((j (count i))) {asked})) (define (f x) ({name} {arms})) (f 1321) (f 3000)"
    seen: list[float] = []
    found = DVLProgram(text, {"count": lambda i: seen.append(i) or i}).run()
    assert [result.value for result in found] == {"and": [False, 1_999.0], "or": [1_321.0, False]}[name]
    assert seen == [*range(1_322), *range(2_000)]
    again = "(and #t x (f (- x 1)))" if name == "and" else "(or #f #f #f (f (- x 1)))"
    assert value(f"(define (f x) (if (= x 0) 1 {again})) (f 100000)") == 1.0


def test_files_include_others_once(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "square.dvl").write_text("(define (square x) (* x x))")
    (tmp_path / "inner" / "cube.dvl").write_text('(include "square.dvl") (define (cube x) (* x (square x)))')
    (tmp_path / "main.dvl").write_text('(include "inner/square.dvl") (include "inner/cube.dvl") (cube (square 2))')
    assert DVLProgram(tmp_path / "main.dvl").run()[0].value == 64.0
    (tmp_path / "a.dvl").write_text('(include "b.dvl")')
    (tmp_path / "b.dvl").write_text('(include "a.dvl")')
    with pytest.raises(dg.ProgramError, match="includes itself") as caught:
        DVLProgram(tmp_path / "a.dvl")
    assert caught.value.filename.endswith("b.dvl")
    (tmp_path / "self.dvl").write_text('1\n  (include "self.dvl")')
    with pytest.raises(dg.ProgramError, match="includes itself") as caught:
        DVLProgram(tmp_path / "self.dvl")
    assert caught.value.span is not None and (caught.value.span.line, caught.value.span.column) == (2, 3)
    (tmp_path / "c.dvl").write_text('\n(include "nowhere.dvl")')
    with pytest.raises(dg.ProgramError, match="there is no file"):
        DVLProgram(tmp_path / "c.dvl")


def test_reading_and_writing_reals(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("2.5\nx\n"))
    assert values("(write-real (* 2 (read-real)))") == [5.0]
    assert capsys.readouterr().out == "5\n"
    with pytest.raises(dg.Error, match="reads a line with a real"):
        values("(read-real)")


def test_procedures_are_functions_of_python() -> None:
    program = DVLProgram(
        "(define (f x y) (* x y y)) (define ((g a) b) (+ a b)) (define l '(1 2)) (define (h (list a b)) (- a b))"
    )
    assert program["f"](2, 3.0) == 18.0
    assert program["g"](1.0)(2.0) == 3.0
    assert program["h"]([5, 3]) == 2.0
    assert program["l"] == (1.0, (2.0, ()))
    assert dg.grad(program["f"], (0, 1))(2.0, 3.0) == (9.0, 12.0)
    assert dg.hessian(lambda x: program["f"](x, x))(2.0) == 12.0
    with pytest.raises(dg.Error, match="defines no `nothing`"):
        program["nothing"]


def test_a_prompt_keeps_what_was_defined_and_takes_it_anew() -> None:
    session = Session()
    assert session.enter("(define y 2)") == []
    assert session.enter("(define (f x) (* x y)) (f 3)") == [6.0]
    assert session.enter("(define y 5)") == []
    assert session.enter("(f 3) (sum '(1 2))") == [15.0, 3.0]
    with pytest.raises(dg.Error, match="not bound"):
        session.enter("(define (f x) (unknown x))")
    assert session.enter("(f 1)") == [5.0]
    with pytest.raises(dg.Error, match="takes a pair"):
        session.enter("(define y 7) (car 1)")
    assert session.enter("(f 1)") == [7.0]
    with pytest.raises(dg.Error, match="takes a pair"):
        session.enter("(define y (car 1))")
    assert session.enter("(define z 1) (f 1)") == [7.0]
    assert [str(result) for result in session.results("(f 2) ===> 14 (f 2) ===> 15")] == [
        "14",
        "14, and line 1 says 15",
    ]
    for more in ("(f", "'", '"abc', "#| f", "(f 2) ===>"):
        with pytest.raises(Incomplete):
            session.enter(more)
    with pytest.raises(dg.Error, match="this is not a number"):
        session.enter("(- (exp 1000) (exp 1000))")
    assert {"lambda", "f", "gradient-r", "let*"} <= set(session.names())
