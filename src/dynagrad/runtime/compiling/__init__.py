"""From C++ source to a library on disk.

`toolchain.py` finds the compiler and calls it, as a child process (`child.py`) that does not outlive this one;
`fingerprint.py` hashes all that a library depends on, and `cache.py` keeps libraries under these hashes, and their
`objects.py`. Of zig,
`zig_calls.py` keeps how it calls clang, so that it can be called without zig, as the linker is by `linking.py`, and
`zig_files.py` keeps its own cache where that does not do.
"""
