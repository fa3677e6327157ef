"""Public calls and names: signatures, misspelt options, completion, column names, the line that warnings point at,
short tracebacks. mypy and IPython are run.

Costs eight seconds, of which mypy takes most the first time.
"""

from __future__ import annotations

import inspect
import math
import traceback
import types
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.chart import run_of
from dynagrad.charts.derivatives.gradient import Gradient, Tangents
from dynagrad.charts.limits import Limits
from dynagrad.compiler.compiled import Compiled
from type_checks import said_of

HOUSE = str(Path(dg.__file__).parent)
CLASSES = [
    *(c for c in map(dg.__dict__.get, dg.__all__) if isinstance(c, type)),
    Compiled,
    Gradient,
    Tangents,
]
PATHS = "path(V) min= path(U) + edge(U,V).  path(a) = 0."
EDGES = {"edge/2": [("a", "b", 2.0), ("b", "c", 1.0)]}


@pytest.fixture(scope="module")
def program() -> dg.Program:
    return dg.Program(PATHS)


@pytest.fixture(scope="module")
def chart(program: dg.Program) -> dg.Chart:
    return program.run(EDGES)


# -- signatures --------------------------------------------------------------------------------------------------------


def public_functions() -> dict[str, Callable[..., Any]]:
    """Every function and method that users call, by its name."""
    found = {f"dg.{name}": f for name in dg.__all__ if inspect.isfunction(f := getattr(dg, name))}
    for cls in CLASSES:
        for name in dir(cls):
            f = inspect.getattr_static(cls, name, None)
            if inspect.isfunction(f) and (not name.startswith("_") or name == "__init__"):
                found[f"{cls.__name__}.{name}"] = f
    return found


PASSED_ON = {"dg.cpp": "named", "dg.graph": "named", "dg.fit": "options", "Model.fit": "options"}
"""To the function of the user's that is called, to `Model.fit`, to a method."""


@pytest.mark.parametrize("name", public_functions())
def test_every_parameter_is_named_and_has_a_type(name: str) -> None:
    f = public_functions()[name]
    for parameter in inspect.signature(f).parameters.values():
        if parameter.name == "self":
            continue
        assert parameter.annotation is not inspect.Parameter.empty
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            assert PASSED_ON.get(name) == parameter.name


# -- limits ------------------------------------------------------------------------------------------------------------

LIMITS: dict[str, Any] = {
    "max_pops": 1000,
    "tolerance": 1e-3,
    "timeout": 100.0,
    "until": "path(c)",
    "max_items": 10**6,
    "max_bytes": 10**8,
}
FUNCTION = ("path(c)", ["edge/2"], EDGES)
REACHED: dict[str, Callable[..., Limits]] = {
    "Program.run": lambda p, c, **limits: run_of(p.run(EDGES, **limits)).limits,
    "Program.run_batch": lambda p, c, **limits: run_of(p.run_batch([EDGES], **limits).charts[0]).limits,
    "Program.function": lambda p, c, **limits: p.function(*FUNCTION, **limits)._core.limits,
    "Bound.run": lambda p, c, **limits: run_of(p.bind(EDGES).run(**limits)).limits,
    "Bound.run_batch": lambda p, c, **limits: run_of(p.bind(EDGES).run_batch([{}], **limits).charts[0]).limits,
    "Bound.function": lambda p, c, **limits: p.bind(EDGES).function(*FUNCTION[:2], **limits)._core.limits,
    "Chart.run": lambda p, c, **limits: run_of(p.run(EDGES).run(**limits)).limits,
}
"""Calls with limits, and the limits that arrive where native code is run."""


def test_what_takes_a_limit_takes_all_of_them_in_one_order() -> None:
    parameters = {name: inspect.signature(f).parameters for name, f in public_functions().items()}
    taken = {name: [p for p in found if p in LIMITS] for name, found in parameters.items()}
    of_others = {"timeout", "tolerance"}  # those of an answer, and of `fixed_point`
    assert {name for name, found in taken.items() if set(found) - of_others} == set(REACHED)
    for name in REACHED:
        assert taken[name] == list(LIMITS)
        assert {parameters[name][limit].kind for limit in LIMITS} == {inspect.Parameter.KEYWORD_ONLY}


