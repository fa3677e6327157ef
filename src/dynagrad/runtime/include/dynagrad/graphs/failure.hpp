// Errors that a graph raises as it runs; `ir/failures.py` has their numbers and what they say.
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include <dynagrad/graphs/call.hpp>

namespace dynagrad::graphs {

// The status of that error. The text may have a `%lld` and, after it, a `%.3g`.
__attribute__((noinline, cold)) inline int64_t failure(const Call& call, int64_t code, const char* text, int64_t steps,
                                                       double change) {
    char said[kMessage];
    snprintf(said, sizeof said, text, static_cast<long long>(steps), change);
    return call.context->fail(kFailure + code, said);
}

// The same for a text of the user's, with any numbers.
__attribute__((noinline, cold, format(printf, 3, 4))) inline int64_t raised(const Call& call, int64_t code,
                                                                            const char* text, ...) {
    char said[kMessage];
    va_list given;
    va_start(given, text);
    vsnprintf(said, sizeof said, text, given);
    va_end(given);
    return call.context->fail(kFailure + code, said);
}

}  // namespace dynagrad::graphs
