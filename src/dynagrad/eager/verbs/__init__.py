"""The verbs that users call: derivatives of Python functions, as functions.

- `returned.py`: derivatives of functions that a differentiated function returns;
- `gradients.py`: `jvp`, `vjp`, `grad`, `derivative`, `pullback`, `hvp`; `jacobians.py`: `jacfwd`, `jacrev`, `hessian`;
- `custom_rule.py`: functions with custom derivatives;
- `fixed_point.py`: fixed points, by the implicit function theorem; `checkpoint.py`: checkpointed loops;
- `checking.py`: derivatives checked against finite differences.
"""
