"""Structures of numbers: containers, dataclasses, registered classes; and their vector space."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.eager.pytree import leaves, parts, transform
from dynagrad.ir.ops import scalars as ops


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    weight: Any
    name: str = "frozen"

    def __post_init__(self) -> None:
        if not isinstance(self.weight, float):
            raise TypeError("built with a float only")


@dataclasses.dataclass(slots=True, frozen=True)
class Slotted:
    a: Any
    b: tuple[Any, ...] = ()


@dataclasses.dataclass
class Open:
    a: Any
    derived: Any = dataclasses.field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.derived = self.a * 2.0


class Box:
    def __init__(self, content: Any, label: str) -> None:
        self.content, self.label = content, label


dg.register(Box, lambda b: [b.content], lambda b, new: Box(new[0], b.label))


STRUCTURES: dict[str, tuple[Any, Any, Any]] = {  # a point; what to read a real from; the gradient of its square there
    "tuple": ((3.0, 1.0), lambda p: p[0], (6.0, 0.0)),
    "list": ([3.0, [1.0]], lambda p: p[0], [6.0, [0.0]]),
    "dict": ({"a": 3.0, "b": 1.0}, lambda p: p["a"], {"a": 6.0, "b": 0.0}),
    "named tuple": (Point(3.0, 1.0), lambda p: p.x, Point(6.0, 0.0)),
    "dataclass": (Slotted(3.0, (1.0,)), lambda p: p.a, Slotted(6.0, (0.0,))),
    "deep": ({"a": [Point((3.0,), 1.0)]}, lambda p: p["a"][0].x[0], {"a": [Point((6.0,), 0.0)]}),
    "with constants": ((3.0, 7, "s", None, True), lambda p: p[0] * p[1] / 7, (6.0, 7, "s", None, True)),
    "ordered": (collections.OrderedDict(a=3.0), lambda p: p["a"], collections.OrderedDict(a=6.0)),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_gradient_has_the_structure_of_the_point(name: str) -> None:
    point, read, wanted = STRUCTURES[name]
    found = dg.grad(lambda p: read(p) * read(p))(point)
    assert found == wanted and type(found) is type(wanted)
    assert dg.jvp(lambda p: read(p) * read(p), (point,), (wanted,))[1] == 36.0


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_derivative_has_the_structure_of_the_result(name: str) -> None:
    point, _, _ = STRUCTURES[name]
    found = dg.derivative(lambda t: dg.scale(t * t, point))(1.0)
    wanted = (6.0, 0.0, "s", None, 0.0) if name == "with constants" else dg.scale(2.0, point)
    assert found == wanted and type(found) is type(wanted)


def test_whole_numbers_in_fields_of_classes_are_constants() -> None:
    assert dg.derivative(lambda t: (Slotted(t * t, (1,)), Point(t, 2)))(3.0) == (Slotted(6.0, (1,)), Point(1.0, 2))


def test_dataclasses_are_rebuilt_without_their_checks() -> None:
    found = dg.grad(lambda p: p.weight * p.weight)(Frozen(3.0))
    assert found == Frozen(6.0) and found.name == "frozen"
    found = dg.grad(lambda p: p.a * p.derived)(Open(3.0))
    assert (found.a, found.derived) == (6.0, 3.0)  # fields are what they are, not what they were computed from


@dataclasses.dataclass
class Remembering:
    x: Any

    @functools.cached_property
    def square(self) -> Any:
        return self.x * self.x


def test_what_a_dataclass_remembers_of_its_fields_is_forgotten_with_them() -> None:
    point = Remembering(3.0)
    for _ in range(2):  # before it was looked at, and after
        assert dg.grad(lambda p: p.square)(point) == Remembering(6.0)
        assert dg.jvp(lambda p: p.square, (point,), (Remembering(1.0),)) == (9.0, 6.0)
        assert point.square == 9.0
    other = dg.scale(2.0, point)
    assert (other.x, other.square, point.square) == (6.0, 36.0, 9.0)


def test_copies_of_structures_have_the_same_numbers() -> None:
    def f(p: Any) -> Any:
        return copy.deepcopy(p)["a"][0] * copy.copy(p["a"])[0] * copy.copy(p["a"][0])

    for verb in (dg.grad, dg.jacfwd):
        assert verb(f)({"a": [2.0]}) == {"a": [12.0]}
    with pytest.raises(dg.Error, match=r"cannot be pickled.*test_pytree\.py, line"):
        dg.grad(pickle.dumps)(1.0)


def test_registered_classes() -> None:
    found = dg.grad(lambda b: b.content * b.content)(Box(3.0, "here"))
    assert (found.content, found.label) == (6.0, "here")
    assert dg.derivative(lambda x: Box(x * x, "out"))(3.0).content == 6.0


def test_what_is_no_class_or_no_function_cannot_be_registered() -> None:
    for cls in ([], "Box", np.zeros(2), 3):
        with pytest.raises(dg.Error, match=r"dg\.register: the first argument should be a class, and is"):
            dg.register(cls, list, list)  # type: ignore[arg-type]
    for functions, name in (((None, list), "flatten"), ((list, "f"), "unflatten")):
        with pytest.raises(dg.Error, match=rf"dg\.register: {name} should be a function"):
            dg.register(type("Own", (), {}), *functions)  # type: ignore[arg-type]


def test_a_class_that_nobody_registered_is_an_error_that_says_so() -> None:
    class Unknown:
        pass

    with pytest.raises(dg.Error, match=r"dg\.register"):
        dg.grad(lambda u: 1.0)(Unknown())


def test_a_structure_without_an_end_is_an_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(dg.Error, match="nested"):
        dg.grad(lambda p: 1.0)(endless)


def test_leaves_are_reals_and_functions() -> None:
    assert list(leaves((1.0, [2, "a", np.float64(3.0)], {"f": abs}))) == [1.0, 3.0, abs]
    assert parts(2.0) is None and parts("ab") is None


def test_transform_takes_a_function_for_functions() -> None:
    found = transform((1.0, abs), lambda r: -r, lambda f: "f")
    assert found == (-1.0, "f")


def test_pieces_that_do_not_fit_say_where() -> None:
    with pytest.raises(dg.Error, match=r"tangent 1\['b'\]\[1\] should be a real.*test_pytree\.py, line"):
        dg.jvp(lambda p: p["a"], ({"a": 1.0, "b": (1.0, 2.0)},), ({"a": 1.0, "b": (1.0, "x")},))
    with pytest.raises(dg.Error, match="a dict of 2"):
        dg.jvp(lambda p: p["a"], ({"a": 1.0, "b": 2.0},), ({"a": 1.0, "c": 2.0},))
    with pytest.raises(dg.Error, match="a tuple of 2"):
        dg.vjp(lambda x: (x, x), 2.0)[1]((1.0,))
    with pytest.raises(dg.Error, match=r"an array of shape \(2,\)"):
        dg.jvp(lambda x: x, (np.ones(2),), (np.ones(3),))


def test_the_order_of_a_dict_does_not_matter() -> None:
    assert dg.jvp(lambda p: p["a"] * 10.0 + p["b"], ({"a": 1.0, "b": 2.0},), ({"b": 1.0, "a": 5.0},))[1] == 51.0
    _, pullback = dg.vjp(lambda x: {"a": x, "b": 10.0 * x}, 2.0)
    assert pullback({"b": 1.0, "a": 5.0}) == (15.0,)


# -- vector spaces -----------------------------------------------------------------------------------------------------


def test_add_and_scale_go_through_structures() -> None:
    point = {"p": Point(1.0, [2.0, 3, "a"]), "d": Slotted(4.0, (5.0,)), "none": None}
    assert dg.add(point, point) == {"p": Point(2.0, [4.0, 3, "a"]), "d": Slotted(8.0, (10.0,)), "none": None}
    assert dg.scale(3.0, point) == {"p": Point(3.0, [6.0, 3, "a"]), "d": Slotted(12.0, (15.0,)), "none": None}
    assert dg.add(Box(1.0, "first"), Box(2.0, "second")).content == 3.0
    assert dg.add(1, 2.0) == 3.0 and dg.scale(2, 3) == 6.0


def test_add_and_scale_of_functions_are_pointwise() -> None:
    f = dg.add(lambda x: x, lambda x: x * x)
    assert f(3.0) == 12.0
    assert dg.scale(2.0, f)(3.0) == 24.0
    curried = dg.add(lambda x: lambda y: x * y, dg.scale(2.0, lambda x: lambda y: x + y))
    assert curried(2.0)(3.0) == 16.0
    pair = dg.add((lambda x: x, 1.0), (lambda x: 3.0 * x, 2.0))
    assert pair[0](2.0) == 8.0 and pair[1] == 3.0


def test_many_sums_and_multiples_of_functions() -> None:
    f, count = np.sin, 3000
    for _ in range(count):
        f = dg.scale(1.0, dg.add(f, np.cos))
    assert f(1.0) == pytest.approx(np.sin(1.0) + count * np.cos(1.0))
    doubled = np.sin
    for _ in range(60):
        doubled = dg.add(doubled, doubled)  # is called once
    assert doubled(1.0) == 2.0**60 * np.sin(1.0)
    assert dg.derivative(doubled)(1.0) == 2.0**60 * np.cos(1.0)


def test_constants_in_sums_of_functions_are_those_of_the_first() -> None:
    first, second = (lambda x: (x, 1, "first")), (lambda x: (x, 2, "second"))
    assert dg.add(second, dg.add(first, second))(1.0) == (3.0, 2, "second")
    assert dg.add(first, dg.add(second, first))(1.0) == (3.0, 1, "first")


def test_add_and_scale_of_arrays() -> None:
    assert np.array_equal(dg.add(np.array([1.0, 2.0]), np.array([3.0, 4.0])), [4.0, 6.0])
    assert np.array_equal(dg.scale(2.0, np.array([1.0, 2.0])), [2.0, 4.0])


def test_add_and_scale_are_differentiable() -> None:
    for d in (dg.derivative, dg.grad):
        assert d(lambda t: dg.add((t, 1.0), dg.scale(t, (t, 2.0)))[0])(3.0) == 7.0
        assert d(lambda t: dg.scale(t, lambda x: t * x)(5.0))(3.0) == 30.0
        assert d(lambda t: dg.scale(t, dg.Dual.at(1.0, (t,)))(ops.sin))(2.0) == pytest.approx(
            float(np.sin(2.0) + 2.0 * np.cos(2.0))
        )


def test_summands_that_do_not_fit() -> None:
    with pytest.raises(dg.Error, match="second summand"):
        dg.add((1.0, 2.0), (1.0,))
    with pytest.raises(dg.Error, match="function"):
        dg.add(lambda x: x, 1.0)
