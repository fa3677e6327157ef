// Operations along an axis: sorting, choosing, running products. An array is (outer, n, inner), n being the axis.
//
// As in numpy, NaN is larger than all numbers where things are sorted and wins where one is chosen; equals stay in order.
#pragma once

#include <dynagrad/graphs/call.hpp>

namespace dynagrad::graphs {

// Whether x takes the place of the best so far.
template <bool kLargest>
inline bool wins(double x, double best) {
    return (kLargest ? x > best : x < best) | ((x != x) & (best == best));
}

// The place of the first of the largest, or smallest, of n > 0 numbers: what it is first, and then where.
template <bool kLargest>
inline int64_t winner(const double* x, int64_t n) {
    constexpr int64_t kBlock = 64;
    int64_t best = kLargest ? INT64_MIN : INT64_MAX;
    DYNAGRAD_INDEPENDENT
    for (int64_t k = 0; k < n; ++k) best = kLargest ? larger(best, rank<true>(x[k])) : smaller(best, rank<false>(x[k]));
    const double top = of_rank(best);
    for (int64_t start = 0; start < n; start += kBlock) {
        const int64_t end = start + kBlock < n ? start + kBlock : n;
        int64_t first = n;
        DYNAGRAD_INDEPENDENT
        for (int64_t k = start; k < end; ++k) first = smaller(first, (x[k] == top) | (x[k] != x[k]) ? k : n);
        if (first < n) return first;
    }
    return 0;
}

// Where the first of the largest, or smallest, numbers along the axis is. Columns are looked at side by side.
template <bool kLargest>
inline void winners(bool* out, const double* x, int64_t outer, int64_t n, int64_t inner) {
    constexpr int64_t kBlock = 64;
    fill(out, outer * n * inner, false);
    if (n == 0) return;
    for (int64_t o = 0; o < outer; ++o, x += n * inner, out += n * inner) {
        if (inner == 1) {
            out[winner<kLargest>(x, n)] = true;
            continue;
        }
        for (int64_t start = 0; start < inner; start += kBlock) {
            const int64_t count = start + kBlock < inner ? kBlock : inner - start;
            double best[kBlock];
            int64_t first[kBlock];
            for (int64_t i = 0; i < count; ++i) best[i] = x[start + i], first[i] = 0;
            for (int64_t k = 1; k < n; ++k) {
                const double* const row = x + k * inner + start;
                DYNAGRAD_INDEPENDENT
                for (int64_t i = 0; i < count; ++i) {
                    const bool won = wins<kLargest>(row[i], best[i]);
                    best[i] = won ? row[i] : best[i];
                    first[i] = won ? k : first[i];
                }
            }
            for (int64_t i = 0; i < count; ++i) out[first[i] * inner + start + i] = true;
        }
    }
}

inline void cumprod(double* out, const double* x, int64_t outer, int64_t n, int64_t inner) {
    for (int64_t o = 0; o < outer; ++o, x += n * inner, out += n * inner) {
        for (int64_t i = 0; i < inner && n > 0; ++i) out[i] = x[i];
        for (int64_t j = inner; j < n * inner; ++j) out[j] = out[j - inner] * x[j];
    }
}

// The lower triangle of each matrix, mirrored.
inline void symmetric(double* out, const double* x, int64_t count, int64_t n) {
    for (int64_t c = 0; c < count; ++c, x += n * n, out += n * n)
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j <= i; ++j) out[i * n + j] = out[j * n + i] = x[i * n + j];
}

// out[o, k, i] = x[o, order[o, k, i], i], where x has `n` along the axis, and out and order have `m`.
template <class T>
inline int64_t take_along(const Call& call, double* out, const double* x, const T* order, int64_t outer, int64_t n,
                          int64_t m, int64_t inner) {
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t k = 0; k < m; ++k)
            for (int64_t i = 0; i < inner; ++i) {
                int64_t at = static_cast<int64_t>(order[(o * m + k) * inner + i]);
                if (outside(at, n)) return call.index(static_cast<int64_t>(order[(o * m + k) * inner + i]), n);
                out[(o * m + k) * inner + i] = x[(o * n + at) * inner + i];
            }
    return kDone;
}

// The transpose: zeros, with each number added at its place.
template <class T>
inline int64_t put_along(const Call& call, double* out, const double* d, const T* order, int64_t outer, int64_t n,
                         int64_t m, int64_t inner) {
    fill(out, outer * n * inner, 0.0);
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t k = 0; k < m; ++k)
            for (int64_t i = 0; i < inner; ++i) {
                int64_t at = static_cast<int64_t>(order[(o * m + k) * inner + i]);
                if (outside(at, n)) return call.index(static_cast<int64_t>(order[(o * m + k) * inner + i]), n);
                out[(o * n + at) * inner + i] += d[(o * m + k) * inner + i];
            }
    return kDone;
}

// A number and where it stood.
struct Ranked {
    double x;
    int64_t place;
};
inline bool before(double a, double b) { return a < b || (b != b && a == a); }

