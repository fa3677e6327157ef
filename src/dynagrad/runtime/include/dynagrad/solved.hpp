// The object that all programs which solve components are linked with, see `linked.hpp`.
#pragma once
#include "ground.hpp"
#include "linear.hpp"
