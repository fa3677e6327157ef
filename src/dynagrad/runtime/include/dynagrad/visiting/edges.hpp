// The ground program of a block, while it is explored: an edge to the head of an instance from each of its antecedents
// that are in the block.
#pragma once
#include <dynagrad/solving/blocks.hpp>
#include <dynagrad/visiting/found.hpp>

namespace dynagrad {

// `ordered` says whether items of a stage have levels, so that a head may be on another one.
template <class Program, bool ordered>
struct Edges : Nothing<Edges<Program, ordered>> {
  static constexpr bool facts = false;
  Program& program;
  Block& block;
  const uint32_t from;  // the node of the driver

  DYNAGRAD_ALWAYS Edges(Program& p, Block& b, uint32_t node) : program(p), block(b), from(node) {}
  template <class Found, class Head, class... A>
  DYNAGRAD_ALWAYS void end(const Found& found, Head& table, A... a) const {
    const uint32_t head = node_of(program, table, a...);
    if (!head) {
      if constexpr (ordered) block.leave(from);
      return;
    }
    block.edge(from, head);
    found.each([&]<int I, class T>(Nth<I>, T& other, int64_t cell) DYNAGRAD_LAMBDA {
      if constexpr (T::stage == Head::stage)
        if (const uint32_t node = grown(other.node, cell, 0u); block.has(node)) block.edge(node, head);
    });
  }
};

}  // namespace dynagrad
