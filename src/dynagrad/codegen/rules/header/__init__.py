"""C++ headers for users: a program's class with an interface that needs no Python.

`names.py` makes C++ names, `data.py` the program's terms, axioms and weights as constant arrays, `members.py` the
classes that a user calls, and `program.py` puts them together. The C++ that is the same for all programs is in the
`.hpp` files beside them, which a header has as text, whole, in its own namespace; `gradient.hpp` only where values can
be differentiated. `base.hpp` is long because it is one class, as C++ users see it.
"""
