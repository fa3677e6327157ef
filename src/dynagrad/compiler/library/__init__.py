"""Built-in functions, the standard library and higher-order functions of numpy, while a function is specialised.

- `builtins.py`: built-in functions of structures, and reflection.
- `math.py`: built-in functions of numbers, and `math`.
- `operator.py`: `operator`, `functools.lru_cache`, and pure third-party libraries.
- `itertools.py`: `itertools`, `np.ndindex` and `next`.
- `callables.py`: numpy's functions that take a function or an iterable.
- `vectorize.py`: `np.vectorize`.
"""
