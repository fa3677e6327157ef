"""Calls of the runtime library: which function computes which family of operations.

- `status.py`: calls that may fail;
- `axes.py`: operations along axes: sorting, scans, gathers; `linear.py`: linear algebra; `failing.py`: errors.
"""
