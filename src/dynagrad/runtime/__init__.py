"""The runtime: compiled libraries, built, cached, loaded and called. Rules, charts and facts are not known here.

- `compiling/`: the compiler, its flags, and the cache of libraries; `disk/`: files that several processes share.
- `shared.py`: what native code and Python share, read from `shared.h`.
- `library.py`: a loaded library, and how native code is interrupted.
- `engine.py`: the functions of a compiled program of rules as Python objects.
- `calling.py`: generated functions as builtin functions of Python; `walking.py`: the same with nested arguments.
- `blas.py`, `threads.py`: BLAS and a pool of threads for compiled code.
- `include/dynagrad/`: the headers that generated code is written against.
"""
