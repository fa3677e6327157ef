"""Terms with a pullback for derivatives, after Mak and Ong: parsed, typed, reduced step by step, evaluated, compiled.

`terms.py` has the terms, `parse.py` and `show.py` their text, `types.py` and `infer.py` their types. `reduce.py` is the
machine, with `administrative.py`, `rules.py` and `transpose.py` for the rules and `values.py` for what comes out.
"""
