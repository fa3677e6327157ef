"""Saved models: the same bits after loading, errors for every damage, nothing lost on the way. Costs ten seconds."""

from __future__ import annotations

import builtins
import errno
import os
import pickle
import random
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import numpy as own
from dynagrad import training
from dynagrad.runtime.disk import whole
from dynagrad.training.storage import models

COIN = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
TAGGER = """
:- semiring log.
goal += first(T,W) * word(W) * bias(T).
goal += second(W) * word(W).
"""
F, G = dg.Term("f", "a", 1, 2.5), dg.Term("g", dg.Term("f", (), ("x", 1)))
WORDS = ["a", "b", "ü", F, G, 1, -7, 2.5]
DATA = [{"word/1": [(w,)]} for w in WORDS]


def coin(prior: Any = None, **options: Any) -> dg.Model:
    rows = {"toss/1": [("h", 0.25), ("t", 0.75)]}
    return dg.Model(COIN, rows, prior=prior, **options)


def tagger(**options: Any) -> dg.Model:
    """Groups, ties, frozen groups, features, terms of every kind, fixed facts."""
    pairs = [(t, w) for t in ("n", "v") for w in WORDS]
    first = training.Distribution(
        {"first/2": pairs}, given=0, initial="random", tied=lambda t, w: (w,) if options.get("tied") else (t, w)
    )
    second = training.LogLinear(
        {"second/1": [(w,) for w in WORDS]},
        lambda w: {("type", type(w).__name__): 1.0, F: 0.5, "bias": 1.0, 3: -2.0},
        given=lambda w: isinstance(w, str),
        initial={"bias": 0.5, 3: 0.25},
        frozen=lambda f: f == "bias",
        noise=0.1,
    )
    prior = {"first": training.Dirichlet(lambda t, w: 1.5 if w == "a" else 2.0), "second": training.L2(0.25)}
    return dg.Model(
        TAGGER, {"first": first, "second": second}, prior=prior, facts={"bias/1": [("n", -0.1), ("v", -1.25)]}
    )


def same(one: dg.Model, two: dg.Model, data: Any) -> None:
    for name, x in one.parameters.items():
        assert x.tobytes() == two.parameters[name].tobytes()
    for key, table in one.weights.items():
        assert list(table) == list(two.weights[key])
    assert one.score(data) == two.score(data)
    for facts in data[:3]:
        assert one.predict(facts).to_json() == two.predict(facts).to_json()
    one.fit(data, iterations=3, tolerance=0.0, method="l-bfgs", seed=5)
    two.fit(data, iterations=3, tolerance=0.0, method="l-bfgs", seed=5)
    for name, x in one.parameters.items():
        assert x.tobytes() == two.parameters[name].tobytes()


@pytest.mark.parametrize("tied", [False, True])
def test_a_model_is_the_same_after_loading(tmp_path: Path, tied: bool) -> None:
    model = tagger(tied=tied)
    model.fit(DATA, method="l-bfgs", iterations=4, tolerance=0.0)
    model.save(tmp_path / "m")
    same(model, dg.load_model(tmp_path / "m"), DATA)
    again = dg.load_model(tmp_path / "m")
    again.save(tmp_path / "again")  # and what was loaded is saved to the same files
    for file in (tmp_path / "m").iterdir():
        data = (tmp_path / "again" / file.name).read_bytes()
        assert data == file.read_bytes() or file.name in ("SHA256SUMS", "parameters-0.arrow")
    same(dg.load_model(tmp_path / "again"), dg.load_model(tmp_path / "m"), DATA)


