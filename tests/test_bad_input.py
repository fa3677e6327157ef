"""Invalid and strange input: every error is a `dg.Error` that says what and where, and nothing crashes or hangs.

Costs ten seconds.
"""

from __future__ import annotations

import math
import pickle
import re
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

DEEP = 100_000


# -- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "goal",
        "goal += ",
        "goal += a(X)",
        "goal += a(X",
        "+= a(X).",
        "goal += a(X)) .",
        "goal ++= a(X).",
        "Goal += a(X).",
        "goal(X) += a(Y).",
        "goal += 'never closed.",
        "goal += a([1,2).",
        "goal += a(X) for .",
        ":- semiring.",
        ":- semiring sturdy.",
        ":- nonsense goal.",
        ":- type goal(",
        "goal += a(X) * .",
        "\0",
        "goal += a(X)\0.",
        "\ufeff.",
        "goal += a(99999999999).",
        "a(X) -= b(X).",
        "goal += 1e999999 * a(X).",
        "\ud800",
    ],
)
def test_malformed_programs(source: str) -> None:
    with pytest.raises(dg.Error):
        dg.Program(source)


def test_errors_of_programs_show_the_place() -> None:
    with pytest.raises(dg.SourceError) as caught:
        dg.Program("fine += a(X).\nworse(X) += a(Y).")
    assert "line 2, column 7" in str(caught.value) and "  | " in str(caught.value) and "^" in str(caught.value)


def test_programs_with_nothing_to_do() -> None:
    assert dg.Program("").run().stats.items == 0
    assert dg.Program("% only a comment").run().converged
    chart = dg.Program("a(1) = 2. a(2) = 3.").run()
    assert (chart["a(1)"], chart["a(2)"], chart["a(3)"]) == (2.0, 3.0, 0.0)


def test_a_program_of_five_thousand_rules_is_checked_in_time() -> None:
    source = "\n".join(f"p{i}(X,Z) += p{i - 1}(X,Y) * q{i % 7}(Y,Z)." for i in range(1, 5001))
    start = time.process_time()
    program = dg.Program(source)
    assert time.process_time() - start < 15  # five where nothing else runs
    assert len(program.predicates) == 5008


@pytest.mark.parametrize(
    "source",
    [
        "goal += a(" + "f(" * 20_000 + "z" + ")" * 20_000 + ").",
        "goal += a(" + "[" * 2000 + "]" * 2000 + ").",
        "goal += a(" + "x/" * 2000 + "x).",
        "goal(X" + "+1" * 2000 + ") += a(X).",
        "goal += " + "-" * 2000 + "a(1).",
        "goal += a(1)" + "+1" * 2000 + ".",
        "goal += " + "(" * 2000 + "a(X)",
        "a(" + "g(z," * 2000 + "z" + ")" * 2000 + ") = 3.",
    ],
    ids=["compound", "list", "slash", "arithmetic", "minus", "sum", "unclosed", "axiom"],
)
def test_programs_nested_without_end(source: str) -> None:
    with pytest.raises(dg.SyntaxError) as caught:
        dg.Program(source)
    assert len(str(caught.value)) < 2000


# -- names -----------------------------------------------------------------------------------------------------------

ODD_NAMES = [
    "N P", "N_P", "n p", "int", "class", "template", "main", "malloc", "program", "visit", "semiring", "Real", "std",
    "NULL", "a'b", 'a"b', "a\nb", "\n#error no", "*/ #error no /*", "/*", "//", "a\\", "??/", "??=", '"); abort(); //',
    "$(exit 1)", "`exit 1`", "; exit 1", "%s%n", "日本", "é", "e\u0301", "🙂", "\u202e", "", " ", "_", "__x", "1",
    "0x1", "a/b", "a.b", "a,b", "a(b", "\t", "\r", "\x7f", "\x01", "\\" * 400,
]  # fmt: skip


def quoted(name: str) -> str:
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "'" + "".join(escapes.get(c, c) for c in name) + "'"


