// Determinants of matrices, and their cofactors: the derivative of a determinant, also where it is 0.
//
// They come of the factors in factors.hpp. Only cofactors of a matrix that is singular, or nearly so, need others,
// which are here.
#pragma once

#include <dynagrad/base/math.hpp>
#include <stdint.h>
#include <string.h>

#include <dynagrad/graphs/linalg/factors.hpp>

namespace dynagrad::graphs {

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
        blas.dgetrf(&size, &size, work.data, &size, pivots, &info);
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

// a b - c d, rounded once or nearly (Kahan).
inline double minor(double a, double b, double c, double d) {
    const double cd = c * d, error = fma(-c, d, cd);
    return fma(a, b, -cd) + error;
}

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
            swap_rows(f, k, row, n);
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
        blas.dgetrf(&size, &size, work.data, &size, pivots, &info);  // of the transpose
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
            blas.dgetri(&size, out, &size, pivots, work.data + n * n + n, &room, &info);  // of the transpose, as Fortran
            double* inverse = work.data;                                                 // has it: the inverse, here
            memcpy(inverse, out, static_cast<size_t>(n * n) * 8);
            transpose(out, inverse, n, n);
        } else {  // the transposed inverse: with P a = L U, solve with U^T, then with L^T, and undo P
            for (int64_t i = 0; i < n; ++i) out[i * n + i] = 1.0;
            triangle_solve(work.data, 1, n, true, false, out, n, n);
            triangle_solve(work.data, 1, n, false, true, out, n, n);
            for (int64_t i = n - 1; i >= 0; --i) swap_rows(out, i, pivots[i], n);
        }
        if (dot(a, a, n * n) * dot(out, out, n * n) < 1e16) {
            for (int64_t i = 0; i < n * n; ++i) out[i] *= det;
            return kDone;
        }
    }
    cofactors_completely(out, a, n, work.data);
    return kDone;
}

// The same for many matrices, one after the other.
inline int64_t determinant(Call& call, int64_t count, double* sign, double* log_size, double* det, const double* a,
                           int64_t n) {
    const auto of = [](double* results, int64_t i) { return results == nullptr ? results : results + i; };
    return for_each(count, [&](int64_t i) {
        return determinant(call, of(sign, i), of(log_size, i), of(det, i), a + i * n * n, n);
    });
}
inline int64_t cofactors(Call& call, int64_t count, double* out, const double* a, int64_t n) {
    return for_each(count, [&](int64_t i) { return cofactors(call, out + i * n * n, a + i * n * n, n); });
}

}  // namespace dynagrad::graphs
