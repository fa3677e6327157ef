"""Parsing: the syntax of each construct of the language, and syntax errors. Costs ten seconds."""

from __future__ import annotations

import string
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynagrad.errors import Error, SyntaxError
from dynagrad.rules.parse import parse, parse_item, parse_term
from dynagrad.rules.show import show
from dynagrad.rules.syntax import (
    MAX_DEPTH,
    ONE,
    AgendaDeclaration,
    Application,
    Arithmetic,
    BeamDeclaration,
    Comparison,
    Compound,
    DistributionDeclaration,
    Equation,
    Float,
    Integer,
    Item,
    ItemValue,
    Negation,
    Numeral,
    PredicateDeclaration,
    PriorityDeclaration,
    PruneDeclaration,
    Rule,
    SemiringDeclaration,
    ShowDeclaration,
    Side,
    Symbol,
    TypeDeclaration,
    TypeName,
    Variable,
    VariableValue,
)

from .paper_programs import FIGURE_1, FIGURE_2
from .syntax_strategies import items, rules, terms


def rule(text: str) -> Rule:
    (only,) = parse(text).rules
    return only


def body(text: str) -> object:
    return rule(f"p += {text}.").body


def item(name: str, *arguments: object) -> ItemValue:
    return ItemValue(Item(name, arguments))  # type: ignore[arg-type]


X, Y = Variable("X"), Variable("Y")
A, B = Symbol("a"), Symbol("b")


class TestTerms:
    @pytest.mark.parametrize(
        ("text", "term"),
        [
            ("np", Symbol("np")),
            ("'N P'", Symbol("N P")),
            ('"Mary"', Symbol("Mary")),
            ("'Mary'", Symbol("Mary")),
            (r"'it\'s'", Symbol("it's")),
            (r'"a\\b\n\x41\u00e9"', Symbol("a\\b\nAé")),
            ("'%. not a comment'", Symbol("%. not a comment")),
            ("straße", Symbol("straße")),
            ("Ärger", Variable("Ärger")),
            ("X", X),
            ("_Rest", Variable("_Rest")),
            ("17", Integer(17)),
            ("-17", Integer(-17)),
            ("- 17", Integer(-17)),
            ("-9223372036854775808", Integer(-(2**63))),
            ("0.5", Float(0.5)),
            ("-1.5e-3", Float(-0.0015)),
            ("1e3", Float(1000.0)),
            ("[]", Symbol("nil")),
            ("[a]", Compound("cons", (A, Symbol("nil")))),
            ("[a,b|X]", Compound("cons", (A, Compound("cons", (B, X))))),
            ("X/Y", Compound("slash", (X, Y))),
            ("a/b/X", Compound("slash", (Compound("slash", (A, B)), X))),
            ("f(g(X),'h h'(a))", Compound("f", (Compound("g", (X,)), Compound("h h", (A,))))),
            ("I+1", Arithmetic("+", (Variable("I"), Integer(1)))),
            ("I-1", Arithmetic("-", (Variable("I"), Integer(1)))),
            ("2*X//3", Arithmetic("//", (Arithmetic("*", (Integer(2), X)), Integer(3)))),
            ("X mod 2+1", Arithmetic("+", (Arithmetic("mod", (X, Integer(2))), Integer(1)))),
            ("-X", Arithmetic("neg", (X,))),
            ("2*(X+Y)", Arithmetic("*", (Integer(2), Arithmetic("+", (X, Y))))),
            ("mod", Symbol("mod")),
            ("for", Symbol("for")),
        ],
    )
    def test_become(self, text: str, term: object) -> None:
        assert parse_term(text) == term
        assert rule(f"p({text}) += q.").head.arguments == (term,)

    def test_each_underscore_is_a_variable_of_its_own(self) -> None:
        first, second = rule("p += q(_,_).").body.item.arguments  # type: ignore[union-attr]
        assert first.anonymous and second.anonymous and first.name != second.name

    def test_an_underscore_never_takes_the_name_of_a_written_variable(self) -> None:
        arguments = rule("p += q(_,_1,[_,_2]).").body.item.arguments  # type: ignore[union-attr]
        assert arguments[0].name == "_3" and arguments[1] == Variable("_1")

    def test_spans_point_at_the_text(self) -> None:
        text = "p += \n  q(X, f(I+1)) * r."
        inner = rule(text).body.operands[0].item.arguments[1]  # type: ignore[union-attr]
        assert text[inner.span.start : inner.span.end] == "f(I+1)"
        assert (inner.span.line, inner.span.column) == (2, 8)