def test_predicates_and_symbols_may_have_any_name() -> None:
    """Each as the name of a predicate, a functor and a symbol; they stand in generated code and in its comments."""
    rules = [f"{quoted(name)}(X) += 2 * start(X,{quoted(name)})." for name in ODD_NAMES]
    rules += [f"copy({quoted(name)}(X)) += {quoted(name)}(X)." for name in ODD_NAMES]
    chart = dg.Program("\n".join(rules)).run({"start/2": [(i, name, 1.0) for i, name in enumerate(ODD_NAMES)]})
    for number, name in enumerate(ODD_NAMES):
        assert chart[name, number] == 2.0, name
        assert chart["copy", dg.Term(name, number)] == 2.0, name
        assert chart[f"{quoted(name)}({number})"] == 2.0, name
        assert sum(row[-1] for row in chart.query(f"{quoted(name)}(X)")) == 2.0, name


ODD_VARIABLES = [
    "NULL", "INT32_MAX", "EOF", "NAN", "INFINITY", "BUFSIZ", "M_PI", "INT64_MIN", "SIZE_MAX", "EXIT_FAILURE",
    "RAND_MAX", "I", "S", "N", "E", "W", "T", "Value", "World", "Terms", "Key", "A0", "A", "B", "C", "_1", "__x", "_A",
    "_Complex", "__LINE__", "__FILE__", "Int", "Auto", "This", "True", "CLOCK_MONOTONIC", "MB_CUR_MAX", "HUGE_VAL",
    "FP_NAN", "DYNAGRAD_RULE", "DYNAGRAD_EXPORT", "Real", "Account", "X1", "X_1", "X__1", "Report", "Arithmetic",
]  # fmt: skip


def test_variables_may_have_any_name() -> None:
    rules = [f"p{i}({v}) += a({v},Other) * b(Other,{v}) for {v} < Other." for i, v in enumerate(ODD_VARIABLES)]
    rules.append(f"all({','.join(ODD_VARIABLES)}) += " + " * ".join(f"c({v})" for v in ODD_VARIABLES) + ".")
    chart = dg.Program("\n".join(rules)).run({"a/2": [(1, 2, 3.0)], "b/2": [(2, 1, 5.0)], "c/1": [(1, 1.0)]})
    assert [chart[f"p{i}(1)"] for i in range(len(ODD_VARIABLES))] == [15.0] * len(ODD_VARIABLES)
    assert chart[("all", *[1] * len(ODD_VARIABLES))] == 1.0


def test_rules_may_be_wide() -> None:
    """Seventy arguments, of facts and of items, and sixty antecedents."""
    forth = ",".join(f"X{i}" for i in range(70))
    back = ",".join(f"X{69 - i}" for i in range(70))
    chain = " * ".join(f"p(Y{i},Y{i + 1})" for i in range(60))
    program = dg.Program(f"turned({back}) += wide({forth}). goal += turned({back}) * wide({forth}). long += {chain}.")
    chart = program.run({"wide/70": [(*range(70), 2.0)], "p/2": [(1, 1, 2.0)]})
    assert chart["goal"] == 4.0 and chart["long"] == 2.0**60
    assert list(chart.table("turned/70")) == [(*range(69, -1, -1), 2.0)]


