// Memory of a chart: growable arrays and bit sets that account for their bytes.
//
// Everything a chart owns comes from an `Account`, so that statistics are exact and a limit can stop a run before the
// machine swaps. Element types are trivially copyable. No C++ library code is used, only libc. Where the limit would be
// exceeded, or the system has no more memory, the call from outside ends at once (`guarded`), as it does on an interrupt
// and at a limit on time. Therefore data that is read after such an end is allocated as a whole before any of it changes.
#pragma once
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <dynagrad/base/linked.hpp>
#include <dynagrad/shared.h>

// Placement, without the C++ library's <new>, which a compiler that comes alone may lack.
namespace dynagrad {
struct Here {};
}  // namespace dynagrad
DYNAGRAD_ALWAYS void* operator new(size_t, void* where, dynagrad::Here) noexcept { return where; }

namespace dynagrad {

struct Account {
  int64_t bytes = 0;
  int64_t peak = 0;
  int64_t limit = INT64_MAX;
  const Account* beside = nullptr;  // what counts towards the same limit
  int64_t all() const { return bytes + (beside ? beside->bytes : 0); }
  void add(int64_t n) {
    bytes += n;
    if (all() > peak) peak = all();
  }
  bool fits(int64_t n) const { return n <= limit - all(); }
  // Whether room may be wasted: where three quarters of the limit are left, so that it cannot be what ends a run early.
  bool spares(int64_t n) const { return n <= limit / 4 - all(); }
};

// What stands before every array in memory. Those of arrays on the stack of a guarded call are in a ring.
struct alignas(16) Room {
  int64_t bytes;     // of room, this not counted; all of them are charged, also where less was asked for
  Account* account;  // that it was charged to, or none
  Room* before;     // null outside of a ring
  Room* after;
  void link(Room* ring) {
    before = ring, after = ring->after;
    after->before = ring->after = this;
  }
  void unlink() {
    if (!before) return;
    before->after = after, after->before = before;
    before = after = nullptr;
  }
};

// Where a guarded call goes on when it ends early.
struct Rescue {
  jmp_buf place;
  Rescue* outer;
  Account* account;  // for arrays on the stack; may be null
  Room ring;
  Failure failure;
};
inline constinit thread_local Rescue* rescue = nullptr;

[[noreturn]] DYNAGRAD_ONCE void end_early(Failure why) {
  if (!rescue) abort();
  rescue->failure = why;
  longjmp(rescue->place, 1);
}
[[noreturn]] inline void out_of_memory(Failure why = exhausted) { end_early(why); }

// Whether this object lies on the stack, above which the guarded call began.
inline bool is_local(const void* object) {
  return rescue && (const char*)object < (const char*)rescue && (const char*)object > (const char*)__builtin_frame_address(0);
}

#ifdef DYNAGRAD_FAILURES  // in tests: the allocation with this number, counted down, finds no memory; and what is taken
extern "C" __attribute__((visibility("default"))) inline int64_t dg_fail_allocation = 0;
extern "C" __attribute__((visibility("default"))) inline int64_t dg_live_allocations = 0;
inline bool fails() { return dg_fail_allocation > 0 && --dg_fail_allocation == 0; }
inline void counted(int64_t more) { __atomic_fetch_add(&dg_live_allocations, more, __ATOMIC_RELAXED); }
#else
inline bool fails() { return false; }
inline void counted(int64_t) {}
#endif

// All memory is taken here, or counted as what is, and given back by `discard`. Null where there is none.
DYNAGRAD_ONCE void* obtain(size_t bytes, bool zeros) {
  void* found = zeros ? calloc(1, bytes) : malloc(bytes);
  if (found) counted(1);
  return found;
}
DYNAGRAD_ONCE void discard(void* memory) {
  if (memory) counted(-1);
  ::free(memory);
}

// Blocks of up to 1 MB that a thread keeps for its next chart while it runs one after another, by their size: of the sizes
// from one power of two to the next there are four. Nothing is taken from a shelf that was given to another thread.
struct Shelf {
  static constexpr int64_t least = 64, most = 1 << 20;
  static constexpr int kinds = 4 * 14 + 1;
  Room* rooms[kinds] = {};
  Shelf* const outer;
  Shelf();
  ~Shelf();
  Shelf(const Shelf&) = delete;
  // The kind of blocks of at least so many bytes, and how many these have.
  static int kind(int64_t& bytes) {
    if (bytes <= least) return bytes = least, 0;
    const int shift = 61 - __builtin_clzll((uint64_t)bytes - 1);  // of a quarter of the power of two below
    const int64_t quarters = (bytes - 1) >> shift;                // 4 .. 7
    bytes = (quarters + 1) << shift;
    return (int)(4 * (shift - 4) + quarters - 3);
  }
  Room* take(int kind) {
    Room* const b = rooms[kind];
    if (b) rooms[kind] = b->after;
    return b;
  }
  // Whether a block goes there.
  bool put(Room* b) {
    int64_t bytes = b->bytes;
    if (bytes > most) return false;
    const int k = kind(bytes);
    if (bytes != b->bytes) return false;
    b->after = rooms[k], rooms[k] = b;
    return true;
  }
};
inline constinit thread_local Shelf* shelf = nullptr;
DYNAGRAD_ALWAYS Shelf::Shelf() : outer(shelf) { shelf = this; }
DYNAGRAD_ALWAYS Shelf::~Shelf() {
  shelf = outer;
  for (Room* b : rooms)
    while (b) {
      Room* const next = b->after;
      discard(b);
      b = next;
    }
}

// Large blocks that were given back and wait for the next chart: for fresh pages a system may charge more than the work
// on them costs, above all where several threads ask for some. As many as charts of a few threads have, none of them huge,
// and not too much in all; threads leave and take them without a lock. They go where a limit needs their room.
struct Blocks {
  static constexpr int most = 32;
  static constexpr int64_t least = 1 << 20, widest = 32 << 20, held = 192 << 20;
  inline static Room* kept[most] = {};
  inline static int64_t waiting = 0;  // bytes of them

