"""Scopes and liveness: which variables a part of a function assigns, reads and captures, and which are live after it.

The front end asks three things: which variables some statements assign; which of them are live afterwards, and so part
of the result of a choice or the state of a loop; and which are assigned after a nested function has captured them, and
so are cells. The first and the last answer are kept for whole functions: one is lowered for each call that is compiled.

What is made of the answers is for `statements.py` and `expressions.py`; what a variable holds is not known here.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence

from .source import Definition

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
Names = frozenset[str]
NONE: Names = frozenset()

_kept = functools.lru_cache(1024)


_LEAVES = frozenset(["ctx", "op", "ops", "id", "attr", "arg", "asname", "kind", "module", "level", "type_comment"])
_FIELDS = {
    kind: tuple(field for field in kind._fields if field not in _LEAVES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind is not ast.Constant
}


def children(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that may name variables: `ast.iter_child_nodes` without contexts and operators."""
    found: list[ast.AST] = []
    for field in _FIELDS.get(type(node), ()):
        part = getattr(node, field, None)
        if isinstance(part, list):
            found += [each for each in part if isinstance(each, ast.AST)]
        elif isinstance(part, ast.AST):
            found.append(part)
    return found


def parameters(arguments: ast.arguments) -> list[str]:
    """The names of all parameters, `*args` and `**kwargs` included."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [a.arg for a in every] + [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]


def stores(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that are assigned in a part of a function, and where; nested functions have scopes of their own."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, node
        for part in (*node.decorator_list, *(_defaults(node) if not isinstance(node, ast.ClassDef) else ())):
            yield from stores(part)
        return
    if isinstance(node, ast.Lambda):
        for part in _defaults(node):
            yield from stores(part)
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.split(".")[0], node
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        yield node.id, node
    if isinstance(node, Comprehension):
        own = {name for g in node.generators for name, _ in stores(g.target)}
        for part in children(node):
            yield from ((n, at) for n, at in stores(part) if n not in own)
        return
    for part in children(node):
        yield from stores(part)


def assigned(statements: Iterable[ast.AST]) -> Names:
    """The names that statements may assign."""
    return frozenset(name for s in statements for name, _ in stores(s))


def _defaults(scope: Scope) -> list[ast.expr]:
    return [*scope.args.defaults, *(d for d in scope.args.kw_defaults if d is not None)]


def used(node: ast.AST | None) -> Names:
    """The names that a part of a function reads, those captured by nested functions included."""
    if node is None:
        return NONE
    if isinstance(node, ast.Name):
        return frozenset([node.id]) if isinstance(node.ctx, ast.Load) else NONE
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return used(node.value) | {node.target.id}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        outside = [*_defaults(node), *getattr(node, "decorator_list", [])]
        return free(node).union(*map(used, outside))
    if isinstance(node, Comprehension):
        own = {name for g in node.generators for name, _ in stores(g.target)}
        inside = NONE.union(*(used(part) for part in children(node)))
        return (inside - own) | used(node.generators[0].iter)
    return NONE.union(*(used(part) for part in children(node)))


def body_of(scope: Scope) -> Sequence[ast.AST]:
    return scope.body if isinstance(scope.body, list) else [scope.body]


@_kept
def free(scope: Scope) -> Names:
    """The free variables of a function."""
    body = body_of(scope)
    reads = NONE.union(*map(used, body))
    declared = frozenset(n for s in _nonlocals(body) for n in s.names)
    return (reads - assigned(body) - frozenset(parameters(scope.args))) | declared | (reads & _globals(body))


def _nonlocals(body: Sequence[ast.AST]) -> list[ast.Nonlocal]:
    return [n for n in own_nodes(body) if isinstance(n, ast.Nonlocal)]


def _globals(body: Sequence[ast.AST]) -> Names:
    return frozenset(name for n in own_nodes(body) if isinstance(n, ast.Global) for name in n.names)


@_kept
def local_names(scope: Definition) -> Names:
    """The local variables of a function."""
    body = body_of(scope)
    declared = frozenset(n for s in _nonlocals(body) for n in s.names) | _globals(body)
    return (assigned(body) | frozenset(parameters(scope.args))) - declared


_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a body without those inside nested functions."""
    todo = [*body]
    todo.reverse()
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _NESTED):
            todo += reversed(children(node))


