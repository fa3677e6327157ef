"""Stages that find the components of their ground program at run time, and solve or iterate cycles.

`blocks.py` has what only the program knows of a block of items, `grounding.py` writes joins as equations of a
component, and `convergence.py` watches stages that iterate.
"""
