"""Fuzzes the public functions with valid and invalid arguments: each call succeeds or raises a `dg.Error`.

A call is drawn from the public functions and classes, and from the methods of a small world of programs, charts,
tables, gradients, batches and functions; its result joins that world. Parameters get values that fit their names, or
anything at all. The same seed makes the same calls.
"""

from __future__ import annotations

import atexit
import inspect
import math
import random
import shutil
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training
from dynagrad.training import methods

TEXTS = {
    "log": "path(V) += start(V). path(V) += path(U) * edge(U,V). goal += path(V) * end(V).",
    "tropical": "path(V) += start(V). path(V) += path(U) * edge(U,V). goal += path(V) * end(V).",
    None: "goal += x(I) * w(I,J) * x(J) + exp(x(I)) for I < J. :- output goal. rest += x(_).",
    "boolean": "reach(X) :- start(X). reach(Y) :- reach(X), edge(X,Y). goal += reach(X) * end(X).",
    "expectation": "goal += start(X) * end(X).",
    "real": ":- distribution edge(U,V) given U. goal += start(U) * edge(U,V) * end(V).",
}
NODES = ("a", "b", "c", 1, [1, "a"], dg.Term("f", "a"))
ITEMS = (
    "goal",
    "path(a)",
    "path(X)",
    "edge(a,b)",
    "edge(U,V)",
    "x(0)",
    "x(I)",
    "reach(a)",
    "start(_)",
    "rest",
    "w(0,1)",
)
KEYS = ("edge/2", "start/1", "end/1", "x/1", "w/2", "path/1", "goal/0", "reach/1", "nothing/3")


def measure(x: Any) -> int:
    """Like `len`, with a frame of its own, so that what it raises is seen to be its own."""
    return len(x)


