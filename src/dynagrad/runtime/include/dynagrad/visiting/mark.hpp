// A change of facts: the heads of all instances that something marked is part of are marked, too.
#pragma once
#include <dynagrad/visiting/found.hpp>

namespace dynagrad {

// `creates` says whether a head may be one that is not there yet.
template <class Program, bool creates>
struct Mark : Nothing<Mark<Program, creates>> {
  static constexpr bool facts = false;
  Program& program;

  DYNAGRAD_ALWAYS explicit Mark(Program& p) : program(p) {}
  template <int I, class T>
  DYNAGRAD_ALWAYS const Mark& item(Nth<I>, T&, int64_t) const { return *this; }
  DYNAGRAD_ALWAYS bool differs(int64_t, int64_t) const { return true; }
  template <class... A>
  DYNAGRAD_ALWAYS int32_t made(Terms& terms, A... a) const {
    if constexpr (creates) return terms.make(a...);
    else return terms.find(a...);
  }
  template <class Found, class Head, class... A>
  DYNAGRAD_ALWAYS void end(const Found&, Head& table, A... a) const { program.mark(table, a...); }
};

}  // namespace dynagrad
