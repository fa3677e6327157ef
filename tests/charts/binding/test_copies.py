"""Facts that are given twice though their rows do not join: errors, and what may be given all the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

SQUARES = dg.Program("energy += force(_) ^ 2.")
WHY = (
    "Rows of one fact do not join here, since `energy += force(_) ^ 2.` (line 1) is not linear in it. Give one row for "
    "each fact, or say how they join: `:- input force/1 +=.`, or with min=, max= or another aggregator"
)
TWICE = [("x", 1.0), ("y", 2.0), ("x", 3.0)]
AFTER = [("x", 1.0), ("y", 2.0)]


def added() -> Any:
    chart = SQUARES.bind({"force/1": AFTER}).run()
    chart.add("force/1", [("z", 1.0), ("y", 5.0)])
    return chart.run()


def from_a_file(folder: Any) -> Any:
    path = folder / "forces.tsv"
    path.write_text("x\t1.0\ny\t2.0\nx\t3.0\n")
    return dg.read_file(path, "force/1")


@pytest.mark.parametrize(
    ("run", "where"),
    [
        (
            lambda _: SQUARES.run({"force/1": TWICE}),
            "force(x) is given twice: in rows 1 and 3, with the values 1.0 and 3",
        ),
        (lambda _: SQUARES.bind({"force/1": TWICE}).run(), "in rows 1 and 3, with the values 1.0 and 3.0"),
        (
            lambda f: SQUARES.run({"force/1": from_a_file(f)}),
            "in lines 1 and 3 of forces.tsv, with the values 1.0 and 3.0",
        ),
        (lambda _: SQUARES.run({"force/1": [("x",), ("x",)]}), "force(x) is given twice: in rows 1 and 2. Rows"),
        (
            lambda _: SQUARES.bind({"force/1": AFTER}).run({"force/1": [("z", 0.0), ("y", 2.0)]}),
            "force(y) is given twice: in row 2 of the bound facts and row 2 of the facts of the run, with the values",
        ),
        (
            lambda _: dg.Program("energy += force(_) ^ 2. force(x) = 3.").bind({"force/1": AFTER}).run(),
            "in row 1 of the bound facts and row 1 of the constants in the text, with the values 1.0 and 3.0",
        ),
        (lambda _: added(), "force(y) is given twice: in rows 2 and 4, with the values 2.0 and 5.0"),
        (
            lambda _: (
                SQUARES.bind({"force/1": AFTER}).with_values({"force/1": [0.0, 9.0]}).run({"force/1": [("y", 9.0)]})
            ),
            "with the values 9.0 and 9.0",
        ),
        (lambda _: SQUARES.function("energy", ["force/1"], {"force/1": TWICE})([1.0, 2.0, 3.0]), "in rows 1 and 3"),
    ],
)
def test_an_error_names_both_rows_and_the_ways_out(run: Callable[[Any], Any], where: str, tmp_path: Any) -> None:
    with pytest.raises(dg.FactError, match=re.escape(where)) as raised:
        run(tmp_path)
    assert "do not join here, since `energy += force(_) ^ 2." in str(raised.value)


def test_the_whole_message() -> None:
    with pytest.raises(dg.FactError) as raised:
        SQUARES.run({"force/1": TWICE})
    assert str(raised.value) == f"force(x) is given twice: in rows 1 and 3, with the values 1.0 and 3.0. {WHY}"


def test_a_chart_is_mended_by_taking_a_row_away() -> None:
    chart = SQUARES.run({"force/1": AFTER})
    chart.add("force/1", [("x", 3.0)])
    for _ in range(2):
        with pytest.raises(dg.FactError, match="rows 1 and 3"):
            chart.run()
    chart.retract("force/1", [("x", 1.0)])
    assert chart.run()["energy"] == 13.0
    assert list(chart.gradient("energy")["force/1"]) == [("y", 4.0), ("x", 6.0)]
    chart.add("force/1", [("x", 3.0)])
    chart.set("force/1", [("x", 5.0)])
    assert chart.run()["energy"] == 29.0


def test_an_example_of_a_batch_fails_alone() -> None:
    batch = SQUARES.run_batch([{"force/1": AFTER}, {"force/1": TWICE}], query="energy", threads=2)
    assert batch.values[0] == 5.0 and sorted(batch.errors) == [1]
    assert "in rows 1 and 3" in str(batch.errors[1])


def test_rows_join_as_is_declared() -> None:
    rows = [("x", -4.0), ("x", 1.0), ("x", 1.0)]
    wanted: dict[str, tuple[float, list[float]]] = {
        "+=": (4.0, [-4.0, -4.0, -4.0]),
        "*=": (16.0, [-8.0, 32.0, 32.0]),
        "max=": (1.0, [0.0, 2.0, 0.0]),
        "min=": (16.0, [-8.0, 0.0, 0.0]),
        "|=": (1.0, [0.0, 0.0, 0.0]),
    }
    text = "".join(f":- input {n}/1 {op}. e(i{n}) += {n}(_) ^ 2. " for n, op in zip("abcdv", wanted, strict=True))
    chart = dg.Program(text).run({f"{n}/1": rows for n in "abcdv"})
    for n, (value, slopes) in zip("abcdv", wanted.values(), strict=True):
        assert chart[f"e(i{n})"] == value
        assert chart.gradient(f"e(i{n})")[f"{n}/1"].values.tolist() == slopes
    softmax = dg.Program(":- input a/1 log+=. e += a(_) ^ 2.").run({"a/1": rows})
    joined = float(np.logaddexp.reduce([-4.0, 1.0, 1.0]))
    assert softmax["a(x)"] == pytest.approx(joined) and softmax["e"] == pytest.approx(joined**2)
    shares = 2 * joined * np.exp(np.array([-4.0, 1.0, 1.0]) - joined)
    assert softmax.gradient("e")["a/1"].values == pytest.approx(shares)


def test_rows_under_an_equation_have_one_value() -> None:
    program = dg.Program("double(X) = 2 * a(X).")
    assert program.run({"a/1": [("x", 3.0), ("y", 4.0), ("x", 3.0)]})["double(x)"] == 6.0
    assert program.run({"a/1": [("x",), ("x",)]})["a(x)"] == 1.0
    with pytest.raises(dg.FactError) as raised:
        program.run({"a/1": [("x", 3.0), ("y", 4.0), ("x", 3.0), ("y", 5.0)]})
    assert str(raised.value) == (
        "a(y) is given two different values by `=`: in rows 2 and 4, with the values 4.0 and 5.0. Give one row for "
        "each fact"
    )


def test_what_is_only_tested_may_be_given_twice() -> None:
    program = dg.Program("reach(Y) :- reach(X), edge(X,Y). reach(a). lost(X) += node(X) for not reach(X).")
    chart = program.run({"edge/2": [("a", "b"), ("a", "b")], "node/1": [("c",), ("c",)]})
    assert "reach(b)" in chart and chart["lost(c)"] == 2.0


@pytest.mark.parametrize("semiring", ["real", "log", "viterbi", "tropical", "count"])
def test_in_a_semiring_rows_always_join(semiring: str) -> None:
    plus: dict[str, Callable[[float, float], float]] = {
        "log": lambda a, b: float(np.logaddexp(a, b)),
        "viterbi": max,
        "tropical": min,
    }
    joined = plus.get(semiring, lambda a, b: a + b)(2, 3)
    chart = dg.Program("goal += w(_) * w(_).", semiring).run({"w/1": [("x", 2), ("x", 3)]})
    assert chart["w(x)"] == pytest.approx(joined)
    product = joined * joined if semiring in ("real", "count") else joined + joined
    assert chart["goal"] == pytest.approx(product)


def test_rows_do_not_join_beside_a_factor_that_facts_may_make_negative() -> None:
    program = dg.Program("goal max= a(_) * b. b += c(_) ^ 2.")
    facts = {"a/1": [("x", 2.0), ("x", 3.0)], "c/1": [("y", 1.0)], "b/0": -5.0}
    with pytest.raises(dg.FactError, match=r"a\(x\) is given twice.*may fall where it rises"):
        program.run(facts)
    chart = program.run(facts | {"a/1": [("x", 2.0), ("z", 3.0)], "b/0": 0.0})
    chart.add("b/0", -5.0)
    assert chart.run()["goal"] == -8.0


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("far min= 3 - road(_).", "`:- input road/1 min=.`, or with +=, max= or another aggregator"),
        ("far max= 3 - road(_).", "`:- input road/1 max=.`, or with +=, min= or another aggregator"),
        ("far log+= 3 * road(_).", "`:- input road/1 log+=.`, or with +=, min= or another aggregator"),
        ("far min= road(X) * road(X).", "`:- input road/1 min=.`, or with +=, max= or another aggregator"),
        ("far += road(_). near min= road(_).", "`:- input road/1 +=.`, or with min=, max= or another aggregator"),
        ("near min= road(_). far += road(_).", "`:- input road/1 min=.`, or with +=, max= or another aggregator"),
        ("near max= road(_). far min= road(_).", "`:- input road/1 max=.`, or with min=, += or another aggregator"),
        ("far min= 3 - road(_). there :- road(_).", "`:- input road/1 min=.`, or with +=, max= or another aggregator"),
    ],
)
def test_the_aggregator_of_the_readers_is_offered_first(text: str, offered: str) -> None:
    """And what is offered is taken."""
    rows = {"road/1": [("x", 1.0), ("x", 2.0)]}
    with pytest.raises(dg.FactError, match=re.escape(offered)):
        dg.Program(text).run(rows)
    dg.Program(f"{offered.split('`')[1]} {text}").run(rows)
