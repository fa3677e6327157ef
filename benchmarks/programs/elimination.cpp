// elimination.py by hand: the function, and its adjoint, which needs no more than the two factors of the matrix.
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int N = 40;

using Matrix = double[N][N];

// The factors take the place of the matrix: the upper one with its diagonal, the lower one below it.
double eliminate(Matrix& a) {
    double determinant = 1.0;
    for (int k = 0; k < N; ++k) {
        determinant *= a[k][k];
        for (int i = k + 1; i < N; ++i) {
            const double factor = a[i][k] / a[k][k];
            a[i][k] = factor;
            for (int j = k + 1; j < N; ++j) a[i][j] -= factor * a[k][j];
        }
    }
    return determinant;
}

}  // namespace

EXPORT double function(const double* in) {
    Matrix a;
    memcpy(a, in, sizeof a);
    return eliminate(a);
}

// `back` holds the adjoints of what each place holds at that time.
EXPORT double gradient(const double* in, double* out) {
    Matrix a;
    memcpy(a, in, sizeof a);
    const double determinant = eliminate(a);
    Matrix& back = *reinterpret_cast<Matrix*>(out);
    memset(back, 0, sizeof back);
    double before[N];  // the products of the pivots before each
    double product = 1.0;
    for (int k = 0; k < N; ++k) {
        before[k] = product;
        product *= a[k][k];
    }
    double of_product = 1.0;
    for (int k = N; k-- > 0;) {
        double pivot = of_product * before[k];
        for (int i = k + 1; i < N; ++i) {
            const double factor = a[i][k];
            double of_factor = 0.0;
            for (int j = k + 1; j < N; ++j) {
                of_factor -= back[i][j] * a[k][j];
                back[k][j] -= back[i][j] * factor;
            }
            back[i][k] = of_factor / a[k][k];
            pivot -= back[i][k] * factor;
        }
        back[k][k] = pivot;
        of_product *= a[k][k];
    }
    return determinant;
}
