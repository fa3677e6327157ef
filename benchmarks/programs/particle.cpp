// particle.py by hand. The derivatives by w go along as jets: a value, its first and its second derivative by w. The
// force is written out. The adjoint goes backward through the Newton search and through the flight in each of its
// rounds, of which it keeps the places; velocities are linear in all they come from and need not be kept.
#include <math.h>
#include <stdlib.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr double STEP = 0.1;
constexpr double TOLERANCE = 1e-9;

struct Jet {
    double v, d, dd;
};

Jet operator+(Jet a, Jet b) { return {a.v + b.v, a.d + b.d, a.dd + b.dd}; }
Jet operator-(Jet a, Jet b) { return {a.v - b.v, a.d - b.d, a.dd - b.dd}; }
Jet operator-(Jet a, double b) { return {a.v - b, a.d, a.dd}; }
Jet operator*(double c, Jet a) { return {c * a.v, c * a.d, c * a.dd}; }
Jet operator*(Jet a, Jet b) {
    return {a.v * b.v, a.d * b.v + a.v * b.d, a.dd * b.v + 2.0 * a.d * b.d + a.v * b.dd};
}

// A function of which the value and two derivatives are known, at s.
Jet chain(double f, double f1, double f2, Jet s) { return {f, f1 * s.d, f1 * s.dd + f2 * s.d * s.d}; }

// The adjoint of one factor of a product.
Jet times_back(Jet out, Jet other) {
    return {out.v * other.v + out.d * other.d + out.dd * other.dd, out.d * other.v + 2.0 * out.dd * other.d,
            out.dd * other.v};
}

Jet chain_back(Jet out, double f1, double f2, double f3, Jet s) {
    return {out.v * f1 + out.d * f2 * s.d + out.dd * (f2 * s.dd + f3 * s.d * s.d),
            out.d * f1 + 2.0 * out.dd * f2 * s.d, out.dd * f1};
}

// s to the power of -3/2 and its derivatives.
struct Power {
    double f, f1, f2, f3;
    explicit Power(double s) {
        const double inverse = 1.0 / s;
        f = inverse * sqrt(inverse);
        f1 = -1.5 * f * inverse;
        f2 = -2.5 * f1 * inverse;
        f3 = -3.5 * f2 * inverse;
    }
};

struct Place {
    Jet x, y;
};

// The gradient of the potential: for both charges what is between, divided by the cube of its length.
Place force(Place at, double w) {
    const Jet a = at.x - 10.0, b = at.y + Jet{w - 10.0, 1.0, 0.0}, c = at.y;
    const Jet s = a * a + b * b, t = a * a + c * c;
    const Power p(s.v), q(t.v);
    const Jet one = chain(p.f, p.f1, p.f2, s), two = chain(q.f, q.f1, q.f2, t);
    return {-1.0 * (a * (one + two)), -1.0 * (b * one + c * two)};
}

// The adjoint of the place; that of w is added to `of_w`.
Place force_back(Place at, double w, Place out, double& of_w) {
    const Jet a = at.x - 10.0, b = at.y + Jet{w - 10.0, 1.0, 0.0}, c = at.y;
    const Jet s = a * a + b * b, t = a * a + c * c;
    const Power p(s.v), q(t.v);
    const Jet one = chain(p.f, p.f1, p.f2, s), two = chain(q.f, q.f1, q.f2, t);
    const Jet x = -1.0 * out.x, y = -1.0 * out.y, both = times_back(x, a);
    const Jet of_s = chain_back(both + times_back(y, b), p.f1, p.f2, p.f3, s);
    const Jet of_t = chain_back(both + times_back(y, c), q.f1, q.f2, q.f3, t);
    const Jet of_a = times_back(x, one + two) + 2.0 * times_back(of_s + of_t, a);
    const Jet of_b = times_back(y, one) + 2.0 * times_back(of_s, b);
    const Jet of_c = times_back(y, two) + 2.0 * times_back(of_t, c);
    of_w += of_b.v;
    return {of_a, of_b + of_c};
}

