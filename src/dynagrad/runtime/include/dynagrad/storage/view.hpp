// Tables as code outside of a program sees them: by the number of the predicate, without their types.
//
// What is read through them is in `storage/looking.hpp`.
#pragma once
#include <dynagrad/base/memory.hpp>

namespace dynagrad {

struct Table;
struct RelationBase;

// The range of one argument: values low .. low + count - 1.
struct Range {
  int32_t low = 0;
  int64_t count = 0;
};
// How the range of an argument follows from that of its domain: it begins and ends so much further up.
struct Extent {
  int32_t domain, below, above;
  Range of(const Range* domains) const {
    return {domains[domain].low + below, domains[domain].count + above - below};
  }
};

// Arrays are addresses, whose types only `ValueReader` knows. All is zero in one that is not used.
struct TableView {
  int32_t width;                // how many arguments
  Table* items;                 // of a predicate that is derived
  const int32_t* order;         // which argument is stored at each place of it
  const void* values;           // an Array, by cell
  const void* pending;          // another, of updates that wait, where those are apart
  const void* nothing;          // an update that is none
  const RelationBase* facts;    // the rows of a predicate, or those that are axioms of a derived one
  const void* view;             // the numbers of rows
  void* adjoints;               // arrays of adjoints: those that a pass back starts from,
  void* totals;                 // ... those that it ends with,
  void* axioms;                 // ... and those of rows
  const Array<double>* bounds;  // the error bounds of items whose components were solved
  int64_t differing;            // a row whose copies contradict, from 1; 0: there is none
  bool single;                  // ... as they may not be two, and not as they are too large together
  void* lent;                   // another, whose sums those of facts go on from
};

}  // namespace dynagrad
