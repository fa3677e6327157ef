// BLAS and LAPACK for compiled code: the functions that scipy carries, if `blas.py` found them, from which size on they
// are called, and what may go wrong in linear algebra. What they are called for, and the loops that do the same without
// them, are in products.hpp, factors.hpp and determinants.hpp.
#pragma once

#include <stdint.h>

#include <dynagrad/graphs/call.hpp>

namespace dynagrad::graphs {

inline Blas blas{};  // of this library

// From these sizes on BLAS is quicker than the loops here, with two threads; below, its threads wait for each other.
#if defined(__clang__)
inline constexpr int64_t kBlasProduct = 256 * 256 * 256;  // multiplications
#else
inline constexpr int64_t kBlasProduct = 16 * 16 * 16;  // it multiplies and adds in two steps
#endif
inline constexpr int64_t kBlasVector = 1024 * 512;        // elements of a matrix
inline constexpr int64_t kBlasRows = 1024;                // of matrices to be solved with
inline constexpr int64_t kBlasSymmetric = 192;            // of symmetric ones
inline constexpr int64_t kMostOfBlas = int64_t{1} << 30;  // it counts in 32 bits

}  // namespace dynagrad::graphs

namespace dynagrad {
DYNAGRAD_EXPORT void dg_blas(const Blas* table) { graphs::blas = *table; }
}  // namespace dynagrad
