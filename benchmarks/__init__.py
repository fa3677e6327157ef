"""Benchmarks, with targets and peers: `make bench`, or `python -m benchmarks NAME` for one group.

- `common.py`: rows of the table, fair timing, data and baselines; `__main__.py`: the groups, and the table.
- Programs of rules: `wsj.py` (parsing), `dijkstra.py`, `hmm.py`, `cycles.py`, `gradient.py`, `loading.py` (facts).
- Models that learn: `training.py`; `folds.py`, a parser of held-out sentences, scored by `evalb.py`.
- Functions: `functions.py` (eager derivatives), `compiled.py` and `kernels.py` (compiled ones, of `programs/`).
- Latency: `compiling.py` (programs of rules), `first_calls.py` (first values and gradients of both).
"""
