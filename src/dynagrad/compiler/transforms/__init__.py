"""Derivatives inside compiled functions: the verbs, and functions with custom derivatives.

Each verb traces a function on fresh variables and differentiates the nodes at once, by `autodiff/`.

- `primal_trace.py`: a function traced at variables, its tangents and adjoints; structures of reals.
- `returned.py`: derivatives of functions that a differentiated function returns.
- `duals.py`: linear functionals on functions, the cotangents of functions.
- `jacobians.py`: `jacfwd`, `jacrev`; `verbs.py`: all other verbs, made of these.
- `captured.py`: closure conversion for functions of the graph with custom derivatives:
- `custom_rule.py`, with `opaque.py` for functions that Python computes; `fixed_point.py`; `checkpoint.py`.
"""
