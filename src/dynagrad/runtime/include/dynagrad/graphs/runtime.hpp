// What every compiled graph is linked with, as one object that is compiled once (see `linked.hpp`).
#pragma once
#if defined(__clang__)
#pragma clang fp contract(fast)  // as in compiled graphs
#endif
#include "../builtins.hpp"
#include "prelude.hpp"
