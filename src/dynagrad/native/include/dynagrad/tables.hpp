// Where derived items live: `Dense`, an array over small domains, and `Hashed`, a hash table on the arguments.
//
// The life of an item: `locate` gives its cell (and makes room for it); the first contribution sets its `seen` bit;
// being popped sets its `popped` bit, and from then on it is in the chart. `value` is what the chart says;
// `pending` is the update that waits on the agenda, where items may be popped more than once. Where each item is
// popped once, contributions go straight to `value` and there is no `pending`.
// Cells are numbers under 2^31. A cell of a Dense table is its place in the array, rows padded to eight cells; a cell
// of a Hashed table is the order of arrival. The one caveat: `locate` on a Hashed table may move its arrays.
#pragma once
#include "memory.hpp"

namespace dynagrad {

// The range of one argument: values low .. low + count - 1.
struct Range {
  int32_t low = 0;
  int64_t count = 0;
};

template <class S, int N>
struct Dense {
  using Value = typename S::Value;
  static constexpr int arity = N, last = N ? N - 1 : 0;
  Range range[N ? N : 1];      // in stored order, the last one contiguous
  int64_t stride[N ? N : 1];
  int64_t cells = 0;
  int64_t items = 0;
  Array<Value> value, pending;
  Bits seen, popped;
  Array<uint32_t> place;       // in the agenda, where that needs one

  explicit Dense(Account* a) : value(a), pending(a), seen(a), popped(a), place(a) {}

  void open(const Range* ranges, bool updates, bool places) {
    int64_t step = 1;
    for (int i = N - 1; i >= 0; i--) {
      range[i] = ranges[i];
      if (range[i].count < 0) range[i].count = 0;
      stride[i] = step;
      step *= i == N - 1 ? (range[i].count + 7) / 8 * 8 : range[i].count;
    }
    cells = N ? step : 1;
    items = 0;
    S::zero_bytes ? value.zeros(cells) : value.filled(cells, S::zero());
    if (updates) S::zero_bytes ? pending.zeros(cells) : pending.filled(cells, S::zero());
    seen.zeros(cells);
    popped.zeros(cells);
    if (places) place.zeros(cells);
  }
  template <class... A>
  int64_t cell(A... a) const {
    const int32_t args[] = {a..., 0};
    int64_t c = 0;
    for (int i = 0; i < N; i++) c += ((int64_t)args[i] - range[i].low) * stride[i];
    return c;
  }
  template <class... A>
  bool inside(A... a) const {
    const int32_t args[] = {a..., 0};
    for (int i = 0; i < N; i++)
      if ((uint64_t)((int64_t)args[i] - range[i].low) >= (uint64_t)range[i].count) return false;
    return true;
  }
  template <class... A>
  int64_t locate(A... a) { return cell(a...); }
  // The cell of an item in the chart, or -1.
  template <class... A>
  int64_t find(A... a) const {
    if (!inside(a...)) return -1;
    const int64_t c = cell(a...);
    return popped.test(c) ? c : -1;
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
  int64_t bound() const { return cells; }  // cells are below this
  // The first item of the chart at or after a cell, or -1.
  int64_t next(int64_t c) const { return popped.next(c, cells); }
  // The cell where one argument, by its place in the stored order, is least, and the others are those of a cell.
  int64_t line(int64_t c, int place) const {
    const uint32_t outer = (uint32_t)(place ? stride[place - 1] : cells), step = (uint32_t)stride[place];
    return c - (uint32_t)c % outer / step * step;
  }
  int64_t row_length() const { return N ? range[N - 1].count : 1; }
};

template <class S, int N>
struct Hashed {
  using Value = typename S::Value;
  static constexpr int arity = N;
  struct Key { int32_t a[N ? N : 1]; };
  int64_t items = 0;
  Array<Key> keys;
  Array<uint32_t> slots;       // cell + 1, or 0
  Array<Value> value, pending;
  Bits seen, popped;
  Array<uint32_t> place;
  uint64_t mask = 0;
  bool updates = false, places = false;

  explicit Hashed(Account* a) : keys(a), slots(a), value(a), pending(a), seen(a), popped(a), place(a) {}

