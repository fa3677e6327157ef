"""Data from what people have: tables by a column (`tables.py`), trees as facts (`brackets.py`), rare words as classes
(`vocabulary.py`), and derivations that were observed as counts (`observed.py`).

What an example is, is said by `training/examples.py`, above which these stand.
"""
