"""From op graphs to machine code: what is shared by everything that runs natively.

What lives here: the text of operations in C++, the toolchain that compiles it (`toolchain`), the cache of compiled
programs (`cache`), how a compiled library is loaded and called (`library`), how what it holds becomes functions of
Python (`calling`), and under `include/dynagrad/` the headers that generated code is written against. What may not live
here: anything that knows rules, charts or facts. The room imports `graph` and `errors` of ours and nothing else.

The three steps are `library.load(cache.build(source))`: text, file, functions.
"""
