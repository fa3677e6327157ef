"""Python's garbage collector is off while many values are made, and on again whatever happens."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from typing import Any

import pytest

from dynagrad import collector
from dynagrad.collector import collecting_later
from dynagrad.languages.pullback import reduce


def test_the_collector_is_on_again_after_errors_and_in_threads() -> None:
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), collecting_later():
        raise ZeroDivisionError
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collecting_later():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with collecting_later():
        thread.start()
        inside.wait(10)
    assert not gc.isenabled()  # for the other is still in it
    leave.set()
    thread.join()
    assert gc.isenabled()
    gc.disable()
    try:
        with collecting_later():
            pass
        assert not gc.isenabled()  # who had it off finds it off
    finally:
        gc.enable()


def test_garbage_that_was_made_inside_is_freed_later() -> None:
    class Node:
        """One of a circle."""

    def circles() -> None:
        with collecting_later():
            for _ in range(20_000):
                node, other = Node(), Node()
                node.other, other.other = other, node  # type: ignore[attr-defined]

    gc.collect()
    before = len(gc.get_objects())
    for _ in range(30):  # 2.4 million objects
        circles()
    [[] for _ in range(2000)]
    assert len(gc.get_objects()) - before < 400_000


def test_ctrl_c_at_any_line_leaves_the_collector_as_it_was() -> None:
    reached = 0

    def use(stop: int) -> None:
        seen = 0

        def trace(frame: Any, event: str, _: object) -> Any:
            nonlocal seen, reached
            if frame.f_code.co_filename != collector.__file__:
                return None
            seen += 1
            if seen == stop:
                reached = stop
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            with collecting_later():
                pass
        finally:
            sys.settrace(before)

    for stop in range(1, 100):
        with contextlib.suppress(KeyboardInterrupt):
            use(stop)
        with collecting_later():
            assert not gc.isenabled()
        assert gc.isenabled(), stop
        if reached < stop:
            break
    assert 5 < reached < 90


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_a_fork_has_its_collector_off_where_it_was_switched_off() -> None:
    with collecting_later():
        pass
    gc.disable()
    try:
        child = os.fork()
        if child == 0:
            os._exit(1 if gc.isenabled() else 0)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_of_a_fork_has_its_collector_on() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collecting_later():
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if gc.isenabled() and str(reduce("1 + 1").result) == "2" else 1)
    leave.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
