"""Loop nests are data: collapsed and split among threads before anything is written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynagrad.codegen.graph.body import Body
from dynagrad.codegen.graph.emit import emit
from dynagrad.codegen.graph.nests.chunks import PART, in_chunks, parts_of
from dynagrad.codegen.graph.nests.collapse import collapsed
from dynagrad.codegen.graph.nests.model import (
    Accumulate,
    Accumulator,
    Addend,
    ArrayAccumulator,
    Chunks,
    Definition,
    Elementwise,
    Load,
    LoopNest,
    Store,
)
from dynagrad.codegen.graph.nests.outlines import Outlines, outline_of
from dynagrad.codegen.graph.nests.write import expression_text, write
from dynagrad.ir.control import Graph
from dynagrad.ir.node import constant, fresh
from dynagrad.ir.ops.arrays import broadcast_to
from dynagrad.ir.ops.scalars import power
from dynagrad.ir.types import Type, arrays, real
from dynagrad.passes.index_forms import ZERO, name

ROW, COLUMN = name("i"), name("j")


def copying(place_from: object = ROW * 4 + COLUMN, place_to: object = ROW * 4 + COLUMN) -> LoopNest:
    """Copies an array of shape (3, 4)."""
    read = Definition(2, "double", "t", Load("a", place_from))  # type: ignore[arg-type]
    stored = Store(2, "b", place_to, "t")  # type: ignore[arg-type]
    return LoopNest((("i", 3), ("j", 4)), (read,), (stored,), (), True, work=(0, 0, 2))


def total(rows: int, columns: int, work: int = 0) -> LoopNest:
    """Adds up a matrix."""
    read = Definition(2, "double", "t", Load("a", ROW * columns + COLUMN))
    begin = Accumulator(0, "double", "s", "plus", "real")
    added = Accumulate("s", "plus", Addend(("t",)))
    return LoopNest((("i", rows), ("j", columns)), (begin, read), (added,), (), True, work=(0, 0, work))


def text(nest: LoopNest) -> list[str]:
    code = Body()
    write(code, nest)
    return [line.strip() for line in code.lines]


def no_scratch(type: Type, copies: int) -> str:
    raise AssertionError("no memory is needed")


class TestCollapsing:
    def test_loops_over_contiguous_axes_become_one(self) -> None:
        made = collapsed(copying(), lambda _: True)
        assert made.loops == (("j", 12),)
        assert made.before == (Definition(1, "double", "t", Load("a", COLUMN)),)
        assert made.stores == (Store(1, "b", COLUMN, "t"),)
        assert made.work == (0, 2)

    @pytest.mark.parametrize("place", [ROW + COLUMN * 3, ROW * 4, ROW * 5 + COLUMN])
    def test_others_stay(self, place: object) -> None:
        for nest in (copying(place), copying(place_to=place)):
            assert collapsed(nest, lambda _: True) is nest

    def test_loops_that_a_reduction_treats_apart_stay(self) -> None:
        nest = total(3, 4)
        assert collapsed(nest, lambda _: False) is nest
        assert collapsed(nest, lambda _: True).loops == (("j", 12),)

    def test_what_is_computed_in_an_outer_loop_comes_first(self) -> None:
        """A statement of the outer loop moves into the one that is left, before those of the inner loop."""
        inner = Definition(2, "double", "t", Load("a", ROW * 4 + COLUMN))
        outer = Definition(1, "double", "u", Load("c", ZERO))
        nest = replace(copying(), before=(inner, outer))
        assert collapsed(nest, lambda _: True).before == (
            replace(outer, level=1),
            Definition(1, "double", "t", Load("a", COLUMN)),
        )


class TestChunks:
    def test_little_work_stays_on_one_thread(self) -> None:
        nest = total(100, 100)
        assert in_chunks(nest, no_scratch) is nest

    def test_much_work_is_split_with_a_partial_result_each(self) -> None:
        nest = total(1 << 12, 1 << 10, work=3)
        made = in_chunks(nest, no_scratch)
        assert made.chunks is not None and made.chunks.partials == ("s_to",)
        assert made.chunks.grain * 11 * (1 << 10) >= PART  # a chunk has at least so much work
        assert replace(made, chunks=None) == nest

    def test_arrays_have_partial_results_in_memory(self) -> None:
        large = replace(total(1 << 12, 1 << 12), before=(ArrayAccumulator("b", arrays(real, (7,)), "plus", True),))
        asked = []

        def scratch(type: Type, copies: int) -> str:
            asked.append((type.size, copies))
            return "m"

        made = in_chunks(large, scratch)
        assert made.chunks is not None and made.chunks.partials == ("m",)
        assert asked == [(7, parts_of(1 << 12, made.chunks.grain))]

    def test_partial_results_that_cost_more_than_the_loop_are_not_made(self) -> None:
        wide = ArrayAccumulator("b", arrays(real, (1 << 22,)), "plus", True)
        nest = replace(total(1 << 12, 1 << 10), before=(wide,))
        assert in_chunks(nest, no_scratch) is nest


class TestWriting:
    def test_what_is_written_is_what_was_decided(self) -> None:
        """Loops that could be collapsed are not, and a nest with little work is split, if that is how it is given."""
        nest = total(2, 3)
        assert [line for line in text(nest) if line.startswith("for")] == [
            "for (int64_t i = 0; i < 2; ++i) {",
            "for (int64_t j = 0; j < 3; ++j) {",
        ]
        split = text(replace(nest, chunks=Chunks(1, 8, ("s_to",))))
        assert "for (int64_t i = begin; i < end; ++i) {" in split
        assert "s_to[part] = s;" in split
        assert text(nest) == text(nest)

    def test_an_operation_is_spelt_by_what_an_argument_is_and_not_by_how_it_is_called(self) -> None:
        given = {"operation": power, "arguments": ("x", "2.0"), "in_loop": True}
        for at, written in ((None, "vector::pow(x, 2.0)"), (2.0, "x * x"), (-1.0, "1.0 / x")):
            assert expression_text(Elementwise(**given, at=at)) == written  # type: ignore[arg-type]

    @pytest.mark.parametrize("exponent", [2.0, np.full(5, 2.0), constant(2.0), broadcast_to((5,))(constant(2.0))])
    def test_what_an_argument_is_the_graph_says(self, exponent: object) -> None:
        x = fresh(arrays(real, (5,)))
        assert "pow" not in emit(Graph((x,), (power(x, exponent),))).source
        assert "pow" in emit(Graph((x,), (power(x, np.array([2.0, 2.0, 2.0, 2.0, 3.0])),))).source

    def test_equal_nests_are_one_function(self) -> None:
        outlines = Outlines()
        one = outline_of(copying(), {"x": ("auto", "a"), "y": ("auto", "b")}, {})
        other = outline_of(replace(copying(), lines=frozenset({7})), {"u": ("auto", "a"), "v": ("auto", "b")}, {})
        apart = outline_of(copying(ROW * 4), {"x": ("auto", "a"), "y": ("auto", "b")}, {})
        names = [outlines.function(o) for o in (one, other, apart)]
        assert names[0] == names[1] != names[2]
        assert len(outlines.definitions()) == 2
