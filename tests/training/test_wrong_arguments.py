"""Wrong arguments of the names of `dynagrad.training`: each is an error that says what, where and what to do.

Costs ten seconds. Data that are wrong are in `test_data.py`, parametrisations that fit no groups in `parameters/`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import (  # type: ignore[import-untyped]  # it has no types
    Bounds,
    LinearConstraint,
    NonlinearConstraint,
)

import dynagrad as dg
from dynagrad import training

COIN = ":- semiring real. :- distribution toss(S). goal += toss(S) * seen(S)."
FREE = ":- semiring log. goal += weight(S) * seen(S)."
SIDES = [("h",), ("t",)]
DATA = [{"seen/1": [side]} for side in SIDES]
OBSERVED = [training.Example({"seen/1": SIDES}, {"seen/1": SIDES[:1]})]
NAN = float("nan")


def coin(**options: Any) -> dg.Model:
    return dg.Model(COIN, {"toss/1": SIDES}, **options)


def free(objective: Any = None, weight: Any = None, **options: Any) -> dg.Model:
    weight = training.LogLinear({"weight/1": SIDES}) if weight is None else weight
    return dg.Model(FREE, {"weight": weight}, objective=objective or training.Conditional(), **options)


def of_items(items: Any = ("goal",), function: Any = lambda x, e: x[0]) -> Any:
    return coin(objective=training.OfItems(items, function)).score(DATA)


def with_rate(**options: Any) -> Any:
    return coin().fit(DATA, **{"iterations": 2, "method": "sgd", **options})


def scipys(method: str = "l-bfgs", **options: Any) -> Any:
    return free(prior=training.L2(0.1)).fit(OBSERVED, method=method, **options)


def constrained(*constraints: Any) -> Any:
    return scipys("slsqp", constraints=constraints)


def differentiable(function: Any, parameters: Any = 1.0, **options: Any) -> Any:
    made = training.Differentiable({"weight/1": SIDES}, function, parameters, **options)
    return free(weight=made).score(OBSERVED)


known = training.vocabulary(["a"], 1)
linear: Callable[..., Any] = lambda **options: training.LogLinear({"weight/1": SIDES}, **options)  # noqa: E731
grouped: Callable[..., Any] = lambda **options: training.Distribution({"toss/1": SIDES}, **options)  # noqa: E731
table: Callable[..., Any] = lambda **columns: training.by_column({"word/1": columns}, "sentence")  # noqa: E731

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    # objectives
    "items": (lambda: of_items(3), r"items is a list of items, such as .*, not 3"),
    "items as text": (lambda: of_items("goal"), r"items is a list of items, such as .*, not 'goal'"),
    "no items": (lambda: of_items([]), r"items is a list of items, such as .*, not \[\]"),
    "item": (lambda: of_items([3]), r"an item is written as in rules, .* and 3 is no text"),
    "unknown item": (lambda: of_items(["gaol"]), r"the program has no predicate `gaol/0`"),
    "function of items": (lambda: of_items(function=3), r"function must be a function of the values .*, not 3"),
    "its arguments": (lambda: of_items(function=lambda x: x), r"function is called with the values of the items, and"),
    "its result": (lambda: of_items(function=lambda x, e: None), r"the function of items gives None, and not a number"),
    "an array of it": (lambda: of_items(function=lambda x, e: np.ones(2)), r"gives array\(\[1., 1.\]\), and not a num"),
    "observed item": (lambda: training.Conditional(3), r"observed is an item, such as 'goal', not 3"),
    "cost": (lambda: training.Conditional(cost=[]), r"cost is a predicate whose facts are costs, such as 'loss/2'"),
    "cost without arity": (lambda: training.Risk("loss"), r"'loss' names no predicate; write name/arity"),
    "unknown cost": (
        lambda: free(training.Conditional(cost="sean/1")).score(OBSERVED),
        r"the program has no predicate 'sean/1' for costs; did you mean seen/1\?",
    ),
    "unknown loss": (lambda: free(training.Risk("loss/2")).score(OBSERVED), r"no predicate 'loss/2' for costs; there"),
    "factor": (
        lambda: training.Sum((np.inf, training.Likelihood())),
        r"factor of an objective must be a finite number",
    ),
    "objective": (lambda: coin(objective=training.Likelihood), r"objective is one of those in dynagrad.training"),
    # priors
    "alpha": (lambda: training.Dirichlet(0), r"alpha must be a number above 0, not 0"),
    "huge alpha": (lambda: training.Dirichlet(1e200), r"alpha is 1e\+200, and densities .* from 1e-100 to 1e\+100"),
    "tiny variance": (lambda: training.Gaussian(1e-320), r"variance is 1e-320, and densities"),
    "strength": (lambda: training.L2(NAN), r"the strength of L2 must be a number, not nan"),
    "strength of L1": (lambda: training.L1(-1), r"the strength of L1 must be a number above 0, not -1"),
    "mean": (lambda: training.Gaussian(1.0, {"x": NAN}), r"mean must be a number, not nan"),
    "function alpha": (
        lambda: coin(prior=training.Dirichlet(lambda: 2.0)).fit(DATA),
        r"alpha is called with the arguments of a row of toss/1, and the function .* does not take that",
    ),
    "prior of nothing": (lambda: coin(prior={"toss": training.L2(1)}), r"prior has 'toss'; the parameters are toss/1"),
    # what is observed
    "spans": (lambda: training.permitted(3, 5), r"spans is a list of spans, such as \[\(0, 2\)\], not 5"),
    "span": (lambda: training.permitted(3, [1]), r"a span is a tuple that ends with where .*, not 1"),
    "end of a span": (lambda: training.permitted(3, [(0, "x")]), r"an end of a span must be a whole number"),
    "length": (lambda: training.permitted(-1, []), r"length must be a whole number, at least 0, not -1"),
    "crossing": (lambda: training.permitted(3, [], NAN), r"crossing must be a number, not nan"),
    "logs": (lambda: training.permitted(3, [], 0.5, logs=1), r"logs must be True or False, not 1"),
    "labelled": (lambda: training.spans_of("(S a)", None), r"labelled must be True or False, not None"),
    "words": (lambda: training.vocabulary(3), r"vocabulary takes words one by one, or their counts, not 3"),
    "no words": (lambda: training.vocabulary(None), r"vocabulary takes words one by one, .*, not None"),
    "word": (lambda: training.vocabulary(["a", 3]), r"a word is a text, not 3"),
    "count of a word": (
        lambda: training.vocabulary({"a": NAN}),
        r"the count of 'a' must be a number from 0 on, not nan",
    ),
    "classes": (lambda: training.vocabulary(["a"], 1, 3), r"classes must be a function of a word, not 3"),
    "class": (lambda: training.vocabulary([], 1, lambda w: None)("a"), r"classes gives None for 'a'; the class"),
    "set of words": (lambda: training.Vocabulary("text"), r"the words of a vocabulary are a set of texts, not 'text'"),
    "unknown word": (lambda: known(["a"]), r"a word is a text, not \['a'\]"),
    "lexicon": (lambda: known.lexicon(3), r"a lexicon is a list of rows such as \(tag, word, count\), not 3"),
    "column of a lexicon": (lambda: known.lexicon([("n", "a")], -1), r"column must be a whole number, at least 0"),
    "count in a lexicon": (lambda: known.lexicon([("n", "a", NAN)]), r"\('n', 'a', nan\): a count is a number from 0"),
    "member of a lexicon": (lambda: known.lexicon([([], "a")]), r"\(\[\], 'a'\): the members of a row"),
    # data
    "name": (lambda: coin().score([training.Example({}, name=3)]), r"example 0: its name is 3, and not a text"),
    "path": (lambda: list(training.read_examples("a\0b")), r"examples are read from the path of a file or a folder"),
    "column": (
        lambda: table(sentence=3, word=["a"]),
        r"the table of word/1: its column 'sentence' is 3, and not a list",
    ),
    "text column": (lambda: table(sentence="ab", word=["a", "b"]), r"its column 'sentence' is 'ab', and not a list"),
    "lengths": (lambda: table(sentence=[1], word=["a", "b"]), r"the columns of the table of word/1 have 1 and 2 rows"),
    "no name": (lambda: table(sentence=[1, NAN], word=["a", "b"]), r"word/1, row 2: nan cannot name an example"),
    # parametrisations
    "given": (lambda: grouped(given="a"), r"given is a function of a row's arguments, or the places of some"),
    "arguments of given": (
        lambda: grouped(given=lambda a, b: a),
        r"given is called with the arguments of a row of toss",
    ),
    "nan as a group": (
        lambda: grouped(given=lambda a: NAN),
        r"given gives nan for toss\(h\), which cannot name a group",
    ),
    "groups": (lambda: grouped(groups=3), r"groups is a list with the group of each of the 2 rows, not 3"),
    "too few groups": (
        lambda: grouped(groups=[1]),
        r"groups is a list with the group of each of the 2 rows, not \[1\]",
    ),
    "groups twice": (lambda: grouped(given=0, groups=[1, 1]), r"from given or from groups, not from both"),
    "initial": (lambda: grouped(initial=np.ones(2)), r"initial is one of given, uniform, random"),
    "frozen": (lambda: grouped(frozen=lambda a: np.ones(2)), r"a result of frozen must be true or false, not array"),
    "frozen features": (lambda: linear(frozen=lambda: True), r"frozen is called with a feature, and the function"),
    "arguments of features": (
        lambda: linear(features=lambda: []),
        r"features is called with the arguments of a row of",
    ),
    "no features": (lambda: linear(features=lambda a: []), r"features gives none for any row, so there is nothing"),
    "a feature": (lambda: linear(features=lambda a: [None]), r"features gives None for weight\(h\), which cannot name"),
    "function": (lambda: differentiable(3), r"function must be a function of the parameters, not 3"),
    "parameters": (
        lambda: differentiable(lambda p: p, NAN),
        r"parameters are finite numbers and arrays of these, not n",
    ),
    "whole parameters": (
        lambda: differentiable(lambda p: p, 3),
        r"have no numbers that can change, such as 1.0, but are 3",
    ),
    "result": (
        lambda: differentiable(lambda p: "x"),
        r"the function gives 'x', and not an array with a number for each",
    ),
    "results by predicate": (
        lambda: differentiable(lambda p: {"x": p}),
        r"gives arrays for x; the rows are of weight/1",
    ),
    "no results": (lambda: differentiable(lambda p: []), r"the function gives 0 numbers for 2 rows"),
    "values or logs": (lambda: differentiable(lambda p: p, logs=0), r"logs must be True or False, not 0"),
    # methods
    "rate": (lambda: with_rate(rate=lambda: 1.0), r"rate is called with the number of the step, and the function"),
    "infinite rate": (
        lambda: with_rate(rate=np.inf),
        r"rate must be a finite number above 0, or a function of the step",
    ),
    "a rate below zero": (
        lambda: with_rate(rate=lambda k: -1.0),
        r"a result of rate must be a finite number from 0 on",
    ),
    "momentum": (lambda: with_rate(momentum=1.0), r"momentum must be a number from 0 on and below 1, not 1.0"),
    "beta1": (lambda: with_rate(method="adam", beta1=3), r"beta1 must be a number from 0 on and below 1, not 3"),
    "beta2": (lambda: with_rate(method="adam", beta2=-0.5), r"beta2 must be a number from 0 on and below 1, not -0.5"),
    "epsilon": (lambda: with_rate(method="adagrad", epsilon=0), r"epsilon must be a finite number above 0, not 0"),
    "growth": (lambda: with_rate(method="annealing", growth=np.inf), r"which grows by a factor above 1"),
    "total": (lambda: scipys("gis", total="x"), r"total must be a number, not 'x'"),
    "option of scipy": (
        lambda: scipys(options={"max_iter": 3}),
        r"L-BFGS-B has no option 'max_iter'; did you mean maxiter",
    ),
    "maxiter": (
        lambda: scipys(options={"maxiter": -1}),
        r"options\['maxiter'\] must be a whole number, at least 1, not -1",
    ),
    "gtol": (lambda: scipys("cg", options={"gtol": NAN}), r"options\['gtol'\] must be a number, not nan"),
    "a number of scipy's": (
        lambda: scipys("trust-ncg", options={"eta": "x"}),
        r"options\['eta'\] must be a number, not",
    ),
    "what scipy refuses": (
        lambda: scipys("trust-ncg", options={"eta": 5.0}),
        r"scipy's trust-ncg cannot work with options=\{'eta': 5.0\}: ",
    ),
    "an option of a neighbour": (
        lambda: scipys("trust-constr", options={"eta": 0.1}),
        r"scipy's trust-constr has no option 'eta'",
    ),
    "bounds that are none": (
        lambda: scipys(bounds=[None, None]),
        r"bounds are a list with a pair \(low, high\) for each of the 2 parameters, .*; that of weight\(h\) is None",
    ),
    "bounds": (lambda: scipys(bounds=5), r"bounds are a list with a pair .*, not 5"),
    "bounds as text": (lambda: scipys(bounds="ab"), r"bounds are a list with a pair .*, not 'ab'"),
    "bounds by name": (lambda: scipys(bounds={"a": (0, 1)}), r"bounds are a list with a pair .*, not \{'a'"),
    "a pair alone": (lambda: scipys(bounds=(0, 1)), r"bounds are a list .*; that of weight\(h\) is 0"),
    "three ends": (lambda: scipys(bounds=[(0, 1, 2)] * 2), r"bounds are a list .*; that of weight\(h\) is \(0, 1, 2\)"),
    "too many bounds": (lambda: scipys(bounds=[(0, 1)] * 3), r"for each of the 2 parameters, .*; there are 3"),
    "a bound": (lambda: scipys(bounds=[(0, "b")] * 2), r"a bound of weight\(h\) must be a number, not 'b'"),
    "no bound": (lambda: scipys(bounds=np.full((2, 2), NAN)), r"a bound of weight\(h\) must be a number, not nan"),
    "bounds in reverse": (
        lambda: scipys("tnc", bounds=[(0, 1), (1, 0)]),
        r"no number is within the bounds of weight\(t\)",
    ),
    "scipy's Bounds": (lambda: scipys(bounds=Bounds([0] * 3, 1)), r"or scipy.optimize.Bounds; Bounds\(.* does not fit"),
    "constraints": (lambda: scipys("slsqp", constraints=5), r"constraints are a LinearConstraint or .*, not 5"),
    "constraints as text": (
        lambda: scipys("slsqp", constraints=""),
        r"constraints are a LinearConstraint or .*, not ''",
    ),
    "no constraints": (lambda: scipys("slsqp", constraints=None), r"not None: leave it out where there are none"),
    "a constraint": (
        lambda: scipys("slsqp", constraints=[5]),
        r"constraints\[0\] is 5; wanted is a LinearConstraint or",
    ),
    "entries of a constraint": (
        lambda: constrained({"type": "eq", "func": len}),
        r"constraints\[0\] has 'func'; did you mean fun\?",
    ),
    "type of a constraint": (
        lambda: constrained({"type": "x", "fun": len}),
        r"constraints\[0\]\['type'\] is 'eq' where 'fun' has to be 0, or 'ineq' .*, not 'x'",
    ),
    "function of a constraint": (
        lambda: constrained({"type": "eq", "fun": 5}),
        r"constraints\[0\]\['fun'\] must be a function of the parameters, not 5",
    ),
    "arguments of a constraint": (
        lambda: constrained({"type": "eq", "fun": lambda x, a: 0.0}),
        r"constraints\[0\]\['fun'\] is called with the parameters, and the function that was given does not take that",
    ),
    "more arguments": (
        lambda: constrained({"type": "eq", "fun": lambda x, a: 0.0, "args": 5}),
        r"constraints\[0\]\['args'\] is a tuple of what 'fun' takes beside the parameters, not 5",
    ),
    "result of a constraint": (
        lambda: constrained({"type": "eq", "fun": lambda x: NAN}),
        r"a result of constraints\[0\]\['fun'\] must be a finite number, .*, and is nan for the initial parameters",
    ),
    "slopes of a constraint": (
        lambda: constrained({"type": "eq", "fun": lambda x: x[0], "jac": lambda x: np.ones(7)}),
        r"a result of constraints\[0\]\['jac'\] has 7 numbers, and there are 1 of 'fun' by 2 parameters",
    ),
    "how slopes are found": (
        lambda: constrained({"type": "eq", "fun": lambda x: x[0], "jac": 5}),
        r"constraints\[0\]\['jac'\] is a function of the parameters, or is left out, not 5",
    ),
    "matrix of a constraint": (
        lambda: constrained(LinearConstraint([[1, 1, 1]], 0, 1)),
        r"constraints\[0\] has a matrix of shape \(1, 3\): it needs a column for each of the 2 parameters",
    ),
    "numbers of a matrix": (
        lambda: constrained(LinearConstraint([[1, NAN]], 0, 1)),
        r"constraints\[0\] has a matrix in which some are no finite numbers",
    ),
    "ends of a constraint": (
        lambda: constrained(LinearConstraint([[1, 1]], 2, 1)),
        r"constraints\[0\] has lb=.*2.* and ub=.*1.*: the first are at most the second",
    ),
    "function of scipy's constraint": (
        lambda: constrained(NonlinearConstraint(5, 0, 1)),
        r"constraints\[0\].fun must be a function of the parameters, not 5",
    ),
    "a learning rate": (
        lambda: with_rate(lr=0.1),
        r"no option lr, nor has method='sgd': method='sgd' and its ki",
    ),
    "a schedule": (
        lambda: with_rate(schedule=[]),
        r"no option schedule, nor has .*: method='sgd' and its kin have a rate",
    ),
    "epochs": (lambda: with_rate(method="em", epochs=3), r"no option epochs, .*: their number is iterations= here"),
    "epsilon of others": (
        lambda: with_rate(method="adam", eps=1e-8),
        r"no option eps, .*: that of method='adam' and method='adagrad' is epsilon= here",
    ),
    "bounds for SGD": (lambda: with_rate(bounds=[]), r"has no option bounds; these have: l-bfgs, tnc, slsqp, trust-co"),
    "size for EM": (lambda: with_rate(method="em", size=3), r"method='em' has no option size; these have: .*sgd"),
    "a name that no file has": (
        lambda: with_rate(log="\ud800.csv"),
        r"log must be the path of a file, not '\\ud800.csv'",
    ),
    "a function for executor": (
        lambda: with_rate(executor=lambda n: None),
        r"a function that makes an executor is called without arguments, and <function",
    ),
    "option": (lambda: with_rate(metod="em"), r"fit has no option metod, nor has method='sgd'; did you mean method\?"),
    "callback": (lambda: with_rate(callback=lambda: None), r"callback is called with the record of a step, and the"),
    "tolerance": (lambda: with_rate(tolerance=np.inf), r"tolerance must be a finite number from 0 on, not inf"),
    "threads": (lambda: coin().score(DATA, threads=0), r"threads must be a whole number, at least 1, not 0"),
    # misspelt
    "Example": (lambda: training.Example({}, observd={}), r"Example has no option observd; did you mean observed\?"),
    "Dirichlet": (lambda: training.Dirichlet(alfa=2), r"Dirichlet has no option alfa; did you mean alpha\?"),
    "Distribution": (lambda: grouped(tid=0), r"Distribution has no option tid; did you mean tied\?"),
    "LogLinear": (lambda: linear(feature=0), r"LogLinear has no option feature; did you mean features\?"),
    "permitted": (lambda: training.permitted(3, [], log=True), r"permitted has no option log; did you mean logs\?"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_an_error_that_says_what_is_wanted(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(dg.Error, match=message):
        make()


def test_numbers_for_what_is_no_parameter_are_told_of() -> None:
    with pytest.warns(
        dg.ProgramWarning, match=r"a number for 'weight\(x\)', which is no parameter: it counts for noth"
    ):
        free(prior=training.Gaussian(1.0, {"weight(h)": 1.0, "weight(x)": 2.0}))
    with pytest.warns(dg.ProgramWarning, match=r"a number for 'toss\(x\)', which is no parameter, and 1 more that are"):
        coin(prior=training.Dirichlet({"toss(h)": 1.0, "toss(t)": 1.0, "toss(x)": 2.0, "toss(y)": 2.0}))
    with pytest.warns(
        dg.ProgramWarning, match=r"no row has the feature 'x', nor 1 other that initial has: its initial"
    ):
        linear(initial={"weight(h)": 1.0, "x": 2.0, "y": 2.0})


@pytest.mark.parametrize("method", ["l-bfgs", "sgd", "gis"])
def test_a_conditional_model_of_what_was_never_observed_is_told_of(method: str) -> None:
    with pytest.warns(dg.ProgramWarning, match="no example says what was observed, so its conditional likelihood"):
        free(prior=training.L2(1.0)).fit([{"seen/1": SIDES}], method=method, iterations=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        free(prior=training.L2(1.0)).fit([{"seen/1": SIDES}, *OBSERVED], method=method, iterations=2)


def test_a_conditional_probability_above_one_is_told_of() -> None:
    """What was observed is not among the facts: its weight grows, and nothing is taken away."""
    data = [*OBSERVED, training.Example({"seen/1": SIDES[1:]}, {"seen/1": SIDES[:1]}, name="odd")]
    m = free(prior=training.L2(1.0))
    with pytest.warns(dg.ProgramWarning, match=r"conditional probability of example 1 \(odd\) is above one") as said:
        m.fit(data, method="l-bfgs", iterations=5)
    assert len(said) == 1


@pytest.mark.parametrize(
    "bounds",
    [[(0.0, 1.0)] * 2, [(0.0, 1.0)], np.array([[0, 1], [0, 1]]), Bounds(0, 1), iter([(0, 1), [0, np.float32(1)]])],
)
def test_bounds_are_in_any_form_of_scipys(bounds: Any) -> None:
    m = free(prior=training.L2(0.1))
    m.fit(OBSERVED, method="l-bfgs", bounds=bounds, tolerance=1e-12)
    h, t = m.parameters["weight"]
    assert (h, t) == (1.0, 0.0)  # the free optimum is further out, with t = -h


@pytest.mark.parametrize(
    "large", [{"iterations": 10**400, "progress": True}, {"method": "incremental-em", "size": 10**400}]
)
def test_numbers_that_no_machine_counts_to_are_large_ones(large: Any) -> None:
    with_rate(callback=lambda record: False, **large)


def test_errors_of_users_functions_are_their_own() -> None:
    def broken(a: str) -> list[str]:
        raise ValueError("of the user's own")

    def stopped(record: Any) -> None:
        raise IndexError("of the user's own")

    with pytest.raises(ValueError, match="of the user's own"):
        linear(features=broken)
    with pytest.raises(IndexError, match="of the user's own"):
        scipys(callback=stopped, options={"gtol": 1e-9})
    with pytest.raises(ValueError, match="of the user's own"):
        constrained({"type": "eq", "fun": broken})


@pytest.mark.parametrize("method", ["cg", "bfgs", "l-bfgs", "tnc", "slsqp", "newton-cg", "trust-constr", "trust-ncg"])
def test_a_limit_among_the_options_of_scipy_holds(method: str) -> None:
    limit = {"maxfun" if method == "tnc" else "maxiter": 2}
    fit = scipys(method, options=limit, tolerance=0.0)
    assert len(fit.history) <= 2 and fit.stopped == "options"
