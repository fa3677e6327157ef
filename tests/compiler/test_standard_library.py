"""`operator`, `functools`, `itertools`, `sorted` with keys, `np.vectorize` and libraries with static arguments,
compiled.

Costs two compiled programs: one of all values, one of all gradients, 10 s.
"""

from __future__ import annotations

import cmath
import functools
import itertools
import math
import operator
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import dynagrad as dg
from compiler.specialising import through_graph

second, both = operator.itemgetter(1), operator.itemgetter(1, 0)
clipped = operator.methodcaller("clip", -1.0, max=1.0)
doubled = functools.partial(operator.mul, 2.0)
squares = np.vectorize(lambda a: a * a)


@functools.lru_cache
def remembered(n: Any) -> Any:
    return n * 2


@np.vectorize
def kinked(a: Any, b: Any) -> Any:
    return a * b if a > 0.5 else b - a


@np.vectorize
def halves(a: Any) -> Any:
    return a // 2, a * 0.5


def _sorted_in_place(x: Any) -> Any:
    found = [x, 3.0, -x]
    found.sort(key=lambda v: -v)
    return found


def _last_of(x: Any) -> Any:
    f = math.sin
    for g in (math.cos, math.exp, math.tanh):
        f = g
    return f(x)


def _nested(x: Any) -> Any:
    f = lambda v: v  # noqa: E731
    for i in range(3):
        f = (lambda g, n: lambda v: g(v) * n + x)(f, i)
    return f(x)


def _deep(x: Any) -> Any:
    f = lambda v: v * v  # noqa: E731
    for _ in range(40):
        f = (lambda g: lambda v: g(v * 0.9) + x)(f)
    return f(x)


def _derived(x: Any) -> Any:
    f = lambda v: v**4 * x  # noqa: E731
    for _ in range(3):
        f = dg.derivative(f)
    return f(x)


def _in_turns(x: Any) -> Any:
    f = np.sin
    for i in range(70):
        x = f(x)
        f = np.cos if i % 2 else np.sin
    return x


def _while(x: Any) -> Any:
    f, i = math.sin, 0
    while i < 5:
        f = functools.partial(operator.mul, x) if i % 2 else math.cos
        x, i = f(x), i + 1
    return x


def _in_a_loop_of_the_run(x: Any) -> Any:
    y = x
    while y < 100.0:
        f = math.exp
        for g in (math.sin, math.cosh):
            f = g
        y = y + f(1.0) + 1.0
    return y


def twice(f: Any) -> Any:
    """What f gives, twice."""

    @functools.wraps(f)
    def doubling(*given: Any, **named: Any) -> Any:
        return 2.0 * f(*given, **named)

    return doubling


def _decorated(x: Any) -> Any:
    @twice
    @twice
    def square(y: Any, *, by: Any = 1.0) -> Any:
        return y * y * by

    return square(x), square(x, by=3.0), square.__wrapped__(x), x * len(square.__name__)  # type: ignore[attr-defined]


def _delivered(x: Any) -> Any:
    done = [0.0]

    def go(y: Any) -> Any:
        try:
            if y > 1.0:
                return y * y
            y = y + 1.0
        finally:
            done[0] += x
        return y

    return go(x), go(x - 1.0), done[0]


def _left(x: Any) -> Any:
    total, seen = 0.0, 0.0
    for i in range(10):
        try:
            try:
                if i % 2:
                    continue
                if i > 6:
                    break
                for k in range(3):
                    if k:
                        break
                total = total + x
            finally:
                seen = seen + 1.0
        finally:
            seen = seen * x
    return total, seen


def _returned_before(x: Any) -> Any:
    a = np.zeros(2) + x
    try:
        b = a
        return b, x * 2.0
    except KeyError:
        return a, 0.0
    finally:
        a[0], x = 5.0, 100.0


