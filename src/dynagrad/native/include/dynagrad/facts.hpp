// Facts: a relation that no run changes, loaded once and shared by runs and threads.
//
// Rows are sorted by their arguments and merged with plus, so a row number is the fact's name for good; `row_of` says
// where each given row went. A `Grouping` lists the rows that agree in some arguments, as stretches of one array.
#pragma once
#include "host.hpp"
#include "memory.hpp"
#include "semirings.hpp"

namespace dynagrad {

// How long whoever asked for facts to be loaded waits for them: until Ctrl-C, or for so many nanoseconds (-1: no limit).
struct Patience {
  Unlocked* unlocked;
  int64_t timeout_ns;
};
inline constinit thread_local const Patience* patience = nullptr;  // null where nobody would end it

// Called for each row that takes time; ends the guarded call where patience does. Few rows are always loaded.
inline void heed(int64_t row) {
  if (__builtin_expect((row & 0x7fff) != 0x7fff, 1) || !patience) return;
  const Patience* const waits = patience;
  patience = nullptr;  // not that of what the handler of a signal loads
  const bool stop = waits->unlocked->interrupted(1 << 30);
  patience = waits;
  if (stop) end_early(stopped);
  if (waits->timeout_ns >= 0 && waits->unlocked->elapsed() >= waits->timeout_ns) end_early(late);
}

// Stable sort of `order` by the numbers column[order[i]], radix 2^11 on what the range needs.
inline void sort_by(const int32_t* column, Array<uint32_t>& order, Array<uint32_t>& spare, int32_t low, int64_t count) {
  const int64_t n = order.size;
  spare.resize(n, 0);
  for (int shift = 0; (count - 1) >> shift > 0; shift += 11) {
    int64_t at[2049] = {0};
    for (int64_t i = 0; i < n; i++) at[(((uint32_t)column[order[i]] - (uint32_t)low) >> shift & 2047) + 1]++;
    for (int i = 0; i < 2048; i++) at[i + 1] += at[i];
    for (int64_t i = 0; i < n; i++) {
      heed(i);
      spare[at[((uint32_t)column[order[i]] - (uint32_t)low) >> shift & 2047]++] = order[i];
    }
    order.swap(spare);
  }
}

// Rows grouped by a key of K numbers, each group a stretch begin..end of `rows`.
template <int K>
struct Grouping {
  struct Key { int32_t a[K ? K : 1]; };
  Array<int64_t> start;        // dense: by linear key; hashed: by key number
  Array<uint32_t> rows;        // row numbers, in groups
  Array<Key> keys;
  Array<uint32_t> slots;
  uint64_t mask = 0;
  bool dense = false, identity = false;
  bool full = false;           // every cell of the key's ranges has one row, in order: row number = linear key
  int32_t low[K ? K : 1];
  int64_t extent[K ? K : 1], stride[K ? K : 1];

  explicit Grouping(Account* a) : start(a), rows(a), keys(a), slots(a) {}

