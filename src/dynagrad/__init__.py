"""Dynagrad: differentiable dynamic programming. The public names, and nothing else.

Those of `training`, which most programs do without, are imported as they are first asked for.
"""

from . import starting as _starting  # isort: skip  # noqa: F401  # first, for Ctrl-C while the rest is imported

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .charts.batches.result import Batch
from .charts.chart import Chart
from .charts.functions.function import Function
from .charts.limits import LimitOptions, Statistics
from .charts.program import Bound, Program
from .compiler.compiled import compile
from .compiler.inspect import cpp, graph
from .eager.closures import Dual
from .eager.names import special
from .eager.pytree import add, register, scale
from .eager.verbs.checking import check_derivatives
from .eager.verbs.checkpoint import checkpoint
from .eager.verbs.custom_rule import custom_rule
from .eager.verbs.fixed_point import fixed_point
from .eager.verbs.gradients import derivative, grad, gradient, hvp, jvp, pullback, value_and_grad, vjp
from .eager.verbs.jacobians import hessian, jacfwd, jacrev
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
from .facts.files import read_file
from .facts.table import Table
from .facts.terms import Term
from .forests.derivation import Derivation
from .forests.forest import Forest, read_forest
from .moved import install as _install
from .semirings import Semiring

if TYPE_CHECKING:
    from . import training as training
    from .training.model import Model, fit, load_model

_install()

__version__ = "0.1.0"


if not TYPE_CHECKING:  # to a type checker it would say that every name exists

    def __getattr__(name: str) -> Any:
        """The names of training, and the package itself."""
        if name not in ("training", "Model", "fit", "load_model"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        package = import_module(".training", __name__)
        found = package if name == "training" else getattr(package, name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """What completion offers: the public names."""
    return [*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))]


__all__ = [
    "Batch",
    "Bound",
    "Chart",
    "CompileError",
    "Derivation",
    "Dual",
    "Error",
    "FactError",
    "Forest",
    "Function",
    "LiftError",
    "LimitOptions",
    "Model",
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
    "fit",
    "fixed_point",
    "grad",
    "gradient",
    "graph",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jvp",
    "load_model",
    "pullback",
    "read_file",
    "read_forest",
    "register",
    "scale",
    "special",
    "value_and_grad",
    "vjp",
]