CASES: dict[str, Callable[[Any], Any]] = {
    # operator
    "itemgetter": lambda x: operator.itemgetter(1)([x, 2 * x]),
    "itemgetter of two": lambda x: operator.itemgetter(1, 0)([x, 2 * x]),
    "itemgetter from outside": lambda x: second([x, x * x]) * both((x, 3.0))[0],
    "itemgetter as a key": lambda x: [v for _, v in sorted([(3, x), (1, 2 * x)], key=operator.itemgetter(0))],
    "attrgetter": lambda x: x * operator.attrgetter("shape")(np.ones(3) * x)[0],
    "attrgetter of attributes": lambda x: x * len(operator.attrgetter("T.shape", "ndim")(np.ones((2, 3)) * x)[0]),
    "methodcaller": lambda x: operator.methodcaller("sum", axis=0)(np.ones((2, 3)) * x),
    "methodcaller from outside": lambda x: clipped(np.ones(2) * x),
    "abs": lambda x: operator.abs(-x) + operator.pos(x) + operator.neg(x),
    "invert": lambda x: operator.inv(3) * x + operator.invert(4) * x,
    "truth": lambda x: x if operator.truth(x) and not operator.not_(x) else -x,
    "contains": lambda x: operator.contains([1, 2], 2) * x,
    "contains a number": lambda x: x if operator.contains([x, 2.0], x) else -x,
    "index": lambda x: operator.index(3) * x,
    "in place": lambda x: operator.iadd(x, 1.0) + operator.imul(x, 2.0),
    "concat": lambda x: operator.concat([x], [2.0]),
    "countOf": lambda x: operator.countOf([1, 1, 2], 1) * x + operator.countOf([x, 2.0], x),
    "indexOf": lambda x: operator.indexOf([1, 2], 2) * x,
    "comparisons": lambda x: x if operator.lt(x, 2.0) and operator.ne(x, 5.0) else -x,
    "matmul": lambda x: operator.matmul(np.eye(2), np.ones(2)) * x,
    "xor": lambda x: x if operator.xor(True, x > 5.0) else -x,
    "getitem": lambda x: operator.getitem([x, 2.0], 0),
    # functools
    "partial": lambda x: functools.partial(pow, 2)(3) * x,
    "partial of numpy": lambda x: functools.partial(np.sum, axis=0)(np.stack([x, x])),
    "partial of a function": lambda x: functools.partial(lambda a, b, c=1.0: a * b + c, x, c=2.0)(3.0),
    "partial from outside": lambda x: doubled(x),
    "partial in map": lambda x: list(map(functools.partial(operator.mul, x), [1.0, 2.0])),
    "reduce": lambda x: functools.reduce(operator.add, [x, x, 1.0]),
    "reduce from": lambda x: functools.reduce(lambda a, b: a * b, (x * i for i in range(1, 4)), 2.0),
    "lru_cache": lambda x: remembered(3) * remembered(x),
    # itertools
    "accumulate": lambda x: list(itertools.accumulate([x, x, x], operator.mul)),
    "accumulate from": lambda x: list(itertools.accumulate([x, x], initial=1.0)),
    "chain": lambda x: list(itertools.chain([x], (1.0, 2.0))),
    "chain.from_iterable": lambda x: list(itertools.chain.from_iterable([[x], [1.0]])),
    "product": lambda x: [a * b for a, b in itertools.product([x, 1.0], [2.0, 3.0])],
    "product with itself": lambda x: sum(a * b for a, b in itertools.product([x, 1.0], repeat=2)),
    "starmap": lambda x: list(itertools.starmap(operator.mul, [(x, 2.0), (3.0, x)])),
    "zip_longest": lambda x: [a + b for a, b in itertools.zip_longest([x, x], [1.0], fillvalue=0.0)],
    "takewhile": lambda x: [i * x for i in itertools.takewhile(lambda i: i < 3, itertools.count(1))],
    "dropwhile": lambda x: [i * x for i in itertools.dropwhile(lambda i: i < 3, [1, 2, 3, 4])],
    "filterfalse": lambda x: [i * x for i in itertools.filterfalse(lambda i: i % 2, range(5))],
    "compress": lambda x: [i * x for i in itertools.compress([1, 2, 3], [1, 0, 1])],
    "islice": lambda x: [i * x for i in itertools.islice(itertools.count(), 1, 6, 2)],
    "cycle": lambda x: [i * x for i, _ in zip(itertools.cycle([1, 2]), range(5), strict=False)],
    "islice of a cycle": lambda x: [i * x for i in itertools.islice(itertools.cycle([1, 2]), 5)],
    "cycle of numbers in a long loop": lambda x: sum(a * b for a, b in zip(itertools.cycle([x, 2.0]), np.ones(99))),
    "repeat": lambda x: [a * b for a, b in zip([1.0, 2.0], itertools.repeat(x), strict=False)],
    "repeat so often": lambda x: list(itertools.repeat(x, 3)),
    "pairwise": lambda x: [a - b for a, b in itertools.pairwise([x, 2 * x, 3.0])],
    "combinations": lambda x: [a * b for a, b in itertools.combinations([x, 2.0, 3.0], 2)],
    "with replacement": lambda x: [a * b for a, b in itertools.combinations_with_replacement([x, 2.0], 2)],
    "permutations": lambda x: [a - b for a, b in itertools.permutations([x, 2.0], 2)],
    "groupby": lambda x: [sum(g) * x + k for k, g in itertools.groupby([1, 1, 2])],
    "groupby with a key": lambda x: [sum(g) * k for k, g in itertools.groupby([x, x, x], key=lambda v: 3)],
    "tee": lambda x: [a * b * x for a, b in zip(*itertools.tee([1, 2, 3]), strict=True)],
    # wraps, finally
    "wraps": _decorated,
    "update_wrapper": lambda x: functools.update_wrapper(lambda y: y * x, math.sin)(x),
    "wraps from outside": lambda x: twice(math.sin)(x),
    "finally with a return": _delivered,
    "finally with break and continue": _left,
    "finally after what is returned": _returned_before,
    # min and max
    "min of tuples": lambda x: min((x, 1.0), (x, -x), (x + 1.0, 5.0)) + max([(1.0, x), (1.0, 2.0 * x), (0.5, 9.0)]),
    "max of tuples that are alike": lambda x: max((x, x), (x, x)),
    "min of items": lambda x: x * len(min({"b": x, "a": 2.0}.items())[0]) + max({"b": x, "a": 2.0}.items())[1],
    "comparisons of tuples": lambda x: [
        x if (1.0, x) < (1.0, 2.0) else -x, x if (x, 1) >= (x, 1, 0) else -x, x if [x, 2] > [x, 1.0] else -x,
        x if (x, 1) <= (x, 1) else -x, x if ("a", x) < ("b", 0.0) else -x,
    ],
    # filter
    "sum of filter": lambda x: sum(filter(lambda v: v > 0.0, [x, -x, 2.0 * x, 0.0])),
    "filter of an array": lambda x: sum(filter(lambda v: v > 1.0, np.arange(4.0) * x)) * x,
    "others of filter": lambda x: max(filter(None, [x, 0.0 * x, -x])) + len(filter_of(x)) + np.mean(filter_of(x)),
    "filter as an array": lambda x: np.sum(np.array(filter_of(x)) ** 2) + any(filter_of(x)),
    # sorted
    "sorted items": lambda x: [v for _, v in sorted({"b": x, "a": 2.0 * x, "c": 1.0}.items())],
    "sorted items, of many kinds": lambda x: sorted({"b": np.ones(2) * x, "a": x}.items(), reverse=True)[0][1],
    "known first parts": lambda x: [v for _, _, v in sorted([(1, "b", x), (1, "a", 2.0 * x), (0, "c", 1.0)])],
    "sorted by abs": lambda x: sorted([x, -x, 2.0, -0.5], key=abs),
    "sorted by a part": lambda x: [v for _, v in sorted([(x, 1.0), (x * x, 2.0), (0.5, x)], key=lambda t: t[0])],
    "sorted by two": lambda x: [v[2] for v in sorted([(x, 2.0, 1.0), (x, 1.0, x), (0.5, 9.0, 3.0)], key=two_of)],
    "sorted by a number, tuples": lambda x: [v[1] for v in sorted([(x, 2.0), (x - 1.0, 3.0 * x)])],
    "reversed": lambda x: sorted([x, 3.0, 1.0], key=lambda v: -v, reverse=True),
    "stable": lambda x: [b for _, b in sorted([(x, 1.0), (x, 2.0), (0.0, 3.0)], key=one_of, reverse=True)],
    "places": lambda x: sorted(range(3), key=lambda i: [x, -x, 0.5][i]),
    "arrays": lambda x: np.stack(sorted([np.ones(2) * x, np.zeros(2)], key=lambda a: a.sum())),
    "dicts": lambda x: [d["b"] for d in sorted([{"a": x, "b": x}, {"a": -x, "b": 2.0}], key=lambda d: d["a"])],
    "of known keys": lambda x: sorted([x, 2 * x, 3 * x], key=lambda v: 1),
    "sort": _sorted_in_place,
    # functions under one name
    "the last of some": _last_of,
    "one in the other": _nested,
    "40 in each other": _deep,
    "derivatives": _derived,
    "in turns": _in_turns,
    "in a while": _while,
    "in a loop of the run": _in_a_loop_of_the_run,
    # np.vectorize
    "vectorize": lambda x: np.vectorize(lambda a: a * a)(np.ones(3) * x),
    "vectorize from outside": lambda x: squares(np.arange(4.0).reshape(2, 2) * x),
    "vectorize with a branch": lambda x: kinked(np.linspace(0.0, 1.0, 5) * x, np.arange(10.0).reshape(2, 5)),
    "vectorize, many": lambda x: kinked(np.linspace(0.0, 1.0, 200) * x, 2.0),
    "vectorize of one": lambda x: kinked(x, 3.0),
    "vectorize of several": lambda x: [part * x for part in halves(np.arange(5))],
    "vectorize with otypes": lambda x: np.vectorize(lambda a: a * 2, otypes=[float])(np.arange(3)) * x,
    "vectorize but for one": lambda x: np.vectorize(lambda p, a: p[0] * a, excluded={0})([x], np.arange(3.0)),
    "vectorize by name": lambda x: np.vectorize(lambda a, b=1.0: a * b)(np.arange(3.0), b=x),
    # libraries with known arguments
    "multigammaln": lambda x: x * scipy.special.multigammaln(2.5, 2),
    "roots": lambda x: x * scipy.special.roots_legendre(3)[0],
    "hilbert": lambda x: scipy.linalg.hilbert(3) * x,
    "ppf": lambda x: scipy.stats.norm.ppf(0.9) * x,
    "leggauss": lambda x: np.polynomial.legendre.leggauss(3)[1] * x,
    "comb": lambda x: math.comb(5, 2) * scipy.special.comb(5, 2) * x,
    "mean": lambda x: statistics.mean([1, 2, 3]) * x,
    "Fraction": lambda x: float(Fraction(1, 3)) * x,
    "cmath": lambda x: x * abs(cmath.exp(1j)),
    "a window": lambda x: np.hanning(5) * x,
    # math
    "ldexp": lambda x: math.ldexp(x, 3),
    "modf": lambda x: math.modf(x)[0] + math.modf(-2.5)[1] + math.modf(x * math.inf)[0],
}  # fmt: skip


