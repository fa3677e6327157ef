"""`Model`, a program that learns: what users call to train it, to score data, to predict; and `fit`, `load_model`.

Here what they give is checked and handed on: what is trained is a `specification.py`, a training run is in `fit.py`,
and models in files are in `storage/models.py`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..arguments import bounded_number, function_of, whole_number, yes_or_no
from ..calls import public
from ..charts.program import Bound, Program, binding_of, context_of, with_weights
from ..errors import Error, FactError, QueryError, shown, warn
from ..facts.relation import Relation
from ..facts.table import Table, make_table
from ..forests.derivation import Derivation
from ..rules.parse import parse_item
from .examples import DataPasses
from .fit import FitSettings, run
from .methods import method_of
from .objectives.evaluation import Objective, facts_for, programs_of
from .objectives.likelihood import Likelihood
from .objectives.losses import apart, losses_of, weightless
from .parameters.declared import check_rows, declared
from .parameters.parametrisation import Parametrisation
from .priors import Prior, prior_of, unknown_names
from .problem import MISSING, Problem
from .reports.records import Fit, Score, path_of
from .specification import Specification, Theta, bind_others, with_rows
from .storage import checkpoint as checkpoints
from .storage import models, seal
from .workers import in_threads, workers_of


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
    >>> fit.converged, round(model.weights["toss/1"]["h",], 12)
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
        _check_objective(objective)
        if not isinstance(goal, str) or parse_item(goal).key not in program.predicates:
            raise QueryError(f"the goal, {shown(goal)}, is no item of the program, which has {_some(program)}")
        chosen = declared(context_of(program).rules.distributions, parameters)
        objective = objective or Likelihood()
        losses: dict[str, Relation] = {}
        there = {key for other in programs_of(objective) for key in other.predicates}
        if isinstance(facts, Mapping):  # which are read for each program
            facts = {key: list(rows) if isinstance(rows, Iterator) else rows for key, rows in facts.items()}
            facts, losses = apart(program, facts, losses_of(objective))
        bound = program.bind(facts_for(facts, program.predicates, there) if isinstance(facts, Mapping) else facts)
        _check_rows(bound, chosen)
        bound = with_rows(bound, chosen)
        if isinstance(prior, Mapping) and set(prior) - set(chosen):
            raise Error(f"prior has {shown(min(set(prior) - set(chosen)))}; the parameters are {', '.join(chosen)}")
        priors = {name: found for name in chosen if (found := prior_of(prior, name)) is not None}
        _check_names(priors, chosen)
        others = bind_others(objective, program, facts or {}, chosen)
        self._spec = Specification(program, chosen, priors, objective, goal, bound, others, losses)
        self._theta = self._spec.start(0)
        for doubt in (doubt for p in chosen.values() for doubt in p.doubts()):
            warn(doubt)

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
        """The program with the weights of now, to be run on facts; losses among the model's own count as one."""
        if self._made is None or self._made[0] is not self._theta:
            before = self._spec.bound if self._made is None else self._made[1]  # which has its rows encoded already
            self._made = self._theta, with_weights(before, self._spec.values(self._spec.weights(self._theta)))
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
        restarts: int = 1,
        warm: bool = False,
        missing: str = "warn",
        threads: int | None = None,
        executor: Any = None,
        callback: Callable[..., Any] | None = None,
        log: str | Path | None = None,
        checkpoint: str | Path | None = None,
        every: int = 1,
        progress: bool = False,
        **options: Any,
    ) -> Fit:
        """Trains the model; see `training` in the documents for the methods and their options.

        It begins with initial values, or with `warm` where the model is, and ends when there is less left to gain than
        `tolerance` of the objective's size, after so many `iterations`, or where `dev` got no better for `patience`
        steps. With `restarts` it begins so many times, the first time so, and then with parameters that are drawn by
        the `seed`; the best run is kept: on `dev` where that is given, else by its objective. With `dev` the parameters
        are in the end those that were best on it. `missing` says what is done about examples whose goal is not derived:
        "warn", "skip" or "error". `executor` is a number of processes, an executor of `concurrent.futures`, a function
        that makes one (asked again when a worker died and it broke), or the module `ray`; without, there are `threads`.
        The result is the same to the last bit for any number of either. `callback` gets each record, and ends the run
        by returning False. `checkpoint` is a file, written `every` so many steps, that the run goes on from if it is
        there; a run that had ended is not run again, unless the limits of now are wider: then it goes on, and one of
        several `restarts` begins all of them again. `log` is a `.csv` or `.arrow` file with a row for each step: that
        of a run that goes on from a checkpoint is continued, any other is replaced. `progress` draws a progress bar.

        Raises `Error` where a method does not fit the model, `NotConverged` where the objective is not finite or falls
        though it cannot; the model then has the last good parameters.
        """
        _check_missing(missing)
        iterations = min(whole_number("iterations", iterations, 1), sys.maxsize)
        seed = whole_number("seed", seed, 0)
        chosen = method_of(method, seed, options, OPTIONS)
        passes = DataPasses(data)
        if patience is not None and dev is None:
            raise Error("patience is about held-out data: give dev")
        name = method if isinstance(method, str) else method.__name__

        def keep(theta: Theta) -> None:
            self._theta = theta

        if callback is not None:
            function_of("callback", callback, 1, "the record of a step")
        settings = FitSettings(
            iterations=iterations,
            tolerance=bounded_number("tolerance", tolerance, 0.0),
            patience=None if patience is None else whole_number("patience", patience, 1),
            callback=callback,
            log=None if log is None else path_of("log", log),
            every=whole_number("every", every, 1),
            progress=yes_or_no("progress", progress),
        )
        restarts = whole_number("restarts", restarts, 1)
        if yes_or_no("warm", warm) and restarts > 1:
            raise Error("restarts begins anew, and warm=True where the model is: give one of both")
        starts = [self._theta] if warm else self._spec.starts(seed, restarts)
        dev_passes = None if dev is None else DataPasses(dev)
        saved = None
        if checkpoint is not None:
            sealed = options if restarts == 1 else {**options, "restarts": restarts}
            about = seal.about(self._spec, name, seed, sealed, starts[0], passes, dev_passes)
            saved = checkpoints.Checkpoint(path_of("checkpoint", checkpoint), about)
        lasting = passes.lasting and (executor is None or dev_passes is None or dev_passes.lasting)
        with workers_of(threads, executor, lasting) as workers:
            limited = any(options.get(name) is not None for name in ("bounds", "constraints"))
            problem = Problem(self._spec, passes, workers, missing, limited)
            others = in_threads(threads) if executor is None else workers  # what is kept from pass to pass is of `data`
            held_out = None if dev_passes is None else Problem(self._spec, dev_passes, others, missing)
            return run(problem, chosen, name, starts, settings, dev=held_out, checkpoint=saved, keep=keep)

    @public
    def score(self, data: Any, *, missing: str = "warn", threads: int | None = None, executor: Any = None) -> Score:
        """The objective of data, without priors: the log-likelihood unless the model has another.

        The number has `counted` and `examples`: how many examples it is of, and how many there are.

        `missing` says what is done about examples whose goal is not derived, `threads` and `executor` who does the
        work: as for `fit`. Raises `QueryError` where no example counts.

        >>> import dynagrad as dg
        >>> text = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
        >>> coin = dg.Model(text, {"toss/1": [("h",), ("t",)]})
        >>> round(coin.score([{"seen/1": [("h",)]}]), 6)  # the log of a half
        -0.693147
        """
        _check_missing(missing)
        with workers_of(threads, executor) as workers:
            problem = Problem(self._spec, DataPasses(data), workers, missing)
            totals = problem.totals(self._spec.weights(self._theta), gradient=False)
            return Score(totals.value, totals.counted, len(totals.values))

    @public
    def predict(self, facts: Mapping[str, Any], query: str | None = None) -> Derivation:
        """The best derivation of the goal, or of another item, for some facts; losses among these count as one.

        Raises `QueryError` where the item is not derived.

        >>> import dynagrad as dg
        >>> text = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
        >>> coin = dg.Model(text, {"toss/1": [("h", 3.0), ("t", 1.0)]})
        >>> round(coin.predict({"seen/1": [("h",), ("t",)]}).weight, 12)
        0.75
        """
        if isinstance(facts, Mapping):
            facts = weightless(facts, losses_of(self._spec.objective))
        return self.bound.run(facts).best(self._spec.goal if query is None else query)

    @public
    def save(self, folder: str | Path) -> None:
        """Writes the model to a folder, which is whole and new, or as it was before.

        It has the text of the program, a TOML that says what the model is, and Arrow files of rows and numbers.
        Functions are not saved; `load_model` is given them again. Raises `Error` where the folder cannot be written,
        and where one of that name has other files than those of a model.
        """
        models.save(self._spec, self._theta, path_of("folder", folder))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {p.size:,}" for name, p in self._spec.parametrisations.items())
        one = sum(p.size for p in self._spec.parametrisations.values()) == 1
        return f"<Model: {sizes} {'parameter' if one else 'parameters'}>"


