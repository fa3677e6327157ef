"""The groups that a program declares: `:- distribution rewrite(X,...) given X.`

Other groups come as a function of rows (`groups.py`); whether a declaration means something is checked in
`rules/checks/declarations.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

from ...errors import Error
from ...facts.relation import parse_key
from ...forests.terms import PartialMatch
from ...rules.syntax import DistributionDeclaration, Symbol, Variable
from .distribution import Distribution
from .rows import Rows


def declared(declarations: tuple[DistributionDeclaration, ...], facts: Mapping[str, Any]) -> dict[str, Distribution]:
    """A distribution for each declaration, over the rows that it covers. Raises Error where that is no partition.

    A declaration with `...` is one group over all arities: given X, all rows `rewrite(X, ...)` of any predicate sum to
    one together.
    """
    found: dict[str, Distribution] = {}
    owner: dict[str, str] = {}
    for declaration in declarations:
        keys = [key for key in facts if _covers(declaration, key)]
        text = _text(declaration)
        given = ", ".join(v.name for v in declaration.given)
        whole = f"`{text} given {given}`" if given else f"`{text}`"
        if not keys:
            continue
        for key in keys:
            if key in owner:
                raise Error(f"{key} is in two distributions, {owner[key]} and {whole}: groups may not overlap")
            owner[key] = whole
        rows = {key: facts[key] for key in keys}
        parts = _parts(declaration, Rows(rows), text)
        found[declaration.item.predicate if len(keys) > 1 else keys[0]] = Distribution(rows, groups=parts)
    left = [key for key in facts if key not in owner]
    if left:
        raise Error(
            f"nothing says how the weights of {left[0]} depend on parameters: declare `:- distribution "
            f"{_pattern(left[0])}.` in the program, or give a training.Distribution or training.LogLinear of its rows"
        )
    return found


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


def _parts(declaration: DistributionDeclaration, rows: Rows, text: str) -> list[Hashable]:
    """What each row is given."""
    pattern, names = declaration.item.arguments, [v.name for v in declaration.given]
    found: list[Hashable] = []
    for n, arguments in enumerate(rows.arguments):
        match = PartialMatch()
        if not all(match.match(p, a) for p, a in zip(pattern, arguments, strict=False)):
            raise Error(f"{rows.text(n)} is a parameter, and does not fit {text}, so it would be in no group")
        found.append(tuple(match.known[name] for name in names))
    return found


def _text(declaration: DistributionDeclaration) -> str:
    shown = [a.name if isinstance(a, Variable | Symbol) else "..." for a in declaration.item.arguments]
    return f"{declaration.item.predicate}({','.join([*shown, '...'] if declaration.rest else shown)})"


def _pattern(key: str) -> str:
    name, arity = parse_key(key)
    return f"{name}({','.join(['X', *'_' * (arity - 1)][:arity])}) given X"
