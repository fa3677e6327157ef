// The nodes that the root reaches, in components, antecedents first (Tarjan 1972).
//
// Components of a ground program, whose edges are found as it runs, are arranged by `solving/ground.hpp`.
#pragma once
#include <dynagrad/forest/view.hpp>

namespace dynagrad {

struct Order {
  Array<uint32_t> nodes;         // component after component
  Array<uint32_t> begin;         // of each component, and the end of the last
  Array<uint8_t> cyclic;         // of each component
  Array<int32_t> component;      // of each node; -1 where the root does not reach it

  explicit Order(Account* a) : nodes(a), begin(a), cyclic(a), component(a) {}
  int64_t count() const { return cyclic.size; }

  // False where it was interrupted.
  bool find(const View& f, Unlocked& unlocked) {
    struct Frame { uint32_t node, instance, antecedent; };
    Array<Frame> frames;
    Array<uint32_t> low, number, waiting;
    low.zeros(f.nodes), number.zeros(f.nodes);
    component.filled(f.nodes, -1);
    nodes.clear(), begin.clear(), cyclic.clear();
    uint32_t time = 0;
    const auto enter = [&](uint32_t v) {
      number[v] = low[v] = ++time;
      waiting.push(v);
      frames.push({v, f.begin[v], f.begin[v] < f.end[v] ? f.first[f.begin[v]] : 0});
    };
    Array<uint8_t> own;  // whether a node is its own antecedent
    own.zeros(f.nodes);
    enter((uint32_t)f.root);
    while (frames.size) {
      if (unlocked.interrupted()) return false;
      Frame& at = frames[frames.size - 1];
      const uint32_t v = at.node;
      bool deeper = false;
      while (at.instance < f.end[v]) {
        if (at.antecedent == f.first[at.instance + 1]) {
          at.instance++;
          if (at.instance < f.end[v]) at.antecedent = f.first[at.instance];
          continue;
        }
        const int32_t u = f.antecedent[at.antecedent++];
        if (u < 0) continue;
        if ((uint32_t)u == v) own[v] = 1;
        if (!number[u]) {
          enter((uint32_t)u);
          deeper = true;
          break;
        }
        if (component[u] < 0 && number[u] < low[v]) low[v] = number[u];
      }
      if (deeper) continue;
      frames.size--;
      if (frames.size) {
        const uint32_t up = frames[frames.size - 1].node;
        if (low[v] < low[up]) low[up] = low[v];
      }
      if (low[v] != number[v]) continue;
      begin.push((uint32_t)nodes.size);
      const int32_t c = (int32_t)cyclic.size;
      const int64_t before = nodes.size;
      for (;;) {
        const uint32_t u = waiting[--waiting.size];
        component[u] = c;
        nodes.push(u);
        if (u == v) break;
      }
      cyclic.push(nodes.size - before > 1 || own[v]);
    }
    begin.push((uint32_t)nodes.size);
    return true;
  }
};

}  // namespace dynagrad
