// Calls of a body from Python, in tens of nanoseconds.
//
// Nothing of Python or numpy is included or linked. A library gets a table of pointers when it is loaded (`dg_python`,
// filled by calling.py), and exports functions with the calling convention METH_FASTCALL. Such a function takes
// arguments that fit exactly: a float, int or bool, or a contiguous array of the right type and shape. For anything
// else it calls a Python function, `otherwise`, with the same arguments.
//
// Types are compared by address, so no Python code runs between the check of an argument and the call of the body.
// Arrays are read as every extension compiled against numpy reads them.
#pragma once

#include <dynagrad/calls/body.hpp>

namespace dynagrad {

// The kinds of numbers, in the order of calling.py.
enum Kind : int32_t { kReal, kInteger, kBoolean };

// What an argument or a result is: one number, or an array of this shape.
struct Leaf {
    Kind kind;
    int32_t dimensions;
    const intptr_t* shape;
};

// Pointers to functions and objects of Python and numpy, in the order of calling.py.
struct Python {
    double (*float_as_double)(void*);
    void* (*float_from_double)(double);
    long long (*long_as_long_long)(void*);
    void* (*long_from_long_long)(long long);
    void* (*bool_from_long)(long);
    void* (*tuple_new)(intptr_t);
    int (*tuple_set_item)(void*, intptr_t, void*);
    void* (*tuple_get_item)(void*, intptr_t);
    void* (*unicode_decode)(const char*, intptr_t, const char*);
    void* (*vectorcall)(void* callable, void* const* arguments, size_t count, void* names);
    void* (*error_occurred)();
    void (*error_clear)();
    void (*increase)(void*);
    void (*decrease)(void*);
    Host host;
    void* (*new_array)(void* type, void* descr, int dimensions, const intptr_t* shape, const intptr_t* strides,
                       void* data, int flags, void* like);
    void* array_type;
    void* descr[3];      // by kind
    void* types[3][2];   // what a single real or integer may be; for booleans, what is false
    void* truths[2];
};

// The fields of a numpy array, behind the two of every object.
struct ArrayFields {
    void* header[2];
    void* data;
    int dimensions;
    const intptr_t* shape;
    const intptr_t* strides;
    void* base;
    const void* descr;
    int flags;
};
struct DescrFields {
    void* header[2];
    void* type;
    char kind, letter, byteorder, unused;
    int number;
};
constexpr int kContiguousAligned = 0x1 | 0x100;

union Scalar {
    double real;
    int64_t integer;
    bool boolean;
};

inline Python python;  // of this library

inline const void* type_of(const void* object) { return static_cast<void* const*>(object)[1]; }

// A single number into `slot`; false if it is of another type, or too large.
inline bool read_number(Kind kind, void* object, Scalar& slot) {
    if (kind == kBoolean) {
        slot.boolean = object == python.truths[0] || object == python.truths[1];
        return slot.boolean || object == python.types[kBoolean][0] || object == python.types[kBoolean][1];
    }
    const void* type = type_of(object);
    if (type != python.types[kind][0] && type != python.types[kind][1]) return false;
    if (kind == kReal) {
        slot.real = python.float_as_double(object);
        return true;
    }
    slot.integer = python.long_as_long_long(object);
    if (slot.integer != -1 || python.error_occurred() == nullptr) return true;
    python.error_clear();
    return false;
}

// The numbers of an array, or null if it is of another type or shape, or not contiguous.
inline const void* read_array(const Leaf& leaf, const void* object) {
    if (type_of(object) != python.array_type) return nullptr;
    const ArrayFields& array = *static_cast<const ArrayFields*>(object);
    if (array.dimensions != leaf.dimensions) return nullptr;
    if ((array.flags & kContiguousAligned) != kContiguousAligned) return nullptr;
    for (int32_t d = 0; d < leaf.dimensions; ++d) {
        if (array.shape[d] != leaf.shape[d]) return nullptr;
    }
    const void* wanted = python.descr[leaf.kind];
    if (array.descr != wanted) {  // arrays from a file may have a copy of it
        const DescrFields& a = *static_cast<const DescrFields*>(array.descr);
        const DescrFields& b = *static_cast<const DescrFields*>(wanted);
        if (a.number != b.number || a.byteorder != b.byteorder) return nullptr;
    }
    return array.data;
}

inline void* new_number(Kind kind, const Scalar& slot) {
    if (kind == kReal) return python.float_from_double(slot.real);
    if (kind == kInteger) return python.long_from_long_long(slot.integer);
    return python.bool_from_long(slot.boolean);
}

inline void* new_array(const Leaf& leaf) {
    void* descr = python.descr[leaf.kind];
    python.increase(descr);  // numpy takes it over
    return python.new_array(python.array_type, descr, leaf.dimensions, leaf.shape, nullptr, nullptr, 0, nullptr);
}

inline void drop(void* const* objects, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (objects[i] != nullptr) python.decrease(objects[i]);
    }
}

// The body failed: what a function of Python, `failed(status, message)`, makes of it. A handler may have raised before.
DYNAGRAD_ONCE void* fail(void* failed, int64_t status, const char* message) {
    if (python.error_occurred() != nullptr) return nullptr;
    intptr_t length = 0;
    while (message[length] != 0) ++length;
    void* arguments[2] = {python.long_from_long_long(status), python.unicode_decode(message, length, "replace")};
    void* result = nullptr;
    if (arguments[0] != nullptr && arguments[1] != nullptr) result = python.vectorcall(failed, arguments, 2, nullptr);
    drop(arguments, 2);
    return result;
}

