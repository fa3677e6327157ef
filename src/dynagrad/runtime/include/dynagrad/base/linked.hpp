// Separate compilation of the runtime: what is compiled with each program, and what once for all of them.
//
// What a program does in its inner loops is compiled with it. What it does now and then (taking memory, making terms,
// sorting facts, solving for a component) is the same for every program: it is compiled once on a machine, as objects
// that programs are linked with. `codegen/rules/linked.py` has their sources.
//
// DYNAGRAD_ONCE marks what is in the object of `outside/runtime.hpp`, which every program is linked with, or in that of
// `graphs/runtime.hpp`, which every compiled graph is linked with: functions that are no templates, and members of
// templates that `outside/runtime.hpp` instantiates, with DYNAGRAD_KNOWN before each instance. DYNAGRAD_ONCE_FACTS and
// DYNAGRAD_KNOWN_FACTS do so for the object of `storage/looking.hpp`, of tables and facts: two objects are compiled at once.
// Templates over semirings are in `outside/known.hpp`, an object for each semiring. DYNAGRAD_ONCE_SOLVED marks what is in that of
// `solving/solved.hpp`, for programs that solve components; DYNAGRAD_ONCE_MATRICES, in that of `running/matrix.hpp`, for
// backward passes over rows times matrices. In a program such functions have no code: they are known to be
// elsewhere (gnu_inline) and are copied nowhere (noinline). A header that is written for C++ programs is linked with
// nothing, and has them all.
#pragma once

#define DYNAGRAD_HERE __attribute__((noinline, used)) inline  // whole, whoever calls it
#if defined(DYNAGRAD_LINKED)  // a program that such an object is linked to: known by name
#pragma clang diagnostic ignored "-Wgnu-inline-cpp-without-extern"
#define DYNAGRAD_ELSEWHERE __attribute__((noinline, gnu_inline)) inline
#else
#define DYNAGRAD_ELSEWHERE __attribute__((noinline)) inline
#endif

// KNOWN stands before an instance of a template that is compiled once.
#if defined(DYNAGRAD_RUNTIME)
#define DYNAGRAD_ONCE DYNAGRAD_HERE
#define DYNAGRAD_KNOWN template
#else
#define DYNAGRAD_ONCE DYNAGRAD_ELSEWHERE
#define DYNAGRAD_KNOWN extern template
#endif

#if defined(DYNAGRAD_RUNTIME_FACTS)
#define DYNAGRAD_ONCE_FACTS DYNAGRAD_HERE
#define DYNAGRAD_KNOWN_FACTS template
#else
#define DYNAGRAD_ONCE_FACTS DYNAGRAD_ELSEWHERE
#define DYNAGRAD_KNOWN_FACTS extern template
#endif

#if defined(DYNAGRAD_RUNTIME_SOLVED)
#define DYNAGRAD_ONCE_SOLVED DYNAGRAD_HERE
#else
#define DYNAGRAD_ONCE_SOLVED DYNAGRAD_ELSEWHERE
#endif

#if defined(DYNAGRAD_RUNTIME_MATRICES)
#define DYNAGRAD_ONCE_MATRICES DYNAGRAD_HERE
#else
#define DYNAGRAD_ONCE_MATRICES DYNAGRAD_ELSEWHERE
#endif

// What is worth its code wherever it is called: also small functions, which are then not optimised by themselves first.
#define DYNAGRAD_LAMBDA __attribute__((always_inline))  // of a lambda
#define DYNAGRAD_ALWAYS DYNAGRAD_LAMBDA inline
// The same for the calls in one statement: for what is called nowhere else.
#if defined(__clang__) && __clang_major__ >= 15
#define DYNAGRAD_ONLY_CALL [[clang::always_inline]]
#else
#define DYNAGRAD_ONLY_CALL
#endif
