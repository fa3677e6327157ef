// Lookups in a program from outside, by the numbers of tables: facts, items and their values.
//
// A program describes where each table is, and how its semiring writes a value. All else is the same for all programs.
//
// Facts are loaded by `storage/facts.hpp`.
#pragma once
#include <dynagrad/storage/reader.hpp>

namespace dynagrad {

// The value of a row or of an item.
template <class S>
inline typename S::Value value_at(const TableView& t, int64_t at) {
  return t.items ? ReaderOf<S>::at(t.values, at) : (*(const typename Weights<S>::View*)t.view)[at];
}

struct Looking {
  const TableView* views = nullptr;
  const ValueReader* reader = nullptr;

  // The row of a fact, or the cell of an item in the chart; -1 where there is none.
  DYNAGRAD_ONCE_FACTS int64_t place(int64_t table, const int32_t* a) const {
    const TableView& t = views[table];
    return t.items ? find_item(*t.items, t.order, a) : t.facts ? t.facts->table->row(a) : -1;
  }
  // The cell of an item that may not be in the chart yet, for which room is made; -1 where it is out of range.
  DYNAGRAD_ONCE_FACTS int64_t locate(int64_t table, const int32_t* a) {
    const TableView& t = views[table];
    if (!t.items) return -1;
    if (t.items->dense) return static_cast<const DenseTable&>(*t.items).cell_of(t.order, a);
    return reader->make(static_cast<HashedTable&>(*t.items), a);
  }
  DYNAGRAD_ONCE_FACTS int64_t get(int64_t table, const int32_t* a, uint64_t* words) const {
    const TableView& t = views[table];
    const int64_t at = place(table, a);
    if (at < 0) return 0;
    if (t.items) reader->write(reader->element(t.values, at), words);
    else reader->write_row(t.view, at, words);
    return 1;
  }
  // As it was given.
  DYNAGRAD_ONCE_FACTS int64_t fact(int64_t table, const int32_t* a, uint64_t* words) const {
    const TableView& t = views[table];
    const int64_t at = t.facts ? t.facts->table->row(a) : -1;
    if (at >= 0) reader->write_row(t.view, at, words);
    return at >= 0;
  }
  DYNAGRAD_ONCE_FACTS void arguments(int64_t table, int64_t at, int32_t* out) const {
    const TableView& t = views[table];
    if (t.items) return arguments_of(*t.items, t.order, at, out);
    for (int k = 0; k < t.width; k++) out[k] = t.facts->table->columns[k].data[at];
  }
  // All of a table, `room` at most: arguments row by row, and values. Returns how many there are.
  DYNAGRAD_ONCE_FACTS int64_t items(int64_t table, int32_t* arguments, uint64_t* words, int64_t room) const {
    const TableView& t = views[table];
    if (!t.items) {
      const int64_t rows = t.facts ? t.facts->rows() : 0;
      for (int64_t r = 0; r < rows && r < room; r++) {
        for (int k = 0; k < t.width; k++) arguments[r * t.width + k] = t.facts->table->columns[k].data[r];
        reader->write_row(t.view, r, words + r * reader->words);
      }
      return rows;
    }
    const int64_t bound = bound_of(*t.items);
    int64_t count = 0;
    for (int64_t c = t.items->popped.next(0, bound); c >= 0; c = t.items->popped.next(c + 1, bound), count++) {
      if (count >= room) continue;
      arguments_of(*t.items, t.order, c, arguments + count * t.width);
      reader->write(reader->element(t.values, c), words + count * reader->words);
    }
    return count;
  }
  // The error bound of each item's component, in the order of `items`; none where no component is solved.
  DYNAGRAD_ONCE_FACTS int64_t bounds(int64_t table, double* found, int64_t room) const {
    const TableView& t = views[table];
    const int64_t bound = t.items && t.bounds ? bound_of(*t.items) : 0;
    int64_t count = 0;
    for (int64_t c = bound ? t.items->popped.next(0, bound) : -1; c >= 0 && count < room; c = t.items->popped.next(c + 1, bound))
      found[count++] = c < t.bounds->size ? (*t.bounds)[c] : 0;
    return count;
  }
  // The items with an update that was not propagated: arguments and the update.
  DYNAGRAD_ONCE_FACTS int64_t pending(int64_t table, int32_t* arguments, uint64_t* words, int64_t room) const {
    const TableView& t = views[table];
    const int64_t bound = t.items ? bound_of(*t.items) : 0;
    int64_t count = 0;
    for (int64_t c = t.items ? t.items->seen.next(0, bound) : -1; c >= 0; c = t.items->seen.next(c + 1, bound)) {
      const void* const x = reader->element(t.pending ? t.pending : t.values, c);
      if (t.items->popped.test(c) && (!t.pending || !memcmp(x, t.nothing, (size_t)reader->size))) continue;
      if (count < room) {
        arguments_of(*t.items, t.order, c, arguments + count * t.width);
        reader->write(x, words + count * reader->words);
      }
      count++;
    }
    return count;
  }
};

}  // namespace dynagrad
