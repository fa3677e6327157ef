"""Incremental updates of a finished chart: `changing.py` has what only the program knows of them."""
