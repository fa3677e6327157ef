"""numpy's functions while a function is specialised. What has derivatives is handled in `eager/numpy/`, on nodes.

A call comes in at `calls.py`, which evaluates it in numpy or in the graph, with:

- `known_arguments.py`: which arguments must be static.
- `result_kinds.py`: whether results are reals, whole numbers or truth values, and integer kernels.
- `nodes.py`: functions without derivatives, on nodes.
- `views.py`: which results are views of an array; `ufunc_at.py`: `np.add.at` and the like.
- `masked.py`: elements under a dynamic mask.
"""
