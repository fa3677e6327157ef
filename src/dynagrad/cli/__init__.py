"""The command line: `dynagrad run`, `best`, `why`, `check`, `explain`, `cpp`, `train`, `demo`, `dvl` and others.

Each command does what Python users can call. `commands.py` has the commands, `derivations.py` those that show
derivations, `training.py` those that train and use models (which `settings.py` and `parametrisations.py` describe),
`dvl.py` that of DVL, `pullback.py` that of pullback terms, `inputs.py` reads the files that they name, `answers.py`
prints results, and `demo.py` is the demo; `__main__.py` runs it all as a module.
"""

from . import derivations, dvl, pullback, training  # which add their commands
from .commands import app, main

__all__ = ["app", "derivations", "dvl", "main", "pullback", "training"]
