"""What mypy says of a text. What it knows of the package and of numpy, seven seconds of work, is kept by the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dynagrad


def said_of(text: str, folder: Path) -> str:
    """The output of mypy for a file of this text, which is written to a folder."""
    file = folder / "checked.py"
    file.write_text(text)
    kept = Path(os.environ["DYNAGRAD_CACHE"]).with_name("dynagrad-mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", f"--cache-dir={kept}"]
    environment = {"MYPYPATH": str(Path(dynagrad.__file__).parents[1]), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run(
        [*command, "--follow-imports=silent", str(file)], capture_output=True, text=True, env=environment
    )
    assert not done.stderr, done.stderr
    return done.stdout
