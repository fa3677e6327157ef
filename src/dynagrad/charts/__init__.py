"""Programs of rules and their charts: what users run, query, change and differentiate.

- `program.py`: `Bound`, a program with facts, and `Program`, one without; `sources.py`: what a program is made from.
- `binding/`: facts meet a program: encoded, planned for, compiled, loaded into native code.
- `limits.py`, `machine.py`: when a run stops early, and how much memory there is.
- `run.py`: forward chaining from facts to a fixed point, within limits; `progress.py` draws its progress,
  `externals.py` connects Python functions behind external predicates, `ends.py` turns how it ended into errors.
- `chart.py`: `Chart`, the result of a run; `lookup.py` finds items in it.
- `changes.py`: incremental maintenance of a chart whose facts changed.
- `replay.py`: a run as a value, from which it is made again with a tape or over dual numbers.
- `derivatives/`: gradients, tangents, outside values and marginals.
- `functions/`: a program as a differentiable function.
- `derivations.py`: the derivations of a chart's items, as a forest; `finality.py` says which items have theirs where a
  run ended early.
- `batches/`: many runs, on several threads or together in native code, with the sum of their gradients.
"""
