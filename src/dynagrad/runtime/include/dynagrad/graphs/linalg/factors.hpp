// Factors of matrices (triangles, by LU or Cholesky), what is solved with them, and inverses.
//
// What is large goes to LAPACK, where there is one, and else to blocks of products. Functions that may fail return a
// status of body.hpp. Memory that they work in comes from the call.
#pragma once

#include <dynagrad/base/math.hpp>
#include <stdint.h>
#include <string.h>

#include <dynagrad/graphs/linalg/products.hpp>

namespace dynagrad::graphs {

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

// Exchanges two rows of a matrix.
inline void swap_rows(double* a, int64_t i, int64_t j, int64_t columns) {
    if (i == j) return;
    double *row = a + i * columns, *other = a + j * columns;
    for (int64_t c = 0; c < columns; ++c) {
        const double t = row[c];
        row[c] = other[c];
        other[c] = t;
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
            swap_rows(a, j, best, n);
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

inline bool has_lapack(int64_t n) { return blas.dgetrf != nullptr && n >= kBlasRows && n < kMostOfBlas; }

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
        blas.dgetrf(&size, &size, factors, &size, pivots, &info);
        if (info > 0) return singular(call);
        if (m > 1)
            transpose(right, b, n, m);
        else
            memcpy(right, b, static_cast<size_t>(n) * 8);
        blas.dgetrs("T", &size, &columns, factors, &size, pivots, right, &size, &info);
        if (m > 1) transpose(x, right, m, n);
        return kDone;
    }
    if (!lu(factors, n, pivots)) return singular(call);
    memcpy(x, b, static_cast<size_t>(n * m) * 8);
    for (int64_t i = 0; i < n; ++i) swap_rows(x, i, pivots[i], m);
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
        blas.dgetrf(&size, &size, x, &size, pivots, &info);
        if (info > 0) return singular(call);
        blas.dgetri(&size, x, &size, pivots, work.data, &room, &info);
        return kDone;
    }
    Borrowed ones(call, n * n);
    if (ones.data == nullptr) return call.memory();
    fill(ones.data, n * n, 0.0);
    for (int64_t i = 0; i < n; ++i) ones.data[i * n + i] = 1.0;
    return solve(call, x, a, ones.data, n, n);
}

// The lower factor of a symmetric matrix, of which the lower triangle is read. `kNotPositive` if there is none.
inline int64_t cholesky(Call& call, double* l, const double* a, int64_t n) {
    const auto bad = [&] { return call.context->fail(kNotPositive, "Matrix is not positive definite"); };
    if (blas.dpotrf != nullptr && n >= kBlasSymmetric && n < kMostOfBlas) {
        const int size = static_cast<int>(n);
        int info = 0;
        memcpy(l, a, static_cast<size_t>(n * n) * 8);
        blas.dpotrf("U", &size, l, &size, &info);
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

// Does the same for each of many matrices, until one of them has another status than kDone.
template <typename One>
inline int64_t for_each(int64_t count, One one) {
    for (int64_t i = 0; i < count; ++i)
        if (const int64_t status = one(i); status != kDone) return status;
    return kDone;
}

// The same for many matrices, one after the other; of what a step is 0 for, there is one.
inline int64_t solve(Call& call, int64_t count, double* x, const double* a, int64_t step_a, const double* b,
                     int64_t step_b, int64_t n, int64_t m) {
    return for_each(count, [&](int64_t i) {
        return solve(call, x + i * n * m, a + i * step_a, b + i * step_b, n, m);
    });
}
inline int64_t solve_lower(Call& call, int64_t count, double* x, const double* l, int64_t step_l, const double* b,
                           int64_t step_b, int64_t n, int64_t m, bool transposed) {
    return for_each(count, [&](int64_t i) {
        return solve_lower(call, x + i * n * m, l + i * step_l, b + i * step_b, n, m, transposed);
    });
}
inline int64_t inverse(Call& call, int64_t count, double* x, const double* a, int64_t n) {
    return for_each(count, [&](int64_t i) { return inverse(call, x + i * n * n, a + i * n * n, n); });
}
inline int64_t cholesky(Call& call, int64_t count, double* l, const double* a, int64_t n) {
    return for_each(count, [&](int64_t i) { return cholesky(call, l + i * n * n, a + i * n * n, n); });
}

}  // namespace dynagrad::graphs
