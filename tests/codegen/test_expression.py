"""C++ expressions of graphs: their text, and that compiled they compute what the interpreter computes.

Costs a few seconds.
"""

from __future__ import annotations

import ctypes
import math
import random
import re

import pytest

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.codegen.expression import NESTING, cxx
from dynagrad.errors import Error
from dynagrad.ir import TABLE, boolean, constant, evaluate, real, variable
from dynagrad.ir.operation import Trait
from dynagrad.ir.ops import scalars as ops
from dynagrad.passes.simplify import simplify
from dynagrad.runtime.compiling import cache

x, y, z = map(variable, "xyz")
NAMES = {"x": "x", "y": "y", "z": "z"}


def text(node, names=NAMES):
    statements, (result,) = cxx([node], names)
    assert statements == []
    return result


def test_values_used_once_are_written_in_place_with_parentheses():
    assert text((x + y) * -z) == "(x + y) * (-z)"
    assert text(x - (y - z)) == "x - (y - z)"
    assert text(ops.negative(-x)) == "-(-x)"
    assert text(ops.power(x + 1.0, y * z)) == "pow(x + 1.0, y * z)"
    assert text(ops.where((x > y) & (y > z), x, ops.where(x == z, y, z))) == (
        "((x > y) && (y > z)) ? x : ((x == z) ? y : z)"
    )


def test_values_used_more_than_once_get_a_local_in_order():
    shared = ops.exp(x * y)
    statements, results = cxx([shared + z, shared > 1.0, shared], NAMES, prefix="u")
    assert statements == ["const double u0 = exp(x * y);"]
    assert results == ["u0 + z", "u0 > 1.0", "u0"]
    condition = x > y
    statements, _ = cxx([ops.where(condition, x, y), ops.where(condition, y, x)], NAMES)
    assert statements == ["const bool t0 = x > y;"]


def test_an_argument_that_the_text_repeats_gets_a_local():
    assert cxx([ops.maximum(x * y, z)], NAMES) == (
        ["const double t0 = x * y;"],
        ["t0 >= z || t0 != t0 ? t0 : z"],
    )


def test_variables_are_written_as_told_and_locals_begin_with_the_prefix():
    assert text(x * y, {"x": "in[0]", "y": "a.value"}) == "in[0] * a.value"
    statements, _ = cxx([(x * y) * (x * y)], {"x": "t0", "y": "t1.value"}, prefix="u")
    assert statements == ["const double u0 = t0 * t1.value;"]


def test_constants_are_exact():
    for value in (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 1e22, 12345678.0):
        assert float(text(constant(value))) == value
    assert text(constant(-0.0)) == "(-0.0)"
    assert text(x * -2.5) == "x * (-2.5)"
    assert text(constant(math.inf)) == "HUGE_VAL"
    assert text(x + -math.inf) == "x + (-HUGE_VAL)"
    assert text(constant(math.nan)) == "double(NAN)"
    assert text(constant(True)) == "true"


def test_a_long_chain_is_cut_into_locals():
    node = x
    for _ in range(4_000):
        node = ops.sin(node) + y
    statements, results = cxx([node], NAMES)
    assert len(statements) == 8_000 // (NESTING + 1)
    assert max(line.count("(") for line in [*statements, *results]) <= 2 * NESTING


def test_a_variable_without_a_name_is_an_error():
    with pytest.raises(Error, match="the variable y has no name in C"):
        cxx([x + y], {"x": "x"})


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.25, 1e300, 5e-324, math.inf, -math.inf, math.nan]


def random_graph(chance):
    """Three outputs over three variables; every kind of operation, special constants, much sharing."""
    reals = [x, y, z, constant(chance.choice(SPECIAL)), constant(chance.uniform(-3, 3))]
    truths = [variable("c", boolean), x > y]
    for _ in range(chance.randint(1, 14)):
        operation = TABLE[chance.choice(sorted(TABLE))]
        arguments = [chance.choice(reals if t is real else truths) for t in operation.arguments]
        (reals if operation.result is real else truths).append(operation(*arguments))
    return [reals[-1], reals[-2], truths[-1]]


def compile_functions(outputs_of_each):
    """One shared library with a function for each list of outputs."""
    names = {"x": "in[0]", "y": "in[1]", "z": "in[2]", "c": "(in[3] != 0.0)"}
    lines = ["#include <math.h>"]
    for number, outputs in enumerate(outputs_of_each):
        statements, results = cxx(outputs, names)
        lines += [f'extern "C" [[gnu::visibility("default")]] void f{number}(const double *in, double *out) {{']
        lines += statements
        lines += [f"out[{i}] = {result};" for i, result in enumerate(results)] + ["}"]
    return ctypes.CDLL(str(cache.build("\n".join(lines), optimise=1)))


def call(library, number, point, count):
    given, out = (ctypes.c_double * 4)(*point), (ctypes.c_double * count)()
    getattr(library, f"f{number}")(given, out)
    return list(out)


def test_compiled_equals_interpreted():
    chance = random.Random(20240229)
    single = [
        [
            operation(
                *(variable(n, t) for n, t in zip("cxy" if name == "where" else "xy", operation.arguments, strict=False))
            )
        ]
        for name, operation in TABLE.items()
        if name == "where" or boolean not in operation.arguments
    ]
    graphs = single + [random_graph(chance) for _ in range(60)]
    gradients = [generate_adjoints([outputs[0]], [1.0], [x, y, z]) for outputs in graphs]
    graphs += [found for g in gradients if (found := [a for a in g.values() if a is not None])]
    graphs += [simplify(outputs) for outputs in graphs]
    library = compile_functions(graphs)
    points = [[chance.uniform(-3, 3) for _ in "xyz"] for _ in range(4)]
    points += [[chance.choice(SPECIAL) for _ in "xyz"] for _ in range(8)]
    for number, outputs in enumerate(graphs):
        for point in points:
            truth = chance.random() < 0.5
            expected = evaluate(outputs, dict(zip("xyz", point, strict=True)) | {"c": truth})
            got = call(library, number, [*point, truth], len(outputs))
            assert got == pytest.approx(list(map(float, expected)), rel=1e-9, abs=0.0, nan_ok=True), (number, point)


def test_operations_that_divide_say_so():
    for operation in TABLE.values():
        spellings = [operation.cxx, *(spelling for _, spelling in operation.cxx_at)]
        texts = [spelling.format(*"abc"[: len(operation.arguments)]) for spelling in spellings]
        divides = any(" / " in text or "sqrt(" in text for text in texts)
        assert divides == (Trait.DIVIDES in operation.traits), operation.name


def test_every_name_that_the_table_calls_is_of_math_h():
    of_math_h = "exp expm1 exp2 log log1p log2 log10 sqrt cbrt pow hypot fabs fmax fmod copysign floor ceil trunc rint"
    of_math_h += " sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh"
    texts = [operation.cxx.format(*"abc"[: len(operation.arguments)]) for operation in TABLE.values()]
    called = {name for text in texts for name in re.findall(r"([a-z_]\w*)\(", text)}
    assert called == set(of_math_h.split())
