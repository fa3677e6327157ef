// The best derivation of each node: Knuth (1977), "A generalization of Dijkstra's algorithm", in each component.
//
// Where rules make something better (a probability above one, a negative cost), items are not final in the order of
// Dijkstra: the component is gone through again and again, and one that gets better without end has no best derivation.
#pragma once
#include <dynagrad/forest/order.hpp>

namespace dynagrad {

struct Best {
  static constexpr uint32_t none = kNoInstance;
  Array<Key> key;                // of the best derivation that is not zero
  Array<uint32_t> instance;      // its last one; `none` where all derivations are zero
  int64_t unbounded = -1;        // a node whose derivations get better without end

  Array<int32_t> local;          // of a node in the component at hand: its number there

  explicit Best(Account* a) : key(a), instance(a), local(a) {}

  // The key of the instance with the best derivations of its antecedents; false where one has none but zero.
  bool rate(const View& f, int64_t e, Key& found) const {
    found = {f.own(e), f.rule[e] < 0 ? 0 : 1};
    if (f.nothing(found.weight)) return false;
    for (uint32_t i = f.first[e]; i < f.first[e + 1]; i++) {
      const int32_t u = f.antecedent[i];
      if (u < 0) continue;
      if (instance[u] == none) return false;
      found.weight = f.times(found.weight, key[u].weight);
      found.size = found.size + key[u].size < huge ? found.size + key[u].size : huge;
    }
    return true;
  }
  // Whether a derivation of a node is better than what it has.
  bool improves(const View& f, uint32_t v, const Key& k, uint32_t e) const {
    if (instance[v] == none || better(k, key[v])) return true;
    return equal(k, key[v]) && e != instance[v] && precedes(f, e, instance[v]);
  }

  // kUnlike: a node has no best derivation.
  int64_t find(const View& f, const Order& order, Unlocked& unlocked) {
    key.zeros(f.nodes);
    instance.filled(f.nodes, none);
    local.zeros(f.nodes);
    for (int64_t c = 0; c < order.count(); c++) {
      const uint32_t *from = &order.nodes[order.begin[c]], *to = order.nodes.data + order.begin[c + 1];
      if (!order.cyclic[c]) {
        if (unlocked.interrupted(1)) return kHalted;
        each(f, *from);
        continue;
      }
      const int64_t how = dijkstra(f, order, (int32_t)c, from, to, unlocked);
      if (how == kHalted) return kHalted;
      if (how == kComplete) continue;
      for (const uint32_t* v = from; v < to; v++) instance[*v] = none;
      bool changed = true;
      for (int64_t round = 0; changed; round++) {
        if (round > to - from + 1) {
          unbounded = *from;
          return kUnlike;
        }
        changed = false;
        for (const uint32_t* v = from; v < to; v++) {
          if (unlocked.interrupted(1)) return kHalted;
          changed = each(f, *v) || changed;
        }
      }
    }
    return kComplete;
  }

 private:
  bool each(const View& f, uint32_t v) {
    bool changed = false;
    for (uint32_t e = f.begin[v]; e < f.end[v]; e++) {
      Key k;
      if (!rate(f, e, k) || !improves(f, v, k, e)) continue;
      key[v] = k, instance[v] = e;
      changed = true;
    }
    return changed;
  }

  struct Entry {
    Key key;
    uint32_t node, instance;
  };
  // kUnlike: something gets better by being used.
  int64_t dijkstra(const View& f, const Order& order, int32_t c, const uint32_t* from, const uint32_t* to,
                   Unlocked& unlocked) {
    const int64_t n = to - from;
    Array<uint32_t> uses, at, missing, heads, ids;   // by local number; instances have local numbers, too
    Array<Entry> heap;
    Array<uint8_t> final;
    for (int64_t i = 0; i < n; i++) local[from[i]] = (int32_t)i;
    at.zeros(n + 2), final.zeros(n);
    for (int64_t i = 0; i < n; i++)
      for (uint32_t e = f.begin[from[i]]; e < f.end[from[i]]; e++) {
        uint32_t inside = 0;
        for (uint32_t a = f.first[e]; a < f.first[e + 1]; a++) {
          const int32_t u = f.antecedent[a];
          if (u >= 0 && order.component[u] == c) inside++, at[local[u] + 2]++;
        }
        missing.push(inside), ids.push(e), heads.push((uint32_t)i);
      }
    for (int64_t i = 0; i <= n; i++) at[i + 1] += at[i];
    uses.zeros(at[n + 1] + 1);
    for (int64_t j = 0; j < ids.size; j++)
      for (uint32_t a = f.first[ids[j]]; a < f.first[ids[j] + 1]; a++) {
        const int32_t u = f.antecedent[a];
        if (u >= 0 && order.component[u] == c) uses[at[local[u] + 1]++] = (uint32_t)j;
      }
    bool superior = true;
    const auto offer = [&](int64_t j) {
      const uint32_t v = from[heads[j]], e = ids[j];
      Key k;
      if (!rate(f, e, k) || !improves(f, v, k, e)) return;
      if (final[heads[j]]) {
        if (better(k, key[v])) superior = false;
        else instance[v] = e;
        return;
      }
      key[v] = k, instance[v] = e;
      push(heap, {k, (uint32_t)heads[j], e});
    };
    for (int64_t j = 0; j < ids.size; j++)
      if (!missing[j]) offer(j);
    while (heap.size && superior) {
      if (unlocked.interrupted(1)) return kHalted;
      const Entry top = pop(heap);
      if (final[top.node] || !equal(top.key, key[from[top.node]])) continue;
      final[top.node] = 1;
      for (uint32_t u = at[top.node]; u < at[top.node + 1]; u++)
        if (!--missing[uses[u]]) offer(uses[u]);
    }
    return superior ? kComplete : kUnlike;
  }
  static void push(Array<Entry>& heap, const Entry& e) {
    heap.push(e);
    int64_t i = heap.size - 1;
    for (; i && better(e.key, heap[(i - 1) / 2].key); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = e;
  }
  static Entry pop(Array<Entry>& heap) {
    const Entry top = heap[0], e = heap[--heap.size];
    int64_t i = 0;
    for (;;) {
      int64_t child = 2 * i + 1;
      if (child >= heap.size) break;
      if (child + 1 < heap.size && better(heap[child + 1].key, heap[child].key)) child++;
      if (!better(heap[child].key, e.key)) break;
      heap[i] = heap[child], i = child;
    }
    if (heap.size) heap[i] = e;
    return top;
  }
};

}  // namespace dynagrad
