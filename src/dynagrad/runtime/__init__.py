"""Compiled libraries: built, kept, loaded and called.

`compiling/` has the compiler and the cache of what it made, `disk/` files that several processes share. `library.py`
loads a library; `engine.py` has the functions of a compiled program of rules as Python objects, `calling.py` and
`walking.py` generated functions as functions of Python; `blas.py` and `threads.py` are what compiled code asks of this
process. Under `include/dynagrad/` lie the headers that generated code is written against. Nothing here knows rules,
charts or facts.
"""
