"""Compiled functions, from the text of a Python function to a graph and machine code: `dg.compile`.

`frontend/` turns text into a small lambda calculus; `evaluate/` runs that on values of which some are not known, with
what `objects/`, `numpy/` and `library/` know of Python's and numpy's functions and `transforms/` of derivatives inside;
`specialised.py` is the way through them, and `compiled.py` what users hold.
"""
