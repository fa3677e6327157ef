// The entry of a program (`outside/entry.hpp`), by which the functions that Python calls reach it: included at the end of
// generated code, which defines `program`, a class derived from ChartBase. The functions are in `outside/runtime.hpp`.
#pragma once
#include <dynagrad/outside/entry.hpp>

constinit const dynagrad::Entry dynagrad_entry = dynagrad::Entries<program, semiring>::entry();
#ifndef DYNAGRAD_LINKED
#include <dynagrad/outside/runtime.hpp>
#endif
