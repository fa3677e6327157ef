"""The command line: `dynagrad run`, `best`, `why`, `why-not`, `check`, `explain`, `cpp`, `demo`, `dvl`, `pullback`.

Each command does what Python users can call. `commands.py` has the commands, `derivations.py` those that show
derivations, `dvl.py` that of DVL, `pullback.py` that of pullback terms, `inputs.py` reads the files that they name,
`answers.py` prints results, `outputs.py` writes files, and `demo.py` is the demo; `__main__.py` runs it all as a
module.
"""

from . import derivations, dvl, pullback  # which add their commands
from .commands import app, main

__all__ = ["app", "derivations", "dvl", "main", "pullback"]
