"""How parameters are improved, by name: `em.py`, `scaling.py`, `descent.py` (all data), `stepwise.py`, `stochastic.py`
(a few examples) and `torch_optimisers.py` (the same, by PyTorch). `limited_memory.py` is L-BFGS; `evaluations.py` are
what gradient methods ask for, `remaining.py` says what they have still to gain, and `scipy_arguments.py` checks what is
passed on to scipy.

A method is a function of a problem, the parameters to begin with, an observer, and the state to go on from; it tells
the observer of each step, stops where that says so, and gives the parameters, and why it `Ended` where it went no
further. It knows nothing of files, clocks, or when to stop.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from ...calls import nearest_option
from ...errors import Error, shown
from ...packages import optional
from ..specification import Theta
from ..steps import Ended
from . import descent, em, scaling, stepwise, stochastic, torch_optimisers

Method = Callable[..., Theta | Ended]

METHODS: dict[str, Method] = {
    "em": em.batch,
    "viterbi-em": em.viterbi,
    "variational": em.variational,
    "online-em": stepwise.online,
    "incremental-em": stepwise.incremental,
    "annealing": em.annealed,
    "gis": partial(scaling.scale, method="gis"),
    "iis": partial(scaling.scale, method="iis"),
    **{name: partial(descent.minimise, method=name) for name in descent.SCIPY},
    **{name: partial(stochastic.ascend, method=name) for name in stochastic.RULES},
}
SEEDED = (*stochastic.RULES,)
TOLD = ("problem", "theta", "observe", "state", "method", "optimiser", "seed")
"""Parameters of methods that are no options of `fit`."""
_RATE = "method='sgd' and its kin have a rate, a number or a function of the step, as rate=lambda k: 0.1 / (1 + k)"
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("lr", "learning_rate", "step_size", "schedule", "scheduler"), _RATE),
    **dict.fromkeys(("epochs", "max_iter", "maxiter", "n_iter", "num_epochs"), "their number is iterations= here"),
    **dict.fromkeys(("batch_size", "batchsize", "minibatch"), "the examples of a minibatch are size= here"),
    **dict.fromkeys(("tol", "ftol"), "the relative change at which a run ends is tolerance= here"),
    "eps": "that of method='adam' and method='adagrad' is epsilon= here, and what ends a run is tolerance=",
    **dict.fromkeys(("workers", "n_jobs", "processes"), "they are threads= or executor= here"),
    **dict.fromkeys(("verbose", "disp"), "the line on the terminal is progress=True here"),
    **dict.fromkeys(("random_state", "rng"), "the seed is seed= here"),
}
"""What options are called here that have these names in other libraries."""
TORCH = "torch.optim."
"""What names of classes of PyTorch begin with."""


def method_of(given: Any, seed: int, options: Mapping[str, Any], others: Iterable[str] = ()) -> Method:
    """A method by its name, or from a class of `torch.optim`, with its options. Raises Error for those it lacks.

    `others` are options of `fit` itself, which may have been meant.
    """
    if isinstance(given, str) and given.startswith(TORCH):
        given = _of_torch(given)
    if isinstance(given, type) and given.__module__.startswith("torch.optim"):
        return partial(torch_optimisers.by_torch, optimiser=given, seed=seed, **options)
    if not isinstance(given, str):
        raise Error(f"a method is a name, or a class of torch.optim, not {shown(given)}")
    if given not in METHODS:
        raise Error(
            f"there is no method {shown(given)}; there are {', '.join(METHODS)}, and classes such as torch.optim.AdamW"
        )
    known = options_of(given)
    for name in options:
        if name not in known:
            some = {"bounds": descent.BOUNDED, "constraints": descent.CONSTRAINED}
            having = some.get(name) or [method for method in METHODS if name in options_of(method)]
            if having:
                raise Error(f"method={given!r} has no option {name}; these have: {', '.join(having)}")
            if name in ELSEWHERE:
                raise Error(f"fit has no option {name}, nor has method={given!r}: {ELSEWHERE[name]}")
            hint = nearest_option(name, [*known, *others])
            if "did you mean" not in hint:
                hint = nearest_option(name, known) if known else "; it has none of its own"
            raise Error(f"fit has no option {name}, nor has method={given!r}{hint}")
    return partial(METHODS[given], **({"seed": seed} if given in SEEDED else {}), **options)


def options_of(method: str) -> list[str]:
    """The options that a method has beside those of `fit`."""
    known = [name for name in inspect.signature(METHODS[method]).parameters if name not in TOLD]
    return [*known[:-1], *stochastic.RULES[method].options] if method in stochastic.RULES else known


def _of_torch(name: str) -> type:
    """The class of `torch.optim` of this name."""
    optim = optional("torch.optim", f"method={name!r}")
    found = getattr(optim, name.removeprefix(TORCH), None)
    if not isinstance(found, type) or not issubclass(found, optim.Optimizer):
        raise Error(f"there is no method {shown(name)}: torch.optim has no optimiser of this name")
    return found