  // `key` has K columns of n numbers; rows whose `keep` is zero are left out (keep may be null).
  void build(const int32_t* const* key, const uint8_t* keep, int64_t n) {
    rows.clear();
    rows.reserve(n);
    for (int64_t i = 0; i < n; i++)
      if (!keep || keep[i]) rows.push((uint32_t)i);
    const int64_t m = rows.size;
    double product = 1;
    Array<uint32_t> spare;
    for (int k = K - 1; k >= 0; k--) {
      int32_t lo = INT32_MAX, hi = INT32_MIN;
      bool sorted = true;
      for (int64_t i = 0; i < m; i++) {
        const int32_t x = key[k][rows[i]];
        if (x < lo) lo = x;
        if (x > hi) hi = x;
        if (i && key[k][rows[i - 1]] > x) sorted = false;
      }
      if (!m) lo = 0, hi = -1;
      low[k] = lo;
      extent[k] = (int64_t)hi - lo + 1;
      product *= (double)extent[k];
      if (m && !sorted) sort_by(key[k], rows, spare, lo, extent[k]);
    }
    dense = product <= 4.0 * (double)m + 4096;
    identity = !keep;
    for (int64_t i = 0; identity && i < m; i++) identity = rows[i] == i;
    if (dense) {
      int64_t step = 1;
      for (int k = K - 1; k >= 0; k--) stride[k] = step, step *= extent[k];
      start.zeros(step + 1);
      for (int64_t i = 0; i < m; i++) {
        heed(i);
        start[linear(key, rows[i]) + 1]++;
      }
      for (int64_t c = 0; c < step; c++) start[c + 1] += start[c];
      full = identity && step == m;
      for (int64_t c = 0; full && c < step; c++) full = start[c] == c;
    } else {
      for (int64_t i = 0; i < m; i++) {
        heed(i);
        if (i && same(key, rows[i - 1], rows[i])) continue;
        Key k;
        for (int j = 0; j < K; j++) k.a[j] = key[j][rows[i]];
        keys.push(k);
        start.push(i);
      }
      start.push(m);
      mask = 15;
      while (mask < (uint64_t)keys.size * 2) mask = mask * 2 + 1;
      slots.zeros((int64_t)mask + 1);
      for (int64_t c = 0; c < keys.size; c++) {
        heed(c);
        uint64_t h = hash_arguments<K>(keys[c].a) & mask;
        while (slots[h]) h = (h + 1) & mask;
        slots[h] = (uint32_t)c + 1;
      }
    }
  }
  int64_t linear(const int32_t* const* key, int64_t row) const {
    int64_t c = 0;
    for (int k = 0; k < K; k++) c += ((int64_t)key[k][row] - low[k]) * stride[k];
    return c;
  }
  static bool same(const int32_t* const* key, int64_t a, int64_t b) {
    for (int k = 0; k < K; k++)
      if (key[k][a] != key[k][b]) return false;
    return true;
  }
  struct Stretch { int64_t begin, end; };
  // Whether the rows of a stretch stand side by side, and a column that differs between them goes up by one.
  bool side_by_side(Stretch s, const int32_t* free) const {
    return identity && s.begin < s.end && free[s.end - 1] - (int64_t)free[s.begin] == s.end - s.begin - 1;
  }
  template <class... A>
  Stretch find(A... a) const {
    const int32_t args[] = {a..., 0};
    if (__builtin_expect(dense, 1)) {
      int64_t c = 0;
      for (int k = 0; k < K; k++) {
        const int64_t x = (int64_t)args[k] - low[k];
        if ((uint64_t)x >= (uint64_t)extent[k]) return {0, 0};
        c += x * stride[k];
      }
      return {start[c], start[c + 1]};
    }
    uint64_t h = hash_arguments<K>(args) & mask;
    while (uint32_t s = slots[h]) {
      if (!memcmp(keys[s - 1].a, args, K * sizeof(int32_t))) return {start[s - 1], start[s]};
      h = (h + 1) & mask;
    }
    return {0, 0};
  }
};

// The values of a fact table's rows: apart from the rows, so that new numbers can stand on the same rows.
template <class S>
struct Weights {
  using Value = typename S::Value;
  using View = const Value*;
  Account account;
  Array<Value> value{&account};
  bool has_zero = false;
  int64_t differs = -1;        // a row whose copies have different values, where they may not
  Array<double> logs{&account};  // in `log`, the logs as they were given, where a class asks for them
  View view() const { return value.data; }
  void open(int64_t rows) { value.clear(), value.resize(rows, S::zero()); }
  void set(int64_t row, const Value& v) { value[row] = v; }
  bool read_all(const uint64_t*, int64_t) { return false; }  // whether a quicker way was found
};

// In `log`, exponents are left out as long as they are all zero.
template <>
struct Weights<Log> {
  using Value = Log::Value;
  struct View {
    const double* m;
    const int64_t* e;
    Value operator[](int64_t row) const { return {m[row], e ? e[row] : 0}; }
  };
  Account account;
  Array<double> m{&account};
  Array<int64_t> e{&account};
  bool has_zero = false;
  int64_t differs = -1;
  Array<double> logs{&account};
  View view() const { return {m.data, e.size ? e.data : nullptr}; }
  void open(int64_t rows) { m.zeros(rows), e.release(); }
  void set(int64_t row, const Value& v) {
    m[row] = v.m;
    if (v.e && !e.size) e.zeros(m.size);
    if (e.size) e[row] = v.e;
  }
  bool read_all(const uint64_t* words, int64_t rows) {
    m.release(), e.release();
    m.raw(rows);
    return Log::read_mantissas(words, rows, m.data, has_zero);
  }
};

template <class S, int N>
struct Facts {
  using Value = typename S::Value;
  static constexpr int arity = N;
  Account account;
  int64_t rows = 0, given = 0;
  bool in_order = false;       // rows are the given ones, as they came
  Array<int32_t> column[N ? N : 1];
  Array<uint32_t> row_of;      // given row -> row
  Grouping<N> by_all;          // the point lookup

  Facts() : row_of(&account), by_all(&account) {
    for (auto& c : column) c.account = &account;
  }

