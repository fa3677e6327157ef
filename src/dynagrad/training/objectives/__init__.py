"""Objectives: what training makes large, each with its gradient by the log weights of parameters.

An objective maps a bound program and a shard of examples to `Totals`. It is a value, so that it can be sent to other
processes; data, parametrisations and optimisers are not known here. `evaluation.py` has the runs that all are made of;
`likelihood.py`, `items.py` (any function of items), `expectations.py` (risk, entropy) and `sums.py` have objectives.
"""
