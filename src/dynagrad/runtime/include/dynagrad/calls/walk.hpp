// Pytrees: calls of a function of leaves with nested containers as arguments and result.
//
// A walk is for one structure. It flattens arguments of that structure, calls a function of their leaves, and rebuilds
// the structure of the result. Containers are Python's own, compared by exact type, and keys and fixed values must be
// the same objects as when the walk was made; for all else it calls a Python function, `otherwise`, with the same
// arguments. No Python code runs before references to the leaves are taken.
//
// A structure is encoded as numbers, in preorder: a Part, the number of its parts, and for dicts the numbers of its
// keys.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define DYNAGRAD_EXPORT extern "C" __attribute__((visibility("default")))

namespace dynagrad {

enum Part : int32_t { kLeaf, kList, kTuple, kDict, kKnown };

// Pointers to functions and objects of Python, in the order of walking.py.
struct Walking {
  long long (*long_as_long_long)(void*);
  void* (*tuple_get_item)(void*, intptr_t);
  intptr_t (*tuple_size)(void*);
  void* (*tuple_new)(intptr_t);
  int (*tuple_set_item)(void*, intptr_t, void*);
  void* (*list_get_item)(void*, intptr_t);
  intptr_t (*list_size)(void*);
  void* (*list_new)(intptr_t);
  int (*list_set_item)(void*, intptr_t, void*);
  int (*dict_next)(void*, intptr_t*, void**, void**);
  intptr_t (*dict_size)(void*);
  void* (*dict_new)();
  int (*dict_set_item)(void*, void*, void*);
  void* (*vectorcall)(void* callable, void* const* arguments, size_t count, void* names);
  void (*increase)(void*);
  void (*decrease)(void*);
  void *list_type, *tuple_type, *dict_type;
};
static Walking python;

// One walk; the layout is that of walking.py.
struct Walk {
  static constexpr int64_t kMostLeaves = 512;
  const int32_t *in, *out;
  void* const* objects;      // keys and known values
  void *flat, *otherwise;    // functions
  void* unfit;               // what `flat` returns where a leaf is not what it takes
  int64_t arguments, single; // how many; whether `flat` returns its only result alone
};

inline void* type_of(void* object) { return static_cast<void**>(object)[1]; }

// The leaves of an argument; false where it has another structure.
inline bool take(const Walk& walk, const int32_t*& at, void* object, void** leaves, int64_t& n) {
  const int32_t part = *at++;
  if (part == kLeaf) return leaves[n++] = object, true;
  const int32_t count = *at++;
  if (part == kKnown) return object == walk.objects[count];
  if (part == kDict) {
    if (type_of(object) != python.dict_type || python.dict_size(object) != count) return false;
    const int32_t* const keys = at;
    at += count;
    intptr_t position = 0;
    void *key, *value;
    for (int32_t i = 0; i < count; i++) {
      if (!python.dict_next(object, &position, &key, &value) || key != walk.objects[keys[i]]) return false;
      if (!take(walk, at, value, leaves, n)) return false;
    }
    return true;
  }
  const bool list = part == kList;
  if (type_of(object) != (list ? python.list_type : python.tuple_type)) return false;
  if ((list ? python.list_size(object) : python.tuple_size(object)) != count) return false;
  for (int32_t i = 0; i < count; i++) {
    void* const inside = list ? python.list_get_item(object, i) : python.tuple_get_item(object, i);
    if (!take(walk, at, inside, leaves, n)) return false;
  }
  return true;
}

// The structure of results, a new reference; null where there is no memory.
inline void* build(const Walk& walk, const int32_t*& at, void* values, intptr_t& n) {
  const int32_t part = *at++;
  if (part == kLeaf) {
    void* const value = walk.single ? values : python.tuple_get_item(values, n++);
    return python.increase(value), value;
  }
  const int32_t count = *at++;
  if (part == kKnown) return python.increase(walk.objects[count]), walk.objects[count];
  void* const made = part == kList ? python.list_new(count) : part == kTuple ? python.tuple_new(count) : python.dict_new();
  const int32_t* const keys = at;
  if (part == kDict) at += count;
  for (int32_t i = 0; made && i < count; i++) {
    void* const inside = build(walk, at, values, n);
    if (!inside) return python.decrease(made), nullptr;
    if (part == kList) {
      python.list_set_item(made, i, inside);  // which takes it over
    } else if (part == kTuple) {
      python.tuple_set_item(made, i, inside);
    } else {
      const int failed = python.dict_set_item(made, walk.objects[keys[i]], inside);
      python.decrease(inside);
      if (failed) return python.decrease(made), nullptr;
    }
  }
  return made;
}

}  // namespace dynagrad

// Takes over the table, of so many bytes; false if that is not the one described here.
DYNAGRAD_EXPORT bool dg_walking(const dynagrad::Walking* table, int64_t bytes) {
  if (bytes != static_cast<int64_t>(sizeof(dynagrad::Walking))) return false;
  dynagrad::python = *table;
  return true;
}

// What the interpreter calls; `self` is a tuple whose first entry is the address of a Walk.
DYNAGRAD_EXPORT void* dg_walk(void* self, void* const* arguments, intptr_t count) {
  using namespace dynagrad;
  const Walk& walk = *reinterpret_cast<const Walk*>(python.long_as_long_long(python.tuple_get_item(self, 0)));
  void* leaves[Walk::kMostLeaves];
  int64_t n = 0;
  bool fits = count == walk.arguments;
  const int32_t* at = walk.in;
  for (intptr_t i = 0; fits && i < count; i++) fits = take(walk, at, arguments[i], leaves, n);
  if (fits) {
    for (int64_t i = 0; i < n; i++) python.increase(leaves[i]);  // others may change the containers meanwhile
    void* const found = python.vectorcall(walk.flat, leaves, static_cast<size_t>(n), nullptr);
    for (int64_t i = 0; i < n; i++) python.decrease(leaves[i]);
    if (!found) return nullptr;
    if (found != walk.unfit) {
      intptr_t next = 0;
      at = walk.out;
      void* const made = build(walk, at, found, next);
      python.decrease(found);
      return made;
    }
    python.decrease(found);
  }
  return python.vectorcall(walk.otherwise, arguments, static_cast<size_t>(count), nullptr);
}
