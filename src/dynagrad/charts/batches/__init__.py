"""Batches: a program run on many examples, with the sum of their gradients; the same for any number of threads.

- `result.py`: `Batch`, what came of the examples.
- `objective.py`: the objective, and the running sum of its gradient.
- `threads.py`: examples on several threads, read in their order.
- `one_by_one.py`: examples as charts; `parts.py`: examples together in native code.
- `run.py`: runs a batch in one of these ways.
"""
