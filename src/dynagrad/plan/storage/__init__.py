"""Where the items of each predicate are stored: dense arrays or hash tables.

- `intervals.py`: the ranges of integer arguments.
- `occupancy.py`: how many items each predicate may have, by an estimate.
- `layout.py`: the layout of each table that follows from these and from the joins of a plan.
"""
