"""Checkpoints: runs that are killed at any moment end with the bits of runs that are not. Costs eight seconds.

Each run is a child process, which is killed after a random time, or at a certain call of the system, and begun again
until it ends.
"""

from __future__ import annotations

import ast
import errno
import os
import random
import select
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.runtime.disk import whole
from dynagrad.training.methods import METHODS
from dynagrad.training.storage import checkpoint as checkpoints
from forked import Forked
from training.chains import HMM

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are children by fork")

RANDOM = np.random.default_rng(2)
INIT, TRANS, EMIT = RANDOM.dirichlet(np.ones(2)), RANDOM.dirichlet(np.ones(2), 2), RANDOM.dirichlet(np.ones(4), 2)
DATA = [
    {"word/2": [(w, i) for i, w in enumerate(s)], "last/1": [(len(s) - 1,)]}
    for s in (RANDOM.integers(0, 4, RANDOM.integers(2, 6)).tolist() for _ in range(6))
]
ROWS = {
    "init/1": [(s, INIT[s]) for s in range(2)],
    "trans/2": [(s, t, TRANS[s, t]) for s in range(2) for t in range(2)],
    "emit/2": [(s, w, EMIT[s, w]) for s in range(2) for w in range(4)],
}
LINEAR = {
    "init": training.LogLinear({"init/1": ROWS["init/1"]}, given=()),
    "rest": training.LogLinear({key: ROWS[key] for key in ("trans/2", "emit/2")}, given=0),
}
"""What iterative scaling learns: log-linear weights that are normalised."""
GAUSS, STEPS = training.L2(0.01), 6
RUNS: dict[str, dict[str, Any]] = {  # products with Hessians take long, so these see less
    "em": {},
    "viterbi-em": {},
    "variational": {"prior": training.Dirichlet(0.5)},
    "online-em": {"size": 3},
    "incremental-em": {"size": 3},
    "annealing": {"start": 0.3, "steps": 2},
    "cg": {"prior": GAUSS},
    "bfgs": {"prior": GAUSS},
    "l-bfgs": {"prior": GAUSS},
    "l-bfgs, L1": {"prior": training.L1(0.01)},
    "newton-cg": {"prior": GAUSS, "data": DATA[:2]},
    "tnc": {"prior": GAUSS},
    "slsqp": {"prior": GAUSS},
    "trust-constr": {"prior": GAUSS},
    "trust-ncg": {"prior": GAUSS, "data": DATA[:2]},
    "trust-krylov": {"prior": GAUSS, "data": DATA[:2]},
    "gis": {"parameters": LINEAR, "prior": GAUSS},
    "iis": {"parameters": LINEAR, "prior": GAUSS},
    "sgd": {"momentum": 0.5},
    "adagrad": {},
    "adam": {"rate": lambda k: 0.1 / (1 + k)},
    "perceptron": {},
}


def train(run: str, **more: Any) -> tuple[bytes, list[tuple[Any, ...]], str]:
    """What a run gives, but for times."""
    options = dict(RUNS[run])
    model = dg.Model(HMM, options.pop("parameters", ROWS), prior=options.pop("prior", None))
    settings = {"iterations": STEPS, "tolerance": 0.0, "threads": 1, "method": run.partition(",")[0], **options, **more}
    fit = model.fit(settings.pop("data", DATA), DATA[:2], **settings)
    history = [(r.iteration, r.objective, r.data, r.change, r.dev) for r in fit.history]
    return b"".join(x.tobytes() for x in model.parameters.values()), history, fit.stopped


