// What every compiled graph is linked with, as one object that is compiled once (see `linked.hpp`).
#pragma once
#include "../builtins.hpp"
#include "prelude.hpp"
