// Jets: numbers that carry their derivatives along K directions at once, as types with the members of a semiring.
//
// A jet has K directions e_i with e_i^2 = 0, and so 2^K components, one for each set of directions; the set is the
// bit mask that indexes it. Component 0 is the primal, component 1 << i the derivative along direction i, component
// 1 << i | 1 << j the mixed second derivative, and so on: dual numbers nested K deep. A program that runs over jets
// computes all of these along with its values, and its backward pass over jets those of the gradient (K = 1: products
// of the Hessian with a vector).
//
// Here are the arithmetic of arrays of components, jets over the semirings that can be differentiated, and what the
// backward pass needs of them: `Adjoint`, its sum `gather`, its product `scale` with a value, `start` and `finish`.
// Programs, charts and tapes are not known here. Jets are plain bytes.
//
// Every decision (`size`, `negligible`, `better`, `tiny`) looks at component 0 alone, and component 0 is computed as
// the semiring below computes it, to the bit, so that a run takes the same course with its derivatives as without.
// A caveat: a tolerance thus ends a run when values stand still, whether or not derivatives do by then.
//
// It is long because each kind of semiring has jets of its own, all over the arrays of components at the beginning.
#pragma once
#include <dynagrad/base/math.hpp>
#include <stdint.h>
#include <string.h>

#include <dynagrad/semirings.hpp>

namespace dynagrad {

// -- arrays of 2^K components ------------------------------------------------------------------------------------

// Each function halves its jets at the last direction: a = low + e high. The few lines of a level are repeated where
// they are used up to K = 2; from there on a level is one function that calls the one below, so that code stays small.
namespace jet {

template <int K, class S = Real>
inline void multiply(const typename S::Value* a, const typename S::Value* b, typename S::Value* out);
template <int K, class S = Real>
inline void add_product(const typename S::Value* a, const typename S::Value* b, typename S::Value* out);

template <int K, class S>
inline __attribute__((always_inline)) void multiply_level(
    const typename S::Value* a, const typename S::Value* b, typename S::Value* out) {
  constexpr int half = 1 << (K - 1);
  multiply<K - 1, S>(a, b, out);
  multiply<K - 1, S>(a, b + half, out + half);
  add_product<K - 1, S>(a + half, b, out + half);
}
template <int K, class S>
__attribute__((noinline)) void multiply_apart(
    const typename S::Value* __restrict a, const typename S::Value* __restrict b, typename S::Value* __restrict out) {
  multiply_level<K, S>(a, b, out);
}
template <int K, class S>
inline __attribute__((always_inline)) void add_product_level(
    const typename S::Value* a, const typename S::Value* b, typename S::Value* out) {
  constexpr int half = 1 << (K - 1);
  add_product<K - 1, S>(a, b, out);
  add_product<K - 1, S>(a, b + half, out + half);
  add_product<K - 1, S>(a + half, b, out + half);
}
template <int K, class S>
__attribute__((noinline)) void add_product_apart(
    const typename S::Value* __restrict a, const typename S::Value* __restrict b, typename S::Value* __restrict out) {
  add_product_level<K, S>(a, b, out);
}

// out = a b, the sum over all ways to part each set in two. `out` is neither a nor b.
template <int K, class S>
inline __attribute__((always_inline)) void multiply(
    const typename S::Value* a, const typename S::Value* b, typename S::Value* out) {
  if constexpr (K == 0) out[0] = S::times(a[0], b[0]);
  else if constexpr (K <= 2) multiply_level<K, S>(a, b, out);
  else multiply_apart<K, S>(a, b, out);
}

// out += a b.
template <int K, class S>
inline __attribute__((always_inline)) void add_product(
    const typename S::Value* a, const typename S::Value* b, typename S::Value* out) {
  if constexpr (K == 0) out[0] = S::plus(out[0], S::times(a[0], b[0]));
  else if constexpr (K <= 2) add_product_level<K, S>(a, b, out);
  else add_product_apart<K, S>(a, b, out);
}

// out = a + b; `out` may be either.
template <int K, class S = Real>
inline void add(const typename S::Value* a, const typename S::Value* b, typename S::Value* out) {
  for (int i = 0; i < 1 << K; i++) out[i] = S::plus(a[i], b[i]);
}

// out = a / b, where the primal of b is not zero; `out` may be a, and not b.
template <int K>
inline void divide(const double* a, const double* b, double* out);

template <int K>
__attribute__((noinline)) void divide_apart(const double* a, const double* b, double* out) {
  constexpr int half = 1 << (K - 1);
  double back[half];
  divide<K - 1>(a, b, out);
  multiply<K - 1>(out, b + half, back);
  for (int i = 0; i < half; i++) out[half + i] = a[half + i] - back[i];
  divide<K - 1>(out + half, b, out + half);
}

template <int K>
inline void divide(const double* a, const double* b, double* out) {
  if constexpr (K == 0) {
    out[0] = a[0] / b[0];
  } else if constexpr (K == 1) {
    out[0] = a[0] / b[0];
    out[1] = (a[1] - out[0] * b[1]) / b[0];
  } else {
    divide_apart<K>(a, b, out);
  }
}

// out = exp a, given the exp of its primal times any factor, which then is a factor of the whole. `out` is not a.
template <int K>
inline void exp_from(double first, const double* a, double* out) {
  if constexpr (K == 0) {
    out[0] = first;
  } else {
    constexpr int half = 1 << (K - 1);
    exp_from<K - 1>(first, a, out);
    multiply<K - 1>(out, a + half, out + half);
  }
}
template <int K>
inline void exp(const double* a, double* out) { exp_from<K>(::exp(a[0]), a, out); }

// out = log a, given the log of its primal, which is not zero. `out` is not a.
template <int K>
inline void log_from(double first, const double* a, double* out) {
  if constexpr (K == 0) {
    out[0] = first;
  } else {
    constexpr int half = 1 << (K - 1);
    log_from<K - 1>(first, a, out);
    divide<K - 1>(a + half, a, out + half);
  }
}
template <int K>
inline void log(const double* a, double* out) { log_from<K>(::log(a[0]), a, out); }

inline bool all_zero(const double* a, int n) {
  bool zero = true;
  for (int i = 0; i < n; i++) zero &= a[i] == 0;
  return zero;
}
inline bool all_finite(const double* a, int n) {
  bool fine = true;
  for (int i = 0; i < n; i++) fine &= fabs(a[i]) < INFINITY;
  return fine;
}

}  // namespace jet

// -- over rings --------------------------------------------------------------------------------------------------

// Jets over Real or Expectation. Outside, the numbers of S one after another, component 0 first.
template <class S, int K>
struct Jets {
  struct Value { typename S::Value v[1 << K]; };
  using Adjoint = Value;
  static constexpr int count = 1 << K;  // of components
  static constexpr int words = S::words << K;
  static constexpr int adjoint_words = words;
  static constexpr bool selective = false, flat = false, zero_bytes = true;
  static_assert(sizeof(Value) == sizeof(double) * words);

