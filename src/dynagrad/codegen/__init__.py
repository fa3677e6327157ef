"""C++ text. `cxx.py` is what all of it is written with; `expression.py` writes expressions of scalars, `graph/` whole
graphs, `rules/` the classes of plans.
"""
