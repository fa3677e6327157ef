"""Terms with a pullback for derivatives, after Mak and Ong: parsed, typed, reduced step by step, evaluated, compiled.

`terms.py` has the terms, `parse.py` (with `mistakes.py`) and `show.py` their text, `types.py` and `infer.py` their
types, `primitives.py` the functions on reals. A typed term has different names for all binders (`rename.py`), and runs
in three ways: `reduction/` reduces it step by step, and `stepper.py` shows the steps; `evaluate.py` computes its value
directly, on the values of `cells.py`; `compile.py` hands the evaluator nodes of a graph, and compiles the graph that
comes out.

Terms may be deep. What recurses on them is written for `trampoline.py`, and `trees.py` has what patterns need of it.
"""

from ...moved import renamed
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
    PullbackTerm,
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
    "PullbackTerm",
    "Reduction",
    "Step",
    "StepView",
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

__getattr__ = renamed(__name__)
