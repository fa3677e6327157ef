// Storage of derived items: `Dense`, an array over small domains, and `Hashed`, a hash table on the arguments.
//
// `locate` returns the cell of an item, and makes one if necessary; the first contribution sets the item's `seen` bit;
// its first pop sets its `popped` bit, and from then on it is in the chart. `value` is its value in the chart;
// `pending` is its update on the agenda, where items may be popped more than once. Where each item is popped once,
// contributions are added to `value` and there is no `pending`. Cells are numbers below 2^31. A cell of a Dense table
// is an index of the array, with rows padded to eight cells; a cell of a Hashed table is the order of arrival. Caution:
// `locate` on a Hashed table may move its arrays. `DenseTable` and `HashedTable` are the same without a static number
// of arguments and type of values, for opening them and for access from outside.
#pragma once
#include <dynagrad/semirings.hpp>
#include <dynagrad/storage/keys.hpp>
#include <dynagrad/storage/view.hpp>

namespace dynagrad {

struct Table {
  const bool dense;
  const int width;             // how many arguments
  int64_t items = 0;
  Bits seen, popped;
  Array<uint32_t> place;       // in the agenda, where that needs one

  DYNAGRAD_ONCE_FACTS Table(Account* a, bool d, int n) : dense(d), width(n), seen(a), popped(a), place(a) {}
  DYNAGRAD_ONCE_FACTS ~Table() {}
};

struct DenseTable : Table {
  Range* const ranges;         // in stored order, the last one contiguous
  int64_t* const strides;
  int64_t cells = 0;

  DenseTable(Account* a, int n, Range* r, int64_t* s) : Table(a, true, n), ranges(r), strides(s) {}

  DYNAGRAD_ONCE_FACTS void lay_out(const Range* domains, const Extent* extents, bool places) {
    int64_t step = 1;
    for (int i = width - 1; i >= 0; i--) {
      ranges[i] = extents[i].of(domains);
      if (ranges[i].count < 0) ranges[i].count = 0;
      strides[i] = step;
      step *= i == width - 1 ? (ranges[i].count + 7) / 8 * 8 : ranges[i].count;
    }
    cells = width ? step : 1;
    items = 0;
    seen.zeros(cells);
    popped.zeros(cells);
    if (places) place.zeros(cells);
  }
  // The cell of an item, -1 where it is out of range: `order` says which argument is stored at each place.
  int64_t cell_of(const int32_t* order, const int32_t* args) const {
    int64_t c = 0;
    for (int i = 0; i < width; i++) {
      const int64_t x = (int64_t)args[order[i]] - ranges[i].low;
      if ((uint64_t)x >= (uint64_t)ranges[i].count) return -1;
      c += x * strides[i];
    }
    return c;
  }
  DYNAGRAD_ALWAYS int64_t bound() const { return cells; }  // cells are below this
  // The first item of the chart at or after a cell, or -1.
  int64_t next(int64_t c) const { return popped.next(c, cells); }
};

// The same where the type of values is known.
template <class Value>
struct DenseOf : DenseTable {
  Array<Value> value, pending;

  __attribute__((noinline)) DenseOf(Account* a, int n, Range* r, int64_t* s)
      : DenseTable(a, n, r, s), value(a), pending(a) {}
  __attribute__((noinline)) ~DenseOf() {}

  // In a chart that is new, and looked at through `seen`: `order` and extents are those of each place.
  __attribute__((noinline)) void begin(TableView& seen, const Range* domains, const int32_t* order,
                                       const Extent* extents, bool updates, bool places, const Value& zero) {
    lay_out(domains, extents, places);
    fill(value, zero);
    if (updates) fill(pending, zero);
    seen.width = width;
    seen.items = this, seen.order = order, seen.values = &value;
  }
  __attribute__((noinline)) void fill(Array<Value>& values, const Value& zero) {
    bool nothing = true;
    for (size_t i = 0; i < sizeof zero; i++) nothing = nothing && !((const char*)&zero)[i];
    if (nothing) values.zeros(cells);
    else values.filled(cells, zero);
  }
};

// The same for N arguments, over a semiring.
template <class S, int N>
struct Dense : DenseOf<typename S::Value> {
  using Semiring = S;
  using Value = typename S::Value;
  static constexpr int arity = N;
  Range range[N ? N : 1];
  int64_t stride[N ? N : 1];

