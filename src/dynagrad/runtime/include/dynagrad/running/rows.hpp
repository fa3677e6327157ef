// Row operations: joins over many contiguous items as vector operations, forward and backward.
//
// The last scan of a join and its head may run over the same argument. Where both are contiguous in memory, all these
// instances are one vector operation: a row of values times the other factors, added to a row of the head (axpy). Rows
// are those of a dense table, or stretches of facts in which an argument increases by one. Values are the same, to the
// bit, as if the instances came one after the other; the adjoint of the other factors is a sum over the row,
// accumulated in eight parts.
//
// In `log` the numbers of a row mostly have the same exponent, so that only mantissas are computed with. Eight entries
// at a time are checked; where exponents differ or a mantissa leaves its range they are computed one by one.
//
// It is long because each operation stands beside the one that goes back over it, in both kinds of numbers.
#pragma once
#include <dynagrad/storage/facts.hpp>
#include <dynagrad/semirings.hpp>
#include <dynagrad/storage/tables.hpp>

// Programs of thousands of rules are compiled with every rule a function of its own, to be done in time.
// What is called once a stage is one in any case. A step of a stage is called in one place: it is not optimised by
// itself before it is optimised there.
#define DYNAGRAD_FIRED __attribute__((noinline))
#if defined(DYNAGRAD_LARGE)
#define DYNAGRAD_INLINE __attribute__((noinline))
#define DYNAGRAD_RULE __attribute__((noinline))
#define DYNAGRAD_STEP __attribute__((noinline))
#else
#define DYNAGRAD_INLINE inline
#define DYNAGRAD_RULE
#define DYNAGRAD_STEP DYNAGRAD_ALWAYS
#endif
#define DYNAGRAD_EIGHT DYNAGRAD_ALWAYS

namespace dynagrad {

// -- eight numbers at a time ------------------------------------------------------------------------------------------

// Vectors are only passed where all is inlined: how they would be passed to a function does not matter.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

typedef double Doubles __attribute__((vector_size(64)));
typedef double Fours __attribute__((vector_size(32)));
typedef int64_t Words __attribute__((vector_size(64)));

DYNAGRAD_EIGHT Doubles eight(const double* x) { Doubles v; memcpy(&v, x, sizeof v); return v; }
DYNAGRAD_EIGHT void write(double* x, const Doubles& v) { memcpy(x, &v, sizeof v); }
// Whether a comparison holds for all eight.
DYNAGRAD_EIGHT bool all(const Words& holds) {
#if defined(__clang__) && __clang_major__ >= 16
  typedef bool Mask __attribute__((ext_vector_type(8)));  // a mask where there are such: a tree of ANDs takes longer
  const Mask mask = __builtin_convertvector(holds, Mask);
  uint8_t byte;
  memcpy(&byte, &mask, 1);
  return byte == 255;
#elif __has_builtin(__builtin_reduce_and)
  return __builtin_reduce_and(holds) != 0;
#else
  int64_t each = -1;
  for (int j = 0; j < 8; j++) each &= holds[j];
  return each != 0;
#endif
}

// Eight numbers of `log`, mantissas and exponents apart.
struct Logs {
  Doubles m;
  Words e;
  DYNAGRAD_EIGHT Logs(const Doubles& mantissas, const Words& exponents) : m(mantissas), e(exponents) {}
  DYNAGRAD_EIGHT explicit Logs(const Log::Value* x) {
    const Doubles a = dynagrad::eight((const double*)x), b = dynagrad::eight((const double*)(x + 4));
    m = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    e = (Words)__builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  }
  DYNAGRAD_EIGHT void write(Log::Value* x) const {
    dynagrad::write((double*)x, __builtin_shufflevector(m, (Doubles)e, 0, 8, 1, 9, 2, 10, 3, 11));
    dynagrad::write((double*)(x + 4), __builtin_shufflevector(m, (Doubles)e, 4, 12, 5, 13, 6, 14, 7, 15));
  }
};

// What a row of facts in `log` is read through: facts whose exponents are all zero, and any.
struct Mantissas {
  const double* m;
  DYNAGRAD_EIGHT Log::Value operator[](int64_t i) const { return {m[i], 0}; }
  DYNAGRAD_EIGHT Logs eight(int64_t i) const { return {dynagrad::eight(m + i), Words{}}; }
};
struct Apart {
  const double* m;
  const int64_t* e;
  DYNAGRAD_EIGHT Log::Value operator[](int64_t i) const { return {m[i], e[i]}; }
  DYNAGRAD_EIGHT Logs eight(int64_t i) const {
    return {dynagrad::eight(m + i), (Words)dynagrad::eight((const double*)(e + i))};
  }
};

// A row of items.
struct Items {
  const Log::Value* x;
  DYNAGRAD_EIGHT Log::Value operator[](int64_t i) const { return x[i]; }
  DYNAGRAD_EIGHT Logs eight(int64_t i) const { return Logs(x + i); }
};

// Asks for the stretches a little before and a little after one of n numbers: joins go through them either way, and
// one that goes down is too much for the processor to foresee.
inline void soon(const double* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 8) {
    __builtin_prefetch(x + i - 4 * n);
    __builtin_prefetch(x + i + 4 * n);
  }
}
inline void soon(const Weights<Log>::View& x, int64_t at, int64_t n) { soon(x.m + at, n); }
inline void soon(const double* x, int64_t at, int64_t n) { soon(x + at, n); }

