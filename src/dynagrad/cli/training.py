"""The commands that train models, score data with them, and predict: `train`, `evaluate` and `predict`.

Settings of `train` come from a TOML file (`settings.py`), and from options, which win.
"""

from __future__ import annotations

import json
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import Error, FactError, QueryError, counted, shown_path
from ..training.examples import DataPasses, name_of, read_examples
from ..training.model import Model, load_model
from ..training.reports.records import counted_text
from ..training.storage.models import check_replaceable
from .commands import Facts, File, FunctionsOption, HeaderOption, SemiringName, app, check_ground, command, say
from .inputs import Values, functions_of
from .settings import SETTINGS, TRAINING, ObjectiveName, model_of, settings_of


class PredictionFormat(StrEnum):
    """How `predict` prints derivations."""

    tree = "tree"
    brackets = "brackets"
    json = "json"


Data = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="PATH",
        help="The examples: a .jsonl file with an object on each line, or a folder, with a folder of facts each.",
        show_default=False,
    ),
]
Folder = Annotated[Path, typer.Argument(help="The folder of a model.", metavar="MODEL", show_default=False)]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="How many examples at a time.")]


@app.command(
    short_help="Train the parameters of a program on data.",
    epilog="Example: dynagrad train cky.dyna --parameters rewrite/3=grammar3.tsv --data train.jsonl --dev dev.jsonl "
    "--method em --save model",
)
@command
def train(
    file: File,
    parameters: Annotated[
        list[str],
        typer.Option(
            "--parameters",
            "-p",
            metavar="KEY=FILE",
            help="Facts whose weights are learned, in groups that the program declares with `:- distribution`; values "
            "are where training begins. Files are as those of --facts.",
            show_default=False,
        ),
    ] = [],  # noqa: B006  -- typer copies it
    facts: Facts = [],  # noqa: B006  -- typer copies it
    header: HeaderOption = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The examples: a .jsonl file with an object on each line, or a folder, with a folder of facts each.",
            show_default=False,
        ),
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Held-out examples; what is best on them is kept.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the model is written.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Settings by the names of these options, with _ for -, and tables `options`, with those of the "
            "method, `priors`, with one for some parameters, and `parametrisations`, with options of some. Its paths "
            "are from its folder. The command line wins.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="How parameters are improved: em, gis, l-bfgs, adam, torch.optim.AdamW, and others.  [default: em]"
        ),
    ] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="The most steps.  [default: 100]")] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, help="Stop where less is left to gain, relative to the objective.  [default: 1e-06]"),
    ] = None,
    patience: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many steps without a better score of --dev.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed of all that is drawn.  [default: 0]")] = None,
    restarts: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Begin so many times, from the second on with parameters that are drawn, and keep the best, on --dev "
            "or by the objective.  [default: 1]",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(help="What is done about examples whose goal is not derived: warn, skip, error. [default: warn]"),
    ] = None,
    features: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=FILE",
            help="Features of --parameters KEY, whose weights are then log-linear: its rows with one column more, the "
            "feature, and perhaps a value. They sum to one where the program has a `:- distribution` of KEY.",
            show_default=False,
        ),
    ] = [],  # noqa: B006  -- typer copies it
    add_lambda: Annotated[float | None, typer.Option(min=0, help="Smoothing: so much is added to each count.")] = None,
    dirichlet: Annotated[float | None, typer.Option(min=0, help="A Dirichlet prior with this alpha.")] = None,
    gaussian: Annotated[
        float | None, typer.Option(metavar="VARIANCE", min=0, help="A Gaussian prior around 0 of free weights.")
    ] = None,
    l1: Annotated[float | None, typer.Option("--l1", min=0, help="The strength of an L1 penalty.")] = None,
    l2: Annotated[float | None, typer.Option("--l2", min=0, help="The strength of an L2 penalty.")] = None,
    objective: Annotated[
        ObjectiveName | None,
        typer.Option(
            help="What is made large. Conditional: examples have facts that are `observed`; risk: losses are values "
            "of the facts of --cost.  [default: likelihood]",
        ),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="The predicate whose facts are losses, for risk, and for the margin of a conditional objective in "
            "viterbi.",
        ),
    ] = None,
    observed: Annotated[
        str | None,
        typer.Option(metavar="ITEM", help="The item of the clamped run, for conditional.  [default: that of --goal]"),
    ] = None,
    clamped: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The program of the clamped run, for conditional, with the same parameters.  [default: that of FILE]",
            show_default=False,
        ),
    ] = None,
    goal: Annotated[
        str | None, typer.Option(metavar="ITEM", help="The item whose value is made large.  [default: goal]")
    ] = None,
    semiring: SemiringName = None,
    values: Annotated[
        Values | None, typer.Option(help="What numbers of the text and of facts are given as.  [default: weights]")
    ] = None,
    functions: FunctionsOption = None,
    threads: Threads = None,
    executor: Annotated[
        int | None, typer.Option(metavar="COUNT", min=1, help="So many processes in place of threads.")
    ] = None,
    log: Annotated[Path | None, typer.Option(help="A .csv or .arrow file with a row for each step.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A file that the run goes on from if it was killed.", show_default=False)
    ] = None,
    every: Annotated[int | None, typer.Option(min=1, help="Steps from checkpoint to checkpoint.  [default: 1]")] = None,
    progress: Annotated[bool, typer.Option("--progress", help="Show a progress bar.")] = False,
) -> None:
    """Train the parameters of a program on data, print how that ended, and save the model."""
    given = {
        k: v
        for k, v in locals().items()
        if k in SETTINGS and v is not None and (v is not False or k == "header") and v != []
    }
    settings = {**({} if config is None else settings_of(config)), **given}
    if "data" not in settings:
        raise Error("there are no examples to train on: give --data")
    if "parameters" not in settings:
        raise Error("there are no parameters to train: give --parameters, such as rewrite/3=grammar.tsv")
    model = model_of(file, settings)
    save_to = settings.get("save")
    if save_to is not None and not Path(save_to).parent.is_dir():
        raise Error(f"--save {save_to}: there is no folder {shown_path(Path(save_to).parent)} to write it in")
    if save_to is not None:
        check_replaceable(Path(save_to))
    asked = {k: settings[k] for k in (*TRAINING, "log", "checkpoint") if k in settings}
    options = settings.get("options", {})
    for name in options:
        if name in SETTINGS and name != "options":  # which the methods of scipy have
            raise Error(f"options is for those of the method; {name} is a setting of its own")
    examples, held_out = (_data(settings.get(name), settings.get("header")) for name in ("data", "dev"))
    fit = model.fit(examples, held_out, **asked, **options)
    if save_to is not None:
        model.save(save_to)
        typer.echo(f"wrote {save_to}", err=True)
    steps = counted(len(fit.history), "iteration")
    score = None if fit.best is None else fit.best.dev
    held = "" if score is None else f", held out {score:.10g}"
    told = f"{steps}, objective {fit.objective:.10g}{held}, {counted_text(fit.counted, fit.examples)}"
    typer.echo(f"{fit.method}: {told}, stopped: {fit.stopped}")


