"""The compiler of Python functions, `dg.compile`: from their text to a graph, by partial evaluation.

- `frontend/`: text to the core language, a small lambda calculus.
- `evaluate/`: the partial evaluator of the core language.
- `objects/`, `numpy/`, `library/`: its handlers for containers and classes, for numpy, for Python's library.
- `call_arguments.py`: how calls of library functions are held against the signature that is installed.
- `transforms/`: derivatives inside compiled functions.
- `specialised.py`: the way through all of these, from a function and arguments to a graph.
- `operations.py`: graphs as differentiable operations; `returned_cells.py`: what a compiled function had on its heap.
- `compiled.py`: the callable that `dg.compile` returns; `versions.py`: its versions, one for each signature.
- `inspect.py`: `dg.graph` and `dg.cpp`, to look at what was made; `inspected.py`: what they look at.

`compiled.py` and `inspect.py` are imported with the package, and the rest by the first call.
"""