// -- forward: y += w * x, n entries; those of y that are new hold zero ------------------------------------------------

DYNAGRAD_EIGHT double settled(double w) { return w; }
DYNAGRAD_EIGHT Log::Value settled(const Log::Value& w) { return Log::settled(w); }

DYNAGRAD_EIGHT void add_one(double& y, double x, double w) { y += w * x; }
DYNAGRAD_EIGHT void add_one(Log::Value& y, Log::Value x, Log::Value w) {
  y = Log::plus(y, Log::settled(Log::raw(w, x)));
}

inline void add_scaled(double* __restrict y, const double* __restrict x, int64_t n, double w) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) write(y + i, eight(y + i) + w * eight(x + i));
  for (; i < n; i++) add_one(y[i], x[i], w);
}

template <class Row>
DYNAGRAD_EIGHT void add_logs(Log::Value* __restrict y, Row x, int64_t n, Log::Value w) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Logs to(y + i), from = x.eight(i);
    const Doubles p = from.m * w.m, m = to.m + p;
    const Words e = from.e + w.e, none = p == 0;
    const Words fine = none | (((to.e == e) | (to.m == 0)) & (m >= Log::small) & (m < Log::big));
    if (__builtin_expect(all(fine), 1)) Logs(m, (none & to.e) | (~none & e)).write(y + i);
    else for (int j = 0; j < 8; j++) add_one(y[i + j], x[i + j], w);
  }
  for (; i < n; i++) add_one(y[i], x[i], w);
}
template <class Row>
__attribute__((noinline)) void add_scaled(Log::Value* y, Row x, int64_t n, Log::Value w) { add_logs(y, x, n, w); }
inline void add_scaled(double* y, const double* x, int64_t at, int64_t n, double w) {
  add_scaled(y, x + at, n, w);
}
inline void add_scaled(Log::Value* y, const Weights<Log>::View& x, int64_t at, int64_t n, Log::Value w) {
  if (x.e) add_scaled(y, Apart{x.m + at, x.e + at}, n, w);
  else add_scaled(y, Mantissas{x.m + at}, n, w);
}

// Goes through the entries `there` of 64 cells of a row: all at once by many(i, n), in whole eights, as rows are padded
// to these; or where they are few, each by one(i).
template <class Value, class Many, class One>
DYNAGRAD_EIGHT void cover(uint64_t there, Many many, One one) {
  constexpr int64_t few = sizeof(Value) > sizeof(double) ? 4 : 1;  // what eight at once cost, in entries
  const int64_t begin = __builtin_ctzll(there) & ~7, end = 64 - (__builtin_clzll(there) & ~7);
  if (8 * __builtin_popcountll(there) > few * (end - begin)) return many(begin, end - begin);
  for (; there; there &= there - 1) one(__builtin_ctzll(there));
}

