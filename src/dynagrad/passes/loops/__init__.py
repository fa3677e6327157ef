"""Loop analyses and transformations, over affine forms (`passes/linear_forms.py`). Data flows from the first files to
the last.

- `rounds.py`: what is known of a loop's iterations: stack effects, and whether they are independent;
- `invariant_reads.py`: hoists loop-invariant array reads, so that derivatives save less;
- `recurrences.py`: splits linear recurrences into a vectorisable loop of coefficients and a short serial chain;
- `unroll_and_jam.py`: runs several iterations of an outer loop in one inner loop.
"""