def filter_of(x: Any) -> Any:
    return list(filter(lambda v: v > 0.0, [x, -x, 2.0 * x]))


def one_of(x: Any) -> Any:
    return x[0]


def two_of(x: Any) -> Any:
    return x[:2]


def _flat(y: Any) -> list[Any]:
    return [part for item in y for part in _flat(item)] if isinstance(y, tuple | list) else [y]


def _is_same(a: Any, b: Any, digits: float = 1e-12) -> bool:
    found, wanted = _flat(a), _flat(b)
    return len(found) == len(wanted) and all(
        np.shape(x) == np.shape(y)
        and np.asarray(x).dtype.kind == np.asarray(y).dtype.kind
        and np.allclose(x, y, rtol=digits, atol=digits)
        for x, y in zip(found, wanted, strict=True)
    )


def _total(f: Any, x: Any) -> Any:
    y = f(x)
    found, weight = 0.0, 1.0
    for part in y if isinstance(y, tuple | list) else [y]:
        found, weight = found + np.sum(part) * weight, weight + 1.0
    return found


X = 1.3


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    assert _is_same(through_graph(CASES[name], X), CASES[name](X)), through_graph(CASES[name], X)


def test_in_native_code() -> None:
    found = dg.compile(lambda x, fs: [f(x) for f in fs])(X, tuple(CASES.values()))
    for name, y in zip(CASES, found, strict=True):
        assert _is_same(y, CASES[name](X)), name


