// The functions of vector.hpp for whole arrays, compiled once (see `base/linked.hpp`).
//
// A loop over few elements that runs once a call is compiled in half the time where it calls these: their code is long,
// and with it in the loop it would be optimised anew in each program. The results are those of vector.hpp, to the bit.
// `to` may be `x`. Nothing here knows where these are called.
#pragma once

#include <dynagrad/base/linked.hpp>
#include <dynagrad/graphs/call.hpp>
#include <dynagrad/graphs/vector.hpp>

namespace dynagrad::graphs::vector {


// A function of each element.
template <class F>
__attribute__((always_inline)) inline void each(double* to, const double* x, int64_t n, F f) {
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
        DYNAGRAD_INDEPENDENT_VECTORS
        for (int64_t k = 0; k < kWidth; ++k) to[i + k] = f(x[i + k]);
    }
    if (i == n) return;
    double part[kWidth] = {};
    for (int64_t k = 0; k < n - i; ++k) part[k] = x[i + k];
    DYNAGRAD_INDEPENDENT_VECTORS
    for (int64_t k = 0; k < kWidth; ++k) part[k] = f(part[k]);
    for (int64_t k = 0; k < n - i; ++k) to[i + k] = part[k];
}

#define DYNAGRAD_OF_ARRAYS(function)                                                                    \
    DYNAGRAD_ONCE void function(double* to, const double* x, int64_t n) {                               \
        each(to, x, n, [](double v) __attribute__((always_inline)) { return vector::function(v); });    \
    }

DYNAGRAD_OF_ARRAYS(exp)
DYNAGRAD_OF_ARRAYS(expm1)
DYNAGRAD_OF_ARRAYS(log)
DYNAGRAD_OF_ARRAYS(log1p)
DYNAGRAD_OF_ARRAYS(tanh)
DYNAGRAD_OF_ARRAYS(sigmoid)
DYNAGRAD_OF_ARRAYS(sin)
DYNAGRAD_OF_ARRAYS(cos)

#undef DYNAGRAD_OF_ARRAYS

// Both functions of the same angles, which are reduced once. The angles may be in the memory of either.
DYNAGRAD_ONCE void sin_cos(double* sines, double* cosines, const double* x, int64_t n) {
    const auto eight = [](double* s, double* c, const double* angles) __attribute__((always_inline)) {
        DYNAGRAD_INDEPENDENT_VECTORS
        for (int64_t k = 0; k < kWidth; ++k) {
            const double v = angles[k];
            const Angle angle = any_angle(v);
            s[k] = sin_of(v, angle);
            c[k] = cos_of(v, angle);
        }
    };
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) eight(sines + i, cosines + i, x + i);
    if (i == n) return;
    double s[kWidth] = {}, c[kWidth];
    for (int64_t k = 0; k < n - i; ++k) s[k] = x[i + k];
    eight(s, c, s);
    for (int64_t k = 0; k < n - i; ++k) sines[i + k] = s[k], cosines[i + k] = c[k];
}

// Powers of arrays, of arrays and a number, and of a number and arrays.
DYNAGRAD_ONCE void pow(double* to, const double* x, double y, int64_t n) {
    each(to, x, n, [=](double v) __attribute__((always_inline)) { return vector::pow(v, y); });
}
DYNAGRAD_ONCE void pow(double* to, double x, const double* y, int64_t n) {
    each(to, y, n, [=](double v) __attribute__((always_inline)) { return vector::pow(x, v); });
}
DYNAGRAD_ONCE void pow(double* to, const double* x, const double* y, int64_t n) {
    for (int64_t i = 0; i < n; i += kWidth) {
        const int64_t count = n - i < kWidth ? n - i : kWidth;
        double a[kWidth] = {}, b[kWidth] = {};
        for (int64_t k = 0; k < count; ++k) a[k] = x[i + k], b[k] = y[i + k];
        DYNAGRAD_INDEPENDENT_VECTORS
        for (int64_t k = 0; k < kWidth; ++k) a[k] = vector::pow(a[k], b[k]);
        for (int64_t k = 0; k < count; ++k) to[i + k] = a[k];
    }
}

}  // namespace dynagrad::graphs::vector
