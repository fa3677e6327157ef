"""Calls of the runtime library: which function computes which family of operations.

- `status.py`: calls that may fail;
- `along.py`: operations along axes: sorting, scans, gathers; `linear.py`: linear algebra; `failing.py`: errors.
"""
