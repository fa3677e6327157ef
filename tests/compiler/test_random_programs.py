"""Random Python functions, with choices, loops, early exits, lists, dicts, arrays changed in place and closures:
specialised, they return what Python returns, or are refused for a known reason. Costs a second.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.specialising import through_graph
from dynagrad.errors import LiftError

HEAD = """import numpy as np
def soft(v):
    return np.tanh(v) * 2.0
def f(x, q):
    y, z, a, xs, p, d = q[0], 0.5, q * 1.0, [x, 1.0], (x, (q[1], 2.0)), {"u": x, "v": 1.0}
    k = lambda v: v
    def g(v):
        return soft(v * z)
    def h(v):
        if v > 0.3:
            return v * 0.5
        return v + y
    def bump(v):
        nonlocal y
        y = soft(y + v)
        a[0] = y
"""
LAST = "    return x + y * z + a.sum() + sum(xs) + p[0] * p[1][0] + d['u'] * d['v']\n"
PLACES = ["a[0]", "a[1]", "a[2]", "xs[0]", "xs[1]", "p[0]", "p[1][0]", "d['u']", "d['v']", "x", "y", "z", "1.0", "0.5"]
ALLOWED = ("cannot be changed in place", "the function <lambda>")  # what may be refused


class Writer:
    """Writes a random function. `ints` are the whole numbers that are there."""

    def __init__(self, seed: int) -> None:
        self.random, self.ints, self.count, self.depth = random.Random(seed), [], 0, 0  # type: ignore[var-annotated]

    def value(self, depth: int = 0) -> str:
        r = self.random
        if depth > 2 or r.random() < 0.3:
            return r.choice(PLACES + self.ints)
        one, other = self.value(depth + 1), self.value(depth + 1)
        return r.choice(
            [
                f"({one} {r.choice('+-*')} {other})",
                f"np.{r.choice(['sin', 'cos'])}({one})",
                f"({one} if {self.condition(depth + 1)} else {other})",
                f"{r.choice(['max', 'min'])}({one}, {other})",
                f"{r.choice('ghk')}({one})",
                f"abs({one})",
                r.choice(["a.sum()", "sum(xs)", "len(xs)", "(a @ a)", "a[1:].max()", f"a[a > {one}].sum()"]),
                f"a[{r.choice(self.ints)} % 3]" if self.ints else "x",
            ]
        )

    def condition(self, depth: int = 0) -> str:
        r = self.random
        if depth < 3 and r.random() < 0.3:
            return f"({self.condition(depth + 1)} {r.choice(['and', 'or'])} not {self.condition(depth + 1)})"
        if self.ints and r.random() < 0.2:
            return f"{r.choice(self.ints)} % 2 == 0"
        if depth < 3 and r.random() < 0.15:
            whole = r.choice(["len(xs)", "0", "int(x)", *(f"{i} % 2" for i in self.ints)])
            return f"({whole} {r.choice(['and', 'or'])} {self.condition(depth + 1)})"
        return f"{self.value(depth + 1)} {r.choice(['<', '>', '<='])} {self.value(depth + 1)}"

    def block(self, indent: str) -> list[str]:
        return [line for _ in range(self.random.randrange(1, 4)) for line in self.statement(indent)]

    def statement(self, indent: str) -> list[str]:
        r, new = self.random, f"soft({self.value()})"
        if self.depth < 3 and r.random() < 0.35:
            self.depth += 1
            found = r.choice([self.choice, self.loop, self.repeat, self.endless])(indent)
            self.depth -= 1
            return found
        place = r.choice(["0", "1", "-1", *(f"{i} % 3" for i in self.ints)])
        change = r.choice(["=", "+=", "-=", "*="])
        return r.choice(
            [
                [f"{indent}{r.choice('xyz')} {change} {new}"],
                [f"{indent}x, y = {new}, soft({self.value()})"],
                [f"{indent}a[{place}] {change} {new}"],
                [f"{indent}xs[{r.choice('01')}] {change} {new}"],
                [f"{indent}p = ({new}, (y, p[1][1]))"],
                [f"{indent}d['{r.choice('uv')}'] {change} {new}"],
                [f"{indent}a = a * 0.5 + {new}"],
                [f"{indent}b = a", f"{indent}b[1:] = a[:2] * 0.3", f"{indent}b {change.replace('*=', '-=')} {new}"],
                [f"{indent}k = lambda v: soft(v * {r.choice('xyz')} + {r.choice('xy')})"],
                [f"{indent}bump({new})"],
                [f"{indent}a[a {r.choice('<>')} {self.value(2)}] {change} {new}"],
                [f"{indent}a.reshape(3, 1)[{r.choice('012')}] {change} {new}", f"{indent}a[::-1].T[0] {change} 0.3"],
                [f"{indent}with np.errstate(all='ignore'):", f"{indent}    z {change} {new}"],
            ]
        )

    def choice(self, indent: str) -> list[str]:
        inner = indent + "    "
        lines = [f"{indent}if {self.condition()}:", *self.block(inner)]
        if self.random.random() < 0.2:
            ways = ["return x + y", "break", "continue"] if self.ints else ["return x + y"]
            lines.append(inner + self.random.choice(ways))
        return [*lines, f"{indent}else:", *self.block(inner)] if self.random.random() < 0.6 else lines

    def loop(self, indent: str) -> list[str]:
        rounds = self.random.choice(["2", "3", "17", "int(abs(x) * 3) % 7"]) if self.depth < 3 else "2"
        return self._counted(indent, f"for NAME in range({rounds}):", False)

    def repeat(self, indent: str) -> list[str]:
        return self._counted(indent, f"while NAME < {self.random.choice('36')} and {self.condition()}:", True)

    def endless(self, indent: str) -> list[str]:
        """A loop that is left by `return`, or by `break` too."""
        name, inner = f"i{self.count}", indent + "    "
        self.count += 1
        self.ints.append(name)
        ways = ["return x - z", "return x - z", "break"]
        leave = [f"{inner}if {name} > {self.random.choice('25')}:", f"{inner}    {self.random.choice(ways)}"]
        body = [f"{inner}{name} += 1", *self.block(inner), *leave, *self.block(inner)]
        self.ints.remove(name)
        return [f"{indent}{name} = 0", f"{indent}while True:", *body]

    def _counted(self, indent: str, head: str, counting: bool) -> list[str]:
        name = f"i{self.count}"
        self.count += 1
        inner, before = indent + "    ", [f"{indent}{name} = 0"] if counting else []
        self.ints.append(name)
        body = self.block(inner)
        self.ints.remove(name)
        step = [f"{inner}{name} += 1"] if counting else []
        otherwise = [f"{indent}else:", *self.block(inner)] if self.random.random() < 0.3 else []
        return [*before, indent + head.replace("NAME", name), *step, *body, *otherwise]

    def program(self) -> str:
        lines = [line for _ in range(3) for line in self.block("    ")]
        return HEAD + "\n".join(lines) + "\n" + LAST


@pytest.mark.parametrize("seed", range(20))
def test_random_functions(seed: int, tmp_path: Path) -> None:
    file = tmp_path / f"random_{seed}.py"
    file.write_text(Writer(seed).program())
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for x, q in ((0.7, [0.3, -0.2, 0.9]), (-1.3, [1.3, 0.2, -0.9])):
        wanted = module.f(x, np.array(q))
        try:
            found = through_graph(module.f, x, np.array(q))
        except LiftError as refused:
            assert any(reason in str(refused) for reason in ALLOWED), refused
            return
        assert np.isclose(found, wanted, rtol=1e-6, atol=1e-9), file.read_text()