def test_limits_are_one_value_of_which_each_is_described() -> None:
    assert list(dg.LimitOptions.__annotations__) == list(LIMITS)
    assert vars(Limits()) == {**dict.fromkeys(LIMITS), "share": 1}
    text = inspect.getdoc(dg.LimitOptions)
    assert text is not None and not [name for name in LIMITS if f"`{name}` (" not in text]


@pytest.mark.parametrize("name", REACHED)
def test_each_limit_is_passed_on(name: str, program: dg.Program, chart: dg.Chart) -> None:
    for limits in (LIMITS, *({limit: x} for limit, x in LIMITS.items()), {}):
        reached = REACHED[name](program, chart, **limits)
        assert {limit: getattr(reached, limit) for limit in LIMITS} == {**dict.fromkeys(LIMITS), **limits}


@pytest.mark.parametrize("name", REACHED)
def test_a_misspelt_limit_is_an_error_with_the_nearest_name(name: str, program: dg.Program, chart: dg.Chart) -> None:
    for limit in LIMITS:
        for wrong in (limit[:-1], limit + "s", limit[0] + limit[2:]):
            with pytest.raises(dg.Error) as caught:
                REACHED[name](program, chart, **{wrong: LIMITS[limit]})
            assert str(caught.value) == f"{name} has no option {wrong}; did you mean {limit}?"


@pytest.mark.parametrize("name", REACHED)
def test_what_is_no_limit_is_an_error_that_names_it(name: str, program: dg.Program, chart: dg.Chart) -> None:
    for limit in LIMITS:
        wrong = [3, b"path(c)"] if limit == "until" else [-1, math.nan, True, "1", 1j, [1], np.float64(-1), 10**400]
        for x in wrong:
            with pytest.raises(dg.Error, match=f"^{limit} must be "):
                REACHED[name](program, chart, **{limit: x})


def test_numbers_of_any_kind_are_limits(program: dg.Program) -> None:
    numbers = {limit: x for limit, x in LIMITS.items() if limit != "until"} | {"max_pops": 2, "tolerance": 0}
    for kind in (int, float, np.int32, np.float32, Fraction):
        limits: dict[str, Any] = {limit: kind(x) for limit, x in numbers.items()}
        assert program.run(EDGES, **limits).stats.pops == 2
    endless: dict[str, Any] = dict.fromkeys(numbers, math.inf)
    assert program.run(EDGES, **endless).stats.pops == 3


def test_a_chart_that_is_run_again_keeps_the_limits_that_are_not_given(program: dg.Program) -> None:
    chart = program.run(EDGES, **LIMITS)
    assert vars(run_of(chart.run(timeout=None, max_pops=3)).limits) == {
        **LIMITS,
        "timeout": None,
        "max_pops": 3,
        "share": 1,
    }


# -- misspelt options --------------------------------------------------------------------------------------------------


MISSPELT: list[tuple[Callable[[dg.Program, dg.Chart], Any], str]] = [
    (lambda p, c: dg.Program("a += b.", semirng="log"), "Program has no option semirng; did you mean semiring?"),
    (lambda p, c: p.bind(EDGES, value="weights"), "Program.bind has no option value; did you mean values?"),
    (lambda p, c: p.run(EDGES, max_pop=1), "Program.run has no option max_pop; did you mean max_pops?"),
    (lambda p, c: p.bind(EDGES).run(timout=1), "Bound.run has no option timout; did you mean timeout?"),
    (lambda p, c: p.bind(EDGES).run_batch([], querry="p"), "Bound.run_batch has no option querry; did you mean query?"),
    (lambda p, c: p.run_batch([], thread=1), "Program.run_batch has no option thread; did you mean threads?"),
    (lambda p, c: p.function("path(b)", input=["edge/2"]), "has no option input; did you mean inputs?"),
    (lambda p, c: p.explain(fact={}), "Program.explain has no option fact; did you mean facts?"),
    (lambda p, c: c.run(max_byte=3), "Chart.run has no option max_byte; did you mean max_bytes?"),
    (lambda p, c: c.marginal("path(b)", gaol="path(c)"), "Chart.marginal has no option gaol; did you mean goal?"),
    (lambda p, c: c.add("edge/2", [], value="weights"), "Chart.add has no option value; did you mean values?"),
    (lambda p, c: dg.Semiring(0.0, 1.0, max, min, les=max), "Semiring has no option les; did you mean less?"),
    (lambda p, c: dg.grad(np.sin, argnum=0), "grad has no option argnum; did you mean argnums?"),
    (lambda p, c: dg.fixed_point(np.cos, 1.0, max_step=1), "fixed_point has no option max_step; did you mean max_ste"),
    (lambda p, c: dg.checkpoint(np.cos, 1.0, 2, snapshot=1), "checkpoint has no option snapshot; did you mean snap"),
    (lambda p, c: dg.read_file("x.tsv", "a/1", kind=[]), "read_file has no option kind; did you mean kinds?"),
    (lambda p, c: c.run(colour=3), "Chart.run has no option colour; there are max_bytes, max_items, max_pops"),
]


