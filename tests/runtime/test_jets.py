"""Jets against nilpotent polynomials in 80 digits: arithmetic, ranges of exponents, branches, adjoints.

Costs a few seconds.
"""

from __future__ import annotations

import ctypes
import itertools
import random

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from dynagrad.runtime import library
from dynagrad.runtime.compiling import cache

KS = (1, 2, 3)
REAL = {k: f"Jets<Real, {k}>" for k in KS}
PAIR = {k: f"Jets<Expectation<2>, {k}>" for k in KS}
PLAIN = {k: f"PlainJets<{k}>" for k in KS}
LOG = {k: f"LogJets<{k}>" for k in KS}
MAX = {k: f"SelectJets<Viterbi, {k}>" for k in KS}
MIN = {k: f"SelectJets<Tropical, {k}>" for k in KS}
TYPES = [name for names in (REAL, PAIR, PLAIN, LOG, MAX, MIN) for name in names.values()]

# What a call computes of two values a and b; `words` are the bytes of a as they come.
VALUES = {
    "zero": "T::zero()",
    "one": "T::one()",
    "plus": "T::plus(a, b)",
    "times": "T::times(a, b)",
    "read": "T::read(words)",
}
DIVISIONS = {"minus": "T::minus(a, b)", "over": "T::over(a, b)", "constant": "T::constant(primal)"}
RANGES = {"raw": "T::raw(a, b)", "settled": "T::settled(a)"}
ADJOINTS = {"gather": "T::gather(a, b)", "scale": "T::scale(a, b)", "start": "T::start(words, b)"}
TEXTS = {"write": "T::write(a, out)"}
OUTSIDE = {"finish": "T::finish(a, b, out)"}
NUMBERS = {
    "size": "T::size(b, a, b)",
    "negligible": "T::negligible(a, b, 1e-9)",
    "better": "T::better(a, b)",
    "valid": "T::valid(a)",
    "tiny": "T::tiny(a)",
    "words": "T::words",
    "flags": "T::selective * 4 + T::flat * 2 + T::zero_bytes",
}
SUMMARIES = {"primal": "T::primal(a)", "nothing": "T::nothing(a)", "sound": "T::sound(a)", "width": "T::adjoint_words"}
TABLES = (VALUES, TEXTS, NUMBERS, DIVISIONS, RANGES, ADJOINTS, OUTSIDE, SUMMARIES)
OPS = {name: i for i, name in enumerate(itertools.chain.from_iterable(TABLES))}


def cases(pattern: str, *tables: dict[str, str]) -> str:
    return "\n".join(
        f"    case {OPS[name]}: {pattern.format(text)}; break;" for table in tables for name, text in table.items()
    )


