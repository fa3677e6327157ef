// How much memory can still be taken: what the system has, and what the limits of containers and jobs leave.
//
// How much of it a call takes is decided in `call.hpp`; limits of charts are in `base/memory.hpp`.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__linux__)
#include <fcntl.h>
#include <unistd.h>
#endif

namespace dynagrad::graphs {

#if defined(__linux__)

// A file of the system, of which the beginning is looked at.
class SystemFile {
  public:
    // `path` is of three parts.
    SystemFile(const char* root, const char* folder, const char* name) {
        char path[kMost];
        size_t at = 0;
        const char* const parts[] = {root, folder, name};
        for (const char* part : parts) {
            const size_t n = strlen(part);
            if (at + n >= sizeof path) return;
            memcpy(path + at, part, n);
            at += n;
        }
        path[at] = 0;
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return;
        size_t used = 0;
        for (ssize_t n; used + 1 < sizeof text && (n = read(file, text + used, sizeof text - 1 - used)) > 0;)
            used += static_cast<size_t>(n);
        text[used] = 0;
        close(file);
    }

    // What stands behind a word at the beginning of a line; null if it is not there.
    const char* after(const char* word) const {
        const size_t n = strlen(word);
        for (const char* line = text; line != nullptr && *line != 0;) {
            if (strncmp(line, word, n) == 0) return line + n;
            line = strchr(line, '\n');
            if (line != nullptr) ++line;
        }
        return nullptr;
    }
    // The number there, or `otherwise`.
    int64_t number(const char* word, int64_t otherwise) const {
        const char* p = after(word);
        if (p == nullptr) return otherwise;
        while (*p == ' ') ++p;
        if (*p < '0' || *p > '9') return otherwise;
        int64_t n = 0;
        for (; *p >= '0' && *p <= '9'; ++p)
            if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n)) return INT64_MAX;
        return n;
    }

    static constexpr size_t kMost = 4096;
    char text[kMost] = {};
};

// What a limit leaves; the cache of files counts as used, and is given up first.
inline int64_t left_in(const char* root, const char* folder, const char* most, const char* used, const char* cache) {
    const int64_t limit = SystemFile(root, folder, most).number("", INT64_MAX);
    if (limit == INT64_MAX) return INT64_MAX;
    const int64_t left = limit - SystemFile(root, folder, used).number("", 0) +
                         SystemFile(root, folder, "/memory.stat").number(cache, 0);
    return left < 0 ? 0 : left;
}

// Bytes, or INT64_MAX where nobody knows. `root` is where the files of the system are.
inline __attribute__((noinline, cold)) int64_t available_memory(const char* root = "") {
    int64_t found = SystemFile(root, "", "/proc/meminfo").number("MemAvailable:", INT64_MAX >> 10) << 10;
    const auto least = [&](int64_t other) { found = other < found ? other : found; };
    least(left_in(root, "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                  "total_inactive_file "));
    char folder[SystemFile::kMost] = "/sys/fs/cgroup";  // and in it the group of this process, and those around it
    const SystemFile groups(root, "", "/proc/self/cgroup");
    const size_t start = strlen(folder);
    size_t end = start;
    if (const char* own = groups.after("0::"))
        for (; *own != 0 && *own != '\n' && end + 1 < sizeof folder; ++own) folder[end++] = *own;
    for (;;) {
        folder[end] = 0;
        least(left_in(root, folder, "/memory.max", "/memory.current", "inactive_file "));
        if (end <= start) return found;
        while (end > start && folder[--end] != '/') {}
    }
}

#else

inline int64_t available_memory(const char* = "") { return INT64_MAX; }

#endif

}  // namespace dynagrad::graphs
