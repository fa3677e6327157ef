// The built-in semirings, as C++ types with static functions.
//
// A semiring S has: `Value`, its native number; `words`, the number of 8-byte words of a number in Python's scale;
// `read` and `write`, from and to these words; `zero`, `one`, `plus`, `times`; `selective`, whether plus selects one of
// its arguments, and then `better`; `size`, the priority of an update (largest first); `negligible`, whether an update
// is below a tolerance; `valid`, false for NaN and what is out of range. `flat` says that arrays of Value may be
// combined without checking which entries are derived: zero is all-zero bytes and annihilates exactly.
//
// A semiring that can be differentiated also has: `primal`, the number that decisions are made by; `Adjoint`, the
// number of the backward pass, whose zero is all-zero bytes; `gather`, the sum of two adjoints, whose signs may differ;
// `scale`, an adjoint times a value; `nothing` and `sound`, whether an adjoint is zero and whether it is finite;
// `start`, the adjoint of a seeded item from its cotangent; `finish`, from the adjoint of a value the derivative with
// respect to the number in Python's scale; `adjoint_words`, the number of words of cotangents and derivatives.
#pragma once
#include <dynagrad/base/math.hpp>
#include <stdint.h>
#include <string.h>

#include <dynagrad/base/linked.hpp>

namespace dynagrad {

DYNAGRAD_ALWAYS double as_double(uint64_t w) { double d; memcpy(&d, &w, 8); return d; }
DYNAGRAD_ALWAYS uint64_t as_word(double d) { uint64_t w; memcpy(&w, &d, 8); return w; }

struct Real {
  using Value = double;
  static constexpr int words = 1;
  static constexpr bool selective = false, flat = true, zero_bytes = true;
  DYNAGRAD_ALWAYS static Value zero() { return 0; }
  DYNAGRAD_ALWAYS static Value one() { return 1; }
  DYNAGRAD_ALWAYS static Value plus(Value a, Value b) { return a + b; }
  DYNAGRAD_ALWAYS static Value times(Value a, Value b) { return a * b; }
  DYNAGRAD_ALWAYS static Value read(const uint64_t* w) { return as_double(*w); }
  DYNAGRAD_ALWAYS static void write(Value v, uint64_t* w) { *w = as_word(v); }
  DYNAGRAD_ALWAYS static bool better(Value, Value) { return false; }
  DYNAGRAD_ALWAYS static double size(Value, Value update, Value) { return fabs(update); }
  static bool negligible(Value update, Value now, double tolerance) { return fabs(update) <= tolerance * fabs(now); }
  DYNAGRAD_ALWAYS static bool same(Value a, Value b) { return a == b; }
  DYNAGRAD_ALWAYS static bool valid(Value v) { return isfinite(v); }
  DYNAGRAD_ALWAYS static bool tiny(Value v) { return fabs(v) < 2.2250738585072014e-308; }