# -- cells -------------------------------------------------------------------------------------------------------------


@_kept
def cells(scope: Definition) -> Names:
    """The variables that must be cells: captured by a nested function, and perhaps assigned after that."""
    body = body_of(scope)
    captured: dict[str, tuple[int, int]] = {}
    written: set[str] = set()
    for node in _nested(body):
        for name in free(node):
            here = (node.lineno, node.col_offset)
            captured[name] = min(captured.get(name, here), here)
        written |= _rewritten(node)
    sites: dict[str, list[ast.AST]] = {}
    for statement in body:
        for name, at in stores(statement):
            sites.setdefault(name, []).append(at)
    looped = assigned(n for n in own_nodes(body) if isinstance(n, ast.For | ast.While))
    given = frozenset(parameters(scope.args))
    start = {d.name: group[0] for group in binding_groups(scope) for d in group}

    def changes(name: str) -> bool:
        places = sites.get(name, [])
        if name in written or name in looped or len(places) + (name in given) > 1:
            return True
        places = [start.get(name, at) for at in places]  # a binding group is defined where its first function is
        return any((at.lineno, at.col_offset) > captured[name] for at in places)  # type: ignore[attr-defined]  # checked above

    kept = frozenset(name for name in captured if name in local_names(scope) and changes(name))
    return kept | (_assigned_in_comprehensions(body) & local_names(scope))


def _rewritten(scope: Scope) -> Names:
    """The variables of functions around it that a function assigns, or one that is made in it."""
    body = body_of(scope)
    own = frozenset(n for s in _nonlocals(body) for n in s.names)
    bound = assigned(body) | frozenset(parameters(scope.args))
    return own.union(*(_rewritten(node) - bound for node in _nested(body)))


def _assigned_in_comprehensions(body: Iterable[ast.AST]) -> Names:
    """What `:=` assigns inside of comprehensions, which are functions of their own once they are lowered."""
    inside = [part for node in own_nodes(body) if isinstance(node, Comprehension) for part in own_nodes([node])]
    return frozenset(n.target.id for n in inside if isinstance(n, ast.NamedExpr))


def binding_groups(scope: Definition) -> list[list[ast.FunctionDef]]:
    """Binding groups: functions of one block that use others defined further down in it, and so are bound together.

    The other variables that they use must not be assigned in between.
    """
    body = body_of(scope)
    names = [name for s in body for name, _ in stores(s)] + parameters(scope.args)
    found: list[list[ast.FunctionDef]] = []
    blocks = [body] if isinstance(scope.body, list) else []
    for block in blocks:
        i = 0
        while i < len(block):
            if not isinstance(block[i], ast.FunctionDef):
                i += 1
                continue
            end = _reach(block, i)
            group = [s for s in block[i : end + 1] if isinstance(s, ast.FunctionDef)]
            own = {d.name for d in group}
            between = assigned(s for s in block[i:end] if not isinstance(s, ast.FunctionDef))
            once = all(names.count(name) == 1 for name in own) and not any(d.decorator_list for d in group)
            uses = NONE.union(*map(used, group)) - own
            if len(group) > 1 and once and not uses & between:
                found.append(group)
                i = end
            i += 1
    return found


def _reach(block: Sequence[ast.AST], first: int) -> int:
    """The index of the last function that is used, directly or through others, by the one at `first`."""
    places = {s.name: i for i, s in enumerate(block) if isinstance(s, ast.FunctionDef)}
    end, at = first, first
    while at <= end:
        s = block[at]
        if isinstance(s, ast.FunctionDef):
            end = max([end, *(places[name] for name in free(s) if name in places)])
        at += 1
    return end


