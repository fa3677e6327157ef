"""Code generation: all C++ text is written here.

`cxx.py` is the writer of lines and literals that all of it uses; `expression.py` writes graphs of scalars as
expressions, `graph/` whole graphs as functions, `rules/` plans as classes.
"""