OPTIONS = tuple(name for name in inspect.signature(Model.fit).parameters if name not in ("self", "data", "options"))
"""What `fit` takes for all methods."""


def _some(program: Program) -> str:
    """The predicates of a program, or the first of them."""
    names = program.predicates
    return ", ".join(names[:8]) + (" and others" if len(names) > 8 else "")


def _check_rows(bound: Bound, chosen: Mapping[str, Parametrisation]) -> None:
    """Raises where a predicate has no rows, or has some that are learned and some that are fixed."""
    fixed = binding_of(bound).given
    learned = {key: relation for p in chosen.values() for key, relation in p.rows.relations.items()}
    for key, relation in learned.items():
        if key in fixed:
            raise FactError(f"{key} is among parameters and among facts: its weights are learned, or fixed")
        if not relation.count:
            raise FactError(f"{key} has no rows, so there is nothing to learn: give them in parameters")
    rules = context_of(bound.program).rules
    defined = {r.head.key for r in rules.rules} | {a.item.key for a in rules.axioms}
    check_rows(rules.distributions, {*learned, *fixed, *defined})


def _check_names(priors: Mapping[str, Prior], chosen: Mapping[str, Parametrisation]) -> None:
    """Warns of numbers in priors that are for no parameter."""
    for prior in {id(prior): prior for prior in priors.values()}.values():
        unknown = unknown_names(prior, [chosen[name] for name, p in priors.items() if p is prior])
        if unknown:
            more = "" if len(unknown) == 1 else f", and {len(unknown) - 1:,} more that are none"
            warn(f"the prior has a number for {shown(unknown[0])}, which is no parameter{more}: it counts for nothing")


