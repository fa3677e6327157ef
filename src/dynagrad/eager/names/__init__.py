"""The functions behind the names of `dynagrad.numpy` and `dynagrad.math`."""