class Broken:
    """An object of nobody's."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


ANYTHING: tuple[Callable[[random.Random], Any], ...] = (
    lambda r: None,
    lambda r: r.choice([True, False]),
    lambda r: r.choice([0, 1, -1, 7, 2**31, -(2**63), 10**40]),
    lambda r: r.choice([0.0, 0.5, -1.5, math.inf, -math.inf, math.nan, 1e308, 5e-324]),
    lambda r: r.choice(["", "goal", "path(", "sum", "log", "ü", "a\0b", "x" * 300, "\ud800", "1", "for", "/2", "a/b"]),
    lambda r: r.choice([b"", b"goal", 3j, Ellipsis, NotImplemented, object(), Broken(), type, measure, math]),
    lambda r: r.choice(
        [Decimal("0.5"), Fraction(1, 2), range(3), slice(1), frozenset("a"), {1: 2}, {"a"}, Path("x.tsv")]
    ),
    lambda r: [anything(r) for _ in range(r.randrange(3))],
    lambda r: tuple(anything(r) for _ in range(r.randrange(3))),
    lambda r: {str(k): anything(r) for k in range(r.randrange(2))},
    lambda r: (x for x in [1, 2]),
    lambda r: r.choice(
        [np.zeros(0), np.zeros((2, 3)), np.array(["a"]), np.array([None]), np.array(1.5), np.array([1j])]
    ),
    lambda r: r.choice([np.float32(0.5), np.int8(3), np.bool_(True), np.datetime64("2020-01-01"), np.str_("a")]),
    lambda r: r.choice([np.ma.masked_array([1.0, 2.0], [True, False]), np.matrix([[1.0]]), np.zeros(2, "f4,i4")]),
    lambda r: r.choice([dg.Term("f", "a", 1), dg.Term("g", dg.Term("h", 2.5)), dg.Program, dg.Error("x")]),
)


def anything(r: random.Random) -> Any:
    return r.choice(ANYTHING)(r)


def rows(r: random.Random, arity: int) -> Any:
    """Facts that may fit a predicate."""
    count = r.randrange(5)
    match r.randrange(7):
        case 0:
            return np.array([r.random() for _ in range(3**arity)]).reshape((3,) * arity)
        case 1:
            return {tuple(r.choice("abc") for _ in range(arity)): r.random() for _ in range(count)}
        case 2:
            return np.array([[r.randrange(4) for _ in range(arity)] for _ in range(3)]).reshape(3, arity), np.ones(3)
        case 3:
            return [tuple(r.choice(NODES) for _ in range(arity)) for _ in range(count)]
        case 4:
            return r.random() if arity == 0 else [(*[r.choice("abc") for _ in range(arity)], (r.random(), r.random()))]
        case 5:
            return [
                [r.choice("ab") for _ in range(arity)] + [r.choice([0.5, "x", None, math.nan])] for _ in range(count)
            ]
        case _:
            return [(*(r.choice("abc") for _ in range(arity)), r.random()) for _ in range(count)]


def facts(r: random.Random) -> Any:
    """Facts for all inputs of the programs, most of which fit."""
    given: dict[str, Any] = {
        "edge/2": [(*r.sample("abc", 2), 0.5 * r.random()) for _ in range(r.randrange(5))],
        "start/1": [("a", r.random())],
        "end/1": {(x,): r.random() for x in "bc"},
        "x/1": np.array([r.random() for _ in range(r.randrange(1, 4))]),
        "w/2": np.ones((3, 3)),
    }
    kept = {key: rows for key, rows in given.items() if r.random() < 0.9}
    if r.random() < 0.3:
        key = r.choice(KEYS)
        kept[key] = rows(r, int(key[-1])) if r.random() < 0.8 else anything(r)
    return kept


def numbers(r: random.Random) -> Any:
    return r.choice([np.ones(3), np.full(3, 0.5), [1.0, 2.0, 3.0], np.zeros((3, 3)), [0.5], 2.0])


# Functions of users, which take what they are given: where they raise something, it is theirs.
def square(x: Any) -> Any:
    return x * x


def total(x: Any) -> Any:
    return np.sum(np.sin(x))


def halved(x: Any) -> Any:
    return 0.5 * x + 1.0


def rows_and_sum(x: Any) -> Any:
    y = np.cumsum(x)
    return y, np.sum(y)


def product(x: Any, y: Any = 2.0) -> Any:
    return np.sum(x * y)


FUNCTIONS = (square, total, halved, rows_and_sum, product)
STRANGERS = {"<lambda>", "__repr__", "measure", *(f.__name__ for f in FUNCTIONS)}


class Pair:
    """A class that derivatives can be told of."""

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


# Training: models, data, and files in a folder of their own.
FOLDER = Path(tempfile.mkdtemp(prefix="dynagrad-fuzz-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def edges(r: random.Random) -> Any:
    return [(u, v, r.choice([0.5, 1.0, 0.0, r.random()])) for u in "ab" for v in "abc" if r.random() < 0.8]


def parameters(r: random.Random) -> Any:
    """What a model learns, which mostly fits the program that declares a distribution."""
    match r.randrange(6):
        case 0:
            features = r.choice([None, lambda u, v: [u, v], lambda u, v: {u: 1.0, (v, 1): 0.5}])
            return {"edge": training.LogLinear({"edge/2": edges(r)}, features, given=r.choice([None, 0]))}
        case 1:
            return {"edge": training.Distribution({"edge/2": edges(r)}, given=0, initial="random")}
        case 2:
            return {r.choice(KEYS): rows(r, 2)}
        case _:
            return {"edge/2": edges(r)}


def data(r: random.Random) -> Any:
    found = []
    for _ in range(r.randrange(4)):
        one: Any = {"start/1": [(r.choice("ab"), r.random())], "end/1": [(r.choice("abc"),)]}
        one = training.Example(one, weight=r.choice([1.0, 2.0, 0.0, -1.0])) if r.random() < 0.3 else one
        found.append(anything(r) if r.random() < 0.05 else one)
    return found


def prior(r: random.Random) -> Any:
    kinds: list[Any] = [None, None, training.L1(0.1), training.L2(0.1), training.Gaussian(1.0, {"u": 0.5})]
    kinds += [training.Dirichlet(0.5), training.Dirichlet(lambda u, v: 1.5), training.add_lambda(0.1)]
    return r.choice(kinds)


def file(r: random.Random) -> Any:
    odd = ["", "a\0b", 3, None, b"x", FOLDER, FOLDER / "no" / "file", FOLDER / ("x" * 300)]
    names = ["a", "b", "c", "a.csv", "b.arrow"]
    return r.choice(odd) if r.random() < 0.2 else FOLDER / r.choice(names)


def function(r: random.Random) -> Any:
    return r.choice(FUNCTIONS)


# What fits a parameter, by its name, or by that of its function and its own.
FITTING: dict[str, Callable[[random.Random], Any]] = {
    "facts": facts,
    "numbers": lambda r: {r.choice(KEYS): numbers(r)},
    "examples": lambda r: [facts(r) for _ in range(r.randrange(4))],
    "item": lambda r: r.choice([r.choice(ITEMS), ("edge", "a", "b"), {"goal": 1.0, "path(a)": 0.5}]),
    "goal": lambda r: r.choice([r.choice(ITEMS), [r.choice(ITEMS)]]),
    "pattern": lambda r: r.choice(ITEMS),
    "query": lambda r: r.choice(ITEMS),
    "until": lambda r: r.choice(ITEMS),
    "key": lambda r: r.choice(KEYS),
    "rows": lambda r: rows(r, r.randrange(3)),
    "inputs": lambda r: r.sample(KEYS, r.randrange(1, 3)),
    "gradient": lambda r: r.choice([r.choice(KEYS), r.sample(KEYS, 2)]),
    "direction": lambda r: {r.choice(KEYS): numbers(r)},
    "directions": lambda r: [[numbers(r)] for _ in range(r.randrange(3))],
    "primals": lambda r: [numbers(r)],
    "tangents": lambda r: [numbers(r)],
    "arrays": numbers,
    "arguments": lambda r: r.choice([("a",), ("a", "b"), "a", 0, (0,), (0, 1)]),
    "cotangent": lambda r: r.choice([1.0, numbers(r)]),
    "cotangents": lambda r: [1.0] * r.randrange(4),
    "objective": lambda r: r.choice(["sum", "log"]),
    "values": lambda r: r.choice(["weights", "probabilities"]),
    "threads": lambda r: r.choice([1, 2]),
    "progress": lambda r: False,
    "max_pops": lambda r: r.choice([None, 0, 1, 5, 1000]),
    "max_items": lambda r: r.choice([None, 0, 3, 10**9]),
    "max_bytes": lambda r: r.choice([None, 0, 10**9]),
    "timeout": lambda r: r.choice([None, 0, 0.5, 10.0]),
    "tolerance": lambda r: r.choice([None, 0.0, 1e-6]),
    "semiring": lambda r: r.choice(["real", "log", None]),
    "name": lambda r: r.choice(["goal", "edge"]),
    "functions": lambda r: {},
    "source": lambda r: r.choice(list(TEXTS.values())),
    "f": function,
    "function": function,
    "step": function,
    "jvp": lambda r: lambda primals, tangents: (primals[0], tangents[0]),
    "vjp": lambda r: lambda *primals: (primals[0], lambda cotangent: (cotangent,)),
    "check_derivatives.args": numbers,
    "cpp.arguments": numbers,
    "graph.arguments": numbers,
    "vjp.primals": numbers,
    "modes": lambda r: r.choice([("forward",), ("reverse",), ("forward", "reverse")]),
    "order": lambda r: r.choice([1, 2]),
    "n": lambda r: r.choice([1, 2, 5]),
    "snapshots": lambda r: r.choice([None, 1, 3]),
    "max_steps": lambda r: r.choice([0, 1, 50]),
    "state": numbers,
    "x0": numbers,
    "x": numbers,
    "register.cls": lambda r: type("Own", (Pair,), {}),
    "flatten": lambda r: lambda p: (p.x, p.y),
    "unflatten": lambda r: lambda p, parts: Pair(*parts),
    "omega": lambda r: lambda y: y,
    "functor": lambda r: "f",
    "zero": lambda r: 0.0,
    "one": lambda r: 1.0,
    "plus": lambda r: lambda a, b: a + b,
    "times": lambda r: lambda a, b: a * b,
    "argnums": lambda r: 0,
    "c": lambda r: 2.0,
    "a": numbers,
    "b": numbers,
    "parameters": parameters,
    "program": lambda r: r.choice([TEXTS["real"], ":- semiring log. " + TEXTS["real"], *TEXTS.values()]),
    "data": data,
    "dev": lambda r: r.choice([None, data(r)]),
    "prior": prior,
    "Model.objective": lambda r: r.choice(
        [None, training.Likelihood(), training.Conditional("end(a)"), training.Risk("start/1")]
    ),
    "load_model.objective": lambda r: None,
    "parametrisations": lambda r: r.choice([None, {}, {"edge": 3}]),
    "Model.goal": lambda r: "goal",
    "method": lambda r: r.choice(list(methods.METHODS)),
    "fit.iterations": lambda r: r.choice([1, 2, 3, 0, -1, "x", None]),
    "fit.tolerance": lambda r: r.choice([0.0, 1e-6]),
    "patience": lambda r: r.choice([None, 1, 2]),
    "warm": lambda r: r.choice([True, False]),
    "missing": lambda r: r.choice(["warn", "skip", "error"]),
    "executor": lambda r: None,
    "callback": lambda r: r.choice([None, lambda record: None, lambda record: False]),
    "log": file,
    "fit.checkpoint": file,
    "folder": file,
    "to_csv.path": file,
    "width": lambda r: r.choice([2, 30]),
    "height": lambda r: r.choice([2, 10]),
}
STEPS = {"checkpoint.n", "fixed_point.max_steps", "derivative.n", "fit.iterations"}
"""How often a user's function is called: 10**40 times, or without an end, would be what was asked for."""
FILES = {"fit.log", "fit.checkpoint", "save.folder", "load_model.folder", "to_csv.path"}
"""What is written and read, nowhere but in a folder of the fuzzer's."""
HELD = 12  # of each type, so many live at once
CALLED = tuple(
    name
    for name, thing in ((name, getattr(dg, name)) for name in dg.__all__)
    if inspect.isfunction(thing) or (inspect.isclass(thing) and not issubclass(thing, BaseException))
)
ALWAYS = ("__getitem__", "__contains__", "__call__", "__len__", "__iter__", "__repr__", "__bool__", "__eq__")


