"""Programs of rules call DVL, and DVL calls programs of rules; Python calls DVL and is called. Costs ten seconds."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

import dynagrad as dg
from dynagrad.languages.dvl.program import DVLProgram
from languages.dvl.running import close

RULES = """
    :- function settle/1.
    total += settle(force(P)) * weight(P).
"""
SETTLE = """
(define (settle force)
  (define (energy x) (- (/ (* x x x x) 4) (* force x)))
  (let loop ((x 3))
    (let ((slope ((derivative energy) x)))
      (if (> (abs slope) 1e-12)
          (loop (- x (/ slope ((derivative (gradient-r energy)) x))))
          x))))
"""


def test_a_program_of_rules_calls_a_function_of_dvl() -> None:
    """Natively, with its derivatives: where a particle comes to rest is the cube root of the force."""
    facts = {"force/1": [("p", 8.0), ("q", 1.0)], "weight/1": [("p", 1.0), ("q", 3.0)]}
    chart = dg.Program(RULES, functions={"settle": dg.compile(DVLProgram(SETTLE)["settle"])}).run(facts)
    assert abs(chart["total"] - 5.0) < 1e-9
    assert np.allclose(chart.gradient("total")["force/1"].values, [1 / 12, 1.0])
    squash = DVLProgram("(define (squash v) (/ v (+ 1 (* v v))))")["squash"]  # as it is, where it does not branch
    found = dg.Program(":- function squash/1. a += squash(b).", functions={"squash": squash}).run({"b/0": [(3.0,)]})
    assert abs(found["a"] - 0.3) < 1e-15


def test_dvl_calls_a_program_of_rules() -> None:
    """The sum over all paths of a graph, with its first and second derivatives, by every mode."""
    rules = dg.Program("path(X) += start(X). path(Y) += path(X) * edge(X,Y). goal += path(X) * end(X).")
    edges = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("b", "d")]
    bound = rules.bind({"start/1": [("a", 1.0)], "end/1": [("d", 1.0)], "edge/2": [(*edge, 1.0) for edge in edges]})
    goal = bound.function("goal", inputs=["edge/2"])

    def paths(x: float) -> float:
        weights = [1.0 * x, x * x, x, np.sin(x), 2.0 * x]
        return goal(np.stack(weights))

    def by_hand(x: float) -> float:
        ab, ac, bc, cd, bd = x, x * x, x, math.sin(x), 2 * x
        return (ab * bc + ac) * cd + ab * bd

    text = """
    (paths 0.5)
    ((derivative paths) 0.5)
    ((gradient-r paths) 0.5)
    ((derivative (gradient-r paths)) 0.5)
    ((gradient-r (derivative paths)) 0.5)
    """
    found = [result.value for result in DVLProgram(text, functions={"paths": paths}).run()]
    h = 1e-4
    first = (by_hand(0.5 + h) - by_hand(0.5 - h)) / (2 * h)
    second = (by_hand(0.5 + h) - 2 * by_hand(0.5) + by_hand(0.5 - h)) / (h * h)
    assert close(found[0], by_hand(0.5))
    assert abs(found[1] - first) < 1e-6 and all(close(a, b) for a, b in pairwise(found[1:3]))
    assert abs(found[3] - second) < 1e-5 and all(close(a, b) for a, b in pairwise(found[3:5]))


def test_compiled_functions_of_python_call_dvl_and_are_called() -> None:
    program = DVLProgram("(define (f x) (let loop ((x x)) (if (> x 10) x (loop (g x x)))))", {"g": lambda a, b: a + b})
    f = program["f"]

    @dg.compile
    def through(x: float) -> float:
        return f(x) * 2.0

    assert f(3.0) == 12.0 and through(3.0) == 24.0
    assert dg.compile(dg.grad(through))(3.0) == dg.grad(f)(3.0) * 2.0 == 8.0
    pair = DVLProgram("(define (swap a b) (list b a))")["swap"]
    assert dg.compile(pair)(1.0, 2.0) == pair(1.0, 2.0) == (2.0, (1.0, ()))
