"""Stages that find the components of their ground program at run time, and solve their cycles.

`blocks.py` has what only the program knows of a block of items.
"""
