"""C++ headers for users: a program's class with an interface that needs no Python.

`names.py` makes C++ names, `data.py` the program's terms, axioms and weights as constant arrays, `members.py` the
classes that a user calls, and `program.py` puts them together. The C++ that is the same for all programs is not text
here: it is in `runtime/include/dynagrad/interface`, which a header includes within its own namespace.
"""