# -- facts -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copy() -> dg.Program:
    return dg.Program("copy(X,Y) += a(X,Y). goal += a(X,Y).", "real")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1, 2, 3.0, 4.0)], "a/2, row 1: 4 columns"),
        ([(1,)], "a/2, row 1: 1 column"),
        ([(1, 2, 3.0), (1, 2)], "row 2"),
        ([(1, 2, math.nan)], "a/2, row 1, value: nan"),
        ([(1, 2, 1.0), (1, 3, -math.inf)], "a/2, row 2, value: -inf"),
        ([(1, 2, "x")], "value 'x' is not a number"),
        ([(1, 2, None)], "value"),
        ([(1, 2, 10**400)], "beyond the range of floats"),
        ([(1, None)], "row 1, column 2: None is not a term"),
        ([(1, b"\xff")], "decode it"),
        ([(1, "\ud800")], "surrogate"),
        ([(1, 2**31)], "beyond the range"),
        ([(1, -(2**31) - 1)], "beyond the range"),
        ([(1, 10**5000)], "beyond the range"),
        ([(1, math.inf)], "row 1, column 2"),
        ([(1, True)], "True is not a term"),
        ([(1, {1: 2})], "is not a term"),
        ([(1, object())], "is not a term"),
        ([(1, [1, [2, None]])], "None is not a term"),
        ([3], "3 is not a row"),
        (3, "is not a table"),
        ("a.tsv", "is not a table"),
        (None, "is not a table"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.array([[math.nan]]), "nan"),
        ((np.zeros((2, 3), np.int64), np.zeros(2)), "3 columns|shape"),
        ((np.zeros((2, 2), np.int64), np.zeros(3)), "3 values were given for 2 rows"),
        ({(1, 2, 3): 1.0}, "3 columns"),
        (iter([(1, 2), 5]), "is not a row"),
    ],
)
def test_bad_facts(copy: dg.Program, rows: Any, message: str) -> None:
    with pytest.raises(dg.FactError, match=message):
        copy.run({"a/2": rows})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"a/3": []}, r"(?s)No rule reads `a/3`.*`a/2`.*line 1.*a\(X,Y\)"),
        ({"a/2": [], "a/3": []}, "no predicate `a/3`.*a/2"),
        ({"a": []}, "'a' names no predicate"),
        ({3: []}, "3 names no predicate"),
        ([("a/2", [])], "is not a dict of facts"),
        (np.zeros(3), "is not a dict of facts"),
        ("a/2", "is not a dict of facts"),
        ({"x" * 1_000_000: []}, "names no predicate"),
    ],
)
def test_facts_for_what_is_no_predicate(copy: dg.Program, facts: Any, message: str) -> None:
    with pytest.raises(dg.FactError, match=message):
        copy.bind(facts)
    with pytest.raises(dg.FactError, match=message):
        copy.run(facts)


@pytest.mark.parametrize(
    ("semiring", "bad"),
    [
        ("real", [math.nan, math.inf, -math.inf]),
        ("log", [math.nan, math.inf]),
        ("viterbi", [math.nan, math.inf]),
        ("tropical", [math.nan, -math.inf]),
        ("count", [math.nan, math.inf, 0.5, -1, 2**128, "1"]),
        ("boolean", [math.nan, 0.5, 2, "yes"]),
        ("expectation", [math.nan, 0.5, (1.0,), (1.0, math.nan), (1.0, 2.0, 3.0), (math.inf, 0.0)]),
    ],
)
def test_values_that_a_semiring_has_not(semiring: str, bad: list[Any]) -> None:
    program = dg.Program("goal += a(X).", semiring)
    for value in bad:
        with pytest.raises(dg.Error, match=r"a/1|row 1"):
            program.run({"a/1": [("x", value)]})


def test_empty_tables(copy: dg.Program) -> None:
    frame: Any = pytest.importorskip("pyarrow").table({"x": [], "y": [], "v": []})
    forms: list[Any] = [[], {}, (), np.zeros((0, 0)), (np.zeros((0, 2), np.int64), np.zeros(0)), iter([]), frame]
    for rows in forms:
        chart = copy.run({"a/2": rows})
        assert chart["goal"] == 0.0 and "goal" not in chart and len(chart.query("copy(X,Y)")) == 0


def test_copies_of_a_fact_add_up(copy: dg.Program) -> None:
    assert copy.run({"a/2": [(1, 2, 3.0), (1, 2, 4.0)]})["copy(1,2)"] == 7.0
    facts = {"a/1": [("x", 3.0), ("x", 4.0)]}
    values = {"log": np.logaddexp(3.0, 4.0), "viterbi": 4.0, "tropical": 3.0, "count": 7}
    for semiring, value in values.items():
        assert dg.Program("goal += a(X).", semiring).run(facts)["goal"] == pytest.approx(value, rel=1e-14)


