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
#include <dynagrad/shared.h>

#define DYNAGRAD_EXPORT extern "C" __attribute__((visibility("default")))

namespace dynagrad {

static Walking python;

inline void* type_of(void* object) { return static_cast<void**>(object)[1]; }

// The leaves of an argument; false where it has another structure.
inline bool take(const Pytree& walk, const int32_t*& at, void* object, void** leaves, int64_t& n) {
  const int32_t part = *at++;
  if (part == kLeaf) return leaves[n++] = object, true;
  const int32_t count = *at++;
  if (part == kKnown) return object == walk.objects[count];
  if (part == kDict) {
    if (type_of(object) != python.dict_type || python.PyDict_Size(object) != count) return false;
    const int32_t* const keys = at;
    at += count;
    intptr_t position = 0;
    void *key, *value;
    for (int32_t i = 0; i < count; i++) {
      if (!python.PyDict_Next(object, &position, &key, &value) || key != walk.objects[keys[i]]) return false;
      if (!take(walk, at, value, leaves, n)) return false;
    }
    return true;
  }
  const bool list = part == kList;
  if (type_of(object) != (list ? python.list_type : python.tuple_type)) return false;
  if ((list ? python.PyList_Size(object) : python.PyTuple_Size(object)) != count) return false;
  for (int32_t i = 0; i < count; i++) {
    void* const inside = list ? python.PyList_GetItem(object, i) : python.PyTuple_GetItem(object, i);
    if (!take(walk, at, inside, leaves, n)) return false;
  }
  return true;
}

// The structure of results, a new reference; null where there is no memory.
inline void* build(const Pytree& walk, const int32_t*& at, void* values, intptr_t& n) {
  const int32_t part = *at++;
  if (part == kLeaf) {
    void* const value = walk.single ? values : python.PyTuple_GetItem(values, n++);
    return python.Py_IncRef(value), value;
  }
  const int32_t count = *at++;
  if (part == kKnown) return python.Py_IncRef(walk.objects[count]), walk.objects[count];
  void* const made = part == kList ? python.PyList_New(count) : part == kTuple ? python.PyTuple_New(count) : python.PyDict_New();
  const int32_t* const keys = at;
  if (part == kDict) at += count;
  for (int32_t i = 0; made && i < count; i++) {
    void* const inside = build(walk, at, values, n);
    if (!inside) return python.Py_DecRef(made), nullptr;
    if (part == kList) {
      python.PyList_SetItem(made, i, inside);  // which takes it over
    } else if (part == kTuple) {
      python.PyTuple_SetItem(made, i, inside);
    } else {
      const int failed = python.PyDict_SetItem(made, walk.objects[keys[i]], inside);
      python.Py_DecRef(inside);
      if (failed) return python.Py_DecRef(made), nullptr;
    }
  }
  return made;
}

DYNAGRAD_EXPORT void dg_walking(const Walking* table) { python = *table; }

DYNAGRAD_EXPORT void* dg_walk(void* self, void* const* arguments, intptr_t count) {
  const Pytree& walk = *reinterpret_cast<const Pytree*>(python.PyLong_AsLongLong(python.PyTuple_GetItem(self, 0)));
  void* leaves[kMostLeaves];
  int64_t n = 0;
  bool fits = count == walk.arguments;
  const int32_t* at = walk.in;
  for (intptr_t i = 0; fits && i < count; i++) fits = take(walk, at, arguments[i], leaves, n);
  if (fits) {
    for (int64_t i = 0; i < n; i++) python.Py_IncRef(leaves[i]);  // others may change the containers meanwhile
    void* const found = python.PyObject_Vectorcall(walk.flat, leaves, static_cast<size_t>(n), nullptr);
    for (int64_t i = 0; i < n; i++) python.Py_DecRef(leaves[i]);
    if (!found) return nullptr;
    if (found != walk.unfit) {
      intptr_t next = 0;
      at = walk.out;
      void* const made = build(walk, at, found, next);
      python.Py_DecRef(found);
      return made;
    }
    python.Py_DecRef(found);
  }
  return python.PyObject_Vectorcall(walk.otherwise, arguments, static_cast<size_t>(count), nullptr);
}

}  // namespace dynagrad
