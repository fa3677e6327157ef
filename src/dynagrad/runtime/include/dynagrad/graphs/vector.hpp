// exp, log, tanh and their kin as inline code that the compiler vectorises together with the loop around it.
//
// The names and the values are those of <math.h>, to 2 ulp, for every argument: overflow, subnormals, infinities, NaN and
// zeros with their signs. There are no calls and no branches, only selects, so that a loop over them stays one of
// vectors. For a single number, the functions of <math.h> are as quick. Where a processor has no fused multiply-add the
// errors are larger by about 1 ulp.
//
// The polynomials are minimax (Remez) for the relative error of the function. How each argument is reduced is said with
// the function. Nothing here knows of arrays.
#pragma once

#include <dynagrad/base/math.hpp>
#include <stdint.h>

namespace dynagrad::graphs::vector {

#define DYNAGRAD_INLINE inline __attribute__((always_inline))

// -- bits and pairs --------------------------------------------------------------------------------------------------

DYNAGRAD_INLINE uint64_t bits(double x) { return __builtin_bit_cast(uint64_t, x); }
DYNAGRAD_INLINE double number(uint64_t x) { return __builtin_bit_cast(double, x); }
DYNAGRAD_INLINE double size(double x) { return __builtin_fabs(x); }
DYNAGRAD_INLINE double signed_as(double x, double sign) { return __builtin_copysign(x, sign); }

inline constexpr uint64_t kSign = uint64_t{1} << 63;
inline constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
inline constexpr double kInfinity = __builtin_inf();

#if defined(__FMA__) || defined(__aarch64__)
DYNAGRAD_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
DYNAGRAD_INLINE double fma(double a, double b, double c) { return a * b + c; }
#endif

// A number as a sum of two, of which the second is small.
struct Pair {
    double high, low;
};

// The sum of two numbers, exactly; `near` asks that the first be the larger.
DYNAGRAD_INLINE Pair sum(double a, double b) {
    const double s = a + b, c = s - a;
    return {s, (a - (s - c)) + (b - c)};
}
DYNAGRAD_INLINE Pair near_sum(double a, double b) {
    const double s = a + b;
    return {s, b - (s - a)};
}
// The product, exactly; neither may be near overflow.
DYNAGRAD_INLINE Pair product(double a, double b) {
    const double p = a * b;
#if defined(__FMA__) || defined(__aarch64__)
    return {p, __builtin_fma(a, b, -p)};
#else
    const double s = a * 0x1p27 + a, u = b * 0x1p27 + b;
    const double ah = s - (s - a), al = a - ah, bh = u - (u - b), bl = b - bh;
    return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
#endif
}

// The quotient of a number and a pair.
DYNAGRAD_INLINE double quotient(double a, Pair b) {
    const double r = 1.0 / b.high, q = a * r;
    return fma(fma(-q, b.high, a) - q * b.low, r, q);
}

#if defined(__clang__)
#define DYNAGRAD_UNROLLED _Pragma("unroll")
#else
#define DYNAGRAD_UNROLLED _Pragma("GCC unroll 16")
#endif

// The polynomial with these coefficients, from the lowest power on, in two chains.
template <int kCount>
DYNAGRAD_INLINE double polynomial(double x, const double (&c)[kCount]) {
    const double square = x * x;
    constexpr int kTop = kCount - 1;
    double a = c[kTop], b = c[kTop - 1];
    DYNAGRAD_UNROLLED
    for (int i = kTop - 2; i >= 1; i -= 2) {
        a = fma(a, square, c[i]);
        b = fma(b, square, c[i - 1]);
    }
    return kTop % 2 == 0 ? fma(b, x, fma(a, square, c[0])) : fma(a, x, b);
}

// 2^k for a whole number k in [-1022, 1023]: it stands in the low bits of k + 1.5 2^52, which are moved to the exponent.
inline constexpr double kShift = 0x1.8p52;
DYNAGRAD_INLINE double power_of_two(double shifted) { return number((bits(shifted) + 1023) << 52); }

inline constexpr double kLog2E = 0x1.71547652b82fep+0;
inline constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 32 bits, so that products with whole numbers are exact
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// -- exponentials ----------------------------------------------------------------------------------------------------

// e^(x + low) = 2^k e^r with |r| <= ln(2)/2. What leaves the range of doubles does so in the last product.
DYNAGRAD_INLINE double exp_of(double x, double low) {
    constexpr double c[] = {0x1.0000000000000p-1,  0x1.555555555555bp-3,  0x1.5555555555504p-5,  0x1.111111110ec67p-7,
                            0x1.6c16c16c301e3p-10, 0x1.a01a01b37d878p-13, 0x1.a01a01371d3d2p-16, 0x1.71ddf01d458a1p-19,
                            0x1.27e5b359d37cfp-22, 0x1.af6bf506fab86p-26, 0x1.1e3e6b7c6770fp-29};
    double t = x > 710.0 ? 710.0 : x;
    t = t < -746.0 ? -746.0 : t;
    const double shifted = fma(t, kLog2E, kShift), k = shifted - kShift;
    const double half = fma(k, 0.5, kShift), rest = (k - (half - kShift)) + kShift;
    const double r = fma(-kLn2Low, k, fma(-kLn2High, k, t)) + low;
    const double p = 1.0 + fma(r * r, polynomial(r, c), r);
    return p * power_of_two(half) * power_of_two(rest);
}
DYNAGRAD_INLINE double exp(double x) { return exp_of(x, 0.0); }

// 2^k e^r - 1, where 2^k r and 2^k - 1 are added with their error. For large x everything is halved until the end.
DYNAGRAD_INLINE double expm1(double x) {
    constexpr double c[] = {0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.555555555555ap-5,  0x1.111111110f6a1p-7,
                            0x1.6c16c16c14430p-10, 0x1.a01a01afec252p-13, 0x1.a01a01b0c2dc3p-16, 0x1.71ddf83e7668fp-19,
                            0x1.27e4c583b72eep-22, 0x1.af5ee962e53a4p-26, 0x1.1f95952088742p-29};
    double t = x > 710.0 ? 710.0 : x;
    t = t < -40.0 ? -40.0 : t;
    const double shifted = fma(t, kLog2E, kShift), k = shifted - kShift;
    const double most = fma(-kLn2High, k, t);
    const double r = fma(-kLn2Low, k, most);
    const double low = fma(-kLn2Low, k, most - r);
    const double q = fma(r * r, polynomial(r, c), low);
    const double scale = power_of_two(shifted - 1.0), start = scale - 0.5, part = scale * r;
    const Pair s = sum(start, part);
    const double y = 2.0 * (s.high + fma(scale, q, s.low));
    return x == 0.0 ? x : k == 0.0 ? r + q : y;
}

// For large x, 1 - 2 / (e^2x + 1); for small ones (e^2x - 1) / (e^2x + 1).
DYNAGRAD_INLINE double tanh(double x) {
    const double a = size(x);
    const double e = expm1(2.0 * (a > 20.0 ? 20.0 : a));
    const bool large = a > 0.5;
    const double t = quotient(large ? -2.0 : e, sum(e, 2.0));
    const double y = large ? 1.0 + t : t;
    return signed_as(a != a ? a : y, x);
}

// 1 / (1 + e^-x), without cancellation for either sign.
DYNAGRAD_INLINE double sigmoid(double x) {
    const double e = exp(-size(x));
    return quotient(x < 0.0 ? e : 1.0, near_sum(1.0, e));
}

// -- logarithms ------------------------------------------------------------------------------------------------------

// x = 2^k m with m in [sqrt(1/2), sqrt(2)), for positive x.
struct Scaled {
    double power, part;
};
DYNAGRAD_INLINE Scaled scaled(double x) {
    constexpr uint64_t kRoot = 0x3fe6a09e667f3bcd, kOne = uint64_t{1023} << 52;
    const bool subnormal = x < 0x1p-1022;
    const uint64_t b = bits(subnormal ? x * 0x1p54 : x) + (kOne - kRoot);
    const double k = number((b >> 52) | bits(0x1p52)) - (0x1p52 + 1023.0);
    return {k - (subnormal ? 54.0 : 0.0), number((b & kMantissa) + kRoot)};
}

// log(1 + f) + low + k ln(2), for f in [sqrt(1/2) - 1, sqrt(2) - 1]: with s = f / (2 + f) it is 2 atanh(s), and 2s is
// f - s f, so that the largest term has no error.
DYNAGRAD_INLINE double log_near_one(double f, double low, double k) {
    constexpr double c[] = {0x1.5555555555592p-1, 0x1.999999997fd48p-2, 0x1.24924942080a1p-2, 0x1.c71c51ec800aep-3,
                            0x1.746646894bb80p-3, 0x1.39a0d075bd78ap-3, 0x1.2f0fe6e966c88p-3};
    const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    const double r = z * polynomial(z, c);
    return fma(k, kLn2High, f - (half - fma(s, half + r, fma(k, kLn2Low, low))));
}

// What a logarithm is at the ends of its range.
DYNAGRAD_INLINE double log_ends(double y, double x) {
    y = x == kInfinity ? x : y;
    y = x == 0.0 ? -kInfinity : y;
    return x < 0.0 || x != x ? __builtin_nan("") : y;
}

DYNAGRAD_INLINE double log(double x) {
    const Scaled s = scaled(x);
    return log_ends(log_near_one(s.part - 1.0, 0.0, s.power), x);
}

// The log of 1 + x as rounded, and what was rounded off over it; near zero the sum is not made at all.
DYNAGRAD_INLINE double log1p(double x) {
    const Pair u = sum(x > 1.0 ? x : 1.0, x > 1.0 ? 1.0 : x);
    const Scaled s = scaled(u.high);
    const bool small = s.power == 0.0;
    const double y = log_near_one(small ? x : s.part - 1.0, small ? 0.0 : u.low / u.high, s.power);
    return log_ends(x == 0.0 ? x : y, 1.0 + x);
}

// -- powers ----------------------------------------------------------------------------------------------------------

// The log of a positive number to 65 bits: the terms 2s and 2/3 s^3 are pairs.
DYNAGRAD_INLINE Pair long_log(double x) {
    constexpr double c[] = {0x1.9999999999996p-2, 0x1.2492492492ecfp-2, 0x1.c71c71c5a2ab5p-3, 0x1.745d1824afa0fp-3,
                            0x1.3b1365cb10478p-3, 0x1.11204f76a29fbp-3, 0x1.de41929e3fae1p-4, 0x1.eaa977d889042p-4};
    constexpr double kThirdHigh = 0x1.5555555555555p-1, kThirdLow = 0x1.5555555555555p-55;  // 2/3
    const Scaled m = scaled(x);
    const double f = m.part - 1.0;
    const Pair d = near_sum(2.0, f);
    const double inverse = 1.0 / d.high, s = f * inverse;
    const Pair back = product(s, d.high);
    const double s_low = ((f - back.high) - back.low - s * d.low) * inverse;
    const Pair z0 = product(s, s);
    const Pair z = near_sum(z0.high, fma(2.0 * s, s_low, z0.low));
    // 2/3 + z (2/5 + ...), then times z, then times s
    const double tail = z.high * polynomial(z.high, c);
    const Pair w0 = near_sum(kThirdHigh, tail);
    const double w_low = w0.low + kThirdLow;
    const Pair v0 = product(w0.high, z.high);
    const double v_low = v0.low + fma(w0.high, z.low, w_low * z.high);
    const Pair t0 = product(v0.high, s);
    const double t_low = t0.low + fma(v0.high, s_low, v_low * s);
    const Pair first = near_sum(2.0 * s, t0.high);
    const double first_low = first.low + fma(2.0, s_low, t_low);
    const Pair all = sum(m.power * kLn2High, first.high);
    return near_sum(all.high, all.low + fma(m.power, kLn2Low, first_low));
}

// e^(y log|x|), and the cases that C's pow names.
DYNAGRAD_INLINE double pow(double x, double y) {
    const double a = size(x);
    const Pair l = long_log(a);
    // |y| beyond 2^65 gives 0, 1 or an infinity for every x; without the bound the product would not be a number
    const double bound = y > 0x1p65 ? 0x1p65 : y < -0x1p65 ? -0x1p65 : y;
    const Pair p = product(l.high, bound);
    const double low = fma(l.low, bound, p.low);
    double r = exp_of(p.high, size(p.high) < 1000.0 ? low : 0.0);
    const double down = __builtin_floor(y), half = 0.5 * y;
    const bool whole = down == y, odd = whole && __builtin_floor(half) != half;
    const double end = y < 0.0 ? kInfinity : 0.0, other = y < 0.0 ? 0.0 : kInfinity;
    r = a == 0.0 ? end : r;
    r = a == kInfinity ? other : r;
    r = x < 0.0 && !whole && a != kInfinity ? __builtin_nan("") : r;
    r = odd ? signed_as(r, x) : r;
    r = x != x || y != y ? x + y : r;
    return x == 1.0 || y == 0.0 || (a == 1.0 && size(y) == kInfinity) ? 1.0 : r;
}

// -- angles ----------------------------------------------------------------------------------------------------------

// 2/pi behind the point, after a word of zeros; enough for the largest double.
inline constexpr uint64_t kTwoOverPi[] = {
    0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4,
    0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D};

// For each power 2^8i: 2^8i 2/pi without what is a multiple of 8 for all multiples of 2^-52, in four numbers of 53 bits.
struct Turns {
    double part[128][4];
    constexpr Turns() : part{} {
        constexpr double kUnit[] = {0x1p2, 0x1p-51, 0x1p-104, 0x1p-157};
        for (int i = 0; i < 128; ++i) {
            for (int j = 0; j < 4; ++j) {
                const int at = 64 + 8 * i - 55 + 53 * j, in = at % 64;  // the first bit
                const uint64_t next = in == 0 ? 0 : kTwoOverPi[at / 64 + 1] >> (64 - in);
                part[i][j] = static_cast<double>(((kTwoOverPi[at / 64] << in) | next) >> 11) * kUnit[j];
            }
        }
    }
};

#if defined(DYNAGRAD_LINKED) && !defined(DYNAGRAD_RUNTIME)
extern const Turns kTurns;
#else
inline constexpr Turns kTurns __attribute__((used));
#endif

struct Angle {
    double quarters;   // how many right angles were taken off, modulo 4
    double high, low;  // what is left, at most pi/4 (1 + 2^-20)
};

inline constexpr double kLargestAngle = 0x1p30;

// In three steps of pi/2, with the error of each.
DYNAGRAD_INLINE Angle small_angle(double x) {
    constexpr double a = 0x1.921fb54442d18p+0, b = 0x1.1a62633145c07p-54, c = -0x1.f1976b7ed8fbcp-110;
    const double k = fma(x, 0x1.45f306dc9c883p-1, kShift) - kShift;
    const Pair p = product(-k, a), q = product(-k, b);
    const double first = x + p.high;  // exact, since they are near each other
    const Pair s = sum(first, p.low), t = sum(s.high, q.high);
    const double rest = (s.low + t.low) + fma(-k, c, q.low);
    const Pair r = near_sum(t.high, rest);
    return {k, r.high, r.low};
}

// With as many bits of 2/pi as the argument asks for (Payne and Hanek 1983).
DYNAGRAD_INLINE Angle any_angle(double x) {
    const uint64_t b = bits(x);
    const uint64_t raw = (b >> 52) & 2047;
    const uint64_t e = raw > 1023 ? raw - 1023 : 0;
    const double m = raw > 1023 ? number((b & ~(uint64_t{2047} << 52)) | ((1023 + (e & 7)) << 52)) : x;
    const double* t = kTurns.part[e >> 3];
    Pair p = product(m, t[0]);
    const Pair q = product(m, t[1]), r = product(m, t[2]);
    p.high -= 8.0 * __builtin_rint(p.high * 0.125);
    p.low -= 8.0 * __builtin_rint(p.low * 0.125);
    const double whole = q.high - 8.0 * __builtin_rint(q.high * 0.125);
    const Pair s = sum(p.high + p.low, whole);
    const double k = __builtin_rint(s.high);
    const Pair u = sum(s.low, q.low), v = sum(u.high, r.high), w = sum(s.high - k, v.high);
    const double rest = fma(m, t[3], r.low) + u.low + v.low + w.low;
    const Pair f = near_sum(w.high, rest);
    constexpr double a = 0x1.921fb54442d18p+0, c = 0x1.1a62633145c07p-54;
    const Pair y = product(f.high, a);
    return {k, y.high, y.low + fma(f.high, c, f.low * a)};
}

DYNAGRAD_INLINE double sine(double r, double low) {
    constexpr double c[] = {-0x1.5555555555547p-3, 0x1.111111110f627p-7,   -0x1.a01a019bc2a5ap-13,
                            0x1.71de353007685p-19, -0x1.ae5e2bfb8f9cbp-26, 0x1.5d81969f72b2cp-33};
    const double z = r * r;
    return r + fma(r * z, polynomial(z, c), low);
}
DYNAGRAD_INLINE double cosine(double r, double low) {
    constexpr double c[] = {0x1.555555555554bp-5,   -0x1.6c16c16c14fafp-10, 0x1.a01a019c7e619p-16,
                            -0x1.27e4f7e13d55fp-22, 0x1.1ee9ce3585dedp-29,  -0x1.8f9e54cf08f34p-37};
    const double z = r * r, half = 0.5 * z, most = 1.0 - half;
    return most + (((1.0 - most) - half) + fma(z * z, polynomial(z, c), -r * low));
}

// The sine of the angle and `turn` right angles more.
DYNAGRAD_INLINE double turned(const Angle& angle, double turn) {
    const uint64_t quarters = bits(angle.quarters + turn + kShift);
    const double s = sine(angle.high, angle.low), c = cosine(angle.high, angle.low);
    const double y = (quarters & 1) != 0 ? c : s;
    return number(bits(y) ^ ((quarters & 2) << 62));
}

DYNAGRAD_INLINE double sin_of(double x, const Angle& angle) {
    const double y = turned(angle, 0.0);
    return size(x) < 0x1p-26 ? x : size(x) < kInfinity ? y : x - x;
}
DYNAGRAD_INLINE double cos_of(double x, const Angle& angle) {
    const double y = turned(angle, 1.0);
    return size(x) < kInfinity ? y : x - x;
}

DYNAGRAD_INLINE double sin(double x) { return sin_of(x, any_angle(x)); }
DYNAGRAD_INLINE double cos(double x) { return cos_of(x, any_angle(x)); }

// The same for arguments up to kLargestAngle, in less than half the time.
DYNAGRAD_INLINE double small_sin(double x) { return sin_of(x, small_angle(x)); }
DYNAGRAD_INLINE double small_cos(double x) { return cos_of(x, small_angle(x)); }

#undef DYNAGRAD_UNROLLED
#undef DYNAGRAD_INLINE

}  // namespace dynagrad::graphs::vector
