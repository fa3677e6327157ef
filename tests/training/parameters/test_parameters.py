"""Ties, frozen and shared parameters, features of every kind, classes of words, interpolation. Costs five seconds."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training

# -- distributions -----------------------------------------------------------------------------------------------------

STEP = ":- semiring real. goal += step(X,Y) * seen(X,Y)."
STEPS = {"step/2": [(x, y) for x in "abc" for y in "pq"]}
SEEN = [("a", "p"), ("a", "p"), ("a", "q"), ("b", "q"), ("b", "q"), ("c", "p")]
DATA = [{"seen/2": [row]} for row in SEEN]


def fitted(**options: Any) -> dict[tuple[str, str], float]:
    m = dg.Model(STEP, {"step": training.Distribution(STEPS, given=0, **options)})
    m.fit(DATA, iterations=1)
    return {(x, y): p for x, y, p in m.weights["step/2"]}


def test_ties_cover_whole_groups() -> None:
    """What a and b have in common are counts: 2 of p and 3 of q."""
    found = fitted(tied=lambda x, y: (x if x == "c" else "ab", y))
    assert [found[x, "p"] for x in "abc"] == pytest.approx([0.4, 0.4, 1.0])
    assert [found[x, "q"] for x in "abc"] == pytest.approx([0.6, 0.6, 0.0])


def test_ties_may_cross_names_as_long_as_groups_are_whole() -> None:
    found = fitted(tied=lambda x, y: (x == "c", y if x != "b" else {"p": "q", "q": "p"}[y]))
    assert found["a", "p"] == found["b", "q"] == pytest.approx(4 / 5)


@pytest.mark.parametrize(
    ("tied", "message"),
    [
        (lambda x, y: y if y == "p" else (x, y), "share some parameters, but not all; ties have to cover whole groups"),
        (lambda x, y: x, "two rows given a share a parameter, and both would count in its sum"),
        (lambda x, y: [x], "cannot name a group"),
    ],
)
def test_ties_of_parts_are_errors(tied: Any, message: str) -> None:
    with pytest.raises(dg.Error, match=message):
        training.Distribution(STEPS, given=0, tied=tied)


def test_tied_rows_begin_alike() -> None:
    rows = {"step/2": [("a", "p", 0.2), ("a", "q", 0.8), ("b", "p", 0.3), ("b", "q", 0.7)]}
    with pytest.raises(dg.Error, match=r"step\(b,p\) has the value 0.3, and a row that is tied to it has 0.2"):
        training.Distribution(rows, given=0, tied=1)


def test_probabilities_sum_to_one_after_fifty_thousand_updates() -> None:
    """Steps of stepwise EM, in which what is rounded once stays: counts move, and are normalised again.

    `python -m benchmarks stream` takes a million of them.
    """
    p = training.Distribution({"t/2": [(s, x) for s in range(3) for x in range(2 + s)]}, given=0)
    assert p.groups is not None
    draw = np.random.default_rng(0)
    drawn = draw.gamma(0.3, size=(1000, p.size))
    theta = p.start(draw)
    for n in range(50_000):
        theta = p.groups.normalised(np.log(0.99 * np.exp(theta) + 0.01 * drawn[n % 1000]))
    assert p.groups.totals(np.exp(p.weights(theta))) == pytest.approx(1.0, abs=1e-15 * p.size)


def test_frozen_groups_stay_as_they_are() -> None:
    rows = {"step/2": [(x, y, 0.9 if y == "p" else 0.1) for x, y in STEPS["step/2"]]}
    m = dg.Model(STEP, {"step": training.Distribution(rows, given=0, frozen=lambda x, _: x == "a")})
    for method in ("em", "l-bfgs", "sgd", "online-em", "variational"):
        m.fit(DATA, method=method, iterations=3)
        assert m.weights["step/2"]["a", "p"] == pytest.approx(0.9, abs=1e-15), method
        assert m.weights["step/2"]["b", "p"] < 0.89, method
    with pytest.raises(dg.Error, match="given a are frozen and some are not"):
        training.Distribution(rows, given=0, frozen=lambda x, y: (x, y) == ("a", "p"))


def test_one_parametrisation_for_two_predicates() -> None:
    """`ahead` and `back` share their parameters: counts of both are added."""
    rows = {"ahead/2": STEPS["step/2"], "back/2": STEPS["step/2"]}
    text = ":- semiring real. goal += ahead(X,Y) * seen(X,Y). goal += back(X,Y) * saw(X,Y)."
    both = training.Distribution(
        rows, groups=[(n, x) for n in range(2) for x, _ in STEPS["step/2"]], tied=lambda x, y: (x, y)
    )
    m = dg.Model(text, {"both": both})
    data = [{"seen/2": [row], "saw/2": []} for row in SEEN] + [{"seen/2": [], "saw/2": [("a", "q")]}] * 2
    m.fit(data, iterations=1)
    assert m.weights["ahead/2"]["a", "p"] == pytest.approx(2 / 5) == m.weights["back/2"]["a", "p"]
    assert both.size == 6
    features = training.LogLinear(rows, lambda x, y: [x, y], given=0, shared=True)
    assert features.names() == ["a", "p", "q", "b", "c"]


OF_TWO = {"suits/2": [("d", "pan"), ("n", "dog")], "follows/2": [("d", "n")]}


def ending(a: str, b: str) -> list[str]:
    return [f"{a} with {b}", f"{a} with an ending {b[-1]}"]


def as_tables(features: Any) -> dict[str, list[tuple[str, str, str]]]:
    return {key: [(*row, f) for row in rows for f in features(*row)] for key, rows in OF_TWO.items()}


@pytest.mark.parametrize("features", [ending, as_tables(ending)], ids=["function", "tables"])
def test_features_of_one_name_are_apart_where_their_predicates_are(features: Any) -> None:
    with pytest.warns(
        dg.ProgramWarning, match="rows of suits/2 and of follows/2 have the feature 'd with an ending n'"
    ):
        p = training.LogLinear(OF_TWO, features)
    assert len(p.names()) == 6 and "d with pan" in p.names()
    both = ["d with an ending n of suits/2", "d with an ending n of follows/2"]
    assert [name for name in p.names() if "ending n" in name] == both
    theta = np.array([1.0 if name == both[0] else 0.0 for name in p.names()])
    assert p.weights(theta).tolist() == [1.0, 0.0, 0.0]
    assert training.LogLinear(OF_TWO, features, shared=False).names() == p.names()
    one = training.LogLinear(OF_TWO, features, shared=True)
    assert len(one.names()) == 5 and one.weights(np.array([0.0, 1.0, 0.0, 0.0, 0.0])).tolist() == [1.0, 0.0, 1.0]


D = "d with an ending n"
FROZEN: dict[str, tuple[Any, list[str] | None]] = {
    "a list": ([D], [f"{D} of suits/2", f"{D} of follows/2"]),
    "of one": ([f"{D} of suits/2", "n with dog"], [f"{D} of suits/2", "n with dog"]),
    "a set of both": ({D, f"{D} of follows/2"}, [f"{D} of suits/2", f"{D} of follows/2"]),
    "none": ((), []),
    "a function": (lambda f: f == D, [f"{D} of suits/2", f"{D} of follows/2"]),
    "a function of one": (lambda f: f == f"{D} of suits/2", [f"{D} of suits/2"]),
    "all but one": (lambda f: f == D or f == f"{D} of suits/2", [f"{D} of suits/2"]),
    "by the end": (lambda f: f.endswith("follows/2"), [f"{D} of follows/2"]),
    "all but both": (lambda f: not f.startswith(D), ["d with pan", "n with dog", "n with an ending g", "d with n"]),
    "all": (lambda f: True, None),
}


@pytest.mark.parametrize("case", list(FROZEN))
def test_what_is_frozen_is_told_by_the_name_of_all_or_by_that_of_one(case: str) -> None:
    frozen, expected = FROZEN[case]
    p = training.LogLinear(OF_TWO, ending, shared=False, frozen=frozen)
    held = [n for n, stays in zip(p.names(), p.frozen, strict=True) if stays]
    assert sorted(held) == sorted(p.names() if expected is None else expected)
    one = training.LogLinear(OF_TWO, ending, shared=True, frozen=[D])
    assert [n for n, stays in zip(one.names(), one.frozen, strict=True) if stays] == [D]


def test_what_frozen_says_of_no_feature_is_told() -> None:
    with pytest.raises(dg.Error, match=rf"yes of the features '{D} of suits/2' and .*, and no of '{D}'.*give a list"):
        training.LogLinear(OF_TWO, ending, shared=False, frozen=lambda f: f != D)
    with pytest.warns(
        dg.ProgramWarning, match="no row has the feature 'nobody': that it is to stay as it is counts for"
    ):
        training.LogLinear(OF_TWO, ending, shared=False, frozen=[D, "nobody"])
    for wrong in ("d", b"d", 3, True):
        with pytest.raises(dg.Error, match="frozen must be a function of a feature, or a list of features"):
            training.LogLinear(OF_TWO, ending, shared=False, frozen=wrong)  # type: ignore[arg-type]
    with pytest.raises(dg.Error, match=r"frozen has \['d'\], which cannot name a feature"):
        training.LogLinear(OF_TWO, ending, shared=False, frozen=[["d"]])


def test_the_mean_of_a_prior_is_of_all_features_of_a_name_or_of_one() -> None:
    p = training.LogLinear(OF_TWO, ending, shared=False)
    prior = training.Gaussian(1.0, {D: 2.0, f"{D} of follows/2": 3.0, "n with dog": 1.0})
    found = dict(zip(p.names(), prior.gradient(p, np.zeros(p.size)), strict=True))
    assert {name: x for name, x in found.items() if x} == {
        f"{D} of suits/2": 2.0,
        f"{D} of follows/2": 3.0,
        "n with dog": 1.0,
    }
    program = ":- semiring log. goal += suits(X,Y) * follows(X,Y)."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dg.Model(program, {"w": p}, prior=prior)
    with pytest.warns(dg.ProgramWarning, match="the prior has a number for 'nobody'"):
        dg.Model(program, {"w": p}, prior=training.Gaussian(1.0, {D: 2.0, "nobody": 1.0}))


def test_names_of_features_that_are_apart_begin_alike_unless_told() -> None:
    name = "d with an ending n"
    draw = np.random.default_rng(0)
    p = training.LogLinear(
        OF_TWO, ending, shared=False, initial={name: 2.0, f"{name} of follows/2": 3.0, "n with dog": 1.0}
    )
    found = dict(zip(p.names(), p.start(draw).tolist(), strict=True))
    assert (found[f"{name} of suits/2"], found[f"{name} of follows/2"], found["n with dog"]) == (2.0, 3.0, 1.0)
    held = training.LogLinear(OF_TWO, ending, shared=False, frozen=lambda f: f == name)
    assert [n for n, stays in zip(held.names(), held.frozen, strict=True) if stays] == [
        f"{name} of {k}" for k in OF_TWO
    ]
    with pytest.warns(dg.ProgramWarning, match="no row has the feature 'nobody'"):
        training.LogLinear(OF_TWO, ending, shared=False, initial={"nobody": 1.0, name: 2.0})
    pairs = training.LogLinear({"a/1": [(1,)], "b/1": [(1,)]}, lambda x: [("pair", x)], shared=False)
    assert pairs.features == [(("pair", 1), "a/1"), (("pair", 1), "b/1")]
    with pytest.raises(dg.Error, match=r"features gives 'f of a/1' and, for rows of a/1, 'f': give one another name"):
        training.LogLinear({"a/1": [(1,)], "b/1": [(1,)]}, lambda x: ["f", "f of a/1"])
    with pytest.raises(dg.Error, match="shared must be True or False"):
        training.LogLinear(OF_TWO, ending, shared="yes")  # type: ignore[arg-type]
    hashed = training.LogLinear(OF_TWO, ending, shared=False, hashed=1 << 20)
    assert hashed.weights(np.eye(1, 1 << 20, hashed.entries()[1][1])[0]).tolist() == [1.0, 0.0, 0.0]


def test_features_of_several_predicates_are_saved(tmp_path: Any) -> None:
    pytest.importorskip("pyarrow")
    rows = {"a/1": [(1,), (2,)], "b/1": [(1,)]}
    p = training.LogLinear(rows, lambda x: [("is", x)], shared=False, initial={("is", 1): 2.0})
    text = ":- semiring log. goal += a(X) * b(Y) * seen(X,Y)."
    model = dg.Model(text, {"w": p}, prior=training.L2(0.1))
    model.save(tmp_path / "m")
    again = dg.load_model(tmp_path / "m")
    assert again.parameters["w"].tolist() == model.parameters["w"].tolist() == [2.0, 0.0, 2.0]


def test_ties_give_the_gradient_of_differences() -> None:
    p = training.Distribution(STEPS, given=0, tied=lambda x, y: (x == "c", y))
    random = np.random.default_rng(1)
    theta, cotangent, along = random.standard_normal(p.size), random.standard_normal(6), random.standard_normal(p.size)
    h = 1e-6
    wanted = cotangent @ (p.weights(theta + h * along) - p.weights(theta - h * along)) / (2 * h)
    assert p.pull(theta, cotangent) @ along == pytest.approx(wanted, rel=1e-7)
    assert p.push(theta, along) @ cotangent == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize(
    ("text", "rows", "message"),
    [
        (
            "s(X,Y). :- distribution s(X,Y) given X",
            {"s/2": [("a", "b")]},
            r"s/2 is in two .*`s\(X,Y\)` and `s\(X,Y\) given",
        ),
        (
            "s(X,Y). :- distribution s(X,...) given X",
            {"s/2": [("a", "b")]},
            r"and `s\(X,...\) given X`: groups may not ov",
        ),
        ("s(X,X)", {"s/2": [("a", "b")]}, r"s\(a,b\) is a parameter, and does not fit s\(X,X\), so it would be in no"),
        ("s(X,Y)", {"s/2": [("a", "b")], "w/1": [("a",)]}, r"nothing says how the weights of w/1 depend on parameters"),
    ],
)
def test_each_row_is_in_one_group(text: str, rows: Any, message: str) -> None:
    with pytest.raises(dg.Error, match=message):
        dg.Model(f":- semiring real. :- distribution {text}. goal += s(X,_) * w(X).", rows)


# -- features ----------------------------------------------------------------------------------------------------------


def test_features_that_a_program_computes() -> None:
    """A chart's table as features: the weights are those of the same features written by hand."""
    made = dg.Program(
        "feature(X,Y,F) = color(X,F) for allowed(X,Y).  feature(X,Y,G) = 2 * size(Y,G) for allowed(X,Y)."
    ).run(
        {
            "allowed/2": [(x, y) for x in "abc" for y in "pq"],
            "color/2": [("a", "red", 1.0), ("b", "red", 1.0), ("c", "blue", 1.0)],
            "size/2": [("p", "small", 0.25), ("q", "large", 0.5), ("q", "small", 0.1)],
        }
    )
    by_rules = training.LogLinear(STEPS, {"step/2": made.query("feature(X,Y,F)")}, given=0)
    colors = {"a": "red", "b": "red", "c": "blue"}
    sizes = {"p": {"small": 0.5}, "q": {"large": 1.0, "small": 0.2}}
    by_hand = training.LogLinear(STEPS, lambda x, y: {colors[x]: 1.0, **sizes[y]}, given=0)
    values = {"red": 0.3, "blue": -1.0, "small": 2.0, "large": 0.7}
    weights = [p.weights(np.array([values[f] for f in p.names()])) for p in (by_rules, by_hand)]
    assert weights[0] == pytest.approx(weights[1], abs=1e-15)


