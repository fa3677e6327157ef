// The ground program of a block of items: a dependency graph, found at run time, and its components in order.
//
// Items are `reached`, first those with a contribution, then the heads of rules from them; each instance of a rule adds
// an edge from each of its antecedents to its head; `arrange` finds the strongly connected components (Tarjan 1972) and
// puts them in topological order; items are then popped component by component. Values are not used here. Items are
// local numbers in the order in which they were reached, so that the same facts give the same order.
#pragma once
#include <dynagrad/running/chart.hpp>

namespace dynagrad {

struct Block {
  struct Component { int64_t begin; bool cyclic; };   // it ends where the next one begins
  Array<Handle> items;
  Array<uint32_t> order;             // local numbers, component by component, antecedents first
  Array<Component> components;
  int64_t base = 0;                  // of the numbers that are kept with items: local number + base + 1, in 32 bits,
                                     // which do for four billion items of a stage
  int64_t explored = 0;              // items whose rules were gone through
  int64_t at = 0;                    // components that are done
  bool open = false, arranged = false;
  bool keeps_edges = false;          // beyond `arrange`

  explicit Block(Account* a) : items(a), order(a), components(a), from_(a), to_(a), begin_(a), leads_out_(a) {
    auto& [start, next, loop, stack, open_nodes, index, low, turned, starts] = work_;
    start.account = starts.account = next.account = loop.account = stack.account = a;
    open_nodes.account = index.account = low.account = turned.account = a;
  }

  void begin() {
    base += items.size;
    items.clear(), order.clear(), components.clear(), from_.clear(), to_.clear(), begin_.clear(), leads_out_.clear();
    in_order_ = true;
    explored = at = 0;
    open = true, arranged = false;
  }
  bool has(uint32_t node) const { return (int64_t)node > base; }
  // The number of an item, from the one that is kept with it; the item is new to the block where `has` says no.
  uint32_t reach(uint32_t& node, Handle item) {
    if (!has(node)) {
      items.push(item);
      node = (uint32_t)(base + items.size);
    }
    return node;
  }
  DYNAGRAD_ONCE_SOLVED void edge(uint32_t antecedent, uint32_t head) {
    const int64_t from = (int64_t)antecedent - base - 1;
    if (in_order_) {
      while (begin_.size <= from) begin_.push(to_.size);
      if (from + 1 < begin_.size) by_edge();
    }
    if (!in_order_) from_.push((uint32_t)from);
    to_.push((uint32_t)(head - base - 1));
  }
  // Rules lead from an item to another level.
  void leave(uint32_t antecedent) {
    while (leads_out_.size < items.size) leads_out_.push(0);
    leads_out_[(int64_t)antecedent - base - 1] = 1;
  }
  // Whether rules lead from an item, by its local number, out of its component: to another one, or another level.
  bool leads_out(uint32_t node) const { return leads_out_[node]; }
  bool leads_out_at(uint32_t node) const { return leads_out_[(int64_t)node - base - 1]; }  // ... by the number it keeps
  int64_t edges() const { return to_.size; }
  // Forgets the edges of an item that was only partly explored.
  void back_to(int64_t edges) {
    to_.size = edges;
    if (!in_order_) from_.size = edges;
  }

  int64_t end(int64_t component) const {
    return component + 1 < components.size ? components[component + 1].begin : order.size;
  }
  bool done() const { return !open || (arranged && at == components.size); }