def test_arguments_of_all_types_share_a_column(copy: dg.Program) -> None:
    rows: list[Any] = [(1, 1), ("1", 1.0), (1.0, "x"), ([1], dg.Term("f", 1)), ("nil", 2), ([], 3), (-0.0, 4), (0, 4)]
    chart = copy.run({"a/2": [(*row, float(n)) for n, row in enumerate(rows)]})
    for number, row in enumerate(rows):
        assert chart[("copy", *row)] == number
    assert len(chart.query("copy(X,Y)")) == len(rows)


def test_arguments_that_the_program_computes_with_are_integers() -> None:
    program = dg.Program("b(X+1) += a(X).")
    for bad in ("x", 1.0, [1]):
        with pytest.raises(dg.FactError, match=r"a/1, row 2, column 1.*is not an integer"):
            program.run({"a/1": [(1,), (bad,)]})


def test_integers_of_the_whole_range(copy: dg.Program) -> None:
    ends = [-(2**31), -1, 0, 2**31 - 1]
    chart = copy.run({"a/2": [(x, y, 1.0) for x in ends for y in ends]})
    assert chart["goal"] == 16.0
    assert chart["copy(-2147483648,2147483647)"] == 1.0
    assert sorted(row[0] for row in chart.query("copy(X,0)")) == ends


def test_integer_arithmetic_that_leaves_the_range() -> None:
    program = dg.Program(
        "sum(X+Y) += a(X,Y). product(X*Y) += a(X,Y). quotient(X//Y) += a(X,Y). rest(X mod Y) += a(X,Y)."
    )
    for x, y in ((2**31 - 1, 1), (-(2**31), -1), (5, 0), (2**31 - 1, 2**31 - 1), (-(2**31), -(2**31))):
        with pytest.raises(dg.ValueRangeError, match="integer arithmetic"):
            program.run({"a/2": [(x, y, 1.0)]})
    chart = program.run({"a/2": [(-7, 2, 1.0)]})
    assert [chart["sum(-5)"], chart["product(-14)"], chart["quotient(-4)"], chart["rest(1)"]] == [1.0] * 4
    guarded = dg.Program("quotient(X//Y) += a(X,Y) for Y != 0. none(X) += a(X,Y) for X < X, Y == Y.")
    chart = guarded.run({"a/2": [(5, 0, 1.0), (6, 3, 1.0)]})
    assert chart["quotient(2)"] == 1.0 and len(chart.query("quotient(X)")) == 1 and len(chart.query("none(X)")) == 0


@pytest.mark.parametrize(
    ("condition", "value"), [("X * X * X * X * X < 0", 50_000), ("1 // X < 0", 0), ("1 mod X < 0", 0)]
)
def test_conditions_never_hold_because_of_an_overflow(condition: str, value: int) -> None:
    program = dg.Program(f"kept(X) += a(X) for {condition}.")
    try:
        chart = program.run({"a/1": [(value, 1.0)]})
    except dg.ValueRangeError:
        return
    assert len(chart.query("kept(X)")) == 0


def test_a_sum_that_diverges_is_an_error() -> None:
    with pytest.raises(dg.NotConverged, match=r"a\(0\) has no finite value") as caught:
        dg.Program("a(X) += 2 * a(X). a(X) += b(X).", "real").run({"b/1": [(0, 1.0)]})
    assert caught.value.cycle == ("a(0)",) and caught.value.radius == 2.0


def test_weights_at_the_edges() -> None:
    program = dg.Program("twice += a(X) * a(X). total += a(X). item(X) += a(X).", "real")

    def run(*weights: float) -> dg.Chart:
        return program.run({"a/1": list(enumerate(weights))})

    with pytest.raises(dg.ValueRangeError, match="twice"):
        run(1e308)
    with pytest.raises(dg.ValueRangeError, match="sum"):
        dg.Program("sum += a(X).", "real").run({"a/1": [(1, 1.5e308), (2, 1.5e308)]})
    assert math.copysign(1.0, run(-0.0)["item(0)"]) == -1.0
    assert run(5e-324)["item(0)"] == 5e-324
    chart = run(1.0, -1.0, 0.0)
    assert chart["total"] == 0.0 and "total" in chart and "item(2)" in chart