@pytest.mark.parametrize(("call", "message"), MISSPELT, ids=[message for _, message in MISSPELT])
def test_a_misspelt_option_is_an_error_with_the_nearest_name(
    program: dg.Program, chart: dg.Chart, call: Callable[[dg.Program, dg.Chart], Any], message: str
) -> None:
    with pytest.raises(dg.Error) as caught:
        call(program, chart)
    assert message in str(caught.value)


SNIPPET = """
import dynagrad as dg
program = dg.Program("path(V) min= path(U) + edge(U,V).", semirng="log")
program.run({}, max_pop=1)
bound = program.bind({})
bound.run_batch([{}], querry="path(b)")
bound.function("path(b)", ["edge/2"], timout=1.0)
chart = bound.run({}, timeout=1.0, until="path(b)", max_items=10, progress=True)
chart.run(max_pops=None, timeout=2.0)
chart.run(max_byte=3)
chart.add("edge/2", [], value="weights")
dg.grad(abs, argnum=1)
dg.Semiring(0.0, 1.0, max, min, les=max)
program.explain(fact={})
bound.run_batch([{}], query="path(b)", gradient=["edge/2"], threads=2, timeout=1.0)
for text in chart:
    text.upper()
"""


def test_mypy_finds_misspelt_options_and_nothing_else(tmp_path: Path) -> None:
    said = said_of(SNIPPET, tmp_path)
    errors = [line for line in said.splitlines() if ": error:" in line]
    found = {int(line.split(":")[1]) for line in errors}
    assert found == {3, 4, 6, 7, 10, 11, 12, 13, 14}, said
    assert all("Unexpected keyword argument" in line for line in errors)


def test_mypy_knows_which_names_there_are_and_what_those_of_training_are(tmp_path: Path) -> None:
    said = said_of("import dynagrad as dg\ndg.Modle\nreveal_type(dg.training.L2)\nreveal_type(dg.Model)", tmp_path)
    missing, prior, model = said.splitlines()
    assert '2: error: Module has no attribute "Modle"' in missing
    assert "priors.Gaussian" in prior and "training.model.Model" in model


# -- names -------------------------------------------------------------------------------------------------------------


def test_the_package_shows_its_public_names_and_nothing_else() -> None:
    assert {name for name in dir(dg) if not name.startswith("__")} == set(dg.__all__) - {"__version__"}
    modules = [name for name in dir(dg) if isinstance(getattr(dg, name), types.ModuleType)]
    assert modules == ["special"]
    assert set(dir(dg.special)) == set(dg.special.__all__)


OF_CLASSES = {
    "Program": "bind explain function inputs predicates run run_batch semiring source values warnings",
    "Bound": "bind explain function program run run_batch with_values",
    "Chart": "add best converged count entropy error_bound expected expected_counts forest forest_size gradient "
    "items jvp kbest keys marginal outside pending query retract run sample set stats status table values "
    "why why_not",
    "Batch": "best charts errors gradient samples values",
    "Table": "arguments arity key names to_arrow to_pandas values",
    "Term": "arguments functor",
    "Function": "adjoint derivative goal gradient hvp inputs jvp result_shapes shapes tangent value value_and_grad vjp",
    "Gradient": "get item items keys to_pandas value values",
    "Tangents": "query",
    "Dual": "at",
}


