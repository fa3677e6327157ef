"""Values as bytes: what was written is read, and nothing but the given classes can be made (no time at all)."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynagrad.runtime.disk.values import packed, unpacked


@dataclass(frozen=True, slots=True)
class Leaf:
    name: str
    number: float | None = None


@dataclass(frozen=True)
class Tree:
    parts: tuple[object, ...]
    table: dict[str, frozenset[int]]


CLASSES = (Leaf, Tree)
leaves = st.builds(Leaf, st.text(), st.none() | st.floats(allow_nan=False))
values = st.recursive(
    leaves | st.integers() | st.booleans() | st.text(),
    lambda parts: st.builds(
        Tree, st.lists(parts).map(tuple), st.dictionaries(st.text(), st.frozensets(st.integers()), max_size=3)
    ),
    max_leaves=10,
)


@given(values)
def test_what_was_written_is_read(value: object) -> None:
    data = packed(value, CLASSES)
    assert data is not None
    assert unpacked(data, CLASSES) == value


def test_shared_objects_are_those_of_the_reader() -> None:
    ours, theirs = Leaf("a"), Leaf("b")
    data = packed((ours, Tree((ours,), {})), CLASSES, [ours])
    assert data is not None and b"a" not in data.replace(b"Tree", b"").replace(__name__.encode(), b"")
    found = unpacked(data, CLASSES, [theirs])
    assert found[0] is theirs and found[1].parts[0] is theirs
    assert unpacked(data, CLASSES) is None, "there is no such object"


class Planted:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("echo planted",)


@pytest.mark.parametrize("value", [Planted(), print, Leaf, [Leaf("a"), os.getcwd]])
def test_nothing_else_is_written(value: object) -> None:
    if value is Leaf:
        assert packed(value, ()) is None
    else:
        assert packed(value, CLASSES) is None


@pytest.mark.parametrize("value", [Planted(), print, Leaf("a"), {1: Planted()}])
def test_nothing_else_is_made(value: object, capfd: pytest.CaptureFixture[str]) -> None:
    assert unpacked(pickle.dumps(value), (Tree,)) is None
    assert capfd.readouterr().out == ""


def test_what_is_no_pickle_is_none() -> None:
    whole = packed(Tree((Leaf("a", 1.0),), {"x": frozenset({1})}), CLASSES)
    assert whole is not None
    assert all(unpacked(whole[:n], CLASSES) is None for n in range(len(whole)))
    assert unpacked(b"goal += a(X).", CLASSES) is None


def test_values_nested_too_deeply_are_not_written() -> None:
    value: object = 0
    for _ in range(100_000):
        value = (value,)
    assert packed(value, CLASSES) is None