def test_cancellation_does_not_undo_a_derivation() -> None:
    program = dg.Program("g(X) += a(X). g(X) += b(X). h(X) += g(X). goal += h(X) * c(X).", "real")
    chart = program.run({"a/1": [(1, 1.0)], "b/1": [(1, -1.0)], "c/1": [(1, 0.0)]})
    assert [chart[i] for i in ("g(1)", "h(1)", "goal")] == [0.0] * 3
    assert all(i in chart for i in ("g(1)", "h(1)", "goal"))


def test_counts_are_exact_or_an_error() -> None:
    program = dg.Program("goal += a(X) * b(X).", "count")
    assert program.run({"a/1": [(1, 2**64)], "b/1": [(1, 2**63 - 1)]})["goal"] == 2**64 * (2**63 - 1)
    with pytest.raises(dg.ValueRangeError, match="goal is too large"):
        program.run({"a/1": [(1, 2**64)], "b/1": [(1, 2**64)]})


# -- types of other libraries ----------------------------------------------------------------------------------------


def test_numbers_of_numpy_are_numbers(copy: dg.Program) -> None:
    for rows in (
        [(np.int64(5), np.str_("x"), np.float32(2.0))],
        [(np.uint8(5), "x", np.int16(2))],
        {(np.int32(5), "x"): np.float16(2.0)},
        (np.array([(5, "x")], object), np.array([2], np.uint64)),
    ):
        assert copy.run({"a/2": rows})["copy(5,x)"] == 2.0
    with pytest.raises(dg.FactError):
        copy.run({"a/2": [(np.bool_(True), 1)]})
    with pytest.raises(dg.FactError):
        copy.run({"a/2": [(np.uint64(2**63), 1)]})


FRAME = {"x": ["np", "N P", "np"], "y": [1, 2, 1], "v": [0.5, 0.25, 0.125]}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_end_to_end(copy: dg.Program, library: str) -> None:
    module = pytest.importorskip(library)
    frame = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    chart = copy.run({"a/2": getattr(module, frame)(FRAME)})
    assert chart["copy(np,1)"] == 0.625 and chart["copy('N P',2)"] == 0.25
    with pytest.raises(dg.FactError, match="a/2"):
        copy.run({"a/2": getattr(module, frame)({**FRAME, "y": [1, None, 2]})})
    with pytest.raises(dg.FactError, match="a/2"):
        copy.run({"a/2": getattr(module, frame)({**FRAME, "w": [1, 2, 3]})})


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "facts.tsv"
    file.write_bytes(b"np\t1\t0.5\n\xff\xfe\t2\t0.5\n")
    with pytest.raises(dg.Error, match=r"line 2|UTF-8"):
        dg.read_file(file, "a/2")


# -- size ------------------------------------------------------------------------------------------------------------

LONG = "y" * 1_000_000


def test_symbols_and_names_of_a_megabyte() -> None:
    chart = dg.Program(f"{LONG}({LONG.upper()}) += a({LONG.upper()},{LONG}).").run({"a/2": [(LONG, LONG, 2.0)]})
    assert chart[LONG, LONG] == 2.0
    assert chart[f"{LONG}('{LONG}')"] == 2.0
    assert len(repr(chart.query(f"{LONG}(X)"))) < 2_001_000
    with pytest.raises(dg.QueryError) as caught:
        chart[LONG + "z"]
    assert len(str(caught.value)) < 2_001_000
    assert pickle.loads(pickle.dumps(chart))[LONG, LONG] == 2.0


def nested(depth: int, make: Any, innermost: Any) -> Any:
    for _ in range(depth):
        innermost = make(innermost)
    return innermost


def deep_chart(depth: int) -> tuple[dict[str, Any], dg.Chart]:
    terms = {
        "compound": nested(depth, lambda t: dg.Term("f", t), "z"),
        "right": nested(5000, lambda t: dg.Term("g", "a", t), "z"),
        "left": nested(5000, lambda t: dg.Term("slash", t, "a"), "z"),
        "nested": nested(5000, lambda t: [t], "z"),
        "long": list(range(5000)),
    }
    rows = [(term, float(n + 1)) for n, term in enumerate(terms.values())]
    chart = dg.Program("goal(X) += a(X). inner(X) += a(f(X)). rest(X) += a([_|X]). same += a(X) * a(X).").run(
        {"a/1": rows}
    )
    return terms, chart


