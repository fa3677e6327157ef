"""Aliases of names that were changed: old pickles load, and old calls run, with a DeprecationWarning of the new name.

The old modules are not attributes of the package, where some of these names are functions.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

_PACKAGE = __name__.partition(".")[0]

MOVED = {
    "batch": "charts.batches.result",
    "binding": "charts.binding.binding",
    "chart": "charts.chart",
    "charts.batch": "charts.batches.result",
    "charts.derivatives.function": "charts.functions.function",
    "charts.derivatives.jets": "charts.functions.jets",
    "columns": "facts.columns",
    "database": "charts.binding.database",
    "eager.special": "eager.names.special",
    "encoding": "charts.binding.encoding",
    "files": "facts.files",
    "function": "charts.functions.function",
    "functions": "eager",
    "functions.checking": "eager.verbs.checking",
    "functions.checkpoint": "eager.verbs.checkpoint",
    "functions.closures": "eager.closures",
    "functions.combinations": "eager.combinations",
    "functions.compiled": "compiler.compiled",
    "functions.drop_in": "eager.names.numpy_names",
    "functions.exponentials": "eager.numpy.exponentials",
    "functions.fixed_point": "eager.verbs.fixed_point",
    "functions.jacobians": "eager.verbs.jacobians",
    "functions.math_functions": "eager.names.math_names",
    "functions.rules": "eager.verbs.custom_rule",
    "functions.seeing": "compiler.inspect",
    "functions.special": "eager.names.special",
    "functions.structure": "eager.pytree",
    "functions.verbs": "eager.verbs.gradients",
    "gradient": "charts.derivatives.gradient",
    "graph": "ir",
    "graph.control": "ir.control",
    "graph.draw": "ir.draw",
    "graph.failures": "ir.failures",
    "graph.implicit": "autodiff.fixed_point",
    "graph.node": "ir.node",
    "graph.show": "ir.show",
    "graph.types": "ir.types",
    "jets": "charts.functions.jets",
    "kept": "charts.derivatives.detached",
    "limits": "charts.limits",
    "looking": "charts.lookup",
    "plan.values": "plan.right_sides",
    "program": "charts.program",
    "relation": "facts.relation",
    "setting": "charts.binding.context",
    "table": "facts.table",
    "terms": "facts.terms",
}
"""Modules of which something may have been pickled: from old names to new ones."""

RENAMED = {
    "charts.binding.context": {"Setting": "ProgramContext"},
    "charts.derivatives.detached": {"Known": "Signatures"},
    "charts.lookup": {"Items": "ItemPairs", "Names": "ItemTexts"},
    "ir.control": {"Function": "GraphFunction", "Rule": "CustomDerivatives"},
    "ir.show": {"Block": "LetSeries"},
    "languages.dvl": {"Program": "DVLProgram"},
    "languages.dvl.program": {"Program": "DVLProgram"},
    "languages.pullback": {"Term": "PullbackTerm"},
    "languages.pullback.terms": {"Pullback": "FormPullback", "Sum": "TermSum", "Term": "PullbackTerm"},
    "languages.pullback.types": {"Dual": "DualType", "Type": "TermType"},
    "rules.syntax": {"Apply": "Application", "Number": "Numeral"},
}
"""Classes that were renamed, by module: from old names to new ones."""


class _Moved(ModuleType):
    """An alias of another module."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by code that inspects all modules
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        old = self.__name__.removeprefix(f"{_PACKAGE}.")
        new = MOVED[old]
        now = RENAMED.get(new, {}).get(name, name)
        _warn(f"{old} is {_PACKAGE}.{new} now", 3)
        return getattr(importlib.import_module(f"{_PACKAGE}.{new}"), now)


def warn_of_name(old: str, new: str, level: int = 1) -> None:
    """Warns of an old name of an argument or a method: `level` calls lie between this and the user's line."""
    warnings.warn(f"{old} is {new} now", DeprecationWarning, stacklevel=level + 2)


def _warn(what: str, level: int) -> None:
    warnings.warn(
        f"{_PACKAGE}.{what}; a pickle that is written again has the new name", DeprecationWarning, stacklevel=level + 1
    )


def renamed(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose classes were renamed, and which was not."""
    here = module.removeprefix(f"{_PACKAGE}.")

    def get(name: str) -> Any:
        now = RENAMED[here].get(name)
        if now is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{here}.{name} is {_PACKAGE}.{here}.{now} now", 2)
        return getattr(sys.modules[module], now)

    return get


def install() -> None:
    """Registers the aliases in `sys.modules`."""
    for old in MOVED:
        name = f"{_PACKAGE}.{old}"
        sys.modules.setdefault(name, _Moved(name))
