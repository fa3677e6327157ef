// What the code of a graph stands on: one call of it, the memory that it works in, and stacks.
//
// Memory is kept between calls, since fresh pages cost more than the work on them. It belongs to one call at a time:
// a call takes what lies idle, or makes some, and leaves it when it ends. Nothing here knows of the graph.
#pragma once

#include <dynagrad/base/math.hpp>
#if defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include <dynagrad/calls/body.hpp>
#include <dynagrad/graphs/available.hpp>
#include <dynagrad/graphs/elements.hpp>
#include <dynagrad/graphs/pages.hpp>

// The pragma before a loop whose rounds do not depend on each other through memory.
// With VECTORS, of one with few rounds, which would be unrolled before it could become vectors.
#if defined(__clang__)
#define DYNAGRAD_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define DYNAGRAD_INDEPENDENT_VECTORS _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#elif defined(__GNUC__)
#define DYNAGRAD_INDEPENDENT _Pragma("GCC ivdep")
#define DYNAGRAD_INDEPENDENT_VECTORS _Pragma("GCC ivdep")
#else
#define DYNAGRAD_INDEPENDENT
#define DYNAGRAD_INDEPENDENT_VECTORS
#endif

namespace dynagrad::graphs {

inline constexpr int64_t kMostFrames = int64_t{1} << 36;  // bytes, of all arrays that one call works with
inline constexpr int64_t kMostSaved = int64_t{1} << 46;   // what may be said
inline constexpr int64_t kMostKept = int64_t{1} << 30;    // bytes that stay when a call is over
inline constexpr int64_t kMostDeep = 1 << 20;             // calls of functions in each other
inline constexpr int64_t kAsked = int64_t{1} << 28;       // bytes from which on we ask whether there are so many

// Memory that is taken and given back in the manner of a stack, in pieces that never move.
class Pieces {
  public:
    // Room at a multiple of 64 bytes, or null where there is none; a piece comes as zeros when it is new.
    char* push(int64_t bytes) {
        bytes = taken(bytes);
        while (at_ < kMost && used_ + bytes > size_[at_]) {
            if (used_ == 0) {
                if (!enlarge(bytes)) return nullptr;
                break;
            }
            mark_[at_] = used_;
            ++at_;
            used_ = 0;
        }
        if (at_ == kMost) return nullptr;
        char* found = piece_[at_] + used_;
        used_ += bytes;
        return found;
    }
    void pop(int64_t bytes) {
        used_ -= taken(bytes);
        while (used_ == 0 && at_ > 0) used_ = mark_[--at_];
    }
    void clear() { at_ = 0, used_ = 0; }
    int64_t bytes() const {
        int64_t all = 0;
        for (int64_t size : size_) all += size;
        return all;
    }
    template <class F>
    void each(F f) {
        for (int i = 0; i < kMost; ++i)
            if (piece_[i] != nullptr) f(piece_[i], size_[i]);
    }
    DYNAGRAD_ONCE void release() {
        for (int i = 0; i < kMost; ++i) {
            discard(raw_[i]);
            raw_[i] = piece_[i] = nullptr;
            size_[i] = 0;
        }
        clear();
    }

  private:
    static constexpr int kMost = 40;
    static int64_t taken(int64_t bytes) { return bytes > 0 ? (bytes + 63) & ~int64_t{63} : 64; }
    DYNAGRAD_ONCE bool enlarge(int64_t bytes) {
        int64_t wanted = int64_t{4096} << (at_ < 24 ? at_ : 24);
        if (wanted < bytes) wanted = bytes;
        if (wanted > kMostFrames || (wanted >= kAsked && available_memory() < wanted)) return false;
        discard(raw_[at_]);
        raw_[at_] = static_cast<char*>(take_block(wanted + 64));
        if (raw_[at_] != nullptr) memset(raw_[at_], 0, static_cast<size_t>(wanted + 64));
        size_[at_] = raw_[at_] == nullptr ? 0 : wanted;
        piece_[at_] = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(raw_[at_]) + 63) & ~uintptr_t{63});
        return raw_[at_] != nullptr;
    }
    char* raw_[kMost] = {};
    char* piece_[kMost] = {};
    int64_t size_[kMost] = {};
    int64_t mark_[kMost] = {};  // how much of a piece was in use when the next one was begun
    int at_ = 0;
    int64_t used_ = 0;
};

