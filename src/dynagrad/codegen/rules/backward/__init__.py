"""The backward pass (reverse mode) of a program of rules.

- `adjoints.py`: the tape, and the arrays of adjoints; `sweep.py`: who calls joins on the way back.
- `joins.py`: joins that propagate adjoints; `row_joins.py`: those of whole rows; `row_pops.py`: how these are undone.
- `resting.py`: derivatives of updates that change no value.
"""
