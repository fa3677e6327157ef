"""Joins of whole rows of drivers, which are popped together: the same to the bit as one after the other, and quicker.

- `elementwise.py`: each driver adds to one item of the head.
- `matrix.py`: each driver adds a stretch of facts to the same row of the head.
- `drivers.py`: what both ask of drivers.
- `joins.py`: those of a plan. How they are written is in `codegen/rules/rows/`.
"""
