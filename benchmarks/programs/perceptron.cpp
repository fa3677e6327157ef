// Two hidden units and one learn exclusive or: gradient descent on the sum of squared errors, derivatives by hand.
#include <math.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr double INPUTS[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
constexpr double WANTED[4] = {0, 1, 1, 0};
constexpr int STEPS = 1000;
constexpr double RATE = 2.0;

double squashed(double x) { return 1.0 / (1.0 + exp(-x)); }

double error_and_slope(const double* w, double* slope) {
    double error = 0.0;
    for (int k = 0; k < 9; ++k) slope[k] = 0.0;
    for (int i = 0; i < 4; ++i) {
        const double x = INPUTS[i][0], y = INPUTS[i][1];
        const double a = squashed(w[0] + x * w[1] + y * w[2]), b = squashed(w[3] + x * w[4] + y * w[5]);
        const double out = squashed(w[6] + a * w[7] + b * w[8]), miss = out - WANTED[i];
        error += miss * miss;
        const double of_out = 2.0 * miss * out * (1.0 - out);
        const double of_a = of_out * w[7] * a * (1.0 - a), of_b = of_out * w[8] * b * (1.0 - b);
        slope[0] += of_a, slope[1] += of_a * x, slope[2] += of_a * y;
        slope[3] += of_b, slope[4] += of_b * x, slope[5] += of_b * y;
        slope[6] += of_out, slope[7] += of_out * a, slope[8] += of_out * b;
    }
    return error;
}

}  // namespace

EXPORT double function(const double* in) {
    double w[9], slope[9];
    for (int k = 0; k < 9; ++k) w[k] = in[k];
    for (int i = 0; i < STEPS; ++i) {
        error_and_slope(w, slope);
        for (int k = 0; k < 9; ++k) w[k] -= RATE * slope[k];
    }
    return error_and_slope(w, slope);
}

EXPORT double gradient(const double*, double*) { return 0.0; }
