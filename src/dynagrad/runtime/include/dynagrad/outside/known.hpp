// Templates over the semirings, as instances that are compiled once: what programs are linked with, beside the runtime.
//
// DYNAGRAD_FORWARD_S(extern template) says that the instances over a semiring S are elsewhere, and
// DYNAGRAD_FORWARD_S(template) makes them; so does DYNAGRAD_BACK_S with what a backward pass needs more, and
// DYNAGRAD_MATRICES_S with what rows times matrices need. Each semiring has an object for any of these
// (`codegen/rules/linked.py`).
#pragma once
#include <dynagrad/outside/cotangents.hpp>

#define DYNAGRAD_OPEN(KNOWN, S, N)           \
  KNOWN Dense<S, N>::Dense(Account*);        \
  KNOWN void Dense<S, N>::begin(TableView&, const Range*, const int32_t*, const Extent*, bool, bool);

#define DYNAGRAD_OF(KNOWN, S)           \
  KNOWN struct ReaderOf<S>;             \
  KNOWN struct RelationOf<S>;           \
  KNOWN struct DenseOf<S::Value>;       \
  KNOWN struct HashedOf<S::Value>;      \
  DYNAGRAD_OPEN(KNOWN, S, 0) DYNAGRAD_OPEN(KNOWN, S, 1) DYNAGRAD_OPEN(KNOWN, S, 2) DYNAGRAD_OPEN(KNOWN, S, 3) \
  KNOWN void seal<S>(ChartBase&, int64_t, Table&, const Array<S::Value>&, bool, bool);

#define DYNAGRAD_ROWS(KNOWN, S)                                                                                   \
  KNOWN void arrive_new(DenseOf<S::Value>&, int64_t, uint64_t, ChartBase*, Arrive);                              \
  KNOWN void add_shifted(const DenseOf<S::Value>&, int64_t, int64_t, DenseOf<S::Value>&, int64_t, S::Value,      \
                         ChartBase*, Arrive);                                                                    \
  KNOWN void add_facts(const Weights<S>::View&, int64_t, int64_t, DenseOf<S::Value>&, int64_t, S::Value, ChartBase*, \
                       Arrive);
#define DYNAGRAD_MATRICES_OF(KNOWN, S)                                                                            \
  KNOWN void add_matrix(const Weights<S>::View&, const GridAlong&, uint64_t, const S::Value*, DenseOf<S::Value>&, \
                        int64_t, ChartBase*, Arrive);
#define DYNAGRAD_ROWS_BACK(KNOWN, S)                                                         \
  KNOWN double back_shifted(const DenseOf<S::Value>&, int64_t, int64_t, double*, const S::Value*, S::Value);

#define DYNAGRAD_FORWARD_Real(KNOWN) DYNAGRAD_OF(KNOWN, Real) DYNAGRAD_ROWS(KNOWN, Real) KNOWN struct Together<double>;
#define DYNAGRAD_FORWARD_Plain(KNOWN) DYNAGRAD_OF(KNOWN, Plain)
#define DYNAGRAD_FORWARD_Log(KNOWN)                                      \
  DYNAGRAD_OF(KNOWN, Log)                                                \
  KNOWN void add_cells(Log::Value*, const Log::Value*, uint64_t, Log::Value); \
  KNOWN void add_long(const DenseOf<Log::Value>&, int64_t, int64_t, DenseOf<Log::Value>&, int64_t, Log::Value, \
                      ChartBase*, Arrive);                               \
  KNOWN void add_scaled(Log::Value*, Mantissas, int64_t, Log::Value);    \
  KNOWN void add_scaled(Log::Value*, Apart, int64_t, Log::Value);        \
  KNOWN struct Together<Log::Value>;                                     \
  DYNAGRAD_ROWS(KNOWN, Log)
#define DYNAGRAD_FORWARD_Viterbi(KNOWN) DYNAGRAD_OF(KNOWN, Viterbi)
#define DYNAGRAD_FORWARD_Tropical(KNOWN) DYNAGRAD_OF(KNOWN, Tropical)
#define DYNAGRAD_FORWARD_Boolean(KNOWN) DYNAGRAD_OF(KNOWN, Boolean)
#define DYNAGRAD_FORWARD_Count(KNOWN) DYNAGRAD_OF(KNOWN, Count)

#define DYNAGRAD_MATRICES_Real(KNOWN) DYNAGRAD_MATRICES_OF(KNOWN, Real)
#define DYNAGRAD_MATRICES_Log(KNOWN) DYNAGRAD_MATRICES_OF(KNOWN, Log)

#define DYNAGRAD_BACK_Real(KNOWN) KNOWN struct Cotangents<Real, Real>; DYNAGRAD_ROWS_BACK(KNOWN, Real)
#define DYNAGRAD_BACK_Plain(KNOWN) KNOWN struct Cotangents<Plain, Plain>;
#define DYNAGRAD_BACK_Log(KNOWN)                                                                        \
  KNOWN struct Cotangents<Log, Posterior>;                                                              \
  KNOWN struct Cotangents<Log, Log>;                                                                    \
  KNOWN double back_cells(const Log::Value*, double*, const Log::Value*, uint64_t, Log::Value, double); \
  KNOWN double back_scaled(Mantissas, int64_t, double*, const Log::Value*, Log::Value);                 \
  KNOWN double back_scaled(Apart, int64_t, double*, const Log::Value*, Log::Value);                     \
  DYNAGRAD_ROWS_BACK(KNOWN, Log)
#define DYNAGRAD_BACK_Viterbi(KNOWN) KNOWN struct Cotangents<Viterbi, Viterbi>;
#define DYNAGRAD_BACK_Tropical(KNOWN) KNOWN struct Cotangents<Tropical, Tropical>;

#if defined(DYNAGRAD_LINKED)
namespace dynagrad {
DYNAGRAD_FORWARD_Real(extern template)
DYNAGRAD_FORWARD_Plain(extern template)
DYNAGRAD_FORWARD_Log(extern template)
DYNAGRAD_MATRICES_Real(extern template)
DYNAGRAD_MATRICES_Log(extern template)
DYNAGRAD_FORWARD_Viterbi(extern template)
DYNAGRAD_FORWARD_Tropical(extern template)
DYNAGRAD_FORWARD_Boolean(extern template)
DYNAGRAD_FORWARD_Count(extern template)
DYNAGRAD_BACK_Real(extern template)
DYNAGRAD_BACK_Plain(extern template)
DYNAGRAD_BACK_Log(extern template)
DYNAGRAD_BACK_Viterbi(extern template)
DYNAGRAD_BACK_Tropical(extern template)
}  // namespace dynagrad
#endif
