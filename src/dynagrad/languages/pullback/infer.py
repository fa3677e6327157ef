"""Types of terms, and the linearity of what stands under a dual map.

Types are found by unification. Whether `S P` applies a function or a dual waits until the type of S is known; where
nothing ever says so, S is a function. Degrees of linearity are looked at when all types are known. A term that has no
type is an error at the subterm that does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...collector import collecting_later
from ...errors import Error, ProgramError, at, shown
from .parse import is_name, parse
from .primitives import known
from .rename import with_distinct_binders
from .show import show
from .terms import (
    BINDERS,
    App,
    Covector,
    DualMap,
    FormPullback,
    Jac,
    Lam,
    Num,
    Pair,
    Pattern,
    Prim,
    Proj,
    PullbackTerm,
    TermSum,
    Var,
    Zero,
    free_variables,
    subterms,
    variables_of,
)
from .trampoline import Call, run
from .trees import counted, folded
from .types import Arrow, DualType, Product, R, Real, TermType, TypeVariable, reals, resolved


@dataclass(frozen=True, eq=False)
class Typed:
    """A term with names of its own for all binders, its type, and those of its parts and free variables."""

    term: PullbackTerm
    type: TermType
    free: Mapping[str, TermType]
    of_part: Mapping[int, TermType]
    """By the identity of a part."""
    of_variable: dict[str, TermType]
    source: str = ""
    filename: str = ""

    def where(self, of: PullbackTerm) -> str:
        """The end of a message that says where a part of the term is."""
        if self.source and of.span is not None:
            return at(self.source, of.span, self.filename)
        return f"\n  in {show(of, limit=200)}"


def infer(
    of: PullbackTerm | str, source: str = "", filename: str = "", free: Mapping[str, TermType] | None = None
) -> Typed:
    """The types of a term or of the text of one; `free` has those of free variables, as far as they are known.

    `source` is the text that a term was parsed from, for errors.

    >>> print(infer("(Ω λ<x, y>. x * y) . w").type)
    R × R ⇒ (R × R)^
    >>> infer("(λx. x * x)^ . 1^")
    Traceback (most recent call last):
        ...
    dynagrad.errors.ProgramError: `x` is not linear in the body of this dual map: a primitive takes it as an argument.
      at line 1, column 6
      1 | (λx. x * x)^ . 1^
        |      ^^^^^
    """
    if isinstance(of, str):
        source, written = of, parse(of, filename)
    elif isinstance(of, PullbackTerm):
        written = of
    else:
        raise Error(f"a term or the text of one is needed, and {shown(of)} is neither")
    if not source:
        _check_written(written)
    with collecting_later():
        return _TypeInference(source, filename, free or {}).whole(with_distinct_binders(written))


def _check_written(of: PullbackTerm) -> None:
    """Raises an error where a term that was built has a name or a numeral that no text can have."""
    names: set[str] = set()
    for count, part in enumerate(subterms(of)):
        counted(count)  # a term that was built may share its parts
        new = [part.name] if isinstance(part, Var) else variables_of(part.pattern) if isinstance(part, BINDERS) else []
        for name in new:
            if name not in names and not is_name(name):
                raise Error(f"a variable is called {shown(name)}, which is no name: {_NAMES}")
            names.add(name)
        if isinstance(part, Num) and not (isinstance(part.value, int | float) and math.isfinite(part.value)):
            raise Error(f"a numeral is a finite number, and {shown(part.value)} is none")


_NAMES = "names are of letters, digits, `_` and `'`, and not those of primitives"


class _TypeInference:
    def __init__(self, source: str, filename: str, free: Mapping[str, TermType]) -> None:
        self.source, self.filename = source, filename
        self.free: dict[str, TermType] = dict(free)
        self.variables: dict[str, TermType] = {}
        self.types: dict[int, TermType] = {}
        self.count = 0
        self.open: list[tuple[App, TypeVariable, TermType, TermType]] = []
        self.duals: list[DualMap] = []

    def whole(self, of: PullbackTerm) -> Typed:
        type = run(self.type_of(of))
        while self.open:
            todo, self.open = self.open, []
            for application, function, argument, result in todo:
                if isinstance(resolved(function), TypeVariable):
                    self.unify(function, Arrow(argument, result), application, "a function")
        for dual in self.duals:
            Degrees(self.types, self.error).check(dual)
        return Typed(of, type, self.free, self.types, {**self.free, **self.variables}, self.source, self.filename)

    def error(self, message: str, of: PullbackTerm) -> ProgramError:
        if self.source and of.span is not None:
            return ProgramError(message, self.source, of.span, self.filename)
        return ProgramError(f"{message}\n  in {show(of, limit=200)}")

    def unknown(self) -> TypeVariable:
        self.count += 1
        return TypeVariable(self.count)

    def pattern(self, pattern: Pattern) -> TermType:
        """The type of a pattern, whose variables get new unknown ones."""

        def of_variable(name: str) -> TermType:
            made = self.variables[name] = self.unknown()
            return made

        return folded(pattern, of_variable, Product)

    def type_of(self, of: PullbackTerm) -> Call[TermType]:
        made: TermType
        match of:
            case Var(name):
                known = self.variables.get(name)
                if known is None:
                    known = self.free.get(name)
                    if known is None:
                        known = self.free[name] = self.unknown()
                made = known
            case Num():
                made = R
            case Zero():
                made = self.unknown()
            case Covector(coefficients):
                made = DualType(folded(coefficients, lambda _: R, Product))
            case App(Lam(pattern, body) as function, bound):
                given = yield self.type_of(bound)
                source = self.pattern(pattern)
                self.unify(given, source, bound, "what the pattern takes")
                made = yield self.type_of(body)
                self.types[id(function)] = Arrow(source, made)
            case Lam(pattern, body):
                source = self.pattern(pattern)
                target = yield self.type_of(body)
                made = Arrow(source, target)
            case App(function, argument):
                first = yield self.type_of(function)
                second = yield self.type_of(argument)
                made = self.applied(of, first, second)
            case Proj(index, inner):
                whole = yield self.type_of(inner)
                pair = Product(self.unknown(), self.unknown())
                self.unify(whole, pair, inner, "a pair")
                made = pair.first if index == 1 else pair.second
            case Pair(first_part, second_part):
                left = yield self.type_of(first_part)
                right = yield self.type_of(second_part)
                made = Product(left, right)
            case Prim(name, inner):
                given = yield self.type_of(inner)
                self.unify(given, argument_type(name), inner, f"the argument of `{name}`")
                made = R
            case Jac(name, along):
                given = yield self.type_of(along)
                source = argument_type(name)
                self.unify(given, source, along, f"a tangent of the arguments of `{name}`")
                made = Arrow(source, R)
            case DualMap(pattern, body, functional):
                source = self.pattern(pattern)
                target = yield self.type_of(body)
                given = yield self.type_of(functional)
                self.unify(given, DualType(target), functional, "a dual of what the map gives")
                self.duals.append(of)
                made = DualType(source)
            case FormPullback(pattern, body, form):
                source = self.pattern(pattern)
                target = yield self.type_of(body)
                given = yield self.type_of(form)
                self.unify(given, Arrow(target, DualType(target)), form, "a 1-form on what the map gives")
                made = Arrow(source, DualType(source))
            case TermSum(first_part, second_part):
                left = yield self.type_of(first_part)
                right = yield self.type_of(second_part)
                self.unify(right, left, second_part, "like the other summand")
                made = left
            case _:
                raise AssertionError(of)
        self.types[id(of)] = made
        return made

    def applied(self, of: App, function: TermType, argument: TermType, result: TermType | None = None) -> TermType:
        """The type of an application. It is an unknown one while that of the function is, which it waits for."""
        function = resolved(function)
        match function:
            case Arrow(source, target):
                self.unify(argument, source, of.argument, "the argument of this function")
                if result is None:
                    return target
                self.unify(result, target, of, "what the function gives")
                return result
            case DualType(inner):
                self.unify(argument, inner, of.argument, "a tangent, which this dual applies to")
                if result is None:
                    return R
                self.unify(result, R, of, "what a dual gives")
                return result
            case TypeVariable():
                made = self.unknown() if result is None else result
                function.waiting.append(lambda: self.applied(of, function, argument, made))
                self.open.append((of, function, argument, made))
                return made
        raise self.error(f"What is applied should be a function or a dual, and has the type {function}.", of.function)

    def unify(self, given: TermType, wanted: TermType, at: PullbackTerm, what: str) -> None:
        """Makes two types one, and tells those that waited for it; an error at a term where they differ."""
        todo = [(given, wanted)]
        seen: set[tuple[int, int]] = set()
        while todo:
            one, other = map(resolved, todo.pop())
            if one is other or (isinstance(one, Real) and isinstance(other, Real)) or (id(one), id(other)) in seen:
                continue
            seen.add((id(one), id(other)))
            if isinstance(other, TypeVariable) and not isinstance(one, TypeVariable):
                one, other = other, one
            if isinstance(one, TypeVariable):
                if _occurs(one, other):
                    raise self.error(
                        f"The type of this would contain itself: it is {given}, where {wanted} is expected, {what}.",
                        at,
                    )
                one.found = other
                waiting, one.waiting = one.waiting, []
                if isinstance(other, TypeVariable):
                    other.waiting += waiting
                else:
                    for resume in waiting:
                        resume()  # type: ignore[operator]  # what waits is a function
                continue
            match one, other:
                case (Product(a, b), Product(c, d)) | (Arrow(a, b), Arrow(c, d)):
                    todo += ((b, d), (a, c))
                case DualType(a), DualType(b):
                    todo.append((a, b))
                case _:
                    raise self.error(f"This has the type {given}, and {wanted} is expected: {what}.", at)


def argument_type(name: str) -> TermType:
    """What a primitive takes: a tuple of reals; of a derivative, tangents and a point."""
    found = known(name)
    point = made = reals(found.width)
    for _ in range(found.order):
        made = Product(point, made)
    return made


def slots(name: str, argument: PullbackTerm) -> list[PullbackTerm] | None:
    """The tangents that a derivative of a primitive is given and its point, where they stand in the term."""
    made: list[PullbackTerm] = []
    for _ in range(known(name).order):
        if not isinstance(argument, Pair):
            return None
        made.append(argument.first)
        argument = argument.second
    return [*made, argument]


def _occurs(unknown: TypeVariable, type: TermType) -> bool:
    todo = [type]
    seen: set[int] = set()  # a type may have parts more than once
    while todo:
        here = resolved(todo.pop())
        if here is unknown:
            return True
        if id(here) in seen:
            continue
        seen.add(id(here))
        match here:
            case Product(a, b) | Arrow(a, b):
                todo += (a, b)
            case DualType(a):
                todo.append(a)
    return False


# -- linearity ---------------------------------------------------------------------------------------------------------

ANY, ABSENT, LINEAR, MORE = "any", "absent", "linear", "more"
"""The degree of variables in a term: it is zero whatever they are, they are absent, the term is linear in them, or it
may be anything."""


class Degrees:
    """The degree of some variables in terms whose types are known."""

    def __init__(self, types: Mapping[int, TermType], error: Callable[[str, PullbackTerm], Exception]) -> None:
        self.types, self.error = types, error
        self.scope: dict[str, str] = {}
        self.constant: set[str] = set()
        self.culprit: tuple[str, PullbackTerm] | None = None

    def check(self, of: DualMap) -> None:
        """Raises the error where what a dual map binds is not linear in its body."""
        names = variables_of(of.pattern)
        self.scope, self.culprit = dict.fromkeys(names, LINEAR), None
        degree = run(self.degree(of.body))
        what = f"`{names[0]}` is" if len(names) == 1 else f"`{'`, `'.join(names[:3])}` are"
        if degree == ABSENT:
            raise self.error(f"{what} not linear in the body of this dual map, which does not depend on it.", of.body)
        if degree == MORE:
            why, at = self.culprit or ("it is not linear", of.body)
            raise self.error(f"{what} not linear in the body of this dual map: {why}.", at)

    def more(self, reason: str, at: PullbackTerm) -> str:
        if self.culprit is None:
            self.culprit = (reason, at)
        return MORE

    def argument(self, degree: str, reason: str, at: PullbackTerm) -> str:
        """The degree of a function's value, from that of its argument, on which it may depend in any way."""
        return ABSENT if degree in (ANY, ABSENT) else self.more(reason, at)

    def product(self, one: str, other: str, at: PullbackTerm) -> str:
        """The degree of what is linear in each of two parts."""
        if ANY in (one, other):
            return ANY
        if MORE in (one, other):
            return MORE
        if one == other == LINEAR:
            return self.more("both factors depend on it", at)
        return LINEAR if LINEAR in (one, other) else ABSENT

    def agree(self, one: str, other: str, at: PullbackTerm) -> str:
        """The degree of a pair or a sum, whose parts must have the same one; 0 has any."""
        if one == ANY:
            return other
        if other in (one, ANY):
            return one
        if MORE not in (one, other):
            return self.more("one operand depends on it and the other does not", at)
        return MORE

    def is_constant(self, form: PullbackTerm) -> bool:
        """Whether a 1-form is seen to be the same everywhere: a pullback of it is linear in what it is taken along."""
        if isinstance(form, Lam):
            return not any(name in variables_of(form.pattern) for name in free_variables(form.body))
        return isinstance(form, Var) and form.name in self.constant

    def degree(self, of: PullbackTerm) -> Call[str]:
        inner: str
        match of:
            case Var(name):
                return self.scope.get(name, ABSENT)
            case Num() | Covector():
                return ABSENT
            case Zero():
                return ANY
            case App(Lam(pattern, body), bound):
                inner = yield self.degree(bound)
                for name in variables_of(pattern):
                    self.scope[name] = inner
                if isinstance(pattern, str) and self.is_constant(bound):
                    self.constant.add(pattern)
                inner = yield self.degree(body)
                return inner
            case Lam(_, body):
                inner = yield self.degree(body)
                return inner
            case App(function, argument):
                first = yield self.degree(function)
                second = yield self.degree(argument)
                if not isinstance(resolved(self.types[id(function)]), DualType):
                    second = self.argument(second, "a function takes it as an argument", argument)
                return self.product(first, second, of)
            case Proj(_, inner_term) | Jac(_, inner_term):
                inner = yield self.degree(inner_term)
                return inner
            case Prim(name, inner_term):
                *tangents, point = slots(name, inner_term) or [inner_term]
                inner = yield self.degree(point)
                if tangents:  # it is linear in each of them
                    whole = self.argument(inner, "a primitive takes it as an argument", of)
                    for tangent in tangents:
                        whole = self.product((yield self.degree(tangent)), whole, of)
                    return whole
                return self.argument(inner, "a primitive takes it as an argument", of)
            case Pair(first_part, second_part) | TermSum(first_part, second_part):
                first = yield self.degree(first_part)
                second = yield self.degree(second_part)
                return self.agree(first, second, of)
            case DualMap(_, body, functional):
                first = yield self.degree(body)
                second = yield self.degree(functional)
                return self.product(first, second, of)
            case FormPullback(_, body, form):
                first = yield self.degree(body)
                second = yield self.degree(form)
                if not self.is_constant(form):
                    first = self.argument(first, "a pullback is taken along it", of)
                return self.product(second, first, of)
        raise AssertionError(of)
