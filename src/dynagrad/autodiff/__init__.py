"""Derivatives of graphs, which are graphs again: tangents forward, and adjoints by one sweep backward.

`derive.py` goes through a graph in a line; `control_flow.py` has the rules of branches, loops and calls, which it
enters into the table of `derive.py`; `accumulation.py` is the life of an adjoint, `activity.py` which of its elements
count, `residuals.py` what loops save for the way back and `rematerialisation.py` loops that are run again instead.
`custom_rules.py` and `fixed_point.py` are functions with derivatives of their own.
"""

from . import control_flow  # noqa: F401  -- its rules are entered into the table of `derive`
from .accumulation import sweep
from .derive import generate_adjoints, tangents

__all__ = ["generate_adjoints", "sweep", "tangents"]
