"""The derivations of an item: forests, the best, the k best, samples, counts, and why an item is there or is not.

`packed.py` has the forest, flat arrays that somebody collected from a chart; no chart is known here. What is asked of
it is worked out natively (`native.py`, over `runtime/include/dynagrad/forest`): the k best by `ranking/`, samples,
counts and expectations by `sums/`. A derivation (`derivation.py`) is a value, which `drawing/` draws and
`checking.py` checks with nothing but the text of the program and the facts. `terms.py` matches and evaluates the terms
of rules in plain Python. `reasons/` says why an item is there, and `absence/` what is missing for one that is not.

`forest.py` is the forest as users see it, `steps.py` and `listed.py` what derivations and lists of them are made of,
`decoding.py` the derivation with the least expected loss. `algebra.py` has the weights of each semiring, `unfolding.py`
puts transient items back, `storage.py` is for files, and `time_limit.py` for limits on time.
"""
