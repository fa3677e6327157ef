"""What is said of items that are asked for and cannot be there: typos, missing quotes, integers out of range."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

FAR = dg.Program("far(V) min= start(V). far(V) min= far(U) + road(U,V). home(lund) min= start(_).")
FACTS: dict[str, Any] = {"start/1": [("A", 0.0)], "road/2": [("A", "B", 1.0), ("B", "C d", 2.0), ("x", "y", 1.0)]}


@pytest.fixture(scope="module")
def chart() -> dg.Chart:
    return FAR.run(FACTS)


# Each way to ask for an item; True where it has no answer without one that is derived, which is an error.
ASKING: dict[str, tuple[Callable[[dg.Chart, Any], Any], bool]] = {
    "chart[...]": (lambda chart, item: chart[item], False),
    "query": (lambda chart, item: chart.query(item), False),
    "gradient": (lambda chart, item: chart.gradient(item), False),
    "gradient of a sum": (lambda chart, item: chart.gradient({"far('B')": 1.0, item: 2.0}), False),
    "until": (lambda chart, item: FAR.run(FACTS, until=item), False),
    "a batch": (lambda chart, item: FAR.run_batch([FACTS, FACTS], query=item).values, False),
    "a function": (lambda chart, item: FAR.function(item, ["road/2"], FACTS)([1.0, 2.0, 1.0]), False),
    "why": (lambda chart, item: chart.why(item), True),
    "best": (lambda chart, item: chart.best(item), True),
    "sample": (lambda chart, item: chart.sample(item), True),
    "forest": (lambda chart, item: chart.forest(item), True),
}
EACH = pytest.mark.parametrize("asking", ASKING)


@EACH
@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("far(typo)", "no fact and no item has the symbol typo, which far\\(typo\\) asks for"),
        ("far(b)", "symbol b, .*; did you mean 'B'"),
        ("far('C  d')", "symbol 'C  d', .*; did you mean 'C d'"),
    ],
)
def test_a_symbol_that_is_nowhere_is_told_from_an_item_that_was_not_reached(
    chart: dg.Chart, asking: str, item: str, said: str
) -> None:
    ask, fails = ASKING[asking]
    if fails:
        with pytest.raises(dg.QueryError, match=said):
            ask(chart, item)
    else:
        with pytest.warns(dg.ProgramWarning, match=re.compile(said, re.IGNORECASE)):
            ask(chart, item)


@EACH
@pytest.mark.parametrize("item", ["far(x)", "far(y)", "far(lund)", "far(17)"])
def test_an_item_that_was_not_reached_is_no_typo(chart: dg.Chart, asking: str, item: str) -> None:
    """Its symbol is a fact's or the text's; numbers are no typos."""
    ask, fails = ASKING[asking]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if fails:
            with pytest.raises(dg.QueryError, match=r"chart\.why_not"):
                ask(chart, item)
        else:
            ask(chart, item)
        assert item not in chart and "far(typo)" not in chart


def test_a_batch_tells_of_symbols_that_no_example_has() -> None:
    other = {**FACTS, "road/2": [("A", "lost", 1.0)]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = FAR.run_batch([FACTS, other], query="far(lost)")
    assert batch.values.tolist() == [np.inf, 1.0]


def test_terms_and_numbers() -> None:
    chart = dg.Program("p(f(X)) += a(X).").run({"a/1": [("lund",), (2,)]})
    with pytest.warns(dg.ProgramWarning, match=r"symbol lnud, which p\(f\(lnud\)\) asks for; did you mean lund"):
        assert chart["p(f(lnud))"] == 0.0
    numbers = dg.Program("p(X) += a(X).").run({"a/1": [(1,), (2,)]})
    with pytest.warns(dg.ProgramWarning, match=r"argument 1 of `p/1` has integers; write it without quotes: 2"):
        assert numbers["p('2')"] == 0.0
    texts = dg.Program("p(X) += a(X).").run({"a/1": [("1",), ("2",)]})
    with pytest.warns(dg.ProgramWarning, match=r"number 2, which p\(2\) asks for; the symbol '2' is there, in quotes"):
        assert texts["p(2)"] == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert numbers["p(7)"] == texts["p(7)"] == 0.0


@EACH
@pytest.mark.parametrize("number", ["2147483648", "-2147483649", "99999999999"])
def test_integers_beyond_the_width_are_errors(chart: dg.Chart, asking: str, number: str) -> None:
    for item in (f"far({number})", f"far(f({number}))"):
        with pytest.raises(dg.QueryError, match=f"the integer {number} is beyond the range of arguments"):
            ASKING[asking][0](chart, item)
    if asking == "chart[...]":
        with pytest.raises(dg.QueryError, match="beyond the range"):
            chart["far", int(number)]


@EACH
@pytest.mark.parametrize(
    ("item", "quoted"),
    [
        ("far(B)", "far('B')"),
        ("far(f(B))", "far(f('B'))"),
        ("road(a,B)", "road(a,'B')"),
        ("far(C d)", "far('C d')"),
        ("far(new-york)", "far('new-york')"),
        ("road(St. Gallen, b)", "road('St. Gallen',b)"),
        ("far(2 b)", "far('2 b')"),
    ],
)
def test_quotes_are_named_where_a_symbol_needs_them(chart: dg.Chart, asking: str, item: str, quoted: str) -> None:
    if asking == "query" and "B" in item:
        return  # a pattern may have variables
    with pytest.raises(dg.Error, match=re.escape(quoted)):
        ASKING[asking][0](chart, item)