  void load(const int32_t* const* columns, int64_t n) {
    given = n;
    Array<uint32_t> order, spare;
    order.reserve(n);
    for (int64_t i = 0; i < n; i++) order.push((uint32_t)i);
    for (int k = N - 1; k >= 0; k--) {
      int32_t lo = INT32_MAX, hi = INT32_MIN;
      for (int64_t i = 0; i < n; i++) {
        if (columns[k][i] < lo) lo = columns[k][i];
        if (columns[k][i] > hi) hi = columns[k][i];
      }
      if (n) sort_by(columns[k], order, spare, lo, (int64_t)hi - lo + 1);
    }
    row_of.resize(n, 0);
    rows = 0;
    in_order = true;
    for (int k = 0; k < N; k++) column[k].reserve(n);
    for (int64_t i = 0; i < n; i++) {
      heed(i);
      const uint32_t g = order[i];
      bool fresh = i == 0;
      for (int k = 0; k < N && !fresh; k++) fresh = columns[k][g] != column[k][rows - 1];
      if (fresh) {
        for (int k = 0; k < N; k++) column[k].push(columns[k][g]);
        rows++;
      }
      row_of[g] = (uint32_t)(rows - 1);
      in_order = in_order && fresh && (int64_t)g == i;
    }
    const int32_t* keys[N ? N : 1];
    for (int k = 0; k < N; k++) keys[k] = column[k].data;
    by_all.build(keys, nullptr, rows);
  }
  // The given rows' numbers (null: all one), merged with plus where rows are equal.
  template <class Plus>
  void weigh(Weights<S>& weights, const uint64_t* words, Plus plus) const {
    weigh(weights, words, plus, [](const Value& v) { return v; }, [](const Value&, const Value&) { return false; });
  }
  // Each is taken as `entered`; `differ` says whether two numbers may not be those of one row.
  template <class Plus, class Entered, class Differ>
  void weigh(Weights<S>& weights, const uint64_t* words, Plus plus, Entered entered, Differ differ) const {
    weights.has_zero = false;
#ifdef DYNAGRAD_LOGS
    keep_logs(weights.logs, words);
#endif
    if (in_order && words && weights.read_all(words, rows)) return;
    weights.open(rows);
    weights.has_zero = false;
    uint64_t w[S::words], z[S::words];
    S::write(S::zero(), z);
    Bits filled(nullptr);
    filled.zeros(rows);
    for (int64_t g = 0; g < given; g++) {
      heed(g);
      const Value v = entered(words ? S::read(words + g * S::words) : S::one());
      const int64_t r = row_of[g];
      const bool fresh = filled.set(r);
      if (!fresh && weights.differs < 0 && differ(weights.view()[r], v)) weights.differs = r;
      weights.set(r, fresh ? v : plus(weights.view()[r], v));
    }
    for (int64_t r = 0; r < rows && !weights.has_zero; r++) {
      S::write(weights.view()[r], w);
      weights.has_zero = !memcmp(w, z, sizeof w);
    }
  }
  // The log of each row's weight, to the last digit also where that is near zero.
  void keep_logs(Array<double>& logs, const uint64_t* words) const {
    logs.filled(rows, -INFINITY);
    for (int64_t g = 0; g < given; g++) {
      double a = words ? as_double(words[g * S::words]) : 0, b = logs[row_of[g]];
      if (a < b) { const double t = a; a = b, b = t; }
      logs[row_of[g]] = b == -INFINITY ? a : a + log1p(::exp(b - a));
    }
  }
  template <class... A>
  int64_t find(A... a) const {
    const auto s = by_all.find(a...);
    return s.begin < s.end ? (by_all.identity ? s.begin : (int64_t)by_all.rows[s.begin]) : -1;
  }
};

// The point lookup of a fact table, by value: where rows stand in a full grid, all it takes is arithmetic.
template <class F>
struct Finder {
  const F* facts;
  bool full;
  int32_t low[F::arity];
  int64_t extent[F::arity], stride[F::arity];
  explicit Finder(const F* f) : facts(f), full(f->by_all.full) {
    for (int k = 0; k < F::arity && full; k++)
      low[k] = f->by_all.low[k], extent[k] = f->by_all.extent[k], stride[k] = f->by_all.stride[k];
  }
  template <class... A>
  int64_t operator()(A... a) const {
    if (!full) return facts->find(a...);
    const int32_t args[] = {a...};
    int64_t c = 0;
    for (int k = 0; k < F::arity; k++) {
      const int64_t x = (int64_t)args[k] - low[k];
      if ((uint64_t)x >= (uint64_t)extent[k]) return -1;
      c += x * stride[k];
    }
    return c;
  }
};

// What a chart sees of a fact table: its rows, and the numbers that go with them now.
template <class F, class S>
struct Relation {
  const F* facts;
  typename Weights<S>::View value;
  bool has_zero;
  const double* logs = nullptr;
  int64_t rows() const { return facts->rows; }
  Finder<F> finder() const { return Finder<F>(facts); }
  const int32_t* column(int k) const { return facts->column[k].data; }
  template <class... A>
  int64_t find(A... a) const { return facts->find(a...); }
};

}  // namespace dynagrad
