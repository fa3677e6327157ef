// Facts: immutable relations, loaded once and shared by runs and threads, and their indexes.
//
// Rows are sorted by their arguments and copies are merged with plus, so a row number identifies a fact; `row_of` has
// the row of each row as it was given. A `Grouping` is an index: the rows that agree in some arguments, as ranges of an
// array. `FactTable` and `Groups` are the same without a static number of arguments, for construction; `Facts` and
// `Grouping` have it, for lookups.
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

// Ends the guarded call where patience does.
DYNAGRAD_ONCE void heed_now() {
  if (!patience) return;
  const Patience* const waits = patience;
  patience = nullptr;  // not that of what the handler of a signal loads
  const bool stop = waits->unlocked->interrupted(1 << 30);
  patience = waits;
  if (stop) end_early(stopped);
  if (waits->timeout_ns >= 0 && waits->unlocked->elapsed() >= waits->timeout_ns) end_early(late);
}
// Called for each row that takes time. Few rows are always loaded.
inline void heed(int64_t row) {
  if (__builtin_expect((row & 0x7fff) == 0x7fff, 0)) heed_now();
}

// Stable sort of `order` by the numbers column[order[i]], radix 2^11 on what the range needs.
DYNAGRAD_ONCE void sort_by(const int32_t* column, Array<uint32_t>& order, Array<uint32_t>& spare, int32_t low, int64_t count) {
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

struct World;

// Rows grouped by a key of some columns, each group a stretch begin..end of `rows`.
struct Groups {
  const int width;             // of a key
  int32_t* const lows;         // of each of its columns
  int64_t *const extents, *const strides;
  Array<int64_t> start;        // dense: by linear key; hashed: by key number
  Array<uint32_t> rows;        // row numbers, in groups
  Array<int32_t> keys;
  Array<uint32_t> slots;
  uint64_t mask = 0;
  bool dense = false, identity = false;
  bool full = false;           // every cell of the key's ranges has one row, in order: row number = linear key

  DYNAGRAD_ONCE Groups(Account* a, int n, int32_t* low, int64_t* extent, int64_t* stride)
      : width(n), lows(low), extents(extent), strides(stride), start(a), rows(a), keys(a), slots(a) {}
  DYNAGRAD_ONCE ~Groups() {}

  // `key` has the columns, of n numbers each; rows whose `keep` is zero are left out (keep may be null).
  DYNAGRAD_ONCE void build(const int32_t* const* key, const uint8_t* keep, int64_t n) {
    rows.clear();
    rows.reserve(n);
    for (int64_t i = 0; i < n; i++)
      if (!keep || keep[i]) rows.data[rows.size++] = (uint32_t)i;
    const int64_t m = rows.size;
    double product = 1;
    Array<uint32_t> spare;
    for (int k = width - 1; k >= 0; k--) {
      const int32_t* const column = key[k];
      int32_t lo = INT32_MAX, hi = INT32_MIN;
      bool sorted = true;
      for (int64_t i = 0; i < m; i++) {
        const int32_t x = column[rows[i]];
        if (x < lo) lo = x;
        if (x > hi) hi = x;
        if (i && column[rows[i - 1]] > x) sorted = false;
      }
      if (!m) lo = 0, hi = -1;
      lows[k] = lo;
      extents[k] = (int64_t)hi - lo + 1;
      product *= (double)extents[k];
      if (m && !sorted) sort_by(column, rows, spare, lo, extents[k]);
    }
    dense = product <= 4.0 * (double)m + 4096;
    identity = !keep;
    for (int64_t i = 0; identity && i < m; i++) identity = rows[i] == i;
    if (dense) build_dense(key, m);
    else build_hashed(key, m);
  }
  DYNAGRAD_ONCE void build_dense(const int32_t* const* key, int64_t m) {
    int64_t step = 1;
    for (int k = width - 1; k >= 0; k--) strides[k] = step, step *= extents[k];
    start.zeros(step + 1);
    for (int64_t i = 0; i < m; i++) {
      heed(i);
      int64_t c = 0;
      for (int k = 0; k < width; k++) c += ((int64_t)key[k][rows[i]] - lows[k]) * strides[k];
      start[c + 1]++;
    }
    for (int64_t c = 0; c < step; c++) start[c + 1] += start[c];
    full = identity && step == m;
    for (int64_t c = 0; full && c < step; c++) full = start[c] == c;
  }
  DYNAGRAD_ONCE void build_hashed(const int32_t* const* key, int64_t m) {
    int64_t count = 0;
    for (int64_t i = 0; i < m; i++) {
      heed(i);
      bool fresh = i == 0;
      for (int k = 0; k < width && !fresh; k++) fresh = key[k][rows[i - 1]] != key[k][rows[i]];
      if (!fresh) continue;
      for (int k = 0; k < width; k++) keys.push(key[k][rows[i]]);
      start.push(i);
      count++;
    }
    start.push(m);
    mask = 15;
    while (mask < (uint64_t)count * 2) mask = mask * 2 + 1;
    slots.zeros((int64_t)mask + 1);
    for (int64_t c = 0; c < count; c++) {
      heed(c);
      uint64_t h = hash_arguments(keys.data + c * width, width) & mask;
      while (slots[h]) h = (h + 1) & mask;
      slots[h] = (uint32_t)c + 1;
    }
  }
  struct Stretch { int64_t begin, end; };
  // Whether the rows of a stretch stand side by side, and a column that differs between them goes up by one.
  bool side_by_side(Stretch s, const int32_t* free) const {
    return identity && s.begin < s.end && free[s.end - 1] - (int64_t)free[s.begin] == s.end - s.begin - 1;
  }
  // The group of a key.
  DYNAGRAD_ONCE Stretch at(const int32_t* args) const {
    return dense ? at_dense(args, width, lows, extents, strides) : at_hashed(args, width);
  }
  // The same where the width of a key is known to the compiler.
  DYNAGRAD_ALWAYS Stretch at_dense(const int32_t* args, int n, const int32_t* low, const int64_t* extent,
                                   const int64_t* stride) const {
    int64_t c = 0;
    for (int k = 0; k < n; k++) {
      const int64_t x = (int64_t)args[k] - low[k];
      if ((uint64_t)x >= (uint64_t)extent[k]) return {0, 0};
      c += x * stride[k];
    }
    return {start[c], start[c + 1]};
  }
  DYNAGRAD_ALWAYS Stretch at_hashed(const int32_t* args, int n) const {
    uint64_t h = hash_arguments(args, n) & mask;
    while (uint32_t s = slots[h]) {
      if (!memcmp(keys.data + (int64_t)(s - 1) * n, args, n * sizeof(int32_t))) return {start[s - 1], start[s]};
      h = (h + 1) & mask;
    }
    return {0, 0};
  }
};

// The same for keys of K columns.
template <int K>
struct Grouping : Groups {
  int32_t low[K ? K : 1];
  int64_t extent[K ? K : 1], stride[K ? K : 1];

  explicit Grouping(Account* a) : Groups(a, K, low, extent, stride) {}

  template <class... A>
  Stretch find(A... a) const {
    const int32_t args[] = {a..., 0};
    return __builtin_expect(dense, 1) ? at_dense(args, K, low, extent, stride) : find_hashed(args);
  }
  __attribute__((noinline)) Stretch find_hashed(const int32_t* args) const { return at_hashed(args, K); }
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

// The rows of facts.
struct FactTable {
  Account account;
  const int arity;
  Array<int32_t>* const columns;
  Groups* const points;        // by all arguments
  int64_t rows = 0, given = 0;
  bool in_order = false;       // rows are the given ones, as they came
  Array<uint32_t> row_of{&account};  // given row -> row
  void (*index)(FactTable*, World*) = nullptr;  // builds the groupings of scans, once there are rows
  void (*drop)(FactTable*) = nullptr;

  DYNAGRAD_ONCE FactTable(int n, Array<int32_t>* c, Groups* all) : arity(n), columns(c), points(all) {}
  FactTable(const FactTable&) = delete;
  DYNAGRAD_ONCE ~FactTable() {}

  DYNAGRAD_ONCE void load(const int32_t* const* from, int64_t n) {
    given = n;
    Array<uint32_t> order, spare;
    order.reserve(n);
    for (int64_t i = 0; i < n; i++) order.data[i] = (uint32_t)i;
    order.size = n;
    for (int k = arity - 1; k >= 0; k--) {
      int32_t lo = INT32_MAX, hi = INT32_MIN;
      for (int64_t i = 0; i < n; i++) {
        if (from[k][i] < lo) lo = from[k][i];
        if (from[k][i] > hi) hi = from[k][i];
      }
      if (n) sort_by(from[k], order, spare, lo, (int64_t)hi - lo + 1);
    }
    row_of.zeros(n);
    rows = 0;
    in_order = true;
    for (int k = 0; k < arity; k++) columns[k].reserve(n);
    for (int64_t i = 0; i < n; i++) {
      heed(i);
      const uint32_t g = order[i];
      bool fresh = i == 0;
      for (int k = 0; k < arity && !fresh; k++) fresh = from[k][g] != columns[k].data[rows - 1];
      if (fresh) {
        for (int k = 0; k < arity; k++) columns[k].data[rows] = from[k][g];
        rows++;
      }
      row_of[g] = (uint32_t)(rows - 1);
      in_order = in_order && fresh && (int64_t)g == i;
    }
    Array<const int32_t*> keys;
    for (int k = 0; k < arity; k++) columns[k].size = rows, keys.push(columns[k].data);
    points->build(keys.data, nullptr, rows);
  }
  // Groups rows by columns of theirs.
  DYNAGRAD_ONCE void group(Groups& groups, const int32_t* by) {
    Array<const int32_t*> keys;
    for (int k = 0; k < groups.width; k++) keys.push(columns[by[k]].data);
    groups.build(keys.data, nullptr, rows);
  }
  // The row of a fact, or -1.
  DYNAGRAD_ONCE int64_t row(const int32_t* arguments) const {
    const auto s = points->at(arguments);
    return s.begin < s.end ? (points->identity ? s.begin : (int64_t)points->rows[s.begin]) : -1;
  }
  // The log of each row's weight, to the last digit also where that is near zero. A number is `width` words.
  DYNAGRAD_ONCE void keep_logs(Array<double>& logs, const uint64_t* words, int width) const {
    logs.filled(rows, -INFINITY);
    for (int64_t g = 0; g < given; g++) {
      double a = words ? as_double(words[g * width]) : 0, b = logs[row_of[g]];
      if (a < b) { const double t = a; a = b, b = t; }
      logs[row_of[g]] = b == -INFINITY ? a : a + log1p(::exp(b - a));
    }
  }
};

// Fills a table that is new, in the world that its codes come from.
DYNAGRAD_ONCE void load(FactTable* facts, World* world, const int32_t* const* columns, int64_t rows) {
  facts->load(columns, rows);
  if (facts->index) facts->index(facts, world);
}

// Facts of N arguments.
template <int N>
struct Facts : FactTable {
  static constexpr int arity = N;
  Array<int32_t> column[N ? N : 1];
  Grouping<N> by_all{&account};

  Facts() : FactTable(N, column, &by_all) {
    for (auto& c : column) c.account = &account;
  }
  template <class... A>
  int64_t find(A... a) const {
    const auto s = by_all.find(a...);
    return s.begin < s.end ? (by_all.identity ? s.begin : (int64_t)by_all.rows[s.begin]) : -1;
  }
};

// A table of one kind of facts, T, which says how it is grouped. Null where there is no room for it.
template <class T>
__attribute__((noinline)) FactTable* blank_facts(Failure& failure) {
  T* const made = blank<T>(failure);
  if (!made) return nullptr;
  made->drop = [](FactTable* facts) { dispose(static_cast<T*>(facts)); };
  made->index = T::index_rows;
  return made;
}

// Facts that no scan looks up by some of their arguments.
template <int N>
struct Ungrouped : Facts<N> {
  static constexpr void (*index_rows)(FactTable*, World*) = nullptr;
};

// What becomes of several numbers for one fact, and of each. Null: a number is taken as it is; any may be given.
template <class S>
struct Copies {
  using Value = typename S::Value;
  Value (*plus)(const Value&, const Value&);
  Value (*entered)(const Value&) = nullptr;
  bool (*differ)(const Value&, const Value&) = nullptr;  // whether two may not be those of one row
  bool logs = false;
};

// The given rows' numbers (null: all one), merged with plus where rows are equal.
template <class S>
__attribute__((noinline)) void weigh(const FactTable& facts, Weights<S>& weights, const uint64_t* words,
                                     const Copies<S>& how) {
  using Value = typename S::Value;
  const int64_t rows = facts.rows;
  weights.has_zero = false;
  if (how.logs) facts.keep_logs(weights.logs, words, S::words);
  if (facts.in_order && words && weights.read_all(words, rows)) return;
  weights.open(rows);
  weights.has_zero = false;
  uint64_t w[S::words], z[S::words];
  S::write(S::zero(), z);
  Bits filled(nullptr);
  filled.zeros(rows);
  for (int64_t g = 0; g < facts.given; g++) {
    heed(g);
    Value v = words ? S::read(words + g * S::words) : S::one();
    if (how.entered) v = how.entered(v);
    const int64_t r = facts.row_of[g];
    const bool fresh = filled.set(r);
    if (!fresh && weights.differs < 0 && how.differ && how.differ(weights.view()[r], v)) weights.differs = r;
    weights.set(r, fresh ? v : how.plus(weights.view()[r], v));
  }
  for (int64_t r = 0; r < rows && !weights.has_zero; r++) {
    S::write(weights.view()[r], w);
    weights.has_zero = !memcmp(w, z, sizeof w);
  }
}
#if defined(DYNAGRAD_LINKED) || defined(DYNAGRAD_RUNTIME)  // those of the semirings that are known
DYNAGRAD_KNOWN void weigh(const FactTable&, Weights<Real>&, const uint64_t*, const Copies<Real>&);
DYNAGRAD_KNOWN void weigh(const FactTable&, Weights<Plain>&, const uint64_t*, const Copies<Plain>&);
DYNAGRAD_KNOWN void weigh(const FactTable&, Weights<Log>&, const uint64_t*, const Copies<Log>&);
DYNAGRAD_KNOWN void weigh(const FactTable&, Weights<Viterbi>&, const uint64_t*, const Copies<Viterbi>&);
DYNAGRAD_KNOWN void weigh(const FactTable&, Weights<Tropical>&, const uint64_t*, const Copies<Tropical>&);
DYNAGRAD_KNOWN void weigh(const FactTable&, Weights<Boolean>&, const uint64_t*, const Copies<Boolean>&);
DYNAGRAD_KNOWN void weigh(const FactTable&, Weights<Count>&, const uint64_t*, const Copies<Count>&);
#endif

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
struct RelationBase {
  const FactTable* table = nullptr;
  bool has_zero = false;
  const double* logs = nullptr;
  int64_t rows() const { return table->rows; }
};
template <class F, class S>
struct Relation : RelationBase {
  typename Weights<S>::View value;
  // Other rows, or other numbers.
  void open(const FactTable* facts, const Weights<S>* weights) {
    table = facts;
    value = weights->view();
    has_zero = weights->has_zero;
    logs = weights->logs.data;
  }
  const F* facts() const { return static_cast<const F*>(table); }
  Finder<F> finder() const { return Finder<F>(facts()); }
  const int32_t* column(int k) const { return facts()->column[k].data; }
  template <class... A>
  int64_t find(A... a) const { return facts()->find(a...); }
};

}  // namespace dynagrad
