// The functions of <math.h> that the runtime and generated code call.
//
// That header of glibc has each function for nine types of numbers, and takes the compiler longer than all other headers
// of the system together. What is linked with objects of the runtime includes no headers but ours, so there they are
// declared here, for doubles.
#pragma once
#include <stdint.h>  // which says whether this is glibc

#if defined(DYNAGRAD_LINKED) && defined(__GLIBC__) && !defined(_MATH_H)
#define DYNAGRAD_ONE(f) double f(double) noexcept;
#define DYNAGRAD_TWO(f) double f(double, double) noexcept;
extern "C" {
DYNAGRAD_ONE(acos) DYNAGRAD_ONE(asin) DYNAGRAD_ONE(atan) DYNAGRAD_ONE(cos) DYNAGRAD_ONE(sin) DYNAGRAD_ONE(tan)
DYNAGRAD_ONE(acosh) DYNAGRAD_ONE(asinh) DYNAGRAD_ONE(atanh) DYNAGRAD_ONE(cosh) DYNAGRAD_ONE(sinh) DYNAGRAD_ONE(tanh)
DYNAGRAD_ONE(exp) DYNAGRAD_ONE(exp2) DYNAGRAD_ONE(expm1) DYNAGRAD_ONE(log) DYNAGRAD_ONE(log2) DYNAGRAD_ONE(log10)
DYNAGRAD_ONE(log1p) DYNAGRAD_ONE(sqrt) DYNAGRAD_ONE(cbrt) DYNAGRAD_ONE(fabs) DYNAGRAD_ONE(ceil) DYNAGRAD_ONE(floor)
DYNAGRAD_ONE(trunc) DYNAGRAD_ONE(rint) DYNAGRAD_ONE(nearbyint)
DYNAGRAD_TWO(atan2) DYNAGRAD_TWO(pow) DYNAGRAD_TWO(hypot) DYNAGRAD_TWO(fmod) DYNAGRAD_TWO(remainder)
DYNAGRAD_TWO(copysign) DYNAGRAD_TWO(fmax) DYNAGRAD_TWO(fmin)
double fma(double, double, double) noexcept;
double ldexp(double, int) noexcept;
double frexp(double, int*) noexcept;
int ilogb(double) noexcept;
}
#undef DYNAGRAD_ONE
#undef DYNAGRAD_TWO
#define INFINITY __builtin_inff()
#define HUGE_VAL __builtin_huge_val()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isfinite(x) __builtin_isfinite(x)
#else
#include <math.h>
#endif
