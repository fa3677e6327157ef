// Numbers of semirings as arrays of doubles, for linear systems.
//
// The systems are in `solving/solve.hpp`; semirings without subtraction are solved by `solving/closed.hpp`, without these.
#pragma once
#include <dynagrad/jets.hpp>

namespace dynagrad {

// How a number is an array of doubles, the first of which is the primal one; `nilpotent` is how many corrections the
// others need, and from `values` on they are tangents. In `scaled` semirings the array is relative to a weight that is given beside it.
template <class S>
struct Parts {
  static constexpr bool scaled = false;
  static constexpr int count = sizeof(typename S::Value) / sizeof(double), nilpotent = 1, values = count;
  static void split(const typename S::Value& v, const Log::Value&, double* out) { memcpy(out, &v, sizeof v); }
  static typename S::Value join(const double* x, const Log::Value&) {
    typename S::Value v;
    memcpy((void*)&v, x, sizeof v);
    return v;
  }
};
template <class S, int K>
struct Parts<Jets<S, K>> : Parts<S> {
  using Value = typename Jets<S, K>::Value;
  static constexpr int count = sizeof(Value) / sizeof(double), nilpotent = K + 1, values = Parts<S>::count;
  static void split(const Value& v, const Log::Value&, double* out) { memcpy(out, &v, sizeof v); }
  static Value join(const double* x, const Log::Value&) {
    Value v;
    memcpy((void*)&v, x, sizeof v);
    return v;
  }
};
template <int K>
struct Parts<PlainJets<K>> : Parts<Jets<Real, K>> {};

// The ratio of two weights as a double; zero or infinite where it is out of range.
inline double ratio(double m, int64_t e, const Log::Value& unit) {
  m /= unit.m, e -= unit.e;
  return e == 0 || m == 0 ? m : ldexp(m, (int)(256 * (e > 8 ? 8 : e < -8 ? -8 : e)));
}
template <>
struct Parts<Log> {
  static constexpr bool scaled = true;
  static constexpr int count = 1, nilpotent = 0, values = 1;
  static void split(const Log::Value& v, const Log::Value& unit, double* out) { *out = ratio(v.m, v.e, unit); }
  static Log::Value join(const double* x, const Log::Value& unit) {
    return Log::signed_norm(*x * unit.m, unit.e);
  }
  static Log::Value size(const Log::Value& v) { return v; }
};
template <int K>
struct Parts<LogJets<K>> {
  using Value = typename LogJets<K>::Value;
  static constexpr bool scaled = true;
  static constexpr int count = 1 << K, nilpotent = K, values = 1;
  static void split(const Value& v, const Log::Value& unit, double* out) {
    for (int i = 0; i < count; i++) out[i] = ratio(v.m[i], v.e, unit);
  }
  static Value join(const double* x, const Log::Value& unit) {
    Value v;
    for (int i = 0; i < count; i++) v.m[i] = x[i] * unit.m;
    v.e = unit.e;
    return LogJets<K>::settled(v);
  }
  static Log::Value size(const Value& v) { return {v.m[0], v.e}; }
};

}  // namespace dynagrad