  void open(const Range*, bool with_updates, bool with_places) {
    updates = with_updates, places = with_places;
    keys.clear(), value.clear(), pending.clear(), place.clear();
    items = 0;
    slots.zeros(16);
    mask = 15;
    seen.zeros(64);
    popped.zeros(64);
  }
  void grow() {
    const uint64_t wider = mask * 2 + 1;
    slots.zeros((int64_t)wider + 1);
    mask = wider;
    for (int64_t c = 0; c < keys.size; c++) {
      uint64_t h = hash_arguments<N>(keys[c].a) & mask;
      while (slots[h]) h = (h + 1) & mask;
      slots[h] = (uint32_t)c + 1;
    }
  }
  void widen(Bits& bits, int64_t n) {
    if (n / 8 + 16 > bits.bytes.size) bits.bytes.resize(n / 4 + 64, 0);
  }
  template <class... A>
  bool inside(A...) const { return true; }
  template <class... A>
  int64_t locate(A... a) {
    const int32_t args[] = {a..., 0};
    uint64_t h = hash_arguments<N>(args) & mask;
    while (uint32_t s = slots[h]) {
      if (!memcmp(keys[s - 1].a, args, N * sizeof(int32_t))) return s - 1;
      h = (h + 1) & mask;
    }
    const int64_t c = keys.size;
    Key key;
    memcpy(key.a, args, sizeof key.a);
    keys.push(key);
    value.push(S::zero());
    if (updates) pending.push(S::zero());
    if (places) place.push(0);
    widen(seen, c + 1);
    widen(popped, c + 1);
    slots[h] = (uint32_t)c + 1;
    if ((uint64_t)keys.size * 2 > mask) grow();
    return c;
  }
  template <class... A>
  int64_t find(A... a) const {
    const int32_t args[] = {a..., 0};
    uint64_t h = hash_arguments<N>(args) & mask;
    while (uint32_t s = slots[h]) {
      if (!memcmp(keys[s - 1].a, args, N * sizeof(int32_t))) return popped.test(s - 1) ? (int64_t)s - 1 : -1;
      h = (h + 1) & mask;
    }
    return -1;
  }
  void arguments(int64_t c, int32_t* out) const { memcpy(out, keys[c].a, N * sizeof(int32_t)); }
  int64_t bound() const { return keys.size; }
  int64_t next(int64_t c) const { return popped.next(c, keys.size); }
};

// The items of a table that agree in some pattern: from a key of K numbers to cells. Items enter when they are popped.
template <int K>
struct Index {
  struct Key { int32_t a[K ? K : 1]; };
  Array<Key> keys;
  Array<uint32_t> slots;
  Array<int64_t> first;        // per key, the newest entry + 1
  Array<int64_t> count;
  struct Entry { int64_t cell, next; };
  Array<Entry> entries;
  uint64_t mask = 0;

  explicit Index(Account* a) : keys(a), slots(a), first(a), count(a), entries(a) {}

  void open() {
    keys.clear(), first.clear(), count.clear(), entries.clear();
    slots.zeros(16);
    mask = 15;
  }
  int64_t number(const int32_t* args) const {
    uint64_t h = hash_arguments<K>(args) & mask;
    while (uint32_t s = slots[h]) {
      if (!memcmp(keys[s - 1].a, args, K * sizeof(int32_t))) return s - 1;
      h = (h + 1) & mask;
    }
    return -1;
  }
  void insert(const int32_t* args, int64_t cell) {
    int64_t k = number(args);
    if (k < 0) {
      k = keys.size;
      Key key;
      memcpy(key.a, args, K * sizeof(int32_t));
      keys.push(key);
      first.push(0);
      count.push(0);
      if ((uint64_t)keys.size * 2 > mask) {
        slots.zeros((int64_t)mask * 2 + 2);
        mask = mask * 2 + 1;
        for (int64_t j = 0; j < keys.size; j++) place(j);
      } else {
        place(k);
      }
    }
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
  void place(int64_t k) {
    uint64_t h = hash_arguments<K>(keys[k].a) & mask;
    while (slots[h]) h = (h + 1) & mask;
    slots[h] = (uint32_t)k + 1;
  }
  // Iteration: for (int64_t e = index.begin(key); e; e = index.next(e)) use index.cell(e)
  int64_t begin(const int32_t* args) const {
    const int64_t k = number(args);
    return k < 0 ? 0 : first[k];
  }
  int64_t next(int64_t e) const { return entries[e - 1].next; }
  int64_t cell(int64_t e) const { return entries[e - 1].cell; }
};

}  // namespace dynagrad
