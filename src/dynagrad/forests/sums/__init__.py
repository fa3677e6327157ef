"""Sums over the derivations of a forest: how many there are (`counting.py`), what their weights add up to
(`totals.py`), draws in proportion to weight (`draws.py`), and expectations (`expectations.py`), and the chance
that something occurs (`occurrences.py`). Cycles are linear systems (`linear.py`)."""
