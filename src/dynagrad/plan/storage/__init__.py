"""Where the items of each predicate are stored: dense arrays or hash tables.

- `occupancy.py`: how many items each predicate may have, by an estimate.
- `layout.py`: the layout of each table that follows from these, the ranges of arguments and the joins of a plan.
"""
