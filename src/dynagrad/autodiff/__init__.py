"""Automatic differentiation of graphs, by transformation: tangents (forward mode) and adjoints (reverse mode).

- `accumulation.py`: adjoint accumulation in a reverse sweep;
- `structural_zeros.py`: the structural zeros of adjoints, which must not meet infinite partial derivatives;
- `derive.py`: derivatives of single operations and of straight-line graphs;
- `residuals.py`: which values a backward pass needs, and how they are saved on stacks;
- `control_flow.py`: derivatives of branches, loops and calls, entered into the table of `derive.py`;
- `custom_rules.py`: functions with custom derivatives;
- `rematerialisation.py`: loops and functions that are recomputed in the backward pass (checkpointing);
- `fixed_point.py`: fixed points, differentiated by the implicit function theorem;
- `buffer_reuse.py`: derivative rules applied to numpy arrays with few temporaries.
"""

from . import control_flow  # noqa: F401  -- its rules are entered into the table of `derive`
from .accumulation import sweep
from .derive import generate_adjoints, tangents

__all__ = ["generate_adjoints", "sweep", "tangents"]
