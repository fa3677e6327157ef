"""Time before a program runs: import, checks, compilation, and a hit in the cache."""

from __future__ import annotations

import random
import tempfile

from .common import Row, python
from .wsj import PROGRAM

# A process that prints the seconds for checking a program, and those for the first value from there.
FIRST_VALUE = """
import time
import dynagrad as dg
start = time.perf_counter()
program = dg.Program({program!r})
checked = time.perf_counter()
value = program.run({facts!r})["goal"]
print(checked - start, time.perf_counter() - checked)
"""
CKY = FIRST_VALUE.format(
    program=PROGRAM,
    facts={
        "rewrite/3": [("TOP", "np", "vp", 1.0), ("vp", "v", "np", 1.0)],
        "rewrite/2": [("np", "Mary", 0.5), ("np", "John", 0.5), ("v", "likes", 1.0)],
        "word/3": [("Mary", 0, 1), ("likes", 1, 2), ("John", 2, 3)],
        "end/1": [(3,)],
    },
)
OTHER = FIRST_VALUE.format(program="goal += a(X) * b(X).", facts={"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
IMPORT = """
import time
start = time.perf_counter()
import dynagrad
print(time.perf_counter() - start)
"""


def compiling() -> list[Row]:
    """The CKY program to its first value: on a new machine, after another program, and from the cache."""
    cold: list[float] = []
    warm: list[float] = []
    cached: list[float] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(sum(python(CKY, folder)))
        with tempfile.TemporaryDirectory() as folder:
            python(OTHER, folder)
            warm.append(sum(python(CKY, folder)))
            for _ in range(3):
                cached.append(sum(python(CKY, folder)))
    what = "CKY program to first value, "
    return [
        Row(what + "nothing compiled before", min(cold), target=8.0),
        Row(what + "another program compiled before", min(warm), target=2.0),
        Row(what + "from the cache", min(cached), target=0.05),
    ]


def importing() -> list[Row]:
    return [Row("import dynagrad", min(python(IMPORT)[0] for _ in range(7)), target=0.3)]


def large(predicates: int, rules: int = 5000) -> str:
    """A program with so many rules and predicates: a lexical rule for each predicate, the rest are binary."""
    pick = random.Random(0).randrange
    text = [f"nt{p}(I,K) += 0.1 * word(w{p % 50},I,K)." for p in range(predicates)]
    for i in range(rules - predicates - 1):
        text.append(f"nt{i % predicates}(I,K) += 0.3 * nt{pick(predicates)}(I,J) * nt{pick(predicates)}(J,K).")
    return "\n".join([*text, "goal += nt0(0,N) * end(N)."])


def many_rules() -> list[Row]:
    """Programs of 5,000 and 10,000 rules: checked, and compiled in a cache folder of their own."""
    rows = []
    facts = {"word/3": [(f"w{i}", i, i + 1) for i in range(4)], "end/1": [(4,)]}
    for rules, predicates in ((5000, 400), (5000, 2000), (10000, 2000)):
        with tempfile.TemporaryDirectory() as folder:
            check, compile_ = python(FIRST_VALUE.format(program=large(predicates, rules), facts=facts), folder)
        what = f"{rules:,} rules over {predicates:,} predicates: "
        rows.append(Row(what + "checks", check, target=5.0))
        rows.append(Row(what + "compiles and runs", compile_, target=60.0))
    return rows
