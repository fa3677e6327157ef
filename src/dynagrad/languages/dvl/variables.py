"""The variables of an expression of the core language that it does not bind."""

from __future__ import annotations

from ...compiler.frontend.core import Apply, Constant, Expression, Fix, If, Lambda, Let, Name, Project, Tuple, While


class _Recent(dict[int, tuple[Expression, frozenset[str]]]):
    """What was found of expressions lately; each is kept beside it, so that its identity stays its own."""

    def __setitem__(self, key: int, found: tuple[Expression, frozenset[str]]) -> None:
        if len(self) > 100_000:
            self.clear()
        super().__setitem__(key, found)


_FREE = _Recent()
MANY = 50
"""Calls one after the other from which on the machine keeps variables in one place, and not beside each call."""


def free(e: Expression) -> frozenset[str]:
    """The variables of an expression that it does not bind."""
    spine: list[Let | Fix] = []
    while isinstance(e, Let | Fix) and id(e) not in _FREE:
        spine.append(e)
        e = e.body
    found = set(_FREE[id(e)][1] if id(e) in _FREE else _own(e))
    many = sum(map(may_call, spine)) > MANY
    for i in range(len(spine) - 1, -1, -1):
        binding = spine[i]
        if isinstance(binding, Let):
            found.discard(binding.name)
            found |= free(binding.value)
        else:
            found.update(n for _, code in binding.functions for n in code.free)
            found.difference_update(name for name, _ in binding.functions)
        if not i or (not many and may_call(spine[i - 1])):  # what is asked for: of every binding, it would be quadratic
            _FREE[id(binding)] = (binding, frozenset(found))
    return frozenset(found)


def may_call(binding: Let | Fix) -> bool:
    """Whether what is bound may take calls, so that its variables wait in a frame."""
    if not isinstance(binding, Let) or isinstance(binding.value, Tuple | Project | Name | Lambda | Constant):
        return False
    return not isinstance(binding.value, Apply) or isinstance(binding.value.function, Name)


def _own(e: Expression) -> frozenset[str]:
    none: frozenset[str] = frozenset()
    match e:
        case Name():
            return frozenset({e.name})
        case Lambda():
            return frozenset(e.free)
        case Apply():
            return none.union(*(free(a) for a in (e.function, *e.arguments)))
        case If():
            return free(e.condition) | free(e.then) | free(e.otherwise)
        case Tuple():
            return none.union(*map(free, e.items))
        case Project():
            return free(e.value)
        case While():
            inside = (free(e.condition) | free(e.body)) - {*e.state}
            return inside.union(*map(free, e.initial))
    return none
