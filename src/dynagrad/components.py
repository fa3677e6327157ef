"""The strongly connected components of a graph, of predicates as of functions.

Those of ground programs and of forests are found in native code (`solving/ground.hpp`, `forest/order.hpp`), where that
runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def strongly_connected(start: Iterable[Node], after: Callable[[Node], Iterable[Node]]) -> list[list[Node]]:
    """The components that can be reached from some nodes, each after all that it reaches (Tarjan 1972).

    >>> strongly_connected("a", {"a": "b", "b": "ac", "c": ""}.__getitem__)
    [['c'], ['a', 'b']]
    """
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    found: list[list[Node]] = []
    for root in start:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(after(root)))]  # without recursion, as a program may have long chains
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(after(successor))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    members = [stack.pop()]
                    while members[-1] != node:
                        members.append(stack.pop())
                    on_stack.difference_update(members)
                    found.append(members[::-1])
    return found
