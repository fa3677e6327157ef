"""Tiny programs, each showing one feature of the rule language, with answers worked out by hand.

The oracle and the engine are both tested on them. `expected` lists, for every predicate that it mentions, all derived
items; `empty` names predicates without any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp, inf, log, sqrt, tanh
from typing import Any

from oracle import Semiring, Struct, user_semiring


@dataclass(frozen=True)
class Case:
    """A program without its semiring declaration, its facts, and what must come out."""

    name: str
    source: str
    facts: Mapping[str, Any]
    expected: Mapping[str, Any]
    semiring: str | None = "real"  # a name, "shifted" for the user-defined one below, None for plain arithmetic
    empty: tuple[str, ...] = ()
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    declared: bool = False  # the source declares its semiring itself


# The reals moved down by one: a user-defined semiring of arithmetic alone, with a zero and a one of its own.
SHIFTED: dict[str, Any] = {
    "zero": -1.0,
    "one": 0.0,
    "plus": lambda a, b: a + b + 1.0,
    "times": lambda a, b: a + b + a * b,
}


def oracle_semiring(name: str | None) -> str | Semiring | None:
    """The semiring of a case as the oracle takes it."""
    return user_semiring(**SHIFTED) if name == "shifted" else name


CASES = (
    # -- sums and products
    Case(
        "a sum of products",
        "goal += a(X) * b(X).",
        {"a/1": [("x", 2.0), ("y", 3.0), ("z", 100.0)], "b/1": [("x", 5.0), ("y", 7.0)]},
        {"goal": 2.0 * 5.0 + 3.0 * 7.0},
    ),
    Case(
        "once for every distinct binding",
        "goal += a(X) * b(Y).  only(X) += a(X) * b(_).",
        {"a/1": [("x", 2.0), ("y", 3.0)], "b/1": [("u", 5.0), ("v", 7.0)]},
        {"goal": (2.0 + 3.0) * (5.0 + 7.0), "only(x)": 24.0, "only(y)": 36.0},
    ),
    Case(
        "an item times itself",
        "a += r. a += q. c += a * a. d += a * a * a.",
        {"r/0": [(3.0,)], "q/0": [(2.0,)]},
        {"a": 5.0, "c": 25.0, "d": 125.0},
    ),
    Case(
        "one item matches two antecedents among others",
        "c(X,Y) += a(X) * a(Y).",
        {"a/1": [("u", 2.0), ("v", 3.0)]},
        {"c(u,u)": 4.0, "c(u,v)": 6.0, "c(v,u)": 6.0, "c(v,v)": 9.0},
    ),
    Case(
        "a nonlinear cycle",
        "a += r. a += a * a.",
        {"r/0": [(0.2,)]},
        {"a": (1 - sqrt(1 - 4 * 0.2)) / 2},
    ),
    Case(
        "a linear cycle",
        "p(Y) += start(Y). p(Y) += p(X) * e(X,Y).",
        {"start/1": [("a", 1.0)], "e/2": [("a", "b", 0.5), ("b", "a", 0.5)]},
        {"p(a)": 4 / 3, "p(b)": 2 / 3},
    ),
    Case(
        "a constant factor, and a rule without items",
        "p += 0.25 * q * 2. p += 3. n += -1.5 * q.",
        {"q/0": [(10.0,)]},
        {"p": 8.0, "n": -15.0},
    ),
    Case(
        "left recursion over positions",
        "count(0) += one. count(I+1) += count(I) * one for I < 3. count(I+1) += count(I-1) * one for 0 < I, I < 3.",
        {"one/0": [(1.0,)]},
        {"count(0)": 1.0, "count(1)": 1.0, "count(2)": 2.0, "count(3)": 3.0},
    ),
    # -- what is derived
    Case(
        "weight zero is derived",
        "p(X) += a(X) * b(X).",
        {"a/1": [("x", 0.0), ("y", 1.0), ("z", 2.0)], "b/1": [("x", 5.0), ("y", 0.0)]},
        {"p(x)": 0.0, "p(y)": 0.0},
    ),
    Case(
        "cancellation does not undo a derivation",
        "p += a(X). q += p * b. s += SIDE(p) * b.",
        {"a/1": [("x", 1.0), ("y", -1.0)], "b/0": [(7.0,)]},
        {"p": 0.0, "q": 0.0, "s": 7.0},
    ),
    Case(
        "duplicate facts add",
        "p(X) += a(X).",
        {"a/1": [("x", 1.0), ("y", 0.5), ("x", 2.0), ("x", 1.0)]},
        {"p(x)": 4.0, "p(y)": 0.5},
    ),
    Case(
        "a fact without a number has weight one",
        "p += a(X) * b(X).",
        {"a/1": [("x",), ("y",)], "b/1": [("x", 2.0), ("y", 3.0)]},
        {"p": 5.0},
    ),
    Case(
        "axioms, and facts for a predicate that rules define",
        ":- input p/1. a(x) = 2. a(y) = -0.5. a(x) = 1. p(X) += a(X). q += p(X).",
        {"p/1": [("x", 10.0), ("z", 1.0)]},
        {"a(x)": 3.0, "a(y)": -0.5, "p(x)": 13.0, "p(y)": -0.5, "p(z)": 1.0, "q": 13.5},
    ),
    Case(
        "nothing matches",
        "p(X) += a(X) * b(X). q += p(_).",
        {"a/1": [("x", 1.0)], "b/1": [("y", 1.0)]},
        {},
        empty=("p/1", "q/0"),
    ),
    Case(
        "SIDE counts as one, whatever the value",
        "p += SIDE(a(X)) * b(X).",
        {"a/1": [("x", 5.0), ("y", 0.0)], "b/1": [("x", 2.0), ("y", 3.0), ("z", 100.0)]},
        {"p": 5.0},
    ),
    # -- matching
    Case(
        "constants in items",
        "goal += c(s,0,N) * end(N). c(X,0,2) += d(X,7).",
        {"d/2": [("s", 7, 0.5), ("s", 8, 9.0), ("np", 7, 4.0)], "end/1": [(2, 3.0), (3, 100.0)]},
        {"c(s,0,2)": 0.5, "c(np,0,2)": 4.0, "goal": 1.5},
    ),
    Case(
        "a variable twice in one item",
        "loop(X) += e(X,X). tri += e3(X,Y,X).",
        {"e/2": [("a", "a", 2.0), ("a", "b", 3.0)], "e3/3": [("a", "b", "a", 1.0), ("a", "a", "b", 10.0)]},
        {"loop(a)": 2.0, "tri": 1.0},
    ),
    Case(
        "solving arithmetic in a body",
        "p(I) += a(I+1). q(I) += a(3-I). h(I) += a(2*I). n(I) += a(-I).",
        {"a/1": [(0, 1.0), (1, 2.0), (4, 4.0)]},
        {
            "p(-1)": 1.0,
            "p(0)": 2.0,
            "p(3)": 4.0,
            "q(3)": 1.0,
            "q(2)": 2.0,
            "q(-1)": 4.0,
            "h(0)": 1.0,
            "h(2)": 4.0,
            "n(0)": 1.0,
            "n(-1)": 2.0,
            "n(-4)": 4.0,
        },
    ),
    Case(
        "arithmetic in a body over variables that other items bind",
        "p(I,J) += a(I) * b(J) * c(I+J). q(I,J) += c(I*J) * a(I) * b(J).",
        {"a/1": [(1, 2.0), (2, 3.0)], "b/1": [(1, 5.0), (2, 7.0)], "c/1": [(3, 1.0), (4, 10.0)]},
        {"p(1,2)": 14.0, "p(2,1)": 15.0, "p(2,2)": 210.0, "q(2,2)": 210.0},
    ),
    Case(
        "computing in a head",
        "p(I*2-1) += a(I). d(I // 2, I mod 3) += a(I).",
        {"a/1": [(0, 1.0), (3, 2.0), (7, 4.0)]},
        {"p(-1)": 1.0, "p(5)": 2.0, "p(13)": 4.0, "d(0,0)": 1.0, "d(1,0)": 2.0, "d(3,1)": 4.0},
    ),
    Case(
        "equations bind and compare",
        "p(K) += a(I) for K = I*I, K < 10. q += a(I) * a(J) for I = J+1. r(X) += a(_) for X = f(b).",
        {"a/1": [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0)]},
        {"p(1)": 1.0, "p(4)": 2.0, "p(9)": 4.0, "q": 2.0 + 8.0 + 32.0, "r(f(b))": 15.0},
    ),
    Case(
        "an equation solved backwards, and one that takes a term apart",
        "p(I) += a(K) for K = 2*I+1. q(X) += t(T) for f(X,b) = T.",
        {"a/1": [(1, 1.0), (2, 2.0), (7, 4.0)], "t/1": [(Struct("f", (1, "b")), 3.0), (Struct("f", (1, "c")), 5.0)]},
        {"p(0)": 1.0, "p(3)": 4.0, "q(1)": 3.0},
    ),
    Case(
        "comparisons of arguments",
        "lt += a(I) * b(J) for I < J. le += a(I) * b(J) for I =< J. gt += a(I) * b(J) for I > J."
        "ge += a(I) * b(J) for I >= J. eq += a(I) * b(J) for I == J. ne += a(I) * b(J) for I != J."
        "sum += a(I) * b(J) for I + J == 3.",
        {"a/1": [(1, 1.0), (2, 10.0)], "b/1": [(1, 2.0), (2, 3.0)]},
        {"lt": 3.0, "le": 35.0, "gt": 20.0, "ge": 52.0, "eq": 32.0, "ne": 23.0, "sum": 23.0},
    ),
    Case(
        "comparisons of symbols and terms",
        "p(X,Y) += e(X,Y) for X != Y. q(X) += e(X,Y) for X == Y. r(X) += t(X) for X != f(a).",
        {
            "e/2": [("a", "a", 1.0), ("a", "b", 2.0)],
            "t/1": [(Struct("f", ("a",)), 1.0), (Struct("f", ("b",)), 2.0)],
        },
        {"p(a,b)": 2.0, "q(a)": 1.0, "r(f(b))": 2.0},
    ),
    Case(
        "symbols and integers in one column",
        "p(X) += a(X) * b(X). q(X) += a(X) for X != 1.",
        {"a/1": [("one", 1.0), (1, 2.0), (2, 4.0)], "b/1": [("one", 3.0), (1, 5.0)]},
        {"p(one)": 3.0, "p(1)": 10.0, "q(one)": 1.0, "q(2)": 4.0},
    ),
    Case(
        "a float in an argument is not an integer",
        "p += a(1.0). q += a(1). r(X) += a(X) * b(X).",
        {"a/1": [(1.0, 3.0), (1, 5.0), (2.5, 7.0)], "b/1": [(2.5, 2.0), (1.0, 1.0)]},
        {"p": 3.0, "q": 5.0, "r(2.5)": 14.0, "r(1.0)": 3.0},
    ),
    Case(
        "quoted symbols",
        """p += a('N P'). q += a("N P"). r += a('np'). s += a(np). t += a("Mary").""",
        {"a/1": [("N P", 2.0), ("np", 3.0), ("Mary", 5.0)]},
        {"p": 2.0, "q": 2.0, "r": 3.0, "s": 3.0, "t": 5.0},
    ),
    # -- compound terms
    Case(
        "compound terms are built and taken apart",
        "p(f(X,g(Y))) += a(X,Y). q(Y) += p(f(_,g(Y))). r(X) += p(f(X,X)). w(X) += p(f(X,g(X))).",
        {"a/2": [("u", "v", 2.0), ("u", "u", 3.0)]},
        {"p(f(u,g(v)))": 2.0, "p(f(u,g(u)))": 3.0, "q(v)": 2.0, "q(u)": 3.0, "w(u)": 3.0},
        empty=("r/1",),
    ),
    Case(
        "lists",
        "first(X) += l([X|_]). rest(R) += l([_|R]). pair(X,Y) += l([X,Y]). "
        "made([X,end]) += first(X). empty += l([]). npp(R) += l([n,pp|R]).",
        {"l/1": [(["n", "pp", "x"], 2.0), (["n", "pp"], 3.0), ([], 5.0)]},
        {
            "first(n)": 5.0,
            "rest([pp,x])": 2.0,
            "rest([pp])": 3.0,
            "pair(n,pp)": 3.0,
            "made([n,end])": 5.0,
            "empty": 5.0,
            "npp([x])": 2.0,
            "npp([])": 3.0,
        },
    ),
    Case(
        "slash terms",
        ":- input c/1. need(X) += c(_/X). same += c(slash(s,[np])). c(s/[]) += c(s/[np]) * found.",
        {"c/1": [(Struct("slash", ("s", Struct("cons", ("np", "nil")))), 0.5)], "found/0": [(4.0,)]},
        {"need([np])": 0.5, "need([])": 2.0, "same": 0.5, "c(s/[np])": 0.5, "c(s/[])": 2.0},
    ),
    Case(
        "recursion over a list",
        "len(L,0) += list(L) for L = []. sub(L) += list(L). sub(R) += SIDE(sub([_|R])) * list(_). "
        "at(X) += SIDE(sub([X|_])) * list(_).",
        {"list/1": [(["a", "b"], 1.0)]},
        {"sub([a,b])": 1.0, "sub([b])": 1.0, "sub([])": 1.0, "at(a)": 1.0, "at(b)": 1.0},
        empty=("len/2",),
    ),
    # -- negation
    Case(
        "negation of an earlier stratum",
        "p(X) += a(X) for not b(X). q(X) += a(X) for not p(X).",
        {"a/1": [("x", 1.0), ("y", 2.0), ("z", 4.0)], "b/1": [("y", 0.0)]},
        {"p(x)": 1.0, "p(z)": 4.0, "q(y)": 2.0},
    ),
    Case(
        "negation over any match",
        "leaf(X) += node(X) for not e(X,_). alone += one for not e(c,_).",
        {"node/1": [("a", 1.0), ("b", 2.0)], "e/2": [("a", "b", 1.0)], "one/0": [(1.0,)]},
        {"leaf(b)": 2.0, "alone": 1.0},
    ),
    Case(
        "unreached",
        "reach(X) += start(X). reach(Y) += reach(X) * e(X,Y). bad(X) += node(X) for not reach(X).",
        {
            "start/1": [("a", 1.0)],
            "e/2": [("a", "b", 1.0), ("c", "a", 1.0)],
            "node/1": [("a", 1.0), ("b", 1.0), ("c", 1.0)],
        },
        {"reach(a)": 1.0, "reach(b)": 1.0, "bad(c)": 1.0},
    ),
    # -- declarations
    Case(
        "the older spelling of the semiring, comments, and types",
        """:- valtype(term, real).   % as in the paper
        :- type e(symbol, symbol). % declared types
        :- type p(symbol | int).
        p(X) += e(X,_).            % a rule
        """,
        {"e/2": [("a", "b", 1.0), ("a", "c", 2.0)]},
        {"p(a)": 3.0},
        declared=True,
    ),
    Case(
        "a transient predicate is unfolded",
        ":- transient t/2. t(X,Z) += a(X,Y) * a(Y,Z). p(X) += t(X,X). q += t(X,_) * b(X).",
        {"a/2": [("u", "v", 2.0), ("v", "u", 3.0), ("u", "u", 5.0)], "b/1": [("u", 7.0)]},
        {"p(u)": 25.0 + 6.0, "p(v)": 6.0, "q": 7.0 * (25.0 + 6.0 + 10.0)},
    ),
    Case(
        "an external predicate",
        ":- external dist/2. p(I,J) += a(I) * a(J) * dist(I,J) for I < J.",
        {"a/1": [(0, 1.0), (2, 2.0), (5, 3.0)]},
        {"p(0,2)": 4.0, "p(0,5)": 15.0, "p(2,5)": 18.0},
        functions={"dist": lambda i, j: float(abs(i - j))},
    ),
    # -- constants of each kind, in columns of each kind: 1, 1.0, '1' and f(1) are four different things
    Case(
        "an integer in an equation, among symbols",
        "p += q(X) for X = 1. r += q(X) for 1 = X. s += q(X) for X == 1. t += q(X) for X != 1. u += q(_) for not q(1).",
        {"q/1": [("b", 2.0), ("c", 4.0)]},
        {"t": 6.0, "u": 6.0},
        empty=("p/0", "r/0", "s/0"),
    ),
    Case(
        "an integer from an equation into a column of symbols",
        "p(L) += q for L = 1. p(a) += q. p(b) += q.",
        {"q/0": [(1.0,)]},
        {"p(1)": 1.0, "p(a)": 1.0, "p(b)": 1.0},
    ),
    Case(
        "an integer from an equation into a term",
        "p(f(X)) += q(Y) for X = 3. r(X,f(X)) += q(Y) for X = 1.5. s([X|R]) += q(Y) for X = Y, R = [7].",
        {"q/1": [("b", 1.0)]},
        {"p(f(3))": 1.0, "r(1.5,f(1.5))": 1.0, "s([b,7])": 1.0},
    ),
    Case(
        "each constant meets itself alone, in a column of atoms",
        "i += q(X) for X = 1. f += q(X) for X = 1.0. s += q(X) for X = '1'. b += q(X) for X = b. "
        "n += q(X) for X = 2. oi += q(X) for X != 1. of += q(X) for X != 1.0. ii += q(1). ff += q(1.0). ss += q('1'). "
        "hi(X) += q(_) for X = 1. hf(X) += q(_) for X = 1.0. hs(X) += q(_) for X = '1'. all(X) += q(X) * hi(Y).",
        {"q/1": [("b", 1.0), (1, 2.0), (1.0, 4.0), ("1", 8.0)]},
        {
            "i": 2.0,
            "f": 4.0,
            "s": 8.0,
            "b": 1.0,
            "oi": 13.0,
            "of": 11.0,
            "ii": 2.0,
            "ff": 4.0,
            "ss": 8.0,
            "hi(1)": 15.0,
            "hf(1.0)": 15.0,
            "hs('1')": 15.0,
            "all(b)": 15.0,
            "all(1)": 30.0,
            "all(1.0)": 60.0,
            "all('1')": 120.0,
        },
        empty=("n/0",),
    ),
    Case(
        "each constant meets itself alone, in a column of terms",
        "i += q(X) for X = 1. f += q(X) for X = 1.0. s += q(X) for X = '1'. t += q(X) for X = f(1). "
        "u += q(f(X)) for X = 1. v += q(f(X)) for X == 1.0. w += q(f(X)) for X != 1. o += q(X) for X != f(1). "
        "none += q(f(X)) for X = a. absent += q(X) for not q(f(2)). there += q(X) for not q(Y), Y = 1.",
        {"q/1": [(Struct("f", (1,)), 1.0), (1, 2.0), (1.0, 4.0), ("1", 8.0), (Struct("f", ("1",)), 16.0)]},
        {"i": 2.0, "f": 4.0, "s": 8.0, "t": 1.0, "u": 1.0, "w": 16.0, "o": 30.0, "absent": 31.0},
        empty=("v/0", "none/0", "there/0"),
    ),
    Case(
        "an equation of two terms is one of each of their arguments",
        "p += q(X) for f(X,Y) = f(1,X), Y == 1. r(Y) += q(X) for f(Y,[]) = f(X,[]). n += q(X) for f(X) = g(X).",
        {"q/1": [("b", 1.0), (1, 2.0)]},
        {"p": 2.0, "r(b)": 1.0, "r(1)": 2.0},
        empty=("n/0",),
    ),
    Case(
        "a product is solved by a constant factor alone: times zero, any value would do",
        "p += q(I) * r(K,J) for K = I*J. s += q(I) * r(K,J) for K = 3*I.",
        {"q/1": [(0, 1.0), (2, 2.0)], "r/2": [(0, 7, 1.0), (2, 1, 10.0), (6, 3, 100.0), (7, 0, 1000.0)]},
        {"p": 1.0 + 20.0 + 200.0, "s": 200.0 + 1.0},
    ),
    Case(
        "the least and the largest integers",
        "p += q(-2147483648). s(X) += q(_) for X = -2147483648. t += q(X) for -X == 2147483648. "
        "u += q(X) for X > -9223372036854775808. v += q(X) for X - 9223372034707292160 < X. "
        "w += q(X) for X = -2147483647-1. x += q(X) for -X = -2147483647. y(f(X)) += q(X) for X =< -2147483648. "
        "z += q(X) for abs(X) == 2147483648. m(X) += q(Y) for X = min(Y, -2147483648).",
        {"q/1": [(-2147483648, 1.0), (2147483647, 2.0)]},
        {
            "p": 1.0,
            "s(-2147483648)": 3.0,
            "t": 1.0,
            "u": 3.0,
            "v": 3.0,
            "w": 1.0,
            "x": 2.0,
            "y(f(-2147483648))": 1.0,
            "z": 1.0,
            "m(-2147483648)": 3.0,
        },
    ),
    # -- conditions
    Case(
        "abs, min and max of integers",
        "m(K) += a(I) * a(J) for K = max(I,J). n(K) += a(I) * a(J) for K = min(I,J). d(X) += a(_) for X = abs(-3). "
        "near += a(I) * b(J) for abs(I-J) < 2. t(f(X)) += a(I) for X = max(2, abs(I-5)). "
        "one += one(max(1,2)) for max(1,2) = 2. far(I) += a(I) * b(J) for max(I,J) - min(I,J) >= 2, I = 2. "
        "high += a(I) for 3 = max(I,2). q(X) += one(I) for X = 'max'(I,0).",
        {"a/1": [(2, 1.0), (3, 10.0)], "b/1": [(1, 100.0), (5, 1000.0)], "one/1": [(2, 1.0)]},
        {
            "m(2)": 1.0,
            "m(3)": 120.0,
            "n(2)": 21.0,
            "n(3)": 100.0,
            "d(3)": 11.0,
            "near": 100.0,
            "t(f(3))": 1.0,
            "t(f(2))": 10.0,
            "far(2)": 1000.0,
            "high": 10.0,
            "q('max'(2,0))": 1.0,
        },
        empty=("one/0",),
    ),
    Case(
        "abs, min and max where nothing is solved for",
        "p += a(I,K) for K = abs(I). q += a(I,K) for abs(I) = K, I < 0. r(J) += a(I,K) for J = min(I,K) + 1, J = 0.",
        {"a/2": [(-2, 2, 1.0), (3, 3, 10.0), (-1, 3, 100.0)]},
        {"p": 11.0, "q": 1.0, "r(0)": 100.0},
    ),
    Case(
        "comparisons in a chain, and the other spelling of =<",
        "p += a(X) for 0 < X < 3. q += a(X) for 0 <= X =< 3 < 4. r += a(X) for 1 < 0 < X. s += a(X) for X == 2 <= 2.",
        {"a/1": [(0, 1.0), (1, 10.0), (2, 100.0), (3, 1000.0)]},
        {"p": 110.0, "q": 1111.0, "s": 100.0},
        empty=("r/0",),
    ),
    Case(
        "a condition that an item is derived",
        "p(X) += 1 for q(X). r += a(X) for q(X), X != u. s += a(X) for q(_), done. t += a(X) for none.",
        {"q/1": [("u", 5.0), ("v", 0.0)], "a/1": [("u", 1.0), ("v", 10.0)], "done/0": [(7.0,)], "none/0": []},
        {"p(u)": 1.0, "p(v)": 1.0, "r": 10.0, "s": 22.0},
        empty=("t/0",),
    ),
    Case(
        "a slash of symbols in a condition is a term",
        "p(X) += a(A) * a(B) for X = A/B, A != B. q(A) += c(X) for X = A/v.",
        {
            "a/1": [("u", 1.0), ("v", 10.0)],
            "c/1": [(Struct("slash", ("u", "v")), 2.0), (Struct("slash", (1, "v")), 3.0)],
        },
        {"p(u/v)": 10.0, "p(v/u)": 10.0, "q(u)": 2.0, "q(1)": 3.0},
    ),
    # -- facts and clauses
    Case(
        "a fact without a value is asserted with one, and adds to others",
        "edge(a,b). edge(b,[1,f(x)]). edge(a,b). w(a,b) = 2. w(a,b). p(X) += edge(X,_). q += w(a,b).",
        {"edge/2": [("a", "c", 0.5)]},
        {"p(a)": 2.5, "p(b)": 1.0, "q": 3.0},
    ),
    Case(
        "constants that differ in a part of a term",
        "p(f(1)). p(f(1.0)). p(f('1')). a += p(f(1)). b += p(f(1.0)) * 2. c += p(f('1')) * 4. "
        "d += p(f(X)) for X != 1.0.",
        {},
        {"a": 1.0, "b": 2.0, "c": 4.0, "d": 2.0},
    ),
    Case(
        "a fact without a value in log",
        "edge(a,b). p(X) += edge(X,_). q(X) += edge(X,Y) * w(Y).",
        {"w/1": [("b", -1.5)]},
        {"p(a)": 0.0, "q(a)": -1.5},
        semiring="log",
    ),
    Case(
        "a clause says what is derived",
        "path(X,Y) :- edge(X,Y). path(X,Z) :- path(X,Y), edge(Y,Z). far(X) :- path(a,X), not edge(a,X), X != a. "
        "yes :- 1 < 2. no :- path(a,_), 2 < 1. n += path(X,Y) for w(X).",
        {"edge/2": [("a", "b", 7.0), ("b", "c", 0.0), ("c", "a", 2.0)], "w/1": [("a", 5.0)]},
        {"far(c)": 1.0, "yes": 1.0, "n": 3.0, **{f"path({x},{y})": 1.0 for x in "abc" for y in "abc"}},
        semiring=None,
        empty=("no/0",),
    ),
    Case(
        "a clause in boolean is a rule as any other",
        "r(X) :- start(X). r(Y) |= r(X) * e(X,Y). r(Y) += r(X) * f(X,Y). s(X) :- r(X), not start(X). t(a).",
        {"start/1": [("a",)], "e/2": [("a", "b"), ("c", "d")], "f/2": [("b", "c")]},
        {"r(a)": True, "r(b)": True, "r(c)": True, "r(d)": True, "s(b)": True, "s(c)": True, "s(d)": True},
        semiring="boolean",
    ),
    # -- semirings
    Case(
        "log adds weights",
        "p += a(X) * b(X). q += p * -1.",
        {"a/1": [("x", log(2)), ("y", log(3)), ("z", -inf)], "b/1": [("x", log(5)), ("y", log(7)), ("z", 1.0)]},
        {"p": log(31), "q": log(31) - 1},
        semiring="log",
    ),
    Case(
        "a cycle in log",
        "p(Y) += start(Y). p(Y) += p(X) * e(X,Y).",
        {"start/1": [("a",)], "e/2": [("a", "b", log(0.5)), ("b", "a", log(0.5))]},
        {"p(a)": log(4 / 3), "p(b)": log(2 / 3)},
        semiring="log",
    ),
    Case(
        "underflow does not undo a derivation, and log does not underflow",
        "p(1) += w. p(I+1) += p(I) * w for I < 5.",
        {"w/0": [(-400.0,)]},
        {"p(1)": -400.0, "p(2)": -800.0, "p(3)": -1200.0, "p(4)": -1600.0, "p(5)": -2000.0},
        semiring="log",
    ),
    Case(
        "viterbi keeps the best",
        "p(Y) += start(Y). p(Y) += p(X) * e(X,Y). dead += p(X) * no(X).",
        {
            "start/1": [("a", 0.0)],
            "e/2": [("a", "b", -1.0), ("a", "c", -5.0), ("b", "c", -2.0), ("c", "a", -0.5)],
            "no/1": [("b", -inf)],
        },
        {"p(a)": 0.0, "p(b)": -1.0, "p(c)": -3.0, "dead": -inf},
        semiring="viterbi",
    ),
    Case(
        "tropical finds shortest paths",
        "d(Y) += start(Y). d(Y) += d(X) * e(X,Y).",
        {
            "start/1": [("a",)],
            "e/2": [("a", "b", 4.0), ("a", "c", 1.0), ("c", "b", 2.0), ("b", "a", 0.0), ("b", "d", inf)],
        },
        {"d(a)": 0.0, "d(c)": 1.0, "d(b)": 3.0, "d(d)": inf},
        semiring="tropical",
    ),
    Case(
        "boolean reachability through a cycle",
        "r(Y) += start(Y). r(Y) += r(X) * e(X,Y).",
        {"start/1": [("a",)], "e/2": [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]},
        {"r(a)": True, "r(b)": True, "r(c)": True},
        semiring="boolean",
    ),
    Case(
        "count counts paths exactly",
        "n(Y) += start(Y). n(Y) += n(X) * e(X,Y). t(0) += two. t(I+1) += t(I) * two for I < 60. big += t(60) * two. "
        "big += start(_).",
        {"start/1": [("a", 1)], "e/2": [("a", "b", 1), ("a", "c", 2), ("b", "d", 1), ("c", "d", 3)], "two/0": [(2,)]},
        {
            "n(a)": 1,
            "n(b)": 1,
            "n(c)": 2,
            "n(d)": 7,
            "big": 2**62 + 1,
            **{f"t({i})": 2 ** (i + 1) for i in range(61)},
        },
        semiring="count",
    ),
    Case(
        "expectation of a length",
        "p(Y) += start(Y). p(Y) += p(X) * e(X,Y).",
        {
            "start/1": [("a", (1.0, 0.0))],
            "e/2": [("a", "b", (0.5, 0.5)), ("a", "c", (0.5, 0.5)), ("b", "c", (1.0, 1.0))],
        },
        {"p(a)": (1.0, 0.0), "p(b)": (0.5, 0.5), "p(c)": (1.0, 1.5)},
        semiring="expectation",
    ),
    Case(
        "a semiring of the user's own",
        "goal += a(X) * b(X). p(X) += SIDE(a(X)) * b(X).",
        {"a/1": [("x", 1.0), ("y", 2.0), ("z", -1.0)], "b/1": [("x", 4.0), ("y", 6.0), ("z", 1.0)]},
        {"goal": 2.0 * 5.0 + 3.0 * 7.0 + 0.0 - 1.0, "p(x)": 4.0, "p(y)": 6.0, "p(z)": 1.0},
        semiring="shifted",
    ),
    # -- plain arithmetic
    Case(
        "arithmetic of values",
        "p += (a + 2*b - c/4) ^ 2. q += exp(a) * tanh(b) / sqrt(c). r += sigmoid(-a) + abs(-b) + log(c). "
        "s += min(a,b) - max(b,c) * -1.",
        {"a/0": [(1.0,)], "b/0": [(2.0,)], "c/0": [(4.0,)]},
        {"p": 16.0, "q": exp(1) * tanh(2) / 2, "r": 1 / (1 + exp(1)) + 2 + log(4), "s": 5.0},
        semiring=None,
    ),
    Case(
        "products, largest and smallest",
        "t *= a(X). most max= a(X) + b. least min= a(X) * b. n += a(X) - 1.",
        {"a/1": [("x", 2.0), ("y", -3.0), ("z", 4.0)], "b/0": [(10.0,)]},
        {"t": -24.0, "most": 14.0, "least": -30.0, "n": 0.0},
        semiring=None,
    ),
    Case(
        "truth: any and all",
        "some(X) |= a(X,_). every(X) &= a(X,_).",
        {"a/2": [("x", 1, 1.0), ("x", 2, 0.0), ("y", 1, 0.0), ("z", 1, 1.0)]},
        {"some(x)": 1.0, "some(y)": 0.0, "some(z)": 1.0, "every(x)": 0.0, "every(y)": 0.0, "every(z)": 1.0},
        semiring=None,
    ),
    Case(
        "equality",
        "p(X) = a(X) + 1. p(X) = b(X) * 2.",
        {"a/1": [("x", 3.0), ("y", 5.0)], "b/1": [("x", 2.0), ("z", 1.0)]},
        {"p(x)": 4.0, "p(y)": 6.0, "p(z)": 2.0},
        semiring=None,
    ),
    Case(
        "if, then, else",
        "p(X) += if a(X) > 1 then a(X) * 10 else b(X) - a(X). q += if a(x) == 1 then 1 else 0.",
        {"a/1": [("x", 1.0), ("y", 2.0), ("z", 5.0)], "b/1": [("x", 5.0), ("y", 6.0)]},
        {"p(x)": 4.0, "p(y)": 20.0, "q": 1.0},
        semiring=None,
    ),
    Case(
        "an axiom starts a recursion under min=",
        "d(a) = 0. d(Y) min= d(X) + e(X,Y).",
        {"e/2": [("a", "b", 4.0), ("a", "c", 1.0), ("c", "b", 2.0), ("b", "a", 1.0)]},
        {"d(a)": 0.0, "d(b)": 3.0, "d(c)": 1.0},
        semiring=None,
    ),
    Case(
        "aggregators one on another",
        "best(X) max= a(X,_). worst min= best(X). total += best(X) - worst.",
        {"a/2": [("x", 1, 3.0), ("x", 2, 7.0), ("y", 1, 5.0), ("z", 1, 9.0)]},
        {"best(x)": 7.0, "best(y)": 5.0, "best(z)": 9.0, "worst": 5.0, "total": 6.0},
        semiring=None,
    ),
    Case(
        "a contribution that gets worse under max=",
        "m(I) += a(I). m(I+1) += m(I) for I < 3. best max= 10 - m(I).",
        {"a/1": [(1, 1.0), (2, 2.0), (3, 4.0)]},
        {"m(1)": 1.0, "m(2)": 3.0, "m(3)": 7.0, "best": 9.0},
        semiring=None,
    ),
    Case(
        "a function that the host supplies",
        ":- function h/1. :- function k/2. p(X) += h(a(X)). q += k(a(x), a(y)) / 2.",
        {"a/1": [("x", 2.0), ("y", 3.0)]},
        {"p(x)": 5.0, "p(y)": 10.0, "q": -0.5},
        semiring=None,
        functions={"h": lambda x: x * x + 1.0, "k": lambda x, y: x - y},
    ),
    Case(
        "an external predicate in plain arithmetic",
        ":- external price/1. p(X) = price(X) * a(X). dear |= if p(X) > 10 then 1 else 0.",
        {"a/1": [(1, 2.0), (3, 5.0)]},
        {"p(1)": 4.0, "p(3)": 30.0, "dear": 1.0},
        semiring=None,
        functions={"price": lambda i: 2.0 * i},
    ),
    Case(
        "SIDE in plain arithmetic",
        "p += SIDE(a(X)) * b(X) + 1. q min= SIDE(a(X)).",
        {"a/1": [("x", 50.0), ("y", 0.0)], "b/1": [("x", 2.0), ("y", 3.0)]},
        {"p": 7.0, "q": 1.0},
        semiring=None,
    ),
)