// Never true, which compilers cannot know: where it is asked, a stretch of straight code ends for them.
inline const volatile bool kNever = false;

inline int64_t most_saved = kSavedGigabytes << 30;  // bytes, of one stack of this library

// The memory of a stack, as it is kept from call to call.
struct Slot {
    double* data = nullptr;
    int64_t capacity = 0;  // numbers of eight bytes
    int64_t region = 0;    // bytes of the region that they are in; 0 for a block
    int64_t unused = 0;    // slots lie side by side in memory that is given out in steps of 64 bytes

    DYNAGRAD_ONCE void free() {
        if (region > 0) leave_region(data, region);
        else discard(data);
        data = nullptr, capacity = region = 0;
    }
    // Room for so many numbers at least; false if there is none, or if it is more than may be.
    DYNAGRAD_ONCE bool enlarge(int64_t words) {
        if (words > most_saved / 8) return false;
        int64_t wanted = capacity + (capacity < kAsked / 8 ? capacity / 2 + 512 : kAsked / 8);
        if (wanted > most_saved / 8) wanted = most_saved / 8;
        if (wanted < words) wanted = words;
        // Whoever takes more than there is is killed, and so may be others.
        if (wanted >= kAsked / 8 && available_memory() < (wanted - capacity) * 8 + kSpare) return false;
        if (wanted * 8 > region && !move(wanted)) return false;
        capacity = wanted;
        return true;
    }

  private:
    static constexpr int64_t kSpare = int64_t{1} << 27;  // bytes that are left for others
    bool move(int64_t words) {
        const int64_t most = (most_saved + kHugePage) / kHugePage * kHugePage;
        void* found = words * 8 >= kLarge ? take_region(most) : nullptr;
        if (found != nullptr) {
            if (capacity > 0) memcpy(found, data, static_cast<size_t>(capacity) * 8);
            free();
            region = most;
        } else if (region > 0) {
            return false;
        } else {
            found = grow_block(data, capacity * 8, words * 8);
            if (found == nullptr) return false;
        }
        data = static_cast<double*>(found);
        return true;
    }
};
static_assert(64 % sizeof(Slot) == 0);

// Values that loops save. A variable of its own, so that the top stays in a register; the memory is the slot's.
struct Stack {
    double* data = nullptr;
    int64_t top = 0;
    int64_t capacity = 0;
    Slot* slot = nullptr;

    Stack() = default;
    explicit Stack(Slot* s) : data(s->data), capacity(s->capacity), slot(s) {}

    // The same values, once more: whoever changes one of both makes the other one worthless above what both have.
    Stack again() const {
        Stack other(slot);
        other.top = top;
        return other;
    }

    // Makes room for so many more; false if there is no memory for them.
    bool room(int64_t words) {
        if (__builtin_expect(words <= capacity - top, 1)) return true;
        return grow(words);
    }
    // The same for each of `rounds`.
    bool room(int64_t words, int64_t rounds) {
        int64_t total;  // no division: loops may be short, and there may be many
        if (rounds <= 0) return true;
        return !__builtin_mul_overflow(words, rounds, &total) && room(total);
    }

    // Sees to it that so many can come off: what comes off an empty stack is zeros. False if there is no memory for them.
    bool has(int64_t words) {
        if (__builtin_expect(top >= words, 1)) return true;
        if (!room(words)) return false;
        pad(data, top, words);
        top = words;
        return true;
    }
    // The same for each of `rounds`.
    bool has(int64_t words, int64_t rounds) {
        int64_t total;
        if (rounds <= 0) return true;
        return !__builtin_mul_overflow(words, rounds, &total) && has(total);
    }

