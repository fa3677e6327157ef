// Cells: values whose kind is known only as a graph runs. What the operations mean is said in `ir/ops/cells.py`.
//
// Cells never change, and are freed together when the call is over. A null cell is zero: tangents and adjoints have it
// in any place. Lists may be long, so whatever walks through cells is a loop along their last parts; where it goes too
// deep along the others, or where there is no more memory, the call stops.
#pragma once

#include <stdlib.h>

#include "call.hpp"

namespace dynagrad::graphs {

struct CellData;
using Cell = const CellData*;

inline constexpr int kRealCell = 0, kTruthCell = 1, kTagCell = 2;
inline constexpr int kMostParts = 500;

struct CellData {
    int32_t key;
    int32_t count;  // parts
    union {
        double real;
        bool truth;
        int64_t tag;
        Cell part[1];
    };
};

inline CellData* new_cell(Call& call, int32_t key, int32_t count) {
    const int64_t parts = count > 1 ? count : 1;
    CellData* made = static_cast<CellData*>(call.cell(8 + 8 * parts));
    made->key = key;
    made->count = count;
    return made;
}

inline Cell real_cell(Call& call, double x) {
    CellData* made = new_cell(call, kRealCell, 0);
    made->real = x;
    return made;
}
inline Cell truth_cell(Call& call, bool x) {
    CellData* made = new_cell(call, kTruthCell, 0);
    made->truth = x;
    return made;
}
inline Cell tag_cell(Call& call, int64_t serial) {
    CellData* made = new_cell(call, kTagCell, 0);
    made->tag = serial;
    return made;
}
inline Cell fresh_tag(Call& call) { return tag_cell(call, call.fresh_tag()); }
template <int kKey, int kCount, class... Parts>
inline Cell record(Call& call, Parts... parts) {
    static_assert(kCount == sizeof...(Parts) && kCount <= kMostParts);
    CellData* made = new_cell(call, kKey, kCount);
    int at = 0;
    ((made->part[at++] = parts), ...);
    if (at == 0) made->part[0] = nullptr;
    return made;
}
inline double real_of(Cell x) { return x == nullptr || x->key != kRealCell ? 0.0 : x->real; }
inline int64_t tag_of(Cell x) { return x == nullptr || x->key != kTagCell ? 0 : x->tag; }
inline bool truth_of(Cell x) { return x != nullptr && x->key == kTruthCell && x->truth; }
inline int64_t key_of(Cell x) { return x == nullptr ? -1 : x->key; }
template <int kIndex>
inline Cell part_of(Cell x) {
    return x == nullptr || x->count <= kIndex ? nullptr : x->part[kIndex];
}

// A record like another one, with nothing in its parts.
inline CellData* like(Call& call, Cell x) {
    CellData* made = new_cell(call, x->key, x->count);
    made->part[0] = nullptr;
    for (int i = 1; i < x->count; ++i) made->part[i] = nullptr;
    return made;
}
template <int kIndex>
inline Cell placed(Call& call, Cell x, Cell d) {
    if (d == nullptr || x == nullptr || x->count <= kIndex) return nullptr;
    CellData* made = like(call, x);
    made->part[kIndex] = d;
    return made;
}

// Whether a walk may go on, one level deeper.
class Deeper {
  public:
    explicit Deeper(Call& call) : call_(call), may_(call.enter() && !call.exhausted()) {
        if (!may_ && !call.exhausted()) call.too_deep();
    }
    ~Deeper() { call_.leave(); }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    explicit operator bool() const { return may_ && !call_.exhausted(); }

  private:
    Call& call_;
    bool may_;
};

__attribute__((noinline)) inline Cell cell_sum(Call& call, Cell a, Cell b) {
    Cell found = nullptr;
    const Deeper may(call);
    for (Cell* to = &found; may;) {
        if (a == nullptr || b == nullptr || a->key != b->key) {
            *to = a == nullptr ? b : a;
            return found;
        }
        if (a->key == kRealCell) {
            *to = real_cell(call, a->real + b->real);
            return found;
        }
        if (a->count == 0) {
            *to = a;
            return found;
        }
        CellData* made = like(call, a);
        *to = made;
        const int last = a->count - 1;
        for (int i = 0; i < last; ++i)
            if (a->part[i] != nullptr || b->part[i] != nullptr) made->part[i] = cell_sum(call, a->part[i], b->part[i]);
        to = &made->part[last];
        a = a->part[last], b = b->part[last];
    }
    return found;
}

__attribute__((noinline)) inline Cell filled(Call& call, Cell x, Cell d) {
    Cell found = nullptr;
    const Deeper may(call);
    for (Cell* to = &found; may;) {
        if (x == nullptr || x->count == 0) {
            *to = x != nullptr && x->key == kRealCell ? real_cell(call, real_of(d)) : x;
            return found;
        }
        CellData* made = like(call, x);
        *to = made;
        const int last = x->count - 1;
        for (int i = 0; i < last; ++i) made->part[i] = filled(call, x->part[i], d == nullptr ? nullptr : d->part[i]);
        to = &made->part[last];
        d = d == nullptr ? nullptr : d->part[last];
        x = x->part[last];
    }
    return found;
}

// The words of a cell in preorder: its key, then its number, or how many parts it has and these. `compiler/returned_cells.py`
// reads and frees them.
struct Words {
    int64_t* data = nullptr;
    int64_t count = 1, capacity = 0;  // the first word is the count

    bool add(int64_t word) {
        if (count >= capacity) {
            capacity = capacity * 2 + 64;
            void* grown = realloc(data, static_cast<size_t>(capacity) * 8);
            if (grown == nullptr) return false;
            data = static_cast<int64_t*>(grown);
        }
        data[count++] = word;
        return true;
    }
    bool add(Call& call, Cell x) {
        const Deeper may(call);
        for (; may; x = x->part[x->count - 1]) {
            if (!add(key_of(x))) return false;
            if (x == nullptr) return true;
            if (x->key == kRealCell) return add(__builtin_bit_cast(int64_t, x->real));
            if (x->key == kTruthCell) return add(int64_t{x->truth});
            if (x->key == kTagCell) return add(x->tag);
            if (!add(int64_t{x->count})) return false;
            if (x->count == 0) return true;
            for (int i = 0; i + 1 < x->count; ++i)
                if (!add(call, x->part[i])) return false;
        }
        return false;
    }
};

// 0 where there is no memory.
inline int64_t exported(Call& call, Cell x) {
    Words words;
    if (!words.add(call, x)) {
        free(words.data);
        return 0;
    }
    words.data[0] = words.count;
    return reinterpret_cast<int64_t>(words.data);
}

inline void put(double* at, Cell x) { memcpy(at, &x, 8); }
inline void get(const double* at, Cell& x) { memcpy(&x, at, 8); }

}  // namespace dynagrad::graphs
