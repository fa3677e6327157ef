"""Lowers Python functions and statements to the core language. Expressions are in `expressions.py`.

An assignment is a `Let` that shadows the old binding, so straight-line code needs no renaming. A choice returns the
live variables that it assigned; a loop has these as its state. This is the functional form of SSA (Appel 1998). Where a
branch exits by `return`, `break` or `continue` and the other goes on, the rest of the block (its continuation) moves
into the latter. Where both may go on, the choice returns a code that says how it ended. Only a loop that may be left
early has a guard in its state.

Global and captured names are resolved when a function is lowered, to the objects that they stand for then.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .core import (
    UNDEFINED,
    Apply,
    Atom,
    Bindings,
    Constant,
    Expression,
    For,
    If,
    Lambda,
    Name,
    Parameter,
    Project,
    Tuple,
    While,
)
from .desugar import desugar
from .expressions import BINARY, Expressions, Scope
from .scopes import Liveness, Names, assigned, binding_groups, cells, endless, exits, falls_through, free, local_names
from .source import SUPPORTED, Definition, definition

NORMAL, BROKEN, CONTINUED, RETURNED = range(4)  # how a branch ended
NOTHING = Constant(UNDEFINED)
GOING, DID_RETURN, RESULT = "%going", "%returned", "%result"

Continuation = Callable[[], Expression]


@dataclass(frozen=True)
class Exits:
    """The continuations of `return`, `break` and `continue`; `live` are the variables that the last two pass on."""

    return_: Callable[[Atom], Expression]
    break_: Continuation | None = None
    continue_: Continuation | None = None
    live: Names = frozenset()


def lower(function: types.FunctionType) -> Lambda:
    """A Python function in the core language. Raises LiftError for what cannot be compiled.

    It is closed: globals and captured variables are constants in it.
    """
    node, file = definition(function)
    resolve = _resolver(function)
    node = desugar(node, file, function, resolve)
    lowering = Lowering(file, resolve, Scope(frozenset(), frozenset(), None), [0])
    return lowering.function(node, function.__name__, None, (function.__defaults__, function.__kwdefaults__))


def _resolver(function: types.FunctionType) -> Callable[[str], Any]:
    captured = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def resolve(name: str) -> Any:
        if name in captured:
            try:
                return captured[name].cell_contents
            except ValueError:
                raise KeyError(name) from None
        if name in function.__globals__:
            return function.__globals__[name]
        return vars(builtins)[name]

    return resolve


class Lowering(Expressions):
    """Lowers one function: its statements, and the functions nested in it."""

    live: Liveness
    binding_groups: Sequence[list[ast.FunctionDef]] = ()

    # -- functions ---------------------------------------------------------------------------------------------------

    def function(
        self, node: Definition, name: str, b: Bindings | None, default_objects: tuple[Any, Any] | None = None
    ) -> Lambda:
        scope = Scope(local_names(node) | {GOING}, cells(node), self.scope)
        inner = Lowering(self.file, self.resolve, scope, self.counter)
        start = Bindings()
        parameters = self._parameters(node.args, b, default_objects)
        for cell in sorted(inner.scope.cells):
            held: Atom = Name(cell) if any(p.name == cell for p in parameters) else Constant(UNDEFINED)
            start.let(cell, inner.apply("cell", node, held, Constant(cell)), inner.at(node))
        if isinstance(node, ast.Lambda):
            body = start.wrap(inner.expression(node.body, start))
        else:
            inner.live, inner.binding_groups = Liveness(node.body), binding_groups(node)
            leave = Exits(lambda value: value)
            body = start.wrap(inner.block(node.body, lambda: Constant(None), leave))
        needed = tuple(sorted(n for n in free(node) if self.scope.owner(n) is not None))
        return Lambda(name, parameters, body, needed, self.at(node))

    def _parameters(
        self, arguments: ast.arguments, b: Bindings | None, default_objects: tuple[Any, Any] | None
    ) -> tuple[Parameter, ...]:
        """Parameters; their defaults are given as objects, or lowered where the function is made."""
        places = [*((a, "positional") for a in arguments.posonlyargs), *((a, "either") for a in arguments.args)]
        named = list(arguments.kwonlyargs)
        defaults: dict[str, Atom] = {}
        if default_objects is not None:
            for (a, _), value in zip(reversed(places), reversed(default_objects[0] or ()), strict=False):
                defaults[a.arg] = Constant(value)
            defaults |= {key: Constant(value) for key, value in (default_objects[1] or {}).items()}
        else:
            assert b is not None
            for (a, _), tree in zip(reversed(places), reversed(arguments.defaults), strict=False):
                defaults[a.arg] = self._default(tree, b)
            for a, each in zip(named, arguments.kw_defaults, strict=True):
                if each is not None:
                    defaults[a.arg] = self._default(each, b)
        found = [Parameter(a.arg, kind, defaults.get(a.arg)) for a, kind in places]
        if arguments.vararg is not None:
            found.append(Parameter(arguments.vararg.arg, "rest"))
        found += [Parameter(a.arg, "named", defaults.get(a.arg)) for a in named]
        if arguments.kwarg is not None:
            found.append(Parameter(arguments.kwarg.arg, "named rest"))
        return tuple(found)

    def _default(self, tree: ast.expr, b: Bindings) -> Atom:
        """A default value, under a name that is never assigned."""
        value = self.expression(tree, b)
        if isinstance(value, Constant):
            return value
        name = self.fresh()
        b.let(name, value, self.at(tree))
        return Name(name)

    # -- blocks ------------------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt], end: Continuation, leave: Exits) -> Expression:
        """Statements followed by their continuation `end`, which is called at most once."""
        b = Bindings()
        for i, s in enumerate(statements):
            rest = statements[i + 1 :]
            match s:
                case ast.Return():
                    value = Constant(None) if s.value is None else self.atom(s.value, b)
                    return b.wrap(leave.return_(value))
                case ast.Break():
                    assert leave.break_ is not None
                    return b.wrap(leave.break_())
                case ast.Continue():
                    assert leave.continue_ is not None
                    return b.wrap(leave.continue_())
                case ast.Raise():
                    return b.wrap(self._raise(s, b))
                case ast.If() if exits([*s.body, *s.orelse]) or not (falls_through(s.body) and falls_through(s.orelse)):
                    return b.wrap(self._exiting_if(s, b, lambda rest=rest: self.block(rest, end, leave), leave))  # type: ignore[misc]  # mypy infers no type for a default
                case ast.While() | ast.For():
                    self._loop(s, b)
                    after = [*self._loop_else(s), *rest]
                    if exits(s.body, ast.Return):
                        if endless(s):  # left by `return` alone
                            return b.wrap(leave.return_(Name(RESULT)))
                        made = self.block(after, end, leave)
                        return b.wrap(If(Name(DID_RETURN), leave.return_(Name(RESULT)), made, self.at(s)))
                    if s.orelse:
                        return b.wrap(self.block(after, end, leave))
                    if endless(s):
                        return b.wrap(end())
                case _:
                    self.simple(s, b)
        return b.wrap(end())

    def simple(self, s: ast.stmt, b: Bindings) -> None:
        """A statement that control always leaves at its end."""
        match s:
            case ast.Expr():
                if not isinstance(s.value, ast.Constant):
                    b.let(self.fresh(), self.expression(s.value, b), self.at(s))
            case ast.Assign():
                if len(s.targets) == 1 and isinstance(s.targets[0], ast.Name):
                    self.assign(s.targets[0].id, self.expression(s.value, b), b, s)
                    return
                value = self.atom(s.value, b)
                for target in s.targets:
                    self.unpack(target, value, b)
            case ast.AnnAssign():
                if s.value is not None:
                    self.unpack(s.target, self.atom(s.value, b), b)
            case ast.AugAssign():
                self._augmented(s, b)
            case ast.If():
                self._if(s, b)
            case ast.FunctionDef():
                self._def(s, b)
            case ast.Assert():
                test, inner = self.condition(s.test, b), Bindings()
                message = self._assertion(s, inner)
                b.let(self.fresh(), If(test, Constant(None), inner.wrap(message), self.at(s)), self.at(s))
            case ast.Import():
                for alias in s.names:
                    module = importlib.import_module(alias.name)
                    top = module if alias.asname else importlib.import_module(alias.name.split(".")[0])
                    self.assign(alias.asname or alias.name.split(".")[0], Constant(top), b, s)
            case ast.ImportFrom():
                self._import_from(s, b)
            case ast.Delete() if all(isinstance(t, ast.Subscript) for t in s.targets):
                for t in s.targets:
                    assert isinstance(t, ast.Subscript)
                    held, index = self.atom(t.value, b), self.atom(t.slice, b)
                    b.let(self.fresh(), self.apply("delitem", t, held, index), self.at(t))
            case ast.Pass() | ast.Nonlocal() | ast.Global():
                pass
            case _:
                self.refuse(s, f"{_STATEMENTS.get(type(s).__name__, 'this')} cannot be compiled; {SUPPORTED}")

    def _augmented(self, s: ast.AugAssign, b: Bindings) -> None:
        op = Constant(BINARY[type(s.op)])
        match s.target:
            case ast.Name():
                held = self.expression(ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target), b)
                held = self.bind(held, b, self.at(s))
                value = self.apply("update", s, op, held, self.atom(s.value, b))
                self.assign(s.target.id, value, b, s)
            case ast.Subscript():
                held, index = self.atom(s.target.value, b), self.atom(s.target.slice, b)
                change = self.apply("update_item", s, op, held, index, self.atom(s.value, b))
                b.let(self.fresh(), change, self.at(s))
            case ast.Attribute():
                held, name = self.atom(s.target.value, b), Constant(s.target.attr)
                old = self.bind(self.apply("attribute", s, held, name), b, self.at(s))
                new = self.bind(self.apply("update", s, op, old, self.atom(s.value, b)), b, self.at(s))
                b.let(self.fresh(), self.apply("setattr", s, held, name, new), self.at(s))

    def _def(self, s: ast.FunctionDef, b: Bindings) -> None:
        group = next((g for g in self.binding_groups if s in g), None)
        if group is not None and not any(self.scope.is_cell(d.name) for d in group):
            if s is group[0]:
                b.fix(tuple((d.name, self.function(d, d.name, b)) for d in group), self.at(s))
            return
        decorators = [self.atom(d, b) for d in s.decorator_list]
        made = self.function(s, s.name, b)
        recursive = s.name in made.free and not self.scope.is_cell(s.name)
        value: Expression = made
        if recursive:
            b.fix(((s.name, made),), self.at(s))
            value = Name(s.name)
        for decorator in reversed(decorators):
            value = Apply(decorator, (self.bind(value, b, self.at(s)),), (), self.at(s))
        if not recursive or decorators:
            self.assign(s.name, value, b, s)

    def _import_from(self, s: ast.ImportFrom, b: Bindings) -> None:
        if s.level:
            self.refuse(s, "a relative import inside a function cannot be compiled; import at the top of the file")
        module = importlib.import_module(s.module or "")
        for alias in s.names:
            if hasattr(module, alias.name):
                self.assign(alias.asname or alias.name, Constant(getattr(module, alias.name)), b, s)
            else:
                found = importlib.import_module(f"{s.module}.{alias.name}")
                self.assign(alias.asname or alias.name, Constant(found), b, s)

    def _raise(self, s: ast.Raise, b: Bindings) -> Expression:
        value = Constant(None) if s.exc is None else self.atom(s.exc, b)
        return self.apply("raise", s, value)

    def _assertion(self, s: ast.Assert, b: Bindings) -> Expression:
        message = () if s.msg is None else (self.atom(s.msg, b),)
        raised = self.apply("assertion", s, Constant(ast.unparse(s.test)), *message)
        return self.apply("raise", s, self.bind(raised, b, None))

    # -- choices -----------------------------------------------------------------------------------------------------

    def _passed_on(self, names: Names) -> list[str]:
        """The variables that are passed on as values, unlike cells, which are written in place."""
        return sorted(n for n in names if self.scope.owner(n) is self.scope and not self.scope.is_cell(n))

    def _rebind(self, names: Sequence[str], held: Atom, b: Bindings, start: int = 0) -> None:
        for i, name in enumerate(names):
            b.let(name, Project(held, start + i), None)

    def _if(self, s: ast.If, b: Bindings) -> None:
        test = self.condition(s.test, b)
        names = self._passed_on(assigned([*s.body, *s.orelse]) & self.live.after[s])
        none = Exits(lambda value: value)

        def state() -> Expression:
            return Tuple(tuple(map(Name, names)))

        then, otherwise, caught = self.block(s.body, state, none), self.block(s.orelse, state, none), self._caught(s, b)
        made = If(test, then, otherwise, self.at(s), tuple(names), caught)
        self._rebind(names, self.bind(made, b, self.at(s)), b)

    def _caught(self, s: ast.If, b: Bindings) -> tuple[Atom, ...]:
        """The classes that a choice catches that was a `try`."""
        found: list[ast.expr | None] = getattr(s, "caught", [])
        return tuple(Constant(BaseException) if each is None else self.atom(each, b) for each in found)

    def _exiting_if(self, s: ast.If, b: Bindings, rest: Continuation, leave: Exits) -> Expression:
        """A choice that may exit its block; `rest` is its continuation."""
        test = self.condition(s.test, b)
        if not (falls_through(s.body) and falls_through(s.orelse)):
            then, otherwise = self.block(s.body, rest, leave), self.block(s.orelse, rest, leave)
            return If(test, then, otherwise, self.at(s), (), self._caught(s, b))
        inside = [*s.body, *s.orelse]
        names = self._passed_on(assigned(inside) & (self.live.after[s] | leave.live))

        def ended(code: int, value: Atom = NOTHING) -> Expression:
            return Tuple((Constant(code), value, *map(Name, names)))

        inner = Exits(lambda value: ended(RETURNED, value), lambda: ended(BROKEN), lambda: ended(CONTINUED), leave.live)
        then, otherwise = (self.block(part, lambda: ended(NORMAL), inner) for part in (s.body, s.orelse))
        labels = ("the way out", "the result", *names)
        held = self.bind(If(test, then, otherwise, self.at(s), labels, self._caught(s, b)), b, self.at(s))
        self._rebind(names, held, b, 2)
        code = self.bind(Project(held, 0), b, None)
        found = rest()
        ways: list[tuple[type[ast.stmt], int, Continuation | None]] = [
            (ast.Break, BROKEN, leave.break_),
            (ast.Continue, CONTINUED, leave.continue_),
        ]
        if exits(inside, ast.Return):
            returned = Bindings()
            value = self.bind(Project(held, 1), returned, None)
            found = self._when(code, RETURNED, returned.wrap(leave.return_(value)), found, s)
        for kind, number, made in ways:
            if exits(inside, kind):
                assert made is not None
                found = self._when(code, number, made(), found, s)
        return found

    def _when(self, code: Atom, number: int, then: Expression, otherwise: Expression, s: ast.stmt) -> Expression:
        b = Bindings()
        test = self.bind(self.apply("equal", s, code, Constant(number)), b, self.at(s))
        return b.wrap(If(test, then, otherwise, self.at(s)))

    # -- loops -------------------------------------------------------------------------------------------------------

    def _loop(self, s: ast.While | ast.For, b: Bindings) -> None:
        breaks, returns = exits(s.body, ast.Break), exits(s.body, ast.Return)
        head, after = self.live.head[s], self.live.after[s]
        changed = assigned([*s.body, s.target] if isinstance(s, ast.For) else [s.test, *s.body])
        names = self._passed_on(changed & (head | after))
        flags: list[tuple[str, Atom]] = []
        if breaks or returns:
            flags.append((GOING, Constant(True)))
        flagged = returns and not endless(s)  # whether its state says how the loop ended
        if returns:
            flags += [(DID_RETURN, Constant(False))] * flagged + [(RESULT, Constant(UNDEFINED))]

        def state(guard: bool = True, result: Atom | None = None) -> Expression:
            ends: list[Atom] = [Constant(guard)] if flags else []
            if returns:
                ends += [Constant(result is not None)] * flagged
                ends.append(Constant(UNDEFINED) if result is None else result)
            return Tuple((*map(Name, names), *ends))

        leave = Exits(lambda value: state(False, value), lambda: state(False), state, frozenset(names))
        guard = Name(GOING) if flags else None
        labels = (*names, *(name for name, _ in flags))
        initial: tuple[Atom, ...] = (*map(Name, names), *(value for _, value in flags))
        if isinstance(s, ast.While):
            condition = self._condition(s, guard)
            made: Expression = While(labels, initial, condition, self.block(s.body, state, leave), self.at(s))
        else:
            sequence, item, start = self.atom(s.iter, b), self.fresh(), Bindings()
            self.unpack(s.target, Name(item), start)
            body = start.wrap(self.block(s.body, state, leave))
            made = For(item, sequence, labels, initial, guard, body, self.at(s))
        self._rebind(labels, self.bind(made, b, self.at(s)), b)

    def _loop_else(self, s: ast.While | ast.For) -> list[ast.stmt]:
        """The `else` of a loop: statements after it, under a condition if a `break` may have ended the loop."""
        if not (s.orelse and exits(s.body, ast.Break)):
            return s.orelse
        chosen = ast.If(ast.copy_location(ast.Name(GOING, ast.Load()), s), s.orelse, [])
        self.live.after[chosen] = self.live.after[s]
        return [ast.copy_location(chosen, s)]

    def _condition(self, s: ast.While, guard: Name | None) -> Expression:
        test = self.within(s.test, as_truth=True)
        if guard is None:
            return test
        if isinstance(test, Constant) and test.value:
            return guard
        return If(guard, test, Constant(False), self.at(s))


_STATEMENTS = {
    "ClassDef": "a class inside a function",
    "With": "`with` of anything but np.errstate",
    "AsyncWith": "`with`",
    "AsyncFor": "`async for`",
    "AsyncFunctionDef": "an async function",
    "Try": "`try`",
    "TryStar": "`try`",
    "Match": "`match`",
    "Delete": "`del` of a variable",
}
