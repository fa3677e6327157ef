// Products of matrices and vectors, for arrays in the order of C.
//
// What is small is done by loops here, as quickly as by BLAS and without the price of a call; what is large goes to
// BLAS, where there is one, and else to the same loops. A transposed operand is a flag, so nobody has to write one down.
// Nothing here fails, or needs memory.
#pragma once

#include <stdint.h>

#include <dynagrad/graphs/linalg/blas.hpp>

#if defined(__clang__)
#define DYNAGRAD_UNROLLED _Pragma("unroll")
#else
#define DYNAGRAD_UNROLLED _Pragma("GCC unroll 16")
#endif

namespace dynagrad::graphs {

// -- kernels ---------------------------------------------------------------------------------------------------------

#if defined(__AVX512F__)
inline constexpr int kLanes = 8, kTall = 8;
#else
inline constexpr int kLanes = 4, kTall = 4;
#endif
inline constexpr int kWide = 2 * kLanes, kDeep = 192;  // columns of a tile; how much of a panel is copied at a time

typedef double Lanes __attribute__((vector_size(sizeof(double) * kLanes)));
typedef double LooseLanes __attribute__((vector_size(sizeof(double) * kLanes), aligned(8), may_alias));

inline Lanes load(const double* p) { return *reinterpret_cast<const LooseLanes*>(p); }
inline void store(double* p, Lanes x) { *reinterpret_cast<LooseLanes*>(p) = x; }
inline Lanes spread(double x) {
    Lanes lanes;
    for (int i = 0; i < kLanes; ++i) lanes[i] = x;
    return lanes;
}
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
#if defined(__clang__)
    return __builtin_elementwise_fma(a, b, c);
#else
    return a * b + c;
#endif
}

// How a product is combined with what is there.
enum class Into { kWrite, kAdd, kSubtract };

// A tile of c: `kRows` rows and `2 kLanes` columns, for a with steps (ai, ak) and rows of b at a distance of ldb.
template <int kRows>
inline __attribute__((always_inline)) void tile(double* c, int64_t ldc, const double* a, int64_t ai, int64_t ak,
                                                const double* b, int64_t ldb, int64_t k, Into into) {
    Lanes sum[kRows][2] = {};
    for (int64_t p = 0; p < k; ++p) {
        const Lanes left = load(b + p * ldb), right = load(b + p * ldb + kLanes);
        DYNAGRAD_UNROLLED
        for (int r = 0; r < kRows; ++r) {
            const Lanes x = spread(a[r * ai + p * ak]);
            sum[r][0] = multiply_add(x, left, sum[r][0]);
            sum[r][1] = multiply_add(x, right, sum[r][1]);
        }
    }
    DYNAGRAD_UNROLLED
    for (int r = 0; r < kRows; ++r) {
        for (int h = 0; h < 2; ++h) {
            double* to = c + r * ldc + h * kLanes;
            if (into == Into::kWrite)
                store(to, sum[r][h]);
            else if (into == Into::kAdd)
                store(to, load(to) + sum[r][h]);
            else
                store(to, load(to) - sum[r][h]);
        }
    }
}

// All rows of a strip of 2 kLanes columns.
inline void strip(double* c, int64_t ldc, const double* a, int64_t ai, int64_t ak, const double* b, int64_t ldb,
                  int64_t m, int64_t k, Into into) {
    int64_t i = 0;
    for (; i + kTall <= m; i += kTall) tile<kTall>(c + i * ldc, ldc, a + i * ai, ai, ak, b, ldb, k, into);
    for (; i + 2 <= m; i += 2) tile<2>(c + i * ldc, ldc, a + i * ai, ai, ak, b, ldb, k, into);
    if (i < m) tile<1>(c + i * ldc, ldc, a + i * ai, ai, ak, b, ldb, k, into);
}