// In ascending order, equals as they stand: runs of 16 by insertion, which are then merged.
inline void sort_ranked(Ranked* a, Ranked* room, int64_t n) {
    constexpr int64_t kRun = 16;
    for (int64_t start = 0; start < n; start += kRun) {
        const int64_t end = start + kRun < n ? start + kRun : n;
        for (int64_t i = start + 1; i < end; ++i) {
            const Ranked one = a[i];
            int64_t j = i;
            for (; j > start && before(one.x, a[j - 1].x); --j) a[j] = a[j - 1];
            a[j] = one;
        }
    }
    Ranked *from = a, *to = room;
    for (int64_t run = kRun; run < n; run *= 2) {
        for (int64_t start = 0; start < n; start += 2 * run) {
            const int64_t middle = start + run < n ? start + run : n, end = start + 2 * run < n ? start + 2 * run : n;
            int64_t i = start, j = middle;
            for (int64_t k = start; k < end; ++k) {
                const bool right = i == middle || (j < end && before(from[j].x, from[i].x));
                to[k] = right ? from[j++] : from[i++];
            }
        }
        Ranked* swap = from;
        from = to;
        to = swap;
    }
    if (from != a) memcpy(a, from, static_cast<size_t>(n) * sizeof(Ranked));
}

// Sorted numbers to `sorted`, the order that sorts them to `order`; either may be null.
inline int64_t sort_along(Call& call, double* sorted, int64_t* order, const double* x, int64_t outer, int64_t n,
                          int64_t inner) {
    const int64_t bytes = 2 * n * int64_t{sizeof(Ranked)};
    char* room = call.frame(bytes);
    if (room == nullptr) return call.memory();
    Ranked* line = reinterpret_cast<Ranked*>(room);
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
            const int64_t first = o * n * inner + i;
            for (int64_t k = 0; k < n; ++k) line[k] = {x[first + k * inner], k};
            sort_ranked(line, line + n, n);
            for (int64_t k = 0; k < n; ++k) {
                if (sorted != nullptr) sorted[first + k * inner] = line[k].x;
                if (order != nullptr) order[first + k * inner] = line[k].place;
            }
        }
    call.unframe(bytes);
    return kDone;
}

// out[k] = the sum of a[k + m - 1 - j] * v[j] over j < m, for k <= n - m. Many sums are made side by side, or few of
// them in parts.
inline void convolve_valid(double* out, const double* a, int64_t n, const double* v, int64_t m) {
    constexpr int64_t kBlock = 32, kParts = 8;
    const int64_t count = n - m + 1;
    int64_t k = 0;
    for (; k + kBlock <= count; k += kBlock) {
        double sum[kBlock] = {};
        for (int64_t j = 0; j < m; ++j) {
            const double* const from = a + k + m - 1 - j;
            const double weight = v[j];
            for (int64_t t = 0; t < kBlock; ++t) sum[t] += from[t] * weight;
        }
        for (int64_t t = 0; t < kBlock; ++t) out[k + t] = sum[t];
    }
    for (; k < count; ++k) {
        double part[kParts] = {}, sum = 0.0;
        const double* const from = a + k + m - 1;
        int64_t j = 0;
        for (; j + kParts <= m; j += kParts)
            for (int64_t t = 0; t < kParts; ++t) part[t] += from[-j - t] * v[j + t];
        for (; j < m; ++j) sum += from[-j] * v[j];
        for (int64_t t = 0; t < kParts; ++t) sum += part[t];
        out[k] = sum;
    }
}

// The same where the two overlap at all. Nothing is multiplied with zeros beside them, which may meet infinities.
inline void convolve_full(double* out, const double* a, int64_t n, const double* v, int64_t m) {
    if (n < m) return convolve_full(out, v, m, a, n);
    convolve_valid(out + m - 1, a, n, v, m);
    for (int64_t part = 1; part < m; ++part) {
        convolve_valid(out + part - 1, a, part, v, part);
        convolve_valid(out + n + m - 1 - part, a + n - part, part, v + m - part, part);
    }
}

// Adds each element of d, an array of `axes` axes, to where it belongs: a step along axis k goes far[k] further.
inline void overlaps(double* out, int64_t size, const double* d, int64_t axes, const int64_t* lengths,
                     const int64_t* far) {
    constexpr int64_t kMost = 64;  // twice as many as an array of numpy has
    int64_t counter[kMost] = {}, place = 0;
    fill(out, size, 0.0);
    for (int64_t k = 0; k < axes; ++k)
        if (lengths[k] == 0) return;
    const int64_t last = axes - 1, length = lengths[last], step = far[last];
    while (true) {
        double* const to = out + place;
        for (int64_t t = 0; t < length; ++t) to[t * step] += d[t];
        d += length;
        int64_t k = last - 1;
        for (; k >= 0; --k) {
            place += far[k];
            if (++counter[k] < lengths[k]) break;
            place -= far[k] * lengths[k];
            counter[k] = 0;
        }
        if (k < 0) return;
    }
}

}  // namespace dynagrad::graphs
