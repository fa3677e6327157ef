"""Errors at run time of a graph: native code raises the same as the interpreter."""

from __future__ import annotations

import pytest

from dynagrad.codegen.graph.native import Native
from dynagrad.ir import real, variable
from dynagrad.ir.builders import cond
from dynagrad.ir.control import Graph
from dynagrad.ir.failures import FAILURES, failing, failure
from dynagrad.ir.interpret import run
from dynagrad.ir.types import integer

x, code, steps = variable("x"), variable("code", integer), variable("steps", integer)


def guarded() -> Graph:
    [y] = cond(x > 0.0, lambda: [x * 2.0], lambda: failing([real], code, steps, x))
    return Graph((x, code, steps), (y,))


def test_every_failure_has_its_exception_and_its_words() -> None:
    graph = guarded()
    native = Native(graph, "f")
    assert native(3.0, 0, 0) == run(graph, [3.0, 0, 0]) == (6.0,)
    for number, (kind, _) in FAILURES.items():
        expected = failure(number, 12, -0.123456)
        assert type(expected) is kind and len(str(expected)) < 255
        for compute in (lambda *xs: run(graph, xs), native):
            with pytest.raises(kind) as caught:
                compute(-0.123456, number, 12)
            assert type(caught.value) is kind
            assert str(caught.value) == str(expected)


def test_it_needs_no_python() -> None:
    assert "host_operation" not in Native(guarded(), "f").source
