"""From C++ source to a library on disk.

`toolchain.py` finds the compiler and calls it, as a child process (`child.py`) that does not outlive this one;
`fingerprint.py` hashes all that a library depends on, `cache.py` keeps libraries under these hashes, `zig_files.py`
keeps zig's own cache, and `zig_calls.py` what zig calls, so that it can be called without zig.
"""
