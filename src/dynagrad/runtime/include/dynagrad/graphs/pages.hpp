// Memory for what may be large: stacks and arrays. A block of four megabytes or more lies on huge pages where the system
// has them, since the first look at each small page costs more than the work that is done on it (64 MB take 3 ms instead
// of 23). Blocks are given back with `discard`.
//
// What grows without end lies in a region: addresses for as much as it may ever be, of which only those that are looked
// at take memory. So it grows where it is; a block would be copied each time, and be there twice.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <dynagrad/base/memory.hpp>

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/resource.h>
#endif

namespace dynagrad::graphs {

inline constexpr int64_t kHugePage = int64_t{1} << 21;
inline constexpr int64_t kLarge = 2 * kHugePage;

// A block of at least so many bytes, of any content, at a multiple of 16; null if there is none.
inline void* take_block(int64_t bytes) {
    if (fails()) return nullptr;
#if defined(__linux__)
    if (bytes >= kLarge) {
        const size_t whole = static_cast<size_t>((bytes + kHugePage - 1) / kHugePage * kHugePage);
        void* found = aligned_alloc(static_cast<size_t>(kHugePage), whole);
        if (found == nullptr) return nullptr;
        counted(1);
        madvise(found, whole, MADV_HUGEPAGE);
        return found;
    }
#endif
    return obtain(static_cast<size_t>(bytes), false);
}

// A larger block with the first `used` bytes of one, which is given back; null, and that one as it was, if there is none.
inline void* grow_block(void* block, int64_t used, int64_t bytes) {
    if (bytes < kLarge && block != nullptr) return fails() ? nullptr : realloc(block, static_cast<size_t>(bytes));
    void* larger = take_block(bytes);
    if (larger == nullptr) return nullptr;
    if (used > 0) memcpy(larger, block, static_cast<size_t>(used));
    discard(block);
    return larger;
}

// Addresses for so many bytes; null where there are none to spare.
inline void* take_region([[maybe_unused]] int64_t bytes) {
#if defined(__linux__)
    if (fails()) return nullptr;
    rlimit limit;  // of addresses: who has one should not lose them to what may never be used
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return nullptr;
    const size_t size = static_cast<size_t>(bytes);
    void* found = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return nullptr;
    counted(1);
    madvise(found, size, MADV_HUGEPAGE);
    return found;
#else
    return nullptr;
#endif
}
inline void leave_region([[maybe_unused]] void* region, [[maybe_unused]] int64_t bytes) {
#if defined(__linux__)
    counted(-1);
    munmap(region, static_cast<size_t>(bytes));
#endif
}

}  // namespace dynagrad::graphs
