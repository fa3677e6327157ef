// The object that all programs which solve components are linked with, see `base/linked.hpp`.
#pragma once
#include <dynagrad/solving/ground.hpp>
#include <dynagrad/solving/linear.hpp>