// What is told of items that are new, by the bits of up to 64 cells from one on: `arriving` of `running/item.hpp`.
struct ChartBase;
using Arrive = void (*)(ChartBase*, int64_t first, uint64_t cells);

// Those `fresh` of 64 cells from b on are items now. In a function of its own, as what follows, that is compiled once.
template <class Value, class Chart>
__attribute__((noinline)) void arrive_new(DenseOf<Value>& to, int64_t b, uint64_t fresh, Chart* chart, Arrive arrive) {
  fresh = chart->allowed(fresh);
  if (!fresh) return;
  to.seen.merge(b, fresh);
  arrive(chart, b, fresh);
}
// The entries `there` of 64, times w, are added. In `real` that is so little that a call would cost as much.
DYNAGRAD_EIGHT void add_cells(double* y, const double* x, uint64_t there, double w) {
  cover<double>(there, [&](int64_t i, int64_t n) { add_scaled(y + i, x + i, n, w); },
                [&](int64_t i) { add_one(y[i], x[i], w); });
}
template <class Value>
__attribute__((noinline)) void add_cells(Value* y, const Value* x, uint64_t there, Value w) {
  cover<Value>(there, [&](int64_t i, int64_t n) { add_logs(y + i, Items{x + i}, n, w); },
                    [&](int64_t i) { add_one(y[i], x[i], w); });
}
template <class Value, class Chart>
__attribute__((noinline)) void add_shifted(const DenseOf<Value>& from, int64_t a, int64_t length, DenseOf<Value>& to,
                                           int64_t b, Value weight, Chart* chart, Arrive arrive) {
  for (int64_t i = from.popped.next(a, a + length); i >= 0; i = from.popped.next(i + 1, a + length)) {
    const int64_t c = b + (i - a);
    chart->report.updates++;
    add_one(to.value[c], from.value[i], settled(weight));
    if (!to.seen.test(c) && !chart->full()) to.seen.set(c), arrive(chart, c, 1);
  }
}

// What `add_row` does for 64 cells at most, and for more.
template <class Value, class Program>
DYNAGRAD_ALWAYS void add_64(const DenseOf<Value>& from, int64_t a, int64_t n, DenseOf<Value>& to, int64_t b, Value weight,
                            Program* program, Arrive arrive) {
  const uint64_t there = from.popped.word(a, n);
  if (!there) return;
  program->report.updates += __builtin_popcountll(there);
  if (const uint64_t fresh = there & ~to.seen.word(b, 64)) arrive_new<Value, ChartBase>(to, b, fresh, program, arrive);
  add_cells(to.value.data + b, from.value.data + a, there, settled(weight));
}
template <class Value, class Program>
DYNAGRAD_ALWAYS void add_each_64(const DenseOf<Value>& from, int64_t a, int64_t length, DenseOf<Value>& to, int64_t b,
                                 Value weight, Program* program, Arrive arrive) {
  for (int64_t i = 0; i < length; i += 64) add_64(from, a + i, length - i, to, b + i, weight, program, arrive);
}
template <class Value, class Chart>
__attribute__((noinline)) void add_long(const DenseOf<Value>& from, int64_t a, int64_t length, DenseOf<Value>& to,
                                        int64_t b, Value weight, Chart* chart, Arrive arrive) {
  add_each_64(from, a, length, to, b, weight, chart, arrive);
}

