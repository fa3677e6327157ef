"""A run goes on from a checkpoint of its own alone: whatever else is not the same is told, by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import numpy as dnp
from dynagrad import training
from dynagrad.training.storage import seal
from dynagrad.training.storage.described import described

TEXT = """
:- semiring log. :- distribution z(K). :- distribution e(K,O) given K.
goal += z(K) * e(K,O) * x(O) * y(P) * e(K,P) * fixed(K) * loss(O).
"""
START = {
    "z/1": [(0, 0.4), (1, 0.6)],
    "e/2": [(0, "a", 0.5), (0, "b", 0.3), (0, "c", 0.2), (1, "a", 0.2), (1, "b", 0.2), (1, "c", 0.6)],
}
FIXED = {"fixed/1": [(0, -0.1), (1, -0.2)]}
LOSS = {"loss/1": [("a", 0.0), ("b", -1.0), ("c", -2.0)]}
PAIRS = [{"x/1": [(a, 0.0)], "y/1": [(b,)], **LOSS} for a, b in ("ab", "ac", "bb", "cc", "cb", "aa")]
PROGRAMS = {text: dg.Program(text) for text in (TEXT, TEXT + "aside += z(_).")}


def begin(path: Path, **more: Any) -> dg.training.Fit:
    """A run of two steps, or what goes on from it."""
    given: dict[str, Any] = {"text": TEXT, "data": PAIRS, "parameters": START, "facts": FIXED, "dev": None} | more
    parts = {k: given.pop(k) for k in ("parameters", "facts", "prior", "objective", "goal") if k in given}
    model = dg.Model(PROGRAMS[given.pop("text")], **parts)
    options = {"iterations": 2, "tolerance": 0.0, **given}
    return model.fit(options.pop("data"), options.pop("dev"), checkpoint=path, **options)


def changed(n: int, **facts: Any) -> list[dict[str, Any]]:
    found = deepcopy(PAIRS)
    found[n] |= facts
    return found


ANOTHER_ORDER = "whose examples differ: they are the same ones in another order"
OTHER_DATA: dict[str, tuple[Any, str]] = {
    "fewer": (PAIRS[:3], "whose examples differ: there are 6, and not 3"),
    "more": ([*PAIRS, PAIRS[0]], "whose examples differ: there are 6, and not 7"),
    "none of them": (PAIRS[3:], "whose examples differ: there are 6, and not 3"),
    "the last two change places": (
        [*PAIRS[:4], PAIRS[5], PAIRS[4]],
        ANOTHER_ORDER,
    ),
    "the first two change places": (
        [PAIRS[1], PAIRS[0], *PAIRS[2:]],
        ANOTHER_ORDER,
    ),
    "all change places": (PAIRS[::-1], ANOTHER_ORDER),
    "two of them": (
        changed(1, **{"x/1": [("c",)]})[:5] + changed(5, **{"x/1": [("c",)]})[5:],
        "example 1 is another one, and so are 1 more",
    ),
    "a number": (changed(4, **{"x/1": [("c", 1e-300)]}), "whose examples differ: example 4 is another one"),
    "a symbol": (changed(5, **{"y/1": [("b",)]}), "example 5"),
    "a row more": (changed(5, **{"y/1": [("a",), ("b",)]}), "example 5"),
    "other rows": (changed(5, **{"y/1": [("a", 0.0)]}), "example 5"),
    "a weight": ([*PAIRS[:5], training.Example(PAIRS[5], weight=2.0)], "example 5"),
    "what was observed": ([*PAIRS[:5], training.Example(PAIRS[5], {"y/1": [("a",)]})], "example 5"),
}


@pytest.mark.parametrize("kind", OTHER_DATA)
def test_other_data_are_told_of_in_every_form(kind: str, tmp_path: Path) -> None:
    data, message = OTHER_DATA[kind]
    for n, method in enumerate(("em", "incremental-em", "l-bfgs", "sgd")):
        path = tmp_path / method
        begin(path, method=method)
        given: Any = (data, tuple(data), lambda: iter(data))[n % 3]
        with pytest.raises(dg.Error, match=rf"^the checkpoint .*{method}.* is of another run, .*{message}"):
            begin(path, data=given, method=method, iterations=4)
    held_out = tmp_path / "dev"
    begin(held_out, dev=PAIRS)
    with pytest.raises(dg.Error, match="whose held-out data differ"):
        begin(held_out, dev=data, iterations=4)
    assert len(begin(held_out, dev=PAIRS, iterations=4).history) == 4


def test_data_from_files_and_functions_are_those_of_a_list(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps({k: [list(r) for r in rows] for k, rows in e.items()}) + "\n" for e in PAIRS))
    expected = begin(tmp_path / "whole", iterations=5).objective
    forms: list[Any] = [PAIRS, deepcopy(PAIRS), file, lambda: iter(PAIRS), [training.Example(e) for e in PAIRS]]
    for n, first in enumerate(forms):
        begin(tmp_path / f"{n}", data=first)
        assert begin(tmp_path / f"{n}", data=forms[n - 1], iterations=5).objective == pytest.approx(expected, rel=1e-15)


def test_of_many_examples_blocks_are_told_apart(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(seal, "BLOCKS", 4)
    begin(tmp_path / "c", data=PAIRS * 2)
    other = deepcopy(PAIRS * 2)
    other[10] = {**other[10], "y/1": [("c",)]}
    with pytest.raises(dg.Error, match="one of the examples 9 to 11 is another one"):
        begin(tmp_path / "c", data=other)


def lambdas(c: float) -> Callable[..., Any]:
    return lambda p: dnp.array([c * p, -p])


def captured(c: Any) -> Callable[..., Any]:
    return lambda p: p * c


ROWS_OF = {key: [row[:-1] for row in rows] for key, rows in START.items()}
E, Z = {"e/2": ROWS_OF["e/2"]}, {"z/1": ROWS_OF["z/1"]}


def features(f: Any) -> dict[str, Any]:
    """Of the emissions."""
    return {"method": "l-bfgs", "parameters": {"z": training.LogLinear(Z), "e": training.LogLinear(E, f)}}


def function(f: Any, start: Any = 0.5, logs: bool = True) -> dict[str, Any]:
    """Of the first choice."""
    made = training.Differentiable(Z, f, start, logs=logs)
    return {"method": "l-bfgs", "parameters": {"z": made, "e/2": START["e/2"]}}


def objective(f: Any) -> dict[str, Any]:
    return {"method": "l-bfgs", "objective": f}


def weighed(c: Any, p: Any) -> Any:
    return p * c


class Weighing:
    """A function that is an object, or a method of one; `plain` has no dict."""

    def __init__(self, c: Any) -> None:
        self.c = c

    def __call__(self, p: Any) -> Any:
        return p * self.c

    def method(self, p: Any) -> Any:
        return p * self.c


class Slotted(Weighing):
    __slots__ = ("other",)

    def __init__(self, c: Any) -> None:
        super().__init__(0.0)
        self.other = c

    def __call__(self, p: Any) -> Any:
        return p * self.other


class Attribute:
    factor: Any = 1.0

    def __call__(self, p: Any) -> Any:
        return p * self.factor


def attribute(c: Any) -> Any:
    return type("Attribute", (Attribute,), {"factor": c, "__module__": __name__})()


def reading(c: Any) -> Callable[..., Any]:
    """A function that reads a global, by way of another one."""
    given: dict[str, Any] = {"__name__": __name__, "factor": c}
    exec("def inner(p): return p * factor\ndef outer(p): return inner(p)", given)
    found: Callable[..., Any] = given["outer"]
    return found


def recursive(c: Any) -> Callable[..., Any]:
    def f(p: Any, n: int = 1) -> Any:
        return p * c if n else f(p)

    return f


FORMS: dict[str, Callable[[float], Any]] = {
    "partial": lambda c: partial(weighed, c),
    "partial by name": lambda c: partial(weighed, c=c),
    "object": Weighing,
    "object with slots": Slotted,
    "attribute of a class": attribute,
    "bound method": lambda c: Weighing(c).method,
    "partial of an object": lambda c: partial(Weighing.__call__, Weighing(c)),
    "tuple": lambda c: (lambda x: lambda p: p * x[0])((c,)),
    "list": lambda c: (lambda x: lambda p: p * x[1][0])([1, [c]]),
    "dict": lambda c: (lambda x: lambda p: p * x["c"])({"c": c}),
    "set": lambda c: (lambda x: lambda p: p * min(x))({c, 9.0}),
    "array of objects": lambda c: (lambda x: lambda p: p * x[0])(np.array([c, None], object)),
    "number of numpy": lambda c: captured(np.float32(c)),
    "fraction": lambda c: captured(Fraction(c)),
    "default": lambda c: lambda p, c=c: p * c,
    "global": reading,
    "within itself": recursive,
    "function in an object": lambda c: Weighing(captured(c)),
    "nothing captured beside it": lambda c: (lambda x, y: lambda p: (x, y, p))(*((c, None) if c == 1 else (None, 1.0))),
    "class within": lambda c: captured(type(attribute(c))),
}


@pytest.mark.parametrize("form", FORMS)
def test_functions_are_told_apart_by_all_that_they_read(form: str) -> None:
    make = FORMS[form]
    assert described(make(1.0)) == described(make(1.0)) != described(make(2.0))
    assert described({"rate": [make(1.0)]}) == described({"rate": [make(1.0)]}) != described({"rate": [make(2.0)]})


def test_an_objective_of_the_users_own_is_told_apart(tmp_path: Path) -> None:
    class Own(training.Likelihood):
        passes = 0

        def __init__(self, factor: float) -> None:
            object.__setattr__(self, "factor", factor)

        def totals(self, task: Any, examples: Any) -> Any:
            Own.passes += 1  # what the code sets itself is no setting
            return super().totals(task, examples)

    begin(tmp_path / "c", objective=Own(1.0))
    with pytest.raises(dg.Error, match="is of another run, whose objective differ"):
        begin(tmp_path / "c", objective=Own(2.0))
    assert len(begin(tmp_path / "c", objective=Own(1.0), iterations=3).history) == 3


def test_what_nobody_can_tell_apart_is_an_error(tmp_path: Path) -> None:
    lock = Lock()

    def rate(k: int) -> float:
        with lock:
            return 0.1

    with pytest.raises(dg.Error, match=r"cannot tell a lock from another one .*: leave it out, or give its class"):
        begin(tmp_path / "c", method="sgd", rate=rate)


ENTROPY, RISK = training.Entropy(), training.Risk("fixed/1")
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "program": ({}, {"text": TEXT + "aside += z(_)."}, "program"),
    "method": ({}, {"method": "annealing"}, "method"),
    "option": ({"method": "annealing"}, {"method": "annealing", "growth": 1.3}, "options"),
    "size": ({"method": "online-em"}, {"method": "online-em", "size": 4}, "options"),
    "seed": ({}, {"seed": 1}, "seed"),
    "prior": ({"prior": training.add_lambda(0.1)}, {"prior": training.add_lambda(0.2)}, "priors"),
    "no prior": ({"prior": training.add_lambda(0.1)}, {}, "priors"),
    "objective": (objective(ENTROPY), objective(training.Sum((1.0, ENTROPY))), "objective"),
    "factor": (objective(training.Sum((1.0, ENTROPY))), objective(training.Sum((1.5, ENTROPY))), "objective"),
    "fixed facts": ({}, {"facts": {"fixed/1": [(0, -0.1), (1, -0.25)]}}, "fixed facts"),
    "start": ({}, {"parameters": {**START, "z/1": [(0, 0.5), (1, 0.5)]}}, "start"),
    "rows": ({}, {"parameters": {**START, "z/1": [(0, 0.4), (2, 0.6)]}}, "parametrisations"),
    "held-out data": ({"dev": PAIRS[:2]}, {}, "held-out data"),
    "features": (features(None), features(lambda k, o: [k, o]), "parameters"),
    "a feature's value": (features(lambda k, o: {o: 1.0}), features(lambda k, o: {o: 2.0}), "parametrisations"),
    "a feature's name": (features(lambda k, o: [o]), features(lambda k, o: [o + o]), "parametrisations"),
    "a function": (function(lambdas(1.0)), function(lambdas(2.0)), "parametrisations"),
    "an array of a function": (
        function(captured(np.array([1.0, 2.0]))),
        function(captured(np.array([1.0, 2.5]))),
        "parametrisations",
    ),
    "parameters of another form": (
        function(lambda p: dnp.array([p["a"], 2.0 * p["b"]]), {"a": 0.5, "b": 0.25}),
        function(lambda p: dnp.array([p["a"], 2.0 * p["b"]]), {"b": 0.5, "a": 0.25}),
        "parametrisations",
    ),
    "losses": (objective(RISK), {**objective(RISK), "facts": {"fixed/1": [(0, -0.1), (1, -0.25)]}}, "losses"),
}


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
@pytest.mark.parametrize("kind", CHANGES)
def test_each_other_part_is_told_of(kind: str, tmp_path: Path) -> None:
    first, second, name = CHANGES[kind]
    begin(tmp_path / "c", **first)
    with pytest.raises(dg.Error, match=f"^the checkpoint .* is of another run, whose {name} differ"):
        begin(tmp_path / "c", **second)
    assert begin(tmp_path / "c", **first, iterations=3, threads=2).history  # and the same one goes on


OF_VALUES = ":- function f/1. goal += f(w(K)) * x(K)."
OUTSIDE = ":- external f/1. goal += w(K) * x(K) * f(K)."
FUNCTIONS: dict[str, tuple[str, Callable[[float], Any]]] = {
    "of values": (OF_VALUES, lambda c: {"f": lambda v: -c * v * v}),
    "compiled": (OF_VALUES, lambda c: {"f": dg.compile(lambda v: -c * v * v)}),
    "external": (OUTSIDE, lambda c: {"f/1": lambda k: c * (k + 1)}),
    "external, by name": (OUTSIDE, lambda c: {"f": lambda k: c * (k + 1)}),
    "of a clamped run": (OUTSIDE, lambda c: {"f": lambda k: c * (k + 1)}),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_functions_of_the_program_are_told_of(kind: str, tmp_path: Path) -> None:
    rules, make = FUNCTIONS[kind]

    def fit(c: float, iterations: int = 2) -> dg.training.Fit:
        semiring = None if rules == OF_VALUES else "real"
        program, more = dg.Program(rules, semiring, functions=make(c)), {}
        if kind == "of a clamped run":
            clamped = dg.Program(rules.replace("x(K)", "x(K) * x(K)"), semiring="real", functions=make(c))
            program = dg.Program(rules, semiring="real", functions=make(1.0))
            more["objective"] = training.Conditional(clamped=clamped)
        model = dg.Model(program, {"w": training.LogLinear({"w/1": [(0,), (1,)]})}, prior=training.L2(1.0), **more)
        data = [{"x/1": [(0, 0.5), (1, 1.0)]}]
        return model.fit(data, method="l-bfgs", iterations=iterations, tolerance=0.0, checkpoint=tmp_path / "c")

    fit(1.0)
    with pytest.raises(dg.Error, match="is of another run, whose functions differ"):
        fit(2.0)
    assert fit(1.0, 3).history


def test_weights_that_are_values_are_not_those_that_are_logs(tmp_path: Path) -> None:
    program = dg.Program("goal += w(K) * x(K).", semiring="real")

    def fit(logs: bool) -> dg.training.Fit:
        weights = training.Differentiable({"w/1": [(0,), (1,)]}, lambda p: dnp.array([p, p * p]), 0.5, logs=logs)
        model = dg.Model(program, {"w": weights}, prior=training.L2(1.0))
        return model.fit([{"x/1": [(0, 0.5), (1, 1.0)]}], method="l-bfgs", iterations=2, checkpoint=tmp_path / "c")

    fit(True)
    with pytest.raises(dg.Error, match="is of another run, whose parametrisations differ"):
        fit(False)
    assert fit(True).history


def test_what_a_module_has_beside_its_parameters_is_told_of(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Own(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, constant: float, buffer: float, scale: float) -> None:
            super().__init__()
            self.free = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
            self.constant = torch.nn.Parameter(torch.tensor(constant), requires_grad=False)
            self.register_buffer("held", torch.tensor(buffer))
            self.scale = scale

        def forward(self) -> Any:
            return self.free * self.constant * self.held * self.scale

    class Further(Own):
        def forward(self) -> Any:
            return super().forward() + 1.0

    program = dg.Program("goal += w(K) * x(K).", semiring="real")

    def fit(module: Any, logs: bool = True) -> dg.training.Fit:
        weights = training.Torch({"w/1": [(0,), (1,)]}, module, logs=logs)
        model = dg.Model(program, {"w": weights}, prior=training.L2(1.0))
        return model.fit([{"x/1": [(0, 0.5), (1, 1.0)]}], method="l-bfgs", iterations=2, checkpoint=tmp_path / "c")

    fit(Own(1.0, 1.0, 1.0))
    evaluated = Own(1.0, 1.0, 1.0).eval()
    others = (Own(2.0, 1.0, 1.0), Own(1.0, 2.0, 1.0), Own(1.0, 1.0, 2.0), Further(1.0, 1.0, 1.0), evaluated)
    for other, logs in (*((x, True) for x in others), (Own(1.0, 1.0, 1.0), False)):
        with pytest.raises(dg.Error, match="is of another run, whose parametrisations differ"):
            fit(other, logs)
    assert fit(Own(1.0, 1.0, 1.0)).history


def test_semiring_and_values_are_told_of(tmp_path: Path) -> None:
    rules = ":- distribution z(K). goal += z(K) * y(K)."
    rows, data = {"z/1": [(0, 0.4), (1, 0.6)]}, [{"y/1": [(0, 0.5), (1, 1.0)]}]

    def run(semiring: str, values: str = "weights") -> None:
        program = dg.Program(rules, semiring=semiring, values=values)
        dg.Model(program, rows).fit(data, method="l-bfgs", iterations=2, checkpoint=tmp_path / "c")

    run("log")
    for given, name in ((("real",), "semiring"), (("log", "probabilities"), "values")):
        with pytest.raises(dg.Error, match=f"whose {name} differ"):
            run(*given)
