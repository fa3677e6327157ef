"""Cache folders of a test's own that need not begin with what programs have in common.

The objects of the runtime and the precompiled headers take seconds to compile, and are the same for all programs. A
test that is not about them takes them from the cache that all tests share.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dynagrad.runtime.disk import folder as cache_folder

SHARED = cache_folder.folder()
"""The cache folder before any test has set another."""


def link_shared(folder: Path) -> Path:
    """A folder, which is made if need be, with links to all objects, precompiled headers and calls of the shared cache.

    They are hard links: to write into one would change what the others use. What the cache writes is a new file.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    assert SHARED is not None
    parts = [*SHARED.glob("*.o"), *SHARED.glob("*.pch")]
    sealed = [file for part in parts if (seal := part.with_suffix(".seal")).exists() for file in (part, seal)]
    files = (*sealed, *SHARED.glob("*.calls"), *SHARED.glob("*.zig"))
    for file in (file for file in files if not (folder / file.name).exists()):
        try:
            os.link(file, folder / file.name)
        except OSError:  # another file system
            shutil.copy(file, folder)
    return folder