  using Adjoint = double;
  static constexpr int adjoint_words = 1;
  DYNAGRAD_ALWAYS static double primal(Value v) { return v; }
  DYNAGRAD_ALWAYS static Value constant(double x) { return x; }
  DYNAGRAD_ALWAYS static Adjoint gather(Adjoint a, Adjoint b) { return a + b; }
  DYNAGRAD_ALWAYS static Adjoint scale(Adjoint g, Value x) { return g * x; }
  DYNAGRAD_ALWAYS static bool nothing(Adjoint g) { return g == 0; }
  DYNAGRAD_ALWAYS static bool sound(Adjoint g) { return isfinite(g); }
  DYNAGRAD_ALWAYS static Adjoint start(const uint64_t* cotangent, Value) { return as_double(*cotangent); }
  DYNAGRAD_ALWAYS static void finish(Adjoint g, Value, uint64_t* w) { *w = as_word(g); }
};

// Plain arithmetic: a predicate's own aggregator takes the place of plus.
struct Plain : Real {
  DYNAGRAD_ALWAYS static bool valid(Value v) { return !isnan(v); }
  DYNAGRAD_ALWAYS static Value minus(Value a, Value b) { return a - b; }
  DYNAGRAD_ALWAYS static Value over(Value a, Value b) { return a / b; }
  // The log of the sum of two weights that are given by their logs, and what a log weight x has of the adjoint of such a
  // sum: its share of the weight. A sum of nothing but zeros has no shares. What rounding took from a large log is its
  // `rest`, without which shares of it would not sum to one.
  static Value log_plus(Value a, Value b) {
    return a == b ? a + 0.6931471805599453 : fmax(a, b) + log1p(exp(-fabs(a - b)));
  }
  static Value log_plus(Value a, Value b, double& rest) {
    const double top = fmax(a, b), more = log1p_of(a, b, rest), sum = top + more;
    const double back = sum - top;
    rest = isfinite(sum) ? (top - (sum - back)) + (more - back) : 0;
    return sum;
  }
  // The log of the sum of exp(a + rest) and exp(b), less the larger of a and b.
  static double log1p_of(double a, double b, double rest) {
    if (a == b) return isfinite(a) && rest != 0 ? rest + log1p(exp(-rest)) : 0.6931471805599453;
    if (!isfinite(a - b)) return a > b ? rest : 0;
    return a > b ? rest + log1p(exp((b - a) - rest)) : log1p(exp((a - b) + rest));
  }
  static Adjoint share(Adjoint g, Value x, Value total, double rest = 0) {
    return total == -INFINITY ? 0 : g * exp((x - total) - rest);
  }
};

// The log of a weight, kept as mantissa times a power of 2^256: adds and multiplies without exp or log, and never
// underflows. The mantissa of a number other than zero is in [2^-256, 2^256).
//
// Where the log itself is of size 2^58 or more, as masks of -1e30 are, no exponent counts so far, and two logs that
// differ do so by 64 and more: the sum of their weights is the larger one. Such a weight is *far*: a factor, times the
// exponential of a double whose bits are the exponent, so that exponents still are in the order of weights, and equal
// where weights may be added. Its mantissa is the factor times 2^900, so that a product with it is out of range, and
// every way that has no time for far numbers hands it on to the one that has: `far_times`. A log that is infinite there
// has overflowed, and is not valid.
struct Log {
  struct Value { double m; int64_t e; };
  static constexpr int words = 1;
  static constexpr bool selective = false, flat = false, zero_bytes = true;
  static constexpr double big = 0x1p256, small = 0x1p-256;
  static constexpr int64_t most = (int64_t)1 << 56;  // of an exponent's size, so that those of a rule's factors add up
  static constexpr double near = 177;  // logs of this size have exponent zero
  static constexpr double unit = 177.445678223346, unit_rest = 5.936759843446527e-15;  // 256 ln 2, in two parts
  DYNAGRAD_ALWAYS static Value zero() { return {0, 0}; }
  DYNAGRAD_ALWAYS static Value one() { return {1, 0}; }
  static constexpr double far_log = 0x1p58, far = 0x1p800, mark = 0x1p900;
  static constexpr int64_t far_exponent = (int64_t)1 << 62;
  DYNAGRAD_ALWAYS static bool is_far(int64_t e) { return e > far_exponent || e < -far_exponent; }
  DYNAGRAD_ALWAYS static bool is_far(const Value& v) { return is_far(v.e); }
  static double far_log_of(int64_t e) { return e < 0 ? -as_double((uint64_t)-e) : as_double((uint64_t)e); }
  // One, with the exponent of other weights.
  DYNAGRAD_ALWAYS static Value unit_of(int64_t e) { return {is_far(e) ? mark : 1, e}; }
  // A factor, of either sign, times the exponential of x + rest. Digits that the log has not are digits of the factor,
  // while it has room for them.
  DYNAGRAD_ONCE static Value far_of(double factor, double x, double rest) {
    if (factor == 0) return zero();
    if (x != x) x = INFINITY;
    if (fabs(rest) < 64) factor *= exp(rest);
    if (!(fabs(factor) > 0x1p-96 && fabs(factor) < 0x1p96)) {
      x += log(fabs(factor));
      factor = copysign(1, factor);
    }
    if (fabs(x) < far_log) {  // logs that cancel
      const Value size = read_near(x);
      return signed_norm(size.m * factor, size.e);
    }
    const int64_t bits = (int64_t)as_word(fabs(x));
    return {factor * mark, x < 0 ? -bits : bits};
  }
  // The log of a number without its factor, and the factor, which may have a sign. A near number need not be settled; it
  // is all factor, or has none.
  static double parted(const Value& v, double& factor) {
    if (is_far(v)) return factor = v.m / mark, far_log_of(v.e);
    const double size = out({fabs(v.m), v.e});
    factor = v.e == 0 && fabs(size) < 44 ? v.m : copysign(fabs(size) < 44 ? exp(size) : 1, v.m);
    return fabs(size) < 44 ? 0 : size;
  }
  // The product, where one of two numbers is far. Adjoints were divided by sums of what they are multiplied with: logs
  // that cancel but for rounding are zero there.
  DYNAGRAD_ONCE static Value far_times(const Value& a, const Value& b, bool adjoint = false) {
    if (a.m == 0 || b.m == 0) return zero();
    double f, g;
    const double x = parted(a, f), y = parted(b, g), sum = x + y, back = sum - x;
    if (adjoint && is_far(a) && is_far(b) && fabs(sum) < 0x1p-46 * fabs(x)) return far_of(f * g, 0, 0);
    return far_of(f * g, sum, isfinite(sum) ? (x - (sum - back)) + (y - back) : 0);
  }
  DYNAGRAD_ALWAYS static Value far_inverse(const Value& v) { return {mark * (mark / v.m), -v.e}; }
  // The sum of two weights, where one is far.
  DYNAGRAD_ONCE static Value far_plus(Value a, Value b) {
    if (a.e == b.e) return far_of(a.m / mark + b.m / mark, far_log_of(a.e), 0);
    if (out(a) < out(b)) { Value t = a; a = b; b = t; }
    const double apart = out(a) - out(b), more = apart < 300 ? exp(-apart) : 0;
    return more == 0 ? a : is_far(a) ? far_of(a.m / mark * (1 + more), far_log_of(a.e), 0) : norm(a.m * (1 + more), a.e);
  }
  static Value over(const Value& a, const Value& b) {
    if (__builtin_expect(is_far(a) | is_far(b), 0)) return far_times(a, is_far(b) ? far_inverse(b) : norm(1 / b.m, -b.e));
    return norm(a.m / b.m, a.e - b.e);
  }
  static Value norm(double m, int64_t e) {
    if (__builtin_expect(is_far(e), 0)) return {m, e};
    if (m >= big) return {m * small, e + 1};
    if (m < small && m > 0) return {m * big, e - 1};
    return {m, e};
  }
  DYNAGRAD_ALWAYS static Value plus(Value a, Value b) {
    const double m = a.m + b.m;  // no smaller than either, so only too large
    if (__builtin_expect((a.e == b.e) & (m < big), 1)) return {m, a.e};
    return plus_apart(a, b);
  }
  DYNAGRAD_ONCE static Value plus_apart(Value a, Value b) {
    if (a.m == 0) return b;
    if (b.m == 0) return a;
    if (is_far(a) | is_far(b)) return far_plus(a, b);
    if (a.e < b.e) { Value t = a; a = b; b = t; }
    const int64_t gap = a.e - b.e;
    if (gap > 2) return a;
    double m = b.m;
    for (int64_t i = 0; i < gap; i++) m *= small;
    return norm(a.m + m, a.e);
  }
  // A product out of range by at most two more factors, to be settled before it is added to anything.
  DYNAGRAD_ALWAYS static Value raw(Value a, Value b) {
    const double m = a.m * b.m;
    if (__builtin_expect(m < big, 1)) return {m, a.e + b.e};
    return raw_apart(a, b);
  }
  DYNAGRAD_ONCE static Value raw_apart(Value a, Value b) {
    return (is_far(a) | is_far(b)) ? far_times(a, b) : Value{a.m * b.m, a.e + b.e};
  }
  DYNAGRAD_ALWAYS static Value settled(Value a) {
    if (__builtin_expect(a.m >= small && a.m < big, 1)) return a;
    return settled_apart(a);
  }
  DYNAGRAD_ONCE static Value settled_apart(Value a) {
    if (a.m == 0) return zero();
    if (is_far(a)) return a;
    while (a.m >= big && a.m < INFINITY) a = {a.m * small, a.e + 1};
    while (a.m < small) a = {a.m * big, a.e - 1};
    return a;
  }
  static Value times(Value a, Value b) {
    const double m = a.m * b.m;
    if (__builtin_expect(m >= small && m < big, 1)) return {m, a.e + b.e};
    return times_apart(a, b);
  }
  DYNAGRAD_ONCE static Value times_apart(Value a, Value b) {
    const double m = a.m * b.m;
    if (is_far(a) | is_far(b)) return far_times(a, b);
    return m == 0 ? zero() : norm(m, a.e + b.e);
  }
  // exp of a number of size under 354, from 13 terms of its series: within two units in the last place.
  static double exp_near(double x) {
    constexpr double shifter = 0x1.8p52, per = 1.4426950408889634, high = 0x1.62e42feep-1, low = 0x1.a39ef35793c76p-33;
    const double k = (x * per + shifter) - shifter, r = (x - k * high) - k * low;
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600, p = p * r + 1.0 / 39916800, p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880, p = p * r + 1.0 / 40320, p = p * r + 1.0 / 5040, p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120, p = p * r + 1.0 / 24, p = p * r + 1.0 / 6, p = p * r + 0.5, p = p * r + 1, p = p * r + 1;
    return p * as_double((as_word(k + 0x1.8p52) + 1023) << 52);  // the low bits of k + 1.5 * 2^52 are those of k
  }
  DYNAGRAD_ONCE static Value read(const uint64_t* w) {
    const double x = as_double(*w);
    if (fabs(x) < near) return {exp_near(x), 0};
    if (x == -INFINITY) return zero();
    return fabs(x) < far_log ? read_near(x) : far_of(1, x, 0);
  }
  DYNAGRAD_ONCE static Value read_near(double x) {
    const double e = nearbyint(x / unit), r = fma(-e, unit, x) - e * unit_rest;
    return norm(exp(r), (int64_t)e);
  }
  // The mantissas of many numbers, where all their exponents are zero; else false, and what was written means nothing.
  DYNAGRAD_ONCE static bool read_mantissas(const uint64_t* words, int64_t n, double* m, bool& has_zero) {
    bool all = true;
    int64_t zeros = 0;
    for (int64_t i = 0; i < n; i++) {
      const double x = as_double(words[i]), y = exp_near(x);
      const bool nothing = x == -INFINITY, fine = fabs(x) < near;
      zeros += nothing, all &= nothing | fine;
      m[i] = nothing ? 0 : y;
    }
    has_zero = zeros > 0;
    return all;
  }
  DYNAGRAD_ONCE static double out(Value v) {
    if (__builtin_expect(is_far(v), 0)) return far_log_of(v.e) + log(v.m / mark);
    return v.m == 0 ? -INFINITY : (double)v.e * unit + (log(v.m) + (double)v.e * unit_rest);
  }
  DYNAGRAD_ALWAYS static void write(Value v, uint64_t* w) { *w = as_word(out(v)); }
  DYNAGRAD_ALWAYS static bool better(Value, Value) { return false; }
  DYNAGRAD_ALWAYS static double size(Value, Value update, Value) { return out(update); }
  static bool negligible(Value update, Value now, double tolerance) {
    if (update.m == 0) return true;
    const int64_t gap = now.e - update.e;
    if (gap < -1) return false;
    if (gap > 3) return tolerance > 0;
    return ldexp(update.m, (int)(-256 * gap)) <= tolerance * now.m;
  }
  DYNAGRAD_ALWAYS static bool same(Value a, Value b) { return a.m == b.m && a.e == b.e; }
  DYNAGRAD_ALWAYS static bool valid(Value v) {
    return isfinite(v.m) && ((v.e <= most && v.e >= -most) || far_and_finite(v.e));
  }
  DYNAGRAD_ALWAYS static bool far_and_finite(int64_t e) { return is_far(e) && isfinite(far_log_of(e)); }
  DYNAGRAD_ALWAYS static bool tiny(Value) { return false; }

