"""Parametrisations: how the weights of facts depend on free parameters, each in a file.

`rows.py` has the facts whose weights are parameters, `groups.py` which of them sum to one and which are tied,
`declared.py` what a program says of that. A parametrisation (`parametrisation.py` says what one has) is a
`Distribution` (`distribution.py`), `LogLinear` in features (`log_linear.py`), or any differentiable function
(`differentiable.py`), a module of PyTorch (`network.py`). None knows data, objectives or optimisers.
"""
