"""Lowers Python's expressions to the core language, one method per kind of syntax node.

Operands are named in the order in which Python evaluates them. Statements and functions are in `statements.py`.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Callable
from typing import Any, NoReturn

from .core import (
    KEPT,
    UNDEFINED,
    Apply,
    Atom,
    Bindings,
    Constant,
    Expression,
    If,
    Lambda,
    Name,
    Parameter,
    Position,
    Primitive,
    Project,
    Tuple,
)
from .scopes import Comprehension, Names, assigned, captured, stores, used
from .source import SUPPORTED, error, position

BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "modulo",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
}
UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "negative",
    ast.UAdd: "positive",
    ast.Not: "not",
    ast.Invert: "invert",
}
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Is: "is",
    ast.IsNot: "is_not",
    ast.In: "contained",
    ast.NotIn: "not_contained",
}


def primitive(name: str) -> Constant:
    return Constant(Primitive(name))


class Scope:
    """The variables of one function while it is lowered, and the scope around it."""

    def __init__(self, locals: Names, cells: Names, above: Scope | None) -> None:
        self.locals, self.cells, self.above = set(locals), set(cells), above

    def owner(self, name: str) -> Scope | None:
        """The innermost scope in which a name is local."""
        scope: Scope | None = self
        while scope is not None and name not in scope.locals:
            scope = scope.above
        return scope

    def is_cell(self, name: str) -> bool:
        owner = self.owner(name)
        return owner is not None and name in owner.cells


class Expressions:
    """Lowers the expressions of one scope; `resolve` finds the objects of global and captured names."""

    def __init__(self, file: str, resolve: Callable[[str], Any], scope: Scope, counter: list[int]) -> None:
        self.file, self.resolve, self.scope, self.counter = file, resolve, scope, counter

    # -- naming ------------------------------------------------------------------------------------------------------

    def at(self, node: ast.AST) -> Position | None:
        return position(self.file, node)

    def refuse(self, node: ast.AST, message: str) -> NoReturn:
        raise error(message, self.at(node))

    def fresh(self) -> str:
        self.counter[0] += 1
        return f"%{self.counter[0]}"

    def bind(self, value: Expression, b: Bindings, at: Position | None) -> Atom:
        """An atom for a value, which gets a name if it needs one."""
        if isinstance(value, Name | Constant):
            return value
        name = self.fresh()
        b.let(name, value, at)
        return Name(name, at)

    def atom(self, node: ast.expr, b: Bindings) -> Atom:
        return self.bind(self.expression(node, b), b, self.at(node))

    def apply(self, name: str, node: ast.AST, *arguments: Atom) -> Apply:
        """The application of a primitive."""
        return Apply(primitive(name), arguments, (), self.at(node))

    def assign(self, name: str, value: Expression, b: Bindings, node: ast.AST) -> None:
        """Assigns a variable: a binding, or a write to its cell."""
        owner = self.scope.owner(name)
        if self.scope.is_cell(name) or (owner is not None and owner is not self.scope):
            held = self.bind(value, b, self.at(node))
            b.let(self.fresh(), self.apply("write_cell", node, Name(name), held), self.at(node))
        elif owner is None:
            self.refuse(node, f"a compiled function cannot assign the global variable {name}; return its new value")
        else:
            b.let(name, value, self.at(node))

    # -- expressions -------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr, b: Bindings) -> Expression:
        lower = getattr(self, f"_{type(node).__name__}", None)
        if lower is None:
            self.refuse(node, f"{_KINDS.get(type(node).__name__, 'this')} cannot be compiled; {SUPPORTED}")
        found: Expression = lower(node, b)
        return found

    def within(self, node: ast.expr, *, as_truth: bool = False) -> Expression:
        """An expression with its own bindings, for a branch or the condition of a loop."""
        self._refuse_named(node)
        b = Bindings()
        return b.wrap(self._test(node, b) if as_truth else self.expression(node, b))

    def condition(self, node: ast.expr, b: Bindings) -> Atom:
        """An expression as a condition."""
        return self.bind(self._test(node, b), b, self.at(node))

    def _test(self, node: ast.expr, b: Bindings) -> Expression:
        return self._chain(node, node.values, b, True) if isinstance(node, ast.BoolOp) else self.expression(node, b)

    def _refuse_named(self, node: ast.expr) -> None:
        """Refuses `:=` in what is evaluated conditionally."""
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.refuse(
                    part,
                    "`:=` in an expression that may not be evaluated cannot be compiled; assign the name before it",
                )

    def _Constant(self, node: ast.Constant, b: Bindings) -> Expression:
        return Constant(node.value, self.at(node))

    def _Name(self, node: ast.Name, b: Bindings) -> Expression:
        name, at = node.id, self.at(node)
        if self.scope.owner(name) is not None:
            held = Name(name, at)
            return Apply(primitive("read_cell"), (held, Constant(name)), (), at) if self.scope.is_cell(name) else held
        try:
            return Constant(self.resolve(name), at)
        except KeyError:
            known = [*dir(builtins), *self._names()]
            near = difflib.get_close_matches(name, known, 1, 0.75)
            raise error(f"{name} is not defined" + (f"; is it {near[0]}?" if near else ""), at) from None

    def _names(self) -> list[str]:
        scope: Scope | None = self.scope
        found: list[str] = []
        while scope is not None:
            found.extend(scope.locals)
            scope = scope.above
        return found

    def _BinOp(self, node: ast.BinOp, b: Bindings) -> Expression:
        left = self.atom(node.left, b)
        return self.apply(BINARY[type(node.op)], node, left, self.atom(node.right, b))

    def _UnaryOp(self, node: ast.UnaryOp, b: Bindings) -> Expression:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            if isinstance(node.operand.value, int | float):
                return Constant(-node.operand.value, self.at(node))
        lower = self.condition if isinstance(node.op, ast.Not) else self.atom
        return self.apply(UNARY[type(node.op)], node, lower(node.operand, b))

    def _Compare(self, node: ast.Compare, b: Bindings) -> Expression:
        left = self.atom(node.left, b)
        return self._comparisons(node, left, list(zip(node.ops, node.comparators, strict=True)), b)

    def _comparisons(
        self, node: ast.Compare, left: Atom, rest: list[tuple[ast.cmpop, ast.expr]], b: Bindings
    ) -> Expression:
        (op, operand), *more = rest
        right = self.atom(operand, b)
        first = self.apply(COMPARE[type(op)], node, left, right)
        if not more:
            return first
        held = self.bind(first, b, self.at(node))
        inner = Bindings()
        return If(held, inner.wrap(self._comparisons(node, right, more, inner)), held, self.at(node))

    def _BoolOp(self, node: ast.BoolOp, b: Bindings) -> Expression:
        return self._chain(node, node.values, b)

    def _chain(self, node: ast.BoolOp, values: list[ast.expr], b: Bindings, as_truth: bool = False) -> Expression:
        """`and` and `or`; in a condition the operands need not have one type."""
        first, *more = values
        value = self._truth(first, b) if as_truth else self.expression(first, b)
        if not more:
            return value
        held = self.bind(value, b, self.at(first))
        for each in more:
            self._refuse_named(each)
        inner = Bindings()
        rest = inner.wrap(self._chain(node, more, inner, as_truth))
        if isinstance(node.op, ast.And):
            return If(held, rest, held, self.at(node))
        return If(held, held, rest, self.at(node))

    def _truth(self, node: ast.expr, b: Bindings) -> Expression:
        """An expression converted to a truth value."""
        made = self._test(node, b)
        if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return made
        return self.apply("truth", node, self.bind(made, b, self.at(node)))

    def _IfExp(self, node: ast.IfExp, b: Bindings) -> Expression:
        test = self.condition(node.test, b)
        return If(test, self.within(node.body), self.within(node.orelse), self.at(node))

    def _NamedExpr(self, node: ast.NamedExpr, b: Bindings) -> Expression:
        value = self.atom(node.value, b)
        self.assign(node.target.id, value, b, node)
        return value

    def _Tuple(self, node: ast.Tuple, b: Bindings) -> Expression:
        return self._items(node, node.elts, b)

    def _List(self, node: ast.List, b: Bindings) -> Expression:
        return self.apply("list", node, self.bind(self._items(node, node.elts, b), b, self.at(node)))

    def _Set(self, node: ast.Set, b: Bindings) -> Expression:
        return self.apply("set", node, self.bind(self._items(node, node.elts, b), b, self.at(node)))

    def _items(self, node: ast.expr, items: list[ast.expr], b: Bindings) -> Expression:
        if not any(isinstance(i, ast.Starred) for i in items):
            return Tuple(tuple(self.atom(i, b) for i in items), self.at(node))
        pieces = []
        for item in items:
            if isinstance(item, ast.Starred):
                pieces.append(self.bind(self.apply("items", node, self.atom(item.value, b)), b, self.at(item)))
            else:
                pieces.append(self.bind(Tuple((self.atom(item, b),)), b, self.at(item)))
        return self.apply("concat", node, *pieces)

    def _Dict(self, node: ast.Dict, b: Bindings) -> Expression:
        given: list[Atom] = []
        for key, value in zip(node.keys, node.values, strict=True):
            given.append(Constant(UNDEFINED) if key is None else self.atom(key, b))  # no key: **others
            given.append(self.atom(value, b))
        return self.apply("dict", node, *given)

    def _Attribute(self, node: ast.Attribute, b: Bindings) -> Expression:
        return self.apply("attribute", node, self.atom(node.value, b), Constant(node.attr))

    def _Subscript(self, node: ast.Subscript, b: Bindings) -> Expression:
        value = self.atom(node.value, b)
        return self.apply("getitem", node, value, self.atom(node.slice, b))

    def _Slice(self, node: ast.Slice, b: Bindings) -> Expression:
        parts = [Constant(None) if p is None else self.atom(p, b) for p in (node.lower, node.upper, node.step)]
        return self.apply("slice", node, *parts)

    def _JoinedStr(self, node: ast.JoinedStr, b: Bindings) -> Expression:
        return self.apply("text", node, *(self.atom(v, b) for v in node.values))

    def _FormattedValue(self, node: ast.FormattedValue, b: Bindings) -> Expression:
        spec = Constant("") if node.format_spec is None else self.atom(node.format_spec, b)
        return self.apply("format", node, self.atom(node.value, b), Constant(node.conversion), spec)

    def _Call(self, node: ast.Call, b: Bindings) -> Expression:
        function = self.atom(node.func, b)
        spread = any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords)
        if not spread:
            given = tuple(self.atom(a, b) for a in node.args)
            named = tuple((k.arg or "", self.atom(k.value, b)) for k in node.keywords)
            return Apply(function, given, named, self.at(node))
        items = self.bind(self._items(node, node.args, b), b, self.at(node))
        pairs: list[Atom] = []
        for k in node.keywords:
            pairs += [Constant(UNDEFINED if k.arg is None else k.arg), self.atom(k.value, b)]
        options = self.bind(self.apply("dict", node, *pairs), b, self.at(node))
        return self.apply("spread", node, function, items, options)

    def _Lambda(self, node: ast.Lambda, b: Bindings) -> Expression:
        return self.function(node, "<lambda>", b)

    def function(self, node: Any, name: str, b: Bindings) -> Lambda:
        """A nested function; implemented in `statements.py`."""
        raise NotImplementedError

    # -- comprehensions ----------------------------------------------------------------------------------------------

    def _ListComp(self, node: ast.ListComp, b: Bindings) -> Expression:
        return self.apply("list", node, self._comprehension(node, node.elt, b))

    def _SetComp(self, node: ast.SetComp, b: Bindings) -> Expression:
        return self.apply("set", node, self._comprehension(node, node.elt, b))

    def _GeneratorExp(self, node: ast.GeneratorExp, b: Bindings) -> Expression:
        return self._comprehension(node, node.elt, b)

    def _DictComp(self, node: ast.DictComp, b: Bindings) -> Expression:
        pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        return self.apply("dict_of_pairs", node, self._comprehension(node, pair, b))

    def _comprehension(self, node: Any, element: ast.expr, b: Bindings) -> Atom:
        """The tuple of all elements: for each generator, a function from its item to the elements inside."""
        held: dict[str, str] = {}
        if not isinstance(node, ast.GeneratorExp):  # functions made in one are mostly called before its next item
            targets = {name for g in node.generators for name, _ in stores(g.target)}
            for name in sorted(targets & captured(node)):  # a function made here sees the last value of the variable
                held[name] = self.fresh()
                b.let(held[name], self.apply("cell", node, Constant(UNDEFINED), Constant(name)), self.at(node))
        return self._generator(node, element, node.generators, held, b)

    def _generator(
        self, node: Any, element: ast.expr, generators: list[ast.comprehension], held: dict[str, str], b: Bindings
    ) -> Atom:
        """One generator; `held` maps variables that are cells to the names of these cells outside."""
        (g, *more), at = generators, self.at(node)
        if g.is_async:
            self.refuse(node, f"async cannot be compiled; {SUPPORTED}")
        sequence = self.atom(g.iter, b)
        names = frozenset(name for name, _ in stores(g.target))
        outer, self.scope = self.scope, Scope(names, names & held.keys(), self.scope)
        try:
            item, inner = self.fresh(), Bindings()
            for name in sorted(names & held.keys()):
                inner.let(name, Name(held[name]), at)
            self.unpack(g.target, Name(item), inner)

            def rest(ifs: list[ast.expr], b: Bindings) -> Expression:
                if ifs:
                    test = self.condition(ifs[0], b)
                    deeper = Bindings()
                    return If(test, deeper.wrap(rest(ifs[1:], deeper)), Tuple(()), at, KEPT)
                return self._generator(node, element, more, held, b) if more else Tuple((self.atom(element, b),), at)

            body = inner.wrap(rest(g.ifs, inner))
        finally:
            self.scope = outer
        needed = [element, *g.ifs, *(p for c in more for p in (c.iter, c.target, *c.ifs))]
        reads = frozenset[str]().union(*map(used, needed)) - names
        evaluated = [element, *g.ifs, *(p for c in more for p in (c.iter, *c.ifs))]
        written = assigned(evaluated)  # by `:=`, in the function around
        free = tuple(sorted(n for n in reads | written if self.scope.owner(n) is not None))
        function = Lambda("<comprehension>", (Parameter(item),), body, (*free, *held.values()), at)
        return self.bind(self.apply("collect", node, self.bind(function, b, at), sequence), b, at)

    # -- targets -----------------------------------------------------------------------------------------------------

    def unpack(self, target: ast.expr, value: Atom, b: Bindings) -> None:
        """Assigns a value to any target: a name, a pattern of tuples, an item, an attribute."""
        match target:
            case ast.Name():
                self.assign(target.id, value, b, target)
            case ast.Tuple() | ast.List():
                star = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
                where = Constant(star[0] if star else None)
                parts = self.bind(
                    self.apply("unpack", target, value, Constant(len(target.elts)), where), b, self.at(target)
                )
                for i, t in enumerate(target.elts):
                    part = self.bind(Project(parts, i, self.at(t)), b, self.at(t))
                    self.unpack(t.value if isinstance(t, ast.Starred) else t, part, b)
            case ast.Subscript():
                held = self.atom(target.value, b)
                index = self.atom(target.slice, b)
                b.let(self.fresh(), self.apply("setitem", target, held, index, value), self.at(target))
            case ast.Attribute():
                held = self.atom(target.value, b)
                change = self.apply("setattr", target, held, Constant(target.attr), value)
                b.let(self.fresh(), change, self.at(target))
            case _:
                self.refuse(target, f"this cannot be assigned in a compiled function; {SUPPORTED}")


_KINDS = {
    "Await": "await",
    "Yield": "yield",
    "YieldFrom": "yield",
    "Starred": "a star here",
}

assert set(Comprehension.__args__) == {ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp}
