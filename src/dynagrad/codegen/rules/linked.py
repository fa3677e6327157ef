"""Objects that are compiled once and linked with generated classes: the runtime, its templates, solvers of components.

How they are compiled and kept is for `runtime/compiling/`. `_RUNTIME` and `_FACTS`, which every program is linked with,
are compiled at a lower level, as the first program on a machine waits for them; inner loops are in the others. Solvers
of derivatives are many, one for each order and type of numbers: DYNAGRAD_OPTIMISE caps their level, as that of classes.
"""

from __future__ import annotations

from ...plan.model import Plan
from ...plan.traits import solves
from ...rules.semirings import SEMIRINGS
from ...runtime.compiling.objects import Object


def _own(name: str, header: str, optimise: int = 3) -> Object:
    """The object of what a header of the runtime defines under the macro of that name."""
    return Object(f"#define DYNAGRAD_{name}\n#include <dynagrad/{header}.hpp>\n", optimise, bare=True)


_RUNTIME = _own("RUNTIME", "outside/runtime", 2)
_FACTS = _own("RUNTIME_FACTS", "storage/looking", 2)
_SOLVED = _own("RUNTIME_SOLVED", "solving/solved")
_MATRICES = _own("RUNTIME_MATRICES", "running/matrix")


_FORWARD = frozenset({"Real", "Plain", "Log", "Viterbi", "Tropical", "Boolean", "Count"})
"""The types whose instances of the runtime's templates are compiled once (`dynagrad/outside/known.hpp`)."""


_MATRICES_OF = frozenset({"Real", "Log"})
"""Those that have such instances for rows times matrices."""

_NUMBERS = {"float": "Real", "count": "Count", "boolean": "Boolean", "expectation": "Real"}
"""By the form of numbers, a type whose object has the tables of such numbers."""


def objects(plan: Plan, semiring: str, *, goes_back: bool, matrices: bool) -> tuple[Object, ...]:
    """The objects that the class of a plan is linked with.

    `goes_back` says whether it has a backward pass, `matrices` whether rows of drivers are multiplied by matrices.
    """
    parts = []
    if plan.semiring != "user" and SEMIRINGS[plan.semiring].source:  # its tables are those of plain numbers
        parts.append(("FORWARD", _NUMBERS[SEMIRINGS[plan.semiring].shape], True))
    parts += [
        ("FORWARD", semiring, semiring in _FORWARD),
        ("MATRICES", semiring, semiring in _MATRICES_OF and matrices),
        ("BACK", semiring, semiring in _FORWARD and goes_back),
    ]
    solved = any(map(solves, plan.stages))
    return (
        *(_RUNTIME, _FACTS, _MATRICES)[: 3 if goes_back and matrices else 2],
        *(_known(which, of) for which, of, needed in parts if needed),
        *((_SOLVED,) if solved else ()),
        *(_instantiated(*made) for made in _solvers(plan, semiring).items()),
    )


def _known(which: str, semiring: str) -> Object:
    return Object(
        f"#include <dynagrad/outside/known.hpp>\nnamespace dynagrad {{\nDYNAGRAD_{which}_{semiring}(template)\n}}\n"
    )


def declarations(plan: Plan, semiring: str) -> list[str]:
    """The extern declarations of templates that are instantiated in these objects."""
    found = [f"  extern template struct {name};" for name in _solvers(plan, semiring)]
    if not found:
        return []
    return ["#ifdef DYNAGRAD_LINKED", "namespace dynagrad {", *found, "}", "#endif", ""]


def _solvers(plan: Plan, semiring: str) -> dict[str, str]:
    """The solver templates of a plan over a semiring of the runtime, each with the one that it uses."""
    if plan.semiring == "user" or SEMIRINGS[plan.semiring].source:
        return {}
    stages = [s for s in plan.stages if solves(s) and s.unknowns]
    found = {f"System<{semiring}, {s.unknowns}>": "" for s in stages}
    if any(s.stable for s in stages):
        found[f"Columns<{semiring}>"] = f"System<{semiring}, 1>"
    return found


def _instantiated(name: str, uses: str) -> Object:
    headers = ["solving/ground", "solving/columns", "solving/closed", *(["jets"] if "Jets" in name else [])]
    includes = "".join(f"#include <dynagrad/{header}.hpp>\n" for header in headers)
    inside = f"extern template struct {uses};\n" if uses else ""
    return Object(f"{includes}namespace dynagrad {{\n{inside}template struct {name};\n}}\n", capped="Jets" in name)