// c = a b, where element (i, p) of a stands at i ai + p ak, and element (p, j) of b at p bp + j bj.
inline __attribute__((noinline)) void product(double* c, int64_t ldc, const double* a, int64_t ai, int64_t ak,
                                              const double* b, int64_t bp, int64_t bj, int64_t m, int64_t k, int64_t n,
                                              Into into) {
    alignas(64) double panel[kDeep * kWide];
    alignas(64) double edge[kTall * kWide];
    if (k == 0 && into == Into::kWrite) {
        for (int64_t i = 0; i < m; ++i) fill(c + i * ldc, n, 0.0);
        return;
    }
    for (int64_t p = 0; p < k; p += kDeep) {
        const int64_t depth = k - p < kDeep ? k - p : kDeep;
        const Into how = into == Into::kWrite && p > 0 ? Into::kAdd : into;
        for (int64_t j = 0; j < n; j += kWide) {
            const int64_t width = n - j < kWide ? n - j : kWide;
            const double* from = b + p * bp + j * bj;
            int64_t ldb = bp;
            if (bj != 1 || width < kWide || m > 4 * kTall) {
                for (int64_t q = 0; q < depth; ++q) {
                    for (int64_t l = 0; l < width; ++l) panel[q * kWide + l] = from[q * bp + l * bj];
                    for (int64_t l = width; l < kWide; ++l) panel[q * kWide + l] = 0.0;
                }
                from = panel;
                ldb = kWide;
            }
            if (width == kWide) {
                strip(c + j, ldc, a + p * ak, ai, ak, from, ldb, m, depth, how);
                continue;
            }
            for (int64_t i = 0; i < m; i += kTall) {
                const int64_t height = m - i < kTall ? m - i : kTall;
                strip(edge, kWide, a + i * ai + p * ak, ai, ak, from, ldb, height, depth, Into::kWrite);
                for (int64_t r = 0; r < height; ++r) {
                    double* to = c + (i + r) * ldc + j;
                    const double* sum = edge + r * kWide;
                    if (how == Into::kWrite)
                        for (int64_t l = 0; l < width; ++l) to[l] = sum[l];
                    else if (how == Into::kAdd)
                        for (int64_t l = 0; l < width; ++l) to[l] += sum[l];
                    else
                        for (int64_t l = 0; l < width; ++l) to[l] -= sum[l];
                }
            }
        }
    }
}

// -- vectors ---------------------------------------------------------------------------------------------------------

inline double add_up(Lanes x) {
    double sum = 0.0;
    for (int i = 0; i < kLanes; ++i) sum += x[i];
    return sum;
}

// The sum of products of two vectors.
inline double dot(const double* a, const double* b, int64_t n) {
    Lanes s0 = {}, s1 = {}, s2 = {}, s3 = {};
    int64_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
        s0 = multiply_add(load(a + i), load(b + i), s0);
        s1 = multiply_add(load(a + i + kLanes), load(b + i + kLanes), s1);
        s2 = multiply_add(load(a + i + 2 * kLanes), load(b + i + 2 * kLanes), s2);
        s3 = multiply_add(load(a + i + 3 * kLanes), load(b + i + 3 * kLanes), s3);
    }
    for (; i + kLanes <= n; i += kLanes) s0 = multiply_add(load(a + i), load(b + i), s0);
    double sum = add_up((s0 + s1) + (s2 + s3));
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

inline void set(double& y, double x, Into into) { y = into == Into::kWrite ? x : into == Into::kAdd ? y + x : y - x; }

// y = a x for rows of a at a distance of lda: four rows at a time.
inline void rows_times(double* y, const double* a, int64_t lda, const double* x, int64_t m, int64_t n, Into into) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
        const double* r = a + i * lda;
        Lanes s[4] = {};
        int64_t j = 0;
        for (; j + kLanes <= n; j += kLanes) {
            const Lanes v = load(x + j);
            DYNAGRAD_UNROLLED
            for (int q = 0; q < 4; ++q) s[q] = multiply_add(load(r + q * lda + j), v, s[q]);
        }
        double t[4] = {add_up(s[0]), add_up(s[1]), add_up(s[2]), add_up(s[3])};
        for (; j < n; ++j)
            for (int q = 0; q < 4; ++q) t[q] += r[q * lda + j] * x[j];
        for (int q = 0; q < 4; ++q) set(y[i + q], t[q], into);
    }
    for (; i < m; ++i) set(y[i], dot(a + i * lda, x, n), into);
}

