"""From data to the core language of the compiler (`compiler/frontend/core.py`): names, patterns, bodies, calls.

Every variable gets a name of its own, so that none hides another. A procedure takes one argument: a chain of pairs,
where the text has several. Definitions of a body are sorted: functions that call each other are one `Fix`, and come
before the first value that needs them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from ...compiler.frontend.core import (
    Apply,
    Bindings,
    Constant,
    Expression,
    If,
    Lambda,
    Name,
    Parameter,
    Tuple,
)
from ...compiler.frontend.core import Atom as CoreAtom
from ...components import strongly_connected
from ...errors import ProgramError, counted
from .builtins import BUILTINS, FIRST, NONE, REST, Builtin
from .data import NIL, QuotedSymbol, chain
from .expand import DERIVED, Keyword, definition, head, key, listed, want
from .reader import Atom, Datum, ListForm, place, shown
from .variables import free

_serial = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class Recomputed:
    """A value that is defined by itself, such as a stream: a function makes it anew where it is used."""

    name: str
    depth: int


Meaning = str | Builtin | Recomputed
"""What a symbol means: a variable of the core language, or a procedure of the table."""


@dataclass(frozen=True)
class SymbolScope:
    """What symbols mean, and how many lambdas are around."""

    names: Mapping[str, Meaning]
    depth: int = 0

    def __or__(self, more: Mapping[str, Meaning]) -> SymbolScope:
        return SymbolScope({**self.names, **more}, self.depth)


@dataclass
class Definitions:
    """The functions that a body defines, by name, and which variables it has no value for yet."""

    functions: dict[str, Lambda] = field(default_factory=dict)
    pending: dict[str, Atom] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)

    def needed(self, by: Iterable[str], at: Datum) -> list[tuple[tuple[str, Lambda], ...]]:
        """The functions that some names need and that are not there yet, those first that others need."""
        groups = strongly_connected(
            [n for n in sorted(by) if n in self.functions and n not in self.done],
            lambda n: [m for m in self.functions[n].free if m in self.functions and m not in self.done],
        )
        for group in groups:
            for name in group:
                for early in self.functions[name].free:
                    if early in self.pending:
                        raise _early(self.pending[early], at)
            self.done.update(group)
        return [tuple((name, self.functions[name]) for name in group) for group in groups]


def _early(name: Atom, at: Datum) -> ProgramError:
    return wrong(f"`{name.value}` is needed here, and its value is defined later", at)


def wrong(message: str, at: Datum) -> ProgramError:
    return ProgramError(message, at.source.text, at.span, at.source.file)


def fresh(name: str) -> str:
    """A variable of the core language that no other is; those of expansions have a space, which is no part of it."""
    return f"{name.strip()}.{next(_serial)}"


# -- expressions -------------------------------------------------------------------------------------------------------


def atom(datum: Datum, scope: SymbolScope, out: Bindings) -> CoreAtom:
    """An expression, named by a `Let` unless it is a name or a constant."""
    return named(value(datum, scope, out), out, datum)


def atoms(items: Sequence[Datum], scope: SymbolScope, out: Bindings) -> list[CoreAtom]:
    """Expressions, one after the other."""
    return [atom(item, scope, out) for item in items]


def named(e: Expression, out: Bindings, at: Datum, name: str = "t") -> CoreAtom:
    if isinstance(e, Name | Constant):
        return e
    made = fresh(name)
    out.let(made, e, place(at))
    return Name(made, place(at))


def whole(datum: Datum, scope: SymbolScope) -> Expression:
    """An expression with the bindings that it needs."""
    out = Bindings()
    return out.wrap(value(datum, scope, out))


def value(datum: Datum, scope: SymbolScope, out: Bindings) -> Expression:
    """An expression; what it needs before is added to the bindings."""
    while True:
        if isinstance(datum, Atom):
            return _reference(datum, scope)
        want(bool(datum.items), "() is no expression; the empty list is '()", datum)
        want(datum.tail is None, "a call has no dot", datum)
        name = head(datum)
        if name is None or (not isinstance(name, Keyword) and name in scope.names):
            return _call(datum, scope, out)
        expanded = DERIVED[name](datum) if name in DERIVED else None
        if expanded is not None:
            datum = expanded
            continue
        if name in FORMS and (isinstance(name, Keyword) or name in FORMS_OF_USERS):
            return FORMS[name](datum, scope, out)
        return _call(datum, scope, out)


def _reference(datum: Atom, scope: SymbolScope) -> Expression:
    at = datum.value
    if not isinstance(at, QuotedSymbol):
        return Constant(at, place(datum))
    meaning = scope.names.get(at)
    if meaning is None:
        if at in FORMS or at in DERIVED or at == "define":
            raise wrong(f"`{at}` is the name of a form, and no value", datum)
        if at in _OUTSIDE:
            raise wrong(f"`{at}` is not in DVL: {_OUTSIDE[at]}", datum)
        raise wrong(f"`{at}` is not bound{_hint(at, scope)}", datum)
    if isinstance(meaning, Recomputed):
        if scope.depth <= meaning.depth:
            raise wrong(f"`{at}` is needed for its own value, outside of any lambda", datum)
        return Apply(Name(meaning.name, place(datum)), (Constant(NIL),), (), place(datum))
    return Constant(meaning, place(datum)) if isinstance(meaning, Builtin) else Name(meaning, place(datum))


_OUTSIDE = {
    "set!": "there is no assignment",
    "call/cc": "no continuation is captured",
    "call-with-current-continuation": "no continuation is captured",
    "begin": "a body has several expressions as it is",
    "do": "a loop is a `let` with a name",
}


def _hint(name: str, scope: SymbolScope) -> str:
    found = get_close_matches(name, [str(n) for n in scope.names if " " not in n], 1)
    return f". Did you mean `{found[0]}`?" if found else ""


def _call(datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    at = place(datum)
    function = atom(datum.items[0], scope, out)
    if isinstance(function, Constant) and isinstance(function.value, Builtin) and function.value.fold:
        return _folded(function, function.value, datum, scope, out)
    arguments = atoms(datum.items[1:], scope, out)
    if isinstance(function, Constant) and isinstance(function.value, Builtin):
        return _builtin(function, function.value, arguments, datum, out)
    if isinstance(function, Constant):
        raise wrong(f"{shown(datum.items[0])} is called, and is no procedure", datum.items[0])
    return Apply(function, (_chained(arguments, datum, out),), (), at)


def _chained(arguments: Sequence[CoreAtom], datum: Datum, out: Bindings) -> CoreAtom:
    """Arguments as one: a chain of pairs."""
    if not arguments:
        return Constant(NIL, place(datum))
    last = arguments[-1]
    for argument in reversed(arguments[:-1]):
        last = named(Tuple((argument, last), place(datum)), out, datum, "arguments")
    return last


def _builtin(
    function: Constant, builtin: Builtin, arguments: list[CoreAtom], datum: Datum, out: Bindings
) -> Expression:
    at, count = place(datum), len(arguments)
    if builtin.name == "cons" and count == 2:
        return Tuple(tuple(arguments), at)
    if builtin.least <= count <= builtin.most or (count == 1 and builtin.most > 1):
        return Apply(function, tuple(arguments), (), at)
    if builtin.returns and count > 1:
        made = named(Apply(function, (arguments[0],), (), at), out, datum)
        return Apply(made, (_chained(arguments[1:], datum, out),), (), at)
    raise wrong(str(builtin.wrong(count)), datum)


def _folded(function: Constant, builtin: Builtin, datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    """A call that takes its arguments two by two, each when it is needed."""
    items = datum.items[1:]
    if len(items) < 3:
        return _builtin(function, builtin, atoms(items, scope, out), datum, out)
    found = atom(items[0], scope, out)
    for item in items[1:]:
        found = named(Apply(function, (found, atom(item, scope, out)), (), place(datum)), out, datum)
    return found


# -- forms -------------------------------------------------------------------------------------------------------------


def _lambda(datum: ListForm, scope: SymbolScope, out: Bindings, name: str = "lambda") -> Lambda:
    shape = "(lambda (argument ...) body) is wanted"
    _, formals, *body = listed(datum, shape, 3)
    want(isinstance(formals, ListForm), shape, datum)
    assert isinstance(formals, ListForm)
    argument, inner, inside = fresh("argument"), Bindings(), SymbolScope(scope.names, scope.depth + 1)
    bound: dict[str, Meaning] = {}
    count = len(formals.items)
    single = count == 1 and formals.tail is None
    many = counted(count, "argument") if count else "no argument"
    what = f"`{name}` takes {many}" if name != "lambda" else f"this lambda takes {many}"
    if single and isinstance(formals.items[0], Atom):
        want(isinstance(formals.items[0].value, QuotedSymbol), _PATTERN, formals)
        argument = fresh(formals.items[0].value)
        bound[formals.items[0].value] = argument
    elif not count and formals.tail is None:
        named(Apply(Constant(NONE), (Name(argument), Constant(what)), (), place(formals)), inner, formals, "nothing")
    else:
        pattern = formals.items[-1] if formals.tail is None else formals.tail
        front = formals.items[:-1] if formals.tail is None else formals.items
        for item in reversed(front):
            pattern = ListForm((key(item, "cons"), item, pattern), formals.span, formals.source)
        match(pattern, Name(argument), bound, inner, what)
    body_of = block(body, inside | bound, datum)
    e = inner.wrap(body_of)
    return Lambda(str.__str__(name), (Parameter(argument),), e, tuple(sorted(free(e) - {argument})), place(datum))


_PATTERN = "an argument is a symbol, (cons p q) or (list p ...)"


def match(pattern: Datum, given: CoreAtom, bound: dict[str, Meaning], out: Bindings, what: str) -> None:
    """Binds the names of a pattern to the parts of a value."""
    while True:
        if isinstance(pattern, Atom):
            want(isinstance(pattern.value, QuotedSymbol), _PATTERN, pattern)
            want(pattern.value not in bound, f"`{pattern.value}` stands twice among these arguments", pattern)
            name = fresh(pattern.value)
            out.let(name, given, place(pattern))
            bound[pattern.value] = name
            return
        want(pattern.tail is None, _PATTERN, pattern)
        kind, items, at = head(pattern), pattern.items[1:], place(pattern)
        if kind == "list" and not items:
            named(Apply(Constant(NONE), (given, Constant(what)), (), at), out, pattern, "nothing")
            return
        want(
            (kind == "cons" and len(items) == 2) or (kind in ("list", "cons*") and bool(items)),
            "a pattern is (cons p q), (list p ...) or (cons* p ... q)",
            pattern,
        )
        if kind == "cons*" and len(items) == 1:
            pattern = items[0]
            continue
        first = named(Apply(Constant(FIRST), (given, Constant(what)), (), at), out, pattern, "first")
        match(items[0], first, bound, out, what)
        given = named(Apply(Constant(REST), (given, Constant(what)), (), at), out, pattern, "rest")
        left = (key(pattern, str(kind)), *items[1:])
        pattern = items[1] if kind == "cons" else ListForm(left, pattern.span, pattern.source)


def _if(datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    items = listed(datum, "(if test value otherwise) is wanted")
    want(len(items) == 4, "(if test value otherwise) is wanted", datum)
    test = atom(items[1], scope, out)
    return If(test, whole(items[2], scope), whole(items[3], scope), place(datum))


def _let(datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    shape = "(let ((name value) ...) body) is wanted"
    _, bindings, *body = listed(datum, shape, 3)
    bound: dict[str, Meaning] = {}
    for binding in listed(bindings, shape):
        _bind(binding, shape, scope, bound, out)
    return block(body, scope | bound, datum)


def _let_star(datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    shape = "(let* ((name value) ...) body) is wanted"
    _, bindings, *body = listed(datum, shape, 3)
    names = dict(scope.names)  # grows from binding to binding
    scope = SymbolScope(names, scope.depth)
    for binding in listed(bindings, shape):
        bound: dict[str, Meaning] = {}
        _bind(binding, shape, scope, bound, out)
        names.update(bound)
    return block(body, scope, datum)


def _bind(binding: Datum, shape: str, scope: SymbolScope, bound: dict[str, Meaning], out: Bindings) -> None:
    """Gives what a binding names, a symbol or a pattern, its value."""
    pair = listed(binding, shape)
    want(len(pair) == 2, shape, binding)
    target = pair[0]
    if isinstance(target, Atom):
        want(isinstance(target.value, QuotedSymbol), "what is bound is a symbol", target)
        want(target.value not in bound, f"`{target.value}` is bound twice here", target)
        name = fresh(target.value)
        out.let(name, _named_lambda(pair[1], scope, out, target.value), place(target))
        bound[target.value] = name
    else:
        match(target, atom(pair[1], scope, out), bound, out, "this `let` binds a pattern")


def _named_lambda(datum: Datum, scope: SymbolScope, out: Bindings, name: str) -> Expression:
    if is_lambda(datum, scope):
        assert isinstance(datum, ListForm)
        return _lambda(datum, scope, out, name)
    return value(datum, scope, out)


def is_lambda(datum: Datum, scope: SymbolScope) -> bool:
    name = head(datum)
    return name == "lambda" and (isinstance(name, Keyword) or name not in scope.names)


def _letrec(datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    shape = "(letrec ((name value) ...) body) is wanted"
    _, bindings, *body = listed(datum, shape, 3)
    defines = []
    for binding in listed(bindings, shape):
        pair = listed(binding, shape)
        want(len(pair) == 2 and isinstance(pair[0], Atom), shape, binding)
        defines.append(ListForm((key(binding, "define"), *pair), binding.span, binding.source))
    return block([*defines, *body], scope, datum)


def _quote(datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    want(len(datum.items) == 2, "(quote datum) is wanted", datum)
    return Constant(quoted(datum.items[1]), place(datum))


def quoted(datum: Datum) -> Any:
    """A datum as a value."""
    if isinstance(datum, Atom):
        return datum.value
    return chain([quoted(item) for item in datum.items], NIL if datum.tail is None else quoted(datum.tail))


def _cons(datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    """The pairs of `list` and `cons*`, along the chain without recursion."""
    pairs: list[ListForm] = []
    at: Datum = datum
    while isinstance(at, ListForm) and isinstance(at.items[0], Atom) and isinstance(at.items[0].value, Keyword):
        if at.items[0].value != "cons":
            break
        pairs.append(at)
        at = at.items[2]
    *front, last = atoms([*(pair.items[1] for pair in pairs), at], scope, out)
    for first, where in zip(reversed(front), reversed(pairs), strict=True):
        last = named(Tuple((first, last), place(where)), out, where)
    return last


def _no_clause(datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    return Apply(Constant(BUILTINS["error"]), (Constant("no clause of this cond holds"),), (), place(datum))


def _misplaced(datum: ListForm, scope: SymbolScope, out: Bindings) -> Expression:
    raise wrong(f"`{head(datum)}` stands at the top of a file, or in a body beside expressions", datum)


FORMS: dict[str, Callable[[ListForm, SymbolScope, Bindings], Expression]] = {
    "lambda": _lambda,
    "if": _if,
    "let": _let,
    "let*": _let_star,
    "letrec": _letrec,
    "quote": _quote,
    "body": lambda datum, scope, out: block(datum.items[1:], scope, datum),
    "cons": _cons,
    "no clause": _no_clause,
    "define": _misplaced,
    "include": _misplaced,
}
FORMS_OF_USERS = sorted(({*FORMS} - {"body", "cons", "no clause"}) | {*DERIVED})
"""The names of forms, for completion."""


# -- bodies ------------------------------------------------------------------------------------------------------------


def block(body: Sequence[Datum], scope: SymbolScope, at: Datum) -> Expression:
    """Definitions and expressions; the last expression is the value."""
    if len(body) == 1 and head(body[0]) != "define":
        return whole(body[0], scope)
    want(bool(body) and not _defines(body[-1], scope), "a body ends in an expression", body[-1] if body else at)
    out = Bindings()
    for item in sequence(body, scope)[0]:
        if isinstance(item, FunctionGroup):
            out.fix(item.group, item.group[0][1].at)
        elif item.datum is body[-1]:
            return out.wrap(item.value)
        else:
            out.let(item.name, item.value, place(item.datum))
    raise AssertionError


def _defines(datum: Datum, scope: SymbolScope) -> bool:
    name = head(datum)
    return name == "define" and (isinstance(name, Keyword) or name not in scope.names)


@dataclass(frozen=True, eq=False)
class FunctionGroup:
    """Functions that may call each other."""

    group: tuple[tuple[str, Lambda], ...]


@dataclass(frozen=True, eq=False)
class LoweredValue:
    """An expression, and the variable that its value has; `symbol` is what the program calls it, if it is defined."""

    name: str
    value: Expression
    datum: Datum
    symbol: str = ""


Item = FunctionGroup | LoweredValue


def sequence(
    body: Sequence[Datum], scope: SymbolScope, known: Definitions | None = None
) -> tuple[list[Item], SymbolScope, Definitions]:
    """What a body computes, in order, and what its names mean. `known` are functions from outside, made on demand."""
    found = Definitions(dict(known.functions), {}, set(known.done)) if known else Definitions()
    names: dict[str, str] = {}
    parts: list[tuple[Atom | None, Datum]] = []
    for datum in body:
        defined = definition(datum) if _defines(datum, scope) else None
        if defined is None:
            parts.append((None, datum))
            continue
        name = defined[0]
        want(name.value not in names, f"`{name.value}` is defined twice", name)
        names[name.value] = fresh(name.value)
        parts.append(defined)
    inner = scope | names
    for target, datum in parts:
        if target is not None and is_lambda(datum, inner):
            assert isinstance(datum, ListForm)
            found.functions[names[target.value]] = _lambda(datum, inner, Bindings(), target.value)
        elif target is not None:
            found.pending[names[target.value]] = target
    items: list[Item] = []
    for target, datum in parts:
        variable = fresh("value") if target is None else names[target.value]
        if variable in found.functions:
            continue
        e = whole(datum, inner)
        if target is not None and variable in free(e):
            again = Recomputed(fresh(target.value), inner.depth)
            e = whole(datum, inner | {target.value: again})
            code = Lambda(str.__str__(target.value), (Parameter("nothing"),), e, tuple(sorted(free(e))), place(datum))
            found.functions[again.name] = code
            e = Apply(Name(again.name), (Constant(NIL),), (), place(datum))
        needs = free(e)
        for undefined in sorted(needs & found.pending.keys()):
            raise _early(found.pending[undefined], datum)
        found.pending.pop(variable, None)
        items.extend(FunctionGroup(group) for group in found.needed(needs, datum))
        items.append(LoweredValue(variable, e, datum, "" if target is None else target.value))
    if known is not None and body:
        items.extend(FunctionGroup(group) for group in found.needed(names.values(), body[0]))
    return items, inner, found
