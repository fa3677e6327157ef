"""Benchmarks, with targets and peers: `make bench`, or `python -m benchmarks NAME` for one group."""
