// The derivations of items: each instance of a rule is entered into a forest, with the nodes of its antecedents.
#pragma once
#include <dynagrad/running/collected.hpp>
#include <dynagrad/visiting/found.hpp>

namespace dynagrad {

// A `Rule` has its number, how many antecedents it has, and says which of them only have to be derived.
template <class Program, class Rule>
struct Collect : Nothing<Collect<Program, Rule>> {
  static constexpr bool facts = true;
  Program& program;

  DYNAGRAD_ALWAYS explicit Collect(Program& p) : program(p) {}
  template <class Found, class Head, class... A>
  DYNAGRAD_ALWAYS void end(const Found& found, Head&, A...) const {
    Collected& collected = program.collected;
    if (collected.full()) {
      program.stop(at_items);
      return;
    }
    int32_t of[Rule::antecedents + 1];
    // nodes get their numbers in the order of the rule
    for (int i = 0; i < Rule::antecedents; i++)
      found.each([&]<int I, class T>(Nth<I>, T& table, int64_t at) DYNAGRAD_LAMBDA {
        if (I != i) return;
        const int32_t node = collected.node(table.nodes, T::number, at);
        of[i] = Rule::closed[i] ? collected.side(node) : collected.open(node);
      });
    collected.instance(Rule::number, of, Rule::antecedents);
  }
};

}  // namespace dynagrad