  // Adjoints are with respect to the weight itself, and may be negative.
  using Adjoint = Value;
  static constexpr int adjoint_words = 1;
  DYNAGRAD_ALWAYS static double primal(Value v) { return out(v); }
  DYNAGRAD_ONCE static Adjoint signed_norm(double m, int64_t e) {
    if (m == 0) return zero();
    if (is_far(e)) return far_of(m / mark, far_log_of(e), 0);
    if (!(fabs(m) < INFINITY)) return {m, most};  // not sound
    for (; fabs(m) >= big; e++) m *= small;
    for (; fabs(m) < small; e--) m *= big;
    return {m, e};
  }
  static Adjoint gather(Adjoint a, Adjoint b) {
    if (__builtin_expect(a.e == b.e, 1)) {
      const double m = a.m + b.m, size = fabs(m);
      return __builtin_expect(size >= small && size < big, 1) ? Adjoint{m, a.e} : signed_norm(m, a.e);
    }
    return gather_apart(a, b);
  }
  DYNAGRAD_ONCE static Adjoint gather_apart(Adjoint a, Adjoint b) {
    if (a.m == 0) return b;
    if (b.m == 0) return a;
    if (a.e < b.e) { Adjoint t = a; a = b; b = t; }
    const int64_t gap = a.e - b.e;
    if (gap > 2) return a;
    double m = b.m * small;
    if (gap == 2) m *= small;
    return signed_norm(a.m + m, a.e);
  }
  static Adjoint scale(Adjoint g, Value x) {
    const double m = g.m * x.m, size = fabs(m);
    if (__builtin_expect(size >= small && size < big, 1)) return {m, g.e + x.e};
    return (is_far(g) | is_far(x)) ? far_times(g, x, true) : signed_norm(m, g.e + x.e);
  }
  DYNAGRAD_ALWAYS static bool nothing(Adjoint g) { return g.m == 0; }
  DYNAGRAD_ALWAYS static bool sound(Adjoint g) { return valid(g); }
  // d log w = dw / w: the cotangent of the log of the root's weight, as one of the weight.
  static Adjoint start(const uint64_t* cotangent, Value root) {
    if (root.m == 0) return zero();
    const Adjoint c = signed_norm(as_double(*cotangent), 0);
    const Adjoint inverse = is_far(root) ? far_inverse(root) : signed_norm(1 / root.m, -root.e);
    return scale(c, inverse);
  }
  static void finish(Adjoint g, Value x, uint64_t* w) {
    const Adjoint product = scale(g, x);
    const int64_t e = product.e > 8 ? 8 : product.e < -8 ? -8 : product.e;
    *w = as_word(e == 0 ? product.m : ldexp(product.m, (int)(256 * e)));
  }
};

// The adjoints of `log` where each item becomes final at once: they are kept with respect to log weights. That of an
// item is the sum of the posteriors of the instances that use it, which are plain numbers. To get them, an item's own
// is divided by its weight once (`share`), when it is complete.
struct Posterior {
  using Adjoint = double;
  DYNAGRAD_ALWAYS static Adjoint gather(Adjoint a, Adjoint b) { return a + b; }
  DYNAGRAD_ALWAYS static bool nothing(Adjoint g) { return g == 0; }
  DYNAGRAD_ALWAYS static bool sound(Adjoint g) { return isfinite(g); }
  static Adjoint start(const uint64_t* cotangent, Log::Value root) { return root.m == 0 ? 0 : as_double(*cotangent); }
  DYNAGRAD_ALWAYS static void finish(Adjoint g, Log::Value, uint64_t* w) { *w = as_word(g); }
  static Log::Value share(Adjoint g, Log::Value x) {
    if (g == 0 || x.m == 0) return Log::zero();
    const double m = g / x.m, size = fabs(m);
    if (__builtin_expect(Log::is_far(x), 0)) return {m, -x.e};  // which a product with its like takes back into range
    return size >= Log::small && size < Log::big ? Log::Value{m, -x.e} : Log::signed_norm(m, -x.e);
  }
  // The product of a share and the weight of an instance, three factors of which may not be settled.
  static double of(Log::Value share, Log::Value w) {
    const int64_t e = (int64_t)((uint64_t)share.e + (uint64_t)w.e);
    const double m = share.m * w.m;
    return __builtin_expect(e == 0, 1) ? m : apart(m, e, share.e, w.e);
  }
  // Two far ones may have a sum out of range, such as that of the share of a large log and a mask.
  DYNAGRAD_ONCE static double apart(double m, int64_t e, int64_t of_share, int64_t of_weight) {
    if (of_share < 0 && of_weight < 0) return e < -8 || e >= 0 ? 0 : ldexp(m, (int)(256 * e));
    return e < -8 ? 0 : ldexp(m, (int)(256 * (e > 8 ? 8 : e)));
  }
};

// What Viterbi and Tropical share: values are logs or costs, of which the better one is selected. A sum that overflows to
// the zero is NaN instead, which no sum mends: worse than any number and better than the zero, so that it is an error
// exactly where it is an item's value, and not that of an item which is not derived.
struct Selective {
  using Value = double;
  static constexpr int words = 1;
  static constexpr bool selective = true, flat = false, zero_bytes = false;
  DYNAGRAD_ALWAYS static Value one() { return 0; }
  // A sum, where `worst` is the zero; how good a number is, for an order of pops.
  DYNAGRAD_ALWAYS static Value sum(Value a, Value b, Value worst) {
    const double c = a + b;
    return __builtin_expect(c == worst, 0) && a != worst && b != worst ? NAN : c;
  }
  DYNAGRAD_ALWAYS static double rank(double x) { return __builtin_expect(x == x, 1) ? x : -INFINITY; }
  // Whether a is better, of two numbers of which none is better by comparison.
  DYNAGRAD_ALWAYS static bool better_apart(Value a, Value b, bool no_better, Value worst) {
    return __builtin_expect(!no_better, 0) && (a == a ? a != worst : b == worst);
  }
  DYNAGRAD_ALWAYS static Value read(const uint64_t* w) { return as_double(*w); }
  DYNAGRAD_ALWAYS static void write(Value v, uint64_t* w) { *w = as_word(v); }
  DYNAGRAD_ALWAYS static bool negligible(Value, Value, double) { return false; }
  DYNAGRAD_ALWAYS static bool tiny(Value) { return false; }