class TestRightSides:
    @pytest.mark.parametrize(
        ("text", "expression"),
        [
            ("2", Numeral(2)),
            ("-0.5", Numeral(-0.5)),
            ("a", item("a")),
            ("a(X)*b", Application("*", (item("a", X), item("b")))),
            ("a+b*c", Application("+", (item("a"), Application("*", (item("b"), item("c")))))),
            ("a-b-c", Application("-", (Application("-", (item("a"), item("b"))), item("c")))),
            ("a/b", Application("/", (item("a"), item("b")))),
            ("a(X/Y)/2", Application("/", (item("a", Compound("slash", (X, Y))), Numeral(2)))),
            ("-a^2", Application("neg", (Application("^", (item("a"), Numeral(2))),))),
            (
                "2^-1^a",
                Application("^", (Numeral(2), Application("neg", (Application("^", (Numeral(1), item("a"))),)))),
            ),
            ("exp(a)", Application("exp", (item("a"),))),
            ("max(a,b(X)+1)", Application("max", (item("a"), Application("+", (item("b", X), Numeral(1)))))),
            ("SIDE(a(X))*b", Application("*", (Side(Item("a", (X,))), item("b")))),
            (
                "if a < 0 then b else c+1",
                Application(
                    "if",
                    (Application("<", (item("a"), Numeral(0))), item("b"), Application("+", (item("c"), Numeral(1)))),
                ),
            ),
            (
                "end(X)*word*for(X)",
                Application("*", (Application("*", (item("end", X), item("word"))), item("for", X))),
            ),
        ],
    )
    def test_become(self, text: str, expression: object) -> None:
        assert body(text) == expression

    def test_a_declared_function_of_values_is_applied_wherever_it_is_declared(self) -> None:
        source = parse("p += h(a,X_).\n:- function h/2.".replace("X_", "b"))
        assert source.rules[0].body == Application("h", (item("a"), item("b")))

    def test_what_nothing_declares_is_an_item(self) -> None:
        assert body("h(a,b)") == item("h", A, B)

    def test_a_built_in_name_is_an_item_where_the_program_defines_it(self) -> None:
        source = parse("p += exp(a). exp(X) += q(X).")
        assert source.rules[0].body == item("exp", A)
        source = parse(":- input log/1. p += log(a).")
        assert source.rules[0].body == item("log", A)


