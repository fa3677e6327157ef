"""Residuals: which values of the forward pass the backward pass needs, saved on a stack or rematerialised.

A value that costs more to recompute than to keep is saved; a cheaper one is recomputed from saved ones (store or
recompute; the set is that of to-be-recorded analysis: Hascoët, Naumann and Pascual 2005). The forward pass pushes
residuals (`augmented`) and the backward pass pops them (`restored`). Nothing is differentiated here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..errors import Error
from ..ir.code import code_of, family_of
from ..ir.control import EMPTY, LOOPS, PART, POP, PUSH, REPEAT, Branches, Graph, Loop, part, part_types, pop, push
from ..ir.node import Node, order, substitute
from ..ir.operation import Trait
from ..ir.ops.cells import FRESH_TAG
from ..ir.types import stack


def _saves(node: Node) -> bool:
    """Whether a value is saved rather than recomputed."""
    operation = node.operation
    if operation is PART or Trait.EXPENSIVE in operation.traits:
        return True
    family = family_of(operation)
    if family is not None and family.lowering == "view" and len(node.arguments) == 1:
        return node.type.size * 8 < node.arguments[0].type.size  # a small part of a large array
    return not (operation.elementwise or node.is_variable or node.is_constant)


@dataclass(frozen=True)
class Residuals:
    """What the backward pass of a graph needs: values to be saved, and stacks that inner control flow fills."""

    values: tuple[Node, ...]  # both in forward order
    stacks: tuple[Node, ...]

    @property
    def empty(self) -> bool:
        return not self.values and not self.stacks


def choose_residuals(
    results: Sequence[Node], own: Collection[Node], back: Collection[Node], everything: bool
) -> Residuals:
    """The residuals of a backward pass that computes `results` from forward and backward values.

    `own` are variables of the forward pass that are gone when the backward pass runs, `back` those of the backward
    pass. With `everything`, all expensive values are saved; without, only results of inner control flow, and the rest
    is recomputed.
    """
    series = order(results)
    own, back = set(own), set(back)  # `in` on a list of nodes would build nodes
    forward: set[Node] = set()  # what depends on variables that are gone
    backward: set[Node] = set()
    for node in series:
        if node in back or any(a in backward for a in node.arguments):
            backward.add(node)
        elif (
            node in own
            or any(a in forward for a in node.arguments)
            or node.operation is FRESH_TAG
            or (not everything and node.operation in LOOPS)
        ):
            forward.add(node)
    chosen: dict[Node, None] = {}
    stacks: dict[Node, None] = {}
    pieces: dict[Node, list[Node]] = {}  # for arrays that are gone, the reads of elements
    seen: set[Node] = set()
    todo = list(results)
    while todo or pieces:
        if not todo:  # saves the whole array where that is less than all that is read of it
            array, looks = pieces.popitem()
            if array not in chosen and sum(look.type.size for look in looks) < array.type.size:
                chosen.update(dict.fromkeys(looks))
            else:
                todo += [a for look in looks for a in look.arguments]
            continue
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in forward:
            if node.type.kind == "stack":
                stacks[node] = None
                continue
            if everything and code_of(node)[:1] == ("item",) and node.arguments[0] in own:
                pieces.setdefault(node.arguments[0], []).append(node)
                continue
            if node in own or (_saves(node) if everything else node.operation in (PART, FRESH_TAG)):
                chosen[node] = None
                continue
        todo.extend(node.arguments)
    place = {node: i for i, node in enumerate(series)}
    in_turn = sorted(stacks, key=lambda s: place[s.arguments[0]])  # the order of their loops, which may use one another
    return Residuals(tuple(sorted(chosen, key=place.__getitem__)), tuple(in_turn))


def stacks_of(graph: Graph) -> list[Node]:
    """The stacks that a graph pops: their contents are gone in the backward pass."""
    return [v for v in graph.inputs if v.type is stack]


def _empty_stack_of(inner: Node) -> Node:
    """The empty stack that inner control flow starts to push on."""
    begin = _stack_before(inner)
    if begin.operation is not EMPTY:
        raise Error("a subgraph should save its residuals on a stack of its own")
    return begin


def _stack_before(after: Node) -> Node:
    """The stack that a node of control flow started from, for one of its resulting stacks: one of its arguments."""
    node, index = after.arguments[0], after.attribute
    if isinstance(node.attribute, Loop):
        begin: Node = node.arguments[index + (node.operation is REPEAT)]
        return begin
    if isinstance(node.attribute, Branches):  # branches may use other stacks, too
        for branch in (node.attribute.then, node.attribute.otherwise):
            origin = _origin(branch.outputs[index])
            for v, a in zip(branch.inputs, node.arguments[1:], strict=True):
                if v is origin:
                    return a
        raise Error("a branch should save its residuals on a stack that it captures")
    stacks = [i for i, t in enumerate(part_types(node)) if t is stack]
    return [a for a in node.arguments if a.type is stack][stacks.index(index)]


def _origin(on: Node) -> Node:
    """The input, or empty stack, that a stack was made from by pushing and popping."""
    while not on.is_variable and on.operation is not EMPTY:
        if on.operation is PUSH:
            on = on.arguments[0]
        elif on.arguments[0].operation is POP:
            on = on.arguments[0].arguments[0]
        else:
            on = _stack_before(on)
    return on


def _stack_after(popped: Node, results: Sequence[Node]) -> Node:
    """The stack that inner control flow of the backward pass leaves after popping its residuals."""
    for node in order(results):
        if node.operation in LOOPS and any(popped is a for a in node.arguments):
            index = [i for i, t in enumerate(part_types(node)) if t is stack]
            return part(node, index[-1])
    raise Error("the residuals of a subgraph should be popped in the backward pass")


def augmented(outputs: Sequence[Node], residuals: Residuals, on: Node) -> tuple[list[Node], Node]:
    """The forward pass: the outputs, and the stack with all residuals pushed onto it."""
    by: dict[Node, Node] = {}
    for inner in residuals.stacks:  # inner control flow pushes on the same stack, in turn
        by[_empty_stack_of(inner)] = on
        [on] = substitute([inner], by)
    done = substitute([*outputs, *residuals.values], by)
    return list(done[: len(outputs)]), push(on, done[len(outputs) :])


def restored(
    results: Sequence[Node], residuals: Residuals, off: Node, known: dict[Node, Node]
) -> tuple[list[Node], Node]:
    """The backward pass: the results, from residuals popped off the stack, and the stack that is left."""
    rest, items = pop(off, [s.type for s in residuals.values])
    by = {**known, **dict(zip(residuals.values, items, strict=True))}
    for inner in reversed(residuals.stacks):
        by[inner] = rest
        [rest] = substitute([_stack_after(inner, results)], by)
    return list(substitute(results, by)), rest
