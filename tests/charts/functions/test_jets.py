"""Which components of jets the derivatives of a program take in and give out. Their values are tested in
`test_function.py`.
"""

from __future__ import annotations

import pytest

from dynagrad.charts.functions.jets import UNUSED, VALUE, Choice, Slot

x, x1, x2, x12 = (Slot("x", mask) for mask in range(4))
y, y1, y2, y12 = (Slot("y", mask) for mask in range(4))


def test_a_tangent_takes_a_direction_of_all_that_goes_in() -> None:
    assert VALUE.directional() == Choice(1, (x, x1), (y1,))
    assert VALUE.directional().directional() == Choice(2, (x, x1, x2, x12), (y12,))


def test_a_mixed_derivative_takes_directions_that_do_not_change() -> None:
    assert VALUE.directional(0) == VALUE
    assert VALUE.directional(2) == Choice(2, (x, x1, x2), (y12,))


def test_a_gradient_needs_no_jets() -> None:
    assert VALUE.adjoint() == Choice(0, (x, Slot("c", 0)), (Slot("g", 0),))


def test_the_adjoint_of_an_adjoint_takes_a_direction_of_the_point() -> None:
    """What comes out is by the point and by the cotangent, in which the adjoint is linear."""
    assert VALUE.adjoint().adjoint() == Choice(1, (x, Slot("c", 0), x1), (Slot("g", 1), y1))


def test_the_adjoint_of_a_tangent_is_by_the_point_and_by_the_direction() -> None:
    assert VALUE.directional().adjoint() == Choice(1, (x, x1, Slot("c", 0)), (Slot("g", 1), Slot("g", 0)))


@pytest.mark.parametrize("kind", ["x", "y", "c", "g"])
def test_a_component_that_is_not_used_stays_so(kind) -> None:
    unused = Slot(kind, UNUSED)
    assert unused.with_directions(3) == unused and unused.without(1) == unused
