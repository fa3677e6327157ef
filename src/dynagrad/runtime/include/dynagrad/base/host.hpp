// The host of native code: the Python interpreter, or none.
//
// A function that may run long is called with a pointer to a Host. It releases the interpreter lock with an Unlocked,
// and asks that now and then whether to stop: on Ctrl-C, or because another thread raised a flag. A C++ program passes
// null for both and gets the same code without Python; nothing here includes or links it.
#pragma once

#include <stdint.h>
#include <time.h>

#include <dynagrad/base/linked.hpp>
#include <dynagrad/shared.h>

namespace dynagrad {

#if defined(_WIN32)
extern "C" __declspec(dllimport) unsigned long long __stdcall GetTickCount64(void);
#endif

// Nanoseconds of a clock that only goes forward: cheap to read, and coarse, up to ten milliseconds.
inline int64_t coarse_time() {
#if defined(_WIN32)
    return static_cast<int64_t>(GetTickCount64()) * 1000000;
#else
#if defined(CLOCK_MONOTONIC_COARSE)
    constexpr clockid_t kind = CLOCK_MONOTONIC_COARSE;
#elif defined(CLOCK_MONOTONIC_RAW_APPROX)
    constexpr clockid_t kind = CLOCK_MONOTONIC_RAW_APPROX;
#else
    constexpr clockid_t kind = CLOCK_MONOTONIC;
#endif
    timespec now;
    clock_gettime(kind, &now);
    return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
#endif
}

// While it lives, the interpreter lock is free. One per thread of native code; `stop` may be shared by many. At the end
// of `limit` nanoseconds, where that is not negative, it is interrupted too.
//
//     dynagrad::Unlocked unlocked(host, &stop);
//     while (work()) if (unlocked.interrupted()) return kStopped;
class Unlocked {
  public:
    explicit Unlocked(const Host* host, int32_t* stop = nullptr, int64_t limit = -1) : host_(host), stop_(stop) {
        limit_ = limit;
        start_ = now_ = checked_ = coarse_time();
        if (host_ != nullptr && host_->save != nullptr) state_ = host_->save();
    }
    ~Unlocked() {
        if (host_ != nullptr && host_->restore != nullptr) host_->restore(state_);
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

    // Whether to stop now. Called once per unit of work (a pop, a row) it costs a decrement; `work` says how many
    // units were done since the last call. Once true it stays true.
    bool interrupted(int64_t work = 1) {
        left_ -= work;
        return left_ <= 0 && look();
    }

    // Whether it was the limit on time that interrupted it.
    bool late() const { return late_; }

    // Nanoseconds since the start, as of the last look at the clock: for limits on time, at no further cost.
    int64_t elapsed() const { return now_ - start_; }

  private:
    static constexpr int64_t kBetweenChecks = 50000000;  // taking the lock back may mean to wait for another thread
    static constexpr int64_t kBetweenLooks = 4000000;
    static constexpr int64_t kMostUnits = 256;  // few, so that units that suddenly get longer are noticed soon

    DYNAGRAD_ONCE bool look() {
        if (stopped_ || (stop_ != nullptr && __atomic_load_n(stop_, __ATOMIC_RELAXED) != 0)) {
            left_ = 0;
            return stopped_ = true;
        }
        const int64_t before = now_;
        now_ = coarse_time();
        if (limit_ >= 0 && now_ - start_ >= limit_) {
            left_ = 0;
            return stopped_ = late_ = true;
        }
        // Units between two looks at the clock: more while they are short, fewer once they are long.
        if (now_ - before < kBetweenLooks) {
            units_ = units_ * 2 < kMostUnits ? units_ * 2 : kMostUnits;
        } else if (now_ - before > 2 * kBetweenLooks) {
            units_ = units_ / 8 > 0 ? units_ / 8 : 1;
        }
        left_ = units_;
        if (now_ - checked_ < kBetweenChecks) return false;
        checked_ = now_;
        if (host_ == nullptr || host_->check == nullptr) return false;
        const bool held = host_->save != nullptr && host_->restore != nullptr;
        if (held) host_->restore(state_);
        stopped_ = host_->check() != 0;
        if (held) state_ = host_->save();
        if (!stopped_) return false;
        left_ = 0;
        if (stop_ != nullptr) __atomic_store_n(stop_, 1, __ATOMIC_RELAXED);  // tell the other threads of this run
        return true;
    }

    const Host* host_;
    int32_t* stop_;
    int64_t limit_;
    void* state_ = nullptr;
    int64_t left_ = 1, units_ = 1;
    int64_t start_, now_, checked_;
    bool stopped_ = false, late_ = false;
};

}  // namespace dynagrad
