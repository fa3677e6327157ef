"""A derivation: a tree of rule instances whose leaves are facts, as a value that compares, hashes and pickles.

What it looks like drawn is the business of `drawing/`, and whether it is right that of `checking.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arguments import yes_or_no
from ..calls import maker, public
from ..errors import counted
from ..moved import warn_of_name
from .checking import check
from .drawing.boxes import Box, ShowPatterns, boxes
from .drawing.pictures import drawable, graphviz, rich_tree, svg, text_tree
from .drawing.trees import brackets, latex, nested, nltk_tree
from .packed import NO_ROW, ForestRule, Packed
from .steps import DerivationStep
from .storage import json_text


class Derivation:
    """One way in which an item is derived: rule instances as a tree, with given facts as its leaves.

    It is a sequence of steps, each before its antecedents, and compares and hashes by them. `weight` is the product of
    the constants of its rules and of the facts at its leaves, in the semiring's scale; None in plain arithmetic.
    `log_probability`, of a draw, is the log of the chance of drawing it.

    >>> import dynagrad as dg
    >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
    >>> facts = {"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]}
    >>> derivation = program.run(facts).best("path(c)")
    >>> derivation.weight, derivation.items()
    (3.0, ['path(c)', 'path(b)', 'path(a)', 'edge(a,b)', 'edge(b,c)'])
    >>> derivation.tree()
    ('path(c)', ('path(b)', 'path(a)', 'edge(a,b)'), 'edge(b,c)')
    >>> derivation.check(program, facts)
    """

    __slots__ = ("_forest", "_key", "_steps", "instances", "log_probability", "weight")

    def __init__(
        self,
        forest: Packed | None,
        instances: Sequence[int] | npt.NDArray[Any],
        weight: Any,
        log_probability: float | None = None,
        steps: tuple[DerivationStep, ...] | None = None,
    ) -> None:
        self._forest, self.instances, self._steps = forest, instances, steps
        self._key: tuple[Any, ...] | None = None
        self.weight, self.log_probability = weight, log_probability

    # -- its parts

    @property
    def steps(self) -> tuple[DerivationStep, ...]:
        """The instances and leaves, each before its antecedents, from left to right."""
        if self._steps is None:
            assert self._forest is not None
            self._steps = _steps(self._forest, self.instances)
        return self._steps

    def detached(self) -> Derivation:
        """The same derivation, without the forest that it came from."""
        return make_derivation(None, (), self.weight, self.log_probability, self.steps)

    def apart(self) -> Derivation:
        """`detached` by its old name."""
        warn_of_name("Derivation.apart()", "detached()")
        return self.detached()

    def __iter__(self) -> Iterator[DerivationStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        """How many instances of rules it has."""
        if self._steps is None:  # which cost far more than counting
            assert self._forest is not None
            return int((self._forest.arrays.rule[np.asarray(self.instances, np.int64)] >= 0).sum())
        return sum(step.rule is not None for step in self._steps)

    def __bool__(self) -> bool:
        return True

    @property
    def item(self) -> str:
        """The item that it derives."""
        return self.steps[0].item

    @public
    def items(self) -> list[str]:
        """The items that it uses, as often as it does, each before its antecedents; `SIDE` items are not used."""
        return [step.item for step in self.steps if not step.side]

    @public
    def rules(self) -> list[str]:
        """The rules of its instances, as they are written, each before those of its antecedents."""
        return [step.rule for step in self.steps if step.rule is not None]

    @public
    def facts(self) -> list[str]:
        """The given facts at its leaves, from left to right: its yield."""
        return [step.item for step in self.steps if step.row is not None]

    # -- comparing

    def _compared(self) -> tuple[Any, ...]:
        if self._key is None:
            self._key = tuple((s.text, s.rule_number, s.row, len(s.antecedents)) for s in self.steps)
        return self._key

    def __eq__(self, other: object) -> bool:
        return self._compared() == other._compared() if isinstance(other, Derivation) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared())

    def __reduce__(self) -> tuple[Any, ...]:
        return make_derivation, (None, (), self.weight, self.log_probability, self.steps)

    def __repr__(self) -> str:
        weight = "" if self.weight is None else f" of weight {self.weight}"
        return f"<Derivation of {self.item}{weight}: {counted(len(self), 'instance')}>"

    # -- other forms

    def _boxes(self, everything: bool) -> list[Box]:
        return boxes(self.steps, yes_or_no("everything", everything))

    @public
    def tree(self, *, conditions: bool = False, everything: bool = False) -> Any:
        """Nested tuples: an item, then what each of its antecedents is. A leaf is a text alone.

        `conditions` has what the rules ask for beside their items as leaves too, `not stop(3)` and `1 < 2`. Where the
        program declares what it shows (`:- show`), this and all other drawings keep that alone, unless `everything` is
        asked for.

        >>> import dynagrad as dg
        >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.  :- show path(V) as V.")
        >>> derivation = program.run({"edge/2": [("a", "b", 2.0)]}).best("path(b)")
        >>> derivation.tree(), derivation.tree(everything=True)
        (('b', 'a'), ('path(b)', 'path(a)', 'edge(a,b)'))
        """
        return nested(self._boxes(everything), yes_or_no("conditions", conditions))

    @public
    def brackets(self, *, everything: bool = False) -> str:
        """The tree as text in brackets, as treebanks have it; what has blanks or brackets of its own is in quotes.

        >>> import dynagrad as dg
        >>> print(dg.Program("goal += a(X) * b(X).").run({"a/1": [("x",)], "b/1": [("x",)]}).best("goal").brackets())
        (goal 'a(x)' 'b(x)')
        """
        return brackets(self._boxes(everything))

    @public
    def latex(self, *, everything: bool = False) -> str:
        """The tree for LaTeX, with its package `forest`.

        >>> import dynagrad as dg
        >>> print(dg.Program("goal += a(X) * b(X).").run({"a/1": [("x_1",)], "b/1": [("x_1",)]}).best("goal").latex())
        \\begin{forest} [{goal} [{a(x\\_1)}] [{b(x\\_1)}]] \\end{forest}
        """
        return latex(self._boxes(everything))

    @public
    def nltk(self, *, everything: bool = False) -> Any:
        """The tree as `nltk.Tree`, whose labels and leaves are items. Raises `Error` where nltk is not installed."""
        return nltk_tree(self._boxes(everything))

    @public
    def to_json(self, indent: int | None = None) -> str:
        """Its steps as JSON: items as text, with the places of their antecedents, and what drawings make of them."""
        return json_text(self._data(), indent)

    def _data(self) -> dict[str, Any]:
        def row(step: DerivationStep) -> dict[str, Any]:
            found: dict[str, Any] = {"item": step.item}
            if step.rule is not None:
                found |= {"rule": step.rule, "rule_number": step.rule_number, "antecedents": list(step.antecedents)}
                if step.conditions:
                    found["conditions"] = list(step.conditions)
            elif step.side:
                found["side"] = True
            elif step.row is not None:
                found["row"] = step.row
            if not step.shown:
                found["shown"] = False
            if step.label is not None:
                found["label"] = step.label
            return found

        data: dict[str, Any] = {"weight": self.weight}
        if self.log_probability is not None:
            data["log_probability"] = self.log_probability
        return data | {"steps": [row(step) for step in self.steps]}

    @public
    def graphviz(self, *, everything: bool = False) -> str:
        """The tree in the language of Graphviz."""
        return graphviz(self._boxes(everything))

    @public
    def svg(self, *, everything: bool = False) -> str:
        """The tree as an SVG picture; notebooks show it."""
        return svg(self._boxes(everything), f"A derivation of {self.item}")

    @public
    def text(self, *, everything: bool = False) -> str:
        """The tree as plain text, a line for each step."""
        return text_tree(drawable(self._boxes(everything)))

    def _repr_svg_(self) -> str:
        return self.svg()

    def __rich__(self) -> Any:
        return rich_tree(self._boxes(False))

    @public
    def check(self, program: Any, facts: Mapping[str, Any] | None = None, *, values: str | None = None) -> None:
        """Checks every step with nothing but the text of the program and the facts, and recomputes the weight.

        `program` is a `dg.Program`, or its text or path. `facts` are all that were given, those that were bound before
        those of the run; those that no step uses are not read. Raises `Error` for the first step that is not right. It
        is taken as given that an item under `SIDE` is derived and one under `not` is not, where rules define the
        predicate.
        """
        check(self.steps, self.weight, program, facts, values)


make_derivation = maker(Derivation, "derivations come from chart.best(item), kbest and sample")


def _steps(forest: Packed, instances: Sequence[int] | npt.NDArray[Any]) -> tuple[DerivationStep, ...]:
    """The steps of the instances of a derivation, each before those of its antecedents."""
    arrays = forest.arrays
    owners = forest.arrays.owner
    listed = [int(i) for i in instances]
    below = [forest.antecedents(i) for i in listed]
    forest.learn([int(owners[i]) for i in listed] + [~n for nodes in below for n in nodes if n < 0])
    rules = forest.meaning.rules
    shown = ShowPatterns(forest.meaning.source)
    made: list[tuple[Any, ...]] = []
    places: list[list[int]] = []
    taken = 0
    # a place to fill: the step that it is an antecedent of, and an item that is not opened, if it is one
    stack: list[tuple[int, int | None, int]] = [(-1, None, 0)]
    while stack:
        parent, leaf, depth = stack.pop()
        n = len(made)
        if parent >= 0:
            places[parent].append(n)
        places.append([])
        if leaf is not None:
            name = forest.name(leaf)
            made.append((name, None, None, (), None, True, depth, *shown.of(name)))
            continue
        i, nodes = listed[taken], below[taken]
        taken += 1
        rule: ForestRule | None = rules.get(int(arrays.rule[i]))
        name = forest.name(int(owners[i]))
        if rule is None:
            made.append((name, None, None, (), _row(forest, i), False, depth, *shown.of(name)))
            continue
        made.append((name, rule.text, rule.source, forest.conditions(i), None, False, depth, *shown.of(name)))
        for u in reversed(nodes):
            stack.append((n, None if u >= 0 else ~u, depth + 1))
    return tuple(
        DerivationStep(name, rule_text, number, tuple(steps), *rest)
        for (name, rule_text, number, *rest), steps in zip(made, places, strict=True)
    )


def _row(forest: Packed, instance: int) -> int | None:
    row = int(forest.meaning.given_row[-1 - int(forest.arrays.rule[instance])])
    return None if row == NO_ROW else row
