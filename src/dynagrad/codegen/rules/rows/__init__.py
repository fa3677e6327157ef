"""Joins of a whole row of drivers at once.

- `elementwise.py`: drivers and heads stand side by side, one to one.
- `matrix.py`: a row of drivers is multiplied by a matrix of facts.
- `calling.py`: how they are called, with item by item for the rest.
- `back.py`: the same on the way back; `undo.py`: how pops of a row are undone.
"""
