"""After a fork, every lock of the package is free, whichever thread of the parent held it (4 s, two compilations)."""

from __future__ import annotations

import ast
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import forks
from dynagrad.charts.binding import background
from dynagrad.charts.functions import jets
from dynagrad.charts.program import binding_of
from dynagrad.codegen.graph.native import Native
from dynagrad.compiler import specialised as compiling
from dynagrad.compiler.evaluate.heap import tags
from dynagrad.eager import perturbations as passes
from dynagrad.facts import files
from dynagrad.ir import buffers, node
from dynagrad.ir.control import Graph
from dynagrad.ir.ops import scalars as ops
from dynagrad.runtime import library, threads
from dynagrad.runtime.compiling import cache
from dynagrad.runtime.disk import file_lock
from dynagrad.runtime.disk import folder as cache_folder
from dynagrad.training.data import observed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SOURCE = Path(forks.__file__).parent
X = np.array([3.0, 4.0])


def in_child(work: Callable[[], Any]) -> int:
    """How a child ends in which this is done: 0 where it gave something true, 14 where it hung."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads before a fork
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(60)
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


def while_held(lock: Any, work: Callable[[], Any]) -> int:
    """The same where another thread holds a lock as the child begins."""
    ready, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            ready.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    ready.wait(60)
    try:
        return in_child(work)
    finally:
        done.set()
        holder.join()


def twice(x: float) -> float:
    return x * 2.0


def squares(x: Any) -> Any:
    return (x * x).sum()


def _in_private(folder: Path) -> bool:
    cache_folder.Temporary.path = folder
    return cache_folder.temporary_folder("a test") == folder


def made(name: str, folder: Path) -> tuple[Any, Callable[[], Any]]:
    """A lock, by the file that it stands in, and what takes it."""
    program = dg.Program("goal += a(X) * a(X).")
    match name:
        case "background":
            jobs: background.Jobs[int] = background.Jobs()
            return jobs._lock, lambda: jobs.result("sum", lambda: 2, time.monotonic() + 10) == (2, [])
        case "binding":
            bound = program.bind({"a/1": [("x", 3.0), ("y", 4.0)]})
            bound.run()
            return binding_of(bound)._lock, lambda: bound.run()["goal"] == 25.0
        case "binding, plans":
            bound = program.bind({"a/1": [("x", 3.0), ("y", 4.0)]})
            return binding_of(bound)._plans.making, lambda: bound.run()["goal"] == 25.0
        case "buffers":
            return buffers._lock, lambda: buffers.empty((200, 200)).shape == (200, 200)
        case "cache":
            path = folder / "locks" / "aa"
            with file_lock.file_lock(path):
                pass
            return file_lock._of_threads[str(path)], lambda: file_lock.file_lock(path).__enter__() is None
        case "cache, private":
            return cache_folder.Temporary.lock, lambda: _in_private(folder)
        case "compiled":
            compiled = dg.compile(twice)
            assert compiled(1.0) == 2.0
            return compiled._versions.lock, lambda: (compiled(3.0), compiled(3)) == (6.0, 6)
        case "derivations":
            chart = program.run({"a/1": [("x", 3.0), ("y", 4.0)]})
            assert len(chart.forest("goal").items) == 3
            assert chart._collected is not None
            return chart._collected[-1].lock, lambda: len(chart.forest("goal").items) == 3
        case "files":
            (folder / "a.csv").write_text('"a b",2\n')
            return files._csv_limit, lambda: files.read_file(folder / "a.csv", "a/1").count == 1
        case "forest":
            forest = dg.Program("goal += a(_).", "real").run({"a/1": [("x", 3.0), ("y", 4.0)]}).forest("goal")
            return forest.packed.walk().lock, lambda: forest.count() == 2
        case "function":
            free = program.function("goal", inputs=["a/1"])
            assert free(X) == 25.0
            return free._given._lock, lambda: free(X) == 25.0
        case "jets":
            fixed = program.function("goal", inputs=["a/1"], facts={"a/1": [("x", 3.0), ("y", 4.0)]})
            _, pullback = fixed.vjp(X)
            cells = [cell.cell_contents for cell in pullback.__closure__ or ()]
            (run,) = [x for x in cells if isinstance(x, jets.Pass)]
            return run._lock, lambda: pullback(1.0)[0].tolist() == [6.0, 8.0]
        case "compiling":
            return compiling._lock, lambda: dg.graph(squares, X)
        case "library":
            path = cache.build('extern "C" __attribute__((visibility("default"))) int one() { return 1; }')
            return library._lending, lambda: library.lent(path).path == path
        case "native":
            x = node.variable("x")
            native = Native(Graph((x,), (x * 2.0,)), "native")
            return native._lock, lambda: native(2.0) == (4.0,)
        case "node":
            return node._lock, lambda: node.variable("child") * 2.0 is node.variable("child") * 2.0
        case "observed":
            return observed._lock, lambda: observed._keep(("child",), (), 0.5) is None
        case "parallel":
            loops = library.load(cache.build("#include <dynagrad/graphs/parallel.hpp>"))
            return threads._lock, lambda: threads.attach(loops) is None
        case "tags":
            return tags._lock, lambda: tags._function(ops.sin) is tags._function(ops.sin)
        case _:
            assert name == "passes"
            return passes._lock, lambda: dg.grad(squares)(X).tolist() == [6.0, 8.0]


NAMES = [
    *(
        "background",
        "binding",
        "binding, plans",
        "buffers",
        "cache",
        "cache, private",
        "compiled",
        "derivations",
        "files",
    ),
    *("forest", "function", "jets", "library", "compiling", "native", "node", "observed", "parallel"),
    *("passes", "tags"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_child_takes_the_lock_that_another_thread_held(name: str, tmp_path: Path) -> None:
    lock, work = made(name, tmp_path)
    assert while_held(lock, work) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_child_gives_back_the_lock_that_its_own_thread_held(name: str, tmp_path: Path) -> None:
    lock, work = made(name, tmp_path)

    def release() -> bool:
        lock.release()
        return bool(work())

    with lock:
        assert in_child(release) == 0


def test_buffers_that_are_given_back_while_one_is_taken_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the garbage collector does it: in the same thread, at any moment."""
    monkeypatch.setattr(buffers, "_idle", {})
    monkeypatch.setattr(buffers, "_waiting", 0)
    monkeypatch.setattr(buffers, "_inside", True)
    buffers._release(bytearray(100))
    assert buffers._idle == {}
    buffers.empty((200, 200))
    assert not buffers._inside
    buffers._release(bytearray(100))
    assert buffers._idle[100] == [bytearray(100)]