@pytest.mark.parametrize(
    "prior",
    [
        None,
        training.Dirichlet(3),
        training.add_lambda(0.5),
        training.Dirichlet({"toss(h)": 2.0, "toss(t)": 1.25}),
        training.Gaussian(2.0, {"toss(h)": 0.5}),
        training.Gaussian(0.5, -1.0),
        training.L1(0.25),
    ],
)
@pytest.mark.parametrize("objective", [training.Likelihood(), training.Conditional("other")])
def test_priors_and_objectives(tmp_path: Path, prior: Any, objective: Any) -> None:
    text = COIN + " other += toss(S) * told(S)."
    data = [{"seen/1": [("h",), ("t",)], "told/1": [(x,)]} for x in "hht"]
    data.append({"seen/1": [("h",)], "told/1": [("h",)]})
    model = dg.Model(text, {"toss/1": [("h", 0.25), ("t", 0.75)]}, prior=prior, objective=objective)
    model.save(tmp_path / "m")
    again = dg.load_model(tmp_path / "m")
    assert again._spec.objective == objective
    for method in ("l-bfgs", "em"):
        try:
            fit = model.fit(data, method=method, iterations=4)
        except dg.Error as error:
            with pytest.raises(dg.Error) as other:
                again.fit(data, method=method, iterations=4)
            assert str(other.value) == str(error)
            continue
        other_fit = again.fit(data, method=method, iterations=4)
        assert fit.objective == other_fit.objective
        assert model.parameters["toss/1"].tobytes() == again.parameters["toss/1"].tobytes()


def test_declared_groups_over_all_arities_and_frozen_ones(tmp_path: Path) -> None:
    text = ":- semiring real. :- distribution r(X,...) given X. goal += r(s,A,B) * see(A,B). goal += r(s,A) * one(A)."
    rows = {"r/3": [("s", "a", "b", 0.5), ("t", "x", "y", 0.5)], "r/2": [("s", "a", 0.5), ("t", "z", 0.5)]}
    model = dg.Model(text, rows)
    data = [{"see/2": [("a", "b")], "one/1": []}, {"see/2": [], "one/1": [("a",)]}, {"see/2": [], "one/1": [("a",)]}]
    with pytest.warns(dg.ProgramWarning):
        model.fit(data)
    model.save(tmp_path / "m")
    again = dg.load_model(tmp_path / "m")
    assert again.weights["r/3"]["s", "a", "b"] == model.weights["r/3"]["s", "a", "b"] == pytest.approx(1 / 3)
    assert again._spec.parametrisations["r"].groups.names == model._spec.parametrisations["r"].groups.names  # type: ignore[union-attr]
    frozen = training.Distribution({"toss/1": [("h", 0.25), ("t", 0.75)]}, frozen=lambda s: True)
    held = dg.Model(COIN, {"toss": frozen})
    held.save(tmp_path / "held")
    loaded = dg.load_model(tmp_path / "held")
    loaded.fit([{"seen/1": [("h",)]}])
    assert loaded.weights["toss/1"]["h",] == pytest.approx(0.25)


def test_numbers_that_are_probabilities(tmp_path: Path) -> None:
    text = ":- semiring log. :- distribution toss(S). goal += toss(S) * seen(S) * fixed * 0.5."
    data = [{"seen/1": [(s, 0.5)]} for s in "hht"]
    program = dg.Program(text, values="probabilities")
    model = dg.Model(program, {"toss/1": [("h", 0.25), ("t", 0.75)]}, facts={"fixed/0": 0.25})
    fit = model.fit(data, iterations=1)
    assert fit.objective == pytest.approx(2 * np.log(0.25) + np.log(0.75) + 3 * np.log(0.5 * 0.25 * 0.5), rel=1e-14)
    assert model.weights["toss/1"]["h",] == pytest.approx(2 / 3)
    model.save(tmp_path / "m")
    same(model, dg.load_model(tmp_path / "m"), data)


