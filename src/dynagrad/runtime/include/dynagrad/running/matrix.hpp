// A row of drivers times a matrix of facts: joins in which each of up to 64 items that stand side by side adds a stretch
// of facts to the same row of the head.
//
// The row of the head is read and written once, and its sums stay in registers: to the same bits as if the drivers came
// one after the other. In `log` that is so where the numbers of all drivers have one exponent, and those of the facts
// none; where not, the drivers do come one after the other. On the way back, adjoints are posteriors: each driver gets the
// sum over its line, in eight parts, and each fact the sum over all rows that went through it.
#pragma once
#include <dynagrad/running/elementwise.hpp>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"

namespace dynagrad {

// A grid of facts as a matrix: a line for each of up to 64 codes of one argument, along the last one.
struct GridAlong { int64_t first = 0, step = 0, length = 0; };

// False where facts are no full grid, or there is none for one of the codes; of the arguments, that at `Place` is the
// first code, and the last one the least there is.
template <int Place, class F, class... A>
DYNAGRAD_ALWAYS bool grid_along(const F& facts, GridAlong& grid, uint64_t cells, A... a) {
  const auto& by = facts.by_all;
  if (!by.full || !cells) return false;
  const int32_t args[] = {a...};
  int64_t c = 0;
  for (int k = 0; k < F::arity; k++) {
    const int64_t x = (int64_t)args[k] - by.low[k];
    const int64_t least = k == Place ? x + __builtin_ctzll(cells) : x;
    const int64_t most = k == Place ? x + 63 - __builtin_clzll(cells) : x;
    if (least < 0 || most >= by.extent[k]) return false;
    c += x * by.stride[k];
  }
  grid.first = c, grid.step = by.stride[Place], grid.length = by.extent[F::arity - 1];
  return true;
}

// The lines of a matrix that are multiplied, each with its number.
struct Lines {
  int64_t count = 0, length = 0;
  int64_t at[64];      // the first fact of each
  uint8_t cell[64];    // its driver, counted from the first of the row
  bool even = false;   // whether the drivers stand side by side, from a multiple of eight on
  alignas(64) double w[64 + 8];  // in `log`, mantissas of one exponent, if they have one
  int64_t e = 0;
  bool alike = true;
};

DYNAGRAD_EIGHT void take(Lines& lines, const GridAlong& grid, uint64_t cells) {
  lines.length = grid.length;
  if (!(cells & (cells + (cells & -cells)))) {  // without a gap
    const int first = __builtin_ctzll(cells);
    lines.count = __builtin_popcountll(cells), lines.even = first % 8 == 0;
    for (int i = 0; i < lines.count; i++)
      lines.at[i] = grid.first + (first + i) * grid.step, lines.cell[i] = (uint8_t)(first + i);
    return;
  }
  for (; cells; cells &= cells - 1) {
    const int i = __builtin_ctzll(cells);
    lines.at[lines.count] = grid.first + i * grid.step, lines.cell[lines.count++] = (uint8_t)i;
  }
}
// Of the eight lines from s on, those that there are.
DYNAGRAD_EIGHT Words lines_from(const Lines& lines, int64_t s) {
  return words_of(lines.count - s < 8 ? (1u << (lines.count - s)) - 1 : 255);
}
DYNAGRAD_EIGHT void weigh(Lines& lines, const double* x) {
  for (int64_t s = 0; s < lines.count; s++) lines.w[s] = x[lines.cell[s]];
}
DYNAGRAD_EIGHT void weigh(Lines& lines, const Log::Value* x) {
  lines.e = lines.count ? x[lines.cell[0]].e : 0;
  if (lines.even) {  // what is read eight at a time later is written so as well, or it would take long
    Words other{};
    for (int64_t s = 0; s < lines.count; s += 8) {
      const Logs eight(x + lines.cell[s]);
      write(lines.w + s, eight.m), other |= (eight.e ^ lines.e) & lines_from(lines, s);
    }
    lines.alike = all(other == 0);
    return;
  }
  int64_t other = 0;
  for (int64_t s = 0; s < lines.count; s++) {
    const Log::Value w = x[lines.cell[s]];
    lines.w[s] = w.m, other |= w.e ^ lines.e;
  }
  lines.alike = !other;
}

// How many eights of a row are summed up at once, of those that are left: the last one may begin inside the one before
// it, and both are computed before either is written.
DYNAGRAD_EIGHT int64_t together_of(int64_t left) { return left == 5 ? 3 : left < 4 ? left : 4; }
// Calls what(i, n) for n eights of a row, from the i-th on; n is a constant there.
template <int N> struct Const { static constexpr int value = N; };
template <class What>
DYNAGRAD_EIGHT void each_block(int64_t length, What what) {
  for (int64_t i = 0, left = (length + 7) / 8, n; left; i += n, left -= n) {
    switch (n = together_of(left)) {
      case 1: what(i, Const<1>()); break;
      case 2: what(i, Const<2>()); break;
      case 3: what(i, Const<3>()); break;
      default: what(i, Const<4>());
    }
  }
}
// Where the i-th eight of a row begins.
DYNAGRAD_EIGHT int64_t begin_of(int64_t i, int64_t length) { return 8 * i + 8 <= length ? 8 * i : length - 8; }

// -- forward -----------------------------------------------------------------------------------------------------------

template <int N>
DYNAGRAD_EIGHT void sum_lines(Doubles (&sum)[N], const int64_t (&at)[N], const double* x, const Lines& lines) {
  for (int64_t s = 0; s < lines.count; s++) {
    const double* const line = x + lines.at[s];
    const double w = lines.w[s];
    for (int k = 0; k < N; k++) sum[k] += eight(line + at[k]) * w;
  }
}
DYNAGRAD_EIGHT void add_lines(double* y, const double* x, const Lines& lines, const double*) {
  if (lines.length < 8) {
    for (int64_t s = 0; s < lines.count; s++) add_scaled(y, x + lines.at[s], lines.length, lines.w[s]);
    return;
  }
  each_block(lines.length, [&](int64_t i, auto count) {
    constexpr int n = decltype(count)::value;
    Doubles sum[n];
    int64_t at[n];
    for (int k = 0; k < n; k++) at[k] = begin_of(i + k, lines.length), sum[k] = eight(y + at[k]);
    sum_lines(sum, at, x, lines);
    for (int k = 0; k < n; k++) write(y + at[k], sum[k]);
  });
}
// A sum that ends in range was never above it; while it was below, it had all the digits that a settled one has.
DYNAGRAD_EIGHT void add_lines(Log::Value* y, const Weights<Log>::View& x, const Lines& lines, const Log::Value* drivers) {
  if (!lines.alike || x.e || lines.length < 8) {
    for (int64_t s = 0; s < lines.count; s++)
      add_scaled(y, x, lines.at[s], lines.length, settled(drivers[lines.cell[s]]));
    return;
  }
  each_block(lines.length, [&](int64_t i, auto count) {
    constexpr int n = decltype(count)::value;
    Doubles sum[n];
    Words e[n], fine = ~Words{};
    int64_t at[n];
    for (int k = 0; k < n; k++) {
      at[k] = begin_of(i + k, lines.length);
      const Logs to(y + at[k]);
      sum[k] = to.m, e[k] = to.e;
      fine &= (to.e == lines.e) | (to.m == 0);
    }
    sum_lines(sum, at, x.m, lines);
    Words none[n];
    for (int k = 0; k < n; k++) {
      none[k] = sum[k] == 0;
      fine &= none[k] | ((sum[k] >= Log::small) & (sum[k] < Log::big));
    }
    if (__builtin_expect(all(fine), 1)) {
      for (int k = 0; k < n; k++) Logs(sum[k], (none[k] & e[k]) | (~none[k] & lines.e)).write(y + at[k]);
      return;
    }
    const int64_t end = 8 * (i + n) < lines.length ? 8 * (i + n) : lines.length;
    for (int64_t s = 0; s < lines.count; s++)
      for (int64_t j = 8 * i; j < end; j++) add_one(y[j], {x.m[lines.at[s] + j], 0}, {lines.w[s], lines.e});
  });
}

// Adds the drivers `cells`, from x on, each times its line, to the cells of the head from b on.
template <class View, class Value, class Chart>
__attribute__((noinline)) void add_matrix(const View& facts, const GridAlong& grid, uint64_t cells, const Value* x,
                                          DenseOf<Value>& to, int64_t b, Chart* chart, Arrive arrive) {
  Lines lines;
  take(lines, grid, cells);
  weigh(lines, x);
  chart->report.updates += lines.count * lines.length;
  reach(to, b, lines.length, chart, arrive);
  add_lines(to.value.data + b, facts, lines, x);
}

// -- backward ----------------------------------------------------------------------------------------------------------

// The sums of the eight parts of eight vectors, each as `total` has them.
DYNAGRAD_EIGHT Doubles totals(const Doubles* v) {
  Doubles two[4], four[2];
  for (int k = 0; k < 4; k++)
    two[k] = __builtin_shufflevector(v[2 * k], v[2 * k + 1], 0, 8, 2, 10, 4, 12, 6, 14) +
             __builtin_shufflevector(v[2 * k], v[2 * k + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  for (int k = 0; k < 2; k++)
    four[k] = __builtin_shufflevector(two[2 * k], two[2 * k + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
              __builtin_shufflevector(two[2 * k], two[2 * k + 1], 2, 3, 10, 11, 6, 7, 14, 15);
  return __builtin_shufflevector(four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
}

// What the rows of heads and drivers that go through one matrix of facts have for it, in `log`. The adjoint of a fact
// is its weight times a sum over all of them, so they wait until there are many: then each fact is read and written
// once.
struct BackMatrix {
  static constexpr int64_t room = 2048, most = 32, widest = 16;  // doubles; rows; eights of a row
  double* g = nullptr;  // adjoints of the facts
  const double* x = nullptr;
  GridAlong grid;
  uint64_t cells = 0;
  Lines lines;
  int64_t eights = 0, size = 0, fit = 0, count = 0;  // of a row that waits: its eights, its doubles, how many fit in
  alignas(64) double waiting[room];  // of each the adjoints of the head over its weights, then the drivers

  // The adjoints of drivers are added to `updates`; h are those of the head.
  DYNAGRAD_ONCE_MATRICES void add(const Weights<Log>::View& facts, const GridAlong& to, uint64_t which,
                                  double* adjoints, const Log::Value* h, const Log::Value* drivers, double* updates) {
    if (facts.m != x || adjoints != g || which != cells || to.first != grid.first || to.step != grid.step ||
        to.length != grid.length)
      turn(facts.m, to, which, adjoints);
    int64_t first = 0;
    while (first < grid.length && h[first].m == 0) first++;
    if (first == grid.length) return;
    weigh(lines, drivers);
    if (facts.e || !fit || !lines.alike || h[first].e + lines.e != 0 || Log::is_far(lines.e) ||
        !hold(h, h[first].e)) {
      for (int64_t s = 0; s < lines.count; s++)
        updates[lines.cell[s]] +=
            back_scaled(facts, lines.at[s], grid.length, g, h, settled(drivers[lines.cell[s]]));
      return;
    }
    add_sums(updates);
    if (++count == fit) end();
  }
  // Nothing waits any more.
  DYNAGRAD_ALWAYS void end() {
    if (count) back();
    count = 0;
  }

 private:
  // Another matrix, or other lines of it.
  DYNAGRAD_ONCE_MATRICES void turn(const double* facts, const GridAlong& to, uint64_t which, double* adjoints) {
    end();
    x = facts, g = adjoints, grid = to, cells = which;
    lines.count = 0, lines.even = false;
    take(lines, grid, cells);
    eights = (grid.length + 7) / 8, size = 8 * eights + (lines.count + 7) / 8 * 8;
    fit = grid.length < 8 || eights > widest ? 0 : room / size < most ? room / size : most;
  }
  // Adds a row to those that wait; false where the adjoints of its head have not all this exponent.
  DYNAGRAD_EIGHT bool hold(const Log::Value* h, int64_t e) {
    double* const m = waiting + count * size;
    Words same = ~Words{};
    for (int64_t i = 0; i < eights; i++) {
      const Logs row(h + begin_of(i, grid.length));
      write(m + 8 * i, row.m), same &= (row.e == e) | (row.m == 0);
    }
    for (int64_t s = 0; s < lines.count; s += 8) write(m + 8 * eights + s, eight(lines.w + s));
    return all(same);
  }
  // The adjoints of drivers, from the row that was held last: of up to L lines, whose sums stay in registers.
  template <int L>
  DYNAGRAD_EIGHT void add_sums_of(int64_t s, const Words& mine, double* updates) const {
    const double* const m = waiting + count * size;
    const int64_t last = lines.count - 1 - s;
    const double* line[L];
    for (int l = 0; l < L; l++) line[l] = x + lines.at[s + (l < last ? l : last)];
    Doubles sum[8] = {};
    for (int64_t i = 0; i < eights; i++) {
      const int64_t at = begin_of(i, grid.length);
      Doubles head = eight(m + 8 * i);
      if (i + 1 == eights) head = (Doubles)((Words)head & mine);
      for (int l = 0; l < L; l++) sum[l] += head * eight(line[l] + at);
    }
    const Doubles found = totals(sum) * eight(lines.w + s);
    double* const to = updates + lines.cell[s];
    if (lines.even) write(to, eight(to) + (Doubles)(lines_from(lines, s) & (Words)found));
    else for (int64_t j = s; j < s + 8 && j < lines.count; j++) updates[lines.cell[j]] += found[j - s];
  }
  DYNAGRAD_EIGHT void add_sums(double* updates) const {
    const Words mine = grid.length % 8 ? rest_of(grid.length) : ~Words{};
    for (int64_t s = 0; s < lines.count; s += 8) {
      if (lines.count - s > 4) add_sums_of<8>(s, mine, updates);
      else add_sums_of<4>(s, mine, updates);
    }
  }
  // The adjoints of N eights of L lines, from line s and the i-th eight on.
  template <int L, int N>
  DYNAGRAD_EIGHT void back_block(int64_t s, int64_t i) const {
    Doubles sum[L][N] = {};
    for (int64_t r = 0; r < count; r++) {
      const double* const m = waiting + r * size + 8 * i;
      const double* const w = waiting + r * size + 8 * eights + s;
      for (int l = 0; l < L; l++)
        for (int k = 0; k < N; k++) sum[l][k] += eight(m + 8 * k) * w[l];
    }
    for (int l = 0; l < L; l++) {
      const int64_t line = lines.at[s + l];
      for (int k = 0; k < N; k++) {
        const int64_t at = line + begin_of(i + k, grid.length);
        sum[l][k] = eight(g + at) + eight(x + at) * sum[l][k];
      }
      for (int k = 0; k < N; k++) write(g + line + begin_of(i + k, grid.length), sum[l][k]);
    }
  }
  __attribute__((noinline)) void back() const {
    each_block(grid.length, [&](int64_t i, auto number) {
      constexpr int n = decltype(number)::value;
      int64_t s = 0;
      for (; s + 2 <= lines.count; s += 2) back_block<2, n>(s, i);
      if (s < lines.count) back_block<1, n>(s, i);
    });
  }
};

// In `real` each gets the adjoint of the head times the other.
DYNAGRAD_ONCE_MATRICES void back_matrix(const double* facts, const GridAlong& grid, uint64_t cells, double* g,
                                        const double* h, const double* x, double* updates) {
  for (; cells; cells &= cells - 1) {
    const int64_t i = __builtin_ctzll(cells), at = grid.first + i * grid.step;
    updates[i] += back_stretch(facts, at, grid.length, g, h, x[i]);
  }
}

#pragma GCC diagnostic pop
}  // namespace dynagrad