def child(work: Callable[[], Any], result: Path) -> tuple[int, int]:
    """The number of a child that works, and writes what came out; and a pipe that ends with it."""
    ended, held = os.pipe()
    pid = os.fork()
    if pid:
        os.close(held)
        return pid, ended
    try:
        found = repr(work())
        whole.replace_file(result, found.encode())
        os._exit(0)
    except BaseException as error:
        whole.replace_file(result, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(1)


def killed_until_done(work: Callable[[], Any], checkpoint: Path, draw: random.Random) -> tuple[str, int]:
    """What a run gives that is killed until it was twice after a first checkpoint, and how often it was after one.

    That is at least once: a run that ends before that begins anew.
    """
    late, result, most = 0, checkpoint.with_name("result"), 0.06
    while True:
        pid, ended = child(work, result)
        by_itself = select.select([ended], [], [], draw.random() * most if late < 2 else None)[0]
        if not by_itself:
            os.kill(pid, signal.SIGKILL)
        os.close(ended)
        status = os.waitpid(pid, 0)[1]
        if by_itself:
            assert status == 0, result.read_text()
            if late:
                return result.read_text(), late
            checkpoint.unlink()
            most = 0.06
        late += checkpoint.exists()
        most *= 1.7


def test_every_method_is_among_the_runs() -> None:
    assert {run.partition(",")[0] for run in RUNS} == METHODS.keys()


@pytest.fixture(scope="module")
def small() -> Iterator[Callable[..., Any]]:
    """Calls a function of this file in a process that has imported little else, and has loaded the programs.

    Its children are made and end quickly. This process may have run thousands of tests, and a child would copy that.
    """
    first = f"from {__name__} import *\nfor run in RUNS: train(run, iterations=1)"
    with Forked(first) as process:

        def call(function: Callable[..., Any], *given: Any) -> Any:
            names = f"from pathlib import *; from {__name__} import *"
            said, warned = process.run(f"{names}\nprint(repr({function.__name__}(*{given!r})))")
            assert said, warned
            return ast.literal_eval(said)

        yield call


@pytest.mark.parametrize("run", list(RUNS))
def test_runs_that_are_killed_end_with_the_same_bits(run: str, tmp_path: Path, small: Callable[..., Any]) -> None:
    expected, found, killed = small(whole_and_killed, run, tmp_path)
    assert found == expected
    assert killed


def whole_and_killed(run: str, folder: Path) -> tuple[str, str, int]:
    slow = {"callback": lambda record: time.sleep(0.01)}
    return repr(train(run)), *killed_until_done(
        lambda: train(run, checkpoint=folder / "c", **slow), folder / "c", random.Random(run)
    )


@pytest.mark.parametrize("run", ["em", "l-bfgs"])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_killed_at_each_call_that_writes(run: str, call: str, tmp_path: Path, small: Callable[..., Any]) -> None:
    """Before and after each call, one after the other; with a checkpoint every two steps."""
    calls = (0, 1, 3, 4, 7, 8, 11) if call == "fsync" else (0, 1, 4, 5)
    expected, found = small(whole_and_killed_at, run, call, calls, tmp_path)
    assert found == [expected] * len(calls)


def whole_and_killed_at(run: str, call: str, calls: tuple[int, ...], folder: Path) -> tuple[str, list[str]]:
    expected, found = repr(train(run)), []
    for n in calls:
        path, result, count = folder / f"{n}.checkpoint", folder / "result", 0

        def work(n: int = n, path: Path = path) -> Any:
            real = getattr(os, call)

            def fatal(*arguments: Any) -> Any:
                nonlocal count
                count += 1
                if count == n // 2 + 1 and n % 2 == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                found = real(*arguments)
                if count == n // 2 + 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                return found

            setattr(os, call, fatal)
            try:
                return train(run, checkpoint=path, every=2)
            finally:
                setattr(os, call, real)

        pid, ended = child(work, result)
        os.close(ended)
        os.waitpid(pid, 0)
        found.append(repr(train(run, checkpoint=path, every=2)))
    return expected, found


def test_a_run_that_had_ended_is_not_run_again(tmp_path: Path) -> None:
    for run in ("em", "l-bfgs", "annealing"):
        path = tmp_path / run
        first = train(run, checkpoint=path)
        before = path.read_bytes()
        assert train(run, checkpoint=path) == first
        assert path.read_bytes() == before
        assert train(run, checkpoint=path, iterations=STEPS + 3) == train(run, iterations=STEPS + 3)
    # one that its method ended, and one that converged
    for run, more in (("l-bfgs", {"iterations": 1000}), ("em", {"iterations": 1000, "tolerance": 1e-4})):
        path = tmp_path / f"{run}, to the end"
        first = train(run, checkpoint=path, **more)
        assert first[2] in ("no better step", "converged")
        before = path.read_bytes()
        assert train(run, checkpoint=path, **more) == first
        assert path.read_bytes() == before
    # a small change means nothing to a method that promises none
    path = tmp_path / "sgd"
    train("sgd", checkpoint=path, iterations=5, tolerance=1.0)
    assert train("sgd", checkpoint=path, iterations=9, tolerance=1.0) == train("sgd", iterations=9, tolerance=1.0)


def test_a_callback_that_ended_a_run_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "c"
    assert train("em", checkpoint=path, callback=lambda r: r.iteration < 4)[2] == "callback"
    assert len(train("em", checkpoint=path, callback=lambda r: r.iteration < 4)[1]) == 4
    assert train("em", checkpoint=path, callback=lambda r: True) == train("em")


def test_evaluations_are_added_and_not_written_again(tmp_path: Path) -> None:
    path, trace = tmp_path / "c", tmp_path / "c.evaluations"
    sizes: list[tuple[int, int]] = []

    def look(record: Any) -> None:
        sizes.append((path.stat().st_size, trace.stat().st_size))

    train("l-bfgs", checkpoint=path, callback=look)
    count = (trace.stat().st_size - len(checkpoints.TRACE) - 16) / (8 * (14 + 3) + 4)
    assert count == int(count) >= STEPS
    main = [size for size, _ in sizes]
    assert max(main) - min(main) < 400 * STEPS  # the history alone grows


def test_a_run_that_was_killed_as_it_began_a_file_of_evaluations(tmp_path: Path) -> None:
    for begun in (b"", b"dynagrad tr"):
        (tmp_path / "c.evaluations").write_bytes(begun)
        train("l-bfgs", checkpoint=tmp_path / "c", iterations=3)
        (tmp_path / "c").unlink()
    (tmp_path / "c.evaluations").write_bytes(b"a thesis")
    with pytest.raises(dg.Error, match="is no file of a checkpoint"):
        train("l-bfgs", checkpoint=tmp_path / "c", iterations=3)


@pytest.mark.parametrize("run", ["em", "l-bfgs"])
def test_damage_is_an_error(run: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    train(run, checkpoint=path, iterations=4)
    draw = random.Random(1)
    files = [p for p in tmp_path.iterdir()]
    assert len(files) == (2 if run == "l-bfgs" else 1)
    for file in files:
        data = file.read_bytes()
        for n in range(30):
            at = draw.randrange(len(data))
            new = [data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :], data[:at]][n % 2]
            file.write_bytes(new)
            with pytest.raises(dg.FactError):
                train(run, checkpoint=path)
        file.write_bytes(data)
    if run == "l-bfgs":
        files = sorted(files)
        files[1].unlink()
        with pytest.raises(dg.FactError, match="which a checkpoint needs, cannot be read"):
            train(run, checkpoint=path)


def test_other_files_and_other_runs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_text("a thesis")
    with pytest.raises(dg.FactError, match="is no checkpoint; it is not overwritten"):
        train("em", checkpoint=path)
    assert path.read_text() == "a thesis"
    with pytest.raises(dg.FactError, match="'/dev/zero' is no file"):  # it would be read without end
        train("em", checkpoint=Path("/dev/zero"))
    path.write_bytes(b"dynagrad checkpoint 1\n")
    with pytest.raises(dg.FactError, match="'dynagrad checkpoint 1', and this version of Dynagrad reads 4"):
        train("em", checkpoint=path)
    path.unlink()
    train("em", checkpoint=path, iterations=3)
    for more, name in (
        ({"run": "viterbi-em"}, "whose method differ: 'em' and not 'viterbi-em'"),
        ({"seed": 3}, "whose seed differ"),
        ({"data": DATA[1:]}, "whose examples differ: there are [0-9]+, and not [0-9]+"),
        (
            {"data": [training.Example(d, weight=2.0) for d in DATA]},
            "whose examples differ: example 0 is another one, and so",
        ),
    ):
        with pytest.raises(dg.Error, match=f"of another run, {name}"):
            train(**{"run": "em", "checkpoint": path, **more})
    model = dg.Model(HMM, {**ROWS, "init/1": [(0, 0.5), (1, 0.5)]})
    with pytest.raises(dg.Error, match=r"whose (held-out data|start) differ"):
        model.fit(DATA, checkpoint=path)
    with pytest.raises(dg.Error, match=r"whose priors differ: \{'init/1': 'Dirichlet\(alpha=1.5\)"):
        dg.Model(HMM, ROWS, prior=training.add_lambda(0.5)).fit(DATA, DATA[:2], checkpoint=tmp_path / "prior")
        dg.Model(HMM, ROWS, prior=training.add_lambda(0.1)).fit(DATA, DATA[:2], checkpoint=tmp_path / "prior")
    train("adam", checkpoint=tmp_path / "rate", iterations=2)
    with pytest.raises(dg.Error, match="whose options differ"):
        train("adam", checkpoint=tmp_path / "rate", rate=lambda k: 0.1 / (2 + k))
    (tmp_path / "d.evaluations").write_text("a thesis")
    with pytest.raises(dg.Error, match="is no file of a checkpoint"):
        train("l-bfgs", checkpoint=tmp_path / "d")
    with pytest.raises(dg.Error, match="No such file"):
        train("em", checkpoint=tmp_path / "nowhere" / "c")


@pytest.mark.parametrize("run", ["em", "l-bfgs"])
def test_a_full_disk_leaves_the_checkpoint_before(run: str, tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "c"
    train(run, checkpoint=path, iterations=4)
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(dg.Error, match="No space left"):
            train(run, checkpoint=path)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c", "c.evaluations"][: 1 + (run == "l-bfgs")]
    assert train(run, checkpoint=path) == train(run)


def test_optimisers_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for name, options in (
        ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("AdamW", {"lr": 0.05}),
        ("Adagrad", {"lr": 0.1}),
        ("LBFGS", {"lr": 0.5, "max_iter": 3}),
    ):
        RUNS[name] = {"method": getattr(torch.optim, name), **options}
        expected = train(name)
        train(name, checkpoint=tmp_path / name, iterations=5)
        assert train(name, checkpoint=tmp_path / name) == expected
        del RUNS[name]
