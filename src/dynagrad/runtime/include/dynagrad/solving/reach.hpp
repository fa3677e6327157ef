// Reachability in a system of equations: the unknowns that are nonzero, from those with constants, forward.
//
// Components of the ground program, and the order of their items, are found by `solving/ground.hpp`.
#pragma once
#include <dynagrad/base/memory.hpp>

namespace dynagrad {

// From the unknowns whose flags are set to the heads of instances all of whose unknowns have theirs set, and on from there,
// if `passes` says so of the instance that gets there first.
template <class Instance, class Passes>
inline void reach(const Array<Instance>& instances, Array<uint8_t>& flags, Passes passes) {
  constexpr int K = sizeof(Instance::of) / sizeof(uint32_t);
  constexpr uint32_t none = 0xFFFFFFFF;
  const int64_t n = flags.size;
  Array<int64_t> start, users, at;  // instances by the unknowns that they wait for
  Array<uint8_t> waiting;
  start.zeros(n + 2), waiting.zeros(instances.size);
  for (int64_t t = 0; t < instances.size; t++)
    for (int k = 0; k < K; k++)
      if (instances[t].of[k] != none) start[instances[t].of[k] + 1]++, waiting[t]++;
  for (int64_t i = 0; i < n; i++) start[i + 1] += start[i];
  at.copy(start);
  users.zeros(start[n]);
  for (int64_t t = 0; t < instances.size; t++)
    for (int k = 0; k < K; k++)
      if (instances[t].of[k] != none) users[at[instances[t].of[k]]++] = t;
  Array<uint32_t> reached;
  for (int64_t i = 0; i < n; i++)
    if (flags[i]) reached.push((uint32_t)i);
  for (int64_t r = 0; r < reached.size; r++)
    for (int64_t u = start[reached[r]]; u < start[reached[r] + 1]; u++) {
      const Instance& t = instances[users[u]];
      if (--waiting[users[u]] || flags[t.head] || !passes(t)) continue;
      flags[t.head] = 1, reached.push(t.head);
    }
}

}  // namespace dynagrad
