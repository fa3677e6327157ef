"""Terms: what can be one, equality, printing, and the flat encoding. Costs two seconds."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynagrad import errors
from dynagrad.facts import terms
from dynagrad.facts.terms import Term, canonical, flatten, term_text, unflatten

DEEP = 20_000
LONG = 10_000

names = st.text(max_size=4)
atoms = names | st.integers(-(2**31), 2**31 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.builds(lambda f, a: Term(f, *a), names | st.just("cons"), st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=20,
)


def chain(depth: int = DEEP) -> Term:
    term: object = 0
    for _ in range(depth):
        term = Term("s", term)
    assert isinstance(term, Term)
    return term


def nested_list(depth: int = LONG) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


def shared(depth: int = 200) -> Term:
    """A term with 2 ** depth leaves in `depth` objects."""
    term: object = "a"
    for _ in range(depth):
        term = Term("f", term, term)
    assert isinstance(term, Term)
    return term


# -- what may be a term


def test_a_list_among_the_arguments_becomes_a_tuple() -> None:
    assert Term("slash", "np", ["n", ["pp"]]).arguments == ("np", ("n", ("pp",)))


def test_nil_and_the_empty_list_are_the_same_inside_a_term() -> None:
    assert Term("f", "nil") == Term("f", []) == Term("f", ())


def test_numpy_numbers_and_subclasses_become_plain() -> None:
    class Name(str):
        pass

    term = Term("f", np.int32(3), np.float64(0.5), Name("x"), np.str_("y"))
    assert [type(argument) for argument in term.arguments] == [int, float, str, str]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "True is not a term; write 1 or 0"),
        (np.bool_(False), "False is not a term"),
        (None, "None is not a term; leave rows with missing"),
        (b"x", "decode it to a string"),
        (float("nan"), "nan is not a term"),
        (float("-inf"), "-inf is not a term"),
        (2**31, "2147483648 is beyond the range"),
        (-(2**31) - 1, "-2147483649 is beyond the range"),
        pytest.param(10**10_000, "beyond the range", id="huge"),
        ("\ud800", "surrogate"),
        ({"a": 1}, "is not a term; arguments are strings"),
        ([1, [None]], "None is not a term"),
    ],
)
def test_what_is_no_term_is_an_error_that_says_why(value: object, message: str) -> None:
    with pytest.raises(errors.FactError, match=message):
        Term("f", value)
    with pytest.raises(errors.FactError, match=message):
        flatten([value])


def test_a_functor_is_a_string_and_has_arguments() -> None:
    with pytest.raises(errors.FactError, match="functor"):
        Term(3, "a")  # type: ignore[arg-type]  # the point
    with pytest.raises(errors.FactError, match="the symbol np is the string 'np'"):
        Term("np")


def test_a_list_that_contains_itself_is_an_error() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(errors.FactError, match="contains itself"):
        Term("f", loop)
    with pytest.raises(errors.FactError, match="contains itself"):
        flatten([loop])


def test_a_term_never_changes() -> None:
    term = Term("f", "a")
    with pytest.raises(AttributeError):
        term.functor = "g"
    with pytest.raises(AttributeError):
        del term.arguments
    assert copy.copy(term) is copy.deepcopy(term) is term


def test_terms_can_be_matched() -> None:
    match Term("slash", "s", "np"):
        case Term("slash", (left, right)):
            assert (left, right) == ("s", "np")
        case _:
            raise AssertionError


# -- equality


def test_a_float_is_not_an_integer() -> None:
    assert Term("f", 1) != Term("f", 1.0)
    assert Term("f", [1]) != Term("f", [1.0])


def test_a_list_is_cons_and_nil_underneath() -> None:
    term = Term("cons", "a", Term("cons", "b", "nil"))
    assert term == ["a", "b"] == term
    assert term == ("a", "b")
    assert hash(term) == hash(("a", "b"))
    assert Term("f", term) == Term("f", ["a", "b"])
    assert Term("cons", "a", ["b"]) == term
    assert Term("cons", "a", "b") != ["a", "b"]
    assert term != ["a"] and term != ["a", None] and term != "ab"


@given(values, values)
def test_equal_is_what_has_the_same_number_and_then_hashes_alike(left: object, right: object) -> None:
    left, right = Term("f", left), Term("f", right)
    interner = terms.Interner()
    assert (left == right) == (interner.add(left) == interner.add(right))
    if left == right:
        assert hash(left) == hash(right)


@given(values)
def test_a_term_survives_pickling_and_the_flat_encoding(value: object) -> None:
    term = Term("f", value)
    assert unflatten(flatten([value, term])) == [canonical(unflatten(flatten([value]))[0]), term]
    assert pickle.loads(pickle.dumps(term)) == term
    assert hash(pickle.loads(pickle.dumps(term))) == hash(term)


# -- text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("np", "np"),
        ("N P", "'N P'"),
        ("", "''"),
        ("it's", r"'it\'s'"),
        ("a\\\n", r"'a\\\n'"),
        ("for", "'for'"),
        (-3, "-3"),
        (1.0, "1.0"),
        (1e22, "1.0e+22"),
        ([], "[]"),
        (["a", ["b"]], "[a,[b]]"),
        (Term("cons", "a", Term("cons", "b", "c")), "[a,b|c]"),
        (Term("cons", "a", "nil"), "[a]"),
        (Term("slash", Term("slash", "a", "b"), ["c"]), "a/b/[c]"),
        (Term("slash", "a", Term("slash", "b", "c")), "slash(a,b/c)"),
        (Term("slash", -1, "b"), "slash(-1,b)"),
        (Term("N P", "a"), "'N P'(a)"),
    ],
)
def test_terms_print_as_rules_write_them(value: object, text: str) -> None:
    assert term_text(value) == text


def test_repr_is_python() -> None:
    term = Term("f", "a", ["b"], [], [1, 2.5], Term("cons", "a", "b"))
    assert repr(term) == "Term('f', 'a', ('b',), (), (1, 2.5), Term('cons', 'a', 'b'))"
    assert eval(repr(term)) == term


def test_long_texts_are_cut() -> None:
    assert term_text(["abc"] * 100, limit=10) == "[abc,abc,a..."
    assert len(str(shared())) == terms.TEXT_LIMIT + 3


# -- depth and size


def test_deep_terms_hash_compare_print_and_pickle() -> None:
    left, right = chain(), chain()
    assert left == right and hash(left) == hash(right)
    assert left != chain(DEEP - 1)
    assert str(left) == "s(" * DEEP + "0" + ")" * DEEP
    assert repr(left).count("Term") == DEEP
    again = pickle.loads(pickle.dumps(left))
    assert again == left and hash(again) == hash(left)


def test_deep_lists_do_too() -> None:
    left, right = Term("f", nested_list()), Term("f", nested_list())
    assert left == right and hash(left) == hash(right)
    assert len(str(left)) == 2 * LONG + 5
    assert pickle.loads(pickle.dumps(left)) == left


@pytest.mark.parametrize("end", ["nil", "x"])
def test_long_lists_made_one_by_one(end: str) -> None:
    term: object = end
    for i in range(LONG):
        term = Term("cons", i, term)
    assert unflatten(flatten([term]))[0] == term
    assert hash(term) == hash(unflatten(flatten([term]))[0])
    assert len(str(term)) > LONG


def test_terms_that_share_are_walked_once_per_part() -> None:
    left, right = shared(), shared()
    assert left == right and hash(left) == hash(right)
    assert len(flatten([left, right]).kind) == 201
    assert pickle.loads(pickle.dumps(left)) == right


def test_the_suffixes_of_a_long_list_are_refused_before_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "CELL_LIMIT", 1000)
    suffixes: list[object] = ["nil"]
    for i in range(100):
        suffixes.append(Term("cons", i, suffixes[-1]))
    with pytest.raises(errors.QueryError, match="ask for fewer rows"):
        unflatten(flatten(suffixes))


# -- the flat encoding


def test_the_flat_encoding_shares_and_puts_children_first() -> None:
    flat = flatten([Term("f", ["a"], 7), ["a"], 7.0])
    assert flat.atoms == ["a", "nil", 7.0]
    assert flat.functors == [("cons", 2), ("f", 2)]
    for node in range(len(flat.kind)):
        assert all(flat.children[flat.child_start[node] : flat.child_start[node + 1]] < node)
    assert len(flat.kind) == 6
    assert flat.payload[flat.roots[1]] == 0


def test_nothing_flattens_to_nothing() -> None:
    assert unflatten(flatten([])) == []
