"""The redexes of closed pullback terms, by the grammar of call-by-value contexts; and terms up to rules 8 and 7.

It shares nothing with the machine, which keeps contexts and never looks for a redex. For terms whose derivatives are
taken along reals: duals of functions are values that look like redexes.
"""

from __future__ import annotations

from dynagrad.languages.pullback.reduction.administrative import series_of
from dynagrad.languages.pullback.reduction.tuples import matched
from dynagrad.languages.pullback.terms import (
    App,
    DualMap,
    FormPullback,
    Jac,
    Lam,
    Pair,
    Prim,
    Proj,
    PullbackTerm,
    TermSum,
    Var,
    Zero,
    children,
    rebuilt,
    variables_of,
)


def whole(of: PullbackTerm) -> PullbackTerm:
    """A term in which rules 8 and 7 are taken back: a pullback is along one let series, whose last binding is open."""
    if not of.parts:
        return of
    of = rebuilt(of, [whole(part) for part in children(of)])
    while (
        is_link(of) and isinstance(of, FormPullback) and isinstance(of.form, FormPullback) and isinstance(of.body, Pair)
    ):
        assert isinstance(of.form.pattern, tuple) and isinstance(of.form.pattern[1], str)
        of = FormPullback(of.pattern, App(Lam(of.form.pattern[1], of.form.body), of.body.second), of.form.form)
    if not isinstance(of, FormPullback):
        return of
    bindings: list[tuple[object, PullbackTerm]] = []
    body = of.body
    while isinstance(body, App) and isinstance(body.function, Lam):
        bindings.append((body.function.pattern, body.argument))
        body = body.function.body
    if isinstance(body, Var) and bindings and bindings[-1][0] == body.name:
        body = bindings.pop()[1]
    for name, bound in reversed(bindings):
        body = App(Lam(name, body), bound)  # type: ignore[arg-type]  # a pattern
    return FormPullback(of.pattern, body, of.form)


def is_link(of: PullbackTerm) -> bool:
    """Whether a term is `(Ω λx. <x, E>) . S`, which rule 8 makes, for a pullback S of what starts with x."""
    return (
        isinstance(of, FormPullback)
        and isinstance(of.body, Pair)
        and of.body.first == matched(of.pattern)
        and isinstance(of.form, FormPullback)
        and isinstance(of.form.pattern, tuple)
        and of.form.pattern[0] == of.pattern
    )


def is_part(of: PullbackTerm) -> bool:
    """Whether a term is the dual of a part, `(λ<x, y>. x)^ . T`, or a sum of such, which rule 5 makes."""
    if isinstance(of, TermSum):
        return is_part(of.first) and is_part(of.second)
    return isinstance(of, DualMap) and isinstance(of.body, Var) and of.body.name in variables_of(of.pattern)


def _is_value_of_functions(of: DualMap) -> bool:
    """Whether a dual is `(λh. h A)^ . T`, which nothing reduces."""
    match of.body:
        case App(Var(name), argument):
            return name == of.pattern and not isinstance(argument, Var)
    return False


def _is_series(body: PullbackTerm) -> bool:
    """Whether a body is a let series, in which values may stand for variables from outside; not one elementary term."""
    if series_of(body) is not None:
        return True
    last = None
    while isinstance(body, App) and isinstance(body.function, Lam):
        bound = body.argument
        parts = [] if isinstance(bound, Lam) else children(bound)[isinstance(bound, DualMap | FormPullback) :]
        if not all(isinstance(part, FormPullback) or not redexes(part, set()) for part in parts):
            return False
        last, body = body.function.pattern, body.function.body
    return isinstance(body, Var) and body.name == last


def redexes(of: PullbackTerm, taken: set[PullbackTerm], parts: bool = True) -> list[PullbackTerm]:
    """The redex of each way to write a term as a context and a redex; `taken` are the pullbacks, `whole`, that rules 8
    and 7 have taken apart, which are values. So are duals of parts, unless they are what the last rule gave."""
    match of:
        case App(Lam(), bound):
            return redexes(bound, taken, parts) or [of]
        case App(first, second):
            inner = redexes(first, taken, parts) or redexes(second, taken, parts)
            return inner or ([] if isinstance(first, Var) else [of])
        case Pair(first, second):
            return redexes(first, taken, parts) or redexes(second, taken, parts)
        case TermSum(first, second):
            return (
                [] if parts and is_part(of) else redexes(first, taken, parts) or redexes(second, taken, parts) or [of]
            )
        case Proj(_, inner) | Prim(_, inner):
            return redexes(inner, taken, parts) or [of]
        case Jac(_, along):
            return [of] if isinstance(along, Zero) else redexes(along, taken, parts)
        case DualMap(_, _, functional):
            inner = redexes(functional, taken, parts)
            if inner or (parts and (is_part(of) or _is_value_of_functions(of))):
                return inner
            return [of]
        case FormPullback(_, body, form):
            if is_link(of):
                return redexes(form, taken, parts)
            if whole(of) in taken:
                return []
            return redexes(form, taken, parts) or [of] if _is_series(body) else [body]
    return []