  __attribute__((noinline)) Dense(Account* a) : DenseOf<Value>(a, N, range, stride) {}

  __attribute__((noinline)) void begin(TableView& seen, const Range* domains, const int32_t* order,
                                       const Extent* extents, bool updates, bool places) {
    DenseOf<Value>::begin(seen, domains, order, extents, updates, places, S::zero());
  }
  // How contributions join, and what an item has without one.
  DYNAGRAD_ALWAYS static Value plus(const Value& a, const Value& b) { return S::plus(a, b); }
  DYNAGRAD_ALWAYS static Value zero() { return S::zero(); }
  template <class... A>
  DYNAGRAD_ALWAYS int64_t cell(A... a) const {
    static_assert(sizeof...(A) == N);
    int i = 0;
    int64_t c = 0;
    ((c += ((int64_t)a - range[i].low) * stride[i], i++), ...);
    return c;
  }
  template <class... A>
  DYNAGRAD_ALWAYS bool inside(A... a) const {
    int i = 0;
    return (... && within(i++, a));
  }
  DYNAGRAD_ALWAYS bool within(int i, int32_t a) const { return (uint64_t)((int64_t)a - range[i].low) < (uint64_t)range[i].count; }
  template <class... A>
  DYNAGRAD_ALWAYS int64_t locate(A... a) { return cell(a...); }
  // The same for arguments of which `order` says which is stored at each place.
  DYNAGRAD_ALWAYS int64_t locate_by(const int32_t* order, const int32_t* a) const {
    int64_t c = 0;
    for (int i = 0; i < N; i++) c += ((int64_t)a[order[i]] - range[i].low) * stride[i];
    return c;
  }
  DYNAGRAD_ALWAYS bool inside_by(const int32_t* order, const int32_t* a) const {
    for (int i = 0; i < N; i++)
      if (!within(i, a[order[i]])) return false;
    return true;
  }
  // The cell of an item in the chart, or -1.
  template <class... A>
  DYNAGRAD_ALWAYS int64_t find(A... a) const {
    if (!inside(a...)) return -1;
    const int64_t c = cell(a...);
    return this->popped.test(c) ? c : -1;
  }
  // The arguments of a cell, in stored order.
  void arguments(int64_t c, int32_t* out) const {
    uint32_t rest = (uint32_t)c;  // short division takes a third of the time
    for (int i = 0; i < N; i++) {
      const uint32_t step = (uint32_t)stride[i], q = i == N - 1 ? rest : rest / step;
      out[i] = (int32_t)(q + (uint32_t)range[i].low);
      rest -= q * step;
    }
  }
  // The same, each to its place in the order of the rules; from the one that is stored at place I on. It is no loop, which
  // the compiler would have to unroll wherever this is called.
  template <int I = 0>
  DYNAGRAD_ALWAYS void arguments_by(const int32_t* order, uint32_t c, int32_t* out) const {
    if constexpr (I + 1 < N) {
      const uint32_t step = (uint32_t)stride[I], q = c / step;
      out[order[I]] = (int32_t)(q + (uint32_t)range[I].low);
      arguments_by<I + 1>(order, c - q * step, out);
    } else if constexpr (I < N) {
      out[order[I]] = (int32_t)(c + (uint32_t)range[I].low);
    }
  }
  // The cell where one argument, by its place in the stored order, is least, and the others are those of a cell.
  int64_t line(int64_t c, int place) const {
    const uint32_t outer = (uint32_t)(place ? stride[place - 1] : this->cells), step = (uint32_t)stride[place];
    return c - (uint32_t)c % outer / step * step;
  }
  DYNAGRAD_ALWAYS int64_t row_length() const { return N ? range[N ? N - 1 : 0].count : 1; }
};

struct HashedTable : Table, Keys {
  int64_t cells = 0;           // the number of a key is the cell of the item
  int64_t room = 0;            // items that there is room for
  bool updates = false, places = false;

  HashedTable(Account* a, int n) : Table(a, false, n), Keys(a) {}

