"""`Model`: a program that learns, for its users; and `fit`, `load_model`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import whole_number
from ..calls import public
from ..charts.program import Bound, Program, context_of
from ..errors import Error, shown
from ..facts.relation import Relation
from ..facts.table import Table, make_table
from ..forests.derivation import Derivation
from . import storage
from .examples import Passes
from .fit import run
from .methods import method_of
from .objectives import LOGS, Likelihood, Objective
from .parameters.declared import declared
from .parameters.parametrisation import Parametrisation
from .priors import prior_of
from .problem import MISSING, Problem
from .reports import Fit
from .specification import Specification, Theta
from .workers import workers_of


class Model:
    """A program whose weights are learned from data.

    `parameters` has the facts whose weights are learned: for each predicate rows, if the program declares its groups
    with `:- distribution rewrite(X,...) given X.`; or by any name a parametrisation, such as `training.LogLinear`.
    Values of rows are where training begins. `prior` is one for all, or a dict by the names of `parameters`.
    `objective` is what training makes large, the likelihood unless given; `goal` the item that it is about. `facts`
    are the same for all examples, and fixed.

    A model holds its parameters, which `fit` replaces. It is not to be used by two threads while it is trained.

    Raises `Error` where a parameter is in no group or in two.

    >>> import dynagrad as dg
    >>> model = dg.Model(
    ...     ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S).", {"toss/1": [("h",), ("t",)]}
    ... )
    >>> fit = model.fit([{"seen/1": [("h",)]}, {"seen/1": [("h",)]}, {"seen/1": [("t",)]}, {"seen/1": [("h",)]}])
    >>> fit.converged, model.weights["toss/1"]["h",]
    (True, 0.75)
    """

    _made: tuple[Theta, Bound] | None = None
    """The parameters that `bound` was last made with, and what was made."""

    @public
    def __init__(
        self,
        program: Program | str | Path,
        parameters: Mapping[str, Any],
        *,
        goal: str = "goal",
        prior: Any = None,
        objective: Objective | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(program, Program):
            program = Program(program)
        if not isinstance(parameters, Mapping) or not parameters:
            raise Error(f"parameters are a dict with rows by predicate, or parametrisations, not {shown(parameters)}")
        given = {name: p for name, p in parameters.items() if isinstance(p, Parametrisation)}
        rows = {name: p for name, p in parameters.items() if not isinstance(p, Parametrisation)}
        chosen: dict[str, Parametrisation] = {**declared(context_of(program).rules.distributions, rows), **given}
        bound = program.bind(facts)
        owner: dict[str, str] = {}
        for name, p in chosen.items():
            for key, relation in p.rows.relations.items():
                if key in owner:
                    raise Error(f"{key} has its weights from {owner[key]} and from {name}: only one can give them")
                owner[key] = name
                bound = bound.bind({key: _weightless(relation, program.semiring)})
        if isinstance(prior, Mapping) and set(prior) - set(chosen):
            raise Error(f"prior has {shown(min(set(prior) - set(chosen)))}; the parameters are {', '.join(chosen)}")
        priors = {name: found for name in chosen if (found := prior_of(prior, name)) is not None}
        self._spec = Specification(program, chosen, priors, objective or Likelihood(), goal, bound)
        self._theta = self._spec.start(0)

    # -- what it is

    @property
    def program(self) -> Program:
        """The program."""
        return self._spec.program

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The free parameters of each parametrisation, by its name: copies."""
        return {name: x.copy() for name, x in self._theta.items()}

    @property
    def weights(self) -> dict[str, Table]:
        """A table for each predicate of parameters: probabilities and weights, not their logs."""
        plain, found = self._spec.by_value, {}
        for key, numbers in self._spec.weights(self._theta).items():
            relation = self._relation(key)
            found[key] = make_table(replace(relation, values=numbers if key in plain else np.exp(numbers)))
        return found

    def _relation(self, key: str) -> Relation:
        return next(p.rows.relations[key] for p in self._spec.parametrisations.values() if key in p.rows.relations)

    @property
    def bound(self) -> Bound:
        """The program with the weights of now, to be run on facts."""
        if self._made is None or self._made[0] is not self._theta:
            before = self._spec.bound if self._made is None else self._made[1]  # which has its rows encoded already
            self._made = self._theta, before.with_values(self._spec.values(self._spec.weights(self._theta)))
        return self._made[1]

    # -- what it does

    @public
    def fit(
        self,
        data: Any,
        dev: Any = None,
        *,
        method: Any = "em",
        iterations: int = 100,
        tolerance: float = 1e-6,
        patience: int | None = None,
        seed: int = 0,
        warm: bool = False,
        missing: str = "warn",
        threads: int | None = None,
        executor: Any = None,
        callback: Callable[..., Any] | None = None,
        log: str | Path | None = None,
        checkpoint: str | Path | None = None,
        every: int = 1,
        **options: Any,
    ) -> Fit:
        """Trains the model; see `training` in the documents for the methods and their options.

        It begins with initial values, or with `warm` where the model is, and ends when the objective changes by less
        than `tolerance` of its size, after so many `iterations`, or where `dev` got no better for `patience` steps.
        With `dev` the parameters are in the end those that were best on it. `missing` says what is done about examples
        whose goal is not derived: "warn", "skip" or "error". The result is the same to the last bit for any number of
        `threads` and any `executor`. `callback` gets each record, and ends the run by returning False. `checkpoint` is
        a file, written `every` so many steps, that the run goes on from if it is there.

        Raises `Error` where a method does not fit the model, `NotConverged` where the objective is not finite or falls
        though it cannot; the model then has the last good parameters.
        """
        if missing not in MISSING:
            raise Error(f"missing is one of {', '.join(MISSING)}, not {shown(missing)}")
        iterations, seed = whole_number("iterations", iterations, 1), whole_number("seed", seed, 0)
        chosen = method_of(method, seed, options)
        passes = Passes(data)
        workers = workers_of(threads, executor, passes.lasting)
        problem = Problem(self._spec, passes, workers, missing)
        held_out = None if dev is None else Problem(self._spec, Passes(dev), workers_of(threads, executor), missing)
        if patience is not None and dev is None:
            raise Error("patience is about held-out data: give dev")
        name = method if isinstance(method, str) else method.__name__

        def keep(theta: Theta) -> None:
            self._theta = theta

        return run(
            problem,
            chosen,
            name,
            self._theta if warm else self._spec.start(seed),
            dev=held_out,
            iterations=iterations,
            tolerance=tolerance,
            patience=None if patience is None else whole_number("patience", patience, 1),
            callback=callback,
            log=None if log is None else Path(log),
            checkpoint=None if checkpoint is None else Path(checkpoint),
            every=whole_number("every", every, 1),
            about=storage.about(self._spec, name, seed, options),
            keep=keep,
        )

    @public
    def score(self, data: Any, *, missing: str = "warn", threads: int | None = None, executor: Any = None) -> float:
        """The objective of data, without priors: the log-likelihood unless the model has another."""
        problem = Problem(self._spec, Passes(data), workers_of(threads, executor), missing)
        return problem.totals(self._spec.weights(self._theta), gradient=False).value

    @public
    def predict(self, facts: Mapping[str, Any], query: str | None = None) -> Derivation:
        """The best derivation of the goal, or of another item, for some facts."""
        return self.bound.run(facts).best(self._spec.goal if query is None else query)

    @public
    def save(self, folder: str | Path) -> None:
        """Writes the model to a folder, which is whole and new, or as it was before."""
        storage.save(self._spec, self._theta, Path(folder))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {p.size:,}" for name, p in self._spec.parametrisations.items())
        return f"<Model: {sizes} parameters>"


