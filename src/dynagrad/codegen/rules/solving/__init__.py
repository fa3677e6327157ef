"""Stages that find the components of their ground program at run time, and solve or iterate cycles.

`grounding.py` writes joins as edges of the ground program and as its equations, `components.py` solves a cyclic
component, `exploring.py` explores and pops blocks of items, and `convergence.py` watches stages that iterate.
"""
