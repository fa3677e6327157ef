"""Loading facts into native code: Ctrl-C and `timeout` end it, and the interpreter lock is free meanwhile (2 s)."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

ROWS = 2_000_000


@pytest.fixture(scope="module")
def program() -> dg.Program:
    """Compiled, for facts like the large ones."""
    program = dg.Program("goal += edge(_,_).", "real")
    assert program.run({"edge/2": table(50)}, timeout=None)["goal"] == 50.0
    return program


def table(count: int) -> Any:
    draw = np.random.default_rng(1)
    return draw.integers(0, 1_000_000, (count, 2)), np.ones(count)


@pytest.fixture(scope="module")
def large(program: dg.Program) -> tuple[Any, float]:
    """A large table, and how many seconds it takes to run it."""
    facts = {"edge/2": table(ROWS)}
    program.bind().run(facts)  # compiles, as small ones had another plan, and the first run is slower than others
    began = time.monotonic()
    assert program.bind().run(facts)["goal"] == ROWS
    return facts, time.monotonic() - began


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C cannot be sent there")
@pytest.mark.parametrize("bound", [False, True])
def test_ctrl_c_ends_it(program: dg.Program, large: tuple[Any, float], bound: bool) -> None:
    facts, seconds = large
    sent = []

    def send() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.1 * seconds, send)
    empty = program.bind()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        empty.bind(facts).run() if bound else empty.run(facts)
        time.sleep(20)  # the signal came too late
    assert time.monotonic() - sent[0] < 0.5 * seconds  # of the 0.9 that were to come
    timer.join()
    assert empty.run({"edge/2": table(7)})["goal"] == 7.0


def test_a_timeout_ends_it_without_a_chart(program: dg.Program, large: tuple[Any, float]) -> None:
    facts, seconds = large
    empty = program.bind()
    began = time.monotonic()
    with pytest.raises(dg.NotConverged, match="while facts were loaded; raise timeout") as caught:
        empty.run(facts, timeout=0.1 * seconds)
    assert caught.value.chart is None and time.monotonic() - began < 0.6 * seconds
    assert empty.run({"edge/2": table(7)}, timeout=60)["goal"] == 7.0


def test_other_threads_go_on_meanwhile(program: dg.Program, large: tuple[Any, float]) -> None:
    facts, seconds = large
    worker = threading.Thread(target=lambda: program.bind().run(facts))
    longest, before = 0.0, time.monotonic()
    worker.start()
    while worker.is_alive():
        time.sleep(0.005)
        now = time.monotonic()
        longest, before = max(longest, now - before), now
    assert longest < 0.6 * seconds