def test_hashed_features_that_meet_share_a_weight() -> None:
    rows = {"w/1": [(n,) for n in range(50)]}
    plain, hashed = (training.LogLinear(rows, lambda n: [f"f{n}", "all"], hashed=h) for h in (None, 7))
    assert plain.size == 51 and hashed.size == 7
    random = np.random.default_rng(2)
    theta = random.standard_normal(7)
    meets = {f: hashed.entries()[1][2 * n + k] for n in range(50) for k, f in enumerate((f"f{n}", "all"))}
    spread = np.array([theta[meets[f]] for f in plain.features])
    assert hashed.weights(theta) == pytest.approx(plain.weights(spread), abs=1e-14)
    again = training.LogLinear(rows, lambda n: [f"f{n}", "all"], hashed=7)
    assert again.entries()[1].tolist() == hashed.entries()[1].tolist()  # in any process


def test_frozen_features_and_initial_weights() -> None:
    p = training.LogLinear(STEPS, lambda x, y: [x, y], given=0, initial={"p": 2.0}, frozen=lambda f: f == "p")
    m = dg.Model(STEP, {"step": p}, prior=training.L2(0.1))
    for method in ("l-bfgs", "adam", "newton-cg"):
        m.fit(DATA, method=method, iterations=5)
        assert dict(zip(p.names(), m.parameters["step"], strict=True))["p"] == 2.0, method