using Body = int64_t (*)(const Context*, const void* const*, void* const*);

// How a body is called: its leaves, and what `self` is.
struct Form {
    const Leaf* in;
    const Leaf* out;
    int64_t inputs, outputs;
    bool single;  // the result is no tuple
    bool given;   // the third of `self` is the address of `Context::given`
};

// The memory of a call.
struct Places {
    Scalar *numbers, *results;
    const void** inputs;
    void **outputs, **made;
};

inline __attribute__((always_inline)) void* call_in(const Places& places, Body body, const Form& form, void* self,
                                                    void* const* arguments, intptr_t count) {
    const auto [numbers, results, inputs, outputs, made] = places;
    const Leaf* const in = form.in;
    bool fits = count == form.inputs;
    for (int64_t i = 0; fits && i < form.inputs; ++i) {
        if (in[i].dimensions == 0) {
            fits = read_number(in[i].kind, arguments[i], numbers[i]);
            inputs[i] = &numbers[i];
        } else {
            inputs[i] = read_array(in[i], arguments[i]);
            fits = inputs[i] != nullptr;
        }
    }
    if (!fits) return python.vectorcall(python.tuple_get_item(self, 0), arguments, static_cast<size_t>(count), nullptr);

    const Leaf* const out = form.out;
    for (int64_t i = 0; i < form.outputs; ++i) {
        outputs[i] = &results[i];
        made[i] = nullptr;
        if (out[i].dimensions == 0) continue;
        made[i] = new_array(out[i]);
        if (made[i] == nullptr) {
            drop(made, i);
            python.error_clear();
            return fail(python.tuple_get_item(self, 1), kMemory, "there is no memory for an array that it returns");
        }
        outputs[i] = static_cast<const ArrayFields*>(made[i])->data;
    }

    char message[Context::kMessage];
    message[0] = 0;
    const void* const* given = nullptr;
    if (form.given)
        given = reinterpret_cast<const void* const*>(python.long_as_long_long(python.tuple_get_item(self, 2)));
    const Context context{&python.host, message, given};
    const int64_t status = body(&context, inputs, outputs);
    if (status != kDone) return drop(made, form.outputs), fail(python.tuple_get_item(self, 1), status, message);

    for (int64_t i = 0; i < form.outputs; ++i) {
        if (out[i].dimensions != 0) continue;
        made[i] = new_number(out[i].kind, results[i]);
        if (made[i] == nullptr) return drop(made, form.outputs), nullptr;
    }
    if (form.single) return made[0];
    void* tuple = python.tuple_new(form.outputs);
    if (tuple == nullptr) return drop(made, form.outputs), nullptr;
    for (int64_t i = 0; i < form.outputs; ++i) python.tuple_set_item(tuple, i, made[i]);
    return tuple;
}

// The call of a body; `self` is the tuple (otherwise, failed, ...).
DYNAGRAD_ONCE void* call(Body body, const Form& form, void* self, void* const* arguments, intptr_t count) {
    constexpr int64_t kFew = 8;
    if (form.inputs <= kFew && form.outputs <= kFew) {
        Scalar numbers[kFew], results[kFew];
        const void* inputs[kFew];
        void *outputs[kFew], *made[kFew];
        return call_in({numbers, results, inputs, outputs, made}, body, form, self, arguments, count);
    }
    const size_t in = static_cast<size_t>(form.inputs) * 8, out = static_cast<size_t>(form.outputs) * 8;
    return call_in({static_cast<Scalar*>(__builtin_alloca(in)), static_cast<Scalar*>(__builtin_alloca(out)),
                    static_cast<const void**>(__builtin_alloca(in)), static_cast<void**>(__builtin_alloca(out)),
                    static_cast<void**>(__builtin_alloca(out))},
                   body, form, self, arguments, count);
}

// The same for a body from a few real numbers to one, which may be over in a nanosecond: with the body inside.
template <int64_t kInputs>
inline __attribute__((always_inline)) void* call_of_reals(Body body, const Form& form, void* self,
                                                          void* const* arguments, intptr_t count) {
    bool fits = count == kInputs;
    for (int64_t i = 0; fits && i < kInputs; ++i) {
        const void* type = type_of(arguments[i]);
        fits = type == python.types[kReal][0] || type == python.types[kReal][1];
    }
    if (!fits) return call(body, form, self, arguments, count);
    double numbers[kInputs], result;
    const void* inputs[kInputs];
    for (int64_t i = 0; i < kInputs; ++i) inputs[i] = &(numbers[i] = python.float_as_double(arguments[i]));
    void* const outputs[] = {&result};
    char message[Context::kMessage];
    message[0] = 0;
    const Context context{&python.host, message};
    const int64_t status = body(&context, inputs, outputs);
    if (status != kDone) return fail(python.tuple_get_item(self, 1), status, message);
    return python.float_from_double(result);
}

}  // namespace dynagrad

#if !defined(DYNAGRAD_LINKED) || defined(DYNAGRAD_RUNTIME)
// Takes over the table, of so many bytes; false if that is not the one described here.
DYNAGRAD_EXPORT bool dg_python(const dynagrad::Python* table, int64_t bytes) {
    if (bytes != static_cast<int64_t>(sizeof(dynagrad::Python))) return false;
    dynagrad::python = *table;
    return true;
}
#endif