  static Value zero() { Value v; memset(&v, 0, sizeof v); return v; }
  static Value one() { Value v = zero(); v.v[0] = S::one(); return v; }
  static Value plus(const Value& a, const Value& b) { Value c; jet::add<K, S>(a.v, b.v, c.v); return c; }
  static Value times(const Value& a, const Value& b) { Value c; jet::multiply<K, S>(a.v, b.v, c.v); return c; }
  static Value read(const uint64_t* w) { Value v; memcpy(&v, w, sizeof v); return v; }
  static void write(const Value& v, uint64_t* w) { memcpy(w, &v, sizeof v); }
  static bool better(const Value&, const Value&) { return false; }
  static double size(const Value& old, const Value& update, const Value& now) {
    return S::size(old.v[0], update.v[0], now.v[0]);
  }
  static bool same(const Value& a, const Value& b) { return S::same(a.v[0], b.v[0]); }
  static Value without_tangents(const Value& a) { Value c = zero(); c.v[0] = a.v[0]; return c; }
  static Value tangents(Value a) { a.v[0] = S::zero(); return a; }
  // How large the tangents of an update are, all together.
  static double stir(const Value& update) {
    double u[words], sum = 0;
    memcpy(u, &update, sizeof u);
    for (int i = S::words; i < words; i++) sum += fabs(u[i]);
    return sum;
  }
  // Whether an update that leaves the primal as it is carries derivatives.
  static bool moves(const Value& update, const Value& now) {
    double u[words], x[words];
    memcpy(u, &update, sizeof u), memcpy(x, &now, sizeof x);
    for (int i = S::words; i < words; i++)
      if (!(fabs(u[i]) <= 1e-13 * fabs(x[i]))) return true;
    return false;
  }
  static bool negligible(const Value& update, const Value& now, double tolerance) {
    return S::negligible(update.v[0], now.v[0], tolerance);
  }
  static bool valid(const Value& v) {
    bool fine = true;
    for (int i = 0; i < count; i++) fine = fine && S::valid(v.v[i]);
    return fine;
  }
  static bool tiny(const Value& v) { return S::tiny(v.v[0]); }

