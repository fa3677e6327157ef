"""The groups that a program declares: `:- distribution rewrite(X,...) given X.`, for rows and for parametrisations.

Other groups come as a function of rows (`groups.py`); whether a declaration means something is checked in
`rules/checks/declarations.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import Error, shown, warn
from ...facts.relation import parse_key
from ...forests.terms import PartialMatch
from ...rules.syntax import DistributionDeclaration, Symbol, Variable
from .distribution import Distribution
from .groups import Declared, numbered
from .parametrisation import Parametrisation
from .rows import Rows, sums

NEAR_ONE = 1e-6
"""How near to one the weights of a group have to sum that a function gives."""


def declared(declarations: tuple[DistributionDeclaration, ...], given: Mapping[str, Any]) -> dict[str, Parametrisation]:
    """Parametrisations: those that are `given`, by name, and a distribution for each declaration, over its other rows.

    Those that are given take the groups that are declared, and have no others. A declaration with `...` is one group
    over all arities: given X, all rows `rewrite(X, ...)` of any predicate sum to one together. Raises Error where that
    is no partition.
    """
    facts = {name: p for name, p in given.items() if not isinstance(p, Parametrisation)}
    others = {name: p for name, p in given.items() if isinstance(p, Parametrisation)}
    holder = {key: name for name, p in others.items() for key in p.rows.keys}
    found: dict[str, Parametrisation] = {}
    owner: dict[str, str] = {}
    said: dict[str, dict[str, list[Declared]]] = {name: {} for name in others}
    for declaration in declarations:
        keys = [key for key in facts if _covers(declaration, key)]
        held = [key for key in holder if _covers(declaration, key)]
        text = _text(declaration)
        whole = _whole(declaration)
        for key in (*keys, *held):
            if key in owner:
                raise Error(f"{key} is in two distributions, {owner[key]} and {whole}: groups may not overlap")
            owner[key] = whole
        names = list(dict.fromkeys(holder[key] for key in held))
        if len(names) > 1 or (names and keys):
            other = keys[0] if keys else next(key for key in held if holder[key] != names[0])
            raise Error(
                f"{held[0]} and {other} are one distribution by {whole}, and have parametrisations of their own: give "
                "the rows of both to one"
            )
        for key in held:
            rows = Rows({key: others[names[0]].rows.relations[key]})
            said[names[0]][key] = [Declared(whole, part) for part in _parts(declaration, rows, text)]
        if keys:
            mine = {key: facts[key] for key in keys}
            named = Rows(mine)
            parts: list[Hashable] = list(_parts(declaration, named, text))
            found[declaration.item.predicate if len(keys) > 1 else keys[0]] = Distribution(mine, groups=parts)
    left = [key for key in facts if key not in owner]
    if left:
        raise Error(
            f"nothing says how the weights of {left[0]} depend on parameters: declare `:- distribution "
            f"{_pattern(left[0])}.` in the program, or give a training.Distribution or training.LogLinear of its rows"
        )
    return found | {name: _in_groups(name, p, said[name]) for name, p in others.items()}


def _in_groups(name: str, p: Parametrisation, said: Mapping[str, list[Declared]]) -> Parametrisation:
    """A parametrisation in the groups that are declared for some of its predicates."""
    if not said:
        return p.in_groups(None)
    of_rows: list[Declared | None] = []
    for key, relation in p.rows.relations.items():
        of_rows += said.get(key, [None] * relation.count)
    found = p.in_groups(of_rows)
    if found.groups is None:
        _check_sums(name, found, of_rows)
    return found


def _check_sums(name: str, p: Parametrisation, of_rows: Sequence[Declared | None]) -> None:
    """Warns where a function gives weights that do not sum to one in the groups that are declared."""
    weights = p.weights(p.start(np.random.default_rng(0)))
    numbers = np.exp(weights) if p.logs else weights
    at = np.array([n for n, part in enumerate(of_rows) if part is not None], np.int64)
    group, parts = numbered(part for part in of_rows if part is not None)
    totals = sums(group, numbers[at], len(parts))
    wrong = np.flatnonzero(~(np.abs(totals - 1.0) <= NEAR_ONE))
    if len(wrong):
        part = parts[int(wrong[0])]
        assert isinstance(part, Declared)
        first = p.rows.text(int(at[np.flatnonzero(group == wrong[0])[0]]))
        warn(
            f"the program declares {part.text}, and the function of {shown(name)} gives {first} and the rows that are "
            f"given the same weights that sum to {totals[wrong[0]]:.6g} to begin with: let it normalise them, as by "
            "log_softmax, or take the declaration out of the program"
        )


def check_rows(declarations: tuple[DistributionDeclaration, ...], keys: Collection[str]) -> None:
    """Raises Error for a declaration of predicates that have no rows at all: neither parameters nor other facts."""
    for declaration in declarations:
        if not any(_covers(declaration, key) for key in keys):
            raise Error(
                f"`:- distribution {_text(declaration)}` is declared, and {declaration.item.predicate} has no facts: "
                "give the rows whose weights are learned in parameters, or fixed ones in facts"
            )


def _covers(declaration: DistributionDeclaration, key: str) -> bool:
    name, arity = parse_key(key)
    least = len(declaration.item.arguments)
    return name == declaration.item.predicate and (arity >= least if declaration.rest else arity == least)


def _parts(declaration: DistributionDeclaration, rows: Rows, text: str) -> list[tuple[Hashable, ...]]:
    """What each row is given."""
    pattern, names = declaration.item.arguments, [v.name for v in declaration.given]
    found: list[tuple[Hashable, ...]] = []
    for n, arguments in enumerate(rows.arguments):
        match = PartialMatch()
        if not all(match.match(p, a) for p, a in zip(pattern, arguments, strict=False)):
            raise Error(f"{rows.text(n)} is a parameter, and does not fit {text}, so it would be in no group")
        found.append(tuple(match.known[name] for name in names))
    return found


def _whole(declaration: DistributionDeclaration) -> str:
    given = ", ".join(v.name for v in declaration.given)
    return f"`{_text(declaration)} given {given}`" if given else f"`{_text(declaration)}`"


def _text(declaration: DistributionDeclaration) -> str:
    shown = [a.name if isinstance(a, Variable | Symbol) else "..." for a in declaration.item.arguments]
    return f"{declaration.item.predicate}({','.join([*shown, '...'] if declaration.rest else shown)})"


def _pattern(key: str) -> str:
    name, arity = parse_key(key)
    return f"{name}({','.join(['X', *'_' * (arity - 1)][:arity])}) given X"
