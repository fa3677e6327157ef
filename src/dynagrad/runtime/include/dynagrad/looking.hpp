// Lookups in a program from outside, by the numbers of tables: facts, items and their values.
//
// A program describes where each table is, and how its semiring writes a value. All else is the same for all programs.
#pragma once
#include "facts.hpp"
#include "tables.hpp"

namespace dynagrad {

// Arrays are told by their address, and known to `ValueReader` alone.
struct TableView {
  int32_t width = 0;                     // how many arguments
  const Table* items = nullptr;          // of a predicate that is derived
  const int32_t* order = nullptr;        // which argument is stored at each place of it
  const void* values = nullptr;          // an Array, by cell
  const void* pending = nullptr;         // another, of updates that wait, where those are apart
  const void* nothing = nullptr;         // an update that is none
  const RelationBase* facts = nullptr;   // the rows of a predicate, or those that are axioms of a derived one
  const void* view = nullptr;            // the numbers of rows
  void* adjoints = nullptr;              // arrays of adjoints: those that a pass back starts from,
  void* totals = nullptr;                // ... those that it ends with,
  void* axioms = nullptr;                // ... and those of rows
};

// What a semiring does with values behind addresses.
struct ValueReader {
  int32_t words, size;                   // of a value: outside, and in bytes
  const void* (*element)(const void* array, int64_t cell);
  void (*write)(const void* value, uint64_t* words);
  void (*write_row)(const void* view, int64_t row, uint64_t* words);
};
template <class S>
struct ReaderOf {
  using Value = typename S::Value;
  using View = typename Weights<S>::View;
  static const Value& at(const void* array, int64_t cell) { return ((const Array<Value>*)array)->data[cell]; }
  static const void* element(const void* array, int64_t cell) { return &at(array, cell); }
  static void write(const void* value, uint64_t* words) { S::write(*(const Value*)value, words); }
  static void write_row(const void* view, int64_t row, uint64_t* words) { S::write((*(const View*)view)[row], words); }
  static constexpr ValueReader reader{S::words, (int32_t)sizeof(Value), element, write, write_row};
  // The value of a row or of an item.
  static Value value(const TableView& t, int64_t at) {
    return t.items ? ReaderOf::at(t.values, at) : (*(const View*)t.view)[at];
  }
};

struct Looking {
  const TableView* views = nullptr;
  const ValueReader* reader = nullptr;

  // The row of a fact, or the cell of an item in the chart; -1 where there is none.
  DYNAGRAD_ONCE int64_t place(int64_t table, const int32_t* a) const {
    const TableView& t = views[table];
    return t.items ? find_item(*t.items, t.order, a) : t.facts ? t.facts->table->row(a) : -1;
  }
  DYNAGRAD_ONCE int64_t get(int64_t table, const int32_t* a, uint64_t* words) const {
    const TableView& t = views[table];
    const int64_t at = place(table, a);
    if (at < 0) return 0;
    if (t.items) reader->write(reader->element(t.values, at), words);
    else reader->write_row(t.view, at, words);
    return 1;
  }
  // As it was given.
  DYNAGRAD_ONCE int64_t fact(int64_t table, const int32_t* a, uint64_t* words) const {
    const TableView& t = views[table];
    const int64_t at = t.facts ? t.facts->table->row(a) : -1;
    if (at >= 0) reader->write_row(t.view, at, words);
    return at >= 0;
  }
  DYNAGRAD_ONCE void arguments(int64_t table, int64_t at, int32_t* out) const {
    const TableView& t = views[table];
    if (t.items) return arguments_of(*t.items, t.order, at, out);
    for (int k = 0; k < t.width; k++) out[k] = t.facts->table->columns[k].data[at];
  }
  // All of a table, `room` at most: arguments row by row, and values. Returns how many there are.
  DYNAGRAD_ONCE int64_t items(int64_t table, int32_t* arguments, uint64_t* words, int64_t room) const {
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
  // The items with an update that was not propagated: arguments and the update.
  DYNAGRAD_ONCE int64_t waiting(int64_t table, int32_t* arguments, uint64_t* words, int64_t room) const {
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
