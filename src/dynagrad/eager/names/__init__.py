"""The functions behind the names of `dynagrad.numpy` (`numpy_names.py`) and `dynagrad.math` (`math_names.py`)."""