def test_functions_are_given_again(tmp_path: Path) -> None:
    text = ":- semiring real. :- external ok/1. goal += w(S) * seen(S) * ok(S)."
    rows = {"w/1": [("a",), ("b",)]}

    def weights(p: Any) -> Any:
        return own.array([p, -p])

    def ratio(values: Any, example: Any) -> Any:
        return own.log(values[0])

    free = training.Differentiable(rows, weights, 0.5)
    objective = training.OfItems(("goal",), ratio)
    functions: dict[str, Callable[..., Any]] = {"ok/1": lambda s: 0.5}
    model = dg.Model(dg.Program(text, functions=functions), {"w": free}, objective=objective)
    data = [{"seen/1": [("a",)]}, {"seen/1": [("b",)]}, {"seen/1": [("a",)]}]
    model.fit(data, method="sgd", iterations=2)
    model.save(tmp_path / "m")
    with pytest.raises(dg.Error, match=r"has the function ok/1, .* functions=\{'ok/1': ...\}"):
        dg.load_model(tmp_path / "m")
    with pytest.raises(
        dg.Error, match=r"the weights of w come from a Differentiable, .* parametrisations=\{'w': ...\}"
    ):
        dg.load_model(tmp_path / "m", functions=functions)
    with pytest.raises(dg.Error, match=r"objective of the model .* is a function \(OfItems\)"):
        dg.load_model(tmp_path / "m", functions=functions, parametrisations={"w": free})
    other = training.Differentiable({"w/1": [("a",), ("c",)]}, weights, 0.5)
    with pytest.raises(dg.Error, match="other rows"):
        dg.load_model(tmp_path / "m", functions=functions, parametrisations={"w": other}, objective=objective)
    with pytest.raises(dg.Error, match="has 'v'; the model has w"):
        dg.load_model(tmp_path / "m", functions=functions, parametrisations={"w": free, "v": free}, objective=objective)
    again = dg.load_model(tmp_path / "m", functions=functions, parametrisations={"w": free}, objective=objective)
    assert again.score(data) == model.score(data)


def test_what_a_person_reads(tmp_path: Path) -> None:
    coin(training.Dirichlet(2.0)).save(tmp_path / "m")
    assert (tmp_path / "m" / "program.dyna").read_text() == COIN
    head = tomllib.loads((tmp_path / "m" / "model.toml").read_text())
    assert head["goal"] == "goal" and head["program"]["semiring"] == "real"
    assert head["objective"] == {"kind": "Likelihood"}
    (entry,) = head["parametrisations"]
    assert entry["prior"] == {"kind": "Dirichlet", "alpha": 2.0}
    import pyarrow as pa

    with pa.ipc.open_file(str(tmp_path / "m" / entry["parameters"])) as file:
        assert file.read_all().column("parameter").to_pylist() == ["toss(h)", "toss(t)"]


class Own(training.priors.Prior):
    """A prior of a user."""

    def log_density(self, of: Any, theta: Any) -> float:
        return 0.0

    def gradient(self, of: Any, theta: Any) -> Any:
        return np.zeros(len(theta))


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(dg.Error, match="the prior of toss/1 is a Own"):
        coin(Own()).save(tmp_path / "m")
    odd = training.LogLinear({"toss/1": [("h",)]}, lambda s: [b"bytes"])
    with pytest.raises(dg.Error, match="something that is no term"):
        dg.Model(COIN, {"toss": odd}).save(tmp_path / "m")
    deep: Any = "x"
    for _ in range(3000):
        deep = dg.Term("f", deep)
    nested = dg.Model(COIN, {"toss": training.LogLinear({"toss/1": [(deep,)]}, lambda s: ["x"])})
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)  # an oracle of other tests raises it
    try:
        with pytest.raises(dg.Error, match="nested too deep"):
            nested.save(tmp_path / "m")
    finally:
        sys.setrecursionlimit(before)
    assert not list(tmp_path.iterdir())


# -- nothing is lost


