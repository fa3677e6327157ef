"""The command line: `dynagrad run`, `best`, `why`, `why-not`, `check`, `explain`, `cpp` and `demo`.

Each command does what Python users can call. `commands.py` has the commands, `derivations.py` those that show
derivations, `inputs.py` reads the files that they name, `answers.py` prints results, `outputs.py` writes files, and
`demo.py` is the demo; `__main__.py` runs it all as a module.
"""

from . import derivations  # which adds its commands
from .commands import app, main

__all__ = ["app", "derivations", "main"]
