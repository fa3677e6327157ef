// Memory of a chart: growable arrays and bit sets that account for their bytes.
//
// Everything a chart owns comes from an `Account`, so that statistics are exact and a limit can stop a run before
// the machine swaps. Element types are trivially copyable. No C++ library code is used, only libc.
// The limit is soft: an allocation never fails because of it; the run looks at `Account::over()` and stops.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Placement, without the C++ library's <new>, which a compiler that comes alone may lack.
namespace dynagrad {
struct Here {};
}  // namespace dynagrad
inline void* operator new(size_t, void* where, dynagrad::Here) noexcept { return where; }

namespace dynagrad {

struct Account {
  int64_t bytes = 0;
  int64_t peak = 0;
  int64_t limit = INT64_MAX;
  void add(int64_t n) {
    bytes += n;
    if (bytes > peak) peak = bytes;
  }
  bool over() const { return bytes > limit; }
};

[[noreturn]] inline void out_of_memory() { abort(); }  // only when malloc itself fails; the soft limit comes first

// Large blocks that were given back and wait for the next chart: for fresh pages a system may charge more than the work
// on them costs. Few, none of them huge; threads leave and take them without a lock.
struct Blocks {
  static constexpr int most = 6;
  static constexpr int64_t least = 1 << 20, widest = 32 << 20;
  struct alignas(16) Block { int64_t bytes; };  // what malloc gives stands at multiples of 16
  inline static Block* kept[most] = {};

  static void* allocate(int64_t bytes, bool zeros) {
    if (bytes < least) {
      void* p = zeros ? calloc(1, bytes ? bytes : 1) : malloc(bytes ? bytes : 1);
      if (!p) out_of_memory();
      return p;
    }
    for (Block*& slot : kept) {
      Block* b = __atomic_exchange_n(&slot, (Block*)nullptr, __ATOMIC_ACQ_REL);
      if (!b) continue;
      if (b->bytes >= bytes && b->bytes / 2 <= bytes) {
        if (zeros) memset((void*)(b + 1), 0, bytes);
        return b + 1;
      }
      keep(b);
    }
    Block* b = (Block*)(zeros ? calloc(1, sizeof(Block) + bytes) : malloc(sizeof(Block) + bytes));
    if (!b) out_of_memory();
    b->bytes = bytes;
    return b + 1;
  }
  // `bytes` as it was asked for.
  static void release(void* data, int64_t bytes) {
    if (bytes < least || !data) return free(data);
    Block* b = (Block*)data - 1;
    b->bytes <= widest ? keep(b) : free(b);
  }
  static void keep(Block* b) {
    for (Block*& slot : kept) {
      Block* none = nullptr;
      if (__atomic_compare_exchange_n(&slot, &none, b, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    }
    free(b);
  }
};

template <class T>
struct Array {
  T* data = nullptr;
  int64_t size = 0;
  int64_t capacity = 0;
  Account* account = nullptr;

  Array() = default;
  explicit Array(Account* a) : account(a) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { release(); }

  void release() {
    if (account && data) account->add(-capacity * (int64_t)sizeof(T));
    if (data) Blocks::release((void*)data, capacity * (int64_t)sizeof(T));
    data = nullptr;
    size = capacity = 0;
  }
  // n elements of all-zero bytes; what was there is gone.
  void zeros(int64_t n) {
    release();
    data = (T*)Blocks::allocate(n * (int64_t)sizeof(T), true);
    size = capacity = n;
    if (account) account->add(n * (int64_t)sizeof(T));
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
    for (int64_t i = 0; i < n; i++) data[i] = with;
  }
  void reserve(int64_t n) {
    if (n <= capacity) return;
    int64_t wanted = capacity + capacity / 2 + 8;
    if (wanted < n) wanted = n;
    T* grown;
    if (wanted * (int64_t)sizeof(T) < Blocks::least) {
      grown = (T*)realloc((void*)data, wanted * sizeof(T));
      if (!grown) out_of_memory();
    } else {
      grown = (T*)Blocks::allocate(wanted * (int64_t)sizeof(T), false);
      if (data) memcpy((void*)grown, (void*)data, size * sizeof(T));
      if (data) Blocks::release((void*)data, capacity * (int64_t)sizeof(T));
    }
    if (account) account->add((wanted - capacity) * (int64_t)sizeof(T));
    data = grown;
    capacity = wanted;
  }
  void push(T x) {
    if (size == capacity) reserve(size + 1);
    data[size++] = x;
  }
  void resize(int64_t n, T with) {
    reserve(n);
    for (int64_t i = size; i < n; i++) data[i] = with;
    size = n;
  }
  void clear() { size = 0; }
  // Elements and room change places; whose account the bytes are on goes with the array.
  void swap(Array& other) {
    const int64_t more = (other.capacity - capacity) * (int64_t)sizeof(T);
    if (account) account->add(more);
    if (other.account) other.account->add(-more);
    T* const d = data;
    const int64_t n = size, c = capacity;
    data = other.data, size = other.size, capacity = other.capacity;
    other.data = d, other.size = n, other.capacity = c;
  }
  T& operator[](int64_t i) { return data[i]; }
  const T& operator[](int64_t i) const { return data[i]; }
};

// An entry of an array that grows with a hash table.
template <class T>
inline T& grown(Array<T>& array, int64_t cell, T otherwise) {
  if (__builtin_expect(cell >= array.size, 0)) array.resize(cell + cell / 2 + 64, otherwise);
  return array[cell];
}

// An entry of flags that are only there once somebody set one.
inline uint8_t flags_of(const Array<uint8_t>& flags, int64_t cell) { return cell < flags.size ? flags[cell] : 0; }

// A bit per cell. Rows start at multiples of eight, so that a row can be read as unaligned 64-bit words.
struct Bits {
  Array<uint8_t> bytes;
  explicit Bits(Account* a) : bytes(a) {}
  void zeros(int64_t n) { bytes.zeros(n / 8 + 16); }
  bool test(int64_t i) const { return bytes.data[i >> 3] >> (i & 7) & 1; }
  // Sets bit i; true if it was clear.
  bool set(int64_t i) {
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
  void clear(int64_t i) { bytes.data[i >> 3] &= (uint8_t)~(1u << (i & 7)); }
  // The 64 bits from bit i on, i a multiple of 8; of them the first n count.
  uint64_t word(int64_t i, int64_t n) const {
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

template <int N>
inline uint64_t hash_arguments(const int32_t* a) {
  uint64_t h = 0x9e3779b97f4a7c15ull;
  for (int i = 0; i < N; i++) h = (h ^ (uint32_t)a[i]) * 0x9ddfea08eb382d69ull, h ^= h >> 29;
  return h ^ h >> 32;
}

}  // namespace dynagrad
