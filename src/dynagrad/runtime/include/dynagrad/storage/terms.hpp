// Interned terms (hash consing): the codes of arguments that may be any term.
//
// A term is an integer, an atom (a number in the table of atoms that Python keeps) or a functor over terms. Equal terms
// have equal numbers. A store may extend a base that other charts share: numbers below `offset` are the base's, to
// which the chart above it never writes.
//
// Codes of atoms and integers are made by Python (`charts/binding/encoding.py`) or by `interface/base.hpp`.
#pragma once
#include <dynagrad/base/memory.hpp>

namespace dynagrad {

struct Terms {
  enum Kind : int32_t { integer = kIntegerTerm, atom = kAtomTerm, compound = kCompoundTerm };
  using Node = TermNode;
  const Terms* base = nullptr;
  int32_t offset = 0;
  Array<Node> nodes;
  Array<int32_t> children;
  Array<uint32_t> slots;
  uint64_t mask = 15;

  explicit Terms(Account* a) : nodes(a), children(a), slots(a) {}

  DYNAGRAD_ONCE void open(const Terms* below) {
    base = below;
    offset = below ? below->offset + (int32_t)below->nodes.size : 0;
    nodes.clear();
    children.clear();
    slots.zeros(16);
    mask = 15;
  }
  int64_t count() const { return offset + nodes.size; }
  const Node& node(int32_t t) const { return t >= offset ? nodes[t - offset] : base->node(t); }
  const int32_t* arguments(int32_t t) const {
    return t >= offset ? children.data + nodes[t - offset].first : base->arguments(t);
  }
  static uint64_t hash(int32_t kind, int32_t payload, const int32_t* args, int32_t arity) {
    uint64_t h = mix((uint64_t)(uint32_t)payload * 4 + (uint32_t)kind + ((uint64_t)arity << 40));
    for (int32_t i = 0; i < arity; i++) h = mix(h ^ ((uint64_t)(uint32_t)args[i] + 0x9e3779b97f4a7c15ull));
    return h;
  }
  bool equal(const Node& n, int32_t kind, int32_t payload, const int32_t* args, int32_t arity) const {
    if (n.kind != kind || n.payload != payload || n.arity != arity) return false;
    return !arity || !memcmp(children.data + n.first, args, arity * sizeof(int32_t));
  }
  // The term's number, or -1 where no such term was ever made.
  DYNAGRAD_ONCE int32_t find(int32_t kind, int32_t payload, const int32_t* args, int32_t arity) const {
    if (base) {
      const int32_t below = base->find(kind, payload, args, arity);
      if (below >= 0) return below;
    }
    uint64_t h = hash(kind, payload, args, arity) & mask;
    while (uint32_t s = slots[h]) {
      if (equal(nodes[s - 1], kind, payload, args, arity)) return (int32_t)(s - 1) + offset;
      h = (h + 1) & mask;
    }
    return -1;
  }
  DYNAGRAD_ONCE int32_t make(int32_t kind, int32_t payload, const int32_t* args, int32_t arity) {
    const int32_t known = find(kind, payload, args, arity);
    if (known >= 0) return known;
    children.reserve(children.size + arity);  // all room first: terms are looked up also where there was none
    nodes.reserve(nodes.size + 1);
    const bool full = (uint64_t)(nodes.size + 1) * 2 > mask;
    if (full) {
      slots.zeros_safely((int64_t)mask * 2 + 2);
      mask = mask * 2 + 1;
      for (int64_t i = 0; i < nodes.size; i++) place(i);
    }
    Node n{kind, payload, (int32_t)children.size, arity};
    for (int32_t i = 0; i < arity; i++) children.push(args[i]);
    nodes.push(n);
    place(nodes.size - 1);
    return (int32_t)(nodes.size - 1) + offset;
  }
  DYNAGRAD_ONCE void place(int64_t i) {
    const Node& n = nodes[i];
    uint64_t h = hash(n.kind, n.payload, children.data + n.first, n.arity) & mask;
    while (slots[h]) h = (h + 1) & mask;
    slots[h] = (uint32_t)i + 1;
  }
  bool is(int32_t t, int32_t functor, int32_t arity) const {
    if (t < 0) return false;
    const Node& n = node(t);
    return n.kind == compound && n.payload == functor && n.arity == arity;
  }
};

}  // namespace dynagrad
