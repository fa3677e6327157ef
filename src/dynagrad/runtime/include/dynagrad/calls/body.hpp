// The body of a generated function: its calling convention, its context, and how it reports failure.
//
//     DYNAGRAD_EXPORT int64_t f(const dynagrad::Context* context, const void* const* inputs, void* const* outputs)
//
// An input or output is a pointer: to one double, int64_t or bool, or to the first number of a contiguous array, whose
// shape the body knows. No output overlaps an input or another output. A body returns kDone, or what `fail` returns.
// Many threads may be in it at once. Nothing here includes or links Python; how Python calls a body is in python.hpp,
// and a C++ program passes `Context{}`; with `given` where the text of the body looks at it.
#pragma once

#include <dynagrad/base/host.hpp>
#include <dynagrad/base/memory.hpp>

#define DYNAGRAD_EXPORT extern "C" __attribute__((visibility("default")))

namespace dynagrad {

// Notes what happened, cut where it does not fit; `return context->fail(kIndex, "row 7 of 5")`.
inline int64_t Context::fail(int64_t status, const char* text) const {
    if (message == nullptr) return status;
    int64_t i = 0;
    for (; i + 1 < kMessage && text[i] != 0; ++i) message[i] = text[i];
    message[i] = 0;
    return status;
}

// Lets Ctrl-C, and other threads, into a loop that may turn out long. As long as it is short it pays a decrement per
// unit of work, and now and then a look at the clock; after a millisecond or a few the interpreter lock is given up, as
// Unlocked does, until the end of the watch. A unit may take nanoseconds or milliseconds. At the end of `limit`
// nanoseconds, where that is not negative, it is interrupted too.
//
//     dynagrad::Watch watch(context);
//     while (step()) if (watch.interrupted()) return dynagrad::kInterrupted;
class Watch {
  public:
    explicit Watch(const Context* context, int64_t limit = -1) : host_(context->host), limit_(limit) {}
    ~Watch() {
        if (on_) unlocked()->~Unlocked();
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    // Whether it was the limit on time that interrupted it.
    bool late() { return on_ && unlocked()->late(); }

    // Whether to stop now; once true it stays true. `work` units were done since the last call.
    bool interrupted(int64_t work = 1) {
        left_ -= work;
        return left_ <= 0 && look();
    }

  private:
    static constexpr int64_t kShort = 1000000;  // nanoseconds during which the lock is kept
    static constexpr int64_t kMostUnits = 1024;
    static constexpr int64_t kUnlockedUnits = 16;

    Unlocked* unlocked() { return reinterpret_cast<Unlocked*>(place_); }

    DYNAGRAD_ONCE bool look() {
        if (!on_) {
            const int64_t now = coarse_time();
            if (since_ == 0) since_ = now;
            if (now - since_ < kShort) {
                left_ = units_ = units_ * 2 < kMostUnits ? units_ * 2 : kMostUnits;
                return false;
            }
            new (place_, Here{}) Unlocked(host_, nullptr, limit_);
            on_ = true;
        }
        left_ = kUnlockedUnits;
        if (!unlocked()->interrupted(kUnlockedUnits)) return false;
        left_ = 0;
        return true;
    }

    const Host* host_;
    int64_t limit_;
    int64_t left_ = 64, units_ = 64;
    int64_t since_ = 0;
    bool on_ = false;
    alignas(Unlocked) char place_[sizeof(Unlocked)];
};

}  // namespace dynagrad