// Adds weight * (row of `from` at cell a) to the row of `to` at cell b, both over one argument, `shift` further right
// in `to`. Items that are new in `to` are handed to `arrive`, a member of the program. The rows differ; every seen item
// of the one in `from` is final, so entries that are not derived hold zero and may be added as well. The weight is a
// product that need not be settled, as most rows of a sparse chart are empty and all they cost is a look at their bits.
template <class From, class Value, class Program>
inline void add_row(const From& from, int64_t a, DenseOf<Value>& to, int64_t b, int64_t shift, Value weight,
                    Program* program, Arrive arrive) {
  ChartBase* const chart = program;
  const int64_t length = from.row_length();
  if (__builtin_expect(shift != 0, 0)) add_shifted(from, a, length, to, b + shift, weight, chart, arrive);
  else if constexpr (sizeof(Value) == sizeof(double)) add_each_64(from, a, length, to, b, weight, program, arrive);
  else if (__builtin_expect(length <= 64, 1)) add_64(from, a, length, to, b, weight, program, arrive);
  else add_long<Value>(from, a, length, to, b, weight, chart, arrive);
}

// The n cells of `to` from b on are reached. Items that are new there arrive.
template <class Value, class Chart>
inline void reach(DenseOf<Value>& to, int64_t b, int64_t n, Chart* chart, Arrive arrive) {
  for (int64_t base = b & ~7; base < b + n; base += 64) {
    uint64_t fresh = ~to.seen.word(base, b + n - base);
    if (b + n - base < 64) fresh &= (1ull << (b + n - base)) - 1;
    if (base < b) fresh &= ~0ull << (b - base);
    if (__builtin_expect(fresh == 0, 1)) continue;
    fresh = chart->allowed(fresh);
    to.seen.merge(base, fresh);
    arrive(chart, base, fresh);
  }
}
// Adds weight * (the n facts from row `at` on) to the cells of `to` from b on.
template <class View, class Value, class Chart>
__attribute__((noinline)) void add_facts(const View& x, int64_t at, int64_t n, DenseOf<Value>& to, int64_t b,
                                         Value weight, Chart* chart, Arrive arrive) {
  chart->report.updates += n;
  soon(x, at, n);
  reach(to, b, n, chart, arrive);
  add_scaled(to.value.data + b, x, at, n, settled(weight));
}
template <class View, class Value, class Program>
inline void add_stretch(const View& x, int64_t at, int64_t n, DenseOf<Value>& to, int64_t b, Value weight,
                        Program* program, Arrive arrive) {
  add_facts(x, at, n, to, b, weight, static_cast<ChartBase*>(program), arrive);
}

// A stretch of facts as eight of its numbers are read at a time.
inline const double* stretch(const double* x, int64_t at) { return x + at; }
inline Apart stretch(const Weights<Log>::View& x, int64_t at) { return {x.m + at, x.e ? x.e + at : nullptr}; }
template <class Value> struct StretchOf { using Type = const double*; };
template <> struct StretchOf<Log::Value> { using Type = Apart; };

