// Rows of drivers: joins in which items that stand side by side add to items of the head that do so too, one to one.
//
// What each of up to 64 drivers is multiplied with are facts that are looked up by its own argument (`RowsAlong`), and
// numbers that are the same for all. Contributions are the same, to the bit, as if the drivers came one after the other;
// eight are computed at a time, and in `log` those of which an exponent or a mantissa is out of the ordinary one by one.
// There are three factors at most beside a driver, so that a product of mantissas leaves the range of a double only
// where that is seen.
#pragma once
#include <dynagrad/running/rows.hpp>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

namespace dynagrad {

// The rows of facts that differ in one argument, of which there are 64 codes in turn: at even distances, or anywhere.
struct RowsAlong {
  uint64_t there = 0;          // which of them there are
  bool even = false;
  int64_t first = 0, step = 0;
  uint32_t row[64];
  DYNAGRAD_ALWAYS int64_t at(int64_t i) const { return even ? first + i * step : (int64_t)row[i]; }
};

// Those of the `wanted` ones that there are; of the arguments, that at `place` is the first
// code, and means nothing afterwards.
DYNAGRAD_ONCE void find_rows(const FactTable& facts, RowsAlong& found, uint64_t wanted, int32_t* a, int place) {
  const Groups& by = *facts.points;
  if (__builtin_expect(!by.dense, 0)) {
    const int32_t first = a[place];
    for (; wanted; wanted &= wanted - 1) {
      const int i = __builtin_ctzll(wanted);
      a[place] = first + i;
      const int64_t row = facts.row(a);
      if (row >= 0) found.there |= 1ull << i, found.row[i] = (uint32_t)row;
    }
    return;
  }
  int64_t c = 0;
  for (int k = 0; k < facts.arity; k++) {
    const int64_t x = (int64_t)a[k] - by.lows[k];
    c += x * by.strides[k];
    if (k != place && (uint64_t)x >= (uint64_t)by.extents[k]) return;
  }
  const int64_t before = by.lows[place] - (int64_t)a[place], after = before + by.extents[place];  // in range
  if (before >= 64 || after <= 0) return;
  if (before > 0) wanted &= ~0ull << before;
  if (after < 64) wanted &= (1ull << after) - 1;
  found.first = c, found.step = by.strides[place];
  if (by.full) {
    found.there = wanted, found.even = true;
    return;
  }
  const int64_t* const start = by.start.data + c;
  uint64_t there = 0;
  for (; wanted; wanted &= wanted - 1) {  // without a jump, as nobody can foresee which facts there are
    const int64_t i = __builtin_ctzll(wanted), begin = start[i * found.step];
    there |= (uint64_t)(begin != start[i * found.step + 1]) << i;
    found.row[i] = (uint32_t)begin;
  }
  found.there = there;
  for (; there && !by.identity; there &= there - 1) {
    const int64_t i = __builtin_ctzll(there);
    found.row[i] = by.rows[found.row[i]];
  }
}
template <int Place, class F, class... A>
DYNAGRAD_ALWAYS void rows_along(const F& facts, RowsAlong& found, uint64_t wanted, A... a) {
  int32_t args[] = {a...};
  find_rows(facts, found, wanted, args, Place);
}

// Calls what(i, lanes) for each eight of 64 of which some are there: the first of them, and a bit for each.
template <class What>
DYNAGRAD_ALWAYS void each_eight(uint64_t there, What what) {
  for (int64_t i = 0; there; i += 8, there >>= 8)
    if (const uint32_t lanes = there & 255) what(i, lanes);
}
DYNAGRAD_EIGHT Words words_of(uint32_t lanes) {
  const Words each = {1, 2, 4, 8, 16, 32, 64, 128};
  return (each & (int64_t)lanes) != 0;
}
// Calls what(j, row) for those of eight rows from the i-th on of which `lanes` has a bit. Each j is a constant, so that
// lanes of vectors are addressed by it.
template <class What>
DYNAGRAD_ALWAYS void each_row(const RowsAlong& rows, int64_t i, uint32_t lanes, What what) {
  if (rows.even) {
    const int64_t begin = rows.first + i * rows.step;
    for (int j = 0; j < 8; j++)
      if (lanes >> j & 1) what(j, begin + j * rows.step);
  } else {
    for (int j = 0; j < 8; j++)
      if (lanes >> j & 1) what(j, (int64_t)rows.row[i + j]);
  }
}
// Numbers of rows from the i-th on; zero for those that are not there.
DYNAGRAD_EIGHT Doubles pick(const double* x, const RowsAlong& rows, int64_t i, uint32_t lanes) {
  Doubles v = {};
  if (lanes != 255) each_row(rows, i, lanes, [&](int j, int64_t row) { v[j] = x[row]; });
  else if (rows.even && rows.step == 1) v = eight(x + rows.first + i);
  else each_row(rows, i, 255, [&](int j, int64_t row) { v[j] = x[row]; });
  return v;
}
DYNAGRAD_EIGHT void spread(double* x, const RowsAlong& rows, int64_t i, uint32_t lanes, const Doubles& v) {
  if (lanes != 255) each_row(rows, i, lanes, [&](int j, int64_t row) { x[row] += v[j]; });
  else if (rows.even && rows.step == 1) write(x + rows.first + i, eight(x + rows.first + i) + v);
  else each_row(rows, i, 255, [&](int j, int64_t row) { x[row] += v[j]; });
}

// -- items of a row ----------------------------------------------------------------------------------------------------

// Whether the values of all items of a row are valid; a bit for each, from x on.
DYNAGRAD_EIGHT Words valid_eight(const double* x) {
  const Doubles v = eight(x);
  return v - v == 0;
}
DYNAGRAD_EIGHT Words valid_eight(const Log::Value* x) {
  const Logs v{x};
  return (v.m - v.m == 0) & (v.e <= Log::most) & (v.e >= -Log::most);
}
template <class Value>
DYNAGRAD_EIGHT bool all_valid_of(const Value* x, uint64_t cells) {
  bool fine = true;
  each_eight(cells, [&](int64_t i, uint32_t lanes) { fine = fine && all(valid_eight(x + i) | ~words_of(lanes)); });
  return fine;
}
DYNAGRAD_ONCE bool all_valid(const double* x, uint64_t cells) { return all_valid_of(x, cells); }
DYNAGRAD_ONCE bool all_valid(const Log::Value* x, uint64_t cells) { return all_valid_of(x, cells); }

// Completes the adjoints of items of a row by those of their updates; false where one is not sound.
DYNAGRAD_ONCE bool complete_row(uint64_t cells, double* g, const double* updates) {
  bool fine = true;
  each_eight(cells, [&](int64_t i, uint32_t lanes) {
    const Doubles sum = eight(g + i) + eight(updates + i);
    write(g + i, sum);
    fine = fine && all((sum - sum == 0) | ~words_of(lanes));
  });
  return fine;
}
// The same for posteriors: `h` are adjoints over weights.
DYNAGRAD_ONCE bool complete_row(uint64_t cells, double* g, const double* updates, Log::Value* h, const Log::Value* x) {
  const bool fine = complete_row(cells, g, updates);
  each_eight(cells, [&](int64_t i, uint32_t lanes) {
    const Doubles own = eight(g + i);
    const Logs now{x + i};
    const Doubles m = own / now.m, size = m < 0 ? -m : m;
    const Words mine = words_of(lanes), none = (own == 0) | (now.m == 0);
    if (__builtin_expect(all(~mine | none | ((size >= Log::small) & (size < Log::big))), 1)) {
      const Logs before{h + i};
      const Words set = mine & ~none;
      Logs((Doubles)((set & (Words)m) | (~mine & (Words)before.m)), (set & -now.e) | (~mine & before.e)).write(h + i);
    } else {
      for (; lanes; lanes &= lanes - 1) {
        const int64_t k = i + __builtin_ctz(lanes);
        h[k] = Posterior::share(g[k], x[k]);
      }
    }
  });
  return fine;
}

// -- factors -----------------------------------------------------------------------------------------------------------

// Products that are computed eight at a time: in `real` as they are, in `log` mantissas and the sums of exponents. There
// they are settled where those of one instance are (`Product` of `visiting/values.hpp`): a number has two forms, and becomes the same.
struct Eight {
  Doubles m;
  Words e, fine = ~Words{};  // those that need no settling
  DYNAGRAD_EIGHT explicit Eight(const double* x) : m(eight(x)), e{} {}
  DYNAGRAD_EIGHT explicit Eight(const Log::Value* x) {
    const Logs both{x};
    m = both.m, e = both.e;
  }
  DYNAGRAD_EIGHT void settle(const double*) {}
  DYNAGRAD_EIGHT void settle(const Log::Value*) { fine &= (m == 0) | ((m >= Log::small) & (m < Log::big)); }
};

// The facts that drivers are multiplied with.
template <class View> struct OfRows;
template <> struct OfRows<const double*> {
  const double* const view;
  const RowsAlong& rows;
  DYNAGRAD_EIGHT Doubles times(Eight& x, int64_t i, uint32_t lanes) const {
    const Doubles own = pick(view, rows, i, lanes);
    x.m = x.m * own;
    return own;
  }
  DYNAGRAD_EIGHT double one(int64_t i) const { return view[rows.at(i)]; }
};
template <> struct OfRows<Weights<Log>::View> {
  const Weights<Log>::View& view;
  const RowsAlong& rows;
  DYNAGRAD_EIGHT Doubles times(Eight& x, int64_t i, uint32_t lanes) const {
    const Doubles own = pick(view.m, rows, i, lanes);
    x.m = x.m * own;
    if (__builtin_expect(view.e != nullptr, 0)) x.e += (Words)pick((const double*)view.e, rows, i, lanes);
    return own;
  }
  DYNAGRAD_EIGHT Log::Value one(int64_t i) const { return view[rows.at(i)]; }
};
template <class View>
DYNAGRAD_ALWAYS OfRows<View> of_rows(const View& view, const RowsAlong& rows) { return {view, rows}; }

// A number that is the same for all.
DYNAGRAD_EIGHT void times(Eight& x, double w, int64_t, uint32_t) { x.m = x.m * w; }
DYNAGRAD_EIGHT void times(Eight& x, const Log::Value& w, int64_t, uint32_t) { x.m = x.m * w.m, x.e = x.e + w.e; }
template <class View>
DYNAGRAD_EIGHT void times(Eight& x, const OfRows<View>& f, int64_t i, uint32_t lanes) { f.times(x, i, lanes); }
DYNAGRAD_EIGHT double one_of(double w, int64_t) { return w; }
DYNAGRAD_EIGHT Log::Value one_of(const Log::Value& w, int64_t) { return w; }
template <class View>
DYNAGRAD_EIGHT auto one_of(const OfRows<View>& f, int64_t i) { return f.one(i); }

DYNAGRAD_EIGHT double raw_product(double x, double y) { return x * y; }
DYNAGRAD_EIGHT Log::Value raw_product(const Log::Value& x, const Log::Value& y) { return Log::raw(x, y); }
DYNAGRAD_EIGHT double sum_of(double x, double y) { return x + y; }
DYNAGRAD_EIGHT Log::Value sum_of(const Log::Value& x, const Log::Value& y) { return Log::plus(x, y); }

// The i-th driver, or eight from there on, times all factors.
template <class Value, class... Factors>
DYNAGRAD_EIGHT Value product_of(const Value* x, int64_t i, const Factors&... factors) {
  Value p = x[i];
  int k = 0;
  ((p = raw_product(k++ == 2 ? settled(p) : p, one_of(factors, i))), ...);
  return settled(p);
}
template <class Value, class... Factors>
DYNAGRAD_EIGHT Eight products_of(const Value* x, int64_t i, uint32_t lanes, const Factors&... factors) {
  Eight p{x + i};
  int k = 0;
  ((k++ == 2 ? p.settle(x) : void(), times(p, factors, i, lanes)), ...);
  return p;
}

// -- forward -----------------------------------------------------------------------------------------------------------

template <class Value, class... Factors>
DYNAGRAD_EIGHT void add_one_along(Value* y, const Value* x, int64_t i, const Factors&... factors) {
  y[i] = sum_of(y[i], product_of(x, i, factors...));
}

// Whether eight sums could be computed as vectors; if so they are written.
DYNAGRAD_EIGHT bool add_eight(double* y, const Eight& p, const Words& mine) {
  const Doubles before = eight(y), sum = before + p.m;
  write(y, (Doubles)((mine & (Words)sum) | (~mine & (Words)before)));
  return true;
}
DYNAGRAD_EIGHT bool add_eight(Log::Value* y, const Eight& p, const Words& mine) {
  const Logs to{y};
  const Doubles sum = to.m + p.m;
  const Words keep = ~mine | (p.m == 0);
  const Words fine = keep | (p.fine & ((to.e == p.e) | (to.m == 0)) & (sum >= Log::small) & (sum < Log::big));
  if (__builtin_expect(!all(fine), 0)) return false;
  Logs((Doubles)((keep & (Words)to.m) | (~keep & (Words)sum)), (keep & to.e) | (~keep & p.e)).write(y);
  return true;
}

// Adds each of the drivers `there`, from x on, times the factors, to the cells of the head from b on. Rows begin at
// multiples of eight cells in either table, unless the argument begins with another code.
template <class Value, class Chart, class... Factors>
DYNAGRAD_ALWAYS void add_along(const Value* x, uint64_t there, DenseOf<Value>& to, int64_t b, Chart* chart, Arrive arrive,
                               const Factors&... factors) {
  chart->report.updates += __builtin_popcountll(there);
  if (__builtin_expect(b < 0 || (b & 7), 0)) {
    for (; there; there &= there - 1) {
      const int64_t i = __builtin_ctzll(there);
      if (!to.seen.test(b + i) && !chart->full()) to.seen.set(b + i), arrive(chart, b + i, 1);
      add_one_along(to.value.data + b, x, i, factors...);
    }
    return;
  }
  if (const uint64_t fresh = there & ~to.seen.word(b, 64)) arrive_new(to, b, fresh, chart, arrive);
  Value* const y = to.value.data + b;
  each_eight(there, [&](int64_t i, uint32_t lanes) {
    if (__builtin_expect(add_eight(y + i, products_of(x, i, lanes, factors...), words_of(lanes)), 1)) return;
    for (; lanes; lanes &= lanes - 1) add_one_along(y, x, i + __builtin_ctz(lanes), factors...);
  });
}

// -- backward ----------------------------------------------------------------------------------------------------------

// A factor, and where its adjoint is added up.
template <class Value> struct BackOne {
  const Value value;
  double& sum;
};
template <class View> struct BackOfRows {
  const OfRows<View> of;
  double* const g;
};
template <class Value>
DYNAGRAD_ALWAYS BackOne<Value> back_one_of(const Value& value, double& sum) { return {value, sum}; }
template <class View>
DYNAGRAD_ALWAYS BackOfRows<View> back_of_rows(const View& view, const RowsAlong& rows, double* g) {
  return {{view, rows}, g};
}
template <class Value> DYNAGRAD_EIGHT const Value& factor_of(const BackOne<Value>& f) { return f.value; }
template <class View> DYNAGRAD_EIGHT const OfRows<View>& factor_of(const BackOfRows<View>& f) { return f.of; }
template <class Value>
DYNAGRAD_EIGHT void give(const BackOne<Value>& f, int64_t, uint32_t, const Doubles& g) { f.sum += total(g); }
template <class View>
DYNAGRAD_EIGHT void give(const BackOfRows<View>& f, int64_t i, uint32_t lanes, const Doubles& g) {
  spread(f.g, f.of.rows, i, lanes, g);
}

// In `log`, with adjoints that are posteriors: h are the adjoints of the head over its weights. The posterior of an
// instance goes to its driver and to all factors.
template <class... Factors>
DYNAGRAD_ALWAYS void back_along(const Log::Value* x, uint64_t there, double* updates, const Log::Value* head, int64_t b,
                                const Factors&... factors) {
  const Log::Value* const h = head + b;
  const bool apart = b < 0 || (b & 7);
  each_eight(there, [&](int64_t i, uint32_t lanes) {
    Doubles posterior = {};
    bool fine = false;
    if (__builtin_expect(!apart, 1)) {
      const Eight p = products_of(x, i, lanes, factor_of(factors)...);
      const Logs to{h + i};
      const Words none = ~words_of(lanes) | (to.m == 0);
      fine = all(none | (p.m == 0) | ((to.e + p.e == 0) & (p.m >= Log::small) & (p.m < Log::big)));
      posterior = (Doubles)(~none & (Words)(to.m * p.m));
    }
    if (__builtin_expect(!fine, 0)) {
      posterior = Doubles{};
      for (uint32_t left = lanes; left; left &= left - 1) {
        const int j = __builtin_ctz(left);
        if (h[i + j].m != 0) posterior[j] = Posterior::of(h[i + j], product_of(x, i + j, factor_of(factors)...));
      }
    }
    write(updates + i, eight(updates + i) + posterior);
    (give(factors, i, lanes, posterior), ...);
  });
}

// In `real` each gets the adjoint of the head times the others.
DYNAGRAD_EIGHT Doubles eight_of(double w, int64_t, uint32_t) { return Doubles{} + w; }
DYNAGRAD_EIGHT Doubles eight_of(const OfRows<const double*>& f, int64_t i, uint32_t lanes) {
  return pick(f.view, f.rows, i, lanes);
}
template <class... Factors>
DYNAGRAD_ALWAYS void back_along(const double* x, uint64_t there, double* updates, const double* head, int64_t b,
                                const Factors&... factors) {
  constexpr int count = sizeof...(factors);
  each_eight(there, [&](int64_t i, uint32_t lanes) {
    Doubles g = {};
    if (lanes == 255) g = eight(head + b + i);
    else for (uint32_t left = lanes; left; left &= left - 1) g[__builtin_ctz(left)] = head[b + i + __builtin_ctz(left)];
    const Doubles own[count + 1] = {eight_of(factor_of(factors), i, lanes)..., Doubles{}};
    Doubles after[count + 1];  // g times the factors from each on
    after[count] = g;
    for (int k = count; k-- > 0;) after[k] = after[k + 1] * own[k];
    write(updates + i, eight(updates + i) + after[0]);
    Doubles before = eight(x + i);
    int k = 0;
    ((give(factors, i, lanes, before * after[k + 1]), before = before * own[k], k++), ...);
  });
}

#pragma GCC diagnostic pop
}  // namespace dynagrad
