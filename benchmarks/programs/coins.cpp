// One of two coins is taken and thrown twice: the likelihood of counts of heads, and its ascent, derivatives by hand.
#include <math.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int STEPS = 300;
constexpr double RATE = 0.05;
constexpr double COUNTS[3] = {8, 4, 8};  // of none, one, two heads

double squashed(double x) { return 1.0 / (1.0 + exp(-x)); }

double loss_and_slope(const double* x, double* slope) {
    double c[3];
    for (int k = 0; k < 3; ++k) c[k] = squashed(x[k]);
    const double t = c[0], p = c[1], q = c[2], s = 1.0 - t;
    const double none = t * (1 - p) * (1 - p) + s * (1 - q) * (1 - q);
    const double one = 2.0 * (t * p * (1 - p) + s * q * (1 - q)), two = t * p * p + s * q * q;
    const double a = COUNTS[0] / none, b = COUNTS[1] / one, d = COUNTS[2] / two;
    const double of_t = a * ((1 - p) * (1 - p) - (1 - q) * (1 - q)) + b * 2.0 * (p * (1 - p) - q * (1 - q)) +
                        d * (p * p - q * q);
    const double of_p = t * (-2.0 * a * (1 - p) + 2.0 * b * (1 - 2.0 * p) + 2.0 * d * p);
    const double of_q = s * (-2.0 * a * (1 - q) + 2.0 * b * (1 - 2.0 * q) + 2.0 * d * q);
    slope[0] = -of_t * t * s, slope[1] = -of_p * p * (1 - p), slope[2] = -of_q * q * (1 - q);
    return -(COUNTS[0] * log(none) + COUNTS[1] * log(one) + COUNTS[2] * log(two));
}

}  // namespace

EXPORT double function(const double* in) {
    double x[3] = {in[0], in[1], in[2]}, slope[3];
    for (int i = 0; i < STEPS; ++i) {
        loss_and_slope(x, slope);
        for (int k = 0; k < 3; ++k) x[k] -= RATE * slope[k];
    }
    return loss_and_slope(x, slope);
}

EXPORT double gradient(const double*, double*) { return 0.0; }
