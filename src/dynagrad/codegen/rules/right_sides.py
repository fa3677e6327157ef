"""The right side of a rule as a struct, as `visiting/values.hpp` describes it: what its value is made of.

In a semiring that is a list. Without one it is a graph, and the struct has functions for its value, for its partial
derivatives, which `autodiff/` takes, and for the coefficients of a polynomial.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...plan.analyses.polynomials import polynomial, recursive
from ...plan.model import Plan
from ...plan.right_sides import called, has_poles, numbers, product_order, to_node
from ...plan.traits import is_external, steps
from ...rules.normal import NormalRule
from ..cxx import Writer
from .functions import Code
from .scope import Names
from .values import adjoints_cxx, lifted_cxx, value_cxx


def write_right_side(plan: Plan, names: Names, rule: NormalRule, out: Writer, *, goes_back: bool) -> None:
    """In the struct of a rule's right side."""
    stage = plan.stage_of[rule.head.key]
    if stage.unknowns:
        out.line(f"static constexpr int stage = {stage.number};")
    if plan.semiring != "plain":
        factors = [f"~{which[0]}" if which is not None else str(i) for which, i in product_order(rule.value)]
        out.line(f"using Factors = Places<{', '.join(factors)}>;")
        return
    values = [i for i, antecedent in enumerate(rule.antecedents) if not antecedent.side]
    out.line(f"using Factors = Places<{', '.join(map(str, values))}>;")
    out.line(f"static constexpr bool poles = {str(has_poles(rule.value)).lower()};")
    functions = _Functions(plan, names, rule, values, out)
    functions.value()
    if goes_back and not steps(plan, plan.tables[rule.head.key]):
        functions.partials()
    if stage.unknowns:
        functions.terms(frozenset(stage.keys))


def constants(plan: Plan, names: Names, rule: NormalRule) -> Sequence[int]:
    """The slots of a rule's constants, one after the other; a value that is a function has its own in it."""
    if plan.semiring == "plain":
        return []
    return [names.weight(rule, i, number) for i, number in enumerate(numbers(rule.value))]


class _Functions:
    """The functions of a value that is a graph, of the values of its antecedents."""

    def __init__(self, plan: Plan, names: Names, rule: NormalRule, values: Sequence[int], out: Writer) -> None:
        self.plan, self.names, self.rule, self.out = plan, names, rule, out
        self.texts = {f"x{i}": f"x{i}" for i in values}

    def value(self) -> None:
        plan = self.plan
        code = value_cxx(self.rule, plan.functions, self.texts, "t", plan.order, self.names.functions)
        with self._function("value_t& value"):
            self._compute(code)
            self.out.line(f"value = {code.results[0]};")

    def partials(self) -> None:
        plan, antecedents, names = self.plan, self.rule.antecedents, {**self.texts, "g": "g"}
        code, found = adjoints_cxx(self.rule, plan.functions, names, "d", plan.order, self.names.functions)
        inside = {i: text for i, text in found.items() if not is_external(plan.tables[antecedents[i].item.key])}
        self.out.line(f"using Partials = Places<{', '.join(map(str, inside))}>;")
        with self._function("const adjoint_t& g", [f"adjoint_t& g{i}" for i in inside], "partials"):
            self._compute(code)
            for i, text in inside.items():
                self.out.line(f"g{i} = back::gather(g{i}, {text});")

    def terms(self, keys: frozenset[str]) -> None:
        plan, terms = self.plan, polynomial(self.rule.value, recursive(self.rule, keys))
        assert terms is not None
        self.out.line("template <class F>")
        with self._function("F&& term", name="terms"):
            for k, (factors, coefficient) in enumerate(terms.items()):
                node, name = to_node(coefficient, plan.functions), called(coefficient, plan.functions)
                code = lifted_cxx([node], self.texts, f"c{k}_", plan.order, self.names.functions, name)
                self._compute(code)
                self.out.line(f"term({code.results[0]}, Places<{', '.join(map(str, factors))}>{{}});")

    @contextmanager
    def _function(self, first: str, last: Sequence[str] = (), name: str = "value") -> Iterator[None]:
        given = ["program& p", first, *(f"const value_t& {x}" for x in self.texts), *last]
        with self.out.block(f"DYNAGRAD_ALWAYS static bool {name}({', '.join(given)})"):
            yield
            self.out.line("return true;")

    def _compute(self, code: Code) -> None:
        """What computes the results; a function that fails, or has to stop, ends it."""
        for statement in code.statements:
            self.out.line(statement)
        if code.call:
            self.out.line("auto& functions = p.functions;")
            with self.out.block(f"if ({code.call} != 0)"):
                self.out.line(f'if (!p.halt) functions.blame("{code.name}");')
                self.out.line("return false;")
