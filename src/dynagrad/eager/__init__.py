"""Differentiation of Python functions.

`numbers.py` has the numbers that carry derivatives, `sweep.py` the reverse pass, `pytree.py` containers, `closures.py`
functions as inputs and outputs, `eager/verbs/gradients.py` what users call. Nothing here knows of rules or programs.
"""

from . import taylor
from .numpy import protocol

__all__ = ["protocol", "taylor"]
