// ode.py by hand: the function, and its adjoint, which keeps the state before each step and takes the step again.
#include <stdlib.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int STEPS = 200'000;
constexpr double H = 2e-4;

struct Two {
    double x, y;
};

struct Rates {
    double a, b, c, d;
};

Two slope(const Rates& r, Two z) { return {z.x * (r.a - r.b * z.y), z.y * (r.d * z.x - r.c)}; }

Two along(Two z, double h, Two k) { return {z.x + h * k.x, z.y + h * k.y}; }

Two step(const Rates& r, Two z) {
    const Two k1 = slope(r, z);
    const Two k2 = slope(r, along(z, 0.5 * H, k1));
    const Two k3 = slope(r, along(z, 0.5 * H, k2));
    const Two k4 = slope(r, along(z, H, k3));
    return {z.x + H / 6.0 * (k1.x + 2.0 * k2.x + 2.0 * k3.x + k4.x),
            z.y + H / 6.0 * (k1.y + 2.0 * k2.y + 2.0 * k3.y + k4.y)};
}

// Adds to the adjoints of the rates; the result is the adjoint of z.
Two slope_back(const Rates& r, Two z, Two k, Rates& to) {
    const double x = k.x * z.x, y = k.y * z.y;
    to.a += x;
    to.b -= x * z.y;
    to.c -= y;
    to.d += y * z.x;
    return {k.x * (r.a - r.b * z.y) + y * r.d, k.y * (r.d * z.x - r.c) - x * r.b};
}

Two step_back(const Rates& r, Two z, Two out, Rates& to) {
    const Two k1 = slope(r, z), z2 = along(z, 0.5 * H, k1);
    const Two k2 = slope(r, z2), z3 = along(z, 0.5 * H, k2);
    const Two k3 = slope(r, z3), z4 = along(z, H, k3);
    const Two sixth{H / 6.0 * out.x, H / 6.0 * out.y}, third{2.0 * sixth.x, 2.0 * sixth.y};
    const Two b4 = slope_back(r, z4, sixth, to);
    const Two b3 = slope_back(r, z3, along(third, H, b4), to);
    const Two b2 = slope_back(r, z2, along(third, 0.5 * H, b3), to);
    const Two b1 = slope_back(r, z, along(sixth, 0.5 * H, b2), to);
    return {out.x + b4.x + b3.x + b2.x + b1.x, out.y + b4.y + b3.y + b2.y + b1.y};
}

}  // namespace

EXPORT double function(const double* in) {
    const Rates r{in[0], in[1], in[2], in[3]};
    Two z{in[4], in[5]};
    for (int i = 0; i < STEPS; ++i) z = step(r, z);
    return z.x * z.y;
}

EXPORT double gradient(const double* in, double* out) {
    const Rates r{in[0], in[1], in[2], in[3]};
    Two* before = static_cast<Two*>(malloc(STEPS * sizeof(Two)));
    Two z{in[4], in[5]};
    for (int i = 0; i < STEPS; ++i) {
        before[i] = z;
        z = step(r, z);
    }
    Rates to{0.0, 0.0, 0.0, 0.0};
    Two back{z.y, z.x};
    for (int i = STEPS; i-- > 0;) back = step_back(r, before[i], back, to);
    free(before);
    out[0] = to.a, out[1] = to.b, out[2] = to.c, out[3] = to.d, out[4] = back.x, out[5] = back.y;
    return z.x * z.y;
}