# -- classes of words --------------------------------------------------------------------------------------------------


def test_rare_words_share_the_probability_of_their_class() -> None:
    tagged = [("d", "the"), ("n", "dog"), ("v", "barks"), ("d", "the"), ("n", "cat"), ("v", "runs"), ("n", "dog")]
    known = training.vocabulary(w for _, w in tagged)
    counts = Counter(tagged)
    rows = known.lexicon([(*pair, float(n)) for pair, n in counts.items()])
    assert rows == [("d", "the", 2.0), ("n", "dog", 2.0), ("v", "UNK-LC-s", 2.0), ("n", "UNK-LC", 1.0)]
    m = dg.Model(
        ":- semiring real. :- distribution emit(T,W) given T. goal += emit(T,W) * seen(T,W).", {"emit/2": rows}
    )
    chances = {(t, w): p for t, w, p in m.weights["emit/2"]}
    assert chances["n", "dog"] == pytest.approx(2 / 3) and chances["n", "UNK-LC"] == pytest.approx(1 / 3)
    assert chances["v", "UNK-LC-s"] == 1.0
    new = [{"seen/2": [("v", known("jumps"))]}, {"seen/2": [("n", known("fish"))]}]  # words that no lexicon had
    assert m.score(new) == pytest.approx(np.log(1 / 3))


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("Smith", "UNK-CAP"),
        ("McDonald", "UNK-CAPS"),
        ("iPhone", "UNK-CAPS"),
        ("B-2", "UNK-CAP-NUM-DASH"),
        ("3.5", "UNK-NUM"),
        ("--", "UNK-DASH"),
        ("...", "UNK"),
        ("", "UNK"),
        ("glass", "UNK-LC"),
        ("quickly", "UNK-LC-ly"),
        ("city", "UNK-LC"),
        ("nationality", "UNK-LC-ity"),
        ("fastest", "UNK-LC-est"),
        ("nation", "UNK-LC-ion"),
        ("A321neo", "UNK-CAP-NUM"),
        ("ältere", "UNK-LC"),
    ],
)
def test_classes_of_words(word: str, wanted: str) -> None:
    assert training.word_class(word) == wanted