SOURCE = f"""
#include <dynagrad/jets.hpp>
#define EXPORT extern "C" __attribute__((visibility("default")))
using namespace dynagrad;

template <class T>
double basic(int op, const void* first, const void* second, uint64_t* out) {{
  const uint64_t* words = (const uint64_t*)first;
  typename T::Value a, b, c = T::zero();
  memcpy(&a, first, sizeof a);
  memcpy(&b, second, sizeof b);
  switch (op) {{
{cases("c = {0}", VALUES)}
{cases("{0}; return 0", TEXTS)}
{cases("return {0}", NUMBERS)}
  }}
  memcpy(out, &c, sizeof c);
  return 0;
}}
template <class T>
double ranged(int op, const void* first, const void* second, uint64_t* out) {{
  typename T::Value a, b, c = T::zero();
  memcpy(&a, first, sizeof a);
  memcpy(&b, second, sizeof b);
  switch (op) {{
{cases("c = {0}", RANGES)}
    default: return basic<T>(op, first, second, out);
  }}
  memcpy(out, &c, sizeof c);
  return 0;
}}
template <class T>
double divided(int op, const void* first, const void* second, uint64_t* out) {{
  const double primal = as_double(*(const uint64_t*)first);
  typename T::Value a, b, c = T::zero();
  memcpy(&a, first, sizeof a);
  memcpy(&b, second, sizeof b);
  switch (op) {{
{cases("c = {0}", DIVISIONS)}
    default: return basic<T>(op, first, second, out);
  }}
  memcpy(out, &c, sizeof c);
  return 0;
}}
template <class T>
double all(int op, const void* first, const void* second, uint64_t* out) {{
  const uint64_t* words = (const uint64_t*)first;
  typename T::Adjoint a, c;
  typename T::Value b;
  memcpy(&a, first, sizeof a);
  memcpy(&b, second, sizeof b);
  switch (op) {{
{cases("c = {0}", ADJOINTS)}
{cases("{0}; return 0", OUTSIDE)}
{cases("return {0}", SUMMARIES)}
    default:
      if constexpr (requires {{ T::raw(a, b); }}) return ranged<T>(op, first, second, out);
      else if constexpr (requires {{ T::over(a, b); }}) return divided<T>(op, first, second, out);
      else return basic<T>(op, first, second, out);
  }}
  memcpy(out, &c, sizeof c);
  return 0;
}}
template <int K>
void compute(int op, const double* a, const double* b, double* out) {{
  switch (op) {{
    case 0: jet::multiply<K>(a, b, out); break;
    case 1: jet::divide<K>(a, b, out); break;
    case 2: jet::exp<K>(a, out); break;
    case 3: jet::log<K>(a, out); break;
    case 4: jet::add<K>(a, b, out); break;
    case 5: memcpy(out, a, sizeof(double) << K); jet::divide<K>(out, b, out); break;
  }}
}}
EXPORT double call(int type, int op, const void* a, const void* b, uint64_t* out) {{
  switch (type) {{
{"".join(f"    case {i}: return all<{name}>(op, a, b, out);{chr(10)}" for i, name in enumerate(TYPES))}
    case {len(TYPES)}: return ranged<Log>(op, a, b, out);
  }}
  return NAN;
}}
EXPORT void arrays(int k, int op, const double* a, const double* b, double* out) {{
  switch (k) {{
    case 0: compute<0>(op, a, b, out); break;
    case 1: compute<1>(op, a, b, out); break;
    case 2: compute<2>(op, a, b, out); break;
    case 3: compute<3>(op, a, b, out); break;
    case 6: compute<6>(op, a, b, out); break;
  }}
}}
"""

NUMBER = {name: i for i, name in enumerate([*TYPES, "Log"])}
ROOM = 64  # words that any value fits into
POINTER = ctypes.c_void_p


@pytest.fixture(scope="module")
def made():
    return library.load(cache.build(SOURCE))


@pytest.fixture(scope="module")
def call(made):
    """call(type, op, a, b): a number, or the words of a value or of an outside number."""
    function = made.function("call", ctypes.c_double, ctypes.c_int, ctypes.c_int, POINTER, POINTER, POINTER)

    def run(kind, op, a=(), b=()):
        first, second, out = (np.zeros(ROOM) for _ in range(3))
        first[: len(a)], second[: len(b)] = a, b
        number = function(NUMBER[kind], OPS[op], first.ctypes.data, second.ctypes.data, out.ctypes.data)
        return number if op in NUMBERS or op in SUMMARIES else out

    return run


@pytest.fixture(scope="module")
def arrays(made):
    function = made.function("arrays", None, ctypes.c_int, ctypes.c_int, POINTER, POINTER, POINTER)
    ops = ("multiply", "divide", "exp", "log", "add", "divide in place")

    def run(k, op, a, b=None):
        first = np.array(a, float)
        second = np.array(a if b is None else b, float)
        out = np.full(1 << k, np.nan)
        function(k, ops.index(op), first.ctypes.data, second.ctypes.data, out.ctypes.data)
        return list(out)

    return run


# -- the oracle: polynomials in e_1 ... e_k with e_i^2 = 0, as lists of exact or very precise coefficients ------------


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(80):
        yield


