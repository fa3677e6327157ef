// A hash table of keys, each a row of integers: what tables, indexes and groups of facts are looked up by.
//
// Keys are numbered in the order of arrival. What belongs to them is kept elsewhere, in arrays by this number.
#pragma once
#include <dynagrad/base/memory.hpp>

namespace dynagrad {

inline uint64_t hash_arguments(const int32_t* a, int n) {
  uint64_t h = 0x9e3779b97f4a7c15ull;
  for (int i = 0; i < n; i++) h = (h ^ (uint32_t)a[i]) * 0x9ddfea08eb382d69ull, h ^= h >> 29;
  return h ^ h >> 32;
}

// Open addressing with linear probing. The length of a key is an argument, which the compiler knows where it is looked
// up in a loop.
struct Keys {
  Array<int32_t> keys;         // side by side
  Array<uint32_t> slots;       // number + 1, or 0
  uint64_t mask = 0;           // how many slots, less one: a power of two

  explicit Keys(Account* a) : keys(a), slots(a) {}

  const int32_t* key(int64_t number, int n) const { return keys.data + number * n; }
  // The slot of a key, or the free one for it.
  DYNAGRAD_ALWAYS uint64_t slot_of(const int32_t* args, int n) const {
    uint64_t h = hash_arguments(args, n) & mask;
    while (uint32_t s = slots[h]) {
      if (!memcmp(key((int64_t)(s - 1), n), args, n * sizeof(int32_t))) break;
      h = (h + 1) & mask;
    }
    return h;
  }
  // The number of a key, or -1.
  DYNAGRAD_ALWAYS int64_t number_of(const int32_t* args, int n) const { return (int64_t)slots[slot_of(args, n)] - 1; }
  // The slot for a key that has none.
  uint64_t free_slot(const int32_t* args, int n) const {
    uint64_t h = hash_arguments(args, n) & mask;
    while (slots[h]) h = (h + 1) & mask;
    return h;
  }
  // Gives a slot to a key that has none.
  void enter_slot(int64_t number, int n) { slots[free_slot(key(number, n), n)] = (uint32_t)number + 1; }
};

}  // namespace dynagrad
