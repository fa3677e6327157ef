"""Objects of users' classes: private names, inheritance, and `super()`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees_with_gradient, through_graph


class Base:
    Z = 3.0

    def __init__(self, k: Any) -> None:
        self.__k = k

    @property
    def held(self) -> Any:
        return self.__k

    @classmethod
    def scaled(cls, x: Any) -> Any:
        return cls.Z * x

    @staticmethod
    def next(x: Any) -> Any:
        return x + 1

    def f(self, x: Any) -> Any:
        return self.__k * x + sum(self.__k for _ in range(3)) + self.__private(x)

    def __private(self, x: Any) -> Any:
        return x * x


class Derived(Base):
    Z = 5.0

    def __init__(self, k: Any, m: Any) -> None:
        super().__init__(k * 2)
        self.__k = m

    def f(self, x: Any) -> Any:
        own = lambda: self.__k  # noqa: E731
        above = super().held + super().scaled(x) + super().next(x) + super().Z
        return super().f(x) * own() + above

    def scaled(self, x: Any) -> Any:  # type: ignore[override]
        return -x


class Further(Derived):
    Z = 4.0

    def f(self, x: Any) -> Any:
        return super(Further, self).f(x) + self.scaled(x)  # noqa: UP008


class Alone:
    def __init__(self) -> None:
        super().__init__()
        self.x = 1.0


@dataclasses.dataclass
class Line:
    a: float
    b: float = 2.0

    def f(self, x: Any) -> Any:
        return self.a * x + self.b


@dataclasses.dataclass
class Scaled(Line):
    c: float = 1.0

    def f(self, x: Any) -> Any:
        return super().f(x) * self.c


class Square(Line):
    def __init__(self, a: Any) -> None:
        super().__init__(a, b=a * a)
        self.q = 4.0

    def f(self, x: Any) -> Any:
        return super().f(x) * self.q


@pytest.mark.parametrize(
    "x",
    [Base(2.0), Derived(2.0, 3.0), Further(2.0, 3.0), Scaled(1.0, c=3.0), Square(2.0)],
    ids=lambda x: type(x).__name__,
)
def test_methods_of_objects_that_are_known(x: Any) -> None:
    agrees_with_gradient(x.f, 1.5)


def test_objects_that_are_made_inside() -> None:
    agrees_with_gradient(lambda x: Base(x).f(x), 1.5)
    agrees_with_gradient(lambda x: Derived(x, 3.0).f(x), 1.5)
    agrees_with_gradient(lambda x: Further(x, 3.0).f(x) + Alone().x, 1.5)
    agrees_with_gradient(lambda x: Scaled(x, c=3.0).f(x) + Square(x).f(x), 1.5)


def test_super_outside_of_methods() -> None:
    with pytest.raises(dg.LiftError, match="write it inside a method, or name the class"):
        through_graph(lambda x: super().f(x), 1.0)  # type: ignore[misc]


def test_compiling_inside_of_what_is_compiled_changes_nothing() -> None:
    def cube(x: Any) -> Any:
        return x**3

    def decorated(x: Any) -> Any:
        @dg.compile
        def scaled(y: Any) -> Any:
            return y * x * np.sin(y)

        return scaled(x) + dg.compile(lambda y: y * y)(x)

    agrees_with_gradient(decorated, 2.0)
    assert through_graph(lambda x: dg.grad(dg.compile(cube))(x), 2.0) == 12.0
    assert through_graph(lambda x: dg.compile(dg.grad(dg.compile(dg.grad(cube))))(x), 2.0) == 12.0
