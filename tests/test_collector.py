"""Python's garbage collector is off while many values are made, and on again whatever happens."""

from __future__ import annotations

import gc
import os
import threading

import pytest

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
