// BLAS and LAPACK for compiled code: the functions that scipy carries, if `blas.py` found them, from which size on they
// are called, and what may go wrong in linear algebra. What they are called for, and the loops that do the same without
// them, are in products.hpp, factors.hpp and determinants.hpp.
#pragma once

#include <stdint.h>

#include <dynagrad/graphs/call.hpp>

namespace dynagrad::graphs {

// BLAS and LAPACK as Fortran has them, with whole numbers of 32 bits; in the order of blas.py. All are null, or none.
struct Blas {
    void (*gemm)(const char* ta, const char* tb, const int* m, const int* n, const int* k, const double* alpha,
                 const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
                 const int* ldc);
    void (*gemv)(const char* t, const int* m, const int* n, const double* alpha, const double* a, const int* lda,
                 const double* x, const int* incx, const double* beta, double* y, const int* incy);
    void (*getrf)(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info);
    void (*getrs)(const char* t, const int* n, const int* count, const double* a, const int* lda, const int* pivots,
                  double* b, const int* ldb, int* info);
    void (*getri)(const int* n, double* a, const int* lda, const int* pivots, double* work, const int* size, int* info);
    void (*potrf)(const char* triangle, const int* n, double* a, const int* lda, int* info);
};

inline Blas blas{};  // of this library

// Own numbers of status (the table is in blas.py): a matrix that cannot be divided by, one that has no Cholesky factor,
// and a derivative that does not exist.
inline constexpr int64_t kSingular = kFirstOwn;
inline constexpr int64_t kNotPositive = kFirstOwn + 1;
inline constexpr int64_t kNotDifferentiable = kFirstOwn + 2;

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

// Takes over the table, of so many bytes; false if that is not the one described here.
DYNAGRAD_EXPORT bool dg_blas(const dynagrad::graphs::Blas* table, int64_t bytes) {
    if (bytes != static_cast<int64_t>(sizeof(dynagrad::graphs::Blas))) return false;
    dynagrad::graphs::blas = *table;
    return true;
}
