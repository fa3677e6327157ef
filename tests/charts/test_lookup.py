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
        ("far(17)", r"number 17, which far\(17\) asks for; argument 1 of `far/1` has symbols"),
        ("far(1.5)", r"number 1\.5, .*; argument 1 of `far/1` has symbols"),
        ("far(f('A'))", r"term f\('A'\), .*; argument 1 of `far/1` has symbols"),
        ("far('\"B\"')", "symbol '\"B\"', .*; the symbol 'B' is there"),
    ],
)
def test_what_is_nowhere_is_told_from_an_item_that_was_not_reached(
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
@pytest.mark.parametrize("item", ["far(x)", "far(y)", "far(lund)"])
def test_an_item_that_was_not_reached_is_no_typo(chart: dg.Chart, asking: str, item: str) -> None:
    """Its symbol is a fact's or the text's."""
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


COLUMNS: dict[str, list[tuple[Any]]] = {
    "symbols": [("lund",), ("it's",), ("2",), ('"malmo"',)],
    "integers": [(2,), (5,)],
    "floats": [(2.0,), (3.5,)],
    "mixed": [("lund",), (1,), (2.5,)],
    "terms": [(dg.Term("f", 1),), (dg.Term("f", "lund"),), (dg.Term("g", 2.0, "1.5"),)],
    "lists": [(["lund", 1],), (["x"],)],
    "no facts": [],
}
TOLD = {
    "symbols": {
        "p(lnud)": "symbol lnud, which p(lnud) asks for; did you mean lund?",
        "p(7)": "number 7, which p(7) asks for; argument 1 of `p/1` has symbols",
        "p(2)": "number 2, which p(2) asks for; the symbol '2' is there, in quotes",
        "p(2.0)": "number 2.0, which p(2.0) asks for; the symbol '2' is there, in quotes",
        "p(7.5)": "number 7.5, which p(7.5) asks for; argument 1 of `p/1` has symbols",
        "p(f(1))": "term f(1), which p(f(1)) asks for; argument 1 of `p/1` has symbols",
        "p(f(X))": "term f(X), which p(f(X)) asks for; argument 1 of `p/1` has symbols",
        "p([lund])": "term [lund], which p([lund]) asks for; argument 1 of `p/1` has symbols",
        "p('\"lund\"')": "the symbol lund is there",
        "p(malmo)": "the symbol '\"malmo\"' is there",
    },
    "integers": {
        "p(lund)": "symbol lund, which p(lund) asks for; argument 1 of `p/1` has integers",
        "p('2')": "symbol '2', which p('2') asks for; argument 1 of `p/1` has integers; write it without quotes: 2",
        "p(2.0)": "number 2.0, which p(2.0) asks for; argument 1 of `p/1` has integers; write 2",
        "p(2.5)": "number 2.5, which p(2.5) asks for; argument 1 of `p/1` has integers",
        "p(1e300)": "argument 1 of `p/1` has integers",
        "p(f(2))": "term f(2), which p(f(2)) asks for; argument 1 of `p/1` has integers",
        "p(7)": "",
    },
    "floats": {
        "p(2)": "number 2, which p(2) asks for; the float 2.0 is there",
        "p(7)": "number 7, which p(7) asks for; argument 1 of `p/1` has floats",
        "p('3.5')": "symbol '3.5', which p('3.5') asks for; the float 3.5 is there, without quotes",
        "p(lund)": "argument 1 of `p/1` has floats",
        "p(9.5)": "",
        "p(-1e300)": "",
    },
    "mixed": {
        "p(1.0)": "number 1.0, which p(1.0) asks for; the integer 1 is there",
        "p('1')": "symbol '1', which p('1') asks for; the integer 1 is there, without quotes",
        "p(f(1))": "argument 1 of `p/1` has integers and floats and symbols",
        "p(7)": "",
        "p(7.5)": "",
    },
    "terms": {
        "p(h(1))": "functor h/1, which p(h(1)) asks for",
        "p(h(X))": "functor h/1, which p(h(X)) asks for",
        "p(f(1,2))": "functor f/2, which p(f(1,2)) asks for; f/1 is there",
        "p(f(1.0))": "number 1.0, which p(f(1.0)) asks for; the integer 1 is there",
        "p(f('1'))": "symbol '1', which p(f('1')) asks for; the integer 1 is there, without quotes",
        "p(g(2,X))": "number 2, which p(g(2,X)) asks for; the float 2.0 is there",
        "p(g(2.0,1.5))": "number 1.5, which p(g(2.0,1.5)) asks for; the symbol '1.5' is there, in quotes",
        "p(f(lnud))": "symbol lnud, which p(f(lnud)) asks for; did you mean lund?",
        "p([lund])": "a list, which p([lund]) asks for",
        "p(lund)": "",
        "p(f(7))": "",
        "p(f(f(1)))": "",
        "p(1)": "",
    },
    "lists": {
        "p([lnud,1])": "did you mean lund",
        "p([lund,'1'])": "the integer 1 is there",
        "p([lund,lund|X])": "",
        "p([x,x])": "",
    },
    "no facts": {"p(lund)": "", "p(7)": "", "p(1.5)": ""},
}


@pytest.mark.parametrize("column", COLUMNS)
def test_what_a_column_cannot_have_is_told_by_its_type(column: str) -> None:
    """2, 2.0 and '2' are three arguments; a number among numbers may be one that was not reached."""
    types = ":- type a(int | float | symbol). " if column == "mixed" else ""
    chart = dg.Program(f"{types}p(X) += a(X).").run({"a/1": COLUMNS[column]})
    for item, text in TOLD[column].items():
        for ask in (chart.query, chart.__getitem__):
            if "X" in item and ask != chart.query:
                continue
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                assert not ask(item), item
            told = [str(w.message) for w in said]
            assert len(told) == bool(text), (item, told)
            assert all(text in t and t.startswith("No fact and no item has ") for t in told), (item, told)


def test_derivatives_and_derivations_tell_of_what_is_nowhere() -> None:
    program = dg.Program("far(V) += start(V). far(V) += far(U) * road(U,V).", "real")
    chart = program.run({"start/1": [("a", 1.0)], "road/2": [("a", "b", 0.5), ("x", "y", 1.0)]})
    gradient, tangents = chart.gradient("far(b)"), chart.jvp({"road/2": [("a", "b", 1.0)]})
    ways: list[Callable[[str], Any]] = [
        gradient.item,
        tangents.__getitem__,
        tangents.query,
        chart.expected_counts,
        chart.expected_counts("far(b)").item,
        lambda item: chart.outside(item, "far(b)"),
        lambda item: chart.outside("far(b)", item),
        lambda item: chart.marginal(item, "far(b)"),
        lambda item: chart.marginal("far(b)", item),
        lambda item: chart.why("far(b)", goal=item),
    ]
    errors: list[Callable[[str], Any]] = [
        chart.entropy,
        chart.kbest,
        chart.count,
        chart.forest_size,
        lambda item: chart.expected(item, lambda _: 1.0),
    ]
    for ask in ways:
        for item, text in {"far(1)": "far/1` has symbols", "far(typo)": "symbol typo"}.items():
            with pytest.warns(dg.ProgramWarning, match=text) as said:
                ask(item)
            assert len(said) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ask("far(y)")
    for ask in errors:
        with pytest.raises(dg.QueryError, match="far/1` has symbols"):
            ask("far(1)")
        with pytest.raises(dg.QueryError, match="far\\(y\\)") as error:
            ask("far(y)")
        assert "no fact and no item" not in str(error.value)


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
