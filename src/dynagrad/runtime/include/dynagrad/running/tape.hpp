// The tape: what a run records for its backward pass.
//
// Every pop records the item's handle. That is enough as long as each item is popped once: its update is its value. An
// item that is popped again also records its old value and its update. Where plus selects, `from` has the pop in which
// the update was made that the item was popped with. The backward pass traverses the tape from its end without changing
// it, so the chart may be resumed afterwards.
//
// The pass itself is in `sweep.hpp`; what users set and read, in `outside/cotangents.hpp`.
#pragma once
#include <dynagrad/running/chart.hpp>

namespace dynagrad {

constexpr uint32_t nowhere = 0xFFFFFFFF;  // the place of no pop

// Pops of items that stand side by side, a bit for each from the first cell on; how many pops there were after them.
struct PoppedRow { int64_t end; Handle first; uint64_t cells; };

// What does not depend on the type of values.
struct Pops {
  static constexpr Handle again = dynagrad::again;
  Array<Handle> pops;
  static constexpr int few = 4;
  Array<PoppedRow> rows;       // those that were entered as such, unless they are fewer
  int64_t before = 0;          // of these, the ones before the place that a pass back has come to
  Array<uint32_t> from;        // where plus selects: of each pop, the pop that its update came from
  Array<int64_t> begins;       // of each stage that began, the pops before it
  Array<int64_t> rounds;       // the pops before each round, of all stages that run in rounds

  DYNAGRAD_ONCE explicit Pops(Account* a) : pops(a), rows(a), from(a), begins(a), rounds(a) {}
  DYNAGRAD_ONCE ~Pops() {}

  // The pops of items that stand side by side: a bit for each, from the first cell on.
  void push_row(Handle first, uint64_t cells) {
    pops.reserve(pops.size + 64 + 8);
    rows.reserve(rows.size + 1);  // what may end the run comes before anything is entered
    Handle* const to = pops.data + pops.size;
    const int count = __builtin_popcountll(cells);
    pops.size += count;
    if (count >= few) rows.push({pops.size, first, cells});
    if (cells & (cells + (cells & -cells))) {
      for (int i = 0; cells; cells &= cells - 1) to[i++] = first + __builtin_ctzll(cells);
    } else if (cells) {  // without a gap
      first += __builtin_ctzll(cells);
      for (int i = 0; i < count; i++) to[i] = first + i;
    }
  }
  // The cells of the pops that end with the one at t, as far as they are among `length` cells from `first` on: a bit for
  // each. Returns the place of the first of these pops; none is before `begin`.
  DYNAGRAD_ONCE int64_t row_before(int64_t t, int64_t begin, Handle first, uint64_t length, uint64_t& cells) {
    const Handle* const p = pops.data;
    do {
      const PoppedRow* const row = row_until(t + 1);
      const bool whole = row && row->first == first;
      cells |= whole ? row->cells : 1ull << (p[t] - first);
      t -= whole ? __builtin_popcountll(row->cells) : 1;
    } while (t >= begin && p[t] - first < length);
    return t + 1;
  }
  // The row that was entered last when there were so many pops; null if none was. Found at once where places go down.
  const PoppedRow* row_until(int64_t end) {
    while (before < rows.size && rows[before].end <= end) before++;
    while (before && rows[before - 1].end > end) before--;
    return before && rows[before - 1].end == end ? &rows[before - 1] : nullptr;
  }
  DYNAGRAD_ONCE void begin() {
    if (!pops.capacity) pops.reserve(1000);  // a tape that grows from nothing is copied again and again
    begins.push(pops.size);
  }
  // Records a pop of a stage; its position there, from 1.
  DYNAGRAD_ONCE uint32_t popped(int64_t stage, Handle h) {
    pops.push(h);
    return (uint32_t)(pops.size - begins[stage]);
  }
  // The end of the pops of a stage.
  int64_t end(int64_t stage) const { return stage + 1 < begins.size ? begins[stage + 1] : pops.size; }
  DYNAGRAD_ONCE int64_t size_with(int64_t saved) const {
    return pops.size * (int64_t)sizeof(Handle) + rows.size * (int64_t)sizeof(PoppedRow) + saved + from.size * 4 +
           begins.size * 8 + rounds.size * 8;
  }
};

template <class S>
struct Tape : Pops {
  using Value = typename S::Value;
  struct Saved { Value old, update; };
  Array<Saved> saved;          // of pops with `again`, in order

