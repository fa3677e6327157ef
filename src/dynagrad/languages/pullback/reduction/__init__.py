"""Reduction: from terms to values, by the rules of the paper.

`administrative.py` makes let series (A), `call_by_value.py` has rules 1 to 4, `transpose.py` 5 and 6, `pullbacks.py` 7
and 8 and the forward phase, `rules.py` 9 to 20, and `premises.py` what these ask for. They are parts of one abstract
machine, `machine.py`, which `reduce.py` starts. `values.py`, `tuples.py` and `duals.py` are what it computes with,
`numbering.py` has the numbers and names of rules, and `steps.py` the tree of steps that stays behind.
"""
