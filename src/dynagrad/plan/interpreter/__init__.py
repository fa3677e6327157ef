"""The interpreter of nests: it runs a plan from Python, without a compiler, and so says what a plan means.

It is slow, and written to be read: how rules run is here in a few hundred lines. It reads nests, never the steps of
joins. Tests hold it against the engine and against a naive evaluator. Changes of facts, pruning, beams and limits are
left to the engine.

- `run.py`: a plan runs over facts, stage by stage; what came of it.
- `terms.py`: ground terms are built and matched.
- `chart.py`: the items that were derived, with their values and indexes.
- `instances.py`: the instances of a rule, found by its nest.
- `numbers.py`: semirings and aggregators.
- `values.py`: the contribution of an instance to its head, and its partial derivatives.
- `order.py`: levels, ranks of atoms, agendas.
- `state.py`: what a run has at hand.
- `stages.py`: strategies: once, from an agenda, in rounds.
- `components.py`: stages that are solved, component by component; `equations.py`: systems of polynomial equations.
- `gradient.py`: derivatives, backwards over the instances.
"""

from .run import Facts, Interpreted, interpret

__all__ = ["Facts", "Interpreted", "interpret"]
