"""Code generation: all C++ text is written here.

`cxx.py` is the writer of lines and literals that all of it uses; `expression.py` writes graphs of scalars as
expressions, `graph/` whole graphs as functions, `rules/` plans as classes. `effort.py` says how much the compiler of
that text is to optimise.

There is no form of statements (for, if, let, store, call) between graphs and text: four in ten statements are none of
these (declarations, guards, heads of functions), and loop nests, which keep their statements by depth until they are
written, become a twentieth shorter by one, which is less than the form and its printer take.
"""
