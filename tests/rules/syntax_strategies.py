"""Hypothesis strategies for syntax: any term, item and rule that some text could have parsed to."""

from __future__ import annotations

from hypothesis import strategies as st

from dynagrad.rules.syntax import (
    Application,
    Arithmetic,
    Comparison,
    Compound,
    Equation,
    Float,
    Integer,
    Item,
    ItemValue,
    Negation,
    Numeral,
    Rule,
    Side,
    Symbol,
    Variable,
)

names = st.one_of(
    st.sampled_from(
        ["a", "np", "end", "word", "for", "if", "not", "mod", "then", "max", "N P", "é", "'", "\\", "", "x.y\n"]
    ),
    st.text(max_size=5),
)
predicates = st.sampled_from(["a", "p", "word", "if", "N P", "end"])
variables = st.sampled_from([Variable(name) for name in ("X", "Y", "_Z", "Long_name1")])
atoms = st.one_of(
    variables,
    names.map(Symbol),
    st.integers(-(2**63), 2**63 - 1).map(Integer),
    st.floats(allow_nan=False, allow_infinity=False).map(Float),
)


def _arithmetic(children: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    binary = st.builds(
        lambda op, a, b: Arithmetic(op, (a, b)), st.sampled_from(["+", "-", "*", "//", "mod"]), children, children
    )
    negated = children.filter(lambda t: not isinstance(t, Integer | Float)).map(lambda t: Arithmetic("neg", (t,)))
    return st.one_of(binary, negated)


terms = st.recursive(
    atoms,
    lambda children: st.one_of(
        st.builds(
            Compound,
            st.one_of(names, st.sampled_from(["slash", "cons"])),
            st.lists(children, min_size=1, max_size=3).map(tuple),
        ),
        _arithmetic(children),
    ),
    max_leaves=8,
)
computed = st.recursive(  # terms as they stand in conditions
    terms,
    lambda children: st.one_of(
        st.builds(lambda op, a, b: Arithmetic(op, (a, b)), st.sampled_from(["min", "max"]), children, children),
        st.builds(lambda a: Arithmetic("abs", (a,)), children),
        _arithmetic(children),
    ),
    max_leaves=4,
)
items = st.builds(Item, predicates, st.lists(terms, max_size=3).map(tuple))
values = st.one_of(
    st.integers(-(10**30), 10**30).map(Numeral),
    st.floats(allow_nan=False, allow_infinity=False).map(Numeral),
    st.builds(ItemValue, items),
    st.builds(Side, items),
)


def _apply(children: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    def made(operator: object, count: int) -> st.SearchStrategy[object]:
        return st.builds(
            lambda op, operands: Application(op, tuple(operands)),
            operator,
            st.lists(children, min_size=count, max_size=count),
        )

    test = made(st.sampled_from(["<", "=<", ">", ">=", "==", "!="]), 2)
    return st.one_of(
        made(st.sampled_from(["+", "-", "*", "/", "^", "min", "max"]), 2),
        made(st.sampled_from(["exp", "log", "sqrt", "tanh", "sigmoid", "abs"]), 1),
        children.filter(lambda e: not isinstance(e, Numeral)).map(lambda e: Application("neg", (e,))),
        st.builds(lambda c, a, b: Application("if", (c, a, b)), test, children, children),
    )


expressions = st.recursive(values, _apply, max_leaves=8)
conditions = st.one_of(
    st.builds(Comparison, st.sampled_from(["<", "=<", ">", ">=", "==", "!="]), computed, computed),
    st.builds(Equation, computed, computed),
    st.builds(Negation, items),
)
rules = st.builds(
    Rule,
    items,
    st.sampled_from(["+=", "*=", "max=", "min=", "|=", "&=", "="]),
    expressions,
    st.lists(conditions, max_size=3).map(tuple),
    st.just(""),
)