  DYNAGRAD_ONCE static Room* fresh(int64_t bytes, bool zeros) {
    return (Room*)obtain(sizeof(Room) + (size_t)bytes, zeros);
  }
  DYNAGRAD_ONCE static Room* find(int64_t bytes, bool zeros, const Account* account) {
    if (fails()) out_of_memory();
    if (shelf && bytes <= Shelf::most) {
      const int kind = Shelf::kind(bytes);
      if (Room* const b = shelf->take(kind)) {
        if (zeros) memset((void*)(b + 1), 0, bytes);
        return b;
      }
    }
    for (Room*& slot : kept) {
      if (bytes < least) break;
      Room* b = taken(slot);
      if (!b) continue;
      const bool wide = b->bytes > bytes && b->bytes / 2 <= bytes && (!account || account->spares(b->bytes));
      if (wide || b->bytes == bytes) {
        if (zeros) memset((void*)(b + 1), 0, bytes);
        return b;
      }
      keep(b);
    }
    Room* b = fresh(bytes, zeros);
    if (!b) {
      forget();
      b = fresh(bytes, zeros);
    }
    if (!b) out_of_memory();
    b->bytes = bytes;
    return b;
  }
  // Room for an array that lies at `owner`, charged to an account if there is one.
  DYNAGRAD_ONCE static void* take(int64_t bytes, bool zeros, const void* owner, Account* account) {
    const bool local = is_local(owner);
    if (!account && local) account = rescue->account;
    if (account && !account->fits(bytes)) out_of_memory(limited);
    Room* b = find(bytes, zeros, account);
    b->account = account, b->before = b->after = nullptr;
    if (account) {
      account->add(b->bytes);
      if (!account->fits(__atomic_load_n(&waiting, __ATOMIC_RELAXED))) forget();
    }
    if (local) b->link(&rescue->ring);
    return b + 1;
  }
  DYNAGRAD_ONCE static void give(void* data) {
    if (!data) return;
    Room* b = (Room*)data - 1;
    b->unlink();
    if (b->account) b->account->add(-b->bytes);
    if (shelf && shelf->put(b)) return;
    b->bytes >= least && b->bytes <= widest ? keep(b) : discard(b);
  }
  // The `size` elements of `each` bytes at `data` in new room, for n of them and some more where that does not meet a limit.
  DYNAGRAD_ONCE static void* regrow(void* data, int64_t size, int64_t& capacity, int64_t n, int64_t each,
                                    const void* owner, Account* account) {
    int64_t wanted = capacity + capacity / 2 + 8;
    if (wanted < n) wanted = n;
    if (account && !account->fits(wanted * each) && n + n / 8 < wanted) wanted = n + n / 8;
    void* grown = take(wanted * each, false, owner, account);
    if (data) memcpy(grown, data, size * each);
    give(data);
    capacity = wanted;
    return grown;
  }
  // The room at `data` belongs to the array at `owner` now.
  DYNAGRAD_ONCE static void settle(void* data, const void* owner, Account* account) {
    if (!data) return;
    Room* b = (Room*)data - 1;
    b->unlink();
    const bool local = is_local(owner);
    Account* charged = account ? account : local ? rescue->account : nullptr;
    if (charged != b->account) {
      if (b->account) b->account->add(-b->bytes);
      if (charged) charged->add(b->bytes);
      b->account = charged;
    }
    if (local) b->link(&rescue->ring);
  }
  DYNAGRAD_ONCE static void forget() {
    for (Room*& slot : kept) discard(taken(slot));
  }
  DYNAGRAD_ONCE static Room* taken(Room*& slot) {
    Room* b = __atomic_exchange_n(&slot, (Room*)nullptr, __ATOMIC_ACQ_REL);
    if (b) __atomic_fetch_sub(&waiting, b->bytes, __ATOMIC_RELAXED);
    return b;
  }
  DYNAGRAD_ONCE static void keep(Room* b) {
    const int64_t bytes = b->bytes;
    if (__atomic_load_n(&waiting, __ATOMIC_RELAXED) + bytes > held) return discard(b);
    for (Room*& slot : kept) {
      Room* none = nullptr;
      __atomic_fetch_add(&waiting, bytes, __ATOMIC_RELAXED);
      if (__atomic_compare_exchange_n(&slot, &none, b, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
      __atomic_fetch_sub(&waiting, bytes, __ATOMIC_RELAXED);
    }
    discard(b);
  }
};
#ifdef DYNAGRAD_FAILURES
extern "C" __attribute__((visibility("default"), used)) inline void dg_forget_blocks() { Blocks::forget(); }
#endif

// Calls `work`, and says how it ended. Where it ends early, it ends there: arrays on the stack are given back, those
// of objects elsewhere stay as they are. Arrays on the stack count towards `account`. By pointers, so that what lies on
// the stack in `work` lies below the frame of this; see `is_local`.
DYNAGRAD_ONCE Failure call_guarded(Account* account, void (*work)(void*), void* with) {
  Rescue here;
  here.outer = rescue, here.account = account, here.failure = none;
  here.ring.before = here.ring.after = &here.ring;
  if (setjmp(here.place) == 0) {
    rescue = &here;
    work(with);
  } else {
    while (here.ring.after != &here.ring) {
      Room* b = here.ring.after;
      b->unlink();
      if (b->account) b->account->add(-b->bytes);
      discard(b);
    }
  }
  rescue = here.outer;
  return here.failure;
}
template <class F>
inline Failure guarded(Account* account, F work) {
  return call_guarded(account, [](void* with) { (*(F*)with)(); }, &work);
}

// An object that lives until `dispose`, whose constructor takes no memory. Null where there is no room for it.
template <class T>
inline T* blank(Failure& failure) {
  void* place = fails() ? nullptr : obtain(sizeof(T), true);
  failure = place ? none : exhausted;
  return place ? new (place, Here{}) T() : nullptr;
}
// One whose constructor takes some, in zeroed memory: where memory ends in it, what it had by then can be given back.
template <class Open, class Close>
void* create(Failure& failure, int64_t bytes, Open open, Close close) {
  void* place = fails() ? nullptr : obtain((size_t)bytes, true);
  failure = place ? guarded(nullptr, [&] { open(place); }) : exhausted;
  if (failure == none) return place;
  if (place) close(place);
  discard(place);
  return nullptr;
}
template <class T, class... A>
T* create(Failure& failure, A... arguments) {
  const auto open = [&](void* place) { new (place, Here{}) T(arguments...); };
  return (T*)create(failure, sizeof(T), open, [](void* place) { ((T*)place)->~T(); });
}
template <class T>
__attribute__((noinline)) void dispose(T* object) {
  if (!object) return;
  object->~T();
  discard((void*)object);
}

// Writes an element of `each` bytes n times.
DYNAGRAD_ONCE void repeat(void* to, int64_t n, const void* element, int64_t each) {
  if (each == 8) {
    uint64_t word;
    memcpy(&word, element, 8);
    for (int64_t i = 0; i < n; i++) memcpy((char*)to + 8 * i, &word, 8);
  } else {
    for (int64_t i = 0; i < n; i++) memcpy((char*)to + each * i, element, each);
  }
}

template <class T>
struct Array {
  T* data = nullptr;
  int64_t size = 0;
  int64_t capacity = 0;
  Account* account = nullptr;

  Array() = default;
  DYNAGRAD_ALWAYS explicit Array(Account* a) : account(a) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  DYNAGRAD_ALWAYS ~Array() { Blocks::give((void*)data); }

  DYNAGRAD_ALWAYS const T* begin() const { return data; }
  DYNAGRAD_ALWAYS const T* end() const { return data + size; }
  void release() {
    Blocks::give((void*)data);
    data = nullptr;
    size = capacity = 0;
  }
  // n elements of all-zero bytes; what was there is gone.
  void zeros(int64_t n) {
    release();
    data = (T*)Blocks::take(n * (int64_t)sizeof(T), true, this, account);
    size = capacity = n;
  }
  // The same, where this array is still read if there is no room.
  void zeros_safely(int64_t n) {
    Array fresh(account);
    fresh.zeros(n);
    swap(fresh);
  }
  // The same in the room that there is, where it is enough: for what is filled again and again.
  void wipe(int64_t n) {
    if (n > capacity) zeros(n + n / 2);
    else if (n) memset((void*)data, 0, n * sizeof(T));
    size = n;
  }
  // n elements to be written; what was there is gone.
  void raw(int64_t n) {
    if (n > capacity) release(), reserve(n);
    size = n;
  }
  void copy(const Array& other) {
    raw(other.size);
    if (size) memcpy((void*)data, (const void*)other.data, size * sizeof(T));
  }
  void filled(int64_t n, T with) {
    zeros(n);
    repeat((void*)data, n, &with, (int64_t)sizeof(T));
  }
  DYNAGRAD_ALWAYS void reserve(int64_t n) {
    if (n > capacity) grow(n);
  }
  __attribute__((noinline)) void grow(int64_t n) {
    data = (T*)Blocks::regrow((void*)data, size, capacity, n, (int64_t)sizeof(T), this, account);
  }
  DYNAGRAD_ALWAYS void push(T x) {
    if (size == capacity) grow(size + 1);
    data[size++] = x;
  }
  void resize(int64_t n, T with) {
    reserve(n);
    for (int64_t i = size; i < n; i++) data[i] = with;
    size = n;
  }
  DYNAGRAD_ALWAYS void clear() { size = 0; }
  // Elements and room change places; what they are charged to does not.
  void swap(Array& other) {
    T* const d = data;
    const int64_t n = size, c = capacity;
    data = other.data, size = other.size, capacity = other.capacity;
    other.data = d, other.size = n, other.capacity = c;
    Blocks::settle((void*)data, this, account), Blocks::settle((void*)other.data, &other, other.account);
  }
  DYNAGRAD_ALWAYS T& operator[](int64_t i) { return data[i]; }
  DYNAGRAD_ALWAYS const T& operator[](int64_t i) const { return data[i]; }
};

#if defined(DYNAGRAD_LINKED) || defined(DYNAGRAD_RUNTIME)
DYNAGRAD_KNOWN void Array<int32_t>::grow(int64_t);
DYNAGRAD_KNOWN void Array<uint32_t>::grow(int64_t);
DYNAGRAD_KNOWN void Array<int64_t>::grow(int64_t);
DYNAGRAD_KNOWN void Array<uint64_t>::grow(int64_t);
DYNAGRAD_KNOWN void Array<double>::grow(int64_t);
DYNAGRAD_KNOWN void Array<uint8_t>::grow(int64_t);
DYNAGRAD_KNOWN void Array<uint8_t>::resize(int64_t, uint8_t);
DYNAGRAD_KNOWN void Array<uint32_t>::resize(int64_t, uint32_t);
#endif

// An entry of an array that grows with a hash table.
template <class T>
DYNAGRAD_ALWAYS T& grown(Array<T>& array, int64_t cell, T otherwise) {
  if (__builtin_expect(cell >= array.size, 0)) array.resize(cell + cell / 2 + 64, otherwise);
  return array[cell];
}

// An entry of flags that are only there once somebody set one.
DYNAGRAD_ALWAYS uint8_t flags_of(const Array<uint8_t>& flags, int64_t cell) { return cell < flags.size ? flags[cell] : 0; }
DYNAGRAD_ALWAYS double rest_of(const Array<double>& rests, int64_t cell) { return cell < rests.size ? rests[cell] : 0; }

// Sets a flag of an array that grows with a hash table; whether it was not set before.
DYNAGRAD_ALWAYS bool first_time(Array<uint8_t>& flags, int64_t cell) {
  uint8_t& flag = grown(flags, cell, (uint8_t)0);
  const bool first = !flag;
  flag = 1;
  return first;
}

// A bit per cell. Rows start at multiples of eight, so that a row can be read as unaligned 64-bit words.
struct Bits {
  Array<uint8_t> bytes;
  DYNAGRAD_ALWAYS explicit Bits(Account* a) : bytes(a) {}
  DYNAGRAD_ALWAYS void zeros(int64_t n) { bytes.zeros(n / 8 + 16); }
  DYNAGRAD_ALWAYS bool test(int64_t i) const { return bytes.data[i >> 3] >> (i & 7) & 1; }
  // Sets bit i; true if it was clear.
  DYNAGRAD_ALWAYS bool set(int64_t i) {
    uint8_t& b = bytes.data[i >> 3];
    const uint8_t m = (uint8_t)(1u << (i & 7));
    const bool fresh = !(b & m);
    b |= m;
    return fresh;
  }
  // The first set bit at or after i and under n, or -1.
  int64_t next(int64_t i, int64_t n) const {
    while (i < n) {
      if (!(i & 7)) {
        const uint64_t w = word(i, n - i);
        if (w) return i + __builtin_ctzll(w);
        i += 64;
      } else if (test(i)) {
        return i;
      } else {
        i++;
      }
    }
    return -1;
  }
  DYNAGRAD_ALWAYS void clear(int64_t i) { bytes.data[i >> 3] &= (uint8_t)~(1u << (i & 7)); }
  // The 64 bits from bit i on, i a multiple of 8; of them the first n count.
  DYNAGRAD_ALWAYS uint64_t word(int64_t i, int64_t n) const {
    uint64_t w;
    memcpy(&w, bytes.data + (i >> 3), 8);
    return n >= 64 ? w : w & ((1ull << n) - 1);
  }
  void merge(int64_t i, uint64_t w) {
    uint64_t old;
    memcpy(&old, bytes.data + (i >> 3), 8);
    old |= w;
    memcpy(bytes.data + (i >> 3), &old, 8);
  }
};

inline uint64_t mix(uint64_t h) {
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  h ^= h >> 32;
  return h;
}

}  // namespace dynagrad
