"""The partial evaluator: the core language run on values of which some are known only to the graph that it makes.

Online partial evaluation (Jones, Gomard and Sestoft 1993): static values are computed, dynamic ones become nodes.

- `values.py`: the values that variables hold; `joins.py`: abstract values, which stand for several, and their join.
- `specialiser.py`: evaluation, calls, changes in place, and the tables that handlers enter; `choices.py`: choices on
  dynamic conditions.
- `exceptions.py`: `raise`, `assert` and checks while the graph runs.
- `limits.py`: how far loops are unrolled and calls inlined.
- `masks.py`, `arrays.py`: elements chosen by a mask; making and indexing arrays.
- `iteration.py`: iteration spaces of loops and comprehensions; `loops.py`: loops, unrolled or in the graph.
- `recursion.py`: functions whose recursion is dynamic.
- `heap/`: values of which the graph decides what they are, and derivatives whose number it decides.
- `numpy_scalars.py`: which numbers numpy has as scalars of its own; `operators.py`: Python's operators.
- `signatures.py`: what a specialisation depends on, its arguments and results.
"""