class TestRules:
    @pytest.mark.parametrize("operator", ["+=", "*=", "max=", "min=", "|=", "&=", "="])
    def test_have_an_aggregator(self, operator: str) -> None:
        assert rule(f"p(X) {operator} q(X).").aggregator == operator

    def test_have_conditions(self) -> None:
        conditions = rule(
            "p(X) += q(X) for X < 3, K = X+1, not r(X,_), X =< K, X != a, K == 2, X > 0, X >= 1."
        ).conditions
        kinds = [type(condition) for condition in conditions]
        assert kinds == [Comparison, Equation, Negation, *[Comparison] * 5]
        assert [c.operator for c in conditions if isinstance(c, Comparison)] == ["<", "=<", "!=", "==", ">", ">="]

    def test_conditions_compute_with_integers(self) -> None:
        (equation,) = rule("p(X) += q(I) for X = max(I,abs(-3)).").conditions
        assert equation == Equation(X, Arithmetic("max", (Variable("I"), Arithmetic("abs", (Integer(-3),)))))
        (inside,) = rule("p(X) += q(I) for X = [min(I,2)].").conditions
        assert inside == rule("p(X) += q(I) for X = [min(I,2)|'nil'].").conditions[0]
        assert Arithmetic("min", (Variable("I"), Integer(2))) == inside.right.arguments[0]  # type: ignore[union-attr]

    def test_names_of_functions_in_quotes_and_in_items_are_functors(self) -> None:
        (equation,) = rule("p(X) += q(I) for X = 'max'(I,'exp'(1),1).").conditions
        assert equation == Equation(X, Compound("max", (Variable("I"), Compound("exp", (Integer(1),)), Integer(1))))
        assert rule("p(max(X,Y)) += q(X,Y).").head.arguments == (Compound("max", (X, Y)),)

    def test_a_chain_is_one_comparison_after_the_other(self) -> None:
        chain = rule("p(X) += q(X,Y) for 0 < X <= Y != 3, Y >= 0.")
        assert chain.conditions == rule("p(X) += q(X,Y) for 0 < X, X =< Y, Y != 3, Y >= 0.").conditions

    def test_a_condition_that_an_item_is_derived_is_a_side_condition(self) -> None:
        assert rule("p(X) += a + b for q(X), done, X != 1.") == rule(
            "p(X) += (a + b)*SIDE(q(X))*SIDE(done) for X != 1."
        )

    def test_a_head_alone_asserts_the_empty_product(self) -> None:
        assert rule("edge(a,[b]).") == Rule(Item("edge", (A, Compound("cons", (B, Symbol("nil"))))), "=", ONE, (), "")
        assert rule("done.").head == Item("done", ()) and show(rule("edge(a,b).")) == "edge(a,b)."

    def test_a_clause_is_a_rule_of_what_is_derived(self) -> None:
        assert rule("p(X) :- q(X), X < 3, r(X), not s(X).") == rule(
            "p(X) |= SIDE(q(X)) * SIDE(r(X)) for X < 3, not s(X)."
        )

    def test_keep_their_text_on_one_line(self) -> None:
        assert rule("p +=  % of course\n   q('%  .').").text == "p += q('%  .')."

    def test_the_figures_of_the_paper_are_programs(self) -> None:
        first, second = parse(FIGURE_1), parse(FIGURE_2)
        assert [r.head.key for r in first.rules] == ["constit/3", "constit/3", "goal/0"]
        assert first.declarations == (SemiringDeclaration("real"),)
        assert [r.head.key for r in second.rules] == [
            "need/2", "constit/3", "constit/3", "constit/3", "goal/0", "need/2",
        ]  # fmt: skip
        slash = second.rules[5].body.item.arguments[0]  # type: ignore[union-attr]
        assert slash.functor == "slash" and slash.arguments[1].functor == "cons"

    @pytest.mark.parametrize("number", ["1.e3", "1.E3", "1.e+3", "1.e+03"])
    def test_a_float_may_end_with_its_point_before_an_exponent(self, number: str) -> None:
        """As in Python; it is not the number 1, and a fact `e3`."""
        read = rule(f"p += {number}.")
        assert read.body == Numeral(1000.0)
        read = rule(f"p({number}) += q(-{number}) / {number}.")
        assert read.head.arguments == (Float(1000.0),)

    @pytest.mark.parametrize(
        ("text", "heads"),
        [
            ("p += 1. e3 += 2.", ["p/0", "e3/0"]),
            ("p += 1.e3a += 2.", ["p/0", "e3a/0"]),
            ("p += 1.e += 2.", ["p/0", "e/0"]),
            ("p += 1.\ne3(X) += q(X).", ["p/0", "e3/1"]),
            ("a(X) += b(X,1).e(X) += b(X,1).e3(X) += b(X,2).", ["a/1", "e/1", "e3/1"]),
        ],
    )
    def test_a_statement_may_start_with_the_letter_of_an_exponent(self, text: str, heads: list[str]) -> None:
        assert [rule.head.key for rule in parse(text).rules] == heads

    def test_an_empty_text_is_an_empty_program(self) -> None:
        assert parse("").rules == parse(" % nothing\n").rules == ()


class TestDeclarations:
    @pytest.mark.parametrize(
        ("text", "declaration"),
        [
            ("semiring log", SemiringDeclaration("log")),
            ("valtype(term, viterbi)", SemiringDeclaration("viterbi")),
            ("input rewrite/3, word/3", PredicateDeclaration("input", ("rewrite/3", "word/3"))),
            (
                "input road/2 min=, bias log+=, 'a b'/1 =, word/3",
                PredicateDeclaration(
                    "input",
                    ("road/2", "bias/0", "a b/1", "word/3"),
                    joins=(("road/2", "min="), ("bias/0", "log+="), ("a b/1", "=")),
                ),
            ),
            ("output goal", PredicateDeclaration("output", ("goal/0",))),
            ("transient p/2", PredicateDeclaration("transient", ("p/2",))),
            ("external 'my dist'/2", PredicateDeclaration("external", ("my dist/2",))),
            ("function h/1", PredicateDeclaration("function", ("h/1",))),
            (
                "type constit(symbol | slash(symbol, list), int)",
                TypeDeclaration(
                    "constit",
                    (
                        (TypeName("symbol"), TypeName("slash", ((TypeName("symbol"),), (TypeName("list"),)))),
                        (TypeName("int"),),
                    ),
                ),
            ),
            ("agenda fifo", AgendaDeclaration("fifo")),
            ("prune c(X) < 1e-6", PruneDeclaration(Item("c", (X,)), "<", 1e-6)),
            ("prune c(X) >= -5", PruneDeclaration(Item("c", (X,)), ">=", -5.0)),
            ("beam c(X,Y) by (X,Y) keep 50", BeamDeclaration(Item("c", (X, Y)), (X, Y), 50)),
            ("beam c(X,Y) by X keep 1", BeamDeclaration(Item("c", (X, Y)), (X,), 1)),
            ("show c(X,Y)", ShowDeclaration(Item("c", (X, Y)), None)),
            ("show c(X,Y) as Y", ShowDeclaration(Item("c", (X, Y)), Y)),
            ("show c(X,Y) as [X|Y]", ShowDeclaration(Item("c", (X, Y)), Compound("cons", (X, Y)))),
            ("show as as as", ShowDeclaration(Item("as", ()), Symbol("as"))),
            ("distribution rewrite(X,...) given X", DistributionDeclaration(Item("rewrite", (X,)), True, (X,))),
            ("distribution r(X,Y) given X, Y", DistributionDeclaration(Item("r", (X, Y)), False, (X, Y))),
            ("distribution start(...)", DistributionDeclaration(Item("start", ()), True, ())),
        ],
    )
    def test_become(self, text: str, declaration: object) -> None:
        assert parse(f":- {text}.").declarations == (declaration,)

    def test_a_priority_computes_with_arguments_and_values(self) -> None:
        (declaration,) = parse(":- priority c(X,Y) = X - Y + c(X,Y).").declarations
        own = Item("c", (X, Y))
        difference = Application("-", (VariableValue("X"), VariableValue("Y")))  # type: ignore[arg-type]
        assert declaration == PriorityDeclaration(own, Application("+", (difference, ItemValue(own))))