def _data(path: Path | None, header: bool | None) -> Any:
    """Examples in files; a folder of them, where it was said whether its files have headers, by a function."""
    if path is None or header is None or not Path(path).is_dir():
        return None if path is None else Path(path)
    return partial(read_examples, path, header=header)


# -- models that are there ---------------------------------------------------------------------------------------------


def _loaded(folder: Path, functions: Path | None) -> Model:
    texts = sorted(folder.glob("*.dyna"))  # its program, and another that its objective may run
    given = {k: f for text in texts for k, f in functions_of(text, functions).items()} if functions is not None else {}
    return load_model(folder, functions=given)


@app.command(
    short_help="Score data with a model.",
    epilog="Example: dynagrad evaluate model --data test.jsonl",
)
@command
def evaluate(
    model: Folder,
    data: Data,
    header: HeaderOption = None,
    functions: FunctionsOption = None,
    missing: Annotated[
        str, typer.Option(help="What is done about examples whose goal is not derived: warn, skip or error.")
    ] = "warn",
    threads: Threads = None,
) -> None:
    """Print the objective of data: the log-likelihood, unless the model has another."""
    score = _loaded(model, functions).score(_data(data, header), missing=missing, threads=threads)
    typer.echo(repr(score))
    if missing != "skip":  # which is to be silent
        say("note", f"of {counted_text(score.counted, score.examples)}")


@app.command(
    short_help="Print the best derivation of each example by a model.",
    epilog="Example: dynagrad predict model --data test.jsonl --format brackets",
)
@command
def predict(
    model: Folder,
    data: Data,
    header: HeaderOption = None,
    query: Annotated[
        str | None,
        typer.Option("--query", "-q", metavar="ITEM", help="The item.  [default: the goal of the model]"),
    ] = None,
    format: Annotated[PredictionFormat, typer.Option("--format", help="How to print.")] = PredictionFormat.tree,
    functions: FunctionsOption = None,
) -> None:
    """Print the best derivation of each example, with its weight before it.

    As brackets and json an example has a line: an empty one, or null, where the item is not derived. These examples are
    named on standard error, and the exit status is then 1.
    """
    if query is not None:
        check_ground("--query", query)
    loaded = _loaded(model, functions)
    derived = True
    for example in DataPasses(_data(data, header)):
        try:
            found = loaded.predict(example.facts, query)
        except QueryError as error:
            derived = False
            say("note", f"{name_of(example)}: {error}")
            typer.echo("null" if format is PredictionFormat.json else "")
            continue
        except FactError as error:
            raise FactError(f"{name_of(example)}: {error}") from None
        weight = "" if found.weight is None else str(found.weight)
        if format is PredictionFormat.json:
            typer.echo(json.dumps(json.loads(found.to_json()), ensure_ascii=False))
        elif format is PredictionFormat.brackets:
            typer.echo(f"{weight}\t{found.brackets()}")
        else:
            typer.echo(f"{weight}\n{found.text()}\n")
    if not derived:
        raise typer.Exit(1)