// y += the sum of w * x over `count` stretches of n numbers, to the same bits as one after the other.
DYNAGRAD_EIGHT void add_each(double* y, const double* const* x, const double* w, int64_t count, int64_t n) {
  for (int64_t s = 0; s < count; s++) add_scaled(y, x[s], n, w[s]);
}
DYNAGRAD_EIGHT void add_each(Log::Value* y, const Apart* x, const Log::Value* w, int64_t count, int64_t n) {
  for (int64_t s = 0; s < count; s++) {
    if (x[s].e) add_scaled(y, x[s], n, w[s]);
    else add_scaled(y, Mantissas{x[s].m}, n, w[s]);
  }
}
// The lanes of the last eight numbers of a row that no eight before them had.
DYNAGRAD_EIGHT Words rest_of(int64_t n) {
  const Words lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return lane >= 8 - n % 8;
}
inline void add_together(double* y, const double* const* x, const double* w, int64_t count, int64_t n) {
  if (n < 8) return add_each(y, x, w, count, n);
  for (int64_t i = 0; i < n; i += 8) {
    const int64_t at = i + 8 <= n ? i : n - 8;
    const Doubles before = eight(y + at);
    Doubles sum = before;
    for (int64_t s = 0; s < count; s++) sum += w[s] * eight(x[s] + at);
    if (at < i) {
      const Words mine = rest_of(n);
      sum = (Doubles)((mine & (Words)sum) | (~mine & (Words)before));
    }
    write(y + at, sum);
  }
}
// Exponents: where those of the weights are one, and the row has it too or holds nothing, mantissas alone are summed. A
// sum that ends in range was never above it; while it was below, it had all the digits that a settled one has.
__attribute__((noinline)) inline void add_together(Log::Value* y, const Apart* x, const Log::Value* w, int64_t count,
                                                   int64_t n) {
  bool alike = n >= 8;
  for (int64_t s = 0; s < count; s++) alike = alike && !x[s].e && w[s].e == w[0].e;
  if (!alike) return add_each(y, x, w, count, n);
  const int64_t e = w[0].e;
  for (int64_t i = 0; i < n; i += 8) {
    const int64_t at = i + 8 <= n ? i : n - 8;
    const Logs to(y + at);
    Doubles m = to.m;
    for (int64_t s = 0; s < count; s++) m += eight(x[s].m + at) * w[s].m;
    const Words theirs = at < i ? ~rest_of(n) : Words{}, none = m == 0;
    const Words fine = theirs | none | (((to.e == e) | (to.m == 0)) & (m >= Log::small) & (m < Log::big));
    if (__builtin_expect(all(fine), 1)) {
      const Words keep = theirs | none;
      const Doubles sum = (Doubles)((keep & (Words)to.m) | (~keep & (Words)m));
      Logs(sum, (keep & to.e) | (~keep & e)).write(y + at);
    } else {
      for (int64_t s = 0; s < count; s++)
        for (int64_t j = i - at; j < 8; j++) add_one(y[at + j], {x[s].m[at + j], 0}, w[s]);
    }
  }
}

// Multiples of stretches that are to be added to one row: they wait here until another row has its turn, so that the
// row is read and written once.
template <class Value>
struct Together {
  static constexpr int64_t most = 32;
  DenseOf<Value>* to = nullptr;
  int64_t begin = 0, length = 0, count = 0;
  typename StretchOf<Value>::Type x[most];
  Value w[most];

  template <class View, class Program>
  DYNAGRAD_ALWAYS void add(const View& view, int64_t at, int64_t n, DenseOf<Value>& head, int64_t b, Value weight,
                           Program* program, Arrive arrive) {
    ChartBase* const chart = program;
    if (count == most || begin != b || length != n || to != &head) {
      if (n <= 0) return;
      turn(head, b, n, chart, arrive);
    }
    x[count] = stretch(view, at), w[count] = settled(weight);
    count++;
  }
  // Another row, or more for the same one.
  template <class Chart>
  __attribute__((noinline)) void turn(DenseOf<Value>& head, int64_t b, int64_t n, Chart* chart, Arrive arrive) {
    end(chart);
    to = &head, begin = b, length = n;
    reach(head, b, n, chart, arrive);
  }
  // Nothing waits any more.
  template <class Chart>
  DYNAGRAD_ALWAYS void end(Chart* chart) {
    if (!count) return;
    chart->report.updates += count * length;
    add_together(to->value.data + begin, x, w, count, length);
    count = 0, to = nullptr;
  }
};

// -- backward: gx += w * gy, and the sum of x * gy, in eight parts ----------------------------------------------------

DYNAGRAD_EIGHT double total(const Doubles& sum) {
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

DYNAGRAD_EIGHT double back_one(double x, double& gx, double gy, double w) {
  gx += w * gy;
  return x * gy;
}
DYNAGRAD_EIGHT double back_one(Log::Value x, double& gx, Log::Value h, Log::Value w) {
  if (h.m == 0) return 0;
  const double p = Posterior::of(h, Log::raw(w, x));
  gx += p;
  return p;
}

inline double back_scaled(const double* __restrict x, int64_t n, double* __restrict gx, const double* __restrict gy,
                          double w) {
  Doubles s = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Doubles g = eight(gy + i);
    write(gx + i, eight(gx + i) + w * g), s += eight(x + i) * g;
  }
  for (int64_t j = 0; i < n; i++, j++) s[j] += back_one(x[i], gx[i], gy[i], w);
  return total(s);
}

