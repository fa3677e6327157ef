// Type-erased values: a table of functions by which code that is the same for all programs handles those of a semiring.
//
// That code is in `storage/looking.hpp` and `outside/runtime.hpp`.
#pragma once
#include <dynagrad/storage/facts.hpp>
#include <dynagrad/storage/tables.hpp>

namespace dynagrad {

// What a semiring does with the numbers of facts, and with values behind addresses.
struct ValueReader {
  int32_t words, size;                   // of a value: outside, and in bytes
  const void* (*element)(const void* array, int64_t cell);
  int64_t (*make)(HashedTable& items, const int32_t* arguments);  // the cell of an item, made if necessary
  void (*read)(const uint64_t* words, void* value);
  void (*write)(const void* value, uint64_t* words);
  void (*write_row)(const void* view, int64_t row, uint64_t* words);
  void* (*weights_new)(Failure&);
  void (*weights_free)(void* weights);
  void (*weigh)(const FactTable&, const uint64_t* words, void* weights, const void* copies);
};
template <class S>
struct ReaderOf {
  using Value = typename S::Value;
  using View = typename Weights<S>::View;
  static const Value& at(const void* array, int64_t cell) { return ((const Array<Value>*)array)->data[cell]; }
  static const void* element(const void* array, int64_t cell) { return &at(array, cell); }
  static int64_t make(HashedTable& items, const int32_t* a) {
    return static_cast<HashedOf<Value>&>(items).make(a, items.width, S::zero);
  }
  static void read(const uint64_t* words, void* value) { *(Value*)value = S::read(words); }
  static void write(const void* value, uint64_t* words) { S::write(*(const Value*)value, words); }
  static void write_row(const void* view, int64_t row, uint64_t* words) { S::write((*(const View*)view)[row], words); }
  static void* weights_new(Failure& failure) { return blank<Weights<S>>(failure); }
  static void weights_free(void* weights) { dispose((Weights<S>*)weights); }
  static void weigh(const FactTable& facts, const uint64_t* words, void* weights, const void* copies) {
    dynagrad::weigh<S>(facts, *(Weights<S>*)weights, words, *(const Copies<S>*)copies);
  }
  static const ValueReader reader;
};
template <class S>
constinit const ValueReader ReaderOf<S>::reader{
    S::words, (int32_t)sizeof(Value), element, make, read, write, write_row, weights_new, weights_free, weigh};

}  // namespace dynagrad