  // Along the derivation that won, a value is a sum: every partial derivative is one.
  using Adjoint = double;
  static constexpr int adjoint_words = 1;
  DYNAGRAD_ALWAYS static double primal(Value v) { return v; }
  DYNAGRAD_ALWAYS static Adjoint gather(Adjoint a, Adjoint b) { return a + b; }
  DYNAGRAD_ALWAYS static Adjoint scale(Adjoint g, Value) { return g; }
  DYNAGRAD_ALWAYS static bool nothing(Adjoint g) { return g == 0; }
  DYNAGRAD_ALWAYS static bool sound(Adjoint g) { return isfinite(g); }
  // A root that is the zero stays what it is, whatever its derivations weigh: its derivatives are zero.
  static Adjoint start(const uint64_t* cotangent, Value root) { return isfinite(root) ? as_double(*cotangent) : 0; }
  DYNAGRAD_ALWAYS static void finish(Adjoint g, Value, uint64_t* w) { *w = as_word(g); }
};

struct Viterbi : Selective {
  DYNAGRAD_ALWAYS static Value zero() { return -INFINITY; }
  DYNAGRAD_ALWAYS static Value times(Value a, Value b) { return sum(a, b, -INFINITY); }
  DYNAGRAD_ALWAYS static Value plus(Value a, Value b) { return better(b, a) ? b : a; }
  DYNAGRAD_ALWAYS static bool better(Value a, Value b) { return a > b || better_apart(a, b, a <= b, -INFINITY); }
  DYNAGRAD_ALWAYS static double size(Value, Value, Value now) { return rank(now); }
  DYNAGRAD_ALWAYS static bool valid(Value v) { return v < INFINITY; }
};

struct Tropical : Selective {
  DYNAGRAD_ALWAYS static Value zero() { return INFINITY; }
  DYNAGRAD_ALWAYS static Value times(Value a, Value b) { return sum(a, b, INFINITY); }
  DYNAGRAD_ALWAYS static Value plus(Value a, Value b) { return better(b, a) ? b : a; }
  DYNAGRAD_ALWAYS static bool better(Value a, Value b) { return a < b || better_apart(a, b, a >= b, INFINITY); }
  DYNAGRAD_ALWAYS static double size(Value, Value, Value now) { return rank(-now); }
  DYNAGRAD_ALWAYS static bool valid(Value v) { return v > -INFINITY; }
};

struct Boolean {
  using Value = uint8_t;
  static constexpr int words = 1;
  static constexpr bool selective = true, flat = false, zero_bytes = true;
  DYNAGRAD_ALWAYS static Value zero() { return 0; }
  DYNAGRAD_ALWAYS static Value one() { return 1; }
  DYNAGRAD_ALWAYS static Value plus(Value a, Value b) { return a | b; }
  DYNAGRAD_ALWAYS static Value times(Value a, Value b) { return a & b; }
  DYNAGRAD_ALWAYS static Value read(const uint64_t* w) { return as_double(*w) != 0; }
  DYNAGRAD_ALWAYS static void write(Value v, uint64_t* w) { *w = as_word(v); }
  DYNAGRAD_ALWAYS static bool better(Value a, Value b) { return a > b; }
  DYNAGRAD_ALWAYS static double size(Value, Value, Value) { return 0; }
  DYNAGRAD_ALWAYS static bool negligible(Value, Value, double) { return false; }
  DYNAGRAD_ALWAYS static bool valid(Value) { return true; }
  DYNAGRAD_ALWAYS static bool tiny(Value) { return false; }
};

// Whole numbers in the machine's widest integer. What does not fit becomes `overflow`, which every operation keeps
// and `valid` refuses, so that a wrong number is never seen.
struct Count {
  using Value = unsigned __int128;
  static constexpr int words = 2;
  static constexpr bool selective = false, flat = false, zero_bytes = true;
  static constexpr Value overflow = ~(Value)0;
  DYNAGRAD_ALWAYS static Value zero() { return 0; }
  DYNAGRAD_ALWAYS static Value one() { return 1; }
  static Value plus(Value a, Value b) {
    if (a == overflow || b == overflow) return overflow;
    Value c;
    return __builtin_add_overflow(a, b, &c) ? overflow : c;
  }
  static Value times(Value a, Value b) {
    if (a == 0 || b == 0) return 0;
    if (a == overflow || b == overflow) return overflow;
    Value c;
    return __builtin_mul_overflow(a, b, &c) ? overflow : c;
  }
  DYNAGRAD_ALWAYS static Value read(const uint64_t* w) { return (Value)w[1] << 64 | w[0]; }
  DYNAGRAD_ALWAYS static void write(Value v, uint64_t* w) { w[0] = (uint64_t)v, w[1] = (uint64_t)(v >> 64); }
  DYNAGRAD_ALWAYS static bool better(Value, Value) { return false; }
  DYNAGRAD_ALWAYS static double size(Value, Value, Value) { return 0; }
  DYNAGRAD_ALWAYS static bool negligible(Value update, Value, double) { return update == 0; }
  DYNAGRAD_ALWAYS static bool same(Value a, Value b) { return a == b; }
  DYNAGRAD_ALWAYS static bool valid(Value v) { return v != overflow; }
  DYNAGRAD_ALWAYS static bool tiny(Value) { return false; }
};

// Pairs (p, r) with r a vector of D numbers: dual numbers under their other name.
template <int D>
struct Expectation {
  struct Value { double p; double r[D]; };
  static constexpr int words = 1 + D;
  static constexpr bool selective = false, flat = false, zero_bytes = true;
  static Value zero() { Value v; memset(&v, 0, sizeof v); return v; }
  static Value one() { Value v = zero(); v.p = 1; return v; }
  static Value plus(Value a, const Value& b) {
    a.p += b.p;
    for (int i = 0; i < D; i++) a.r[i] += b.r[i];
    return a;
  }
  static Value times(const Value& a, const Value& b) {
    Value c;
    c.p = a.p * b.p;
    for (int i = 0; i < D; i++) c.r[i] = a.p * b.r[i] + b.p * a.r[i];
    return c;
  }
  static Value read(const uint64_t* w) { Value v; memcpy(&v, w, sizeof v); return v; }
  DYNAGRAD_ALWAYS static void write(const Value& v, uint64_t* w) { memcpy(w, &v, sizeof v); }
  DYNAGRAD_ALWAYS static bool better(const Value&, const Value&) { return false; }
  static double size(const Value&, const Value& update, const Value&) {
    double s = fabs(update.p);
    for (int i = 0; i < D; i++) s += fabs(update.r[i]);
    return s;
  }
  static bool negligible(const Value& update, const Value& now, double tolerance) {
    if (fabs(update.p) > tolerance * fabs(now.p)) return false;
    for (int i = 0; i < D; i++)
      if (fabs(update.r[i]) > tolerance * (fabs(now.r[i]) + fabs(now.p))) return false;
    return true;
  }
  DYNAGRAD_ALWAYS static bool same(const Value& a, const Value& b) { return !memcmp(&a, &b, sizeof a); }
  static bool valid(const Value& v) {
    bool fine = isfinite(v.p);
    for (int i = 0; i < D; i++) fine = fine && isfinite(v.r[i]);
    return fine;
  }
  DYNAGRAD_ALWAYS static bool tiny(const Value&) { return false; }

  using Adjoint = Value;
  static constexpr int adjoint_words = 1 + D;
  DYNAGRAD_ALWAYS static double primal(const Value& v) { return v.p; }
  DYNAGRAD_ALWAYS static Adjoint gather(const Adjoint& a, const Adjoint& b) { return plus(a, b); }
  DYNAGRAD_ALWAYS static Adjoint scale(const Adjoint& g, const Value& x) { return times(g, x); }
  static bool nothing(const Adjoint& g) {
    bool none = g.p == 0;
    for (int i = 0; i < D; i++) none = none && g.r[i] == 0;
    return none;
  }
  DYNAGRAD_ALWAYS static bool sound(const Adjoint& g) { return valid(g); }
  DYNAGRAD_ALWAYS static Adjoint start(const uint64_t* cotangent, const Value&) { return read(cotangent); }
  DYNAGRAD_ALWAYS static void finish(const Adjoint& g, const Value&, uint64_t* w) { write(g, w); }
};

}  // namespace dynagrad