// y += x a (or -=), a row of a at a time, four of them together.
inline void times_rows(double* __restrict y, const double* x, const double* a, int64_t lda, int64_t m, int64_t n,
                       double sign) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
        const double* r = a + i * lda;
        const double x0 = sign * x[i], x1 = sign * x[i + 1], x2 = sign * x[i + 2], x3 = sign * x[i + 3];
        const Lanes v0 = spread(x0), v1 = spread(x1), v2 = spread(x2), v3 = spread(x3);
        int64_t j = 0;
        for (; j + kLanes <= n; j += kLanes) {
            Lanes s = multiply_add(v0, load(r + j), load(y + j));
            s = multiply_add(v1, load(r + lda + j), s);
            s = multiply_add(v2, load(r + 2 * lda + j), s);
            store(y + j, multiply_add(v3, load(r + 3 * lda + j), s));
        }
        for (; j < n; ++j) y[j] += (x0 * r[j] + x1 * r[lda + j]) + (x2 * r[2 * lda + j] + x3 * r[3 * lda + j]);
    }
    for (; i < m; ++i) {
        const double w = sign * x[i];
        for (int64_t j = 0; j < n; ++j) y[j] += w * a[i * lda + j];
    }
}

// y = a x, or a^T x; a has m rows and n columns as it is stored.
inline void matvec(double* y, const double* a, const double* x, int64_t m, int64_t n, bool transposed = false,
                   bool add = false) {
    if (blas.dgemv != nullptr && m * n >= kBlasVector && m < kMostOfBlas && n < kMostOfBlas) {
        const int rows = static_cast<int>(n), columns = static_cast<int>(m), one = 1;
        const double alpha = 1.0, beta = add ? 1.0 : 0.0;
        blas.dgemv(transposed ? "N" : "T", &rows, &columns, &alpha, a, &rows, x, &one, &beta, y, &one);
    } else if (transposed) {
        if (!add) fill(y, n, 0.0);
        times_rows(y, x, a, n, m, n, 1.0);
    } else {
        rows_times(y, a, n, x, m, n, add ? Into::kAdd : Into::kWrite);
    }
}

// -- matrices --------------------------------------------------------------------------------------------------------

// c = a b, where a is m by k and b is k by n; a flag says that one is stored as its transpose.
inline void matmul(double* c, const double* a, const double* b, int64_t m, int64_t k, int64_t n, bool ta = false,
                   bool tb = false, bool add = false) {
    if (n == 1) return ta ? matvec(c, a, b, k, m, true, add) : matvec(c, a, b, m, k, false, add);
    if (m == 1) return tb ? matvec(c, b, a, n, k, false, add) : matvec(c, b, a, k, n, true, add);
    if (blas.dgemm != nullptr && m * k * n >= kBlasProduct && m < kMostOfBlas && k < kMostOfBlas && n < kMostOfBlas) {
        const int rows = static_cast<int>(n), columns = static_cast<int>(m), depth = static_cast<int>(k);
        const double alpha = 1.0, beta = add ? 1.0 : 0.0;  // c^T = b^T a^T, in the order of Fortran
        blas.dgemm(tb ? "T" : "N", ta ? "T" : "N", &rows, &columns, &depth, &alpha, b, tb ? &depth : &rows, a,
                  ta ? &columns : &depth, &beta, c, &rows);
        return;
    }
    product(c, n, a, ta ? 1 : k, ta ? m : 1, b, tb ? 1 : n, tb ? k : 1, m, k, n, add ? Into::kAdd : Into::kWrite);
}

// The same for `count` of them; the operands are at these distances, 0 for one that is shared.
inline void matmul(int64_t count, double* c, const double* a, int64_t step_a, const double* b, int64_t step_b, int64_t m,
                   int64_t k, int64_t n, bool ta = false, bool tb = false, bool add = false) {
    if (step_b == 0 && step_a == m * k && !ta) return matmul(c, a, b, count * m, k, n, false, tb, add);
    for (int64_t i = 0; i < count; ++i) matmul(c + i * m * n, a + i * step_a, b + i * step_b, m, k, n, ta, tb, add);
}

inline void transpose(double* __restrict out, const double* a, int64_t rows, int64_t columns) {
    constexpr int64_t kSide = 16;
    for (int64_t i = 0; i < rows; i += kSide)
        for (int64_t j = 0; j < columns; j += kSide)
            for (int64_t r = i; r < i + kSide && r < rows; ++r)
                for (int64_t s = j; s < j + kSide && s < columns; ++s) out[s * rows + r] = a[r * columns + s];
}

#undef DYNAGRAD_UNROLLED

}  // namespace dynagrad::graphs
