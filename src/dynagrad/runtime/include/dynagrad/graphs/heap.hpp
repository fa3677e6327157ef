// Cells: values whose kind is known only as a graph runs. What the operations mean is said in `ir/ops/cells.py`.
//
// Cells never change, and are freed together when the call is over. A null cell is zero: tangents and adjoints have it
// in any place. Lists may be long, so whatever walks through cells is a loop along their last parts; where it goes too
// deep along the others, or where there is no more memory, the call stops.
#pragma once

#include <stdlib.h>

#include <dynagrad/graphs/call.hpp>

namespace dynagrad::graphs {

struct CellData;
using Cell = const CellData*;

inline constexpr int kMostInCell = 500;

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
    static_assert(kCount == sizeof...(Parts) && kCount <= kMostInCell);
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

// Numbers one after the other, in memory of their own, which is freed with them unless somebody takes it.
class Numbers {
  public:
    Numbers() = default;
    ~Numbers() { free(data); }
    Numbers(const Numbers&) = delete;
    Numbers& operator=(const Numbers&) = delete;

    int64_t* data = nullptr;
    int64_t count = 0;

    // Whether there is room for so many more.
    bool room(int64_t more) {
        if (count + more <= capacity_) return true;
        const int64_t wanted = 2 * (count + more) + 64;
        if (8 * wanted >= kAsked && available_memory() < 8 * wanted) return false;
        void* grown = realloc(data, static_cast<size_t>(8 * wanted));
        if (grown == nullptr) return false;
        data = static_cast<int64_t*>(grown);
        capacity_ = wanted;
        return true;
    }
    void add(int64_t number) { data[count++] = number; }
    int64_t* take() {
        int64_t* const taken = data;
        data = nullptr;
        return taken;
    }

  private:
    int64_t capacity_ = 0;
};

// The cells that a cell consists of, each once, and the parts of each before it: its key, then its number, or how many
// parts it has and which cells these are, counted from 0. Before them stands how many words there are.
// `compiler/returned_cells.py` reads and frees them.
class CellExport {
  public:
    explicit CellExport(Call& call) : call_(call) {}

    // The address of the words; 0 where there is no memory, or where the call is over.
    __attribute__((noinline)) int64_t run(Cell root) {
        if (!words_.room(1)) return 0;
        words_.add(0);
        if (!visit(root)) return 0;
        while (todo_.count > 0) {
            const Cell x = reinterpret_cast<Cell>(todo_.data[todo_.count - 2]);
            int64_t& next = todo_.data[todo_.count - 1];
            if (call_.ends()) return 0;
            if (next < x->count) {
                const Cell part = x->part[next++];
                if (place_of(part) < 0 && !visit(part)) return 0;
                continue;
            }
            todo_.count -= 2;
            if (!record(x)) return 0;
        }
        words_.data[0] = words_.count;
        return reinterpret_cast<int64_t>(words_.take());
    }

  private:
    // A cell without parts is written down at once, and others once their parts are.
    bool visit(Cell x) {
        if (x == nullptr || x->count == 0) return record(x);
        if (!todo_.room(2)) return false;
        todo_.add(reinterpret_cast<int64_t>(x));
        todo_.add(0);
        return true;
    }
    bool record(Cell x) {
        const int64_t parts = x == nullptr ? 0 : x->count;
        if (!words_.room(2 + parts)) return false;
        words_.add(key_of(x));
        if (x == nullptr) {
            nothing_ = cells_++;
            return true;
        }
        if (x->key == kRealCell) words_.add(__builtin_bit_cast(int64_t, x->real));
        else if (x->key == kTruthCell) words_.add(int64_t{x->truth});
        else if (x->key == kTagCell) words_.add(x->tag);
        else words_.add(parts);
        for (int64_t i = 0; i < parts; ++i) words_.add(place_of(x->part[i]));
        return note(x, cells_++);
    }

    // A table from cells to their places, by open addressing: a slot is an address and a place.
    static uint64_t hash(Cell x) { return (reinterpret_cast<uint64_t>(x) >> 4) * 0x9E3779B97F4A7C15u >> 20; }
    int64_t place_of(Cell x) const {
        if (x == nullptr) return nothing_;
        for (uint64_t at = hash(x) & mask_; mask_ > 0; at = (at + 1) & mask_) {
            const int64_t* slot = table_.data + 2 * at;
            if (slot[0] == 0) return -1;
            if (slot[0] == reinterpret_cast<int64_t>(x)) return slot[1];
        }
        return -1;
    }
    bool note(Cell x, int64_t place) {
        if (2 * (noted_ + 1) > static_cast<int64_t>(mask_) && !widen()) return false;
        put(table_, mask_, reinterpret_cast<int64_t>(x), place);
        ++noted_;
        return true;
    }
    static void put(Numbers& table, uint64_t mask, int64_t key, int64_t place) {
        uint64_t at = hash(reinterpret_cast<Cell>(key)) & mask;
        while (table.data[2 * at] != 0) at = (at + 1) & mask;
        table.data[2 * at] = key;
        table.data[2 * at + 1] = place;
    }
    bool widen() {
        const uint64_t slots = 4 * (mask_ + 1);
        Numbers wider;
        if (!wider.room(static_cast<int64_t>(2 * slots))) return false;
        memset(wider.data, 0, 16 * slots);
        for (uint64_t at = 0; mask_ > 0 && at <= mask_; ++at)
            if (table_.data[2 * at] != 0) put(wider, slots - 1, table_.data[2 * at], table_.data[2 * at + 1]);
        free(table_.data);
        table_.data = wider.take();
        mask_ = slots - 1;
        return true;
    }

    Call& call_;
    Numbers words_, todo_, table_;
    uint64_t mask_ = 0;  // slots less one; 0 for no table
    int64_t noted_ = 0, cells_ = 0, nothing_ = -1;
};

inline int64_t exported(Call& call, Cell x) { return CellExport(call).run(x); }

inline void put(double* at, Cell x) { memcpy(at, &x, 8); }
inline void get(const double* at, Cell& x) { memcpy(&x, at, 8); }

}  // namespace dynagrad::graphs
