// Agendas: the order in which items are popped. They contain handles (a table's number and a cell), each at most once.
//
// `Levels` is a bucket queue for plans in which items become final in order of an integer level: a stack per level.
// `RowLevels` is the same where items of one level stand side by side, which are popped together. `Heap` pops the lowest
// level first and within it the largest priority. `Queue` pops first in, first out, `Stack` last in, first out. Heap
// keeps the place of an item beside the item, so that its priority can change while it waits. A priority is a number, or
// anything else with an order: a is popped before b if `a > b`.
//
// What a pop does is in generated code. Nothing here knows values or semirings.
#pragma once
#include <dynagrad/base/memory.hpp>
#include <dynagrad/shared.h>

namespace dynagrad {

using Handle = uint64_t;
DYNAGRAD_ALWAYS Handle handle(uint32_t table, int64_t cell) { return (uint64_t)table << kCellBits | (uint32_t)cell; }
constexpr Handle again = (Handle)1 << 63;  // on a tape: the item had been popped before
DYNAGRAD_ALWAYS uint32_t table_of(Handle h) { return (uint32_t)(h >> kCellBits); }
DYNAGRAD_ALWAYS int64_t cell_of(Handle h) { return (int64_t)(uint32_t)h; }

template <class Level, class Priority = double>
struct Heap {
  struct Entry { Level level; Priority priority; Handle item; };
  Array<Entry> entries;                 // a heap of four children a node
  Array<Array<uint32_t>*> places;       // per table; place = position + 1, or 0

  __attribute__((noinline)) explicit Heap(Account* a) : entries(a), places(a) {}
  __attribute__((noinline)) ~Heap() {}

  static bool before(const Entry& a, const Entry& b) {
    return a.level != b.level ? a.level < b.level : a.priority > b.priority;
  }
  uint32_t& place(Handle h) { return (*places[table_of(h)])[cell_of(h)]; }
  void put(int64_t i, const Entry& e) {
    entries[i] = e;
    place(e.item) = (uint32_t)i + 1;
  }
  void up(int64_t i, Entry e) {
    while (i) {
      const int64_t parent = (i - 1) / 4;
      if (!before(e, entries[parent])) break;
      put(i, entries[parent]);
      i = parent;
    }
    put(i, e);
  }
  void down(int64_t i, Entry e) {
    const int64_t n = entries.size;
    for (;;) {
      const int64_t first = 4 * i + 1, last = first + 4 < n ? first + 4 : n;
      if (first >= n) break;
      int64_t best = first;
      for (int64_t c = first + 1; c < last; c++)
        if (before(entries[c], entries[best])) best = c;
      if (!before(entries[best], e)) break;
      put(i, entries[best]);
      i = best;
    }
    put(i, e);
  }
  __attribute__((noinline)) void push(Handle h, Level level, const Priority& priority) {
    const uint32_t p = place(h);
    const Entry e{level, priority, h};
    if (!p) {
      entries.push(e);
      up(entries.size - 1, e);
    } else if (before(e, entries[p - 1])) {
      up(p - 1, e);
    } else {
      down(p - 1, e);
    }
  }
  __attribute__((noinline)) bool pop(Handle& h) {
    if (!entries.size) return false;
    h = entries[0].item;
    place(h) = 0;
    const Entry last = entries[--entries.size];
    if (entries.size) down(0, last);
    return true;
  }
  DYNAGRAD_ALWAYS int64_t waiting() const { return entries.size; }
  DYNAGRAD_ALWAYS void open() { entries.clear(); }
};
#if defined(DYNAGRAD_LINKED) || defined(DYNAGRAD_RUNTIME)
DYNAGRAD_KNOWN struct Heap<int64_t>;
DYNAGRAD_KNOWN struct Heap<__int128>;
DYNAGRAD_KNOWN void Array<Array<uint32_t>*>::grow(int64_t);
#endif

// Levels 0 .. count-1 where they are few enough for an array, else the same order from a heap of numbers.
// A Level is a whole number wide enough for all forms of an order together: int64_t or __int128.
template <class Level>
struct Levels {
  struct Entry { Handle item; int64_t next; };
  struct Leveled { Level level; Handle item; };
  static constexpr int64_t most = 1 << 22;
  Array<int64_t> top;                   // per level, the newest entry + 1
  Array<Entry> entries;
  Array<Leveled> heap;
  int64_t at = 0, count = 0;
  bool dense = false;

  DYNAGRAD_ONCE explicit Levels(Account* a) : top(a), entries(a), heap(a) {}
  DYNAGRAD_ONCE ~Levels() noexcept {}