def test_gradients_in_native_code() -> None:
    found = dg.compile(lambda x, fs: [dg.grad(_total, 1)(f, x) for f in fs])(X, tuple(CASES.values()))
    for (name, f), y in zip(CASES.items(), found, strict=True):
        wanted = (_total(f, X + 1e-6) - _total(f, X - 1e-6)) / 2e-6
        assert abs(y - wanted) < 1e-5 * max(abs(wanted), 1.0), f"{name}: {y} is not {wanted}"


def test_several_orders() -> None:
    """The keys decide as the function runs: every order of three."""
    f = dg.compile(lambda a: [v for _, v in sorted([(a[0], 1.0), (a[1], 2.0), (a[2], 3.0)], key=lambda t: t[0])])
    for order in itertools.product([1.0, 2.0, 3.0], repeat=3):
        pairs = zip(order, [1.0, 2.0, 3.0], strict=True)
        assert f(np.array(order)) == [v for _, v in sorted(pairs, key=lambda t: t[0])]


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: sorted([x, "a"], key=lambda v: x), "must have one structure"),
        (lambda x: sorted([x, 1.0], key=lambda v: (v, "a")), "keys that are numbers"),
        (lambda x: sorted([x, 2.0], reverse=x > 0), "reverse= of sorted.. must be known"),
        (lambda x: list(itertools.takewhile(lambda i: i < x, range(3))), "which items itertools.takewhile"),
        (lambda x: list(itertools.groupby([x, 1.0])), "which items itertools.groupby"),
        (lambda x: list(itertools.count()), "too many"),
        (lambda x: list(itertools.cycle([x])), "too many"),
        (lambda x: list(itertools.islice([x, x], int(x))), "must be known"),
        (lambda x: [v for v in filter(lambda v: v > x, [x, 2.0])], "loop over all elements"),
        (lambda x: [*filter(lambda v: v > x, [x, 2.0])], "loop over all elements"),
        (lambda x: filter_of(x) * 2, "as the function runs"),
        (lambda x: filter_of(x)[0], "as the function runs"),
        (lambda x: sum(v for v, _ in filter(lambda t: t[0] > x, [(x, 1.0)])), "loop over all items with `if` inside"),
        (lambda x: min((x, "a"), (2.0, "b")), r"min.. chooses among items .* one structure"),
        (lambda x: sum(v for v in [x, 2.0] if v > x), r"which items this comprehension keeps .* sum\(filter\(f, x\)\)"),
        (lambda x: [v for v in np.ones(3) * x if v > x], r"which items this comprehension keeps .* a loop with `if`"),
        (lambda x: next(i for i in [x]), "iterators have no state"),
        (lambda x: operator.index(x), "of whole numbers"),
        (lambda x: operator.indexOf([x], x), "np.argmax"),
        (lambda x: scipy.special.logsumexp(np.stack([x, x])), "there is dg.special.logsumexp"),
        (lambda x: scipy.linalg.solve(np.eye(2) * x, np.ones(2)), "write it with numpy"),
        (lambda x: scipy.stats.norm.rvs(3), "random numbers"),
        (lambda x: np.vectorize(lambda a: a, signature="(n)->(n)")(np.ones(3) * x), "a signature"),
        (lambda x: np.vectorize(lambda a: np.ones(2) * a)(np.ones(3) * x), "that return numbers"),
        (lambda x: np.vectorize(lambda a: a)(np.zeros(0) * x), "needs otypes="),
    ],
)
def test_what_cannot_be_had(f: Any, says: str) -> None:
    with pytest.raises(dg.LiftError, match=says):
        through_graph(f, X)
