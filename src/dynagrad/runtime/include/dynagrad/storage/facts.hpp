// Facts: immutable relations, loaded once and shared by runs and threads, and their indexes.
//
// Rows are sorted by their arguments and copies are merged with plus, so a row number identifies a fact; `row_of` has
// the row of each row as it was given. A `Grouping` is an index: the rows that agree in some arguments, as ranges of an
// array. `FactTable` and `Groups` are the same without a static number of arguments, for construction; `Facts` and
// `Grouping` have it, for lookups.
//
// It is long because a table, its values and its indexes are made in one loading, in the order of the same rows.
#pragma once
#include <dynagrad/base/host.hpp>
#include <dynagrad/base/memory.hpp>
#include <dynagrad/semirings.hpp>
#include <dynagrad/storage/keys.hpp>
#include <dynagrad/storage/view.hpp>

namespace dynagrad {

// How long whoever asked for facts to be loaded waits for them: until Ctrl-C, or for so many nanoseconds (-1: no limit).
struct Patience {
  Unlocked* unlocked;
  int64_t timeout_ns;
};
inline constinit thread_local const Patience* patience = nullptr;  // null where nobody would end it

// Ends the guarded call where patience does.
DYNAGRAD_ONCE_FACTS void heed_now() {
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
DYNAGRAD_ONCE_FACTS void sort_by(const int32_t* column, Array<uint32_t>& order, Array<uint32_t>& spare, int32_t low, int64_t count) {
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
struct Groups : Keys {
  const int width;             // of a key
  int32_t* const lows;         // of each of its columns
  int64_t *const extents, *const strides;
  Array<int64_t> start;        // dense: by linear key; hashed: by key number
  Array<uint32_t> rows;        // row numbers, in groups
  bool dense = false, identity = false;
  bool full = false;           // every cell of the key's ranges has one row, in order: row number = linear key

  // The arrays of a key's columns come behind it, as in `Grouping`.
  DYNAGRAD_ONCE_FACTS Groups(Account* a, int n)
      : Keys(a), width(n), lows((int32_t*)((int64_t*)(this + 1) + 2 * places(n))), extents((int64_t*)(this + 1)),
        strides((int64_t*)(this + 1) + places(n)), start(a), rows(a) {}
  DYNAGRAD_ONCE_FACTS ~Groups() {}
  static constexpr int places(int n) { return n ? n : 1; }
  static constexpr int64_t bytes(int n) {
    return (int64_t)sizeof(Groups) + 16 * places(n) + (4 * places(n) + 7) / 8 * 8;
  }

  // `key` has the columns, of n numbers each; rows whose `keep` is zero are left out (keep may be null).
  DYNAGRAD_ONCE_FACTS void build(const int32_t* const* key, const uint8_t* keep, int64_t n) {
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
  DYNAGRAD_ONCE_FACTS void build_dense(const int32_t* const* key, int64_t m) {
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
  DYNAGRAD_ONCE_FACTS void build_hashed(const int32_t* const* key, int64_t m) {
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
      enter_slot(c, width);
    }
  }
  struct Stretch { int64_t begin, end; };
  // Whether the rows of a stretch stand side by side, and a column that differs between them goes up by one.
  bool side_by_side(Stretch s, const int32_t* free) const {
    return identity && s.begin < s.end && free[s.end - 1] - (int64_t)free[s.begin] == s.end - s.begin - 1;
  }
  // The group of a key.
  DYNAGRAD_ONCE_FACTS Stretch at(const int32_t* args) const {
    if (!dense) return hashed(args, width);
    int64_t c = 0;
    for (int k = 0; k < width; k++) {
      const int64_t x = (int64_t)args[k] - lows[k];
      if ((uint64_t)x >= (uint64_t)extents[k]) return {0, 0};
      c += x * strides[k];
    }
    return {start[c], start[c + 1]};
  }
  // The same in a hash table, for keys whose width is known to the compiler.
  template <int K>
  __attribute__((noinline)) Stretch at_hashed(const int32_t* args) const { return hashed(args, K); }
  DYNAGRAD_ALWAYS Stretch hashed(const int32_t* args, int n) const {
    const int64_t k = number_of(args, n);
    return k < 0 ? Stretch{0, 0} : Stretch{start[k], start[k + 1]};
  }
};
#if defined(DYNAGRAD_LINKED)
DYNAGRAD_KNOWN_FACTS Groups::Stretch Groups::at_hashed<1>(const int32_t*) const;
DYNAGRAD_KNOWN_FACTS Groups::Stretch Groups::at_hashed<2>(const int32_t*) const;
DYNAGRAD_KNOWN_FACTS Groups::Stretch Groups::at_hashed<3>(const int32_t*) const;
DYNAGRAD_KNOWN_FACTS Groups::Stretch Groups::at_hashed<4>(const int32_t*) const;
#endif

// The same for keys of K columns.
template <int K>
struct Grouping : Groups {
  int64_t extent[places(K)], stride[places(K)];
  int32_t low[places(K)];

  template <class... A>
  DYNAGRAD_ALWAYS Stretch find(A... a) const {
    if (__builtin_expect(!dense, 0)) return find_hashed(a...);
    int k = 0;
    int64_t c = 0;
    if (!(... && reach(k++, a, c))) return {0, 0};
    return {start[c], start[c + 1]};
  }
  // Whether a key is in range there; what it adds to the cell.
  DYNAGRAD_ALWAYS bool reach(int k, int32_t a, int64_t& c) const {
    const int64_t x = (int64_t)a - low[k];
    c += x * stride[k];
    return (uint64_t)x < (uint64_t)extent[k];
  }
  template <class... A>
  DYNAGRAD_ALWAYS Stretch find_hashed(A... a) const {
    const int32_t args[] = {a..., 0};
    return at_hashed<K>(args);
  }
};

// Numbers that are all one: facts without numbers share them, in tables that have no more rows. So the runs of many
// examples read the same ones.
struct Ones {
  static constexpr int64_t most = 1024;
  double number[most];
  constexpr Ones() : number{} {
    for (double& x : number) x = 1;
  }
};
DYNAGRAD_ONCE_FACTS const double* all_ones() {
  static constexpr Ones ones;
  return ones.number;
}

// The values of a fact table's rows: apart from the rows, so that new numbers can stand on the same rows.
template <class S>
struct Weights {
  using Value = typename S::Value;
  using View = const Value*;
  Account account;
  Array<Value> value{&account};
  bool has_zero = false;
  int64_t differs = -1;        // a row whose copies have different values, where they may not
  bool single = false;         // ... as there may be one
  Array<double> logs{&account};  // in `log`, the logs as they were given, where a class asks for them
  const Value* ones = nullptr;   // where they are all one, and shared
  View view() const { return ones ? ones : value.data; }
  void open(int64_t rows) { ones = nullptr, value.clear(), value.resize(rows, S::zero()); }
  bool share_ones() {
    if constexpr (__is_same(Value, double)) ones = S::one() == 1 ? all_ones() : nullptr;
    return ones != nullptr;
  }
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
    DYNAGRAD_ALWAYS Value operator[](int64_t row) const { return {m[row], e ? e[row] : 0}; }
  };
  Account account;
  Array<double> m{&account};
  Array<int64_t> e{&account};
  bool has_zero = false;
  int64_t differs = -1;
  bool single = false;
  Array<double> logs{&account};
  const double* ones = nullptr;
  View view() const { return {ones ? ones : m.data, e.size ? e.data : nullptr}; }
  void open(int64_t rows) { ones = nullptr, m.zeros(rows), e.release(); }
  bool share_ones() { return e.release(), ones = all_ones(), true; }
  void set(int64_t row, const Value& v) {
    m[row] = v.m;
    if (v.e && !e.size) e.zeros(m.size);
    if (e.size) e[row] = v.e;
  }
  bool read_all(const uint64_t* words, int64_t rows) {
    ones = nullptr, m.release(), e.release();
    m.raw(rows);
    return Log::read_mantissas(words, rows, m.data, has_zero);
  }
};

struct FactTable;

// What a program says of a table of facts: its arguments, and how scans look rows up, each by a key of some columns.
struct GroupingPlan {
  int32_t width;
  const int32_t* columns;      // null: `index` of the table groups its rows
};
struct FactsPlan {
  int32_t arity = -1;          // none: it is no table of facts
  int32_t count = 0;
  const GroupingPlan* groupings = nullptr;
  void (*index)(FactTable*, World*) = nullptr;
};

// The rows of facts. What `Facts` adds to it comes behind it in memory: columns, then groupings.
struct FactTable {
  Account account;
  const FactsPlan& plan;
  const int arity;
  Array<int32_t>* const columns;
  Groups* const points;        // by all arguments
  int64_t rows = 0, given = 0;
  bool in_order = false;       // rows are the given ones, as they came
  Array<uint32_t> row_of{&account};  // given row -> row

  DYNAGRAD_ONCE_FACTS explicit FactTable(const FactsPlan& p)
      : plan(p), arity(p.arity), columns((Array<int32_t>*)(this + 1)), points((Groups*)(columns + places(p.arity))) {
    for (int k = 0; k < places(arity); k++) new (columns + k, Here{}) Array<int32_t>(&account);
    for (int g = 0; g <= plan.count; g++) new (grouping(g), Here{}) Groups(&account, key_width(g));
  }
  FactTable(const FactTable&) = delete;
  DYNAGRAD_ONCE_FACTS ~FactTable() {
    for (int g = 0; g <= plan.count; g++) grouping(g)->~Groups();
    for (int k = 0; k < places(arity); k++) columns[k].release();
  }
  static constexpr int places(int n) { return n ? n : 1; }
  // The grouping by all arguments, and then those of the plan.
  int key_width(int g) const { return g ? plan.groupings[g - 1].width : arity; }
  Groups* grouping(int g) const {
    char* at = (char*)points;
    for (int i = 0; i < g; i++) at += Groups::bytes(key_width(i));
    return (Groups*)at;
  }

  int64_t bytes() const { return (char*)grouping(plan.count + 1) - (char*)this; }  // without what its arrays hold

  DYNAGRAD_ONCE_FACTS void load(const int32_t* const* from, int64_t n) {
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
  DYNAGRAD_ONCE_FACTS void group(Groups& groups, const int32_t* by) {
    Array<const int32_t*> keys;
    for (int k = 0; k < groups.width; k++) keys.push(columns[by[k]].data);
    groups.build(keys.data, nullptr, rows);
  }
  // The row of a fact, or -1.
  DYNAGRAD_ONCE_FACTS int64_t row(const int32_t* arguments) const {
    const auto s = points->at(arguments);
    return s.begin < s.end ? (points->identity ? s.begin : (int64_t)points->rows[s.begin]) : -1;
  }
  // The log of each row's weight, to the last digit also where that is near zero. A number is `width` words.
  DYNAGRAD_ONCE_FACTS void keep_logs(Array<double>& logs, const uint64_t* words, int width) const {
    logs.filled(rows, -INFINITY);
    for (int64_t g = 0; g < given; g++) {
      double a = words ? as_double(words[g * width]) : 0, b = logs[row_of[g]];
      if (a < b) { const double t = a; a = b, b = t; }
      logs[row_of[g]] = b == -INFINITY ? a : a + log1p(::exp(b - a));
    }
  }
};

// A table without rows. Null where there is no room for it.
DYNAGRAD_ONCE_FACTS FactTable* new_facts(const FactsPlan& plan, Failure& failure) {
  int64_t bytes = (int64_t)sizeof(FactTable) + (int64_t)sizeof(Array<int32_t>) * FactTable::places(plan.arity);
  bytes += Groups::bytes(plan.arity);
  for (int g = 0; g < plan.count; g++) bytes += Groups::bytes(plan.groupings[g].width);
  void* place = fails() ? nullptr : obtain((size_t)bytes, true);
  failure = place ? none : exhausted;
  return place ? new (place, Here{}) FactTable(plan) : nullptr;
}
#if defined(DYNAGRAD_LINKED)
DYNAGRAD_KNOWN_FACTS void dispose(FactTable*);
#endif

// Fills a table that is new, in the world that its codes come from.
DYNAGRAD_ONCE_FACTS void load(FactTable* facts, World* world, const int32_t* const* columns, int64_t rows) {
  facts->load(columns, rows);
  for (int g = 0; g < facts->plan.count; g++)
    if (const int32_t* by = facts->plan.groupings[g].columns) facts->group(*facts->grouping(g + 1), by);
  if (facts->plan.index) facts->plan.index(facts, world);
}

// Facts of N arguments: how a program sees a table of them. The groupings that it scans by are members of a class
// derived from this, in the order of its plan.
template <int N>
struct Facts : FactTable {
  static constexpr int arity = N;
  Array<int32_t> column[places(N)];
  Grouping<N> by_all;

  Facts() = delete;  // it is made by `new_facts`
  template <class... A>
  DYNAGRAD_ALWAYS int64_t find(A... a) const {
    const auto s = by_all.find(a...);
    return s.begin < s.end ? (by_all.identity ? s.begin : (int64_t)by_all.rows[s.begin]) : -1;
  }
};
static_assert(sizeof(Grouping<0>) == Groups::bytes(0) && sizeof(Grouping<1>) == Groups::bytes(1) &&
              sizeof(Grouping<2>) == Groups::bytes(2) && sizeof(Grouping<3>) == Groups::bytes(3));
static_assert(sizeof(Facts<3>) == sizeof(FactTable) + 3 * sizeof(Array<int32_t>) + sizeof(Grouping<3>));

// What becomes of several numbers for one fact, and of each. Null: they are added; a number is taken as it is; any may be
// given.
template <class S>
struct Copies {
  using Value = typename S::Value;
  Value (*plus)(const Value&, const Value&) = nullptr;
  Value (*entered)(const Value&) = nullptr;
  bool (*differ)(const Value&, const Value&) = nullptr;  // whether two may not be those of one row
  bool logs = false;
  bool single = false;  // those that differ are two where there may be one
};

// Whether two numbers for one fact are too large together: a `differ` of `Copies`.
template <class S, auto Plus>
bool overflows(const typename S::Value& a, const typename S::Value& b) {
  return isfinite(S::primal(a)) && isfinite(S::primal(b)) && !isfinite(S::primal(Plus(a, b)));
}

// The given rows' numbers (null: all one), merged with plus where rows are equal.
template <class S>
void weigh(const FactTable& facts, Weights<S>& weights, const uint64_t* words, const Copies<S>& how) {
  using Value = typename S::Value;
  const int64_t rows = facts.rows;
  weights.has_zero = false;
  if (how.logs) facts.keep_logs(weights.logs, words, S::words);
  if (facts.in_order && words && weights.read_all(words, rows)) return;
  if (!words && !how.entered && facts.given == rows && rows <= Ones::most && weights.share_ones()) return;
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
    if (!fresh && weights.differs < 0 && how.differ && how.differ(weights.view()[r], v))
      weights.differs = r, weights.single = how.single;
    weights.set(r, fresh ? v : how.plus ? how.plus(weights.view()[r], v) : S::plus(weights.view()[r], v));
  }
  for (int64_t r = 0; r < rows && !weights.has_zero; r++) {
    S::write(weights.view()[r], w);
    weights.has_zero = !memcmp(w, z, sizeof w);
  }
}
// The point lookup of a fact table, by value: where rows stand in a full grid, all it takes is arithmetic.
template <class F>
struct Finder {
  const F* facts;
  bool full;
  int32_t low[F::arity];
  int64_t extent[F::arity], stride[F::arity];
  DYNAGRAD_ALWAYS explicit Finder(const F* f) : facts(f), full(f->by_all.full) {
    for (int k = 0; k < F::arity && full; k++)
      low[k] = f->by_all.low[k], extent[k] = f->by_all.extent[k], stride[k] = f->by_all.stride[k];
  }
  template <class... A>
  DYNAGRAD_ALWAYS int64_t operator()(A... a) const {
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
  DYNAGRAD_ALWAYS int64_t rows() const { return table->rows; }
};
template <class S>
struct RelationOf : RelationBase {
  typename Weights<S>::View value;
  // Other rows, or other numbers.
  __attribute__((noinline)) void open(const FactTable* facts, const Weights<S>* weights) {
    table = facts;
    value = weights->view();
    has_zero = weights->has_zero;
    logs = weights->logs.data;
  }
  // The same in a chart that is new, which is looked at through `seen`.
  __attribute__((noinline)) void begin(TableView& seen, bool& zeros, const FactTable* facts, const void* weights) {
    open(facts, (const Weights<S>*)weights);
    seen.width = facts->arity;
    seen.facts = this, seen.view = &value;
    const auto& w = *(const Weights<S>*)weights;
    seen.differing = w.differs + 1, seen.single = w.single;
    zeros |= has_zero;
  }
};
template <class F, class S>
struct Relation : RelationOf<S> {
  DYNAGRAD_ALWAYS const F* facts() const { return static_cast<const F*>(this->table); }
  DYNAGRAD_ALWAYS Finder<F> finder() const { return Finder<F>(facts()); }
  DYNAGRAD_ALWAYS const int32_t* column(int k) const { return facts()->column[k].data; }
  template <class... A>
  DYNAGRAD_ALWAYS int64_t find(A... a) const { return facts()->find(a...); }
};

}  // namespace dynagrad
