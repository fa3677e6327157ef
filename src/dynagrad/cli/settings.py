"""Settings of `dynagrad train`, from a TOML file and from options, and the model that they describe.

The model is trained in `training.py`, and its files are written by `training/storage/`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..calls import nearest_option
from ..charts.binding.encoding import settle_texts
from ..charts.program import Program, context_of
from ..errors import Error, FactError, shown
from ..facts.files import header_for, read_file
from ..facts.relation import Relation, parse_key
from ..training.model import Model
from ..training.objectives.evaluation import Objective
from ..training.objectives.expectations import Risk
from ..training.objectives.likelihood import Conditional, Likelihood
from .commands import check_ground
from .inputs import Values, facts_of, program_of
from .parametrisations import PRIORS, parametrised, priors_of


class ObjectiveName(StrEnum):
    """What `train` makes large."""

    likelihood = "likelihood"
    conditional = "conditional"
    risk = "risk"


PATHS = ("data", "dev", "save", "log", "checkpoint", "functions", "clamped")
LISTS = ("parameters", "facts", "features")
TEXTS = ("goal", "semiring", "method", "cost", "observed")
TABLES = ("options", "priors", "parametrisations")
"""Tables: with the options of the method; with a prior, or options of a parametrisation, for some parameters."""
CHOICES: dict[str, type[StrEnum]] = {"values": Values, "objective": ObjectiveName}
TRAINING = (
    "method",
    "iterations",
    "tolerance",
    "patience",
    "seed",
    "restarts",
    "missing",
    "threads",
    "executor",
    "every",
    "progress",
)
"""Those that `Model.fit` takes as they are."""
SETTINGS = tuple(dict.fromkeys((*LISTS, *PATHS, *PRIORS, *TEXTS, *CHOICES, *TRAINING, *TABLES, "header")))
"""What a file of settings may have."""


def settings_of(path: Path) -> dict[str, Any]:
    """The settings of a file, with its paths as from its folder. Raises Error for what is none."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise Error(f"--config {path}: {said}") from None
    for name, value in found.items():
        if name not in SETTINGS:
            raise Error(f"--config {path}: there is no setting {name}{nearest_option(name, SETTINGS)}")
        if name in LISTS:
            found[name] = _files(path, name, value)
        elif name in PATHS:
            if not isinstance(value, str):
                raise Error(f"--config {path}: {name} is a path, not {shown(value)}")
            found[name] = path.parent / value
        elif name == "header" and not isinstance(value, bool):
            raise Error(f"--config {path}: header is true or false, not {shown(value)}")
        elif name in TABLES and not isinstance(value, dict):
            raise Error(f"--config {path}: {name} is a table, not {shown(value)}")
        elif name in TEXTS and not isinstance(value, str):
            raise Error(f"--config {path}: {name} is a name, not {shown(value)}")
        elif name in CHOICES and value not in list(CHOICES[name]):
            choices = [x.value for x in CHOICES[name]]
            raise Error(f"--config {path}: {name} is {', '.join(choices[:-1])} or {choices[-1]}, not {shown(value)}")
    return found


def _files(path: Path, name: str, value: Any) -> list[str]:
    """Files of facts: a table from predicates to files, or a list as on the command line."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, dict):
        value = [f"{key}={file}" for key, file in value.items()]
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise Error(f"--config {path}: {name} is a table from predicates to files, or a list of files")
    found = []
    for text in value:
        key, sep, file = text.rpartition("=")
        found.append(f"{key}{sep}{path.parent / file}")
    return found


# -- the model that settings describe ----------------------------------------------------------------------------------


def model_of(file: Path, settings: Mapping[str, Any]) -> Model:
    """The model of a program's file. Raises Error for settings that do not fit each other."""
    values = Values(settings.get("values", Values.weights))
    program = program_of(file, settings.get("semiring"), values, settings.get("functions"))
    header = settings.get("header")
    parameters = facts_of(program, settings["parameters"], Values.probabilities, header, option="--parameters")
    others = [
        program_of(path, settings.get("semiring"), values, settings.get("functions")) for path in _clamped(settings)
    ]
    fixed = facts_of(program, settings.get("facts", []), values, header, also=others)
    both = [key for key in parameters if key in fixed]
    if both:
        raise FactError(f"{both[0]} is among --parameters and among --facts: its weights are learned, or fixed")
    features = _features(settings.get("features", []), parameters, header)
    settled: dict[str, Relation] = {}
    for one in (program, *others):
        here = {k: r for k, r in {**parameters, **fixed, **settled}.items() if k in one.predicates}
        settled |= settle_texts(context_of(one).domains, here)
    rows = {key: settled[key] for key in parameters}
    goal = settings.get("goal", "goal")
    check_ground("--goal", goal)
    return Model(
        program,
        parametrised(program, rows, features, settings.get("parametrisations", {})),
        goal=goal,
        prior=priors_of(settings),
        objective=_objective(settings, *others),
        facts={key: settled[key] for key in fixed},
    )


def _features(given: list[str], parameters: Mapping[str, Relation], header: bool | None) -> dict[str, Relation]:
    """The rows of each predicate with their features."""
    found: dict[str, Relation] = {}
    for text in given:
        key, sep, path = text.partition("=")
        if not sep or key not in parameters:
            raise Error(f"--features {text}: it begins with one of --parameters, such as {next(iter(parameters))}=FILE")
        name, arity = parse_key(key)
        found[key] = read_file(Path(path), f"{name}/{arity + 1}", header=header_for(Path(path), header))
    return found


def _clamped(settings: Mapping[str, Any]) -> list[Path]:
    """The file of the program of the clamped run, if there is one."""
    return [Path(settings["clamped"])] if "clamped" in settings else []


def _objective(settings: Mapping[str, Any], clamped: Program | None = None) -> Objective:
    name, cost, observed = (
        ObjectiveName(settings.get("objective", "likelihood")),
        *map(settings.get, ("cost", "observed")),
    )
    for option, given, takers in (
        ("cost", cost, ("conditional", "risk")),
        ("observed", observed, ("conditional",)),
        ("clamped", clamped, ("conditional",)),
    ):
        if given is not None and name not in takers:
            raise Error(f"--{option} is for --objective {' and '.join(takers)}, not {name}")
    match name:
        case ObjectiveName.likelihood:
            return Likelihood()
        case ObjectiveName.conditional:
            return Conditional(observed, cost, clamped)
        case ObjectiveName.risk:
            if cost is None:
                raise Error("--objective risk wants --cost KEY, the predicate whose facts are losses")
            return Risk(cost)
