// What all programs that solve components are linked with: see `linked.hpp`.
#pragma once
#include "ground.hpp"
#include "linear.hpp"