  explicit Tape(Account* a) : Pops(a), saved(a) {}

  int64_t bytes() const { return size_with(saved.size * (int64_t)sizeof(Saved)); }
};

// Pops in a row whose items were solved for together: lines of as many items as there were columns side by side.
struct SolvedComponent { int64_t begin, items, columns; bool near_critical; };

// Whether two passes found the same adjoint, up to rounding.
template <class A>
inline bool stand_still(const A& a, const A& b) {
  double x[sizeof(A) / sizeof(double)], y[sizeof(A) / sizeof(double)];
  memcpy(x, &a, sizeof a), memcpy(y, &b, sizeof b);
  for (size_t i = 0; i < sizeof(A) / sizeof(double); i++)
    if (!(fabs(x[i] - y[i]) <= 1e-13 * fabs(x[i]))) return false;
  return true;
}

// The factors of the items of a table whose aggregator is `*=`: the adjoint of one is that of the product times all the
// others. That is a division of the product, whose binary exponent is kept apart, so that it stays in range. Factors by
// which nothing can be divided are not in it, but in a list.
template <class S>
struct Factors {
  using Value = typename S::Value;
  static constexpr double big = 0x1p256, small = 0x1p-256;
  static constexpr int numbers = sizeof(Value) / sizeof(double);
  struct Total { Value product; int64_t exponent, zeros, infinite; };  // exponent: how many times it was divided by big
  struct Apart { Value x; int64_t next; };
  Array<Total> total;          // per cell
  Array<Apart> apart;          // per cell two lists: those that are zero, those that are infinite
  explicit Factors(Account* a) : total(a), apart(a) {}

  static double size(const Value& x) { return fabs(S::primal(x)); }
  static Value times(Value x, double c) {
    double v[numbers];
    memcpy(v, &x, sizeof x);
    for (double& y : v) y *= c;
    memcpy((void*)&x, v, sizeof x);
    return x;
  }
  // Brings a number that is neither zero nor infinite near one; how many times it was divided by `big`.
  static int64_t settle(Value& x) {
    int64_t up = 0;
    for (; size(x) >= big && size(x) < INFINITY; up++) x = times(x, small);
    for (; size(x) < small && size(x) > 0; up--) x = times(x, big);
    return up;
  }

  void add(int64_t cell, Value x) {
    Total& t = grown(total, cell, Total{S::one(), 0, 0, 0});
    const double p = size(x);
    if (p > 0 && p < INFINITY) {
      t.exponent += settle(x);
      t.product = S::times(t.product, x);
      t.exponent += settle(t.product);
    } else {
      int64_t& newest = p == 0 ? t.zeros : t.infinite;
      apart.push({x, newest});
      newest = apart.size;
    }
  }
  Value others(int64_t cell, Value x) const {
    const Total& t = total[cell];
    const double p = size(x);
    const bool within = p > 0 && p < INFINITY;
    int64_t exponent = t.exponent;
    Value rest = t.product;
    if (within) {
      exponent -= settle(x);
      rest = S::over(rest, x);
    }
    bool skipped = within;
    const int64_t lists[] = {t.infinite, t.zeros};
    for (int64_t list : lists) {
      // So many make all components infinite, or zero.
      for (int64_t f = list, most = numbers + 2; f && most; f = apart[f - 1].next) {
        if (!skipped && !memcmp(&apart[f - 1].x, &x, sizeof x)) skipped = true;
        else rest = S::times(rest, apart[f - 1].x), most--;
      }
    }
    exponent = exponent > 9 ? 9 : exponent < -9 ? -9 : exponent;  // beyond, nothing is left, or too much
    for (; exponent > 0; exponent--) rest = times(rest, big);
    for (; exponent < 0; exponent++) rest = times(rest, small);
    return rest;
  }
};

}  // namespace dynagrad