def test_a_child_keeps_no_pipe_open_whose_reader_waits_for_its_end() -> None:
    """Also where the process has no more handles to give."""
    reading, writing = os.pipe()
    forks.register_pipes(lambda: [writing])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (writing + 1, limits[1]))
    try:
        pid = os.fork()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            os.write(writing, b"nobody reads this")
            os.close(writing)  # the number is still that of a file, of nothing
            time.sleep(10)
            status = 0
        finally:
            os._exit(status)
    try:
        forks.close_pipe(writing, lambda: os.close(writing))
        began = time.monotonic()
        assert os.read(reading, 10) == b"" and time.monotonic() - began < 5
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)


def test_a_handle_that_is_another_file_by_now_is_left_to_a_child() -> None:
    """As after Ctrl-C between making and closing it."""
    gone, here = os.pipe(), os.pipe()
    forks.register_pipes(lambda: [gone[1]])
    os.dup2(here[1], gone[1])
    pid = os.fork()
    if pid == 0:
        try:
            os.write(gone[1], b"arrived")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    forks.close_pipe(gone[1], lambda: os.close(gone[1]))
    assert os.read(here[0], 10) == b"arrived"
    for handle in (gone[0], *here):
        os.close(handle)


def test_a_fork_waits_until_a_handle_is_known() -> None:
    begun, go = threading.Event(), threading.Event()
    handles: list[int] = []

    def make() -> list[int]:
        handles.extend(os.pipe())
        begun.set()
        go.wait(10)
        return handles[1:]

    thread = threading.Thread(target=forks.register_pipes, args=(make,))
    thread.start()
    begun.wait(10)
    threading.Timer(0.2, go.set).start()
    assert in_child(lambda: os.fstat(handles[1]).st_rdev == os.stat(os.devnull).st_rdev) == 0
    thread.join()
    forks.close_pipe(handles[1], lambda: os.close(handles[1]))
    os.close(handles[0])


def test_products_by_threads_of_blas_before_and_after_a_fork(tmp_path: Path) -> None:
    """In a process of its own, as the other tests have one thread."""
    code = """
import os, numpy as np, dynagrad as dg
a = np.random.default_rng(0).random((300, 300))
product = dg.compile(lambda x: x @ x.T)
assert np.allclose(product(a), a @ a.T, rtol=1e-12)
pid = os.fork()
if pid == 0:
    os._exit(0 if np.allclose(product(a + 1), (a + 1) @ (a + 1).T, rtol=1e-12) else 1)
assert os.waitpid(pid, 0)[1] == 0
"""
    environment = {name: x for name, x in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    program = tmp_path / "products.py"
    program.write_text(code)
    environment["PYTHONPATH"] = str(SOURCE.parent)
    subprocess.run([sys.executable, "-W", "ignore", str(program)], env=environment, check=True)


def test_every_lock_of_the_package_is_renewed_and_a_case_here() -> None:
    """A lock is made inside of `renewed`, and what takes locks unseen, in some Pythons, is not used.

    The semaphore of a batch belongs to one call, which a child does not go on with. The lock of `forks.py` is held by
    whoever forks.
    """
    locks = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier"}
    found = 0
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if not any(name in text for name in (*locks, "cached_property")):
            continue
        tree = ast.parse(text)
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
        renewed = {id(a) for n in calls if isinstance(n.func, ast.Name) and n.func.id == "renewed" for a in n.args}
        for call in calls:
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if name in locks and not path.match("batches/threads.py") and path != SOURCE / "forks.py":
                assert id(call) in renewed, f"{path}:{call.lineno}: a lock that is not renewed after a fork"
                found += 1
        for n in ast.walk(tree):
            assert getattr(n, "attr", getattr(n, "id", "")) != "cached_property", f"{path}: use forks.cached"
    assert found == len(NAMES)
