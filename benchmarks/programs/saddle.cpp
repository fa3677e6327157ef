// saddle.py by hand. The outer descent follows the gradient of W(x) = payoff(x, y_K), where y_K is the end of the inner
// one; that gradient goes backward through the inner descent, with `l` for the adjoints of y. The function's adjoint
// goes backward through all of this: first forward through the backward pass, then backward through the forward pass.
#include <stdlib.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr double RATE = 0.1;
constexpr double TOLERANCE = 1e-12;

struct Two {
    double a, b;
};

struct Coefficients {
    double p, q, r;
};

// An inner descent: its places, and for each the adjoint of its place.
struct Point {
    Two y, l;
};

// Points that are kept, in room that grows.
struct Kept {
    Point* room = nullptr;
    long count = 0, most = 0;
    void push(Two y) {
        if (count == most) {
            most = most == 0 ? 1024 : 2 * most;
            room = static_cast<Point*>(realloc(room, most * sizeof(Point)));
        }
        room[count++] = {y, {0.0, 0.0}};
    }
    ~Kept() { free(room); }
};

// The gradient of -payoff by y.
Two loss_slope(Two x, Two y, double r) { return {2.0 * y.a - x.a - r * x.b * y.b, 2.0 * y.b - r * x.b * y.a}; }

// The product of the second derivative of -payoff by y with a vector; it depends on x alone, and is symmetric.
Two bent(Two x, Two v, double r) { return {2.0 * v.a - r * x.b * v.b, 2.0 * v.b - r * x.b * v.a}; }

// The gradient of W. The points of the inner descent are pushed onto `kept`, their adjoints are filled in.
Two outer_slope(Two x, const Coefficients& c, Kept& kept) {
    const long first = kept.count;
    Two y{1.0, 1.0}, g = loss_slope(x, y, c.r);
    kept.push(y);
    while (g.a * g.a + g.b * g.b > TOLERANCE) {
        y = {y.a - RATE * g.a, y.b - RATE * g.b};
        g = loss_slope(x, y, c.r);
        kept.push(y);
    }
    Two of_x{2.0 * (x.a - c.p) + y.a, 2.0 * (x.b - c.q) + c.r * y.a * y.b};
    Two l{-g.a, -g.b};
    kept.room[kept.count - 1].l = l;
    for (long k = kept.count - 1; k-- > first;) {
        Point& at = kept.room[k];
        of_x.a += RATE * l.a;
        of_x.b += RATE * c.r * (at.y.b * l.a + at.y.a * l.b);
        const Two h = bent(x, l, c.r);
        l = {l.a - RATE * h.a, l.b - RATE * h.b};
        at.l = l;
    }
    return of_x;
}

// The adjoint of x, given that `v` of the gradient of W. The points from `first` on are those of `outer_slope` at x;
// they are dropped. Adds to the adjoints of the coefficients.
Two outer_back(Two x, const Coefficients& c, Two v, Kept& kept, long first, Coefficients& to) {
    const long last = kept.count - 1;
    Two of_x{0.0, 0.0};
    // Forward through the backward pass: m is the adjoint of l. In each point l makes room for the adjoint of y.
    Two m{0.0, 0.0};
    for (long k = first; k < last; ++k) {
        const Point at = kept.room[k];
        const Two l = kept.room[k + 1].l;
        kept.room[k].l = {RATE * c.r * v.b * l.b, RATE * c.r * v.b * l.a};
        const double crossed = m.a * l.b + m.b * l.a;
        of_x.b += RATE * c.r * crossed;
        to.r += RATE * (v.b * (at.y.b * l.a + at.y.a * l.b) + x.b * crossed);
        const Two h = bent(x, m, c.r);
        m = {m.a - RATE * h.a + RATE * (v.a + c.r * v.b * at.y.b), m.b - RATE * h.b + RATE * c.r * v.b * at.y.a};
    }
    const Two y = kept.room[last].y, h = bent(x, m, c.r);
    Two n{v.a + c.r * v.b * y.b - h.a, c.r * v.b * y.a - h.b};  // the adjoint of y
    const double crossed = m.a * y.b + m.b * y.a;
    of_x.a += 2.0 * v.a + m.a;
    of_x.b += 2.0 * v.b + c.r * crossed;
    to.p -= 2.0 * v.a;
    to.q -= 2.0 * v.b;
    to.r += v.b * y.a * y.b + x.b * crossed;
    for (long k = last; k-- > first;) {
        const Point at = kept.room[k];
        const double across = n.a * at.y.b + n.b * at.y.a;
        of_x.a += RATE * n.a;
        of_x.b += RATE * c.r * across;
        to.r += RATE * x.b * across;
        const Two b = bent(x, n, c.r);
        n = {n.a - RATE * b.a + at.l.a, n.b - RATE * b.b + at.l.b};
    }
    kept.count = first;
    return of_x;
}

}  // namespace

EXPORT double function(const double* in) {
    const Coefficients c{in[0], in[1], in[2]};
    Kept kept;
    Two x{1.0, 1.0}, g = outer_slope(x, c, kept);
    while (g.a * g.a + g.b * g.b > TOLERANCE) {
        x = {x.a - RATE * g.a, x.b - RATE * g.b};
        kept.count = 0;
        g = outer_slope(x, c, kept);
    }
    return x.a * x.b;
}

EXPORT double gradient(const double* in, double* out) {
    constexpr int MOST = 100'000;
    struct Before {
        Two x;
        long first;
    };
    static thread_local Before before[MOST];
    const Coefficients c{in[0], in[1], in[2]};
    Kept kept;
    int count = 0;
    Two x{1.0, 1.0}, g = outer_slope(x, c, kept);
    before[0] = {x, 0};
    while (g.a * g.a + g.b * g.b > TOLERANCE && count < MOST - 1) {
        x = {x.a - RATE * g.a, x.b - RATE * g.b};
        before[++count] = {x, kept.count};
        g = outer_slope(x, c, kept);
    }
    kept.count = before[count].first;
    Coefficients to{0.0, 0.0, 0.0};
    Two back{x.b, x.a};
    while (count-- > 0) {
        const Two v{-RATE * back.a, -RATE * back.b};
        const Two more = outer_back(before[count].x, c, v, kept, before[count].first, to);
        back = {back.a + more.a, back.b + more.b};
    }
    out[0] = to.p, out[1] = to.q, out[2] = to.r;
    return x.a * x.b;
}
