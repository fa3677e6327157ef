"""Checks: errors, warnings, and what a checked program records. Costs ten seconds."""

from __future__ import annotations

import time
import warnings
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynagrad.errors import Error, ProgramError, ProgramWarning
from dynagrad.rules import undefined
from dynagrad.rules.check import check
from dynagrad.rules.checks.each_rule import newly_bound
from dynagrad.rules.checks.suspicious_rules import diverging
from dynagrad.rules.normal import Rules
from dynagrad.rules.parse import parse
from dynagrad.rules.show import show
from dynagrad.rules.syntax import Equation, Rule
from dynagrad.rules.types import infer

from .paper_programs import FIGURE_1, FIGURE_2
from .syntax_strategies import rules as any_rules


def checked(text: str, **options: object) -> Rules:
    """The checked program, which must give no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return check(parse(text), **options)  # type: ignore[arg-type]


def warned(text: str) -> tuple[str, ...]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rules = check(parse(text))
    assert [str(w.message) for w in caught] == list(rules.warnings)
    assert all(w.category is ProgramWarning for w in caught)
    return rules.warnings


def refused(text: str, **options: object) -> ProgramError:
    with warnings.catch_warnings(), pytest.raises(ProgramError) as caught:
        warnings.simplefilter("ignore")
        check(parse(text), **options)  # type: ignore[arg-type]
    return caught.value


NEURAL = """
out(X) = sigmoid(in(X)).
in(X) += out(Y) * weight(Y,X).
in(X) += bias(X).
error += (out(X) - target(X))^2.
"""

ACCEPTED = {
    "figure 1": FIGURE_1,
    "figure 1 in viterbi": FIGURE_1.replace("real", "viterbi"),
    "figure 1 in boolean": FIGURE_1.replace("real", "boolean"),
    "supervision": """
        :- semiring real.
        constit(X,I,K) += rewrite(X,W) * word(W,I,K) * permitted(X,I,K).
        constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K) * permitted(X,I,K).
        goal += constit(s,0,N) * end(N).""",
    "figure 2": FIGURE_2,
    "figure 2 in log": ":- semiring log." + FIGURE_2,
    "composition of transducers": """
        :- semiring real.
        arc(Q1/Q2,A,C,R1/R2) += left(Q1,A,B,R1) * right(Q2,B,C,R2).
        start(Q1/Q2) += start1(Q1) * start2(Q2).""",
    "bitext": """
        :- semiring log.
        constit(X,I,K,A,C) += pair(X,V,W) * english(V,I,K) * chinese(W,A,C).
        constit(X,I,K,A,C) += straight(X,Y,Z) * constit(Y,I,J,A,B) * constit(Z,J,K,B,C).
        constit(X,I,K,A,C) += inverted(X,Y,Z) * constit(Y,I,J,B,C) * constit(Z,J,K,A,B).
        goal += constit(s,0,M,0,N) * lengths(M,N).""",
    "a binary grammar in two steps": """
        :- semiring real.
        half(X,Z,I,J) += rewrite(X,Y,Z) * constit(Y,I,J).
        constit(X,I,K) += half(X,Z,I,J) * constit(Z,J,K).
        constit(X,I,K) += rewrite(X,W) * word(W,I,K).""",
    "hidden Markov model": """
        :- semiring log.
        forward(Y,I+1) += forward(X,I) * step(X,Y) * emit(Y,W) * word(W,I).
        forward(X,0) += start(X).
        goal += forward(_,N) * end(N).""",
    "edit distance": """
        d(0,0) = 0.
        d(I+1,J) min= d(I,J) + 1 for I < 10.
        d(I,J+1) min= d(I,J) + 1 for J < 10.
        d(I+1,J+1) min= d(I,J) + cost(X,Y) * 1 + 0 * (first(X,I) + second(Y,J)).""",
    "edit distance as a sum": """
        :- semiring log.
        d(I+1,J) += d(I,J) * delete(X) * first(X,I).
        d(I,J+1) += d(I,J) * insert(Y) * second(Y,J).
        d(I+1,J+1) += d(I,J) * change(X,Y) * first(X,I) * second(Y,J).""",
    "shortest paths": "dist(X) min= source(X). dist(Y) min= dist(X) + arc(X,Y).",
    "reachability": "reach(X) |= start(X). reach(Y) |= reach(X) * arc(X,Y).",
    "negation in an earlier stratum": "reach(Y) |= reach(X)*arc(X,Y). dead(X) |= node(X) for not reach(X).",
    "a neural network": NEURAL,
    "factorials": "fact(0) = 1. fact(N+1) = fact(N) * number(N).",
    "a host function": ":- function h/2. p(X) += h(a(X), b(X)+1).",
    "a priority from rules": """
        :- agenda priority.
        :- priority dist(X) = -dist(X) - guess(X).
        dist(Y) min= dist(X) + arc(X,Y).
        guess(X) min= landmark(L,X) * 2 + 0 * near(L).""",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_good_programs_pass_without_a_warning(text: str) -> None:
    checked(text, functions={"h": max})


class TestAMessage:
    def test_shows_the_place(self) -> None:
        assert str(refused("goal += a.\np += q(X) for X < Y.")) == dedent("""\
            Nothing binds the variable `Y`, which stands in a comparison.
              at line 2, column 19
              2 | p += q(X) for X < Y.
                |                   ^""")


class TestBinding:
    @pytest.mark.parametrize(
        "text",
        [
            "p(K) += q(I) for K = I+1.",
            "p(I) += q(K) for K = I+1.",
            "p(I) += q(K) for K = 2*I-3.",
            "p(I) += q(K) for K = -I.",
            "p(I) += q(K) for A = I+1, B = A+1, K = B+1.",
            "p(X) += q(T) for T = f(X,_).",
            "p(X) += q(Y) for f(X,Y) = f(Z,Z).",
            "p(I) += q(I+1).",
            "p(I+1) += q(2*I).",
            "p(X) += SIDE(q(X)).",
            "p(X) += 1 for X = 3.",
            "p(X) += q(X) for not r(X,_).",
        ],
    )
    def test_solves_equations(self, text: str) -> None:
        check(parse(text))

    @pytest.mark.parametrize(
        ("text", "message", "column"),
        [
            ("p(X) += q(_).", "Nothing binds the variable `X`, which stands in the head", 3),
            ("p(X) = 1.", "Nothing binds the variable `X`", 3),
            ("p(X).", "Nothing binds the variable `X`", 3),
            ("p(X) += q for f(X) = 3.", "Nothing binds the variable `X`", 3),
            ("p(X) += q for f(X) = g(X).", "Nothing binds the variable `X`", 3),
            ("p(f(X)) += q.", "Nothing binds the variable `X`", 5),
            ("p(_) += q.", "Nothing binds `_`", 3),
            ("p(X+1) += q.", "Nothing binds the variable `X`", 3),
            ("p(I) += q(I) for K = K.", "stands in an equation", 18),
            ("p(I) += q(I*J)*r(I).", "stands in an equation", 13),
            ("p(I) += q(K) for K = I*I.", "which stands in the head", 3),
            ("p(I) += q(K) for K = I//2.", "which stands in the head", 3),
            ("p(I) += q(K) for K = 0*I.", "which stands in the head", 3),
            ("p += q for X > 1.", "which stands in a comparison", 12),
            ("p += q for not r(X).", "or write `_` for any value", 18),
            (":- external d/2. p(X) += q(X)*d(X,Y).", "`d/2` is external", 35),
        ],
    )
    def test_refuses_what_stays_open(self, text: str, message: str, column: int) -> None:
        error = refused(text)
        assert message in error.message
        assert error.span is not None and error.span.column == column

    def test_a_long_chain_of_equations_is_quick(self) -> None:
        chain = ", ".join(f"X{i} = X{i + 1}+1" for i in range(3000))
        checked(f"p(X0) += q(X3000) for {chain}.")

    def test_an_equation_binds_what_it_can_be_solved_for(self) -> None:
        (condition,) = parse("p += q for f(X,3) = f(2*Y-1,Z).").rules[0].conditions
        assert isinstance(condition, Equation)
        assert newly_bound(condition, {"X"}) == {"Y", "Z"}


class TestDeclarations:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                ":- output gaol. goal += a.",
                "No rule mentions `gaol/0`, which is declared here. Did you mean `goal/0`?",
            ),
            (":- input rewrite/4. p += rewrite(_,_,_).", "There is `rewrite/3`: a predicate is told by its name and"),
            (":- type q(int). p(X) += r(X).", "No rule mentions `q/1`"),
            (":- distribution rewrote(X,...) given X. p += rewrite(_,_).", "Did you mean `rewrite/2`?"),
            (":- semiring real. :- semiring real. p += a.", "declared again"),
            (":- semiring real. :- valtype(term, log). p += a.", "declared as `log`; line 1 declares it as `real`"),
            (":- semiring reel. p += a.", "real, log, viterbi, tropical, boolean, count, expectation"),
            (":- agenda auto. :- agenda fifo. p += a.", "The agenda is declared twice"),
            (":- agenda random. p += a.", "There is no agenda `random`"),
            (":- input a/0, a/0. p += a.", "`a/0` is declared twice"),
            (
                ":- type p(int). :- type p(symbol). p(X) += a(X).",
                "The type of `p/1` is declared twice; the first time in line 1",
            ),
            (":- type p(integer). p(X) += a(X).", "Did you mean `int`?"),
            (":- transient p/0. :- output p. p += a. q += p.", "cannot be both transient and output"),
            (":- external a/0. a += b. q += a.", "`a/0` is external"),
            (":- external a/0. :- input a/0. q += a.", "cannot be both external and input"),
            (":- beam p(X,I) by (J) keep 3. p(X,I) += a(X,I).", "`J` is not a variable of `p(X,I)`"),
            (":- beam p(X) by (X) keep 0. p(X) += a(X).", "at least one item"),
            (":- show p(X,Y). p(X) += a(X).", "No rule mentions `p/2`"),
            (":- show p(X) as Y. p(X) += a(X).", "`Y` is not a variable of `p(X)`"),
            (":- show p(_) as f(_). p(X) += a(X).", "`_` is not a variable of `p(_)`"),
            (":- show p(I+1). p(X) += a(X).", "cannot hold arithmetic"),
            (":- show p(X) as X. :- show p(Y). p(X) += a(X).", "declared already: `p(X)`, in line 1"),
            (":- show p(X,_). :- show p(f(Y),Y). p(X,X) += a(X).", "declared already: `p(X,_)`"),
            (":- show p(X,X). :- show p(f(Y),f(Y)). p(X,X) += a(X).", "declared already: `p(X,X)`"),
            (":- type p(symbol). :- show p(1). p(X) += a(X).", "These types cannot meet"),
            (":- prune p(X+1) < 3. p(X) += a(X).", "cannot hold arithmetic"),
            (":- priority p(X) = Y. p(X) += a(X).", "`Y` is not a variable of `p(X)`"),
            (":- priority p(X) = h(X,Y). p(X) += a(X).", "Which `h/2` is meant is not known"),
            (":- priority p(X) = h(X). p(X) += a(X). h(X) += p(X).", "`h/1` is not complete before `p/1` is"),
            (":- priority p(X) = p(1). p(X) += a(X).", "`p/1` is not complete before `p/1` is"),
            (":- transient p/1. :- prune p(X) < 3. p(X) += a(X). q += p(_).", "`p/1` is transient"),
            (":- function a/1. p += a(b). a(X) += c(X).", "a function of values (declared here) and a predicate"),
            (":- function h/1. p += h(b).", "pass `functions={'h': ...}`"),
        ],
    )
    def test_that_cannot_be_are_refused(self, text: str, message: str) -> None:
        assert message in refused(text).message

    def test_functions_may_be_left_for_later(self) -> None:
        checked(":- function h/1. p += h(b).", functions=None)
        checked(":- function h/1. p += h(b).", functions={"h/1": max})

    def test_a_priority_puts_what_it_reads_before(self) -> None:
        rules = checked(":- priority p(X) = h(X). p(X) += a(X). h(X) += b(X).")
        assert rules.components == (frozenset(("h/1",)), frozenset(("p/1",)))


class TestSemirings:
    def test_are_declared_or_chosen(self) -> None:
        assert checked("p += a.").semiring is None
        assert checked(":- semiring log. p += a.").semiring == "log"
        assert checked("p += a.", semiring="count").semiring == "count"
        assert checked(":- semiring log. p += a.", semiring="log").semiring == "log"
        assert checked("p += a.", semiring="user").semiring == "user"
        assert checked(":- semiring mine. p += a.", semiring="user").semiring == "user"

    def test_must_agree(self) -> None:
        assert "the two must agree" in refused(":- semiring log. p += a.", semiring="real").message
        assert "no semiring `reel`" in refused("p += a.", semiring="reel").message

    @pytest.mark.parametrize(
        ("right", "message"),
        [
            ("a+b", "a sum is not allowed. Write one rule for each"),
            ("a-b", "a difference"),
            ("a/b", "a quotient"),
            ("a^2", "a power"),
            ("-a", "a negation"),
            ("2*exp(a)", "the function `exp`"),
            ("if a < b then a else b", "`if` is not allowed"),
        ],
    )
    def test_allow_products_only(self, right: str, message: str) -> None:
        assert message in refused(f"p += {right}.", semiring="real").message

    def test_allow_one_aggregator_only(self) -> None:
        assert "its plus is written `+=`" in refused("p max= a.", semiring="viterbi").message
        assert "`=` only asserts a constant" in refused("p = a.", semiring="viterbi").message
        assert "a single number" in refused("p = 2*3.", semiring="viterbi").message
        checked("p = -3. p += 2*a*SIDE(b).", semiring="viterbi")


class TestAggregators:
    def test_are_one_for_each_predicate(self) -> None:
        error = refused("p(X) += a(X).\np(X) max= b(X).")
        assert "with `max=` here, but with `+=` in line 1" in error.message
        assert error.span is not None and error.span.line == 2

    def test_do_not_bind_axioms(self) -> None:
        checked("p(1) = 2. p(X) max= b(X).")


class TestCycles:
    @pytest.mark.parametrize(
        ("text", "cycle"),
        [
            ("win(X) |= move(X,Y) for not win(Y).", "win/1 -> not win/1"),
            ("a(X) |= m(X) for not b(X). b(X) |= c(X). c(X) |= a(X).", "a/1 -> not b/1 -> c/1 -> a/1"),
            ("a = b+1. b = a*2.", "`=` defines `a` by itself: a/0 -> b/0 -> a/0"),
            ("d(X) min= w(X,Y) - d(Y).", "must not fall where `d/1` rises"),
            ("d(X) max= w(X,Y) / d(Y).", "d/1 -> d/1"),
            ("d(X) max= -2*e(X). e(X) max= d(X).", "d/1 -> e/1 -> d/1"),
            ("d(X) min= if d(Y) < 2 then w(X,Y) else 1.", "in the condition of an `if`"),
        ],
    )
    def test_that_have_no_meaning_are_refused(self, text: str, cycle: str) -> None:
        assert cycle in refused(text).message

    @pytest.mark.parametrize(
        "text",
        ["d(X) min= d(Y) - w(X,Y).", "d(X) max= -(-d(Y))*w(X,Y).", "a |= a*b.", "a &= a*b.", "d max= min(d,e)^2."],
    )
    def test_that_are_monotone_pass(self, text: str) -> None:
        check(parse(text))

    def test_give_components_in_order(self) -> None:
        rules = checked("goal |= b. b |= a*i. a |= b. c |= goal*j. d |= i.")
        order = {key: n for n, component in enumerate(rules.components) for key in component}
        assert rules.components[order["a/0"]] == {"a/0", "b/0"}
        assert order["a/0"] < order["goal/0"] < order["c/0"] and set(order) == {"a/0", "b/0", "goal/0", "c/0", "d/0"}


class TestWarnings:
    @pytest.mark.parametrize(
        "text",
        [
            "a += a*a. a += r.",
            "reach(X,Y) += reach(X,Z) * edge(Z,Y).",
            ":- semiring log. constit(X,I,K) += rewrite(X,Y) * constit(Y,I,K).",
            ":- semiring count. sum(X) += rule(X,Y,Z) * sum(Y) * sum(Z).",
            ":- semiring real. walk(I+1) += walk(I) * up. walk(I-1) += walk(I) * down.",
            "a(X) += b(X). b(X) += a(X)*c(X).",
        ],
    )
    def test_of_sums_that_may_diverge(self, text: str) -> None:
        rules = checked(text)
        assert rules.warnings == ()  # the facts may have no cycle, or a cycle may be solved
        ((_, warning),) = diverging(rules)
        assert "may diverge" in warning and "at line 1" in warning and "^^^" in warning

    @pytest.mark.parametrize("semiring", ["viterbi", "tropical", "boolean"])
    def test_are_not_given_where_plus_selects(self, semiring: str) -> None:
        assert list(diverging(checked(f":- semiring {semiring}. reach(X,Y) += reach(X,Z) * edge(Z,Y)."))) == []

    def test_of_variables_that_occur_once(self) -> None:
        (warning,) = warned("p(X) += q(X,Word).")
        assert "`Word` occurs once" in warning and "`_Word`" in warning
        assert warned("p(X) += q(X,_Word)*r(_).") == ()

    def test_are_cut_short(self) -> None:
        texts = warned("\n".join(f"p{i} += q(X)." for i in range(100)))
        assert len(texts) == 51 and "50 more" in texts[-1]


class TestUndefined:
    def test_names_the_nearest(self) -> None:
        error = refused("goal += wrod(X) * end(X).", facts_for=frozenset(("word/1", "end/1")))
        assert "No rule defines `wrod/1` and no facts are given for it. Did you mean `word/1`?" in error.message
        error = refused("goal += rewrite(X,X).", facts_for=frozenset(("rewrite/3",)))
        assert "There is `rewrite/3`" in error.message

    def test_is_silent_about_rules_axioms_and_declared_inputs(self) -> None:
        rules = checked(":- input i/0. :- external e/0. goal += p*a*i*e*f. p += i. a = 1.")
        undefined(rules, ["f/0"])
        with pytest.raises(ProgramError, match="`f/0`"):
            undefined(rules, [])


@pytest.mark.parametrize(
    "rule",
    [
        "p{n}(X,I+1) += p{i}(X,I) * q(X,W).",
        "p{m}(X,Y) += p{i}(X,Z) * q{i}(Z,Y).",
        "goal += c(X{i},s,{i}) * d(X{i}/Z,f(a{i}),{i}) * e(Z,{i}).",
    ],
    ids=["chain", "cycle", "wide"],
)
def test_five_thousand_rules_are_parsed_and_checked(rule: str) -> None:
    count = 5000
    text = "\n".join(rule.format(i=i, n=i + 1, m=(i + 1) % count) for i in range(count))
    start = time.process_time()
    source = parse(text)
    assert len(source.rules) == count
    assert time.process_time() - start < 10  # about half a second on one core; a slow machine is no failure
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(source)
    assert time.process_time() - start < 15  # about a second on one core; a slow machine is no failure


@settings(max_examples=50, deadline=None)
@given(
    st.lists(any_rules, max_size=4), st.sampled_from([None, "log"]), st.sampled_from(["", ":- transient a/0, p/1.\n"])
)
def test_any_program_passes_or_is_refused_cleanly(rules: list[Rule], semiring: str | None, declared: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            infer(check(parse(declared + "\n".join(map(show, rules))), semiring=semiring))
        except Error as error:
            assert isinstance(error, ProgramError) and error.span is not None
