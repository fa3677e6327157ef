// The compiler's support functions for 128-bit integers, where no compiler runtime library is linked.
//
// Generated code is linked with libc and libm alone. A processor has no instruction for dividing 128-bit integers or
// for turning them into doubles, so compilers call functions with the names below; other compilers bring them along
// in a library. This header is put before each source by the toolchain, where it is needed, and nobody includes it.
// Nothing here is quick: division goes bit by bit, and generated code divides such integers only to print them.
// Programs that are linked with the runtime have these there.
#if defined(__SIZEOF_INT128__) && !defined(DYNAGRAD_BUILTIN) && (!defined(DYNAGRAD_LINKED) || defined(DYNAGRAD_RUNTIME))

#define DYNAGRAD_BUILTIN extern "C" __attribute__((weak, visibility("hidden")))

DYNAGRAD_BUILTIN unsigned __int128 __udivmodti4(unsigned __int128 a, unsigned __int128 b, unsigned __int128* rest) {
    unsigned __int128 quotient = 0, remainder = 0;
    for (int bit = 127; bit >= 0; --bit) {
        const bool carry = static_cast<bool>(remainder >> 127);  // the remainder may need 129 bits for a moment
        remainder = remainder << 1 | (a >> bit & 1);
        if (carry || remainder >= b) {
            remainder -= b;
            quotient |= static_cast<unsigned __int128>(1) << bit;
        }
    }
    if (rest != nullptr) *rest = remainder;
    return quotient;
}

DYNAGRAD_BUILTIN unsigned __int128 __udivti3(unsigned __int128 a, unsigned __int128 b) {
    return __udivmodti4(a, b, nullptr);
}

DYNAGRAD_BUILTIN unsigned __int128 __umodti3(unsigned __int128 a, unsigned __int128 b) {
    unsigned __int128 rest;
    __udivmodti4(a, b, &rest);
    return rest;
}

// The size of a signed number; the smallest one has a size too, as an unsigned number.
static inline unsigned __int128 dynagrad_size_of(__int128 a) {
    const unsigned __int128 bits = static_cast<unsigned __int128>(a);
    return a < 0 ? -bits : bits;
}

DYNAGRAD_BUILTIN __int128 __divti3(__int128 a, __int128 b) {
    const unsigned __int128 size = __udivti3(dynagrad_size_of(a), dynagrad_size_of(b));
    return static_cast<__int128>((a < 0) != (b < 0) ? -size : size);
}

DYNAGRAD_BUILTIN __int128 __modti3(__int128 a, __int128 b) {
    const unsigned __int128 size = __umodti3(dynagrad_size_of(a), dynagrad_size_of(b));
    return static_cast<__int128>(a < 0 ? -size : size);
}

// Rounded once: the low bits that a double cannot hold are folded into one sticky bit before the only rounding.
DYNAGRAD_BUILTIN double __floatuntidf(unsigned __int128 a) {
    const unsigned long long high = static_cast<unsigned long long>(a >> 64);
    if (high == 0) return static_cast<double>(static_cast<unsigned long long>(a));
    const int shift = 64 - __builtin_clzll(high);
    const unsigned __int128 lost = a & ((static_cast<unsigned __int128>(1) << shift) - 1);
    const unsigned long long top = static_cast<unsigned long long>(a >> shift) | (lost != 0 ? 1 : 0);
    const unsigned long long two = static_cast<unsigned long long>(1023 + shift) << 52;  // the bits of 2^shift
    double scale;
    __builtin_memcpy(&scale, &two, sizeof scale);
    return static_cast<double>(top) * scale;
}

DYNAGRAD_BUILTIN double __floattidf(__int128 a) {
    const double size = __floatuntidf(dynagrad_size_of(a));
    return a < 0 ? -size : size;
}

// What does not fit is the largest number, and what is negative or not a number is zero.
DYNAGRAD_BUILTIN unsigned __int128 __fixunsdfti(double a) {
    if (!(a >= 1)) return 0;
    if (a >= 0x1p128) return ~static_cast<unsigned __int128>(0);
    const unsigned long long high = static_cast<unsigned long long>(a * 0x1p-64);
    const unsigned long long low = static_cast<unsigned long long>(a - static_cast<double>(high) * 0x1p64);
    return static_cast<unsigned __int128>(high) << 64 | low;
}

DYNAGRAD_BUILTIN __int128 __fixdfti(double a) {
    const bool negative = a < 0;
    const unsigned __int128 largest = ~static_cast<unsigned __int128>(0) >> 1;
    const unsigned __int128 size = __fixunsdfti(negative ? -a : a);
    if (size > largest) return static_cast<__int128>(negative ? largest + 1 : largest);
    return static_cast<__int128>(negative ? -size : size);
}

#endif
