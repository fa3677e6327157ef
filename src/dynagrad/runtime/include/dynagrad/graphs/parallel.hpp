// Loops over large arrays in several threads.
//
//     dynagrad::graphs::in_parallel(n, kGrain, [&](int64_t begin, int64_t end, int64_t part) { ... });
//
// How a range is cut depends on its length alone, so results do not depend on the number of threads, or on which thread
// did what; who sums up adds the parts in their order. One loop at a time is in the pool: where another thread's is, or
// this one is in a part of one, the parts are run here, one after the other. Threads start with the first loop, watch
// for the next one for some microseconds, and sleep. To wake one takes some 50 us, to give work to one that still watches
// less than one. They touch nothing of Python. All libraries of a process share the pool of the first; `runtime/threads.py` sees
// to that and to forks, after which the child starts threads of its own.
#pragma once

#include <stdint.h>

#include <dynagrad/calls/body.hpp>

#if !defined(_WIN32)
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#endif

namespace dynagrad::graphs {

inline constexpr int64_t kGrain = 1 << 16;  // numbers, with little work for each, that are worth a part: some 30 us

using Work = void (*)(void* data, int64_t part);

// Runs all parts of a piece of work; `threads` includes the one that asks.
using Run = void (*)(Work work, void* data, int64_t parts, int64_t threads);

inline void run_here(Work work, void* data, int64_t parts, int64_t) {
    for (int64_t part = 0; part < parts; ++part) work(data, part);
}

#if defined(_WIN32)
inline void run_in_pool(Work work, void* data, int64_t parts, int64_t threads) { run_here(work, data, parts, threads); }
inline void forget_pool() {}
#else

inline void rest() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// What the threads share. A job is its fields and a ticket: a count of jobs above, how many parts are to be taken below.
// Who lowers the ticket by one has that part, so nobody can take a part of a job that is over.
struct Pool {
    static constexpr int kLooks = 2000;  // at a ticket, before a thread sleeps: some 50 us

    alignas(64) uint64_t ticket = 0;
    alignas(64) int64_t left = 0;  // parts that are not done
    alignas(64) bool busy = false;
    Work work = nullptr;
    void* data = nullptr;
    int64_t started = 0;   // threads, besides those that ask
    int64_t sleeping = 0;  // under the lock
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t more = PTHREAD_COND_INITIALIZER;

    static uint64_t parts_of(uint64_t ticket) { return ticket & 0xffffffff; }