def _check_objective(objective: Any) -> None:
    if objective is not None and (isinstance(objective, type) or not hasattr(objective, "totals")):
        raise Error(f"objective is one of those in dynagrad.training, not {shown(objective)}")


def _check_missing(missing: Any) -> None:
    if not isinstance(missing, str) or missing not in MISSING:
        raise Error(f"missing is one of {', '.join(MISSING)}, not {shown(missing)}")


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
def load_model(
    folder: str | Path,
    *,
    parametrisations: Mapping[str, Parametrisation] | None = None,
    objective: Objective | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Model:
    """A model that `model.save` wrote. Nothing in the folder is executed.

    Functions are not in it, and are given again: `parametrisations` by name where a function of the user gives weights,
    an `objective` that is a function, and the `functions` of the program.

    Raises `FactError` where the folder has no model, or a damaged one; `Error` where a function is wanted.

    >>> import tempfile
    >>> import dynagrad as dg
    >>> text = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
    >>> model = dg.fit(text, {"toss/1": [("h",), ("t",)]}, [{"seen/1": [("h",)]}])
    >>> folder = Path(tempfile.mkdtemp()) / "coin"
    >>> model.save(folder)
    >>> dg.load_model(folder).weights["toss/1"]["h",]
    1.0
    """
    _check_objective(objective)
    given = {"parametrisations": parametrisations, "functions": functions}
    for name, found in given.items():
        if found is not None and not isinstance(found, Mapping):
            raise Error(f"{name} is a dict by name, not {shown(found)}")
    spec, theta = models.load(path_of("folder", folder), parametrisations or {}, objective, functions or {})
    model = Model.__new__(Model)
    model._spec, model._theta = spec, theta
    return model