def exact(numbers):
    return [mpf(float(x)) for x in numbers]


def product(a, b):
    out = [mpf(0)] * len(a)
    for s, t in itertools.product(range(len(a)), repeat=2):
        if not s & t:
            out[s | t] += a[s] * b[t]
    return out


def total(*jets):
    return [mpmath.fsum(parts) for parts in zip(*jets, strict=True)]


def times(c, a):
    return [c * x for x in a]


def series(first, a, term):
    """The sum of term(n) N^n over all n, N being a without its primal over `first`: N^n is zero for n over K."""
    rest = [mpf(0), *(x / first for x in a[1:])]
    power = [mpf(1)] + [mpf(0)] * (len(a) - 1)
    out = [mpf(0)] * len(a)
    for n in range(len(a).bit_length()):
        out = total(out, times(term(n), power))
        power = product(power, rest)
    return out


def exponential(a):
    return times(mpmath.exp(a[0]), series(mpf(1), a, lambda n: 1 / mpmath.factorial(n)))


def logarithm(a):
    out = series(a[0], a, lambda n: mpf((-1) ** (n + 1)) / n if n else mpf(0))
    return [mpmath.log(a[0]), *out[1:]]


def quotient(a, b):
    return times(1 / b[0], product(a, series(b[0], b, lambda n: mpf((-1) ** n))))


def close(got, expected, tolerance=1e-12):
    """Each component to `tolerance` of the largest of its jet, or of one where that is more."""
    scale = max(1, *map(abs, expected))
    return all(abs(mpf(float(g)) - e) <= tolerance * scale for g, e in zip(got, expected, strict=True))


def draw(rng, k, low=-2.0, high=2.0):
    return [rng.uniform(low, high) for _ in range(1 << k)]


# -- arrays ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 2, 3, 6])
def test_products_and_sums_are_exact_where_doubles_are(arrays, k):
    rng = random.Random(k)
    for _ in range(5):
        a, b = ([float(rng.randint(-99, 99)) for _ in range(1 << k)] for _ in "ab")
        assert arrays(k, "multiply", a, b) == product(exact(a), exact(b))
        assert arrays(k, "add", a, b) == total(exact(a), exact(b))


@pytest.mark.parametrize("k", [0, 1, 2, 3, 6])
def test_exp_log_and_quotients(arrays, k):
    rng = random.Random(k)
    for _ in range(5):
        a, b = draw(rng, k), draw(rng, k)
        b[0] = rng.uniform(0.5, 2.0)
        assert close(arrays(k, "exp", a), exponential(exact(a)))
        assert close(arrays(k, "log", b), logarithm(exact(b)))
        assert close(arrays(k, "divide", a, b), quotient(exact(a), exact(b)))
        assert arrays(k, "divide in place", a, b) == arrays(k, "divide", a, b)


def test_components_are_derivatives(arrays):
    """Along one and the same direction three times: the components are those of the first three derivatives."""
    at = [0.7, 1, 1, 0, 1, 0, 0, 0]
    product_of = arrays(3, "multiply", arrays(3, "exp", at), arrays(3, "log", at))
    got = arrays(3, "divide", product_of, at)
    for mask, component in enumerate(got):
        expected = mpmath.diff(lambda x: mpmath.exp(x) * mpmath.log(x) / x, mpf(at[0]), mask.bit_count())
        assert abs(component - expected) < 1e-12 * abs(expected)


