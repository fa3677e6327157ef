"""The functions behind the names of `dynagrad.numpy` (`numpy_names.py`), `dynagrad.math` (`math_names.py`) and
`dynagrad.special` (`special.py`).
"""
