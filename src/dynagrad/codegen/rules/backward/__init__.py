"""The backward pass (reverse mode) of a program of rules.

- `adjoints.py`: the arrays of adjoints: cleared, seeded and read.
- `tape.py`: what the forward pass records; `sweep.py`: the pass over this tape.
- `joins.py`: joins that propagate adjoints.
- `implicit.py`: solved components, by implicit differentiation.
- `resting.py`: derivatives of updates that change no value.
"""