  // A number of S begins with its value, whatever comes after it.
  static double primal(const Value& v) { double p; memcpy(&p, &v, sizeof p); return p; }
  static Adjoint gather(const Adjoint& a, const Adjoint& b) { return plus(a, b); }
  static Adjoint scale(const Adjoint& g, const Value& x) { return times(g, x); }
  static bool nothing(const Adjoint& g) { return jet::all_zero((const double*)&g, words); }
  static bool sound(const Adjoint& g) { return jet::all_finite((const double*)&g, words); }
  static Adjoint start(const uint64_t* cotangent, const Value&) { return read(cotangent); }
  static void finish(const Adjoint& g, const Value&, uint64_t* w) { write(g, w); }
};

// Jets of plain arithmetic. A value may be infinite, and where it is its derivatives may be, too.
template <int K>
struct PlainJets : Jets<Real, K> {
  using Value = typename Jets<Real, K>::Value;
  static Value constant(double x) { return Value{{x}}; }
  static Value minus(const Value& a, const Value& b) {
    Value c;
    for (int i = 0; i < 1 << K; i++) c.v[i] = a.v[i] - b.v[i];
    return c;
  }
  static Value over(const Value& a, const Value& b) {
    Value c;
    jet::divide<K>(a.v, b.v, c.v);
    return c;
  }
  // As in Plain. Weights are taken over the larger of the two, so that they stay in range.
  static Value log_plus(const Value& a, const Value& b) {
    return log_plus_from(Plain::log_plus(a.v[0], b.v[0]), a, b, 0);
  }
  static Value log_plus(const Value& a, const Value& b, double& rest) {
    const double before = rest, first = Plain::log_plus(a.v[0], b.v[0], rest);
    return log_plus_from(first, a, b, before);
  }
  static Value log_plus_from(double first, const Value& a, const Value& b, double rest) {
    const double top = fmax(a.v[0], b.v[0]);
    if (a.v[0] == -INFINITY) return b;
    if (b.v[0] == -INFINITY) return a;
    Value c, d, sum;
    jet::exp_from<K>(::exp(a.v[0] - top + rest), a.v, c.v);
    jet::exp_from<K>(::exp(b.v[0] - top), b.v, d.v);
    jet::add<K>(c.v, d.v, d.v);
    jet::log_from<K>(first, d.v, sum.v);
    return sum;
  }
  static Value share(const Value& g, const Value& x, const Value& total, double rest = 0) {
    if (x.v[0] == -INFINITY || total.v[0] == -INFINITY) return constant(0);
    const Value apart = minus(x, total);
    Value w, c;
    jet::exp_from<K>(::exp(apart.v[0] - rest), apart.v, w.v);
    jet::multiply<K>(g.v, w.v, c.v);
    return c;
  }
  static bool negligible(const Value& update, const Value& now, double tolerance) {
    return Plain::negligible(update.v[0], now.v[0], tolerance);
  }
  static bool valid(const Value& v) {
    if (isfinite(v.v[0])) return jet::all_finite(v.v, 1 << K);
    bool fine = true;
    for (int i = 0; i < 1 << K; i++) fine &= !isnan(v.v[i]);
    return fine;
  }
};

// -- over logs ---------------------------------------------------------------------------------------------------

// Jets of a weight, as mantissas that share one exponent of 256 binary digits each. Outside, the jet of the log of
// the weight. Adjoints are of the same type, so mantissas have signs.
//
// Mantissas are kept in range by component 0, with the exponent that Log would have, so that the log of a weight is
// the same here and there to the last bit. That leaves the other components a factor of 2^64 and more over it; where
// they are larger, the exponent is the least that brings them all under 2^320, so that three of them multiply without
// overflow; where component 0 is zero, the largest is brought into [2^-256, 2^256). Derivatives of a log weight may be
// as large as 2^512 or so. Beyond, component 0 would lose digits, and the weight is no longer valid.
template <int K>
struct LogJets {
  struct Value { double m[1 << K]; int64_t e; };
  using Adjoint = Value;
  static constexpr int count = 1 << K;
  static constexpr int words = 1 << K;
  static constexpr int adjoint_words = words;
  static constexpr bool selective = false, flat = false, zero_bytes = true;
  static constexpr double big = Log::big, small = Log::small, wide = 0x1p320;

