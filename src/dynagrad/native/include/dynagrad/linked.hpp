// Which of the runtime is compiled with each program, and which once for all of them.
//
// What a program does in its inner loops is compiled with it. What it does now and then (taking memory, making terms,
// sorting facts) is the same for every program: it is compiled once on a machine, from `runtime.cpp`, and linked to each.
// Such functions are marked DYNAGRAD_ONCE, and are no templates, or those of templates that `runtime.cpp` instantiates.
// A header that is written for C++ programs is linked with nothing, and has them all.
//
// Solving a component (`linear.hpp`, `ground.hpp`) is compiled once too, apart from that, as few programs need it, and so
// is `System` for each semiring and degree; these are marked DYNAGRAD_ONCE_SOLVED.
#pragma once

#if defined(DYNAGRAD_RUNTIME)  // the runtime itself: whole, whoever calls it
#define DYNAGRAD_ONCE __attribute__((noinline, used)) inline
#elif defined(DYNAGRAD_LINKED)  // a program that the runtime is linked to: known by name
#pragma clang diagnostic ignored "-Wgnu-inline-cpp-without-extern"
#define DYNAGRAD_ONCE __attribute__((noinline, gnu_inline)) inline
#else
#define DYNAGRAD_ONCE __attribute__((noinline)) inline
#endif

#if defined(DYNAGRAD_RUNTIME_SOLVED)
#define DYNAGRAD_ONCE_SOLVED __attribute__((noinline, used)) inline
#elif defined(DYNAGRAD_LINKED)
#define DYNAGRAD_ONCE_SOLVED __attribute__((noinline, gnu_inline)) inline
#else
#define DYNAGRAD_ONCE_SOLVED __attribute__((noinline)) inline
#endif

// Before an instance of a template that is compiled once.
#if defined(DYNAGRAD_RUNTIME)
#define DYNAGRAD_KNOWN template
#else
#define DYNAGRAD_KNOWN extern template
#endif
