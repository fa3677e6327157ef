"""Joins of a whole row of drivers at once; how they are gone back over is in `backward/`.

- `writer.py`: what these have in common.
- `elementwise.py`: drivers and heads stand side by side, one to one.
- `matrix.py`: a row of drivers is multiplied by a matrix of facts.
- `driving.py`: the functions of these joins; `calling.py`: their calls, item by item where the facts do not allow more.
"""
