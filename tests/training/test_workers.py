"""Threads, processes and Ray give the same bits, and a worker's death changes nothing. Costs five seconds."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import numpy as own
from dynagrad import training
from dynagrad.charts.binding import example_cache
from dynagrad.training import examples
from dynagrad.training.workers import RETRIES
from training.chains import HMM
from training_workers import Deadly, Wrong, kept_in_a_worker

RANDOM = np.random.default_rng(3)
SHARD = 16
SEQUENCES = [RANDOM.integers(0, 4, RANDOM.integers(2, 6)).tolist() for _ in range(48)]  # three shards
DATA = [
    training.Example({"word/2": [(w, i) for i, w in enumerate(s)], "last/1": [(len(s) - 1,)]}, name=f"n{n}")
    for n, s in enumerate(SEQUENCES)
]
ROWS: dict[str, Any] = {
    "init/1": [(s, x) for s, x in enumerate([0.3, 0.7])],
    "trans/2": [(s, t, [[0.2, 0.8], [0.6, 0.4]][s][t]) for s in range(2) for t in range(2)],
    "emit/2": [(s, w, [[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.3, 0.2]][s][w]) for s in range(2) for w in range(4)],
}


def trained(objective: Any = None, method: str = "em", steps: int = 2, **options: Any) -> dict[str, bytes]:
    m = dg.Model(HMM, ROWS, objective=objective)
    m.fit(DATA, method=method, iterations=steps, **options)
    return {name: x.tobytes() for name, x in m.parameters.items()}


def processes(count: int, method: str) -> Callable[[], Executor]:
    return lambda: ProcessPoolExecutor(count, mp_context=get_context(method))


@pytest.fixture(scope="module", autouse=True)
def small_shards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examples, "SHARD", SHARD)
        yield


@pytest.fixture(scope="module")
def alone() -> dict[str, bytes]:
    return trained(threads=1)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is sent lies in a folder of this test's, as other processes may send theirs meanwhile."""
    folder = tmp_path_factory.mktemp("sent")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(example_cache, "BRIEF", 0.0)  # threads however little there is to do
    yield
    assert not list(folder.glob("dynagrad-training-*"))


def test_any_number_of_threads_and_processes_gives_the_same_bits(alone: dict[str, bytes]) -> None:
    for threads in (2, 3):
        assert trained(threads=threads) == alone
    for count in (1, 3):
        with ThreadPoolExecutor(count) as pool:
            assert trained(executor=pool) == alone
    for count in (1, 3):
        assert trained(executor=processes(count, "fork")) == alone
    assert trained(executor=2) == alone  # they are spawned
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as pool:
        assert trained(executor=pool) == alone
        assert trained(executor=pool) == alone  # it is not shut down, as it is another's


def test_other_models_of_a_program_change_no_bits() -> None:
    """Plans join the smallest predicate first, and what was planned for one model fits the other."""
    text = ":- semiring log. goal += go(X) * a(X,Y) * b(Y,Z) * c(Z,X)."
    data = [{"go/1": [(x,) for x in range(n)]} for n in (20, 12, 15)]

    def bits(program: dg.Program, **sizes: int) -> bytes:
        random = np.random.default_rng(1)
        rows = {f"{key}/2": [divmod(int(n), 20) for n in random.permutation(400)[:size]] for key, size in sizes.items()}
        m = dg.Model(program, {"w": training.LogLinear(rows)}, prior=training.L2(0.1))
        m.fit(data, method="l-bfgs", iterations=3, tolerance=0.0)
        return m.parameters["w"].tobytes()

    program = dg.Program(text)
    bits(program, a=40, b=250, c=250)
    assert bits(program, a=250, b=250, c=40) == bits(dg.Program(text), a=250, b=250, c=40)


def test_workers_keep_the_examples_of_a_list_and_what_was_loaded_of_them() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = trained(executor=pool, dev=DATA[8:24], steps=4)
        assert pool.submit(kept_in_a_worker).result() == (4, [64])  # of three shards, and of those held out
        m = dg.Model(HMM, ROWS)
        m.fit(lambda: iter(DATA), executor=pool, iterations=4)  # which may be others in each pass
        assert pool.submit(kept_in_a_worker).result() == (4, [64, 0])
    assert found == trained(dev=DATA[8:24], steps=4) == {name: x.tobytes() for name, x in m.parameters.items()}


