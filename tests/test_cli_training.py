"""`dynagrad train`, `evaluate` and `predict`: what they print and write, settings, errors. Costs ten seconds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dynagrad as dg
from dynagrad import cli

PROGRAM = """
:- semiring real.
:- distribution emit(T,W) given T.
:- distribution tag(T).
at(T,I) += tag(T) * emit(T,W) * word(W,I) * weight(T).
goal += at(_,0) * at(_,1).
"""
DATA = [
    {"word/2": [["the", 0], ["dog", 1]]},
    {"facts": {"word/2": [["the", 0], ["2", 1]]}, "weight": 2, "name": "second"},
    {"word/2": [["a", 0], ["dog", 1]]},
]


@pytest.fixture
def call() -> Callable[..., Any]:
    runner = CliRunner()
    return lambda *given: runner.invoke(cli.app, list(map(str, given)), catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tags.dyna").write_text(PROGRAM)
    words = [(t, w) for t in "dn" for w in ("the", "a", "dog", "2")]
    (tmp_path / "emit.2.tsv").write_text("".join(f"{t}\t{w}\t{0.1 + 0.05 * n}\n" for n, (t, w) in enumerate(words)))
    (tmp_path / "tag.tsv").write_text("d\t0.5\nn\t0.5\n")
    (tmp_path / "weight.1.tsv").write_text("d\t1\nn\t0.5\n")
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, DATA)))
    (tmp_path / "dev.jsonl").write_text(json.dumps(DATA[0]) + "\n" + json.dumps({"word/2": [["cat", 0], ["a", 1]]}))
    return tmp_path


def arguments(folder: Path) -> list[Any]:
    parameters = ["-p", folder / "emit.2.tsv", "-p", f"tag/1={folder / 'tag.tsv'}"]
    return ["train", folder / "tags.dyna", *parameters, "-f", folder / "weight.1.tsv", "--data", folder / "train.jsonl"]


def by_hand(iterations: int = 4) -> tuple[dg.Model, Any]:
    words = [(t, w) for t in "dn" for w in ("the", "a", "dog", "2")]
    rows = {
        "emit/2": [(*r, 0.1 + 0.05 * n) for n, r in enumerate(words)],
        "tag/1": [("d", 0.5), ("n", 0.5)],
    }
    model = dg.Model(dg.Program(PROGRAM), rows, facts={"weight/1": [("d", 1.0), ("n", 0.5)]})
    facts = [{"word/2": [tuple(r) for r in d.get("facts", d)["word/2"]]} for d in DATA]  # type: ignore[attr-defined]
    fit = model.fit([facts[0], facts[1], facts[1], facts[2]], iterations=iterations)
    return model, fit


def test_train_evaluate_predict(call: Callable[..., Any], folder: Path) -> None:
    result = call(*arguments(folder), "--iterations", 4, "--save", folder / "m", "--log", folder / "log.csv")
    assert (result.exit_code, result.stderr) == (0, f"wrote {folder / 'm'}\n")
    model, fit = by_hand()
    words = result.stdout.split()
    assert words[:4] == ["em:", "4", "iterations,", "objective"] and words[-2:] == ["stopped:", "iterations"]
    assert float(words[4].rstrip(",")) == pytest.approx(fit.objective, rel=1e-9)
    assert len((folder / "log.csv").read_text().splitlines()) == 5
    saved = dg.load_model(folder / "m")
    assert saved.weights["emit/2"].values == pytest.approx(model.weights["emit/2"].values, rel=1e-12)

    result = call("evaluate", folder / "m", "--data", folder / "train.jsonl")
    assert result.exit_code == 0 and float(result.stdout) == saved.score(folder / "train.jsonl")
    result = call("evaluate", folder / "m", "--data", folder / "dev.jsonl")
    assert result.exit_code == 0 and "warning: goal is not derived in example 1" in result.stderr
    assert call("evaluate", folder / "m", "--data", folder / "dev.jsonl", "--missing", "skip").stderr == ""
    result = call("evaluate", folder / "m", "--data", folder / "dev.jsonl", "--missing", "error")
    assert result.exit_code == 1 and "error: goal is not derived in example 1" in result.stderr

    best = saved.predict({"word/2": [("the", 0), ("dog", 1)]})
    result = call("predict", folder / "m", "--data", folder / "dev.jsonl", "--format", "brackets")
    assert result.stdout == f"{best.weight}\t{best.brackets()}\n\n"
    assert "note: example 1 " in result.stderr and "goal was not derived" in result.stderr
    result = call("predict", folder / "m", "--data", folder / "dev.jsonl", "--format", "json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first == json.loads(best.to_json()) and second is None
    result = call("predict", folder / "m", "--data", folder / "train.jsonl")
    assert result.stdout.count("goal\n") == 3 and f"{best.weight}\n{best.text()}\n\n" in result.stdout
    assert (
        call("predict", folder / "m", "--data", folder / "train.jsonl", "-q", "at(d,0)").stdout.count("at(d,0)\n") == 3
    )
    assert "it has variables" in call("predict", folder / "m", "--data", folder / "train.jsonl", "-q", "at(X,0)").stderr


def test_settings_in_a_file(call: Callable[..., Any], folder: Path) -> None:
    (folder / "settings.toml").write_text("""
        data = "train.jsonl"
        dev = "dev.jsonl"
        save = "m"
        method = "l-bfgs"
        iterations = 50
        l2 = 0.5
        facts = ["weight.1.tsv"]
        missing = "skip"
        [parameters]
        "emit/2" = "emit.2.tsv"
        "tag/1" = "tag.tsv"
        [options]
        options = {maxcor = 5}
    """)
    result = call("train", folder / "tags.dyna", "--config", folder / "settings.toml")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("l-bfgs: ") and ", held out -" in result.stdout
    prior = dg.load_model(folder / "m")._spec.priors["emit/2"]
    assert prior.variance == 1.0  # type: ignore[attr-defined]
    result = call("train", folder / "tags.dyna", "--config", folder / "settings.toml", "--iterations", 1)
    assert result.stdout.startswith("l-bfgs: 1 iteration, ")  # the command line wins


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metod = 'em'", "there is no setting metod; did you mean method?"),
        ("data = 3", "data is a path, not 3"),
        ("= 3", "Invalid"),
        ("parameters = 3", "parameters is a table from predicates to files"),
        ("options = 3", "options is a table, not 3"),
        ("semiring = 3", "semiring is a name, not 3"),
        ("values = 'many'", "values is weights or probabilities"),
        ("iterations = 'many'", "iterations must be a whole number"),
        ("tolerance = 'x'", "tolerance must be a number"),
        ("missing = 'x'", "missing is one of"),
        ("method = 'x'", "there is no method 'x'"),
        ("l2 = 'x'", "strength must be a number"),
        ("progress = 3", "progress must be True or False"),
        ("[options]\nseed = 3", "options is for those of the method; seed is a setting"),
        ("[options]\nsiz = 3", "fit has no option siz"),
    ],
)
def test_wrong_settings(call: Callable[..., Any], folder: Path, text: str, message: str) -> None:
    (folder / "settings.toml").write_text(text)
    result = call(*arguments(folder), "--config", folder / "settings.toml", "--iterations", 1)
    if "iterations" in text:
        result = call(*arguments(folder), "--config", folder / "settings.toml")
    assert result.exit_code == 1 and not result.stdout
    assert message in result.stderr


def test_wrong_calls(call: Callable[..., Any], folder: Path) -> None:
    program, data = folder / "tags.dyna", folder / "train.jsonl"
    for given, message in (
        (("train", program), "give --data"),
        (("train", program, "--data", data), "give --parameters, such as"),
        ((*arguments(folder), "--add-lambda", 1, "--l2", 1), "there can be one prior"),
        ((*arguments(folder), "-f", folder / "emit.2.tsv"), "is among --parameters and among --facts"),
        ((*arguments(folder), "-p", "emmit/2=x.tsv"), "error: --parameters emmit/2: the program has no predicate"),
        ((*arguments(folder), "--save", folder / "no" / "m"), "there is no folder"),
        ((*arguments(folder), "--save", folder), "it is no model"),
        ((*arguments(folder), "--goal", "at(X,0)"), "it has variables"),
        ((*arguments(folder), "--config", folder / "none.toml"), "No such file"),
        ((*arguments(folder), "--method", "newton"), "there is no method 'newton'"),
        (("evaluate", folder, "--data", data), "has no model.toml"),
        (("predict", folder / "none", "--data", data), "is no folder"),
    ):
        result = call(*given)
        assert result.exit_code == 1, given
        assert message in result.stderr and not result.stdout, result.stderr
    assert call(*arguments(folder), "--iterations", 0).exit_code == 2
    call(*arguments(folder), "--save", folder / "m", "--iterations", 1)
    result = call("evaluate", folder / "m", "--data", folder / "none.jsonl")
    assert result.exit_code == 1 and "there is no data at" in result.stderr


def test_functions_of_the_program(call: Callable[..., Any], folder: Path) -> None:
    (folder / "f.dyna").write_text(
        ":- semiring real. :- external ok/1. :- distribution toss(S). goal += toss(S) * seen(S) * ok(S)."
    )
    (folder / "f.py").write_text("def ok(s):\n    return 0.5\n")
    (folder / "toss.1.tsv").write_text("h\nt\n")
    (folder / "d.jsonl").write_text('{"seen/1": [["h"]]}\n')
    given = ["-p", folder / "toss.1.tsv", "--data", folder / "d.jsonl", "--save", folder / "m"]
    functions = ["--functions", folder / "f.py"]
    assert call("train", folder / "f.dyna", *given, *functions).exit_code == 0
    result = call("evaluate", folder / "m", "--data", folder / "d.jsonl")
    assert result.exit_code == 1 and "give it again" in result.stderr
    assert call("evaluate", folder / "m", "--data", folder / "d.jsonl", *functions).stdout == "-0.6931471805599453\n"
    assert call("predict", folder / "m", "--data", folder / "d.jsonl", *functions).stdout.startswith("0.5\ngoal\n")


def test_a_checkpoint_is_taken_up(call: Callable[..., Any], folder: Path) -> None:
    kept = ["--checkpoint", folder / "c", "--log", folder / "log.arrow"]
    call(*arguments(folder), *kept, "--iterations", 2)
    result = call(*arguments(folder), *kept, "--iterations", 4, "--progress")
    assert result.stdout == call(*arguments(folder), "--iterations", 4).stdout
    import pyarrow as pa

    with pa.ipc.open_file(str(folder / "log.arrow")) as file:
        assert file.read_all().column("iteration").to_pylist() == [1, 2, 3, 4]
