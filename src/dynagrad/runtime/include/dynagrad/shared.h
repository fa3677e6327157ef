// What native code and Python share: numbers with a meaning, layouts of structures, and functions that Python calls.
//
// Plain C. C++ includes it, so that a definition with other types is an error of the compiler; Python reads it
// (`runtime/shared.py`), so that nothing here is said twice. Python reads this much of C: enums, structures, types of
// pointers to functions, whole numbers as constants, and declarations of functions. What stands between #ifdef and
// #endif is for compilers alone. Python has numbers by their names in capitals: kNotPositive is NOT_POSITIVE.
// DYNAGRAD_IS(x) says that a field begins with x.
//
// A function that returns a pointer which is not const makes an object: null where that ended early, and then
// `dg_failure` says why; one that returns a Failure says itself how it ended. What has a `Host` gives up the
// interpreter lock, and asks now and then whether to stop; `stop` is a flag, or null, that any thread may raise. A
// limit of -1 is none.
//
// It is long because all that is shared is here.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define DYNAGRAD_IS(number) = number
namespace dynagrad {
extern "C" {
#else
#define DYNAGRAD_IS(number)
#include <stdbool.h>
#endif

// -- the interpreter --------------------------------------------------------------------------------------------------

// What is needed of the interpreter. Any of the pointers may be null.
typedef struct Host Host;
struct Host {
  void* (*save)(void);          // gives up the lock of this thread
  void (*restore)(void* state); // takes it back
  int (*check)(void);           // runs the handlers of signals that have come in; not zero if one raised
};

// -- calls of generated functions: calls/body.hpp, calls/python.hpp ---------------------------------------------------

// Why a body did not reach its end. Each stands for an exception of Python (the table is in calling.py); numbers from
// kFirstOwn on are free for whoever writes bodies.
enum Outcome {
  kDone = 0,
  kInterrupted = 1,  // a signal's handler raised
  kMemory = 2,
  kRecursion = 3,
  kIndex = 4,
  kDivision = 5,
  kValue = 6,
  kFailed = 7,
  kLate = 8,
  kFirstOwn = 64
};

static const int64_t kMessage = 256;  // bytes of what a body says when it fails

typedef struct Context Context;
struct Context {
  const Host* host;
  char* message;             // room for kMessage bytes, or null if nobody reads it
  const void* const* given;  // what a function works with besides its inputs: the same code may run with other data
#ifdef __cplusplus
  int64_t fail(int64_t status, const char* text) const;
#endif
};

typedef int64_t (*Body)(const Context* context, const void* const* inputs, void* const* outputs);

// The kinds of numbers.
enum NumberKind { kReal, kInteger, kBoolean };

// Functions and objects of Python and numpy; the functions have Python's own names.
typedef struct Python Python;
struct Python {
  double (*PyFloat_AsDouble)(void*);
  void* (*PyFloat_FromDouble)(double);
  long long (*PyLong_AsLongLong)(void*);
  void* (*PyLong_FromLongLong)(long long);
  void* (*PyBool_FromLong)(long);
  void* (*PyTuple_New)(intptr_t);
  int (*PyTuple_SetItem)(void*, intptr_t, void*);
  void* (*PyTuple_GetItem)(void*, intptr_t);
  void* (*PyUnicode_DecodeUTF8)(const char*, intptr_t, const char*);
  void* (*PyObject_Vectorcall)(void* callable, void* const* arguments, size_t count, void* names);
  void* (*PyErr_Occurred)(void);
  void (*PyErr_Clear)(void);
  void (*Py_IncRef)(void*);
  void (*Py_DecRef)(void*);
  Host host;
  void* (*new_array)(void* type, void* descr, int dimensions, const intptr_t* shape, const intptr_t* strides,
                     void* data, int flags, void* like);
  void* array_type;
  void* descr[3];     // by kind of number
  void* types[3][2];  // what a single real or integer may be; for booleans, what is false
  void* truths[2];
};
void dg_python(const Python* table);

// The first fields of a numpy array, and of its dtype.
typedef struct ArrayFields ArrayFields;
struct ArrayFields {
  intptr_t references;
  void* type;
  void* data;
  int dimensions;
  const intptr_t* shape;
  const intptr_t* strides;
  void* base;
  const void* descr;
  int flags;
};
typedef struct DescrFields DescrFields;
struct DescrFields {
  intptr_t references;
  void* type;
  void* scalar;
  char kind, letter, byteorder, unused;
  int number;
};

// -- calls with nested arguments: calls/walk.hpp ----------------------------------------------------------------------

// What a number in the code of a structure says.
enum Part { kLeaf, kList, kTuple, kDict, kKnown };

static const int64_t kMostLeaves = 512;

typedef struct Walking Walking;
struct Walking {
  long long (*PyLong_AsLongLong)(void*);
  void* (*PyTuple_GetItem)(void*, intptr_t);
  intptr_t (*PyTuple_Size)(void*);
  void* (*PyTuple_New)(intptr_t);
  int (*PyTuple_SetItem)(void*, intptr_t, void*);
  void* (*PyList_GetItem)(void*, intptr_t);
  intptr_t (*PyList_Size)(void*);
  void* (*PyList_New)(intptr_t);
  int (*PyList_SetItem)(void*, intptr_t, void*);
  int (*PyDict_Next)(void*, intptr_t*, void**, void**);
  intptr_t (*PyDict_Size)(void*);
  void* (*PyDict_New)(void);
  int (*PyDict_SetItem)(void*, void*, void*);
  void* (*PyObject_Vectorcall)(void* callable, void* const* arguments, size_t count, void* names);
  void (*Py_IncRef)(void*);
  void (*Py_DecRef)(void*);
  void *list_type, *tuple_type, *dict_type;
};
void dg_walking(const Walking* table);

// One walk.
typedef struct Pytree Pytree;
struct Pytree {
  const int32_t *in, *out;
  void* const* objects;       // keys and known values
  void *flat, *otherwise;     // functions
  void* unfit;                // what `flat` returns where a leaf is not what it takes
  int64_t arguments, single;  // how many; whether `flat` returns its only result alone
};
// What the interpreter calls; `self` is a tuple whose first entry is the address of a Pytree.
void* dg_walk(void* self, void* const* arguments, intptr_t count);

// -- graphs -----------------------------------------------------------------------------------------------------------

// Outcomes of their own: a matrix that cannot be divided by, one that has no Cholesky factor, a derivative that does
// not exist; and of the error with the number 0 (`ir/failures.py`), after which the others follow.
enum GraphOutcome { kSingular = 64, kNotPositive = 65, kNotDifferentiable = 66, kFailure = 80 };

static const int64_t kSavedGigabytes = 2;   // of one stack, and of the heap of a call, where nobody says another number
static const int64_t kMostThreads = 64;
static const int64_t kMostParts = 32;       // of a loop that threads share
static const int64_t kWidth = 8;            // the elements that are computed together

// The keys of cells (`ir/ops/cells.py`), and the first of all others.
enum CellKey { kRealCell, kTruthCell, kTagCell, kBundleCell, kFirstCell };

// An operation that Python computes; false where it raised. It is the first of what the call of a graph is given.
typedef bool (*HostOperations)(int64_t which, const void* const* arguments, void* result);

// BLAS and LAPACK as Fortran has them, with whole numbers of 32 bits. All are null, or none.
typedef struct Blas Blas;
struct Blas {
  void (*dgemm)(const char* ta, const char* tb, const int* m, const int* n, const int* k, const double* alpha,
                const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
                const int* ldc);
  void (*dgemv)(const char* t, const int* m, const int* n, const double* alpha, const double* a, const int* lda,
                const double* x, const int* incx, const double* beta, double* y, const int* incy);
  void (*dgetrf)(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info);
  void (*dgetrs)(const char* t, const int* n, const int* count, const double* a, const int* lda, const int* pivots,
                 double* b, const int* ldb, int* info);
  void (*dgetri)(const int* n, double* a, const int* lda, const int* pivots, double* work, const int* size, int* info);
  void (*dpotrf)(const char* triangle, const int* n, double* a, const int* lda, int* info);
};
void dg_blas(const Blas* table);

void* dg_pool(void);  // the pool of threads of this library
void dg_forget_pool(void);
void dg_parallel(void* pool, int64_t threads);  // which pool this library is to use, with how many threads
void dg_most_saved(int64_t bytes);              // how many bytes one loop of this library may save
// In libraries that count what they allocate: frees the memory that is kept for later calls.
void dg_forget_workspaces(void);
void dg_forget_blocks(void);

// -- programs of rules: outside/runtime.hpp ---------------------------------------------------------------------------

typedef struct World World;
typedef struct FactTable FactTable;
typedef struct ChartBase ChartBase;
typedef struct Collected Collected;

// How a guarded call ended early.
enum Failure { none = 0, limited = 1, exhausted = 2, stopped = 3, late = 4 };

// How a run ended. Python's names are without the `at_`, which keeps these apart from other names.
enum Status {
  done = 0,
  at_max_pops = 1,
  at_timeout = 2,
  at_until = 3,
  at_items = 4,
  at_bytes = 5,
  bad_value = 6,
  interrupted = 7,
  integer_overflow = 8,
  paused = 9,
  two_values = 10,
  host_error = 11,
  bad_adjoint = 12,
  unsettled = 13,
  function_failed = 14,
  diverges = 15,
  cyclic = 16,
  near_critical = 17,
  at_quiet = 18,
  no_order = 19,
  no_memory = 20
};

// Why integer arithmetic of arguments has no result; the table of the error is -1 less this.
enum NoInteger { kOutOfRange = 1, kByZero = 2 };

typedef struct Settings Settings;
struct Settings {
  int64_t max_pops DYNAGRAD_IS(-1);
  int64_t timeout_ns DYNAGRAD_IS(-1);
  int64_t max_items DYNAGRAD_IS(-1);
  int64_t max_bytes DYNAGRAD_IS(-1);
  int64_t until_table DYNAGRAD_IS(-1);
  int64_t until_cell DYNAGRAD_IS(-1);
  int64_t pause_ns DYNAGRAD_IS(-1);
  double tolerance DYNAGRAD_IS(1e-12);
  int64_t stopped DYNAGRAD_IS(0);  // the stage that the run is known to stop in, from one; 0 where it comes to its end
  int64_t refine DYNAGRAD_IS(1);   // whether the tolerance is lowered until what is still to come is under it
};

typedef struct Report Report;
struct Report {
  int64_t status DYNAGRAD_IS(0), partial DYNAGRAD_IS(0), pops DYNAGRAD_IS(0);
  int64_t updates DYNAGRAD_IS(0), items DYNAGRAD_IS(0), bytes DYNAGRAD_IS(0), peak DYNAGRAD_IS(0);
  int64_t nanoseconds DYNAGRAD_IS(0), pending DYNAGRAD_IS(0), underflow DYNAGRAD_IS(0);
  int64_t error_table DYNAGRAD_IS(-1), error_cell DYNAGRAD_IS(-1);
  int64_t stage DYNAGRAD_IS(0), tape DYNAGRAD_IS(0);
  double error_bound DYNAGRAD_IS(0);  // of the values of solved components, relative; rounding apart
  double radius DYNAGRAD_IS(0);       // of the component that diverges
  int64_t critical DYNAGRAD_IS(0);    // solved components of which half the digits are all there is
  int64_t unfinished DYNAGRAD_IS(0);  // iterated stages of which more is to come than the tolerance
};

// An external predicate: the words of an item's value, and 1; 0 where it has none, -1 where the function raised.
typedef int32_t (*External)(const int32_t* arguments, uint64_t* words);

static const int64_t kLargeBlock = 1048576;  // bytes from which on blocks are used again

int64_t dg_failure(void);  // the Failure of the last call in this thread

// The domains, ranks, constants and terms behind codes.
World* dg_world_new(const World* base);
void dg_world_free(World* world);
void dg_world_limit(World* world, int64_t bytes);  // what charts over it may take, its own terms included
enum Failure dg_world_domains(World* world, int64_t n, const int32_t* low, const int64_t* count);
enum Failure dg_world_rank(World* world, int64_t domain, const int32_t* ranks, int64_t n);
enum Failure dg_world_constants(World* world, int64_t n, const int32_t* values);

// A term is an integer, an atom or a functor over terms.
enum TermKind { kIntegerTerm = 0, kAtomTerm = 1, kCompoundTerm = 2 };
typedef struct TermNode TermNode;
struct TermNode {
  int32_t kind, payload, first, arity;  // payload: the integer, the atom, or the functor
};
// Interns n nodes; the children of node i are first[i] .. first[i+1], as indices of earlier nodes. out[i] is its
// number.
enum Failure dg_terms_make(World* world, int64_t n, const int32_t* kind, const int32_t* payload, const int64_t* first,
                           const int32_t* children, int32_t* out);
// One term, and up to `room` of its arguments.
void dg_terms_node(const World* world, int32_t term, TermNode* out, int32_t* arguments, int32_t room);
// The number of a term; -1 where there is none.
int32_t dg_terms_find(const World* world, int32_t kind, int32_t payload, const int32_t* arguments, int32_t n);

// Facts, and the values of their rows.
FactTable* dg_facts_new(World* world, int64_t table, const int32_t* const* columns, int64_t rows, int64_t timeout_ns,
                        const Host* host, int32_t* stop);
int64_t dg_facts_rows(const FactTable* facts);  // copies of a fact counted once
void dg_facts_free(FactTable* facts);
void* dg_weights_new(int64_t table, const FactTable* facts, const uint64_t* words, int64_t timeout_ns, const Host* host,
                     int32_t* stop);
void dg_weights_free(void* weights);

ChartBase* dg_chart_new(World* world, FactTable* const* facts, void* const* weights, const uint64_t* constants);
int64_t dg_chart_size(void);
void dg_chart_record(ChartBase* chart);  // enters all that it does into its tape; before it runs
void dg_chart_free(ChartBase* chart);
void dg_chart_run(ChartBase* chart, const Settings* settings, Report* report, const Host* host, int32_t* stop);

// The steps of a change of facts, in this order.
enum Change {
  kBegin = 0,
  kMark = 1,    // marks all items that a fact reaches
  kDelete = 2,  // deletes the marked items
  kDerive = 3,  // rederives them from the items that stayed
  kAdd = 4      // adds facts
};
enum Failure dg_chart_change(ChartBase* chart, int64_t step, int64_t table, const int32_t* rows, const uint64_t* words,
                             int64_t count, const Host* host);
enum Failure dg_chart_swap(ChartBase* chart, int64_t table, const FactTable* facts, const void* weights,
                           int64_t settled);
// Whether there is room for all items; `bounds` are what `dg_chart_bounds` gave, or null.
enum Failure dg_chart_restore(ChartBase* chart, int64_t table, const int32_t* rows, const uint64_t* words,
                              const double* bounds, int64_t n, int64_t* fits);
// The error bound of each item's component, in the order of `dg_chart_items`; how many, which is none where it has
// none.
int64_t dg_chart_bounds(const ChartBase* chart, int64_t table, double* bounds, int64_t room);
// The value of an item in the chart; 0 where it was never derived.
int64_t dg_chart_get(const ChartBase* chart, int64_t table, const int32_t* arguments, uint64_t* words);
// The value of a fact as it was given; 0 where there is none.
int64_t dg_chart_fact(const ChartBase* chart, int64_t table, const int32_t* arguments, uint64_t* words);
// The items of a predicate, `room` at most: arguments row by row, and values. Returns how many there are.
int64_t dg_chart_items(const ChartBase* chart, int64_t table, int32_t* arguments, uint64_t* words, int64_t room);
// The items with an update that was not propagated: arguments and the update.
int64_t dg_chart_pending(const ChartBase* chart, int64_t table, int32_t* arguments, uint64_t* words, int64_t room);
void dg_chart_arguments(const ChartBase* chart, int64_t table, int64_t cell, int32_t* arguments);
// The cell of an item to stop at; makes room for it. -1 where it is out of range, -2 where there is no room.
int64_t dg_chart_locate(ChartBase* chart, int64_t table, const int32_t* arguments);
void dg_chart_external(ChartBase* chart, int64_t table, External function);
// The names of the functions of values of which one failed, and what it said.
const char* dg_chart_blamed(const ChartBase* chart);
const char* dg_chart_message(const ChartBase* chart);
// The numbers of two values about which a semiring's plus and less disagree.
const double* dg_chart_disagree(const ChartBase* chart);
// The items around a cycle of the component that diverges, `room` at most: table and cell of each. Returns how many.
int64_t dg_chart_cycle(const ChartBase* chart, int32_t* tables, int64_t* cells, int64_t room);

// Differentiation. `open` makes room for adjoints, all zero; `seed` gives an item a cotangent (0 where it is not in the
// chart; `whole`: one, whatever the scale); `backward` runs the pass, and returns a Status; then adjoints are read.
enum Failure dg_adjoints_open(ChartBase* chart);
int64_t dg_adjoints_seed(ChartBase* chart, int64_t table, const int32_t* arguments, const uint64_t* cotangent,
                         int64_t whole);
int64_t dg_adjoints_backward(ChartBase* chart, Report* report, int64_t timeout_ns, const Host* host, int32_t* stop);
int64_t dg_adjoints_item(const ChartBase* chart, int64_t table, const int32_t* arguments, uint64_t* words,
                         int64_t whole);
// Those of the items of a predicate, in the order of `dg_chart_items`.
int64_t dg_adjoints_items(const ChartBase* chart, int64_t table, uint64_t* words, int64_t room);
// Those of facts, row by row as they were given, with the numbers that were given (null: all one).
enum Failure dg_adjoints_rows(const ChartBase* chart, int64_t table, const uint64_t* given, uint64_t* words);
// The pops of a run, `room` at most: table and cell of each. Returns how many there are.
int64_t dg_tape_pops(const ChartBase* chart, int32_t* tables, int64_t* cells, int64_t room);
// Room for results, out of the blocks that charts use again and again.
void* dg_block_new(int64_t bytes);
void dg_block_free(void* data);

// Many examples in one call: outside/examples.hpp.

// The functions of the library that has the backward pass; they guard themselves.
typedef struct Backward Backward;
struct Backward {
  enum Failure (*open)(ChartBase*);
  int64_t (*seed)(ChartBase*, int64_t table, const int32_t* arguments, const uint64_t* cotangent, int64_t whole);
  int64_t (*backward)(ChartBase*, Report*, int64_t timeout_ns, const Host*, int32_t* stop);
  enum Failure (*rows)(const ChartBase*, int64_t table, const uint64_t* given, uint64_t* words);
};

// What became of an example.
enum Ending {
  kPlain = 0,
  kUnderived = 1,  // it has no value, and no gradient
  kApart = 2       // it is left to the caller
};

// Of each example there is a row.
typedef struct Examples Examples;
struct Examples {
  int64_t count, tables;
  World* const* world;
  FactTable* const* facts;          // by table
  void* const* weights;             // by table
  const uint64_t* constants;        // the same for all
  const Settings* settings;
  int64_t goal;                     // the table of the item that is asked for
  int64_t width;                    // of a row of its arguments, which ends in a spare one
  const int32_t* arguments;
  int64_t* ending;                  // out: an Ending
  uint64_t* words;                  // out: values
  // The gradient of the sum of the goals, or of their logs, times cotangents: in semirings whose numbers are doubles.
  const Backward* backward;         // null: values alone
  int64_t of_log;
  const double* cotangent;
  int64_t keys;                     // tables whose rows it is by
  const int64_t* table;
  const int64_t* rows;
  const uint64_t* const* given;     // the numbers of these rows; null: all one
  double* const* own;               // room for a gradient by them
  double* const* total;             // out: to which it is added
  int64_t part;                     // so many examples are added up on their own, and then to what was before them
  int64_t* single;                  // out, or null: whether each item of the chart has one instance, so one derivation
};
int64_t dg_examples(const Examples* examples, const Host* host, int32_t* stop);  // -1 where it was told to stop

// The derivations of an item that is in the chart, in a class that collects them; the report says how that ended.
enum Collecting {
  kAll = 0,
  kCounts = 1,  // nothing of instances but how many there are
  kSides = 2    // also how items are derived that only have to be derived
};
void dg_forest_collect(ChartBase* chart, const Settings* settings, Report* report, int64_t table,
                       const int32_t* arguments, int64_t most, int64_t how, const Host* host, int32_t* stop);
typedef struct ForestSizes ForestSizes;
struct ForestSizes {
  int64_t nodes, instances, antecedents, givens;
};
void dg_forest_sizes(ChartBase* chart, ForestSizes* sizes);
static const int64_t kCellBits = 32;  // of a handle: the lower ones are a cell, the others its table
typedef struct ForestArrays ForestArrays;  // running/collected.hpp
struct ForestArrays {
  const uint64_t* item;  // handles
  const uint32_t *begin, *end;
  const uint8_t* opened;
  const int32_t* rule;
  const uint32_t* first;
  const int32_t* antecedent;
  const uint32_t* given;
};
// What was collected, taken from the chart: where its arrays are, until it is freed, and the value of each node.
Collected* dg_forest_take(ChartBase* chart, ForestArrays* arrays, uint64_t* words);
void dg_forest_free(Collected* collected);
// The arguments of `count` places of a table, row by row.
void dg_forest_arguments(const ChartBase* chart, int64_t table, const int64_t* places, int64_t count,
                         int32_t* arguments);

// -- packed forests: forest/forest.hpp --------------------------------------------------------------------------------

typedef struct Walk Walk;
typedef struct Draws Draws;

// How weights are put together.
enum WeightKind {
  kProducts = 0,  // they are multiplied
  kSums = 1,      // they are added: logs, or costs with the other sign
  kSizes = 2      // derivations have the weight one, or zero
};

static const uint32_t kNoInstance = 4294967295;

typedef struct ForestView ForestView;
struct ForestView {
  int64_t nodes, instances, antecedents, kind, root, rules, givens;  // kind: a WeightKind
  const uint32_t *begin, *end;   // the instances of a node
  const int32_t* rule;           // of an instance; -1 - g for the given fact g
  const uint32_t* first;         // of the antecedents of an instance
  const int32_t* antecedent;     // ~n where only it counts that n is derived
  const double* constant;        // the constant of each rule
  const double* given;           // the weight of each given fact
  const int64_t* rank;           // of nodes: the order in which ties are broken; null before that is asked for
};

// How an algorithm came to its end.
enum WalkEnd {
  kComplete = 0,
  kUnlike = 1,   // in front of a cycle, or of too many: each function says which
  kHalted = 2,   // interrupted, or at the end of `limit` nanoseconds
  kBeyond = 3,   // there are too many derivations, or none
  kNoRoom = -1   // memory ended
};

Walk* dg_walk_new(void);
void dg_walk_free(Walk* walk);
int64_t dg_walk_bytes(const Walk* walk);
void dg_walk_open(Walk* walk, const ForestView* view);
// Finds the components; it is done before whatever needs them.
int64_t dg_walk_arrange(Walk* walk, const Host* host, int32_t* stop, int64_t limit);
typedef struct ForestOrder ForestOrder;
struct ForestOrder {
  int64_t count, reached;
  const uint32_t *nodes, *begin;
  const uint8_t* cyclic;
  const int32_t* component;
};
// The components: how many, and how many nodes are reached.
void dg_walk_order(const Walk* walk, ForestOrder* order);
int64_t dg_walk_best(Walk* walk, const int64_t* rank, const Host* host, int32_t* stop, int64_t limit);
// Whether the root has a derivation that is not zero, after `best`; m and e of the weight of the best.
int64_t dg_walk_derivable(const Walk* walk, double* m, int64_t* e);
// The last instance of the best derivation of each node, after `best`, or kNoInstance; how many nodes there are.
int64_t dg_walk_chosen(const Walk* walk, const uint32_t** instances);
int64_t dg_walk_unbounded(const Walk* walk);
// Derivation n of the root, from 0; `best` was called before.
int64_t dg_walk_need(Walk* walk, int64_t n, const Host* host, int32_t* stop, int64_t limit);
typedef struct RankedDerivation RankedDerivation;
struct RankedDerivation {
  int64_t count;  // of its instances
  const uint32_t* instances;
  double m;       // m * 2^e is its weight
  int64_t e, size;
};
// Its instances are in an array of the walk.
int64_t dg_walk_derivation(Walk* walk, int64_t n, int64_t most, RankedDerivation* derivation, const Host* host,
                           int32_t* stop, int64_t limit);
// Sums: kUnlike in front of a cyclic component, whose number is `dg_walk_next`; `again` begins anew.
int64_t dg_walk_sums(Walk* walk, int64_t again, const Host* host, int32_t* stop, int64_t limit);
// The sums of all nodes, worked out elsewhere.
int64_t dg_walk_known(Walk* walk, const double* m, const int64_t* e, const Host* host, int32_t* stop, int64_t limit);
int64_t dg_walk_next(const Walk* walk);
// The sum of each node, as m and e.
void dg_walk_totals(const Walk* walk, double* m, int64_t* e);
// Gives the nodes of the component at hand their sums.
void dg_walk_settle(Walk* walk, const uint32_t* nodes, const double* m, const int64_t* e, int64_t count);
// The share of each instance in its node.
int64_t dg_walk_shares(Walk* walk, const double** shares, const Host* host, int32_t* stop, int64_t limit);
int64_t dg_walk_expect(Walk* walk, double* used, const Host* host, int32_t* stop, int64_t limit);
// Draws from .. to - 1 of a seed; several threads may draw from one walk, each into draws of its own.
Draws* dg_walk_draws_new(void);
void dg_walk_draws_free(Draws* draws);
typedef struct DrawArrays DrawArrays;
struct DrawArrays {
  const uint32_t* instances;
  const int64_t* begin;
  const double* log_probability;
};
int64_t dg_walk_sample(Walk* walk, Draws* draws, uint64_t seed, int64_t from, int64_t to, int64_t most,
                       DrawArrays* arrays, const Host* host, int32_t* stop, int64_t limit);
// How many derivations there are: the lower word, and the upper one. kUnlike: infinitely many.
int64_t dg_walk_count(Walk* walk, uint64_t* words, const Host* host, int32_t* stop, int64_t limit);

#ifdef __cplusplus
}  // extern "C"
}  // namespace dynagrad
#endif
#undef DYNAGRAD_IS