// Places that are kept, in room that grows.
struct Kept {
    Place* room = nullptr;
    long count = 0, most = 0;
    void push(Place p) {
        if (count == most) {
            most = most == 0 ? 1024 : 2 * most;
            room = static_cast<Place*>(realloc(room, most * sizeof(Place)));
        }
        room[count++] = p;
    }
    ~Kept() { free(room); }
};

struct Flight {
    Place at, speed;
};

Flight fly(const double* in, double w, Kept* kept) {
    Flight f{{{in[0], 0.0, 0.0}, {in[1], 0.0, 0.0}}, {{in[2], 0.0, 0.0}, {in[3], 0.0, 0.0}}};
    while (f.at.y.v + STEP * f.speed.y.v > 0.0) {
        if (kept != nullptr) kept->push(f.at);
        const Place along = force(f.at, w);
        f.at = {f.at.x + STEP * f.speed.x, f.at.y + STEP * f.speed.y};
        f.speed = {f.speed.x - STEP * along.x, f.speed.y - STEP * along.y};
    }
    return f;
}

Jet inverse(Jet s) {
    const double i = 1.0 / s.v;
    return chain(i, -i * i, 2.0 * i * i * i, s);
}

Jet miss(const Flight& f) {
    const Jet x = f.at.x - f.at.y * inverse(f.speed.y) * f.speed.x;
    return x * x;
}

Flight miss_back(const Flight& f, Jet out) {
    const Jet over = inverse(f.speed.y), time = f.at.y * over, x = f.at.x - time * f.speed.x;
    const Jet of_x = 2.0 * times_back(out, x), of_time = -1.0 * times_back(of_x, f.speed.x);
    const double i = over.v;
    const Jet of_speed =
        chain_back(times_back(of_time, f.at.y), -i * i, 2.0 * i * i * i, -6.0 * i * i * i * i, f.speed.y);
    return {{of_x, times_back(of_time, over)}, {-1.0 * times_back(of_x, time), of_speed}};
}

// A round of Newton's method: where it starts, what it finds, and how many places were kept before it.
struct Round {
    double w;
    Jet found;
    Flight end;
    long before;
};

}  // namespace

EXPORT double function(const double* in) {
    double w = 0.0, change = 1.0;
    while (fabs(change) > TOLERANCE) {
        const Jet found = miss(fly(in, w, nullptr));
        change = found.d / found.dd;
        w -= change;
    }
    return w;
}

EXPORT double gradient(const double* in, double* out) {
    constexpr int MOST = 1000;
    static thread_local Round rounds[MOST];
    Kept kept;
    double w = 0.0, change = 1.0;
    int count = 0;
    while (fabs(change) > TOLERANCE && count < MOST) {
        const long before = kept.count;
        const Flight end = fly(in, w, &kept);
        const Jet found = miss(end);
        rounds[count++] = {w, found, end, before};
        change = found.d / found.dd;
        w -= change;
    }
    for (int k = 0; k < 4; ++k) out[k] = 0.0;
    double of_w = 1.0;
    for (int k = count; k-- > 0;) {
        const Round& r = rounds[k];
        const Jet of_found{0.0, -of_w / r.found.dd, of_w * r.found.d / (r.found.dd * r.found.dd)};
        Flight back = miss_back(r.end, of_found);
        while (kept.count > r.before) {
            const Place pull{-STEP * back.speed.x, -STEP * back.speed.y};
            const Place by_force = force_back(kept.room[--kept.count], r.w, pull, of_w);
            back.speed = {back.speed.x + STEP * back.at.x, back.speed.y + STEP * back.at.y};
            back.at = {back.at.x + by_force.x, back.at.y + by_force.y};
        }
        out[0] += back.at.x.v, out[1] += back.at.y.v, out[2] += back.speed.x.v, out[3] += back.speed.y.v;
    }
    return w;
}
