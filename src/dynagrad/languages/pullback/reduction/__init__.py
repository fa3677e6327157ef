"""Reduction: from terms to values, by the rules of the paper.

`administrative.py` makes let series. `reduce.py` is the machine, with rules 1 to 4 and 6 to 8; `rules.py` has 9 to 20,
`transpose.py` 5 and the reverse phase. `values.py` is what comes out, `steps.py` the tree of steps that stays behind.
"""
