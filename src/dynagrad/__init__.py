"""Dynagrad: differentiable dynamic programming. The public names, and nothing else."""

from .batch import Batch
from .chart import Chart
from .errors import (
    CompileError,
    Error,
    FactError,
    LiftError,
    NotComputed,
    NotConverged,
    NotDifferentiable,
    ProgramError,
    ProgramWarning,
    QueryError,
    RoomError,
    RunError,
    SourceError,
    SyntaxError,
    ValueRangeError,
)
from .files import read_file
from .function import Function
from .functions import special
from .functions.checking import check_derivatives
from .functions.checkpoint import checkpoint
from .functions.closures import Dual
from .functions.compiled import compile
from .functions.fixed_point import fixed_point
from .functions.jacobians import hessian, jacfwd, jacrev
from .functions.rules import custom_rule
from .functions.seeing import cpp, graph
from .functions.structure import add, register, scale
from .functions.verbs import (
    derivative,
    grad,
    gradient,
    hvp,
    jvp,
    pullback,
    value_and_grad,
    vjp,
)
from .limits import Statistics
from .program import Bound, Program
from .semirings import Semiring
from .table import Table
from .terms import Term

__version__ = "0.1.0"


def __dir__() -> list[str]:
    """What completion offers: the public names."""
    return [*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))]


__all__ = [
    "Batch",
    "Bound",
    "Chart",
    "CompileError",
    "Dual",
    "Error",
    "FactError",
    "Function",
    "LiftError",
    "NotComputed",
    "NotConverged",
    "NotDifferentiable",
    "Program",
    "ProgramError",
    "ProgramWarning",
    "QueryError",
    "RoomError",
    "RunError",
    "Semiring",
    "SourceError",
    "Statistics",
    "SyntaxError",
    "Table",
    "Term",
    "ValueRangeError",
    "__version__",
    "add",
    "check_derivatives",
    "checkpoint",
    "compile",
    "cpp",
    "custom_rule",
    "derivative",
    "fixed_point",
    "grad",
    "gradient",
    "graph",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "pullback",
    "read_file",
    "register",
    "scale",
    "special",
    "value_and_grad",
    "vjp",
]
