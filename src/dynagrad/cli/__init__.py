"""The command line: `dynagrad run`, `best`, `why`, `why-not`, `check`, `explain`, `cpp` and `demo`.

`commands.py` has the commands, `derivations.py` those that show derivations, `inputs.py` reads the files that they
name, and `answers.py` prints what a run found. They call what Python users call, and know no semantics of their own.
"""

from . import derivations  # which adds its commands
from .commands import app, main

__all__ = ["app", "derivations", "main"]
