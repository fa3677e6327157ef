"""Derivatives of runs: gradients, tangents, outside values, marginals, and a program as a differentiable function.

- `directions.py`: directions of facts, and items with cotangents, as users give them.
- `gradient.py`: the backward pass started, and adjoints and tangents read as tables.
- `detached.py`: gradients and tangents as plain tables, for pickles.
- `queries.py`: gradients, tangents, outside values, marginals, expected counts and entropy, as charts answer them.
- `jets.py`: a program run over jets, in and back, for derivatives of any order.
- `function.py`: `Function`, a program as a function of arrays.
"""