  private:
    // Zeros below what is there, which is `top`, so that it becomes `words`.
    DYNAGRAD_ONCE static void pad(double* data, int64_t top, int64_t words) {
        memmove(data + (words - top), data, static_cast<size_t>(top) * 8);
        memset(data, 0, static_cast<size_t>(words - top) * 8);
    }
    bool grow(int64_t words) {
        if (words > kMostSaved / 8 || !slot->enlarge(top + words)) return false;
        data = slot->data;
        capacity = slot->capacity;
        return true;
    }
};

// All memory of one call.
struct Workspace {
    Pieces frames;
    Pieces slots;
    Pieces cells;

    DYNAGRAD_ONCE static Workspace* take() {
        for (Workspace*& place : idle) {
            Workspace* found = __atomic_exchange_n(&place, static_cast<Workspace*>(nullptr), __ATOMIC_ACQ_REL);
            if (found != nullptr) return found;
        }
        void* made = fails() ? nullptr : obtain(sizeof(Workspace), true);
        return made == nullptr ? nullptr : new (made, Here{}) Workspace;
    }
    DYNAGRAD_ONCE static void leave(Workspace* w) {
        w->frames.clear();
        w->slots.clear();
        w->cells.clear();
        int64_t bytes = w->frames.bytes() + w->cells.bytes();
        w->slots.each([&](char* piece, int64_t size) {
            Slot* slots = reinterpret_cast<Slot*>(piece);
            for (int64_t i = 0; i < size / int64_t{sizeof(Slot)}; ++i) bytes += slots[i].capacity * 8;
        });
        if (bytes <= kMostKept) {
            for (Workspace*& place : idle) {
                Workspace* none = nullptr;
                if (__atomic_compare_exchange_n(&place, &none, w, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
            }
        }
        w->release();
    }
    // What waits for the next call.
    DYNAGRAD_ONCE static void forget() {
        for (Workspace*& place : idle) {
            Workspace* found = __atomic_exchange_n(&place, static_cast<Workspace*>(nullptr), __ATOMIC_ACQ_REL);
            if (found != nullptr) found->release();
        }
    }

  private:
    DYNAGRAD_ONCE void release() {
        slots.each([](char* piece, int64_t size) {
            Slot* slots = reinterpret_cast<Slot*>(piece);
            for (int64_t i = 0; i < size / int64_t{sizeof(Slot)}; ++i) slots[i].free();
        });
        slots.release();
        cells.release();
        frames.release();
        discard(this);
    }
    inline static Workspace* idle[4] = {};
};

// One call of the code of a graph.
class Call {
  public:
    // `limit`: the nanoseconds that it may take, or -1.
    explicit Call(const Context* c, int64_t limit = -1)
        : context(c), watch(c, limit), limit_(limit), base_(static_cast<char*>(__builtin_frame_address(0))) {}
    ~Call() {
        if (work_ != nullptr) Workspace::leave(work_);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    const Context* context;
    Watch watch;

    char* frame(int64_t bytes) { return ready() ? work_->frames.push(bytes) : nullptr; }
    void unframe(int64_t bytes) { work_->frames.pop(bytes); }
    Slot* slots(int64_t count) {
        return ready() ? reinterpret_cast<Slot*>(work_->slots.push(count * int64_t{sizeof(Slot)})) : nullptr;
    }
    void unslot(int64_t count) { work_->slots.pop(count * int64_t{sizeof(Slot)}); }

    // Memory of the heap, until the end of the call. Where there is none it is memory that anybody may write to, and
    // the call stops.
    void* cell(int64_t bytes) {
        if (__builtin_expect(bytes > left_, 0) && !refill()) return dump_;
        char* const found = at_;
        at_ += bytes, left_ -= bytes;
        return found;
    }
    int64_t fresh_tag() { return ++tags_; }
    // Whether to stop now, and why; `work` units were done since the last time.
    bool stops(int64_t work = 1) { return watch.interrupted(work) || ended_ != Ended::no; }
    int64_t stopped() {
        if (ended_ == Ended::no) ended_ = Ended::stopped;
        return reason();
    }
    // The same as `stops`, for what has no result to say so with: the end of the call does.
    bool ends() {
        if (stops() && ended_ == Ended::no) ended_ = Ended::stopped;
        return ended_ != Ended::no;
    }
    bool exhausted() const { return ended_ != Ended::no; }
    void too_deep() { ended_ = Ended::deep, left_ = 0; }
    int64_t end() { return __builtin_expect(ended_ == Ended::no, 1) ? int64_t{kDone} : reason(); }

    // Whether a function may be called in here; `leave` when it is done.
    bool enter() {
        const int64_t used = base_ - static_cast<const char*>(__builtin_frame_address(0));
        return ++depth_ <= kMostDeep && (used < room_ || deep(used));
    }
    void leave() { --depth_; }

    DYNAGRAD_ONCE __attribute__((cold)) int64_t late() const {
        constexpr int64_t kMillisecond = 1000000, kSecond = 1000 * kMillisecond;
        const int64_t unit = limit_ % kSecond == 0 ? kSecond : limit_ % kMillisecond == 0 ? kMillisecond : 1000;
        char said[kMessage];
        int at = number(said, say(said, 0, "a call takes more than "), limit_ / unit);
        at = say(said, at, unit == kSecond ? " seconds" : unit == kMillisecond ? " milliseconds" : " microseconds");
        said[say(said, at, ": does it end? `timeout` says how long it may take")] = 0;
        return context->fail(kLate, said);
    }
    int64_t memory() const { return context->fail(kMemory, "there is no memory for what a function works with"); }
    // A stack that became too long.
    DYNAGRAD_ONCE __attribute__((cold)) int64_t saved() const {
        char said[kMessage];
        int at = most(said, say(said, 0, "a loop saves more than "));
        at = say(said, at, " for its way back, or than there is memory: does it end? dg.checkpoint saves less, and computes "
                           "the steps again; DYNAGRAD_SAVED_GB says how much a loop may save");
        said[at] = 0;
        return context->fail(kMemory, said);
    }
    int64_t recursion() const { return context->fail(kRecursion, "functions call each other too often"); }
    int64_t host() const { return context->fail(kFailed, "an operation that Python computes raised an error"); }
    DYNAGRAD_ONCE __attribute__((cold)) int64_t index(int64_t i, int64_t n) const {
        char text[96];
        int at = number(text, say(text, 0, "index "), i);
        at = number(text, say(text, at, " is out of range for an axis of length "), n);
        text[at] = 0;
        return context->fail(kIndex, text);
    }

  protected:
    Workspace* work_ = nullptr;  // the memory that is taken, if some is

  private:
    bool ready() {
        if (work_ == nullptr) work_ = Workspace::take();
        return work_ != nullptr;
    }
    DYNAGRAD_ONCE bool refill() {
        constexpr int64_t kPiece = 64 << 10;
        if (ended_ == Ended::no && (heap_ += kPiece) > most_saved) ended_ = Ended::large;
        at_ = ended_ == Ended::no && ready() ? work_->cells.push(kPiece) : nullptr;
        if (ended_ == Ended::no && at_ == nullptr) ended_ = Ended::memory;
        left_ = at_ == nullptr ? 0 : kPiece;
        return at_ != nullptr;
    }
    static int say(char* text, int at, const char* words) {
        for (; *words != 0; ++words) text[at++] = *words;
        return at;
    }
    // The most that a loop may save, which is also the most that a heap may hold.
    static int most(char* text, int at) {
        const bool whole = most_saved % (int64_t{1} << 30) == 0;
        at = number(text, at, most_saved >> (whole ? 30 : 20));
        return say(text, at, whole ? " GB" : " MB");
    }
    DYNAGRAD_ONCE __attribute__((cold)) int64_t reason() {
        if (ended_ == Ended::stopped) return watch.late() ? late() : int64_t{kInterrupted};
        if (ended_ == Ended::deep) return context->fail(kRecursion, "a structure is nested too deep");
        if (ended_ == Ended::memory) return memory();
        char said[kMessage];
        int at = most(said, say(said, 0, "lists, closures and other values whose kind the run decides take more than "));
        said[say(said, at, ": does the function end? DYNAGRAD_SAVED_GB says how much they may take")] = 0;
        return context->fail(kMemory, said);
    }
    static int number(char* text, int at, int64_t n) {
        char digits[24];
        int count = 0;
        uint64_t left = n < 0 ? -static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
        do digits[count++] = static_cast<char>('0' + left % 10);
        while ((left /= 10) != 0);
        if (n < 0) text[at++] = '-';
        while (count > 0) text[at++] = digits[--count];
        return at;
    }

    // How far the thread's own stack goes is asked for only when some of it is used, as that takes time.
    DYNAGRAD_ONCE bool deep(int64_t used) {
        constexpr int64_t kLeft = 96 << 10;  // for one function, and for what it calls
        if (!asked_) {
            asked_ = true;
            int64_t room = 512 << 10;
#if defined(__linux__)
            pthread_attr_t about;
            if (pthread_getattr_np(pthread_self(), &about) == 0) {
                void* low;
                size_t size;
                if (pthread_attr_getstack(&about, &low, &size) == 0) room = base_ - static_cast<char*>(low);
                pthread_attr_destroy(&about);
            }
#elif defined(__APPLE__)
            room = base_ - (static_cast<char*>(pthread_get_stackaddr_np(pthread_self())) -
                            pthread_get_stacksize_np(pthread_self()));
#endif
            if (room > kMostRoom) room = kMostRoom;
            if (room - kLeft > room_) room_ = room - kLeft;
        }
        return used < room_;
    }

    static constexpr int64_t kMostRoom = 256 << 20;
    int64_t limit_;
    const char* base_;
    int64_t depth_ = 0;
    int64_t room_ = 32 << 10;  // bytes of the thread's own stack, at least
    bool asked_ = false;
    char* at_ = nullptr;  // what is left of a piece of the heap
    int64_t left_ = 0;
    int64_t heap_ = 0;  // bytes of the heap
    int64_t tags_ = 0;
    enum class Ended { no, stopped, memory, large, deep } ended_ = Ended::no;
    alignas(8) inline static char dump_[4096];
};

// -- what is computed as a whole ---------------------------------------------------------------------------------------

// An operation that Python computes.
inline bool host_operation(const Call& call, int64_t which, const void* const* arguments, void* result) {
    const void* const* given = call.context->given;
    const auto compute = given == nullptr ? nullptr : reinterpret_cast<HostOperations>(const_cast<void*>(given[0]));
    return compute != nullptr && compute(which, arguments, result);
}

template <class T>
inline void cumsum(T* out, const T* x, int64_t outer, int64_t n, int64_t inner) {
    for (int64_t o = 0; o < outer; ++o) {
        for (int64_t k = 0; k < n; ++k) {
            T* const to = out + (o * n + k) * inner;
            const T* const from = x + (o * n + k) * inner;
            for (int64_t i = 0; i < inner; ++i) to[i] = k == 0 ? from[i] : to[i - inner] + from[i];
        }
    }
}

}  // namespace dynagrad::graphs

#if !defined(DYNAGRAD_LINKED) || defined(DYNAGRAD_RUNTIME)
namespace dynagrad {
#if defined(DYNAGRAD_FAILURES)
extern "C" __attribute__((visibility("default"), used)) inline void dg_forget_workspaces() { graphs::Workspace::forget(); }
#endif
extern "C" __attribute__((visibility("default"), used)) inline void dg_most_saved(int64_t bytes) {
    graphs::most_saved = bytes < graphs::kMostSaved ? bytes : graphs::kMostSaved;
}
}  // namespace dynagrad
#endif
