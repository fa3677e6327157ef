"""Terms whose bound variables all have names of their own, and names that nobody has.

What is free in a term, and when two are α-equal, is in `terms.py`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator
from typing import Any

from .terms import BINDERS, Pattern, PullbackTerm, Var, children, free_variables, rebuilt, subterms, variables_of
from .trampoline import Call, run
from .trees import counted, relabelled

_DIGITS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_BASE = re.compile(r"[₀-₉]+('*)$")


class FreshNames:
    """A supply of names that none of the given terms has.

    >>> names = FreshNames(["x", "x₁"])
    >>> names.fresh("x"), names.fresh("x₁"), names.fresh("y")
    ('x₂', 'x₃', 'y')
    """

    def __init__(self, taken: list[str] | None = None) -> None:
        self.taken = set(taken or ())
        self.counts: dict[str, int] = {}

    def fresh(self, like: str) -> str:
        """A new name that resembles another; that name itself, where nobody has it yet."""
        if like not in self.taken:
            self.taken.add(like)
            return like
        base = _BASE.sub("", like).rstrip("'") or like
        count = self.counts.get(base, 0)
        while True:
            count += 1
            name = base + str(count).translate(_DIGITS)
            if name not in self.taken:
                break
        self.counts[base] = count
        self.taken.add(name)
        return name


def names_of(of: PullbackTerm) -> list[str]:
    """All names in a term."""
    found: dict[str, None] = {}
    for part in subterms(of):
        if isinstance(part, Var):
            found[part.name] = None
        elif isinstance(part, BINDERS):
            found.update(dict.fromkeys(variables_of(part.pattern)))
    return list(found)


def renamed_pattern(pattern: Pattern, new: dict[str, str]) -> Pattern:
    """The pattern with other names."""
    made: Pattern = relabelled(pattern, new.__getitem__)
    return made


def with_distinct_binders(of: PullbackTerm) -> PullbackTerm:
    """An α-equal term whose binders bind different names, none of them free in it; no two places share a value.

    >>> from .parse import parse
    >>> with_distinct_binders(parse("let x = 1 in let x = x + 1 in x"))
    let x = 1 in let x₁ = x + 1 in x₁
    """
    free = free_variables(of)
    if _has_distinct_binders(of, free):
        return of
    names = FreshNames([*free])
    now: dict[str, list[str]] = {name: [name] for name in free}
    return run(_renamed(of, names, now, itertools.count()))


def _has_distinct_binders(of: PullbackTerm, free: Collection[str]) -> bool:
    """Whether a term is already what `apart` makes."""
    bound = set(free)
    places: set[int] = set()
    todo = [of]
    while todo:
        here = todo.pop()
        if id(here) in places:
            return False
        places.add(id(here))
        if isinstance(here, BINDERS):
            for name in variables_of(here.pattern):
                if name in bound:
                    return False
                bound.add(name)
        for name in here.parts:
            todo.append(getattr(here, name))
    return True


def _renamed(
    here: PullbackTerm, names: FreshNames, now: dict[str, list[str]], count: Iterator[int]
) -> Call[PullbackTerm]:
    counted(next(count))
    if isinstance(here, Var):
        return Var(now[here.name][-1], span=here.span)
    if not here.parts:
        return type(here)(*(getattr(here, name) for name in here.__match_args__), span=here.span)  # type: ignore[call-arg, var-annotated]  # every term has a span
    if not isinstance(here, BINDERS):
        made = []
        for part in children(here):
            made.append((yield _renamed(part, names, now, count)))
        return rebuilt(here, made)
    body, *others = children(here)
    outer = []
    for part in others:
        outer.append((yield _renamed(part, names, now, count)))
    new = {name: names.fresh(name) for name in variables_of(here.pattern)}
    for name, other in new.items():
        now.setdefault(name, []).append(other)
    inner = yield _renamed(body, names, now, count)
    for name in new:
        now[name].pop()
    pattern = renamed_pattern(here.pattern, new)
    binder: Any = type(here)
    return binder(pattern, inner, *outer, span=here.span)  # type: ignore[no-any-return]  # it is of the kind of the term
