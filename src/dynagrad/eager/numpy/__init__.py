"""numpy's functions on numbers with derivatives: handlers, made of operations, for numpy's dispatch protocols.

- `functions.py`: the table of handlers, and how they read arguments; `missing.py`: advice for functions without one;
- handlers by kind: `shapes.py`, `arranging.py` (moving, joining, selecting), `reductions.py`, `quantiles.py`,
  `statistics.py` (covariances, histograms), `grids.py` (ranges, grids), `signals.py` (convolution, interpolation,
  differences), `linalg.py`, `fitting.py` (least squares), `callables.py` (functions that take functions),
  `exponentials.py` (`logsumexp`, `softmax`);
- `ufuncs.py`: methods of ufuncs, such as `np.add.reduce`;
- `protocol.py`: `__array_ufunc__`, `__array_function__`, and the methods of arrays on numbers.
"""
