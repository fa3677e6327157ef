"""Training: models that learn from data (DynaMITE of Eisner, Goldlust and Smith 2004, section 2.4).

A model (`model.py`) is a program, parametrisations (`parameters/`), priors (`priors.py`) and an objective
(`objectives/`), each of which varies alone; together they are a `specification.py`. Data are `examples.py`; `data/` has
where they come from and what is known of their answers. A `problem.py` evaluates parameters on data, or on a few
examples and their `used_rows.py`, by `workers.py`, those of other processes in `pools.py`, which give `totals.py`;
`methods/` improve them and tell of each of their `steps.py` to `fit.py`, which knows when to stop, and keeps
`reports/`; `convergence/` says whether it may, and `starts.py` which of several runs was best. `unbounded.py` knows
likelihoods without a maximum, `constant.py` objectives that parameters do not change. Models and checkpoints in files
are for `storage/`.
"""

from __future__ import annotations

from .data.brackets import permitted, permitted_by_tree, phrases_of, spans_of
from .data.tables import by_column
from .data.vocabulary import Vocabulary, vocabulary, word_class
from .examples import Example, read_examples
from .model import Model, fit, load_model
from .objectives.expectations import Entropy, Risk
from .objectives.items import OfItems
from .objectives.likelihood import Conditional, Likelihood
from .objectives.sums import Sum
from .parameters.differentiable import Differentiable
from .parameters.distribution import Distribution
from .parameters.log_linear import LogLinear
from .parameters.network import Torch
from .priors import L1, L2, Dirichlet, Gaussian, add_lambda
from .reports.records import Fit, Score

__all__ = [
    "L1",
    "L2",
    "Conditional",
    "Differentiable",
    "Dirichlet",
    "Distribution",
    "Entropy",
    "Example",
    "Fit",
    "Gaussian",
    "Likelihood",
    "LogLinear",
    "Model",
    "OfItems",
    "Risk",
    "Score",
    "Sum",
    "Torch",
    "Vocabulary",
    "add_lambda",
    "by_column",
    "fit",
    "load_model",
    "permitted",
    "permitted_by_tree",
    "phrases_of",
    "read_examples",
    "spans_of",
    "vocabulary",
    "word_class",
]