TAGGED = """
:- semiring log.
alpha(T,0) += emit(T,W) * word(W,0) * may(0,T).
alpha(T,J) += alpha(S,I) * trans(S,T) * emit(T,W) * word(W,J) * may(J,T) for J = I+1.
goal += alpha(_,N) * last(N).
"""


def test_examples_of_one_derivation_give_the_same_bits_whichever_way_they_come(tmp_path: Path) -> None:
    """They need not be run again: but one that is read anew, or has not been run yet, has to give the same."""
    random = np.random.default_rng(5)
    data = []
    for n in range(32):
        words = random.integers(0, 4, random.integers(2, 6)).tolist()
        known = [random.integers(0, 2, 1 if n % 5 or i else 2).tolist() for i in range(len(words))]
        facts = {"word/2": [(w, i) for i, w in enumerate(words)], "last/1": [(len(words) - 1,)]}
        facts["may/2"] = [(i, t) for i in range(len(words)) for t in range(2)]
        observed = {"may/2": [(i, t) for i, ts in enumerate(known) for t in sorted(set(ts))]}
        data.append(training.Example(facts, observed, weight=1.0 if n % 7 else 0.3))

    def fitted(data: Any = data, steps: int = 4, **options: Any) -> tuple[dict[str, bytes], list[float]]:
        rows = {key: training.LogLinear({key: [row[:2] for row in ROWS[key]]}) for key in ("trans/2", "emit/2")}
        m = dg.Model(TAGGED, rows, objective=training.Conditional(), prior=training.L2(1.0))
        fit = m.fit(data, method="l-bfgs", iterations=steps, tolerance=0.0, **options)
        return {name: x.tobytes() for name, x in m.parameters.items()}, [r.objective for r in fit.history]

    expected = fitted(threads=1)
    assert fitted(threads=2) == expected
    assert fitted(lambda: iter(data)) == expected
    assert fitted(executor=processes(2, "fork")) == expected
    fitted(steps=2, checkpoint=tmp_path / "c")
    assert fitted(checkpoint=tmp_path / "c") == expected


def test_other_methods_use_the_workers_too() -> None:
    make = processes(2, "fork")
    for method in ("viterbi-em", "l-bfgs"):
        assert trained(method=method, executor=make) == trained(method=method), method
    m = dg.Model(HMM, ROWS)
    assert m.score(DATA, executor=make) == m.score(DATA)


def test_a_worker_that_dies_has_its_shard_run_again(tmp_path: Path, alone: dict[str, bytes]) -> None:
    for deaths in (1, 2):
        folder = tmp_path / str(deaths)
        folder.mkdir()
        assert trained(Deadly(str(folder), "n18", deaths), executor=processes(2, "fork")) == alone
        assert len(list(folder.iterdir())) == deaths


def test_a_spawned_process_that_dies_has_its_shard_run_again(tmp_path: Path, alone: dict[str, bytes]) -> None:
    assert trained(Deadly(str(tmp_path), "n32"), executor=1) == alone
    assert len(list(tmp_path.iterdir())) == 1


def test_a_shard_that_always_kills_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(dg.Error, match=f"died {RETRIES + 1} times over one shard"):
        trained(Deadly(str(tmp_path), "n18", deaths=100), executor=processes(1, "fork"))


def test_an_executor_of_the_users_own_cannot_be_begun_again(tmp_path: Path) -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool,
        pytest.raises(dg.Error, match="a function that makes an executor"),
    ):
        trained(Deadly(str(tmp_path), "n18"), executor=pool)


def test_what_cannot_be_sent_is_an_error_that_says_what_to_do() -> None:
    objective = training.OfItems(("goal",), lambda x, _: x[0])
    with pytest.raises(dg.Error, match=r"the model cannot be sent to another process.*define them with `def`"):
        trained(objective, method="l-bfgs", executor=processes(1, "fork"))
    with ThreadPoolExecutor(1) as pool:
        trained(objective, method="l-bfgs", executor=pool)  # threads need not send it


class Locked(dict[str, Any]):
    """Facts that hold a lock, as those of a table that is open for others do."""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__(facts)
        self.lock = Lock()


