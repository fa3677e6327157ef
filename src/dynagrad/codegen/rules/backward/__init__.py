"""The backward pass (reverse mode) of a program of rules.

- `adjoints.py`: the tape, and the arrays of adjoints; `sweep.py`: who calls joins on the way back.
- `row_joins.py`: joins of whole rows, which propagate adjoints; `row_pops.py`: how these are undone. Other joins are
  nests, whose visitor is in `visiting/reverse.hpp`.
"""
