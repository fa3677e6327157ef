"""The backward pass (reverse mode) of a program of rules.

- `adjoints.py`: the tape, and the arrays of adjoints: cleared, seeded and read; `sweep.py`: the pass over the tape.
- `joins.py`: joins that propagate adjoints; `row_joins.py`: those of whole rows; `row_pops.py`: how these are undone.
- `implicit.py`: solved components, by implicit differentiation.
- `resting.py`: derivatives of updates that change no value.
"""
