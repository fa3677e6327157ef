// What the class of every program needs that Python calls: included first, and compiled once (`cache.py`).
#pragma once
#include "chart.hpp"
#include "cotangents.hpp"
#include "entry.hpp"

#if defined(DYNAGRAD_LINKED)
namespace dynagrad {
// Types that most programs have, so that they are known.
template <class S>
constexpr size_t usual = sizeof(Relation<Facts<0>, S>) + sizeof(Dense<S, 0>) + sizeof(Dense<S, 1>) +
                         sizeof(Dense<S, 2>) + sizeof(Dense<S, 3>) + sizeof(Tape<S>);
static_assert(usual<Log> + usual<Real> + usual<Viterbi> + usual<Tropical> > 0);
static_assert(sizeof(Facts<1>) + sizeof(Facts<2>) + sizeof(Facts<3>) + sizeof(Facts<4>) > 0);
}  // namespace dynagrad
#endif