def unsendable() -> dict[str, Any]:
    class Word(str):
        """Its class has no name in a module, and is a text where it is read."""

    last = {"last/1": [(0,)]}
    return {
        "texts of a class inside a function": {"word/2": [(Word("a"), 0)], **last},
        "a value that is a function": {"word/2": [(0, 0, lambda: 1.0)], **last},
        "a row that is a generator": {"word/2": [(0, 0), (x for x in (1, 1))], **last},
        "observed": training.Example(last, {"word/2": [(Word("a"), 0)]}, name="bad"),
        "a lock": training.Example(Locked({"word/2": [(0, 0)], **last}), name="bad"),
        "a lock in a list": {"word/2": [(0, 0), Lock()], **last},
    }


@pytest.mark.parametrize("kind", list(unsendable()))
@pytest.mark.parametrize("before", [1, SHARD + 2, 2 * SHARD])
def test_an_example_that_cannot_be_sent_is_named(kind: str, before: int) -> None:
    """In a shard that goes with the call, and in one that stays with the worker; what can be done is said, too."""
    number = f"example {before}" + (" .bad." if kind in ("observed", "a lock") else "")
    part = number if kind == "a lock" else f"what {number} has for word/2"
    data = [*DATA[:before], unsendable()[kind]]
    with pytest.raises(
        dg.Error, match=f"^{part} cannot be sent to another process: .*Rows of numbers, texts.* train with threads$"
    ):
        dg.Model(HMM, ROWS).fit(data, iterations=1, executor=processes(1, "fork"))


def test_functions_of_parametrisations_need_not_be_sent() -> None:
    """Weights are worked out here; workers get numbers."""
    free = training.Differentiable({"toss/1": [("h",), ("t",)]}, lambda p: own.stack([p, -p]), 1.0)
    m = dg.Model(":- semiring log. goal += toss(S) * seen(S).", {"free": free}, prior=training.L2(1.0))
    m.fit([{"seen/1": [("h",)]}], method="l-bfgs", iterations=2, executor=processes(1, "fork"))


def test_errors_in_workers_are_errors_here() -> None:
    with pytest.raises(ZeroDivisionError, match="in the objective"):
        trained(Wrong(), method="l-bfgs", executor=processes(2, "fork"))
    bad = training.Example({"word/2": [("x", 0, float("nan"))], "last/1": [(0,)]}, name="broken")
    m = dg.Model(HMM, ROWS)
    with pytest.raises(dg.FactError, match=r"example 1 .broken.: word/2, row 1, value: nan"):
        m.fit([DATA[0], bad], iterations=1, executor=processes(1, "fork"))


def test_what_is_no_executor() -> None:
    for wrong in (0, True, "four", 1.5):
        with pytest.raises(dg.Error, match="executor"):
            trained(executor=wrong)
    with pytest.raises(dg.Error, match="which has no submit"):
        trained(executor=lambda: 3)
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(dg.Error, match="the executor takes no work"):
        trained(executor=pool)


# -- Ray: tests that need it -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of this machine alone, which begins with one node of one processor."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster  # type: ignore[import-not-found,unused-ignore]  # an optional package

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def ray(cluster: Any) -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    paths = os.pathsep.join(
        [str(Path(__file__).parents[1]), str(Path(dg.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    ray.init(cluster.address, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": paths}})
    yield ray
    ray.shutdown()


def test_a_cluster_of_ray_gives_the_same_bits_whatever_its_nodes(
    ray: Any, cluster: Any, alone: dict[str, bytes]
) -> None:
    assert ray.cluster_resources()["CPU"] == 1
    assert trained(executor=ray) == alone
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    assert ray.cluster_resources()["CPU"] == 3
    assert trained(executor=ray) == alone

    def leave(record: Any) -> None:
        if record.iteration == 1:
            cluster.remove_node(node)

    assert trained(executor=ray, callback=leave) == alone
    assert ray.cluster_resources()["CPU"] == 1
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()


def test_a_worker_of_ray_is_killed_in_the_middle_of_a_step(ray: Any, tmp_path: Path, alone: dict[str, bytes]) -> None:
    assert trained(Deadly(str(tmp_path), "n18"), executor=ray) == alone
    assert len(list(tmp_path.iterdir())) == 1


def test_errors_in_workers_of_ray_are_errors_here(ray: Any) -> None:
    with pytest.raises(ZeroDivisionError, match="in the objective"):
        trained(Wrong(), method="l-bfgs", executor=ray)
