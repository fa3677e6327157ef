"""`Forest`: the packed forest as its users see it, with a method for each question about its derivations.

Each method checks what it is given and calls the file that answers: the flat arrays are in `packed.py`, their files in
`storage.py`, and who collects a forest from a chart is `charts/derivations.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from ..arguments import yes_or_no
from ..calls import maker, public
from ..errors import counted
from . import storage
from .decoding import decode
from .derivation import Derivation
from .listed import Listed
from .packed import ForestItem, Packed, RuleInstance
from .ranking.k_best import KBest, best, make_kbest
from .sums.counting import count, count_simple
from .sums.draws import Samples, make_samples
from .sums.expectations import covariance, expectation
from .time_limit import stop_after


class Forest:
    """All derivations of an item, packed: each item once, with the instances of rules that derive it.

    It comes from `chart.forest(item)`. Node 0 is the item. Given facts are items whose instances are the rows that were
    given. `forest.items` and `forest.instances` are sequences that are worked out as they are looked into.

    >>> import dynagrad as dg
    >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
    >>> chart = program.run({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]})
    >>> forest = chart.forest("path(c)")
    >>> len(forest.items), len(forest.instances), forest
    (6, 7, <Forest of path(c): 6 items, 7 instances>)
    >>> [str(i) for i in forest.items[0].instances]
    ['path(c) min= path(a) + edge(a,c)', 'path(c) min= path(b) + edge(b,c)']
    """

    def __init__(self, packed: Packed) -> None:
        self.packed = packed

    @property
    def items(self) -> Sequence[ForestItem]:
        """The items, the one that was asked for first."""
        return Listed(len(self.packed.arrays.begin), lambda n: ForestItem(self.packed, n))

    @property
    def instances(self) -> Sequence[RuleInstance]:
        """The instances of rules, and the rows of given facts, item by item."""
        return Listed(len(self.packed.arrays.rule), lambda n: RuleInstance(self.packed, n))

    @property
    def root(self) -> ForestItem:
        """The item that was asked for."""
        return ForestItem(self.packed, 0)

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        a = self.packed.arrays
        return sum(x.nbytes for x in (a.begin, a.end, a.opened, a.rule, a.first, a.antecedent))

    @property
    def semiring(self) -> str:
        """The semiring of the weights; `plain` where derivations have none."""
        return self.packed.meaning.algebra.name

    @public
    def best(self, *, timeout: float | None = None) -> Derivation:
        """As `chart.best`."""
        return best(self.packed, stop_after(timeout))

    @public
    def kbest(
        self,
        k: int | None = None,
        *,
        simple: bool = False,
        distinct: str | Callable[[Derivation], Hashable] | None = None,
        timeout: float | None = None,
    ) -> KBest:
        """As `chart.kbest`."""
        return make_kbest(self.packed, k, simple=simple, distinct=distinct, timeout=timeout)

    @public
    def sample(self, n: int = 1, *, seed: int = 0, timeout: float | None = None) -> Samples:
        """As `chart.sample`."""
        return make_samples(self.packed, n, seed, stop=stop_after(timeout))

    @public
    def count(self, *, simple: bool = False, timeout: float | None = None) -> int | float:
        """As `chart.count`."""
        return (count_simple if yes_or_no("simple", simple) else count)(self.packed, stop_after(timeout))

    @public
    def expected(self, value: Callable[[RuleInstance], Any], *, timeout: float | None = None) -> Any:
        """As `chart.expected`."""
        return expectation(self.packed, value, stop_after(timeout))

    @public
    def covariance(
        self,
        first: Callable[[RuleInstance], float],
        second: Callable[[RuleInstance], float] | None = None,
        *,
        timeout: float | None = None,
    ) -> float:
        """The covariance of two sums over a derivation's instances; without a second, the variance of the first.

        `timeout` is a limit in seconds, at which `NotConverged` is raised.

        >>> import dynagrad as dg
        >>> chart = dg.Program("goal += a(_).", "real").run({"a/1": [("x", 1.0), ("y", 3.0)]})
        >>> chart.forest("goal").covariance(lambda instance: str(instance.head) == "a(y)")
        0.1875
        """
        return covariance(self.packed, first, second, stop_after(timeout))

    @public
    def decode(
        self, gain: Callable[[RuleInstance], float] | None = None, *, by: str = "sum", timeout: float | None = None
    ) -> Derivation:
        """The derivation that is expected to have most in common with another one: minimum Bayes risk.

        Its expected gain is the sum, over its rule instances and its facts, of `gain` (else 1) times the chance that
        this very instance, or fact, occurs in a derivation; what it uses twice counts twice. A gain gets an instance,
        whose `rule` is None if it is a fact. `by="product"` is max-rule: the largest product of the chances of its rule
        instances. `timeout` is a limit in seconds, at which `NotConverged` is raised.

        >>> import dynagrad as dg
        >>> program = dg.Program("goal += a(_). goal += b. b += c(_).", "real")
        >>> chart = program.run({"a/1": [("x", 3.0)], "c/1": [("y", 2.0), ("z", 2.0)]})
        >>> chart.best("goal").facts(), chart.forest("goal").decode().facts()
        (['a(x)'], ['c(y)'])
        """
        return decode(self.packed, gain, by, stop_after(timeout))

    @public
    def to_json(self, indent: int | None = None) -> str:
        """All of it as JSON, which `dg.read_forest` reads again."""
        return storage.to_json(self.packed, indent)

    @public
    def to_arrow(self) -> dict[str, Any]:
        """Its items and its instances as `pyarrow.Table`, under "items" and "instances".

        An instance has the places of its head and of its antecedents among the items.
        """
        return storage.to_arrow(self.packed)

    def __reduce__(self) -> tuple[Any, ...]:
        return read_forest, (self.to_json(),)

    def __repr__(self) -> str:
        size = f"{counted(len(self.items), 'item')}, {counted(len(self.instances), 'instance')}"
        return f"<Forest of {self.packed.text(0)}: {size}>"


make_forest = maker(Forest, "forests come from chart.forest(item), or dg.read_forest(text)")


@public
def read_forest(source: str | Path) -> Forest:
    """A forest that `forest.to_json` wrote: its path, or its text. It needs no chart.

    >>> import dynagrad as dg
    >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
    >>> text = program.run({"edge/2": [("a", "b", 2.0), ("a", "c", 1.0)]}).forest("path(b)").to_json()
    >>> dg.read_forest(text).best().weight
    2.0
    """
    return make_forest(storage.read_forest(source))
