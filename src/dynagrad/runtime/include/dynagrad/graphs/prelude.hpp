// What every compiled graph includes, in one: for compilers that keep what they have read.
#pragma once
#include "call.hpp"
#include "vector.hpp"
#include "vectors.hpp"
#include "../python.hpp"