    // Runs parts until there are none to take.
    void help() {
        uint64_t seen = __atomic_load_n(&ticket, __ATOMIC_ACQUIRE);
        while (parts_of(seen) > 0) {
            if (!__atomic_compare_exchange_n(&ticket, &seen, seen - 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                continue;
            work(data, static_cast<int64_t>(parts_of(seen)) - 1);
            __atomic_fetch_sub(&left, 1, __ATOMIC_ACQ_REL);
            seen = __atomic_load_n(&ticket, __ATOMIC_ACQUIRE);
        }
    }

    void serve() {
        for (;;) {
            bool found = false;
            for (int i = 0; i < kLooks && !found; ++i) {
                found = parts_of(__atomic_load_n(&ticket, __ATOMIC_RELAXED)) > 0;
                if (!found) rest();
                if (!found && i % 128 == 127) sched_yield();  // it may have the processor of the one that asks
            }
            if (!found) {
                pthread_mutex_lock(&lock);
                ++sleeping;
                while (parts_of(__atomic_load_n(&ticket, __ATOMIC_RELAXED)) == 0) pthread_cond_wait(&more, &lock);
                --sleeping;
                pthread_mutex_unlock(&lock);
            }
            help();
        }
    }

    static void* main(void* pool) {
        static_cast<Pool*>(pool)->serve();
        return nullptr;
    }

    // Starts threads until there are so many, or no more can be had.
    void start(int64_t wanted) {
        sigset_t all, before;  // signals are for the threads of the program
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (started < wanted) {
            pthread_t thread;
            if (pthread_create(&thread, nullptr, &Pool::main, this) != 0) break;
            pthread_detach(thread);
            ++started;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void run(Work what, void* with, int64_t parts, int64_t threads) {
        if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE)) return run_here(what, with, parts, threads);
        if (started < threads - 1) start(threads - 1);
        if (started == 0) {
            __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
            return run_here(what, with, parts, threads);
        }
        work = what;
        data = with;
        __atomic_store_n(&left, parts, __ATOMIC_RELAXED);
        const uint64_t job = (ticket >> 32) + 1;
        __atomic_store_n(&ticket, job << 32 | static_cast<uint64_t>(parts), __ATOMIC_SEQ_CST);
        pthread_mutex_lock(&lock);  // a thread that is about to sleep looks at the ticket under the lock
        const bool wake = sleeping > 0;
        pthread_mutex_unlock(&lock);
        if (wake) pthread_cond_broadcast(&more);
        help();
        for (int looks = 0; __atomic_load_n(&left, __ATOMIC_ACQUIRE) > 0;) {
            rest();
            if (++looks % 512 == 0) sched_yield();
        }
        __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
    }
};

inline Pool* pool = nullptr;  // of this library, if it is the first

inline Pool* make_pool() {
    Pool* found = __atomic_load_n(&pool, __ATOMIC_ACQUIRE);
    if (found != nullptr) return found;
    void* memory = fails() ? nullptr : aligned_alloc(64, (sizeof(Pool) + 63) & ~size_t{63});
    if (memory == nullptr) return nullptr;
    Pool* made = new (memory, Here{}) Pool;
    if (__atomic_compare_exchange_n(&pool, &found, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
    free(memory);
    return found;
}

inline void run_in_pool(Work work, void* data, int64_t parts, int64_t threads) {
    Pool* found = make_pool();
    if (found == nullptr) return run_here(work, data, parts, threads);
    found->run(work, data, parts, threads);
}

// In a child after a fork: its threads are not there. What another thread may have been in the middle of is left alone.
inline void forget_pool() { __atomic_store_n(&pool, static_cast<Pool*>(nullptr), __ATOMIC_RELEASE); }
#endif

inline Run run_parts = &run_in_pool;
inline int64_t threads = 1;

template <class T>
struct Bare {
    using Type = T;
};
template <class T>
struct Bare<T&> {
    using Type = T;
};

// Calls f(part) for each part. There is one copy of the code of a part, whoever runs it, so that results are the same to
// the bit; and it has a copy of what `f` holds by value, so that the compiler knows that nobody else changes it.
template <class F>
inline void each_part(int64_t parts, F&& f) {
    using Plain = typename Bare<F>::Type;
    Work work = [](void* data, int64_t part) {
        Plain own = *static_cast<const Plain*>(data);
        own(part);
    };
    __asm__("" : "+r"(work));  // hidden from the compiler, which would make another copy for the loop below
    void* const data = const_cast<void*>(static_cast<const void*>(&f));
    if (parts < 2 || threads < 2) return run_here(work, data, parts, 1);
    run_parts(work, data, parts, threads);
}

// How many parts a range is cut into: each has `grain` at least, there are not many, and two threads share a few fairly.
constexpr int64_t parts_of(int64_t n, int64_t grain) {
    const int64_t parts = n / (grain > 0 ? grain : 1);
    if (parts < 8) return parts < 2 ? 1 : parts < 4 ? 2 : 4;
    return parts > kMostParts ? kMostParts : parts;
}

// Where a part begins: at a multiple of `unit` numbers.
inline int64_t begin_of(int64_t n, int64_t parts, int64_t part, int64_t unit = 8) {
    if (part >= parts) return n;
    return (n / parts * part + n % parts * part / parts) / unit * unit;
}

// Calls f(begin, end, part) for the parts of 0..n, of which `grain` are worth a thread.
template <class F>
inline void in_parallel(int64_t n, int64_t grain, F&& f, int64_t unit = 8) {
    const int64_t parts = parts_of(n, grain);
    each_part(parts, [=](int64_t part) { f(begin_of(n, parts, part, unit), begin_of(n, parts, part + 1, unit), part); });
}

}  // namespace dynagrad::graphs

namespace dynagrad {
DYNAGRAD_EXPORT void* dg_pool() { return reinterpret_cast<void*>(&graphs::run_in_pool); }
DYNAGRAD_EXPORT void dg_forget_pool() { graphs::forget_pool(); }
DYNAGRAD_EXPORT void dg_parallel(void* pool, int64_t threads) {
    graphs::run_parts = reinterpret_cast<graphs::Run>(pool);
    graphs::threads = threads < kMostThreads ? threads : kMostThreads;
}
}  // namespace dynagrad
