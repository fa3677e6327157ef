// The packed forest of an item's derivations in flat arrays, as the class of a program collects it from a chart.
//
// Nodes are items: a handle each, in the order in which they were reached. The instances of a node stand side by side,
// and so do the antecedents of an instance, which are nodes. Given facts are instances too, one for each row that was
// given, without antecedents. An antecedent n that only asks whether its item is derived stands as ~n; an item that
// nothing else reaches is not opened.
#pragma once
#include <dynagrad/running/agenda.hpp>
#include <dynagrad/storage/facts.hpp>

namespace dynagrad {

// Where the copies of each row of a fact table were given.
struct GivenRows {
  Array<uint32_t> begin, given;
  DYNAGRAD_ALWAYS explicit GivenRows(Account* a) : begin(a), given(a) {}
  DYNAGRAD_ALWAYS ~GivenRows() {}
  DYNAGRAD_ONCE void build(const FactTable& facts) {
    if (begin.size) return;
    Array<uint32_t> at;
    begin.zeros(facts.rows + 2), given.zeros(facts.given + 1);
    for (int64_t g = 0; g < facts.given; g++) begin[facts.row_of[g] + 2]++;
    for (int64_t r = 0; r <= facts.rows; r++) begin[r + 1] += begin[r];
    for (int64_t g = 0; g < facts.given; g++) given[begin[facts.row_of[g] + 1]++] = (uint32_t)g;
  }
};

struct Collected {
  Array<Handle> item;             // of a node
  Array<uint32_t> begin, end;     // its instances
  Array<uint8_t> opened;
  Array<uint32_t> queue;          // nodes to be opened, and those that were
  Array<int32_t> rule;            // of an instance; of a given fact -1 - its place in `given`
  Array<uint32_t> first;          // of its antecedents; and one more, where the last of them end
  Array<int32_t> antecedent;
  Array<uint32_t> given;          // the row of each instance that is a given fact
  int64_t instances = 0, antecedents = 0, most = INT64_MAX;
  bool sides = false;             // antecedents that only have to be derived are opened, too
  bool counting = false;          // nothing is kept of instances but how many there are

  DYNAGRAD_ALWAYS explicit Collected(Account* a = nullptr)
      : item(a), begin(a), end(a), opened(a), queue(a), rule(a), first(a), antecedent(a), given(a) {}
  DYNAGRAD_ALWAYS ~Collected() {}

  DYNAGRAD_ONCE void start(int64_t limit, int64_t how) {
    item.clear(), begin.clear(), end.clear(), opened.clear(), queue.clear(), rule.clear(), first.clear();
    antecedent.clear(), given.clear();
    instances = antecedents = 0, most = limit, counting = (how & kCounts) != 0, sides = (how & kSides) != 0;
  }
  // Everything goes from one to the other.
  DYNAGRAD_ONCE void swap(Collected& other) {
    item.swap(other.item), begin.swap(other.begin), end.swap(other.end), opened.swap(other.opened);
    queue.swap(other.queue), rule.swap(other.rule), first.swap(other.first), antecedent.swap(other.antecedent);
    given.swap(other.given);
  }
  DYNAGRAD_ALWAYS bool full() const { return instances >= most; }   // there is no room for one more
  DYNAGRAD_ALWAYS bool over() const { return instances > most; }
  DYNAGRAD_ONCE int32_t fresh(uint32_t table, int64_t at) {
    item.push(handle(table, at)), begin.push(0), end.push(0), opened.push(0);
    return (int32_t)item.size;
  }
  DYNAGRAD_ALWAYS int32_t node(Array<int32_t>& nodes, uint32_t table, int64_t at) {
    int32_t& n = nodes[at];
    if (__builtin_expect(!n, 0)) n = fresh(table, at);
    return n - 1;
  }
  DYNAGRAD_ALWAYS int32_t open(int32_t n) {
    if (__builtin_expect(!opened[n], 0)) opened[n] = 1, queue.push((uint32_t)n);
    return n;
  }
  // An antecedent that only has to be derived: its own derivations are looked at only by who asks for them.
  DYNAGRAD_ALWAYS int32_t side(int32_t n) { return ~(sides ? open(n) : n); }
  DYNAGRAD_ONCE void instance(int32_t number, const int32_t* of, int64_t n) {
    instances++, antecedents += n;
    if (counting) return;
    rule.push(number), first.push((uint32_t)antecedent.size);
    if (antecedent.size + n > antecedent.capacity) antecedent.grow(antecedent.size + n);
    for (int64_t i = 0; i < n; i++) antecedent.data[antecedent.size + i] = of[i];
    antecedent.size += n;
  }
  DYNAGRAD_ONCE void given_row(uint32_t row) {
    instances++;
    if (counting) return;
    rule.push(-1 - (int32_t)given.size), first.push((uint32_t)antecedent.size), given.push(row);
  }
  // A fact, once for each copy of it.
  DYNAGRAD_ONCE void fact(const FactTable& facts, GivenRows& copies, int64_t row) {
    if (facts.in_order) return given_row((uint32_t)row);
    copies.build(facts);
    for (uint32_t i = copies.begin[row]; i < copies.begin[row + 1]; i++) given_row(copies.given[i]);
  }
};

}  // namespace dynagrad