  DYNAGRAD_ONCE_FACTS void clear(bool with_updates, bool with_places) {
    updates = with_updates, places = with_places;
    keys.clear(), place.clear();
    items = cells = room = 0;
    slots.zeros(16);
    mask = 15;
    seen.zeros(64);
    popped.zeros(64);
  }
  DYNAGRAD_ONCE_FACTS void grow() {
    const uint64_t wider = mask * 2 + 1;
    slots.zeros_safely((int64_t)wider + 1);
    mask = wider;
    for (int64_t c = 0; c < cells; c++) enter_slot(c, width);
  }
  // Room for one more item, and the slot of that, where there is room for its values, `most` of them. What there is is
  // read also where there was none.
  DYNAGRAD_ONCE_FACTS uint64_t widen(const int32_t* args, int64_t most) {
    const int64_t n = cells + 1;
    keys.reserve(n * width);
    if (places) place.reserve(n);
    if (n / 8 + 16 > seen.bytes.size) seen.bytes.resize(n / 4 + 64, 0);
    if (n / 8 + 16 > popped.bytes.size) popped.bytes.resize(n / 4 + 64, 0);
    if ((uint64_t)n * 2 > mask) grow();
    room = (int64_t)(mask / 2);
    if (most < room) room = most;
    if (width && keys.capacity / width < room) room = keys.capacity / width;
    if (seen.bytes.size * 8 - 128 < room) room = seen.bytes.size * 8 - 128;
    if (popped.bytes.size * 8 - 128 < room) room = popped.bytes.size * 8 - 128;
    if (places && place.capacity < room) room = place.capacity;
    return free_slot(args, width);
  }
  DYNAGRAD_ALWAYS int64_t bound() const { return cells; }
  int64_t next(int64_t c) const { return popped.next(c, cells); }
};

template <class Value>
struct HashedOf : HashedTable {
  Array<Value> value, pending;

  __attribute__((noinline)) HashedOf(Account* a, int n) : HashedTable(a, n), value(a), pending(a) {}
  __attribute__((noinline)) ~HashedOf() {}

  // In a chart that is new, and looked at through `seen`.
  __attribute__((noinline)) void begin(TableView& seen, bool with_updates, bool with_places) {
    clear(with_updates, with_places);
    value.clear(), pending.clear();
    seen.width = width;
    seen.items = this, seen.values = &value;
  }
  // The cell of an item of n arguments, made if necessary.
  DYNAGRAD_ALWAYS int64_t make(const int32_t* args, int n, Value (*zero)()) {
    uint64_t h = slot_of(args, n);
    if (slots[h]) return (int64_t)slots[h] - 1;
    const int64_t c = cells;
    if (__builtin_expect(c >= room, 0)) h = make_room(args);
    memcpy(keys.data + c * n, args, n * sizeof(int32_t));
    keys.size += n;
    cells++;
    value.push(zero());
    if (updates) pending.push(zero());
    if (places) place.push(0);
    slots[h] = (uint32_t)c + 1;
    return c;
  }
  __attribute__((noinline)) uint64_t make_room(const int32_t* args) {
    value.reserve(cells + 1);
    if (updates) pending.reserve(cells + 1);
    return widen(args, updates && pending.capacity < value.capacity ? pending.capacity : value.capacity);
  }
};

template <class S, int N>
struct Hashed : HashedOf<typename S::Value> {
  using Semiring = S;
  using Value = typename S::Value;
  static constexpr int arity = N;

  DYNAGRAD_ALWAYS Hashed(Account* a) : HashedOf<Value>(a, N) {}