def _nested(body: Iterable[ast.AST]) -> Iterator[Scope]:
    """The functions made directly in a body, those in its comprehensions and default values included."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from _nested(_defaults(node))
        else:
            yield from _nested(children(node))


def captured(node: ast.AST) -> Names:
    """The free variables of all functions made in a part of a function."""
    return NONE.union(*map(free, _nested([node])))


# -- how a block ends --------------------------------------------------------------------------------------------------

EXITS = (ast.Return, ast.Break, ast.Continue)


def exits(statements: Sequence[ast.stmt], *kinds: type[ast.stmt], inside: bool = False) -> bool:
    """Whether statements may exit their block by `return`, or by a `break` or `continue` of a loop around it."""
    kinds = kinds or EXITS
    for s in statements:
        if isinstance(s, kinds) and not (inside and not isinstance(s, ast.Return)):
            return True
        if isinstance(s, ast.If) and exits([*s.body, *s.orelse], *kinds, inside=inside):
            return True
        if isinstance(s, ast.For | ast.While) and (
            exits(s.body, *kinds, inside=True) or exits(s.orelse, *kinds, inside=inside)
        ):
            return True
    return False


def falls_through(statements: Sequence[ast.stmt]) -> bool:
    """Whether control may reach the end of a block."""
    for s in statements:
        if isinstance(s, (*EXITS, ast.Raise)):
            return False
        if isinstance(s, ast.If) and s.orelse and not falls_through(s.body) and not falls_through(s.orelse):
            return False
        if isinstance(s, ast.For | ast.While) and not exits(s.body, ast.Break):
            if endless(s) or not falls_through(s.orelse):
                return False
    return True


def endless(s: ast.For | ast.While) -> bool:
    """Whether a loop is `while True` without a `break`: only `return` or `raise` leaves it."""
    always = isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and bool(s.test.value)
    return always and not exits(s.body, ast.Break)


# -- liveness ----------------------------------------------------------------------------------------------------------


class Liveness:
    """Live variables after each statement of a function and at the head of each loop, by backward data flow."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.after: dict[ast.stmt, Names] = {}
        self.head: dict[ast.stmt, Names] = {}
        self.entry = self._block(body, NONE, NONE, NONE)

    def _block(self, statements: Sequence[ast.stmt], out: Names, broken: Names, continued: Names) -> Names:
        for s in reversed(statements):
            self.after[s] = out
            out = self._statement(s, out, broken, continued)
        return out

    def _statement(self, s: ast.stmt, out: Names, broken: Names, continued: Names) -> Names:
        match s:
            case ast.Return() | ast.Raise():
                return used(s)
            case ast.Break():
                return broken
            case ast.Continue():
                return continued
            case ast.If():
                then = self._block(s.body, out, broken, continued)
                return used(s.test) | then | self._block(s.orelse, out, broken, continued)
            case ast.While() | ast.For():
                return self._loop(s, out, broken, continued)
            case ast.FunctionDef():
                return (out - {s.name}) | used(s)
        return (out - _definitely_assigned(s)) | used(s)

    def _loop(self, s: ast.While | ast.For, out: Names, broken: Names, continued: Names) -> Names:
        ended = self._block(s.orelse, out, broken, continued)
        test = used(s.test) if isinstance(s, ast.While) else NONE
        target = assigned([s.target]) if isinstance(s, ast.For) else NONE
        head: Names = test | ended
        while True:
            again = head | (self._block(s.body, head, out, head) - target)
            if again == head:
                break
            head = again
        self.head[s] = head
        return head if isinstance(s, ast.While) else head | used(s.iter)


def _definitely_assigned(s: ast.stmt) -> Names:
    """The names that a simple statement assigns in any case."""
    targets: list[ast.expr] = []
    if isinstance(s, ast.Assign):
        targets = s.targets
    elif isinstance(s, ast.AnnAssign) and s.value is not None:
        targets = [s.target]
    elif isinstance(s, ast.Import | ast.ImportFrom):
        return assigned([s])
    return assigned(targets)
