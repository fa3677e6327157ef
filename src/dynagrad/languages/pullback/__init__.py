"""Terms with a pullback for derivatives, after Mak and Ong: parsed, typed, reduced step by step, evaluated, compiled.

`terms.py` has the terms, `parse.py` and `show.py` their text, `types.py` and `infer.py` their types. `reduction/`
reduces them step by step, and `stepper.py` shows the steps. `evaluate.py` and `compile.py` are the other ways to run
a term.
"""

from .compile import compile
from .evaluate import evaluate
from .infer import infer
from .parse import parse
from .reduction.reduce import reduce
from .reduction.steps import Reduction, Step
from .show import show
from .stepper import StepView, html, lines
from .terms import (
    Lam,
    Num,
    Term,
    Var,
    covector,
    dual_map,
    lam,
    let,
    omega,
    pair,
    primitive_call,
)

__all__ = [
    "Lam",
    "Num",
    "Reduction",
    "Step",
    "StepView",
    "Term",
    "Var",
    "compile",
    "covector",
    "dual_map",
    "evaluate",
    "html",
    "infer",
    "lam",
    "let",
    "lines",
    "omega",
    "pair",
    "parse",
    "primitive_call",
    "reduce",
    "show",
]