// In `log`, with adjoints that are posteriors: h are the adjoints of the head over its weights.
template <class Row>
DYNAGRAD_EIGHT double back_logs(Row x, int64_t n, double* __restrict gx, const Log::Value* __restrict h, Log::Value w) {
  Doubles s = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Logs to(h + i), from = x.eight(i);
    const Doubles product = to.m * (from.m * w.m);
    const Words apart = to.m == 0, none = apart | (product == 0);  // no zero by rounding: these are three mantissas
    if (__builtin_expect(all(none | ((to.e + from.e + w.e == 0) & (from.m < Log::far))) && !Log::is_far(w), 1)) {
      const Doubles p = (Doubles)(~apart & (Words)product);
      write(gx + i, eight(gx + i) + p), s += p;
    } else {
      for (int64_t j = 0; j < 8; j++) s[j] += back_one(x[i + j], gx[i + j], h[i + j], w);
    }
  }
  for (int64_t j = 0; i < n; i++, j++) s[j] += back_one(x[i], gx[i], h[i], w);
  return total(s);
}

template <class Row>
__attribute__((noinline)) double back_scaled(Row x, int64_t n, double* gx, const Log::Value* h, Log::Value w) {
  return back_logs(x, n, gx, h, w);
}
inline double back_scaled(const double* x, int64_t at, int64_t n, double* gx, const double* gy, double w) {
  return back_scaled(x + at, n, gx + at, gy, w);
}
inline double back_scaled(const Weights<Log>::View& x, int64_t at, int64_t n, double* gx, const Log::Value* h,
                          Log::Value w) {
  if (x.e) return back_scaled(Apart{x.m + at, x.e + at}, n, gx + at, h, w);
  return back_scaled(Mantissas{x.m + at}, n, gx + at, h, w);
}

// The passes back over the above. Values and adjoints are given from their first cells on. `dot` is the sum so far.
DYNAGRAD_EIGHT double back_cells(const double* x, double* gx, const double* gy, uint64_t there, double w, double dot) {
  cover<double>(there, [&](int64_t i, int64_t n) { dot += back_scaled(x + i, n, gx + i, gy + i, w); },
                [&](int64_t i) { dot += back_one(x[i], gx[i], gy[i], w); });
  return dot;
}
template <class Value>
__attribute__((noinline)) double back_cells(const Value* x, double* gx, const Value* h, uint64_t there, Value w,
                                            double dot) {
  cover<Value>(there, [&](int64_t i, int64_t n) { dot += back_logs(Items{x + i}, n, gx + i, h + i, w); },
                    [&](int64_t i) { dot += back_one(x[i], gx[i], h[i], w); });
  return dot;
}
template <class Value, class Adjoint>
__attribute__((noinline)) double back_shifted(const DenseOf<Value>& from, int64_t a, int64_t length, double* gx,
                                              const Adjoint* gy, Value weight) {
  double dot = 0;
  for (int64_t i = from.popped.next(a, a + length); i >= 0; i = from.popped.next(i + 1, a + length))
    dot += back_one(from.value[i], gx[i], gy[i - a], settled(weight));
  return dot;
}

// The row of `from` at cell a has the adjoints gx, that of `to` at cell b gy. Returns the adjoint of the weight,
// relative to it where adjoints are posteriors. Entries that are not derived hold zero; what reaches their adjoints is
// never looked at.
template <class From, class Value, class Adjoint>
inline double back_row(const From& from, int64_t a, double* gx, const DenseOf<Value>&, int64_t b, const Adjoint* gy,
                       int64_t shift, Value weight) {
  const int64_t length = from.row_length();
  if (__builtin_expect(shift != 0, 0)) return back_shifted(from, a, length, gx, gy + b + shift, weight);
  double dot = 0;
  for (int64_t base = 0; base < length; base += 64)
    if (const uint64_t there = from.popped.word(a + base, length - base))
      dot = back_cells(from.value.data + a + base, gx + a + base, gy + b + base, there, settled(weight), dot);
  return dot;
}

