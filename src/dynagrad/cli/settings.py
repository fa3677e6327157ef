"""Settings of `dynagrad train`, from a TOML file and from options, and the model that they describe.

The model is trained in `training.py`, and its files are written by `training/storage/`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..calls import nearest_option
from ..charts.binding.encoding import settle_texts
from ..charts.program import Program, context_of
from ..errors import Error, FactError, shown
from ..facts.files import read_file
from ..facts.relation import Relation, parse_key
from ..training.model import Model
from ..training.objectives.evaluation import Objective
from ..training.objectives.expectations import Risk
from ..training.objectives.likelihood import Conditional, Likelihood
from ..training.parameters.declared import declared
from ..training.parameters.log_linear import LogLinear
from ..training.parameters.parametrisation import Parametrisation
from ..training.priors import L1, L2, Dirichlet, Gaussian, Prior, add_lambda
from .commands import check_ground
from .inputs import Values, facts_of, program_of


class ObjectiveName(StrEnum):
    """What `train` makes large."""

    likelihood = "likelihood"
    conditional = "conditional"
    risk = "risk"


PATHS = ("data", "dev", "save", "log", "checkpoint", "functions")
LISTS = ("parameters", "facts", "features")
PRIORS: dict[str, Callable[[Any], Prior]] = {
    "add_lambda": add_lambda,
    "dirichlet": Dirichlet,
    "gaussian": Gaussian,
    "l1": L1,
    "l2": L2,
}
"""Each from one number."""
TEXTS = ("goal", "semiring", "method", "cost", "observed")
CHOICES: dict[str, type[StrEnum]] = {"values": Values, "objective": ObjectiveName}
TRAINING = (
    "method",
    "iterations",
    "tolerance",
    "patience",
    "seed",
    "missing",
    "threads",
    "every",
    "progress",
)
"""Those that `Model.fit` takes as they are."""
SETTINGS = tuple(dict.fromkeys((*LISTS, *PATHS, *PRIORS, *TEXTS, *CHOICES, *TRAINING, "priors", "options")))
"""What a file of settings may have; `options` is a table with those of the method, `priors` one by parameters."""


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
        elif name in ("options", "priors") and not isinstance(value, dict):
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
    parameters = facts_of(program, settings["parameters"], Values.probabilities, option="--parameters")
    fixed = facts_of(program, settings.get("facts", []), values)
    both = [key for key in parameters if key in fixed]
    if both:
        raise FactError(f"{both[0]} is among --parameters and among --facts: its weights are learned, or fixed")
    features = _features(settings.get("features", []), parameters)
    settled = settle_texts(context_of(program).domains, {**parameters, **fixed})
    rows = {key: settled[key] for key in parameters}
    goal = settings.get("goal", "goal")
    check_ground("--goal", goal)
    return Model(
        program,
        _parametrised(program, rows, features),
        goal=goal,
        prior=_priors(settings),
        objective=_objective(settings),
        facts={key: settled[key] for key in fixed},
    )


def _features(given: list[str], parameters: Mapping[str, Relation]) -> dict[str, Relation]:
    """The rows of each predicate with their features."""
    found: dict[str, Relation] = {}
    for text in given:
        key, sep, path = text.partition("=")
        if not sep or key not in parameters:
            raise Error(f"--features {text}: it begins with one of --parameters, such as {next(iter(parameters))}=FILE")
        name, arity = parse_key(key)
        found[key] = read_file(Path(path), f"{name}/{arity + 1}")
    return found


def _parametrised(program: Program, rows: Mapping[str, Any], features: Mapping[str, Relation]) -> dict[str, Any]:
    """Rows that have features as log-linear parametrisations: one for each declaration, and one for all others."""
    declarations = context_of(program).rules.distributions
    left = {key: r for key, r in rows.items() if key not in features}
    found: dict[str, Parametrisation] = {}
    free = dict(features)
    for name, groups in declared(declarations, {k: rows[k] for k in features if _is_declared(program, k)}).items():
        assert groups.groups is not None
        keys = groups.rows.keys
        of = dict(zip(groups.rows.arguments, groups.groups.group[groups.groups.parameter].tolist(), strict=True))
        found[name] = LogLinear(
            {key: rows[key] for key in keys},
            {key: free.pop(key) for key in keys},
            given=lambda *row, of=of: of[row],
        )
    if free:
        found["features"] = LogLinear({key: rows[key] for key in free}, free)
    return {**left, **found}


def _is_declared(program: Program, key: str) -> bool:
    name, _ = parse_key(key)
    return any(d.item.predicate == name for d in context_of(program).rules.distributions)


def _priors(settings: Mapping[str, Any]) -> Prior | dict[str, Prior] | None:
    """One for all parameters, or one for each name of `priors`."""
    of_all = [name for name in PRIORS if name in settings]
    if len(of_all) > 1:
        options = [f"--{name.replace('_', '-')}" for name in of_all]
        raise Error(f"{' and '.join(options)}: there can be one prior")
    if of_all and "priors" in settings:
        raise Error(f"{of_all[0]} is the prior of all parameters, and priors has others: there can be one of both")
    found: dict[str, Prior] = {}
    for name, given in settings.get("priors", {}).items():
        if not isinstance(given, dict) or len(given) != 1 or next(iter(given)) not in PRIORS:
            raise Error(f"priors: {name} wants a table with one of {', '.join(PRIORS)}, not {shown(given)}")
        ((kind, number),) = given.items()
        found[name] = PRIORS[kind](number)
    return found or (PRIORS[of_all[0]](settings[of_all[0]]) if of_all else None)


def _objective(settings: Mapping[str, Any]) -> Objective:
    name, cost, observed = (
        ObjectiveName(settings.get("objective", "likelihood")),
        *map(settings.get, ("cost", "observed")),
    )
    for option, given, takers in (("cost", cost, ("conditional", "risk")), ("observed", observed, ("conditional",))):
        if given is not None and name not in takers:
            raise Error(f"--{option} is for --objective {' and '.join(takers)}, not {name}")
    match name:
        case ObjectiveName.likelihood:
            return Likelihood()
        case ObjectiveName.conditional:
            return Conditional(observed, cost)
        case ObjectiveName.risk:
            if cost is None:
                raise Error("--objective risk wants --cost KEY, the predicate whose facts are losses")
            return Risk(cost)
