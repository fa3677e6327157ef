// The interface between the functions that Python calls and a program: constructors and methods, as function pointers.
#pragma once
#include "chart.hpp"
#include "collected.hpp"

namespace dynagrad {

// Null: this library has no such thing, and functions that would call it may not be called.
struct Entry {
  int64_t size;  // bytes of a chart
  FactTable* (*facts_new)(int64_t table, Failure&);
  void* (*weights_new)(Failure&);
  void (*weights_free)(void* weights);
  void (*weigh)(int64_t table, const FactTable*, const uint64_t* words, void* weights);
  ChartBase* (*chart_new)(Failure&, World*, FactTable* const* facts, void* const* weights, const uint64_t* constants);
  void (*chart_free)(ChartBase*);
  void (*run)(ChartBase*);
  int64_t (*locate)(ChartBase*, int64_t table, const int32_t* arguments);
  // changes of facts
  void (*change)(ChartBase*, int64_t phase, int64_t table, const int32_t* rows, const uint64_t* words, int64_t n);
  void (*swap)(ChartBase*, int64_t table, const FactTable* facts, const void* weights, int64_t settled);
  bool (*restore)(ChartBase*, int64_t table, const int32_t* rows, const uint64_t* words, const double* bounds, int64_t n);
  // components that were solved
  int64_t (*bounds)(const ChartBase*, int64_t table, double* found, int64_t room);
  // differentiation
  void (*adjoints)(ChartBase*, bool room);
  int64_t (*seed)(ChartBase*, int64_t table, const int32_t* arguments, const uint64_t* cotangent, int64_t whole);
  int64_t (*backward)(ChartBase*);
  int64_t (*adjoint)(const ChartBase*, int64_t table, const int32_t* arguments, uint64_t* words, int64_t whole);
  int64_t (*adjoints_of_items)(const ChartBase*, int64_t table, uint64_t* words, int64_t room);
  void (*adjoints_of_rows)(const ChartBase*, int64_t table, const uint64_t* given, uint64_t* words);
  const Array<Handle>* (*pops)(const ChartBase*);
  // derivations
  void (*collect)(ChartBase*, int64_t table, const int32_t* arguments, int64_t most, int64_t how);
  Collected* (*collected)(ChartBase*);
};

}  // namespace dynagrad

extern "C" __attribute__((visibility("hidden"))) const dynagrad::Entry dynagrad_entry;  // that of this library's program