def test_objects_show_what_users_call_and_nothing_else(program: dg.Program, chart: dg.Chart) -> None:
    bound = program.bind(EDGES)
    batch = bound.run_batch([{}], query="path(c)", gradient=["edge/2"])
    objects = [program, bound, chart, batch, chart.table("edge/2"), dg.Term("f", 1), dg.Dual()]
    objects += [bound.function("path(c)", ["edge/2"]), chart.gradient("path(c)"), chart.jvp({"edge/2": [1.0, 0.0]})]
    for thing in objects:
        names = [name for name in dir(thing) if not name.startswith("_")]
        assert names == sorted(OF_CLASSES[type(thing).__name__].split()), type(thing).__name__


def test_no_public_class_shows_what_is_inside() -> None:
    for cls in CLASSES:
        for name in dir(cls):
            if not name.startswith("_") and inspect.isfunction(f := getattr(cls, name)):
                told = " ".join(map(str, inspect.get_annotations(f).values()))
                internal = ("Prepared", "Stop", "Directions", "Relation", "Binding")
                assert not any(word in told for word in internal), (cls, f)


# -- completion --------------------------------------------------------------------------------------------------------


@pytest.fixture
def completed(program: dg.Program, chart: dg.Chart) -> Callable[[str], list[str]]:
    """What IPython offers after some text."""
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    shell = shell_module.InteractiveShell.instance()
    shell.Completer.use_jedi = False
    batch = program.bind(EDGES).run_batch([{}], query="path(c)", gradient=["edge/2"])
    names = {"dg": dg, "program": program, "chart": chart, "gradient": chart.gradient("path(c)"), "batch": batch}
    shell.user_ns.update(names)

    def complete(text: str) -> list[str]:
        return list(shell.Completer.complete(line_buffer=text, cursor_pos=len(text))[1])

    return complete


def test_ipython_completes_names_of_items(completed: Callable[[str], list[str]]) -> None:
    found = completed('chart["pa')
    assert [name.rpartition('"')[2] for name in found] == ["path(a)", "path(b)", "path(c)"]
    assert len(completed('chart["')) == 5


def test_ipython_completes_keys_of_gradients(completed: Callable[[str], list[str]]) -> None:
    assert [name.rpartition('"')[2] for name in completed('gradient["')] == ["edge/2", "path/1"]
    assert [name.rpartition('"')[2] for name in completed('batch.gradient["')] == ["edge/2"]


def test_ipython_completes_options_and_public_names(completed: Callable[[str], list[str]]) -> None:
    assert completed("program.run(max_") == ["max_bytes=", "max_items=", "max_pops="]
    assert completed("program.run_batch([], que") == ["query="]
    assert ".Program" in completed("dg.Pro") and not completed("dg.bind")


def test_completion_of_a_chart_that_has_to_be_run_offers_nothing(program: dg.Program) -> None:
    chart = program.run(EDGES)
    chart.add("edge/2", [("c", "d", 1.0)])
    assert chart._ipython_key_completions_() == []


# -- plans and columns -------------------------------------------------------------------------------------------------


def test_the_plan_of_a_program_is_told_without_binding(program: dg.Program) -> None:
    assert program.explain(EDGES) == program.bind().explain(EDGES)


# -- frames ------------------------------------------------------------------------------------------------------------

SUM = "goal += arc(X,_) * weight(X)."


def test_names_of_columns_are_kept() -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    columns = {"from": ["a", "b"], "to": ["b", "c"], "cost": [2.0, 3.0]}
    weights = [("a", 1.0), ("b", 2.0)]
    program = dg.Program(SUM)
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        chart = program.run({"arc/2": frame, "weight/1": weights})
        gradient = chart.gradient("goal")
        assert gradient["arc/2"].to_pandas().to_dict("list") == {**columns, "cost": [1.0, 2.0]}
        assert list(chart.query("arc(X,b)").to_pandas()) == list(columns)
        assert gradient["arc/2"].to_arrow().column_names == list(columns)
        frames = gradient.to_pandas()
        assert list(frames) == ["goal/0", "arc/2", "weight/1"]
        assert frames["weight/1"].to_dict("list") == {"arg1": ["a", "b"], "value": [2.0, 3.0]}
        bound = program.bind({"arc/2": frame})
        batch = bound.run_batch([{"weight/1": weights}], query="goal", gradient=["arc/2"])
        assert list(batch.gradient["arc/2"].to_pandas()) == list(columns)


