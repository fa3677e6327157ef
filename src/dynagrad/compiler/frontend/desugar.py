"""Desugars Python's syntax tree: a function with less syntax and the same meaning.

`while (y := f(x)) > 1` becomes a loop with a `break`. `with np.errstate(...)` is replaced by its body, since compiled
code warns of nothing. `try` becomes an `if True` that is annotated with the classes it catches, and the statements of
`finally` are copied before each exit. Private names (`self.__k`) are mangled, and `super()` gets its implicit
arguments. The parsed tree of the file, which is shared, stays unchanged.
"""

from __future__ import annotations

import ast
import copy
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .scopes import exits, falls_through
from .source import Definition, error, position

_RAISING = frozenset({"raise", "call", "log"})


def desugar(node: Definition, file: str, function: types.FunctionType, resolve: Callable[[str], Any]) -> Definition:
    """The desugared function. Raises LiftError for `np.errstate` that would raise, and for exits out of a `finally`."""
    cls = _class_of(function.__qualname__)
    if not _has_sugar(node):
        return node
    return _Desugar(file, cls, resolve).visit(copy.deepcopy(node))  # type: ignore[no-any-return]  # NodeTransformer.visit returns Any


@functools.lru_cache(1024)
def _has_sugar(node: Definition) -> bool:
    return any(_is_sugar(part) for part in ast.walk(node))


def _is_sugar(part: ast.AST) -> bool:
    return isinstance(part, ast.With | ast.While | ast.Try) or _private(part) or _is_super(part)


def _private(part: ast.AST) -> bool:
    name = part.attr if isinstance(part, ast.Attribute) else ""
    return name.startswith("__") and not name.endswith("__")


def _is_super(part: ast.AST) -> bool:
    """Whether this is `super()` without arguments."""
    is_call = isinstance(part, ast.Call) and not part.args and not part.keywords
    return is_call and isinstance(part.func, ast.Name) and part.func.id == "super"  # type: ignore[attr-defined]  # checked above


def _class_of(qualname: str) -> str:
    """The innermost class around a function, read off its qualified name; "" outside of classes."""
    above = qualname.split(".")[:-1]
    while above and above[-1] == "<locals>":
        above = above[:-2]
    return above[-1] if above else ""


def _with_finally(statements: list[Any], last: list[Any], inside: bool = False) -> list[Any]:
    """Statements with those of a `finally` before each exit: each return, and each break and continue that leaves the
    `try` (`inside` of a loop they do not)."""
    if not last:
        return statements
    found: list[Any] = []
    for s in statements:
        if isinstance(s, ast.Return):
            name = ast.Name(_RETURNED, ast.Store())
            value = s.value or ast.copy_location(ast.Constant(None), s)
            found.append(ast.copy_location(ast.Assign([ast.copy_location(name, s)], value), s))
            s = ast.copy_location(ast.Return(ast.copy_location(ast.Name(_RETURNED, ast.Load()), s)), s)
        if isinstance(s, ast.Return) or (isinstance(s, ast.Break | ast.Continue) and not inside):
            found.extend(copy.deepcopy(last))
        if isinstance(s, ast.If | ast.For | ast.While):
            s.body = _with_finally(s.body, last, inside or not isinstance(s, ast.If))
            s.orelse = _with_finally(s.orelse, last, inside)
        found.append(s)
    return found


_RETURNED = "%returned"
"""The variable that holds what is returned while the statements of a `finally` run."""


class _Desugar(ast.NodeTransformer):
    def __init__(self, file: str, cls: str, resolve: Callable[[str], Any]) -> None:
        self.file, self.cls, self.resolve = file, cls.lstrip("_"), resolve
        self.first: list[str] = []  # the first parameters of the functions around

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        places = [*node.args.posonlyargs, *node.args.args]
        self.first.append(places[0].arg if places else "")
        self.generic_visit(node)
        self.first.pop()
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _is_super(node) and self.first and self.first[-1]:
            given = (ast.Name("__class__", ast.Load()), ast.Name(self.first[-1], ast.Load()))
            node.args = [ast.copy_location(name, node) for name in given]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node  # which has private names of its own, and is refused anyway

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self.cls and _private(node):
            node.attr = f"_{self.cls}{node.attr}"
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        """A condition with `:=` moves into the body, where the name is assigned in every round."""
        self.generic_visit(node)
        if node.orelse or not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test)):
            return node
        ended = ast.UnaryOp(ast.Not(), node.test)
        leave = ast.If(ast.copy_location(ended, node.test), [ast.copy_location(ast.Break(), node.test)], [])
        always = ast.copy_location(ast.Constant(True), node.test)
        return ast.copy_location(ast.While(always, [ast.copy_location(leave, node.test), *node.body], []), node)

    def visit_Try(self, node: ast.Try) -> Any:
        """Handlers are dropped: what they catch is never raised, or the specialiser refuses the `try`."""
        self.generic_visit(node)
        if exits(node.finalbody):
            raise error(
                "a return, break or continue in a `finally` cannot be compiled; write it after the `finally`",
                position(self.file, node),
            )
        body, orelse = (_with_finally(part, node.finalbody) for part in (node.body, node.orelse))
        made: Any = ast.copy_location(ast.If(ast.copy_location(ast.Constant(True), node), body, []), node)
        made.caught = [handler.type for handler in node.handlers]
        block = [made, *orelse] if node.handlers else body
        return [*block, *node.finalbody] if falls_through(body) and falls_through(orelse) else block

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        if not all(self._is_errstate(item) for item in node.items):
            return node
        return node.body

    def _is_errstate(self, item: ast.withitem) -> bool:
        call = item.context_expr
        if not isinstance(call, ast.Call) or self._object(call.func) is not np.errstate or item.optional_vars:
            return False
        for k in call.keywords:
            if k.arg != "call" and not (isinstance(k.value, ast.Constant) and k.value.value not in _RAISING):
                raise error(
                    "np.errstate that raises or calls something cannot be compiled: compiled code computes NaN and "
                    'infinities without warning; leave it out, or write "ignore"',
                    position(self.file, call),
                )
        return True

    def _object(self, node: ast.expr) -> Any:
        """The object that a global or captured name stands for; None for others."""
        if isinstance(node, ast.Attribute):
            return getattr(self._object(node.value), node.attr, None)
        try:
            return self.resolve(node.id) if isinstance(node, ast.Name) else None
        except KeyError:
            return None
