"""`dynagrad train`, `evaluate` and `predict`: what they print and write, settings, errors. Costs 15 seconds."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dynagrad as dg
from dynagrad import cli, training

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
    (tmp_path / "emit.2.tsv").write_text("".join(f"{t}\t{w}\t{1 + 0.5 * n}\n" for n, (t, w) in enumerate(words)))
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
        "emit/2": [(*r, 1 + 0.5 * n) for n, r in enumerate(words)],
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
    assert result.stdout == f"{best.weight}\t{best.brackets()}\n\n" and result.exit_code == 1
    assert "note: example 1 " in result.stderr and "goal was not derived" in result.stderr
    result = call("predict", folder / "m", "--data", folder / "dev.jsonl", "--format", "json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first == json.loads(best.to_json()) and second is None and result.exit_code == 1
    result = call("predict", folder / "m", "--data", folder / "train.jsonl")
    assert result.exit_code == 0
    assert result.stdout.count("goal\n") == 3 and f"{best.weight}\n{best.text()}\n\n" in result.stdout
    assert (
        call("predict", folder / "m", "--data", folder / "train.jsonl", "-q", "at(d,0)").stdout.count("at(d,0)\n") == 3
    )
    assert "it has variables" in call("predict", folder / "m", "--data", folder / "train.jsonl", "-q", "at(X,0)").stderr


def test_restarts_keep_the_best_of_several_starts(call: Callable[..., Any], folder: Path) -> None:
    options = ("--iterations", 2, "--seed", 3, "--restarts", 3, "--save", folder / "m")
    assert "iterations, objective " in call(*arguments(folder), *options).stdout
    model, _ = by_hand(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.ProgramWarning)
        fit = model.fit(folder / "train.jsonl", iterations=2, seed=3, restarts=3)
        found = dg.load_model(folder / "m").weights["emit/2"].values
    assert len(fit.starts) == 3 and found == pytest.approx(model.weights["emit/2"].values, rel=1e-9)
    assert call(*arguments(folder), "--restarts", 0).exit_code == 2


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
        ("l2 = 'x'", "strength of L2 must be a number"),
        ("progress = 3", "progress must be True or False"),
        ("objective = 'best'", "objective is likelihood, conditional or risk, not 'best'"),
        ("objective = 'risk'", "--objective risk wants --cost KEY"),
        ("cost = 'word/2'", "--cost is for --objective conditional and risk, not likelihood"),
        ("priors = 3", "priors is a table, not 3"),
        ("[priors]\n'tag/1' = 3", "priors: tag/1 wants a table with one of add_lambda, dirichlet, gaussian, l1, l2"),
        ("[priors]\n'tog/1' = {l2 = 1.0}", "prior has 'tog/1'; the parameters are emit/2, tag/1"),
        ("l2 = 1.0\n[priors]\n'tag/1' = {l2 = 1.0}", "there can be one of both"),
        ("[priors]\n'tag/1' = {gaussian = {varianz = 1.0}}", "Gaussian has no option varianz; did you mean variance?"),
        ("[priors]\n'tag/1' = {l2 = {}}", "l2: L2() missing 1 required"),
        ("[priors]\n'tag/1' = {dirichlet = {alpha = {'tag(x)' = 2.0}}}", "has no alpha for tag(d)"),
        ("parametrisations = 3", "parametrisations is a table, not 3"),
        ("[parametrisations]\n'tog/1' = {}", "tog/1 is none of those of this model: emit/2, tag/1"),
        ("[parametrisations]\n'tag/1' = 3", "tag/1 wants a table, such as {initial = 'random'}, not 3"),
        ("[parametrisations]\n'tag/1' = {kind = 'x'}", "kind is distribution or log-linear, not 'x'"),
        ("[parametrisations]\n'tag/1' = {hashed = 3}", "tag/1 is a distribution, which has no hashed"),
        ("[parametrisations]\n'tag/1' = {given = 0}", "which declares them: leave given away"),
        ("[parametrisations]\n'tag/1' = {initial = 'x'}", "initial is one of given, uniform, random"),
        ("[parametrisations]\n'tag/1' = {frozen = 'd'}", "frozen is true, or lists of first arguments"),
        ("[parametrisations]\n'tag/1' = {kind = 'log-linear', frozen = [['d']]}", "frozen is a list of features"),
        ("executor = 0", "executor"),
        ("method = 'torch.optim.Adamm'", "torch"),
        ("features = 'emit.3.tsv'", "it begins with one of --parameters, such as emit/2=FILE"),
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


def test_priors_by_name(call: Callable[..., Any], folder: Path) -> None:
    (folder / "settings.toml").write_text('[priors]\n"emit/2" = {dirichlet = 0.5}\n"tag/1" = {add_lambda = 2}')
    given = ["--config", folder / "settings.toml", "--method", "variational", "--iterations", 2, "--save", folder / "m"]
    assert call(*arguments(folder), *given).exit_code == 0
    priors = dg.load_model(folder / "m")._spec.priors
    assert priors == {"emit/2": training.Dirichlet(0.5), "tag/1": training.Dirichlet(3.0)}


def trained(call: Callable[..., Any], folder: Path, settings: str, *more: Any) -> dg.Model:
    """The model that the command trains by settings in a file."""
    (folder / "settings.toml").write_text(settings)
    given = ["--config", folder / "settings.toml", "--save", folder / "m", *more]
    result = call(*arguments(folder), *given)
    assert result.exit_code == 0, result.stderr
    return dg.load_model(folder / "m")


def test_priors_with_more_than_a_number(call: Callable[..., Any], folder: Path) -> None:
    """As the same model by hand: a Gaussian around a mean of each parameter, and an alpha for each probability."""
    saved = trained(
        call,
        folder,
        """
        method = "l-bfgs"
        iterations = 30
        [priors]
        "emit/2" = {gaussian = {variance = 2.0, mean = {"emit(d,the)" = 1.0, "emit(n,dog)" = -1.0}}}
        "tag/1" = {dirichlet = {alpha = {"tag(d)" = 2.0, "tag(n)" = 5.0}}}
        """,
    )
    priors = {
        "emit/2": training.Gaussian(2.0, {"emit(d,the)": 1.0, "emit(n,dog)": -1.0}),
        "tag/1": training.Dirichlet({"tag(d)": 2.0, "tag(n)": 5.0}),
    }
    assert saved._spec.priors["tag/1"] == priors["tag/1"]
    model, _ = by_hand(1)
    mine = dg.Model(
        PROGRAM,
        {key: list(table) for key, table in by_hand_start().items()},
        prior=priors,
        facts={"weight/1": [("d", 1.0), ("n", 0.5)]},
    )
    mine.fit(folder / "train.jsonl", method="l-bfgs", iterations=30)
    for key in model.weights:
        assert saved.weights[key].values == pytest.approx(mine.weights[key].values, rel=1e-9)
    assert trained(call, folder, "gaussian = {variance = 3.0, mean = 0.5}\nmethod = 'l-bfgs'")._spec.priors[
        "tag/1"
    ] == training.Gaussian(3.0, 0.5)


def by_hand_start() -> dict[str, list[tuple[Any, ...]]]:
    words = [(t, w) for t in "dn" for w in ("the", "a", "dog", "2")]
    return {"emit/2": [(*r, 1 + 0.5 * n) for n, r in enumerate(words)], "tag/1": [("d", 0.5), ("n", 0.5)]}


def test_parametrisations_by_name(call: Callable[..., Any], folder: Path) -> None:
    saved = trained(
        call,
        folder,
        """
        iterations = 3
        [parametrisations]
        "tag/1" = {frozen = true}
        "emit/2" = {initial = "uniform", frozen = [["d"]]}
        """,
    )
    assert saved.weights["tag/1"].values == pytest.approx(0.5, abs=1e-15)
    weights = saved.weights["emit/2"]
    assert [weights["d", w] for w in ("the", "a", "dog", "2")] == pytest.approx([0.25] * 4, abs=1e-15)
    assert weights["n", "dog"] != pytest.approx(0.25)
    (folder / "emit.2.tsv").write_text("".join(f"{t}\t{w}\n" for t, w, _ in by_hand_start()["emit/2"]))
    tied = trained(call, folder, 'iterations = 3\n[parametrisations]\n"emit/2" = {tied = 1}')
    for w in ("the", "a", "dog", "2"):
        assert tied.weights["emit/2"]["d", w] == tied.weights["emit/2"]["n", w]
    random = [
        trained(call, folder, f'iterations = 1\nseed = {n}\n[parametrisations]\n"emit/2" = {{initial = "random"}}')
        for n in (1, 1, 2)
    ]
    first, again, other = (m.parameters["emit/2"].tobytes() for m in random)
    assert first == again != other
    linear = trained(
        call,
        folder,
        """
        method = "l-bfgs"
        l2 = 0.1
        iterations = 5
        [parametrisations]
        "emit/2" = {kind = "log-linear", hashed = 5, noise = 0.1}
        """,
    )
    assert linear.parameters["emit/2"].shape == (5,)
    weights = linear.weights["emit/2"]
    assert sum(weights["d", w] for w in ("the", "a", "dog", "2")) == pytest.approx(1.0)  # as it is declared


def test_rows_that_the_program_does_not_declare(call: Callable[..., Any], folder: Path) -> None:
    (folder / "tags.dyna").write_text("\n".join(line for line in PROGRAM.splitlines() if "distribution" not in line))
    result = call(*arguments(folder))
    assert result.exit_code == 1 and "nothing says how the weights of emit/2 depend" in result.stderr
    saved = trained(
        call, folder, 'iterations = 4\n[parametrisations]\n"emit/2" = {given = 0}\n"tag/1" = {kind = "distribution"}'
    )
    model, _ = by_hand()
    assert saved.weights["emit/2"].values == pytest.approx(model.weights["emit/2"].values, rel=1e-12)


def test_features_of_a_part_of_a_distribution(call: Callable[..., Any], folder: Path) -> None:
    """Rows of two arities that sum to one together have features all, or none."""
    (folder / "g.dyna").write_text(
        ":- semiring real. :- distribution r(X,...) given X. goal += r(X,Y) * seen(X,Y). goal += r(X) * seen(X,none)."
    )
    (folder / "r.2.tsv").write_text("a\tb\n")
    (folder / "r.1.tsv").write_text("a\n")
    (folder / "f.tsv").write_text("a\tb\ton\n")
    given = ["-p", folder / "r.2.tsv", "-p", folder / "r.1.tsv", "--features", f"r/2={folder / 'f.tsv'}"]
    result = call("train", folder / "g.dyna", *given, "--data", folder / "train.jsonl")
    assert result.exit_code == 1 and "r/2 and r/1 are one distribution, so r/1 needs features too" in result.stderr


def test_processes_and_optimisers_of_torch(call: Callable[..., Any], folder: Path) -> None:
    plain = call(*arguments(folder), "--iterations", 2)
    assert call(*arguments(folder), "--iterations", 2, "--executor", 1).stdout == plain.stdout
    pytest.importorskip("torch")
    (folder / "settings.toml").write_text("method = 'torch.optim.SGD'\niterations = 2\n[options]\nlr = 0.1")
    result = call(*arguments(folder), "--config", folder / "settings.toml")
    assert result.exit_code == 0 and result.stdout.startswith("torch.optim.SGD: 2 iterations")


CRF = """
:- semiring log.
at(0,T) += suits(T,W) * word(0,W) * may(0,T).
at(I+1,T) += at(I,S) * follows(S,T) * suits(T,W) * word(I+1,W) * may(I+1,T).
goal += at(I,_) * length(I+1).
"""
SENTENCES = ["the/d dog/n sees/v the/d cat/n", "the/d cat/n barks/v", "dogs/n bark/v", "cats/n see/v the/d dogs/n"]


def test_a_conditional_random_field(call: Callable[..., Any], tmp_path: Path) -> None:
    """Features from a file, and what was observed in the examples: as the same model by hand."""
    examples, words = [], set()
    for text in SENTENCES:
        pairs = [token.split("/") for token in text.split()]
        words |= {word for word, _ in pairs}
        examples.append(
            {
                "facts": {
                    "word/2": [[n, word] for n, (word, _) in enumerate(pairs)],
                    "may/2": [[n, t] for n in range(len(pairs)) for t in "dnv"],
                    "length/1": [[len(pairs)]],
                },
                "observed": {"may/2": [[n, t] for n, (_, t) in enumerate(pairs)]},
            }
        )
    (tmp_path / "crf.dyna").write_text(CRF)
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, examples)))
    suits = [(t, w) for t in "dnv" for w in sorted(words)]
    (tmp_path / "suits.2.tsv").write_text("".join(f"{t}\t{w}\n" for t, w in suits))
    (tmp_path / "follows.2.tsv").write_text("".join(f"{s}\t{t}\n" for s in "dnv" for t in "dnv"))
    (tmp_path / "features.tsv").write_text(
        "".join(f"{t}\t{w}\t{t} {w[-1]}\t1\n{t}\t{w}\t{t} {w}\t0.5\n" for t, w in suits)
    )
    (tmp_path / "moves.tsv").write_text("".join(f"{s}\t{t}\t{s} {t}\n" for s in "dnv" for t in "dnv"))
    (tmp_path / "settings.toml").write_text("""
        data = "train.jsonl"
        method = "l-bfgs"
        objective = "conditional"
        l2 = 0.1
        iterations = 30
        [parameters]
        "suits/2" = "suits.2.tsv"
        "follows/2" = "follows.2.tsv"
        [features]
        "suits/2" = "features.tsv"
        "follows/2" = "moves.tsv"
    """)
    result = call("train", tmp_path / "crf.dyna", "--config", tmp_path / "settings.toml", "--save", tmp_path / "m")
    assert result.exit_code == 0, result.stderr
    weights = training.LogLinear(
        {"suits/2": suits, "follows/2": [(s, t) for s in "dnv" for t in "dnv"]},
        lambda a, b: {f"{a} {b}": 1.0} if b in "dnv" else {f"{a} {b[-1]}": 1.0, f"{a} {b}": 0.5},
    )
    mine = dg.Model(CRF, {"w": weights}, objective=training.Conditional(), prior=training.L2(0.1))
    fit = mine.fit(tmp_path / "train.jsonl", method="l-bfgs", iterations=30)
    assert float(result.stdout.split("objective ")[1].split(",")[0]) == pytest.approx(fit.objective, abs=1e-5)
    score = float(call("evaluate", tmp_path / "m", "--data", tmp_path / "train.jsonl").stdout)
    assert score == pytest.approx(mine.score(tmp_path / "train.jsonl"), abs=1e-3)
    assert call("predict", tmp_path / "m", "--data", tmp_path / "train.jsonl").stdout.count("goal") == 4


def test_a_program_for_the_clamped_run(call: Callable[..., Any], tmp_path: Path) -> None:
    """Two programs with facts of their own, against the formula: of the one a fact, of the other what all sums have."""
    (tmp_path / "free.dyna").write_text(":- semiring log. goal += w(S) * seen(S) * every(S).")
    (tmp_path / "told.dyna").write_text(":- semiring log. :- external up/1. goal += w(S) * told(S) * up(S) * one.")
    (tmp_path / "up.py").write_text("def up(s):\n    return 0.0\n")
    (tmp_path / "w.1.tsv").write_text("a\nb\n")
    (tmp_path / "every.1.tsv").write_text("a\t1\nb\t0.5\n")
    (tmp_path / "one.0.tsv").write_text("1\n")
    (tmp_path / "f.tsv").write_text("a\tx\t1\nb\ty\t1\n")
    data = [{"facts": {"seen/1": [["a"], ["b"]]}, "observed": {"told/1": [[s]]}} for s in "aab"]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, data)))
    given = ["-p", tmp_path / "w.1.tsv", "--facts", tmp_path / "every.1.tsv", "--facts", tmp_path / "one.0.tsv"]
    given += ["--features", f"w/1={tmp_path / 'f.tsv'}", "--data", tmp_path / "d.jsonl", "--method", "l-bfgs"]
    given += ["--clamped", tmp_path / "told.dyna", "--functions", tmp_path / "up.py", "--save", tmp_path / "m"]
    result = call("train", tmp_path / "free.dyna", *given, "--objective", "conditional", "--l2", "0.5")
    assert result.exit_code == 0, result.stderr
    saved = dg.load_model(tmp_path / "m", functions={"up": lambda s: 0.0})
    w = dict(zip("xy", saved.parameters["features"], strict=True))
    top, either = 2 * (w["x"] + 1) + (w["y"] + 1), np.logaddexp(w["x"] + 1, w["y"] + 0.5)
    assert float(result.stdout.split("objective ")[1].split(",")[0]) == pytest.approx(
        top - 3 * either - 0.5 * (w["x"] ** 2 + w["y"] ** 2), abs=1e-6
    )
    score = call("evaluate", tmp_path / "m", "--data", tmp_path / "d.jsonl", "--functions", tmp_path / "up.py")
    assert float(score.stdout) == pytest.approx(top - 3 * either)
    assert "--clamped is for --objective conditional" in call("train", tmp_path / "free.dyna", *given).stderr


def test_what_cannot_be_replaced_is_told_before_the_training(call: Callable[..., Any], folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("notes")
    (folder / "nowhere.dyna").write_text(":- semiring real. :- distribution w(S). goal += w(S).")
    (folder / "w.1.tsv").write_text("a\n")
    given = ["-p", folder / "w.1.tsv", "--data", folder / "there is none.jsonl", "--save", folder / "mine"]
    assert "is not replaced: it is no model" in call("train", folder / "nowhere.dyna", *given).stderr


def test_maximum_entropy(call: Callable[..., Any], tmp_path: Path) -> None:
    """Features of weights that sum to one. Three of four are of class x, so the best weight of its feature is log 3."""
    (tmp_path / "c.dyna").write_text(
        ":- semiring log. :- distribution label(D,C) given D. goal += label(D,C) * observed(D,C)."
    )
    (tmp_path / "label.2.tsv").write_text("".join(f"{d}\t{c}\n" for d in "abcd" for c in "xy"))
    (tmp_path / "f.tsv").write_text("".join(f"{d}\tx\ton\n" for d in "abcd"))
    (tmp_path / "d.jsonl").write_text(
        "\n".join(json.dumps({"observed/2": [[d, c]]}) for d, c in zip("abcd", "xxxy", strict=True))
    )
    given = [
        "-p",
        tmp_path / "label.2.tsv",
        "--features",
        f"label/2={tmp_path / 'f.tsv'}",
        "--data",
        tmp_path / "d.jsonl",
    ]
    result = call(
        "train", tmp_path / "c.dyna", *given, "--method", "l-bfgs", "--tolerance", 0, "--save", tmp_path / "m"
    )
    assert result.exit_code == 0, result.stderr
    saved = dg.load_model(tmp_path / "m")
    assert saved.parameters["label/2"] == pytest.approx(np.log(3.0))
    assert saved.weights["label/2"]["a", "x"] == pytest.approx(0.75)


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


@pytest.mark.parametrize("by", ["option", "file"])
def test_files_of_parameters_and_folders_of_examples_have_headers_if_it_is_said(
    call: Callable[..., Any], tmp_path: Path, by: str
) -> None:
    (tmp_path / "coin.dyna").write_text(":- semiring real. :- distribution toss(S). goal += toss(S) * n(S).")
    (tmp_path / "toss.1.tsv").write_text("side\tweight\nh\t0.5\nt\t0.5\n")
    for n, side in enumerate("hht"):
        (tmp_path / "data" / str(n)).mkdir(parents=True)
        (tmp_path / "data" / str(n) / "n.1.csv").write_text(f"side,count\n{side},1.0\n")
    (tmp_path / "s.toml").write_text("header = true\n")
    said = ["--header"] if by == "option" else ["--config", tmp_path / "s.toml"]
    files = ["-p", tmp_path / "toss.1.tsv", "--data", tmp_path / "data"]
    found = call("train", tmp_path / "coin.dyna", *files, *said, "--dev", tmp_path / "data", "--save", tmp_path / "m")
    assert found.exit_code == 0, found.stderr
    assert dg.load_model(tmp_path / "m").weights["toss/1"]["h",] == pytest.approx(2 / 3)
    scored = call("evaluate", tmp_path / "m", "--data", tmp_path / "data", "--header")
    assert float(scored.stdout) == pytest.approx(2 * np.log(2 / 3) + np.log(1 / 3))
    assert call("predict", tmp_path / "m", "--data", tmp_path / "data", "--header").exit_code == 0
    assert call("train", tmp_path / "coin.dyna", *files, "--no-header").exit_code != 0
    (tmp_path / "s.toml").write_text("header = 1\n")
    wrong = call("train", tmp_path / "coin.dyna", *files, "--config", tmp_path / "s.toml")
    assert wrong.exit_code == 1 and "header is true or false, not 1" in wrong.stderr
