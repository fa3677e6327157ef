"""Latency of first calls: the first value and gradient of new programs and functions; and calls with containers.

Machines differ threefold, so first values of programs are compared with the time that g++ takes to compile a
hand-written parser, and first calls of functions with jax compiling the same function.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import subprocess
import tempfile
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

from .common import BASELINES, BUILD, Row, Skip, alternate, python, timed

YARDSTICK = "inside_outside.cpp"

# Seconds of a new program to its first value, of that to its first gradient; the compiler is warm.
FIRST = """
import time
import dynagrad as dg
text, semiring, facts = {program}
start = time.perf_counter()
chart = dg.Program(text, semiring).run(facts)
value = time.perf_counter()
chart.gradient("goal")
print(value - start, time.perf_counter() - value)
"""
PARSING = """
constit(X,I,K) += rewrite(X,W) * {word}(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit("TOP",0,N) * end(N).
"""
PATHS = """
path(X) += start(X).
path(Y) += path(X) * {word}(X,Y).
goal += path(X) * stop(X).
"""


def parsing(word: str) -> tuple[str, str, dict[str, Any]]:
    """A program of three rules with its facts, of which a predicate is named by a word that makes it new."""
    facts = {
        "rewrite/3": [("TOP", "np", "vp", 0.0), ("vp", "v", "np", 0.0)],
        "rewrite/2": [("np", "Mary", -0.5), ("np", "John", -0.5), ("v", "likes", 0.0)],
        "end/1": [(3,)],
        f"{word}/3": [("Mary", 0, 1), ("likes", 1, 2), ("John", 2, 3)],
    }
    return PARSING.format(word=word), "log", facts


def paths(word: str) -> tuple[str, str, dict[str, Any]]:
    """The same around a cycle, which is solved."""
    facts = {
        "start/1": [("a", 1.0), ("b", 0.5)],
        f"{word}/2": [("a", "b", 0.3), ("b", "a", 0.3)],
        "stop/1": [("a", 1.0), ("b", 1.0)],
    }
    return PATHS.format(word=word), "real", facts


def first_value(folder: str, program: tuple[str, str, dict[str, Any]]) -> list[float]:
    """Seconds to the first value, and from there to the first gradient, in a cache folder."""
    return python(FIRST.format(program=program), folder)


def yardstick() -> float:
    """The seconds that g++ takes to compile the hand-written parser."""
    source, gcc = BASELINES / YARDSTICK, shutil.which("g++")
    if gcc is None or not source.exists():
        raise Skip(
            f"there is no g++, or no {YARDSTICK} in the folder of baselines; DYNAGRAD_BASELINES names another one"
        )
    BUILD.mkdir(exist_ok=True)
    command = [gcc, "-O3", "-march=native", "-std=c++20", str(source), "-o", str(BUILD / "yardstick")]
    return timed(lambda: subprocess.run(command, check=True))


def programs() -> list[Row]:
    """Programs of three rules: first value, first gradient, first value on a new machine and from the cache."""
    words = iter(f"word{n}" for n in range(1000))
    with tempfile.TemporaryDirectory() as folder:
        gradients: dict[Any, list[float]] = {parsing: [], paths: []}

        def anew(kind: Callable[[str], Any]) -> float:
            value, gradient = first_value(folder, kind(next(words)))
            gradients[kind].append(gradient)
            return value

        def cold() -> float:
            with tempfile.TemporaryDirectory() as empty:
                return first_value(empty, parsing("word"))[0]

        known = parsing(next(words))
        for program in (known, paths(next(words))):  # makes what all have in common
            first_value(folder, program)
        y, value, solved, fresh, cached = alternate(
            yardstick,
            lambda: anew(parsing),
            lambda: anew(paths),
            cold,
            lambda: first_value(folder, known)[0],
            repeats=5,
        )
    peer, what, around = f"g++ of {YARDSTICK}", "three rules, ", "three rules around a cycle, "
    return [
        Row(what + "first value", value, peer=peer, peers=y, target=0.06),
        Row(what + "first gradient after the first value", min(gradients[parsing]), peer=peer, peers=y, target=0.08),
        Row(what + "first value, nothing compiled before", fresh, peer=peer, peers=y, target=0.4),
        Row(what + "first value, from the cache", cached, peer=peer, peers=y, target=0.003),
        Row(around + "first value", solved, peer=peer, peers=y),
        Row(around + "first gradient after the first value", min(gradients[paths]), peer=peer, peers=y),
    ]


# -- functions ---------------------------------------------------------------------------------------------------------


def unrolled(terms: int) -> str:
    """A function with so many unrolled lines."""
    lines = [f"    s = s + np.sin(x[{i % 7}] * {0.1 * i + 0.3}) * x[{i * 3 % 7}]" for i in range(terms)]
    return "\n".join(["def f(x):", "    s = 0.0", *lines, "    return s"])


def determinant(a: Any) -> Any:
    if len(a) == 1:
        return a[0][0]
    total = 0.0
    for j in range(len(a)):
        minor = [row[:j] + row[j + 1 :] for row in a[1:]]
        total = total + (-1) ** j * a[0][j] * determinant(minor)
    return total


def cholesky(a: Any) -> Any:
    n = a.shape[0]
    c = np.zeros((n, n))
    for j in range(n):
        c[j, j] = np.sqrt(a[j, j] - np.dot(c[j, :j], c[j, :j]))
        c[j + 1 :, j] = (a[j + 1 :, j] - c[j + 1 :, :j] @ c[j, :j]) / c[j, j]
    return np.sum(np.log(np.diag(c)))


def convolution(x: Any, k: Any) -> Any:
    out = 0.0
    for i in range(x.shape[0] - k.shape[0] + 1):
        for j in range(x.shape[1] - k.shape[1] + 1):
            s = 0.0
            for a in range(k.shape[0]):
                for b in range(k.shape[1]):
                    s = s + x[i + a, j + b] * k[a, b]
            out = out + np.tanh(s)
    return out


def fourier(re: Any, im: Any) -> Any:
    n = len(re)
    if n == 1:
        return re, im
    er, ei = fourier(re[::2], im[::2])
    odd_r, odd_i = fourier(re[1::2], im[1::2])
    k = np.arange(n // 2)
    c, s = np.cos(-2 * np.pi * k / n), np.sin(-2 * np.pi * k / n)
    tr, ti = c * odd_r - s * odd_i, c * odd_i + s * odd_r
    return np.concatenate([er + tr, er - tr]), np.concatenate([ei + ti, ei - ti])


def spectrum(x: Any) -> Any:
    re, im = fourier(x, np.zeros(x.shape[0]))
    return np.sum(np.log(1 + re * re + im * im))


THREE_LINES = """
def f(x):
    y = x * x + {number}
    z = np.sin(y) * x
    return np.sum(z)
"""


@contextmanager
def cache_of_its_own() -> Iterator[None]:
    """Nothing that an earlier run compiled is found in it, and nothing stays."""
    before = os.environ.get("DYNAGRAD_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DYNAGRAD_CACHE"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["DYNAGRAD_CACHE"]
            else:
                os.environ["DYNAGRAD_CACHE"] = before


def module(folder: str, text: str, library: str = "numpy") -> Any:
    """The function `f` of a new module with this source."""
    name = f"first_{random.randrange(10**12)}"
    path = Path(folder) / f"{name}.py"
    path.write_text(f"import {library} as np\n{text}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found.f


def small() -> list[Row]:
    """A function of three lines and its gradient, beside jax."""
    try:
        import jax
    except ImportError:
        raise Skip("jax is not installed") from None
    jax.config.update("jax_enable_x64", True)
    x = np.linspace(0.0, 1.0, 10)
    with tempfile.TemporaryDirectory() as folder, cache_of_its_own():

        def own(verb: Callable[[Any], Any]) -> float:
            compiled = dg.compile(verb(module(folder, THREE_LINES.format(number=random.random()))))
            return timed(lambda: compiled(x))

        def peers(verb: Callable[[Any], Any]) -> float:
            compiled = jax.jit(verb(module(folder, THREE_LINES.format(number=random.random()), "jax.numpy")))
            return timed(lambda: compiled(x).block_until_ready())

        value = alternate(lambda: own(lambda f: f), lambda: peers(lambda f: f), repeats=7)
        gradient = alternate(lambda: own(dg.grad), lambda: peers(jax.grad), repeats=7)
    return [
        Row("three lines, first call", value[0], peer="jax.jit", peers=value[1], target=2.0),
        Row("three lines, first call of the gradient", gradient[0], peer="jax.jit", peers=gradient[1], target=2.0),
    ]


def large() -> list[Row]:
    """First gradients of large code. Targets are a third of the times before outlining."""
    random_ = np.random.default_rng(0)
    a = random_.random((30, 30))
    cases: list[tuple[str, Any, tuple[Any, ...], float]] = [
        ("a recursive determinant of 5", determinant, (random_.random((5, 5)).tolist(),), 1.7),
        ("Cholesky by slices, 30", cholesky, (a @ a.T + np.eye(30),), 2.5),
        ("convolution loops, 12 by 12", convolution, (random_.random((12, 12)), np.ones((3, 3))), 1.7),
        ("a recursive FFT of 256", spectrum, (random_.random(256),), 8.7),
    ]

    def first(function: Any, *arguments: Any) -> float:
        compiled = dg.compile(dg.grad(function))
        return timed(lambda: compiled(*arguments))

    with tempfile.TemporaryDirectory() as folder, cache_of_its_own():
        first(module(folder, unrolled(3)), random_.random(7))
        first(module(folder, unrolled(30)), random_.random(7))
        short = first(module(folder, unrolled(300)), random_.random(7))
        long = first(module(folder, unrolled(3000)), random_.random(7))
        others = [(name, first(function, *given), target) for name, function, given, target in cases]
    what = "first gradient of "
    return [
        Row(what + "300 unrolled terms", short, target=1.3),
        Row(what + "3,000 unrolled terms", long, peer="of 300", peers=short, target=12.0),
        *(Row(what + name, seconds, target=target) for name, seconds, target in others),
    ]


# -- calls -------------------------------------------------------------------------------------------------------------


def containers() -> list[Row]:
    """A call of a gradient by ten arrays in containers, beside one by one array."""
    x = np.ones(3)

    def ten(p: Any) -> Any:
        first = p["w"][0] * p["w"][1] + p["b"][0] * p["b"][1] + p["c"]["d"][0] * p["c"]["d"][1]
        return np.sum(first + p["e"][0] * p["e"][1] + p["f"] * p["g"])

    one, several = dg.compile(dg.grad(lambda a: np.sum(a * a))), dg.compile(dg.grad(ten))
    nested = {"w": [x, x], "b": (x, x), "c": {"d": [x, x]}, "e": [x, x], "f": x, "g": x}
    one(x), several(nested)

    def call(work: Callable[[], object]) -> float:
        return timeit.timeit(work, number=5000) / 5000

    figures = alternate(lambda: call(lambda: several(nested)), lambda: call(lambda: one(x)), repeats=9)
    return [
        Row(
            "gradient of ten arrays in containers, a call",
            figures[0],
            peer="of one array",
            peers=figures[1],
            target=8.0,
        )
    ]


def first_calls() -> list[Row]:
    """All benchmarks of this file."""
    rows: list[Row] = []
    for part in (programs, small, large, containers):
        try:
            rows += part()
        except Skip as reason:
            rows.append(Row(f"first calls: {part.__name__}", note=str(reason)))
    return rows