  static Value zero() { Value v; memset(&v, 0, sizeof v); return v; }
  static Value one() { Value v = zero(); v.m[0] = 1; return v; }

  static Value plus(const Value& a, const Value& b) {
    if (__builtin_expect(a.e == b.e, 1)) {
      Value c;
      for (int i = 0; i < count; i++) c.m[i] = a.m[i] + b.m[i];
      c.e = a.e;
      return settled(c);
    }
    return plus_apart(a, b);
  }
  __attribute__((noinline)) static Value plus_apart(const Value& a, const Value& b) {
    if (nothing(a)) return b;
    if (nothing(b)) return a;
    const bool swap = a.e < b.e;
    const Value& high = swap ? b : a;
    const Value& low = swap ? a : b;
    const int64_t gap = (Log::is_far(a.e) | Log::is_far(b.e)) ? 5 : high.e - low.e;
    if (gap > 4) return high;
    double shift = 1;
    for (int64_t i = 0; i < gap; i++) shift *= small;
    Value c;
    for (int i = 0; i < count; i++) c.m[i] = high.m[i] + low.m[i] * shift;
    c.e = high.e;
    return settled(c);
  }
  // A product out of range by at most two more factors, to be settled before it is added to anything.
  static Value raw(const Value& a, const Value& b) {
    if (__builtin_expect(Log::is_far(a.e) | Log::is_far(b.e), 0)) return far_product(a, b, false);
    Value c;
    jet::multiply<K>(a.m, b.m, c.m);
    c.e = a.e + b.e;
    if (__builtin_expect(fabs(c.m[0]) < least, 0) && a.m[0] != 0 && b.m[0] != 0) c.m[count - 1] = INFINITY;
    return c;
  }
  static Value settled(const Value& v) {
    const double first = fabs(v.m[0]);
    bool fine = first >= small && first < big;
    for (int i = 1; i < count; i++) fine &= fabs(v.m[i]) < wide;
    return __builtin_expect(fine, 1) ? v : settled_apart(v);
  }
  __attribute__((noinline)) static Value settled_apart(Value v) {
    if (Log::is_far(v.e)) return jet::all_zero(v.m, count) ? zero() : v;
    const double first = fabs(v.m[0]);
    double largest = 0;
    for (int i = 0; i < count; i++) {
      const double x = fabs(v.m[i]);
      if (!(x < INFINITY)) return v;  // not valid, whatever its exponent
      if (x > largest) largest = x;
    }
    if (largest == 0) return zero();
    int up = first > 0 ? excess(first) : 0;
    if (first == 0) up = excess(largest);
    while (!(shifted(largest, up) < wide)) up++;
    for (int i = 0; i < count; i++) v.m[i] = shifted(v.m[i], up);
    v.e += up;
    if (fabs(v.m[0]) < least) v.m[0] = 0;
    return v;
  }
  static Value times(const Value& a, const Value& b) { return settled(raw(a, b)); }

  static Value read(const uint64_t* w) {
    const Log::Value first = Log::read(w);
    if (first.m == 0) return zero();
    Value v = zero();
    v.e = first.e;
    if (!isfinite(first.m)) {
      v.m[0] = first.m;
      return v;
    }
    double logs[count];
    memcpy(logs, w, sizeof logs);
    jet::exp_from<K>(first.m, logs, v.m);
    return settled(v);
  }
  static void write(const Value& v, uint64_t* w) {
    double logs[count];
    if (v.m[0] == 0) {
      memset(logs, 0, sizeof logs);
      logs[0] = -INFINITY;
    } else {
      jet::log_from<K>(primal(v), v.m, logs);
    }
    memcpy(w, logs, sizeof logs);
  }

