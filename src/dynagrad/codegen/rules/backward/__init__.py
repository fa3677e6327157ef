"""The backward pass (reverse mode) of a program of rules.

- `tape.py`: the tape; `sweep.py`: who visits nests on the way back.
- `row_joins.py`: joins of whole rows, which propagate adjoints; `row_pops.py`: how these are undone. Other joins are
  nests, whose visitor is in `visiting/reverse.hpp`.
"""
