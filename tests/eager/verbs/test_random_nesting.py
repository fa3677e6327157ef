"""Random terms of the lambda calculus with nested derivatives, of numbers, functions and pairs of these, against
differences in 100 digits.

A term is text, so one term runs with every kind of verb for its derivatives, and compiled. The oracle takes differences
of calls, by which the derivative of a function is defined. 160 terms, some ten seconds.
"""

from __future__ import annotations

import importlib.util
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import through_graph

R = "R"
RR = (R, R)
STEP = mpmath.mpf(10) ** -18
SEEDS = """
    647 1930 3077 3096 5625 5730 5847 7190 7354 8394 8839 9167 9518 11535 11587 11971 13410 13581 13613 13834 14329
    15388 16321 16450 16591 17054 18043 18333 18757 18774 19109 19688 19736 20255 20337 21093 22005 22836 22994
    23998 24113 24503 24932 25574 26875 26958 27608 27884 28736 29108 29110 29454 30716 30816 30840 31126 31213
    32498 33442 34580 34614 35093 35647 35713 38784 40106 40296 40297 41024 42351 43133 44674 44684 45049 45605
    46644 47254 47367 47433 48556 49631 50024 51008 51051 52875 53059 54855 55114 55391 56338 56765 57120 58041
    58348 58453 59392 59660 59727 60849 61414 62188 62244 63218 63452 64153 65073 66702 67111 67164 68859 68865
    72817 73168 73198 73296 73623 74739 75155 77463 78109 79211 79372 79500 81832 81870 81881 83211 83561 83576
    84161 84965 85864 86008 87237 87369 87453 87744 88651 88947 89128 89601 89962 91533 92249 92332 93226 93299
    93473 93966 94267 94771 95158 99593 99618 109737 112506 112547 114277 128192 133350
"""
"""Of terms in which three slopes matter or more, out of the first few hundred thousand; `found` finds others."""
VERBS = ["dg.derivative", "dg.jacfwd", "dg.jacrev", "dg.grad"]


