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

// What an argument or a result is: one number, or an array of this shape.
struct Leaf {
    NumberKind kind;
    int32_t dimensions;
    const intptr_t* shape;
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
inline bool read_number(NumberKind kind, void* object, Scalar& slot) {
    if (kind == kBoolean) {
        slot.boolean = object == python.truths[0] || object == python.truths[1];
        return slot.boolean || object == python.types[kBoolean][0] || object == python.types[kBoolean][1];
    }
    const void* type = type_of(object);
    if (type != python.types[kind][0] && type != python.types[kind][1]) return false;
    if (kind == kReal) {
        slot.real = python.PyFloat_AsDouble(object);
        return true;
    }
    slot.integer = python.PyLong_AsLongLong(object);
    if (slot.integer != -1 || python.PyErr_Occurred() == nullptr) return true;
    python.PyErr_Clear();
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

inline void* new_number(NumberKind kind, const Scalar& slot) {
    if (kind == kReal) return python.PyFloat_FromDouble(slot.real);
    if (kind == kInteger) return python.PyLong_FromLongLong(slot.integer);
    return python.PyBool_FromLong(slot.boolean);
}

inline void* new_array(const Leaf& leaf) {
    void* descr = python.descr[leaf.kind];
    python.Py_IncRef(descr);  // numpy takes it over
    return python.new_array(python.array_type, descr, leaf.dimensions, leaf.shape, nullptr, nullptr, 0, nullptr);
}

inline void drop(void* const* objects, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (objects[i] != nullptr) python.Py_DecRef(objects[i]);
    }
}

// The body failed: what a function of Python, `failed(status, message)`, makes of it. A handler may have raised before.
DYNAGRAD_ONCE void* fail(void* failed, int64_t status, const char* message) {
    if (python.PyErr_Occurred() != nullptr) return nullptr;
    intptr_t length = 0;
    while (message[length] != 0) ++length;
    void* arguments[2] = {python.PyLong_FromLongLong(status), python.PyUnicode_DecodeUTF8(message, length, "replace")};
    void* result = nullptr;
    if (arguments[0] != nullptr && arguments[1] != nullptr) result = python.PyObject_Vectorcall(failed, arguments, 2, nullptr);
    drop(arguments, 2);
    return result;
}

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
    if (!fits) return python.PyObject_Vectorcall(python.PyTuple_GetItem(self, 0), arguments, static_cast<size_t>(count), nullptr);

    const Leaf* const out = form.out;
    for (int64_t i = 0; i < form.outputs; ++i) {
        outputs[i] = &results[i];
        made[i] = nullptr;
        if (out[i].dimensions == 0) continue;
        made[i] = new_array(out[i]);
        if (made[i] == nullptr) {
            drop(made, i);
            python.PyErr_Clear();
            return fail(python.PyTuple_GetItem(self, 1), kMemory, "there is no memory for an array that it returns");
        }
        outputs[i] = static_cast<const ArrayFields*>(made[i])->data;
    }

    char message[kMessage];
    message[0] = 0;
    const void* const* given = nullptr;
    if (form.given)
        given = reinterpret_cast<const void* const*>(python.PyLong_AsLongLong(python.PyTuple_GetItem(self, 2)));
    const Context context{&python.host, message, given};
    const int64_t status = body(&context, inputs, outputs);
    if (status != kDone) return drop(made, form.outputs), fail(python.PyTuple_GetItem(self, 1), status, message);

    for (int64_t i = 0; i < form.outputs; ++i) {
        if (out[i].dimensions != 0) continue;
        made[i] = new_number(out[i].kind, results[i]);
        if (made[i] == nullptr) return drop(made, form.outputs), nullptr;
    }
    if (form.single) return made[0];
    void* tuple = python.PyTuple_New(form.outputs);
    if (tuple == nullptr) return drop(made, form.outputs), nullptr;
    for (int64_t i = 0; i < form.outputs; ++i) python.PyTuple_SetItem(tuple, i, made[i]);
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
    for (int64_t i = 0; i < kInputs; ++i) inputs[i] = &(numbers[i] = python.PyFloat_AsDouble(arguments[i]));
    void* const outputs[] = {&result};
    char message[kMessage];
    message[0] = 0;
    const Context context{&python.host, message};
    const int64_t status = body(&context, inputs, outputs);
    if (status != kDone) return fail(python.PyTuple_GetItem(self, 1), status, message);
    return python.PyFloat_FromDouble(result);
}

}  // namespace dynagrad

#if !defined(DYNAGRAD_LINKED) || defined(DYNAGRAD_RUNTIME)
namespace dynagrad {
DYNAGRAD_EXPORT void dg_python(const Python* table) { python = *table; }
}  // namespace dynagrad
#endif