  // Levels are 0 .. levels - 1.
  DYNAGRAD_ONCE void open(Level levels) {
    at = 0;
    count = 0;
    entries.clear();
    heap.clear();
    dense = levels <= most;
    if (dense) top.zeros((int64_t)levels);
  }
  DYNAGRAD_ALWAYS void push(Handle h, Level level) {
    count++;
    if (__builtin_expect(dense, 1)) {
      const int64_t l = (int64_t)level;
      entries.push({h, top[l]});
      top[l] = entries.size;
      return;
    }
    push_heap(h, level);
  }
  DYNAGRAD_ONCE void push_heap(Handle h, Level level) {
    heap.push({level, h});
    int64_t i = heap.size - 1;
    const Leveled e = heap[i];
    while (i && e.level < heap[(i - 1) / 2].level) heap[i] = heap[(i - 1) / 2], i = (i - 1) / 2;
    heap[i] = e;
  }
  DYNAGRAD_ALWAYS bool pop(Handle& h) {
    if (!count) return false;
    count--;
    if (__builtin_expect(dense, 1)) {
      while (!top[at]) at++;
      const Entry& e = entries[top[at] - 1];
      h = e.item;
      top[at] = e.next;
      return true;
    }
    pop_heap(h);
    return true;
  }
  DYNAGRAD_ONCE void pop_heap(Handle& h) {
    h = heap[0].item;
    const Leveled last = heap[--heap.size];
    const int64_t n = heap.size;
    int64_t i = 0;
    for (;;) {
      int64_t c = 2 * i + 1;
      if (c >= n) break;
      if (c + 1 < n && heap[c + 1].level < heap[c].level) c++;
      if (heap[c].level >= last.level) break;
      heap[i] = heap[c];
      i = c;
    }
    if (n) heap[i] = last;
  }
  int64_t waiting() const { return count; }
  // The least level on which an item waits, and whether there is one. Nothing may be pushed below it from then on.
  bool next_level(Level& level) {
    if (!count) return false;
    if (dense) {
      while (!top[at]) at++;
      level = (Level)at;
    } else {
      level = heap[0].level;
    }
    return true;
  }
  // Pops an item of this level, which is the least; false where none waits there.
  bool pop_from(Level level, Handle& h) {
    if (!count || (dense ? !top[(int64_t)level] : heap[0].level != level)) return false;
    return pop(h);
  }
};

// The same where items of one level stand side by side in a table: up to 64 of them wait and are popped as one, by
// their first cell and a bit for each cell from there on.
template <class Level>
struct RowLevels : Levels<Level> {
  using Base = Levels<Level>;
  using Base::at, Base::count, Base::dense, Base::top;
  struct Row { Handle first; int64_t next; uint64_t cells; };
  Array<Row> rows;

  DYNAGRAD_ONCE explicit RowLevels(Account* a) : Base(a), rows(a) {}
  DYNAGRAD_ONCE ~RowLevels() noexcept {}

  DYNAGRAD_ONCE void open(Level levels) {
    Base::open(levels);
    rows.clear();
  }
  DYNAGRAD_ONCE void push(Handle first, uint64_t cells, Level level) {
    if (!cells) return;
    if (__builtin_expect(!dense, 0)) return push_each(first, cells, level);
    const int64_t l = (int64_t)level, newest = top[l];
    count += __builtin_popcountll(cells);
    if (newest && rows[newest - 1].first == first) {
      rows[newest - 1].cells |= cells;
    } else {
      rows.push({first, newest, cells});
      top[l] = rows.size;
    }
  }
  // Cells from the one with this number on, counted from the first: a bit each.
  DYNAGRAD_ONCE void push_from(Handle first, int64_t within, uint64_t cells, Level level) {
    push(first, cells << within, level);
    if (within) push(first + 64, cells >> (64 - within), level);
  }
  DYNAGRAD_ONCE void push_each(Handle first, uint64_t cells, Level level) {
    for (; cells; cells &= cells - 1) count++, this->push_heap(first + __builtin_ctzll(cells), level);
  }
  // The items that are next; with `one`, only one of them.
  DYNAGRAD_ONCE bool pop(Handle& first, uint64_t& cells, bool one) {
    if (!count) return false;
    if (__builtin_expect(!dense, 0)) {
      count--, cells = 1;
      this->pop_heap(first);
      return true;
    }
    while (!top[at]) at++;
    Row& row = rows[top[at] - 1];
    first = row.first, cells = row.cells;
    if (__builtin_expect(one, 0)) {
      row.cells &= row.cells - 1;
      first += __builtin_ctzll(cells), cells = 1;
      if (!row.cells) top[at] = row.next;
    } else {
      top[at] = row.next;
    }
    count -= __builtin_popcountll(cells);
    return true;
  }
};

struct Queue {
  Array<Handle> items;
  int64_t head = 0;
  explicit Queue(Account* a) : items(a) {}
  void open() { items.clear(), head = 0; }
  void push(Handle h) {
    if (head > 1024 && head * 2 > items.size) {  // forget what has been popped
      memmove(items.data, items.data + head, (items.size - head) * sizeof(Handle));
      items.size -= head;
      head = 0;
    }
    items.push(h);
  }
  bool pop(Handle& h) {
    if (head == items.size) return false;
    h = items[head++];
    return true;
  }
  int64_t waiting() const { return items.size - head; }
};

struct Stack {
  Array<Handle> items;
  explicit Stack(Account* a) : items(a) {}
  void open() { items.clear(); }
  void push(Handle h) { items.push(h); }
  bool pop(Handle& h) {
    if (!items.size) return false;
    h = items[--items.size];
    return true;
  }
  int64_t waiting() const { return items.size; }
};

}  // namespace dynagrad
