// The state of items that an incremental update removes from the chart and may put back.
//
// Which items these are, and how they are recomputed, is in generated code (`codegen/rules/incremental/resolving.py`).
#pragma once
#include <dynagrad/running/agenda.hpp>

namespace dynagrad {

// An item as it was before the change, and its bound, see `bound_...` in generated code.
template <class Value>
struct Former {
  Handle item;
  Value value;
  double bound;
  bool there;
};

// Flags of items that a change reaches.
enum Reached : uint8_t {
  reached_change = 1,  // what the item is made of changed, and it waits for its turn or has it
  reached_block = 2,   // the item belongs to the block at hand
};

// The place of an item whose value is known, so that nothing is to be added to it; no component has so many items.
constexpr uint32_t kept_place = 0xFFFFFFF0;

}  // namespace dynagrad