// gx are the adjoints of the facts, gy those of the head from its first cell on.
template <class View, class Adjoint, class Value>
inline double back_stretch(const View& x, int64_t at, int64_t n, double* gx, const Adjoint* gy, Value weight) {
  soon(x, at, n), soon(gx, at, n);
  return back_scaled(x, at, n, gx, gy, settled(weight));
}

// The pass back over `Together`, in `log`: stretches of facts that are gone back over for one row of the head, whose
// adjoints are read once. Each adds the adjoint of its weight to a sum.
struct BackTogether {
  static constexpr int64_t most = 32, widest = 16;  // stretches; eights of a row
  const Log::Value* head = nullptr;
  int64_t length = 0, count = 0;
  Apart x[most];
  double* gx[most];
  Log::Value w[most];
  double* sum[most];

  DYNAGRAD_ALWAYS void add(const Weights<Log>::View& view, int64_t at, int64_t n, double* g, const Log::Value* h,
                           Log::Value weight, double& goal) {
    if (count == most || head != h || length != n) end(), head = h, length = n;
    x[count] = stretch(view, at), gx[count] = g + at, w[count] = settled(weight), sum[count] = &goal;
    count++;
  }
  DYNAGRAD_ALWAYS void end() {
    if (count) back();
    count = 0;
  }
  // Where the adjoints have one exponent, and that of a weight is its opposite, mantissas alone are computed with.
  __attribute__((noinline)) void back() const {
    Doubles m[widest];
    int64_t e = 0;
    bool alike = length >= 8 && length <= 8 * widest, some = false;
    for (int64_t i = 0; i < length && alike; i++)
      if (head[i].m != 0) alike = !some || head[i].e == e, e = head[i].e, some = true;
    if (alike && !some) return;
    for (int64_t i = 0; i < length && alike; i += 8) {
      m[i / 8] = Logs(head + (i + 8 <= length ? i : length - 8)).m;
      if (i + 8 > length) m[i / 8] = (Doubles)((Words)m[i / 8] & rest_of(length));
    }
    for (int64_t s = 0; s < count; s++) {
      if (alike && !x[s].e && w[s].e + e == 0 && !Log::is_far(e)) *sum[s] += along(x[s].m, gx[s], w[s].m, m);
      else if (x[s].e) *sum[s] += back_scaled(x[s], length, gx[s], head, w[s]);
      else *sum[s] += back_scaled(Mantissas{x[s].m}, length, gx[s], head, w[s]);
    }
  }
  DYNAGRAD_EIGHT double along(const double* from, double* to, double weight, const Doubles* m) const {
    Doubles all = {};
    int64_t i = 0;
    for (; i + 8 <= length; i += 8) {
      const Doubles p = m[i / 8] * (eight(from + i) * weight);
      write(to + i, eight(to + i) + p), all += p;
    }
    if (i < length) {  // what was just written may not be read eight at a time that begin elsewhere: that takes long
      const Doubles p = m[i / 8] * (eight(from + length - 8) * weight);
      double last[8];
      write(last, p), all += p;
      int64_t k = 8 - (length - i);
      if (k <= 4) {
        Fours sum, more;
        memcpy(&sum, to + i, sizeof sum), memcpy(&more, last + k, sizeof more);
        sum += more;
        memcpy(to + i, &sum, sizeof sum);
        i += 4, k += 4;
      }
      for (; k < 8; k++, i++) to[i] += last[k];
    }
    return total(all);
  }
};

#pragma GCC diagnostic pop
}  // namespace dynagrad
