// Products of matrices and linear equations, for arrays in the order of C.
//
// What is small is done by loops here, as quickly as by BLAS and without the price of a call; what is large goes to the
// BLAS and LAPACK that scipy carries, if `blas.py` found them, and else to the same loops. A transposed operand is a
// flag, so nobody has to write one down. Functions that may fail return a status of body.hpp. Memory that they work in
// comes from the call.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "call.hpp"

#if defined(__clang__)
#define DYNAGRAD_UNROLLED _Pragma("unroll")
#else
#define DYNAGRAD_UNROLLED _Pragma("GCC unroll 16")
#endif

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
    if (blas.gemv != nullptr && m * n >= kBlasVector && m < kMostOfBlas && n < kMostOfBlas) {
        const int rows = static_cast<int>(n), columns = static_cast<int>(m), one = 1;
        const double alpha = 1.0, beta = add ? 1.0 : 0.0;
        blas.gemv(transposed ? "N" : "T", &rows, &columns, &alpha, a, &rows, x, &one, &beta, y, &one);
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
    if (blas.gemm != nullptr && m * k * n >= kBlasProduct && m < kMostOfBlas && k < kMostOfBlas && n < kMostOfBlas) {
        const int rows = static_cast<int>(n), columns = static_cast<int>(m), depth = static_cast<int>(k);
        const double alpha = 1.0, beta = add ? 1.0 : 0.0;  // c^T = b^T a^T, in the order of Fortran
        blas.gemm(tb ? "T" : "N", ta ? "T" : "N", &rows, &columns, &depth, &alpha, b, tb ? &depth : &rows, a,
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

// -- factors ---------------------------------------------------------------------------------------------------------

inline constexpr int64_t kBlock = 32;

// Solves with the unit lower triangle of l (n by n) for rows b of length m, in place.
inline void lower_solve(const double* l, int64_t ldl, double* b, int64_t ldb, int64_t n, int64_t m) {
    for (int64_t start = 0; start < n; start += kBlock) {
        const int64_t end = start + kBlock < n ? start + kBlock : n;
        if (start > 0) {
            const double* block = l + start * ldl;
            if (m == 1)
                rows_times(b + start, block, ldl, b, end - start, start, Into::kSubtract);
            else
                product(b + start * ldb, ldb, block, ldl, 1, b, ldb, 1, end - start, start, m, Into::kSubtract);
        }
        for (int64_t i = start + 1; i < end; ++i)
            times_rows(b + i * ldb, l + i * ldl + start, b + start * ldb, ldb, i - start, m, -1.0);
    }
}

// The same with the upper triangle.
inline void upper_solve(const double* u, int64_t ldu, double* b, int64_t ldb, int64_t n, int64_t m) {
    for (int64_t end = n; end > 0; end = (end - 1) / kBlock * kBlock) {
        const int64_t start = (end - 1) / kBlock * kBlock;
        if (end < n) {
            const double* block = u + start * ldu + end;
            if (m == 1)
                rows_times(b + start, block, ldu, b + end, end - start, n - end, Into::kSubtract);
            else
                product(b + start * ldb, ldb, block, ldu, 1, b + end * ldb, ldb, 1, end - start, n - end, m,
                        Into::kSubtract);
        }
        for (int64_t i = end - 1; i >= start; --i) {
            times_rows(b + i * ldb, u + i * ldu + i + 1, b + (i + 1) * ldb, ldb, end - i - 1, m, -1.0);
            const double d = u[i * ldu + i];
            for (int64_t j = 0; j < m; ++j) b[i * ldb + j] /= d;
        }
    }
}

// Which columns of some rows are not zero: all from `first` to `last`.
struct Columns {
    int64_t first, last;

    void add(const double* row, int64_t m) {
        int64_t j = 0;
        while (j < first && row[j] == 0.0) ++j;
        if (j < first) first = j;
        for (j = m; j > last && row[j - 1] == 0.0;) --j;
        if (j > last) last = j;
    }
};

// Solves with a triangle of n by n for rows b of length m, in place. Element (i, k) of the triangle stands at
// i ti + k tk, so that a transposed one is no other; `forward` says that it is a lower one, `unit` that its diagonal is.
// Where b is a triangle too, so is the result, and its zeros are not computed.
inline void triangle_solve(const double* t, int64_t ti, int64_t tk, bool forward, bool unit, double* b, int64_t n,
                           int64_t m) {
    const int64_t blocks = (n + kBlock - 1) / kBlock;
    Columns columns{m, 0};
    for (int64_t at = 0; at < blocks; ++at) {
        const int64_t start = (forward ? at : blocks - 1 - at) * kBlock;
        const int64_t end = start + kBlock < n ? start + kBlock : n;
        const int64_t known = forward ? 0 : end, count = forward ? start : n - end;
        if (count > 0 && columns.first < columns.last)
            product(b + start * m + columns.first, m, t + start * ti + known * tk, ti, tk,
                    b + known * m + columns.first, m, 1, end - start, count, columns.last - columns.first,
                    Into::kSubtract);
        for (int64_t i = start; i < end; ++i) columns.add(b + i * m, m);
        for (int64_t step = 0; step < end - start; ++step) {
            const int64_t i = forward ? start + step : end - 1 - step;
            double* row = b + i * m;
            const int64_t from = forward ? start : i + 1, known_here = (forward ? i : end) - from;
            double w[kBlock];
            for (int64_t k = 0; k < known_here; ++k) w[k] = t[i * ti + (from + k) * tk];
            times_rows(row + columns.first, w, b + from * m + columns.first, m, known_here,
                       columns.last - columns.first, -1.0);
            if (unit) continue;
            const double d = t[i * ti + i * tk];
            for (int64_t j = columns.first; j < columns.last; ++j) row[j] /= d;
        }
    }
}

// The lower triangle of l^T x, where l is the lower triangle of a matrix, all n by n; zeros above.
inline void lower_product(int64_t count, double* out, const double* l, int64_t step_l, const double* x, int64_t step_x,
                          int64_t n) {
    for (int64_t at = 0; at < count; ++at, out += n * n, l += step_l, x += step_x) {
        fill(out, n * n, 0.0);
        for (int64_t start = 0; start < n; start += kBlock) {
            const int64_t end = start + kBlock < n ? start + kBlock : n;
            if (end < n)
                product(out + start * n, n, l + end * n + start, 1, n, x + end * n, n, 1, end - start, n - end, end,
                        Into::kWrite);
            for (int64_t k = start; k < end; ++k)
                for (int64_t i = start; i <= k; ++i) {
                    const double w = l[k * n + i];
                    for (int64_t j = 0; j < end; ++j) out[i * n + j] += w * x[k * n + j];
                }
            for (int64_t i = start; i < end; ++i) fill(out + i * n + i + 1, end - i - 1, 0.0);
        }
    }
}

// LU of a matrix in place with row exchanges, in blocks of columns; false if a pivot is zero, which `det` does not mind.
// Row i was exchanged with pivots[i].
inline bool lu(double* a, int64_t n, int32_t* pivots) {
    bool regular = true;
    for (int64_t start = 0; start < n; start += kBlock) {
        const int64_t end = start + kBlock < n ? start + kBlock : n;
        for (int64_t j = start; j < end; ++j) {
            int64_t best = j;
            double most = -1.0;
            for (int64_t i = j; i < n; ++i) {
                const double size = fabs(a[i * n + j]);
                if (size > most) most = size, best = i;
            }
            pivots[j] = static_cast<int32_t>(best);
            if (best != j)
                for (int64_t c = 0; c < n; ++c) {
                    const double t = a[j * n + c];
                    a[j * n + c] = a[best * n + c];
                    a[best * n + c] = t;
                }
            const double pivot = a[j * n + j];
            if (pivot == 0.0) {
                regular = false;
                continue;
            }
            const double* top = a + j * n;
            for (int64_t i = j + 1; i < n; ++i) {
                double* row = a + i * n;
                const double factor = row[j] /= pivot;
                for (int64_t c = j + 1; c < end; ++c) row[c] -= factor * top[c];
            }
        }
        if (end == n) break;
        double* right = a + start * n + end;
        lower_solve(a + start * n + start, n, right, n, end - start, n - end);
        product(a + end * n + end, n, a + end * n + start, n, 1, right, n, 1, n - end, end - start, n - end,
                Into::kSubtract);
    }
    return regular;
}

inline bool has_lapack(int64_t n) { return blas.getrf != nullptr && n >= kBlasRows && n < kMostOfBlas; }

// Memory of a call, given back at the end of the block.
class Borrowed {
  public:
    Borrowed(Call& call, int64_t doubles) : call_(call), bytes_(doubles * 8), data(reinterpret_cast<double*>(call.frame(bytes_))) {}
    ~Borrowed() {
        if (data != nullptr) call_.unframe(bytes_);
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

  private:
    Call& call_;
    int64_t bytes_;

  public:
    double* data;
};

inline __attribute__((cold)) int64_t singular(const Call& call) {
    return call.context->fail(kSingular, "Singular matrix");
}

// The status of a division that a derivative makes: it does not exist where the matrix is singular.
inline int64_t differentiable(const Call& call, int64_t status) {
    if (status != kSingular) return status;
    return call.context->fail(kNotDifferentiable, "the derivative of this factorisation or determinant does not exist at a "
                                                  "singular matrix");
}

// x with a x = b, where a is n by n and b is n by m. `kSingular` if a is singular.
inline int64_t solve(Call& call, double* x, const double* a, const double* b, int64_t n, int64_t m) {
    const bool large = has_lapack(n);
    Borrowed work(call, n * n + n + (large && m > 1 ? n * m : 0));
    if (work.data == nullptr) return call.memory();
    double* factors = work.data;
    int32_t* pivots = reinterpret_cast<int32_t*>(work.data + n * n);
    memcpy(factors, a, static_cast<size_t>(n * n) * 8);
    if (large) {  // what is stored is the transpose, for Fortran
        const int size = static_cast<int>(n), columns = static_cast<int>(m);
        int info = 0;
        double* right = m > 1 ? work.data + n * n + n : x;
        blas.getrf(&size, &size, factors, &size, pivots, &info);
        if (info > 0) return singular(call);
        if (m > 1)
            transpose(right, b, n, m);
        else
            memcpy(right, b, static_cast<size_t>(n) * 8);
        blas.getrs("T", &size, &columns, factors, &size, pivots, right, &size, &info);
        if (m > 1) transpose(x, right, m, n);
        return kDone;
    }
    if (!lu(factors, n, pivots)) return singular(call);
    memcpy(x, b, static_cast<size_t>(n * m) * 8);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t other = pivots[i];
        if (other == i) continue;
        for (int64_t j = 0; j < m; ++j) {
            const double t = x[i * m + j];
            x[i * m + j] = x[other * m + j];
            x[other * m + j] = t;
        }
    }
    lower_solve(factors, n, x, m, n, m);
    upper_solve(factors, n, x, m, n, m);
    return kDone;
}

// The inverse of a matrix.
inline int64_t inverse(Call& call, double* x, const double* a, int64_t n) {
    if (has_lapack(n)) {
        const int size = static_cast<int>(n), room = static_cast<int>(64 * n);
        Borrowed work(call, 65 * n);
        if (work.data == nullptr) return call.memory();
        int32_t* pivots = reinterpret_cast<int32_t*>(work.data + 64 * n);
        int info = 0;
        memcpy(x, a, static_cast<size_t>(n * n) * 8);
        blas.getrf(&size, &size, x, &size, pivots, &info);
        if (info > 0) return singular(call);
        blas.getri(&size, x, &size, pivots, work.data, &room, &info);
        return kDone;
    }
    Borrowed ones(call, n * n);
    if (ones.data == nullptr) return call.memory();
    fill(ones.data, n * n, 0.0);
    for (int64_t i = 0; i < n; ++i) ones.data[i * n + i] = 1.0;
    return solve(call, x, a, ones.data, n, n);
}

// The sign of the determinant, and the log of its size: 0 and minus infinity for a singular matrix. `det` may be null.
inline int64_t determinant(Call& call, double* sign, double* log_size, double* det, const double* a, int64_t n) {
    Borrowed work(call, n * n + n);
    if (work.data == nullptr) return call.memory();
    int32_t* pivots = reinterpret_cast<int32_t*>(work.data + n * n);
    memcpy(work.data, a, static_cast<size_t>(n * n) * 8);
    int32_t first = 0;
    if (has_lapack(n)) {
        const int size = static_cast<int>(n);
        int info = 0;
        blas.getrf(&size, &size, work.data, &size, pivots, &info);
        first = 1;
    } else {
        lu(work.data, n, pivots);
    }
    double s = 1.0, l = 0.0, d = 1.0;
    for (int64_t i = 0; i < n; ++i) {
        const double pivot = work.data[i * n + i];
        s = pivots[i] - first != i ? -s : s;
        s *= pivot > 0.0 ? 1.0 : pivot < 0.0 ? -1.0 : pivot;
        d *= pivots[i] - first != i ? -pivot : pivot;
        if (log_size != nullptr) l += ::log(fabs(pivot));
    }
    if (sign != nullptr) *sign = s;
    if (log_size != nullptr) *log_size = l;
    if (det != nullptr) *det = d;
    return kDone;
}

// The lower factor of a symmetric matrix, of which the lower triangle is read. `kNotPositive` if there is none.
inline int64_t cholesky(Call& call, double* l, const double* a, int64_t n) {
    const auto bad = [&] { return call.context->fail(kNotPositive, "Matrix is not positive definite"); };
    if (blas.potrf != nullptr && n >= kBlasSymmetric && n < kMostOfBlas) {
        const int size = static_cast<int>(n);
        int info = 0;
        memcpy(l, a, static_cast<size_t>(n * n) * 8);
        blas.potrf("U", &size, l, &size, &info);
        if (info > 0) return bad();
    } else {
        for (int64_t start = 0; start < n; start += kBlock) {
            const int64_t end = start + kBlock < n ? start + kBlock : n;
            for (int64_t i = start; i < n; ++i)
                for (int64_t j = start; j < end; ++j) l[i * n + j] = a[i * n + j];
            const double* left = l + start * n;
            if (start > 0)
                product(l + start * n + start, n, left, n, 1, left, 1, n, n - start, start, end - start,
                        Into::kSubtract);
            for (int64_t i = start; i < n; ++i) {
                double* row = l + i * n + start;
                for (int64_t j = start; j < end && j < i; ++j)
                    row[j - start] = (row[j - start] - dot(row, l + j * n + start, j - start)) / l[j * n + j];
                if (i >= end) continue;
                const double square = row[i - start] - dot(row, row, i - start);
                if (!(square > 0.0)) return bad();
                row[i - start] = sqrt(square);
            }
        }
    }
    for (int64_t i = 0; i < n; ++i) fill(l + i * n + i + 1, n - i - 1, 0.0);
    return kDone;
}

// x with l x = b, or l^T x = b, where l is the lower triangle of an n by n matrix and b is n by m.
inline int64_t solve_lower(Call& call, double* x, const double* l, const double* b, int64_t n, int64_t m,
                           bool transposed) {
    for (int64_t i = 0; i < n; ++i)
        if (l[i * n + i] == 0.0) return singular(call);
    memcpy(x, b, static_cast<size_t>(n * m) * 8);
    triangle_solve(l, transposed ? 1 : n, transposed ? n : 1, !transposed, false, x, n, m);
    return kDone;
}

// a b - c d, rounded once or nearly (Kahan).
inline double minor(double a, double b, double c, double d) {
    const double cd = c * d, error = fma(-c, d, cd);
    return fma(a, b, -cd) + error;
}

// The sum of squares.
inline double square_of(const double* a, int64_t n) { return dot(a, a, n); }

// The cofactors of a matrix, by elimination that chooses the largest of all that is left: a is P^T L D U Q^T with unit
// triangles, and the cofactors are those of its factors, of which only D may be singular, and there nothing is divided.
// (Demmel et al. 1999, "Computing the singular value decomposition with high relative accuracy", section 4, has the
// factors.) `work` has room for n n + 5 n.
inline void cofactors_completely(double* out, const double* a, int64_t n, double* work) {
    double *f = work, *others = f + n * n;
    int64_t* p = reinterpret_cast<int64_t*>(others + n);
    int64_t* q = p + n;
    memcpy(f, a, static_cast<size_t>(n * n) * 8);
    double sign = 1.0;
    for (int64_t i = 0; i < n; ++i) p[i] = q[i] = i;
    for (int64_t k = 0; k < n; ++k) {
        int64_t row = k, column = k;
        double most = -1.0;
        for (int64_t i = k; i < n; ++i)
            for (int64_t j = k; j < n; ++j)
                if (fabs(f[i * n + j]) > most) most = fabs(f[i * n + j]), row = i, column = j;
        if (row != k) {
            for (int64_t j = 0; j < n; ++j) {
                const double t = f[k * n + j];
                f[k * n + j] = f[row * n + j];
                f[row * n + j] = t;
            }
            const int64_t t = p[k];
            p[k] = p[row], p[row] = t, sign = -sign;
        }
        if (column != k) {
            for (int64_t i = 0; i < n; ++i) {
                const double t = f[i * n + k];
                f[i * n + k] = f[i * n + column];
                f[i * n + column] = t;
            }
            const int64_t t = q[k];
            q[k] = q[column], q[column] = t, sign = -sign;
        }
        const double pivot = f[k * n + k];
        if (pivot == 0.0) break;  // so is all that is left
        for (int64_t i = k + 1; i < n; ++i) {
            const double factor = f[i * n + k] / pivot;
            for (int64_t j = k + 1; j < n; ++j) f[i * n + j] -= factor * f[k * n + j];
            f[i * n + k] = factor;
        }
        for (int64_t j = k + 1; j < n; ++j) f[k * n + j] /= pivot;
    }
    double before = sign;
    for (int64_t k = 0; k < n; ++k) {
        others[k] = before;
        before *= f[k * n + k];
    }
    double after = 1.0;
    for (int64_t k = n - 1; k >= 0; --k) {
        others[k] *= after;
        after *= f[k * n + k];
    }
    // L^-T diag(others) U^-T, as a sum of products of the k-th row l of L^-1 and the k-th column u of U^-1.
    fill(out, n * n, 0.0);
    double* u = reinterpret_cast<double*>(q + n);
    double* l = u + n;
    for (int64_t k = 0; k < n; ++k) {
        for (int64_t i = 0; i < n; ++i) u[i] = l[i] = i == k ? 1.0 : 0.0;
        for (int64_t i = k - 1; i >= 0; --i) {
            double s = 0.0;
            for (int64_t j = i + 1; j <= k; ++j) s -= f[i * n + j] * u[j];
            u[i] = s;
        }
        for (int64_t j = k - 1; j >= 0; --j) {
            double s = 0.0;
            for (int64_t i = j + 1; i <= k; ++i) s -= l[i] * f[i * n + j];
            l[j] = s;
        }
        for (int64_t i = 0; i <= k; ++i)
            for (int64_t j = 0; j <= k; ++j) out[p[i] * n + q[j]] += l[i] * others[k] * u[j];
    }
}

// The cofactors of a matrix: the derivative of its determinant, which exists for a singular matrix too. Of a regular
// one they are the determinant times the transposed inverse, both of the same factors.
inline int64_t cofactors(Call& call, double* out, const double* a, int64_t n) {
    if (n == 1) {
        out[0] = 1.0;
        return kDone;
    }
    if (n == 2) {
        out[0] = a[3], out[1] = -a[2], out[2] = -a[1], out[3] = a[0];
        return kDone;
    }
    if (n == 3) {
        for (int i = 0; i < 3; ++i) {
            const double *r = a + (i + 1) % 3 * 3, *s = a + (i + 2) % 3 * 3;
            for (int j = 0; j < 3; ++j) {
                const int c = (j + 1) % 3, d = (j + 2) % 3;
                out[i * 3 + j] = minor(r[c], s[d], r[d], s[c]);
            }
        }
        return kDone;
    }
    Borrowed work(call, n * n + 5 * n);
    if (work.data == nullptr) return call.memory();
    int32_t* pivots = reinterpret_cast<int32_t*>(work.data + n * n);
    memcpy(work.data, a, static_cast<size_t>(n * n) * 8);
    bool regular;
    if (has_lapack(n)) {
        const int size = static_cast<int>(n);
        int info = 0;
        blas.getrf(&size, &size, work.data, &size, pivots, &info);  // of the transpose
        regular = info == 0;
        for (int64_t i = 0; i < n; ++i) --pivots[i];
    } else {
        regular = lu(work.data, n, pivots);
    }
    double det = 1.0;
    for (int64_t i = 0; i < n; ++i) det *= pivots[i] != i ? -work.data[i * n + i] : work.data[i * n + i];
    if (regular && isfinite(det) && fabs(det) > 1e-290) {
        fill(out, n * n, 0.0);
        if (has_lapack(n)) {
            const int size = static_cast<int>(n), room = static_cast<int>(n);
            int info = 0;
            for (int64_t i = 0; i < n; ++i) ++pivots[i];
            memcpy(out, work.data, static_cast<size_t>(n * n) * 8);
            blas.getri(&size, out, &size, pivots, work.data + n * n + n, &room, &info);  // of the transpose, as Fortran
            double* inverse = work.data;                                                 // has it: the inverse, here
            memcpy(inverse, out, static_cast<size_t>(n * n) * 8);
            transpose(out, inverse, n, n);
        } else {  // the transposed inverse: with P a = L U, solve with U^T, then with L^T, and undo P
            for (int64_t i = 0; i < n; ++i) out[i * n + i] = 1.0;
            triangle_solve(work.data, 1, n, true, false, out, n, n);
            triangle_solve(work.data, 1, n, false, true, out, n, n);
            for (int64_t i = n - 1; i >= 0; --i) {
                const int64_t other = pivots[i];
                if (other == i) continue;
                for (int64_t j = 0; j < n; ++j) {
                    const double t = out[i * n + j];
                    out[i * n + j] = out[other * n + j];
                    out[other * n + j] = t;
                }
            }
        }
        if (square_of(a, n * n) * square_of(out, n * n) < 1e16) {
            for (int64_t i = 0; i < n * n; ++i) out[i] *= det;
            return kDone;
        }
    }
    cofactors_completely(out, a, n, work.data);
    return kDone;
}

// The same for many matrices, one after the other; of what `step_b` is 0 for, there is one.
inline int64_t solve(Call& call, int64_t count, double* x, const double* a, int64_t step_a, const double* b,
                     int64_t step_b, int64_t n, int64_t m) {
    int64_t status = kDone;
    for (int64_t i = 0; i < count && status == kDone; ++i)
        status = solve(call, x + i * n * m, a + i * step_a, b + i * step_b, n, m);
    return status;
}
inline int64_t inverse(Call& call, int64_t count, double* x, const double* a, int64_t n) {
    int64_t status = kDone;
    for (int64_t i = 0; i < count && status == kDone; ++i) status = inverse(call, x + i * n * n, a + i * n * n, n);
    return status;
}
inline int64_t cholesky(Call& call, int64_t count, double* l, const double* a, int64_t n) {
    int64_t status = kDone;
    for (int64_t i = 0; i < count && status == kDone; ++i) status = cholesky(call, l + i * n * n, a + i * n * n, n);
    return status;
}
inline int64_t cofactors(Call& call, int64_t count, double* out, const double* a, int64_t n) {
    int64_t status = kDone;
    for (int64_t i = 0; i < count && status == kDone; ++i) status = cofactors(call, out + i * n * n, a + i * n * n, n);
    return status;
}
inline int64_t solve_lower(Call& call, int64_t count, double* x, const double* l, int64_t step_l, const double* b,
                           int64_t step_b, int64_t n, int64_t m, bool transposed) {
    int64_t status = kDone;
    for (int64_t i = 0; i < count && status == kDone; ++i)
        status = solve_lower(call, x + i * n * m, l + i * step_l, b + i * step_b, n, m, transposed);
    return status;
}
inline int64_t determinant(Call& call, int64_t count, double* sign, double* log_size, double* det, const double* a,
                           int64_t n) {
    int64_t status = kDone;
    for (int64_t i = 0; i < count && status == kDone; ++i)
        status = determinant(call, sign == nullptr ? sign : sign + i, log_size == nullptr ? log_size : log_size + i,
                             det == nullptr ? det : det + i, a + i * n * n, n);
    return status;
}

#undef DYNAGRAD_UNROLLED

}  // namespace dynagrad::graphs

// Takes over the table, of so many bytes; false if that is not the one described here.
DYNAGRAD_EXPORT bool dg_blas(const dynagrad::graphs::Blas* table, int64_t bytes) {
    if (bytes != static_cast<int64_t>(sizeof(dynagrad::graphs::Blas))) return false;
    dynagrad::graphs::blas = *table;
    return true;
}
