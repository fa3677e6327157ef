"""Outlining: loop nests of unrolled code become shared functions; the same values, compiled in seconds."""

from __future__ import annotations

import functools
import re
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.compiler.specialised import graph_of
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import fresh
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.types import real
from dynagrad.passes.schedule import schedule

RNG = np.random.default_rng(12)
TEXT = "".join(RNG.choice(list("acgt"), size=200))
A, B = RNG.dirichlet(np.ones(12), size=12), RNG.dirichlet(np.ones(4), size=12)
NUMBER = {"a": 0, "c": 1, "g": 2, "t": 3}


def forward(start: Any) -> Any:
    """The forward algorithm of a hidden Markov model."""
    alpha, found = start / np.sum(start), 0.0
    for letter in TEXT:
        alpha = (alpha @ A) * B[:, NUMBER[letter]]
        total = np.sum(alpha)
        found = found + np.log(total)
        alpha = alpha / total
    return found


def waves(x: Any) -> Any:
    """Elementwise operations alone, of which many share a loop."""
    y = x
    for letter in TEXT:
        if letter in "ac":
            y = np.tanh(0.7 * y + x) if letter == "a" else y * x - 0.5
        else:
            y = np.where(y > 0.1, np.sin(y), y * y) if letter == "g" else np.exp(-y * y)
    return np.sum(y)


def mixed(x: Any) -> Any:
    """Maxima, whole numbers, truth values, places that are written to, and numbers between arrays."""
    y, count, seen = x, 0, x > 0.0
    for letter in TEXT[:100]:
        if letter == "a":
            y = y * np.max(y) - np.min(x)
            y = y / (1.0 + np.sum(y * y))
        elif letter == "c":
            seen = seen | (y > 0.3)
            count = count + np.argmax(y)
        elif letter == "g":
            y = np.concatenate([y[3:], y[:3]]) + 0.1
        else:
            z = np.zeros(12)
            z[2:5] = y[1] * x[2:5]
            y = y * 0.9 + z
    return np.sum(y) + np.sum(np.where(seen, x, 0.0)) + 0.25 * count


def letters(x: Any) -> Any:
    """Numbers alone."""
    s = 0.1
    for letter in TEXT * 2:
        s = s + np.sin(x) * s if letter == "a" else s * x - 0.5
        x = x * 0.999
    return s


FUNCTIONS = {f.__name__: f for f in (forward, waves, mixed)}
START = RNG.uniform(0.2, 1.0, size=12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_python(name: str) -> None:
    both = dg.value_and_grad(FUNCTIONS[name])
    value, gradient = dg.compile(both)(START)
    wanted, slope = interpret(graph_of(both, START), [START])  # operation by operation
    np.testing.assert_allclose(value, FUNCTIONS[name](START), rtol=1e-10)
    np.testing.assert_allclose(value, wanted, rtol=1e-10)
    np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-10 * np.max(np.abs(slope)))


@functools.cache
def of_forward() -> str:
    return dg.cpp(forward, START)


def test_rounds_that_are_alike_are_one_function() -> None:
    source = of_forward()
    assert 4 <= source.count("void loop") <= 16 and source.count(" loop") + source.count("\tloop") >= len(TEXT)
    assert dg.cpp(waves, START).count("void loop") < len(TEXT) // 2


def test_nests_that_write_to_places_are_functions_too() -> None:
    def written(x: Any) -> Any:
        y = x
        for letter in TEXT:
            z = np.zeros(12)
            z[2:9] = y[1:8] * x[3:10]
            y = y * 0.5 + z if letter in "ac" else np.concatenate([y[3:], y[:3]]) * 0.9
        return np.sum(y)

    assert dg.cpp(written, START).count("for (") < 20
    np.testing.assert_allclose(dg.compile(written)(START), written(START), rtol=1e-12)


def test_what_is_short_stays_in_one_piece() -> None:
    def short(x: Any) -> Any:
        for letter in TEXT[:10]:
            x = (x @ A) * B[:, NUMBER[letter]]
        return np.sum(x)

    assert "void loop" not in dg.cpp(dg.grad(short), START)


def test_names_make_no_difference_and_numbers_are_passed_by_reference() -> None:
    source = of_forward()
    heads = re.findall(r"void loop\d+\((.*)\) \{", source)
    parameter = re.compile(r"(auto|double|int64_t|bool) const given\d+|(double|int64_t|bool)& result\d+")
    assert heads and all(parameter.fullmatch(p) for head in heads for p in head.split(", "))
    assert any("double& result0" in head for head in heads)
    calls = re.findall(r"(loop\d+)\((.*)\);", source)
    most = max(Counter(name for name, _ in calls).values())  # of one function, with other arguments each time
    assert most >= len(TEXT) // 8 and len({given for name, given in calls}) > most


def picked(x: Any, places: Any) -> Any:
    """Elements at places that are known only as it runs, each read in a loop."""
    y = x
    for letter in TEXT:
        y = y / np.sum(y) + x[places[NUMBER[letter] % 2]]
    return np.sum(y)


def test_what_leaves_the_function_stays_in_it() -> None:
    f = dg.compile(picked)
    assert "void loop" in dg.cpp(picked, START, np.array([1, 2]))
    np.testing.assert_allclose(f(START, np.array([1, 2])), picked(START, np.array([1, 2])), rtol=1e-12)
    with pytest.raises(IndexError, match="99"):
        f(START, np.array([1, 99]))


def test_numbers_are_scheduled_in_time_that_grows_with_them() -> None:
    x = fresh(real)
    y = x
    for _ in range(4_000):
        y = ops.sin(y) * x
    start = time.perf_counter()
    assert len(schedule(Graph((x,), (y,))).steps) == 8_000
    assert time.perf_counter() - start < 20.0  # it takes a few tenths of a second


def test_thousands_of_letters_compile_in_seconds() -> None:
    start = time.perf_counter()
    found = dg.compile(dg.grad(letters))(0.3)
    assert np.isclose(found, dg.grad(letters)(0.3), rtol=1e-9)
    assert time.perf_counter() - start < 60.0