def _weightless(relation: Relation, semiring: str) -> Relation:
    """Rows with values of the right form; which ones does not matter."""
    if semiring not in (*LOGS, "real", "plain"):
        raise Error(
            f"a model needs values that have derivatives: real, log, viterbi or plain arithmetic, not {semiring}"
        )
    return replace(relation, values=np.full(relation.count, -1.0 if semiring in LOGS else 0.5))


@public
def fit(
    program: Program | str | Path, parameters: Mapping[str, Any], data: Any, dev: Any = None, **options: Any
) -> Model:
    """A model of a program and parameters, trained on data: `Model(...)`, then `fit(...)`.

    >>> import dynagrad as dg
    >>> text = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
    >>> dg.fit(text, {"toss/1": [("h",), ("t",)]}, [{"seen/1": [("h",)]}]).weights["toss/1"]["h",]
    1.0
    """
    own = {k: options.pop(k) for k in ("goal", "prior", "objective", "facts") if k in options}
    model = Model(program, parameters, **own)
    model.fit(data, dev, **options)
    return model


@public
def load_model(folder: str | Path) -> Model:
    """A model that `model.save` wrote. Nothing in the folder is executed."""
    spec, theta = storage.load(Path(folder))
    model = Model.__new__(Model)
    model._spec, model._theta = spec, theta
    return model