def message(text: str) -> str:
    with pytest.raises(SyntaxError) as caught:
        parse(text)
    return str(caught.value)


class TestErrors:
    def test_show_line_column_and_caret(self) -> None:
        assert message("a += b.\np(X) += q(X) * .") == dedent("""\
            Found `.`, but expected an item, a term or a number.
              at line 2, column 16
              2 | p(X) += q(X) * .
                |                ^""")

    def test_name_the_file(self) -> None:
        with pytest.raises(SyntaxError, match=r"at cky\.dyna, line 1, column 5"):
            parse("a += ", "cky.dyna")

    @pytest.mark.parametrize(
        ("text", "part", "line", "column"),
        [
            ("a += b\nc += d.", "its final `.` is missing", 1, 7),
            ("a += b", "its final `.` is missing", 1, 7),
            ("goal := b.", "write `+=`", 1, 6),
            ("goal(X) += :- b(X).", "`:-` starts a declaration, or stands after a head alone", 1, 12),
            ("edge(a,b)\nedge(b,c).", "This statement does not end: its final `.` is missing", 1, 10),
            ("a += b(I ** 2).", r"A power (`^` or `**`) of an integer is a product", 1, 8),
            ("p(X,Y += q(X).", "The `(` at line 1, column 2 is not closed", 1, 8),
            ("a += f(b.", "The `(` at line 1, column 7 is not closed", 1, 9),
            ("Path(X) += q(X).", "`Path` is a variable", 1, 1),
            ("a += b, c.", "joined with `*`", 1, 7),
            ("a += X.", "`X` is a variable, which stands for an argument", 1, 6),
            ("a += b .5.", "Found the number `.5`", 1, 8),
            ("p += 1.e3(a) += 2.", "Found `(`", 1, 10),
            ("p += 1.e3 += 2.", "Found `=`", 1, 12),
            ("a += 'abc.\nb += c.", "not closed on its line", 1, 6),
            ("# comment\na += b.", "A comment starts with `%`", 1, 1),
            ("a += b c.", "Found the name `c`", 1, 8),
            ("a += b(X) for X + 1.", "A condition compares arguments", 1, 15),
            ("a += b(X) for X = 2^X.", "such as `K*K`", 1, 19),
            ("a += b(X) for X = max(X,1,2).", "a function of 2 integers, not of 3", 1, 19),
            ("a += b(X) for X = abs(X,1).", "a function of 1 integer, not of 2", 1, 19),
            ("a += b(X) for X < sqrt(X).", "`sqrt` is a function of values", 1, 19),
            (":- function h/1. a += b(X) for X = h(X).", "`h` is a function of values", 1, 36),
            ("a += b(X) for X = (1 < X < 2).", "`<` cannot stand in a term of a condition", 1, 20),
            ("a += if 1 + b then 1 else 0.", "must be a comparison of values", 1, 9),
            ("a += 1 < b < 2.", "A comparison (`<`) has no value", 1, 6),
            ("a += max(b,c,d).", "takes 2 values, not 3", 1, 6),
            ("a() += b.", "Empty brackets", 1, 3),
            ("a += b).", "closes no bracket", 1, 7),
            (":- semirng log.", "Did you mean `semiring`?", 1, 4),
            (":- beam c(X) by (i) keep 3.", "Expected a variable, which starts with a capital letter", 1, 18),
            ("a += 2 * if b > c then d else e.", "must stand in brackets|stands in brackets", 1, 10),
            ("a += not b.", "after the word `for`", 1, 6),
            ("a += if b then c else d.", "must be a comparison", 1, 9),
            ("a += b < c.", "A comparison (`<`) has no value", 1, 6),
            ("a += [b].", "A list has no value", 1, 6),
            ("a += b // c.", "values are divided with `/`", 1, 6),
            ("a(b^c) += d.", "`^` cannot stand in an argument", 1, 3),
            ("a(X,...) += d.", "`...` cannot stand in an argument", 1, 5),
            ("a += 1e999.", "too large", 1, 6),
            ("a(99999999999999999999) += b.", "at most 64 bits", 1, 3),
            ("a += " + "9" * 5000 + ".", "too large", 1, 6),
            ("a -= b.", "expected one of `+=`", 1, 3),
            ("a += \0.", r"Found '\x00'", 1, 6),
            (":- valtype(item, real).", "with the word `term`", 1, 12),
        ],
    )
    def test_say_what_is_wrong_and_what_to_do(self, text: str, part: str, line: int, column: int) -> None:
        with pytest.raises(SyntaxError) as caught:
            parse(text)
        assert any(option in caught.value.message for option in part.split("|"))
        assert caught.value.span is not None
        assert (caught.value.span.line, caught.value.span.column) == (line, column)


