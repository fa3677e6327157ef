// What every compiled graph is linked with, as one object that is compiled once (see `base/linked.hpp`).
#pragma once
#if defined(__clang__)
#pragma clang fp contract(fast)  // as in compiled graphs
#endif
#include <dynagrad/base/builtins.hpp>
#include <dynagrad/graphs/prelude.hpp>
