"""Facts about the rounds of a loop: words pushed and popped on each stack, whether rounds are independent.

Loops are looked at here, not changed.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.control import PART, POP, PUSH, Loop
from ...ir.node import Node, order, use_counts
from ...ir.ops.places import NEW, Slice, entries
from ...ir.types import Type, bytes_of, integer
from ..classify import lowering_of
from ..linear_forms import RULES, Form, name, number
from ..views import places_of


def form_of(node: Node, known: dict[Node, Form | None]) -> Form | None:
    """A whole number as an affine form of the numbers in `known`, which is filled on the way; None where it is none."""
    if node not in known:
        rule = RULES.get(node.operation)
        if node.is_constant:
            known[node] = number(node.attribute)
        elif rule is None:
            known[node] = None
        else:
            parts = [form_of(a, known) for a in node.arguments]
            known[node] = None if any(p is None for p in parts) else rule(*parts)
    return known[node]


# -- stacks ------------------------------------------------------------------------------------------------------------


def words(type: Type) -> int:
    """How many words of eight bytes a value takes on a stack."""
    return -(-bytes_of(type) // 8) if type.shape else 1


def pushes(loop: Loop, words: Callable[[Type], int]) -> dict[int, int]:
    """For each state that is a stack and is only pushed on: how many words a round pushes."""

    def before(node: Node) -> tuple[Node, int] | None:
        if node.operation is not PUSH:
            return None
        return node.arguments[0], sum(words(a.type) for a in node.arguments[1:])

    return _steady(loop, before)


def pops(loop: Loop, words: Callable[[Type], int]) -> dict[int, int]:
    """For each state that is a stack and is only popped: how many words a round pops."""

    def before(node: Node) -> tuple[Node, int] | None:
        if node.operation is not PART or node.attribute != 0 or node.arguments[0].operation is not POP:
            return None
        return node.arguments[0].arguments[0], sum(map(words, node.arguments[0].attribute))

    return _steady(loop, before)


def _steady(loop: Loop, before: Callable[[Node], tuple[Node, int] | None]) -> dict[int, int]:
    """By how many words each stack changes in a round; `before` gives the stack before an operation, and its words."""
    body = loop.body
    states = body.inputs[1 : 1 + loop.states]
    if not any(v.type.kind == "stack" for v in states):
        return {}
    uses = use_counts(body.outputs)
    found: dict[int, int] = {}
    for i, state in enumerate(states):
        node, total = body.outputs[i], 0
        while state.type.kind == "stack" and uses[node] == 1:  # nothing else uses the versions in between
            step = before(node)
            if step is None:
                break
            node, total = step[0], total + step[1]
        if node is state and total and uses[node] == 1:
            found[i] = total
    return found


# -- loop-carried dependences ------------------------------------------------------------------------------------------


def independent(loop: Loop) -> bool:
    """Whether a `repeat` loop has no loop-carried dependence through arrays: rounds touch different elements.

    Proved where all accesses to an array state share, in one axis, one index that is an affine form with the counter in
    it: elements with the same index on that axis belong to the same round.
    """
    body = loop.body
    counter, *others = body.inputs
    series = order(body.outputs)
    forms: dict[Node, Form | None] = {counter: name("#")}
    forms.update({v: name(f"#{k}") for k, v in enumerate(others[loop.states :]) if v.type is integer})
    versions: dict[Node, int] = {v: i for i, v in enumerate(others[: loop.states]) if v.shape}
    accesses: dict[int, list[tuple[object, ...]]] = {i: [] for i in versions.values()}
    for node in series:
        state = next((versions[a] for a in node.arguments if a in versions), None)
        if state is None:
            continue
        lowering, read = lowering_of(node), places_of(node)
        if read is None or any(isinstance(e, Slice) or e == NEW for e in read[0]) or any(h.shape for h in read[1]):
            return False
        if (
            lowering == "update"
            and node.arguments[0] in versions
            and not any(a in versions for a in node.arguments[1:])
        ):
            versions[node] = state
        elif lowering != "view" or node.shape:
            return False
        accesses[state].append(tuple(entry if hole is None else hole for entry, hole in entries(*read)))
    for i, variable in enumerate(others[: loop.states]):
        if variable.shape and (versions.get(body.outputs[i]) != i or not _one_round_each(accesses[i], forms)):
            return False
    return bool(accesses)


def _one_round_each(accesses: list[tuple[object, ...]], forms: dict[Node, Form | None]) -> bool:
    """Whether on some axis all accesses have the same index, and it changes with the counter `#`."""
    for axis in range(len(accesses[0]) if accesses else 0):
        first = accesses[0][axis]
        if not isinstance(first, Node) or any(access[axis] is not first for access in accesses):
            continue
        form = form_of(first, forms)
        if form is not None and form.times("#"):
            return True
    return False
