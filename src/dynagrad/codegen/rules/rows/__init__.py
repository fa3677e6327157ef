"""Joins of a whole row of drivers at once; how they are gone back over is in `backward/`.

- `elementwise.py`: drivers and heads stand side by side, one to one.
- `matrix.py`: a row of drivers is multiplied by a matrix of facts.
- `calling.py`: how they are called, with item by item for the rest.
"""
