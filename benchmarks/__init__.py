"""The figures that the project promises, measured: `make bench`, or `python -m benchmarks NAME` for one group."""