  static bool better(const Value&, const Value&) { return false; }
  static double size(const Value&, const Value& update, const Value&) {
    return Log::out({fabs(update.m[0]), update.e});
  }
  static bool same(const Value& a, const Value& b) { return Log::same(head(a), head(b)); }
  static bool negligible(const Value& update, const Value& now, double tolerance) {
    return Log::negligible(head(update), head(now), tolerance);
  }
  static bool valid(const Value& v) { return sound(v) && (v.m[0] != 0 || nothing(v)); }
  static bool tiny(const Value&) { return false; }

  static double primal(const Value& v) { return Log::out({v.m[0], v.e}); }
  static Adjoint gather(const Adjoint& a, const Adjoint& b) { return plus(a, b); }
  // Values are valid, but nobody looks at an adjoint between one product and the next: its exponent stops at a bound
  // that is not sound.
  static Adjoint scale(const Adjoint& g, const Value& x) {
    constexpr int64_t bound = Log::most * 4;
    Value c = product(g, x);
    if (Log::is_far(c.e)) return c;
    c.e = c.e > bound ? bound : c.e < -bound ? -bound : c.e;
    return settled(c);
  }
  static bool nothing(const Adjoint& g) { return jet::all_zero(g.m, count); }
  static bool sound(const Adjoint& g) {
    return jet::all_finite(g.m, count) && ((g.e <= Log::most && g.e >= -Log::most) || Log::far_and_finite(g.e));
  }
  // The cotangent over the weight of the root: times a value it is a derivative with respect to a log weight. The log
  // of a root that weighs nothing stays at minus infinity, and its derivatives are zero.
  static Adjoint start(const uint64_t* cotangent, const Value& root) {
    const double first = fabs(root.m[0]);
    if (!(first > 0 && first < INFINITY)) return zero();
    if (Log::is_far(root.e)) {
      Value factor = root, inverse = zero();
      for (int i = 0; i < count; i++) factor.m[i] /= Log::mark;
      factor.e = 0, inverse.m[0] = Log::mark, inverse.e = -root.e;
      return far_product(start(cotangent, factor), inverse, true);
    }
    Value g;
    g.e = 0;
    memcpy(g.m, cotangent, sizeof g.m);
    g = settled(g);
    // Divided by the root with a primal near one, so that powers of it stay in range; its binary exponent then goes
    // into ours as far as it can.
    const int bits = -ilogb(first);
    double near[count];
    for (int i = 0; i < count; i++) near[i] = ldexp(root.m[i], bits);
    jet::divide<K>(g.m, near, g.m);
    g = settled(g);
    for (int i = 0; i < count; i++) g.m[i] = ldexp(g.m[i], bits & 255);
    g.e += (bits >> 8) - root.e;
    return settled(g);
  }
  static void finish(const Adjoint& g, const Value& x, uint64_t* w) {
    Value c = product(g, x);
    const int e = c.e > 16 ? 16 : c.e < -16 ? -16 : (int)c.e;  // beyond, any mantissa overflows or is lost
    for (int i = 0; i < count; i++) c.m[i] = ldexp(c.m[i], 256 * e);
    memcpy(w, c.m, sizeof c.m);
  }

