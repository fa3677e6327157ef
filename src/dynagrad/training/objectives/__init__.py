"""Objectives: what training makes large, each with its gradient by the log weights of parameters.

An objective maps a `Task` (a bound program, and what is asked) and a shard of examples to `Totals`. It is a value, so
that it can be sent to other processes. Where examples come from, how weights depend on parameters, and optimisers are
not known here. `evaluation.py` has the runs that all are made of, `losses.py` the facts that are losses and no weights;
`likelihood.py`, `items.py` (any function of items), `expectations.py` (risk, entropy) and `sums.py` have objectives.
"""