  DYNAGRAD_ALWAYS static Value plus(const Value& a, const Value& b) { return S::plus(a, b); }
  DYNAGRAD_ALWAYS static Value zero() { return S::zero(); }
  template <class... A>
  bool inside(A...) const { return true; }
  template <class... A>
  int64_t locate(A... a) {
    const int32_t args[] = {a..., 0};
    return this->make(args, N, S::zero);
  }
  DYNAGRAD_ALWAYS int64_t locate_by(const int32_t*, const int32_t* a) { return this->make(a, N, S::zero); }
  DYNAGRAD_ALWAYS bool inside_by(const int32_t*, const int32_t*) const { return true; }
  template <class... A>
  int64_t find(A... a) const {
    const int32_t args[] = {a..., 0};
    const int64_t c = this->number_of(args, N);
    return c >= 0 && this->popped.test(c) ? c : -1;
  }
  DYNAGRAD_ALWAYS void arguments(int64_t c, int32_t* out) const { memcpy(out, this->key(c, N), N * sizeof(int32_t)); }
  DYNAGRAD_ALWAYS void arguments_by(const int32_t* order, uint32_t c, int32_t* out) const {
    const int32_t* const key = this->key(c, N);
    for (int i = 0; i < N; i++) out[order[i]] = key[i];
  }
};

// Tables as they are looked at from outside: `order` says which argument is stored at each place of a dense one.

// The cell of an item in the chart, or -1.
DYNAGRAD_ONCE_FACTS int64_t find_item(const Table& table, const int32_t* order, const int32_t* args) {
  const int64_t c = table.dense ? static_cast<const DenseTable&>(table).cell_of(order, args)
                                : static_cast<const HashedTable&>(table).number_of(args, table.width);
  return c >= 0 && table.popped.test(c) ? c : -1;
}
DYNAGRAD_ONCE_FACTS void arguments_of(const Table& table, const int32_t* order, int64_t cell, int32_t* out) {
  const int n = table.width;
  if (!table.dense) {
    memcpy(out, static_cast<const HashedTable&>(table).key(cell, n), n * sizeof(int32_t));
    return;
  }
  const auto& t = static_cast<const DenseTable&>(table);
  for (int i = 0; i < n; i++) {
    const int64_t q = i == n - 1 ? cell : cell / t.strides[i];
    out[order[i]] = (int32_t)(q + t.ranges[i].low);
    cell -= q * t.strides[i];
  }
}
// One more than the largest cell.
inline int64_t bound_of(const Table& table) {
  return table.dense ? static_cast<const DenseTable&>(table).cells : static_cast<const HashedTable&>(table).cells;
}

// The items of a table that agree in some pattern: from a key of K numbers to cells. Items enter when they are popped.
struct IndexTable : Keys {
  const int width;             // of a key
  Array<int64_t> first;        // per key, the newest entry + 1
  Array<int64_t> count;
  struct Entry { int64_t cell, next; };
  Array<Entry> entries;
  int64_t known = 0;           // keys

  DYNAGRAD_ONCE_FACTS IndexTable(Account* a, int n) : Keys(a), width(n), first(a), count(a), entries(a) {
    slots.zeros(16);
    mask = 15;
  }
  DYNAGRAD_ONCE_FACTS ~IndexTable() {}

  // A new key, and its number.
  DYNAGRAD_ONCE_FACTS int64_t enter(const int32_t* args) {
    const int64_t k = known++;
    for (int i = 0; i < width; i++) keys.push(args[i]);
    first.push(0);
    count.push(0);
    if ((uint64_t)known * 2 > mask) {
      slots.zeros((int64_t)mask * 2 + 2);
      mask = mask * 2 + 1;
      for (int64_t j = 0; j < known; j++) enter_slot(j, width);
    } else {
      enter_slot(k, width);
    }
    return k;
  }
  int64_t next(int64_t e) const { return entries[e - 1].next; }
  int64_t cell(int64_t e) const { return entries[e - 1].cell; }
};

template <int K>
struct Index : IndexTable {
  explicit Index(Account* a) : IndexTable(a, K) {}

  __attribute__((noinline)) int64_t number(const int32_t* args) const { return number_of(args, K); }
  void insert(const int32_t* args, int64_t cell) {
    int64_t k = number(args);
    if (k < 0) k = enter(args);
    entries.push({cell, first[k]});
    first[k] = entries.size;
    count[k]++;
  }
  // Takes back the last insert, which was of this key.
  void remove(const int32_t* args) {
    const int64_t k = number(args);
    first[k] = entries[--entries.size].next;
    count[k]--;
  }
  // Iteration: for (int64_t e = index.begin(key); e; e = index.next(e)) use index.cell(e)
  int64_t begin(const int32_t* args) const {
    const int64_t k = number(args);
    return k < 0 ? 0 : first[k];
  }
};

}  // namespace dynagrad
