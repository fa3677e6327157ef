// Linear systems (I - A) x = b over the doubles, with A sparse: factored once, solved for many right sides.
//
// The life of a system: `open`, `put` the entries of A (equal places add up), `factor`, then `solve` as often as wanted,
// with I - A or its transpose; a right side has `m` columns, row after row. Small and dense systems become a dense LU.
// Others are ordered by minimum degree (a quotient graph, whose elements are the pattern of the factors) and factored
// left-looking; no pivots are sought, as none are needed where the spectral radius of |A| is below one: then I - |A| is
// an M-matrix, elimination is stable, and all pivots are positive. That they are positive is the very test of the
// radius, for a non-negative A exactly (Berman and Plemmons 1994, "Nonnegative matrices", theorem 6.2.3). Where factors
// would be too large, solutions come from BiCGSTAB (van der Vorst 1992), or from Gauss-Seidel sweeps where that fails.
// All of it is deterministic. Nothing here knows of semirings or charts, but for the stop button of a chart.
//
// It is long because the direct and the iterative solver share their matrices.
#pragma once
#include <dynagrad/base/math.hpp>

#include <dynagrad/running/chart.hpp>
#include <dynagrad/semirings.hpp>

namespace dynagrad {

struct LinearSystem {
  struct Entry { uint32_t row, column; double value; };
  static constexpr int wide = 16;                    // columns that are solved at once
  static constexpr int64_t small = 64;               // up to so many unknowns factors are dense
  static constexpr int64_t most_entries = 60000000;  // of its factors

  ChartBase* owner = nullptr;
  int64_t n = 0;
  double most_flops = 6e9;  // of a sparse factorisation; beyond, iteration is cheaper
  Array<Entry> entries;
  Array<double> shift;     // what the diagonal of I - A has beside that, where one minus a weight is known better
  bool definite = false;   // all pivots are positive, beyond doubt by rounding
  bool iterative = false;  // there are no factors
  bool radius_unknown = false;  // ... and whether iteration would shrink every error was not found out
  bool halted = false;     // somebody said stop

  DYNAGRAD_ONCE_SOLVED void open(ChartBase* chart, int64_t unknowns) {
    owner = chart, n = unknowns;
    entries.clear();
    shift.wipe(n);
    halted = false;
  }
  // What is large is on the account of the chart, so that limits of memory know of it.
  DYNAGRAD_ONCE_SOLVED void count(Account* account) {
    entries.account = start_.account = column_.account = value_.account = full_.account = account;
    first_.account = pattern_.account = lower_.account = upper_.account = pivot_.account = account;
    order_.account = place_.account = work_.account = columns_.account = left_.account = shift.account = account;
  }
  void put(uint32_t row, uint32_t column, double value) { entries.push({row, column, value}); }

  // Whether all pivots are positive. With `absolute`, of I - |A|, after which `solve` is not for I - A.
  DYNAGRAD_ONCE_SOLVED bool factor(bool absolute = false) {
    compress(absolute);
    definite = iterative = radius_unknown = false;
    if (n <= small || nonzeros() * 6 > n * n) {
      dense_ = true;
      return factor_dense();
    }
    dense_ = false;
    if (order() && !halted) return factor_sparse();
    if (halted) return false;
    iterative = true;
    return definite = radius_below_one();
  }

  // x: in the right sides, out the solutions; n rows of m numbers. Each column comes out as it would by itself.
  DYNAGRAD_ONCE_SOLVED void solve(double* x, int64_t m, bool transposed) {
    if (iterative) solve_iterative(x, m, transposed);
    else if (dense_ && m >= wide / 2) solve_wide_dense(x, m, transposed);
    else if (dense_) solve_dense(x, m, transposed);
    else solve_sparse(x, m, transposed);
  }

