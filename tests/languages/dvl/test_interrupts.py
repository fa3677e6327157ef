"""Ctrl-C ends a program of DVL within a second: as it is run, as it is compiled, and as machine code runs.

Costs five seconds.
"""

from __future__ import annotations

import pytest

import dynagrad as dg
from dynagrad.languages.dvl.program import DVLProgram
from interrupts import ctrl_c

LONG = "(define (f x) (f (+ x 1))) (f 1)"
SHARED = "(define (f x) ((derivative (lambda (y) (f (* x y)))) x)) (f 1.0)"


def _many(count: int) -> str:
    """A program that takes long to be compiled."""
    return "\n".join(
        f"(define (f{i} x) (let loop ((i 0) (y x)) (if (< i 9) (loop (+ i 1) (sin (* y {i}))) y)))"
        f"((gradient-r (gradient-r (gradient-r f{i}))) (real {i}))"
        for i in range(count)
    )


def _stopped_within_a_second(run: object, after: float) -> None:
    assert callable(run)
    with pytest.raises(KeyboardInterrupt), ctrl_c(after, within=1.0):
        run()


@pytest.mark.parametrize("text", [LONG, SHARED])
def test_a_run(text: str) -> None:
    _stopped_within_a_second(DVLProgram(text).run, 0.5)


def test_the_compiler() -> None:
    _stopped_within_a_second(DVLProgram(_many(200)).compiled_results, 1.0)


def test_machine_code() -> None:
    """A loop of which no one knows when it ends, once it has been compiled for a short one."""
    text = "(define (f n) (let loop ((i 0) (x 1)) (if (< i n) (loop (+ i 1) (+ (sin x) 1)) x)))"
    fast = dg.compile(DVLProgram(text)["f"])
    fast(10.0)
    _stopped_within_a_second(lambda: fast(1e13), 0.5)
