"""Dynagrad: differentiable dynamic programming. The public names, and nothing else."""

from .batch import Batch
from .chart import Chart, Statistics
from .errors import (
    CompileError,
    Error,
    FactError,
    NotComputed,
    NotConverged,
    NotDifferentiable,
    ProgramError,
    ProgramWarning,
    QueryError,
    SourceError,
    SyntaxError,
    ValueRangeError,
)
from .files import read_file
from .function import Function
from .program import Bound, Program
from .semirings import Semiring
from .table import Table
from .terms import Term

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Bound",
    "Chart",
    "CompileError",
    "Error",
    "FactError",
    "Function",
    "NotComputed",
    "NotConverged",
    "NotDifferentiable",
    "Program",
    "ProgramError",
    "ProgramWarning",
    "QueryError",
    "Semiring",
    "SourceError",
    "Statistics",
    "SyntaxError",
    "Table",
    "Term",
    "ValueRangeError",
    "__version__",
    "read_file",
]
