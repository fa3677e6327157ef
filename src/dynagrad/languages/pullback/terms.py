"""The terms of the language as immutable values: what they are, what is free in them, and when they are one.

Terms may be deep, so nothing here recurses on them. They know nothing of types, of text or of reduction. `x + y` is
`TermSum(x, y)`, `x * y` a primitive, `f(x)` an application.

It is long because a term's operators, its free variables and α-equality are one subject.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ...errors import Error, Span, shown
from ...ir.operation import as_number
from ...moved import renamed
from .primitives import primitive
from .trees import counted, folded, leaves, relabelled

__getattr__ = renamed(__name__)

Pattern: TypeAlias = "str | tuple[Pattern, Pattern]"
"""What a binder binds: a variable, or a pair of patterns."""
Coefficients: TypeAlias = "float | tuple[Coefficients, Coefficients]"

TEXT: dict[str, Callable[[Any], Any]] = {}
"""The printer and the parser, which stand above terms and enter themselves here."""


def _parsed(text: str) -> PullbackTerm:
    made: PullbackTerm = TEXT["parse"](text)
    return made


def variables_of(pattern: Pattern) -> list[str]:
    """The variables of a pattern, from left to right.

    >>> variables_of((("x", "y"), "z"))
    ['x', 'y', 'z']
    """
    return [pattern] if isinstance(pattern, str) else leaves(pattern)  # most are names


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PullbackTerm:
    """A pullback term. Equal terms are those that differ in the names of bound variables alone.

    >>> x, y = Var("x"), Var("y")
    >>> Lam("x", x + 1) == Lam("y", y + 1), Lam("x", y) == Lam("y", y)
    (True, False)
    """

    parts: ClassVar[tuple[str, ...]] = ()
    """The fields that are subterms, from left to right."""
    if TYPE_CHECKING:

        @property
        def span(self) -> Span | None: ...

    def __add__(self, other: Any) -> PullbackTerm:
        return TermSum(self, term(other))

    def __radd__(self, other: Any) -> PullbackTerm:
        return TermSum(term(other), self)

    def __sub__(self, other: Any) -> PullbackTerm:
        return TermSum(self, -term(other))

    def __rsub__(self, other: Any) -> PullbackTerm:
        return TermSum(term(other), -self)

    def __mul__(self, other: Any) -> PullbackTerm:
        return Prim("mult", Pair(self, term(other)))

    def __rmul__(self, other: Any) -> PullbackTerm:
        return Prim("mult", Pair(term(other), self))

    def __truediv__(self, other: Any) -> PullbackTerm:
        return Prim("div", Pair(self, term(other)))

    def __rtruediv__(self, other: Any) -> PullbackTerm:
        return Prim("div", Pair(term(other), self))

    def __neg__(self) -> PullbackTerm:
        return Num(-self.value) if isinstance(self, Num) else Prim("neg", self)

    __array_ufunc__ = None  # an array is no term, nor are its parts

    def __call__(self, *arguments: Any) -> PullbackTerm:
        return App(self, pair(*arguments))

    def __getitem__(self, index: int) -> PullbackTerm:
        if type(index) is not int or index not in (0, 1):  # `for` would never end otherwise
            raise IndexError("a pair has the parts 0 and 1")
        return Proj(index + 1, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PullbackTerm) and (self is other or same(self, other))

    def __hash__(self) -> int:
        return hash(tuple(_tokens(self)))

    def __repr__(self) -> str:
        text: str = TEXT["show"](self)
        return text

    __str__ = __repr__

    def __reduce__(self) -> Any:
        """What is pickled is text, which is not deep."""
        return _parsed, (str(self),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WrittenTerm(PullbackTerm):
    """A term that a text can have; `span` is where it stands there."""

    span: Span | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Var(WrittenTerm):
    """A variable, `x`"""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lam(WrittenTerm):
    """`λx. S`; applied to E it is `let x = E in S`"""

    parts = ("body",)
    pattern: Pattern
    body: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class App(WrittenTerm):
    """`S P`: a function or a dual, and its argument"""

    parts = ("function", "argument")
    function: PullbackTerm
    argument: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Proj(WrittenTerm):
    """`π1 S` and `π2 S`"""

    parts = ("of",)
    index: int
    of: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pair(WrittenTerm):
    """`<S, T>`"""

    parts = ("first", "second")
    first: PullbackTerm
    second: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Num(WrittenTerm):
    """A numeral"""

    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prim(WrittenTerm):
    """`f(P)`"""

    parts = ("argument",)
    name: str
    argument: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Jac(WrittenTerm):
    """`Jf.S`, the Jacobian of f along S, a function of the point"""

    parts = ("along",)
    name: str
    along: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DualMap(WrittenTerm):
    """`(λx.S)^ . T`, which takes v to T(S[v/x]); x is linear in S"""

    parts = ("body", "functional")
    pattern: Pattern
    body: PullbackTerm
    functional: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FormPullback(WrittenTerm):
    """`(Ω λx.P) . S`, the pullback of the 1-form S along P"""

    parts = ("body", "form")
    pattern: Pattern
    body: PullbackTerm
    form: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Covector(WrittenTerm):
    """`(c1,...,cn)^`, the dual of R^n with these coefficients"""

    coefficients: Coefficients


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Zero(WrittenTerm):
    """`0` of any type"""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TermSum(WrittenTerm):
    """`S + P`"""

    parts = ("first", "second")
    first: PullbackTerm
    second: PullbackTerm


BINDERS = (Lam, DualMap, FormPullback)
"""Terms whose `pattern` is bound in their `body`."""
ZERO = Zero()


# -- terms in Python ---------------------------------------------------------------------------------------------------


def term(value: Any) -> PullbackTerm:
    """A number as a numeral, a tuple as pairs, a term as it is."""
    return folded(value, _term, Pair)


def _term(value: Any) -> PullbackTerm:
    if isinstance(value, PullbackTerm):
        return value
    if isinstance(value, bool) or as_number(value) is None:
        raise Error(f"a term, a number or a tuple of these is needed, and {shown(value)} is none")
    return Num(_finite(value))


def _finite(value: Any) -> float:
    number = None if isinstance(value, bool) else as_number(value)
    if number is None or not math.isfinite(number):
        raise Error(f"a finite number is needed, and {shown(value)} is none")
    return float(number)


def pair(*parts: Any) -> PullbackTerm:
    """`<a, <b, c>>` for three.

    >>> pair(1, 2, 3)
    <1, 2, 3>
    """
    if not parts:
        raise Error("a tuple has at least one part")
    return term(parts)


def lam(pattern: Any, body: Any) -> PullbackTerm:
    """`λx. S`; the pattern is a name or a tuple of names.

    >>> lam(("x", "y"), Var("x") * Var("y"))
    λ<x, y>. x * y
    """
    return Lam(_pattern(pattern), term(body))


def let(pattern: Any, bound: Any, body: Any) -> PullbackTerm:
    """`let x = E in L`, which is `(λx. L) E`."""
    return App(lam(pattern, body), term(bound))


def omega(pattern: Any, body: Any, form: Any) -> PullbackTerm:
    """`(Ω λx. P) . S`

    >>> omega("x", Var("x") * Var("x"), lam("_", covector(1)))(3)
    ((Ω λx. x * x) . (λ_. 1^)) 3
    """
    return FormPullback(_pattern(pattern), term(body), term(form))


def dual_map(pattern: Any, body: Any, functional: Any) -> PullbackTerm:
    """`(λx. S)^ . T`"""
    return DualMap(_pattern(pattern), term(body), term(functional))


def covector(*coefficients: Any) -> PullbackTerm:
    """`(c1,...,cn)^`, from numbers or tuples of them.

    >>> covector(1, 2, 3) == covector(1, (2, 3))
    True
    """
    if not coefficients:
        raise Error("a dual of R^n has at least one coefficient")
    return Covector(relabelled(coefficients, _finite))


def primitive_call(name: str, *arguments: Any) -> PullbackTerm:
    """`f(P)`

    >>> primitive_call("sin", Var("x") + 1)
    sin(x + 1)
    """
    if not isinstance(name, str) or primitive(name) is None:
        raise Error(f"there is no primitive {shown(name)}")
    return Prim(name, pair(*arguments))


def _pattern(given: Any) -> Pattern:
    pattern: Pattern = relabelled(given, lambda name: name)
    names = variables_of(pattern)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise Error(f"a binder binds a name or a tuple of different names, and {shown(given)} is neither")
    return pattern


# -- walks -------------------------------------------------------------------------------------------------------------


def children(of: PullbackTerm) -> list[PullbackTerm]:
    """The subterms right below, from left to right."""
    return [getattr(of, name) for name in of.parts]


def rebuilt(of: PullbackTerm, parts: list[PullbackTerm]) -> PullbackTerm:
    """The term with other subterms.

    >>> rebuilt(Proj(1, Var("x")), [Var("y")])
    π1 y
    """
    if not of.parts:
        return of
    given = iter(parts)
    kind: Any = type(of)
    return kind(  # type: ignore[no-any-return]  # it is of the kind of the term
        *(next(given) if name in of.parts else getattr(of, name) for name in kind.__match_args__), span=of.span
    )


def subterms(of: PullbackTerm) -> Iterator[PullbackTerm]:
    """The term and all below, each before its parts, from left to right."""
    todo = [of]
    while todo:
        here = todo.pop()
        yield here
        todo += reversed(children(here))


def _tokens(of: PullbackTerm) -> Iterator[Any]:
    """The term as a line of what tells it from others, with numbers for bound variables."""
    scopes: dict[str, list[int]] = {}
    count = 0
    todo: list[PullbackTerm | Callable[[], None]] = [of]

    def bind(pattern: Pattern) -> None:
        nonlocal count
        for name in variables_of(pattern):
            scopes.setdefault(name, []).append(count)
            count += 1

    def unbind(pattern: Pattern) -> Callable[[], None]:
        def close() -> None:
            for name in variables_of(pattern):
                scopes[name].pop()

        return close

    while todo:
        here = todo.pop()
        if not isinstance(here, PullbackTerm):
            here()
            continue
        yield type(here).__name__
        match here:
            case Var(name):
                yield scopes[name][-1] if scopes.get(name) else name
            case Num(value):
                yield value
            case Covector(coefficients):
                yield from _flat_tokens(coefficients)
            case Proj(index):
                yield index
                todo.append(here.of)
            case Prim(name, inner) | Jac(name, inner):
                yield name
                todo.append(inner)
            case Lam() | DualMap() | FormPullback():
                yield _shape(here.pattern)
                if not isinstance(here, Lam):
                    todo.append(here.functional if isinstance(here, DualMap) else here.form)
                todo += (unbind(here.pattern), here.body)
                bind(here.pattern)
            case _:
                todo += reversed(children(here))


def _flat_tokens(of: Coefficients) -> Iterator[Any]:
    todo = [of]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            yield "2"
            todo += (part[1], part[0])
        else:
            yield part


def _shape(pattern: Pattern) -> str:
    """A pattern without its names."""
    made: list[str] = []
    todo = [pattern]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            made.append(".")
        else:
            made.append("2")
            todo += (part[1], part[0])
    return "".join(made)


_END = object()


def same(one: PullbackTerm, other: PullbackTerm) -> bool:
    """Whether two terms are α-equal."""
    left, right = _tokens(one), _tokens(other)
    while True:
        a, b = next(left, _END), next(right, _END)
        if a is _END or a != b:
            return a is b


def free_variables(of: PullbackTerm) -> dict[str, None]:
    """The free variables, in the order in which they stand first."""
    found: dict[str, None] = {}
    bound: dict[str, int] = {}
    todo: list[PullbackTerm | list[str]] = [of]
    count = 0
    while todo:
        here = todo.pop()
        count = counted(count)
        if isinstance(here, list):
            for name in here:
                bound[name] -= 1
        elif isinstance(here, Var):
            if not bound.get(here.name):
                found[here.name] = None
        elif isinstance(here, BINDERS):
            names = variables_of(here.pattern)
            todo += reversed(children(here)[1:])
            todo += (names, here.body)
            for name in names:
                bound[name] = bound.get(name, 0) + 1
        else:
            todo += reversed(children(here))
    return found