# -- all types ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
def test_zero_one_and_the_shape(call, kind):
    k = int(kind.removesuffix(">").split()[-1].split("<")[-1])
    words = (3 if "Expectation" in kind else 1) << k
    assert (call(kind, "words"), call(kind, "width")) == (words, words)
    selects = kind.startswith("Select")
    assert call(kind, "flags") == (4 if selects else 1)
    zero, one = call(kind, "zero"), call(kind, "one")
    assert selects or not zero.view(np.uint64).any()
    assert call(kind, "nothing", np.zeros(ROOM)) and call(kind, "sound", np.zeros(ROOM))
    value = call(kind, "read", [0.25 * (i + 1) for i in range(words)])
    assert list(call(kind, "times", value, one)) == list(value)
    assert list(call(kind, "plus", zero, value)) == list(value) == list(call(kind, "plus", value, zero))
    assert close(call(kind, "write", value)[:words], [0.25 * (i + 1) for i in range(words)])
    assert call(kind, "valid", value) and call(kind, "valid", one) and call(kind, "sound", value)
    assert not call(kind, "nothing", value)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_seen_in_any_component(call, kind, bad):
    for at in range(int(call(kind, "words"))):
        value = call(kind, "read", np.full(int(call(kind, "words")), 0.5))
        value[at] = bad
        fine = at == 0 and bad == np.inf and kind.startswith(("Plain", "SelectJets<T"))
        assert call(kind, "valid", value) == fine
        assert not call(kind, "sound", value)


# -- rings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("types", [REAL, PLAIN], ids=["real", "plain"])
def test_jets_of_reals(call, k, types):
    kind, rng, n = types[k], random.Random(k), 1 << k
    a, b = draw(rng, k), draw(rng, k)
    for op in ("times", "scale"):
        assert close(call(kind, op, a, b)[:n], product(exact(a), exact(b)), 1e-15 * n)
    for op in ("plus", "gather"):
        assert list(call(kind, op, a, b)[:n]) == [x + y for x, y in zip(a, b, strict=True)]
    assert list(call(kind, "start", a, b)[:n]) == a == list(call(kind, "finish", a, b)[:n])
    assert call(kind, "primal", a) == a[0]


@pytest.mark.parametrize("k", KS)
def test_plain_jets_subtract_and_divide(call, k):
    rng, n = random.Random(k), 1 << k
    a, b = draw(rng, k), draw(rng, k)
    b[0] = 0.75
    assert list(call(PLAIN[k], "minus", a, b)[:n]) == [x - y for x, y in zip(a, b, strict=True)]
    assert close(call(PLAIN[k], "over", a, b)[:n], quotient(exact(a), exact(b)))
    assert list(call(PLAIN[k], "constant", a)[:n]) == [a[0]] + [0.0] * (n - 1)


@pytest.mark.parametrize("k", KS)
def test_jets_of_pairs_are_jets_with_directions_that_exclude_each_other(call, k):
    kind, rng, n = PAIR[k], random.Random(k), 1 << k
    a, b = ([rng.uniform(-2, 2) for _ in range(3 * n)] for _ in "ab")

    def part(x, i):  # the jets of p, of r[0] or of r[1]
        return exact(x[i::3])

    expected = [product(part(a, 0), part(b, 0))]
    for i in (1, 2):
        expected.append(total(product(part(a, 0), part(b, i)), product(part(a, i), part(b, 0))))
    got = call(kind, "times", a, b)[: 3 * n]
    assert all(close(got[i::3], expected[i]) for i in range(3))
    assert list(call(kind, "scale", a, b)[: 3 * n]) == list(got)
    assert call(kind, "primal", a) == a[0]
    assert call(kind, "size", a, b) == sum(map(abs, a[:3]))


@pytest.mark.parametrize("k", KS)
def test_decisions_look_at_the_primal(call, k):
    rest = [1e3] * ((1 << k) - 1)
    for types in (REAL, PLAIN):
        assert call(types[k], "negligible", [1e-10, *rest], [1.0, *rest])
        assert not call(types[k], "negligible", [1e-8, *rest], [1.0, *rest])
        assert call(types[k], "size", [-3.0, *rest], [1.0, *rest]) == 3.0
        assert call(types[k], "tiny", [1e-310, *rest]) and not call(types[k], "tiny", [1.0, *rest])
        assert not call(types[k], "negligible", [1e-10], [0.0])  # a tolerance is relative


# -- logs --------------------------------------------------------------------------------------------------------------

