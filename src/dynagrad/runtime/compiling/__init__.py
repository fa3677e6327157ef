"""From C++ source to a library on disk.

`toolchain.py` finds the compiler, and `compilation.py` calls it, as a child process (`child.py`) that does not outlive
this one, and that may start before its source is there (`ahead.py`). `fingerprint.py` hashes all that a library depends
on, and `cache.py` keeps libraries under these hashes, and the `objects.py` that they are linked with.

Three files are for zig: `zig_calls.py` records how zig calls clang, so that later compiles call clang themselves;
`linking.py` calls its linker; and where zig has to be called, `zig_files.py` keeps zig's own cache.
"""
