"""A lock between threads and processes, released when its holder ends (1 s)."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from dynagrad.runtime.disk.file_lock import file_lock

FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks" / "one"


def child(work: object) -> int:
    """A child process that does `work`, and ends with status 0 where that came to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(20)
            work()  # type: ignore[operator]
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def locked(path: Path) -> None:
    with file_lock(path):
        pass


def test_threads_of_a_process_hold_it_one_at_a_time(path: Path) -> None:
    inside, most = [], []

    def work() -> None:
        for _ in range(50):
            with file_lock(path):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (200, 1)


@FORK
def test_another_process_waits_until_it_is_free(path: Path) -> None:
    with file_lock(path):
        pid = child(lambda: locked(path))
        assert not any(os.waitpid(pid, os.WNOHANG) != (0, 0) or threading.Event().wait(0.02) for _ in range(5))
    assert os.waitpid(pid, 0)[1] == 0


@FORK
def test_the_death_of_its_holder_frees_it(path: Path) -> None:
    reading, writing = os.pipe()

    def hold() -> None:
        with file_lock(path):
            os.write(writing, b"held")
            signal.pause()

    pid = child(hold)
    assert os.read(reading, 4) == b"held"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    locked(path)


@FORK
def test_a_child_forked_while_a_thread_holds_it_waits_for_the_parent_and_no_longer(path: Path) -> None:
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with file_lock(path):
            held.set()
            go_on.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    pid = child(lambda: locked(path))
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    go_on.set()
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0
