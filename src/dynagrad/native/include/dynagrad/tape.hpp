// What a run remembers so that it can be differentiated backward, and the backward twin of the row operation.
//
// The life of a tape: every pop enters the item's handle. That is all as long as each item is popped once from nothing:
// its update is then the value that it has. An item that is popped again enters what it had and what it got, too. Where
// plus selects, `from` says at which pop the update was made that the item was popped with. The backward pass walks the
// tape from its end; it never changes it, so the chart may be run on afterwards.
#pragma once
#include "chart.hpp"

#define DYNAGRAD_TAPE  // the functions of abi.hpp that need one

namespace dynagrad {

constexpr uint32_t nowhere = 0xFFFFFFFF;  // the place of no pop

template <class S>
struct Tape {
  using Value = typename S::Value;
  struct Saved { Value old, update; };
  static constexpr Handle again = (Handle)1 << 63;  // the item had been popped before
  Array<Handle> pops;
  Array<Saved> saved;          // of pops with `again`, in order
  Array<uint32_t> from;        // where plus selects: of each pop, the pop that its update came from
  Array<int64_t> begins;       // of each stage that began, the pops before it

  explicit Tape(Account* a) : pops(a), saved(a), from(a), begins(a) {}

  int64_t bytes() const {
    return pops.size * (int64_t)sizeof(Handle) + saved.size * (int64_t)sizeof(Saved) + from.size * 4 +
           begins.size * 8;
  }
  // The end of the pops of a stage.
  int64_t end(int64_t stage) const { return stage + 1 < begins.size ? begins[stage + 1] : pops.size; }
};

// An entry of an array that grows with a hash table.
template <class T>
inline T& grown(Array<T>& array, int64_t cell, T otherwise) {
  if (__builtin_expect(cell >= array.size, 0)) array.resize(cell + cell / 2 + 64, otherwise);
  return array[cell];
}

// The backward twin of add_row, for doubles: the row of `from` at cell a has the adjoints gx, that of `to` at cell b gy.
// Adds weight * gy to gx and returns the adjoint of the weight, the sum of x * gy. Entries that are not derived hold
// zero; what reaches their adjoints is never looked at.
template <class From, class To>
DYNAGRAD_INLINE double back_row(const From& from, int64_t a, double* gx, const To& to, int64_t b, const double* gy,
                                int64_t shift, double weight) {
  (void)to;
  const int64_t length = from.row_length();
  double dot = 0;
  if (__builtin_expect(shift != 0, 0)) {
    for (int64_t i = from.popped.next(a, a + length); i >= 0; i = from.popped.next(i + 1, a + length)) {
      const double g = gy[b + (i - a) + shift];
      gx[i] += weight * g;
      dot += from.value[i] * g;
    }
    return dot;
  }
  double sum[8] = {0};
  for (int64_t base = 0; base < length; base += 64) {
    const uint64_t there = from.popped.word(a + base, length - base);
    if (!there) continue;
    const int64_t end = base + 64 - __builtin_clzll(there);
    const int64_t begin = base + __builtin_ctzll(there);
    const double* __restrict x = from.value.data + a;
    const double* __restrict g = gy + b;
    double* __restrict y = gx + a;
    if (end - begin <= 2) {
      for (int64_t i = begin; i < end; i++) y[i] += weight * g[i], dot += x[i] * g[i];
      continue;
    }
    for (int64_t i = begin & ~7; i < end; i += 8)  // rows are padded to eight cells
      for (int64_t j = 0; j < 8; j++) y[i + j] += weight * g[i + j], sum[j] += x[i + j] * g[i + j];
  }
  return dot + ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

}  // namespace dynagrad