SMALL, BIG, WIDE = mpf(2) ** -256, mpf(2) ** 256, mpf(2) ** 320
LOGS = (0.0, 1.0, -1.0, 177.4, -300.25, 1e3, -1e4, 1e6, -1e6, 1.75e8, -1.75e8)


def exponent(value, k):
    return int(value.view(np.int64)[1 << k])


def weight(value, k):
    """The exact jets of a value of LogJets."""
    return times(mpf(2) ** (256 * exponent(value, k)), exact(value[: 1 << k]))


def mantissas(numbers, e, k):
    out = np.zeros(ROOM)
    out[: 1 << k] = numbers
    out.view(np.int64)[1 << k] = e
    return out


def in_range(value, k):
    """Component 0 in its range and the others with room over it, or the largest not too small, or zero."""
    sizes = [abs(x) for x in exact(value[: 1 << k])]
    if max(sizes) == 0:
        return exponent(value, k) == 0
    return max(sizes) < WIDE and (SMALL <= sizes[0] < BIG or max(sizes) >= SMALL)


def agrees(got, expected, k, tolerance=1e-13):
    """Jets of weights, each component to `tolerance` of the largest."""
    scale = max(map(abs, expected))
    return in_range(got, k) and all(
        abs(g - e) <= tolerance * scale for g, e in zip(weight(got, k), expected, strict=True)
    )


@pytest.mark.parametrize("k", KS)
def test_log_jets_read_and_write(call, k):
    rng, n = random.Random(k), 1 << k
    for log in LOGS:
        words = draw(rng, k)
        words[0] = log
        value = call(LOG[k], "read", words)
        assert agrees(value, exponential(exact(words)), k)
        back = call(LOG[k], "write", value)[:n]
        assert abs(back[0] - log) <= 1e-15 * max(1, abs(log))
        assert close(back[1:], exact(words)[1:])
        assert call(LOG[k], "primal", value) == back[0] == call(LOG[k], "size", value)


@pytest.mark.parametrize("k", KS)
def test_log_jets_multiply_and_add(call, k):
    rng, n = random.Random(k), 1 << k
    for first, gap in itertools.product(LOGS, (0.0, 0.5, 100.0, -180.0, 300.0, -600.0, 1e5)):
        a, b = draw(rng, k), draw(rng, k)
        a[0], b[0] = first, first + gap
        x, y = call(LOG[k], "read", a), call(LOG[k], "read", b)
        made = call(LOG[k], "times", x, y)
        assert in_range(made, k)
        assert close(call(LOG[k], "write", made)[1:n], total(exact(a), exact(b))[1:])
        assert agrees(made, product(weight(x, k), weight(y, k)), k)
        made = call(LOG[k], "plus", x, y)
        exactly = total(weight(x, k), weight(y, k))
        assert agrees(made, exactly, k)
        written = call(LOG[k], "write", made)[:n]
        assert close(written[1:], logarithm(exactly)[1:])
        assert abs(written[0] - logarithm(exactly)[0]) <= 1e-15 * max(1, abs(written[0]))


@pytest.mark.parametrize("k", KS)
def test_the_weight_zero_has_no_derivatives(call, k):
    n = 1 << k
    zero = call(LOG[k], "read", [-np.inf, *range(1, n)])
    assert not zero.view(np.uint64).any()
    assert list(call(LOG[k], "write", zero)[:n]) == [-np.inf] + [0.0] * (n - 1)
    other = call(LOG[k], "read", [5.0, *range(1, n)])
    assert not call(LOG[k], "times", zero, other).view(np.uint64).any()
    assert call(LOG[k], "negligible", zero, other) and not call(LOG[k], "negligible", other, zero)
    assert not call(LOG[k], "valid", call(LOG[k], "read", [np.inf]))
    assert not call(LOG[k], "valid", call(LOG[k], "read", [np.nan]))
    assert not call(LOG[k], "valid", call(LOG[k], "read", [0.0, np.nan]))


