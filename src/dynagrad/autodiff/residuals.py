"""What the way back of a graph looks at, and how it comes there: chosen value by value, pushed on a stack, taken off.

What costs more to compute again than to keep is saved, what costs less is computed again from what is saved. Nothing is
differentiated here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..errors import Error
from ..ir.code import family_of
from ..ir.control import EMPTY, LOOPS, PART, POP, PUSH, REPEAT, Branches, Graph, Loop, part, part_types, pop, push
from ..ir.node import Node, order, substitute
from ..ir.operation import Trait
from ..ir.types import stack


def _dear(node: Node) -> bool:
    """Whether a value is rather saved than computed again."""
    operation = node.operation
    if operation is PART or Trait.EXPENSIVE in operation.traits:
        return True
    family = family_of(operation)
    if family is not None and family.role == "view" and len(node.arguments) == 1:
        return node.type.size * 8 < node.arguments[0].type.size  # little of much
    return not operation.elementwise and operation.name not in ("variable", "constant")


@dataclass(frozen=True)
class Split:
    """What the way back of a graph looks at: values to be saved, and stacks of what is inside, in forward order."""

    saved: tuple[Node, ...]
    stacks: tuple[Node, ...]

    @property
    def nothing(self) -> bool:
        return not self.saved and not self.stacks


def split_up(results: Sequence[Node], own: Collection[Node], back: Collection[Node], everything: bool) -> Split:
    """Splits what computes `results` into forward and backward.

    `own` are variables of the forward side that are gone when the way back runs, `back` those of the way back. With
    `everything`, all that is dear is saved; without, only what control flow inside makes, and the rest is made again.
    """
    series = order(results)
    own, back = set(own), set(back)  # `in` on a list of nodes would build nodes
    forward: set[Node] = set()  # made of what is gone
    backward: set[Node] = set()
    for node in series:
        if node in back or any(a in backward for a in node.arguments):
            backward.add(node)
        elif node in own or any(a in forward for a in node.arguments) or (not everything and node.operation in LOOPS):
            forward.add(node)
    saved: dict[Node, None] = {}
    stacks: dict[Node, None] = {}
    pieces: dict[Node, list[Node]] = {}  # of arrays that are gone, what is looked at
    seen: set[Node] = set()
    todo = list(results)
    while todo or pieces:
        if not todo:  # an array is saved whole where that is less
            array, looks = pieces.popitem()
            if array not in saved and sum(look.type.size for look in looks) < array.type.size:
                saved.update(dict.fromkeys(looks))
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
            if everything and node.operation.name == "item" and node.arguments[0] in own:
                pieces.setdefault(node.arguments[0], []).append(node)
                continue
            if node in own or (_dear(node) if everything else node.operation is PART):
                saved[node] = None
                continue
        todo.extend(node.arguments)
    place = {node: i for i, node in enumerate(series)}
    in_turn = sorted(stacks, key=lambda s: place[s.arguments[0]])  # of the loops, which may look at one another
    return Split(tuple(sorted(saved, key=place.__getitem__)), tuple(in_turn))


def stacks_of(graph: Graph) -> list[Node]:
    """The stacks that a graph takes values off: what they held is gone on the way back."""
    return [v for v in graph.inputs if v.type is stack]


def _begin(inner: Node) -> Node:
    """The empty stack that a stack of what is inside began as."""
    begin = _before(inner)
    if begin.operation is not EMPTY:
        raise Error("what a subgraph saves begins on a stack of its own")
    return begin


def _before(after: Node) -> Node:
    """The stack that came into a node of control flow as what goes out of it: the argument in its place."""
    node, index = after.arguments[0], after.attribute
    if isinstance(node.attribute, Loop):
        begin: Node = node.arguments[index + (node.operation is REPEAT)]
        return begin
    if isinstance(node.attribute, Branches):  # which may look at other stacks, too
        for branch in (node.attribute.then, node.attribute.otherwise):
            origin = _origin(branch.outputs[index])
            for v, a in zip(branch.inputs, node.arguments[1:], strict=True):
                if v is origin:
                    return a
        raise Error("what a branch saves begins on a stack that comes into it")
    stacks = [i for i, t in enumerate(part_types(node)) if t is stack]
    return [a for a in node.arguments if a.type is stack][stacks.index(index)]


def _origin(on: Node) -> Node:
    """The input that a stack was made of by pushing and popping."""
    while not on.is_variable and on.operation is not EMPTY:
        if on.operation is PUSH:
            on = on.arguments[0]
        elif on.arguments[0].operation is POP:
            on = on.arguments[0].arguments[0]
        else:
            on = _before(on)
    return on


def _rest(taken: Node, results: Sequence[Node]) -> Node:
    """The stack that is left when the way back of what is inside took off what was saved there."""
    for node in order(results):
        if node.operation in LOOPS and any(taken is a for a in node.arguments):
            index = [i for i, t in enumerate(part_types(node)) if t is stack]
            return part(node, index[-1])
    raise Error("what is saved is used on the way back")


def augmented(outputs: Sequence[Node], split: Split, on: Node) -> tuple[list[Node], Node]:
    """The outputs, and the stack with everything that the way back needs on it."""
    by: dict[Node, Node] = {}
    for inner in split.stacks:  # one after the other on the same stack
        by[_begin(inner)] = on
        [on] = substitute([inner], by)
    done = substitute([*outputs, *split.saved], by)
    return list(done[: len(outputs)]), push(on, done[len(outputs) :])


def restored(results: Sequence[Node], split: Split, off: Node, known: dict[Node, Node]) -> tuple[list[Node], Node]:
    """The results of the way back, from what is on the stack, and the stack without it."""
    rest, items = pop(off, [s.type for s in split.saved])
    by = {**known, **dict(zip(split.saved, items, strict=True))}
    for inner in reversed(split.stacks):
        by[inner] = rest
        [rest] = substitute([_rest(inner, results)], by)
    return list(substitute(results, by)), rest