 private:
  static constexpr double least = 0x1p-1022;  // below, digits are lost
  // Of an adjoint, which may well have a component 0 that is nothing beside the others.
  static Value product(const Value& a, const Value& b) {
    if (__builtin_expect(Log::is_far(a.e) | Log::is_far(b.e), 0)) return far_product(a, b, true);
    Value c;
    jet::multiply<K>(a.m, b.m, c.m);
    c.e = a.e + b.e;
    return c;
  }
  // Where the exponent of one of them is far: that of the product, which takes a factor with it.
  __attribute__((noinline)) static Value far_product(const Value& a, const Value& b, bool adjoint) {
    Value x, y, c;
    const Log::Value shared = Log::far_times(without_size(a, x), without_size(b, y), adjoint);
    jet::multiply<K>(x.m, y.m, c.m);
    for (int i = 0; i < count; i++) c.m[i] *= shared.m;
    c.e = shared.e;
    return settled(c);
  }
  // The size of a number, and in `rest` the number over its size.
  static Log::Value without_size(const Value& v, Value& rest) {
    double largest = 0;
    for (int i = 0; i < count; i++) largest = fmax(largest, fabs(v.m[i]));
    if (v.m[0] != 0) largest = fabs(v.m[0]);
    for (int i = 0; i < count; i++) rest.m[i] = largest == 0 ? 0 : v.m[i] / largest;
    return {largest, v.e};
  }
  // How many times x, positive and finite, is to be multiplied by 2^-256 to come into [2^-256, 2^256).
  static int excess(double x) {
    int up = 0;
    while (x >= big) x *= small, up++;
    while (x < small) x *= big, up--;
    return up;
  }
  static double shifted(double x, int up) {
    for (; up > 0; up--) x *= small;
    for (; up < 0; up++) x *= big;
    return x;
  }
  // The size of component 0 as Log keeps it.
  static Log::Value head(const Value& v) {
    const double first = fabs(v.m[0]);
    if (first == 0 || Log::is_far(v.e) || !(first < INFINITY) || (first >= small && first < big)) return {first, v.e};
    const int up = excess(first);
    return {shifted(first, up), v.e + up};
  }
};

// -- where plus selects ------------------------------------------------------------------------------------------

// Jets over Viterbi or Tropical: the derivatives of the better argument, and at a tie of the first. The logs or costs
// themselves are the numbers, so a product adds them up and every partial derivative of it is one.
template <class S, int K>
struct SelectJets {
  struct Value { double v[1 << K]; };
  using Adjoint = Value;
  static constexpr int count = 1 << K;
  static constexpr int words = 1 << K;
  static constexpr int adjoint_words = words;
  static constexpr bool selective = true, flat = false, zero_bytes = false;

  static Value zero() { Value v; memset(&v, 0, sizeof v); v.v[0] = S::zero(); return v; }
  static Value one() { Value v; memset(&v, 0, sizeof v); v.v[0] = S::one(); return v; }
  static Value plus(const Value& a, const Value& b) { return S::better(b.v[0], a.v[0]) ? b : a; }
  static Value times(const Value& a, const Value& b) {
    Value c = gather(a, b);
    c.v[0] = S::times(a.v[0], b.v[0]);
    return c;
  }
  static Value read(const uint64_t* w) { Value v; memcpy(&v, w, sizeof v); return v; }
  // What is the zero stays that, whatever its derivations weigh: its derivatives are zero.
  static void write(const Value& v, uint64_t* w) {
    Value c = zero();
    if (isfinite(v.v[0])) c = v;
    memcpy(w, &c, sizeof c);
  }
  static bool better(const Value& a, const Value& b) { return S::better(a.v[0], b.v[0]); }
  static double size(const Value& old, const Value& update, const Value& now) {
    return S::size(old.v[0], update.v[0], now.v[0]);
  }
  static bool negligible(const Value& update, const Value& now, double tolerance) {
    return S::negligible(update.v[0], now.v[0], tolerance);
  }
  static bool valid(const Value& v) { return S::valid(v.v[0]) && jet::all_finite(v.v + 1, count - 1); }
  static bool tiny(const Value& v) { return S::tiny(v.v[0]); }

  static double primal(const Value& v) { return v.v[0]; }
  static Adjoint gather(const Adjoint& a, const Adjoint& b) { Value c; jet::add<K>(a.v, b.v, c.v); return c; }
  static Adjoint scale(const Adjoint& g, const Value&) { return g; }
  static bool nothing(const Adjoint& g) { return jet::all_zero(g.v, count); }
  static bool sound(const Adjoint& g) { return jet::all_finite(g.v, count); }
  static Adjoint start(const uint64_t* cotangent, const Value& root) {
    Adjoint g;
    memset(&g, 0, sizeof g);
    return isfinite(root.v[0]) ? read(cotangent) : g;
  }
  static void finish(const Adjoint& g, const Value&, uint64_t* w) { memcpy(w, &g, sizeof g); }
};

}  // namespace dynagrad
