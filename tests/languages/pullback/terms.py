"""Random well-typed terms: first- and higher-order, with dual maps and pullbacks inside. Values stay moderate.

A `Source` draws programs whose derivatives are along reals; a `HigherSource` those along pairs, functions, functionals
and duals as well, of bodies of any of these types, nested in each other.
"""

from __future__ import annotations

from random import Random

from dynagrad.languages.pullback.terms import (
    App,
    DualMap,
    FormPullback,
    Jac,
    Lam,
    Num,
    Pair,
    Prim,
    Proj,
    PullbackTerm,
    TermSum,
    Var,
    Zero,
    covector,
    lam,
    omega,
)
from dynagrad.languages.pullback.terms import pair as pair_of
from dynagrad.languages.pullback.types import Arrow, DualType, Product, R, TermType, resolved

FUNCTION = Arrow(R, R)
FUNCTIONAL = Arrow(FUNCTION, R)
ONE_FORM = Lam("_", covector(1.0))


class Source:
    """A source of terms. `derivatives` says whether terms may have pullbacks and dual maps inside."""

    def __init__(self, random: Random, derivatives: bool = True) -> None:
        self.random, self.derivatives = random, derivatives
        self.count = 0

    def name(self, like: str) -> str:
        self.count += 1
        return f"{like}{self.count}"

    def term(self, type: TermType, scope: dict[str, TermType], fuel: int) -> PullbackTerm:
        """A term of a type, over variables of the types given."""
        pick, fits = self.random, [name for name, other in scope.items() if other == type]
        type = resolved(type)
        if fuel <= 0:
            if fits and pick.random() < 0.8:
                return Var(pick.choice(fits))
            return self.smallest(type, scope)
        if pick.random() < 0.2:
            bound = pick.choice([R, R, Product(R, R), FUNCTION])
            name = self.name("b")
            given = self.term(bound, scope, fuel // 2)
            return App(Lam(name, self.term(type, {**scope, name: bound}, fuel - 1 - fuel // 4)), given)
        if isinstance(type, Product):
            return Pair(self.term(type.first, scope, fuel // 2), self.term(type.second, scope, fuel // 2))
        if isinstance(type, Arrow):
            if fits and pick.random() < 0.3:
                return Var(pick.choice(fits))
            name = self.name("a")
            return Lam(name, self.term(type.target, {**scope, name: type.source}, fuel - 1))
        assert type == R
        choice = pick.randrange(14 if self.derivatives else 10)
        half = fuel // 2
        if choice < 2:
            return TermSum(self.term(R, scope, half), self.term(R, scope, half))
        if choice < 4:
            return Prim("mult", Pair(self.term(R, scope, half), self.term(R, scope, half)))
        if choice < 6:
            return Prim(pick.choice(["sin", "cos", "tanh", "neg"]), self.term(R, scope, fuel - 1))
        if choice == 6:
            return Proj(pick.randrange(1, 3), self.term(Product(R, R), scope, half))
        if choice == 7:
            return App(self.term(FUNCTION, scope, half), self.term(R, scope, half))
        if choice == 8:
            return App(self.term(FUNCTIONAL, scope, half), self.term(FUNCTION, scope, half))
        if choice == 9:
            return Var(pick.choice(fits)) if fits else self.smallest(R, scope)
        if choice == 10:
            return App(Jac(pick.choice(["sin", "cos"]), self.term(R, scope, half)), self.term(R, scope, half))
        if choice == 11:
            name = self.name("v")
            linear = self.linear(name, scope, half)
            return App(DualMap(name, linear, covector(2.0)), self.term(R, scope, half))
        if choice == 12:
            return App(self.pullback(scope, half), self.term(R, scope, half))
        return TermSum(self.term(R, scope, half), Zero())

    def smallest(self, type: TermType, scope: dict[str, TermType]) -> PullbackTerm:
        type = resolved(type)
        if isinstance(type, Product):
            return Pair(self.smallest(type.first, scope), self.smallest(type.second, scope))
        if isinstance(type, Arrow):
            return Lam(self.name("a"), self.smallest(type.target, scope))
        if isinstance(type, DualType):
            return covector(1.0)
        return Num(self.random.choice([0.5, -0.75, 1.25, 2.0]))

    def linear(self, name: str, scope: dict[str, TermType], fuel: int) -> PullbackTerm:
        """A real that is linear in a variable."""
        pick = self.random
        if fuel <= 0 or pick.random() < 0.3:
            return Var(name)
        if pick.random() < 0.5:
            return TermSum(self.linear(name, scope, fuel // 2), self.linear(name, scope, fuel // 2))
        return App(
            Jac(pick.choice(["sin", "tanh"]), self.linear(name, scope, fuel - 1)), self.term(R, scope, fuel // 2)
        )

    def pullback(self, scope: dict[str, TermType], fuel: int) -> PullbackTerm:
        """A dual of the reals: a pullback applied to a value."""
        name = self.name("x")
        body = self.term(R, {**scope, name: R}, fuel)
        return App(FormPullback(name, body, ONE_FORM), self.term(R, scope, fuel // 2))

    def program(self, fuel: int) -> PullbackTerm:
        """A closed pullback that is applied to a point of R^2."""
        x, y = self.name("x"), self.name("y")
        point = pair_of(*(self.random.choice([0.5, 1.5, -0.75, 0.25]) for _ in range(2)))
        scope: dict[str, TermType] = {x: R, y: R}
        if self.random.random() < 0.3:  # several outputs
            body = self.term(Product(R, R), scope, fuel)
            return App(omega((x, y), body, lam("_", covector(1.0, -0.5))), point)
        return App(omega((x, y), self.term(R, scope, fuel), ONE_FORM), point)


PAIR = Product(R, R)
BOUND: list[TermType] = [R, R, PAIR, FUNCTION, FUNCTION, FUNCTIONAL, DualType(R), DualType(PAIR), DualType(FUNCTION)]
"""The types of what binders bind."""


class HigherSource(Source):
    """A source of terms in which derivatives are taken along values of any type, of bodies of any type."""

    def term(self, type: TermType, scope: dict[str, TermType], fuel: int) -> PullbackTerm:
        pick, fits = self.random, [name for name, other in scope.items() if other == type]
        if fuel <= 0:
            return Var(pick.choice(fits)) if fits and pick.random() < 0.8 else self.smallest(type, scope)
        if fits and pick.random() < 0.15:
            return Var(pick.choice(fits))
        if pick.random() < 0.2:
            bound = pick.choice(BOUND)
            name = self.name("b")
            given = self.term(bound, scope, fuel // 2)
            return App(Lam(name, self.term(type, {**scope, name: bound}, fuel - 1 - fuel // 4)), given)
        match type:
            case Product(first, second):
                return Pair(self.term(first, scope, fuel // 2), self.term(second, scope, fuel // 2))
            case Arrow(source, target):
                name = self.name("a")
                return Lam(name, self.term(target, {**scope, name: source}, fuel - 1))
            case DualType(of):
                return self.dual(of, scope, fuel)
        return self.real(scope, fuel)

    def real(self, scope: dict[str, TermType], fuel: int) -> PullbackTerm:
        pick, half = self.random, fuel // 2
        match pick.randrange(12):
            case 0 | 1:
                return TermSum(self.term(R, scope, half), self.term(R, scope, half))
            case 2 | 3:
                return Prim("mult", Pair(self.term(R, scope, half), self.term(R, scope, half)))
            case 4:
                return Prim(pick.choice(["sin", "cos", "tanh", "neg"]), self.term(R, scope, fuel - 1))
            case 5:
                return Proj(pick.randrange(1, 3), self.term(PAIR, scope, half))
            case 6 | 7:
                source = pick.choice([R, R, FUNCTION, DualType(R)])
                return App(self.term(Arrow(source, R), scope, half), self.term(source, scope, half))
            case 8:
                return App(Jac(pick.choice(["sin", "cos"]), self.term(R, scope, half)), self.term(R, scope, half))
            case _:
                along = pick.choice(BOUND)
                return App(self.term(DualType(along), scope, fuel - 1), self.term(along, scope, half))

    def dual(self, of: TermType, scope: dict[str, TermType], fuel: int) -> PullbackTerm:
        """A dual: a sum, a dual map, or a pullback that is applied to a point."""
        pick, half = self.random, fuel // 2
        match pick.randrange(8):
            case 0:
                return TermSum(self.dual(of, scope, half), self.dual(of, scope, half))
            case 1 | 2:
                target = pick.choice([R, PAIR, FUNCTION, DualType(R)])
                name = self.name("v")
                linear = self.linear_into(target, name, of, scope, half)
                return DualMap(name, linear, self.term(DualType(target), scope, half))
            case 3:
                return self.smallest(DualType(of), scope)
        target = pick.choice([R, R, R, PAIR, FUNCTION, DualType(R)])
        point = self.name("p") if of != PAIR or pick.random() < 0.5 else (self.name("p"), self.name("p"))
        inner = {**scope, point: of} if isinstance(point, str) else {**scope, point[0]: R, point[1]: R}
        body = self.term(target, inner, fuel - 2)
        at = self.name("w")
        form = Lam(at, self.term(DualType(target), {**scope, at: target} if pick.random() < 0.3 else scope, half))
        return App(FormPullback(point, body, form), self.term(of, scope, half))

    def linear_into(
        self, target: TermType, name: str, of: TermType, scope: dict[str, TermType], fuel: int
    ) -> PullbackTerm:
        """A term of the type `target` that is linear in a variable of the type `of`, and depends on it."""
        pick, half = self.random, fuel // 2
        if target == of and pick.random() < 0.4:
            return Var(name)
        match target:
            case Product(first, second):
                return Pair(
                    self.linear_into(first, name, of, scope, half), self.linear_into(second, name, of, scope, half)
                )
            case Arrow(source, end):
                bound = self.name("a")
                return Lam(bound, self.linear_into(end, name, of, {**scope, bound: source}, half))
            case DualType(inner):
                bound = self.name("v")
                return DualMap(bound, self.bilinear(bound, inner, name, of, scope), covector(1.0))
        if fuel > 0 and pick.random() < 0.4:
            if pick.random() < 0.5:
                return TermSum(self.linear_into(R, name, of, scope, half), self.linear_into(R, name, of, scope, half))
            return App(
                Jac(pick.choice(["sin", "tanh"]), self.linear_into(R, name, of, scope, half)),
                self.term(R, scope, half),
            )
        return self.read(Var(name), of, scope, half)

    def read(self, of: PullbackTerm, type: TermType, scope: dict[str, TermType], fuel: int) -> PullbackTerm:
        """A real that is linear in a term."""
        match type:
            case Product(first, second):
                index = self.random.randrange(1, 3)
                return self.read(Proj(index, of), first if index == 1 else second, scope, fuel)
            case Arrow(source, target):
                return self.read(App(of, self.term(source, scope, fuel)), target, scope, fuel)
            case DualType(inner):
                return App(of, self.term(inner, scope, fuel))
        return of

    def bilinear(self, one: str, type: TermType, other: str, of: TermType, scope: dict[str, TermType]) -> PullbackTerm:
        """A real that is linear in each of two variables: the product of what is read of them, as a second
        derivative."""
        left, right = self.read(Var(one), type, scope, 0), self.read(Var(other), of, scope, 0)
        return Prim("mult''", pair_of(Pair(left, Zero()), Pair(Zero(), right), Pair(Num(1.0), Num(1.0))))

    def smallest(self, type: TermType, scope: dict[str, TermType]) -> PullbackTerm:
        if isinstance(type, DualType) and type.of not in (R, PAIR):
            name = self.name("v")
            return DualMap(name, self.read(Var(name), type.of, scope, 0), covector(1.0))
        if type == DualType(PAIR):
            return covector(1.0, -0.5)
        return super().smallest(type, scope)

    def program(self, fuel: int) -> PullbackTerm:
        x, y = self.name("x"), self.name("y")
        point = pair_of(*(self.random.choice([0.5, 1.5, -0.75, 0.25]) for _ in range(2)))
        scope: dict[str, TermType] = {x: R, y: R}
        return App(omega((x, y), self.term(R, scope, fuel), ONE_FORM), point)
