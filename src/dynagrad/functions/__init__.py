"""Differentiation of Python functions.

`numbers.py` has the numbers that carry derivatives, `sweep.py` the reverse pass, `structure.py` containers,
`closures.py` functions as inputs and outputs, `verbs.py` what users call. Nothing here knows of rules or programs.
"""

from . import numpy_protocol, series

__all__ = ["numpy_protocol", "series"]
