// What generated code does with single elements: indices, whole numbers, words of stacks, the terms of reductions.
//
// Nothing here knows of memory or of a call.
#pragma once

#include <dynagrad/calls/body.hpp>

namespace dynagrad::graphs {

// -- indices ---------------------------------------------------------------------------------------------------------

// Counts a negative index from the end; true if it is out of range.
inline bool outside(int64_t& i, int64_t n) {
    i += i < 0 ? n : 0;
    return static_cast<uint64_t>(i) >= static_cast<uint64_t>(n);
}

// The same for one that is known to be in range.
inline int64_t from_end(int64_t i, int64_t n) { return i + (i < 0 ? n : 0); }

// The first of many indices that is out of range, or -1.
inline int64_t first_outside(const int64_t* p, int64_t count, int64_t n) {
    bool bad = false;
    for (int64_t k = 0; k < count; ++k) bad |= p[k] < -n || p[k] >= n;
    if (__builtin_expect(!bad, 1)) return -1;
    for (int64_t k = 0; k < count; ++k)
        if (p[k] < -n || p[k] >= n) return k;
    return -1;
}

// -- whole numbers ---------------------------------------------------------------------------------------------------

inline int64_t floor_divide(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
    return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}
// A power that goes round, and whether it does not; 0 for an exponent below 0.
inline int64_t integer_power(int64_t a, int64_t n) {
    if (n < 0) return 0;
    uint64_t found = 1, square = static_cast<uint64_t>(a);
    for (; n; n >>= 1, square *= square)
        if (n & 1) found *= square;
    return static_cast<int64_t>(found);
}
inline bool integer_power_fits(int64_t a, int64_t n) {
    if (n < 0) return false;
    if (a >= -1 && a <= 1) return true;
    if (n > 63) return false;
    for (int64_t found = 1; n; --n)
        if (__builtin_mul_overflow(found, a, &found)) return false;
    return true;
}
inline int64_t floor_remainder(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    const int64_t rest = a % b;
    return rest + (rest != 0 && (rest < 0) != (b < 0) ? b : 0);
}

// -- stacks hold words of eight bytes --------------------------------------------------------------------------------

inline void put(double* at, double x) { *at = x; }
inline void put(double* at, int64_t x) { memcpy(at, &x, 8); }
inline void put(double* at, bool x) { *at = x ? 1.0 : 0.0; }
inline void get(const double* at, double& x) { x = *at; }
inline void get(const double* at, int64_t& x) { memcpy(&x, at, 8); }
inline void get(const double* at, bool& x) { x = *at != 0.0; }

// -- reductions: the order of the terms is free, so that they can be summed side by side ------------------------------

inline double plus(double a, double b) {
#if defined(__clang__)
#pragma clang fp reassociate(on)
#endif
    return a + b;
}
inline int64_t plus(int64_t a, int64_t b) { return a + b; }
inline double times(double a, double b) {
#if defined(__clang__)
#pragma clang fp reassociate(on)
#endif
    return a * b;
}
inline int64_t times(int64_t a, int64_t b) { return a * b; }
// NaN wins, as in numpy; of equals the one that was there.
inline double larger(double a, double b) { return b > a || b != b ? b : a; }
inline double smaller(double a, double b) { return b < a || b != b ? b : a; }
inline int64_t larger(int64_t a, int64_t b) { return b > a ? b : a; }
inline int64_t smaller(int64_t a, int64_t b) { return b < a ? b : a; }

// A whole number for each real, in the same order, and back: the largest of whole numbers is found side by side, which
// the largest of reals is not as long as any may be NaN. NaN has the first or last place of all, so that it wins.
template <bool kLargest>
inline int64_t rank(double x) {
    const int64_t bits = __builtin_bit_cast(int64_t, x);
    return x != x ? (kLargest ? INT64_MAX : INT64_MIN) : bits ^ ((bits >> 63) & INT64_MAX);
}
inline double of_rank(int64_t rank) { return __builtin_bit_cast(double, rank ^ ((rank >> 63) & INT64_MAX)); }

template <class T>
inline void fill(T* p, int64_t n, T x) {
    for (int64_t i = 0; i < n; ++i) p[i] = x;
}

}  // namespace dynagrad::graphs