@pytest.mark.parametrize("k", KS)
def test_the_primal_is_what_log_computes_to_the_bit(call, k):
    """Random runs: the same mantissas and exponents, and so the same sizes and the same decisions."""
    rng, n = random.Random(k), 1 << k
    pool = []
    for _ in range(12):
        words = draw(rng, k)
        words[0] = rng.choice((1.0, 40.0, 2000.0)) * rng.gauss(0, 3)
        pool.append((call("Log", "read", words), call(LOG[k], "read", words)))
    for _ in range(400):
        (a, x), (b, y), (c, z) = (rng.choice(pool) for _ in range(3))
        assert call("Log", "negligible", a, b) == call(LOG[k], "negligible", x, y)
        which = rng.randrange(4)
        if which < 2:
            op = ("plus", "times")[which]
            made = call("Log", op, a, b), call(LOG[k], op, x, y)
        else:
            made = call("Log", "raw", call("Log", "raw", a, b), c), call(LOG[k], "raw", call(LOG[k], "raw", x, y), z)
            made = tuple(call(kind, "settled", v) for kind, v in zip(("Log", LOG[k]), made, strict=True))
        assert (made[0][0], int(made[0].view(np.int64)[1])) == (made[1][0], exponent(made[1], k))
        assert call("Log", "size", made[0]) == call(LOG[k], "size", made[1])
        assert in_range(made[1], k)
        if abs(exponent(made[1], k)) < 1000 and np.abs(call(LOG[k], "write", made[1])[1:n]).max() < 100:
            pool[rng.randrange(len(pool))] = made


@pytest.mark.parametrize("k", KS)
def test_three_factors_multiply_raw_wherever_they_are_in_range(call, k):
    rng, n = random.Random(k), 1 << k
    for first, rest in itertools.product((2.0**-256, 1.0, -(2.0**255.9)), (2.0**-200, 1.0, 2.0**319.9)):
        a, b, c = (mantissas([first] + [rest * rng.uniform(-1, 1) for _ in range(n - 1)], 7, k) for _ in range(3))
        made = call(LOG[k], "settled", call(LOG[k], "raw", call(LOG[k], "raw", a, b), c))
        assert agrees(made, product(product(weight(a, k), weight(b, k)), weight(c, k)), k)


@pytest.mark.parametrize("k", KS)
def test_mantissas_of_any_sign_and_size(call, k):
    """As adjoints have them: zeros at any place, sums that cancel, components far apart."""
    rng, n = random.Random(k), 1 << k
    for _ in range(200):
        a, b = (
            call(
                LOG[k],
                "settled",
                mantissas(
                    [rng.choice((-1, 0, 1)) * 2.0 ** rng.uniform(-250, 250) for _ in range(n)], rng.randint(-3, 3), k
                ),
            )
            for _ in "ab"
        )
        assert in_range(a, k) and in_range(b, k)
        assert agrees(call(LOG[k], "gather", a, b), total(weight(a, k), weight(b, k)), k)
        assert agrees(call(LOG[k], "scale", a, b), product(weight(a, k), weight(b, k)), k)
        minus = a.copy()
        minus[:n] *= -1
        assert not call(LOG[k], "gather", a, minus).view(np.uint64).any()
    assert np.isnan(call(LOG[k], "primal", mantissas([-1.0] * n, 0, k)))
    assert call(LOG[k], "negligible", mantissas([-1.0] * n, 0, k), mantissas([2.0**-300] * n, 0, k)) == 0


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("log", [0.0, 80.0, -80.0, 170.0, -170.0, 1e6])
def test_large_derivatives_of_a_log_weight(call, k, log):
    words = [log] + [10.0 ** (30 * mask.bit_count()) * mask for mask in range(1, 1 << k)]
    value = call(LOG[k], "read", words)
    assert agrees(value, exponential(exact(words)), k)
    square = call(LOG[k], "times", value, value)
    got = call(LOG[k], "write", square)[: 1 << k]
    scale = [10.0 ** (30 * mask.bit_count()) for mask in range(1 << k)]
    assert close(got / scale, [mpf(2 * w) / mpf(s) for w, s in zip(words, scale, strict=True)])


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("log", LOGS)
def test_log_jets_start_with_the_cotangent_over_the_weight(call, k, log):
    rng, n = random.Random(k), 1 << k
    words, cotangent, other = draw(rng, k), draw(rng, k), draw(rng, k)
    words[0], other[0] = log, log - 3
    root, x = call(LOG[k], "read", words), call(LOG[k], "read", other)
    adjoint = call(LOG[k], "start", cotangent, root)
    assert agrees(adjoint, quotient(exact(cotangent), weight(root, k)), k)
    assert close(call(LOG[k], "finish", adjoint, root)[:n], exact(cotangent))
    expected = product(quotient(exact(cotangent), weight(root, k)), weight(x, k))
    assert close(call(LOG[k], "finish", adjoint, x)[:n], expected)


