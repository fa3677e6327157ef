"""DVL programs as machine code, by the compiler that Python functions have.

`loops.py` writes tail recursion as loops, `program.py` hands a program to the specialiser, and `builtins.py` tells it
what builtins do: with numbers and vectors (`values.py`), with tags (`bundles.py`), with values of which the run decides
what they are (`unions.py`), and what their derivatives are (`derivatives.py`).
"""
