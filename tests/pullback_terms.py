"""Random well-typed terms: first- and higher-order, with dual maps and pullbacks inside. Values stay moderate."""

from __future__ import annotations

from random import Random

from dynagrad.languages.pullback.terms import (
    App,
    Jac,
    Lam,
    Num,
    Pair,
    Prim,
    Proj,
    Pullback,
    Sum,
    Term,
    Var,
    Zero,
    covector,
    lam,
    omega,
)
from dynagrad.languages.pullback.terms import pair as pair_of
from dynagrad.languages.pullback.types import Arrow, Dual, Product, R, Type, resolved

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

    def term(self, type: Type, scope: dict[str, Type], fuel: int) -> Term:
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
            return Sum(self.term(R, scope, half), self.term(R, scope, half))
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
            return App(dual_map_of(name, linear), self.term(R, scope, half))
        if choice == 12:
            return App(self.pullback(scope, half), self.term(R, scope, half))
        return Sum(self.term(R, scope, half), Zero())

    def smallest(self, type: Type, scope: dict[str, Type]) -> Term:
        type = resolved(type)
        if isinstance(type, Product):
            return Pair(self.smallest(type.first, scope), self.smallest(type.second, scope))
        if isinstance(type, Arrow):
            return Lam(self.name("a"), self.smallest(type.target, scope))
        if isinstance(type, Dual):
            return covector(1.0)
        return Num(self.random.choice([0.5, -0.75, 1.25, 2.0]))

    def linear(self, name: str, scope: dict[str, Type], fuel: int) -> Term:
        """A real that is linear in a variable."""
        pick = self.random
        if fuel <= 0 or pick.random() < 0.3:
            return Var(name)
        if pick.random() < 0.5:
            return Sum(self.linear(name, scope, fuel // 2), self.linear(name, scope, fuel // 2))
        return App(
            Jac(pick.choice(["sin", "tanh"]), self.linear(name, scope, fuel - 1)), self.term(R, scope, fuel // 2)
        )

    def pullback(self, scope: dict[str, Type], fuel: int) -> Term:
        """A dual of the reals: a pullback applied to a value."""
        name = self.name("x")
        body = self.term(R, {**scope, name: R}, fuel)
        return App(Pullback(name, body, ONE_FORM), self.term(R, scope, fuel // 2))

    def program(self, fuel: int) -> Term:
        """A closed pullback that is applied to a point of R^2."""
        x, y = self.name("x"), self.name("y")
        point = pair_of(*(self.random.choice([0.5, 1.5, -0.75, 0.25]) for _ in range(2)))
        scope: dict[str, Type] = {x: R, y: R}
        if self.random.random() < 0.3:  # several outputs
            body = self.term(Product(R, R), scope, fuel)
            return App(omega((x, y), body, lam("_", covector(1.0, -0.5))), point)
        return App(omega((x, y), self.term(R, scope, fuel), ONE_FORM), point)


def dual_map_of(name: str, linear: Term) -> Term:
    from dynagrad.languages.pullback.terms import DualMap  # beside its only use

    return DualMap(name, linear, covector(2.0))