@pytest.mark.parametrize("k", KS)
def test_starts_and_finishes_at_the_edge(call, k):
    n = 1 << k
    one, zero = call(LOG[k], "one"), call(LOG[k], "zero")
    assert not call(LOG[k], "start", [1.0] * n, zero).view(np.uint64).any()
    for size in (1e300, 1e-300):
        for log in (170.0, -170.0, 88.0, -89.0):
            root = call(LOG[k], "read", [log, *[3.0] * (n - 1)])
            adjoint = call(LOG[k], "start", [size] * n, root)
            assert close(call(LOG[k], "finish", adjoint, root)[:n] / size, [mpf(1)] * n)
    assert not call(LOG[k], "sound", call(LOG[k], "start", [np.inf], one))
    far = call(LOG[k], "read", [1e5])
    assert call(LOG[k], "finish", one, far)[0] == np.inf
    assert call(LOG[k], "finish", one, call(LOG[k], "start", [-1.0], far))[0] == 0
    assert not call(LOG[k], "finish", zero, far)[:n].any()


@pytest.mark.parametrize("k", KS)
def test_exponents_of_adjoints_do_not_wrap(call, k):
    for sign in (1, -1):
        value = mantissas([1.0], sign * 2**56, k)
        adjoint = value
        for _ in range(150):
            adjoint = call(LOG[k], "scale", adjoint, value)
        assert exponent(adjoint, k) * sign > 2**56 and not call(LOG[k], "sound", adjoint)


# -- selections --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("types", [MAX, MIN], ids=["viterbi", "tropical"])
def test_selections_take_one_argument_whole_and_at_a_tie_the_first(call, k, types):
    kind, n = types[k], 1 << k
    low, high, tied = ([x, *(y + i for i in range(n - 1))] for x, y in ((1.0, 10.0), (2.0, 20.0), (1.0, 30.0)))
    best = high if types is MAX else low
    for op in ((low, high), (high, low)):
        assert list(call(kind, "plus", *op)[:n]) == best
        assert call(kind, "better", *op) == (op[0] is best)
    assert list(call(kind, "plus", low, tied)[:n]) == low
    assert list(call(kind, "plus", tied, low)[:n]) == tied
    assert not call(kind, "better", low, tied) and not call(kind, "better", tied, low)
    assert list(call(kind, "zero")[:n]) == [-np.inf if types is MAX else np.inf] + [0.0] * (n - 1)


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("types", [MAX, MIN], ids=["viterbi", "tropical"])
def test_products_of_selections_add_and_adjoints_pass_unchanged(call, k, types):
    kind, n, rng = types[k], 1 << k, random.Random(k)
    a, b = draw(rng, k), draw(rng, k)
    added = [x + y for x, y in zip(a, b, strict=True)]
    assert list(call(kind, "times", a, b)[:n]) == added == list(call(kind, "gather", a, b)[:n])
    for op in ("scale", "start", "finish"):
        assert list(call(kind, op, a, b)[:n]) == a
    assert call(kind, "primal", a) == a[0]
    assert call(kind, "size", a, b) == (b[0] if types is MAX else -b[0])