def test_names_of_columns_without_values_and_such_as_cannot_be_kept() -> None:
    pd = pytest.importorskip("pandas")
    program = dg.Program(SUM)
    for names, expected in (
        (["from", "to"], ["from", "to", "value"]),
        (["value", "value_"], ["value", "value_", "value__"]),
        (["same", "same"], ["arg1", "arg2", "value"]),
        ([0, 1], ["arg1", "arg2", "value"]),
    ):
        frame = pd.DataFrame([["a", "b"]], columns=names)
        chart = program.run({"arc/2": frame, "weight/1": [("a",)]})
        assert list(chart.gradient("goal")["arc/2"].to_pandas()) == expected


def test_series_are_facts() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    program = dg.Program(SUM)
    index = pd.MultiIndex.from_tuples([("a", "b"), ("b", "c")], names=["from", "to"])
    weights = pd.Series([1.0, 2.0], index=["a", "b"], name="w")
    chart = program.run({"arc/2": pd.Series([2.0, 3.0], index=index, name="cost"), "weight/1": weights})
    assert chart["goal"] == 8.0
    assert list(chart.gradient("goal")["arc/2"].to_pandas()) == ["from", "to", "cost"]
    for some in (pd.Series(["a", "b"], name="x"), pl.Series("x", ["a", "b"])):
        assert program.run({"arc/2": [("a", "b", 2.0)], "weight/1": some})["goal"] == 2.0
    counted = dg.Program("goal += weight(X) * other(X).")
    facts = {"weight/1": pl.Series([1.0, 2.0]), "other/1": pd.Series([3.0, 4.0])}
    assert counted.run(facts)["goal"] == 11.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda pd, pl: pd.Series([1.0, 2.0]),
            "the index of the Series has 1 level, and the predicate has 2",
        ),
        (lambda pd, pl: pl.Series([1.0, 2.0]), "a Series has one column, and the predicate has 2 arguments"),
        (lambda pd, pl: pd.Series([1.0], index=pd.MultiIndex.from_tuples([("a", None)])), "row 1, column 2"),
        (lambda pd, pl: pd.Series(["x"], index=pd.MultiIndex.from_tuples([("a", "b")])), "row 1, value"),
    ],
)
def test_series_that_do_not_fit(make: Callable[[Any, Any], Any], message: str) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    with pytest.raises(dg.FactError, match=message):
        dg.Program(SUM).run({"arc/2": make(pd, pl), "weight/1": [("a",)]})


# -- classes that only runs make objects of ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "source"),
    [
        (dg.Table, "chart.query"),
        (dg.Bound, "program.bind"),
        (dg.Function, "program.function"),
        (dg.Chart, "program.run"),
        (dg.Batch, "run_batch"),
    ],
)
def test_classes_say_where_their_objects_come_from(cls: Any, source: str, program: dg.Program) -> None:
    for arguments in ((), ([("a", 1.0)],), ({}, {}), (program, {}), (math.sin, 1)):
        with pytest.raises(dg.Error, match=source):
            cls(*arguments)
    with pytest.raises(dg.Error, match=source):
        cls(facts={})
    assert str(inspect.signature(cls)) == "()"
    assert str(inspect.signature(cls.__init__)) == "(self, /)" and source in cls.__init__.__doc__


# -- warnings and tracebacks -------------------------------------------------------------------------------------------

WARNED: list[Callable[[], Any]] = [
    lambda: dg.Program("p += q(X)."),  # a variable that occurs once
    lambda: dg.Program("p += q(_).").run({"q/1": [("a",)], "unused/1": []}),
    lambda: dg.Program("p(x) += q(x).").bind({"q/1": [("a",)]}).run(),
    lambda: dg.Program("p += q(_).", "log").run_batch([{"q/1": [(1, 0.5), (2, 0.25)]}], query="p"),
    lambda: dg.Program("p += q(X) * r(X).").run({"q/1": [("1",)], "r/1": [(1,)]}),
    lambda: dg.Program("a += 1e-200 * b. b += 1e-200 * c.", "real").run({"c/0": 1e-200}),
    lambda: dg.Program("a(X) += a(Y) * w(Y,X). a(x) = 1. :- agenda fifo.").run({"w/2": [("x", "x", 0.5)]}),
]


