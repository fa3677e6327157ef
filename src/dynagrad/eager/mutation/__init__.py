"""Mutable arrays: arrays that a function may write to while it is differentiated.

- `records.py`: what was written to each element, in a storage shared with views;
- `writing.py`: numpy's functions that write to an array, or make views;
- `arrays.py`: the array itself, as users see it.
"""
