// What every compiled graph includes, in one: for compilers that keep what they have read.
#pragma once
#include <dynagrad/graphs/call.hpp>
#include <dynagrad/graphs/vector.hpp>
#include <dynagrad/graphs/vectors.hpp>
#include <dynagrad/calls/python.hpp>