def test_what_has_no_class() -> None:
    with pytest.raises(dg.Error, match="is no text"):
        training.word_class(3)  # type: ignore[arg-type]
    with pytest.raises(dg.Error, match="words one by one"):
        training.vocabulary("the dog")
    known = training.vocabulary(["a"], 1)
    with pytest.raises(dg.Error, match="a tuple with a word at 1"):
        known.lexicon([("n", 3)])
    with pytest.raises(dg.Error, match="a count, or none"):
        known.lexicon([("n", "b", 1.0), ("n", "b")])


# -- interpolation -----------------------------------------------------------------------------------------------------

INTERPOLATED = """
:- semiring real.
chance(H,W) += mix(H,bigram) * bigram(H,W).
chance(H,W) += mix(H,unigram) * unigram(W).
chance(H,W) += mix(H,uniform) * uniform(W).
goal += chance(H,W) * seen(H,W).
"""


def test_weights_of_interpolation_are_learned_by_em() -> None:
    """Deleted interpolation (Jelinek and Mercer 1980), with a bucket of histories for each weight, against numpy."""
    random = np.random.default_rng(7)
    words = 6
    counts = random.integers(0, 4, (words, words)) * (random.random((words, words)) < 0.5)
    counts[3] = 0
    counts[3, 1] = 1
    bigram = np.array([r / r.sum() if r.sum() else np.full(words, 1.0 / words) for r in counts.astype(float)])
    unigram = counts.sum(0) / counts.sum()
    bucket = (counts.sum(1) > np.median(counts.sum(1))).astype(int)
    held_out = [(int(h), int(w)) for h, w in random.integers(0, words, (60, 2))]
    parts = ("bigram", "unigram", "uniform")
    rows = {"mix/2": [(h, k) for h in range(words) for k in parts]}
    mix = training.Distribution(rows, given=0, tied=lambda h, k: (int(bucket[h]), k))
    fixed = {
        "bigram/2": [(h, w, bigram[h, w]) for h, w in itertools.product(range(words), repeat=2)],
        "unigram/1": [(w, unigram[w]) for w in range(words)],
        "uniform/1": [(w, 1.0 / words) for w in range(words)],
    }
    m = dg.Model(INTERPOLATED, {"mix": mix}, facts=fixed)
    steps = 12
    fit = m.fit([{"seen/2": [pair]} for pair in held_out], iterations=steps, tolerance=0.0)
    weights = np.full((2, 3), 1.0 / 3)
    for step in range(steps):
        shares = np.zeros((2, 3))
        total = 0.0
        for h, w in held_out:
            p = weights[bucket[h]] * [bigram[h, w], unigram[w], 1.0 / words]
            total += np.log(p.sum())
            shares[bucket[h]] += p / p.sum()
        assert fit.history[step].data == pytest.approx(total, rel=1e-13)
        weights = shares / shares.sum(1, keepdims=True)
    found = {(h, k): p for h, k, p in m.weights["mix/2"]}
    for h in range(words):
        assert [found[h, k] for k in parts] == pytest.approx(weights[bucket[h]], abs=1e-13)