def test_terms_nested_without_end_are_looked_up() -> None:
    terms, chart = deep_chart(DEEP)
    assert [chart["goal", term] for term in terms.values()] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert chart["same"] == 55.0
    assert ("goal", dg.Term("f", terms["right"])) not in chart
    assert chart["inner", terms["compound"].arguments[0]] == 1.0
    assert chart["rest", terms["long"][1:]] == 5.0


def test_terms_nested_without_end_are_queried_and_printed() -> None:
    _, chart = deep_chart(DEEP // 5)  # each query reads all terms
    assert sorted(chart.query("goal(X)").values.tolist()) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert chart.query("goal(f(f(X)))").values.tolist() == [1.0]
    table = chart.query("goal([X|Y])")
    assert sorted(table.values.tolist()) == [4.0, 5.0]
    assert len(repr(table)) < 10_000 and len(str(table)) < 10_000
    with pytest.raises(dg.SyntaxError):
        chart["goal(" + "f(" * 2000 + "z" + ")" * 2001]


def test_terms_nested_without_end_are_changed(copy: dg.Program) -> None:
    compound, listed = nested(5000, lambda t: dg.Term("f", t), "z"), nested(5000, lambda t: [t], "z")
    chart = pickle.loads(pickle.dumps(copy.run({"a/2": [(compound, 1, 1.0), (listed, 2, 2.0), (listed, 3, 3.0)]})))
    assert [chart["copy", compound, 1], chart["copy", listed, 2]] == [1.0, 2.0]
    chart.retract("a/2", [(listed, 2), (compound, 1)])
    chart.set("a/2", [(listed, 3, 8.0)])
    with pytest.raises(dg.QueryError) as caught:
        chart.retract("a/2", [(listed, 2)])
    assert len(str(caught.value)) < 1000
    chart.run()
    assert list(chart.query("copy(X,Y)").values) == [8.0] and ("copy", compound, 1) not in chart


def test_a_list_that_holds_itself_is_no_term(copy: dg.Program) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(dg.FactError, match="contains itself"):
        copy.run({"a/2": [(loop, 1)]})


def test_integers_and_their_lookalikes_are_warned_of():
    program = dg.Program("both(X) += a(X) * b(X).")
    for one, other in (([("3", 1.0)], [(3, 1.0)]), ([(3.0, 1.0)], [(3, 1.0)]), ([("3", 1.0), (3, 1.0)], [("x", 1.0)])):
        with pytest.warns(dg.ProgramWarning, match="three different arguments"):
            program.run({"a/1": one, "b/1": other})
    with warnings.catch_warnings():  # names and numbers side by side are fine
        warnings.simplefilter("error")
        program.run({"a/1": [("x", 1.0), (3, 1.0)], "b/1": [(3, 1.0)]})


@pytest.mark.parametrize(
    ("rule", "number", "cause"),
    [
        ("p(X+1) += q(X).", 2**31 - 1, r"left the range -2\*\*31 .. 2\*\*31-1"),
        ("p(X*X*X*X*X) += q(X).", 2**31 - 1, "left the range"),
        ("p(X) += q(X) for X*X*X*X > 3.", 2**31 - 1, "left the range"),
        ("p(3//X) += q(X).", 0, "divided by zero, with // or mod"),
        ("p(X) += q(X) for 3 mod X == 1.", 0, "divided by zero"),
        ("p(X) += 0.5*q(X). p(2*X) += 0.5*p(X) for X > 1000.", 2**30, "left the range"),
    ],
)
def test_arithmetic_without_a_result_says_why_and_in_which_rule(rule: str, number: int, cause: str) -> None:
    text = f"% the first line\n\n{rule}"
    last = rule.rpartition(". ")[2]
    place = re.escape(f", in the rule `{last}` (line 3); ")
    with pytest.raises(dg.ValueRangeError, match=cause + ".*" + place):
        dg.Program(text).run({"q/1": [(number,)]})