def test_a_folder_that_is_no_model_stays(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.txt").write_text("years of work")
    with pytest.raises(dg.Error, match="it is no model"):
        coin().save(tmp_path / "m")
    assert (tmp_path / "m" / "thesis.txt").read_text() == "years of work"
    coin().save(tmp_path / "n")
    (tmp_path / "n" / "notes.txt").write_text("notes")
    with pytest.raises(dg.Error, match=r"'notes\.txt', which is no file of a model"):
        coin().save(tmp_path / "n")
    (tmp_path / "file").write_text("")
    with pytest.raises(dg.Error, match="it is no folder"):
        coin().save(tmp_path / "file")
    with pytest.raises(dg.Error, match="No such file"):
        coin().save(tmp_path / "nowhere" / "m")
    (tmp_path / "empty").mkdir()
    coin().save(tmp_path / "empty")
    (tmp_path / "link").symlink_to("empty")
    model = coin()
    model.fit([{"seen/1": [("h",)]}])
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert dg.load_model(tmp_path / "empty").weights["toss/1"]["h",] == 1.0


@pytest.mark.parametrize("exchange", [True, False])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: Any, exchange: bool) -> None:
    if not exchange:
        monkeypatch.setattr(whole.ctypes, "CDLL", lambda *_, **__: None)
    coin().save(tmp_path / "m")
    before = {p.name: p.read_bytes() for p in (tmp_path / "m").iterdir()}
    model = coin()
    model.fit([{"seen/1": [("h",)]}])
    real, calls, fails = os.fsync, 0, 0

    def full(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(whole.os, "fsync", full)
    for n in range(1, len(before) + 1):
        fails, calls = n, 0
        with pytest.raises(dg.Error, match="cannot be written, and is as it was: No space left"):
            model.save(tmp_path / "m")
        assert {p.name: p.read_bytes() for p in (tmp_path / "m").iterdir()} == before
        assert [p.name for p in tmp_path.iterdir()] == ["m"]
    fails = 0
    model.save(tmp_path / "m")
    assert dg.load_model(tmp_path / "m").weights["toss/1"]["h",] == 1.0
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_disk_that_is_full_indeed(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("the system has no /dev/full")
    with pytest.raises(dg.Error, match="No space left"):
        coin().fit([{"seen/1": [("h",)]}]).to_csv(full)


# -- damage


def test_every_file_damaged_in_every_way(tmp_path: Path) -> None:
    """Bytes changed, cut, added; files missing: always a FactError, and never a model."""
    tagger().save(tmp_path / "m")
    files = {p.name: p.read_bytes() for p in (tmp_path / "m").iterdir()}
    draw = random.Random(7)

    def flipped(data: bytes) -> bytes:
        at = draw.randrange(len(data))
        return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]

    ways: list[Callable[[bytes], bytes]] = [
        flipped,
        lambda d: d[: draw.randrange(len(d))],
        lambda d: d + b"\0",
        lambda d: b"",
        lambda d: bytes(draw.randrange(256) for _ in range(64)),
        lambda d: d[len(d) // 2 :] + d[: len(d) // 2],
    ]
    for name, data in files.items():
        for way in [*[ways[0]] * 30, *[ways[1]] * 5, *ways[2:]]:
            (tmp_path / "m" / name).write_bytes(new := way(data))
            if new == data:
                continue
            with pytest.raises(dg.FactError):
                dg.load_model(tmp_path / "m")
        (tmp_path / "m" / name).unlink()
        with pytest.raises(dg.FactError):
            dg.load_model(tmp_path / "m")
        (tmp_path / "m" / name).write_bytes(data)
    dg.load_model(tmp_path / "m")


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("SHA256SUMS", "program.dyna", "parameters-0.arrow"):
        tagger().save(tmp_path / name)
        (tmp_path / name / name).unlink()
        os.mkfifo(tmp_path / name / name)
        with pytest.raises(dg.FactError, match=f"{name} is no file"):
            dg.load_model(tmp_path / name)


def test_a_program_without_the_parameters_or_the_goal_is_no_model(tmp_path: Path) -> None:
    for change in (("toss(S) *", "other(S) *"), ("goal", "gaol")):
        dg.Model(COIN, {"toss": training.Distribution({"toss/1": [("h",), ("t",)]})}).save(tmp_path / "m")
        text = ":- semiring real. goal += toss(S) * seen(S).".replace(*change)
        resealed(tmp_path / "m", "program.dyna", text.encode())
        with pytest.raises(dg.FactError, match=r"its program has no predicate (toss/1|goal/0)"):
            dg.load_model(tmp_path / "m")


def resealed(folder: Path, name: str, data: bytes) -> None:
    """A file in place of another, with sums that fit: as someone makes it who means it."""
    (folder / name).write_bytes(data)
    names = [line[66:] for line in (folder / "SHA256SUMS").read_text().splitlines()]
    sums = "".join(f"{models.hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in names)
    (folder / "SHA256SUMS").write_text(sums)


def test_parameters_that_are_missing(tmp_path: Path) -> None:
    """A row fewer in the file of parameters, and one that is no number, with sums that fit."""
    import pyarrow as pa

    coin().save(tmp_path / "m")
    with pa.ipc.open_file(str(tmp_path / "m" / "parameters-0.arrow")) as file:
        table = file.read_all()
    gap = table.set_column(table.column_names.index("value"), "value", pa.array([0.0, float("nan")]))
    for wrong, message in (
        (table.slice(0, 1), "parameter 1 is missing: there are 1, from 0 on"),
        (gap, "1 of the 2 parameters of toss/1 have no number"),
    ):
        target = pa.BufferOutputStream()
        with pa.ipc.new_file(target, wrong.schema) as out:
            out.write_table(wrong)
        resealed(tmp_path / "m", "parameters-0.arrow", target.getvalue().to_pybytes())
        with pytest.raises(dg.FactError, match=message):
            dg.load_model(tmp_path / "m")


def test_nothing_in_a_folder_is_executed(tmp_path: Path, monkeypatch: Any) -> None:
    """Neither code nor pickles: what could run any is out of order while a model is read."""
    model = tagger()
    model.save(tmp_path / "m")
    assert not any(b"pickle" in p.read_bytes() or p.suffix in (".py", ".pkl") for p in (tmp_path / "m").iterdir())
    dg.load_model(tmp_path / "m")  # what is imported when it is wanted, now is

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was executed")

    with monkeypatch.context() as patch:
        for module, name in ((builtins, "exec"), (builtins, "eval"), (builtins, "compile"), (os, "system")):
            patch.setattr(module, name, refused)
        for name in ("load", "loads", "Unpickler"):
            patch.setattr(pickle, name, refused)
        again = dg.load_model(tmp_path / "m")
    assert again.score(DATA) == model.score(DATA)


def test_files_that_someone_else_made(tmp_path: Path) -> None:
    """With sums that fit, what does not go together is still an error, and nothing crashes."""
    folder = tmp_path / "m"
    tagger().save(folder)
    files = {p.name: p.read_bytes() for p in folder.iterdir()}
    draw = random.Random(3)
    fine = 0
    for name, data in files.items():
        if name in ("SHA256SUMS", "program.dyna"):
            continue
        for n in range(20):
            at = draw.randrange(len(data))
            new = data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
            if n % 8 == 0:
                new = files[draw.choice([x for x in files if x.endswith(".arrow")])]
            resealed(folder, name, new)
            try:
                dg.load_model(folder)
                fine += 1  # such as a byte of padding
            except dg.Error as error:
                assert str(error)
        resealed(folder, name, data)
    assert fine
    dg.load_model(folder)


def test_other_formats_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(dg.FactError, match="which is no folder"):
        dg.load_model(tmp_path / "m")
    with pytest.raises(dg.FactError, match=r"which has no model\.toml"):
        dg.load_model(tmp_path)
    coin().save(tmp_path / "m")
    head = (tmp_path / "m" / "model.toml").read_text()
    resealed(tmp_path / "m", "model.toml", head.replace("version = 1", "version = 2").encode())
    with pytest.raises(dg.FactError, match="is of format 2, and this version of Dynagrad reads 1; install a newer one"):
        dg.load_model(tmp_path / "m")
    resealed(tmp_path / "m", "model.toml", b'format = "something"')
    with pytest.raises(dg.FactError, match="is no model of Dynagrad"):
        dg.load_model(tmp_path / "m")
    resealed(tmp_path / "m", "model.toml", head.replace('"toss/1"', '"loss/1"').encode())
    with pytest.raises(dg.FactError):
        dg.load_model(tmp_path / "m")
    with pytest.raises(dg.Error, match="folder must be the path"):
        dg.load_model(3)  # type: ignore[arg-type]
