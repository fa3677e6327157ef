"""Derivatives of runs, as charts answer them: gradients, tangents, outside values and marginals.

A program as a differentiable function is in `charts/functions/`.

- `directions.py`: directions of facts, and items with cotangents, as users give them.
- `gradient.py`: the backward pass started, and adjoints and tangents read as tables.
- `detached.py`: gradients and tangents as plain tables, for pickles.
- `queries.py`: gradients, tangents, outside values, marginals, expected counts and entropy, as charts answer them.
"""