class Terms:
    """Writes terms of a type. A derivative in them is a hole: `V<1>`, or `V<0>` where its result has pairs."""

    def __init__(self, seed: int) -> None:
        self.random, self.count = random.Random(seed), 0

    def name(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def term(self, wanted: Any, names: dict[str, Any], depth: int) -> str:
        ways = [name for name, t in names.items() if t == wanted]
        if depth <= 0:
            return self.recent(ways) if ways and self.random.random() < 0.9 else self.least(wanted, names)
        if ways and self.random.random() < 0.15:
            return self.recent(ways)
        if wanted == R:
            return self.number(names, depth)
        if self.random.random() < 0.3:
            return self.derivative(wanted, names, depth)
        if wanted == RR and self.random.random() < 0.2:
            return f"V<1>({self.term(RR, names, depth - 1)})"
        return self.least(wanted, names, depth)

    def recent(self, names: list[str]) -> str:
        """One of these names, rather the last."""
        return names[-1] if self.random.random() < 0.75 else self.random.choice(names)

    def least(self, wanted: Any, names: dict[str, Any], depth: int = 0) -> str:
        """A term that is what its type says at once."""
        if wanted == R:
            return self.random.choice(["0.3", "0.8", "1.1"])
        if wanted[0] == "pair":
            return f"({self.term(wanted[1], names, depth - 1)}, {self.term(wanted[2], names, depth - 1)})"
        return f"({self.function(*wanted, names, depth)})"

    def function(self, given: Any, wanted: Any, names: dict[str, Any], depth: int) -> str:
        """A function of a new name, which is used if that can be."""
        x = self.name()
        for _ in range(6):
            body = self.term(wanted, {**names, x: given}, depth - 1)
            if x in body and (body != x or given != R):
                break
        return f"lambda {x}: {body}"

    def number(self, names: dict[str, Any], depth: int) -> str:
        functions = [(name, t) for name, t in names.items() if t != R and "pair" not in str(t)]
        if functions and self.random.random() < 0.4:
            name, t = functions[-1] if self.random.random() < 0.75 else self.random.choice(functions)
            return self.called(name, t, names, depth)
        way = self.random.choice(["sin", "times", "square", "call", "derivative", "derivative", "one of two"])
        if way == "derivative":
            return self.derivative(R, names, depth)
        if way == "call":
            given = self.type()
            return f"{self.least((given, R), names, depth)}({self.term(given, names, depth - 1)})"
        a = self.term(R, names, depth - 1)
        if way == "one of two":
            pair = self.term(("pair", R, RR), names, depth - 1)
            return f"{pair}[0]" if self.random.random() < 0.3 else f"{pair}[1]({a})"
        if way == "times":
            return f"({a} * {self.term(R, names, depth - 1)})"
        return {"sin": f"sin({a})", "square": f"(lambda s: s * s + {self.recent(list_of(names))})({a})"}[way]

    def called(self, f: str, t: Any, names: dict[str, Any], depth: int) -> str:
        """A function called until a number comes out."""
        while t != R and t[0] != "pair":
            f, t = f"{f}({self.term(t[0], names, depth - 1)})", t[1]
        return f if t == R else f"{f}[0]"

    def type(self) -> Any:
        return self.random.choice([R, R, RR, RR, (RR, RR), (R, RR), (RR, R), ("pair", R, RR)])

    def derivative(self, wanted: Any, names: dict[str, Any], depth: int) -> str:
        pairs = "pair" in str(wanted)
        point = self.term(R, names, depth - 2)
        if wanted == R and self.random.random() < 0.7:  # by way of a function that is called afterwards
            whole = self.random.choice([RR, (RR, R), (RR, RR), (R, RR)])
            return self.called(self.derivative(whole, names, depth - 1), whole, names, depth - 1)
        return f"V<{int(not pairs)}>({self.function(R, wanted, names, depth)})({point})"


def list_of(names: dict[str, Any]) -> list[str]:
    """The names of numbers."""
    return [name for name, t in names.items() if t == R]


# -- the oracle --------------------------------------------------------------------------------------------------------


class TooMuch(Exception):
    pass


class Differences:
    """Derivatives as differences, and how many operations they took."""

    def __init__(self, most: int) -> None:
        self.left = most
        self.slopes: set[str] = set()  # that are neither 0 nor 1

    def sin(self, x: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise TooMuch
        return mpmath.sin(x)

    def derivative(self, f: Any) -> Any:
        def at(x: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise TooMuch
            return self.between(f(x + STEP), f(x - STEP))

        return at

    def between(self, up: Any, down: Any) -> Any:
        if callable(up):
            return lambda *given: self.between(up(*given), down(*given))
        if isinstance(up, tuple):
            return tuple(self.between(a, b) for a, b in zip(up, down, strict=True))
        slope = (up - down) / (2 * STEP)
        if min(abs(slope), abs(slope - 1)) > 1e-9:
            self.slopes.add(mpmath.nstr(slope, 12))
        return slope


def value(oracle: Differences, text: str, x: Any) -> Any:
    numbers = re.sub(r"\b(\d+\.\d+)", r"mpf('\1')", re.sub(r"V<\d>", "D", text))
    space = {"sin": oracle.sin, "D": oracle.derivative, "mpf": mpmath.mpf}
    return eval(f"lambda x: {numbers}", space)(x)


def found(seeds: Iterable[int], slopes: int) -> Iterator[tuple[int, str, float]]:
    """Terms of a number with so many slopes that matter, which take no more than some operations; no two alike."""
    seen = set()
    for seed in seeds:
        text = Terms(seed).term(R, {"x": R}, 5)
        names = list(dict.fromkeys(re.findall(r"x\d+", text)))
        shape = re.sub(r"x\d+|\d\.\d", lambda m, names=names: str(names.index(m[0])) if m[0] in names else "c", text)  # type: ignore[misc]
        if not 2 <= text.count("V<") <= 7 or len(text) > 600 or shape in seen:
            continue
        with mpmath.workdps(100):
            oracle = Differences(1500)
            try:
                wanted = value(oracle, text, mpmath.mpf("0.7"))
            except (TooMuch, RecursionError):
                continue
        if abs(wanted) < 1e6 and len(oracle.slopes) >= slopes:
            seen.add(shape)
            yield seed, text, float(wanted)


@pytest.fixture(scope="module")
def terms() -> dict[int, tuple[str, float]]:
    return {seed: (text, wanted) for seed, text, wanted in found(map(int, SEEDS.split()), 1)}


def filled(text: str, seed: int, verbs: list[str]) -> str:
    """The term with verbs for its derivatives, where the last may be no good for pairs."""
    choice = random.Random(seed)

    def one(m: re.Match[str]) -> str:
        usable = verbs if m[1] == "1" else [v for v in verbs if v != "dg.grad"] or ["dg.jacrev"]
        return choice.choice(usable)

    return re.sub(r"V<(\d)>", one, text)


@pytest.mark.parametrize(
    "verbs",
    [["dg.jacfwd"], ["dg.jacrev"], ["dg.grad"], VERBS, VERBS[1:3], VERBS[2:]],
    ids=lambda verbs: "-".join(verbs),
)
def test_derivatives_are_the_differences_of_calls(terms: dict[int, tuple[str, float]], verbs: list[str]) -> None:
    assert len(terms) == 160
    for seed, (text, wanted) in terms.items():
        run = filled(text, seed, verbs)
        found = eval(f"lambda x: {run}", {"sin": np.sin, "dg": dg})(0.7)
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9), run


def test_the_derivatives_of_terms(terms: dict[int, tuple[str, float]]) -> None:
    for seed, (text, _) in list(terms.items())[:60]:
        with mpmath.workdps(100):
            o = Differences(10**6)
            wanted = float(o.derivative(lambda x, o=o, text=text: value(o, text, x))(mpmath.mpf("0.7")))
        run = filled(text, seed, VERBS)
        f = eval(f"lambda x: {run}", {"sin": np.sin, "dg": dg})
        for verb in (dg.derivative, dg.grad):
            assert verb(f)(0.7) == pytest.approx(wanted, rel=1e-9, abs=1e-9), run


def test_terms_through_graphs(terms: dict[int, tuple[str, float]], tmp_path: Path) -> None:
    some = list(terms.items())[:80]
    lines = ["import numpy as np", "import dynagrad as dg", "sin = np.sin"]
    for seed, (text, _) in some:
        lines += [f"def f{seed}(x):", f"    return {filled(text, seed + 1, VERBS)}"]
    path = tmp_path / "terms.py"
    path.write_text("\n".join(lines) + "\n")
    spec = importlib.util.spec_from_file_location("terms", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for seed, (text, wanted) in some:
        assert through_graph(getattr(module, f"f{seed}"), 0.7) == pytest.approx(wanted, rel=1e-9, abs=1e-9), text