class TestSize:
    @pytest.mark.parametrize("frame", ["p += {}.", "p({}) += q.", "p += q({}).", ":- type p({})."])
    @pytest.mark.parametrize(
        ("left", "middle", "right"),
        [
            ("f(", "a", ")"), ("[", "a", "]"), ("-", "X", ""), ("a+", "a", ""), ("a/", "a", ""), ("2^", "2", ""),
            ("(", "a", ")"), ("f(", "", ""), ("if a < b then c else ", "d", ""),
        ],
    )  # fmt: skip
    def test_deep_text_gives_a_result_or_a_clean_error(self, frame: str, left: str, middle: str, right: str) -> None:
        depth = 2_000
        try:
            parse(frame.format(left * depth + middle + right * depth))
        except SyntaxError as error:
            assert error.span is not None

    def test_terms_nested_twenty_thousand_deep(self) -> None:
        assert f"more than {MAX_DEPTH} deep" in message("p += q(" + "f(" * 20_000 + "a" + ")" * 20_001 + ".")

    def test_what_the_parser_lets_through_can_be_compared_and_hashed(self) -> None:
        text = "p(" + "f(" * (MAX_DEPTH - 2) + "a" + ")" * (MAX_DEPTH - 1) + " += " + "+".join("q" * MAX_DEPTH) + "."
        first, second = rule(text), rule(text)
        assert first == second and hash(first) == hash(second) and show(first) == show(second)

    def test_a_symbol_of_a_megabyte(self) -> None:
        name = "x" * 1_000_000
        assert rule(f"p('{name}') += q.").head.arguments == (Symbol(name),)


# -- printing and reading again --------------------------------------------------------------------------------------


@settings(max_examples=70, deadline=None)
@given(rules)
def test_printing_and_reading_again_gives_the_same_rule(written: Rule) -> None:
    assert rule(show(written)) == written


@settings(max_examples=50, deadline=None)
@given(terms)
def test_printing_and_reading_again_gives_the_same_term(term: object) -> None:
    assert parse_term(show(term)) == term  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(items)
def test_printing_and_reading_again_gives_the_same_item(written: Item) -> None:
    assert parse_item(show(written)) == written


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=string.ascii_letters[:6] + "XYZ01_ '\"\\.,:-+=*/()[]|<>^%\nfornotif", max_size=40))
def test_any_text_gives_a_program_or_a_clean_error(text: str) -> None:
    try:
        source = parse(text)
    except Error as error:
        assert isinstance(error, SyntaxError) and error.span is not None
        assert 1 <= error.span.line <= text.count("\n") + 1
    else:
        again = parse("\n".join(map(show, source.rules)))
        assert [r.head.key for r in again.rules] == [r.head.key for r in source.rules]


def test_show_does_not_recurse() -> None:
    term: object = A
    for _ in range(20_000):
        term = Compound("f", (term,))  # type: ignore[arg-type]
    assert len(show(term)) == 60_001  # type: ignore[arg-type]