@pytest.mark.parametrize("call", WARNED)
def test_warnings_point_at_the_line_of_the_caller(call: Callable[[], Any]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    for warning in caught:
        assert warning.filename == __file__
        assert warning.lineno == call.__code__.co_firstlineno


RAISED: list[Callable[[dg.Program, dg.Chart], Any]] = [
    lambda p, c: dg.Program("p += ."),
    lambda p, c: dg.Program("p(X) += q(Y)."),
    lambda p, c: p.run({"edge/2": [("a", "b", "c", "d")]}),
    lambda p, c: p.run({"edeg/2": []}),
    lambda p, c: p.bind(EDGES).run(max_pops=-1),
    lambda p, c: p.bind(EDGES).run_batch(3),  # type: ignore[arg-type]
    lambda p, c: p.function("path(b)", ["edge/2"], EDGES)([1.0]),
    lambda p, c: p.function("path(b)", ["edge/2"], EDGES).vjp([1.0]),
    lambda p, c: c["paths(b)"],
    lambda p, c: "path(b" in c,
    lambda p, c: c.query("path("),
    lambda p, c: c.gradient("path(b)")["edges/2"],
    lambda p, c: c.gradient("path(b)").item("edge(a)"),
    lambda p, c: c.jvp({"edge/2": [1.0]}),
    lambda p, c: c.table("edge/2")["a", "x"],
    lambda p, c: c.entropy("path(b)"),
    lambda p, c: dg.read_file("nothing.tsv", "a/1"),
]


@pytest.mark.parametrize("call", RAISED)
def test_tracebacks_show_the_line_of_the_caller_and_not_our_insides(
    program: dg.Program, chart: dg.Chart, call: Callable[[dg.Program, dg.Chart], Any]
) -> None:
    with pytest.raises(dg.Error) as caught:
        call(program, chart)
    frames = traceback.extract_tb(caught.value.__traceback__)
    *before, last = [frame for frame in frames if not frame.filename.startswith(HOUSE)]
    assert (last.filename, last.lineno) == (__file__, call.__code__.co_firstlineno)
    assert frames[:-1] == [*before, last] or frames == [*before, last], "one line of ours at most, and behind it"
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize("call", [*WARNED[:3], *WARNED[4:]])  # but a batch
def test_tracebacks_of_warnings_that_are_errors_are_short_too(call: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dg.ProgramWarning) as caught:
            call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert len([frame for frame in frames if frame.filename.startswith(HOUSE)]) <= 1


LONG = "x" * 100_000


@pytest.mark.parametrize(
    "call",
    [
        lambda p, c: c["X" + LONG],
        lambda p, c: c.query(f"path(X,{LONG}"),
        lambda p, c: c.table(LONG + "/1"),
        lambda p, c: c.gradient({f"path({LONG})": "one"}),
        lambda p, c: p.run(**{LONG: 1}),
        lambda p, c: p.run(EDGES, until="X" + LONG),
        lambda p, c: dg.Program(f"p += {LONG} {LONG}."),
        lambda p, c: dg.Program(f"p(X{LONG}) += q(a)."),
        lambda p, c: dg.Program(f":- type q({LONG}). p += q(_)."),
        lambda p, c: dg.Program(":- " + LONG),
        lambda p, c: dg.Program("a.", LONG),
        lambda p, c: dg.Program("a.", "\n" * 100_000),
        lambda p, c: dg.Program("a += b.", functions={LONG + "/1": len}),
        lambda p, c: dg.read_file(LONG, "a/1"),
    ],
)
def test_what_is_said_of_long_texts_is_short(
    program: dg.Program, chart: dg.Chart, call: Callable[[dg.Program, dg.Chart], Any]
) -> None:
    with pytest.raises(dg.Error) as caught:
        call(program, chart)
    assert len(str(caught.value)) < 1000


def test_tracebacks_through_functions_of_users_are_whole() -> None:
    def distance(x: str, y: str) -> float:
        raise dg.Error(f"no distance from {x} to {y}")

    rules = ":- external dist/2. p(X) += q(X) * dist(X,X)."
    program = dg.Program(rules, functions={"dist/2": distance})
    with pytest.raises(dg.Error, match="no distance from a to a") as caught:
        program.run({"q/1": [("a",)]})
    assert any(frame.name == "distance" for frame in traceback.extract_tb(caught.value.__traceback__))