  // The same for a non-negative A and right side, in numbers of any size. False where there are no factors.
  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) bool solve_wide(Array<Log::Value>& x) const {
    if (iterative) return false;
    const auto add = [&](int64_t to, int64_t from, double c) {  // factors beside the diagonal are not positive
      if (c != 0) x[to] = Log::plus(x[to], Log::times(x[from], Log::settled({-c, 0})));
    };
    if (dense_) {
      const double* a = full_.data;
      for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < i; k++) add(i, k, a[i * n + k]);
      for (int64_t i = n; i-- > 0;) {
        for (int64_t k = i + 1; k < n; k++) add(i, k, a[i * n + k]);
        x[i] = Log::times(x[i], Log::settled({1 / a[i * n + i], 0}));
      }
      return true;
    }
    for (int64_t p = 0; p < n; p++)
      for (int64_t e = first_[p]; e < first_[p + 1]; e++) add(order_[pattern_[e]], order_[p], lower_[e]);
    for (int64_t p = n; p-- > 0;) {
      for (int64_t e = first_[p]; e < first_[p + 1]; e++) add(order_[p], order_[pattern_[e]], upper_[e]);
      x[order_[p]] = Log::times(x[order_[p]], Log::settled({1 / pivot_[p], 0}));
    }
    return true;
  }

  // y = A x, or A' x.
  DYNAGRAD_ONCE_SOLVED void multiply(const double* x, double* y, bool transposed) const {
    for (int64_t i = 0; i < n; i++) y[i] = -shift[i] * x[i];
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = start_[i]; k < start_[i + 1]; k++) {
        if (transposed) y[column_[k]] += value_[k] * x[i];
        else y[i] += value_[k] * x[column_[k]];
      }
  }

  // left = b - (I - A) x, or with A'; all of n rows of m numbers.
  DYNAGRAD_ONCE_SOLVED void residual(const double* b, const double* x, double* left, int64_t m, bool transposed) {
    for (int64_t first = 0; first < m && !halted; first += wide) {
      const int64_t count = m - first < wide ? m - first : wide;
      take(x, m, first, count);
      left_.wipe(n * wide);
      for (int64_t i = 0; i < n; i++) {
        double* __restrict to = left_.data + i * wide;
        const double* own = columns_.data + i * wide;
        if (!transposed) {
          double sum[wide] = {};
          for (int64_t k = start_[i]; k < start_[i + 1]; k++) {
            const double c = value_[k];
            const double* from = columns_.data + column_[k] * wide;
            for (int j = 0; j < wide; j++) sum[j] += c * from[j];
          }
          for (int j = 0; j < wide; j++) to[j] = sum[j];
        } else {
          for (int64_t k = start_[i]; k < start_[i + 1]; k++) {
            const double c = value_[k];
            double* __restrict out = left_.data + column_[k] * wide;
            for (int j = 0; j < wide; j++) out[j] += c * own[j];
          }
        }
      }
      for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < count; j++) {
          const int64_t at = i * m + first + j;
          left[at] = b[at] + (left_[i * wide + j] - shift[i] * x[at]) - x[at];
        }
      if (owner->spend(1 + nonzeros() / 4)) halted = true;
    }
  }

  // The spectral radius of a non-negative A: Collatz and Wielandt's bounds, by powers of (A + I) / 2, which converge
  // whatever the period. Where they do not meet, as A is reducible or very long, it is by what the largest entry grows.
  // In `x` is left the vector that A stretches by so much.
  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) double radius(Array<double>& x) {
    if (!n) return 0;
    Array<double> y;
    x.filled(n, 1.0), y.zeros(n);
    double low = 0, high = INFINITY, largest = 0;  // of entries after a step from one
    for (int64_t round = 0; round < 2000; round++) {
      multiply(x.data, y.data, false);
      low = INFINITY, high = largest = 0;
      for (int64_t i = 0; i < n; i++) {
        const double ratio = y[i] / x[i];
        if (ratio < low) low = ratio;
        if (ratio > high) high = ratio;
        y[i] = 0.5 * (y[i] + x[i]);
        if (y[i] > largest) largest = y[i];
      }
      if (!(high - low > 1e-12 * high) || !isfinite(largest) || owner->spend(nonzeros())) break;
      for (int64_t i = 0; i < n; i++) {
        x[i] = y[i] / largest;
        if (x[i] < 1e-290) x[i] = 1e-290;
      }
    }
    return high - low <= 1e-6 * high ? 0.5 * (low + high) : fmin(high, fmax(low, 2 * largest - 1));
  }

 private:
  // A by rows.
  Array<int64_t> start_;
  Array<uint32_t> column_;
  Array<double> value_;
  bool dense_ = false;
  // Dense factors, by rows: L below the diagonal, U on and above it.
  Array<double> full_;
  // Sparse factors. Unknown order_[p] is eliminated as the p-th; the columns of L below the diagonal, and the rows of U
  // right of it, have one pattern: places first_[p] .. first_[p + 1] of `pattern_`, which are numbers of eliminations.
  Array<uint32_t> order_, place_;
  Array<int64_t> first_;
  Array<uint32_t> pattern_;
  Array<double> lower_, upper_, pivot_;
  Array<double> work_, columns_, left_;

  int64_t nonzeros() const { return column_.size; }

  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) void compress(bool absolute) {
    start_.zeros(n + 1);
    for (int64_t e = 0; e < entries.size; e++) start_[entries[e].row + 1]++;
    for (int64_t i = 0; i < n; i++) start_[i + 1] += start_[i];
    Array<int64_t> at;
    at.copy(start_);
    column_.zeros(entries.size), value_.zeros(entries.size);
    for (int64_t e = 0; e < entries.size; e++) {
      const int64_t k = at[entries[e].row]++;
      column_[k] = entries[e].column, value_[k] = entries[e].value;
    }
    Array<int64_t> seen;  // per column, its place in the row at hand + 1
    seen.zeros(n);
    int64_t out = 0;
    for (int64_t i = 0; i < n; i++) {
      const int64_t begin = start_[i], end = start_[i + 1], from = out;
      start_[i] = out;
      for (int64_t k = begin; k < end; k++) {
        const uint32_t c = column_[k];
        if (seen[c] > from) {
          value_[seen[c] - 1] += value_[k];
        } else {
          column_[out] = c, value_[out] = value_[k];
          seen[c] = ++out;
        }
      }
    }
    start_[n] = out;
    column_.size = value_.size = out;
    for (int64_t k = 0; absolute && k < out; k++) value_[k] = fabs(value_[k]);
  }

  // A pivot that stays clear of what rounding may have made of it: `lost` is the sum of what was subtracted from one.
  static bool surely_positive(double pivot, double lost, int64_t terms) {
    return terms < 2 ? pivot > 0 : pivot > 1.2e-16 * (double)(terms < 64 ? terms : 64) * (1 + lost);
  }

  DYNAGRAD_ONCE_SOLVED bool factor_dense() {
    full_.zeros(n * n);
    double* a = full_.data;
    work_.zeros(n);
    Array<int32_t> terms;
    terms.zeros(n);
    for (int64_t i = 0; i < n; i++) {
      for (int64_t k = start_[i]; k < start_[i + 1]; k++) {
        a[i * n + column_[k]] = -value_[k];
        if (column_[k] == i) work_[i] += fabs(value_[k]), terms[i]++;
      }
      a[i * n + i] += 1;
      a[i * n + i] += shift[i];
    }
    bool fine = true;
    for (int64_t k = 0; k < n; k++) {
      if (owner->spend(1 + n * (n - k) / 64)) return halted = true, false;
      const double pivot = a[k * n + k];
      fine = fine && surely_positive(pivot, work_[k], terms[k]);
      if (pivot == 0 || !isfinite(pivot)) return definite = false;
      const double* __restrict from = a + k * n;
      for (int64_t i = k + 1; i < n; i++) {
        double* __restrict to = a + i * n;
        if (to[k] == 0) continue;
        const double l = to[k] /= pivot;
        if (from[i] != 0) work_[i] += fabs(l * from[i]), terms[i]++;
        for (int64_t j = k + 1; j < n; j++) to[j] -= l * from[j];
      }
    }
    return definite = fine;
  }

  static void subtract(double* __restrict to, const double* __restrict from, double c, int64_t m) {
    for (int64_t k = 0; k < m; k++) to[k] -= c * from[k];
  }
  static void divide(double* x, double c, int64_t m) {
    for (int64_t k = 0; k < m; k++) x[k] /= c;
  }

  DYNAGRAD_ONCE_SOLVED void solve_dense(double* x, int64_t m, bool transposed) const {
    const double* a = full_.data;
    if (!transposed) {
      for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < i; k++)
          if (a[i * n + k] != 0) subtract(x + i * m, x + k * m, a[i * n + k], m);
      for (int64_t i = n; i-- > 0;) {
        for (int64_t k = i + 1; k < n; k++)
          if (a[i * n + k] != 0) subtract(x + i * m, x + k * m, a[i * n + k], m);
        divide(x + i * m, a[i * n + i], m);
      }
      return;
    }
    for (int64_t k = 0; k < n; k++) {
      divide(x + k * m, a[k * n + k], m);
      for (int64_t i = k + 1; i < n; i++)
        if (a[k * n + i] != 0) subtract(x + i * m, x + k * m, a[k * n + i], m);
    }
    for (int64_t k = n; k-- > 0;)
      for (int64_t i = 0; i < k; i++)
        if (a[k * n + i] != 0) subtract(x + i * m, x + k * m, a[k * n + i], m);
  }

  // The same for many right sides, so many at once that a row of them stays in registers.
  DYNAGRAD_ONCE_SOLVED void solve_wide_dense(double* x, int64_t m, bool transposed) {
    const double* a = full_.data;
    for (int64_t first = 0; first < m && !halted; first += wide) {
      const int64_t count = m - first < wide ? m - first : wide;
      take(x, m, first, count);
      double* y = columns_.data;
      for (int64_t i = 0; i < n; i++) {
        double sum[wide];
        memcpy(sum, y + i * wide, sizeof sum);
        for (int64_t k = 0; k < i; k++) {
          const double c = transposed ? a[k * n + i] : a[i * n + k];
          if (c == 0) continue;
          for (int j = 0; j < wide; j++) sum[j] -= c * y[k * wide + j];
        }
        if (transposed)
          for (int j = 0; j < wide; j++) sum[j] /= a[i * n + i];
        memcpy(y + i * wide, sum, sizeof sum);
      }
      for (int64_t i = n; i-- > 0;) {
        double sum[wide];
        memcpy(sum, y + i * wide, sizeof sum);
        for (int64_t k = transposed ? n - 1 : i + 1; transposed ? k > i : k < n; transposed ? k-- : k++) {
          const double c = transposed ? a[k * n + i] : a[i * n + k];
          if (c == 0) continue;
          for (int j = 0; j < wide; j++) sum[j] -= c * y[k * wide + j];
        }
        if (!transposed)
          for (int j = 0; j < wide; j++) sum[j] /= a[i * n + i];
        memcpy(y + i * wide, sum, sizeof sum);
      }
      for (int64_t i = 0; i < n; i++) memcpy(x + i * m + first, y + i * wide, count * sizeof(double));
      if (owner->spend(1 + n * n / 4)) halted = true;
    }
  }
  // Some columns of x into `columns_`, one after the other; what is missing of their width is zero.
  DYNAGRAD_ONCE_SOLVED void take(const double* x, int64_t m, int64_t first, int64_t count) {
    columns_.raw(n * wide);
    for (int64_t i = 0; i < n; i++) {
      memcpy(columns_.data + i * wide, x + i * m + first, count * sizeof(double));
      for (int64_t j = count; j < wide; j++) columns_[i * wide + j] = 0;
    }
  }

  // -- the order of elimination, and with it the pattern of the factors

  // Approximate minimum degree on the pattern of A + A' (Amestoy, Davis and Duff 1996, without its refinements). False
  // where the factors would be too large.
  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) bool order() {
    Array<int64_t> begin;     // per unknown, its neighbours in `near`
    Array<uint32_t> near;
    symmetric(begin, near);
    Array<int32_t> length, degree;       // of neighbours that are unknowns; the approximate degree
    length.zeros(n), degree.zeros(n);
    for (int64_t i = 0; i < n; i++) length[i] = degree[i] = (int32_t)(begin[i + 1] - begin[i]);
    // Elements, which are unknowns that were eliminated: e covers pattern_[first[e] ..+ size[e]].
    Array<int64_t> first;
    Array<int32_t> size;
    Array<uint8_t> gone;      // 1: eliminated; 2: and absorbed by a later element
    first.zeros(n), size.zeros(n), gone.zeros(n);
    struct Link { uint32_t element; int64_t next; };
    Array<Link> links;        // per unknown, the elements that cover it
    Array<int64_t> covers;    // newest link + 1
    covers.zeros(n);
    // Unknowns by degree, in lists.
    Array<int32_t> head, next, before;
    head.filled(n + 1, -1), next.filled(n, -1), before.filled(n, -1);
    const auto enter = [&](int64_t i) {
      const int32_t d = degree[i];
      next[i] = head[d], before[i] = -1;
      if (head[d] >= 0) before[head[d]] = (int32_t)i;
      head[d] = (int32_t)i;
    };
    const auto leave = [&](int64_t i) {
      if (before[i] >= 0) next[before[i]] = next[i];
      else head[degree[i]] = next[i];
      if (next[i] >= 0) before[next[i]] = before[i];
    };
    for (int64_t i = n; i-- > 0;) enter(i);
    Array<int64_t> mark, shared;  // stamps; per element, how many of its unknowns are not in the element at hand
    Array<int64_t> stamped;
    mark.zeros(n), shared.zeros(n), stamped.zeros(n);
    pattern_.clear(), order_.clear();
    double flops = 0;
    int64_t stamp = 0;
    int32_t least = 0;
    for (int64_t step = 0; step < n; step++) {
      while (least < n && head[least] < 0) least++;
      const int64_t p = head[least];
      leave(p);
      order_.push((uint32_t)p);
      gone[p] = 1;
      // the new element: the neighbours of p, and what the elements cover that cover p
      stamp++;
      mark[p] = stamp;
      first[p] = pattern_.size;
      for (int64_t k = begin[p]; k < begin[p] + length[p]; k++) {
        const uint32_t i = near[k];
        if (!gone[i] && mark[i] != stamp) mark[i] = stamp, pattern_.push(i);
      }
      for (int64_t l = covers[p]; l; l = links[l - 1].next) {
        const uint32_t e = links[l - 1].element;
        if (gone[e] == 2) continue;
        for (int64_t k = first[e]; k < first[e] + size[e]; k++) {
          const uint32_t i = pattern_[k];
          if (!gone[i] && mark[i] != stamp) mark[i] = stamp, pattern_.push(i);
        }
        gone[e] = 2;
      }
      const int64_t count = pattern_.size - first[p];
      size[p] = (int32_t)count;
      const double wide = (double)count;  // these unknowns are now a clique, which has to be eliminated in its turn
      flops += 2 * wide * wide;
      if (flops + wide * wide * wide * 2 / 3 > most_flops || pattern_.size > most_entries) return false;
      if (owner->spend(1 + count)) return halted = true, false;
      // for each element met from the unknowns of p's, how much of it lies outside of p's; none of its unknowns is
      // eliminated, or it were absorbed
      for (int64_t k = first[p]; k < first[p] + count; k++)
        for (int64_t l = covers[pattern_[k]]; l; l = links[l - 1].next) {
          const uint32_t e = links[l - 1].element;
          if (gone[e] == 2) continue;
          if (stamped[e] != stamp) stamped[e] = stamp, shared[e] = size[e];
          shared[e]--;
        }
      for (int64_t k = first[p]; k < first[p] + count; k++) {
        const uint32_t i = pattern_[k];
        leave(i);
        int64_t out = begin[i], sum = count - 1;
        for (int64_t q = begin[i]; q < begin[i] + length[i]; q++)  // neighbours that p's element covers are its affair
          if (!gone[near[q]] && mark[near[q]] != stamp) near[out++] = near[q];
        length[i] = (int32_t)(out - begin[i]);
        sum += length[i];
        int64_t* to = &covers[i];
        for (int64_t l = covers[i]; l; l = links[l - 1].next) {
          const uint32_t e = links[l - 1].element;
          if (gone[e] == 2 || shared[e] == 0) continue;  // absorbed, or covered whole by p's
          *to = l, to = &links[l - 1].next;
          sum += shared[e];
        }
        *to = 0;
        links.push({(uint32_t)p, covers[i]});
        covers[i] = links.size;
        const int64_t rest = n - step - 2;
        degree[i] = (int32_t)(sum < rest ? sum : rest < 0 ? 0 : rest);
        if (degree[i] < least) least = degree[i];
        enter(i);
      }
    }
    number_pattern(first, size);
    return true;
  }
  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) void symmetric(Array<int64_t>& begin, Array<uint32_t>& near) const {
    begin.zeros(n + 1);
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = start_[i]; k < start_[i + 1]; k++)
        if (column_[k] != i) begin[i + 1]++, begin[column_[k] + 1]++;
    for (int64_t i = 0; i < n; i++) begin[i + 1] += begin[i];
    Array<int64_t> at;
    at.copy(begin);
    near.zeros(begin[n]);
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = start_[i]; k < start_[i + 1]; k++)
        if (column_[k] != i) near[at[i]++] = column_[k], near[at[column_[k]]++] = (uint32_t)i;
    Array<int64_t> mark;
    mark.zeros(n);
    int64_t out = 0;
    for (int64_t i = 0; i < n; i++) {
      const int64_t from = begin[i], end = begin[i + 1];
      begin[i] = out;
      for (int64_t k = from; k < end; k++)
        if (mark[near[k]] != i + 1) mark[near[k]] = i + 1, near[out++] = near[k];
    }
    begin[n] = out;
  }
  // The pattern in numbers of eliminations, in their order, each list ascending: a list is sorted by going through its
  // transpose, twice.
  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) void number_pattern(const Array<int64_t>& first, const Array<int32_t>& size) {
    place_.zeros(n);
    for (int64_t p = 0; p < n; p++) place_[order_[p]] = (uint32_t)p;
    Array<int64_t> at;
    at.zeros(n + 1);
    for (int64_t p = 0; p < n; p++) {
      const uint32_t e = order_[p];
      for (int64_t k = first[e]; k < first[e] + size[e]; k++) at[place_[pattern_[k]] + 1]++;
    }
    for (int64_t i = 0; i < n; i++) at[i + 1] += at[i];
    Array<int64_t> from;
    from.copy(at);
    Array<uint32_t> turned;
    turned.zeros(at[n]);
    for (int64_t p = 0; p < n; p++) {
      const uint32_t e = order_[p];
      for (int64_t k = first[e]; k < first[e] + size[e]; k++) turned[from[place_[pattern_[k]]]++] = (uint32_t)p;
    }
    first_.zeros(n + 1);
    for (int64_t p = 0; p < n; p++) first_[p + 1] = first_[p] + size[order_[p]];
    from.copy(first_);
    pattern_.size = at[n];
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = at[i]; k < at[i + 1]; k++) pattern_[from[turned[k]]++] = (uint32_t)i;
  }

  // Left-looking: row and column p of the factors from those before that reach p.
  DYNAGRAD_ONCE_SOLVED bool factor_sparse() {
    const int64_t size = pattern_.size;
    lower_.zeros(size), upper_.zeros(size), pivot_.zeros(n), work_.zeros(n);
    Array<double> row, column;        // scattered by number of elimination
    row.zeros(n), column.zeros(n);
    Array<int64_t> at;                // per elimination, its next entry
    Array<int64_t> head, next;        // eliminations whose next entry is p, in lists, plus one
    at.zeros(n), head.zeros(n), next.zeros(n);
    // A by columns, for the columns of L
    Array<int64_t> begin;
    Array<uint32_t> rows;
    Array<double> values;
    begin.zeros(n + 1), rows.zeros(nonzeros()), values.zeros(nonzeros());
    for (int64_t k = 0; k < nonzeros(); k++) begin[column_[k] + 1]++;
    for (int64_t i = 0; i < n; i++) begin[i + 1] += begin[i];
    Array<int64_t> to;
    to.copy(begin);
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = start_[i]; k < start_[i + 1]; k++) {
        const int64_t q = to[column_[k]]++;
        rows[q] = (uint32_t)i, values[q] = value_[k];
      }
    bool fine = true;
    for (int64_t p = 0; p < n; p++) {
      const uint32_t unknown = order_[p];
      double pivot = 1, lost = 0;
      int64_t terms = 0;
      for (int64_t k = start_[unknown]; k < start_[unknown + 1]; k++) {
        const int64_t j = place_[column_[k]];
        if (j > p) row[j] = -value_[k];
        if (j == p) pivot -= value_[k], lost += fabs(value_[k]), terms++;
      }
      pivot += shift[unknown];
      for (int64_t k = begin[unknown]; k < begin[unknown + 1]; k++)
        if ((int64_t)place_[rows[k]] > p) column[place_[rows[k]]] = -values[k];
      int64_t work = 1;
      for (int64_t k = head[p] - 1, following; k >= 0; k = following) {
        following = next[k] - 1;
        const int64_t here = at[k];
        const double l = lower_[here], u = upper_[here];
        pivot -= l * u, lost += fabs(l * u), terms++;
        for (int64_t e = here + 1; e < first_[k + 1]; e++) {
          row[pattern_[e]] -= l * upper_[e];
          column[pattern_[e]] -= lower_[e] * u;
        }
        work += first_[k + 1] - here;
        at[k]++;
        pass(k, at, head, next);
      }
      if (owner->spend(1 + work / 4)) return halted = true, false;
      fine = fine && surely_positive(pivot, lost, terms);
      if (pivot == 0 || !isfinite(pivot)) return definite = false;
      pivot_[p] = pivot;
      for (int64_t e = first_[p]; e < first_[p + 1]; e++) {
        const uint32_t i = pattern_[e];
        upper_[e] = row[i], lower_[e] = column[i] / pivot;
        row[i] = column[i] = 0;
      }
      at[p] = first_[p];
      pass(p, at, head, next);
    }
    return definite = fine;
  }
  void pass(int64_t k, const Array<int64_t>& at, Array<int64_t>& head, Array<int64_t>& next) const {
    if (at[k] == first_[k + 1]) return;
    const uint32_t p = pattern_[at[k]];
    next[k] = head[p], head[p] = k + 1;
  }

  DYNAGRAD_ONCE_SOLVED void solve_sparse(double* b, int64_t m, bool transposed) {
    work_.raw(n * m);
    double* x = work_.data;
    for (int64_t p = 0; p < n; p++) memcpy(x + p * m, b + order_[p] * m, m * sizeof(double));
    const Array<double>&first = transposed ? upper_ : lower_, &second = transposed ? lower_ : upper_;
    for (int64_t p = 0; p < n; p++) {
      if (transposed) divide(x + p * m, pivot_[p], m);
      for (int64_t e = first_[p]; e < first_[p + 1]; e++) subtract(x + pattern_[e] * m, x + p * m, first[e], m);
    }
    for (int64_t p = n; p-- > 0;) {
      for (int64_t e = first_[p]; e < first_[p + 1]; e++) subtract(x + p * m, x + pattern_[e] * m, second[e], m);
      if (!transposed) divide(x + p * m, pivot_[p], m);
    }
    for (int64_t p = 0; p < n; p++) memcpy(b + order_[p] * m, x + p * m, m * sizeof(double));
  }

  // -- without factors

  // Whether the spectral radius of |A| is surely below one: a positive vector that |A| shrinks everywhere.
  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) bool radius_below_one() {
    Array<double> x, y;
    x.filled(n, 1.0), y.zeros(n);
    for (int64_t round = 0; round < 20000 && !halted; round++) {
      double highest = 0, largest = 0;
      for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = start_[i]; k < start_[i + 1]; k++) sum += fabs(value_[k]) * x[column_[k]];
        y[i] = sum;
        if (sum > highest * x[i]) highest = sum / x[i];
        if (sum > largest) largest = sum;
      }
      if (highest < 1) return true;
      if (largest == 0) return true;
      double lowest = INFINITY;
      for (int64_t i = 0; i < n; i++) lowest = y[i] / x[i] < lowest ? y[i] / x[i] : lowest;
      if (lowest >= 1) return false;
      for (int64_t i = 0; i < n; i++) x[i] = 0.5 * (x[i] + y[i] / largest) + 1e-290;
      if (owner->spend(nonzeros())) halted = true;
    }
    radius_unknown = true;
    return false;
  }

  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) void solve_iterative(double* b, int64_t m, bool transposed) {
    Array<double> right, x;
    right.zeros(n), x.zeros(n);
    for (int64_t c = 0; c < m && !halted; c++) {
      bool nothing = true;
      for (int64_t i = 0; i < n; i++) right[i] = b[i * m + c], x[i] = right[i], nothing = nothing && right[i] == 0;
      if (!nothing && !bicgstab(right.data, x.data, transposed)) gauss_seidel(right.data, x.data, transposed);
      for (int64_t i = 0; i < n; i++) b[i * m + c] = x[i];
    }
  }
  static double dot(const double* a, const double* b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
  }
  // r = b - (I - A) x
  DYNAGRAD_ONCE_SOLVED double residual(const double* b, const double* x, double* r, bool transposed) const {
    multiply(x, r, transposed);
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
      r[i] += b[i] - x[i];
      if (!(fabs(r[i]) <= largest)) largest = fabs(r[i]);
    }
    return largest;
  }
  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) bool bicgstab(const double* b, double* x, bool transposed) {
    Array<double> r, r0, p, v, s, t;
    r.zeros(n), r0.zeros(n), p.zeros(n), v.zeros(n), s.zeros(n), t.zeros(n);
    double size = 0;
    for (int64_t i = 0; i < n; i++) size = fabs(b[i]) > size ? fabs(b[i]) : size;
    for (int restart = 0; restart < 4; restart++) {
      double left = residual(b, x, r.data, transposed);
      r0.copy(r);
      double rho = 1, alpha = 1, omega = 1;
      memset(p.data, 0, n * sizeof(double)), memset(v.data, 0, n * sizeof(double));
      for (int64_t round = 0; round < 2000; round++) {
        if (left <= 1e-16 * size) return true;
        if (owner->spend(2 * nonzeros() + 10 * n)) return halted = true;
        const double next = dot(r0.data, r.data, n), beta = next / rho * (alpha / omega);
        if (!isfinite(beta) || next == 0) break;
        rho = next;
        for (int64_t i = 0; i < n; i++) p[i] = r[i] + beta * (p[i] - omega * v[i]);
        multiply(p.data, v.data, transposed);
        for (int64_t i = 0; i < n; i++) v[i] = p[i] - v[i];
        alpha = rho / dot(r0.data, v.data, n);
        for (int64_t i = 0; i < n; i++) s[i] = r[i] - alpha * v[i];
        multiply(s.data, t.data, transposed);
        for (int64_t i = 0; i < n; i++) t[i] = s[i] - t[i];
        const double tt = dot(t.data, t.data, n);
        omega = tt > 0 ? dot(t.data, s.data, n) / tt : 0;
        left = 0;
        for (int64_t i = 0; i < n; i++) {
          x[i] += alpha * p[i] + omega * s[i];
          r[i] = s[i] - omega * t[i];
          left = fabs(r[i]) > left ? fabs(r[i]) : left;
        }
        if (!isfinite(left)) {
          for (int64_t i = 0; i < n; i++) x[i] = b[i];
          break;
        }
        if (omega == 0) break;
      }
      double largest = 0;
      for (int64_t i = 0; i < n; i++) largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
      if (residual(b, x, r.data, transposed) <= 1e-15 * (size + largest)) return true;
    }
    return false;
  }
  DYNAGRAD_ONCE_SOLVED __attribute__((cold)) void gauss_seidel(const double* b, double* x, bool transposed) {
    Array<double> r;
    r.zeros(n);
    for (int64_t i = 0; i < n; i++) x[i] = b[i];
    for (int64_t round = 0; round < 1000000; round++) {
      if (owner->spend(nonzeros() + n)) {
        halted = true;
        return;
      }
      double change = 0;
      if (transposed) {  // by columns there is no sweep in place
        residual(b, x, r.data, true);
        for (int64_t i = 0; i < n; i++) x[i] += r[i], change = fmax(change, fabs(r[i]) - 1e-16 * fabs(x[i]));
      } else {
        for (int64_t i = 0; i < n; i++) {
          double sum = b[i], own = 0;
          for (int64_t k = start_[i]; k < start_[i + 1]; k++)
            if (column_[k] == i) own += value_[k];
            else sum += value_[k] * x[column_[k]];
          sum /= 1 - own + shift[i];
          change = fmax(change, fabs(sum - x[i]) - 1e-16 * fabs(sum));
          x[i] = sum;
        }
      }
      if (!(change > 0)) return;
    }
  }
};

}  // namespace dynagrad
