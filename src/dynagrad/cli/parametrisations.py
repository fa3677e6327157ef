"""The parametrisations and priors that settings of `dynagrad train` describe.

A setting is a number or a table; what a table may have are the options of the class that it is made into. All other
settings, and the model that is made of them, are in `settings.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..calls import nearest_option
from ..charts.program import Program, context_of
from ..errors import Error, shown
from ..facts.relation import Relation, parse_key
from ..training.parameters.declared import declared
from ..training.parameters.distribution import Distribution
from ..training.parameters.log_linear import LogLinear
from ..training.parameters.parametrisation import Parametrisation
from ..training.priors import L1, L2, Dirichlet, Gaussian, Prior, add_lambda

PRIORS: dict[str, Callable[..., Prior]] = {
    "add_lambda": add_lambda,
    "dirichlet": Dirichlet,
    "gaussian": Gaussian,
    "l1": L1,
    "l2": L2,
}
"""Each from one number, or from a table with its arguments by name."""
KINDS: dict[str, tuple[str, ...]] = {
    "distribution": ("given", "initial", "tied", "frozen"),
    "log-linear": ("given", "initial", "shared", "hashed", "noise", "frozen"),
}
"""The kinds of parametrisations, and what a table of settings may say of one."""
TOGETHER = "features"
"""The name of the one parametrisation of all rows with features that are in no distribution of the program."""

Tables = Mapping[str, Mapping[str, Any]]


# -- priors ------------------------------------------------------------------------------------------------------------


def priors_of(settings: Mapping[str, Any]) -> Prior | dict[str, Prior] | None:
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
        ((kind, value),) = given.items()
        found[name] = _prior(kind, value)
    return found or (_prior(of_all[0], settings[of_all[0]]) if of_all else None)


def _prior(kind: str, given: Any) -> Prior:
    try:
        return PRIORS[kind](**given) if isinstance(given, Mapping) else PRIORS[kind](given)
    except TypeError as error:  # it lacks an argument
        raise Error(f"{kind}: {error}") from None


# -- parametrisations --------------------------------------------------------------------------------------------------


def parametrised(
    program: Program, rows: Mapping[str, Any], features: Mapping[str, Relation], tables: Tables
) -> dict[str, Any]:
    """Rows as they are where the program declares all of them; parametrisations of those with features or a table."""
    declarations = context_of(program).rules.distributions
    names = {d.item.predicate for d in declarations}
    groups = declared(declarations, {k: r for k, r in rows.items() if parse_key(k)[0] in names})
    of_groups = {key for p in groups.values() for key in p.rows.keys}
    alone = [key for key in rows if key not in of_groups and key not in features]
    _check(tables, [*groups, *([TOGETHER] if set(features) - of_groups else []), *alone])
    found: dict[str, Parametrisation] = {}
    for name, p in groups.items():
        made = _declared(p, rows, features, dict(tables.get(name, {})), name)
        found |= {} if made is None else {name: made}
    free = [key for key in features if key not in of_groups]
    if free:
        options = _log_linear(dict(tables.get(TOGETHER, {})), TOGETHER)
        found[TOGETHER] = LogLinear({k: rows[k] for k in free}, {k: features[k] for k in free}, **options)
    for key in alone:
        if key in tables:
            table = dict(tables[key])
            if table.get("kind", "distribution") == "log-linear":
                found[key] = LogLinear({key: rows[key]}, **_log_linear(table, key))
            else:
                found[key] = Distribution({key: rows[key]}, **_distribution(table, key))
    made_of = {key for p in found.values() for key in p.rows.keys}
    return {**{key: r for key, r in rows.items() if key not in made_of}, **found}


def _check(tables: Tables, names: list[str]) -> None:
    """Raises Error for a table of what is no parametrisation, or that has what none has."""
    for name, table in tables.items():
        where = f"parametrisations: {name}"
        if name not in names:
            raise Error(f"{where} is none of those of this model: {', '.join(names)}")
        if not isinstance(table, Mapping):
            raise Error(f"{where} wants a table, such as {{initial = 'random'}}, not {shown(table)}")
        kind = table.get("kind", "distribution")
        if not isinstance(kind, str) or kind not in KINDS:
            raise Error(f"{where}: kind is {' or '.join(KINDS)}, not {shown(kind)}")


def _declared(
    groups: Parametrisation, rows: Mapping[str, Any], features: Mapping[str, Relation], table: dict[str, Any], name: str
) -> Parametrisation | None:
    """What the program declares as a distribution, with features, or with a table of settings; else None."""
    keys = groups.rows.keys
    given = {key: features[key] for key in keys if key in features}
    if "given" in table:
        raise Error(f"parametrisations: {name} has its groups from the program, which declares them: leave given away")
    mine = {key: rows[key] for key in keys}
    if given or table.get("kind") == "log-linear":
        if given and len(given) < len(keys):
            left = next(key for key in keys if key not in given)
            raise Error(f"--features: {', '.join(given)} and {left} are one distribution, so {left} needs features too")
        return LogLinear(mine, given or None, **_log_linear(table, name))
    return Distribution(mine, **_distribution(table, name)) if table else None


def _options(table: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    """The options of a table without its kind. Raises Error for options that this kind does not have."""
    if table.pop("kind", kind) != kind:
        raise Error(f"parametrisations: {name} has features, so it is {kind}")
    for option in table:
        if option not in KINDS[kind]:
            hint = nearest_option(option, KINDS[kind])
            raise Error(f"parametrisations: {name} is a {kind}, which has no {option}{hint}")
    return table


def _distribution(table: dict[str, Any], name: str) -> dict[str, Any]:
    options = _options(table, "distribution", name)
    if "frozen" in options:
        begins = options["frozen"]
        if begins is not True and not (isinstance(begins, list) and all(isinstance(x, list) for x in begins)):
            raise Error(
                f"parametrisations: {name}: frozen is true, or lists of first arguments, such as [['d']], not "
                f"{shown(begins)}"
            )
        first = [()] if begins is True else [tuple(x) for x in begins]
        options["frozen"] = lambda *row: any(row[: len(some)] == some for some in first)
    return options


def _log_linear(table: dict[str, Any], name: str) -> dict[str, Any]:
    options = _options(table, "log-linear", name)
    if "frozen" in options:
        listed = options["frozen"]
        if not isinstance(listed, list) or any(isinstance(x, list | dict) for x in listed):
            raise Error(f"parametrisations: {name}: frozen is a list of features, not {shown(listed)}")
    return options