class World:
    """What random calls are made on, and what they gave."""

    def __init__(self, seed: int, semirings: Iterable[str | None]) -> None:
        self.random = random.Random(seed)
        self.calls: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.programs = [dg.Program(text, semiring) for semiring, text in TEXTS.items() if semiring in semirings]
        self.live: dict[type, list[Any]] = {}
        for program in self.programs:
            self.keep(program)
        if "real" in semirings:
            self.keep(dg.Model(TEXTS["real"], {"edge/2": [(u, v, 0.5) for u in "ab" for v in "abc"]}))

    def keep(self, thing: Any) -> None:
        kind = type(thing)
        if kind.__module__.startswith("dynagrad") and not issubclass(kind, BaseException):
            held = self.live.setdefault(kind, [])
            held.append(thing)
            if len(held) > HELD:
                held.pop(self.random.randrange(HELD))

    def argument(self, name: str, of: str = "") -> Any:
        r = self.random
        fitting = FITTING.get(f"{of}.{name}") or FITTING.get(name)
        if fitting is None:
            return anything(r)
        fits = fitting(r)
        given = anything(r) if r.random() < 0.12 and f"{of}.{name}" not in STEPS | FILES else fits
        return (
            fits if callable(fits) and callable(given) else given
        )  # of what a stranger's function raises we know nothing

    def drawn(self, f: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
        """Arguments for a call."""
        r = self.random
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for p in inspect.signature(f).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                count = (
                    1 if positional and any(positional[0] is g for g in FUNCTIONS) else r.choice([0, 1, 1, 1, 2, 2, 3])
                )
                positional += [self.argument(p.name, f.__name__) for _ in range(count)]
            elif p.default is p.empty and p.kind is not p.VAR_KEYWORD:
                positional.append(self.argument(p.name, f.__name__))
            elif p.kind is p.KEYWORD_ONLY or p.kind is p.POSITIONAL_OR_KEYWORD:
                if r.random() < 0.3 or f"{f.__name__}.{p.name}" in STEPS:
                    named[p.name] = self.argument(p.name, f.__name__)
        if r.random() < 0.03 and hasattr(f, "__wrapped__") and not f.__name__.startswith("__"):
            named[r.choice(["querry", "max_pop", "ünder"])] = anything(r)
        return positional, named

    def step(self) -> None:
        r = self.random
        if r.random() < 0.1:
            self.make()
            return
        kind = r.choice(list(self.live))
        thing = r.choice(self.live[kind])
        public = [n for n in dir(kind) if not n.startswith("_") and not _pythons(kind, n)]
        names = [*public * 3, *(n for n in ALWAYS if any(n in vars(k) for k in kind.__mro__))]
        name = r.choice(names)
        member = inspect.getattr_static(kind, name, None)
        text = f"{kind.__name__}.{name}"
        self.calls[kind.__name__] += 1
        if inspect.isfunction(member):
            self.call(f"{text} of {_text(thing)}", getattr(thing, name))
        else:
            self.call(f"{text} of {_text(thing)}", lambda: getattr(thing, name), [])

    def make(self) -> None:
        """A call of a function of the package, and of what it gives where that is a function."""
        name = self.random.choice(CALLED)
        self.calls[f"dg.{name}"] += 1
        found = self.call(f"dg.{name}", getattr(dg, name))
        if inspect.isfunction(getattr(dg, name)) and callable(found):
            self.call(f"what dg.{name} gave", found, [np.atleast_1d(numbers(self.random))])

    def call(self, text: str, f: Callable[..., Any], positional: list[Any] | None = None) -> Any:
        """One call; what it gave."""
        r, found = self.random, None
        named: dict[str, Any] = {}
        if positional is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of numpy, about what is drawn
                positional, named = self.drawn(f)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", dg.ProgramWarning)
                warnings.simplefilter("ignore", DeprecationWarning)  # of names of before
                found = f(*positional, **named)
        except dg.Error as error:
            self.ended[type(error).__name__] += 1
            assert str(error).strip()
        except Exception as error:
            if any(
                frame.name in STRANGERS and frame.filename == __file__
                for frame in traceback.extract_tb(error.__traceback__)
            ):
                self.ended["theirs"] += 1
                return None
            shown = [f"{type(x).__name__}: {_text(x)}" for x in (*positional, *named.items())]
            self.wrong.append(f"{text}({', '.join(shown)})\n{traceback.format_exc(limit=-4)}")
        else:
            self.ended["fine"] += 1
            self.keep(found)
            if isinstance(found, tuple) and len(found) == 2 and callable(found[1]) and r.random() < 0.5:
                self.pull(found[1])
        return found

    def pull(self, pullback: Callable[[Any], Any]) -> None:
        """The function that `vjp` gives."""
        given = self.argument("cotangent")
        try:
            pullback(given)
        except dg.Error:
            pass
        except Exception:
            self.wrong.append(f"pullback({_text(given)})\n{traceback.format_exc(limit=-4)}")


def _pythons(kind: type, name: str) -> bool:
    """Whether a method is one that Python gives all sequences and mappings."""
    owner = next(k for k in kind.__mro__ if name in vars(k))
    return owner.__module__ in ("collections.abc", "typing")


def _text(x: Any) -> str:
    try:
        return repr(x)[:200]
    except Exception:
        return "?"


def run(calls: int, seed: int, semirings: Iterable[str | None] = tuple(TEXTS)) -> World:
    world = World(seed, tuple(semirings))
    for _ in range(calls):
        world.step()
    return world


def check(number: int) -> str:
    """What is wrong with two hundred calls in a world of their own."""
    semirings = tuple(TEXTS)
    world = run(200, number, (semirings[number % len(semirings)],))
    if world.ended["fine"] < 20:
        return f"it got nowhere: {dict(world.ended)}"
    return "\n".join(world.wrong[:3])