BACKED_OFF = """
:- semiring real.
:- distribution keep(H,C) given H.
chance(H,W) += keep(H,own) * bigram(H,W).
chance(H,W) += keep(H,back) * rest(H) * unigram(W) for not bigram(H,W).
goal += chance(H,W) * seen(H,W).
"""


def test_weights_of_backing_off_are_learned_by_em() -> None:
    """A word that did not follow has its share of what a history keeps for such words (Katz 1987); it sums to one.

    Where the parts exclude each other the best weights are the shares of either kind among what was held out.
    """
    bigram = {("a", "x"): 0.75, ("a", "y"): 0.25, ("b", "z"): 1.0}
    unigram = {"x": 0.4, "y": 0.3, "z": 0.2, "u": 0.1}
    rest = {h: 1 / sum(p for w, p in unigram.items() if (h, w) not in bigram) for h in "ab"}
    facts = {
        "bigram/2": [(h, w, p) for (h, w), p in bigram.items()],
        "unigram/1": list(unigram.items()),
        "rest/1": list(rest.items()),
    }
    m = dg.Model(BACKED_OFF, {"keep/2": [(h, c) for h in "ab" for c in ("own", "back")]}, facts=facts)
    held_out = [("a", "x")] * 5 + [("a", "u"), ("a", "z"), ("b", "z"), ("b", "x"), ("b", "x"), ("b", "y")]
    fit = m.fit([{"seen/2": [pair]} for pair in held_out], iterations=3)
    keep = {(h, c): p for h, c, p in m.weights["keep/2"]}
    assert keep["a", "own"] == pytest.approx(5 / 7) and keep["b", "own"] == pytest.approx(1 / 4)

    def chance(h: str, w: str) -> float:
        return keep[h, "own"] * bigram[h, w] if (h, w) in bigram else keep[h, "back"] * rest[h] * unigram[w]

    for h in "ab":
        assert sum(chance(h, w) for w in unigram) == pytest.approx(1.0, abs=1e-14)
    assert fit.history[-1].data == pytest.approx(sum(np.log(chance(*pair)) for pair in held_out), rel=1e-12)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda r: training.Distribution(r, given=0.5), "given is a function of a row's arguments, or the places"),
        (lambda r: training.Distribution(r, tied=0.5), "tied is a function of a row's arguments, or the places"),
        (lambda r: training.Distribution(r, frozen=True), "frozen is a function"),
        (lambda r: training.LogLinear(r, frozen=True), "frozen must be a function of a feature"),
        (lambda r: training.LogLinear(r, initial="x"), "initial must be a number"),
        (lambda r: training.LogLinear(r, initial={"x": np.inf}), "initial must be a finite number"),
        (lambda r: training.LogLinear(r, noise=-1.0), "noise must be a number from 0 on"),
        (lambda r: training.LogLinear(r, lambda s: {s: "x"}), r"the feature h of toss\(h\) must be a number"),
        (lambda r: training.LogLinear(r, lambda s: {s: np.inf}), r"the feature h of toss\(h\) is inf"),
        (lambda r: training.LogLinear(r, lambda s: [[s]]), "cannot name a feature"),
    ],
)
def test_what_a_parametrisation_cannot_be_made_of(make: Any, message: str) -> None:
    with pytest.raises(dg.Error, match=message):
        make({"toss/1": [("h",), ("t",)]})


def test_an_initial_weight_of_zero_is_one() -> None:
    rows = {"w/1": [("a", 2.0), ("b", 0.5)]}
    draw = np.random.default_rng(0)
    assert training.LogLinear(rows, initial=0.0).start(draw).tolist() == [0.0, 0.0]
    assert training.LogLinear(rows).start(draw) == pytest.approx(np.log([2.0, 0.5]))
    assert training.LogLinear({"w/1": [("a",), ("b",)]}).start(draw).tolist() == [0.0, 0.0]
