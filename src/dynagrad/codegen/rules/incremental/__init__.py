"""Incremental updates of a finished chart whose facts change.

`changing.py` deletes and rederives items (DRed), `resolving.py` recomputes components where cycles are solved.
"""
