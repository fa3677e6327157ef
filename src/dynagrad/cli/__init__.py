"""The command line: `dynagrad run`, `check`, `explain`, `cpp` and `demo`.

`commands.py` has the commands, `inputs.py` reads the files that they name, and `answers.py` prints what a run found.
They call what Python users call, and know no semantics of their own.
"""

from .commands import app, main

__all__ = ["app", "main"]