  DYNAGRAD_ONCE_SOLVED void arrange() {
    const int64_t n = items.size, m = to_.size;
    arranged = true;
    heads_ = nullptr;
    while (leads_out_.size < n) leads_out_.push(0);
    if (!m) {
      memset(leads_out_.data, 1, n);
      for (int64_t i = 0; i < n; i++) order.push((uint32_t)i), components.push({i, false});
      return;
    }
    auto& [start, next, loop, stack, open_nodes, index, low, turned, starts] = work_;
    start.wipe(n + 2), loop.wipe(n), index.wipe(n), low.wipe(n);
    stack.clear(), open_nodes.clear(), turned.clear(), starts.clear();
    const uint32_t* heads = to_.data;
    if (in_order_) {
      while (begin_.size <= n) begin_.push(m);
      memcpy((void*)start.data, (const void*)begin_.data, (n + 1) * sizeof(int64_t));
    } else {
      next.raw(m);
      for (int64_t e = 0; e < m; e++) start[from_[e] + 2]++;
      for (int64_t i = 0; i < n; i++) start[i + 1] += start[i];
      for (int64_t e = 0; e < m; e++) next[start[from_[e] + 1]++] = to_[e];  // and now they start where they should
      heads = next.data;
    }
    for (int64_t i = 0; i < n; i++)
      for (int64_t e = start[i]; e < start[i + 1] && !loop[i]; e++) loop[i] = heads[e] == i;
    // Components come out heads first; they are numbered from the last.
    uint32_t count = 0;
    constexpr uint32_t closed = 0xFFFFFFFF;
    for (int64_t root = 0; root < n; root++) {
      if (index[root]) continue;
      stack.push({(uint32_t)root, start[root]});
      index[root] = low[root] = ++count;
      open_nodes.push((uint32_t)root);
      while (stack.size) {
        Frame& top = stack[stack.size - 1];
        const uint32_t v = top.node;
        if (top.edge < start[v + 1]) {
          const uint32_t w = heads[top.edge++];
          if (!index[w]) {
            index[w] = low[w] = ++count;
            open_nodes.push(w);
            stack.push({w, start[w]});
          } else if (index[w] != closed && index[w] < low[v]) {
            low[v] = index[w];
          }
          continue;
        }
        stack.size--;
        if (stack.size && low[v] < low[stack[stack.size - 1].node]) low[stack[stack.size - 1].node] = low[v];
        if (low[v] != index[v]) continue;
        starts.push(turned.size);
        for (uint32_t w = closed; w != v;) {
          w = open_nodes[--open_nodes.size];
          index[w] = closed;
          turned.push(w);
        }
      }
    }
    order.reserve(n);
    for (int64_t c = starts.size, end = n; c-- > 0; end = starts[c]) {
      const bool cyclic = end - starts[c] > 1 || loop[turned[starts[c]]];
      components.push({order.size, cyclic});
      for (int64_t i = end; i-- > starts[c];) {
        order.push(turned[i]);
        low[turned[i]] = (uint32_t)c;
        if (!cyclic) leads_out_[turned[i]] = 1;
      }
    }
    for (int64_t i = 0; i < n; i++)
      for (int64_t e = start[i]; e < start[i + 1] && !leads_out_[i]; e++) leads_out_[i] = low[heads[e]] != low[i];
    heads_ = heads;
    if (m > 1 << 16 && !keeps_edges) from_.release(), to_.release(), heads_ = nullptr;
  }
  // The items that one leads to, by its local number, where edges are kept.
  template <class F>
  void for_heads(uint32_t node, F&& f) const {
    if (!heads_) return;
    for (int64_t e = work_.start[node]; e < work_.start[node + 1]; e++) f(items[heads_[e]]);
  }

 private:
  struct Frame { uint32_t node; int64_t edge; };
  struct Work {
    Array<int64_t> start;
    Array<uint32_t> next;
    Array<uint8_t> loop;
    Array<Frame> stack;
    Array<uint32_t> open_nodes, index, low, turned;
    Array<int64_t> starts;
  };
  // Where edges come by their antecedents, those of an item begin at `begin_`; else each has its antecedent in `from_`.
  Array<uint32_t> from_, to_;
  Array<int64_t> begin_;
  const uint32_t* heads_ = nullptr;  // of all edges, by antecedent
  Array<uint8_t> leads_out_;
  bool in_order_ = true;

  DYNAGRAD_ONCE_SOLVED void by_edge() {
    for (int64_t i = 0; i < begin_.size; i++)
      for (int64_t e = begin_[i]; e < (i + 1 < begin_.size ? begin_[i + 1] : to_.size); e++) from_.push((uint32_t)i);
    in_order_ = false;
  }
  Work work_;  // of `arrange`, kept from block to block
};

}  // namespace dynagrad
